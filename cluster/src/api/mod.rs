//! What the cluster can be asked for, as plain functions: REST and the command line are thin layers
//! over it.
//!
//! Files: `face` is what the API needs of the running node; `error` an answer that is a refusal;
//! `validate` checks configurations; `connectors` creates, reads, changes and deletes them;
//! `lifecycle` pauses, resumes, stops and restarts; `signals` takes what a running one is asked for;
//! `status`, with the `warnings`, `offsets`, `plugins`, `loggers`, `cluster` and `metrics` show and change
//! the rest.
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
mod signals;
mod status;
mod validate;
mod warnings;

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
pub use signals::Taken;
pub use validate::{Checked, check};
pub use warnings::Warnings;

pub type ApiResult<T = Value> = Result<T, ApiError>;

/// Longest wait of a read for the confirmation that this replica is up to date.
const READ: Duration = Duration::from_secs(1);
/// The same for a write, before it looks at the state and after it was accepted: as long as a proposal
/// waits, so that an election in between fails neither.
const WRITE: Duration = Duration::from_secs(5);

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
    pub warnings: Warnings,
}

impl Api {
    /// Hands a command in; a refusal by the state machine becomes an API error. What it changed can be
    /// read here afterwards.
    async fn propose(&self, command: impl Into<Command>) -> ApiResult<Reply> {
        match self.proposer.propose(command.into()).await? {
            Reply::Refused(refusal) => Err(refusal.into()),
            reply => {
                // Applied on the leader; this replica may be behind.
                self.face.confirm(WRITE).await.map_err(|error| {
                    ApiError::internal(format!(
                        "Request timed out. The change was made, but this node could not bring its own copy up to date: \
                         {error}; read it from another node, or from this one later"
                    ))
                })?;
                Ok(reply)
            }
        }
    }

    /// Makes sure that what a write looks at before it is handed in holds everything acknowledged
    /// before.
    ///
    /// # Errors
    /// There is no majority to ask: the write could not be made either.
    async fn confirmed(&self) -> ApiResult<()> {
        Ok(self.face.confirm(WRITE).await?)
    }

    /// Makes sure that what is read next holds everything acknowledged before. `false` when there is
    /// no majority to ask: the replica is then read as it is, and the answer says so.
    ///
    /// # Errors
    /// The replica has not caught up since the start of the node: what it lacks may have been there
    /// for long.
    pub async fn fresh(&self) -> ApiResult<bool> {
        match self.face.confirm(READ).await {
            Ok(()) => Ok(true),
            Err(_) if self.face.caught_up() => Ok(false),
            Err(error) => Err(ApiError::new(
                503,
                format!(
                    "Worker is still starting up: it has not applied what was committed before it started; {error}"
                ),
            )),
        }
    }
}

impl From<ProposeError> for ApiError {
    fn from(error: ProposeError) -> Self {
        match error {
            // A proposal has waited its whole time by then, and no rebalance takes that long; a rebalance by
            // hand waits for nothing.
            ProposeError::NoLeader | ProposeError::QuorumLost => Self::new(503, error.to_string()),
            ProposeError::TooLarge { .. } => Self::new(413, error.to_string()),
            ProposeError::FeatureLevel { .. } => Self::conflict(error.to_string()),
            ProposeError::Unknown => Self::internal(format!("Request timed out. {error}")),
            ProposeError::Failed(_) => Self::internal(error.to_string()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
