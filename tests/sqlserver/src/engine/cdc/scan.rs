//! The capture process: committed changes of captured tables go from the log into change tables.
//!
//! Follows "cdc.<capture_instance>_CT", "cdc.lsn_time_mapping". Of columns of MAX types an update has only
//! those that changed; `text`, `ntext` and `image` are never in an image of before. An update of the key is a
//! delete and an insert. Whether these rules hold for `xml` as well, the documents do not say; here they do.

use rusqlite::params;
use rusqlite::types::Value;

use super::capture::Capture;
use super::job::Scan;
use crate::engine::fault::Outcome;
use crate::engine::kinds::stored;
use crate::engine::log::{Lsn, Operation, unpack};
use crate::engine::run::{Runner, Writer};
use crate::session::Answers;
use crate::types::SqlType;

type Image = Vec<(i32, Value)>;

/// An entry of the log.
struct Entry {
    object: i32,
    operation: Operation,
    lsn: Vec<u8>,
    before: Option<Image>,
    after: Option<Image>,
    command: i64,
}

impl Runner {
    /// Captures at most so many transactions of a database. The result is how many there were.
    pub(crate) fn scan(&mut self, database: i32, most: u32, answers: &mut dyn Answers) -> Outcome<u64> {
        let start = self.engine.local_now();
        let (count, commands, first, last) = self.in_transaction(answers, |runner, _| {
            runner.db.execute_batch("BEGIN IMMEDIATE")?;
            let done = runner.scan_in(database, most)?;
            runner.db.execute_batch("COMMIT")?;
            Ok(done)
        })?;
        self.engine.jobs.scanned(Scan {
            id: 0,
            database,
            start,
            end: self.engine.local_now(),
            first,
            last,
            transactions: count as i64,
            commands,
        });
        Ok(count)
    }

    /// Notes in `cdc.lsn_time_mapping` how far the log has gone without changes: a row whose `tran_id` is 0x00.
    pub(crate) fn mark_idle(&mut self, database: i32, answers: &mut dyn Answers) -> Outcome<()> {
        let world = self.engine.world();
        let Some(database) = world.database_by_id(database) else { return Ok(()) };
        let Some(mapping) = database.cdc.as_ref().and_then(|c| database.tables.get(&c.time_mapping)).cloned() else {
            return Ok(());
        };
        let time = self.engine.local_now();
        let last = self.in_transaction(answers, |runner, _| {
            runner.db.execute_batch("BEGIN IMMEDIATE")?;
            let lsn = runner.engine.log.commit();
            let Some(transaction) = runner.transaction.as_mut() else { return Ok(lsn) };
            let mut writer = Writer {
                engine: &runner.engine,
                db: &runner.db,
                transaction,
                database: database.clone(),
                table: mapping,
                open: Vec::new(),
            };
            let at = stored::encode(&time, &SqlType::DateTime);
            writer.insert(vec![lsn.stored(), at.clone(), at, Value::Blob(vec![0]), Value::Blob(vec![0; 10])])?;
            runner.db.execute_batch("COMMIT")?;
            Ok(lsn)
        })?;
        self.engine.jobs.reached(database.id, last);
        Ok(())
    }

