//! Everything a node keeps: identity, vote, log, committed index and snapshot, in one redb file.
//!
//! ```text
//! table     key                     value (each a frame of `rpc::frame`)
//! meta      "header"                format of this file
//!           "identity"              node, cluster, number of starts
//!           "vote"                  last vote
//!           "committed"             last committed log id that was known; may lag
//!           "purged"                last log id that was purged
//! log       index                   entry
//! snapshot  "meta"                  what the snapshot covers
//!           "state"                 the state machine, encoded
//! ```
//!
//! One thread writes. It takes what is queued, puts it into one transaction in the order in which
//! it was handed in, commits (fsync), and only then answers: so a vote and the entries that depend
//! on it never change places, and many small appends cost one fsync. The newest entries are also
//! kept in memory, so that they can be read before they are durable and without the disk.
//!
//! Durability: votes, entries, identity, truncation, purge marker and snapshot are durable when
//! their answer comes. The committed index rides along with the next commit.
//!
//! Invariants: the log has no hole; entries up to the purge marker do not exist, even if the file
//! still holds some; a snapshot replaces the one before in one transaction; after a failed write
//! nothing is written any more and every caller is told why.
//!
//! It does not: know what a command or a snapshot means.

mod error;
mod log;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bincode::{Decode, Encode};
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use redb::{Database, ReadableDatabase, TableDefinition};
use tokio::sync::{mpsc, oneshot, watch};

pub use error::StoreError;
use log::Tail;
use write::{Done, Write, Writer};

use super::types::{LogId, LogIdRecord, MembershipRecord, SnapshotMeta, Vote, VoteRecord};
use super::unit::NodeId;
use crate::rpc::frame::{self, Kind, MAX_BODY};
use crate::rpc::transport::ClusterId;

const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");
const SNAPSHOT: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("snapshot");

const HEADER: &str = "header";
const IDENTITY: &str = "identity";
const VOTE: &str = "vote";
const COMMITTED: &str = "committed";
const PURGED: &str = "purged";
const SNAPSHOT_META: &str = "meta";
const SNAPSHOT_STATE: &str = "state";

/// Format of the file that this build reads and writes.
pub const FORMAT: u32 = 1;
/// Pages of the file that redb keeps in memory.
const PAGE_CACHE: usize = 4 << 20;
/// Writes that wait for the writer.
const QUEUE: usize = 1024;

/// Leads the file: whether this build can read it, and whether a change of format was interrupted.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
struct Header {
    format: u32,
    /// A conversion to that format has begun and not ended.
    upgrading: Option<u32>,
    /// The conversion is done, remains of the old format are being removed.
    cleaning: bool,
}

/// Who the node is.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Identity {
    /// Drawn once per file, so that a node whose disk was lost never bears an id that voted before.
    pub node: NodeId,
    pub cluster: Option<ClusterId>,
    /// Number of starts.
    pub incarnation: u64,
    /// The node has been taken out of its cluster for good.
    pub left: bool,
}

