//! How everybody above Raft writes.
//!
//! A proposal is forwarded to the leader where needed. Invariant: it is handed in once; an
//! implementation never repeats one whose outcome it does not know.

use async_trait::async_trait;
use thiserror::Error;

use super::command::{Command, Reply};

#[async_trait]
pub trait Proposer: Send + Sync + 'static {
    /// Resolves when the command has been applied on the leader; locally soon after. Who reads it
    /// back confirms first that this replica is up to date. A refusal by the state machine is an `Ok`
    /// reply.
    async fn propose(&self, command: Command) -> Result<Reply, ProposeError>;
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProposeError {
    /// Nothing was written.
    #[error("no leader could be reached; the cluster cannot be changed until a majority of the voters has elected one")]
    NoLeader,
    /// Nothing was written.
    #[error("the leader cannot reach the majority of the voters; the cluster cannot be changed until they are back")]
    QuorumLost,
    /// Nothing was written.
    #[error("the cluster's feature level is {current}, the change needs {needed}; finish the upgrade of all nodes")]
    FeatureLevel { needed: u32, current: u32 },
    /// Nothing was written.
    #[error("the change is {size} bytes, the limit of a log entry is {limit}")]
    TooLarge { size: usize, limit: usize },
    /// It may still be applied or not: read the state before repeating.
    #[error("no answer from a majority within the time limit; the change may or may not take effect")]
    Unknown,
    /// This node's log cannot be written or it is shutting down.
    #[error("this node cannot write: {0}")]
    Failed(String),
}
