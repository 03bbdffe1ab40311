//! Where a schema history is kept: a log of texts that only grows.
//!
//! A store keeps texts and their order and knows nothing of what they say, so that a Kafka topic, the replicated
//! state of the nodes, a file and memory are the same to the rest.

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::Result;

#[async_trait]
pub trait HistoryStore: Send + Sync {
    /// What it is, for messages: `topic hist.s1`.
    fn describe(&self) -> String;

    /// Makes what is missing, and tells of settings that would lose records. Called once, before anything else.
    ///
    /// # Errors
    /// It cannot be made or reached.
    async fn prepare(&mut self) -> Result<()>;

    /// Adds a record. When this returns, the record is durable and stands behind all earlier ones.
    ///
    /// # Errors
    /// It may or may not be there. A record that is there twice does no harm.
    async fn append(&mut self, text: Bytes) -> Result<()>;

    /// A reader of the records that are there now, from the first to the last one.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn read(&mut self) -> Result<Box<dyn HistoryReader>>;
}

#[async_trait]
pub trait HistoryReader: Send {
    /// The next records in order, as many as are handy; `None` behind the last. A record without a text is an
    /// empty one.
    ///
    /// # Errors
    /// The rest cannot be read: what was read so far must not be used.
    async fn next(&mut self) -> Result<Option<Vec<Bytes>>>;
}
