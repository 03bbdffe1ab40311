#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

/// What happens to a cluster between two plans.
#[derive(Debug, Clone)]
enum Event {
    Join(u64),
    Lose(u64, bool),
    Restart(u64),
    Drain(u64),
    Create(u8, usize),
    Delete(u8),
    Retask(u8, usize),
    Stop(u8),
    ReleaseSome,
    Silence(u64),
    Plan,
}

fn events() -> impl Strategy<Value = Event> {
    let node = 1u64..=5;
    let name = 0u8..5;
    prop_oneof![
        3 => node.clone().prop_map(Event::Join),
        1 => (node.clone(), any::<bool>()).prop_map(|(n, g)| Event::Lose(n, g)),
        1 => node.clone().prop_map(Event::Restart),
        1 => node.clone().prop_map(Event::Drain),
        4 => (name.clone(), 0usize..6).prop_map(|(n, t)| Event::Create(n, t)),
        1 => name.clone().prop_map(Event::Delete),
        2 => (name.clone(), 0usize..6).prop_map(|(n, t)| Event::Retask(n, t)),
        1 => name.prop_map(Event::Stop),
        3 => Just(Event::ReleaseSome),
        1 => node.prop_map(Event::Silence),
        6 => Just(Event::Plan),
    ]
}

fn happen(desk: &mut Desk, event: &Event, delay_ms: u64) {
    let alive = |desk: &Desk, node: &u64| {
        desk.w.state.nodes.get(node).is_some_and(|n| matches!(n.state, NodeState::Alive | NodeState::Draining(_)))
    };
    let publish = |desk: &mut Desk, name: &str, tasks| {
        if desk.node_of(&Unit::connector(name)).is_some() {
            // Sets of two kinds: within a kind, what both have goes on.
            let command = desk.w.publish_command(name, World::tasks(tasks, if tasks < 3 { "a" } else { "b" }));
            desk.w.apply(command);
        }
    };
    match event {
        Event::Join(node) if !alive(desk, node) => desk.join(*node),
        Event::Restart(node) if alive(desk, node) => desk.join(*node),
        Event::Lose(node, gone) if alive(desk, node) => {
            desk.w.expire(*node, *gone, delay_ms);
            desk.ready.remove(node);
        }
        Event::Drain(node) => {
            desk.w.apply(CommandV1::DrainNode { node: *node, mode: DrainMode::Move });
        }
        Event::Create(name, tasks) => {
            let name = format!("c{name}");
            desk.w.put(&name, &[("name", &name)]);
            desk.step();
            publish(desk, &name, *tasks);
        }
        Event::Delete(name) => {
            desk.w.apply(CommandV1::DeleteConnector { name: format!("c{name}").into() });
        }
        Event::Retask(name, tasks) => {
            let name = format!("c{name}");
            if desk.w.state.connectors.contains_key(name.as_str()) {
                publish(desk, &name, *tasks);
            }
        }
        Event::Stop(name) => {
            let target = crate::raft::command::TargetState::Stopped;
            desk.w.apply(CommandV1::SetTarget { name: format!("c{name}").into(), target });
        }
        Event::ReleaseSome => {
            for unit in desk.units_in(Phase::Revoking).into_iter().step_by(2) {
                desk.w.release(&unit);
            }
        }
        Event::Silence(node) => {
            desk.ready.remove(node);
        }
        Event::Plan => {
            desk.step();
        }
        _ => {}
    }
    desk.w.now_ms += 50;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever happened before: the plan is the same twice, is taken in full, takes nothing back
    /// while a delay runs, and once things calm down everything runs, evenly, and stays.
    #[test]
    fn plans_are_complete_balanced_stable_and_deterministic(
        history in prop::collection::vec(events(), 0..60),
        delay_ms in prop_oneof![Just(0u64), Just(1_000)],
    ) {
        let mut desk = Desk::with_nodes(2);
        for event in &history {
            happen(&mut desk, event, delay_ms);
            let plan = desk.plan();
            prop_assert_eq!(&plan, &desk.plan());
            let drained: BTreeSet<_> = desk.w.state.nodes.iter()
                .filter(|(_, n)| matches!(n.state, NodeState::Draining(_))).map(|(id, _)| *id).collect();
            if plan.delay.is_some() {
                for unit in revoked(&plan) {
                    let node = desk.w.state.placements[&unit].node;
                    prop_assert!(drained.contains(&node), "{} was taken back during a delay", unit);
                }
            }
        }
        // Calm: every living node is heard again, delays and waits pass.
        desk.ready = desk.w.state.nodes.iter()
            .filter(|(_, n)| matches!(n.state, NodeState::Alive)).map(|(id, _)| *id).collect();
        if desk.ready.is_empty() {
            desk.join(9);
        }
        desk.w.now_ms += 3_600_000;
        desk.ages = desk.w.state.placements.values().map(|p| (p.epoch, free_for(3_600_000))).collect();
        desk.settle();
        prop_assert!(desk.is_complete());
        prop_assert!(spread(&desk.loads(true)) <= 1, "tasks: {:?}", desk.loads(true));
        prop_assert!(spread(&desk.loads(false)) <= 1, "connectors: {:?}", desk.loads(false));
        prop_assert!(desk.units_in(Phase::Revoking).is_empty());
        let rest = desk.plan();
        prop_assert_eq!(rest, Plan::default());
        prop_assert_eq!(desk.w.state.placements.len(), desk.w.state.units().count());
    }

    /// One more node takes its share and no more: at most total / (n + 1), rounded up, per class.
    #[test]
    fn a_joining_node_causes_the_least_possible_moves(nodes in 1u64..6, tasks in prop::collection::vec(0usize..7, 1..6)) {
        let mut desk = Desk::with_nodes(nodes);
        for (n, count) in tasks.iter().enumerate() {
            desk.connector(&format!("c{n}"), *count);
            desk.settle();
        }
        desk.join(nodes + 1);
        let total: usize = tasks.iter().sum();
        let bound = |total: usize| total.div_ceil(nodes as usize + 1);
        let moves = desk.settle();
        prop_assert!(moves <= bound(total) + bound(tasks.len()), "{} moves", moves);
        prop_assert!(spread(&desk.loads(true)) <= 1 && spread(&desk.loads(false)) <= 1);
        // And leaving again moves only what it had.
        let held = desk.loads(true)[nodes as usize] + desk.loads(false)[nodes as usize];
        desk.w.ok(CommandV1::DrainNode { node: nodes + 1, mode: DrainMode::Move });
        prop_assert_eq!(desk.settle(), held);
        prop_assert!(desk.is_complete());
    }
}
