//! The planner: what has to be proposed so that every unit runs, once, evenly.
//!
//! [`plan`] is a pure function of what the leader knows. Rules: connector objects
//! and tasks are balanced separately (P1); nothing moves without a reason and the number of moves is
//! minimal (P2); nothing is taken back for balance while a delay runs, another revocation of the
//! class is open, or the last round is young (P3); a unit goes to the least loaded node, then to the
//! one with the fewest units of its connector, then to the lowest id (P4); nodes that drain, are lost
//! or lag get nothing and count for no quota (P5); paused and failed units count (P7); the same input
//! gives the same output (P8); nothing of a new task set starts before all of the old one that is not a part
//! of the new one as well has ended (P9).
//!
//! Files in the order of the steps: `wait` says how long a free unit has to stay free; `board` is who
//! holds how much; `balance` picks what to take back.
//!
//! It does not: decide who is alive (`lease`), keep any memory, or know Raft.

mod balance;
mod board;
mod wait;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use board::{Board, Class};

use crate::raft::command::{Command, CommandV1, Delivery, DrainMode};
use crate::raft::state::{NodeState, Phase, Placement, State};
use crate::raft::unit::{NodeId, Unit};

/// Options that bound the planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Delivery mode of connectors that do not name one.
    pub default_mode: Delivery,
    /// How long a send may stay in flight after its sender has stopped (`plain` mode).
    pub send_timeout: Duration,
    /// The same where the sender's process has certainly ended.
    pub socket_close: Duration,
    /// Time after which a lease has certainly ended: [`crate::lease::LeaseTerms::ended`].
    pub lease_ended: Duration,
    /// How long a lost unit waits for the first heartbeat of its node's new incarnation.
    pub home_grace: Duration,
    /// `rebalance.min.interval.ms`.
    pub min_interval: Duration,
    /// `drain.parallelism`: units that leave draining nodes at a time.
    pub drain_parallelism: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            default_mode: Delivery::Fenced,
            send_timeout: Duration::from_secs(10),
            socket_close: Duration::from_secs(1),
            lease_ended: Duration::from_millis(3030),
            home_grace: Duration::from_secs(1),
            min_interval: Duration::from_secs(10),
            drain_parallelism: 10,
        }
    }
}

/// Everything a plan depends on.
#[derive(Debug)]
pub struct PlanInput<'a> {
    pub state: &'a State,
    /// Nodes that can be given units: heard lately, keeping up.
    pub ready: &'a BTreeSet<NodeId>,
    /// Wall clock in ms since the epoch.
    pub now_ms: u64,
    /// By epoch: how long this leader has known a placement. Missing = not at all.
    pub ages: &'a BTreeMap<u64, Age>,
    /// Since the last plan that took units back for balance; `None` = this leader made none.
    pub since_round: Option<Duration>,
    /// End every running delay now.
    pub hurry: bool,
    pub limits: &'a Limits,
}

/// How long a leader has known something of a placement; never longer than it has been true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Age {
    /// Since it was made.
    pub known: Duration,
    /// Since it is no longer held.
    pub free: Duration,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// To be proposed; independent of each other.
    pub commands: Vec<Command>,
    /// Some of them take units back for balance.
    pub is_round: bool,
    /// Units that should run and are not assigned to a node that runs.
    pub pending: usize,
    /// Time until the last running delay ends.
    pub delay: Option<Duration>,
    /// When to plan again although nothing has changed.
    pub wake: Option<Duration>,
}

