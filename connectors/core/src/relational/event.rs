//! Changes of rows as records.
//!
//! Most changes are one event. A delete is followed by a record without value, so that compaction drops the
//! key; an update that changes the key is a delete under the old one and a create under the new one, each of
//! which names the other key in a header. Of the records of one change only the last has the position behind
//! it, so that none of them is lost with a restart between.
//!
//! It does not: know what a source block holds, count transactions, or look for signals.

use std::sync::Arc;

use super::cell::Cell;
use super::table_schema::TableSchema;
use crate::envelope::SourceTime;
use crate::error::Result;
use crate::position::Position;
use crate::record::{Datum, Header, Headers, Record, Value};

/// Header of a delete that a create under another key follows.
const NEW_KEY: &str = "__debezium.newkey";
/// Header of that create.
const OLD_KEY: &str = "__debezium.oldkey";

/// What an event says happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    /// A row of a snapshot.
    Read,
    Truncate,
}

impl Operation {
    pub const fn code(self) -> &'static str {
        match self {
            Self::Create => "c",
            Self::Update => "u",
            Self::Delete => "d",
            Self::Read => "r",
            Self::Truncate => "t",
        }
    }
}

/// `skipped.operations`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SkippedOperations {
    pub create: bool,
    pub update: bool,
    pub delete: bool,
    pub read: bool,
    pub truncate: bool,
}

impl SkippedOperations {
    /// From the items of the option; `none` is no operation.
    pub fn new(items: &[String]) -> Self {
        let has = |operation: Operation| items.iter().any(|item| item.eq_ignore_ascii_case(operation.code()));
        Self {
            create: has(Operation::Create),
            update: has(Operation::Update),
            delete: has(Operation::Delete),
            read: has(Operation::Read),
            truncate: has(Operation::Truncate),
        }
    }

    pub const fn contain(self, operation: Operation) -> bool {
        match operation {
            Operation::Create => self.create,
            Operation::Update => self.update,
            Operation::Delete => self.delete,
            Operation::Read => self.read,
            Operation::Truncate => self.truncate,
        }
    }
}

/// A change, with the rows in the order of the table's columns.
#[derive(Debug, Clone, Copy)]
pub enum RowChange<'a> {
    Create(&'a [Cell]),
    Read(&'a [Cell]),
    Update {
        /// `None`: the log does not have it.
        before: Option<&'a [Cell]>,
        after: &'a [Cell],
    },
    Delete(&'a [Cell]),
    Truncate,
}

/// What the events of one change share.
pub struct Occasion<'a> {
    /// The source block.
    pub source: Value,
    /// When the change is processed.
    pub now: SourceTime,
    /// Where the source stands before the change.
    pub before: &'a Position,
    /// Called for each event, in order: its block `transaction`.
    pub transaction: &'a mut dyn FnMut() -> Value,
}

/// How events are made, by the choices of the user.
#[derive(Debug, Clone, Default)]
pub struct EventMaker {
    /// On every record.
    pub headers: Headers,
    /// `tombstones.on.delete`.
    pub tombstones: bool,
    /// `skip.messages.without.change`.
    pub skip_unchanged: bool,
    pub skipped: SkippedOperations,
}

/// One event before it is a record.
struct Event {
    operation: Operation,
    key: Value,
    before: Value,
    after: Value,
    /// Header that names another key.
    other_key: Option<(&'static str, Value)>,
}

impl Event {
    const fn new(operation: Operation, key: Value, before: Value, after: Value) -> Self {
        Self { operation, key, before, after, other_key: None }
    }
}

impl EventMaker {
    /// Appends the records of a change. All have the position before it; the caller gives the last one, which
    /// is returned, the position behind it. `None`: there is none, because the user leaves such changes out.
    ///
    /// # Errors
    /// A row that does not fit the table or cannot be converted. Nothing was appended then.
    #[must_use = "the last record needs the position behind the change"]
    pub fn records<'o>(
        &self,
        table: &TableSchema,
        change: RowChange<'_>,
        occasion: Occasion<'_>,
        out: &'o mut Vec<Record>,
    ) -> Result<Option<&'o mut Record>> {
        let Occasion { mut source, now, before, transaction } = occasion;
        let start = out.len();
        let mut events = self.events(table, change)?.into_iter();
        while let Some(event) = events.next() {
            if self.skipped.contain(event.operation) {
                continue;
            }
            let source = if events.len() == 0 { std::mem::take(&mut source) } else { source.clone() };
            let block = transaction();
            let is_delete = event.operation == Operation::Delete;
            out.push(self.record(table, event, source, block, now, before));
            if is_delete
                && self.tombstones
                && let Some(tombstone) = out.last_mut().and_then(|delete| delete.split_tombstone(before.clone()))
            {
                out.push(tombstone);
            }
        }
        Ok(out.get_mut(start..).and_then(<[Record]>::last_mut))
    }

    fn events(&self, table: &TableSchema, change: RowChange<'_>) -> Result<Vec<Event>> {
        Ok(match change {
            RowChange::Create(row) => {
                vec![Event::new(Operation::Create, table.key(row)?, Value::Null, table.row(row)?)]
            }
            RowChange::Read(row) => vec![Event::new(Operation::Read, table.key(row)?, Value::Null, table.row(row)?)],
            RowChange::Delete(row) => {
                vec![Event::new(Operation::Delete, table.key(row)?, table.row(row)?, Value::Null)]
            }
            RowChange::Truncate => vec![Event::new(Operation::Truncate, Value::Null, Value::Null, Value::Null)],
            RowChange::Update { before: None, after } => {
                vec![Event::new(Operation::Update, table.key(after)?, Value::Null, table.row(after)?)]
            }
            RowChange::Update { before: Some(before), after } => {
                let (old_key, new_key) = (table.key(before)?, table.key(after)?);
                let (before, after) = (table.row(before)?, table.row(after)?);
                if self.skip_unchanged && before == after {
                    Vec::new()
                } else if old_key == new_key {
                    vec![Event::new(Operation::Update, new_key, before, after)]
                } else {
                    let delete = Event {
                        other_key: Some((NEW_KEY, new_key.clone())),
                        ..Event::new(Operation::Delete, old_key.clone(), before, Value::Null)
                    };
                    let create = Event {
                        other_key: Some((OLD_KEY, old_key)),
                        ..Event::new(Operation::Create, new_key, Value::Null, after)
                    };
                    vec![delete, create]
                }
            }
        })
    }

    fn record(
        &self,
        table: &TableSchema,
        event: Event,
        source: Value,
        block: Value,
        now: SourceTime,
        position: &Position,
    ) -> Record {
        let value = vec![
            event.before,
            event.after,
            source,
            block,
            Value::text(event.operation.code()),
            Value::Int64(now.ms),
            Value::Int64(now.us),
            Value::Int64(now.ns),
        ];
        let key = match table.key_schema() {
            Some(schema) if !event.key.is_null() => Datum::new(schema.clone(), event.key),
            _ => Datum::none(),
        };
        let headers = match event.other_key {
            None => self.headers.clone(),
            Some((name, value)) => {
                let header = Header { name: name.into(), schema: table.key_schema().cloned(), value };
                Arc::new(std::iter::once(header).chain(self.headers.iter().cloned()).collect())
            }
        };
        Record {
            topic: table.topic.clone(),
            partition: None,
            key,
            value: Datum::new(table.envelope.clone(), Value::Struct(value)),
            headers,
            timestamp: None,
            position: position.clone(),
        }
    }
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
