//! One message on its way to Kafka, before conversion to bytes.

use std::sync::Arc;

use super::{Headers, Schema, Value};
use crate::position::Position;

/// A schema and a value of it. No schema and `Null` is what converters turn into a Kafka null.
#[derive(Debug, Clone, PartialEq)]
pub struct Datum {
    pub schema: Option<Arc<Schema>>,
    pub value: Value,
}

impl Datum {
    pub fn new(schema: Arc<Schema>, value: Value) -> Self {
        Self { schema: Some(schema), value }
    }
    /// Kafka null: a missing key, or a tombstone as value.
    pub const fn none() -> Self {
        Self { schema: None, value: Value::Null }
    }
    pub fn is_none(&self) -> bool {
        self.schema.is_none() && self.value.is_null()
    }
}

#[derive(Debug, Clone)]
pub struct Record {
    pub topic: Arc<str>,
    /// Fixed partition; otherwise the partitioner chooses by key.
    pub partition: Option<i32>,
    pub key: Datum,
    pub value: Datum,
    pub headers: Headers,
    /// Milliseconds since the epoch; `None` lets the client set it.
    pub timestamp: Option<i64>,
    /// Where to resume if this was the last record delivered. Several messages of one change
    /// (delete and tombstone) carry the position of the change on the last one and the position
    /// before it on the others, so that a change is never half delivered.
    pub position: Position,
}
