//! What a unit has done, as plain numbers for metrics. Raised once per batch, relaxed, never reset:
//! they outlive generations and restarts of actors.
//!
//! The names follow the attributes of Connect's `connector-task-metrics` and `source-task-metrics`
//! (those of `task-error-metrics` are the core's `ErrorCounters`); rates and ratios are made from two
//! snapshots by whoever shows them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// Live counters of one unit.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $($(#[$doc])* pub(crate) $name: AtomicU64,)+
        }
        /// The counters at one moment.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct CounterView {
            $($(#[$doc])* pub $name: u64,)+
        }
        impl Counters {
            pub(crate) fn view(&self) -> CounterView {
                CounterView { $($name: self.$name.load(Ordering::Relaxed),)+ }
            }
        }
    };
}

counters! {
    /// Records read, before transforms (`source-record-poll-total`).
    polled,
    /// Batches read.
    batches,
    /// Largest batch in records (`batch-size-max`).
    batch_size_max,
    /// Time spent waiting for the source in microseconds (`poll-batch-avg-time-ms` = this / batches).
    poll_micros,
    /// Longest wait for one batch in microseconds.
    poll_micros_max,
    /// Messages handed to the producer.
    sent,
    /// Bytes of key and value handed to the producer.
    sent_bytes,
    /// Messages acknowledged (`source-record-write-total`).
    written,
    /// Records that a transform dropped.
    dropped,
    /// Commits of a position handed to the cluster.
    commits,
    commits_failed,
    /// Time from handing over a commit to its being applied, in microseconds.
    commit_micros,
    commit_micros_max,
    /// Generations that were built anew after a failure.
    restarts,
    /// Panics of parts of this unit.
    panics,
    /// Generations ended by the progress watch.
    stalls,
    /// Times this unit went to FAILED.
    failures,
    /// Times it lost its lease or was shut out by another owner.
    fenced,
    /// Starts of the unit tried, and those that reached RUNNING.
    startup_attempts,
    startup_successes,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
    pub(crate) fn max(counter: &AtomicU64, n: u64) {
        counter.fetch_max(n, Ordering::Relaxed);
    }
    pub(crate) fn batch(&self, records: u64, waited: Duration) {
        let micros = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        Self::add(&self.polled, records);
        Self::add(&self.batches, 1);
        Self::max(&self.batch_size_max, records);
        Self::add(&self.poll_micros, micros);
        Self::max(&self.poll_micros_max, micros);
    }
    pub(crate) fn committed(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        Self::add(&self.commit_micros, micros);
        Self::max(&self.commit_micros_max, micros);
    }
}

/// Wall clock in milliseconds since the epoch.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}
