//! Which connections are encrypted, and how far.

use thalweg_sqlserver_emulator::wire::Encryption;
use thalweg_sqlserver_emulator::wire::server::Options;
use tiberius::EncryptionLevel;

use crate::script::{config, connect, one, start};
use crate::tap::tap;

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Nothing,
    QueryAlone,
    LoginAndQuery,
    /// There is no connection.
    Refused,
}

/// What of a login and a query is to be seen on the wire.
async fn seen(server: Encryption, client: EncryptionLevel) -> Seen {
    let (_script, server) = start(Options { encryption: server, ..Options::default() }, one).await;
    let (port, heard) = tap(server.address().port()).await;
    let mut config = config(&server);
    config.encryption(client);
    config.application_name("the-application");
    let Ok(mut client) = connect(config, port).await else {
        return Seen::Refused;
    };
    let row = client.simple_query("SELECT 'the-query'").await.unwrap().into_row().await.unwrap().unwrap();
    assert_eq!(row.get::<i32, _>(0), Some(1));
    match (heard.contains("the-application").await, heard.contains("the-query").await) {
        (false, false) => Seen::Nothing,
        (false, true) => Seen::QueryAlone,
        (true, true) => Seen::LoginAndQuery,
        (true, false) => panic!("the query is encrypted and the login is not"),
    }
}

#[tokio::test]
async fn a_server_that_offers_encryption_does_as_the_client_asks() {
    assert_eq!(seen(Encryption::Offered, EncryptionLevel::NotSupported).await, Seen::LoginAndQuery);
    assert_eq!(seen(Encryption::Offered, EncryptionLevel::Off).await, Seen::QueryAlone);
    assert_eq!(seen(Encryption::Offered, EncryptionLevel::On).await, Seen::Nothing);
    assert_eq!(seen(Encryption::Offered, EncryptionLevel::Required).await, Seen::Nothing);
    assert_eq!(seen(Encryption::Offered, EncryptionLevel::Strict).await, Seen::Nothing);
}

#[tokio::test]
async fn a_server_that_requires_encryption_has_it_or_no_connection() {
    assert_eq!(seen(Encryption::Required, EncryptionLevel::NotSupported).await, Seen::Refused);
    assert_eq!(seen(Encryption::Required, EncryptionLevel::Off).await, Seen::Nothing);
    assert_eq!(seen(Encryption::Required, EncryptionLevel::Required).await, Seen::Nothing);
    assert_eq!(seen(Encryption::Required, EncryptionLevel::Strict).await, Seen::Nothing);
}

#[tokio::test]
async fn a_strict_server_takes_nobody_but_who_speaks_tls_first() {
    assert_eq!(seen(Encryption::Strict, EncryptionLevel::Strict).await, Seen::Nothing);
    assert_eq!(seen(Encryption::Strict, EncryptionLevel::Required).await, Seen::Refused);
}

#[tokio::test]
async fn a_server_without_encryption_takes_clients_without_it() {
    assert_eq!(seen(Encryption::NotSupported, EncryptionLevel::NotSupported).await, Seen::LoginAndQuery);
    assert_eq!(seen(Encryption::NotSupported, EncryptionLevel::Required).await, Seen::Refused);
    assert_eq!(seen(Encryption::NotSupported, EncryptionLevel::Strict).await, Seen::Refused);
}

#[tokio::test]
async fn a_certificate_that_the_client_does_not_trust_makes_no_connection() {
    let (_script, server) = start(Options::default(), one).await;
    let (_other_script, other) = start(Options::default(), one).await;
    let mut config = config(&other);
    config.port(server.address().port());
    assert!(connect(config, server.address().port()).await.is_err());
}
