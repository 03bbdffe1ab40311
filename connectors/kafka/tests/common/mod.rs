//! What the tests of this crate share: a broker for all of them, a listener for acknowledgements,
//! and reading a topic back.

// Each test binary uses a part of it.
#![allow(dead_code, unreachable_pub)]

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Headers, Message as _};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use std::sync::Mutex;
use thalweg_config::Properties;
use thalweg_core::Error;
use thalweg_core::delivery::{
    Acks, DeliveryMode, EncodedHeaders, Message, Producer, ProducerFactory, ProducerIdentity, Refused,
};
use thalweg_kafka::KafkaSinks;
use thalweg_services::{Broker, BrokerOptions};
use tokio::sync::Notify;

pub const LONG: Duration = Duration::from_secs(60);

/// The broker that all tests of a binary share: automatic creation of topics is off, so that what a
/// test does not make does not exist.
pub fn shared() -> &'static str {
    static BOOTSTRAP: OnceLock<String> = OnceLock::new();
    BOOTSTRAP.get_or_init(|| {
        let (tell, told) = mpsc::channel();
        // The broker ends with the thread that started it, so that thread stays.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let settings = vec![("auto.create.topics.enable".to_owned(), "false".to_owned())];
                let broker = Broker::with(BrokerOptions { settings, ..BrokerOptions::default() }).await.unwrap();
                tell.send(broker.bootstrap()).unwrap();
                std::future::pending::<()>().await;
                drop(broker);
            });
        });
        told.recv().expect("the broker starts")
    })
}

pub fn worker(bootstrap: &str) -> Properties {
    Properties::from([("bootstrap.servers", bootstrap)])
}

pub fn identity(connector: &str) -> ProducerIdentity {
    ProducerIdentity { group: Arc::from("cdc"), connector: Arc::from(connector), task: 0 }
}

/// Connector properties that create topics with this many partitions.
pub fn creating(partitions: i32) -> Properties {
    let partitions = partitions.to_string();
    Properties::from([
        ("topic.creation.default.replication.factor", "1"),
        ("topic.creation.default.partitions", &partitions),
    ])
}

pub fn with(mut properties: Properties, pairs: &[(&str, &str)]) -> Properties {
    for (key, value) in pairs {
        properties.set(*key, *value);
    }
    properties
}

/// Remembers acknowledgements in the order in which they came.
#[derive(Default)]
pub struct Listener {
    state: Mutex<Heard>,
    changed: Notify,
}

#[derive(Default, Clone)]
pub struct Heard {
    pub delivered: Vec<u64>,
    pub below: Vec<u64>,
    pub failed: Vec<(u64, Error)>,
}

impl Listener {
    pub fn heard(&self) -> Heard {
        self.state.lock().unwrap().clone()
    }

    fn change(&self, change: impl FnOnce(&mut Heard)) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_one();
    }

    /// Waits until what was heard satisfies `enough`.
    pub async fn until(&self, what: &str, enough: impl Fn(&Heard) -> bool) -> Result<Heard> {
        let wait = async {
            while !enough(&self.heard()) {
                self.changed.notified().await;
            }
        };
        tokio::time::timeout(LONG, wait).await.with_context(|| format!("not heard: {what}"))?;
        Ok(self.heard())
    }
}

impl Acks for Listener {
    fn delivered(&self, seq: u64) {
        self.change(|h| h.delivered.push(seq));
    }
    fn delivered_below(&self, next: u64) {
        self.change(|h| h.below.push(next));
    }
    fn failed(&self, seq: u64, error: Error) {
        self.change(|h| h.failed.push((seq, error)));
    }
}

/// A producer with its listener and the next sequence number.
pub struct Sender {
    pub producer: Box<dyn Producer>,
    pub heard: Arc<Listener>,
    pub next: u64,
    headers: EncodedHeaders,
}

impl Sender {
    pub async fn open(bootstrap: &str, connector: &str, mode: DeliveryMode, properties: &Properties) -> Result<Self> {
        Self::from(&KafkaSinks::new(worker(bootstrap)), connector, mode, properties).await
    }

    pub async fn from(
        sinks: &KafkaSinks,
        connector: &str,
        mode: DeliveryMode,
        properties: &Properties,
    ) -> Result<Self> {
        let heard = Arc::new(Listener::default());
        let producer = sinks.open(identity(connector), mode, properties, heard.clone()).await?;
        Ok(Self { producer, heard, next: 0, headers: Arc::default() })
    }

    pub fn headers(&mut self, headers: &[(&str, Option<&str>)]) {
        self.headers =
            Arc::new(headers.iter().map(|(n, v)| (Arc::from(*n), v.map(|v| v.as_bytes().to_vec()))).collect());
    }

