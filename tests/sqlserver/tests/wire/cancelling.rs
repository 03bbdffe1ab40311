//! Attentions: the answer stops and the connection goes on.

use futures::TryStreamExt;
use thalweg_sqlserver_emulator::session::{Cancelled, Request};
use thalweg_sqlserver_emulator::wire::server::Options;

use crate::script::{client, endless, one, start, works};

#[tokio::test]
async fn a_stream_dropped_half_way_can_be_cancelled_and_the_connection_used_on() {
    let (script, server) = start(Options::default(), |request, answers| match request {
        Request::Procedure { .. } => endless(request, answers),
        _ => one(request, answers),
    })
    .await;
    let mut client = client(&server).await;
    for round in 1..=3 {
        let mut stream = client.query("SELECT n FROM endless", &[]).await.unwrap();
        for _ in 0..1000 {
            stream.try_next().await.unwrap().unwrap();
        }
        drop(stream);
        client.cancel_query().await.unwrap();
        assert_eq!(script.seen.borrow().outcomes.last(), Some(&Err(Cancelled)), "round {round}");
        assert!(works(&mut client).await);
    }
}

#[tokio::test]
async fn a_session_that_answers_nothing_learns_of_the_cancellation() {
    let (script, server) = start(Options::default(), |request, answers| match request {
        Request::Procedure { .. } => {
            while !answers.cancelled() {
                std::thread::yield_now();
            }
            Err(Cancelled)
        }
        _ => one(request, answers),
    })
    .await;
    let mut client = client(&server).await;
    {
        let mut query = Box::pin(client.query("WAITFOR DELAY '01:00:00'", &[]));
        tokio::select! {
            _ = &mut query => panic!("nothing was answered"),
            () = script.until(|seen| seen.requests.len() == 1) => {}
        }
    }
    client.cancel_query().await.unwrap();
    assert!(works(&mut client).await);
}

#[tokio::test]
async fn a_client_that_leaves_stops_its_session() {
    let (script, server) = start(Options::default(), endless).await;
    let mut client = client(&server).await;
    let mut stream = client.simple_query("SELECT n FROM endless").await.unwrap();
    stream.try_next().await.unwrap().unwrap();
    drop(stream);
    drop(client);
    script.until(|seen| seen.ended == 1).await;
    assert_eq!(script.seen.borrow().outcomes, [Err(Cancelled)]);
}
