#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;
use crate::raft::state::world::World;
use crate::raft::{Reply, Unit};

/// A world, and the part of a leader's knowledge that is not in it.
#[derive(Default)]
struct Desk {
    w: World,
    ready: BTreeSet<NodeId>,
    free_for: BTreeMap<u64, Duration>,
    since_round: Option<Duration>,
    hurry: bool,
    limits: Limits,
}

impl Desk {
    fn with_nodes(nodes: u64) -> Self {
        let mut desk = Self::default();
        for node in 1..=nodes {
            desk.join(node);
        }
        desk
    }
    fn join(&mut self, node: NodeId) {
        let boot = (self.w.index % 250) as u8 + 1;
        self.w.register(node, boot);
        self.ready.insert(node);
    }
    fn plan(&self) -> Plan {
        plan(&PlanInput {
            state: &self.w.state,
            ready: &self.ready,
            now_ms: self.w.now_ms,
            free_for: &self.free_for,
            since_round: self.since_round,
            hurry: self.hurry,
            limits: &self.limits,
        })
    }
    /// Applies one plan; every command must be taken.
    fn step(&mut self) -> Plan {
        let plan = self.plan();
        for command in &plan.commands {
            let reply = self.w.apply(command.clone());
            assert!(!matches!(reply, Reply::Refused(_)), "{command:?} was refused: {reply:?}");
        }
        plan
    }
    fn release_all(&mut self) {
        let revoking: Vec<Unit> = self.units_in(Phase::Revoking);
        for unit in revoking {
            self.w.release(&unit);
        }
    }
    /// Plans and releases until nothing is left to do; returns the moves.
    fn settle(&mut self) -> usize {
        let mut moves = 0;
        for _ in 0..50 {
            let plan = self.step();
            moves += revoked(&plan).len();
            let at_rest = plan.commands.is_empty() && self.units_in(Phase::Revoking).is_empty();
            self.release_all();
            self.since_round = None;
            if at_rest {
                return moves;
            }
        }
        panic!("the planner does not come to rest");
    }
    fn units_in(&self, phase: Phase) -> Vec<Unit> {
        self.w.state.placements.iter().filter(|(_, p)| p.phase == phase).map(|(u, _)| u.clone()).collect()
    }
    fn loads(&self, tasks: bool) -> Vec<usize> {
        let count = |node: &NodeId| {
            let on =
                |(u, p): &(&Unit, &Placement)| u.is_task() == tasks && p.node == *node && p.phase == Phase::Assigned;
            self.w.state.placements.iter().filter(on).count()
        };
        self.ready.iter().map(count).collect()
    }
    fn connector(&mut self, name: &str, tasks: usize) {
        self.w.put(name, &[("name", name)]);
        self.step();
        self.w.publish(name, World::tasks(tasks, "a"));
    }
    fn node_of(&self, unit: &Unit) -> Option<NodeId> {
        self.w.state.placements.get(unit).filter(|p| p.phase == Phase::Assigned).map(|p| p.node)
    }
    fn is_complete(&self) -> bool {
        self.w.state.units().all(|unit| self.node_of(&unit).is_some())
    }
}

fn revoked(plan: &Plan) -> Vec<Unit> {
    let unit = |c: &Command| match c {
        Command::V1(CommandV1::Revoke { unit, .. }) => Some(unit.clone()),
        _ => None,
    };
    plan.commands.iter().filter_map(unit).collect()
}

fn fence_waits(plan: &Plan) -> Vec<(Unit, u64)> {
    let wait = |c: &Command| match c {
        Command::V1(CommandV1::Assign { unit, fence_wait_ms, .. }) => Some((unit.clone(), *fence_wait_ms)),
        _ => None,
    };
    plan.commands.iter().filter_map(wait).collect()
}

fn spread(loads: &[usize]) -> usize {
    loads.iter().max().unwrap_or(&0) - loads.iter().min().unwrap_or(&0)
}

