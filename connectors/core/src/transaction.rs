//! Transaction metadata: where in its transaction a change stands, and the records that tell begin and
//! end of transactions.
//!
//! [`TransactionMonitor`] counts for one partition; [`OpenTransaction`] is what it knows of the
//! transaction that is not closed yet. That belongs to every position, or a restart inside a
//! transaction would count from one again: so it is kept as the bytes that positions hold, and a change
//! costs eight of them written and a copy of all, some dozen for each collection of the transaction.
//!
//! A transaction ends with the first change that is not part of it; its END takes the position before
//! that change, and so does a BEGIN before the first change of a transaction: nothing of either is
//! stored together with a change that is not delivered.
//!
//! It does not know how a source names transactions and collections, nor what else a position holds.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::envelope::{transaction_key, transaction_value};
use crate::position::{OffsetMap, Position};
use crate::record::{Datum, Headers, Record, Text, Value};

/// Member of a stored offset: the transaction that is open.
const ID: &str = "transaction_id";
/// Members of a stored offset: changes of the open transaction, by collection.
const COUNT: &str = "transaction_data_collection_order_";

/// A transaction of which changes were read and whose end was not told.
#[derive(Debug, Clone)]
pub struct OpenTransaction {
    id: Arc<str>,
    /// Changes of all collections.
    total: i64,
    /// In order of their first change.
    collections: Vec<Counted>,
    by_name: HashMap<Arc<str>, usize>,
    /// Of the change before: changes come in runs.
    last: usize,
    /// The id, then of each collection count and name; lengths as u32 and counts as i64, little-endian.
    bytes: Vec<u8>,
}

#[derive(Debug, Clone)]
struct Counted {
    name: Arc<str>,
    /// Where in the bytes the count lies.
    at: usize,
    count: i64,
}

impl OpenTransaction {
    fn begin(id: Arc<str>) -> Self {
        let mut open =
            Self { total: 0, collections: Vec::new(), by_name: HashMap::new(), last: 0, bytes: Vec::new(), id };
        push_text(&open.id, &mut open.bytes);
        open
    }

    fn counted(&mut self, name: &Arc<str>, count: i64) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&count.to_le_bytes());
        push_text(name, &mut self.bytes);
        self.last = self.collections.len();
        self.by_name.insert(name.clone(), self.last);
        self.collections.push(Counted { name: name.clone(), at, count });
        self.total = self.total.saturating_add(count);
    }

    /// One more change of a collection: its number among all, and among those of the collection.
    fn count(&mut self, name: &Arc<str>) -> (i64, i64) {
        let same = self.collections.get(self.last).is_some_and(|c| Arc::ptr_eq(&c.name, name) || c.name == *name);
        if !same {
            match self.by_name.get(name) {
                Some(known) => self.last = *known,
                None => {
                    self.counted(name, 1);
                    return (self.total, 1);
                }
            }
        }
        let counted = &mut self.collections[self.last];
        counted.count = counted.count.saturating_add(1);
        self.bytes[counted.at..counted.at + 8].copy_from_slice(&counted.count.to_le_bytes());
        self.total = self.total.saturating_add(1);
        (self.total, counted.count)
    }

    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// What a position holds of it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// `None`: the bytes are not from [`Self::as_bytes`].
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let mut open = Self::begin(take_text(&mut bytes)?.into());
        while !bytes.is_empty() {
            let (count, rest) = bytes.split_first_chunk()?;
            bytes = rest;
            let name: Arc<str> = take_text(&mut bytes)?.into();
            if open.by_name.contains_key(&name) {
                return None;
            }
            open.counted(&name, i64::from_le_bytes(*count));
        }
        Some(open)
    }

    /// Adds the members that Debezium stores for it.
    pub fn add_to_offset(&self, offset: &mut OffsetMap) {
        offset.insert(ID.into(), Json::String((*self.id).to_owned()));
        for Counted { name, count, .. } in &self.collections {
            offset.insert(format!("{COUNT}{name}"), (*count).into());
        }
    }

    /// Whether [`Self::from_offset`] reads this member.
    pub fn is_member(name: &str) -> bool {
        name == ID || name.starts_with(COUNT)
    }

    /// From an offset that Debezium or [`Self::add_to_offset`] wrote. Counts without an id are of no
    /// transaction.
    ///
    /// # Errors
    /// The text names the member and what was expected.
    pub fn from_offset(offset: &OffsetMap) -> Result<Option<Self>, String> {
        let wrong = |name: &str, value: &Json, kind: &str| {
            format!("Source offset '{name}' parameter value {value} could not be converted to {kind}")
        };
        let id = match offset.get(ID) {
            None | Some(Json::Null) => return Ok(None),
            Some(Json::String(id)) => id.as_str(),
            Some(other) => return Err(wrong(ID, other, "a text")),
        };
        let mut open = Self::begin(id.into());
        for (name, value) in offset {
            let Some(collection) = name.strip_prefix(COUNT) else { continue };
            let count = match value {
                Json::Null => continue,
                Json::String(text) => text.trim().parse().ok(),
                number => number.as_i64(),
            };
            let count = count.filter(|n| *n >= 0).ok_or_else(|| wrong(name, value, "a number of changes"))?;
            open.counted(&collection.into(), count);
        }
        Ok(Some(open))
    }
}

