//! Debezium's attributes of the contexts `streaming` and `snapshot`, spelt as they are, as
//! `debezium_metrics_<Attribute>` with the labels of the usual exporter rules (`plugin`, `name`, `context`,
//! `table`) and ours (`connector`, `task`, `partition`); and what belongs to a source beside them.
//!
//! A task with several source partitions has a set for each. Texts that change with every event (last
//! event, last transaction, chunk and its keys) are no labels and are left out.

use std::time::Duration;

use thalweg_actors::{Activity, PartitionView, SnapshotView, UnitView};
use thalweg_config::Properties;
use thalweg_config::rule::split_plain_list;
use thalweg_core::snapshot::{IncrementalView, Standing};

use super::{Page, escaped};

/// Labels that are ours; a tag of the user's with such a name is left out.
const TAKEN: [&str; 7] = ["connector", "task", "plugin", "name", "partition", "context", "table"];

/// All partitions of a task. `labels` name connector and task.
pub(super) fn metrics(page: &mut Page, unit: &UnitView, labels: &str, config: Option<&Properties>) {
    let property = |name: &str| config.and_then(|config| config.get(name)).unwrap_or_default();
    let plugin = unit.class.map(plugin).unwrap_or_default();
    let mut labels = format!("{labels},plugin=\"{plugin}\",name=\"{}\"", escaped(property("topic.prefix")));
    for (name, value) in tags(property("custom.metric.tags")) {
        labels.push_str(&format!(",{name}=\"{}\"", escaped(&value)));
    }
    for partition in &unit.partitions {
        let labels = format!("{labels},partition=\"{}\"", escaped(partition.partition.original()));
        streaming(page, partition, &format!("{labels},context=\"streaming\""));
        snapshot(page, partition, &format!("{labels},context=\"snapshot\""));
        own(page, partition, &labels);
    }
}

/// `mongodb` of `io.debezium.connector.mongodb.MongoDbConnector`; with the spelling that the exporter rules have.
fn plugin(class: &'static str) -> &'static str {
    match class.rsplit('.').nth(1).unwrap_or(class) {
        "sqlserver" => "sql_server",
        plugin => plugin,
    }
}

/// `custom.metric.tags` as labels. Characters that a label's name cannot have become `_`.
fn tags(text: &str) -> Vec<(String, String)> {
    let mut tags: Vec<(String, String)> = Vec::new();
    for tag in split_plain_list(text) {
        let Some((name, value)) = tag.split_once('=') else { continue };
        let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let mut name: String = name.trim().chars().map(letter).collect();
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            name.insert(0, '_');
        }
        if !TAKEN.contains(&name.as_str()) && tags.iter().all(|(known, _)| *known != name) {
            tags.push((name, value.trim().to_owned()));
        }
    }
    tags
}