/// CLU-03: 9 tasks on one node, two nodes join at once, then ten connectors with a task each.
#[test]
fn clu_03_even_distribution() {
    let mut desk = Desk::with_nodes(1);
    desk.connector("big", 9);
    desk.settle();
    assert_eq!(desk.loads(true), vec![9]);
    desk.join(2);
    desk.join(3);
    assert_eq!(desk.settle(), 6, "no more moves than needed");
    assert_eq!(desk.loads(true), vec![3, 3, 3]);
    for n in 0..10 {
        desk.connector(&format!("c{n}"), 1);
        desk.settle();
    }
    assert!(spread(&desk.loads(true)) <= 1 && spread(&desk.loads(false)) <= 1);
    assert_eq!(desk.loads(true).iter().sum::<usize>(), 19);
}

/// CLU-01: without a delay the lost units are placed at once, and nothing else moves.
#[test]
fn clu_01_lost_units_run_elsewhere_at_once_without_a_delay() {
    let mut desk = Desk::with_nodes(3);
    desk.connector("c", 9);
    desk.settle();
    let before = desk.w.state.placements.clone();
    desk.w.expire(2, true, 0);
    desk.ready.remove(&2);
    let plan = desk.step();
    assert!(revoked(&plan).is_empty());
    assert!(desk.is_complete());
    for (unit, placement) in before {
        if placement.node != 2 {
            assert_eq!(desk.w.state.placements[&unit], placement, "{unit} was on a living node and moved");
        }
    }
    assert!(spread(&desk.loads(true)) <= 1);
}

/// CLU-01: with a delay they wait, and go back to a node that returns in time.
#[test]
fn clu_01_with_a_delay_lost_units_go_back_to_the_returning_node() {
    let mut desk = Desk::with_nodes(3);
    desk.connector("c", 9);
    desk.settle();
    let home: Vec<Unit> = desk.w.state.placements.iter().filter(|(_, p)| p.node == 2).map(|(u, _)| u.clone()).collect();
    desk.w.now_ms = 10_000;
    desk.w.expire(2, false, 5_000);
    desk.ready.remove(&2);
    desk.w.now_ms = 12_000;
    let plan = desk.step();
    assert_eq!(
        (plan.commands.len(), plan.delay, plan.wake),
        (0, Some(Duration::from_secs(3)), Some(Duration::from_secs(3)))
    );
    assert_eq!(plan.pending, home.len());
    // A node that joins meanwhile changes nothing: no revocation while a delay runs.
    desk.join(4);
    assert!(desk.step().commands.is_empty());
    desk.ready.remove(&4);
    desk.join(2);
    desk.step();
    assert!(home.iter().all(|unit| desk.node_of(unit) == Some(2)));
    assert!(desk.is_complete());
}

#[test]
fn a_delay_ends_by_either_clock_or_by_hand() {
    let lost = || {
        let mut desk = Desk::with_nodes(2);
        desk.connector("c", 2);
        desk.settle();
        desk.w.now_ms = 10_000;
        desk.w.expire(2, false, 5_000);
        desk.ready.remove(&2);
        desk
    };
    let mut desk = lost();
    desk.w.now_ms = 15_000;
    desk.step();
    assert!(desk.is_complete(), "the wall clock says so");
    // A leader whose wall clock stands still or runs behind counts what it has seen.
    let mut desk = lost();
    desk.w.now_ms = 0;
    let epochs: Vec<u64> = desk.w.state.placements.values().filter(|p| p.node == 2).map(|p| p.epoch).collect();
    desk.free_for = epochs.iter().map(|e| (*e, Duration::from_millis(4_999))).collect();
    assert_eq!(desk.plan().wake, Some(Duration::from_millis(1)));
    desk.free_for = epochs.iter().map(|e| (*e, Duration::from_millis(5_000))).collect();
    desk.step();
    assert!(desk.is_complete());
    let mut desk = lost();
    desk.hurry = true;
    desk.step();
    assert!(desk.is_complete());
}

