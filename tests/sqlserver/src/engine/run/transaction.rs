//! Beginning and ending transactions.
//!
//! Follows "BEGIN TRANSACTION", "COMMIT TRANSACTION", "ROLLBACK TRANSACTION", "SAVE TRANSACTION",
//! "Snapshot isolation in SQL Server".

use std::sync::PoisonError;

use rusqlite::params;

use super::batch::Runner;
use crate::engine::fault::{Fault, Outcome, SqlError};
use crate::engine::kinds::stored;
use crate::engine::kinds::text::same_name;
use crate::engine::session::transaction::{Snapshot, Transaction};
use crate::session::{Answers, Change, Isolation};
use crate::types::SqlType;

impl Runner {
    fn open_transaction(&mut self) -> u64 {
        let number = self.engine.locks.begin(self.state.id);
        self.transaction = Some(Transaction {
            number,
            undo: Vec::new(),
            savepoints: Vec::new(),
            snapshot: None,
            for_statement: false,
            began: self.engine.local_now(),
            definitions: Vec::new(),
            logged_in: Vec::new(),
            command: 0,
        });
        self.state.change(|s| s.transaction = Some(number));
        number
    }

    pub(crate) fn begin(&mut self, name: &str, answers: &mut dyn Answers) -> Outcome<()> {
        let count = self.state.change(|s| {
            s.trancount += 1;
            s.trancount
        });
        if count == 1 {
            let number = self.open_transaction();
            if !name.is_empty()
                && let Some(transaction) = &mut self.transaction
            {
                // A rollback by the transaction's own name takes back everything.
                transaction.savepoints.push((name.to_owned(), 0));
            }
            answers.change(&Change::Begun(number))?;
        }
        Ok(())
    }

    pub(crate) fn commit(&mut self, answers: &mut dyn Answers) -> Outcome<()> {
        let (count, doomed) = self.state.read(|s| (s.trancount, s.doomed));
        match count {
            0 => {
                return Err(SqlError::new(
                    3902,
                    "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.",
                )
                .into());
            }
            _ if doomed => {
                let text = "The current transaction cannot be committed and cannot support operations that write to the log file. Roll back the transaction.";
                return Err(SqlError::new(3930, text).into());
            }
            1 => {}
            _ => {
                self.state.change(|s| s.trancount -= 1);
                return Ok(());
            }
        }
        let number = self.transaction.as_ref().map_or(0, |t| t.number);
        self.commit_all()?;
        answers.change(&Change::Committed(number))?;
        Ok(())
    }

    /// Ends the transaction, whatever its depth.
    pub(crate) fn commit_all(&mut self) -> Outcome<()> {
        let Some(transaction) = self.transaction.take() else { return Ok(()) };
        let result = if transaction.undo.is_empty() { Ok(()) } else { self.write_commit(&transaction) };
        self.over(&transaction);
        result
    }

    fn write_commit(&mut self, transaction: &Transaction) -> Outcome<()> {
        self.db.execute_batch("BEGIN IMMEDIATE")?;
        let result = (|| -> Outcome<()> {
            for database in &transaction.logged_in {
                let lsn = self.engine.log.commit();
                let time = |v| stored::encode(v, &SqlType::DateTime);
                self.db.prepare_cached("INSERT INTO _commits VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(params![
                    lsn.stored(),
                    transaction.number,
                    database,
                    time(&transaction.began),
                    time(&self.engine.local_now())
                ])?;
            }
            if self.engine.oldest_snapshot().is_some() {
                let (next, _) = self.engine.locks.moment(0);
                let mut garbage = self.engine.garbage.lock().unwrap_or_else(PoisonError::into_inner);
                garbage.extend(transaction.closed().map(|(table, row)| (next, table, row)));
            } else {
                for (table, row) in transaction.closed() {
                    self.db.prepare_cached(&format!("DELETE FROM o{table} WHERE _row = ?1"))?.execute([row])?;
                }
            }
            Ok(())
        })();
        self.db.execute_batch(if result.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        result
    }

