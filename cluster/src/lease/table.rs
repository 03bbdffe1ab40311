//! The leader's side of all leases: when was which node last granted one.
//!
//! Lives in the leader's memory only. A new leader takes every node for granted at the last moment at
//! which a former leader can have confirmed a grant (L5). Invariants: a node
//! whose end was announced ([`LeaseTable::end`]) is granted nothing more; a leader that was itself
//! suspended, or had no majority to confirm its grants, does not take that for the silence of the
//! others: it gives back the time they missed.
//!
//! It does not: read a clock or the network; every call says what time it is.

use std::collections::BTreeMap;
use std::time::Duration;

use super::clock::BootInstant;
use super::terms::LeaseTerms;
use crate::raft::NodeId;

/// Entries a node may be behind before it gets no new units (L8).
const MAX_LAG_ENTRIES: u64 = 1000;
/// How long it may be behind at all.
const MAX_LAG_TIME: Duration = Duration::from_secs(5);

/// Answer to a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    Granted,
    /// This incarnation gets no lease any more.
    Expired,
    /// The node is not in the registry.
    Unregistered,
}

#[derive(Debug)]
pub struct LeaseTable {
    terms: LeaseTerms,
    leases: BTreeMap<NodeId, Lease>,
    looked: BootInstant,
    /// Last grant to anybody: a majority stood behind it.
    confirmed: BootInstant,
}

#[derive(Debug)]
struct Lease {
    incarnation: u64,
    granted: BootInstant,
    /// Last heartbeat under this leader.
    heard: Option<BootInstant>,
    ended: bool,
    applied: u64,
    /// What it has to have applied to count as caught up, and since when it has not.
    goal: u64,
    behind: Option<BootInstant>,
}

impl LeaseTable {
    pub fn new(terms: LeaseTerms, now: BootInstant) -> Self {
        Self { terms, leases: BTreeMap::new(), looked: now, confirmed: now }
    }

    /// Brings the table in line with the registry: `nodes` are those that may hold a lease, with
    /// their incarnation. A new one counts as granted now.
    pub fn sync(&mut self, now: BootInstant, nodes: impl IntoIterator<Item = (NodeId, u64)>) {
        let wanted: BTreeMap<NodeId, u64> = nodes.into_iter().collect();
        self.leases.retain(|node, lease| wanted.get(node) == Some(&lease.incarnation));
        for (node, incarnation) in wanted {
            self.leases.entry(node).or_insert(Lease {
                incarnation,
                granted: now,
                heard: None,
                ended: false,
                applied: 0,
                goal: 0,
                behind: None,
            });
        }
    }

    /// Call regularly, before [`LeaseTable::expired`]. A gap much longer than the caller's rhythm
    /// means that the leader itself stood still, while heartbeats waited in its sockets.
    pub fn look(&mut self, now: BootInstant) {
        let gap = now.since(self.looked);
        self.looked = self.looked.max(now);
        if gap > self.terms.heartbeat * 2 {
            for lease in self.leases.values_mut() {
                lease.granted = lease.granted.plus(gap).min(now);
                lease.heard = lease.heard.map(|heard| heard.plus(gap).min(now));
            }
            self.confirmed = self.confirmed.plus(gap).min(now);
        }
    }

    /// Answers a heartbeat after leadership was confirmed for it. `applied` is the node's applied
    /// index, `leader_applied` the leader's.
    pub fn grant(
        &mut self,
        now: BootInstant,
        node: NodeId,
        incarnation: u64,
        applied: u64,
        leader_applied: u64,
    ) -> Grant {
        let Some(lease) = self.leases.get_mut(&node) else { return Grant::Expired };
        if lease.incarnation != incarnation || lease.ended {
            return Grant::Expired;
        }
        lease.heard = Some(now);
        lease.applied = lease.applied.max(applied);
        if lease.applied >= lease.goal {
            lease.behind = None;
            lease.goal = leader_applied;
        } else if lease.behind.is_none() {
            lease.behind = Some(now);
        }
        lease.granted = lease.granted.max(now);
        if !self.is_confirmed(now) {
            // Nobody could be granted anything meanwhile; they get the chance now.
            for lease in self.leases.values_mut() {
                lease.granted = lease.granted.max(now);
            }
        }
        self.confirmed = self.confirmed.max(now);
        Grant::Granted
    }

    /// Whether a majority has stood behind this leader within two heartbeats (the leader's own node
    /// asks for a lease as well).
    fn is_confirmed(&self, now: BootInstant) -> bool {
        now.since(self.confirmed) <= self.terms.heartbeat * 2
    }

    /// From now on this incarnation is granted nothing: its expiry is being proposed, or it has to
    /// stop for another reason. `true` if it was granted leases until now.
    pub fn end(&mut self, node: NodeId, incarnation: u64) -> bool {
        match self.leases.get_mut(&node) {
            Some(lease) if lease.incarnation == incarnation => !std::mem::replace(&mut lease.ended, true),
            _ => false,
        }
    }

    /// Nodes whose lease has certainly ended (L4) although others are granted theirs, in order.
    pub fn expired(&self, now: BootInstant) -> Vec<(NodeId, u64)> {
        let confirmed = self.is_confirmed(now);
        let over = |lease: &Lease| confirmed && now.since(lease.granted) > self.terms.ended();
        self.leases.iter().filter(|(_, lease)| over(lease)).map(|(node, lease)| (*node, lease.incarnation)).collect()
    }

    /// When the next lease ends if nothing is heard of its node.
    pub fn next_expiry(&self, now: BootInstant) -> Option<BootInstant> {
        let ends = self.leases.values().map(|lease| lease.granted.plus(self.terms.ended()));
        ends.min().filter(|_| self.is_confirmed(now))
    }

    /// Whether the node was heard within three heartbeats, is granted leases and keeps up: it can
    /// be given new units.
    pub fn is_ready(&self, now: BootInstant, node: NodeId, leader_applied: u64) -> bool {
        self.leases.get(&node).is_some_and(|lease| {
            let heard = lease.heard.is_some_and(|heard| now.since(heard) <= self.terms.heartbeat * 3);
            let late = lease.behind.is_some_and(|since| now.since(since) > MAX_LAG_TIME);
            heard && !lease.ended && !late && leader_applied.saturating_sub(lease.applied) <= MAX_LAG_ENTRIES
        })
    }

    /// Whether every node has been heard since this leader began.
    pub fn all_heard(&self) -> bool {
        self.leases.values().all(|lease| lease.heard.is_some() || lease.ended)
    }

    /// When the node was last heard under this leader.
    pub fn heard(&self, node: NodeId) -> Option<BootInstant> {
        self.leases.get(&node)?.heard
    }

    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.leases.keys().copied()
    }

    /// Time until the lease ends for the leader, for display.
    pub fn remaining(&self, now: BootInstant, node: NodeId) -> Option<Duration> {
        self.leases.get(&node).map(|lease| lease.granted.plus(self.terms.ended()).since(now))
    }
}
