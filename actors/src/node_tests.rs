//! Death of actors by panic: found by their parents, made anew by the factory, without loss and
//! without two of a kind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use actix::{Context, Handler, Message};

use super::{Child, NodeActor, NodeHandle};
use crate::connector::ConnectorActor;
use crate::partition::PartitionActor;
use crate::port::{UnitId, UnitState};
use crate::support::{Stage, connector_unit, heartbeats, run, task_unit, until, until_state, view};
use crate::task::TaskActor;

/// Makes an actor panic in its handler.
#[derive(Message, Clone)]
#[rtype(result = "()")]
enum Explode {
    Node,
    Unit(UnitId),
    Partitions,
}

impl Handler<Explode> for NodeActor {
    type Result = ();
    fn handle(&mut self, explode: Explode, _: &mut Context<Self>) {
        let unit = match &explode {
            Explode::Node => panic!("the node actor exploded"),
            Explode::Unit(unit) => unit.clone(),
            Explode::Partitions => task_unit(),
        };
        match self.slots[&unit].child.as_ref().unwrap() {
            Child::Connector(address) => address.try_send(explode).unwrap(),
            Child::Task(address) => address.try_send(explode).unwrap(),
        }
    }
}

impl Handler<Explode> for TaskActor {
    type Result = ();
    fn handle(&mut self, explode: Explode, _: &mut Context<Self>) {
        match explode {
            Explode::Partitions => self.partition_actors().iter().for_each(|a| a.try_send(explode.clone()).unwrap()),
            _ => panic!("the task actor exploded"),
        }
    }
}

impl Handler<Explode> for ConnectorActor {
    type Result = ();
    fn handle(&mut self, _: Explode, _: &mut Context<Self>) {
        panic!("the connector actor exploded");
    }
}

impl Handler<Explode> for PartitionActor {
    type Result = ();
    fn handle(&mut self, _: Explode, _: &mut Context<Self>) {
        panic!("the partition actor exploded");
    }
}

async fn explode(node: &NodeHandle, what: Explode) {
    let address = node.address.read().clone();
    // The answer is lost with the actor.
    let _ = address.send(what).await;
}

async fn committed(stage: &Stage, events: u64) {
    stage.script.write("p", events);
    until("all is committed", || (stage.cluster.stored("p") == Some(events)).then_some(())).await;
}

/// The unit goes on after its actor died, with one producer at a time and nothing lost.
fn survives(what: Explode, expect_new_actor: bool) {
    let stage = Stage::of(100);
    run(async {
        let node = stage.node();
        let list = vec![stage.task(1), stage.connector(2)];
        node.reconcile(list);
        committed(&stage, 100).await;
        until_state(&node, &task_unit(), UnitState::Running).await;
        until_state(&node, &connector_unit(), UnitState::Running).await;
        explode(&node, what).await;
        until("it was noticed", || (stage.broker.opened() == 2).then_some(())).await;
        committed(&stage, 200).await;
        assert_eq!((stage.broker.most_live(), stage.broker.sent()), (1, 200), "nothing is sent twice");
        if expect_new_actor {
            let view = view(&node, &task_unit()).unwrap();
            assert_eq!(view.counters.panics, 1);
        }
        // The new actor obeys as the old one did.
        let report = node.shutdown(Duration::from_secs(5)).await;
        assert_eq!((report.released, report.abandoned.len()), (2, 0));
        stage.cluster.check();
    });
}

#[test]
fn a_task_actor_that_dies_is_made_anew() {
    survives(Explode::Unit(task_unit()), true);
}

#[test]
fn a_partition_actor_that_dies_is_made_anew_with_its_run() {
    survives(Explode::Partitions, true);
}

#[test]
fn the_node_actor_is_made_anew_with_its_units() {
    survives(Explode::Node, false);
}

#[test]
fn a_connector_actor_that_dies_is_made_anew() {
    let stage = Stage::of(0);
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.connector(1)]);
        until("tasks are published", || stage.cluster.tasks().first().cloned()).await;
        explode(&node, Explode::Unit(connector_unit())).await;
        until("they are published again", || stage.cluster.tasks().get(1).cloned()).await;
        let view = view(&node, &connector_unit()).unwrap();
        assert_eq!((view.state, view.counters.panics), (UnitState::Running, 1));
        assert!(view.note.is_none(), "the note of the death is gone with the new plan");
        heartbeats(3).await;
        assert_eq!(stage.cluster.tasks().len(), 2);
    });
}

#[test]
fn a_dead_actor_is_not_made_anew_for_a_unit_that_is_gone() {
    let stage = Stage::of(10);
    run(async {
        let node = stage.node();
        node.reconcile(vec![stage.task(1)]);
        committed(&stage, 10).await;
        explode(&node, Explode::Unit(task_unit())).await;
        node.reconcile(vec![]);
        until("it ended", || (stage.broker.live() == 0).then_some(())).await;
        heartbeats(5).await;
        assert_eq!(stage.broker.live(), 0);
        assert!(view(&node, &task_unit()).is_none());
    });
}