/// Handle to the store; clones share it.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    /// Gone once the store is closed, so that the file is free although a handle remains.
    database: RwLock<Option<Arc<Database>>>,
    identity: Mutex<Identity>,
    tail: Mutex<Tail>,
    queue: mpsc::Sender<Write>,
    failure: watch::Receiver<Option<StoreError>>,
    writer: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Store {
    /// Opens the file, or makes it; counts the start. Blocks on the disk.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let exists = path.try_exists().map_err(|e| StoreError::io(path, &e))?;
        if !exists {
            create(path)?;
        }
        let opened = guarded(path, || builder().open(path).map_err(|e| StoreError::database(path, e)))?;
        Self::start(path, opened)
    }

    /// As [`Store::open`], over any backend of redb. `path` is for messages.
    pub fn open_backend(path: &Path, backend: impl redb::StorageBackend) -> Result<Self, StoreError> {
        let database =
            guarded(path, || builder().create_with_backend(backend).map_err(|e| StoreError::database(path, e)))?;
        if guarded(path, || is_empty(&database).map_err(|e| StoreError::storage(path, e)))? {
            initialise(path, &database)?;
        }
        Self::start(path, database)
    }

    fn start(path: &Path, database: Database) -> Result<Self, StoreError> {
        let (identity, tail) = guarded(path, || {
            let identity = count_start(path, &database)?;
            Ok((identity, Tail::read(path, &database)?))
        })?;
        let database = Arc::new(database);
        let (queue, queued) = mpsc::channel(QUEUE);
        let (failed, failure) = watch::channel(None);
        let writer = Writer::new(path.to_owned(), database.clone(), failed);
        let inner = Arc::new(Inner {
            path: path.to_owned(),
            database: RwLock::new(Some(database)),
            identity: Mutex::new(identity),
            tail: Mutex::new(tail),
            queue,
            failure,
            writer: Mutex::new(None),
        });
        let flushed = Arc::downgrade(&inner);
        let thread = std::thread::Builder::new()
            .name("raft-log".into())
            .spawn(move || writer.run(queued, &flushed))
            .map_err(|e| StoreError::io(path, &e))?;
        *inner.writer.lock() = Some(thread);
        Ok(Self { inner })
    }

    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    pub fn identity(&self) -> Identity {
        self.inner.identity.lock().clone()
    }

    /// Why nothing can be written any more.
    pub fn failure(&self) -> watch::Receiver<Option<StoreError>> {
        self.inner.failure.clone()
    }

    /// It holds no entry and no snapshot, so it cannot remember anything a cluster agreed on.
    pub fn is_pristine(&self) -> bool {
        let tail = self.inner.tail.lock();
        tail.last.is_none() && !tail.snapshot
    }

    pub async fn set_cluster(&self, cluster: ClusterId) -> Result<(), StoreError> {
        self.change_identity(|identity| identity.cluster = Some(cluster)).await
    }

    /// The node has been taken out of its cluster; it will not start from this file again.
    pub async fn set_left(&self) -> Result<(), StoreError> {
        self.change_identity(|identity| identity.left = true).await
    }

    async fn change_identity(&self, change: impl FnOnce(&mut Identity)) -> Result<(), StoreError> {
        let mut identity = self.identity();
        change(&mut identity);
        let frame = self.encode(Kind::Identity, &identity)?;
        self.write(|done| Write::Meta { key: IDENTITY, frame, done }).await?;
        *self.inner.identity.lock() = identity;
        Ok(())
    }

    /// The newest snapshot (a frame, unchecked) and what it covers.
    pub async fn snapshot(&self) -> Result<Option<(SnapshotMeta, Bytes)>, StoreError> {
        self.blocking(|path, database| {
            let read = database.begin_read().map_err(|e| StoreError::storage(path, e))?;
            let table = read.open_table(SNAPSHOT).map_err(|e| StoreError::storage(path, e))?;
            let row = |key: &str| table.get(key).map_err(|e| StoreError::storage(path, e));
            let (Some(meta), Some(state)) = (row(SNAPSHOT_META)?, row(SNAPSHOT_STATE)?) else { return Ok(None) };
            let meta: SnapshotMetaRecord = frame::decode(Kind::SnapshotMeta, meta.value(), MAX_BODY)
                .map_err(|e| StoreError::corrupt(path, "snapshot", &e))?;
            let meta = meta.meta().map_err(|e| StoreError::corrupt(path, "snapshot", &e))?;
            Ok(Some((meta, Bytes::copy_from_slice(state.value()))))
        })
        .await
    }

    /// Replaces the snapshot. `state` is a frame of kind [`Kind::Snapshot`].
    pub async fn save_snapshot(&self, meta: &SnapshotMeta, state: Bytes) -> Result<(), StoreError> {
        let meta = self.encode(Kind::SnapshotMeta, &SnapshotMetaRecord::from(meta))?;
        self.write(|done| Write::Snapshot { meta, state, done }).await?;
        let mut tail = self.inner.tail.lock();
        tail.snapshot = true;
        tail.logged = 0;
        Ok(())
    }

    /// Encoded size of the entries appended since the last snapshot, or since the start.
    pub fn bytes_since_snapshot(&self) -> u64 {
        self.inner.tail.lock().logged
    }

    /// Writes what is queued, ends the writer and gives the file back. Later reads and writes fail.
    pub async fn close(&self) {
        // If the writer has ended already there is nothing to wait for.
        let _ = self.write(|done| Write::Stop { done }).await;
        let thread = self.inner.writer.lock().take();
        if let Some(thread) = thread {
            // A panic of the writer has been reported as a failure.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
        let database = self.inner.database.write().take();
        // Closing reads and writes the file.
        let _ = tokio::task::spawn_blocking(move || drop(database)).await;
    }

    async fn write(&self, write: impl FnOnce(Done) -> Write) -> Result<(), StoreError> {
        let (done, answer) = oneshot::channel();
        self.enqueue(write(Done::Asked(done))).await?;
        answer.await.unwrap_or_else(|_| Err(self.closed()))
    }

    async fn enqueue(&self, write: Write) -> Result<(), StoreError> {
        self.inner.queue.send(write).await.map_err(|_| self.closed())
    }

    fn closed(&self) -> StoreError {
        let failure = self.inner.failure.borrow().clone();
        failure.unwrap_or_else(|| StoreError::Closed { path: self.inner.path.clone() })
    }

    fn encode(&self, kind: Kind, value: &impl Encode) -> Result<Vec<u8>, StoreError> {
        frame::encode(kind, value, MAX_BODY)
            .map_err(|e| StoreError::Unwritable { path: self.inner.path.clone(), why: e.to_string() })
    }

    /// Reads off the runtime's workers.
    async fn blocking<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Path, &Database) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = self.inner.clone();
        let database = self.inner.database.read().clone().ok_or_else(|| self.closed())?;
        let done = tokio::task::spawn_blocking(move || read(&inner.path, &database)).await;
        done.unwrap_or_else(|e| Err(StoreError::corrupt(&self.inner.path, "file", &e)))
    }
}