    /// A rollback of everything, or to a savepoint.
    pub(crate) fn rollback(&mut self, name: &str, answers: &mut dyn Answers) -> Outcome<()> {
        if self.state.read(|s| s.trancount) == 0 {
            return Err(SqlError::new(
                3903,
                "The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION.",
            )
            .into());
        }
        let Some(transaction) = &mut self.transaction else { return Ok(()) };
        if !name.is_empty() {
            let Some(at) = transaction.savepoints.iter().rposition(|(n, _)| same_name(n, name)) else {
                let text = format!("Cannot roll back {name}. No transaction or savepoint of that name was found.");
                return Err(SqlError::new(6401, text).into());
            };
            let keep = transaction.savepoints[at].1;
            transaction.savepoints.truncate(at + 1);
            transaction.undo(&self.db, keep)?;
            if at > 0 || keep > 0 {
                return Ok(());
            }
        }
        let number = transaction.number;
        self.roll_back_all()?;
        answers.change(&Change::RolledBack(number))?;
        Ok(())
    }

    pub(crate) fn save(&mut self, name: &str) -> Outcome<()> {
        match &mut self.transaction {
            Some(transaction) if self.state.read(|s| s.trancount) > 0 => {
                let at = transaction.undo.len();
                // A place before the first, which is for the transaction's own name.
                if transaction.savepoints.is_empty() {
                    transaction.savepoints.push((String::new(), 0));
                }
                transaction.savepoints.push((name.to_owned(), at));
                Ok(())
            }
            _ => Err(SqlError::new(628, "Cannot issue SAVE TRANSACTION when there is no active transaction.").into()),
        }
    }

    /// Takes back everything, whatever the depth.
    pub(crate) fn roll_back_all(&mut self) -> Outcome<()> {
        if !self.db.is_autocommit() {
            self.db.execute_batch("ROLLBACK")?;
        }
        let Some(mut transaction) = self.transaction.take() else {
            self.state.change(|s| (s.trancount, s.doomed) = (0, false));
            return Ok(());
        };
        let result = transaction.undo(&self.db, 0);
        for (id, before) in transaction.definitions.drain(..).rev() {
            self.engine.change_world(|world| match before {
                Some(database) => world.put(database),
                None => world.databases.retain(|d| d.id != id),
            });
        }
        self.over(&transaction);
        result
    }

