//! Connections: encryption, logins, limits of time, and those that break.

use std::time::{Duration, Instant};

use thalweg_core::{ErrorKind, Phase};
use thalweg_sqlserver::catalogue::database_name;
use thalweg_sqlserver::errors::{Class, Fault};
use thalweg_sqlserver::link::SqlLink;
use thalweg_sqlserver_emulator::session::Message;
use thalweg_sqlserver_emulator::wire::Encryption;
use thalweg_sqlserver_emulator::wire::browser::{Instance, SqlBrowser};
use thalweg_sqlserver_emulator::wire::server::Options;

use crate::fixture::{Lab, link};

async fn one(link: &mut SqlLink) -> Result<i32, Fault> {
    let rows = link.rows("SELECT 1", &[]).await?;
    Ok(rows[0].get::<i32, _>(0).unwrap())
}

fn error(number: u32, class: u8, text: &str) -> Message {
    Message { number, state: 1, class, text: text.into(), procedure: String::new(), line: 1 }
}

#[tokio::test]
async fn connections_are_encrypted_as_the_option_says() {
    let lab = Lab::start().await;
    let certificate = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(certificate.path(), lab.server.certificate()).unwrap();
    let path = certificate.path().to_str().unwrap();
    for encrypt in ["false", "true", "strict"] {
        let trusting = lab.config(&[("driver.encrypt", encrypt)]);
        assert_eq!(one(&mut link(&trusting, None)).await.unwrap(), 1, "{encrypt}");
        let pinned =
            [("driver.encrypt", encrypt), ("driver.trustServerCertificate", "-"), ("driver.serverCertificate", path)];
        assert_eq!(one(&mut link(&lab.config(&pinned), None)).await.unwrap(), 1, "{encrypt}");
        let stored = [
            ("driver.encrypt", encrypt),
            ("driver.trustServerCertificate", "-"),
            ("driver.trustStore", path),
            ("driver.trustStoreType", "PEM"),
            ("driver.hostNameInCertificate", "localhost"),
        ];
        assert_eq!(one(&mut link(&lab.config(&stored), None)).await.unwrap(), 1, "{encrypt}");
    }
}

#[tokio::test]
async fn a_certificate_must_be_trusted_and_name_the_host() {
    let lab = Lab::start().await;
    let certificate = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(certificate.path(), lab.server.certificate()).unwrap();
    let path = certificate.path().to_str().unwrap();
    let untrusted = lab.config(&[("driver.encrypt", "true"), ("driver.trustServerCertificate", "-")]);
    let fault = one(&mut link(&untrusted, None)).await.unwrap_err();
    assert_eq!(fault.class(), Class::Connect, "{fault}");
    let named = [
        ("driver.encrypt", "true"),
        ("driver.trustServerCertificate", "-"),
        ("driver.serverCertificate", path),
        ("driver.hostNameInCertificate", "other.example"),
    ];
    let fault = one(&mut link(&lab.config(&named), None)).await.unwrap_err();
    assert_eq!(fault.class(), Class::Connect, "{fault}");
    let absent = [("driver.trustServerCertificate", "-"), ("driver.trustStore", "/nowhere/trust.p12")];
    let fault = one(&mut link(&lab.config(&absent), None)).await.unwrap_err();
    let error = fault.error("server db1", Phase::Start);
    assert_eq!(error.kind, ErrorKind::Config);
    assert!(error.message.starts_with("driver.trustStore /nowhere/trust.p12 cannot be used: "), "{}", error.message);
}

#[tokio::test]
async fn a_server_that_wants_encryption_has_it_with_a_client_that_does_not_ask() {
    let lab = Lab::with(
        thalweg_sqlserver_emulator::engine::Setup::default(),
        Options { encryption: Encryption::Required, ..Options::default() },
    )
    .await;
    assert_eq!(one(&mut link(&lab.config(&[]), None)).await.unwrap(), 1);
}

#[tokio::test]
async fn a_wrong_login_says_so() {
    let lab = Lab::start().await;
    let fault = one(&mut link(&lab.config(&[("database.password", "wrong")]), None)).await.unwrap_err();
    assert_eq!(fault.class(), Class::Credentials);
    assert_eq!(fault.to_string(), "error 18456: Login failed for user 'sa'.");
    let fault = one(&mut link(&lab.config(&[]), Some("nosuchdb"))).await.unwrap_err();
    assert_eq!(fault.class(), Class::NoDatabase);
}

