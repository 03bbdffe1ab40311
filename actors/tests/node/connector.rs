//! Connector objects: planning, publishing, target states.

use std::sync::atomic::Ordering;

use thalweg_actors::NodeHandle;
use thalweg_actors::port::{Assignment, Epoch, Target, UnitState};
use thalweg_config::Properties;
use thalweg_core::{Error, ErrorKind, Phase};

use crate::support::cluster::Tasks;
use crate::support::{Stage, config, connector_unit, heartbeats, run, until, until_state, view};

async fn published(stage: &Stage, n: usize) -> Tasks {
    until(&format!("{n} task sets are published"), || stage.cluster.tasks().get(n - 1).cloned()).await
}

fn start(stage: &Stage) -> NodeHandle {
    let node = stage.node();
    node.reconcile(vec![stage.connector(1)]);
    node
}

/// RUN-06: published task configurations hold references, not secrets.
#[test]
fn run_06_tasks_are_published_with_references() {
    let stage = Stage::of(0);
    run(async {
        let node = stage.node();
        let mut connector = stage.connector(1);
        connector.config.set("script.password", "${env:SECRET}");
        connector.config_revision = 9;
        node.reconcile(vec![connector]);
        let (epoch, revision, tasks) = published(&stage, 1).await;
        assert_eq!((epoch, revision, tasks.len()), (Epoch(1), 9, 1));
        assert_eq!(tasks[0].get("script.password"), Some("${env:SECRET}"));
        assert_eq!(tasks[0].get("task.class"), Some("org.example.ScriptConnectorTask"));
        let view = until_state(&node, &connector_unit(), UnitState::Running).await;
        assert_eq!((view.class, view.version), (Some("org.example.ScriptConnector"), Some("1.0")));
    });
}

#[test]
fn tasks_are_planned_again_when_the_source_or_the_configuration_changes() {
    let stage = Stage::of(0);
    run(async {
        let node = start(&stage);
        published(&stage, 1).await;
        assert!(stage.script.present.lock().is_empty());
        stage.script.replan.notify_one();
        published(&stage, 2).await;
        assert_eq!(*stage.script.present.lock(), stage.cluster.tasks()[0].2, "what changes little stays where it is");
        node.reconcile(vec![Assignment { config_revision: 2, ..stage.connector(1) }]);
        let (_, revision, _) = published(&stage, 3).await;
        assert_eq!(revision, 2);
        assert!(stage.script.present.lock().is_empty(), "tasks of another configuration are no measure");
        node.reconcile(vec![Assignment { config_revision: 2, restart: 1, ..stage.connector(1) }]);
        published(&stage, 4).await;
        until_state(&node, &connector_unit(), UnitState::Running).await;
        let states = stage.cluster.states(&connector_unit());
        assert_eq!(states, [UnitState::Running, UnitState::Restarting, UnitState::Running]);
    });
}

/// RUN-05: more tasks than `tasks.max` are not run, unless that is asked for.
#[test]
fn run_05_tasks_max_is_a_limit() {
    let stage = Stage::of(0);
    let three = || Ok(vec![config(), config(), config()]);
    stage.script.plans.lock().extend([three(), three(), three()]);
    run(async {
        let node = start(&stage);
        let view = until_state(&node, &connector_unit(), UnitState::Failed).await;
        let trace = view.trace.unwrap();
        assert!(trace.contains("planned 3 tasks although tasks.max allows 1"), "{trace}");
        assert!(stage.cluster.tasks().is_empty());
        let with = |max: &str, enforce: &str, revision| {
            let mut connector = Assignment { config_revision: revision, ..stage.connector(1) };
            connector.config.set("tasks.max", max);
            connector.config.set("tasks.max.enforce", enforce);
            connector
        };
        node.reconcile(vec![with("1", "false", 2)]);
        assert_eq!(published(&stage, 1).await.2.len(), 3);
        let note = until("it says so", || crate::support::view(&node, &connector_unit())?.note).await;
        assert!(note.contains("tasks.max allows 1"), "{note}");
        node.reconcile(vec![with("3", "true", 3)]);
        assert_eq!(published(&stage, 2).await.2.len(), 3);
        until("the note is gone", || crate::support::view(&node, &connector_unit())?.note.is_none().then_some(()))
            .await;
    });
}

#[test]
fn planning_is_tried_again_until_it_works() {
    let stage = Stage::of(0);
    let away = || Err(Error::new(ErrorKind::Connect, Phase::Start, "no shard answers"));
    stage.script.plans.lock().push_back(away());
    stage.cluster.refuse_tasks(Error::new(ErrorKind::QuorumLost, Phase::Commit, "no leader"));
    run(async {
        let node = start(&stage);
        published(&stage, 1).await;
        assert_eq!(stage.script.plannings.load(Ordering::SeqCst), 3);
        until_state(&node, &connector_unit(), UnitState::Running).await;
        assert!(!stage.cluster.states(&connector_unit()).contains(&UnitState::Failed));
    });
}

