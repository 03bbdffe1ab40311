//! Placing units and taking them back.
//!
//! Invariants: a unit is assigned only while it is free, and a task only while no placement of
//! another task set of its connector is held: nobody begins with what a task that has changed or gone
//! may still read. The placement of a task that another set has unchanged is one of that set.

use std::collections::BTreeSet;

use super::{NodeState, Phase, Placement, State};
use crate::raft::command::{Delivery, Refusal, Reply, ReportedState};
use crate::raft::unit::{Name, NodeId, Unit};

impl State {
    #[allow(clippy::too_many_arguments)]
    pub(super) fn assign(
        &mut self,
        index: u64,
        unit: &Unit,
        node: NodeId,
        incarnation: u64,
        previous: u64,
        mode: Delivery,
        (fence_wait_ms, late_sends_ms): (u64, u64),
    ) -> Result<Reply, Refusal> {
        let connector =
            self.connectors.get(&unit.connector).ok_or_else(|| Refusal::UnknownConnector(unit.connector.clone()))?;
        if let Some(task) = unit.task
            && task as usize >= connector.tasks.len()
        {
            return Err(Refusal::UnknownTask(unit.connector.clone(), task));
        }
        let known = self.nodes.get(&node).ok_or(Refusal::UnknownNode(node))?;
        if known.incarnation != incarnation {
            return Err(Refusal::StaleIncarnation { node, current: known.incarnation });
        }
        if known.state != NodeState::Alive {
            return Err(Refusal::NodeNotAlive(node));
        }
        let present = self.placements.get(unit);
        if present.is_some_and(Placement::is_held) {
            return Err(Refusal::NotFree(unit.clone()));
        }
        // The wait was computed for the placement that the leader saw.
        if present.map_or(0, |p| p.epoch) != previous {
            return Err(Refusal::StaleEpoch(unit.clone()));
        }
        let tasks_revision = if unit.is_task() { connector.tasks_revision } else { 0 };
        if unit.is_task() {
            let other = |p: &Placement| p.is_held() && p.tasks_revision != tasks_revision;
            if self.task_placements(&unit.connector).any(|(_, p)| other(p)) {
                return Err(Refusal::NotFree(unit.clone()));
            }
        }
        let placement = Placement {
            node,
            incarnation,
            epoch: index,
            tasks_revision,
            mode,
            fence_wait_ms,
            late_sends_ms,
            phase: Phase::Assigned,
        };
        self.placements.insert(unit.clone(), placement);
        Ok(Reply::Assigned { epoch: index })
    }

    pub(super) fn revoke(&mut self, unit: &Unit, epoch: u64) -> Result<Reply, Refusal> {
        match self.placements.get_mut(unit) {
            Some(placement) if placement.epoch == epoch && placement.is_held() => {
                placement.phase = Phase::Revoking;
                Ok(Reply::Done)
            }
            _ => Err(Refusal::StaleEpoch(unit.clone())),
        }
    }

    pub(super) fn forget(&mut self, unit: &Unit, epoch: u64) -> Result<Reply, Refusal> {
        if self.exists(unit) {
            return Err(Refusal::Invalid(format!("{unit} is still wanted")));
        }
        match self.placements.get(unit) {
            Some(placement) if placement.epoch == epoch && !placement.is_held() => {
                self.placements.remove(unit);
                Ok(Reply::Done)
            }
            _ => Err(Refusal::StaleEpoch(unit.clone())),
        }
    }

    /// Takes back every task placement of a connector that has no tasks any more.
    pub(super) fn revoke_tasks(&mut self, name: &Name) {
        let units: Vec<Unit> = self.task_placements(name).map(|(unit, _)| unit.clone()).collect();
        for unit in units {
            self.withdraw(&unit);
        }
    }

    /// Goes from task set `former` to task set `present`: placements of the tasks that are in both, in
    /// whatever phase, are of the new one from now on; all others are taken back.
    pub(super) fn carry_over(&mut self, name: &Name, kept: &BTreeSet<u32>, (former, present): (u64, u64)) {
        let units: Vec<Unit> = self.task_placements(name).map(|(unit, _)| unit.clone()).collect();
        for unit in units {
            let kept = unit.task.is_some_and(|task| kept.contains(&task));
            match self.placements.get_mut(&unit) {
                // One of a still older set is not the task that is kept.
                Some(placement) if kept && placement.tasks_revision == former => placement.tasks_revision = present,
                _ => self.withdraw(&unit),
            }
        }
    }

    pub(super) fn withdraw(&mut self, unit: &Unit) {
        match self.placements.get_mut(unit) {
            Some(placement) if placement.phase == Phase::Assigned => placement.phase = Phase::Revoking,
            _ => self.drop_if_done(unit),
        }
    }

    /// A released placement without a unit goes, unless an earlier owner's last sends might have arrived
    /// since its `Assign`: that has to be known to whoever gets its partitions.
    pub(super) fn drop_if_done(&mut self, unit: &Unit) {
        let is_done = |p: &Placement| p.phase == Phase::Released && p.late_sends_ms == 0;
        if !self.exists(unit) && self.placements.get(unit).is_some_and(is_done) {
            self.placements.remove(unit);
        }
    }

    /// The owner no longer runs it. Kept as a row of its own so that nobody sees a dead owner's word.
    pub(super) fn unassign_status(&mut self, index: u64, unit: &Unit, epoch: u64) {
        if let Some(status) = self.statuses.get_mut(unit)
            && status.epoch <= epoch
        {
            status.state = ReportedState::Unassigned;
            status.trace = None;
            status.epoch = epoch;
            status.revision = index;
        }
    }
}