/// A process that comes back at once gets its units back although there is no delay.
#[test]
fn a_restarted_node_has_a_moment_to_be_heard() {
    let mut desk = Desk::with_nodes(2);
    desk.connector("c", 4);
    desk.settle();
    desk.join(2);
    desk.ready.remove(&2);
    let plan = desk.step();
    assert!(plan.commands.is_empty());
    assert_eq!(plan.wake, Some(desk.limits.home_grace));
    desk.ready.insert(2);
    desk.step();
    assert!(desk.is_complete());
    assert_eq!(desk.loads(true), vec![2, 2]);
    // If it is not heard in time, the others take over.
    desk.join(2);
    desk.ready.remove(&2);
    desk.free_for = desk.w.state.placements.values().map(|p| (p.epoch, desk.limits.home_grace)).collect();
    desk.step();
    assert!(desk.is_complete());
    assert_eq!(desk.loads(true), vec![4]);
}

/// CLU-04: a one-node cluster that starts again runs everything again.
#[test]
fn clu_04_a_single_node_takes_everything_back() {
    let mut desk = Desk::with_nodes(1);
    for name in ["a", "b", "c"] {
        desk.connector(name, 1);
    }
    desk.settle();
    desk.join(1);
    desk.step();
    assert!(desk.is_complete());
}

#[test]
fn moving_off_a_node_goes_a_few_at_a_time_without_delay() {
    let mut desk = Desk::with_nodes(2);
    desk.limits.drain_parallelism = 3;
    desk.connector("c", 16);
    desk.settle();
    desk.w.ok(CommandV1::DrainNode { node: 2, mode: DrainMode::Move });
    let first = desk.step();
    assert_eq!(revoked(&first).len(), 3);
    assert!(desk.step().commands.is_empty(), "no more before one is released");
    let one = desk.units_in(Phase::Revoking)[0].clone();
    desk.w.release(&one);
    assert_eq!(revoked(&desk.step()).len(), 1);
    assert_eq!(desk.node_of(&one), Some(1));
    desk.settle();
    assert!(desk.w.state.placements.values().all(|p| p.node == 1));
    assert!(desk.is_complete());
}

#[test]
fn the_last_node_drains_although_nobody_takes_over() {
    let mut desk = Desk::with_nodes(1);
    desk.connector("c", 2);
    desk.settle();
    desk.w.ok(CommandV1::DrainNode { node: 1, mode: DrainMode::Move });
    desk.settle();
    assert_eq!(desk.units_in(Phase::Released).len(), 3);
    desk.w.ok(CommandV1::NodeLeft { node: 1, incarnation: desk.w.incarnation(1), now_ms: 0, hold_ms: 0 });
    desk.join(1);
    desk.step();
    assert!(desk.is_complete());
}

/// J9: a rolling restart in `hold` mode moves nothing.
#[test]
fn holding_units_wait_for_their_node() {
    let mut desk = Desk::with_nodes(3);
    desk.connector("c", 6);
    desk.settle();
    for node in 1..=3 {
        let before: Vec<_> = desk.w.state.placements.iter().map(|(u, p)| (u.clone(), p.node)).collect();
        desk.w.ok(CommandV1::DrainNode { node, mode: DrainMode::Hold });
        assert!(desk.step().commands.is_empty());
        desk.release_all();
        assert!(desk.step().commands.is_empty(), "released, but the node has not left yet");
        let incarnation = desk.w.incarnation(node);
        desk.w.ok(CommandV1::NodeLeft { node, incarnation, now_ms: desk.w.now_ms, hold_ms: 30_000 });
        desk.ready.remove(&node);
        assert_eq!(desk.step().delay, Some(Duration::from_secs(30)));
        desk.w.now_ms += 10_000;
        desk.join(node);
        assert!(revoked(&desk.step()).is_empty());
        let after: Vec<_> = desk.w.state.placements.iter().map(|(u, p)| (u.clone(), p.node)).collect();
        assert_eq!(before, after);
        assert!(desk.is_complete());
    }
    // One that does not come back in time loses its units.
    desk.w.ok(CommandV1::DrainNode { node: 1, mode: DrainMode::Hold });
    desk.release_all();
    desk.w.ok(CommandV1::NodeLeft { node: 1, incarnation: desk.w.incarnation(1), now_ms: desk.w.now_ms, hold_ms: 5 });
    desk.ready.remove(&1);
    desk.w.now_ms += 5;
    desk.step();
    assert!(desk.is_complete());
}

