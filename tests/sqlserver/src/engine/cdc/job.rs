//! SQL Server Agent and its capture job: whether they run, and what the job has done.
//!
//! Follows "sys.dm_cdc_log_scan_sessions", "sys.sp_cdc_help_jobs", "dbo.cdc_jobs". The real views forget their
//! sessions when the server restarts; here only the last ones are kept.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use crate::engine::log::Lsn;
use crate::value::SqlValue;

/// So many scans are remembered.
const KEPT: usize = 100;

/// A row of `sys.dm_cdc_log_scan_sessions`.
#[derive(Debug, Clone)]
pub(crate) struct Scan {
    pub(crate) id: i32,
    pub(crate) database: i32,
    pub(crate) start: SqlValue,
    pub(crate) end: SqlValue,
    /// Of the first and the last transaction; zeros if there was none.
    pub(crate) first: Lsn,
    pub(crate) last: Lsn,
    pub(crate) transactions: i64,
    pub(crate) commands: i64,
}

/// Row of `msdb.dbo.cdc_jobs` for a database.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// Seconds.
    pub(crate) polling: i64,
    pub(crate) transactions: i64,
    pub(crate) scans: i64,
    /// Minutes.
    pub(crate) retention: i64,
    pub(crate) threshold: i64,
}

impl Default for Settings {
    /// "sys.sp_cdc_add_job".
    fn default() -> Self {
        Self { polling: 5, transactions: 500, scans: 10, retention: 4320, threshold: 5000 }
    }
}

#[derive(Debug, Default)]
struct State {
    agent: bool,
    captured: HashMap<i32, Lsn>,
    settings: HashMap<i32, Settings>,
    scans: VecDeque<Scan>,
    last_scan: i32,
}

#[derive(Debug, Default)]
pub(crate) struct Jobs {
    state: Mutex<State>,
}

impl Jobs {
    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn agent(&self) -> bool {
        self.with(|s| s.agent)
    }

    pub(crate) fn set_agent(&self, running: bool) {
        self.with(|s| s.agent = running);
    }

    /// The last number that the job of a database has reached.
    pub(crate) fn captured(&self, database: i32) -> Lsn {
        self.with(|s| s.captured.get(&database).copied().unwrap_or_default())
    }

    pub(crate) fn settings(&self, database: i32) -> Settings {
        self.with(|s| s.settings.get(&database).copied().unwrap_or_default())
    }

    pub(crate) fn change_settings(&self, database: i32, change: impl FnOnce(&mut Settings)) {
        self.with(|s| change(s.settings.entry(database).or_default()));
    }

    pub(crate) fn scans(&self) -> Vec<Scan> {
        self.with(|s| s.scans.iter().cloned().collect())
    }

    /// The log was read up to here, without any change.
    pub(crate) fn reached(&self, database: i32, lsn: Lsn) {
        self.with(|s| s.captured.insert(database, lsn));
    }

    /// A scan is over. Empty scans in a row are one session, as in the real view.
    pub(crate) fn scanned(&self, mut scan: Scan) {
        self.with(|s| {
            if scan.last > s.captured.get(&scan.database).copied().unwrap_or_default() {
                s.captured.insert(scan.database, scan.last);
            }
            let empty = scan.transactions == 0;
            match s.scans.back_mut() {
                Some(last) if empty && last.transactions == 0 && last.database == scan.database => last.end = scan.end,
                _ => {
                    s.last_scan += 1;
                    scan.id = s.last_scan;
                    s.scans.push_back(scan);
                    if s.scans.len() > KEPT {
                        s.scans.pop_front();
                    }
                }
            }
        });
    }
}