    /// One attempt.
    pub fn try_send(&mut self, topic: &Arc<str>, key: Option<&str>, value: Option<&[u8]>) -> Result<(), Refused> {
        let message = Message {
            topic,
            partition: None,
            key: key.map(str::as_bytes),
            value,
            headers: &self.headers,
            timestamp: Some(1_700_000_000_000),
        };
        self.producer.try_send(self.next, &message)?;
        self.next += 1;
        Ok(())
    }

    /// As the encoder does it: waits for room. Returns how often it had to. What the producer holds back
    /// leaves if it can.
    pub async fn send(&mut self, topic: &Arc<str>, key: Option<&str>, value: Option<&[u8]>) -> Result<usize, Error> {
        let waits = self.take(topic, key, value).await?;
        self.hand_over().await?;
        Ok(waits)
    }

    /// One load, as soon as one may leave.
    async fn hand_over(&mut self) -> Result<(), Error> {
        if self.producer.holds_back() {
            self.producer.ready().await;
        }
        self.producer.hand_over()
    }

    async fn take(&mut self, topic: &Arc<str>, key: Option<&str>, value: Option<&[u8]>) -> Result<usize, Error> {
        let mut waits = 0;
        loop {
            match self.try_send(topic, key, value) {
                Ok(()) => return Ok(waits),
                Err(Refused::Full) => {
                    waits += 1;
                    self.producer.room().await;
                }
                Err(Refused::Failed(error)) => return Err(error),
            }
        }
    }

    pub async fn send_numbers(&mut self, topic: &Arc<str>, range: std::ops::Range<u64>) -> Result<usize, Error> {
        let mut waits = 0;
        for n in range {
            waits += self.take(topic, Some("key"), Some(n.to_string().as_bytes())).await?;
        }
        self.hand_over().await?;
        Ok(waits)
    }

    /// Waits until nothing is held back.
    pub async fn release(&mut self) -> Result<(), Error> {
        while self.producer.holds_back() {
            self.producer.ready().await;
            self.producer.hand_over()?;
        }
        Ok(())
    }

    /// Waits until everything is acknowledged.
    pub async fn flush(&mut self, deadline: Duration) -> Result<(), Error> {
        self.release().await?;
        self.producer.flush(deadline).await
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    pub partition: i32,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Read {
    pub fn text(&self) -> &str {
        std::str::from_utf8(self.value.as_deref().unwrap_or_default()).unwrap()
    }

    pub fn number(&self) -> u64 {
        self.text().parse().unwrap()
    }
}

/// Everything in the topic up to its present end. `committed`: as a reader of committed records sees
/// it; a transaction that is still open ends the view.
pub fn read_all(bootstrap: &str, topic: &str, committed: bool) -> Result<Vec<Read>> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", "reader")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("auto.offset.reset", "earliest")
        .set("isolation.level", if committed { "read_committed" } else { "read_uncommitted" })
        .set("fetch.wait.max.ms", "20")
        .create()?;
    let metadata = consumer.fetch_metadata(Some(topic), LONG)?;
    let partitions: Vec<i32> =
        metadata.topics().first().context("topic")?.partitions().iter().map(|p| p.id()).collect();
    let mut list = TopicPartitionList::new();
    for partition in &partitions {
        list.add_partition_offset(topic, *partition, Offset::Beginning)?;
    }
    consumer.assign(&list)?;
    let (mut all, mut ended) = (Vec::new(), 0);
    let end = Instant::now() + LONG;
    while ended < partitions.len() {
        match consumer.poll(Duration::from_millis(50)) {
            Some(Ok(m)) => all.push(Read {
                partition: m.partition(),
                key: m.key().map(<[u8]>::to_vec),
                value: m.payload().map(<[u8]>::to_vec),
                headers: m.headers().map_or_else(Vec::new, |h| {
                    h.iter().map(|h| (h.key.to_owned(), h.value.map(<[u8]>::to_vec))).collect()
                }),
            }),
            Some(Err(rdkafka::error::KafkaError::PartitionEOF(_))) => ended += 1,
            Some(Err(_)) | None if Instant::now() < end => {}
            Some(Err(error)) => return Err(error.into()),
            None => bail!("topic {topic} was not read in time"),
        }
    }
    Ok(all)
}

/// Numbers in the order of each partition.
pub fn by_partition(read: &[Read]) -> BTreeMap<i32, Vec<u64>> {
    let mut by: BTreeMap<i32, Vec<u64>> = BTreeMap::new();
    for r in read {
        by.entry(r.partition).or_default().push(r.number());
    }
    by
}

pub fn topic(name: &str) -> Arc<str> {
    Arc::from(name)
}
