//! `GET /metrics`: Prometheus text. Kafka Connect's attributes under the names of the common JMX
//! exporter rules (`kafka_connect_<group>_<attribute>`), Debezium's likewise (`debezium_metrics_<Attribute>`,
//! in `debezium`), ours as `thalweg_<area>_<name>_<unit>`. `docs/metrics.md` names all of them.
//!
//! Rates and averages that Connect computes over a window are left to the reader of the counters.

mod debezium;

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use thalweg_actors::UnitView;
use thalweg_actors::port::{UnitId, UnitState};

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
        self.page(&self.face.units().units)
    }

    fn page(&self, units: &[UnitView]) -> String {
        let mut page = Page::default();
        self.cluster_metrics(&mut page);
        self.connector_metrics(&mut page);
        let count = |tasks: bool| units.iter().filter(|u| matches!(u.unit, UnitId::Task(..)) == tasks).count();
        page.gauge("kafka_connect_connect_worker_metrics_connector_count", "Connector objects here.", "", count(false));
        page.gauge("kafka_connect_connect_worker_metrics_task_count", "Tasks here.", "", count(true));
        let version = format!("version=\"{}\"", env!("CARGO_PKG_VERSION"));
        page.gauge("thalweg_build_info", "Version of the program, as label.", &version, 1);
        let state = self.view.read();
        for unit in units {
            let labels = match &unit.unit {
                UnitId::Connector(connector) => format!("connector=\"{}\"", escaped(connector)),
                UnitId::Task(connector, task) => format!("connector=\"{}\",task=\"{task}\"", escaped(connector)),
            };
            match &unit.unit {
                UnitId::Connector(_) => object_metrics(&mut page, unit, &labels),
                UnitId::Task(connector, _) => {
                    task_metrics(&mut page, unit, &labels);
                    let config = state.connectors.get(connector).map(|connector| &connector.config);
                    debezium::metrics(&mut page, unit, &labels, config);
                }
            }
        }
        drop(state);
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

fn status(unit: &UnitView) -> &'static str {
    match unit.state {
        UnitState::Unassigned => "unassigned",
        UnitState::Running => "running",
        UnitState::Paused => "paused",
        UnitState::Stopped => "stopped",
        UnitState::Failed => "failed",
        UnitState::Restarting => "restarting",
    }
}

/// Of the connector object.
fn object_metrics(page: &mut Page, unit: &UnitView, labels: &str) {
    let mut text = |name: &'static str, help: &'static str, value: &str| {
        page.gauge(name, help, &format!("{labels},value=\"{}\"", escaped(value)), 1);
    };
    text("kafka_connect_connector_metrics_status", "State of the connector, as label.", status(unit));
    text("kafka_connect_connector_metrics_connector_type", "Kind of the connector, as label.", "source");
    if let (Some(class), Some(version)) = (unit.class, unit.version) {
        text("kafka_connect_connector_metrics_connector_class", "Class of the connector, as label.", class);
        text("kafka_connect_connector_metrics_connector_version", "Version of the connector, as label.", version);
    }
    let (attempts, successes) = (unit.counters.startup_attempts, unit.counters.startup_successes);
    let name = "kafka_connect_connect_worker_metrics_connector_startup_attempts_total";
    page.counter(name, "Starts of the connector object here.", labels, attempts);
    let name = "kafka_connect_connect_worker_metrics_connector_startup_success_total";
    page.counter(name, "Starts of the connector object here that succeeded.", labels, successes);
}

fn task_metrics(page: &mut Page, unit: &UnitView, labels: &str) {
    let (c, e) = (&unit.counters, &unit.errors);
    let with_status = format!("{labels},value=\"{}\"", status(unit));
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
    let millis = |micros: u64| micros as f64 / 1e3;
    page.gauge(
        "kafka_connect_source_task_metrics_poll_batch_max_time_ms",
        "Longest wait for one batch.",
        labels,
        millis(c.poll_micros_max),
    );
    page.gauge(
        "kafka_connect_connector_task_metrics_offset_commit_max_time_ms",
        "Longest time until a handed-over position was stored.",
        labels,
        millis(c.commit_micros_max),
    );
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
        (
            "kafka_connect_connect_worker_metrics_task_startup_attempts_total",
            "Starts of the task here.",
            c.startup_attempts,
        ),
        (
            "kafka_connect_connect_worker_metrics_task_startup_success_total",
            "Starts of the task here that succeeded.",
            c.startup_successes,
        ),
        ("thalweg_task_batches_total", "Batches read.", c.batches),
        ("thalweg_task_dropped_records_total", "Records that a transform dropped.", c.dropped),
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

/// Label values: backslash, quote and line feed escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests;
