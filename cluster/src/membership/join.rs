//! The leader's side of joining and leaving.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use openraft::ChangeMembers;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{ChangeMembershipError, ClientWriteError, RaftError};
use tokio::time::{Instant, timeout};

use super::lead::spares;
use crate::consensus::Consensus;
use crate::raft::types::{Member, TypeConfig};
use crate::raft::{NodeId, ProposeError};
use crate::rpc::message::Join;
use crate::rpc::transport::ClusterId;
use crate::rpc::{Destination, Failure, Lane, Request, Response};

/// Looking whether a node is where it says.
const LOOK: Duration = Duration::from_secs(2);
/// A change of the membership, two rounds of the log.
const CHANGE: Duration = Duration::from_secs(5);

impl Consensus {
    /// Takes a node in as a learner, or learns its new address. The leader promotes it when it is fit.
    pub(crate) async fn admit(&self, join: Join) -> Result<ClusterId, Failure> {
        let cluster = self.local.cluster().ok_or(Failure::NotReady)?;
        let _changing = self.membership.changing.lock().await;
        let standing = self.standing.borrow().clone();
        if !standing.leads() {
            return Err(self.failure_of(&ProposeError::NoLeader));
        }
        if standing.members.get(&join.node).is_some_and(|m| m.address == join.address) {
            return Ok(cluster);
        }
        self.look_for(&join).await?;
        let member = BTreeMap::from([(join.node, Member { address: join.address.clone() })]);
        let change = if standing.members.contains_key(&join.node) {
            // The node itself answers at the new address, so nobody is mistaken for it.
            ChangeMembers::SetNodes(member)
        } else {
            // A learner at the same address is certainly gone; a voter stays until it can be replaced.
            let replaced: BTreeSet<NodeId> = standing
                .members
                .iter()
                .filter(|(_, m)| m.address == join.address && !m.voter)
                .map(|(node, _)| *node)
                .collect();
            match replaced.is_empty() {
                true => ChangeMembers::AddNodes(member),
                false => {
                    ChangeMembers::Batch(vec![ChangeMembers::RemoveNodes(replaced), ChangeMembers::AddNodes(member)])
                }
            }
        };
        tracing::info!(node = join.node, address = join.address, "a node joins");
        self.change(change, true).await?;
        Ok(cluster)
    }

    /// The node answers where it says it is, to this node at least.
    async fn look_for(&self, join: &Join) -> Result<(), Failure> {
        let to = Destination::address(join.address.as_str());
        let why = match self.transport.call(&to, Lane::Consensus, Request::Probe, LOOK).await {
            Ok(Response::Probed(probed)) if probed.node == join.node => return Ok(()),
            Ok(Response::Probed(probed)) => format!("node {} answers there", probed.node),
            Ok(_) => "it gave an answer of another kind".to_owned(),
            Err(e) => e.to_string(),
        };
        Err(Failure::Refused(format!(
            "the leader does not find node {} at {}: {why}; set thalweg.rpc.advertised to an address that leads to the \
             node from everywhere",
            join.node, join.address
        )))
    }

    /// Takes a node out for good.
    pub(crate) async fn dismiss(&self, node: NodeId) -> Result<(), Failure> {
        {
            let _changing = self.membership.changing.lock().await;
            let standing = self.standing.borrow().clone();
            if !standing.leads() {
                return Err(self.failure_of(&ProposeError::NoLeader));
            }
            if !standing.members.contains_key(&node) {
                return Ok(());
            }
            if node != self.local.node {
                tracing::info!(node, "a node leaves for good");
                return if standing.is_voter(node) {
                    let mut voters: BTreeSet<NodeId> = standing.voters().filter(|v| *v != node).collect();
                    voters.extend(spares(self).first());
                    self.change(ChangeMembers::ReplaceAllVoters(voters), false).await
                } else {
                    self.change(ChangeMembers::RemoveNodes(BTreeSet::from([node])), false).await
                };
            }
            if standing.voters().all(|v| v == node) && spares(self).is_empty() {
                return Err(Failure::Refused("it is the only voter of its cluster; nobody could go on".into()));
            }
            if standing.voters().all(|v| v == node) {
                // Somebody else has to be able to lead first.
                let voters = standing.voters().chain(spares(self).first().copied()).collect();
                self.change(ChangeMembers::ReplaceAllVoters(voters), true).await?;
            }
        }
        self.step_down(CHANGE).await;
        Err(self.failure_of(&ProposeError::NoLeader))
    }

