//! Target states, restarts, what status shows.

use std::sync::atomic::Ordering;

use thalweg_actors::Activity;
use thalweg_actors::port::{Assignment, Target, UnitState};
use thalweg_core::{Error, ErrorKind, Phase};

use crate::support::{Stage, heartbeats, run, task_unit, until, until_state, view};

/// RUN-09: a pause stops reading and keeps connections; a resume goes on from there.
#[test]
fn run_09_pause_and_resume() {
    let stage = Stage::new(&[("p", 20), ("q", 20)]);
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        until("all is committed", || (stage.cluster.stored("p") == Some(20)).then_some(())).await;
        until("all is committed", || (stage.cluster.stored("q") == Some(20)).then_some(())).await;
        until_state(&node, &task_unit(), UnitState::Running).await;
        node.reconcile(vec![Assignment { target: Target::Paused, ..stage.task(1) }]);
        let view = until_state(&node, &task_unit(), UnitState::Paused).await;
        assert_eq!(view.target, Target::Paused);
        until("the readers pause", || {
            let view = crate::support::view(&node, &task_unit())?;
            view.partitions.iter().all(|p| p.activity == Activity::Paused).then_some(())
        })
        .await;
        stage.script.write("p", 40);
        heartbeats(5).await;
        assert_eq!(stage.broker.sent(), 40);
        assert_eq!((stage.script.opened(), stage.script.closed()), (2, 0), "connections are kept");
        node.reconcile(vec![stage.task(1)]);
        until("all is committed", || (stage.cluster.stored("p") == Some(40)).then_some(())).await;
        assert_eq!((stage.script.opened(), stage.broker.opened()), (2, 1));
        let states = stage.cluster.states(&task_unit());
        assert_eq!(states, [UnitState::Running, UnitState::Paused, UnitState::Running]);
        assert_eq!(stage.broker.sent(), 60);
        stage.cluster.check();
    });
}

#[test]
fn run_09_a_task_that_is_placed_while_paused_opens_nothing() {
    let stage = Stage::of(20);
    run(async {
        let node = stage.node();
        node.reconcile(vec![Assignment { target: Target::Paused, ..stage.task(1) }]);
        until_state(&node, &task_unit(), UnitState::Paused).await;
        heartbeats(3).await;
        assert_eq!((stage.script.opened(), stage.broker.opened()), (0, 0));
        node.reconcile(vec![stage.task(1)]);
        until("all is committed", || (stage.cluster.stored("p") == Some(20)).then_some(())).await;
        // A pause at any moment of the start is taken up.
        node.reconcile(vec![Assignment { target: Target::Paused, ..stage.task(2) }]);
        until("it pauses", || view(&node, &task_unit()).filter(|v| v.state == UnitState::Paused)).await;
    });
}

#[test]
fn a_paused_task_can_be_given_away() {
    let stage = Stage::of(20);
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        until("all is committed", || (stage.cluster.stored("p") == Some(20)).then_some(())).await;
        let paused = Assignment { target: Target::Paused, ..stage.task(1) };
        node.reconcile(vec![paused.clone()]);
        until_state(&node, &task_unit(), UnitState::Paused).await;
        node.reconcile(vec![Assignment { revoked: true, ..paused }]);
        until("it is released", || stage.cluster.released().first().cloned()).await;
    });
}

/// A task whose shards have gone stays until there is another one for it: it follows every target, sends
/// nothing, and is given back like any other.
#[test]
fn a_task_without_partitions_is_like_any_other() {
    let stage = Stage::new(&[]);
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        until_state(&node, &task_unit(), UnitState::Running).await;
        node.reconcile(vec![Assignment { target: Target::Paused, ..stage.task(1) }]);
        until_state(&node, &task_unit(), UnitState::Paused).await;
        node.reconcile(vec![stage.task(1)]);
        until_state(&node, &task_unit(), UnitState::Running).await;
        node.reconcile(vec![Assignment { restart: 1, ..stage.task(1) }]);
        until("it was restarted", || (stage.broker.opened() == 2).then_some(())).await;
        until_state(&node, &task_unit(), UnitState::Running).await;
        heartbeats(5).await;
        node.reconcile(vec![Assignment { restart: 1, revoked: true, ..stage.task(1) }]);
        until("it is released", || stage.cluster.released().first().cloned()).await;
        let view = view(&node, &task_unit()).unwrap();
        assert_eq!((view.counters.restarts, view.counters.stalls, stage.broker.sent()), (0, 0, 0));
        stage.cluster.check();
    });
}

