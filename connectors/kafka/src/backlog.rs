//! Records that wait, as bytes, until the client has settled what it has.
//!
//! They are kept in loads, each as large as one request may be (and never tiny), so that a load is
//! handed over as a whole. Bounded by the caller; order is that of arrival.

use std::collections::VecDeque;
use std::sync::Arc;

use thalweg_core::delivery::Message;

use crate::load::Load;
use crate::loads::Loads;

pub(crate) struct Backlog {
    waiting: VecDeque<Load>,
    loads: Arc<Loads>,
    cost: u64,
}

impl Backlog {
    pub(crate) fn new(loads: Arc<Loads>) -> Self {
        Self { waiting: VecDeque::new(), loads, cost: 0 }
    }

    pub(crate) fn push(&mut self, seq: u64, cost: u64, message: &Message<'_>) {
        let size = Load::size_of(message);
        if self.waiting.back().is_none_or(|last| last.size() + size > self.loads.most()) {
            self.waiting.push_back(self.loads.empty());
        }
        if let Some(last) = self.waiting.back_mut() {
            last.push(seq, cost, size, message);
            self.cost += cost;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// Size of what would be handed over next.
    pub(crate) fn next_size(&self) -> usize {
        self.waiting.front().map_or(0, Load::size)
    }

    /// The next load.
    pub(crate) fn take(&mut self) -> Option<Load> {
        let load = self.waiting.pop_front()?;
        self.cost -= load.cost();
        Some(load)
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.cost = 0;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use thalweg_core::delivery::EncodedHeaders;

    use super::*;

    type Bytes = Option<&'static [u8]>;

    #[test]
    fn records_come_back_as_they_were_in_loads_of_one_request() {
        let topic: Arc<str> = Arc::from("t");
        let headers: EncodedHeaders = Arc::new(vec![(Arc::from("h"), None)]);
        let others: (Arc<str>, EncodedHeaders) = (Arc::from("u"), EncodedHeaders::default());
        let records: [(Bytes, Bytes); 5] =
            [(Some(b"k"), Some(b"v")), (None, Some(b"")), (Some(b""), None), (None, None), (None, Some(&[7; 400]))];
        let about = |seq: usize| if seq == 1 { (&others.0, &others.1) } else { (&topic, &headers) };
        let loads = Arc::new(Loads::of_size(160));
        let mut backlog = Backlog::new(loads.clone());
        for round in 0..2 {
            for (seq, (key, value)) in records.into_iter().enumerate() {
                let partition = Some(seq as i32);
                let (topic, headers) = about(seq);
                backlog.push(seq as u64, 10, &Message { topic, partition, key, value, headers, timestamp: Some(7) });
            }
            assert_eq!(backlog.cost(), 50);
            let mut at = 0;
            let mut sizes = Vec::new();
            while let Some(load) = backlog.take() {
                assert_eq!(Some(load.numbers().end), load.records().last().map(|(seq, ..)| seq + 1));
                sizes.push(load.records().count());
                for (seq, cost, m) in load.records() {
                    assert_eq!((seq, cost, m.partition), (at as u64, 10, Some(at as i32)));
                    assert_eq!((m.key, m.value), records[at]);
                    assert!(Arc::ptr_eq(m.topic, about(at).0) && Arc::ptr_eq(m.headers, about(at).1));
                    at += 1;
                }
                let held = load.len() + 1;
                let lent = loads.lend(load);
                loads.let_go(lent, held);
            }
            assert_eq!((at, sizes, backlog.cost()), (5, vec![2, 2, 1], 0), "round {round}: one alone if it is larger");
            assert!(backlog.is_empty() && backlog.next_size() == 0);
        }
    }
}
