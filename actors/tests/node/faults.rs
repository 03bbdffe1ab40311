//! Parts that end without being asked: errors, panics, hangs.

use std::time::{Duration, Instant};

use thalweg_actors::Activity;
use thalweg_actors::port::UnitState;
use thalweg_core::{Error, ErrorKind, Phase};

use crate::support::source::{Fault, Landmine, Once, Unblock};
use crate::support::{Stage, heartbeats, keep_busy, run, task_unit, until, until_state, view};

fn broken() -> Error {
    Error::new(ErrorKind::Connect, Phase::Stream, "the connection broke")
}

async fn committed(stage: &Stage, partition: &str) {
    let events = stage.script.events(partition);
    until("all is committed", || (stage.cluster.stored(partition) == Some(events)).then_some(())).await;
}

#[test]
fn a_lost_connection_is_opened_again_without_repeats() {
    let stage = Stage::of(60);
    for event in [0, 13, 40, 59] {
        stage.script.arm("p", event, Fault::Fail(broken()));
    }
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        committed(&stage, "p").await;
        assert_eq!((stage.script.opened(), stage.broker.opened()), (5, 1), "the producer stays");
        assert_eq!(stage.broker.sent(), 60, "what was acknowledged before is not read again");
        assert_eq!(stage.cluster.states(&task_unit()), [UnitState::Running], "retries are below the state");
        let view = view(&node, &task_unit()).unwrap();
        assert_eq!(view.counters.restarts, 4);
        assert_eq!(view.partitions[0].generation, 5);
        assert_eq!(view.partitions[0].last_error.as_deref(), Some("the connection broke"));
        assert!(view.trace.is_none());
        stage.cluster.check();
    });
}

/// RUN-13: the budget of retries in a row.
#[test]
fn run_13_errors_max_retries() {
    for (setting, openings) in [(Some("0"), 1), (Some("3"), 4)] {
        let stage = Stage::of(10);
        for _ in 0..10 {
            stage.script.refuse_opening("p", broken());
        }
        run(async {
            let node = stage.node();
            let mut task = stage.task(1);
            task.config.set("errors.max.retries", setting.unwrap());
            node.reconcile(vec![task]);
            let view = until_state(&node, &task_unit(), UnitState::Failed).await;
            assert_eq!(stage.script.opened(), openings);
            let trace = view.trace.unwrap();
            assert!(
                trace.starts_with("org.apache.kafka.connect.errors.RetriableException: the connection broke\nadvice: ")
            );
            assert!(trace.ends_with(&format!("given up after {openings} failures in a row")), "{trace}");
        });
    }
    // Unset, or -1: without limit.
    for setting in [None, Some("-1")] {
        let stage = Stage::of(10);
        for _ in 0..15 {
            stage.script.refuse_opening("p", broken());
        }
        run(async {
            let node = stage.node();
            let mut task = stage.task(1);
            if let Some(setting) = setting {
                task.config.set("errors.max.retries", setting);
            }
            node.reconcile(vec![task]);
            let retrying = until("it retries", || {
                let partition = view(&node, &task_unit())?.partitions.into_iter().next()?;
                matches!(&partition.activity, Activity::Retrying { failures, .. } if *failures > 3).then_some(partition)
            })
            .await;
            assert!(retrying.activity.to_string().contains("the connection broke"));
            committed(&stage, "p").await;
            assert_eq!(stage.script.opened(), 16);
            assert_eq!(stage.cluster.states(&task_unit()), [UnitState::Running]);
        });
    }
}

/// RUN-13: progress between failures heals the count.
#[test]
fn run_13_failures_are_counted_in_a_row_only() {
    let stage = Stage::of(60);
    for event in [10, 20, 30, 40, 50] {
        stage.script.arm("p", event, Fault::Fail(broken()));
    }
    run(async {
        let node = stage.node();
        let mut task = stage.task(1);
        task.config.set("errors.max.retries", "1");
        node.reconcile(vec![task]);
        committed(&stage, "p").await;
    });
}

#[test]
fn a_fixed_wait_is_kept_between_tries() {
    let stage = Stage::of(10);
    stage.script.refuse_opening("p", broken());
    run(async {
        let node = stage.node();
        let mut task = stage.task(1);
        task.config.set("retriable.restart.connector.wait.ms", "150");
        node.reconcile(vec![task]);
        until("it was refused", || (stage.script.opened() == 1).then_some(())).await;
        let refused = Instant::now();
        until("it is opened again", || (stage.script.opened() == 2).then_some(())).await;
        assert!(refused.elapsed() >= Duration::from_millis(100), "{:?}", refused.elapsed());
        committed(&stage, "p").await;
    });
}

