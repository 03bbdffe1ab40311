//! Records that wait, as bytes, for the next transaction while the present one commits.
//!
//! Bounded by the caller; memory is kept between transactions while it is in use and returned when
//! a transaction passes without a backlog. Order is that of arrival.

use std::ops::Range;
use std::sync::Arc;

use thalweg_core::delivery::{EncodedHeaders, Message};

#[derive(Default)]
pub(crate) struct Backlog {
    bytes: Vec<u8>,
    records: Vec<Waiting>,
    cost: u64,
}

struct Waiting {
    seq: u64,
    cost: u64,
    topic: Arc<str>,
    partition: Option<i32>,
    key: Option<Range<usize>>,
    value: Option<Range<usize>>,
    headers: EncodedHeaders,
    timestamp: Option<i64>,
}

impl Backlog {
    pub(crate) fn push(&mut self, seq: u64, cost: u64, message: &Message<'_>) {
        let key = message.key.map(|k| self.keep(k));
        let value = message.value.map(|v| self.keep(v));
        self.records.push(Waiting {
            seq,
            cost,
            topic: message.topic.clone(),
            partition: message.partition,
            key,
            value,
            headers: message.headers.clone(),
            timestamp: message.timestamp,
        });
        self.cost += cost;
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// Hands every record over in order; stops at the first error. Empty afterwards.
    pub(crate) fn drain<E>(&mut self, mut send: impl FnMut(u64, u64, &Message<'_>) -> Result<(), E>) -> Result<(), E> {
        let result = self.records.iter().try_for_each(|w| {
            let message = Message {
                topic: &w.topic,
                partition: w.partition,
                key: w.key.clone().map(|r| &self.bytes[r]),
                value: w.value.clone().map(|r| &self.bytes[r]),
                headers: &w.headers,
                timestamp: w.timestamp,
            };
            send(w.seq, w.cost, &message)
        });
        self.bytes.clear();
        self.records.clear();
        self.cost = 0;
        result
    }

    /// Returns memory that the last transaction did not need.
    pub(crate) fn release(&mut self) {
        if self.records.is_empty() && self.bytes.capacity() > 0 {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn records_come_back_as_they_were() {
        let topic: Arc<str> = Arc::from("t");
        let headers: EncodedHeaders = Arc::new(vec![(Arc::from("h"), None)]);
        let mut backlog = Backlog::default();
        type Bytes = Option<&'static [u8]>;
        let records: [(Bytes, Bytes); 4] =
            [(Some(b"k"), Some(b"v")), (None, Some(b"")), (Some(b""), None), (None, None)];
        for (seq, (key, value)) in records.into_iter().enumerate() {
            let message = Message {
                topic: &topic,
                partition: Some(seq as i32),
                key,
                value,
                headers: &headers,
                timestamp: Some(7),
            };
            backlog.push(seq as u64, 10, &message);
        }
        assert_eq!(backlog.cost(), 40);
        let mut at = 0;
        backlog
            .drain(|seq, cost, m| {
                assert_eq!((seq, cost, m.partition), (at as u64, 10, Some(at as i32)));
                assert_eq!((m.key, m.value), records[at]);
                assert!(Arc::ptr_eq(m.headers, &headers));
                at += 1;
                if at == 3 { Err("stop") } else { Ok(()) }
            })
            .unwrap_err();
        assert_eq!((at, backlog.is_empty(), backlog.cost()), (3, true, 0));
        backlog.release();
        assert!(backlog.is_empty());
    }
}
