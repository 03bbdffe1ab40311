//! Named instances are found through the browser.

use thalweg_sqlserver_emulator::wire::browser::{Instance, SqlBrowser};
use thalweg_sqlserver_emulator::wire::server::Options;
use tiberius::{Client, SqlBrowser as _};
use tokio::net::TcpStream;
use tokio_util::compat::TokioAsyncWriteCompatExt;

use crate::script::{config, one, start, works};

#[tokio::test]
async fn a_client_finds_a_named_instance() {
    let options = Options { instance: Some("SALES".into()), ..Options::default() };
    let (_script, server) = start(options, one).await;
    let instances = vec![Instance { name: "SALES".into(), port: server.address().port() }];
    let browser = SqlBrowser::start(([127, 0, 0, 1], 0).into(), "localhost", instances).await.unwrap();
    let mut config = config(&server);
    config.host("127.0.0.1");
    config.port(browser.address().port());
    config.instance_name("sales");
    let tcp = TcpStream::connect_named(&config).await.unwrap();
    let mut client = Client::connect(config, tcp.compat_write()).await.unwrap();
    assert!(works(&mut client).await);
}

#[tokio::test]
async fn a_server_is_no_other_instance() {
    let (_script, server) = start(Options::default(), one).await;
    let mut config = config(&server);
    config.instance_name("sales");
    assert!(crate::script::connect(config, server.address().port()).await.is_err());
}
