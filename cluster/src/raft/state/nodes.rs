//! The node registry: registering, expiring, draining, leaving.
//!
//! Invariants: a node that is neither alive nor draining holds no placement; a process takes the place
//! of another one that has not ended only at the same address, where it proves that the other is gone.

use super::{Loss, Node, NodeState, Phase, State, check_size};
use crate::raft::command::{DrainMode, NodeAbout, Refusal, Reply};
use crate::raft::unit::NodeId;

impl State {
    pub(super) fn register_node(
        &mut self,
        index: u64,
        node: NodeId,
        boot: [u8; 16],
        about: &NodeAbout,
        delay_ms: u64,
    ) -> Result<Reply, Refusal> {
        for (what, text) in
            [("worker id", &about.worker_id), ("REST url", &about.rest_url), ("RPC address", &about.rpc_address)]
        {
            check_size(what, text.len(), super::MAX_NAME)?;
        }
        if about.feature_level < self.feature_level {
            return Err(Refusal::FeatureLevel { wanted: self.feature_level, possible: about.feature_level });
        }
        if let Some(known) = self.nodes.get_mut(&node)
            && known.boot == boot
        {
            // An incarnation that has ended does not come to life again by a repeated registration.
            if matches!(known.state, NodeState::Left { .. } | NodeState::Expired) {
                return Err(Refusal::StaleIncarnation { node, current: known.incarnation });
            }
            known.about = about.clone();
            return Ok(Reply::NodeRegistered { incarnation: known.incarnation });
        }
        if let Some(known) = self.nodes.get(&node)
            && matches!(known.state, NodeState::Alive | NodeState::Draining(_))
            && known.about.rpc_address != about.rpc_address
        {
            return Err(Refusal::NodeIdInUse { node, address: known.about.rpc_address.clone() });
        }
        self.lose(index, node, delay_ms, Loss::Restarted);
        let registered = Node { incarnation: index, boot, about: about.clone(), state: NodeState::Alive };
        self.nodes.insert(node, registered);
        Ok(Reply::NodeRegistered { incarnation: index })
    }

    pub(super) fn expire_node(
        &mut self,
        index: u64,
        node: NodeId,
        incarnation: u64,
        gone: bool,
        delay_ms: u64,
    ) -> Result<Reply, Refusal> {
        let known = self.current(node, incarnation)?;
        if matches!(known.state, NodeState::Alive | NodeState::Draining(_)) {
            known.state = NodeState::Expired;
            self.lose(index, node, delay_ms, if gone { Loss::Gone } else { Loss::LeaseEnded });
        }
        Ok(Reply::Done)
    }

    pub(super) fn drain_node(&mut self, node: NodeId, mode: DrainMode) -> Result<Reply, Refusal> {
        let known = self.nodes.get_mut(&node).ok_or(Refusal::UnknownNode(node))?;
        if !matches!(known.state, NodeState::Alive | NodeState::Draining(_)) {
            return Err(Refusal::NodeNotAlive(node));
        }
        known.state = NodeState::Draining(mode);
        if mode == DrainMode::Hold {
            for placement in self.placements.values_mut() {
                if placement.node == node && placement.phase == Phase::Assigned {
                    placement.phase = Phase::Revoking;
                }
            }
        }
        Ok(Reply::Done)
    }

    pub(super) fn undrain_node(&mut self, node: NodeId) -> Result<Reply, Refusal> {
        let known = self.nodes.get_mut(&node).ok_or(Refusal::UnknownNode(node))?;
        if !matches!(known.state, NodeState::Alive | NodeState::Draining(_)) {
            return Err(Refusal::NodeNotAlive(node));
        }
        known.state = NodeState::Alive;
        Ok(Reply::Done)
    }

    pub(super) fn node_left(
        &mut self,
        index: u64,
        node: NodeId,
        incarnation: u64,
        hold_ms: u64,
    ) -> Result<Reply, Refusal> {
        let since_ms = self.clock_ms;
        let hold_until_ms = since_ms.saturating_add(hold_ms);
        let known = self.current(node, incarnation)?;
        if matches!(known.state, NodeState::Alive | NodeState::Draining(_)) {
            known.state = NodeState::Left { since_ms, hold_until_ms };
            self.lose(index, node, hold_ms, Loss::Left);
        }
        Ok(Reply::Done)
    }

    pub(super) fn remove_node(&mut self, node: NodeId) -> Result<Reply, Refusal> {
        let known = self.nodes.get(&node).ok_or(Refusal::UnknownNode(node))?;
        if matches!(known.state, NodeState::Alive | NodeState::Draining(_)) {
            return Err(Refusal::NodeInUse(node));
        }
        self.nodes.remove(&node);
        Ok(Reply::Done)
    }

    pub(super) fn set_feature_level(&mut self, level: u32) -> Result<Reply, Refusal> {
        let possible = self.nodes.values().map(|n| n.about.feature_level).min().unwrap_or(self.feature_level);
        if level < self.feature_level || level > possible {
            return Err(Refusal::FeatureLevel { wanted: level, possible });
        }
        self.feature_level = level;
        Ok(Reply::Done)
    }

    fn current(&mut self, node: NodeId, incarnation: u64) -> Result<&mut Node, Refusal> {
        let known = self.nodes.get_mut(&node).ok_or(Refusal::UnknownNode(node))?;
        if known.incarnation != incarnation {
            return Err(Refusal::StaleIncarnation { node, current: known.incarnation });
        }
        Ok(known)
    }

    /// Everything the node still holds is lost. An older loss keeps its own times.
    fn lose(&mut self, index: u64, node: NodeId, delay_ms: u64, loss: Loss) {
        let since_ms = self.clock_ms;
        let until_ms = since_ms.saturating_add(delay_ms);
        let held = self.placements.iter_mut().filter(|(_, p)| p.node == node && p.is_held());
        let mut units = Vec::new();
        for (unit, placement) in held {
            placement.phase = Phase::Lost { since_ms, until_ms, loss };
            units.push((unit.clone(), placement.epoch));
        }
        for (unit, epoch) in units {
            self.unassign_status(index, &unit, epoch);
        }
    }
}