    fn scan_in(&mut self, database: i32, most: u32) -> Outcome<(u64, i64, Lsn, Lsn)> {
        let world = self.engine.world();
        let nothing = (0, 0, Lsn::default(), Lsn::default());
        let Some(database) = world.database_by_id(database) else { return Ok(nothing) };
        let Some(cdc) = &database.cdc else { return Ok(nothing) };
        let Some(mapping) = database.tables.get(&cdc.time_mapping).cloned() else { return Ok(nothing) };
        let commits: Vec<(Vec<u8>, i64, Value, Value)> = self
            .db
            .prepare_cached("SELECT lsn, txn, began, ended FROM _commits WHERE database = ?1 ORDER BY lsn LIMIT ?2")?
            .query_map(params![database.id, most], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?)))?
            .collect::<Result<_, _>>()?;
        let Some(transaction) = self.transaction.as_mut() else { return Ok(nothing) };
        let mut writer = Writer {
            engine: &self.engine,
            db: &self.db,
            transaction,
            database: database.clone(),
            table: mapping.clone(),
            open: Vec::new(),
        };
        let (mut count, mut commands, mut ends) = (0, 0, None);
        for (lsn, number, began, ended) in commits {
            let Some(commit) = Lsn::from_bytes(&lsn) else { continue };
            let mut written = false;
            let mut statement = writer.db.prepare(
                "SELECT object, operation, lsn, before, after, command FROM _log WHERE txn = ?1 ORDER BY seq",
            )?;
            let mut rows = statement.query([number])?;
            while let Some(row) = rows.next()? {
                let image = |n: usize| -> rusqlite::Result<Option<Image>> {
                    Ok(row.get::<_, Option<Vec<u8>>>(n)?.map(|b| unpack(&b)))
                };
                let Some(operation) = Operation::from_number(row.get(1)?) else { continue };
                let entry = Entry {
                    object: row.get(0)?,
                    operation,
                    lsn: row.get(2)?,
                    before: image(3)?,
                    after: image(4)?,
                    command: row.get(5)?,
                };
                for capture in database.captures_of(entry.object).filter(|c| c.start_lsn <= commit) {
                    let Some(table) = database.tables.get(&capture.object) else { continue };
                    writer.table = table.clone();
                    for values in changes(capture, &entry, &lsn) {
                        writer.insert(values)?;
                        written = true;
                    }
                }
                commands += 1;
            }
            drop(rows);
            drop(statement);
            for table in database.tables.keys() {
                writer
                    .db
                    .prepare_cached("DELETE FROM _log WHERE txn = ?1 AND object = ?2")?
                    .execute(params![number, table])?;
            }
            writer.db.prepare_cached("DELETE FROM _commits WHERE lsn = ?1")?.execute([&lsn])?;
            if written {
                writer.table = mapping.clone();
                let id = Value::Blob(number.to_be_bytes()[2..].to_vec());
                let begin_lsn = Value::Blob(lsn.clone());
                writer.insert(vec![Value::Blob(lsn.clone()), began, ended, id, begin_lsn])?;
                count += 1;
                let first = ends.map_or(commit, |(first, _)| first);
                ends = Some((first, commit));
            }
        }
        let (first, last) = ends.unwrap_or_default();
        Ok((count, commands, first, last))
    }
}

/// The rows of a change table for one entry: values of its kept columns.
fn changes(capture: &Capture, entry: &Entry, commit: &[u8]) -> Vec<Vec<Value>> {
    let row = |operation: i64, mask: Vec<u8>, image: &Image, keep: &dyn Fn(usize) -> bool| {
        let mut values = vec![
            Value::Blob(commit.to_vec()),
            Value::Null,
            Value::Blob(entry.lsn.clone()),
            Value::Integer(operation),
            Value::Blob(mask),
        ];
        for (at, column) in capture.columns.iter().enumerate() {
            values.push(if keep(at) { value_of(image, column.id) } else { Value::Null });
        }
        values.push(Value::Integer(entry.command));
        values
    };
    let all = || capture.mask(|_| true);
    let lob = |at: usize| capture.columns[at].kind.is_lob();
    let max = |at: usize| capture.columns[at].kind.is_max() || matches!(capture.columns[at].kind, SqlType::Clr(_));
    match (entry.operation, &entry.before, &entry.after) {
        (Operation::Insert, _, Some(after)) => vec![row(2, all(), after, &|_| true)],
        (Operation::Delete, Some(before), _) => vec![row(1, all(), before, &|at| !lob(at))],
        (Operation::Update, Some(before), Some(after)) => {
            let changed = |id: i32| value_of(before, id) != value_of(after, id);
            if capture.key.iter().any(|id| changed(*id)) {
                return vec![row(1, all(), before, &|at| !lob(at)), row(2, all(), after, &|_| true)];
            }
            let is_changed = |at: usize| changed(capture.columns[at].id);
            let mask = capture.mask(is_changed);
            if mask.iter().all(|b| *b == 0) {
                return Vec::new();
            }
            vec![
                row(3, mask.clone(), before, &|at| !lob(at) && (!max(at) || is_changed(at))),
                row(4, mask, after, &|at| !(lob(at) || max(at)) || is_changed(at)),
            ]
        }
        _ => Vec::new(),
    }
}

fn value_of(image: &Image, id: i32) -> Value {
    image.iter().find(|(c, _)| *c == id).map_or(Value::Null, |(_, v)| v.clone())
}
