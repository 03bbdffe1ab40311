//! The state of a node's units as plain values: what REST, the console and metrics show.
//!
//! Taken from [`UnitMemory`](crate::memory::UnitMemory) without asking an actor. Numbers and texts only; of
//! records no more than errors name (their coordinates), no secrets, no configuration.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use thalweg_core::position::{OffsetMap, SourcePartition};
use thalweg_core::progress::{Absence, LagView};
use thalweg_core::queue::Limits;
use thalweg_core::snapshot::IncrementalView;
use thalweg_core::tolerance::ErrorCounters;

use crate::counters::{CounterView, now_ms};
use crate::memory::{PartitionMemory, UnitMemory};
use crate::port::{Epoch, Target, UnitId, UnitState};
use crate::progress::Wait;

#[derive(Debug, Clone, Default)]
pub struct NodeView {
    /// Sorted by unit.
    pub units: Vec<UnitView>,
    /// When the plan was last compared with what runs; `None` before the first time.
    pub reconciled: Option<Instant>,
}

#[derive(Debug, Clone)]
pub struct UnitView {
    pub unit: UnitId,
    pub epoch: Epoch,
    pub target: Target,
    pub state: UnitState,
    pub trace: Option<String>,
    /// Since when it is in this state.
    pub since: Instant,
    /// Class name and version, once known.
    pub class: Option<&'static str>,
    pub version: Option<&'static str>,
    /// What a person should know although the state is good: a retry and its cause, a restart after
    /// a panic or without progress, a limit that was ignored.
    pub note: Option<String>,
    pub counters: CounterView,
    pub errors: ErrorView,
    pub encoder: Wait,
    /// Messages sent and not yet acknowledged. With the queued records of the partitions:
    /// `source-record-active-count`.
    pub in_flight: u64,
    /// Empty for connector objects.
    pub partitions: Vec<PartitionView>,
}

/// Connect's `task-error-metrics` at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ErrorView {
    pub total_record_failures: u64,
    pub total_record_errors: u64,
    pub total_records_skipped: u64,
    pub total_retries: u64,
    pub total_errors_logged: u64,
    pub deadletterqueue_produce_requests: u64,
    pub deadletterqueue_produce_failures: u64,
    /// Milliseconds since the epoch; 0 = none yet.
    pub last_error_timestamp: i64,
}

impl ErrorView {
    fn of(counters: &ErrorCounters) -> Self {
        Self {
            total_record_failures: counters.total_record_failures.load(Ordering::Relaxed),
            total_record_errors: counters.total_record_errors.load(Ordering::Relaxed),
            total_records_skipped: counters.total_records_skipped.load(Ordering::Relaxed),
            total_retries: counters.total_retries.load(Ordering::Relaxed),
            total_errors_logged: counters.total_errors_logged.load(Ordering::Relaxed),
            deadletterqueue_produce_requests: counters.deadletterqueue_produce_requests.load(Ordering::Relaxed),
            deadletterqueue_produce_failures: counters.deadletterqueue_produce_failures.load(Ordering::Relaxed),
            last_error_timestamp: counters.last_error_timestamp.load(Ordering::Relaxed),
        }
    }
}

#[derive(Debug, Clone)]
pub struct PartitionView {
    pub partition: SourcePartition,
    pub generation: u64,
    pub activity: Activity,
    pub reader: Wait,
    pub last_error: Option<String>,
    /// Last position of this placement that was handed to the cluster.
    pub committed: Option<OffsetMap>,
    pub queued_records: usize,
    pub queued_bytes: usize,
    /// `None` before the first generation.
    pub queue_limits: Option<Limits>,
    pub events_read: u64,
    pub events_filtered: u64,
    /// Events of which no record could be made.
    pub events_failed: u64,
    /// Of the events with records: inserts, updates and deletes.
    pub creates: u64,
    pub updates: u64,
    pub deletes: u64,
    pub transactions_ended: u64,
    pub records_acked: u64,
    pub disconnects: u64,
    pub elections: u64,
    /// Source time of the newest event in ms since the epoch.
    pub source_time_ms: Option<i64>,
    /// Since the newest event was written at the source.
    pub behind_source: Option<Duration>,
    /// Since the newest event was read.
    pub since_event: Option<Duration>,
    /// Age of events when they were read.
    pub lag: Option<LagView>,
    pub empty_polls: u64,
    /// How long the last wait for an event took, and the last one that ended without.
    pub last_event_poll: Duration,
    pub last_empty_poll: Duration,
    /// Since the source last answered.
    pub since_contact: Option<Duration>,
    /// The source does not answer, and its connector tries again by itself.
    pub away: Option<AwayView>,
    pub snapshot: Option<SnapshotView>,
    /// The one that is taken in chunks while changes are read.
    pub incremental: Option<IncrementalView>,
    /// Collections that are being snapshotted or were, by name.
    pub tables: Vec<TableView>,
}

