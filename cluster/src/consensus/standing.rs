//! Where a node stands in its group, as its Raft reports it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use openraft::RaftMetrics;
use openraft::async_runtime::WatchReceiver;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Consensus;
use crate::raft::types::TypeConfig;
use crate::raft::{Leadership, NodeId};
use crate::rpc::Destination;
use crate::rpc::transport::ClusterId;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub node: NodeId,
    pub cluster: Option<ClusterId>,
    pub term: u64,
    pub leader: Option<Leader>,
    /// Empty before the node is in a group.
    pub members: BTreeMap<NodeId, Member>,
    /// Where in the log `members` was written.
    pub members_at: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    pub node: NodeId,
    pub address: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub address: String,
    pub voter: bool,
}

impl Standing {
    pub(super) fn new(node: NodeId) -> Self {
        Self { node, cluster: None, term: 0, leader: None, members: BTreeMap::new(), members_at: None }
    }

    pub fn is_voter(&self, node: NodeId) -> bool {
        self.members.get(&node).is_some_and(|m| m.voter)
    }

    /// Voters, lowest first.
    pub fn voters(&self) -> impl DoubleEndedIterator<Item = NodeId> {
        self.members.iter().filter(|(_, m)| m.voter).map(|(node, _)| *node)
    }

    pub fn leads(&self) -> bool {
        self.leader.as_ref().is_some_and(|l| l.node == self.node)
    }

    pub fn destination(&self, node: NodeId) -> Option<Destination> {
        self.members.get(&node).map(|m| Destination::node(node, m.address.as_str()))
    }

    fn read(consensus: &Consensus, metrics: &RaftMetrics<TypeConfig>) -> Self {
        let membership = metrics.membership_config.membership();
        let voters: Vec<NodeId> = membership.voter_ids().collect();
        let members: BTreeMap<NodeId, Member> = membership
            .nodes()
            .map(|(node, m)| (*node, Member { address: m.address.clone(), voter: voters.contains(node) }))
            .collect();
        let me = consensus.local.node;
        let leads = |l: NodeId| {
            if l == me { metrics.state.is_leader() } else { consensus.heard.incarnation(l).is_some() }
        };
        let leader = metrics.current_leader.filter(|l| leads(*l));
        let leader = leader.and_then(|node| {
            let address = members.get(&node).map(|m| m.address.clone())?;
            Some(Leader { node, address })
        });
        Self {
            node: consensus.local.node,
            cluster: consensus.local.cluster(),
            term: metrics.current_term,
            leader,
            members,
            members_at: metrics.membership_config.log_id().as_ref().map(|id| id.index),
        }
    }
}

/// Which leader has spoken to this process, and when. A stored vote names a leader too, but says
/// nothing about whether it still leads.
pub(crate) struct Heard {
    /// The leader, and which start of its process.
    from: watch::Sender<Option<(NodeId, u64)>>,
    at: Mutex<Instant>,
    /// When a leader, this node included, may last have counted on this node to prove that it leads.
    backed: Mutex<Instant>,
}

impl Default for Heard {
    fn default() -> Self {
        Self { from: watch::Sender::new(None), at: Mutex::new(Instant::now()), backed: Mutex::new(Instant::now()) }
    }
}

impl Heard {
    pub(super) fn leader_spoke(&self, leader: NodeId, incarnation: u64) {
        *self.at.lock() = Instant::now();
        self.from.send_if_modified(|from| from.replace((leader, incarnation)) != Some((leader, incarnation)));
    }

    /// A leader asks this node for its support, or this node is about to prove that it leads.
    pub(super) fn backs(&self) {
        *self.backed.lock() = Instant::now();
    }

    /// For how long this node has helped no leader to prove that it leads.
    pub(super) fn backed_none_for(&self) -> Duration {
        self.backed.lock().elapsed()
    }

