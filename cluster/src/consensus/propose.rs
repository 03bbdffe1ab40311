//! Writing: to this node if it leads, else through the leader.

use async_trait::async_trait;
use openraft::errors::{ClientWriteError, ForwardReason, RaftError};
use tokio::time::{Instant, timeout_at};

use super::{Consensus, no_leader};
use crate::lease::{Grant, LeaseLink};
use crate::raft::{Command, ProposeError, Proposer, Reply};
use crate::rpc::message::{Heartbeat, HeartbeatReply};
use crate::rpc::{Destination, Failure, Lane, Request, Response};

/// Largest encoded command. An entry has to fit into one frame, with some company.
pub(super) const MAX_COMMAND: usize = 8 << 20;
/// Between two attempts, if the leader stays the same.
const RETRY: std::time::Duration = std::time::Duration::from_millis(50);
/// An answer to a heartbeat that is later than this has lost most of its worth.
const HEARTBEAT_LIMIT: std::time::Duration = std::time::Duration::from_millis(1500);

/// An attempt that had no effect.
pub(super) enum NotWritten {
    Elsewhere,
    QuorumLost,
}

#[async_trait]
impl Proposer for Consensus {
    async fn propose(&self, command: Command) -> Result<Reply, ProposeError> {
        let size = encoded_size(&command);
        if size > MAX_COMMAND {
            return Err(ProposeError::TooLarge { size, limit: MAX_COMMAND });
        }
        let (needed, current) = (command.feature_level(), self.view.read().feature_level);
        if needed > current {
            return Err(ProposeError::FeatureLevel { needed, current });
        }
        let until = Instant::now() + self.settings.timing.propose;
        let mut standing = self.standing.subscribe();
        loop {
            let leader = standing.borrow_and_update().leader.clone();
            let attempt = match leader {
                Some(leader) if leader.node == self.local.node => self.propose_here(command.clone(), until).await,
                // Sent into the void, its outcome would be unknown; another leader may come in time.
                Some(leader) if self.presence.is_away(leader.node) => Err(Ok(NotWritten::Elsewhere)),
                Some(leader) => {
                    let to = Destination::node(leader.node, leader.address.as_str());
                    self.propose_there(&to, command.clone(), until).await
                }
                None => Err(Ok(NotWritten::Elsewhere)),
            };
            let why = match attempt {
                Ok(reply) => return Ok(reply),
                Err(Err(error)) => return Err(error),
                Err(Ok(why)) => why,
            };
            let pause = (Instant::now() + RETRY).min(until);
            let _ = timeout_at(pause, standing.changed()).await;
            if Instant::now() >= until {
                return Err(no_leader(matches!(why, NotWritten::QuorumLost)));
            }
        }
    }
}

/// The reply; or that it was not written, so that it may be tried again; or the final error.
type Attempt = Result<Reply, Result<NotWritten, ProposeError>>;

impl Consensus {
    /// Writes to this node's own log, if it leads.
    pub(super) async fn propose_here(&self, command: Command, until: Instant) -> Attempt {
        if let Some(why) = self.failure.borrow().clone() {
            return Err(Err(ProposeError::Failed(why)));
        }
        let Ok(written) = timeout_at(until, self.raft.client_write(command)).await else {
            return Err(Err(ProposeError::Unknown));
        };
        match written {
            Ok(written) => Ok(written.data),
            Err(RaftError::APIError(ClientWriteError::ForwardToLeader(forward))) => Err(Ok(match forward.reason {
                ForwardReason::LeaseExpired => NotWritten::QuorumLost,
                ForwardReason::NotLeader | ForwardReason::LeadershipTransfer => NotWritten::Elsewhere,
            })),
            // The entry was in the log of a leader that lost its office; the next one may have kept it.
            Err(RaftError::APIError(ClientWriteError::LogEntryDiscarded(_))) => Err(Err(ProposeError::Unknown)),
            Err(RaftError::APIError(e)) => Err(Err(ProposeError::Failed(e.to_string()))),
            Err(RaftError::Fatal(e)) => Err(Err(ProposeError::Failed(e.to_string()))),
        }
    }

