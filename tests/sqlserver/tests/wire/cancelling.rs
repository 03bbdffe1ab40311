//! Attentions: the answer ends, and the connection goes on.
//!
//! Sent by hand: `tiberius` looks for the acknowledgement in the answer's own message.

use futures::TryStreamExt;
use thalweg_sqlserver_emulator::session::{Cancelled, Request};
use thalweg_sqlserver_emulator::wire::server::Options;

use crate::raw::{ATTENTION, BATCH, RawClient, in_transaction, last_done, wide};
use crate::script::{client, endless, one, start};

const END: u8 = 0x01;
const DONE: u8 = 0xfd;
const ERROR: u8 = 0x02;
const COUNT: u8 = 0x10;
const ATTENDED: u8 = 0x20;

fn batch(text: &str) -> Vec<u8> {
    in_transaction(0, &wide(text))
}

#[tokio::test]
async fn an_attention_ends_the_answer_and_is_acknowledged_in_a_message_of_its_own() {
    let (script, server) = start(Options::default(), |request, answers| match request {
        Request::Batch(text) if text == "SELECT 1" => one(request, answers),
        _ => endless(request, answers),
    })
    .await;
    let mut client = RawClient::connect(server.address().port()).await;
    for round in 1..=3 {
        client.send(BATCH, END, &batch("SELECT n FROM endless")).await;
        client.send(ATTENTION, END, &[]).await;
        assert_eq!(last_done(&client.receive().await.unwrap()), (DONE, ERROR));
        let acknowledgement = client.receive().await.unwrap();
        assert_eq!((acknowledgement.len(), last_done(&acknowledgement)), (13, (DONE, ATTENDED)));
        assert_eq!(script.seen.borrow().outcomes.last(), Some(&Err(Cancelled)), "round {round}");
        client.send(BATCH, END, &batch("SELECT 1")).await;
        assert_eq!(last_done(&client.receive().await.unwrap()), (DONE, COUNT));
    }
}

#[tokio::test]
async fn a_session_that_answers_nothing_learns_of_the_cancellation() {
    let (script, server) = start(Options::default(), |request, answers| match request {
        Request::Batch(text) if text == "SELECT 1" => one(request, answers),
        _ => {
            while !answers.cancelled() {
                std::thread::yield_now();
            }
            Err(Cancelled)
        }
    })
    .await;
    let mut client = RawClient::connect(server.address().port()).await;
    client.send(BATCH, END, &batch("WAITFOR DELAY '01:00:00'")).await;
    script.until(|seen| seen.requests.len() == 1).await;
    client.send(ATTENTION, END, &[]).await;
    assert_eq!(last_done(&client.receive().await.unwrap()), (DONE, ERROR));
    assert_eq!(last_done(&client.receive().await.unwrap()), (DONE, ATTENDED));
    client.send(BATCH, END, &batch("SELECT 1")).await;
    assert_eq!(last_done(&client.receive().await.unwrap()), (DONE, COUNT));
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