/// RUN-01: a restart takes the task down in order and opens it anew, once.
#[test]
fn run_01_restart_of_a_running_task() {
    let stage = Stage::of(2_000);
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        until("some are sent", || (stage.broker.sent() > 100).then_some(())).await;
        until_state(&node, &task_unit(), UnitState::Running).await;
        node.reconcile(vec![Assignment { restart: 1, ..stage.task(1) }]);
        until("it is opened again", || ((stage.broker.opened(), stage.script.opened()) == (2, 2)).then_some(())).await;
        until("all is committed", || (stage.cluster.stored("p") == Some(2_000)).then_some(())).await;
        assert_eq!(stage.broker.most_live(), 1);
        assert_eq!(stage.broker.sent(), 2_000, "nothing was repeated");
        until_state(&node, &task_unit(), UnitState::Running).await;
        let states = stage.cluster.states(&task_unit());
        assert_eq!(states, [UnitState::Running, UnitState::Restarting, UnitState::Running]);
        // The same over the handle.
        assert!(node.restart(&task_unit()).await);
        until("it is opened again", || (stage.broker.opened() == 3).then_some(())).await;
        assert!(!node.restart(&crate::support::connector_unit()).await, "it does not run here");
        stage.cluster.check();
    });
}

/// RUN-01, RUN-08: a failed task stays failed until it is restarted.
#[test]
fn run_08_a_failed_task_tells_why_and_heals_by_restart_only() {
    let stage = Stage::of(20);
    let denied = Error::new(ErrorKind::Permission, Phase::Stream, "not allowed to read shop.orders")
        .advise("grant read on shop.orders");
    stage.script.arm("p", 9, crate::support::source::Fault::Fail(denied));
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        let view = until_state(&node, &task_unit(), UnitState::Failed).await;
        let trace = view.trace.unwrap();
        let mut lines = trace.lines();
        assert_eq!(
            lines.next(),
            Some("org.apache.kafka.connect.errors.ConnectException: not allowed to read shop.orders")
        );
        assert_eq!(lines.next(), Some("advice: grant read on shop.orders"));
        until("everything is closed", || (stage.broker.live() == 0 && stage.script.closed() == 1).then_some(())).await;
        assert_eq!(stage.cluster.stored("p"), Some(9), "what was acknowledged is committed");
        assert_eq!(view.counters.failures, 1);
        // Neither a pause nor a resume heals it.
        node.reconcile(vec![Assignment { target: Target::Paused, ..stage.task(1) }]);
        node.reconcile(vec![stage.task(1)]);
        heartbeats(4).await;
        assert_eq!(*stage.cluster.states(&task_unit()).last().unwrap(), UnitState::Failed);
        node.reconcile(vec![Assignment { restart: 1, ..stage.task(1) }]);
        until("all is committed", || (stage.cluster.stored("p") == Some(20)).then_some(())).await;
        let states = stage.cluster.states(&task_unit());
        assert_eq!(states[states.len() - 2..], [UnitState::Restarting, UnitState::Running]);
        assert_eq!(stage.broker.sent(), 20);
        stage.cluster.check();
    });
}

#[test]
fn a_failed_task_can_be_given_away() {
    let stage = Stage::of(20);
    stage.script.refuse_opening("p", Error::new(ErrorKind::Auth, Phase::Start, "wrong password"));
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        until_state(&node, &task_unit(), UnitState::Failed).await;
        node.reconcile(vec![Assignment { revoked: true, ..stage.task(1) }]);
        until("it is released", || stage.cluster.released().first().cloned()).await;
    });
}

