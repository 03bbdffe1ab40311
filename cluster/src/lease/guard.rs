//! The node's side of its lease.
//!
//! Invariants: the lease lasts from the *sending* of a heartbeat that was granted (L3), so delays
//! only shorten it; it belongs to one incarnation; [`LeaseGuard::held`] is a clock read and a
//! comparison, cheap enough for every batch (L6).
//!
//! It does not: send heartbeats ([`super::LeaseKeeper`]) or stop anything.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use thalweg_actors::sabotage::{Defect, active};
use tokio::sync::watch;

use super::clock::{BootInstant, Clock};
use super::terms::LeaseTerms;

/// Heartbeats that may be unanswered at a time; older ones are of no use.
const OUTSTANDING: usize = 64;

pub struct LeaseGuard {
    terms: LeaseTerms,
    clock: Arc<dyn Clock>,
    /// End of the lease in nanoseconds of the clock; 0 = none.
    end: AtomicU64,
    /// A heartbeat was granted at some time.
    granted: AtomicBool,
    sent: Mutex<Sent>,
    /// Counts extensions and ends, to wake those who wait.
    moved: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Sent {
    incarnation: u64,
    last: u64,
    times: VecDeque<(u64, BootInstant)>,
}

impl LeaseGuard {
    pub fn new(terms: LeaseTerms, clock: Arc<dyn Clock>) -> Self {
        Self {
            terms,
            clock,
            end: AtomicU64::new(0),
            granted: AtomicBool::new(false),
            sent: Mutex::default(),
            moved: watch::Sender::new(0),
        }
    }

    pub fn terms(&self) -> &LeaseTerms {
        &self.terms
    }

    /// Drops the lease; only heartbeats sent from now on count, for this incarnation.
    pub fn begin(&self, incarnation: u64) {
        let mut sent = self.sent.lock();
        sent.incarnation = incarnation;
        sent.times.clear();
        self.end.store(0, Ordering::Release);
        drop(sent);
        self.moved.send_modify(|n| *n += 1);
    }

    /// The incarnation has ended.
    pub fn drop_lease(&self) {
        let incarnation = self.sent.lock().incarnation;
        self.begin(incarnation);
    }

    /// A heartbeat for `incarnation` goes out now. Returns its number, or nothing if that
    /// incarnation is not the present one.
    pub fn sending(&self, incarnation: u64) -> Option<u64> {
        let now = self.clock.now();
        let mut sent = self.sent.lock();
        if sent.incarnation != incarnation {
            return None;
        }
        sent.last += 1;
        let seq = sent.last;
        if sent.times.len() == OUTSTANDING {
            sent.times.pop_front();
        }
        sent.times.push_back((seq, now));
        Some(seq)
    }

    /// The leader granted heartbeat `seq`.
    pub fn granted(&self, seq: u64) {
        let mut sent = self.sent.lock();
        let Some(at) = sent.times.iter().find(|(s, _)| *s == seq).map(|(_, at)| *at) else { return };
        sent.times.retain(|(s, _)| *s > seq);
        let end = nanos(at.plus(self.terms.held()));
        // Under the lock, so that a grant cannot outlive `begin`.
        self.end.fetch_max(end, Ordering::AcqRel);
        self.granted.store(true, Ordering::Release);
        drop(sent);
        self.moved.send_modify(|n| *n += 1);
    }

    /// Whether this node may hand anything to Kafka right now.
    pub fn held(&self) -> bool {
        nanos(self.clock.now()) < self.end.load(Ordering::Acquire) || active(Defect::NoFencing)
    }

    /// Whether there was a lease at any time since the start, of whatever incarnation.
    pub fn was_held(&self) -> bool {
        self.granted.load(Ordering::Acquire)
    }

    /// Time left; zero without a lease.
    pub fn remaining(&self) -> Duration {
        if active(Defect::NoFencing) {
            return Duration::from_secs(3_600);
        }
        Duration::from_nanos(self.end.load(Ordering::Acquire).saturating_sub(nanos(self.clock.now())))
    }

    /// Resolves when the lease is lost; at once if it is not held.
    pub async fn lost(&self) {
        let mut moved = self.moved.subscribe();
        loop {
            moved.mark_unchanged();
            let left = self.remaining();
            if left.is_zero() {
                return;
            }
            tokio::select! {
                // The timer does not count a suspended machine; the clock above does.
                () = tokio::time::sleep(left) => {}
                _ = moved.changed() => {}
            }
        }
    }
}

/// Rounds a time that cannot be represented to the end of time, which no lease reaches.
fn nanos(instant: BootInstant) -> u64 {
    u64::try_from(instant.0.as_nanos()).unwrap_or(u64::MAX)
}