/// What a partition is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Activity {
    #[default]
    Idle,
    /// Connecting to the source.
    Opening,
    Snapshot,
    Streaming,
    Paused,
    /// Sending what was read, committing, closing.
    Draining,
    /// The source has nothing more to give.
    Finished,
    /// Waits before the next try.
    Retrying {
        at: Instant,
        failures: u32,
        why: String,
    },
    Failed,
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle => f.write_str("idle"),
            Self::Opening => f.write_str("opening"),
            Self::Snapshot => f.write_str("snapshot"),
            Self::Streaming => f.write_str("streaming"),
            Self::Paused => f.write_str("paused"),
            Self::Draining => f.write_str("draining"),
            Self::Finished => f.write_str("finished"),
            Self::Retrying { at, failures, why } => {
                let left = at.saturating_duration_since(Instant::now()).as_secs_f64();
                write!(f, "retrying in {left:.1} s after failure {failures}: {why}")
            }
            Self::Failed => f.write_str("failed"),
        }
    }
}

/// A source that is away while its reader goes on trying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwayView {
    pub since: Duration,
    /// Attempts that failed.
    pub attempts: u32,
    pub why: String,
}

impl From<Absence> for AwayView {
    fn from(absence: Absence) -> Self {
        Self { since: absence.since.elapsed(), attempts: absence.attempts, why: absence.why }
    }
}

impl fmt::Display for AwayView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { since, attempts, why } = self;
        write!(f, "the source has not answered for {:.1} s, {attempts} attempts failed: {why}", since.as_secs_f64())
    }
}

/// A snapshot as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotView {
    pub running: bool,
    pub tables: usize,
    pub tables_remaining: usize,
    pub rows_done: u64,
    /// Estimate; at least `rows_done`.
    pub rows_expected: u64,
    /// Rows a second since the start.
    pub rate: f64,
    pub left: Option<Duration>,
    pub started: Instant,
    pub duration: Duration,
}

/// One collection or table of a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct TableView {
    pub name: String,
    pub rows_done: u64,
    /// Estimate of the source; 0 = unknown.
    pub rows_expected: u64,
    /// Rows a second lately.
    pub rate: f64,
    pub left: Option<Duration>,
    pub finished: bool,
}

impl UnitView {
    pub(crate) fn of(memory: &UnitMemory) -> Self {
        let told = memory.told();
        Self {
            unit: memory.unit.clone(),
            epoch: memory.epoch,
            target: told.target,
            state: told.status.state,
            trace: told.status.trace,
            since: told.since,
            class: told.class,
            version: told.version,
            note: told.note,
            counters: memory.counters.view(),
            errors: ErrorView::of(&memory.errors),
            encoder: memory.encoder.wait(),
            in_flight: memory.in_flight.load(Ordering::Relaxed),
            partitions: memory.partitions().iter().map(|p| PartitionView::of(p)).collect(),
        }
    }
}

