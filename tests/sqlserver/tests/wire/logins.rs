//! What a login says and how it is answered.

use thalweg_sqlserver_emulator::wire::server::Options;
use tiberius::AuthMethod;

use crate::script::{client, config, connect, one, start, works};

#[tokio::test]
async fn a_login_says_who_connects_to_what() {
    let (script, server) = start(Options::default(), one).await;
    let mut config = config(&server);
    config.database("säles");
    config.application_name("app");
    config.client_name("host");
    config.readonly(true);
    config.packet_size(512);
    let mut client = connect(config, server.address().port()).await.unwrap();
    assert!(works(&mut client).await);
    let seen = script.seen.borrow();
    let login = &seen.logins[0];
    assert_eq!((login.user.as_str(), login.password.as_str()), ("sa", "sécret&1"));
    assert_eq!((login.database.as_str(), login.application.as_str(), login.host.as_str()), ("säles", "app", "host"));
    assert!(login.read_only);
}

#[tokio::test]
async fn a_refused_login_gets_the_servers_error() {
    let (_script, server) = start(Options::default(), one).await;
    let mut config = config(&server);
    config.authentication(AuthMethod::sql_server("sa", "wrong"));
    match connect(config, server.address().port()).await.unwrap_err() {
        tiberius::error::Error::Server(error) => {
            assert_eq!((error.code(), error.class()), (18456, 14));
            assert_eq!(error.message(), "Login failed for user 'sa'.");
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_token_of_an_identity_provider_is_refused() {
    let (script, server) = start(Options::default(), one).await;
    let mut config = config(&server);
    config.authentication(AuthMethod::aad_token("token"));
    match connect(config, server.address().port()).await.unwrap_err() {
        tiberius::error::Error::Server(error) => assert_eq!(error.code(), 18452),
        other => panic!("{other}"),
    }
    assert!(script.seen.borrow().logins.is_empty());
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_session() {
    let (script, server) = start(Options::default(), one).await;
    let client = client(&server).await;
    server.until_connections(1).await;
    drop(client);
    script.until(|seen| seen.ended == 1).await;
    server.until_connections(0).await;
}

#[tokio::test]
async fn a_session_that_is_killed_ends_its_connection() {
    let (script, server) = start(Options::default(), one).await;
    let mut client = client(&server).await;
    assert!(works(&mut client).await);
    script.seen.send_modify(|seen| seen.killed = true);
    script.until(|seen| seen.ended == 1).await;
    assert!(!works(&mut client).await);
}
