//! Writing rows: versions, identity, row versions, the log.
//!
//! A row keeps its place when it changes: the old values go to another row that is marked as ended. Who wants
//! to change a row that an open transaction has changed gets [`Fault::Blocked`] and tries again later.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};

use crate::engine::catalogue::{Column, Database, Index, Table};
use crate::engine::fault::{Fault, Outcome, SqlError};
use crate::engine::kinds::{convert, stored};
use crate::engine::log::{Operation, pack};
use crate::engine::session::transaction::{Transaction, Undo};
use crate::engine::shared::Engine;
use crate::types::SqlType;
use crate::value::SqlValue;

pub(crate) struct Writer<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) db: &'a Connection,
    pub(crate) transaction: &'a mut Transaction,
    pub(crate) database: Arc<Database>,
    pub(crate) table: Arc<Table>,
    /// Transactions of others that have not ended.
    pub(crate) open: Vec<u64>,
}

impl Writer<'_> {
    /// `SELECT` list of the kept columns.
    pub(crate) fn list(table: &Table) -> String {
        table.kept().map(Column::kept_name).collect::<Vec<_>>().join(", ")
    }

    /// Values of the kept columns of a row.
    pub(crate) fn read(&self, row: i64) -> Outcome<Vec<Value>> {
        let count = self.table.kept().count();
        let sql = format!("SELECT {} FROM {} WHERE _row = ?1", Self::list(&self.table), self.table.kept_name());
        let values = self
            .db
            .prepare_cached(&sql)?
            .query_row([row], |r| (0..count).map(|n| r.get(n)).collect::<Result<Vec<Value>, _>>())?;
        Ok(values)
    }

    /// Adds a row; values are those of the kept columns. The result is its place.
    pub(crate) fn insert(&mut self, mut values: Vec<Value>) -> Outcome<(i64, Vec<Value>)> {
        self.fill(&mut values);
        self.check_nulls(&values, "INSERT")?;
        self.check_keys(&values, None)?;
        let row = self.put(&values, self.transaction.number, None)?;
        self.transaction.undo.push(Undo::Created { table: self.table.id, row });
        self.record(Operation::Insert, None, Some(&values))?;
        Ok((row, values))
    }

    /// Error 8102, 1222 and the like come from the caller; a row of an open transaction is [`Fault::Blocked`].
    /// The result is the old values.
    pub(crate) fn delete(&mut self, row: i64) -> Outcome<Vec<Value>> {
        self.own(row)?;
        let old = self.read(row)?;
        let sql = format!("UPDATE {} SET _to = ?1 WHERE _row = ?2", self.table.kept_name());
        self.db.prepare_cached(&sql)?.execute(params![self.transaction.number, row])?;
        self.transaction.undo.push(Undo::Closed { table: self.table.id, row });
        self.keep_history(&old)?;
        self.record(Operation::Delete, Some(&old), None)?;
        Ok(old)
    }

    /// Gives a row new values of the kept columns. The result is the old and the new ones. Keys are checked
    /// by [`Writer::check_keys`] after all rows of the statement.
    pub(crate) fn update(&mut self, row: i64, mut values: Vec<Value>) -> Outcome<(Vec<Value>, Vec<Value>)> {
        self.own(row)?;
        let old = self.read(row)?;
        for (column, value) in self.table.clone().kept().zip(&mut values) {
            if column.kind == SqlType::RowVersion {
                *value = Value::Blob(self.engine.timestamp().to_vec());
            } else if column.generated == 1 {
                *value = self.period_time(column);
            }
        }
        self.check_nulls(&values, "UPDATE")?;
        let kept = self.table.kept_name();
        let list = Self::list(&self.table);
        let copy =
            format!("INSERT INTO {kept} (_from, _to, {list}) SELECT _from, ?1, {list} FROM {kept} WHERE _row = ?2");
        self.db.prepare_cached(&copy)?.execute(params![self.transaction.number, row])?;
        let old_row = self.db.last_insert_rowid();
        let sets: Vec<String> =
            self.table.kept().enumerate().map(|(n, c)| format!("{} = ?{}", c.kept_name(), n + 3)).collect();
        let change = format!("UPDATE {kept} SET _from = ?1, {} WHERE _row = ?2", sets.join(", "));
        let head = [Value::Integer(self.transaction.number as i64), Value::Integer(row)];
        self.db.prepare_cached(&change)?.execute(params_from_iter(head.iter().chain(&values)))?;
        self.transaction.undo.push(Undo::Replaced { table: self.table.id, row, old: old_row });
        self.keep_history(&old)?;
        self.record(Operation::Update, Some(&old), Some(&values))?;
        Ok((old, values))
    }

    fn put(&self, values: &[Value], from: u64, to: Option<u64>) -> Outcome<i64> {
        let places: Vec<String> = (0..values.len()).map(|n| format!("?{}", n + 3)).collect();
        let sql = format!(
            "INSERT INTO {} (_from, _to, {}) VALUES (?1, ?2, {})",
            self.table.kept_name(),
            Self::list(&self.table),
            places.join(", ")
        );
        let head = [Value::Integer(from as i64), to.map_or(Value::Null, |t| Value::Integer(t as i64))];
        self.db.prepare_cached(&sql)?.execute(params_from_iter(head.iter().chain(values)))?;
        Ok(self.db.last_insert_rowid())
    }

    /// The row can be changed: nobody else has. Error 3960: a snapshot sees an older version than the last.
    fn own(&self, row: i64) -> Outcome<()> {
        let sql = format!("SELECT _from, _to FROM {} WHERE _row = ?1", self.table.kept_name());
        let (from, to): (i64, Option<i64>) =
            self.db.prepare_cached(&sql)?.query_row([row], |r| Ok((r.get(0)?, r.get(1)?)))?;
        for number in [Some(from), to].into_iter().flatten() {
            if self.open.contains(&(number as u64)) {
                return Err(Fault::Blocked(number as u64));
            }
        }
        if let Some(to) = to
            && to as u64 != self.transaction.number
        {
            let text = format!(
                "Snapshot isolation transaction aborted due to update conflict. You cannot use snapshot isolation to access table '{}.{}' directly or indirectly in database '{}' to update, delete, or insert the row that has been modified or deleted by another transaction. Retry the transaction or change the isolation level for the update/delete statement.",
                self.table.schema, self.table.name, self.database.name
            );
            return Err(SqlError::new(3960, text).state(2).into());
        }
        Ok(())
    }

    /// Values that the server gives: identity, row version, start and end of the period.
    fn fill(&self, values: &mut [Value]) {
        for (column, value) in self.table.kept().zip(values) {
            if let (Some(identity), Value::Null) = (&column.identity, &*value) {
                let next = identity.last.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |last| {
                    Some(if last == i64::MIN { identity.seed } else { last.wrapping_add(identity.increment) })
                });
                let last = next.unwrap_or(i64::MIN);
                let number = if last == i64::MIN { identity.seed } else { last.wrapping_add(identity.increment) };
                *value = identity_value(number, &column.kind);
            }
            if column.kind == SqlType::RowVersion {
                *value = Value::Blob(self.engine.timestamp().to_vec());
            }
            match column.generated {
                1 => *value = self.period_time(column),
                2 => *value = last_moment(column),
                _ => {}
            }
        }
    }

    /// Begin of the transaction, UTC, as "Temporal tables" says.
    fn period_time(&self, column: &Column) -> Value {
        let (days, ticks) = self.engine.utc_now();
        let moment = crate::engine::kinds::temporal::Moment { days, ticks, offset: None };
        moment.into_value(&column.kind).map_or(Value::Null, |v| stored::encode(&v, &column.kind))
    }

    /// The old version of a row of a system-versioned table goes to its history.
    fn keep_history(&mut self, old: &[Value]) -> Outcome<()> {
        let (Some(history), Some((_, end))) = (self.table.history, self.table.period) else { return Ok(()) };
        let Some(history) = self.database.tables.get(&history).cloned() else { return Ok(()) };
        let mut values = Vec::new();
        for column in history.kept() {
            let value =
                self.table.kept().zip(old).find(|(c, _)| crate::engine::kinds::text::same_name(&c.name, &column.name));
            values.push(match value {
                Some((own, _)) if own.id == end => self.period_time(own),
                Some((_, value)) => value.clone(),
                None => Value::Null,
            });
        }
        let table = std::mem::replace(&mut self.table, history);
        let result = (|| {
            let row = self.put(&values, self.transaction.number, None)?;
            self.transaction.undo.push(Undo::Created { table: self.table.id, row });
            self.record(Operation::Insert, None, Some(&values))
        })();
        self.table = table;
        result
    }

    fn check_nulls(&self, values: &[Value], verb: &str) -> Outcome<()> {
        let missing = self.table.kept().zip(values).find(|(c, v)| !c.nullable && **v == Value::Null);
        match missing {
            None => Ok(()),
            Some((column, _)) => {
                let table = format!("{}.{}.{}", self.database.name, self.table.schema, self.table.name);
                let text = format!(
                    "Cannot insert the value NULL into column '{}', table '{table}'; column does not allow nulls. {verb} fails.",
                    column.name
                );
                Err(SqlError::new(515, text).state(2).into())
            }
        }
    }

    /// Unique indexes and keys: errors 2627 and 2601. NULL counts as a value. Filtered indexes are not checked.
    pub(crate) fn check_keys(&self, values: &[Value], own: Option<i64>) -> Outcome<()> {
        for index in self.table.indexes.iter().filter(|i| i.unique && i.filter.is_none()) {
            let Some(key) = self.key(index, values) else { continue };
            let open = self.open.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
            let terms: Vec<String> =
                index.key.iter().enumerate().map(|(n, (id, _))| format!("c{id} IS ?{}", n + 2)).collect();
            let sql = format!(
                "SELECT _from, _to FROM {} WHERE {} AND _row <> ?1 AND (_to IS NULL OR _to IN ({open})) LIMIT 1",
                self.table.kept_name(),
                terms.join(" AND ")
            );
            let head = [Value::Integer(own.unwrap_or(-1))];
            let found: Option<(i64, Option<i64>)> = self
                .db
                .prepare_cached(&sql)?
                .query_row(params_from_iter(head.iter().chain(&key)), |r| Ok((r.get(0)?, r.get(1)?)))
                .optional()?;
            let Some((from, to)) = found else { continue };
            for number in [Some(from), to].into_iter().flatten() {
                if self.open.contains(&(number as u64)) {
                    return Err(Fault::Blocked(number as u64));
                }
            }
            return Err(self.duplicate(index, &key).into());
        }
        Ok(())
    }

    /// `None`: a computed column is part of the key, which is not checked.
    fn key(&self, index: &Index, values: &[Value]) -> Option<Vec<Value>> {
        index
            .key
            .iter()
            .map(|(id, _)| self.table.kept().zip(values).find(|(c, _)| c.id == *id).map(|(_, v)| v.clone()))
            .collect()
    }

    fn duplicate(&self, index: &Index, key: &[Value]) -> SqlError {
        let shown: Vec<String> = index
            .key
            .iter()
            .zip(key)
            .map(|((id, _), value)| {
                let Some(column) = self.table.column_by_id(*id) else { return String::new() };
                let value = stored::decode(value.into(), &column.kind);
                match convert::convert(
                    value,
                    &column.kind,
                    &crate::engine::kinds::kind::nvarchar(4000),
                    if matches!(column.kind, SqlType::Binary(_) | SqlType::VarBinary(_)) { 1 } else { -1 },
                ) {
                    Ok(SqlValue::Text(text)) => text,
                    _ => "<NULL>".into(),
                }
            })
            .collect();
        let object = format!("{}.{}", self.table.schema, self.table.name);
        let shown = shown.join(", ");
        if index.constraint != 0 {
            let what = if index.primary { "PRIMARY KEY" } else { "UNIQUE KEY" };
            let text = format!(
                "Violation of {what} constraint '{}'. Cannot insert duplicate key in object '{object}'. The duplicate key value is ({shown}).",
                index.name
            );
            SqlError::new(2627, text).class(14)
        } else {
            let text = format!(
                "Cannot insert duplicate key row in object '{object}' with unique index '{}'. The duplicate key value is ({shown}).",
                index.name
            );
            SqlError::new(2601, text).class(14)
        }
    }

    /// Writes a change of a captured table into the log.
    fn record(&mut self, operation: Operation, before: Option<&[Value]>, after: Option<&[Value]>) -> Outcome<()> {
        if self.table.is_temporary() || self.database.captures_of(self.table.id).next().is_none() {
            return Ok(());
        }
        let table = self.table.clone();
        let image =
            |values: &[Value]| pack(&table.kept().map(|c| c.id).zip(values.iter().cloned()).collect::<Vec<_>>());
        self.db.prepare_cached("INSERT INTO _log (txn, object, operation, lsn, before, after, command) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?.execute(params![
            self.transaction.number,
            self.table.id,
            operation as i64,
            self.engine.log.next().stored(),
            before.map(image),
            after.map(image),
            self.transaction.command,
        ])?;
        self.transaction.undo.push(Undo::Logged { seq: self.db.last_insert_rowid() });
        if !self.transaction.logged_in.contains(&self.database.id) {
            self.transaction.logged_in.push(self.database.id);
        }
        Ok(())
    }
}

/// Identity columns are integers or decimals of scale 0.
pub(crate) fn identity_value(number: i64, kind: &SqlType) -> Value {
    match kind {
        SqlType::Decimal { .. } | SqlType::Numeric { .. } => {
            stored::encode(&SqlValue::Decimal { units: number.into(), scale: 0 }, kind)
        }
        _ => Value::Integer(number),
    }
}

/// 9999-12-31 23:59:59.9999999, as far as the column's scale goes.
fn last_moment(column: &Column) -> Value {
    let unit = 10_u64.pow(u32::from(7 - column.kind.fraction().min(7)));
    let ticks = (crate::engine::kinds::temporal::DAY - 1) / unit * unit;
    stored::encode(&SqlValue::DateTime { days: crate::engine::kinds::temporal::LAST_DAY, ticks }, &column.kind)
}
