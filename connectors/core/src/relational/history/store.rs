//! Where a schema history is kept: a log of texts that only grows.
//!
//! One that is in the memory of all nodes would grow for ever: such a store can be made shorter by putting other
//! texts in the place of its first ones (`replace`).
//!
//! A store keeps texts and their order and knows nothing of what they say, so that a Kafka topic, the replicated
//! state of the nodes, a file and memory are the same to the rest.

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::{Error, ErrorKind, Phase, Result};

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

    /// Whether [`HistoryStore::replace`] is wanted when the history is long.
    fn compacts(&self) -> bool {
        false
    }

    /// Puts `texts` in the place of the first `count` records that the last reader gave; those behind them stay.
    /// All at once: whoever reads sees the old ones or the new ones.
    ///
    /// # Errors
    /// The old ones or the new ones are there. Also where [`HistoryStore::compacts`] is false.
    async fn replace(&mut self, count: usize, texts: Vec<Bytes>) -> Result<()> {
        let (history, texts) = (self.describe(), texts.len());
        let message = format!("{count} records of the schema history in {history} cannot be replaced by {texts}");
        Err(Error::new(ErrorKind::Internal, Phase::Start, message))
    }
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