/// What a snapshot covers, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct SnapshotMetaRecord {
    pub last: Option<LogIdRecord>,
    pub membership: MembershipRecord,
}

impl From<&SnapshotMeta> for SnapshotMetaRecord {
    fn from(meta: &SnapshotMeta) -> Self {
        Self { last: meta.last_log_id.as_ref().map(Into::into), membership: (&meta.last_membership).into() }
    }
}

impl SnapshotMetaRecord {
    pub(crate) fn meta(self) -> Result<SnapshotMeta, String> {
        Ok(SnapshotMeta { last_log_id: self.last.map(LogId::from), last_membership: self.membership.stored()? })
    }
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(PAGE_CACHE);
    // Costs one reading of the file, some milliseconds per ten megabytes: a damaged page is an error
    // now instead of a panic later.
    builder.set_check_integrity_on_open(true);
    builder
}

/// Makes the file under another name first, so that a crash leaves none or a whole one.
fn create(path: &Path) -> Result<(), StoreError> {
    let io = |e: std::io::Error| StoreError::io(path, &e);
    let directory = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory).map_err(io)?;
    let draft = path.with_extension("new");
    match std::fs::remove_file(&draft) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(io(e)),
        _ => {}
    }
    let database = builder().create(&draft).map_err(|e| StoreError::database(path, e))?;
    initialise(path, &database)?;
    drop(database);
    std::fs::rename(&draft, path).map_err(io)?;
    std::fs::File::open(directory).and_then(|d| d.sync_all()).map_err(io)
}

fn is_empty(database: &Database) -> Result<bool, redb::Error> {
    Ok(database.begin_read()?.list_tables()?.next().is_none())
}

