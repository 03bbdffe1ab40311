//! What to take back so that the nodes of a class hold the same, give or take one.
//!
//! Invariant: the number of units taken back is the least possible: a node gives only what exceeds
//! its quota, and the quotas that are one higher go to the nodes that hold most.

use std::collections::{BTreeMap, BTreeSet};

use super::board::{Board, Class};
use super::{Plan, PlanInput};
use crate::raft::command::CommandV1;
use crate::raft::unit::{Name, NodeId, Unit};

pub(super) fn take_back_surplus(input: &PlanInput<'_>, board: &Board, plan: &mut Plan) {
    let pause =
        input.since_round.map_or_else(Default::default, |since| input.limits.min_interval.saturating_sub(since));
    for class in [Class::Connector, Class::Task] {
        if board.is_blocked(class) {
            continue;
        }
        let surplus = surplus(board, class);
        if surplus.is_empty() {
            continue;
        }
        if !pause.is_zero() && !input.hurry {
            plan.wake_in(pause);
            continue;
        }
        for unit in surplus {
            // A unit that this very plan places has no epoch yet and is within its node's quota or
            // moves in the next round.
            if let Some(placement) = input.state.placements.get(&unit).filter(|p| p.is_held()) {
                plan.commands.push(CommandV1::Revoke { unit, epoch: placement.epoch }.into());
                plan.is_round = true;
            }
        }
    }
}

fn surplus(board: &Board, class: Class) -> Vec<Unit> {
    let mut nodes: Vec<(NodeId, &BTreeSet<Unit>)> = board.held(class).collect();
    let total: usize = nodes.iter().map(|(_, held)| held.len()).sum();
    let count = nodes.len();
    if count == 0 {
        return Vec::new();
    }
    nodes.sort_by_key(|(node, held)| (std::cmp::Reverse(held.len()), *node));
    let mut surplus = Vec::new();
    for (rank, (_, held)) in nodes.iter().enumerate() {
        let quota = total / count + usize::from(rank < total % count);
        surplus.extend(pick(held, held.len().saturating_sub(quota)));
    }
    surplus
}

/// The units to give away: from the connector with the most units here first, so that what stays is
/// spread; the last unit in order first.
fn pick(held: &BTreeSet<Unit>, count: usize) -> Vec<Unit> {
    let mut by_connector: BTreeMap<&Name, Vec<&Unit>> = BTreeMap::new();
    for unit in held {
        by_connector.entry(&unit.connector).or_default().push(unit);
    }
    let mut picked = Vec::with_capacity(count);
    while picked.len() < count {
        let Some(units) = by_connector.values_mut().max_by_key(|units| (units.len(), units.last().copied())) else {
            break;
        };
        let Some(unit) = units.pop() else { break };
        picked.push(unit.clone());
    }
    picked
}
