//! What happens to a task that is not, or may not be, this node's any more: silence.

use thalweg_actors::port::{Assignment, Epoch, UnitState};
use thalweg_core::{Error, ErrorKind, Phase};

use crate::support::{Stage, connector_unit, heartbeats, run, task_unit, until, until_state, view};

/// CLU-02: a node that lost its lease drops what is queued, sends nothing and says nothing.
#[test]
fn clu_02_a_lost_lease_purges_and_is_silent() {
    let stage = Stage::of(100_000);
    stage.broker.rules(|rules| {
        rules.hold = true;
        rules.room = Some(40);
    });
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1), stage.connector(2)]);
        until_state(&node, &task_unit(), UnitState::Running).await;
        until("the broker is full", || (stage.broker.sent() == 40).then_some(())).await;
        let said = (stage.cluster.statuses(&task_unit()).len(), stage.cluster.commits().len());
        stage.cluster.set_lease(false);
        until("it is purged", || (stage.broker.purged() == 1 && stage.broker.live() == 0).then_some(())).await;
        stage.broker.rules(|rules| rules.hold = false);
        heartbeats(8).await;
        assert_eq!(stage.broker.sent(), 40);
        assert_eq!(said, (stage.cluster.statuses(&task_unit()).len(), stage.cluster.commits().len()));
        assert!(stage.cluster.released().is_empty());
        assert_eq!(stage.script.closed(), 1, "connections to the source are closed");

        // The lease comes back and the placement is the same: on from the last commit.
        stage.cluster.set_lease(true);
        stage.broker.rules(|rules| rules.room = None);
        stage.script.write("p", 100);
        until("it goes on", || stage.broker.values().contains(&"99".to_owned()).then_some(())).await;
        assert_eq!(stage.broker.opened(), 2);
        assert_eq!(view(&node, &task_unit()).unwrap().counters.fenced, 1);
        stage.cluster.check();
    });
}

#[test]
fn nothing_is_opened_without_a_lease() {
    let stage = Stage::of(10);
    run(async {
        stage.cluster.set_lease(false);
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        heartbeats(5).await;
        assert_eq!((stage.broker.opened(), stage.script.opened()), (0, 0));
        stage.cluster.set_lease(true);
        until("all is committed", || (stage.cluster.stored("p") == Some(10)).then_some(())).await;
    });
}

#[test]
fn a_commit_refused_as_stale_ends_the_task_in_silence() {
    let stage = Stage::of(10);
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        until("all is committed", || (stage.cluster.stored("p") == Some(10)).then_some(())).await;
        // Another node is the owner now; this one has not heard of it.
        stage.cluster.place(&task_unit(), Epoch(2));
        stage.script.write("p", 20);
        until("it ended", || (stage.broker.live() == 0).then_some(())).await;
        assert_eq!(stage.cluster.states(&task_unit()), [UnitState::Running]);
        assert_eq!(stage.cluster.stored("p"), Some(10));
        node.reconcile(vec![]);
        heartbeats(4).await;
        assert_eq!(stage.cluster.states(&task_unit()), [UnitState::Running]);
        assert!(stage.cluster.released().is_empty());
    });
}

#[test]
fn a_producer_that_is_shut_out_ends_the_task_in_silence() {
    let stage = Stage::of(10);
    let fenced = Error::new(ErrorKind::Fenced, Phase::Deliver, "a newer producer has this transactional id");
    stage.broker.rules(|rules| rules.fail_at = Some((6, fenced)));
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        until("it is shut out", || view(&node, &task_unit()).filter(|view| view.counters.fenced == 1)).await;
        until("it ended", || (stage.broker.live() == 0).then_some(())).await;
        heartbeats(4).await;
        let states = stage.cluster.states(&task_unit());
        assert!(states.iter().all(|state| *state == UnitState::Running), "{states:?}");
        // Asked to give the unit back, it has nothing to say either.
        node.reconcile(vec![Assignment { revoked: true, ..stage.task(1) }]);
        heartbeats(1).await;
        assert!(!stage.cluster.states(&task_unit()).contains(&UnitState::Unassigned));
    });
}

#[test]
fn a_unit_that_is_not_listed_any_more_ends_in_silence() {
    let stage = Stage::of(100_000);
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1), stage.connector(2)]);
        until_state(&node, &task_unit(), UnitState::Running).await;
        until_state(&node, &connector_unit(), UnitState::Running).await;
        node.reconcile(vec![]);
        until("it ended", || (stage.broker.live() == 0 && stage.script.closed() == 1).then_some(())).await;
        assert!(node.snapshot().units.is_empty());
        let sent = stage.broker.sent();
        heartbeats(4).await;
        assert_eq!(stage.broker.sent(), sent);
        assert_eq!(stage.cluster.states(&task_unit()), [UnitState::Running]);
        assert_eq!(stage.cluster.states(&connector_unit()), [UnitState::Running]);
    });
}

/// RUN-07: whatever a former placement says carries its own epoch.
#[test]
fn run_07_every_status_carries_the_epoch_of_its_placement() {
    let stage = Stage::of(100);
    run(async {
        let node = stage.node();
        for epoch in 1..=3 {
            node.reconcile(vec![stage.task(epoch)]);
            until(&format!("epoch {epoch} runs"), || {
                view(&node, &task_unit()).filter(|v| v.epoch == Epoch(epoch) && v.state == UnitState::Running)
            })
            .await;
        }
        let epochs: Vec<_> = stage.cluster.statuses(&task_unit()).iter().map(|(epoch, _)| epoch.0).collect();
        assert_eq!(epochs, [1, 2, 3]);
    });
}
