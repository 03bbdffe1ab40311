//! Where a task goes on after a crash, a hand-over, or a change of its placement.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use proptest::prelude::*;
use thalweg_actors::NodeHandle;
use thalweg_actors::port::{Assignment, UnitState};
use thalweg_core::delivery::DeliveryMode;

use crate::support::random::Random;
use crate::support::{Stage, heartbeats, run, task_unit, until, until_state};

/// Runs the task until so many messages were sent, then lets the process die.
fn crash_after(stage: &Stage, epoch: u64, messages: usize) {
    run(async {
        let crash = stage.broker.crash_after(stage.broker.sent() + messages);
        let node = stage.node();
        node.reconcile(vec![stage.task(epoch)]);
        let last = (stage.script.events("p") - 1).to_string();
        tokio::select! {
            () = crash.notified() => {}
            () = until("everything is sent", || (stage.broker.last() == last).then_some(())) => {}
        }
        stage.crash();
    });
}

async fn finish(stage: &Stage, epoch: u64) -> NodeHandle {
    let node = stage.node();
    node.reconcile(vec![stage.task(epoch)]);
    until("everything is committed", || (stage.cluster.stored("p") == Some(stage.script.events("p"))).then_some(()))
        .await;
    node
}

/// Every event arrived; per key the first arrivals are in the order of the source, and the last
/// message is the newest one.
fn check_topic(stage: &Stage) {
    let events = stage.script.events("p");
    let mut by_key: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for message in stage.broker.landed() {
        by_key.entry(message.key).or_default().push(message.value.parse().unwrap());
    }
    let mut seen = 0;
    for (key, values) in by_key {
        let mut first = Vec::new();
        for value in &values {
            if !first.contains(value) {
                first.push(*value);
            }
        }
        assert!(first.is_sorted(), "key {key}: {first:?}");
        assert_eq!(values.last(), first.last(), "key {key} ends with an old value");
        seen += first.len() as u64;
    }
    assert_eq!(seen, events, "events are missing");
    stage.cluster.check();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Crashes anywhere, answers in any order and portion, commits that come late or never: nothing
    /// is lost, order per key holds, stored positions only rise.
    #[test]
    fn nothing_is_lost_wherever_it_crashes(
        crashes in prop::collection::vec(1usize..60, 1..5),
        seed in any::<u64>(),
        batch in 1usize..20,
        room in prop::option::of(1usize..30),
    ) {
        let stage = Stage::of(150);
        stage.script.batch.store(batch, Ordering::SeqCst);
        stage.broker.rules(|rules| {
            rules.random = Some(Random::new(seed));
            rules.room = room;
        });
        stage.cluster.apply_at_random(seed);
        let mut epoch = 1;
        for messages in crashes {
            crash_after(&stage, epoch, messages);
            epoch += 1;
        }
        stage.broker.rules(|rules| {
            rules.random = None;
            rules.room = None;
        });
        run(async { finish(&stage, epoch).await });
        check_topic(&stage);
    }
}

#[test]
fn the_next_owner_starts_exactly_where_the_first_one_stopped() {
    let stage = Stage::of(1_000);
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        until("some are sent", || (stage.broker.sent() > 200).then_some(())).await;
        node.reconcile(vec![Assignment { revoked: true, ..stage.task(1) }]);
        until("it is released", || stage.cluster.released().first().cloned()).await;
        let stored = stage.cluster.stored("p").unwrap();
        assert_eq!(stored as usize, stage.broker.sent(), "what was sent is committed, not more, not less");
        assert_eq!(stage.broker.live(), 0, "released before its producer was gone");
        assert_eq!(stage.script.closed(), 1);
        assert_eq!(*stage.cluster.states(&task_unit()).last().unwrap(), UnitState::Unassigned);

        node.reconcile(vec![]);
        let node = finish(&stage, 2).await;
        drop(node);
        let expected: Vec<_> = (0..1_000).map(|n| n.to_string()).collect();
        assert_eq!(stage.broker.values(), expected, "each event once, in order");
        stage.cluster.check();
    });
}