    fn over(&mut self, transaction: &Transaction) {
        self.state.change(|s| {
            s.trancount = 0;
            s.doomed = false;
            s.transaction = None;
        });
        if transaction.snapshot.is_some() {
            self.engine.snapshots.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.state.id);
            let _ = self.sweep();
        }
        self.engine.locks.end(transaction.number, self.state.id);
    }

    /// Deletes versions that no snapshot sees any more.
    fn sweep(&self) -> Outcome<()> {
        let oldest = self.engine.oldest_snapshot();
        let mut garbage = self.engine.garbage.lock().unwrap_or_else(PoisonError::into_inner);
        let (gone, kept) = garbage.drain(..).partition(|(next, ..)| oldest.is_none_or(|o| *next < o));
        *garbage = kept;
        drop(garbage);
        let gone: Vec<(u64, i32, i64)> = gone;
        if gone.is_empty() {
            return Ok(());
        }
        self.db.execute_batch("BEGIN IMMEDIATE")?;
        for (_, table, row) in gone {
            // The table may be gone as well.
            if let Ok(mut statement) =
                self.db.prepare_cached(&format!("DELETE FROM o{table} WHERE _row = ?1 AND _to IS NOT NULL"))
            {
                statement.execute([row])?;
            }
        }
        self.db.execute_batch("COMMIT")?;
        Ok(())
    }

    /// Runs a statement in the open transaction, or in one of its own that ends with it.
    pub(crate) fn in_transaction<T>(
        &mut self,
        answers: &mut dyn Answers,
        run: impl FnOnce(&mut Self, &mut dyn Answers) -> Outcome<T>,
    ) -> Outcome<T> {
        let own = self.transaction.is_none();
        if own {
            if self.state.read(|s| s.implicit) {
                self.begin("", answers)?;
            } else {
                self.open_transaction();
            }
        }
        let own = own && self.state.read(|s| s.trancount == 0);
        if let Some(transaction) = &mut self.transaction {
            transaction.command += 1;
        }
        let before = self.transaction.as_ref().map_or(0, |t| t.undo.len());
        let result = run(self, answers);
        if result.is_err() {
            self.take_back(before)?;
        }
        self.end_statement_snapshot()?;
        match (&result, own) {
            (Ok(_), true) => self.commit_all()?,
            (Err(_), true) => self.roll_back_all()?,
            _ => {}
        }
        result
    }

    /// Takes back what a failed statement has done; SQLite has rolled its own part back if it is still open.
    fn take_back(&mut self, before: usize) -> Outcome<()> {
        if !self.db.is_autocommit() {
            self.db.execute_batch("ROLLBACK")?;
            if let Some(transaction) = &mut self.transaction {
                transaction.undo.truncate(before);
            }
        } else if let Some(transaction) = &mut self.transaction {
            transaction.undo(&self.db, before)?;
        }
        Ok(())
    }

    /// Under `SNAPSHOT` the first read of data decides what is seen. Error 3952: the database does not allow it.
    pub(crate) fn take_snapshot(&mut self, databases: &[i32]) -> Outcome<()> {
        let level = self.state.read(|s| s.isolation);
        if level != Isolation::Snapshot {
            return Ok(());
        }
        let world = self.engine.world();
        for id in databases {
            if let Some(database) = world.database_by_id(*id)
                && !database.allow_snapshot
                && database.id > 4
            {
                let text = format!(
                    "Snapshot isolation transaction failed accessing database '{}' because snapshot isolation is not allowed in this database. Use ALTER DATABASE to allow snapshot isolation.",
                    database.name
                );
                return Err(SqlError::new(3952, text).into());
            }
        }
        self.fix_sight();
        Ok(())
    }

    /// With `READ_COMMITTED_SNAPSHOT` a query under `READ COMMITTED` sees what was committed when it began, and
    /// waits for nobody. Queries inside of statements that write still wait.
    pub(crate) fn take_statement_snapshot(&mut self, databases: &[i32]) {
        let level = self.state.read(|s| s.isolation);
        let world = self.engine.world();
        let wanted = databases.iter().any(|id| world.database_by_id(*id).is_some_and(|d| d.read_committed_snapshot));
        let free = self.transaction.as_ref().is_some_and(|t| t.snapshot.is_none());
        if level == Isolation::ReadCommitted && wanted && free {
            self.fix_sight();
            if let Some(transaction) = &mut self.transaction {
                transaction.for_statement = true;
            }
        }
    }

    fn end_statement_snapshot(&mut self) -> Outcome<()> {
        match &mut self.transaction {
            Some(transaction) if transaction.for_statement => {
                transaction.for_statement = false;
                transaction.snapshot = None;
                self.engine.snapshots.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.state.id);
                self.sweep()
            }
            _ => Ok(()),
        }
    }

    fn fix_sight(&mut self) {
        let Some(transaction) = &mut self.transaction else { return };
        if transaction.snapshot.is_none() {
            let mut snapshots = self.engine.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
            // First known to those who delete versions, then made.
            snapshots.insert(self.state.id, 0);
            let (next, open) = self.engine.locks.moment(transaction.number);
            snapshots.insert(self.state.id, next);
            drop(snapshots);
            transaction.snapshot = Some(Snapshot { next, open });
        }
    }

    /// What an error does to the transaction ("SET XACT_ABORT", "TRY...CATCH"): a deadlock takes it back, in a
    /// `TRY` with `XACT_ABORT` it is doomed.
    pub(crate) fn after_error(&mut self, error: &SqlError, in_try: bool, answers: &mut dyn Answers) -> Outcome<()> {
        let (abort, count) = self.state.read(|s| (s.xact_abort, s.trancount));
        if count == 0 {
            return Ok(());
        }
        let ends = matches!(error.number, 1205 | 3960) || error.class >= 20;
        if ends || abort && !in_try && error.class > 10 {
            let number = self.transaction.as_ref().map_or(0, |t| t.number);
            self.roll_back_all()?;
            answers.change(&Change::RolledBack(number))?;
        } else if abort && in_try {
            self.state.change(|s| s.doomed = true);
        }
        Ok(())
    }

    /// Error 3930 if the transaction can only be rolled back.
    pub(crate) fn writable(&self) -> Result<(), Fault> {
        if self.state.read(|s| s.doomed) {
            let text = "The current transaction cannot be committed and cannot support operations that write to the log file. Roll back the transaction.";
            return Err(SqlError::new(3930, text).into());
        }
        Ok(())
    }
}
