//! What a partition is doing, as numbers that status, metrics and the progress watch read.
//!
//! Raised once per batch by the reader and the encoder; relaxed atomics, no lock on the data path.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::snapshot::IncrementalMeter;

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
    /// Of the events with records: inserts, updates and deletes.
    pub creates: AtomicU64,
    pub updates: AtomicU64,
    pub deletes: AtomicU64,
    /// Transactions whose end was told.
    pub transactions_ended: AtomicU64,
    /// Records acknowledged by Kafka.
    pub records_acked: AtomicU64,
    /// Times the connection to the source broke.
    pub disconnects: AtomicU64,
    pub elections: AtomicU64,
    /// Source time of the newest event in ms since the epoch; 0 = none yet.
    pub source_time_ms: AtomicI64,
    /// Wall clock of the last answer of the source in ms since the epoch.
    pub last_contact_ms: AtomicI64,
    /// Wall clock at which the newest event was read, in ms since the epoch; 0 = none yet.
    pub last_event_ms: AtomicI64,
    /// Age of events when they were read, by the last one of each batch.
    pub lag: Lag,
    /// Answers of the source without an event.
    pub empty_polls: AtomicU64,
    /// How long the last wait for an event took, and the last one that ended without, in milliseconds.
    pub last_event_poll_ms: AtomicU64,
    pub last_empty_poll_ms: AtomicU64,
    /// Waits under way that were asked for.
    rests: AtomicUsize,
    /// Whether there is an [`Absence`]: spares the lock while all is well.
    is_away: AtomicBool,
    away: Mutex<Option<Absence>>,
    snapshot: Mutex<Option<SnapshotState>>,
    /// The snapshot that is taken in chunks while changes are read.
    pub incremental: Arc<IncrementalMeter>,
}

/// A source that does not answer and is tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absence {
    pub since: Instant,
    /// Attempts that failed.
    pub attempts: u32,
    /// Why the last one did; without secrets.
    pub why: String,
}

/// How old changes are when they are read, in milliseconds.
#[derive(Debug, Default)]
pub struct Lag {
    last: AtomicI64,
    min: AtomicI64,
    max: AtomicI64,
    sum: AtomicI64,
    count: AtomicU64,
}

/// A [`Lag`] at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LagView {
    pub last: i64,
    pub min: i64,
    pub max: i64,
    pub average: f64,
}

impl Lag {
    /// By the reader alone, once per batch. A source whose clock is ahead has no negative age.
    fn see(&self, ms: i64) {
        let ms = ms.max(0);
        self.last.store(ms, Ordering::Relaxed);
        if self.count.load(Ordering::Relaxed) == 0 {
            self.min.store(ms, Ordering::Relaxed);
        }
        self.min.fetch_min(ms, Ordering::Relaxed);
        self.max.fetch_max(ms, Ordering::Relaxed);
        self.sum.fetch_add(ms, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Release);
    }

    /// `None` before the first event.
    pub fn view(&self) -> Option<LagView> {
        let count = self.count.load(Ordering::Acquire);
        let read = |n: &AtomicI64| n.load(Ordering::Relaxed);
        (count > 0).then(|| LagView {
            last: read(&self.last),
            min: read(&self.min),
            max: read(&self.max),
            average: read(&self.sum) as f64 / count as f64,
        })
    }
}

#[derive(Debug, Clone)]
pub struct SnapshotState {
    pub started: Instant,
    pub ended: Option<Instant>,
    pub tables: BTreeMap<String, SnapshotProgress>,
}

impl PartitionProgress {
    /// Once per batch with events of a stream: the wall clock, and when the newest of them was written.
    pub fn changes_read(&self, now_ms: i64, source_ms: i64) {
        self.source_time_ms.store(source_ms, Ordering::Relaxed);
        self.last_event_ms.store(now_ms, Ordering::Relaxed);
        self.lag.see(now_ms.saturating_sub(source_ms));
    }
    /// Once per batch: how many events it has, and how long it took to get it.
    pub fn polled(&self, events: usize, took: Duration) {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        if events > 0 {
            self.last_event_poll_ms.store(ms, Ordering::Relaxed);
        } else {
            self.last_empty_poll_ms.store(ms, Ordering::Relaxed);
            Self::count(&self.empty_polls, 1);
        }
    }
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
    /// The source did not answer and is tried again: status and metrics say so until
    /// [`PartitionProgress::end_absence`].
    pub fn source_away(&self, attempts: u32, why: &str) {
        let mut away = self.away.lock();
        let since = away.as_ref().map_or_else(Instant::now, |known| known.since);
        *away = Some(Absence { since, attempts, why: why.to_owned() });
        self.is_away.store(true, Ordering::Release);
    }
    /// The source answers, or nobody asks it any more. Cheap enough for every answer.
    pub fn end_absence(&self) {
        if self.is_away.load(Ordering::Acquire) {
            *self.away.lock() = None;
            self.is_away.store(false, Ordering::Release);
        }
    }
    /// `None`: the source answers, as far as is known.
    pub fn absence(&self) -> Option<Absence> {
        self.away.lock().clone()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_events_when_they_are_read() {
        let progress = PartitionProgress::default();
        assert_eq!(progress.lag.view(), None);
        for (now, source) in [(1_000, 400), (2_000, 1_900), (3_000, 3_500)] {
            progress.changes_read(now, source);
        }
        let lag = progress.lag.view();
        assert_eq!(lag.map(|l| (l.last, l.min, l.max)), Some((0, 0, 600)), "a clock that is ahead is no lag");
        assert!(lag.is_some_and(|l| (l.average - 700.0 / 3.0).abs() < 1e-9));
        assert_eq!(progress.last_event_ms.load(Ordering::Relaxed), 3_000);
        assert_eq!(progress.source_time_ms.load(Ordering::Relaxed), 3_500);
    }

    #[test]
    fn an_absence_begins_with_the_first_failure_and_ends_with_an_answer() {
        let progress = PartitionProgress::default();
        progress.end_absence();
        assert_eq!(progress.absence(), None);
        progress.source_away(1, "refused");
        let first = progress.absence();
        progress.source_away(2, "reset");
        let second = progress.absence();
        assert_eq!(second.as_ref().map(|a| (a.attempts, &*a.why)), Some((2, "reset")));
        assert_eq!(second.map(|a| a.since), first.map(|a| a.since));
        progress.end_absence();
        assert_eq!(progress.absence(), None);
    }

    #[test]
    fn polls_with_and_without_events() {
        let progress = PartitionProgress::default();
        progress.polled(3, Duration::from_millis(7));
        progress.polled(0, Duration::from_millis(900));
        progress.polled(0, Duration::from_millis(950));
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        assert_eq!(
            (read(&progress.empty_polls), read(&progress.last_event_poll_ms), read(&progress.last_empty_poll_ms)),
            (2, 7, 950)
        );
    }
}
