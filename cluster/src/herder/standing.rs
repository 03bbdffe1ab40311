//! What the applied state makes of this process.

use crate::raft::state::NodeState;
use crate::raft::{NodeId, State};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The node is not in the registry.
    Unknown,
    /// Another registration is the current one.
    Other,
    /// This registration is current.
    Current,
    /// This registration has expired.
    Expired,
    /// It has said goodbye.
    Left,
}

impl Standing {
    /// `boot` names the registration.
    pub fn of(state: &State, node: NodeId, boot: [u8; 16]) -> Self {
        match state.nodes.get(&node) {
            None => Self::Unknown,
            Some(known) if known.boot != boot => Self::Other,
            Some(known) => match known.state {
                NodeState::Alive | NodeState::Draining(_) => Self::Current,
                NodeState::Expired => Self::Expired,
                NodeState::Left { .. } => Self::Left,
            },
        }
    }
}
