//! Records that wait, as bytes, until the client has settled what it has.
//!
//! They are kept in loads, each as large as one request may be (and never tiny), so that a load is
//! handed over as a whole and its memory is used again. Bounded by the caller; order is that of
//! arrival.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use thalweg_core::delivery::{EncodedHeaders, Message};

/// Smaller batches than this leave several in one load: waiting for each would cost a pause a batch.
const LEAST: usize = 256 * 1024;
/// What a record adds to a request beside key, value and headers, at most.
const FRAMING: usize = 64;
/// Memory that is kept without being used.
const SMALL: usize = 64 * 1024;

pub(crate) struct Backlog {
    loads: VecDeque<Load>,
    /// The last one handed over, for its memory.
    spare: Option<Load>,
    cost: u64,
    /// Size of a load in bytes of a request.
    most: usize,
}

/// Records that go to the client together.
#[derive(Default)]
pub(crate) struct Load {
    bytes: Vec<u8>,
    records: Vec<Waiting>,
    /// In a request.
    size: usize,
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
    pub(crate) fn new(batch_size: u64) -> Self {
        Self::of_loads(usize::try_from(batch_size).unwrap_or(usize::MAX).max(LEAST))
    }

    fn of_loads(most: usize) -> Self {
        Self { loads: VecDeque::new(), spare: None, cost: 0, most }
    }

    pub(crate) fn push(&mut self, seq: u64, cost: u64, message: &Message<'_>) {
        let size = request_size(message);
        if self.loads.back().is_none_or(|last| last.size + size > self.most) {
            self.loads.push_back(self.spare.take().unwrap_or_default());
        }
        if let Some(last) = self.loads.back_mut() {
            last.push(seq, cost, size, message);
            self.cost += cost;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.loads.is_empty()
    }

    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// Size of what would be handed over next.
    pub(crate) fn next_size(&self) -> usize {
        self.loads.front().map_or(0, |l| l.size)
    }

    /// The next load. Give it back with [`Backlog::reuse`].
    pub(crate) fn take(&mut self) -> Option<Load> {
        let load = self.loads.pop_front()?;
        self.cost -= load.cost;
        Some(load)
    }

    pub(crate) fn reuse(&mut self, mut load: Load) {
        let (used, had) = (load.bytes.len(), load.bytes.capacity());
        // Memory that records no longer need, or that one record far above the usual size needed, is
        // given back.
        if had > self.most.saturating_mul(2) || (had > SMALL && used < had / 8) {
            return;
        }
        load.bytes.clear();
        load.records.clear();
        (load.size, load.cost) = (0, 0);
        self.spare = Some(load);
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::of_loads(self.most);
    }
}

impl Load {
    fn push(&mut self, seq: u64, cost: u64, size: usize, message: &Message<'_>) {
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
        self.size += size;
        self.cost += cost;
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// Behind its last record.
    pub(crate) fn end(&self) -> Option<u64> {
        self.records.last().map(|r| r.seq + 1)
    }

    /// Number, cost and content of each.
    pub(crate) fn records(&self) -> impl Iterator<Item = (u64, u64, Message<'_>)> {
        self.records.iter().map(|w| {
            let message = Message {
                topic: &w.topic,
                partition: w.partition,
                key: w.key.clone().map(|r| &self.bytes[r]),
                value: w.value.clone().map(|r| &self.bytes[r]),
                headers: &w.headers,
                timestamp: w.timestamp,
            };
            (w.seq, w.cost, message)
        })
    }
}

fn request_size(message: &Message<'_>) -> usize {
    let headers: usize = message.headers.iter().map(|(n, v)| n.len() + v.as_ref().map_or(0, Vec::len) + 10).sum();
    message.key.map_or(0, <[u8]>::len) + message.value.map_or(0, <[u8]>::len) + headers + FRAMING
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    type Bytes = Option<&'static [u8]>;

    #[test]
    fn records_come_back_as_they_were_in_loads_of_one_request() {
        let topic: Arc<str> = Arc::from("t");
        let headers: EncodedHeaders = Arc::new(vec![(Arc::from("h"), None)]);
        let records: [(Bytes, Bytes); 5] =
            [(Some(b"k"), Some(b"v")), (None, Some(b"")), (Some(b""), None), (None, None), (None, Some(&[7; 400]))];
        let mut backlog = Backlog::of_loads(160);
        for round in 0..2 {
            for (seq, (key, value)) in records.into_iter().enumerate() {
                let partition = Some(seq as i32);
                let message = Message { topic: &topic, partition, key, value, headers: &headers, timestamp: Some(7) };
                backlog.push(seq as u64, 10, &message);
            }
            assert_eq!(backlog.cost(), 50);
            let mut at = 0;
            let mut sizes = Vec::new();
            while let Some(load) = backlog.take() {
                assert_eq!(load.end(), load.records().last().map(|(seq, ..)| seq + 1));
                sizes.push(load.records().count());
                for (seq, cost, m) in load.records() {
                    assert_eq!((seq, cost, m.partition), (at as u64, 10, Some(at as i32)));
                    assert_eq!((m.key, m.value), records[at]);
                    assert!(Arc::ptr_eq(m.headers, &headers));
                    at += 1;
                }
                backlog.reuse(load);
            }
            assert_eq!((at, sizes, backlog.cost()), (5, vec![2, 2, 1], 0), "round {round}: one alone if it is larger");
            assert!(backlog.is_empty() && backlog.next_size() == 0);
        }
    }

    #[test]
    fn small_batches_do_not_make_small_loads() {
        assert_eq!((Backlog::new(16_384).most, Backlog::new(1_000_000).most), (LEAST, 1_000_000));
    }

    #[test]
    fn memory_that_is_not_needed_any_more_is_given_back() {
        let (topic, headers) = (Arc::from("t"), EncodedHeaders::default());
        let (large, small) = (vec![0; 200_000], [0; 10]);
        let mut backlog = Backlog::new(1_000_000);
        let mut pass = |value: &[u8]| {
            let (key, value, partition) = (None, Some(value), None);
            backlog.push(0, 1, &Message { topic: &topic, partition, key, value, headers: &headers, timestamp: None });
            let load = backlog.take().unwrap();
            backlog.reuse(load);
            backlog.spare.as_ref().map_or(0, |s| s.bytes.capacity())
        };
        assert!(pass(&large) >= 200_000);
        assert_eq!(pass(&small), 0);
        assert!((1..=SMALL).contains(&pass(&small)));
    }
}
