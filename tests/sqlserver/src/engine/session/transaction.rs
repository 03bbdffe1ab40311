//! A T-SQL transaction: what it has done, so that it can be undone.

use std::sync::Arc;

use rusqlite::{Connection, params};

use crate::engine::catalogue::Database;
use crate::engine::fault::Outcome;
use crate::value::SqlValue;

/// One step back; tables and rows by their ids.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Undo {
    Created {
        table: i32,
        row: i64,
    },
    /// The row was marked as ended.
    Closed {
        table: i32,
        row: i64,
    },
    /// The row has new values; the old ones are in another row.
    Replaced {
        table: i32,
        row: i64,
        old: i64,
    },
    /// An entry of the log.
    Logged {
        seq: i64,
    },
}

/// Which transactions' changes are seen.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    /// This one and later ones are not.
    pub(crate) next: u64,
    /// Of the earlier ones, these are not.
    pub(crate) open: Vec<u64>,
}

#[derive(Debug)]
pub(crate) struct Transaction {
    pub(crate) number: u64,
    pub(crate) undo: Vec<Undo>,
    /// Name and how much there was to undo.
    pub(crate) savepoints: Vec<(String, usize)>,
    /// Of `SNAPSHOT`, taken when the first data is read.
    pub(crate) snapshot: Option<Snapshot>,
    /// The snapshot is of one statement only (`READ_COMMITTED_SNAPSHOT`).
    pub(crate) for_statement: bool,
    /// `datetime` of the server's clock.
    pub(crate) began: SqlValue,
    /// Databases as they were before their first definition; `None`: created by it.
    pub(crate) definitions: Vec<(i32, Option<Arc<Database>>)>,
    /// Databases in which captured tables changed.
    pub(crate) logged_in: Vec<i32>,
    /// `__$command_id` of the statement that runs.
    pub(crate) command: i64,
}

impl Transaction {
    /// Takes back everything after the first `keep` steps.
    pub(crate) fn undo(&mut self, db: &Connection, keep: usize) -> Outcome<()> {
        db.execute_batch("BEGIN IMMEDIATE")?;
        let result = self.undo_rows(db, keep);
        db.execute_batch(if result.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        result
    }

    fn undo_rows(&mut self, db: &Connection, keep: usize) -> Outcome<()> {
        while self.undo.len() > keep {
            let Some(step) = self.undo.pop() else { break };
            match step {
                Undo::Created { table, row } => {
                    db.prepare_cached(&format!("DELETE FROM o{table} WHERE _row = ?1"))?.execute([row])?;
                }
                Undo::Closed { table, row } => {
                    db.prepare_cached(&format!("UPDATE o{table} SET _to = NULL WHERE _row = ?1"))?.execute([row])?;
                }
                Undo::Replaced { table, row, old } => {
                    db.prepare_cached(&format!("DELETE FROM o{table} WHERE _row = ?1"))?.execute([row])?;
                    db.prepare_cached(&format!("UPDATE o{table} SET _row = ?1, _to = NULL WHERE _row = ?2"))?
                        .execute(params![row, old])?;
                }
                Undo::Logged { seq } => {
                    db.prepare_cached("DELETE FROM _log WHERE seq = ?1")?.execute([seq])?;
                }
            }
        }
        Ok(())
    }

    /// Versions that only older snapshots see: table, row.
    pub(crate) fn closed(&self) -> impl Iterator<Item = (i32, i64)> {
        self.undo.iter().filter_map(|u| match u {
            Undo::Closed { table, row } => Some((*table, *row)),
            Undo::Replaced { table, old, .. } => Some((*table, *old)),
            _ => None,
        })
    }
}
