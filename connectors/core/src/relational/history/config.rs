//! What a configuration says of a schema history, and who opens its store.
//!
//! A file and memory need nothing but this crate. A Kafka topic and the state that nodes share are the runtime's
//! matter: it lends what opens them.

use std::path::PathBuf;

use thalweg_config::{Properties, Settings};

use super::file::FileHistory;
use super::memory::MemoryHistory;
use super::options::HistoryPlace;
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
}

impl HistoryConfig {
    /// From a valid configuration.
    pub fn new(settings: &Settings, _properties: &Properties) -> Self {
        Self {
            place: HistoryPlace::from_settings(settings),
            captured: Captured::from_settings(settings),
            file: settings.text_or_empty("schema.history.internal.file.filename").trim().into(),
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
