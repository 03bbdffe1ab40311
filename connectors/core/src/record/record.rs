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

impl Record {
    /// The tombstone behind a delete: same topic, partition, key, headers and time, no value. The
    /// position moves over to it and the delete falls back to `before`, the position before the
    /// change, so that the two are never half delivered. `None` without a key: nothing to compact.
    pub fn split_tombstone(&mut self, before: Position) -> Option<Self> {
        if self.key.is_none() {
            return None;
        }
        Some(Self {
            topic: self.topic.clone(),
            partition: self.partition,
            key: self.key.clone(),
            value: Datum::none(),
            headers: self.headers.clone(),
            timestamp: self.timestamp,
            position: std::mem::replace(&mut self.position, before),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_tombstone_takes_the_position_of_its_delete() {
        let (before, after) = (Position::new(Bytes::from_static(b"1")), Position::new(Bytes::from_static(b"2")));
        let mut delete = Record {
            topic: "t".into(),
            partition: None,
            key: Datum::new(Arc::new(Schema::string()), Value::text("k")),
            value: Datum::new(Arc::new(Schema::string()), Value::text("v")),
            headers: Headers::default(),
            timestamp: Some(5),
            position: after.clone(),
        };
        let tombstone = delete.split_tombstone(before.clone()).unwrap();
        assert_eq!((&delete.position, &tombstone.position), (&before, &after));
        assert_eq!(tombstone.key, delete.key);
        assert!(tombstone.value.is_none() && Arc::ptr_eq(&tombstone.headers, &delete.headers));

        delete.key = Datum::none();
        delete.position = after.clone();
        assert!(delete.split_tombstone(before).is_none());
        assert_eq!(delete.position, after);
    }
}
