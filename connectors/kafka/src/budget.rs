//! Memory for records on their way, shared fairly among the producers of a node.
//!
//! Each open producer may hold the node's budget divided by their number; the share shrinks and
//! grows as producers come and go, and takes effect with the next record. A single record above the
//! share still passes when nothing else is on its way, so a small share never stops a producer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Bytes for all producers of a node unless `thalweg.producer.buffer.bytes` says otherwise.
pub(crate) const DEFAULT_BYTES: u64 = 24 * 1024 * 1024;
/// What a record costs beside key and value: librdkafka's own structures and usual headers.
const OVERHEAD: u64 = 384;

#[derive(Debug)]
pub(crate) struct Budget {
    total: u64,
    open: Mutex<u64>,
    share: AtomicU64,
}

impl Budget {
    pub(crate) fn new(total: u64) -> Arc<Self> {
        Arc::new(Self { total, open: Mutex::new(0), share: AtomicU64::new(total) })
    }

    fn change(&self, by: i64) {
        let mut open = self.open.lock();
        *open = open.saturating_add_signed(by);
        self.share.store(self.total / (*open).max(1), Ordering::Relaxed);
    }
}

/// One producer's part; given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    /// The user's own limit for this producer.
    most: u64,
    /// Least cost of a record, so that `most` also bounds their number.
    floor: u64,
}

impl Share {
    pub(crate) fn new(budget: &Arc<Budget>, buffer_bytes: Option<u64>, buffer_messages: u64) -> Self {
        budget.change(1);
        let most = buffer_bytes.unwrap_or(budget.total).min(budget.total).max(1);
        Self { budget: budget.clone(), most, floor: most.div_ceil(buffer_messages.max(1)) }
    }

    /// Cost units that may be on their way now.
    pub(crate) fn limit(&self) -> u64 {
        self.budget.share.load(Ordering::Relaxed).min(self.most)
    }

    /// What a record costs; the same before sending and in its delivery report.
    pub(crate) fn cost(&self, key: usize, value: usize) -> u64 {
        cost(self.floor, key, value)
    }

    pub(crate) fn floor(&self) -> u64 {
        self.floor
    }
}

pub(crate) fn cost(floor: u64, key: usize, value: usize) -> u64 {
    (key as u64 + value as u64 + OVERHEAD).max(floor)
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.change(-1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_number_of_producers() {
        let budget = Budget::new(1_000_000);
        let one = Share::new(&budget, None, 100_000);
        assert_eq!(one.limit(), 1_000_000);
        let two = Share::new(&budget, Some(300_000), 100);
        assert_eq!((one.limit(), two.limit()), (500_000, 300_000));
        drop(one);
        assert_eq!(two.limit(), 300_000);
        assert_eq!(two.limit() / two.cost(1, 1), 100, "a hundred small records fill it");
        assert_eq!(two.cost(10_000, 1), 10_001 + OVERHEAD);
    }
}
