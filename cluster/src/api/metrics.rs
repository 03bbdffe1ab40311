//! `GET /metrics`: Prometheus text. Kafka Connect's attributes under the names of the common JMX
//! exporter rules (`kafka_connect_<group>_<attribute>`), ours as `thalweg_<area>_<name>_<unit>`.
//!
//! Rates and averages that Connect computes over a window are left to the reader of the counters.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use thalweg_actors::port::{UnitId, UnitState};
use thalweg_actors::{PartitionView, UnitView};

use super::Api;
use crate::raft::command::ReportedState;
use crate::raft::state::Phase;

/// Samples grouped by metric, so that each metric's lines stand together under one header.
#[derive(Default)]
struct Page {
    metrics: BTreeMap<&'static str, (&'static str, &'static str, String)>,
}

impl Page {
    fn add(&mut self, name: &'static str, kind: &'static str, help: &'static str, labels: &str, value: impl Display) {
        let (_, _, lines) = self.metrics.entry(name).or_insert((kind, help, String::new()));
        let _ = if labels.is_empty() {
            writeln!(lines, "{name} {value}")
        } else {
            writeln!(lines, "{name}{{{labels}}} {value}")
        };
    }
    fn gauge(&mut self, name: &'static str, help: &'static str, labels: &str, value: impl Display) {
        self.add(name, "gauge", help, labels, value);
    }
    fn counter(&mut self, name: &'static str, help: &'static str, labels: &str, value: u64) {
        self.add(name, "counter", help, labels, value);
    }
    fn text(self) -> String {
        let mut page = String::new();
        for (name, (kind, help, lines)) in self.metrics {
            let _ = write!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n{lines}");
        }
        page
    }
}

impl Api {
    pub fn metrics(&self) -> String {
        let mut page = Page::default();
        self.cluster_metrics(&mut page);
        self.connector_metrics(&mut page);
        let units = self.face.units().units;
        let count = |tasks: bool| units.iter().filter(|u| matches!(u.unit, UnitId::Task(..)) == tasks).count();
        page.gauge("kafka_connect_connect_worker_metrics_connector_count", "Connector objects here.", "", count(false));
        page.gauge("kafka_connect_connect_worker_metrics_task_count", "Tasks here.", "", count(true));
        for unit in &units {
            if let UnitId::Task(connector, task) = &unit.unit {
                let labels = format!("connector=\"{}\",task=\"{task}\"", escaped(connector));
                task_metrics(&mut page, unit, &labels);
                for partition in &unit.partitions {
                    partition_metrics(&mut page, partition, &labels);
                }
            }
        }
        page.text()
    }

    fn cluster_metrics(&self, page: &mut Page) {
        let standing = self.face.standing();
        let state = self.view.read();
        page.gauge("thalweg_cluster_raft_term", "Term of the Raft group.", "", standing.term);
        page.gauge("thalweg_cluster_leader_id", "Node that leads, 0 = unknown.", "", standing.leader.unwrap_or(0));
        page.gauge("thalweg_cluster_applied_index", "Last applied log index.", "", self.view.applied());
        let lease = self.face.lease_remaining().as_millis();
        page.gauge("thalweg_cluster_lease_remaining_milliseconds", "Time left of this node's lease.", "", lease);
        let mut phases = BTreeMap::new();
        for (unit, placement) in &state.placements {
            let phase = match placement.phase {
                Phase::Assigned => "assigned",
                Phase::Revoking => "revoking",
                Phase::Released => "released",
                Phase::Lost { .. } => "lost",
            };
            *phases.entry((if unit.is_task() { "task" } else { "connector" }, phase)).or_insert(0_u64) += 1;
        }
        for ((class, phase), count) in phases {
            let labels = format!("class=\"{class}\",phase=\"{phase}\"");
            page.gauge("thalweg_cluster_units_count", "Placements by phase.", &labels, count);
        }
        let nodes = state.nodes.len();
        page.gauge("thalweg_cluster_nodes_count", "Registered nodes.", "", nodes);
    }

    fn connector_metrics(&self, page: &mut Page) {
        let state = self.view.read();
        for (name, connector) in &state.connectors {
            let labels = format!("connector=\"{}\"", escaped(name));
            let count = |wanted: ReportedState| {
                let tasks = state.statuses.iter().filter(|(u, _)| u.is_task() && u.connector == *name);
                tasks.filter(|(_, s)| s.state == wanted).count()
            };
            page.gauge(
                "kafka_connect_connect_worker_metrics_connector_total_task_count",
                "Tasks of the connector in the cluster.",
                &labels,
                connector.tasks.len(),
            );
            for (metric, help, wanted) in [
                (
                    "kafka_connect_connect_worker_metrics_connector_running_task_count",
                    "Tasks in state RUNNING.",
                    ReportedState::Running,
                ),
                (
                    "kafka_connect_connect_worker_metrics_connector_paused_task_count",
                    "Tasks in state PAUSED.",
                    ReportedState::Paused,
                ),
                (
                    "kafka_connect_connect_worker_metrics_connector_failed_task_count",
                    "Tasks in state FAILED.",
                    ReportedState::Failed,
                ),
                (
                    "kafka_connect_connect_worker_metrics_connector_unassigned_task_count",
                    "Tasks in state UNASSIGNED.",
                    ReportedState::Unassigned,
                ),
                (
                    "kafka_connect_connect_worker_metrics_connector_restarting_task_count",
                    "Tasks in state RESTARTING.",
                    ReportedState::Restarting,
                ),
            ] {
                page.gauge(metric, help, &labels, count(wanted));
            }
        }
    }
}

