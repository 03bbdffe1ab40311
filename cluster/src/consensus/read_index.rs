//! Confirming leadership: one quorum round for everybody who asked before it began.
//!
//! A round that is under way says nothing about who asked meanwhile; they wait for the next one.

use std::time::Duration;

use openraft::errors::{LinearizableReadError, RaftError};
use openraft::{Raft, ReadPolicy};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Consensus, no_leader};
use crate::raft::ProposeError;
use crate::raft::machine::Machine;
use crate::raft::types::TypeConfig;
use crate::rpc::{Destination, Failure, Lane, Request, Response};

pub(super) type Answer = Result<u64, ProposeError>;

/// Those who may wait for rounds at a time.
const QUEUE: usize = 4096;

pub(super) struct Rounds {
    queue: mpsc::Sender<oneshot::Sender<Answer>>,
}

impl Rounds {
    pub(super) fn start(raft: Raft<TypeConfig, Machine>, tasks: &TaskTracker, stop: CancellationToken) -> Self {
        let (queue, mut asked) = mpsc::channel::<oneshot::Sender<Answer>>(QUEUE);
        tasks.spawn(async move {
            let rounds = async {
                while let Some(first) = asked.recv().await {
                    let mut together = vec![first];
                    while let Ok(next) = asked.try_recv() {
                        together.push(next);
                    }
                    let answer = round(&raft).await;
                    for one in together {
                        // Whoever asked may have given up.
                        let _ = one.send(answer.clone());
                    }
                }
            };
            stop.run_until_cancelled(rounds).await;
        });
        Self { queue }
    }

    /// Index up to which a read must have been applied; this node led when the round ended.
    pub(super) async fn join(&self) -> Answer {
        let (sender, answer) = oneshot::channel();
        let ending = || ProposeError::Failed("the node is ending".into());
        self.queue.send(sender).await.map_err(|_| ending())?;
        answer.await.unwrap_or_else(|_| Err(ending()))
    }
}

async fn round(raft: &Raft<TypeConfig, Machine>) -> Answer {
    match raft.get_read_linearizer(ReadPolicy::ReadIndex).await {
        Ok(linearizer) => Ok(linearizer.read_log_id().index()),
        Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(_))) => Err(no_leader(false)),
        Err(RaftError::APIError(LinearizableReadError::QuorumNotEnough(_))) => Err(no_leader(true)),
        Err(RaftError::Fatal(e)) => Err(ProposeError::Failed(e.to_string())),
    }
}

impl Consensus {
    /// Proves that this node leads, with answers of a majority to a question asked after the call.
    /// Gives the index up to which a read must have been applied.
    pub(super) async fn prove(&self) -> Answer {
        // Before the round: what is granted after it counts from a moment before the call.
        self.heard.backs();
        self.rounds.join().await
    }

    /// Makes sure that this replica holds everything that was acknowledged anywhere before the call.
    /// Returns the index it was confirmed at.
    pub async fn confirm(&self, deadline: Duration) -> Result<u64, ProposeError> {
        let until = Instant::now() + deadline;
        let mut standing = self.standing.subscribe();
        loop {
            let now = standing.borrow_and_update().clone();
            let result = match &now.leader {
                Some(leader) if leader.node == self.local.node => {
                    timeout_at(until, self.prove()).await.unwrap_or(Err(no_leader(true)))
                }
                Some(leader) if self.presence.is_away(leader.node) => Err(no_leader(false)),
                Some(leader) => {
                    let to = Destination::node(leader.node, leader.address.as_str());
                    let left = until.saturating_duration_since(Instant::now());
                    match self.transport.call(&to, Lane::Consensus, Request::ReadIndex, left).await {
                        Ok(Response::ReadIndex { index }) => Ok(index),
                        Ok(Response::Failed(Failure::QuorumLost)) => Err(no_leader(true)),
                        Ok(_) | Err(_) => Err(no_leader(false)),
                    }
                }
                None => Err(no_leader(false)),
            };
            match result {
                Ok(index) => {
                    let applied = timeout_at(until, self.view.wait_for(index)).await;
                    return applied.map(|()| index).map_err(|_| no_leader(true));
                }
                Err(error @ ProposeError::Failed(_)) => return Err(error),
                // Reading twice is harmless: ask the next leader, or the same one once more.
                Err(error) => {
                    let pause = (Instant::now() + RETRY).min(until);
                    let _ = timeout_at(pause, standing.changed()).await;
                    if Instant::now() >= until {
                        return Err(error);
                    }
                }
            }
        }
    }
}

/// Between two questions, if the leader stays the same.
const RETRY: Duration = Duration::from_millis(50);
