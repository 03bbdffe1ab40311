//! Reading topics as a consumer does.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Headers, Message};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use serde_json::Value;

#[derive(Debug, Clone)]
pub struct Received {
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
    pub key: Option<String>,
    pub value: Option<String>,
    /// Key and value as they are, for formats that are no text.
    pub raw: (Option<Vec<u8>>, Option<Vec<u8>>),
    pub headers: Vec<(String, Option<String>)>,
    pub timestamp: i64,
}

impl Received {
    pub fn of(message: &impl Message) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let headers = message.headers().map(|h| h.iter().map(|h| (h.key.to_owned(), h.value.map(text))).collect());
        Self {
            topic: message.topic().to_owned(),
            partition: message.partition(),
            offset: message.offset(),
            key: message.key().map(text),
            value: message.payload().map(text),
            raw: (message.key().map(<[u8]>::to_vec), message.payload().map(<[u8]>::to_vec)),
            headers: headers.unwrap_or_default(),
            timestamp: message.timestamp().to_millis().unwrap_or(-1),
        }
    }

    pub fn key_json(&self) -> Value {
        self.key.as_deref().and_then(|t| serde_json::from_str(t).ok()).unwrap_or(Value::Null)
    }

    /// The value as JSON; null for a tombstone.
    pub fn value_json(&self) -> Value {
        self.value.as_deref().and_then(|t| serde_json::from_str(t).ok()).unwrap_or(Value::Null)
    }

    /// The payload, with or without a schema envelope.
    pub fn payload(&self) -> Value {
        let value = self.value_json();
        if value.get("payload").is_some() && value.get("schema").is_some() { value["payload"].clone() } else { value }
    }
}

/// Reads partition 0 of a topic from its beginning, committed messages only.
pub struct Topic {
    consumer: BaseConsumer,
    name: String,
}

impl Topic {
    pub fn read(bootstrap: &str, name: &str) -> Result<Self> {
        Self::with_isolation(bootstrap, name, "read_committed")
    }

    pub fn with_isolation(bootstrap: &str, name: &str, isolation: &str) -> Result<Self> {
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", bootstrap)
            .set("group.id", format!("reader-{name}"))
            .set("enable.auto.commit", "false")
            .set("isolation.level", isolation)
            .set("auto.offset.reset", "earliest")
            .set("topic.metadata.refresh.interval.ms", "100")
            .set("topic.metadata.propagation.max.ms", "100")
            .set("fetch.wait.max.ms", "20")
            .set("log_level", "0")
            .create()?;
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(name, 0, Offset::Beginning)?;
        consumer.assign(&list)?;
        Ok(Self { consumer, name: name.to_owned() })
    }

    /// The next `count` messages.
    pub async fn take(&self, count: usize, deadline: Duration) -> Result<Vec<Received>> {
        let mut all = Vec::new();
        self.until(deadline, |message| {
            all.push(message);
            all.len() >= count
        })
        .await
        .map_err(|e| e.context(format!("{} of {count} messages", all.len())))?;
        Ok(all)
    }

    /// Hands messages to `enough` until it says so.
    pub async fn until(&self, deadline: Duration, mut enough: impl FnMut(Received) -> bool) -> Result<()> {
        let end = Instant::now() + deadline;
        loop {
            match self.consumer.poll(Duration::from_millis(10)) {
                Some(Ok(message)) => {
                    if enough(Received::of(&message)) {
                        return Ok(());
                    }
                }
                Some(Err(_)) | None if Instant::now() > end => bail!("not within {deadline:?} in topic {}", self.name),
                Some(Err(_)) | None => tokio::task::yield_now().await,
            }
        }
    }
}