#[test]
fn a_panic_while_planning_is_survived() {
    let stage = Stage::of(0);
    stage.script.plan_panics.store(1, Ordering::SeqCst);
    run(async {
        let node = start(&stage);
        published(&stage, 1).await;
        let view = view(&node, &connector_unit()).unwrap();
        assert_eq!(view.counters.panics, 1);
    });
}

#[test]
fn a_stale_connector_object_is_silent() {
    let stage = Stage::of(0);
    stage.cluster.refuse_tasks(Error::new(ErrorKind::Fenced, Phase::Commit, "the placement is not current"));
    run(async {
        let _node = start(&stage);
        until("it planned", || (stage.script.plannings.load(Ordering::SeqCst) == 1).then_some(())).await;
        heartbeats(5).await;
        assert!(stage.cluster.states(&connector_unit()).is_empty());
        assert_eq!(stage.script.plannings.load(Ordering::SeqCst), 1);
    });
}

/// RUN-09 for the connector object.
#[test]
fn run_09_target_states_of_a_connector() {
    let stage = Stage::of(0);
    run(async {
        let node = stage.node();
        let with = |target| vec![Assignment { target, ..stage.connector(1) }];
        // Created paused: no tasks until it is resumed for the first time.
        node.reconcile(with(Target::Paused));
        until_state(&node, &connector_unit(), UnitState::Paused).await;
        heartbeats(3).await;
        assert_eq!(stage.script.plannings.load(Ordering::SeqCst), 0);
        node.reconcile(with(Target::Started));
        published(&stage, 1).await;
        until_state(&node, &connector_unit(), UnitState::Running).await;
        node.reconcile(with(Target::Stopped));
        until_state(&node, &connector_unit(), UnitState::Stopped).await;
        stage.script.replan.notify_one();
        heartbeats(3).await;
        assert_eq!(stage.cluster.tasks().len(), 1, "nothing is watched while stopped");
        node.reconcile(with(Target::Started));
        published(&stage, 2).await;
    });
}

#[test]
fn a_failed_connector_heals_by_stop_or_restart_only() {
    let stage = Stage::of(0);
    let denied = || Err(Error::new(ErrorKind::Auth, Phase::Start, "wrong password"));
    stage.script.plans.lock().extend([denied(), denied()]);
    run(async {
        let node = start(&stage);
        let with = |target, restart| vec![Assignment { target, restart, ..stage.connector(1) }];
        let failed = until_state(&node, &connector_unit(), UnitState::Failed).await;
        for target in [Target::Paused, Target::Started] {
            node.reconcile(with(target, 0));
            heartbeats(3).await;
            let view = view(&node, &connector_unit()).unwrap();
            assert_eq!((view.state, &view.trace), (UnitState::Failed, &failed.trace), "the trace is kept");
        }
        node.reconcile(with(Target::Stopped, 0));
        until_state(&node, &connector_unit(), UnitState::Stopped).await;
        node.reconcile(with(Target::Started, 0));
        until_state(&node, &connector_unit(), UnitState::Failed).await;
        node.reconcile(with(Target::Started, 1));
        published(&stage, 1).await;
    });
}

#[test]
fn an_unknown_class_is_named_with_those_that_are_known() {
    let stage = Stage::of(0);
    run(async {
        let node = stage.node();
        let mut connector = stage.connector(1);
        connector.config = Properties::from([("name", "shop"), ("connector.class", "Nothing")]);
        node.reconcile(vec![connector]);
        let view = until_state(&node, &connector_unit(), UnitState::Failed).await;
        assert!(view.trace.unwrap().contains("which name matches Nothing, available connectors are: org.example"));
        for name in ["org.example.ScriptConnector", "ScriptConnector", "Script", "script"] {
            assert!(node.registry().find(name).is_ok(), "{name}");
        }
        for name in ["", "Connector", "example.ScriptConnector", "SCRIPT"] {
            assert!(node.registry().find(name).is_err(), "{name}");
        }
    });
}

#[test]
fn a_connector_object_is_given_back() {
    let stage = Stage::of(0);
    run(async {
        let node = start(&stage);
        published(&stage, 1).await;
        until_state(&node, &connector_unit(), UnitState::Running).await;
        node.reconcile(vec![Assignment { revoked: true, ..stage.connector(1) }]);
        until("it is released", || stage.cluster.released().first().cloned()).await;
        assert_eq!(*stage.cluster.states(&connector_unit()).last().unwrap(), UnitState::Unassigned);
    });
}
