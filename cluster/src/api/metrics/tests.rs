//! What is served and what `docs/metrics.md` names are the same.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::json;
use thalweg_actors::port::{Epoch, Target};
use thalweg_actors::{Activity, AwayView, CounterView, ErrorView, PartitionView, SnapshotView, TableView, Wait};
use thalweg_config::Properties;
use thalweg_core::position::SourcePartition;
use thalweg_core::progress::LagView;
use thalweg_core::queue::Limits;
use thalweg_core::snapshot::{IncrementalView, Scanned, Standing};

use super::super::tests::follower;
use super::*;
use crate::raft::command::{Delivery, Expect, TargetState};
use crate::raft::state::Placement;
use crate::raft::{CommandV1, State, StateView, Unit};

fn unit(id: UnitId, partitions: Vec<PartitionView>) -> UnitView {
    UnitView {
        unit: id,
        epoch: Epoch(1),
        target: Target::Started,
        state: UnitState::Running,
        trace: None,
        since: Instant::now(),
        class: Some("io.debezium.connector.mongodb.MongoDbConnector"),
        version: Some("1"),
        note: None,
        counters: CounterView { polled: 7, batches: 2, poll_micros_max: 1_500, ..CounterView::default() },
        errors: ErrorView::default(),
        encoder: Wait::None,
        in_flight: 3,
        partitions,
    }
}

fn incremental(standing: Standing, started: Instant) -> IncrementalView {
    IncrementalView {
        standing,
        started,
        duration: Duration::from_secs(60),
        paused: Duration::from_secs(7),
        waiting: 3,
        ended: 1,
        tables: BTreeMap::from([("shop.b".to_owned(), Scanned { rows: 2048, chunks: 2 })]),
    }
}

/// A source of which everything is known.
fn partition() -> PartitionView {
    let offset = json!({"sec": 5, "ord": 6, "resume_token": "x"});
    PartitionView {
        partition: SourcePartition::new([("server_id", "shop")]),
        generation: 1,
        activity: Activity::Snapshot,
        reader: Wait::None,
        last_error: None,
        committed: offset.as_object().cloned(),
        queued_records: 4,
        queued_bytes: 90,
        queue_limits: Some(Limits { records: 10, bytes: 100 }),
        events_read: 9,
        events_filtered: 1,
        events_failed: 1,
        creates: 4,
        updates: 2,
        deletes: 1,
        transactions_ended: 1,
        records_acked: 5,
        disconnects: 1,
        elections: 1,
        source_time_ms: Some(1),
        behind_source: Some(Duration::from_secs(1)),
        since_event: Some(Duration::from_millis(30)),
        lag: Some(LagView { last: 5, min: 1, max: 9, average: 4.5 }),
        empty_polls: 2,
        last_event_poll: Duration::from_millis(3),
        last_empty_poll: Duration::from_millis(1_000),
        since_contact: Some(Duration::from_millis(2)),
        away: None,
        snapshot: Some(SnapshotView {
            running: true,
            tables: 2,
            tables_remaining: 1,
            rows_done: 5,
            rows_expected: 9,
            rate: 1.0,
            left: None,
            started: Instant::now(),
            duration: Duration::from_secs(4),
        }),
        incremental: Some(incremental(Standing::Running, Instant::now())),
        tables: vec![TableView {
            name: "shop.\"odd\"".to_owned(),
            rows_done: 5,
            rows_expected: 9,
            rate: 1.0,
            left: None,
            finished: false,
        }],
    }
}

/// Everything that can be on the page.
fn page(partition: PartitionView) -> String {
    let mut state = State::default();
    let tags = ("custom.metric.tags", "env=prod");
    let config = Properties::from([("name", "c"), ("topic.prefix", "shop"), tags]);
    let (target, expect) = (TargetState::Started, Expect::Any);
    let _ = state.apply(1, &CommandV1::PutConnector { name: "c".into(), config, target, expect }.into());
    let placement = Placement {
        node: 1,
        incarnation: 1,
        epoch: 1,
        tasks_revision: 0,
        mode: Delivery::Plain,
        fence_wait_ms: 0,
        late_sends_ms: 0,
        phase: Phase::Assigned,
    };
    state.placements.insert(Unit::connector("c"), placement);
    let (_, mut api) = follower();
    api.view = std::sync::Arc::new(StateView::new(state, 1));
    let task = UnitId::Task("c".into(), 0);
    api.page(&[unit(UnitId::Connector("c".into()), Vec::new()), unit(task, vec![partition])])
}

