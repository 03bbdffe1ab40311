//! A new leader at once, when the process of the old one is known to be gone.
//!
//! Raft alone waits until the leader's right has run out, because silence proves nothing. A port
//! that refuses does, and so does a process that has started anew: then the voters elect a successor
//! at once, one after the other so that they do not disturb each other, and each gives its vote
//! although the old leader's right still stands, if it sees the same. Safety does not rest on that
//! right: a leader acts only with a majority.
//!
//! Invariant: a leader that still speaks to this node is not gone, whatever its port says.

use std::sync::Arc;
use std::time::Duration;

use super::Consensus;
use crate::raft::NodeId;
use crate::rpc::Caller;

/// Between the attempts of two voters.
const STAGGER: Duration = Duration::from_millis(120);
/// Before the same voter tries again.
const AGAIN: Duration = Duration::from_millis(400);
/// Attempts; after them the usual timeouts do.
const ATTEMPTS: u32 = 5;
/// A voter that is asked for its vote looks for itself, for this long.
const LOOK: Duration = Duration::from_millis(150);

/// Whether the leader that this node follows is gone, by its own evidence. The candidate asks.
pub(super) async fn leader_is_gone(consensus: &Consensus, candidate: &Caller) -> bool {
    let standing = consensus.standing.borrow().clone();
    let Some(leader) = standing.leader.as_ref().map(|l| l.node) else { return false };
    if leader == consensus.local.node || consensus.heard.silence() < consensus.settings.timing.heartbeat / 2 {
        return false;
    }
    if leader == candidate.node {
        // It has started anew, or it would not ask.
        return consensus.heard.incarnation(leader).is_some_and(|old| candidate.incarnation > old);
    }
    if is_gone(consensus, leader) {
        return true;
    }
    match standing.destination(leader) {
        Some(to) => consensus.presence.ask_whether_gone(&to, LOOK).await,
        None => false,
    }
}

/// The process that led does not run any more.
fn is_gone(consensus: &Consensus, leader: NodeId) -> bool {
    let started_anew = || {
        let (now, led) = (consensus.presence.incarnation(leader), consensus.heard.incarnation(leader));
        now.zip(led).is_some_and(|(now, led)| now > led)
    };
    leader != consensus.local.node && (consensus.presence.is_gone(leader) || started_anew())
}

pub(super) async fn hurry(consensus: Arc<Consensus>) {
    let mut events = consensus.presence.events();
    let mut standing = consensus.standing.subscribe();
    loop {
        let leader = standing.borrow_and_update().leader.as_ref().map(|l| l.node);
        if let Some(lost) = leader.filter(|l| is_gone(&consensus, *l)) {
            elect(&consensus, lost).await;
        }
        tokio::select! {
            event = events.recv() => {
                if matches!(event, Err(tokio::sync::broadcast::error::RecvError::Closed)) {
                    return;
                }
            }
            changed = standing.changed() => if changed.is_err() { return },
        }
    }
}

/// Tries to replace the leader `lost`, until there is another one or it turns out to be there.
async fn elect(consensus: &Consensus, lost: NodeId) {
    let heartbeat = consensus.settings.timing.heartbeat;
    let mut standing = consensus.standing.subscribe();
    for attempt in 0..ATTEMPTS {
        // A leader whose port is merely closed to this node speaks again within a heartbeat.
        let quiet = (heartbeat * 5 / 4).saturating_sub(consensus.heard.silence());
        // The highest id first: of two candidates in one term it wins.
        let voters: Vec<NodeId> = standing.borrow().voters().rev().filter(|v| *v != lost).collect();
        let Some(rank) = voters.iter().position(|v| *v == consensus.local.node) else { return };
        let again = if attempt == 0 { Duration::ZERO } else { AGAIN };
        let turn = quiet.max(again) + STAGGER * rank as u32;
        let replaced = standing.wait_for(|s| s.leader.as_ref().is_some_and(|l| l.node != lost));
        if tokio::time::timeout(turn, replaced).await.is_ok() {
            return;
        }
        if !is_gone(consensus, lost) || consensus.heard.silence() < heartbeat {
            return;
        }
        tracing::info!(lost, attempt, "the leader's process is gone, electing another");
        if consensus.raft.trigger().elect(false).await.is_err() {
            return;
        }
    }
}

/// Stops Raft's clock while this node is the only member: nobody waits for its heartbeat and nobody
/// could be elected, and the clock is most of what an idle node costs.
pub(super) async fn rest_alone(consensus: Arc<Consensus>) {
    let mut standing = consensus.standing.subscribe();
    let mut resting = false;
    loop {
        let alone = {
            let now = standing.borrow_and_update();
            now.leads() && now.members.len() == 1
        };
        if alone != resting {
            consensus.raft.runtime_config().tick(!alone);
            resting = alone;
        }
        if standing.changed().await.is_err() {
            return;
        }
    }
}
