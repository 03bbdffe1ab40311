#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fencing;
mod histories;

use super::*;
use crate::raft::state::world::World;
use crate::raft::{Reply, Unit};

/// A world, and the part of a leader's knowledge that is not in it.
#[derive(Default)]
struct Desk {
    w: World,
    ready: BTreeSet<NodeId>,
    ages: BTreeMap<u64, Age>,
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
            ages: &self.ages,
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

fn free_for(ms: u64) -> Age {
    Age { known: Duration::from_millis(ms), free: Duration::from_millis(ms) }
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
    desk.ages = epochs.iter().map(|e| (*e, free_for(4_999))).collect();
    assert_eq!(desk.plan().wake, Some(Duration::from_millis(1)));
    desk.ages = epochs.iter().map(|e| (*e, free_for(5_000))).collect();
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
    desk.ages = desk.w.state.placements.values().map(|p| (p.epoch, free_for(1_000))).collect();
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
fn a_new_task_set_waits_for_all_that_has_changed_in_the_old_one() {
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

/// What another set has unchanged is neither waited for nor disturbed.
#[test]
fn a_task_more_or_less_is_nothing_to_the_others() {
    let mut desk = Desk::with_nodes(3);
    desk.connector("c", 2);
    desk.settle();
    let before = desk.w.state.placements.clone();
    let undisturbed = |desk: &Desk| {
        before.iter().all(|(unit, old)| {
            let now = &desk.w.state.placements[unit];
            (now.epoch, now.node, now.phase) == (old.epoch, old.node, old.phase)
        })
    };
    desk.w.publish("c", World::tasks(3, "a"));
    let plan = desk.step();
    assert_eq!(fence_waits(&plan), [(Unit::task("c", 2), 0)]);
    assert!(undisturbed(&desk) && desk.is_complete());
    desk.w.publish("c", World::tasks(2, "a"));
    assert!(desk.step().commands.is_empty());
    desk.release_all();
    assert!(desk.step().commands.is_empty());
    assert!(undisturbed(&desk) && desk.is_complete());
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
