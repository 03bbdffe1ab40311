//! Which positions are durable: the contiguous prefix of acknowledged messages, never a maximum.
//!
//! Two halves. [`AckWindow`] is shared: the Kafka client's threads mark sequence numbers in it,
//! lock-free and without allocation. [`AckTracker`] belongs to the encoder: it hands out the
//! sequence numbers, remembers the position of each message in flight, and moves positions over
//! the acknowledged prefix.
//!
//! Invariants:
//! - a position is given out only when every message entered before it is acknowledged;
//! - positions of one partition are given out in the order in which they were entered;
//! - nothing at or behind a failed message is ever given out;
//! - memory is fixed by the capacity: one bit and one position per message in flight.
//!
//! Each bit of the ring changes its meaning with every lap (acknowledged is 1 in even laps, 0 in odd
//! ones), so nothing needs clearing, and an acknowledgement that is repeated far too late can only
//! hold the prefix back, never move it.
//!
//! It does not: send again, commit positions, or know a broker.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

use crate::delivery::Acks;
use crate::error::Error;
use crate::position::Position;

/// Messages in flight that a window holds unless told otherwise (8 KiB of bits).
pub const DEFAULT_CAPACITY: usize = 65_536;

const NOBODY: u64 = u64::MAX;

/// The shared half. One per producer.
#[derive(Debug)]
pub struct AckWindow {
    bits: Box<[AtomicU64]>,
    capacity: u64,
    /// First number that the tracker has not passed.
    base: AtomicU64,
    /// First number that was not handed out yet.
    entered: AtomicU64,
    /// Every number below is acknowledged.
    below: AtomicU64,
    /// Lowest failed number.
    failed_at: AtomicU64,
    failure: OnceLock<Error>,
    /// The number that somebody waits for, or [`NOBODY`].
    wanted: AtomicU64,
    moved: Notify,
}

impl AckWindow {
    fn new(capacity: usize) -> Self {
        let capacity = capacity.max(64).next_power_of_two();
        Self {
            bits: (0..capacity / 64).map(|_| AtomicU64::new(0)).collect(),
            capacity: capacity as u64,
            base: AtomicU64::new(0),
            entered: AtomicU64::new(0),
            below: AtomicU64::new(0),
            failed_at: AtomicU64::new(u64::MAX),
            failure: OnceLock::new(),
            wanted: AtomicU64::new(NOBODY),
            moved: Notify::new(),
        }
    }

    /// Messages that may be in flight.
    pub fn capacity(&self) -> usize {
        self.bits.len() * 64
    }

    /// The first failure reported; final for this producer.
    pub fn failure(&self) -> Option<&Error> {
        self.failure.get()
    }

    /// Resolves when [`AckTracker::advance`] has something to move over, or after a failure (at
    /// once; look at [`AckWindow::failure`] first). Pending for ever while nothing is in flight.
    /// Cancel-safe; one waiter at a time.
    pub async fn advanced(&self) {
        loop {
            let base = self.base.load(Ordering::Acquire);
            // Announce, then look: a deliverer marks, then looks for the announcement. Both are
            // sequentially consistent, so at least one of the two sees the other.
            self.wanted.store(base, Ordering::SeqCst);
            if self.failed_at.load(Ordering::SeqCst) != u64::MAX || self.is_acked(base) {
                self.wanted.store(NOBODY, Ordering::SeqCst);
                return;
            }
            self.moved.notified().await;
        }
    }

    /// Word index and bit of a number.
    fn place(&self, seq: u64) -> (usize, u32) {
        let slot = seq & (self.capacity - 1);
        ((slot / 64) as usize, (slot % 64) as u32)
    }

    fn is_odd_lap(&self, seq: u64) -> bool {
        seq & self.capacity != 0
    }

    /// Marks the bits of `mask` in the word of `seq` as acknowledged in the lap of `seq`.
    fn mark(&self, word: usize, mask: u64, odd_lap: bool) {
        if odd_lap {
            self.bits[word].fetch_and(!mask, Ordering::SeqCst);
        } else {
            self.bits[word].fetch_or(mask, Ordering::SeqCst);
        }
    }

    /// The word of `seq` with acknowledged as 1.
    fn acked_word(&self, seq: u64) -> u64 {
        let word = self.bits[self.place(seq).0].load(Ordering::SeqCst);
        if self.is_odd_lap(seq) { !word } else { word }
    }

    fn is_acked(&self, seq: u64) -> bool {
        seq < self.below.load(Ordering::SeqCst) || self.acked_word(seq) >> self.place(seq).1 & 1 == 1
    }

    /// End of the acknowledged prefix that starts at `base`, at most `limit`.
    fn prefix_end(&self, base: u64, limit: u64) -> u64 {
        let limit = limit.min(self.failed_at.load(Ordering::SeqCst));
        let mut at = base.max(self.below.load(Ordering::SeqCst).min(limit));
        while at < limit {
            let offset = self.place(at).1;
            let run = (self.acked_word(at) >> offset).trailing_ones();
            at += u64::from(run);
            if run < 64 - offset {
                break;
            }
        }
        at.min(limit.max(base))
    }

