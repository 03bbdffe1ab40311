//! Loads on loan to the client, and spare ones.
//!
//! The client reads values from where the load holds them, so a load stays as it is until the client
//! has let go of each of its records; then its memory is used again. Invariant: nothing here outlives
//! or moves what the client may read; whoever closes the client drops this after it.
//!
//! One lock for each load and each event of the client, none for a record. It does not: know what a
//! report says, or limit how much is on loan.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::load::Load;

/// Smaller batches than this leave several in one load: waiting for each would cost a pause a batch.
const LEAST: usize = 256 * 1024;
/// One is being filled while another one is on loan.
const SPARE: usize = 2;

pub(crate) struct Loads {
    /// Size of a load in bytes of a request.
    most: usize,
    lent: Mutex<Vec<Arc<Lent>>>,
    /// Cost of the loads on loan, whole: one record that the client holds keeps the memory of all.
    cost: AtomicU64,
    spare: Mutex<Vec<Load>>,
}

/// A load that the client reads from.
pub(crate) struct Lent {
    load: Load,
    numbers: Range<u64>,
    /// Records that the client still holds, and one while it is being handed over.
    held: AtomicUsize,
}

impl Lent {
    pub(crate) fn load(&self) -> &Load {
        &self.load
    }
}

impl Loads {
    pub(crate) fn new(batch_size: u64) -> Self {
        Self::of_size(usize::try_from(batch_size).unwrap_or(usize::MAX).max(LEAST))
    }

    pub(crate) fn of_size(most: usize) -> Self {
        Self { most, lent: Mutex::default(), cost: AtomicU64::new(0), spare: Mutex::default() }
    }

    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Cost of what is on loan.
    pub(crate) fn cost(&self) -> u64 {
        self.cost.load(Ordering::Acquire)
    }

    /// An empty one.
    pub(crate) fn empty(&self) -> Load {
        self.spare.lock().pop().unwrap_or_default()
    }

    /// Before the client gets the load's first record. Ends with [`Loads::let_go`] of what the client
    /// did not take, and one more.
    pub(crate) fn lend(&self, load: Load) -> Arc<Lent> {
        self.cost.fetch_add(load.cost(), Ordering::AcqRel);
        let lent = Arc::new(Lent { numbers: load.numbers(), held: AtomicUsize::new(load.len() + 1), load });
        self.lent.lock().push(lent.clone());
        lent
    }

    /// So many records of it are not read any more.
    pub(crate) fn let_go(&self, lent: Arc<Lent>, records: usize) {
        if records == 0 || lent.held.fetch_sub(records, Ordering::AcqRel) != records {
            return;
        }
        self.lent.lock().retain(|l| !Arc::ptr_eq(l, &lent));
        self.cost.fetch_sub(lent.load.cost(), Ordering::AcqRel);
        // Somebody who has counted before may be about to drop it: then it goes with that one.
        let Some(load) = Arc::into_inner(lent).and_then(|lent| lent.load.emptied(self.most)) else { return };
        let mut spare = self.spare.lock();
        if spare.len() < SPARE {
            spare.push(load);
        }
    }

    /// For the reports of one event.
    pub(crate) fn tally(&self) -> Tally<'_> {
        Tally { loads: self, counts: self.lent.lock().iter().map(|l| (l.clone(), 0)).collect(), at: 0 }
    }

    #[cfg(test)]
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.lent.lock().len(), self.spare.lock().len())
    }
}

/// Records that the client lets go of, by load.
pub(crate) struct Tally<'a> {
    loads: &'a Loads,
    counts: Vec<(Arc<Lent>, usize)>,
    /// Load of the previous record; neighbours share it.
    at: usize,
}

impl Tally<'_> {
    pub(crate) fn count(&mut self, seq: u64) {
        let holds = |(lent, _): &(Arc<Lent>, usize)| lent.numbers.contains(&seq);
        if !self.counts.get(self.at).is_some_and(holds) {
            self.at = self.counts.iter().position(holds).unwrap_or(self.counts.len());
        }
        if let Some((_, count)) = self.counts.get_mut(self.at) {
            *count += 1;
        }
    }

    /// After the client has let go of them.
    pub(crate) fn settle(self) {
        for (lent, records) in self.counts {
            self.loads.let_go(lent, records);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use thalweg_core::delivery::{EncodedHeaders, Message};

    use super::*;

    fn load(numbers: impl IntoIterator<Item = u64>, loads: &Loads) -> Load {
        let (topic, headers) = (Arc::from("t"), EncodedHeaders::default());
        let mut load = loads.empty();
        for seq in numbers {
            let (key, value, partition) = (None, Some(&b"v"[..]), None);
            load.push(seq, 1, 0, &Message { topic: &topic, partition, key, value, headers: &headers, timestamp: None });
        }
        load
    }

    #[test]
    fn a_load_is_kept_until_its_last_record_is_let_go_of() {
        let loads = Loads::of_size(1000);
        let first = loads.lend(load([3, 5, 6], &loads));
        let second = loads.lend(load(7..17, &loads));
        loads.let_go(first, 1);
        let mut tally = loads.tally();
        [3, 7, 6, 8, 900].into_iter().for_each(|seq| tally.count(seq));
        tally.settle();
        assert_eq!((loads.counts(), loads.cost()), ((2, 0), 13));
        let mut tally = loads.tally();
        (9..17).for_each(|seq| tally.count(seq));
        tally.count(5);
        tally.settle();
        assert_eq!((loads.counts(), loads.cost()), ((1, 1), 10), "the second one is still being handed over");
        loads.let_go(second, 1);
        assert_eq!((loads.counts(), loads.cost()), ((0, 2), 0));
        drop((loads.empty(), loads.empty()));
        assert_eq!(loads.counts(), (0, 0));
    }

    #[test]
    fn no_more_is_kept_than_is_used_in_turn() {
        let loads = Loads::of_size(1000);
        let lent: Vec<_> = (0..4).map(|n| loads.lend(load([n], &loads))).collect();
        lent.into_iter().for_each(|lent| loads.let_go(lent, 2));
        assert_eq!(loads.counts(), (0, SPARE));
    }

    #[test]
    fn small_batches_do_not_make_small_loads() {
        assert_eq!((Loads::new(16_384).most, Loads::new(1_000_000).most), (LEAST, 1_000_000));
    }
}