fn streaming(page: &mut Page, partition: &PartitionView, labels: &str) {
    for (name, help, value) in [
        ("debezium_metrics_TotalNumberOfEventsSeen", "Events read.", partition.events_read),
        ("debezium_metrics_TotalNumberOfCreateEventsSeen", "Inserts.", partition.creates),
        ("debezium_metrics_TotalNumberOfUpdateEventsSeen", "Updates.", partition.updates),
        ("debezium_metrics_TotalNumberOfDeleteEventsSeen", "Deletes.", partition.deletes),
        ("debezium_metrics_NumberOfEventsFiltered", "Events that a filter kept back.", partition.events_filtered),
        ("debezium_metrics_NumberOfErroneousEvents", "Events without a record.", partition.events_failed),
        ("debezium_metrics_NumberOfDisconnects", "Broken connections to the source.", partition.disconnects),
        ("debezium_metrics_NumberOfPrimaryElections", "New primaries.", partition.elections),
        ("debezium_metrics_NumberOfCommittedTransactions", "Ends of transactions.", partition.transactions_ended),
        ("debezium_metrics_NumberOfEmptyPolls", "Answers of the source without an event.", partition.empty_polls),
    ] {
        page.counter(name, help, labels, value);
    }
    let limits = partition.queue_limits.map_or((0, 0), |limits| (limits.records, limits.bytes));
    let since = partition.since_event.map_or(-1, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    let copying = partition.snapshot.as_ref().is_some_and(|snapshot| snapshot.running);
    let reads = matches!(partition.activity, Activity::Streaming | Activity::Paused);
    let connected = reads && !copying && partition.away.is_none();
    for (name, help, value) in [
        ("debezium_metrics_MilliSecondsSinceLastEvent", "Since the last event was read; -1 = none yet.", since),
        ("debezium_metrics_Connected", "Whether the stream is read.", i64::from(connected)),
        ("debezium_metrics_QueueTotalCapacity", "Records that the queue takes.", number(limits.0)),
        (
            "debezium_metrics_QueueRemainingCapacity",
            "Records that it takes now.",
            number(limits.0.saturating_sub(partition.queued_records)),
        ),
        ("debezium_metrics_MaxQueueSizeInBytes", "Bytes that it takes; 0 = no limit.", number(limits.1)),
        ("debezium_metrics_CurrentQueueSizeInBytes", "Bytes in it.", number(partition.queued_bytes)),
        (
            "debezium_metrics_LastSourceEventPollTime",
            "How long the last wait for events took, ms.",
            number(partition.last_event_poll.as_millis()),
        ),
        (
            "debezium_metrics_LastEmptyPollTime",
            "How long the last wait that ended without took, ms.",
            number(partition.last_empty_poll.as_millis()),
        ),
        (
            "debezium_metrics_MilliSecondsBehindSource",
            "Age of the last event when it was read; -1 = none yet.",
            partition.lag.map_or(-1, |lag| lag.last),
        ),
    ] {
        page.gauge(name, help, labels, value);
    }
    if let Some(lag) = partition.lag {
        let help = "The least age of an event when it was read.";
        page.gauge("debezium_metrics_MilliSecondsBehindSourceMinValue", help, labels, lag.min);
        let help = "The greatest age of an event when it was read.";
        page.gauge("debezium_metrics_MilliSecondsBehindSourceMaxValue", help, labels, lag.max);
        let help = "Age of events when they were read, on average over batches.";
        page.gauge("debezium_metrics_MilliSecondsBehindSourceAverageValue", help, labels, lag.average);
    }
    for (key, value) in partition.committed.iter().flatten() {
        if let ("sec" | "ord", Some(value)) = (key.as_str(), value.as_i64()) {
            let labels = format!("{labels},key=\"{key}\"");
            let help = "Numbers of the last position that was handed over to be stored.";
            page.gauge("debezium_metrics_SourceEventPosition", help, &labels, value);
        }
    }
}

fn number(n: impl TryInto<i64>) -> i64 {
    n.try_into().unwrap_or(i64::MAX)
}

fn snapshot(page: &mut Page, partition: &PartitionView, labels: &str) {
    let Numbers { tables, running, paused, completed, aborted, skipped, duration, pauses } = Numbers::of(partition);
    for (name, help, value) in [
        ("debezium_metrics_TotalTableCount", "Tables of the snapshot.", number(tables.0)),
        ("debezium_metrics_RemainingTableCount", "Tables that are not complete.", number(tables.1)),
        ("debezium_metrics_SnapshotRunning", "Whether a snapshot is read.", i64::from(running)),
        ("debezium_metrics_SnapshotPaused", "Whether it is paused, or its task.", i64::from(paused)),
        ("debezium_metrics_SnapshotCompleted", "Whether it was read to its end.", i64::from(completed)),
        ("debezium_metrics_SnapshotAborted", "Whether it ended before its end.", i64::from(aborted)),
        ("debezium_metrics_SnapshotSkipped", "Whether the stream is read without one.", i64::from(skipped)),
        (
            "debezium_metrics_SnapshotDurationInSeconds",
            "Time since its begin, or that it took.",
            number(duration.as_secs()),
        ),
        (
            "debezium_metrics_SnapshotPausedDurationInSeconds",
            "Time in which a signal had paused it.",
            number(pauses.as_secs()),
        ),
    ] {
        page.gauge(name, help, labels, value);
    }
    let chunks = partition.incremental.as_ref().map(|incremental| &incremental.tables);
    for table in &partition.tables {
        let labels = format!("{labels},table=\"{}\"", escaped(&table.name));
        if chunks.is_none_or(|chunks| !chunks.contains_key(&table.name)) {
            scanned(page, table.rows_done, &labels);
        }
        let help = "Rows that the source expects in a table; 0 = not known.";
        page.gauge("thalweg_snapshot_rows_expected_count", help, &labels, table.rows_expected);
    }
    for (table, read) in chunks.into_iter().flatten() {
        let labels = format!("{labels},table=\"{}\"", escaped(table));
        scanned(page, read.rows, &labels);
        let help = "Chunks of a table that an incremental snapshot has published.";
        page.gauge("debezium_metrics_TableChunksCompletedCounts", help, &labels, read.chunks);
    }
}

/// Of a table that a snapshot reads or has read.
fn scanned(page: &mut Page, rows: u64, labels: &str) {
    page.gauge("debezium_metrics_RowsScanned", "Rows read of a table.", labels, rows);
    page.gauge("debezium_metrics_CapturedTables", "A table of the snapshot.", labels, 1);
}

/// The snapshot that counts: the one that is under way, else the one that began last. As in Debezium an
/// incremental one is told like any other.
struct Numbers {
    /// All, and those that are left.
    tables: (usize, usize),
    running: bool,
    paused: bool,
    completed: bool,
    aborted: bool,
    skipped: bool,
    duration: Duration,
    pauses: Duration,
}

impl Numbers {
    fn of(partition: &PartitionView) -> Self {
        let whole = partition.snapshot.as_ref();
        let open = whole.is_some_and(|snapshot| snapshot.running);
        let pauses = partition.incremental.as_ref().map_or(Duration::ZERO, |incremental| incremental.paused);
        match &partition.incremental {
            Some(incremental) if !open && whole.is_none_or(|w| counts_before(incremental, w)) => {
                Self::of_incremental(incremental, &partition.activity)
            }
            _ => Self { pauses, ..Self::of_whole(whole, &partition.activity) },
        }
    }

    fn of_whole(state: Option<&SnapshotView>, activity: &Activity) -> Self {
        let works = matches!(activity, Activity::Snapshot | Activity::Streaming | Activity::Opening);
        let open = state.is_some_and(|snapshot| snapshot.running);
        let paused = open && *activity == Activity::Paused;
        let running = open && works;
        Self {
            tables: state.map_or((0, 0), |snapshot| (snapshot.tables, snapshot.tables_remaining)),
            running,
            paused,
            completed: state.is_some_and(|snapshot| !snapshot.running),
            aborted: open && !running && !paused,
            skipped: state.is_none() && matches!(activity, Activity::Streaming | Activity::Paused),
            duration: state.map_or(Duration::ZERO, |snapshot| snapshot.duration),
            pauses: Duration::ZERO,
        }
    }

    fn of_incremental(state: &IncrementalView, activity: &Activity) -> Self {
        let (rests, fails) = (*activity == Activity::Paused, *activity == Activity::Failed);
        let under_way = matches!(state.standing, Standing::Running | Standing::Paused);
        Self {
            tables: (state.waiting + state.ended, state.waiting),
            running: state.standing == Standing::Running && !rests && !fails,
            paused: under_way && !fails && (rests || state.standing == Standing::Paused),
            completed: state.standing == Standing::Completed,
            aborted: state.standing == Standing::Aborted || (under_way && fails),
            skipped: false,
            duration: state.duration,
            pauses: state.paused,
        }
    }
}

fn counts_before(incremental: &IncrementalView, whole: &SnapshotView) -> bool {
    matches!(incremental.standing, Standing::Running | Standing::Paused) || incremental.started > whole.started
}

fn own(page: &mut Page, partition: &PartitionView, labels: &str) {
    let help = "Records acknowledged by Kafka.";
    page.counter("thalweg_source_records_acknowledged_total", help, labels, partition.records_acked);
    if let Some(age) = partition.behind_source {
        let help = "Time since the newest event that was read was written; grows while the source is quiet.";
        page.gauge("thalweg_source_newest_event_age_milliseconds", help, labels, age.as_millis());
    }
    if let Some(since) = partition.since_contact {
        let help = "Time since the source last answered.";
        page.gauge("thalweg_source_since_contact_milliseconds", help, labels, since.as_millis());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_become_labels() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(
            tags("env=prod, data-centre = eu 1,2nd=x,task=9,env=other"),
            [pair("env", "prod"), pair("data_centre", "eu 1"), pair("_2nd", "x")]
        );
        assert_eq!(tags(""), []);
        assert_eq!(plugin("io.debezium.connector.mongodb.MongoDbConnector"), "mongodb");
        assert_eq!(plugin("Plain"), "Plain");
    }
}
