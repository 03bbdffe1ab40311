//! Faults do to connections what they say.

use futures::TryStreamExt;
use thalweg_sqlserver_emulator::session::Cancelled;
use thalweg_sqlserver_emulator::wire::server::Options;
use tiberius::error::Error;

use crate::script::{client, config, connect, endless, error, one, start, works};

#[tokio::test]
async fn a_connection_is_dropped_after_so_many_packets() {
    let (script, server) = start(Options::default(), endless).await;
    let mut client = client(&server).await;
    server.faults().drop_after(3);
    let mut stream = client.simple_query("SELECT n FROM endless").await.unwrap();
    let mut rows = 0;
    let ended = loop {
        match stream.try_next().await {
            Ok(Some(_)) => rows += 1,
            Ok(None) => panic!("the stream has no end"),
            Err(error) => break error,
        }
    };
    assert!(matches!(ended, Error::Io { .. }), "{ended}");
    // Packets have 4,088 bytes, rows nine; the column's description is in the first, too.
    assert!((1355..=1363).contains(&rows), "{rows} rows came");
    script.until(|seen| seen.ended == 1).await;
    assert_eq!(script.seen.borrow().outcomes, [Err(Cancelled)]);
}

#[tokio::test]
async fn a_request_that_runs_may_lose_its_answer() {
    let (script, server) = start(Options::default(), one).await;
    let (mut first, mut second) = (client(&server).await, client(&server).await);
    server.connections()[0].faults.drop_after(0);
    assert!(!works(&mut first).await);
    assert_eq!(script.seen.borrow().outcomes, [Ok(())], "the request was run");
    assert!(works(&mut second).await, "the other connection has no fault");
}

#[tokio::test]
async fn a_request_is_refused_once_with_the_error_of_the_fault() {
    let (script, server) = start(Options::default(), one).await;
    let mut client = client(&server).await;
    server.faults().refuse_next(error(1205, 13, "Transaction was deadlocked."));
    match client.query("SELECT 1", &[]).await.err().unwrap() {
        Error::Server(error) => assert_eq!((error.code(), error.class()), (1205, 13)),
        other => panic!("{other}"),
    }
    assert!(script.requests().is_empty());
    assert!(works(&mut client).await);
    server.faults().refuse_next(error(
        596,
        21,
        "Cannot continue the execution because the session is in the kill state.",
    ));
    assert!(!works(&mut client).await);
    script.until(|seen| seen.ended == 1).await;
}

#[tokio::test]
async fn a_silent_server_answers_when_it_is_no_longer_silent() {
    let (script, server) = start(Options::default(), one).await;
    let mut client = client(&server).await;
    server.faults().silence();
    let mut working = Box::pin(works(&mut client));
    tokio::select! {
        _ = &mut working => panic!("a silent server answered"),
        () = script.until(|seen| seen.outcomes.len() == 1) => {}
    }
    server.faults().clear();
    assert!(working.await);
}

#[tokio::test]
async fn a_connection_can_be_cut_and_another_made() {
    let (script, server) = start(Options::default(), one).await;
    let mut client = client(&server).await;
    let connection = server.connections().remove(0);
    assert_eq!((connection.session, connection.user.as_str()), (51, "sa"));
    connection.cut();
    script.until(|seen| seen.ended == 1).await;
    assert!(!works(&mut client).await);
    assert!(works(&mut connect(config(&server), server.address().port()).await.unwrap()).await);
}

#[tokio::test]
async fn shutting_down_ends_every_session_even_one_that_answers() {
    let (script, server) = start(Options::default(), endless).await;
    let (mut busy, _idle) = (client(&server).await, client(&server).await);
    let mut stream = busy.simple_query("SELECT n FROM endless").await.unwrap();
    stream.try_next().await.unwrap().unwrap();
    let address = server.address();
    server.shut_down().await;
    assert_eq!(script.seen.borrow().ended, 2);
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
