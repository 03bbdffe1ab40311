#![allow(clippy::unwrap_used)]
use bson::{Document, doc};
use futures::FutureExt;
use thalweg_config::Properties;
use thalweg_core::signal::Inbox;

use super::*;
use crate::reply::Reply;
use crate::token::Token;

/// A reader whose pump is the test.
fn reader(more: &[(&str, &str)]) -> (mpsc::Sender<Result<Feed, Error>>, MongoReader) {
    let base = [("mongodb.connection.string", "mongodb://h/?replicaSet=rs0"), ("topic.prefix", "p")];
    let properties: Properties = base.iter().chain(more).map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let config = MongoConfig::parse(&properties).unwrap();
    let filter = Arc::new(NamespaceFilter::new(&config.filters).unwrap());
    let (out, feed) = mpsc::channel(10);
    let decoder = Decoder::new(&config, filter, 0, "run", None);
    let ad_hoc = AdHoc::new(&config, Err("no signals here"), mpsc::channel(1).0, Inbox::default(), Arc::default());
    let source = (tokio::spawn(async {}), feed);
    let reader = MongoReader::new(&config, decoder, source, ad_hoc, CancellationToken::new(), Arc::default());
    (out, reader)
}

fn token(ord: u32) -> Document {
    doc! {"_data": format!("826B0C6BFA{ord:08X}2B022C0100296E5A1004")}
}

fn fragment(ord: u32, k: i32, of: i32, more: Document) -> Document {
    let mut event = doc! {"_id": token(ord), "splitEvent": {"fragment": k, "of": of}};
    event.extend(more);
    event
}

/// A reply with these events, behind which the server stands at `ord`.
fn reply(events: &[Document], ord: u32) -> Feed {
    let mut out = Vec::new();
    doc! {"a": events}.to_writer(&mut out).unwrap();
    let documents = Documents::of_array(Bytes::from(out[7..out.len() - 1].to_vec()));
    let behind = bson::RawDocumentBuf::try_from(&token(ord)).unwrap().into_bytes().into();
    Feed::Changes(Reply { documents, token: Some(behind), exhausted: false })
}

fn resume_token(position: &Position) -> String {
    MongoPosition::decode(position).unwrap().token.as_ref().map(Token::to_text).unwrap()
}

/// With a heartbeat due at every moment: what is stored while an event is not complete lies before it.
#[tokio::test]
async fn t_16_a_heartbeat_between_fragments_does_not_move_the_position() {
    let (out, mut reader) = reader(&[("heartbeat.interval.ms", "1")]);
    let start = MongoPosition::at(bson::Timestamp { time: 1, increment: 1 })
        .moved_to(Token::new(bson::RawDocumentBuf::try_from(&token(1)).unwrap().into_bytes().into()).unwrap());
    let at_start = start.encode();
    out.send(Ok(Feed::Stream(start))).await.unwrap();
    let first = doc! {"operationType": "insert", "ns": {"db": "d", "coll": "c"}, "documentKey": {"_id": 1}};
    out.send(Ok(reply(&[fragment(2, 1, 3, first)], 2))).await.unwrap();
    out.send(Ok(reply(&[fragment(3, 2, 3, doc! {"clusterTime": bson::Timestamp { time: 9, increment: 2 }})], 3)))
        .await
        .unwrap();
    out.send(Ok(reply(&[], 4))).await.unwrap();
    for _ in 0..3 {
        while !reader.heartbeat.due(Instant::now()) {
            std::thread::yield_now();
        }
        let batch = reader.next().now_or_never().unwrap().unwrap();
        let [beat] = batch.records.as_slice() else { panic!("{batch:?}") };
        assert_eq!((&*beat.topic, &beat.position, batch.progress), ("__debezium-heartbeat.p", &at_start, None));
    }
    out.send(Ok(reply(&[fragment(5, 3, 3, doc! {"fullDocument": {"_id": 1}})], 6))).await.unwrap();
    while !reader.heartbeat.due(Instant::now()) {
        std::thread::yield_now();
    }
    let batch = reader.next().now_or_never().unwrap().unwrap();
    let [record, beat] = batch.records.as_slice() else { panic!("{batch:?}") };
    assert_eq!((&*record.topic, resume_token(&record.position)), ("p.d.c", text_of(5)));
    assert_eq!(resume_token(&beat.position), text_of(6));
}

fn text_of(ord: u32) -> String {
    Token::new(bson::RawDocumentBuf::try_from(&token(ord)).unwrap().into_bytes().into()).unwrap().to_text()
}

/// t_15: a reply without a token leaves the position where it is.
#[tokio::test]
async fn t_15_a_reply_without_a_token_moves_nothing() {
    let (out, mut reader) = reader(&[]);
    let start = MongoPosition::at(bson::Timestamp { time: 1, increment: 1 });
    let at_start = start.encode();
    out.send(Ok(Feed::Stream(start))).await.unwrap();
    let Feed::Changes(mut without) = reply(&[], 2) else { panic!() };
    without.token = None;
    out.send(Ok(Feed::Changes(without))).await.unwrap();
    let batch = reader.next().now_or_never().unwrap().unwrap();
    assert_eq!((batch.records.len(), batch.progress), (0, Some(at_start)));
}

/// The end of what runs beside the reader is told by the reader, with what it was doing.
#[tokio::test]
async fn a_panic_beside_the_reader_is_an_error_that_says_where() {
    let (out, mut reader) = reader(&[]);
    out.send(Ok(Feed::Stream(MongoPosition::at(bson::Timestamp { time: 1, increment: 1 })))).await.unwrap();
    assert!(reader.next().now_or_never().is_none(), "nothing to read yet");
    reader.ad_hoc.read("shop.orders".to_owned(), async { panic!("stepped on it") });
    let error = reader.next().await.unwrap_err();
    assert_eq!(error.message, "reading a chunk of shop.orders panicked: stepped on it");
    assert_eq!(error.policy(), thalweg_core::Policy::Fatal);

    let (out, mut reader) = self::reader(&[]);
    reader.pump = Some(tokio::spawn(async move {
        let _feed = out;
        panic!("stepped on it, too");
    }));
    let error = reader.next().await.unwrap_err();
    assert_eq!(error.message, "fetching from MongoDB panicked: stepped on it, too");
    Box::new(reader).close(Duration::from_secs(1)).await;
}

/// cfg_05: a batch ends behind the change with which it reaches the limit of the queue.
#[tokio::test]
async fn cfg_05_a_batch_ends_at_the_limit_of_bytes() {
    let (out, mut reader) = reader(&[("max.queue.size.in.bytes", "100000")]);
    out.send(Ok(Feed::Stream(MongoPosition::at(bson::Timestamp { time: 1, increment: 1 })))).await.unwrap();
    let change = |ord: u32, size: usize| {
        doc! {
            "_id": token(ord), "operationType": "insert", "ns": {"db": "d", "coll": "c"}, "documentKey": {"_id": 1},
            "clusterTime": bson::Timestamp { time: 9, increment: ord }, "fullDocument": {"_id": 1, "text": "x".repeat(size)},
        }
    };
    let sizes = [40_000, 40_000, 40_000, 300_000, 10, 10];
    let events: Vec<Document> = (2..).zip(sizes).map(|(ord, size)| change(ord, size)).collect();
    out.send(Ok(reply(&events, 9))).await.unwrap();
    let mut batches = Vec::new();
    for _ in 0..3 {
        let batch = reader.next().now_or_never().unwrap().unwrap();
        assert!(batch.bytes < 100_000 + 300_000);
        batches.push(batch.records.len());
    }
    assert_eq!(batches, [3, 1, 2]);
}