fn initialise(path: &Path, database: &Database) -> Result<(), StoreError> {
    let header = Header { format: FORMAT, upgrading: None, cleaning: false };
    let identity = Identity { node: new_node_id(), cluster: None, incarnation: 0, left: false };
    let encode = |e: frame::FrameError| StoreError::Unwritable { path: path.to_owned(), why: e.to_string() };
    let header = frame::encode(Kind::StoreHeader, &header, MAX_BODY).map_err(encode)?;
    let identity = frame::encode(Kind::Identity, &identity, MAX_BODY).map_err(encode)?;
    let work = || -> Result<(), redb::Error> {
        let write = database.begin_write()?;
        {
            let mut meta = write.open_table(META)?;
            meta.insert(HEADER, header.as_slice())?;
            meta.insert(IDENTITY, identity.as_slice())?;
            write.open_table(LOG)?;
            write.open_table(SNAPSHOT)?;
        }
        Ok(write.commit()?)
    };
    work().map_err(|e| StoreError::storage(path, e))
}

/// 53 random bits, never 0: exact in JSON as well, and two nodes never draw the same.
fn new_node_id() -> NodeId {
    let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
    ((high ^ low.rotate_left(7)) >> 11).max(1)
}

/// Checks header and identity, and counts the start of this process.
fn count_start(path: &Path, database: &Database) -> Result<Identity, StoreError> {
    let storage = |e: redb::Error| StoreError::storage(path, e);
    let read = |key: &str| -> Result<Option<Vec<u8>>, redb::Error> {
        let table = match database.begin_read()?.open_table(META) {
            Ok(table) => table,
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        Ok(table.get(key)?.map(|row| row.value().to_vec()))
    };
    let missing = |what: &'static str| StoreError::corrupt(path, what, &"it is missing");
    let header = read(HEADER).map_err(storage)?.ok_or_else(|| missing("header"))?;
    let header: Header = match frame::decode(Kind::StoreHeader, &header, MAX_BODY) {
        Ok(header) => header,
        Err(frame::FrameError::UnknownVersion { found }) => {
            return Err(StoreError::Newer { path: path.to_owned(), found: u32::from(found), known: FORMAT });
        }
        Err(e) => return Err(StoreError::corrupt(path, "header", &e)),
    };
    let newest = header.upgrading.map_or(header.format, |to| to.max(header.format));
    if newest > FORMAT {
        return Err(StoreError::Newer { path: path.to_owned(), found: newest, known: FORMAT });
    }
    if header.format != FORMAT || header.upgrading.is_some() || header.cleaning {
        return Err(StoreError::corrupt(path, "header", &format_args!("{header:?} never existed")));
    }
    let identity = read(IDENTITY).map_err(storage)?.ok_or_else(|| missing("identity"))?;
    let mut identity: Identity =
        frame::decode(Kind::Identity, &identity, MAX_BODY).map_err(|e| StoreError::corrupt(path, "identity", &e))?;
    if identity.left {
        return Err(StoreError::Left { path: path.to_owned(), node: identity.node });
    }
    identity.incarnation += 1;
    let counted = frame::encode(Kind::Identity, &identity, MAX_BODY)
        .map_err(|e| StoreError::Unwritable { path: path.to_owned(), why: e.to_string() })?;
    let count = || -> Result<(), redb::Error> {
        let write = database.begin_write()?;
        write.open_table(META)?.insert(IDENTITY, counted.as_slice())?;
        Ok(write.commit()?)
    };
    count().map_err(storage)?;
    Ok(identity)
}

/// redb may panic over a damaged file; that is an error like any other here.
fn guarded<T>(path: &Path, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(StoreError::corrupt(path, "file", &"its pages do not fit together")))
}

impl VoteRecord {
    fn read(path: &Path, frame: &[u8]) -> Result<Vote, StoreError> {
        let record: Self =
            frame::decode(Kind::Vote, frame, MAX_BODY).map_err(|e| StoreError::corrupt(path, "vote", &e))?;
        Ok(record.into())
    }
}

impl LogIdRecord {
    fn read(path: &Path, frame: &[u8]) -> Result<LogId, StoreError> {
        let record: Self =
            frame::decode(Kind::LogId, frame, MAX_BODY).map_err(|e| StoreError::corrupt(path, "log id", &e))?;
        Ok(record.into())
    }
}
