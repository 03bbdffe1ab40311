//! Single records that cannot be converted or delivered.

use thalweg_actors::port::UnitState;
use thalweg_core::record::Value;

use crate::support::{Stage, run, task_unit, until, until_state, view};

const LONG: usize = 1000;

fn long() -> Value {
    Value::text("x".repeat(LONG))
}

/// KFK-03: refused by the client: FAILED with coordinates, and everything before it is committed, also
/// what the producer was still gathering.
#[test]
fn kfk_03_an_oversized_message_fails_the_task_with_its_coordinates() {
    for (at_the_client, gather) in [(true, false), (true, true), (false, false)] {
        let stage = Stage::of(40);
        stage.script.set_value(23, long());
        stage.broker.rules(|rules| {
            rules.gather = gather;
            rules.client_limit = at_the_client.then_some(100);
            rules.broker_limit = Some(100);
        });
        run(async {
            let node = stage.node();
            node.reconcile(vec![stage.task(1)]);
            let view = until_state(&node, &task_unit(), UnitState::Failed).await;
            let trace = view.trace.unwrap();
            assert!(trace.starts_with("org.apache.kafka.common.errors.RecordTooLargeException: "), "{trace}");
            assert!(trace.lines().nth(1).unwrap().starts_with("advice: raise producer.override.max.request.size"));
            assert!(trace.contains(r#"source partition {"server":"p"}, offset {"at":"#), "{trace}");
            if at_the_client {
                assert!(trace.contains("record for topic t.p"), "{trace}");
            }
            assert_eq!(stage.cluster.stored("p"), Some(23));
            stage.cluster.check();
        });
    }
}

/// KFK-03 with `errors.tolerance=all`: left out, counted, the rest arrives.
#[test]
fn kfk_03_tolerated_oversized_messages_are_left_out_and_counted() {
    for at_the_client in [true, false] {
        let stage = Stage::of(40);
        for event in [0, 23, 24, 39] {
            stage.script.set_value(event, long());
        }
        stage.broker.rules(|rules| {
            rules.client_limit = at_the_client.then_some(100);
            rules.broker_limit = Some(100);
        });
        run(async {
            let node = stage.node();
            let mut task = stage.task(1);
            task.config.set("errors.tolerance", "all");
            // They are not failures, so no budget is needed.
            task.config.set("errors.max.retries", "0");
            node.reconcile(vec![task]);
            until("all is committed", || (stage.cluster.stored("p") == Some(40)).then_some(())).await;
            let view = view(&node, &task_unit()).unwrap();
            assert!(view.errors.total_records_skipped >= 4, "{:?}", view.errors);
            assert!(view.errors.last_error_timestamp > 0);
            assert!(!stage.cluster.states(&task_unit()).contains(&UnitState::Failed));
        });
        let landed = stage.broker.values();
        assert!((0..40).filter(|n| ![0, 23, 24, 39].contains(n)).all(|n| landed.contains(&n.to_string())));
        assert!(landed.iter().all(|value| value.len() < LONG));
    }
}

/// A row of a snapshot has another position when it is read again.
#[test]
fn kfk_03_what_is_refused_is_known_again_at_another_position() {
    let stage = Stage::of(40);
    stage.script.set_value(23, long());
    stage.script.wanders.store(true, std::sync::atomic::Ordering::SeqCst);
    stage.broker.rules(|rules| rules.broker_limit = Some(100));
    run(async {
        let node = stage.node();
        let mut task = stage.task(1);
        task.config.set("errors.tolerance", "all");
        node.reconcile(vec![task]);
        until("all is committed", || (stage.cluster.stored("p") == Some(40)).then_some(())).await;
        let view = view(&node, &task_unit()).unwrap();
        assert_eq!(view.counters.failures, 0);
        // The limit is raised: what changes the same row now is not left out.
        stage.broker.rules(|rules| rules.broker_limit = None);
        stage.script.set_value(43, long());
        stage.script.write("p", 45);
        until("all is committed", || (stage.cluster.stored("p") == Some(45)).then_some(())).await;
    });
    let landed = stage.broker.values();
    assert!((0..40).filter(|n| *n != 23).all(|n| landed.contains(&n.to_string())));
    assert_eq!(landed.iter().filter(|value| value.len() >= LONG).count(), 1);
}

/// The broker refuses batches: a message that shared one with another is not left out.
#[test]
fn kfk_03_an_innocent_message_of_a_refused_batch_arrives() {
    let stage = Stage::of(40);
    stage.broker.rules(|rules| rules.refused_batches = vec![5]);
    run(async {
        let node = stage.node();
        let mut task = stage.task(1);
        task.config.set("errors.tolerance", "all");
        node.reconcile(vec![task]);
        until("all is committed", || (stage.cluster.stored("p") == Some(40)).then_some(())).await;
        let view = view(&node, &task_unit()).unwrap();
        assert_eq!((view.errors.total_records_skipped, stage.broker.opened()), (0, 2));
        stage.cluster.check();
    });
    let landed = stage.broker.values();
    assert!((0..40).all(|n| landed.contains(&n.to_string())));
}

/// Messages that pass alone but not together: the batches are too large, which nobody tolerates.
#[test]
fn kfk_03_batches_that_are_too_large_fail_the_task() {
    let stage = Stage::of(4_000);
    stage.broker.rules(|rules| rules.refused_batches = (1..100).map(|n| n * 50).collect());
    run(async {
        let node = stage.node();
        let mut task = stage.task(1);
        task.config.set("errors.tolerance", "all");
        node.reconcile(vec![task]);
        let view = until_state(&node, &task_unit(), UnitState::Failed).await;
        assert!(view.trace.unwrap().contains("larger than the topic allows"));
        assert_eq!(view.errors.total_records_skipped, 0);
        stage.cluster.check();
    });
}

fn unconvertible() -> Value {
    Value::Int32(7)
}

/// RUN-08: a record that cannot be converted fails the task; what was before it is committed.
#[test]
fn run_08_a_record_that_cannot_be_converted_fails_the_task() {
    let stage = Stage::of(40);
    stage.script.set_value(23, unconvertible());
    run(async {
        let node = stage.node();
        let mut task = stage.task(1);
        task.config.set("value.converter", "org.apache.kafka.connect.json.JsonConverter");
        task.config.set("value.converter.schemas.enable", "false");
        node.reconcile(vec![task]);
        let view = until_state(&node, &task_unit(), UnitState::Failed).await;
        let trace = view.trace.unwrap();
        assert!(trace.starts_with(
            "org.apache.kafka.connect.errors.DataException: Tolerance exceeded in error handler\nadvice: "
        ));
        assert!(trace.contains("VALUE_CONVERTER") && trace.contains("record for topic t.p"), "{trace}");
        assert!(trace.contains(r#"source partition {"server":"p"}, offset {"at":24}"#), "{trace}");
        until("its prefix is committed", || (stage.cluster.stored("p") == Some(23)).then_some(())).await;
        assert_eq!((view.errors.total_record_errors, view.counters.failures), (1, 1));
    });
}

#[test]
fn tolerated_conversion_errors_are_left_out_and_counted() {
    let stage = Stage::of(40);
    for event in [0, 23, 39] {
        stage.script.set_value(event, unconvertible());
    }
    run(async {
        let node = stage.node();
        let mut task = stage.task(1);
        task.config.set("value.converter", "org.apache.kafka.connect.json.JsonConverter");
        task.config.set("value.converter.schemas.enable", "false");
        task.config.set("errors.tolerance", "all");
        node.reconcile(vec![task]);
        until("all is committed", || (stage.cluster.stored("p") == Some(40)).then_some(())).await;
        let view = view(&node, &task_unit()).unwrap();
        assert_eq!((view.errors.total_records_skipped, stage.broker.sent()), (3, 37));
        assert_eq!(stage.broker.opened(), 1);
    });
}
