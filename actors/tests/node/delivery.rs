//! What may be committed, and how what is in flight is waited for.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use thalweg_actors::port::{Assignment, UnitState};
use thalweg_core::delivery::DeliveryMode;

use crate::support::source::{Fault, Unblock};
use crate::support::{Stage, heartbeats, keep_busy, options, run, task_unit, until, until_state, view};

/// KFK-05: an event that is not acknowledged holds back the position of all later ones.
#[test]
fn kfk_05_a_commit_never_passes_an_unacknowledged_message() {
    let stage = Stage::of(5);
    stage.broker.rules(|rules| rules.hold = true);
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        until("all are sent", || (stage.broker.sent() == 5).then_some(())).await;
        for seq in [4, 2, 3] {
            stage.broker.answer(seq);
        }
        heartbeats(4).await;
        assert_eq!(stage.cluster.stored("p"), Some(0));
        stage.broker.answer(0);
        until("the prefix is committed", || (stage.cluster.stored("p") == Some(1)).then_some(())).await;
        heartbeats(4).await;
        assert_eq!(stage.cluster.stored("p"), Some(1), "event 1 is still out");
        stage.broker.answer(1);
        until("all is committed", || (stage.cluster.stored("p") == Some(5)).then_some(())).await;
        stage.cluster.check();
    });
}

#[test]
fn commits_are_gathered_and_told_to_the_source() {
    let stage = Stage::of(3_000);
    run(async {
        let node = stage.node();
        let started = Instant::now();
        node.reconcile(vec![stage.task(1)]);
        until("all is committed", || (stage.cluster.stored("p") == Some(3_000)).then_some(())).await;
        let most = 3 + started.elapsed().as_millis() / options().commit_interval.as_millis();
        assert!(stage.cluster.commits().len() as u128 <= most, "{} commits", stage.cluster.commits().len());
        // The source hears of it with its next batch.
        let heard = || stage.script.durable.lock().get("p").copied();
        until("the source hears of it", || {
            stage.script.write("p", stage.script.events("p") + 1);
            heard().filter(|at| *at >= 3_000)
        })
        .await;
        assert_eq!(stage.broker.topics(), ["t.p"], "a topic is prepared once");
        assert_eq!(stage.cluster.topics(), ["t.p"]);
        let counters = view(&node, &task_unit()).unwrap().counters;
        assert!(counters.polled >= 3_000 && counters.sent >= 3_000 && counters.written >= 3_000);
        assert_eq!(counters.commits as usize, stage.cluster.commits().len());
    });
}

/// RUN-12: with a healthy broker an orderly stop waits for what is in flight.
#[test]
fn run_12_stop_waits_for_records_in_flight() {
    let stage = Stage::of(30);
    stage.broker.rules(|rules| rules.hold = true);
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        until("all are sent", || (stage.broker.sent() == 30).then_some(())).await;
        node.reconcile(vec![Assignment { revoked: true, ..stage.task(1) }]);
        heartbeats(5).await;
        assert!(stage.cluster.released().is_empty(), "released with records in flight");
        stage.broker.release();
        until("it is released", || stage.cluster.released().first().cloned()).await;
        assert_eq!(stage.cluster.stored("p"), Some(30));
        stage.cluster.check();
    });
}

/// RUN-12: with a broker that does not answer, the stop takes the flush time and no longer.
#[test]
fn run_12_a_stuck_broker_holds_up_a_stop_for_the_flush_time_only() {
    for room in [None, Some(10)] {
        let stage = Stage::of(30);
        stage.broker.rules(|rules| {
            rules.hold = true;
            rules.room = room;
        });
        run(async {
            let node = stage.node();
            node.reconcile(vec![stage.task(1)]);
            until("it is stuck", || (stage.broker.sent() == room.unwrap_or(30)).then_some(())).await;
            for seq in 0..4 {
                stage.broker.answer(seq);
            }
            let asked = Instant::now();
            node.reconcile(vec![Assignment { revoked: true, ..stage.task(1) }]);
            until("it is released", || stage.cluster.released().first().cloned()).await;
            let took = asked.elapsed();
            assert!(took >= options().flush_timeout && took < options().stop_timeout, "{took:?}");
            // What is acknowledged is committed; the rest comes again.
            assert!(stage.cluster.stored("p").is_some_and(|at| (4..30).contains(&at)));
            stage.broker.rules(|rules| {
                rules.hold = false;
                rules.room = None;
            });
            node.reconcile(vec![stage.task(2)]);
            until("all is committed", || (stage.cluster.stored("p") == Some(30)).then_some(())).await;
            stage.cluster.check();
        });
    }
}

