//! Producers, the tail and the cluster look against the embedded cluster.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use common::{LONG, Sender, by_partition, read_all, topic, with, worker};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use thalweg_config::Properties;
use thalweg_core::ErrorKind;
use thalweg_core::delivery::{DeliveryMode, Refused};
use thalweg_kafka::{EmbeddedBroker, KafkaSinks, Tail, TailFrom, TopicPattern, cluster_facts, cluster_id};

const MODES: [DeliveryMode; 2] = [DeliveryMode::Plain, DeliveryMode::Fenced];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_modes_deliver_and_acknowledge() -> Result<()> {
    let broker = EmbeddedBroker::start().await?;
    for (at, mode) in MODES.into_iter().enumerate() {
        let name = topic(&format!("both.{at}"));
        let mut sender =
            Sender::open(broker.bootstrap_servers(), &format!("both{at}"), mode, &Properties::new()).await?;
        sender.producer.prepare_topic(&name).await?;
        sender.producer.prepare_topic(&name).await?;
        sender.headers(&[("op", Some("c")), ("op", None), ("empty", Some(""))]);
        sender.send(&name, Some("k"), Some(b"v")).await?;
        sender.headers(&[]);
        sender.send(&name, Some("k"), None).await?;
        sender.send(&name, Some(""), Some(b"")).await?;
        sender.send(&name, None, Some(b"w")).await?;
        sender.flush(LONG).await?;
        let heard = sender.heard.heard();
        match mode {
            DeliveryMode::Plain => {
                let mut seqs = heard.delivered.clone();
                seqs.sort_unstable();
                assert_eq!((seqs, heard.below.len()), (vec![0, 1, 2, 3], 0));
            }
            DeliveryMode::Fenced => assert_eq!((heard.below.last(), heard.delivered.len()), (Some(&4), 0)),
        }
        assert!(heard.failed.is_empty());
        let read = read_all(broker.bootstrap_servers(), &name, true)?;
        let first = read.iter().find(|r| r.value.as_deref() == Some(b"v")).context("v")?;
        assert_eq!(first.key.as_deref(), Some(&b"k"[..]));
        assert_eq!(
            first.headers,
            [("op".to_owned(), Some(b"c".to_vec())), ("op".to_owned(), None), ("empty".to_owned(), Some(vec![]))]
        );
        let mut rest: Vec<_> = read.iter().map(|r| (r.key.clone(), r.value.clone())).collect();
        rest.sort();
        assert_eq!(
            rest,
            [
                (None, Some(b"w".to_vec())),
                (Some(vec![]), Some(vec![])),
                (Some(b"k".to_vec()), None),
                (Some(b"k".to_vec()), Some(b"v".to_vec())),
            ]
        );
    }
    Ok(())
}