fn task_metrics(page: &mut Page, unit: &UnitView, labels: &str) {
    let (c, e) = (&unit.counters, &unit.errors);
    let status = match unit.state {
        UnitState::Unassigned => "unassigned",
        UnitState::Running => "running",
        UnitState::Paused => "paused",
        UnitState::Stopped => "stopped",
        UnitState::Failed => "failed",
        UnitState::Restarting => "restarting",
    };
    let with_status = format!("{labels},value=\"{status}\"");
    page.gauge("kafka_connect_connector_task_metrics_status", "State of the task, as label.", &with_status, 1);
    page.gauge("kafka_connect_connector_task_metrics_batch_size_max", "Largest batch.", labels, c.batch_size_max);
    let active = unit.in_flight + unit.partitions.iter().map(|p| p.queued_records as u64).sum::<u64>();
    page.gauge(
        "kafka_connect_source_task_metrics_source_record_active_count",
        "Records read and not yet acknowledged.",
        labels,
        active,
    );
    let seconds = |micros: u64| micros as f64 / 1e6;
    page.add(
        "thalweg_task_poll_seconds_total",
        "counter",
        "Time spent waiting for the source.",
        labels,
        seconds(c.poll_micros),
    );
    page.add(
        "thalweg_task_commit_seconds_total",
        "counter",
        "Time until handed-over positions were stored.",
        labels,
        seconds(c.commit_micros),
    );
    for (name, help, value) in [
        ("kafka_connect_source_task_metrics_source_record_poll_total", "Records read, before transforms.", c.polled),
        ("kafka_connect_source_task_metrics_source_record_write_total", "Records acknowledged by Kafka.", c.written),
        ("kafka_connect_task_error_metrics_total_record_failures", "Failed attempts.", e.total_record_failures),
        (
            "kafka_connect_task_error_metrics_total_record_errors",
            "Operations that failed for good.",
            e.total_record_errors,
        ),
        (
            "kafka_connect_task_error_metrics_total_records_skipped",
            "Records left out by tolerance.",
            e.total_records_skipped,
        ),
        ("kafka_connect_task_error_metrics_total_retries", "Retried operations.", e.total_retries),
        ("kafka_connect_task_error_metrics_total_errors_logged", "Logged errors.", e.total_errors_logged),
        (
            "kafka_connect_task_error_metrics_deadletterqueue_produce_requests",
            "Dead letters handed to the producer.",
            e.deadletterqueue_produce_requests,
        ),
        (
            "kafka_connect_task_error_metrics_deadletterqueue_produce_failures",
            "Dead letters that could not be written as they were.",
            e.deadletterqueue_produce_failures,
        ),
        (
            "kafka_connect_task_error_metrics_last_error_timestamp",
            "Time of the last error, ms.",
            e.last_error_timestamp.max(0) as u64,
        ),
        ("thalweg_task_batches_total", "Batches read.", c.batches),
        ("thalweg_task_sent_messages_total", "Messages handed to the producer.", c.sent),
        ("thalweg_task_sent_bytes_total", "Bytes of keys and values handed to the producer.", c.sent_bytes),
        ("thalweg_task_commits_total", "Positions handed over to be stored.", c.commits),
        ("thalweg_task_commits_failed_total", "Positions that were not stored.", c.commits_failed),
        ("thalweg_task_restarts_total", "Generations built anew after a failure.", c.restarts),
        ("thalweg_task_panics_total", "Panics of parts of the task.", c.panics),
        ("thalweg_task_stalls_total", "Generations ended for lack of progress.", c.stalls),
        ("thalweg_task_failures_total", "Times the task went to FAILED.", c.failures),
        ("thalweg_task_fenced_total", "Times the task was shut out.", c.fenced),
    ] {
        page.counter(name, help, labels, value);
    }
}

/// Debezium's streaming and snapshot attributes, per source partition.
fn partition_metrics(page: &mut Page, partition: &PartitionView, labels: &str) {
    let labels = format!("{labels},partition=\"{}\"", escaped(partition.partition.original()));
    for (name, help, value) in [
        ("thalweg_source_events_total", "TotalNumberOfEventsSeen.", partition.events_read),
        ("thalweg_source_events_filtered_total", "NumberOfEventsFiltered.", partition.events_filtered),
        ("thalweg_source_events_failed_total", "NumberOfErroneousEvents.", partition.events_failed),
        ("thalweg_source_disconnects_total", "NumberOfDisconnects.", partition.disconnects),
        ("thalweg_source_elections_total", "NumberOfPrimaryElections.", partition.elections),
    ] {
        page.counter(name, help, &labels, value);
    }
    page.gauge("thalweg_source_queue_records_count", "Records in the queue.", &labels, partition.queued_records);
    page.gauge("thalweg_source_queue_bytes", "CurrentQueueSizeInBytes.", &labels, partition.queued_bytes);
    if let Some(behind) = partition.behind_source {
        let help = "MilliSecondsBehindSource: age of the newest event.";
        page.gauge("thalweg_source_behind_milliseconds", help, &labels, behind.as_millis());
    }
    if let Some(snapshot) = &partition.snapshot {
        page.gauge("thalweg_snapshot_running", "SnapshotRunning.", &labels, u8::from(snapshot.running));
        page.gauge(
            "thalweg_snapshot_tables_remaining_count",
            "RemainingTableCount.",
            &labels,
            snapshot.tables_remaining,
        );
        page.gauge("thalweg_snapshot_rows_done_count", "RowsScanned of all tables.", &labels, snapshot.rows_done);
        page.gauge("thalweg_snapshot_rows_expected_count", "Rows expected.", &labels, snapshot.rows_expected);
        page.gauge("thalweg_snapshot_seconds", "SnapshotDurationInSeconds.", &labels, snapshot.duration.as_secs());
    }
}

/// Label values: backslash, quote and line feed escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