#[tokio::test]
async fn a_statement_has_its_time() {
    let lab = Lab::start().await;
    let mut link = link(&lab.config(&[("database.query.timeout.ms", "100")]), None);
    assert_eq!(one(&mut link).await.unwrap(), 1);
    lab.server.faults().silence();
    let begun = Instant::now();
    let fault = one(&mut link).await.unwrap_err();
    assert!(matches!(fault, Fault::Statement(limit) if limit == Duration::from_millis(100)), "{fault}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    lab.server.faults().clear();
    assert_eq!(one(&mut link).await.unwrap(), 1, "a new connection");
}

#[tokio::test]
async fn a_login_has_its_time() {
    let lab = Lab::start().await;
    lab.server.faults().silence();
    let fault = one(&mut link(&lab.config(&[("driver.loginTimeout", "1")]), None)).await.unwrap_err();
    assert!(matches!(fault, Fault::Login(limit) if limit == Duration::from_secs(1)), "{fault}");
}

#[tokio::test]
async fn sql_26_a_lost_connection_is_replaced() {
    let mut lab = Lab::start().await;
    lab.sql("CREATE TABLE dbo.t (n int)").await;
    lab.sql("INSERT dbo.t VALUES (1), (2), (3)").await;
    let before = lab.server.connections().len();
    let mut link = link(&lab.config(&[]), Some("shop"));
    assert_eq!(one(&mut link).await.unwrap(), 1);
    // Between two statements.
    lab.server.connections()[before].cut();
    lab.server.until_connections(before).await;
    assert_eq!(one(&mut link).await.unwrap(), 1);
    // Before and in the middle of an answer.
    for packets in [0, 1, 2] {
        lab.server.until_connections(before + 1).await;
        lab.server.connections()[before].faults.drop_after(packets);
        let many = "SELECT a.n FROM dbo.t a, dbo.t b, dbo.t c, dbo.t d, dbo.t e, dbo.t f, dbo.t g, dbo.t h";
        assert_eq!(link.rows(many, &[]).await.unwrap().len(), 6561, "each row once, after {packets} packets");
    }
    // By an administrator.
    lab.server.until_connections(before + 1).await;
    let session = lab.server.connections()[before].session;
    assert!(lab.emulator.kill(session));
    assert_eq!(one(&mut link).await.unwrap(), 1);
}

#[tokio::test]
async fn an_error_of_the_server_leaves_the_connection() {
    let lab = Lab::start().await;
    let before = lab.server.connections().len();
    let mut link = link(&lab.config(&[]), None);
    let fault = link.rows("SELECT * FROM dbo.nothing", &[]).await.unwrap_err();
    assert_eq!(fault.class(), Class::NoObject);
    let session = lab.server.connections()[before].session;
    assert_eq!(one(&mut link).await.unwrap(), 1);
    lab.server.faults().refuse_next(error(1205, 13, "Transaction was deadlocked."));
    assert_eq!(one(&mut link).await.unwrap_err().class(), Class::Busy);
    assert_eq!(one(&mut link).await.unwrap(), 1);
    assert_eq!(lab.server.connections()[before].session, session);
}

#[tokio::test]
async fn an_answer_ends_where_the_reader_has_enough() {
    let mut lab = Lab::start().await;
    lab.sql("CREATE TABLE dbo.t (n int)").await;
    lab.sql("INSERT dbo.t VALUES (1), (2), (3), (4)").await;
    let mut link = link(&lab.config(&[]), Some("shop"));
    let many = "SELECT a.n FROM dbo.t a, dbo.t b, dbo.t c, dbo.t d, dbo.t e, dbo.t f, dbo.t g";
    let mut answer = link.ask(many, &[]).await.unwrap();
    for _ in 0..10 {
        assert!(answer.next().await.unwrap().is_some());
    }
    drop(answer);
    assert_eq!(one(&mut link).await.unwrap(), 1, "on another connection");
}

#[tokio::test]
async fn a_named_instance_is_found_through_the_browser() {
    // An address of its own, because the browser's port is fixed.
    let host = [127, 43, 17, 9];
    let emulator = std::sync::Arc::new(
        thalweg_sqlserver_emulator::engine::Emulator::start(&thalweg_sqlserver_emulator::engine::Setup::default())
            .unwrap(),
    );
    let options = Options { address: (host, 0).into(), instance: Some("SALES".into()), ..Options::default() };
    let server = thalweg_sqlserver_emulator::wire::server::TdsServer::start(emulator, options).await.unwrap();
    let instances = vec![Instance { name: "SALES".into(), port: server.address().port() }];
    let _browser = SqlBrowser::start((host, 1434).into(), "localhost", instances).await.unwrap();
    for place in [
        &[("database.hostname", "127.43.17.9"), ("database.instance", "SALES"), ("database.port", "-")][..],
        &[("database.hostname", r"127.43.17.9\SALES"), ("database.port", "-")],
    ] {
        let config = crate::fixture::config(&server, place);
        assert_eq!(one(&mut link(&config, None)).await.unwrap(), 1, "{place:?}");
    }
}

#[tokio::test]
async fn sql_24_a_database_is_found_by_the_servers_spelling() {
    let mut lab = Lab::start().await;
    assert_eq!(database_name(&mut lab.admin, "SHOP").await.unwrap(), "shop");
    let fault = database_name(&mut lab.admin, "nosuchdb").await.unwrap_err();
    assert_eq!(
        fault.to_string(),
        "Could not retrieve exactly one database name for 'nosuchdb'. The database may not exist or the name matched \
         more than one entry."
    );
}
