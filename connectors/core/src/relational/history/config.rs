//! What a configuration says of a schema history, and who opens its store.
//!
//! A file and memory need nothing but this crate. A Kafka topic and the state that nodes share are the runtime's
//! matter: it lends what opens them.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use thalweg_config::{Properties, Settings};

use super::file::FileHistory;
use super::memory::MemoryHistory;
use super::options::{HISTORY_PREFIXES, HistoryPlace};
use super::recover::Captured;
use super::store::HistoryStore;
use crate::error::{Error, Result};
use crate::position::SourcePartition;

/// `schema.history.internal` and what belongs to it.
#[derive(Debug, Clone)]
pub struct HistoryConfig {
    pub place: HistoryPlace,
    pub captured: Captured,
    /// `schema.history.internal.file.filename`.
    pub file: PathBuf,
    /// Meant only where `place` is Kafka.
    pub topic: HistoryTopic,
}

/// A history in Kafka: `schema.history.internal.kafka.*` and the settings of its clients.
#[derive(Clone)]
pub struct HistoryTopic {
    pub topic: String,
    /// `host:port` of its brokers, with commas between.
    pub bootstrap: String,
    /// Begins the ids of its clients.
    pub name: String,
    /// Settings of the Kafka clients, by Kafka's names. The node's and the connector's own do not count here.
    pub producer: Properties,
    pub consumer: Properties,
    pub query_timeout: Duration,
    pub create_timeout: Duration,
    /// Longest wait for records when the history is read.
    pub poll_interval: Duration,
    /// More waits in a row without a record are an error.
    pub attempts: u64,
    /// Most records that are read together.
    pub batch: usize,
}

impl fmt::Debug for HistoryTopic {
    /// Without the settings of clients, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HistoryTopic").field("topic", &self.topic).field("bootstrap", &self.bootstrap).finish()
    }
}

impl HistoryTopic {
    fn new(settings: &Settings, properties: &Properties) -> Self {
        let text = |name: &str| settings.text_or_empty(name).trim().to_owned();
        let number = |name: &str| settings.int(name).unsigned_abs();
        let [producer, consumer] = HISTORY_PREFIXES.map(|prefix| properties.below(prefix));
        let name = settings.text("schema.history.internal.name").map(|name| name.trim().to_owned());
        Self {
            topic: text("schema.history.internal.kafka.topic"),
            bootstrap: text("schema.history.internal.kafka.bootstrap.servers"),
            name: name.filter(|name| !name.is_empty()).unwrap_or_else(|| {
                format!("{}-schemahistory", properties.get("topic.prefix").unwrap_or_default().trim())
            }),
            producer,
            consumer,
            query_timeout: settings.millis("schema.history.internal.kafka.query.timeout.ms"),
            create_timeout: settings.millis("schema.history.internal.kafka.create.timeout.ms"),
            poll_interval: settings.millis("schema.history.internal.kafka.recovery.poll.interval.ms"),
            attempts: number("schema.history.internal.kafka.recovery.attempts"),
            batch: usize::try_from(number("schema.history.internal.kafka.buffer.batch.size")).unwrap_or(1).max(1),
        }
    }
}

impl HistoryConfig {
    /// From a valid configuration, older names of options replaced by the present ones.
    pub fn new(settings: &Settings, properties: &Properties) -> Self {
        Self {
            place: HistoryPlace::from_settings(settings),
            captured: Captured::from_settings(settings),
            file: settings.text_or_empty("schema.history.internal.file.filename").trim().into(),
            topic: HistoryTopic::new(settings, properties),
        }
    }
}

/// Opens the stores of one connector's histories.
pub trait HistoryStores: Send + Sync {
    /// The history of a partition. Partitions may share a store: records say whose they are.
    ///
    /// # Errors
    /// It cannot be had here.
    fn open(&self, config: &HistoryConfig, partition: &SourcePartition) -> Result<Box<dyn HistoryStore>>;
}

/// Files, and a memory that lives as long as this.
#[derive(Debug, Clone, Default)]
pub struct LocalStores {
    memory: MemoryHistory,
}

impl HistoryStores for LocalStores {
    fn open(&self, config: &HistoryConfig, _partition: &SourcePartition) -> Result<Box<dyn HistoryStore>> {
        match config.place {
            HistoryPlace::File => Ok(Box::new(FileHistory::new(&config.file))),
            HistoryPlace::Memory => Ok(Box::new(self.memory.clone())),
            HistoryPlace::Kafka | HistoryPlace::Replicated => {
                Err(Error::config("a schema history in Kafka or in the shared state needs a node")
                    .advise("set schema.history.internal to the class of the file history"))
            }
        }
    }
}