/// G8 and P9: old tasks are taken back by the command; new ones start when the last has ended.
#[test]
fn a_new_task_set_waits_for_the_whole_old_one() {
    let mut desk = Desk::with_nodes(2);
    desk.connector("c", 3);
    desk.settle();
    desk.w.publish("c", World::tasks(2, "b"));
    assert!(desk.step().commands.is_empty());
    desk.w.release(&Unit::task("c", 0));
    desk.w.release(&Unit::task("c", 2));
    assert!(desk.step().commands.is_empty());
    desk.w.release(&Unit::task("c", 1));
    assert_eq!(desk.step().commands.len(), 2);
    assert!(desk.is_complete());
}

#[test]
fn rounds_keep_their_distance() {
    let mut desk = Desk::with_nodes(1);
    desk.connector("c", 4);
    desk.settle();
    desk.join(2);
    desk.since_round = Some(Duration::from_secs(4));
    let plan = desk.plan();
    assert!(plan.commands.is_empty());
    assert_eq!(plan.wake, Some(Duration::from_secs(6)));
    desk.since_round = Some(Duration::from_secs(10));
    let plan = desk.step();
    assert!(plan.is_round);
    assert_eq!(revoked(&plan).len(), 2);
    desk.join(3);
    desk.hurry = true;
    desk.since_round = Some(Duration::ZERO);
    assert!(desk.step().commands.is_empty(), "another revocation of the class is open");
    desk.release_all();
    desk.since_round = Some(Duration::ZERO);
    desk.step();
    assert_eq!(desk.loads(true), vec![2, 1, 1]);
}

#[test]
fn tasks_of_one_connector_are_spread() {
    let mut desk = Desk::with_nodes(3);
    for name in ["a", "b", "c", "d"] {
        desk.connector(name, 3);
        desk.settle();
    }
    for name in ["a", "b", "c", "d"] {
        let nodes: BTreeSet<_> = (0..3).map(|n| desk.node_of(&Unit::task(name, n)).unwrap()).collect();
        assert_eq!(nodes.len(), 3, "{name}");
    }
    // What a node gives away comes from the connector it holds most of.
    let mut desk = Desk::with_nodes(1);
    desk.connector("a", 1);
    desk.connector("b", 3);
    desk.settle();
    desk.join(2);
    let plan = desk.step();
    let tasks: Vec<_> = revoked(&plan).into_iter().filter(Unit::is_task).collect();
    assert_eq!(tasks, vec![Unit::task("b", 2), Unit::task("b", 1)]);
}

#[test]
fn nodes_that_lag_get_nothing_and_keep_what_they_have() {
    let mut desk = Desk::with_nodes(2);
    desk.connector("a", 2);
    desk.settle();
    let before = desk.w.state.placements.clone();
    desk.ready.remove(&2);
    assert!(desk.step().commands.is_empty());
    desk.connector("b", 4);
    desk.settle();
    for (unit, placement) in before {
        assert_eq!(desk.w.state.placements[&unit], placement);
    }
    assert_eq!(desk.w.state.placements.values().filter(|p| p.node == 2).count(), 1);
}

mod fencing {
    use super::*;

    fn lost(delivery: &str, gone: bool) -> Desk {
        let mut desk = Desk::with_nodes(2);
        desk.w.put("c", &[("thalweg.delivery", delivery)]);
        desk.step();
        desk.w.publish("c", World::tasks(2, "a"));
        desk.settle();
        desk.w.expire(2, gone, 0);
        desk.ready.remove(&2);
        desk
    }

    fn task_waits(plan: &Plan) -> Vec<u64> {
        fence_waits(plan).into_iter().filter(|(u, _)| u.is_task()).map(|(_, wait)| wait).collect()
    }

    #[test]
    fn fenced_tasks_do_not_wait() {
        assert_eq!(task_waits(&lost("fenced", false).plan()), vec![0]);
        assert_eq!(task_waits(&lost("fenced", true).plan()), vec![0]);
    }