    /// Which start of the leader's process spoke last, if it was the last leader that spoke.
    pub(super) fn incarnation(&self, leader: NodeId) -> Option<u64> {
        self.from.borrow().filter(|(from, _)| *from == leader).map(|(_, incarnation)| incarnation)
    }

    /// Time since a leader spoke, or since the start.
    pub(crate) fn silence(&self) -> Duration {
        self.at.lock().elapsed()
    }
}

/// Keeps the standing, the watch on peers and the reasons of failures up to date.
pub(super) async fn follow(consensus: Arc<Consensus>) {
    let mut metrics = consensus.raft.metrics();
    let mut store = consensus.store.failure();
    let mut heard = consensus.heard.from.subscribe();
    loop {
        heard.mark_unchanged();
        let now = metrics.borrow_watched().clone();
        if let Err(fatal) = &now.running_state {
            let why = store.borrow().as_ref().map_or_else(|| fatal.to_string(), ToString::to_string);
            consensus.leading.send_replace(None);
            consensus.fail(why);
            return;
        }
        if now.last_log_index.is_some() || now.snapshot.is_some() {
            consensus.local.settle();
        }
        let standing = Standing::read(&consensus, &now);
        consensus.leading.send_if_modified(|leading| {
            let term = standing.leads().then_some(standing.term);
            let changed = leading.map(|l| l.term) != term;
            if changed {
                *leading = term.map(|term| leadership(&consensus, &standing, term));
            }
            changed
        });
        let before = consensus.standing.borrow().clone();
        if before != standing {
            if before.leader != standing.leader {
                let leader = standing.leader.as_ref().map(|l| l.node);
                tracing::info!(leader, term = standing.term, "leader changed");
            }
            if before.members != standing.members {
                let members = standing.members.iter();
                consensus.addresses.replace(members.map(|(node, m)| (*node, m.address.as_str().into())));
                let peers = standing.members.keys().filter(|node| **node != consensus.local.node);
                consensus.presence.watch(peers.filter_map(|node| standing.destination(*node)));
            }
            consensus.standing.send_replace(standing);
        }
        tokio::select! {
            changed = metrics.changed() => {
                if changed.is_err() {
                    consensus.fail("consensus has ended".into());
                    return;
                }
            }
            // Its sender lives as long as `consensus`.
            _ = heard.changed() => {}
            changed = store.changed() => {
                let why = store.borrow_and_update().as_ref().map(ToString::to_string);
                if let Some(why) = why {
                    consensus.leading.send_replace(None);
                    consensus.fail(why);
                    return;
                }
                if changed.is_err() {
                    return;
                }
            }
        }
    }
}

/// As seen when the term is noticed: from then on this node's own proofs end the quiet.
fn leadership(consensus: &Consensus, standing: &Standing, term: u64) -> Leadership {
    let own = consensus.heard.backed_none_for();
    let quiet = match consensus.ballots.quiet(term) {
        Some(others) => own.min(others),
        None if standing.voters().eq([consensus.local.node]) => own,
        None => Duration::ZERO,
    };
    Leadership { term, quiet }
}

/// Says once that this replica has what was agreed on before; takes snapshots when the log is large.
pub(super) async fn catch_up(consensus: Arc<Consensus>) {
    let mut standing = consensus.standing.subscribe();
    loop {
        if standing.wait_for(|s| s.leader.is_some()).await.is_err() {
            return;
        }
        match consensus.confirm(Duration::from_secs(5)).await {
            Ok(index) => {
                tracing::info!(index, "caught up");
                consensus.caught_up.send_replace(true);
                break;
            }
            Err(error) => {
                tracing::debug!(%error, "not caught up yet");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    let mut due = tokio::time::interval(Duration::from_secs(5));
    loop {
        due.tick().await;
        if consensus.store.bytes_since_snapshot() > consensus.settings.timing.snapshot_bytes
            && consensus.raft.trigger().snapshot().await.is_err()
        {
            return;
        }
    }
}