#[test]
fn a_wrong_configuration_fails_before_anything_is_opened() {
    let stage = Stage::of(20);
    run(async {
        let node = stage.node();
        let mut task = stage.task(1);
        task.config.set("connector.class", "org.example.Unknown");
        node.reconcile(vec![task]);
        let view = until_state(&node, &task_unit(), UnitState::Failed).await;
        assert!(view.trace.unwrap().starts_with(
            "org.apache.kafka.common.config.ConfigException: Failed to find any class that implements Connector and \
             which name matches org.example.Unknown, available connectors are: org.example.ScriptConnector\n"
        ));
        assert_eq!(stage.broker.opened(), 0);
        // A corrected configuration under the same placement heals it.
        node.reconcile(vec![stage.task(1)]);
        until("all is committed", || (stage.cluster.stored("p") == Some(20)).then_some(())).await;
    });
}

/// RUN-06: a trace shows the reference, not what it stands for.
#[test]
fn run_06_a_resolved_secret_is_in_no_trace() {
    let stage = Stage::of(20);
    let refusal = Error::new(ErrorKind::Auth, Phase::Start, "user u with password hunter2-hunter2 was refused");
    stage.script.refuse_opening("p", refusal);
    run(async {
        let node = stage.node();
        let mut task = stage.task(1);
        task.config.set("script.password", "${env:SECRET}");
        node.reconcile(vec![task]);
        let view = until_state(&node, &task_unit(), UnitState::Failed).await;
        let shown = format!("{view:?} {:?}", stage.cluster.statuses(&task_unit()));
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("${env:SECRET}"));
    });
}

#[test]
fn a_source_without_a_stream_finishes_and_stays_running() {
    let stage = Stage::of(50);
    stage.script.ends.store(true, Ordering::SeqCst);
    *stage.script.snapshot_of.lock() = Some("shop.orders".to_owned());
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        let partition = until("it is finished", || {
            let view = view(&node, &task_unit())?;
            view.partitions.into_iter().find(|p| p.activity == Activity::Finished)
        })
        .await;
        assert_eq!(stage.cluster.stored("p"), Some(50));
        assert_eq!((stage.script.closed(), stage.broker.live()), (1, 1));
        let snapshot = partition.snapshot.unwrap();
        assert_eq!((snapshot.rows_done, snapshot.rows_expected, snapshot.tables_remaining), (50, 50, 0));
        heartbeats(4).await;
        assert_eq!(stage.cluster.states(&task_unit()), [UnitState::Running]);
        assert_eq!(stage.script.opened(), 1, "a finished source is not opened again");
        let table = until("its table is seen", || {
            view(&node, &task_unit())?.partitions.remove(0).tables.into_iter().find(|t| t.finished)
        })
        .await;
        assert_eq!((&*table.name, table.rows_done, table.rows_expected), ("shop.orders", 50, 50));
        let report = node.shutdown(std::time::Duration::from_secs(5)).await;
        assert_eq!(report.released, 1);
    });
}

#[test]
fn a_snapshot_shows_its_progress_while_it_runs() {
    let stage = Stage::of(1_000);
    *stage.script.snapshot_of.lock() = Some("shop.orders".to_owned());
    stage.broker.rules(|rules| {
        rules.hold = true;
        rules.room = Some(100);
    });
    run(async {
        let node = stage.node();
        let mut task = stage.task(1);
        task.config.set("max.queue.size", "50");
        node.reconcile(vec![task]);
        let (partition, table) = until("progress is seen", || {
            let partition = view(&node, &task_unit())?.partitions.into_iter().next()?;
            let table = partition.tables.first().cloned().filter(|table| table.rows_done >= 100)?;
            Some((partition, table))
        })
        .await;
        assert_eq!(partition.activity, Activity::Snapshot);
        let snapshot = partition.snapshot.unwrap();
        assert!(snapshot.running && snapshot.rows_expected == 1_000 && snapshot.rate > 0.0);
        assert!(snapshot.left.is_some());
        assert_eq!((table.rows_expected, table.finished), (1_000, false));
    });
}