    #[test]
    fn plain_tasks_wait_for_the_last_sends_and_for_the_lease_if_it_may_still_run() {
        assert_eq!(task_waits(&lost("plain", false).plan()), vec![10_000]);
        assert_eq!(task_waits(&lost(" Plain ", true).plan()), vec![13_030]);
        // What this leader has seen itself counts; a wall clock does not.
        let mut desk = lost("plain", false);
        desk.w.now_ms += 1_000_000;
        desk.free_for = desk.w.state.placements.values().map(|p| (p.epoch, Duration::from_secs(4))).collect();
        assert_eq!(task_waits(&desk.plan()), vec![6_000]);
        // Its own node, as another process, waits for the sockets only.
        let mut desk = lost("plain", false);
        desk.join(2);
        assert_eq!(task_waits(&desk.plan()), vec![10_000], "it was expired before it came back");
        let mut desk = Desk::with_nodes(1);
        desk.w.put("c", &[("thalweg.delivery", "plain")]);
        desk.step();
        desk.w.publish("c", World::tasks(1, "a"));
        desk.settle();
        desk.join(1);
        assert_eq!(task_waits(&desk.plan()), vec![1_000]);
        assert!(fence_waits(&desk.plan()).iter().any(|(u, wait)| !u.is_task() && *wait == 0));
    }

    #[test]
    fn the_mode_of_the_lost_placement_decides_not_the_new_configuration() {
        let mut desk = lost("plain", false);
        desk.w.put("c", &[("thalweg.delivery", "fenced")]);
        assert_eq!(task_waits(&desk.plan()), vec![10_000]);
    }

    /// The broker shuts out the old owner of the same task only; the partitions of a lost task of an
    /// earlier set may now be another task's.
    #[test]
    fn a_new_set_waits_for_lost_tasks_of_the_old_one_in_any_mode() {
        for (tasks, expected) in [(2, vec![10_000, 10_000]), (1, vec![10_000])] {
            let mut desk = lost("fenced", false);
            // The connector object may have been on the lost node.
            if desk.node_of(&Unit::connector("c")).is_none() {
                let command = desk.w.assign_command(&Unit::connector("c"), 1);
                desk.w.ok(command);
            }
            desk.w.publish("c", World::tasks(tasks, "b"));
            desk.release_all();
            assert_eq!(task_waits(&desk.step()), expected);
        }
    }

    #[test]
    fn a_lost_task_that_no_longer_exists_is_remembered_until_its_sends_have_ended() {
        let mut desk = lost("fenced", false);
        let orphan = desk.w.state.placements.iter().find(|(u, p)| u.is_task() && p.node == 2).unwrap();
        let (orphan, epoch) = (orphan.0.clone(), orphan.1.epoch);
        desk.w.ok(CommandV1::DeleteConnector { name: "c".into() });
        desk.release_all();
        assert_eq!(desk.step().wake, Some(Duration::from_secs(10)));
        assert!(desk.w.state.placements.contains_key(&orphan));
        desk.free_for = BTreeMap::from([(epoch, Duration::from_secs(10))]);
        desk.step();
        assert!(desk.w.state.placements.is_empty());
        assert!(desk.step().commands.is_empty());
    }

    #[test]
    fn a_part_of_a_set_that_is_placed_later_waits_as_long() {
        let mut desk = lost("fenced", false);
        if desk.node_of(&Unit::connector("c")).is_none() {
            let command = desk.w.assign_command(&Unit::connector("c"), 1);
            desk.w.ok(command);
        }
        desk.w.publish("c", World::tasks(2, "b"));
        desk.release_all();
        // Only the first of the two gets through before the leader changes.
        let plan = desk.plan();
        let assigns: Vec<_> = plan.commands.iter().filter(|c| c.kind() == "assign").cloned().collect();
        let lost_task = desk.w.state.placements.iter().find(|(u, p)| u.is_task() && p.node == 2).unwrap().0.clone();
        let first =
            assigns.iter().find(|c| matches!(c, Command::V1(CommandV1::Assign { unit, .. }) if *unit == lost_task));
        desk.w.ok(first.unwrap().clone());
        assert_eq!(task_waits(&desk.plan()), vec![10_000]);
    }
}

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
            let command = desk.w.publish_command(name, World::tasks(tasks, &tasks.to_string()));
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
        desk.free_for = desk.w.state.placements.values().map(|p| (p.epoch, Duration::from_secs(3600))).collect();
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
