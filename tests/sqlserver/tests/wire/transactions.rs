//! Requests of the transaction manager, and the descriptor that follows from them.

use thalweg_sqlserver_emulator::session::{Isolation, Request};
use thalweg_sqlserver_emulator::wire::server::Options;
use tiberius::IsolationLevel;

use crate::script::{client, one, start, works};

#[tokio::test]
async fn a_transaction_begins_with_its_isolation_and_ends() {
    let (script, server) = start(Options::default(), one).await;
    let mut client = client(&server).await;
    client.begin_transaction_with_isolation(IsolationLevel::Snapshot).await.unwrap();
    // The descriptor of the transaction is checked with every request.
    assert!(works(&mut client).await);
    client.commit_transaction().await.unwrap();
    assert!(works(&mut client).await);
    client.begin_transaction().await.unwrap();
    client.rollback_transaction().await.unwrap();
    assert!(works(&mut client).await);
    let select = Request::Batch("SELECT 1".into());
    let expected = [
        Request::Begin { isolation: Some(Isolation::Snapshot), name: String::new() },
        select.clone(),
        Request::Commit { name: String::new(), then_begin: false },
        select.clone(),
        Request::Begin { isolation: None, name: String::new() },
        Request::Rollback { name: String::new(), then_begin: false },
        select,
    ];
    assert_eq!(script.requests(), expected);
}
