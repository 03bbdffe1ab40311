//! Services and nodes for a measurement.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use mongodb::bson::{Document, doc};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use serde_json::{Value, json};
use thalweg_tests::{Broker, BrokerOptions, Cluster, MemberOptions, ReplicaSet, Role, pin};

pub struct LabOptions {
    pub delivery: String,
    pub compression: String,
    /// More connector settings, `key=value`.
    pub settings: Vec<(String, String)>,
}

pub struct Lab {
    pub broker: Broker,
    pub set: ReplicaSet,
    pub cluster: Cluster,
    compression: String,
    settings: Vec<(String, String)>,
}

impl Lab {
    /// One node on processor 1, or several that run anywhere.
    pub async fn start(options: &LabOptions, nodes: u64) -> Result<Self> {
        let settings = vec![("message.max.bytes".to_owned(), "10000000".to_owned())];
        let broker = Broker::with(BrokerOptions { settings, ..Default::default() }).await?;
        let members = MemberOptions { oplog_mb: 20_000, cache_gb: 2.0, ..Default::default() };
        let set = ReplicaSet::start("rs0", 1, &members).await?;
        if nodes == 1 {
            pin(Role::Node, 1);
        }
        let extra = [("thalweg.delivery", options.delivery.as_str())];
        let cluster = Cluster::start(nodes, &broker.bootstrap(), &extra).await?;
        Ok(Self { broker, set, cluster, compression: options.compression.clone(), settings: options.settings.clone() })
    }

    pub fn process(&mut self) -> Result<u32> {
        Ok(self.cluster.nodes[0].process()?.id())
    }

    /// The profile of an expert: messages without schemas, the configured compression.
    pub fn connector(&self, name: &str, database: &str, more: &[(&str, &str)]) -> Value {
        let mut config = json!({
            "connector.class": "io.debezium.connector.mongodb.MongoDbConnector",
            "topic.prefix": name,
            "mongodb.connection.string": self.set.uri(),
            "capture.scope": "database",
            "capture.target": database,
            "filters.match.mode": "literal",
            "database.include.list": database,
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "producer.override.compression.type": self.compression,
        });
        for (key, value) in more {
            config[*key] = json!(value);
        }
        for (key, value) in &self.settings {
            config[key] = json!(value);
        }
        config
    }

    /// Inserts documents of about 480 bytes in large batches.
    pub async fn fill(&self, database: &str, ids: std::ops::Range<usize>) -> Result<()> {
        let collection = self.set.client().await?.database(database).collection::<Document>("c");
        let mut batch = Vec::with_capacity(10_000);
        for id in ids {
            batch.push(document(id));
            if batch.len() == 10_000 {
                collection.insert_many(std::mem::take(&mut batch)).await?;
            }
        }
        if !batch.is_empty() {
            collection.insert_many(batch).await?;
        }
        Ok(())
    }

    /// Waits until the topic holds `messages` messages and no more come; gives append times of the
    /// first and the last in ms since the epoch.
    pub async fn arrived(&self, topic: &str, messages: usize, deadline: Duration) -> Result<(i64, i64)> {
        let (bootstrap, topic) = (self.broker.bootstrap(), topic.to_owned());
        tokio::task::spawn_blocking(move || count(&bootstrap, &topic, messages, deadline)).await?
    }
}

/// About 480 bytes of BSON, as an order might look.
pub fn document(id: usize) -> Document {
    doc! {
        "_id": id as i64,
        "number": format!("ORD-{id:010}"),
        "customer": {"id": (id % 10_007) as i32, "name": format!("Customer number {}", id % 10_007), "vip": id.is_multiple_of(7)},
        "lines": [
            {"sku": format!("SKU-{:06}", id % 999_983), "quantity": (id % 9) as i32 + 1, "price": 12.5 + (id % 100) as f64},
            {"sku": format!("SKU-{:06}", id % 99_991), "quantity": 1, "price": 3.25},
        ],
        "status": "new",
        "created": mongodb::bson::DateTime::from_millis(1_700_000_000_000 + id as i64),
        "note": "a note that is long enough to bring this document to the size that the benchmark is about, and a bit",
        "seq": id as i64,
    }
}

fn consumer(bootstrap: &str, topic: &str) -> Result<BaseConsumer> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", "bench")
        .set("enable.auto.commit", "false")
        .set("isolation.level", "read_uncommitted")
        .set("topic.metadata.refresh.interval.ms", "200")
        .set("queued.max.messages.kbytes", "16384")
        .create()?;
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Beginning)?;
    consumer.assign(&list)?;
    Ok(consumer)
}

/// Polls the end of the log first, which costs the broker nothing, then reads everything back.
fn count(bootstrap: &str, topic: &str, messages: usize, deadline: Duration) -> Result<(i64, i64)> {
    let probe = consumer(bootstrap, "no-topic-yet")?;
    let end = Instant::now() + deadline;
    loop {
        let high = probe.fetch_watermarks(topic, 0, Duration::from_secs(5)).map_or(0, |(_, high)| high);
        if high >= messages as i64 {
            break;
        }
        if Instant::now() > end {
            bail!("{topic} holds {high} of {messages} messages after {deadline:?}");
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    drop(probe);
    let consumer = consumer(bootstrap, topic)?;
    let (mut first, mut last, mut seen) = (i64::MAX, 0, 0);
    while seen < messages {
        match consumer.poll(Duration::from_secs(1)) {
            Some(Ok(message)) => {
                let time = message.timestamp().to_millis().context("no append time")?;
                first = first.min(time);
                last = last.max(time);
                seen += 1;
            }
            Some(Err(e)) => bail!("reading {topic} back: {e}"),
            None if Instant::now() > end => bail!("{topic} gave {seen} of {messages} messages"),
            None => {}
        }
    }
    Ok((first, last))
}