impl PartitionView {
    fn of(memory: &PartitionMemory) -> Self {
        // First: what it says happened before the numbers below were read.
        let activity = memory.activity();
        let progress = &memory.progress;
        let queue = memory.queue().map(|gauge| gauge.usage());
        let time = |ms: i64| (ms > 0).then_some(ms);
        let since =
            |ms: i64| time(ms).map(|ms| Duration::from_millis(now_ms().saturating_sub(u64::try_from(ms).unwrap_or(0))));
        let source_time = progress.source_time_ms.load(Ordering::Relaxed);
        let snapshot = progress.snapshot().map(|state| SnapshotView {
            running: state.ended.is_none(),
            tables: state.tables.len(),
            tables_remaining: state.tables.values().filter(|t| !t.finished).count(),
            rows_done: state.done(),
            rows_expected: state.expected(),
            rate: state.rate(),
            left: state.ended.is_none().then(|| state.left()).flatten(),
            started: state.started,
            duration: state.ended.unwrap_or_else(Instant::now).saturating_duration_since(state.started),
        });
        let activity = match (activity, &snapshot) {
            (Activity::Streaming, Some(snapshot)) if snapshot.running => Activity::Snapshot,
            (activity, _) => activity,
        };
        Self {
            partition: memory.partition.clone(),
            generation: memory.generation.load(Ordering::Relaxed),
            activity,
            reader: memory.reader.wait(),
            last_error: memory.last_error(),
            committed: memory.committed(),
            queued_records: queue.map_or(0, |q| q.records),
            queued_bytes: queue.map_or(0, |q| q.bytes),
            queue_limits: memory.queue().map(|gauge| gauge.limits()),
            events_read: progress.events_read.load(Ordering::Relaxed),
            events_filtered: progress.events_filtered.load(Ordering::Relaxed),
            events_failed: progress.events_failed.load(Ordering::Relaxed),
            creates: progress.creates.load(Ordering::Relaxed),
            updates: progress.updates.load(Ordering::Relaxed),
            deletes: progress.deletes.load(Ordering::Relaxed),
            transactions_ended: progress.transactions_ended.load(Ordering::Relaxed),
            records_acked: progress.records_acked.load(Ordering::Relaxed),
            disconnects: progress.disconnects.load(Ordering::Relaxed),
            elections: progress.elections.load(Ordering::Relaxed),
            source_time_ms: time(source_time),
            behind_source: since(source_time),
            since_event: since(progress.last_event_ms.load(Ordering::Relaxed)),
            lag: progress.lag.view(),
            empty_polls: progress.empty_polls.load(Ordering::Relaxed),
            last_event_poll: Duration::from_millis(progress.last_event_poll_ms.load(Ordering::Relaxed)),
            last_empty_poll: Duration::from_millis(progress.last_empty_poll_ms.load(Ordering::Relaxed)),
            since_contact: since(progress.last_contact_ms.load(Ordering::Relaxed)),
            away: progress.absence().map(AwayView::from),
            snapshot,
            incremental: progress.incremental.view(),
            tables: memory.tables(),
        }
    }
}

impl fmt::Display for SnapshotView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_progress(f, self.rows_done, self.rows_expected, self.rate, self.left)
    }
}

impl fmt::Display for TableView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name)?;
        write_progress(f, self.rows_done, self.rows_expected, self.rate, self.left)
    }
}

/// `1200 of about 5000 rows (24 %), 310 rows/s, 12 s left`.
fn write_progress(
    f: &mut fmt::Formatter<'_>,
    done: u64,
    expected: u64,
    rate: f64,
    left: Option<Duration>,
) -> fmt::Result {
    write!(f, "{done}")?;
    if expected > 0 {
        let percent = (done as f64 / expected.max(done) as f64 * 100.0).floor();
        write!(f, " of about {} rows ({percent} %)", expected.max(done))?;
    } else {
        f.write_str(" rows")?;
    }
    if rate > 0.0 {
        write!(f, ", {rate:.0} rows/s")?;
    }
    match left {
        Some(left) => write!(f, ", {} s left", left.as_secs()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshot_progress_reads_well() {
        let table = TableView {
            name: "shop.orders".to_owned(),
            rows_done: 1200,
            rows_expected: 5000,
            rate: 310.4,
            left: Some(Duration::from_millis(12_250)),
            finished: false,
        };
        assert_eq!(table.to_string(), "shop.orders: 1200 of about 5000 rows (24 %), 310 rows/s, 12 s left");
        let unknown = TableView { rows_expected: 0, rate: 0.0, left: None, ..table };
        assert_eq!(unknown.to_string(), "shop.orders: 1200 rows");
    }
}
