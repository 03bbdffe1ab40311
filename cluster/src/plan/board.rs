//! Who holds how much, per class of units, and which class is in motion.

use std::collections::{BTreeMap, BTreeSet};

use super::PlanInput;
use crate::raft::state::{NodeState, Phase, State};
use crate::raft::unit::{Name, NodeId, Unit};

/// Balanced separately; placed in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Connector,
    Task,
}

impl Class {
    pub(super) fn of(unit: &Unit) -> Self {
        if unit.is_task() { Self::Task } else { Self::Connector }
    }
}

pub(super) struct Board {
    /// Units held by each node that can be given more, per class; every such node has an entry.
    held: BTreeMap<NodeId, [BTreeSet<Unit>; 2]>,
    /// Units of a connector on a node, both classes.
    spread: BTreeMap<(NodeId, Name), usize>,
    /// Classes in which nothing may be taken back for balance now.
    blocked: BTreeSet<Class>,
    /// Task sets: the present revision, and whether an older set still holds placements.
    sets: BTreeMap<Name, (u64, bool)>,
}

impl Board {
    pub(super) fn new(input: &PlanInput<'_>) -> Self {
        let takes = |node: &NodeId| input.state.nodes.get(node).is_some_and(|n| n.state == NodeState::Alive);
        let held = input.ready.iter().filter(|n| takes(n)).map(|n| (*n, Default::default())).collect();
        let revoking = input.state.placements.iter().filter(|(_, p)| p.phase == Phase::Revoking);
        Self {
            held,
            spread: BTreeMap::new(),
            blocked: revoking.map(|(unit, _)| Class::of(unit)).collect(),
            sets: sets(input.state),
        }
    }

    pub(super) fn is_candidate(&self, node: NodeId) -> bool {
        self.held.contains_key(&node)
    }

    pub(super) fn tasks_revision(&self, connector: &Name) -> Option<u64> {
        self.sets.get(connector).map(|(revision, _)| *revision)
    }

    /// Whether tasks of an earlier set of this connector still run.
    pub(super) fn awaits_old_set(&self, unit: &Unit) -> bool {
        unit.is_task() && self.sets.get(&unit.connector).is_some_and(|(_, open)| *open)
    }

    pub(super) fn count(&mut self, unit: &Unit, node: NodeId) {
        if let Some(held) = self.held.get_mut(&node) {
            held[Class::of(unit) as usize].insert(unit.clone());
            *self.spread.entry((node, unit.connector.clone())).or_default() += 1;
        }
    }

    pub(super) fn block(&mut self, class: Class) {
        self.blocked.insert(class);
    }

    pub(super) fn is_blocked(&self, class: Class) -> bool {
        self.blocked.contains(&class)
    }

    pub(super) fn least_loaded(&self, class: Class, unit: &Unit) -> Option<NodeId> {
        let siblings = |node: NodeId| self.spread.get(&(node, unit.connector.clone())).copied().unwrap_or(0);
        self.held
            .iter()
            .map(|(node, held)| (held[class as usize].len(), siblings(*node), *node))
            .min()
            .map(|(_, _, n)| n)
    }

    /// Units of the class per node, by node id.
    pub(super) fn held(&self, class: Class) -> impl Iterator<Item = (NodeId, &BTreeSet<Unit>)> {
        self.held.iter().map(move |(node, held)| (*node, &held[class as usize]))
    }
}

fn sets(state: &State) -> BTreeMap<Name, (u64, bool)> {
    let mut sets: BTreeMap<Name, (u64, bool)> =
        state.connectors.iter().map(|(name, c)| (name.clone(), (c.tasks_revision, false))).collect();
    for (unit, placement) in &state.placements {
        if let Some((revision, open)) = sets.get_mut(&unit.connector)
            && unit.is_task()
            && placement.is_held()
            && placement.tasks_revision != *revision
        {
            *open = true;
        }
    }
    sets
}
