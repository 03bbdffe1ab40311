//! What the leader does about the membership, again and again: finishes what a predecessor began,
//! promotes, replaces, and forgets who has been replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use openraft::ChangeMembers;
use openraft::async_runtime::WatchReceiver;
use tokio::time::Instant;

use super::voters::{Candidate, Health, plan};
use crate::consensus::{Consensus, Standing};
use crate::raft::state::NodeState;
use crate::raft::types::Member;
use crate::raft::{CommandV1, NodeId, Proposer};

/// Between two looks, if nothing happens.
const LOOK: Duration = Duration::from_secs(1);
/// Entries that a learner may be behind and still count as fit.
const CLOSE: u64 = 100;

pub(crate) async fn lead(consensus: Arc<Consensus>) {
    let mut leading = consensus.leading();
    let mut standing = consensus.standing();
    let mut events = consensus.presence.events();
    let mut away: BTreeMap<NodeId, Instant> = BTreeMap::new();
    loop {
        if leading.borrow_and_update().is_none() {
            away.clear();
            if leading.changed().await.is_err() {
                return;
            }
            continue;
        }
        standing.borrow_and_update();
        if let Err(error) = look(&consensus, &mut away).await {
            tracing::debug!(%error, "the membership could not be changed, trying again");
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            changed = leading.changed() => if changed.is_err() { return },
            changed = standing.changed() => if changed.is_err() { return },
            event = events.recv() => {
                if matches!(event, Err(tokio::sync::broadcast::error::RecvError::Closed)) {
                    return;
                }
            }
        }
    }
}

async fn look(consensus: &Consensus, away: &mut BTreeMap<NodeId, Instant>) -> Result<(), crate::rpc::Failure> {
    let _changing = consensus.membership.changing.lock().await;
    let standing = consensus.standing.borrow().clone();
    if !standing.leads() {
        return Ok(());
    }
    let mine = standing.members.get(&consensus.local.node).map(|m| m.address.as_str());
    if mine.is_some_and(|address| address != consensus.local.address) {
        let me = BTreeMap::from([(consensus.local.node, Member { address: consensus.local.address.clone() })]);
        tracing::info!(address = consensus.local.address, "this node has moved");
        return consensus.change(ChangeMembers::SetNodes(me), true).await;
    }
    let joint = {
        let metrics = consensus.raft.metrics();
        let metrics = metrics.borrow_watched();
        let sets = metrics.membership_config.membership().get_joint_config();
        sets.last().filter(|_| sets.len() > 1).cloned()
    };
    if let Some(goal) = joint {
        tracing::info!(?goal, "finishing a change of the voters");
        return consensus.change(ChangeMembers::ReplaceAllVoters(goal), true).await;
    }
    let candidates = candidates(consensus, &standing, away);
    if let Some(voters) = plan(&candidates) {
        tracing::info!(?voters, "changing the voters");
        return consensus.change(ChangeMembers::ReplaceAllVoters(voters), true).await;
    }
    let replaced: BTreeSet<NodeId> =
        candidates.iter().filter(|(_, c)| !c.voter && c.health == Health::Replaced).map(|(node, _)| *node).collect();
    if !replaced.is_empty() {
        tracing::info!(nodes = ?replaced, "forgetting nodes whose address another one has");
        return consensus.change(ChangeMembers::RemoveNodes(replaced), true).await;
    }
    forget(consensus, &standing).await;
    Ok(())
}

/// Removes from the registry what has ended and whose address no member has.
async fn forget(consensus: &Consensus, standing: &Standing) {
    let strangers: Vec<NodeId> = {
        let state = consensus.view().read();
        let member = |address: &str| standing.members.values().any(|m| m.address == address);
        let ended = |s: NodeState| matches!(s, NodeState::Expired | NodeState::Left { .. });
        let gone = state.nodes.iter().filter(|(_, node)| ended(node.state) && !member(&node.about.rpc_address));
        gone.map(|(id, _)| *id).collect()
    };
    for node in strangers {
        // Refused while something still refers to it; the next look tries again.
        if let Err(error) = consensus.propose(CommandV1::RemoveNode { node }.into()).await {
            tracing::debug!(node, %error, "a former member was not forgotten yet");
        }
    }
}

fn candidates(
    consensus: &Consensus,
    standing: &Standing,
    away: &mut BTreeMap<NodeId, Instant>,
) -> BTreeMap<NodeId, Candidate> {
    let now = Instant::now();
    away.retain(|node, _| standing.members.contains_key(node));
    let close = close_to_leader(consensus);
    let health = |node: NodeId, address: &str, away: &mut BTreeMap<NodeId, Instant>| {
        if node == consensus.local.node {
            return Health::Fit;
        }
        if consensus.presence.is_there(node) {
            away.remove(&node);
            return if close.contains(&node) { Health::Fit } else { Health::Waiting };
        }
        let taken = standing
            .members
            .iter()
            .any(|(other, m)| *other != node && m.address == address && consensus.presence.is_there(*other));
        if taken && consensus.presence.is_gone(node) {
            return Health::Replaced;
        }
        let since = *away.entry(node).or_insert(now);
        match now.duration_since(since) >= consensus.settings.timing.replace_after {
            true => Health::Lost,
            false => Health::Waiting,
        }
    };
    standing
        .members
        .iter()
        .map(|(node, m)| (*node, Candidate { voter: m.voter, health: health(*node, &m.address, away) }))
        .collect()
}

/// Members whose log is close to this leader's.
fn close_to_leader(consensus: &Consensus) -> BTreeSet<NodeId> {
    let metrics = consensus.raft.metrics();
    let metrics = metrics.borrow_watched();
    let last = metrics.last_log_index.unwrap_or_default();
    let replication = metrics.replication.iter().flatten();
    replication
        .filter(|(_, matched)| matched.as_ref().is_some_and(|m| m.index + CLOSE >= last))
        .map(|(node, _)| *node)
        .collect()
}

/// Learners that could vote at once.
pub(super) fn spares(consensus: &Consensus) -> Vec<NodeId> {
    let standing = consensus.standing.borrow();
    let close = close_to_leader(consensus);
    let learners = standing.members.iter().filter(|(_, m)| !m.voter).map(|(node, _)| *node);
    learners.filter(|node| close.contains(node) && consensus.presence.is_there(*node)).collect()
}

impl Consensus {
    /// The voter that is there and has most of the log.
    pub(crate) fn successor(&self) -> Option<NodeId> {
        let standing = self.standing.borrow().clone();
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let matched = |node: &NodeId| metrics.replication.as_ref().and_then(|r| r.get(node).cloned().flatten());
        let others = standing.voters().filter(|v| *v != self.local.node && self.presence.is_there(*v));
        others.max_by_key(|node| matched(node).map(|m| m.index))
    }
}
