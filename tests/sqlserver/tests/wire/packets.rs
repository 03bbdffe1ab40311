//! What only clients do that send packets by hand, or that the connector's client does not do.

use thalweg_sqlserver_emulator::session::Request;
use thalweg_sqlserver_emulator::wire::server::Options;

use crate::raw::{ATTENTION, BATCH, BULK, RPC, RawClient, TRANSACTION, error_number, in_transaction, last_done, wide};
use crate::script::{one, start};

const END: u8 = 0x01;
const IGNORE: u8 = 0x02;
const RESET: u8 = 0x08;
const RESET_KEEPING_TRANSACTION: u8 = 0x10;
const DONE: u8 = 0xfd;
const DONE_PROCEDURE: u8 = 0xfe;
const ERROR: u8 = 0x02;
const COUNT: u8 = 0x10;
const ATTENDED: u8 = 0x20;

fn batch(text: &str) -> Vec<u8> {
    in_transaction(0, &wide(text))
}

#[tokio::test]
async fn an_attention_without_a_request_is_acknowledged() {
    let (_script, server) = start(Options::default(), one).await;
    let mut client = RawClient::connect(server.address().port()).await;
    client.send(ATTENTION, END, &[]).await;
    let answer = client.receive().await.unwrap();
    assert_eq!((answer.len(), last_done(&answer)), (13, (DONE, ATTENDED)));
    client.send(BATCH, END, &batch("SELECT 1")).await;
    assert_eq!(last_done(&client.receive().await.unwrap()), (DONE, COUNT));
}

#[tokio::test]
async fn a_request_taken_back_is_answered_with_an_error_and_not_run() {
    let (script, server) = start(Options::default(), one).await;
    let mut client = RawClient::connect(server.address().port()).await;
    client.send(BATCH, 0, &batch("SELECT ")).await;
    client.send(BATCH, END | IGNORE, &[]).await;
    let answer = client.receive().await.unwrap();
    assert_eq!((answer.len(), last_done(&answer)), (13, (DONE, ERROR)));
    assert!(script.requests().is_empty());
}

#[tokio::test]
async fn a_request_sent_during_an_answer_waits_for_its_turn() {
    let (script, server) = start(Options::default(), one).await;
    let mut client = RawClient::connect(server.address().port()).await;
    for text in ["SELECT 1", "SELECT 2", "SELECT 3"] {
        client.send(BATCH, END, &batch(text)).await;
    }
    for _ in 0..3 {
        assert_eq!(last_done(&client.receive().await.unwrap()), (DONE, COUNT));
    }
    let expected = ["SELECT 1", "SELECT 2", "SELECT 3"].map(|text| Request::Batch(text.into()));
    assert_eq!(script.requests(), expected);
}

#[tokio::test]
async fn several_calls_in_a_message_have_ends_of_their_own() {
    let (script, server) = start(Options::default(), |_, answers| answers.status(0)).await;
    let mut client = RawClient::connect(server.address().port()).await;
    let calls =
        [&[0xff, 0xff, 15, 0, 0, 0][..], &[0, 0, 0x38, 9, 0, 0, 0], &[0xff], &[0xff, 0xff, 9, 0, 0, 0]].concat();
    client.send(RPC, END, &in_transaction(0, &calls)).await;
    let answer = client.receive().await.unwrap();
    assert_eq!(answer.len(), 2 * (5 + 13));
    assert_eq!(answer[5..7], [DONE_PROCEDURE, 0x01], "more follows");
    assert_eq!(last_done(&answer), (DONE_PROCEDURE, 0));
    let names: Vec<_> = script
        .requests()
        .into_iter()
        .map(|request| match request {
            Request::Procedure { name, .. } => name,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["sp_unprepare", "sp_cursorclose"]);
}

#[tokio::test]
async fn a_reset_comes_before_the_request_and_is_told() {
    let (script, server) = start(Options::default(), one).await;
    let mut client = RawClient::connect(server.address().port()).await;
    client.send(TRANSACTION, END, &in_transaction(0, &[5, 0, 0, 0])).await;
    let answer = client.receive().await.unwrap();
    let transaction = u64::from_le_bytes(answer[5..13].try_into().unwrap());
    assert_ne!(transaction, 0);
    // Without the descriptor of the transaction, a request is refused.
    client.send(BATCH, END, &batch("SELECT 1")).await;
    assert_eq!(error_number(&client.receive().await.unwrap()), Some(3989));
    client.send(BATCH, END, &in_transaction(transaction, &wide("SELECT 1"))).await;
    assert_eq!(last_done(&client.receive().await.unwrap()), (DONE, COUNT));
    client.send(BATCH, END | RESET_KEEPING_TRANSACTION, &in_transaction(transaction, &wide("SELECT 1"))).await;
    assert_eq!(error_number(&client.receive().await.unwrap()), Some(4002));
    client.send(BATCH, END | RESET, &batch("SELECT 1")).await;
    let answer = client.receive().await.unwrap();
    assert_eq!(answer[..6], [0xe3, 3, 0, 18, 0, 0]);
    assert_eq!(last_done(&answer), (DONE, COUNT));
    assert_eq!(script.seen.borrow().resets, 1);
    client.send(BATCH, END | RESET_KEEPING_TRANSACTION, &batch("SELECT 1")).await;
    assert_eq!(client.receive().await.unwrap()[..6], [0xe3, 3, 0, 18, 0, 0]);
    assert_eq!(script.seen.borrow().resets, 2);
}

#[tokio::test]
async fn what_the_server_does_not_do_is_refused_and_the_connection_goes_on() {
    let (_script, server) = start(Options::default(), one).await;
    let mut client = RawClient::connect(server.address().port()).await;
    client.send(BULK, END, &[0x81]).await;
    assert_eq!(error_number(&client.receive().await.unwrap()), Some(40517));
    let table = [&[0xff, 0xff, 10, 0, 0, 0][..], &[0, 0, 0xf3, 0, 0, 0]].concat();
    client.send(RPC, END, &in_transaction(0, &table)).await;
    assert_eq!(error_number(&client.receive().await.unwrap()), Some(8009));
    client.send(BATCH, END, &[1, 2, 3]).await;
    assert_eq!(error_number(&client.receive().await.unwrap()), Some(4002));
    client.send(BATCH, END, &batch("SELECT 1")).await;
    assert_eq!(last_done(&client.receive().await.unwrap()), (DONE, COUNT));
}

#[tokio::test]
async fn a_packet_that_cannot_be_ends_the_connection() {
    let (script, server) = start(Options::default(), one).await;
    let mut client = RawClient::connect(server.address().port()).await;
    client.send(0x55, END, &[]).await;
    assert_eq!(client.receive().await, None);
    script.until(|seen| seen.ended == 1).await;
}
