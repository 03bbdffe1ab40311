//! The part of a session that functions, views and other sessions see.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::catalogue::Table;
use crate::engine::fault::SqlError;
use crate::engine::kinds::text::same_name;
use crate::session::{Isolation, Login};
use crate::value::SqlValue;

#[derive(Debug)]
pub(crate) struct SessionState {
    pub(crate) id: u16,
    pub(crate) login: Login,
    /// `datetime` of the server's clock.
    pub(crate) since: SqlValue,
    killed: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    /// `database_id`.
    pub(crate) database: i32,
    pub(crate) isolation: Isolation,
    /// Milliseconds; `None` waits for ever.
    pub(crate) lock_timeout: Option<i32>,
    pub(crate) deadlock_priority: i32,
    pub(crate) nocount: bool,
    pub(crate) xact_abort: bool,
    pub(crate) implicit: bool,
    /// Table that takes values for its identity column.
    pub(crate) identity_insert: Option<i32>,
    /// `SET ROWCOUNT`; 0: all.
    pub(crate) row_limit: u64,
    pub(crate) trancount: u32,
    /// The transaction can only be rolled back.
    pub(crate) doomed: bool,
    /// Number of the open transaction.
    pub(crate) transaction: Option<u64>,
    pub(crate) rowcount: i64,
    pub(crate) error: u32,
    pub(crate) identity: Option<i64>,
    /// What `CATCH` has caught, and the line.
    pub(crate) caught: Option<(SqlError, u32)>,
    /// Days and ticks, UTC.
    pub(crate) statement_time: (i32, u64),
    pub(crate) running: bool,
    /// Temporary tables and table variables.
    pub(crate) temporary: Vec<Arc<Table>>,
}

impl SessionState {
    pub(crate) fn new(id: u16, login: Login, database: i32, since: SqlValue) -> Self {
        Self { id, login, since, killed: AtomicBool::new(false), inner: Mutex::new(Inner::new(database)) }
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&Inner) -> T) -> T {
        read(&self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        change(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn database(&self) -> i32 {
        self.read(|s| s.database)
    }

    pub(crate) fn statement_time(&self) -> (i32, u64) {
        self.read(|s| s.statement_time)
    }

    pub(crate) fn temporary(&self, name: &str) -> Option<Arc<Table>> {
        self.read(|s| s.temporary.iter().find(|t| same_name(&t.name, name)).cloned())
    }

    pub(crate) fn kill(&self) {
        self.killed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn killed(&self) -> bool {
        self.killed.load(Ordering::SeqCst)
    }
}

impl Inner {
    /// As after a login.
    pub(crate) fn new(database: i32) -> Self {
        Self {
            database,
            isolation: Isolation::ReadCommitted,
            lock_timeout: None,
            deadlock_priority: 0,
            nocount: false,
            xact_abort: false,
            implicit: false,
            identity_insert: None,
            row_limit: 0,
            trancount: 0,
            doomed: false,
            transaction: None,
            rowcount: 0,
            error: 0,
            identity: None,
            caught: None,
            statement_time: (0, 0),
            running: false,
            temporary: Vec::new(),
        }
    }
}