fn served(page: &str) -> BTreeSet<String> {
    page.lines().filter_map(|l| Some(l.strip_prefix("# TYPE ")?.split_once(' ')?.0.to_owned())).collect()
}

fn documented() -> BTreeSet<String> {
    let text = include_str!("../../../../docs/metrics.md");
    let ours = |name: &&str| ["debezium_metrics_", "kafka_connect_", "thalweg_"].iter().any(|p| name.starts_with(p));
    // Names stand in backticks by themselves; expressions are made of them.
    let name = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    text.split('`').skip(1).step_by(2).flat_map(|code| code.split(name)).filter(ours).map(str::to_owned).collect()
}

#[test]
fn every_name_is_documented_and_every_documented_name_is_served() {
    let (served, documented) = (served(&page(partition())), documented());
    let missing: Vec<_> = served.difference(&documented).collect();
    assert!(missing.is_empty(), "docs/metrics.md does not name {missing:?}");
    let gone: Vec<_> = documented.difference(&served).collect();
    assert!(gone.is_empty(), "docs/metrics.md names what is not served: {gone:?}");
}

#[test]
fn a_page_is_well_formed_and_says_what_the_views_say() {
    let page = page(partition());
    let labels =
        r#"connector="c",task="0",plugin="mongodb",name="shop",env="prod",partition="{\"server_id\":\"shop\"}""#;
    for (name, more, value) in [
        ("debezium_metrics_TotalNumberOfCreateEventsSeen", r#",context="streaming""#, "4"),
        ("debezium_metrics_QueueRemainingCapacity", r#",context="streaming""#, "6"),
        ("debezium_metrics_MilliSecondsBehindSource", r#",context="streaming""#, "5"),
        ("debezium_metrics_MilliSecondsBehindSourceAverageValue", r#",context="streaming""#, "4.5"),
        ("debezium_metrics_Connected", r#",context="streaming""#, "0"),
        ("debezium_metrics_SourceEventPosition", r#",context="streaming",key="ord""#, "6"),
        ("debezium_metrics_SnapshotRunning", r#",context="snapshot""#, "1"),
        ("debezium_metrics_RowsScanned", r#",context="snapshot",table="shop.\"odd\"""#, "5"),
    ] {
        let line = format!("{name}{{{labels}{more}}} {value}\n");
        assert!(page.contains(&line), "{line} is not in:\n{page}");
    }
    assert!(
        page.contains("kafka_connect_source_task_metrics_poll_batch_max_time_ms{connector=\"c\",task=\"0\"} 1.5\n")
    );
    let mut seen = BTreeSet::new();
    for sample in page.lines().filter(|l| !l.starts_with('#')) {
        let (series, value) = sample.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{sample}");
        assert!(seen.insert(series), "{series} is there twice");
    }
}

#[test]
fn a_stream_whose_source_is_away_is_not_connected() {
    let connected = |away: Option<AwayView>| {
        let mut view = PartitionView { activity: Activity::Streaming, away, ..partition() };
        view.snapshot = None;
        let page = page(view);
        page.lines().find(|l| l.starts_with("debezium_metrics_Connected{")).unwrap().ends_with(" 1")
    };
    assert!(connected(None));
    assert!(!connected(Some(AwayView { since: Duration::from_secs(3), attempts: 2, why: "refused".to_owned() })));
}

#[test]
fn states_of_a_snapshot() {
    let state = |activity: Activity, running: Option<bool>| {
        let mut view = partition();
        view.activity = activity;
        view.incremental = None;
        view.snapshot = view.snapshot.zip(running).map(|(snapshot, running)| SnapshotView { running, ..snapshot });
        let page = page(view);
        let is = |name: &str| {
            let line = page.lines().find(|l| l.starts_with(&format!("debezium_metrics_{name}{{"))).unwrap();
            line.ends_with(" 1")
        };
        ["SnapshotRunning", "SnapshotPaused", "SnapshotCompleted", "SnapshotAborted", "SnapshotSkipped", "Connected"]
            .into_iter()
            .filter(|name| is(name))
            .collect::<Vec<_>>()
    };
    assert_eq!(state(Activity::Snapshot, Some(true)), ["SnapshotRunning"]);
    assert_eq!(state(Activity::Paused, Some(true)), ["SnapshotPaused"]);
    assert_eq!(state(Activity::Failed, Some(true)), ["SnapshotAborted"]);
    assert_eq!(state(Activity::Streaming, Some(false)), ["SnapshotCompleted", "Connected"]);
    assert_eq!(state(Activity::Streaming, None), ["SnapshotSkipped", "Connected"]);
    assert_eq!(state(Activity::Opening, None), Vec::<&str>::new());
}

/// The one that is under way counts, else the one that began last; and of no table there are two numbers.
#[test]
fn an_incremental_snapshot_is_told_like_any_other() {
    let begin = Instant::now();
    let later = begin + Duration::from_secs(1);
    let value = |page: &str, name: &str| {
        let line = page.lines().find(|l| l.starts_with(&format!("debezium_metrics_{name}{{"))).unwrap();
        line.rsplit_once(' ').unwrap().1.to_owned()
    };
    let told = |activity: Activity, whole: Option<(bool, Instant)>, standing: Standing| {
        let mut view = PartitionView { activity, incremental: Some(incremental(standing, later)), ..partition() };
        let snapshot = view.snapshot.take();
        view.snapshot = whole.and_then(|(running, started)| Some(SnapshotView { running, started, ..snapshot? }));
        let page = page(view);
        let states = ["SnapshotRunning", "SnapshotPaused", "SnapshotCompleted", "SnapshotAborted", "SnapshotSkipped"];
        let states: Vec<_> = states.into_iter().filter(|name| value(&page, name) == "1").collect();
        let numbers = ["TotalTableCount", "RemainingTableCount", "SnapshotPausedDurationInSeconds"];
        (states.join(","), numbers.map(|name| value(&page, name)))
    };
    let (own, of_whole) = (["4", "3", "7"].map(str::to_owned), ["2", "1", "7"].map(str::to_owned));
    let running = |name: &str, numbers: &[String; 3]| (name.to_owned(), numbers.clone());
    let (before, after) = (Some((false, begin)), Some((false, later + Duration::from_secs(1))));
    assert_eq!(told(Activity::Streaming, before, Standing::Running), running("SnapshotRunning", &own));
    assert_eq!(told(Activity::Streaming, None, Standing::Paused), running("SnapshotPaused", &own));
    assert_eq!(told(Activity::Paused, None, Standing::Running), running("SnapshotPaused", &own));
    assert_eq!(told(Activity::Failed, None, Standing::Running), running("SnapshotAborted", &own));
    assert_eq!(told(Activity::Streaming, before, Standing::Completed), running("SnapshotCompleted", &own));
    assert_eq!(told(Activity::Streaming, before, Standing::Aborted), running("SnapshotAborted", &own));
    // A blocking one between its chunks, and one after it.
    let blocking = Some((true, later + Duration::from_secs(1)));
    assert_eq!(told(Activity::Snapshot, blocking, Standing::Running), running("SnapshotRunning", &of_whole));
    assert_eq!(told(Activity::Streaming, after, Standing::Running), running("SnapshotRunning", &own));
    assert_eq!(told(Activity::Streaming, after, Standing::Aborted), running("SnapshotCompleted", &of_whole));

    let mut view = partition();
    view.tables[0].name = "shop.b".to_owned();
    let page = page(view);
    assert_eq!(value(&page, "RowsScanned"), "2048");
    assert_eq!(value(&page, "TableChunksCompletedCounts"), "2");
    assert_eq!(page.matches("\ndebezium_metrics_RowsScanned{").count(), 1);
}