    /// Changes the membership; the caller holds the lock. Raft allows one change at a time, and the one before
    /// this may still be on its way: that of a former leader, or the first of all.
    pub(super) async fn change(&self, change: ChangeMembers<NodeId, Member>, retain: bool) -> Result<(), Failure> {
        timeout(CHANGE, async {
            let mut metrics = self.raft.metrics();
            loop {
                metrics.borrow_and_update();
                return match self.raft.change_membership(change.clone(), retain).await {
                    Ok(_) => Ok(()),
                    Err(RaftError::APIError(ClientWriteError::<TypeConfig>::ChangeMembershipError(
                        ChangeMembershipError::InProgress(_),
                    ))) => {
                        metrics.changed().await.map_err(|_| Failure::NotReady)?;
                        continue;
                    }
                    Err(RaftError::APIError(ClientWriteError::ForwardToLeader(_))) => {
                        Err(self.failure_of(&ProposeError::NoLeader))
                    }
                    Err(RaftError::APIError(ClientWriteError::LogEntryDiscarded(_))) => Err(Failure::Unknown),
                    Err(RaftError::APIError(e)) => Err(Failure::Refused(e.to_string())),
                    Err(RaftError::Fatal(e)) => Err(Failure::Stopped(e.to_string())),
                };
            }
        })
        .await
        .unwrap_or(Err(Failure::TimedOut))
    }

    /// Takes `node` out of the group for good, through the leader. For this node itself use
    /// [`Consensus::leave`].
    pub async fn remove(&self, node: NodeId, deadline: Duration) -> Result<(), ProposeError> {
        let until = Instant::now() + deadline;
        let mut standing = self.standing.subscribe();
        let mut last = ProposeError::NoLeader;
        while Instant::now() < until {
            let leader = standing.borrow_and_update().leader.clone();
            let outcome = match leader {
                Some(leader) if leader.node == self.local.node => self.dismiss(node).await,
                Some(leader) => {
                    let to = Destination::node(leader.node, leader.address.as_str());
                    let left = until.saturating_duration_since(Instant::now());
                    match self.transport.call(&to, Lane::Consensus, Request::Leave { node }, left).await {
                        Ok(Response::Left) => Ok(()),
                        Ok(Response::Failed(failure)) => Err(failure),
                        Ok(_) | Err(_) => Err(Failure::Unknown),
                    }
                }
                None => Err(Failure::NotLeader { leader: None }),
            };
            last = match outcome {
                Ok(()) => return Ok(()),
                Err(Failure::Refused(why)) => return Err(ProposeError::Failed(why)),
                Err(failure @ (Failure::Stopped(_) | Failure::NotUnderstood)) => {
                    return Err(ProposeError::Failed(failure.to_string()));
                }
                // Taking out what is out already does no harm, so all others are tried again.
                Err(Failure::QuorumLost) => ProposeError::QuorumLost,
                Err(Failure::TimedOut | Failure::Unknown) => ProposeError::Unknown,
                Err(_) => ProposeError::NoLeader,
            };
            let pause = (Instant::now() + Duration::from_millis(100)).min(until);
            let _ = tokio::time::timeout_at(pause, standing.changed()).await;
        }
        Err(last)
    }

    /// Leaves the group for good. Afterwards the node can only be shut down; it will not start from
    /// its file again.
    pub async fn leave(&self, deadline: Duration) -> Result<(), ProposeError> {
        self.remove(self.local.node, deadline).await?;
        self.store.set_left().await.map_err(|e| ProposeError::Failed(e.to_string()))
    }
}
