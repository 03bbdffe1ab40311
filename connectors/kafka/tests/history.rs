//! Schema histories in topics of a real broker.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use anyhow::Result;
use bytes::Bytes;
use common::{LONG, read_all, shared, worker};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::util::Timeout;
use thalweg_config::{OptionTable, Properties};
use thalweg_core::ErrorKind;
use thalweg_core::delivery::ProducerFactory;
use thalweg_core::relational::history::{HISTORY, HISTORY_PREFIXES, HistoryConfig, HistoryStore};
use thalweg_kafka::KafkaSinks;

static TABLE: OptionTable =
    OptionTable { title: "", options: HISTORY, open_prefixes: &HISTORY_PREFIXES, cross_checks: &[] };

fn try_open(topic: &str, more: &[(&str, &str)]) -> Result<Box<dyn HistoryStore>, thalweg_core::Error> {
    let mut properties = Properties::from([
        ("schema.history.internal.kafka.topic", topic),
        ("schema.history.internal.kafka.bootstrap.servers", shared()),
        ("topic.prefix", "s1"),
    ]);
    more.iter().for_each(|(key, value)| properties.set(*key, *value));
    let config = HistoryConfig::new(&TABLE.validate(&properties).settings, &properties);
    // The node's own brokers are others.
    KafkaSinks::new(worker("localhost:1")).history(&config.topic)
}

fn open(topic: &str) -> Box<dyn HistoryStore> {
    try_open(topic, &[]).unwrap()
}

async fn texts(history: &mut Box<dyn HistoryStore>) -> Vec<Vec<Bytes>> {
    let mut reader = history.read().await.unwrap();
    let mut portions = Vec::new();
    while let Some(records) = reader.next().await.unwrap() {
        portions.push(records);
    }
    portions
}

fn admin() -> AdminClient<DefaultClientContext> {
    ClientConfig::new().set("bootstrap.servers", shared()).create().unwrap()
}

async fn create(topic: &str, partitions: i32, settings: &[(&str, &str)]) {
    let mut new = NewTopic::new(topic, partitions, TopicReplication::Fixed(1));
    for (key, value) in settings {
        new = new.set(key, value);
    }
    let options = AdminOptions::new().operation_timeout(Some(LONG));
    admin().create_topics([&new], &options).await.unwrap().remove(0).unwrap();
}

/// As somebody else writes.
async fn foreign(topic: &str, partition: i32, key: Option<&str>, payload: Option<&str>) {
    let producer: FutureProducer = ClientConfig::new().set("bootstrap.servers", shared()).create().unwrap();
    let mut record = FutureRecord::<str, str>::to(topic).partition(partition);
    record.key = key;
    record.payload = payload;
    producer.send(record, Timeout::After(LONG)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_topic_is_made_and_keeps_everything() -> Result<()> {
    let mut history = open("history.made");
    history.prepare().await?;
    assert!(texts(&mut history).await.is_empty());
    for n in 0..50 {
        history.append(format!("{{\"n\":{n}}}").into()).await?;
    }
    // Another one, as after a restart.
    let mut again = try_open("history.made", &[("schema.history.internal.kafka.buffer.batch.size", "20")])?;
    again.prepare().await?;
    let portions = texts(&mut again).await;
    assert_eq!(portions.iter().map(Vec::len).collect::<Vec<_>>(), [20, 20, 10]);
    let expected: Vec<Bytes> = (0..50).map(|n| format!("{{\"n\":{n}}}").into()).collect();
    assert_eq!(portions.concat(), expected);
    let read = read_all(shared(), "history.made", true)?;
    assert!(read.iter().all(|record| record.partition == 0 && record.key.is_none() && record.headers.is_empty()));

    let asked = admin().describe_configs([&ResourceSpecifier::Topic("history.made")], &AdminOptions::new()).await?;
    let settings = asked.into_iter().next().unwrap().unwrap();
    for (name, value) in
        [("cleanup.policy", "delete"), ("retention.ms", "9223372036854775807"), ("retention.bytes", "-1")]
    {
        assert_eq!(settings.get(name).unwrap().value.as_deref(), Some(value), "{name}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_ends_where_the_topic_ended() -> Result<()> {
    let mut history = open("history.end");
    history.prepare().await?;
    history.append("first".into()).await?;
    let mut reader = history.read().await?;
    history.append("second".into()).await?;
    assert_eq!(reader.next().await?.unwrap(), ["first"]);
    assert_eq!(reader.next().await?, None);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_of_somebody_else_are_handed_over_as_they_are() -> Result<()> {
    create("history.foreign", 1, &[]).await;
    foreign("history.foreign", 0, Some("key"), Some("no json")).await;
    foreign("history.foreign", 0, None, None).await;
    let mut history = open("history.foreign");
    history.prepare().await?;
    history.append("{}".into()).await?;
    assert_eq!(texts(&mut history).await.concat(), ["no json", "", "{}"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compacted_topic_is_read_and_refuses_records_without_a_key() -> Result<()> {
    create("history.compacted", 1, &[("cleanup.policy", "compact")]).await;
    foreign("history.compacted", 0, Some("k"), Some("{\"old\":1}")).await;
    let mut history = open("history.compacted");
    history.prepare().await?;
    assert_eq!(texts(&mut history).await.concat(), ["{\"old\":1}"]);
    let error = history.append("{}".into()).await.unwrap_err();
    assert!(error.message.contains("schema history topic history.compacted"), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_partition_may_be_there_but_not_have_records() -> Result<()> {
    create("history.two", 2, &[]).await;
    let mut history = open("history.two");
    history.prepare().await?;
    history.append("{}".into()).await?;
    assert_eq!(read_all(shared(), "history.two", true)?[0].partition, 0);
    foreign("history.two", 1, None, Some("{}")).await;
    let error = open("history.two").prepare().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Config);
    assert!(error.message.contains("2 partitions and records in partition 1"), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_too_large_says_what_to_raise() -> Result<()> {
    let small = [("schema.history.internal.producer.max.request.size", "2000")];
    let mut history = try_open("history.large", &small)?;
    history.prepare().await?;
    let error = history.append("x".repeat(5_000).into()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::MessageTooLarge);
    assert!(error.advice().contains("schema.history.internal.producer.max.request.size"), "{}", error.advice());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_settings_are_named_as_they_were_written() {
    let wrong = [("schema.history.internal.producer.linger.ms", "soon")];
    let error = try_open("history.wrong", &wrong).map(|_| ()).unwrap_err();
    assert!(error.message.contains("schema.history.internal.producer.linger.ms"), "{error}");
    let unreachable = [
        ("schema.history.internal.kafka.bootstrap.servers", "localhost:1"),
        ("schema.history.internal.kafka.query.timeout.ms", "500"),
    ];
    let error = try_open("history.away", &unreachable).unwrap().prepare().await.unwrap_err();
    assert!(error.is_retriable() && error.message.contains("history.away"), "{error}");
}
