//! Definitions of tables as messages of the topic `{prefix}.ddl`.
//!
//! Made from Debezium's schema change records and from truncates. What a table was before comes from the
//! record (`previous`, a table like `table`, which a connector with a schema history adds), else from what
//! this task has seen of it since it started; a definition that changes no column is no event.

use std::collections::HashMap;

use super::envelope::Fields;
use super::{Members, member, name, odd};
use crate::error::Result;
use crate::record::{Schema, Value};

/// Longest statement that a message carries, in bytes.
const LONGEST_STATEMENT: usize = 65_536;
/// Tables whose columns are remembered.
const KEPT: usize = 10_000;

/// One event, without its source.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) op: &'static str,
    /// `schema.table`.
    pub(super) table: String,
    pub(super) before: Value,
    pub(super) after: Value,
    pub(super) old_table: Option<String>,
}

/// Columns of the tables, as last seen.
#[derive(Debug, Default)]
pub(super) struct Tables(HashMap<String, Value>);

impl Tables {
    /// The rows of a table are gone.
    pub(super) fn truncated(&self, table: String) -> Event {
        let before = self.0.get(&table).cloned().unwrap_or_default();
        Event { op: "truncate", table, before, after: Value::Null, old_table: None }
    }

    /// The events of a schema change record.
    pub(super) fn changed(&mut self, value: &Fields<'_>) -> Result<Vec<Event>> {
        let Some((schema, Value::Array(changes))) = value.get("tableChanges") else { return Ok(Vec::new()) };
        let crate::record::Type::Array(item) = &schema.ty else {
            return odd("thalweg.format=repstance: tableChanges of a schema change is no array");
        };
        changes.iter().map(|change| self.one(item, change)).filter_map(Result::transpose).collect()
    }

    fn one(&mut self, schema: &Schema, change: &Value) -> Result<Option<Event>> {
        let Some(change) = Fields::of(schema, change) else {
            return odd("thalweg.format=repstance: a table change is no struct");
        };
        let Some(table) = change.text("id").map(|id| table_of(&id)) else {
            return odd("thalweg.format=repstance: a table change names no table");
        };
        let old_table = change.text("previousId").map(|id| table_of(&id)).filter(|old| *old != table);
        let after = change.record("table").map_or(Value::Null, |table| columns(&table));
        let known = self.0.remove(old_table.as_ref().unwrap_or(&table)).unwrap_or_default();
        let before = change.record("previous").map_or(known, |table| columns(&table));
        let (op, before, after) = match change.text("type").as_deref() {
            Some("CREATE") => ("create", Value::Null, after),
            Some("ALTER") => ("alter", before, after),
            Some("DROP") => ("drop", before, Value::Null),
            other => {
                let other = other.unwrap_or("none");
                return odd(format!(
                    "thalweg.format=repstance: a change of table {table} has the unknown type {other}"
                ));
            }
        };
        if !after.is_null() && self.0.len() < KEPT {
            self.0.insert(table.clone(), after.clone());
        }
        if op == "alter" && before == after && old_table.is_none() {
            return Ok(None);
        }
        Ok(Some(Event { op, table, before, after, old_table }))
    }
}

impl Event {
    pub(super) fn key(&self) -> Members {
        vec![member("table", name(self.table.clone()))]
    }

    /// The message; `statement` is the source's.
    pub(super) fn value(self, source: Value, ts_ms: Value, statement: Option<String>) -> Members {
        let mut value = vec![
            member("before", self.before),
            member("after", self.after),
            member("source", source),
            member("op", name(self.op)),
            member("ts_ms", ts_ms),
        ];
        if let Some(old) = self.old_table {
            value.push(member("oldTable", name(old)));
        }
        match statement {
            Some(statement) if statement.len() > LONGEST_STATEMENT => {
                tracing::warn!(table = self.table, bytes = statement.len(), "a statement is too long for its event");
            }
            Some(statement) => value.push(member("ddl", Value::Array(vec![name(statement)]))),
            None => {}
        }
        value
    }
}

/// The statement of a schema change, if the source tells it.
pub(super) fn statement(value: &Fields<'_>) -> Option<String> {
    value.text("ddl").filter(|text| !text.trim().is_empty() && !text.trim().eq_ignore_ascii_case("n/a"))
}

/// Schema and table of a quoted identifier: `"db"."schema"."table"` gives `schema.table`.
fn table_of(id: &str) -> String {
    let (mut parts, mut quoted) = (vec![String::new()], false);
    let mut characters = id.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                push(&mut parts, '"');
            }
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            other => push(&mut parts, other),
        }
    }
    parts.split_off(parts.len().saturating_sub(2)).join(".")
}

fn push(parts: &mut [String], character: char) {
    if let Some(part) = parts.last_mut() {
        part.push(character);
    }
}

/// `columns` of a table in the order of their ids.
fn columns(table: &Fields<'_>) -> Value {
    let keys: Vec<Value> = match table.get("primaryKeyColumnNames") {
        Some((_, Value::Array(names))) => names.clone(),
        _ => Vec::new(),
    };
    let Some((schema, Value::Array(columns))) = table.get("columns") else { return Value::Array(Vec::new()) };
    let crate::record::Type::Array(item) = &schema.ty else { return Value::Array(Vec::new()) };
    let columns = columns.iter().filter_map(|column| Fields::of(item, column));
    let mut described: Vec<(i32, Value)> = columns.map(|column| described(&column, &keys)).collect();
    described.sort_by_key(|(id, _)| *id);
    Value::Array(described.into_iter().map(|(_, column)| column).collect())
}

fn described(column: &Fields<'_>, keys: &[Value]) -> (i32, Value) {
    let number = |field: &str| match column.get(field) {
        Some((_, Value::Int32(n))) => Some(*n),
        _ => None,
    };
    let flag = |field: &str| matches!(column.get(field), Some((_, Value::Bool(true))));
    let id = number("position").unwrap_or(0);
    let column_name = column.value("name");
    let type_name = column.text("typeExpression").filter(|text| text.contains('('));
    let type_name = type_name.unwrap_or_else(|| {
        let bare = column.text("typeName").unwrap_or_default();
        match (number("length"), number("scale")) {
            _ if bare.contains('(') || !has_length(number("jdbcType")) => bare,
            (Some(length), Some(scale)) if scale > 0 => format!("{bare}({length},{scale})"),
            (Some(length), _) => format!("{bare}({length})"),
            (None, _) => bare,
        }
    });
    let described = vec![
        member("id", Value::Int32(id)),
        member("key", Value::Bool(keys.contains(&column_name))),
        member("nullable", Value::Bool(flag("optional"))),
        member("identity", Value::Bool(flag("autoIncremented"))),
    ];
    let mut members = described;
    members.insert(1, member("name", column_name));
    members.insert(2, member("type", name(type_name)));
    (id, Value::Map(members))
}

/// Whether the length belongs to the name of a type: texts, bytes and decimals (`java.sql.Types`).
fn has_length(jdbc_type: Option<i32>) -> bool {
    const TYPES: [i32; 10] = [1, 12, -1, -9, -15, 2, 3, -2, -3, -4];
    jdbc_type.is_none_or(|ty| TYPES.contains(&ty))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_identifiers() {
        for (id, table) in [
            (r#""shop"."dbo"."item""#, "dbo.item"),
            (r#""dbo"."a.b ""c""""#, r#"dbo.a.b "c""#),
            ("dbo.item", "dbo.item"),
            ("item", "item"),
        ] {
            assert_eq!(table_of(id), table);
        }
    }
}