pub fn plan(input: &PlanInput<'_>) -> Plan {
    let mut plan = Plan::default();
    let mut board = Board::new(input);
    let mut free = Vec::new();
    for unit in input.state.units() {
        let class = Class::of(&unit);
        let placement = input.state.placements.get(&unit);
        match placement {
            Some(p) if p.phase == Phase::Assigned => {
                board.count(&unit, p.node);
                plan.pending += usize::from(!board.is_candidate(p.node));
                continue;
            }
            Some(p) if p.phase == Phase::Revoking => {
                plan.pending += 1;
                continue;
            }
            _ => {}
        }
        plan.pending += 1;
        if board.awaits_old_set(&unit) {
            board.block(class);
            continue;
        }
        match wait::before_placing(input, &board, &unit, placement) {
            wait::Wait::Home(node) => {
                board.count(&unit, node);
                plan.commands.push(assign(input, &unit, placement, node));
            }
            wait::Wait::Until(left) => {
                board.block(Class::Connector);
                board.block(Class::Task);
                plan.delay = plan.delay.max(Some(left));
                plan.wake_in(left);
            }
            wait::Wait::Open => {
                board.block(Class::Connector);
                board.block(Class::Task);
            }
            wait::Wait::No => free.push((class, unit, placement)),
        }
    }
    // Connector objects first: their tasks follow from them.
    free.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    for (class, unit, placement) in free {
        match board.least_loaded(class, &unit) {
            Some(node) => {
                board.count(&unit, node);
                plan.commands.push(assign(input, &unit, placement, node));
            }
            None => board.block(class),
        }
    }
    forget_orphans(input, &mut plan);
    drain(input, &mut plan);
    balance::take_back_surplus(input, &board, &mut plan);
    plan
}

impl Plan {
    fn wake_in(&mut self, left: Duration) {
        self.wake = Some(self.wake.map_or(left, |wake| wake.min(left)));
    }
}

fn assign(input: &PlanInput<'_>, unit: &Unit, present: Option<&Placement>, node: NodeId) -> Command {
    let mode = mode_of(input, unit);
    let silence = wait::before_sending(input, unit, present, mode);
    CommandV1::Assign {
        unit: unit.clone(),
        node,
        incarnation: input.state.nodes.get(&node).map_or(0, |n| n.incarnation),
        previous: present.map_or(0, |p| p.epoch),
        mode,
        fence_wait_ms: millis(silence.wait),
        late_sends_ms: millis(silence.late_sends),
    }
    .into()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What the connector's raw configuration asks for. A reference that only a node can resolve counts
/// as not named.
fn mode_of(input: &PlanInput<'_>, unit: &Unit) -> Delivery {
    let config = input.state.connectors.get(&unit.connector).map(|c| &c.config);
    let named = config.and_then(|c| c.get("thalweg.delivery")).and_then(Delivery::named);
    named.unwrap_or(input.limits.default_mode)
}

/// Placements of units that no longer exist are remembered until nothing that was sent before them
/// or by them can arrive any more, so that a new task set can wait for that.
fn forget_orphans(input: &PlanInput<'_>, plan: &mut Plan) {
    for (unit, placement) in &input.state.placements {
        if placement.is_held() || input.state.exists(unit) {
            continue;
        }
        let left = if unit.is_task() { wait::sends_end_in(input, placement) } else { Duration::ZERO };
        if left.is_zero() {
            plan.commands.push(CommandV1::Forget { unit: unit.clone(), epoch: placement.epoch }.into());
        } else {
            plan.wake_in(left);
        }
    }
}

/// Moves units off nodes that drain, a few at a time, whatever else is going on.
fn drain(input: &PlanInput<'_>, plan: &mut Plan) {
    let draining =
        |p: &Placement| input.state.nodes.get(&p.node).is_some_and(|n| n.state == NodeState::Draining(DrainMode::Move));
    let leaving = input.state.placements.values().filter(|p| p.phase == Phase::Revoking && draining(p)).count();
    let room = input.limits.drain_parallelism.max(1).saturating_sub(leaving);
    let assigned = input.state.placements.iter().filter(|(_, p)| p.phase == Phase::Assigned && draining(p));
    for (unit, placement) in assigned.take(room) {
        plan.commands.push(CommandV1::Revoke { unit: unit.clone(), epoch: placement.epoch }.into());
    }
}

#[cfg(test)]
mod tests;