#[test]
fn one_partition_that_fails_does_not_disturb_the_others() {
    let stage = Stage::new(&[("p", 10), ("q", 10)]);
    for _ in 0..200 {
        stage.script.refuse_opening("p", broken());
    }
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        committed(&stage, "q").await;
        for events in [50, 90, 300] {
            stage.script.write("q", events);
            committed(&stage, "q").await;
        }
        assert_eq!(stage.broker.opened(), 1);
        let opened_q = stage.script.starts.lock().iter().filter(|(name, _)| name == "q").count();
        assert_eq!(opened_q, 1);
        until_state(&node, &task_unit(), UnitState::Running).await;
        committed(&stage, "p").await;
        stage.cluster.check();
    });
}

/// A panic of the reader: a fresh generation from the last committed position, and a view that says so.
#[test]
fn a_panic_in_the_reader_is_restarted() {
    let stage = Stage::of(40);
    stage.script.arm("p", 15, Fault::Panic);
    stage.script.arm("p", 15, Fault::Panic);
    // Holds the stream up behind the panics, so that the note can be seen.
    stage.broker.rules(|rules| rules.room = Some(1000));
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        let noted = until("the view says so", || {
            view(&node, &task_unit()).filter(|view| view.partitions.iter().any(|p| p.last_error.is_some()))
        })
        .await;
        let error = noted.partitions[0].last_error.clone().unwrap();
        assert!(error.contains("panicked: the script says so"), "{error}");
        committed(&stage, "p").await;
        let view = view(&node, &task_unit()).unwrap();
        assert_eq!((view.counters.panics, view.partitions[0].generation), (2, 3));
        assert_eq!(stage.cluster.states(&task_unit()), [UnitState::Running]);
        assert_eq!(stage.broker.sent(), 40);
        stage.cluster.check();
    });
}

#[test]
fn the_note_of_a_restart_stays_until_messages_are_acknowledged() {
    let stage = Stage::of(40);
    stage.script.arm("p", 15, Fault::Panic);
    stage.script.arm("p", 15, Fault::Hang);
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        let note = until("the view says so", || view(&node, &task_unit())?.note).await;
        assert!(note.starts_with("a source is restarted from the last committed position after: "), "{note}");
        assert!(note.contains("panicked: the script says so"), "{note}");
        until("it hangs", || (stage.script.armed() == 0).then_some(())).await;
        node.restart(&task_unit()).await;
        committed(&stage, "p").await;
        until("the note is gone", || view(&node, &task_unit())?.note.is_none().then_some(())).await;
    });
}

/// RUN-08: a panic that comes back every time is not repeated for ever.
#[test]
fn run_08_a_panic_that_repeats_fails_the_task() {
    let stage = Stage::of(40);
    for _ in 0..10 {
        stage.script.arm("p", 15, Fault::Panic);
    }
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        let view = until_state(&node, &task_unit(), UnitState::Failed).await;
        let trace = view.trace.unwrap();
        assert!(trace.contains(r#"reader of {"server":"p"} panicked: the script says so"#), "{trace}");
        assert!(trace.lines().nth(1).unwrap().starts_with("advice: "));
        assert_eq!(view.counters.panics, 4);
        assert_eq!(stage.cluster.stored("p"), Some(15));
        stage.cluster.check();
    });
}

#[test]
fn a_panic_in_the_encoder_rebuilds_the_task() {
    let stage = Stage::of(40);
    stage.script.set_value(23, Once::value());
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        committed(&stage, "p").await;
        assert_eq!((stage.broker.opened(), stage.broker.most_live()), (2, 1));
        let view = view(&node, &task_unit()).unwrap();
        assert_eq!(view.counters.panics, 1);
        let mut landed = stage.broker.values();
        landed.dedup();
        assert!((0..40).filter(|n| *n != 23).all(|n| landed.contains(&n.to_string())));
        assert!(landed.contains(&"defused".to_owned()));
        stage.cluster.check();
    });
    // One that repeats ends as FAILED.
    let stage = Stage::of(40);
    stage.script.set_value(23, Landmine::value());
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        let view = until_state(&node, &task_unit(), UnitState::Failed).await;
        assert!(view.trace.unwrap().contains("encoder panicked: stepped on it"));
    });
}

#[test]
fn a_panic_in_the_producer_rebuilds_the_task() {
    let stage = Stage::of(40);
    stage.broker.rules(|rules| rules.panic_at = Some(17));
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        committed(&stage, "p").await;
        assert_eq!((stage.broker.opened(), stage.broker.most_live()), (2, 1));
        stage.cluster.check();
    });
}