    /// The tracker has passed everything below `end`. Numbers that the watermark acknowledged have
    /// no bit yet; they get it, because the next lap reads it the other way round.
    fn passed(&self, base: u64, end: u64) {
        let marked_end = end.min(self.below.load(Ordering::SeqCst));
        let mut at = base;
        while at < marked_end {
            let (word, offset) = self.place(at);
            let count = (marked_end - at).min(64 - u64::from(offset));
            let mask = (u64::MAX >> (64 - count)) << offset;
            self.mark(word, mask, self.is_odd_lap(at));
            at += count;
        }
        self.base.store(end, Ordering::Release);
    }

    /// Wakes the waiter if it waits for a number in `from..to`. At most one wake per announcement.
    fn wake(&self, from: u64, to: u64) {
        let wanted = self.wanted.load(Ordering::SeqCst);
        if wanted != NOBODY
            && (from..to).contains(&wanted)
            && self.wanted.compare_exchange(wanted, NOBODY, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        {
            self.moved.notify_one();
        }
    }
}

impl Acks for AckWindow {
    /// A number that is not in flight (answered before, or never handed out) is ignored.
    fn delivered(&self, seq: u64) {
        if seq < self.base.load(Ordering::Acquire) || seq >= self.entered.load(Ordering::Acquire) {
            return;
        }
        let (word, bit) = self.place(seq);
        self.mark(word, 1 << bit, self.is_odd_lap(seq));
        self.wake(seq, seq + 1);
    }

    fn delivered_below(&self, next: u64) {
        let next = next.min(self.entered.load(Ordering::Acquire));
        self.below.fetch_max(next, Ordering::SeqCst);
        self.wake(0, next);
    }

    fn failed(&self, seq: u64, error: Error) {
        // The first error is the cause, later ones are its victims.
        let _ = self.failure.set(error);
        self.failed_at.fetch_min(seq, Ordering::SeqCst);
        self.wake(0, NOBODY);
    }
}

/// No room: as many messages are in flight as the window holds. Wait on [`AckWindow::advanced`],
/// call [`AckTracker::advance`], try again. The position comes back.
#[derive(Debug)]
pub struct Full(pub Position);

struct InFlight {
    partition: usize,
    position: Position,
}

#[derive(Default)]
struct PartitionState {
    /// Number of the last message entered for it.
    last: Option<u64>,
    /// Durable, not yet given out.
    ready: Option<Position>,
}

/// The encoder's half. Counts the messages of one producer; one or more source partitions, named by
/// index, share it. A partition waits for the messages of the others that were entered before.
pub struct AckTracker {
    window: Arc<AckWindow>,
    in_flight: VecDeque<InFlight>,
    partitions: Vec<PartitionState>,
    base: u64,
}

impl AckTracker {
    /// `capacity` is rounded up to a power of two of at least 64.
    pub fn new(capacity: usize, partitions: usize) -> Self {
        Self {
            window: Arc::new(AckWindow::new(capacity)),
            in_flight: VecDeque::new(),
            partitions: (0..partitions.max(1)).map(|_| PartitionState::default()).collect(),
            base: 0,
        }
    }

    /// The half to hand to the producer.
    pub fn window(&self) -> &Arc<AckWindow> {
        &self.window
    }

    /// Enters a message and returns its sequence number: dense from 0. It must be sent, or the
    /// prefix stays before it. `position` is where to resume when it is the last one delivered.
    pub fn enter(&mut self, partition: usize, position: Position) -> Result<u64, Full> {
        if self.in_flight.len() >= self.window.capacity() {
            return Err(Full(position));
        }
        let seq = self.base + self.in_flight.len() as u64;
        self.partitions[partition].last = Some(seq);
        self.in_flight.push_back(InFlight { partition, position });
        self.window.entered.store(seq + 1, Ordering::Release);
        Ok(seq)
    }

    /// Enters a position that needs no message: filtered records, quiet progress, the starting
    /// position. It becomes durable together with the partition's last message before it, so it takes
    /// no number and always has room.
    pub fn enter_done(&mut self, partition: usize, position: Position) {
        let state = &mut self.partitions[partition];
        match state.last.and_then(|seq| seq.checked_sub(self.base)) {
            Some(at) => self.in_flight[at as usize].position = position,
            None => state.ready = Some(position),
        }
    }

    /// Moves over the acknowledged prefix; the newest durable position of a partition that has moved.
    /// Call until `None` (with one partition, one call gives all there is).
    pub fn advance(&mut self) -> Option<(usize, Position)> {
        let end = self.window.prefix_end(self.base, self.next());
        if end > self.base {
            for passed in self.in_flight.drain(..(end - self.base) as usize) {
                self.partitions[passed.partition].ready = Some(passed.position);
            }
            self.window.passed(self.base, end);
            self.base = end;
        }
        self.partitions.iter_mut().enumerate().find_map(|(index, state)| Some((index, state.ready.take()?)))
    }

    /// Messages entered and not yet passed by [`AckTracker::advance`].
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Messages passed since the start.
    pub fn acknowledged(&self) -> u64 {
        self.base
    }

    /// Number of the oldest message in flight; right after [`AckTracker::advance`] the oldest one
    /// without an acknowledgement.
    pub fn oldest_unacked(&self) -> Option<u64> {
        (!self.in_flight.is_empty()).then_some(self.base)
    }

    /// The number that the next message will get.
    pub fn next(&self) -> u64 {
        self.base + self.in_flight.len() as u64
    }
}

#[cfg(test)]
#[path = "ack_tests.rs"]
mod tests;
