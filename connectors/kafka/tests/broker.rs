//! Against a real Kafka broker.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use common::{LONG, Sender, by_partition, creating, read_all, shared, topic, with, worker};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use thalweg_config::Properties;
use thalweg_core::ErrorKind;
use thalweg_core::delivery::{DeliveryMode, Refused};
use thalweg_kafka::{Tail, TailFrom, TopicPattern, cluster_facts, partition_of};
use thalweg_services::{Broker, BrokerOptions};

const MODES: [DeliveryMode; 2] = [DeliveryMode::Plain, DeliveryMode::Fenced];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kfk_01_order_under_a_full_queue() -> Result<()> {
    // A transaction holds half of the queue, so a thousand of them would be needed for as many records.
    for (mode, count) in [(DeliveryMode::Plain, 50_000u64), (DeliveryMode::Fenced, 10_000)] {
        let name = topic(&format!("kfk01.{mode:?}"));
        let tiny = with(creating(1), &[("producer.override.queue.buffering.max.messages", "100")]);
        let mut sender = Sender::open(shared(), &format!("kfk01{mode:?}"), mode, &tiny).await?;
        sender.producer.prepare_topic(&name).await?;
        let waits = sender.send_numbers(&name, 0..count).await?;
        sender.flush(LONG).await?;
        assert!(waits > 0 && waits < count as usize, "{waits} waits");
        let numbers = by_partition(&read_all(shared(), &name, true)?).remove(&0).context("records")?;
        assert_eq!(numbers, (0..count).collect::<Vec<_>>());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kfk_02_keys_lie_where_java_puts_them() -> Result<()> {
    for (partitions, keys) in [
        (10, vec![("354afe16-939a-4ea8-8e17-8bb0840b6886", 4), ("f562ac3b-2224-4e25-a0ab-56094e10c239", 5)]),
        (15, vec![("TT0124", 10)]),
        (6, vec![("{\"id\":1}", 0)]),
    ] {
        let name = topic(&format!("kfk02.{partitions}"));
        let mut sender =
            Sender::open(shared(), &format!("kfk02-{partitions}"), DeliveryMode::Fenced, &creating(partitions)).await?;
        sender.producer.prepare_topic(&name).await?;
        for (key, _) in &keys {
            sender.send(&name, Some(key), Some(b"x")).await?;
        }
        sender.flush(LONG).await?;
        let read = read_all(shared(), &name, true)?;
        assert_eq!(read.len(), keys.len());
        for (key, partition) in keys {
            let found = read.iter().find(|r| r.key.as_deref() == Some(key.as_bytes())).context("key")?;
            assert_eq!((found.partition, partition_of(key.as_bytes(), partitions)), (partition, partition), "{key}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kfk_03_a_record_too_large_for_the_topic_is_named() -> Result<()> {
    for mode in MODES {
        let name = topic(&format!("kfk03.{mode:?}"));
        let wide = with(
            creating(1),
            &[
                ("producer.override.max.request.size", "5000000"),
                ("topic.creation.default.max.message.bytes", "1000000"),
            ],
        );
        let mut sender = Sender::open(shared(), &format!("kfk03{mode:?}"), mode, &wide).await?;
        sender.producer.prepare_topic(&name).await?;
        sender.send(&name, Some("a"), Some(b"1")).await?;
        sender.flush(LONG).await?;
        let big = vec![b'x'; 3_000_000];
        sender.send(&name, Some("b"), Some(&big)).await?;
        let heard = sender.heard.until("the refusal", |h| !h.failed.is_empty()).await?;
        let (seq, error) = &heard.failed[0];
        assert_eq!((*seq, error.kind), (1, ErrorKind::MessageTooLarge));
        for part in [&*name, "partition 0", "key hash", "3000001 bytes"] {
            assert!(error.message.contains(part), "{error}");
        }
        assert!(error.advice().contains("max.message.bytes"), "{}", error.advice());
        assert!(sender.flush(LONG).await.is_err());
        let refused = sender.try_send(&name, Some("c"), Some(b"2"));
        assert!(matches!(refused, Err(Refused::Failed(e)) if e.kind == ErrorKind::MessageTooLarge));
        drop(sender);
        // The transaction was aborted, so a reader of committed records is not held up.
        let mut next = Sender::open(shared(), &format!("kfk03{mode:?}"), mode, &wide).await?;
        next.send(&name, Some("a"), Some(b"3")).await?;
        next.flush(LONG).await?;
        let texts: Vec<_> = read_all(shared(), &name, true)?.iter().map(|r| r.text().to_owned()).collect();
        assert_eq!(texts, ["1", "3"]);
    }
    Ok(())
}

/// After a failure nobody comes: the transaction must end by itself, long before its time limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_producer_leaves_no_transaction_open() -> Result<()> {
    let name = topic("leaves");
    let wide = with(
        creating(1),
        &[("producer.override.max.request.size", "5000000"), ("topic.creation.default.max.message.bytes", "1000000")],
    );
    let mut failing = Sender::open(shared(), "leaves", DeliveryMode::Fenced, &wide).await?;
    failing.producer.prepare_topic(&name).await?;
    failing.send(&name, Some("a"), Some(b"lost")).await?;
    failing.send(&name, Some("b"), Some(&vec![b'x'; 3_000_000])).await?;
    failing.release().await?;
    failing.heard.until("the refusal", |h| !h.failed.is_empty()).await?;
    let mut other = Sender::open(shared(), "leaves-other", DeliveryMode::Plain, &creating(1)).await?;
    other.send(&name, None, Some(b"after")).await?;
    other.flush(LONG).await?;
    let started = Instant::now();
    thalweg_services::until("the reader passes the transaction", Duration::from_secs(20), || async {
        let texts: Vec<_> = read_all(shared(), &name, true)?.iter().map(|r| r.text().to_owned()).collect();
        Ok((texts == ["after"]).then_some(()))
    })
    .await?;
    assert!(started.elapsed() < Duration::from_secs(20));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_producer_shuts_out_the_older() -> Result<()> {
    let name = topic("fencing");
    let slow = with(creating(1), &[("thalweg.fenced.commit.ms", "60000")]);
    let mut old = Sender::open(shared(), "fencing", DeliveryMode::Fenced, &slow).await?;
    old.producer.prepare_topic(&name).await?;
    old.send(&name, Some("k"), Some(b"old committed")).await?;
    old.flush(LONG).await?;
    old.send(&name, Some("k"), Some(b"old open")).await?;
    let mut new = Sender::open(shared(), "fencing", DeliveryMode::Fenced, &slow).await?;
    new.send(&name, Some("k"), Some(b"new")).await?;
    new.flush(LONG).await?;
    // Whatever the old one still does is refused, and it hears why.
    let late = old.send(&name, Some("k"), Some(b"old late")).await;
    let flushed = old.flush(LONG).await.unwrap_err();
    assert_eq!(flushed.kind, ErrorKind::Fenced, "{late:?} {flushed}");
    let heard = old.heard.heard();
    assert_eq!((heard.below, heard.failed.len()), (vec![1], 1));
    assert_eq!(heard.failed[0].1.kind, ErrorKind::Fenced, "{}", heard.failed[0].1);
    match old.try_send(&name, None, None) {
        Err(Refused::Failed(error)) => assert_eq!(error.kind, ErrorKind::Fenced),
        other => panic!("{other:?}"),
    }
    drop(old);
    new.send(&name, Some("k"), Some(b"newer")).await?;
    new.flush(LONG).await?;
    let texts: Vec<_> = read_all(shared(), &name, true)?.iter().map(|r| r.text().to_owned()).collect();
    assert_eq!(texts, ["old committed", "new", "newer"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fenced_records_are_acknowledged_when_they_are_visible() -> Result<()> {
    let name = topic("visible");
    let slow = with(creating(1), &[("thalweg.fenced.commit.ms", "60000")]);
    let mut sender = Sender::open(shared(), "visible", DeliveryMode::Fenced, &slow).await?;
    sender.producer.prepare_topic(&name).await?;
    sender.send_numbers(&name, 0..100).await?;
    thalweg_services::until("the records are in the log", LONG, || async {
        Ok((read_all(shared(), &name, false)?.len() == 100).then_some(()))
    })
    .await?;
    assert!(sender.heard.heard().below.is_empty(), "sent, but not committed");
    assert!(read_all(shared(), &name, true)?.is_empty());
    sender.flush(LONG).await?;
    assert_eq!(sender.heard.heard().below, [100]);
    assert_eq!(read_all(shared(), &name, true)?.len(), 100);
    Ok(())
}

/// Half of what may be unacknowledged ends a transaction, so that the encoder goes on meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_ends_early_when_it_is_large() -> Result<()> {
    let name = topic("large");
    let slow = with(creating(1), &[("thalweg.fenced.commit.ms", "60000")]);
    let mut sender = Sender::open(shared(), "large", DeliveryMode::Fenced, &slow).await?;
    sender.producer.prepare_topic(&name).await?;
    sender.send_numbers(&name, 0..60_000).await?;
    // As the encoder: what has gathered leaves as soon as it may.
    sender.release().await?;
    let heard = sender.heard.until("a commit without a flush", |h| !h.below.is_empty()).await?;
    assert!((32_768..60_000).contains(&heard.below[0]), "{:?}", heard.below);
    sender.flush(LONG).await?;
    assert_eq!(sender.heard.heard().below.last(), Some(&60_000));
    assert_eq!(read_all(shared(), &name, true)?.len(), 60_000);
    Ok(())
}

/// Many transactions, the encoder going on during each commit: nothing lost, doubled or reordered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn order_across_transactions() -> Result<()> {
    let name = topic("across");
    let quick = with(creating(1), &[("thalweg.fenced.commit.ms", "5"), ("producer.override.buffer.memory", "400000")]);
    let mut sender = Sender::open(shared(), "across", DeliveryMode::Fenced, &quick).await?;
    sender.producer.prepare_topic(&name).await?;
    // As many records as it takes: how long a commit lasts is the broker's affair.
    let (mut count, started) = (0, Instant::now());
    while sender.heard.heard().below.len() <= 5 {
        assert!(started.elapsed() < LONG, "{} commits of {count} records", sender.heard.heard().below.len());
        sender.send_numbers(&name, count..count + 1_000).await?;
        count += 1_000;
    }
    sender.flush(LONG).await?;
    let heard = sender.heard.heard();
    assert!(heard.below.is_sorted_by(|a, b| a < b), "each commit moves on");
    assert_eq!(heard.below.last(), Some(&count));
    let numbers = by_partition(&read_all(shared(), &name, true)?).remove(&0).context("records")?;
    assert_eq!(numbers, (0..count).collect::<Vec<_>>());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kfk_04_a_flush_without_broker_ends_and_says_how_many() -> Result<()> {
    let mut broker = Broker::start().await?;
    for mode in MODES {
        let name = topic(&format!("kfk04.{mode:?}"));
        let mut sender = Sender::open(&broker.bootstrap(), &format!("kfk04{mode:?}"), mode, &Properties::new()).await?;
        sender.producer.prepare_topic(&name).await?;
        broker.kill()?;
        sender.send_numbers(&name, 0..500).await?;
        let started = Instant::now();
        let error = sender.flush(Duration::from_millis(500)).await.unwrap_err();
        assert!(started.elapsed() < Duration::from_secs(5));
        assert_eq!(error.kind, ErrorKind::Timeout);
        assert!(error.message.starts_with("500 records were not"), "{error}");
        assert!(sender.heard.heard().delivered.is_empty() && sender.heard.heard().below.is_empty());
        drop(sender);
        broker.restart().await?;
        let mut again = Sender::open(&broker.bootstrap(), &format!("kfk04{mode:?}"), mode, &Properties::new()).await?;
        again.producer.prepare_topic(&name).await?;
        again.send_numbers(&name, 0..500).await?;
        again.flush(LONG).await?;
        let numbers = by_partition(&read_all(&broker.bootstrap(), &name, true)?).remove(&0).context("records")?;
        assert_eq!(numbers, (0..500).collect::<Vec<_>>());
    }
    Ok(())
}

/// The broker dies in mid-stream and comes back: the client gets over it, with order and without loss.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_restart_in_mid_stream() -> Result<()> {
    let mut broker = Broker::start().await?;
    let name = topic("restart");
    let mut sender = Sender::open(&broker.bootstrap(), "restart", DeliveryMode::Fenced, &Properties::new()).await?;
    sender.producer.prepare_topic(&name).await?;
    sender.send_numbers(&name, 0..5_000).await?;
    sender.flush(LONG).await?;
    sender.send_numbers(&name, 5_000..10_000).await?;
    broker.kill()?;
    sender.send_numbers(&name, 10_000..15_000).await?;
    broker.restart().await?;
    sender.send_numbers(&name, 15_000..20_000).await?;
    sender.flush(LONG).await?;
    assert_eq!(sender.heard.heard().below.last(), Some(&20_000));
    let numbers = by_partition(&read_all(&broker.bootstrap(), &name, true)?).remove(&0).context("records")?;
    assert_eq!(numbers, (0..20_000).collect::<Vec<_>>());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kfk_06_topics_are_created_as_asked() -> Result<()> {
    let properties = with(
        creating(3),
        &[
            ("topic.creation.groups", "keys"),
            ("topic.creation.keys.include", "kfk06\\.keys.*"),
            ("topic.creation.keys.partitions", "2"),
            ("topic.creation.keys.cleanup.policy", "compact"),
            ("topic.creation.default.retention.ms", "12345678"),
        ],
    );
    let (keys, rest) = (topic("kfk06.keys"), topic("kfk06.rest"));
    let mut sender = Sender::open(shared(), "kfk06", DeliveryMode::Fenced, &properties).await?;
    for name in [&keys, &rest] {
        sender.producer.prepare_topic(name).await?;
        sender.producer.prepare_topic(name).await?;
    }
    let admin: AdminClient<DefaultClientContext> = ClientConfig::new().set("bootstrap.servers", shared()).create()?;
    let metadata = admin.inner().fetch_metadata(None, LONG)?;
    let partitions = |name: &str| metadata.topics().iter().find(|t| t.name() == name).map(|t| t.partitions().len());
    assert_eq!((partitions(&keys), partitions(&rest)), (Some(2), Some(3)));
    let resources = [ResourceSpecifier::Topic(&keys), ResourceSpecifier::Topic(&rest)];
    let configs = admin.describe_configs(&resources, &AdminOptions::new()).await?;
    let value = |at: usize, key: &str| -> Option<String> { configs[at].as_ref().ok()?.get(key)?.value.clone() };
    assert_eq!(value(0, "cleanup.policy").as_deref(), Some("compact"));
    assert_ne!(value(0, "retention.ms").as_deref(), Some("12345678"), "not inherited");
    assert_eq!(value(1, "retention.ms").as_deref(), Some("12345678"));
    // An existing topic is left as it is, and a second creator is no error.
    let mut other = Sender::open(shared(), "kfk06-other", DeliveryMode::Plain, &creating(9)).await?;
    other.producer.prepare_topic(&rest).await?;
    let race = topic("kfk06.race");
    let (one, two) = tokio::join!(sender.producer.prepare_topic(&race), other.producer.prepare_topic(&race));
    one?;
    two?;
    // The broker refuses a record without key in a compacted topic; the advice says why.
    other.send(&keys, None, Some(b"x")).await?;
    let heard = other.heard.until("the refusal", |h| !h.failed.is_empty()).await?;
    assert_eq!(heard.failed[0].1.kind, ErrorKind::ValueInvalid, "{}", heard.failed[0].1);
    assert!(heard.failed[0].1.advice().contains("compacted"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kfk_06_what_cannot_be_created_is_an_error_with_advice() -> Result<()> {
    let mut sender = Sender::open(shared(), "kfk06-none", DeliveryMode::Plain, &Properties::new()).await?;
    let error = sender.producer.prepare_topic(&topic("kfk06.absent")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TopicMissing);
    assert!(error.message.contains("kfk06.absent") && error.advice().contains("topic.creation.default"), "{error}");
    let replicas = with(creating(1), &[("topic.creation.default.replication.factor", "3")]);
    let mut sender = Sender::open(shared(), "kfk06-many", DeliveryMode::Plain, &replicas).await?;
    let error = sender.producer.prepare_topic(&topic("kfk06.replicas")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Config);
    assert!(error.message.starts_with("Task failed to create new topic kfk06.replicas"), "{error}");
    let odd = with(creating(1), &[("topic.creation.default.no.such.setting", "3")]);
    let mut sender = Sender::open(shared(), "kfk06-odd", DeliveryMode::Plain, &odd).await?;
    assert_eq!(sender.producer.prepare_topic(&topic("kfk06.odd")).await.unwrap_err().kind, ErrorKind::Config);
    Ok(())
}

/// Topics behind the first few are looked up in a list of the cluster's; those that are not on it are
/// asked for and created as ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_of_many_topics() -> Result<()> {
    for mode in MODES {
        let names: Vec<_> = (0..30).map(|n| topic(&format!("many.{mode:?}.{n}"))).collect();
        let mut creator = Sender::open(shared(), &format!("many-c{mode:?}"), mode, &creating(2)).await?;
        for name in &names {
            creator.producer.prepare_topic(name).await?;
        }
        let mut sender = Sender::open(shared(), &format!("many-s{mode:?}"), mode, &Properties::new()).await?;
        for round in 0..2 {
            for name in &names {
                sender.producer.prepare_topic(name).await?;
                sender.send_numbers(name, round * 10..round * 10 + 10).await?;
            }
        }
        sender.flush(LONG).await?;
        for name in &names {
            let numbers: Vec<_> = read_all(shared(), name, true)?.iter().map(common::Read::number).collect();
            assert_eq!(numbers, (0..20).collect::<Vec<_>>(), "{name}");
        }
        let absent = topic(&format!("many.{mode:?}.absent"));
        let error = sender.producer.prepare_topic(&absent).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::TopicMissing);
        creator.producer.prepare_topic(&absent).await?;
        sender.producer.prepare_topic(&absent).await?;
    }
    Ok(())
}

/// Without `topic.creation.*` the broker's own creation works.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_broker_creates_topics_if_it_may() -> Result<()> {
    let settings = vec![("num.partitions".to_owned(), "7".to_owned())];
    let broker = Broker::with(BrokerOptions { settings, ..BrokerOptions::default() }).await?;
    let name = topic("auto");
    let mut sender = Sender::open(&broker.bootstrap(), "auto", DeliveryMode::Plain, &Properties::new()).await?;
    sender.producer.prepare_topic(&name).await?;
    sender.send(&name, Some("k"), Some(b"1")).await?;
    sender.flush(LONG).await?;
    let read = read_all(&broker.bootstrap(), &name, true)?;
    assert_eq!((read.len(), read[0].partition), (1, partition_of(b"k", 7)));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_or_wrongly_addressed_broker_is_an_error_of_the_start() -> Result<()> {
    let facts = cluster_facts(&worker(shared()), LONG).await?;
    assert_eq!(facts.brokers.len(), 1);
    let credentials = with(
        worker(shared()),
        &[
            ("security.protocol", "SASL_PLAINTEXT"),
            ("sasl.mechanism", "PLAIN"),
            ("sasl.jaas.config", "PlainLoginModule required username=\"u\" password=\"s3cret\";"),
        ],
    );
    let error = cluster_facts(&credentials, Duration::from_secs(5)).await.unwrap_err();
    assert!(!format!("{error:?}").contains("s3cret"));
    assert!(error.message.contains(shared()), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tail_follows_committed_records() -> Result<()> {
    let name = topic("tailed.x");
    let mut sender = Sender::open(shared(), "tailed", DeliveryMode::Fenced, &creating(2)).await?;
    let pattern = TopicPattern::Regex(fancy_regex::Regex::new(r"^tailed\.")?);
    let mut tail = Tail::start(&worker(shared()), pattern, TailFrom::Now, 4).await?;
    sender.producer.prepare_topic(&name).await?;
    for n in 0..20u32 {
        sender.send(&name, Some(&n.to_string()), Some(b"v")).await?;
    }
    sender.flush(LONG).await?;
    let mut keys = Vec::new();
    while keys.len() < 20 {
        let record = tokio::time::timeout(LONG, tail.next()).await?.context("record")??;
        keys.push(String::from_utf8(record.key.unwrap())?.parse::<u32>()?);
    }
    keys.sort_unstable();
    assert_eq!(keys, (0..20).collect::<Vec<_>>());
    Ok(())
}