#[test]
fn a_failed_producer_is_replaced_and_nothing_is_lost() {
    let stage = Stage::new(&[("p", 40), ("q", 40)]);
    let error = Error::new(ErrorKind::BrokerUnavailable, Phase::Deliver, "no broker answers");
    stage.broker.rules(|rules| {
        rules.fail_at = Some((33, error.clone()));
        rules.open_errors.push_back(error.clone());
    });
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        committed(&stage, "p").await;
        committed(&stage, "q").await;
        assert_eq!((stage.broker.opened(), stage.broker.most_live()), (2, 1));
        assert_eq!(stage.cluster.states(&task_unit()), [UnitState::Running]);
        stage.cluster.check();
    });
}

#[test]
fn a_producer_that_cannot_be_had_counts_against_the_budget() {
    let stage = Stage::of(40);
    stage.broker.rules(|rules| {
        for _ in 0..5 {
            rules.open_errors.push_back(Error::new(ErrorKind::Connect, Phase::Deliver, "no route to the broker"));
        }
    });
    run(async {
        let node = stage.node();
        let mut task = stage.task(1);
        task.config.set("errors.max.retries", "2");
        node.reconcile(vec![task]);
        let view = until_state(&node, &task_unit(), UnitState::Failed).await;
        assert!(view.trace.unwrap().contains("no route to the broker"));
    });
}

#[test]
fn a_topic_that_cannot_be_had_fails_the_task() {
    let stage = Stage::of(40);
    let text = "Task failed to create new topic t.p. Ensure that the task is authorized to create topics or that the \
                topic exists and restart the task";
    stage.broker.rules(|rules| {
        rules.topic_errors.push_back(Error::new(ErrorKind::TopicMissing, Phase::Deliver, text));
    });
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        let view = until_state(&node, &task_unit(), UnitState::Failed).await;
        assert!(view.trace.unwrap().contains(text));
        assert_eq!(stage.broker.sent(), 0);
    });
}

/// A reader that does not answer any more is a fault, not a state.
#[test]
fn a_silent_source_is_opened_again() {
    let stage = Stage::of(40);
    stage.script.arm("p", 15, Fault::Hang);
    run(async {
        let node = stage.node();
        let mut task = stage.task(1);
        task.config.set("thalweg.progress.timeout.ms", "200");
        node.reconcile(vec![task]);
        committed(&stage, "p").await;
        let view = view(&node, &task_unit()).unwrap();
        assert!(view.counters.stalls >= 1);
        let error = view.partitions[0].last_error.clone().unwrap();
        assert!(error.starts_with("no sign of life from the source of"), "{error}");
        assert_eq!(stage.broker.sent(), 40);
        stage.cluster.check();
    });
}

/// A delay that was asked for is none either, however long it takes.
#[test]
fn a_source_that_waits_as_configured_is_left_alone() {
    let stage = Stage::of(40);
    stage.script.arm("p", 15, Fault::Rest(Duration::from_millis(2_400)));
    run(async {
        let node = stage.node();
        let mut task = stage.task(1);
        task.config.set("thalweg.progress.timeout.ms", "300");
        node.reconcile(vec![task]);
        committed(&stage, "p").await;
        let rested = view(&node, &task_unit()).unwrap();
        assert_eq!((rested.counters.stalls, stage.script.opened()), (0, 1));
    });
}

/// Back-pressure is never taken for a hang.
#[test]
fn waiting_for_the_broker_is_not_a_hang() {
    let stage = Stage::of(400);
    stage.broker.rules(|rules| {
        rules.hold = true;
        rules.room = Some(20);
    });
    run(async {
        let node = stage.node();
        let mut task = stage.task(1);
        task.config.set("thalweg.progress.timeout.ms", "40");
        task.config.set("max.queue.size", "50");
        node.reconcile(vec![task]);
        until("the broker is full", || (stage.broker.sent() == 20).then_some(())).await;
        heartbeats(20).await;
        let stalled = view(&node, &task_unit()).unwrap();
        assert_eq!((stalled.counters.stalls, stage.script.opened(), stage.broker.opened()), (0, 1, 1));
        stage.broker.rules(|rules| rules.room = None);
        stage.broker.release();
        until("it goes on", || (stage.broker.sent() >= 400).then_some(())).await;
    });
}

/// A reader that blocks its thread cannot be ended; it is left behind and can do no harm.
#[test]
fn a_reader_that_blocks_its_thread_is_left_behind() {
    let block = Unblock::default();
    let stage = Stage::of(40);
    stage.script.arm("p", 14, Fault::Block(block.0.clone()));
    thalweg_actors::run(Some(4), async move {
        let block = block;
        keep_busy();
        let node = stage.node();
        let mut task = stage.task(1);
        task.config.set("thalweg.progress.timeout.ms", "100");
        node.reconcile(vec![task]);
        committed(&stage, "p").await;
        drop(block);
        assert_eq!(stage.broker.values().len(), 40);
        stage.cluster.check();
    })
    .unwrap();
}