/// A client left to itself connects at the first tick of its timer, a second later, in one start of
/// eight; a task that moves would stand still for that long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_producer_connects_without_waiting_for_the_client_s_timer() -> Result<()> {
    let (lines, log) = std::sync::mpsc::channel::<String>();
    struct Lines(std::sync::mpsc::Sender<String>);
    impl std::io::Write for Lines {
        fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
            let _ = self.0.send(String::from_utf8_lossy(line).into_owned());
            Ok(line.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let writer = move || Lines(lines.clone());
    tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_writer(writer).init();
    let broker = EmbeddedBroker::start().await?;
    let debug = Properties::from([("producer.override.debug", "broker")]);
    for at in 0..32 {
        Sender::open(broker.bootstrap_servers(), &format!("prompt{at}"), DeliveryMode::Fenced, &debug).await?;
    }
    let log: Vec<String> = log.try_iter().filter(|l| l.contains("Selected for cluster connection")).collect();
    assert!(log.len() >= 32, "the client's words have changed: {log:?}");
    assert!(!log.iter().any(|l| l.contains("no cluster connection")), "{log:#?}");
    Ok(())
}

/// The reader is held back instead of the queue growing, and every wait is ended by a delivery.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kfk_01_order_under_a_tiny_queue() -> Result<()> {
    let broker = EmbeddedBroker::start().await?;
    for (at, mode) in MODES.into_iter().enumerate() {
        let name = topic(&format!("tiny.{at}"));
        broker.create_topic(&name, 1)?;
        let tiny = Properties::from([("producer.override.queue.buffering.max.messages", "100")]);
        let mut sender = Sender::open(broker.bootstrap_servers(), &format!("tiny{at}"), mode, &tiny).await?;
        sender.producer.prepare_topic(&name).await?;
        const COUNT: u64 = 20_000;
        let waits = sender.send_numbers(&name, 0..COUNT).await?;
        sender.flush(LONG).await?;
        assert!(waits > 0, "the queue was never full");
        assert!(waits < COUNT as usize, "{waits} waits: a busy loop");
        let numbers =
            by_partition(&read_all(broker.bootstrap_servers(), &name, true)?).remove(&0).context("records")?;
        assert_eq!(numbers, (0..COUNT).collect::<Vec<_>>());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kfk_03_an_oversize_record_is_refused_before_it_is_sent_and_the_rest_goes_on() -> Result<()> {
    let broker = EmbeddedBroker::start().await?;
    for (at, mode) in MODES.into_iter().enumerate() {
        let name = topic(&format!("big.{at}"));
        let mut sender =
            Sender::open(broker.bootstrap_servers(), &format!("big{at}"), mode, &Properties::new()).await?;
        sender.producer.prepare_topic(&name).await?;
        sender.send(&name, Some("a"), Some(b"1")).await?;
        let big = vec![b'x'; 3_000_000];
        let error = match sender.try_send(&name, Some("secret-key"), Some(&big)) {
            Err(Refused::Failed(error)) => error,
            other => panic!("{other:?}"),
        };
        assert_eq!(error.kind, ErrorKind::MessageTooLarge);
        assert!(error.message.contains(&*name) && error.message.contains("3000010 bytes"), "{error}");
        assert!(error.advice().contains("max.request.size") && !error.message.contains("secret-key"));
        sender.next += 1;
        sender.send(&name, Some("a"), Some(b"2")).await?;
        sender.flush(LONG).await?;
        assert!(sender.heard.heard().failed.is_empty());
        assert_eq!(read_all(broker.bootstrap_servers(), &name, true)?.len(), 2);
        // Just below the limit passes.
        let fits = vec![b'x'; 1_048_576 - 61 - 21 - 1];
        sender.send(&name, Some("a"), Some(&fits)).await?;
        sender.flush(LONG).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_heard_or_sent_after_a_purge() -> Result<()> {
    let broker = EmbeddedBroker::start().await?;
    for (at, mode) in MODES.into_iter().enumerate() {
        let name = topic(&format!("purge.{at}"));
        // Lingering keeps the records in the queue; nothing commits them early.
        let slow = Properties::from([("producer.override.linger.ms", "500"), ("thalweg.fenced.commit.ms", "60000")]);
        let mut sender = Sender::open(broker.bootstrap_servers(), &format!("purge{at}"), mode, &slow).await?;
        sender.producer.prepare_topic(&name).await?;
        sender.send_numbers(&name, 0..100).await?;
        sender.producer.purge();
        match sender.try_send(&name, None, None) {
            Err(Refused::Failed(error)) => assert_eq!(error.kind, ErrorKind::Fenced),
            other => panic!("{other:?}"),
        }
        assert_eq!(sender.flush(LONG).await.unwrap_err().kind, ErrorKind::Fenced);
        tokio::time::timeout(LONG, sender.producer.room()).await?;
        // A record of another producer lingers as long, so the purged ones would be there before it.
        let mut next =
            Sender::open(broker.bootstrap_servers(), &format!("next{at}"), DeliveryMode::Plain, &slow).await?;
        next.send(&name, None, Some(b"7")).await?;
        next.flush(LONG).await?;
        let heard = sender.heard.heard();
        assert!(heard.delivered.is_empty() && heard.below.is_empty() && heard.failed.is_empty());
        let read = read_all(broker.bootstrap_servers(), &name, false)?;
        assert_eq!(read.iter().map(|r| r.text()).collect::<Vec<_>>(), ["7"]);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_fenced_producer_commits_nothing_and_a_busy_one_in_time() -> Result<()> {
    let broker = EmbeddedBroker::start().await?;
    let name = topic("pace");
    let quick = Properties::from([("thalweg.fenced.commit.ms", "20")]);
    let mut sender = Sender::open(broker.bootstrap_servers(), "pace", DeliveryMode::Fenced, &quick).await?;
    sender.producer.prepare_topic(&name).await?;
    sender.flush(LONG).await?;
    assert!(sender.heard.heard().below.is_empty(), "a flush without records commits nothing");
    for n in 1..=3u64 {
        sender.send(&name, None, Some(b"x")).await?;
        sender.release().await?;
        let heard = sender.heard.until("a commit without a flush", |h| h.below.last() == Some(&n)).await?;
        assert_eq!(heard.below, (1..=n).collect::<Vec<_>>());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tail_sees_old_and_new_topics() -> Result<()> {
    let broker = EmbeddedBroker::start().await?;
    let (old, new, other) = (topic("shop.old"), topic("shop.new"), topic("other"));
    let mut sender = Sender::open(broker.bootstrap_servers(), "tail", DeliveryMode::Plain, &Properties::new()).await?;
    for name in [&old, &other] {
        sender.producer.prepare_topic(name).await?;
        sender.send(name, Some("k"), Some(b"before")).await?;
    }
    sender.flush(LONG).await?;
    let shop = || TopicPattern::Prefix("shop.".into());
    let mut all = Tail::start(&worker(broker.bootstrap_servers()), shop(), TailFrom::Beginning, 1).await?;
    let mut now = Tail::start(&worker(broker.bootstrap_servers()), shop(), TailFrom::Now, 10).await?;
    for name in [&old, &new, &other] {
        sender.producer.prepare_topic(name).await?;
        sender.send(name, None, Some(b"after")).await?;
    }
    sender.flush(LONG).await?;
    let mut seen = Vec::new();
    for _ in 0..2 {
        let record = tokio::time::timeout(LONG, now.next()).await?.context("record")??;
        assert_eq!((record.key, record.timestamp), (None, Some(1_700_000_000_000)));
        seen.push((record.topic, String::from_utf8(record.value.unwrap())?));
    }
    seen.sort();
    assert_eq!(seen, [(new.clone(), "after".to_owned()), (old.clone(), "after".to_owned())]);
    let mut seen = Vec::new();
    for _ in 0..3 {
        let record = tokio::time::timeout(LONG, all.next()).await?.context("record")??;
        seen.push((record.topic, String::from_utf8(record.value.unwrap())?));
    }
    seen.sort();
    assert_eq!(seen, [(new, "after".to_owned()), (old.clone(), "after".to_owned()), (old, "before".to_owned())]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn looking_at_a_cluster() -> Result<()> {
    let broker = EmbeddedBroker::start().await?;
    let facts = cluster_facts(&worker(broker.bootstrap_servers()), LONG).await?;
    assert_eq!(facts.brokers.len(), 1);
    assert_eq!(facts.brokers[0].1, broker.bootstrap_servers());
    assert_eq!(cluster_id(&worker(broker.bootstrap_servers()), LONG).await?, facts.cluster_id);
    let nowhere = format!("127.0.0.1:{}", thalweg_services::free_port()?);
    let error = cluster_facts(&worker(&nowhere), Duration::from_millis(600)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::BrokerUnavailable);
    assert!(error.message.contains(&nowhere) && error.advice().contains("bootstrap.servers"), "{error}");
    assert!(error.causes.concat().contains("refused"), "{error}");
    Ok(())
}

/// Topic A healthy, topic B without a leader: A's acknowledgements do not wait for B's, and B's is
/// not made up. Moving a position over the prefix only is the tracker's part.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kfk_05_acknowledgements_are_per_record() -> Result<()> {
    use rdkafka::mocking::MockCluster;
    let (a, b) = (topic("a"), topic("b"));
    let cluster = MockCluster::new(1)?;
    for name in [&a, &b] {
        cluster.create_topic(name, 1, 1)?;
    }
    let bootstrap = cluster.bootstrap_servers();
    let mut sender = Sender::open(&bootstrap, "ab", DeliveryMode::Plain, &Properties::new()).await?;
    cluster.partition_leader(&b, 0, None)?;
    for (name, value) in [(&a, b"1"), (&b, b"1"), (&a, b"2"), (&a, b"3")] {
        sender.send(name, None, Some(value)).await?;
    }
    // The record that is stuck holds the others back for a moment only.
    sender.release().await?;
    let heard = sender.heard.until("A's records", |h| h.delivered.len() == 3).await?;
    assert_eq!(heard.delivered, [0, 2, 3]);
    cluster.partition_leader(&b, 0, Some(1))?;
    let heard = sender.heard.until("B's record", |h| h.delivered.len() == 4).await?;
    assert_eq!((heard.delivered[3], heard.failed.len()), (1, 0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_transactions_say_so() -> Result<()> {
    use rdkafka::mocking::MockCluster;
    use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
    let cluster = MockCluster::new(1)?;
    let bootstrap = cluster.bootstrap_servers();
    cluster.request_errors(
        RDKafkaApiKey::InitProducerId,
        &[RDKafkaRespErr::RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED],
    );
    let error =
        Sender::open(&bootstrap, "acl", DeliveryMode::Fenced, &Properties::new()).await.err().context("refused")?;
    let error = error.downcast::<thalweg_core::Error>()?;
    assert_eq!(error.kind, ErrorKind::TransactionsRefused);
    assert!(error.message.contains("cdc-acl-0") && error.advice().contains("thalweg.delivery=plain"), "{error}");
    // Plain mode does not need them.
    Sender::open(&bootstrap, "acl", DeliveryMode::Plain, &Properties::new()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_broker_refuses_ends_the_producer_unless_it_is_tolerated() -> Result<()> {
    use rdkafka::mocking::MockCluster;
    use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
    let cluster = MockCluster::new(1)?;
    let name = topic("refused");
    cluster.create_topic(&name, 1, 1)?;
    let refuse = || {
        cluster.request_errors(RDKafkaApiKey::Produce, &[RDKafkaRespErr::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE]);
    };
    for mode in MODES {
        refuse();
        let connector = format!("r{mode:?}");
        let mut sender = Sender::open(&cluster.bootstrap_servers(), &connector, mode, &Properties::new()).await?;
        sender.send(&name, Some("k"), Some(b"1")).await?;
        let heard = sender.heard.until("the refusal", |h| !h.failed.is_empty()).await?;
        let (seq, error) = &heard.failed[0];
        assert_eq!((*seq, error.kind), (0, ErrorKind::MessageTooLarge), "{mode:?}");
        assert!(error.message.contains("topic refused partition 0"), "{error}");
        let flushed = sender.flush(LONG).await.unwrap_err();
        assert_eq!(flushed.kind, ErrorKind::MessageTooLarge);
        assert!(matches!(sender.try_send(&name, None, None), Err(Refused::Failed(_))));
        assert_eq!(sender.heard.heard().failed.len(), 1, "reported once");
    }
    refuse();
    let tolerant = Properties::from([("errors.tolerance", "all")]);
    let mut sender = Sender::open(&cluster.bootstrap_servers(), "tolerant", DeliveryMode::Plain, &tolerant).await?;
    sender.send(&name, Some("k"), Some(b"1")).await?;
    sender.heard.until("the refusal", |h| h.failed.len() == 1).await?;
    sender.send(&name, Some("k"), Some(b"2")).await?;
    sender.release().await?;
    let heard = sender.heard.until("the next record", |h| h.delivered == [1]).await?;
    assert_eq!(heard.failed[0].0, 0);
    sender.flush(LONG).await?;
    Ok(())
}

/// A broker that refuses the first request of a producer in a partition and takes the second says of the
/// first, when it comes again, that it has it. librdkafka calls that delivered, but it is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_is_called_a_duplicate_but_is_nowhere_is_not_acknowledged() -> Result<()> {
    use rdkafka::mocking::MockCluster;
    use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
    let cluster = MockCluster::new(1)?;
    let name = topic("nowhere");
    cluster.create_topic(&name, 1, 1)?;
    for mode in MODES {
        let connector = format!("n{mode:?}");
        let mut sender = Sender::open(&cluster.bootstrap_servers(), &connector, mode, &Properties::new()).await?;
        cluster.request_errors(RDKafkaApiKey::Produce, &[RDKafkaRespErr::RD_KAFKA_RESP_ERR_DUPLICATE_SEQUENCE_NUMBER]);
        sender.send(&name, Some("k"), Some(b"1")).await?;
        let heard = sender.heard.until("that it may be missing", |h| !h.failed.is_empty()).await?;
        let (seq, error) = &heard.failed[0];
        assert_eq!((*seq, error.kind), (0, ErrorKind::BrokerUnavailable), "{mode:?}");
        assert!(error.message.contains("it may be missing (topic nowhere partition 0"), "{error}");
        assert_eq!(sender.flush(LONG).await.unwrap_err().kind, ErrorKind::BrokerUnavailable);
        assert!(sender.heard.heard().delivered.is_empty() && sender.heard.heard().below.is_empty());
        drop(sender);
        let mut again = Sender::open(&cluster.bootstrap_servers(), &connector, mode, &Properties::new()).await?;
        again.send(&name, Some("k"), Some(b"1")).await?;
        again.flush(LONG).await?;
    }
    let read = read_all(&cluster.bootstrap_servers(), &name, true)?;
    assert_eq!(read.iter().map(common::Read::text).collect::<Vec<_>>(), ["1", "1"]);
    Ok(())
}

/// The producers of a node share its memory, whoever comes and goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_is_shared() -> Result<()> {
    use rdkafka::mocking::MockCluster;
    let cluster = MockCluster::new(1)?;
    let name = topic("shared");
    cluster.create_topic(&name, 1, 1)?;
    // Nothing is delivered, so what is taken stays.
    cluster.partition_leader(&name, 0, None)?;
    let node = with(worker(&cluster.bootstrap_servers()), &[("thalweg.producer.buffer.bytes", "4000000")]);
    let sinks = KafkaSinks::new(node);
    let value = vec![b'x'; 100_000];
    let fill = |sender: &mut Sender| {
        let mut taken = 0;
        while sender.try_send(&name, None, Some(&value)).is_ok() {
            taken += 1;
        }
        taken
    };
    let open = async |connector: &str| Sender::from(&sinks, connector, DeliveryMode::Plain, &Properties::new()).await;
    let mut one = open("one").await?;
    assert_eq!(fill(&mut one), 39);
    let mut two = open("two").await?;
    assert_eq!(fill(&mut two), 19, "half of it");
    drop(one);
    assert_eq!(fill(&mut two), 20, "all of it");
    let mut bounded = Sender::from(
        &sinks,
        "bounded",
        DeliveryMode::Plain,
        &Properties::from([("producer.override.buffer.memory", "1000000")]),
    )
    .await?;
    assert_eq!(fill(&mut bounded), 9, "a limit of its own");
    Ok(())
}

/// A listener that panics must not leave the task waiting for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panicking_listener_is_a_failure() -> Result<()> {
    use thalweg_core::delivery::{Acks, EncodedHeaders, Message, ProducerFactory};
    struct Panics;
    impl Acks for Panics {
        fn delivered(&self, _: u64) {
            panic!("as this test wants");
        }
        fn delivered_below(&self, _: u64) {
            panic!("as this test wants");
        }
        fn failed(&self, _: u64, _: thalweg_core::Error) {}
    }
    let broker = EmbeddedBroker::start().await?;
    let sinks = KafkaSinks::new(worker(broker.bootstrap_servers()));
    for mode in MODES {
        let mut producer = sinks
            .open(common::identity(&format!("panics{mode:?}")), mode, &Properties::new(), Arc::new(Panics))
            .await?;
        let (topic, headers) = (topic("panics"), EncodedHeaders::default());
        let message = Message {
            topic: &topic,
            partition: None,
            key: None,
            value: Some(b"x"),
            headers: &headers,
            timestamp: None,
        };
        producer.try_send(0, &message).expect("room");
        producer.hand_over()?;
        assert_eq!(producer.flush(LONG).await.unwrap_err().kind, ErrorKind::Internal, "{mode:?}");
    }
    Ok(())
}

/// A coordinator that is not ready takes longer than one slice of waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opening_waits_for_the_coordinator() -> Result<()> {
    use rdkafka::mocking::MockCluster;
    use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
    let cluster = MockCluster::new(1)?;
    let busy = [RDKafkaRespErr::RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS; 2];
    cluster.request_errors(RDKafkaApiKey::InitProducerId, &busy);
    let mut sender =
        Sender::open(&cluster.bootstrap_servers(), "slow", DeliveryMode::Fenced, &Properties::new()).await?;
    sender.send(&topic("slow"), None, Some(b"x")).await?;
    sender.flush(LONG).await?;
    Ok(())
}

/// Ending a runtime does not wait for calls to a broker that is away.
#[test]
fn a_stop_does_not_wait_for_an_opening() -> Result<()> {
    let nowhere = format!("127.0.0.1:{}", thalweg_services::free_port()?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let properties = Properties::new();
        let opening = Sender::open(&nowhere, "stop", DeliveryMode::Fenced, &properties);
        assert!(tokio::time::timeout(Duration::from_millis(100), opening).await.is_err(), "it waits for the broker");
    });
    let started = std::time::Instant::now();
    drop(runtime);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    Ok(())
}

fn partitions_of(bootstrap: &str, topic: &str) -> Result<usize> {
    let client: BaseConsumer = ClientConfig::new().set("bootstrap.servers", bootstrap).create()?;
    let metadata = client.fetch_metadata(Some(topic), LONG)?;
    Ok(metadata.topics().first().context("topic")?.partitions().len())
}

/// What `thalweg run --dev` is asked for when topics are to be made: those of `topic.creation.*`, and the
/// one of dead letters, which has rules of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_with_rules_can_be_had() -> Result<()> {
    let broker = EmbeddedBroker::start().await?;
    let dead = [("errors.deadletterqueue.topic.name", "dead"), ("errors.tolerance", "all")];
    let rules = [("topic.creation.default.partitions", "2"), ("topic.creation.default.replication.factor", "1")];
    for (at, (properties, name)) in [(dead, "dead"), (rules, "shop.rules")].into_iter().enumerate() {
        for mode in MODES {
            let name = Arc::from(name);
            let properties = Properties::from(properties);
            let mut sender =
                Sender::open(broker.bootstrap_servers(), &format!("rules{at}{mode:?}"), mode, &properties).await?;
            let started = std::time::Instant::now();
            sender.producer.prepare_topic(&name).await?;
            assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
            sender.send(&name, Some("k"), Some(b"v")).await?;
            sender.flush(LONG).await?;
        }
        assert_eq!(read_all(broker.bootstrap_servers(), name, true)?.len(), MODES.len());
        let partitions = if name == "dead" { 1 } else { 2 };
        assert_eq!(partitions_of(broker.bootstrap_servers(), name)?, partitions);
    }
    Ok(())
}