/// KFK-04: a shutdown says how many messages were not acknowledged; none of them is lost.
#[test]
fn kfk_04_unflushed_records_at_shutdown_are_reported_and_sent_again() {
    let stage = Stage::of(500);
    stage.broker.rules(|rules| rules.hold = true);
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1), stage.connector(2)]);
        until("all are queued", || (stage.broker.sent() == 500).then_some(())).await;
        let report = node.shutdown(Duration::from_secs(3)).await;
        assert_eq!(report.unacknowledged, 500);
        assert_eq!((report.released, report.abandoned.len()), (2, 0));
        assert_eq!(stage.cluster.stored("p"), Some(0));
        assert_eq!(stage.broker.live(), 0);
    });
    stage.broker.rules(|rules| rules.hold = false);
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(3)]);
        until("all is committed", || (stage.cluster.stored("p") == Some(500)).then_some(())).await;
    });
    let landed = stage.broker.values();
    assert!((0..500).all(|n| landed.contains(&n.to_string())));
}

/// Neither a source without changes nor anything else that waits holds up a shutdown.
#[test]
fn an_idle_task_stops_at_once() {
    let stage = Stage::new(&[("p", 0), ("q", 3), ("r", 0)]);
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1), stage.connector(2)]);
        until_state(&node, &task_unit(), UnitState::Running).await;
        let asked = Instant::now();
        let report = node.shutdown(Duration::from_secs(30)).await;
        assert!(asked.elapsed() < Duration::from_millis(500), "{:?}", asked.elapsed());
        assert_eq!((report.released, report.unacknowledged), (2, 0));
        assert_eq!(stage.script.closed(), 3);
        // Nothing starts any more.
        node.reconcile(vec![stage.task(5)]);
        heartbeats(4).await;
        assert_eq!((stage.script.opened(), stage.broker.live()), (3, 0));
    });
}

#[test]
fn a_part_that_never_ends_is_left_behind_at_the_deadline() {
    let block = Unblock::default();
    let stage = Stage::of(10);
    stage.script.arm("p", 7, Fault::Block(block.0.clone()));
    run(async move {
        let _block = block;
        keep_busy();
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        until("it blocks", || stage.script.blocked.load(Ordering::SeqCst).then_some(())).await;
        let report = node.shutdown(Duration::from_millis(200)).await;
        assert_eq!(report.abandoned, [task_unit()]);
    });
}

#[test]
fn back_pressure_reaches_the_source() {
    let stage = Stage::of(100_000);
    stage.broker.rules(|rules| {
        rules.hold = true;
        rules.room = Some(50);
    });
    run(async {
        let node = stage.node();
        let mut task = stage.task(1);
        task.config.set("max.queue.size", "100");
        node.reconcile(vec![task]);
        let read = || stage.script.read.load(Ordering::SeqCst);
        until("the broker is full", || (stage.broker.sent() == 50).then_some(())).await;
        heartbeats(5).await;
        // In flight, the batch in hand of each stage, and the queue.
        assert!(read() <= 50 + 2 * 7 + 100, "{} were read", read());
        let view = view(&node, &task_unit()).unwrap();
        assert!((50..=51).contains(&view.in_flight), "{} are in flight", view.in_flight);
        assert!(view.partitions[0].queued_records >= 80);
        assert_eq!(view.encoder, thalweg_actors::Wait::Broker);
    });
}

#[test]
fn plain_mode_waits_for_requests_on_the_wire_before_it_gives_a_task_away() {
    let stage = Stage::of(5);
    stage.broker.rules(|rules| rules.hold = true);
    run(async {
        let node = stage.node();
        let task = Assignment { mode: DeliveryMode::Plain, ..stage.task(1) };
        node.reconcile(vec![task.clone()]);
        until("all are sent", || (stage.broker.sent() == 5).then_some(())).await;
        node.reconcile(vec![Assignment { revoked: true, ..task }]);
        until("the producer is gone", || (stage.broker.live() == 0).then_some(())).await;
        heartbeats(20).await;
        assert!(stage.cluster.released().is_empty(), "a late request could land behind the next owner's");
    });
}
