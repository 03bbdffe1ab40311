//! A schema history that is gone with the process: for tests, and for sources that are always copied anew.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;

use super::store::{HistoryReader, HistoryStore};
use crate::error::Result;

/// Clones are the same history.
#[derive(Debug, Clone, Default)]
pub struct MemoryHistory {
    records: Arc<Mutex<Vec<Bytes>>>,
}

struct Reader(Option<Vec<Bytes>>);

#[async_trait]
impl HistoryStore for MemoryHistory {
    fn describe(&self) -> String {
        "memory".to_owned()
    }
    async fn prepare(&mut self) -> Result<()> {
        Ok(())
    }
    async fn append(&mut self, text: Bytes) -> Result<()> {
        self.records.lock().push(text);
        Ok(())
    }
    async fn read(&mut self) -> Result<Box<dyn HistoryReader>> {
        Ok(Box::new(Reader(Some(self.records.lock().clone()))))
    }
    fn compacts(&self) -> bool {
        true
    }
    async fn replace(&mut self, count: usize, texts: Vec<Bytes>) -> Result<()> {
        let mut records = self.records.lock();
        let count = count.min(records.len());
        records.splice(..count, texts);
        Ok(())
    }
}

#[async_trait]
impl HistoryReader for Reader {
    async fn next(&mut self) -> Result<Option<Vec<Bytes>>> {
        Ok(self.0.take().filter(|records| !records.is_empty()))
    }
}
