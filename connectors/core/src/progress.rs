//! What a partition is doing, as numbers that status, metrics and the progress watch read.
//!
//! Raised once per batch by the reader and the encoder; relaxed atomics, no lock on the data path.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Progress of one collection or table in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SnapshotProgress {
    pub done: u64,
    /// Estimate of the source; 0 = unknown.
    pub expected: u64,
    pub finished: bool,
}

#[derive(Debug, Default)]
pub struct PartitionProgress {
    /// Events read from the source.
    pub events_read: AtomicU64,
    /// Events that a filter kept back.
    pub events_filtered: AtomicU64,
    /// Events of which no record could be made, left out because the configuration says so.
    pub events_failed: AtomicU64,
    /// Records acknowledged by Kafka.
    pub records_acked: AtomicU64,
    /// Times the connection to the source broke.
    pub disconnects: AtomicU64,
    pub elections: AtomicU64,
    /// Source time of the newest event in ms since the epoch; 0 = none yet.
    pub source_time_ms: AtomicI64,
    /// Wall clock of the last answer of the source in ms since the epoch.
    pub last_contact_ms: AtomicI64,
    /// Waits under way that were asked for.
    rests: AtomicUsize,
    snapshot: Mutex<Option<SnapshotState>>,
}

#[derive(Debug, Clone)]
pub struct SnapshotState {
    pub started: Instant,
    pub ended: Option<Instant>,
    pub tables: BTreeMap<String, SnapshotProgress>,
}

impl PartitionProgress {
    pub fn snapshot_started(&self, expected: BTreeMap<String, SnapshotProgress>) {
        *self.snapshot.lock() = Some(SnapshotState { started: Instant::now(), ended: None, tables: expected });
    }
    /// Once per batch of a table.
    pub fn snapshot_advanced(&self, table: &str, rows: u64, finished: bool) {
        if let Some(state) = self.snapshot.lock().as_mut() {
            let entry = state.tables.entry(table.to_owned()).or_default();
            entry.done += rows;
            entry.finished |= finished;
        }
    }
    pub fn snapshot_ended(&self) {
        if let Some(state) = self.snapshot.lock().as_mut() {
            state.ended = Some(Instant::now());
        }
    }
    pub fn snapshot(&self) -> Option<SnapshotState> {
        self.snapshot.lock().clone()
    }
    /// Waits because the configuration says so (a delay, a pause between attempts): however long it
    /// takes, the progress watch does not mistake it for a standstill.
    pub async fn rest(&self, time: Duration) {
        self.rests.fetch_add(1, Ordering::Relaxed);
        let _rest = Rest(&self.rests);
        tokio::time::sleep(time).await;
    }
    pub fn is_resting(&self) -> bool {
        self.rests.load(Ordering::Relaxed) > 0
    }
    pub fn count(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}

/// Ends a rest, also one that is dropped before its time.
struct Rest<'a>(&'a AtomicUsize);

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SnapshotState {
    pub fn done(&self) -> u64 {
        self.tables.values().map(|t| t.done).sum()
    }
    pub fn expected(&self) -> u64 {
        self.tables.values().map(|t| t.expected.max(t.done)).sum()
    }
    /// Rows a second since the start.
    pub fn rate(&self) -> f64 {
        let end = self.ended.unwrap_or_else(Instant::now);
        let seconds = end.duration_since(self.started).as_secs_f64();
        if seconds > 0.0 { self.done() as f64 / seconds } else { 0.0 }
    }
    /// Time left at the present rate; `None` before the first row.
    pub fn left(&self) -> Option<Duration> {
        let rate = self.rate();
        (rate > 0.0).then(|| Duration::from_secs_f64((self.expected().saturating_sub(self.done())) as f64 / rate))
    }
}
