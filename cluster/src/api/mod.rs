//! What the cluster can be asked for, as plain functions: REST and the command line are thin layers
//! over it.
//!
//! Files: `face` is what the API needs of the running node; `error` an answer that is a refusal;
//! `validate` checks configurations; `connectors` creates, reads, changes and deletes them;
//! `lifecycle` pauses, resumes, stops and restarts; `status`, `offsets`, `plugins`, `loggers`,
//! `cluster` and `metrics` show and change the rest.
//!
//! Invariants: a write is acknowledged only after a majority has it and this replica shows it;
//! configurations are shown as submitted, with references unresolved.

mod cluster;
mod connectors;
mod error;
mod face;
mod lifecycle;
mod loggers;
mod metrics;
mod offsets;
mod plugins;
mod status;
mod validate;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use thalweg_actors::Registry;
use thalweg_config::Properties;

use crate::raft::{Command, ProposeError, Proposer, Reply, StateView};

pub use connectors::Written;
pub use error::ApiError;
pub use face::{Face, Member, Standing};
pub use lifecycle::Restarted;
pub use validate::{Checked, check, check_options};

pub type ApiResult<T = Value> = Result<T, ApiError>;

/// Longest wait of a read for the confirmation that this replica is up to date.
const CONFIRM: Duration = Duration::from_millis(1_500);

pub struct Api {
    pub view: Arc<StateView>,
    pub proposer: Arc<dyn Proposer>,
    pub face: Arc<dyn Face>,
    pub registry: Arc<Registry>,
    /// The worker's own properties: defaults of converters and clients.
    pub worker: Properties,
    /// `version` of `GET /`.
    pub reported_version: String,
    pub topic_tracking: bool,
    pub topic_reset: bool,
}

impl Api {
    /// Hands a command in; a refusal by the state machine becomes an API error.
    async fn propose(&self, command: impl Into<Command>) -> ApiResult<Reply> {
        match self.proposer.propose(command.into()).await {
            Ok(Reply::Refused(refusal)) => Err(refusal.into()),
            Ok(reply) => Ok(reply),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes sure that what is read next holds everything acknowledged before. `false` when there is
    /// no majority to ask: the replica is then read as it is, and the answer says so.
    pub async fn fresh(&self) -> bool {
        !matches!(tokio::time::timeout(CONFIRM, self.face.confirm()).await, Err(_) | Ok(Err(_)))
    }
}

impl From<ProposeError> for ApiError {
    fn from(error: ProposeError) -> Self {
        match error {
            ProposeError::NoLeader => Self::conflict(
                "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway.",
            ),
            ProposeError::QuorumLost => Self::new(503, error.to_string()),
            ProposeError::TooLarge { .. } => Self::new(413, error.to_string()),
            ProposeError::FeatureLevel { .. } => Self::conflict(error.to_string()),
            ProposeError::Unknown => Self::internal(format!("Request timed out. {error}")),
            ProposeError::Failed(_) => Self::internal(error.to_string()),
        }
    }
}
