//! openraft's conformance suite, over a file and over a store that crashes after every write.

use std::fmt::Debug;
use std::io;
use std::ops::RangeBounds;

use openraft::storage::{IOFlushed, RaftLogReader};
use openraft::testing::log::{StoreBuilder, Suite};
use openraft::{LogState, OptionalSend};
use parking_lot::Mutex;
use tempfile::TempDir;

use super::disk::Disk;
use super::*;
use crate::raft::machine::Machine;
use crate::raft::types::{StorageError, TypeConfig};

struct OnFile;

impl StoreBuilder<TypeConfig, Store, Machine, TempDir> for OnFile {
    async fn build(&self) -> Result<(TempDir, Store, Machine), StorageError> {
        let dir = TempDir::new().unwrap();
        let store = Store::open(&dir.path().join("raft.redb")).unwrap();
        let machine = Machine::open(store.clone()).await.unwrap();
        Ok((dir, store, machine))
    }
}

#[tokio::test]
async fn conformance() {
    Suite::test_all(OnFile).await.unwrap();
}

/// After every write the power fails, and the store is opened from what is left.
#[derive(Clone)]
struct Crashing {
    disk: Arc<Mutex<Disk>>,
    store: Arc<Mutex<Store>>,
    crashes: Arc<Mutex<u64>>,
}

impl Crashing {
    fn new() -> Self {
        let disk = Disk::default();
        let store = Store::open_backend(Path::new("disk"), disk.clone()).unwrap();
        Self { disk: Arc::new(Mutex::new(disk)), store: Arc::new(Mutex::new(store)), crashes: Arc::default() }
    }

    fn now(&self) -> Store {
        self.store.lock().clone()
    }

    fn crash(&self) {
        let mut crashes = self.crashes.lock();
        *crashes += 1;
        let left = self.disk.lock().after_power_failure(*crashes);
        *self.store.lock() = Store::open_backend(Path::new("disk"), left.clone()).unwrap();
        *self.disk.lock() = left;
    }
}

impl RaftLogReader<TypeConfig> for Crashing {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> io::Result<Vec<Entry>> {
        self.now().try_get_log_entries(range).await
    }
    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> io::Result<Vec<Entry>> {
        self.now().limited_get_log_entries(start, end).await
    }
    async fn read_vote(&mut self) -> io::Result<Option<Vote>> {
        self.now().read_vote().await
    }
}

impl RaftLogStorage<TypeConfig> for Crashing {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> io::Result<LogState<TypeConfig>> {
        self.now().get_log_state().await
    }
    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }
    async fn save_vote(&mut self, vote: &Vote) -> io::Result<()> {
        self.now().save_vote(vote).await?;
        self.crash();
        Ok(())
    }
    async fn save_committed(&mut self, committed: Option<LogId>) -> io::Result<()> {
        let mut store = self.now();
        store.save_committed(committed).await?;
        // It rides along with the next durable write; here that is the end of the store.
        store.close().await;
        self.crash();
        Ok(())
    }
    async fn read_committed(&mut self) -> io::Result<Option<LogId>> {
        self.now().read_committed().await
    }
    async fn append<I>(&mut self, entries: I, callback: IOFlushed<TypeConfig>) -> io::Result<()>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        self.now().blocking_append(entries).await.map_err(io::Error::other)?;
        self.crash();
        callback.io_completed(Ok(()));
        Ok(())
    }
    async fn truncate_after(&mut self, last: Option<LogId>) -> io::Result<()> {
        self.now().truncate_after(last).await?;
        self.crash();
        Ok(())
    }
    async fn purge(&mut self, upto: LogId) -> io::Result<()> {
        self.now().purge(upto).await?;
        self.crash();
        Ok(())
    }
}

struct OnCrashingDisk;

impl StoreBuilder<TypeConfig, Crashing, Machine, TempDir> for OnCrashingDisk {
    async fn build(&self) -> Result<(TempDir, Crashing, Machine), StorageError> {
        // The state machine has its own file: the suite expects its memory to last.
        let dir = TempDir::new().unwrap();
        let store = Store::open(&dir.path().join("raft.redb")).unwrap();
        Ok((dir, Crashing::new(), Machine::open(store).await.unwrap()))
    }
}

#[tokio::test]
async fn conformance_with_a_crash_after_every_write() {
    Suite::test_all(OnCrashingDisk).await.unwrap();
}
