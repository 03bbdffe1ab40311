//! Foreign keys and check constraints, looked at after the rows of a statement have been written.
//!
//! Follows "Create foreign key relationships", "Unique constraints and check constraints": error 547.

use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, params_from_iter};

use super::batch::{Frame, Runner};
use super::rows::Writer;
use crate::engine::bind::Scope;
use crate::engine::catalogue::{Database, ForeignKey, Table};
use crate::engine::fault::{Outcome, SqlError};
use crate::engine::sql;
use crate::engine::sql::statement::Referential;

impl Runner {
    /// Check constraints of rows by their places.
    pub(super) fn check(&self, verb: &str, database: &Arc<Database>, table: &Arc<Table>, rows: &[i64]) -> Outcome<()> {
        for check in &table.checks {
            let frame = Frame::default();
            let mut binder = self.binder(&frame);
            let source = binder.table_source(&table.name, "t", database, table)?;
            binder.scopes.push(Scope { sources: vec![source] });
            let condition = binder.condition(&sql::expression(&check.text)?)?;
            let text = format!(
                "SELECT 1 FROM {} AS t WHERE t._row = ?{} AND NOT {condition}",
                table.kept_name(),
                binder.parameters.len() + 1
            );
            let mut statement = self.db.prepare_cached(&text)?;
            for row in rows {
                let values = binder.parameters.iter().cloned().chain([Value::Integer(*row)]);
                if statement.exists(params_from_iter(values))? {
                    let text = format!(
                        "The {verb} statement conflicted with the CHECK constraint \"{}\". The conflict occurred in database \"{}\", table \"{}.{}\".",
                        check.name, database.name, table.schema, table.name
                    );
                    return Err(SqlError::new(547, text).state(0).into());
                }
            }
        }
        Ok(())
    }
}

impl Writer<'_> {
    /// What a new row refers to must be there.
    pub(super) fn check_references(&self, verb: &str, values: &[Value]) -> Outcome<()> {
        for key in &self.table.foreign_keys {
            let Some(own) = key_values(&self.table, &key.columns, values) else { continue };
            let Some(other) = self.database.tables.get(&key.table) else { continue };
            if !self.has(other, &key.referred, &own)? {
                return Err(self.conflict(verb, "FOREIGN KEY", key, other, &key.referred).into());
            }
        }
        Ok(())
    }

    /// What refers to an old row must not be there, goes with it, or loses its reference.
    pub(super) fn check_referrers(&mut self, verb: &str, old: &[Value], new: Option<&[Value]>) -> Outcome<()> {
        let (database, own) = (self.database.clone(), self.table.id);
        for other in database.tables.values() {
            for key in other.foreign_keys.iter().filter(|k| k.table == own) {
                let Some(values) = key_values(&self.table, &key.referred, old) else { continue };
                if new.and_then(|n| key_values(&self.table, &key.referred, n)).as_ref() == Some(&values) {
                    continue;
                }
                if !self.has(other, &key.columns, &values)? {
                    continue;
                }
                match (key.on_delete, new) {
                    (Referential::Refuse, _) | (_, Some(_)) => {
                        return Err(self.conflict(verb, "REFERENCE", key, other, &key.columns).into());
                    }
                    (Referential::Cascade, None) => self.cascade(other, key, &values, true)?,
                    (Referential::SetNull, None) => self.cascade(other, key, &values, false)?,
                }
            }
        }
        Ok(())
    }

    fn cascade(&mut self, other: &Arc<Table>, key: &ForeignKey, values: &[Value], delete: bool) -> Outcome<()> {
        let terms: Vec<String> = key.columns.iter().enumerate().map(|(n, id)| format!("c{id} = ?{}", n + 1)).collect();
        let sql = format!("SELECT _row FROM {} WHERE _to IS NULL AND {}", other.kept_name(), terms.join(" AND "));
        let rows: Vec<i64> = self
            .db
            .prepare_cached(&sql)?
            .query_map(params_from_iter(values.iter()), |r| r.get(0))?
            .collect::<Result<_, _>>()?;
        let own = std::mem::replace(&mut self.table, other.clone());
        let result = (|| -> Outcome<()> {
            for row in rows {
                if delete {
                    let old = self.delete(row)?;
                    self.check_referrers("DELETE", &old, None)?;
                } else {
                    let mut new = self.read(row)?;
                    for (column, value) in self.table.clone().kept().zip(&mut new) {
                        if key.columns.contains(&column.id) {
                            *value = Value::Null;
                        }
                    }
                    self.update(row, new)?;
                }
            }
            Ok(())
        })();
        self.table = own;
        result
    }

    fn has(&self, table: &Table, columns: &[i32], values: &[Value]) -> Outcome<bool> {
        let terms: Vec<String> = columns.iter().enumerate().map(|(n, id)| format!("c{id} = ?{}", n + 1)).collect();
        let sql = format!("SELECT 1 FROM {} WHERE _to IS NULL AND {} LIMIT 1", table.kept_name(), terms.join(" AND "));
        let found: Option<i64> =
            self.db.prepare_cached(&sql)?.query_row(params_from_iter(values.iter()), |r| r.get(0)).optional()?;
        Ok(found.is_some())
    }

    fn conflict(&self, verb: &str, what: &str, key: &ForeignKey, other: &Table, columns: &[i32]) -> SqlError {
        let column = match columns {
            [one] => other.column_by_id(*one).map_or(String::new(), |c| format!(", column '{}'", c.name)),
            _ => String::new(),
        };
        let text = format!(
            "The {verb} statement conflicted with the {what} constraint \"{}\". The conflict occurred in database \"{}\", table \"{}.{}\"{column}.",
            key.name, self.database.name, other.schema, other.name
        );
        SqlError::new(547, text).state(0)
    }
}

/// `None`: one of them is NULL, which refers to nothing.
fn key_values(table: &Table, columns: &[i32], values: &[Value]) -> Option<Vec<Value>> {
    columns
        .iter()
        .map(|id| {
            table.kept().zip(values).find(|(c, _)| c.id == *id).map(|(_, v)| v.clone()).filter(|v| *v != Value::Null)
        })
        .collect()
}
