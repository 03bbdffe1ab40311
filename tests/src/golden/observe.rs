//! Everything that a run writes to Kafka: the topics that belong to it are found as they appear and read
//! from their beginning, committed messages only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use thalweg_services::Received;

/// Between two looks at the list of topics.
const LIST_EVERY: Duration = Duration::from_millis(300);
/// Between two looks at the awaited condition while no message comes.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const ANSWER: Duration = Duration::from_secs(10);

pub(super) struct Observer {
    consumer: Arc<StreamConsumer>,
    bootstrap: String,
    prefix: String,
    /// Topics that never fall quiet.
    steady: BTreeSet<String>,
    topics: BTreeMap<String, Vec<Received>>,
    assigned: BTreeSet<(String, i32)>,
    listed: Option<Instant>,
    /// When the last message came, in a topic that falls quiet.
    last: Instant,
}

impl Observer {
    /// Of the topics whose names start with `prefix`, and of its heartbeats.
    pub(super) fn new(bootstrap: &str, prefix: &str, steady: impl IntoIterator<Item = String>) -> Result<Self> {
        let consumer: StreamConsumer = ClientConfig::new()
            .set("bootstrap.servers", bootstrap)
            .set("group.id", format!("golden-{prefix}"))
            .set("enable.auto.commit", "false")
            .set("auto.offset.reset", "earliest")
            .set("fetch.wait.max.ms", "50")
            .set("fetch.message.max.bytes", "20000000")
            .set("receive.message.max.bytes", "110000000")
            .set("log_level", "0")
            .create()?;
        Ok(Self {
            consumer: Arc::new(consumer),
            bootstrap: bootstrap.to_owned(),
            prefix: prefix.to_owned(),
            steady: steady.into_iter().collect(),
            topics: BTreeMap::new(),
            assigned: BTreeSet::new(),
            listed: None,
            last: Instant::now(),
        })
    }

    /// Topics of the run, empty ones included, each in the order of partition and offset.
    pub(super) fn topics(&self) -> BTreeMap<&str, Vec<&Received>> {
        let sorted = self.topics.iter().map(|(name, messages)| {
            let mut messages: Vec<&Received> = messages.iter().collect();
            messages.sort_by_key(|m| (m.partition, m.offset));
            (name.as_str(), messages)
        });
        sorted.collect()
    }

    pub(super) fn count(&self, topic: &str) -> usize {
        self.topics.get(topic).map_or(0, Vec::len)
    }

    /// Messages of all topics but one, and but those that never fall quiet.
    pub(super) fn count_without(&self, topic: &str) -> usize {
        let counted = self.topics.iter().filter(|(name, _)| *name != topic && !self.steady.contains(*name));
        counted.map(|(_, messages)| messages.len()).sum()
    }

    /// Reads until `done`, for so long at most. Whether it is done.
    pub(super) async fn read_until(&mut self, limit: Duration, done: impl Fn(&Self) -> bool) -> Result<bool> {
        let end = Instant::now() + limit;
        while !done(self) {
            if Instant::now() > end {
                return Ok(false);
            }
            self.find_topics().await?;
            let received = match tokio::time::timeout(LOOK_EVERY, self.consumer.recv()).await {
                Ok(Ok(message)) => Received::of(&message),
                // A partition without a leader yet, or nothing new.
                Ok(Err(_)) | Err(_) => continue,
            };
            if !self.steady.contains(&received.topic) {
                self.last = Instant::now();
            }
            self.topics.entry(received.topic.clone()).or_default().push(received);
        }
        Ok(true)
    }

    /// Reads until no message came for so long.
    pub(super) async fn read_until_quiet(&mut self, quiet: Duration) -> Result<()> {
        self.last = Instant::now();
        self.read_until(quiet + Duration::from_secs(60), |o| o.last.elapsed() > quiet).await?;
        Ok(())
    }

    async fn find_topics(&mut self) -> Result<()> {
        if self.listed.is_some_and(|at| at.elapsed() < LIST_EVERY) {
            return Ok(());
        }
        let consumer = self.consumer.clone();
        let metadata = tokio::task::spawn_blocking(move || consumer.fetch_metadata(None, ANSWER)).await?;
        let metadata = metadata.context("listing topics")?;
        self.listed = Some(Instant::now());
        let heartbeats = format!("__debezium-heartbeat.{}", self.prefix);
        let mut fresh = TopicPartitionList::new();
        for topic in metadata.topics().iter().filter(|t| t.name().starts_with(&self.prefix) || t.name() == heartbeats) {
            self.topics.entry(topic.name().to_owned()).or_default();
            for partition in topic.partitions() {
                if self.assigned.insert((topic.name().to_owned(), partition.id())) {
                    fresh.add_partition_offset(topic.name(), partition.id(), Offset::Beginning)?;
                }
            }
        }
        if fresh.count() > 0 {
            self.consumer.incremental_assign(&fresh)?;
        }
        Ok(())
    }

    /// Deletes the topics of the run: hundreds of them would cost the broker memory.
    pub(super) async fn delete_topics(&self) -> Result<()> {
        let admin: AdminClient<DefaultClientContext> =
            ClientConfig::new().set("bootstrap.servers", &self.bootstrap).set("log_level", "0").create()?;
        let names: Vec<&str> = self.topics.keys().map(String::as_str).collect();
        if !names.is_empty() {
            admin.delete_topics(&names, &AdminOptions::new().operation_timeout(Some(ANSWER))).await?;
        }
        Ok(())
    }
}