impl PartialEq for OpenTransaction {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

fn push_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn take_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (text, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    *bytes = rest;
    std::str::from_utf8(text).ok()
}

/// Follows the transactions of one partition.
#[derive(Debug)]
pub struct TransactionMonitor {
    topic: Arc<str>,
    open: Option<OpenTransaction>,
}

impl TransactionMonitor {
    /// `topic` takes the records of begin and end.
    pub fn new(topic: Arc<str>) -> Self {
        Self { topic, open: None }
    }

    /// Goes on with what a stored position holds, or with no transaction.
    pub fn resume(&mut self, open: Option<OpenTransaction>) {
        self.open = open;
    }

    pub fn open(&self) -> Option<&OpenTransaction> {
        self.open.as_ref()
    }

    /// What the next position holds of the open transaction.
    pub fn state(&self) -> Option<&[u8]> {
        self.open().map(OpenTransaction::as_bytes)
    }

    /// What is told before a change of transaction `id`, or of none: the end of another one, and the
    /// begin of its own. `place` makes the position before the change that holds the given state;
    /// `ts_ms` is the time of the change.
    pub fn enter(
        &mut self,
        id: Option<&Arc<str>>,
        ts_ms: i64,
        mut place: impl FnMut(Option<&[u8]>) -> Position,
        out: &mut Vec<Record>,
    ) {
        if self.open.as_ref().map(OpenTransaction::id) == id {
            return;
        }
        if let Some(ended) = self.open.take() {
            let collection = |c: &Counted| Value::Struct(vec![Value::text(c.name.clone()), Value::Int64(c.count)]);
            let counts = [Value::Int64(ended.total), Value::Array(ended.collections.iter().map(collection).collect())];
            out.push(self.marker("END", &ended.id, counts, ts_ms, place(None)));
        }
        if let Some(id) = id {
            let begun = OpenTransaction::begin(id.clone());
            let position = place(Some(begun.as_bytes()));
            out.push(self.marker("BEGIN", id, [Value::Null, Value::Null], ts_ms, position));
            self.open = Some(begun);
        }
    }

    /// Counts a change of `collection` in the open transaction; the block `transaction` of its
    /// envelope, null outside of transactions.
    pub fn count(&mut self, collection: &Arc<str>) -> Value {
        let Some(open) = &mut self.open else { return Value::Null };
        let (total, order) = open.count(collection);
        Value::Struct(vec![Value::text(open.id.clone()), Value::Int64(total), Value::Int64(order)])
    }

    fn marker(
        &self,
        status: &'static str,
        id: &Arc<str>,
        counts: [Value; 2],
        ts_ms: i64,
        position: Position,
    ) -> Record {
        let [total, collections] = counts;
        let id = Text::Shared(id.clone());
        let value = vec![Value::text(status), Value::String(id.clone()), total, collections, Value::Int64(ts_ms)];
        Record {
            topic: self.topic.clone(),
            partition: None,
            key: Datum::new(transaction_key(), Value::Struct(vec![Value::String(id)])),
            value: Datum::new(transaction_value(), Value::Struct(value)),
            headers: Headers::default(),
            timestamp: None,
            position,
        }
    }
}

#[cfg(test)]
#[path = "transaction_tests.rs"]
mod tests;