/// A release that got lost with a leader is reported again as long as the state asks for it.
#[test]
fn a_release_is_repeated_until_it_is_applied() {
    let stage = Stage::of(10);
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        until_state(&node, &task_unit(), UnitState::Running).await;
        node.reconcile(vec![Assignment { revoked: true, ..stage.task(1) }]);
        until("it is released", || stage.cluster.released().first().cloned()).await;
        let before = stage.cluster.released().len();
        until("it is released again", || (stage.cluster.released().len() > before).then_some(())).await;
        // A node that never ran it gives it back as well.
        let other = stage.node();
        other.reconcile(vec![Assignment { revoked: true, ..stage.task(7) }]);
        until("the other releases", || stage.cluster.released().iter().find(|(_, epoch)| epoch.0 == 7).cloned()).await;
    });
}

/// RUN-16: the starting position is stored before the first message is sent.
#[test]
fn run_16_a_position_exists_before_the_first_message_does() {
    let stage = Stage::of(40);
    *stage.script.start_at.lock() = 12;
    run(async {
        stage.cluster.hold_commits();
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        until("the start is handed over", || stage.cluster.commits().first().copied()).await;
        heartbeats(5).await;
        assert_eq!(stage.cluster.commits(), [12]);
        assert_eq!(stage.broker.sent(), 0, "nothing is sent before the start is stored");
        stage.cluster.apply_commits();
        until("everything is sent", || (stage.broker.sent() == 28).then_some(())).await;
    });
    assert_eq!(stage.broker.values().first().unwrap(), "12");
}

/// RUN-16, the case that was measured: the owner dies before any periodic commit.
#[test]
fn run_16_the_successor_starts_where_the_first_owner_started() {
    let stage = Stage::of(40);
    *stage.script.start_at.lock() = 12;
    run(async {
        let node = stage.node_with(thalweg_actors::NodeOptions {
            commit_interval: Duration::from_secs(3600),
            ..crate::support::options()
        });
        node.reconcile(vec![stage.task(1)]);
        until("everything is sent", || (stage.broker.sent() == 28).then_some(())).await;
        stage.crash();
    });
    assert_eq!(stage.cluster.stored("p"), Some(12));
    // While nobody runs it, changes go on.
    stage.script.write("p", 60);
    run(async { finish(&stage, 2).await });
    let landed = stage.broker.values();
    assert!((12..60).all(|n| landed.contains(&n.to_string())));
}

#[test]
fn run_16_a_reader_that_breaks_the_rule_fails_instead_of_losing_changes() {
    let stage = Stage::of(40);
    stage.script.forgets_start.store(true, Ordering::SeqCst);
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        let view = until_state(&node, &task_unit(), UnitState::Failed).await;
        assert!(view.trace.unwrap().contains("sent records before the position at which it starts"));
        assert_eq!(stage.broker.sent(), 0);
    });
}

#[test]
fn a_new_epoch_waits_for_the_end_of_the_former_one() {
    let stage = Stage::of(5_000);
    run(async {
        let node = stage.node();
        for epoch in 1..=6 {
            node.reconcile(vec![stage.task(epoch)]);
            let before = stage.broker.sent();
            until("it sends", || (stage.broker.sent() > before + 50).then_some(())).await;
        }
        until("everything is committed", || (stage.cluster.stored("p") == Some(5_000)).then_some(())).await;
    });
    assert_eq!(stage.broker.most_live(), 1, "two producers of one task at the same time");
    check_topic(&stage);
}

/// In `plain` mode a lost owner's last sends must have ended first.
#[test]
fn a_new_owner_in_plain_mode_sends_nothing_before_its_time() {
    let stage = Stage::of(20);
    run(async {
        let node = stage.node();
        let send_after = std::time::Instant::now() + Duration::from_millis(150);
        node.reconcile(vec![Assignment { send_after: Some(send_after), mode: DeliveryMode::Plain, ..stage.task(1) }]);
        until("it sends", || (stage.broker.sent() > 0).then_some(())).await;
        assert!(std::time::Instant::now() >= send_after);
        assert!(stage.script.read.load(Ordering::SeqCst) > 0);
    });
}
