//! A disk that is full.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redb::StorageBackend;
use redb::backends::InMemoryBackend;
use thalweg_cluster::consensus::{Consensus, Formation, Settings};
use thalweg_cluster::raft::store::Store;
use thalweg_cluster::raft::{ProposeError, Proposer};

use crate::sim::{PATIENCE, Sim, create};

#[derive(Debug)]
struct Limited {
    memory: InMemoryBackend,
    full: Arc<AtomicBool>,
}

impl Limited {
    fn room(&self) -> io::Result<()> {
        if self.full.load(Ordering::SeqCst) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl StorageBackend for Limited {
    fn len(&self) -> io::Result<u64> {
        self.memory.len()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.memory.read(offset, out)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.room()?;
        self.memory.set_len(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.room()?;
        self.memory.sync_data()
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.room()?;
        self.memory.write(offset, data)
    }
}

/// The node stops taking part, says why and names the file; nothing hangs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_a_full_disk_ends_with_a_clear_message() {
    let sim = Sim::new(60);
    let full = Arc::new(AtomicBool::new(false));
    let backend = Limited { memory: InMemoryBackend::new(), full: full.clone() };
    let store = Store::open_backend(Path::new("data/raft.redb"), backend).unwrap();
    let settings = Settings { address: "a".into(), formation: Formation::Alone, timing: sim.timing.clone() };
    let node = Consensus::start_with(store, settings, sim.network.transport("a")).await.unwrap();
    let mut leading = node.leading();
    tokio::time::timeout(PATIENCE, leading.wait_for(Option::is_some)).await.unwrap().unwrap();
    node.propose(create("x")).await.unwrap();

    full.store(true, Ordering::SeqCst);
    let error = node.propose(create("y")).await.unwrap_err();
    assert!(matches!(error, ProposeError::Failed(_) | ProposeError::Unknown), "{error}");
    let mut failure = node.failure();
    let failure = tokio::time::timeout(PATIENCE, failure.wait_for(Option::is_some)).await.unwrap().unwrap().clone();
    let why = failure.unwrap();
    assert!(why.contains("no space left for data/raft.redb"), "{why}");
    assert_eq!(*node.leading().borrow(), None, "it grants nothing any more");
    assert!(node.propose(create("z")).await.is_err());
    assert!(node.view().read().connectors.contains_key("x"));
    tokio::time::timeout(PATIENCE, node.shutdown(Duration::ZERO)).await.unwrap();
}
