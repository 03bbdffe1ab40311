//! Answering other nodes.
//!
//! Invariant: only members of this cluster get past the introduction; what concerns Raft goes to
//! Raft, what concerns the leader is answered by the leader only.

use async_trait::async_trait;
use openraft::async_runtime::WatchReceiver;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, TransferLeaderRequest, VoteRequest};
use std::time::Duration;
use tokio::time::Instant;

use super::propose::NotWritten;
use super::{Consensus, election};
use crate::lease::Grant;
use crate::raft::ProposeError;
use crate::raft::types::{Entry, LogId, Vote, VoteRecord};
use crate::rpc::message::{self, Append, Appended, Heartbeat, HeartbeatReply, Probed, TransferLeader, Voted};
use crate::rpc::{Caller, Failure, Handler, Request, Response};

#[async_trait]
impl Handler for Consensus {
    async fn handle(&self, caller: Caller, request: Request) -> Response {
        if self.stop.is_cancelled() {
            return Response::Failed(Failure::NotReady);
        }
        let fellow = caller.cluster.is_some() && caller.cluster == self.local.cluster();
        if !fellow && !request.is_for_strangers() {
            return Response::Failed(Failure::NotAMember);
        }
        self.answer(caller, request).await.unwrap_or_else(Response::Failed)
    }
}

impl Consensus {
    async fn answer(&self, caller: Caller, request: Request) -> Result<Response, Failure> {
        Ok(match request {
            Request::Ping { hold_ms } => {
                // The answer is late on purpose; when this process ends, the caller knows at once.
                let hold = Duration::from_millis(u64::from(hold_ms.min(10_000)));
                self.stop.run_until_cancelled(tokio::time::sleep(hold)).await;
                Response::Pong { incarnation: self.local.incarnation }
            }
            Request::Probe => Response::Probed(self.probed(&caller)),
            Request::Adopt(adopt) => {
                self.adopt(&caller, adopt).await?;
                Response::Adopted
            }
            Request::Join(join) => Response::Joined { cluster: self.admit(join).await? },
            Request::Leave { node } => {
                self.dismiss(node).await?;
                Response::Left
            }
            Request::Append(append) => Response::Appended(self.append(&caller, append).await?),
            Request::Vote(vote) => Response::Voted(self.vote_for(&caller, vote).await?),
            Request::Snapshot(chunk) => {
                let vote = self.receive(chunk).await?;
                Response::SnapshotTaken { vote: (&vote).into() }
            }
            Request::TransferLeader(transfer) => self.transfer(transfer).await?,
            Request::ReadIndex => {
                let index = self.prove().await.map_err(|e| self.failure_of(&e))?;
                Response::ReadIndex { index }
            }
            Request::Propose(command) => {
                let until = Instant::now() + self.settings.timing.propose;
                match self.propose_here(command, until).await {
                    Ok(reply) => Response::Proposed(reply),
                    Err(Ok(NotWritten::QuorumLost)) => return Err(Failure::QuorumLost),
                    Err(Ok(NotWritten::Elsewhere)) => return Err(self.failure_of(&ProposeError::NoLeader)),
                    Err(Err(error)) => return Err(self.failure_of(&error)),
                }
            }
            Request::Heartbeat(Heartbeat { incarnation, seq, applied }) => {
                Response::Heartbeat(match self.grant(caller.node, incarnation, applied).await? {
                    Grant::Granted => HeartbeatReply::Granted { seq },
                    Grant::Expired => HeartbeatReply::Expired,
                    Grant::Unregistered => HeartbeatReply::Unregistered,
                })
            }
            Request::Forward(bytes) => {
                let duties = self.duties.get().ok_or(Failure::NotReady)?;
                Response::Forwarded(duties.forwarded(caller, bytes).await.map_err(Failure::Refused)?)
            }
        })
    }

    fn probed(&self, caller: &Caller) -> Probed {
        let standing = self.standing.borrow().clone();
        let mut seeds = self.settings.formation.seeds().to_vec();
        seeds.sort();
        Probed {
            node: self.local.node,
            incarnation: self.local.incarnation,
            cluster: self.local.cluster(),
            pristine: self.store.is_pristine(),
            seeds,
            member: standing.members.contains_key(&caller.node),
            leader: standing.leader.map(|l| (l.node, l.address)),
        }
    }

    async fn append(&self, caller: &Caller, append: Append) -> Result<Appended, Failure> {
        let entries: Result<Vec<Entry>, String> = append.entries.into_iter().map(Entry::try_from).collect();
        // Whatever comes of it, a leader may count on this node until now.
        self.heard.backs();
        let leader = append.vote.node;
        let request = AppendEntriesRequest {
            vote: append.vote.into(),
            prev_log_id: append.previous.map(LogId::from),
            entries: entries.map_err(Failure::Refused)?,
            leader_commit: append.committed.map(LogId::from),
        };
        let answer = self.raft.append_entries(request).await.map_err(|e| Failure::Stopped(e.to_string()))?;
        if !matches!(answer, AppendEntriesResponse::HigherVote(_)) {
            self.heard.leader_spoke(leader, caller.incarnation);
        }
        Ok(match answer {
            AppendEntriesResponse::Success => Appended::Success,
            AppendEntriesResponse::PartialSuccess(upto) => Appended::Partial(upto.as_ref().map(Into::into)),
            AppendEntriesResponse::Conflict => Appended::Conflict,
            AppendEntriesResponse::HigherVote(vote) => Appended::HigherVote((&vote).into()),
        })
    }

    async fn vote_for(&self, caller: &Caller, asked: message::Vote) -> Result<Voted, Failure> {
        let mut request = VoteRequest::new(Vote::from(asked.vote), asked.last.map(LogId::from));
        let answer = if asked.pre {
            self.raft.pre_vote(request).await
        } else {
            // The right of a leader whose process is gone protects nobody.
            request.leadership_transfer = asked.transfer || election::leader_is_gone(self, caller).await;
            self.raft.vote(request).await
        };
        let answer = answer.map_err(|e| Failure::Stopped(e.to_string()))?;
        // Measured after the vote: from then on no earlier leader is answered with a yes.
        let silent = self.heard.backed_none_for();
        Ok(Voted {
            vote: VoteRecord::from(&answer.vote),
            granted: answer.vote_granted,
            last: answer.last_log_id.as_ref().map(Into::into),
            silent_ms: u64::try_from(silent.as_millis()).unwrap_or(0),
        })
    }

    async fn transfer(&self, transfer: TransferLeader) -> Result<Response, Failure> {
        let request = TransferLeaderRequest::new(transfer.from.into(), transfer.to, transfer.last.map(LogId::from));
        let answer = self.raft.handle_transfer_leader(request).await.map_err(|e| Failure::Stopped(e.to_string()))?;
        Ok(Response::LeaderTransferred { accepted: answer.is_ok() })
    }

    pub(super) fn vote(&self) -> Vote {
        self.raft.metrics().borrow_watched().vote
    }
}
