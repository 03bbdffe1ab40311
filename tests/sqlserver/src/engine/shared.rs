//! What all sessions share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OpenFlags};

use super::catalogue::Database;
use super::cdc::job::Jobs;
use super::fault::SqlError;
use super::functions::{self, Signatures};
use super::kinds::temporal::{self, DAY, DAY_1970};
use super::locks::Locks;
use super::log::Log;
use super::session::state::SessionState;
use super::world::World;
use crate::types::SqlType;
use crate::value::SqlValue;

/// SQLite waits so long for another writer, which holds on for one statement only.
const BUSY: Duration = Duration::from_secs(60);

pub(crate) struct Engine {
    pub(crate) signatures: Signatures,
    pub(crate) locks: Locks,
    pub(crate) log: Log,
    pub(crate) jobs: Jobs,
    /// Held while definitions change.
    pub(crate) world: RwLock<Arc<World>>,
    pub(crate) sessions: Mutex<BTreeMap<u16, Arc<SessionState>>>,
    /// Snapshots in use, by session: the lowest number that each may not see.
    pub(crate) snapshots: Mutex<BTreeMap<u16, u64>>,
    pub(crate) stopped: AtomicBool,
    /// Versions that ended while a snapshot was in use: number of the next transaction then, table, row.
    pub(crate) garbage: Mutex<Vec<(u64, i32, i64)>>,
    next_object: AtomicI32,
    next_timestamp: AtomicU64,
    utc_offset: i16,
    server_name: String,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl Engine {
    pub(crate) fn new(utc_offset: i16, server_name: &str, jobs: Jobs) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("rows.db");
        let db = Connection::open(&file)?;
        db.pragma_update(None, "journal_mode", "wal")?;
        db.execute_batch(
            "CREATE TABLE _log (seq INTEGER PRIMARY KEY, txn INTEGER, object INTEGER, operation INTEGER, lsn BLOB, before BLOB, after BLOB, command INTEGER);
             CREATE INDEX _log_txn ON _log (txn);
             CREATE TABLE _commits (lsn BLOB PRIMARY KEY, txn INTEGER, database INTEGER, began INTEGER, ended INTEGER);",
        )?;
        Ok(Self {
            signatures: Signatures::default(),
            locks: Locks::default(),
            log: Log::default(),
            jobs,
            world: RwLock::default(),
            sessions: Mutex::default(),
            snapshots: Mutex::default(),
            stopped: AtomicBool::new(false),
            garbage: Mutex::default(),
            next_object: AtomicI32::new(581_577_110),
            next_timestamp: AtomicU64::new(2000),
            utc_offset,
            server_name: server_name.into(),
            file,
            _folder: folder,
        })
    }

    /// A session's connection, with all functions.
    pub(crate) fn open(self: &Arc<Self>, session: &Arc<SessionState>) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(&self.file, flags)?;
        db.busy_timeout(BUSY)?;
        db.pragma_update(None, "synchronous", "off")?;
        db.set_prepared_statement_cache_capacity(256);
        functions::register(&db, self, session)?;
        Ok(db)
    }

    pub(crate) fn world(&self) -> Arc<World> {
        self.world.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn change_world(&self, change: impl FnOnce(&mut World)) {
        let mut world = self.world.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut world));
    }

    /// Puts a changed database in its place.
    pub(crate) fn put(&self, database: Database) {
        self.change_world(|w| w.put(Arc::new(database)));
    }

    /// For an object; the real server's ids jump as well.
    pub(crate) fn object_id(&self) -> i32 {
        self.next_object.fetch_add(16, Ordering::SeqCst)
    }

    /// The next value of a `rowversion` column.
    pub(crate) fn timestamp(&self) -> [u8; 8] {
        self.next_timestamp.fetch_add(1, Ordering::SeqCst).to_be_bytes()
    }

    /// Days and ticks of now, UTC.
    pub(crate) fn utc_now(&self) -> (i32, u64) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ticks = u64::try_from(since.as_nanos() / 100).unwrap_or(0);
        (DAY_1970 + (ticks / DAY) as i32, ticks % DAY)
    }

    /// Now as `datetime` on the server's clock.
    pub(crate) fn local_now(&self) -> SqlValue {
        let (days, ticks) = self.utc_now();
        let (days, ticks) = temporal::shift(days, ticks, self.utc_offset.into());
        temporal::Moment { days, ticks, offset: None }.into_value(&SqlType::DateTime).unwrap_or(SqlValue::Null)
    }

    /// Minutes east of UTC of the server's clock.
    pub(crate) fn utc_offset(&self) -> i16 {
        self.utc_offset
    }

    pub(crate) fn server_name(&self) -> &str {
        &self.server_name
    }

    pub(crate) fn version(&self) -> (u8, u8, u16) {
        (16, 0, 1000)
    }

    pub(crate) fn version_text(&self) -> String {
        let (major, minor, build) = self.version();
        format!(
            "Microsoft SQL Server 2022 (RTM) - {major}.{minor}.{build}.6 (X64) \n\tOct  8 2022 05:58:25 \n\tCopyright (C) 2022 Microsoft Corporation\n\tDeveloper Edition (64-bit) on Linux <X64>"
        )
    }

    /// The next free number and its state.
    pub(crate) fn session(&self, make: impl FnOnce(u16) -> SessionState) -> Result<Arc<SessionState>, SqlError> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let id = (51..u16::MAX).find(|id| !sessions.contains_key(id)).ok_or_else(|| {
            SqlError::new(17809, "Could not connect because the maximum number of user connections has been reached.")
                .class(20)
        })?;
        let state = Arc::new(make(id));
        sessions.insert(id, state.clone());
        Ok(state)
    }

    pub(crate) fn session_by_id(&self, id: u16) -> Option<Arc<SessionState>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// The lowest number that a snapshot in use may not see; what was closed before is garbage.
    pub(crate) fn oldest_snapshot(&self) -> Option<u64> {
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner).values().copied().min()
    }
}