    async fn propose_there(&self, to: &Destination, command: Command, until: Instant) -> Attempt {
        let left = until.saturating_duration_since(Instant::now());
        match self.transport.call(to, Lane::Forward, Request::Propose(command), left).await {
            Ok(Response::Proposed(reply)) => Ok(reply),
            Ok(Response::Failed(failure)) => Err(match failure {
                Failure::QuorumLost => Ok(NotWritten::QuorumLost),
                Failure::NotLeader { .. } | Failure::NotReady | Failure::NotAMember => Ok(NotWritten::Elsewhere),
                // A leader that stopped may have sent the entry to others before.
                Failure::TimedOut | Failure::Unknown | Failure::Stopped(_) => Err(ProposeError::Unknown),
                Failure::Refused(why) => Err(ProposeError::Failed(why)),
                Failure::NotUnderstood => Err(ProposeError::Failed(format!("{to}: {failure}"))),
            }),
            Ok(_) => Err(Err(ProposeError::Unknown)),
            Err(error) if error.is_unsent() => Err(Ok(NotWritten::Elsewhere)),
            Err(error) => {
                tracing::debug!(%to, %error, "the outcome of a proposal is not known");
                Err(Err(ProposeError::Unknown))
            }
        }
    }

    /// Answers a heartbeat of `node`, if this node leads and can prove it.
    pub(super) async fn grant(&self, node: u64, incarnation: u64, applied: u64) -> Result<Grant, Failure> {
        let duties = self.duties.get().ok_or(Failure::NotReady)?;
        let index = self.prove().await.map_err(|e| self.failure_of(&e))?;
        self.view.wait_for(index).await;
        duties.grant(node, incarnation, applied).ok_or(Failure::NotReady)
    }

    /// How a failed attempt reads for another node.
    pub(crate) fn failure_of(&self, error: &ProposeError) -> Failure {
        match error {
            ProposeError::NoLeader => {
                let leader = self.standing.borrow().leader.clone();
                Failure::NotLeader { leader: leader.filter(|l| l.node != self.local.node).map(|l| (l.node, l.address)) }
            }
            ProposeError::QuorumLost => Failure::QuorumLost,
            ProposeError::Unknown => Failure::Unknown,
            ProposeError::Failed(why) => Failure::Stopped(why.clone()),
            ProposeError::FeatureLevel { .. } | ProposeError::TooLarge { .. } => Failure::Refused(error.to_string()),
        }
    }
}

#[async_trait]
impl LeaseLink for Consensus {
    async fn heartbeat(&self, incarnation: u64, seq: u64, applied: u64) -> Option<Grant> {
        let leader = self.standing.borrow().leader.clone()?;
        if leader.node == self.local.node {
            let granted = self.grant(self.local.node, incarnation, applied);
            return tokio::time::timeout(HEARTBEAT_LIMIT, granted).await.ok()?.ok();
        }
        let to = Destination::node(leader.node, leader.address.as_str());
        let request = Request::Heartbeat(Heartbeat { incarnation, seq, applied });
        match self.transport.call(&to, Lane::Consensus, request, HEARTBEAT_LIMIT).await {
            Ok(Response::Heartbeat(HeartbeatReply::Granted { seq: answered })) => {
                (answered == seq).then_some(Grant::Granted)
            }
            Ok(Response::Heartbeat(HeartbeatReply::Expired)) => Some(Grant::Expired),
            Ok(Response::Heartbeat(HeartbeatReply::Unregistered)) => Some(Grant::Unregistered),
            Ok(_) => None,
            Err(error) => {
                tracing::debug!(%to, %error, "heartbeat failed");
                None
            }
        }
    }
}

/// Without keeping the encoding.
fn encoded_size(command: &Command) -> usize {
    let mut writer = bincode::enc::write::SizeWriter::default();
    match bincode::encode_into_writer(command, &mut writer, bincode::config::standard()) {
        Ok(()) => writer.bytes_written,
        // What cannot be encoded cannot be written either.
        Err(_) => usize::MAX,
    }
}
