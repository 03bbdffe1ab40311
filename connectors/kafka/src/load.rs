//! Records as bytes, gathered to go to the client together.
//!
//! Filled once, then only read until it is emptied: nothing moves while the client reads from it. It
//! does not: know the client, or when to leave.

use std::ops::Range;
use std::sync::Arc;

use thalweg_core::delivery::{EncodedHeaders, Message};

/// What a record adds to a request beside key, value and headers, at most.
const FRAMING: usize = 64;
/// Memory that is kept without being used.
const SMALL: usize = 64 * 1024;

/// Records that go to the client together.
#[derive(Default)]
pub(crate) struct Load {
    /// Apart from the values, because the client copies keys at once and values when it sends: each a
    /// walk over memory that lies together.
    keys: Vec<u8>,
    values: Vec<u8>,
    records: Vec<Waiting>,
    /// Each once for all neighbours that share it.
    topics: Vec<Arc<str>>,
    headers: Vec<EncodedHeaders>,
    size: usize,
    cost: u64,
}

struct Waiting {
    seq: u64,
    cost: u64,
    topic: usize,
    partition: Option<i32>,
    key: Option<Range<usize>>,
    value: Option<Range<usize>>,
    headers: usize,
    timestamp: Option<i64>,
}

impl Load {
    /// Bytes that the record needs in a request.
    pub(crate) fn size_of(message: &Message<'_>) -> usize {
        let headers: usize = message.headers.iter().map(|(n, v)| n.len() + v.as_ref().map_or(0, Vec::len) + 10).sum();
        message.key.map_or(0, <[u8]>::len) + message.value.map_or(0, <[u8]>::len) + headers + FRAMING
    }

    /// `seq` is above those before; `size` is the message's [`Load::size_of`].
    pub(crate) fn push(&mut self, seq: u64, cost: u64, size: usize, message: &Message<'_>) {
        let key = message.key.map(|k| keep(&mut self.keys, k));
        let value = message.value.map(|v| keep(&mut self.values, v));
        if !self.topics.last().is_some_and(|last| Arc::ptr_eq(last, message.topic)) {
            self.topics.push(message.topic.clone());
        }
        if !self.headers.last().is_some_and(|last| Arc::ptr_eq(last, message.headers)) {
            self.headers.push(message.headers.clone());
        }
        self.records.push(Waiting {
            seq,
            cost,
            topic: self.topics.len() - 1,
            partition: message.partition,
            key,
            value,
            headers: self.headers.len() - 1,
            timestamp: message.timestamp,
        });
        self.size += size;
        self.cost += cost;
    }

    /// Bytes in a request.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// Number of records.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// From its first record to behind its last one. Numbers in between may be missing.
    pub(crate) fn numbers(&self) -> Range<u64> {
        match (self.records.first(), self.records.last()) {
            (Some(first), Some(last)) => first.seq..last.seq + 1,
            _ => 0..0,
        }
    }

    /// Number, cost and content of each.
    pub(crate) fn records(&self) -> impl Iterator<Item = (u64, u64, Message<'_>)> {
        self.records.iter().map(|w| {
            let message = Message {
                topic: &self.topics[w.topic],
                partition: w.partition,
                key: w.key.clone().map(|r| &self.keys[r]),
                value: w.value.clone().map(|r| &self.values[r]),
                headers: &self.headers[w.headers],
                timestamp: w.timestamp,
            };
            (w.seq, w.cost, message)
        })
    }

    /// Without its records, if its memory is worth keeping: not where one record far above the usual
    /// size (`usual`) needed it, nor where far less is needed by now.
    pub(crate) fn emptied(mut self, usual: usize) -> Option<Self> {
        let (used, had) = (self.keys.len() + self.values.len(), self.keys.capacity() + self.values.capacity());
        if had > usual.saturating_mul(2) || (had > SMALL && used < had / 8) {
            return None;
        }
        self.keys.clear();
        self.values.clear();
        self.records.clear();
        self.topics.clear();
        self.headers.clear();
        (self.size, self.cost) = (0, 0);
        Some(self)
    }
}

fn keep(into: &mut Vec<u8>, bytes: &[u8]) -> Range<usize> {
    let start = into.len();
    into.extend_from_slice(bytes);
    start..into.len()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn memory_that_is_not_needed_any_more_is_given_back() {
        let (topic, headers) = (Arc::from("t"), EncodedHeaders::default());
        let (large, small) = (vec![0; 200_000], [0; 10]);
        let mut kept = None;
        let mut pass = |value: &[u8]| {
            let mut load: Load = kept.take().unwrap_or_default();
            let (key, value, partition) = (None, Some(value), None);
            load.push(0, 1, 0, &Message { topic: &topic, partition, key, value, headers: &headers, timestamp: None });
            kept = load.emptied(1_000_000);
            kept.as_ref().map_or(0, |l| l.values.capacity())
        };
        assert!(pass(&large) >= 200_000);
        assert_eq!(pass(&small), 0);
        assert!((1..=SMALL).contains(&pass(&small)));
        assert_eq!(pass(&vec![0; 2_000_001]), 0);
    }
}
