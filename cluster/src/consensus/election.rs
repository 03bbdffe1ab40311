//! A new leader at once, when the process of the old one is known to be gone.
//!
//! Raft alone waits until the leader's right has run out, because silence proves nothing. A port
//! that refuses does: then the voters elect a successor at once, one after the other so that they do
//! not disturb each other, and each gives its vote although the old leader's right still stands, if
//! it sees the same. Safety does not rest on that right: a leader acts only with a majority.

use std::sync::Arc;
use std::time::Duration;

use super::Consensus;
use crate::raft::NodeId;
use crate::rpc::PeerEvent;

/// Between the attempts of two voters.
const STAGGER: Duration = Duration::from_millis(120);
/// Before the same voter tries again.
const AGAIN: Duration = Duration::from_millis(400);
/// Attempts; after them the usual timeouts do.
const ATTEMPTS: u32 = 5;
/// A voter that is asked for its vote looks for itself, for this long.
const LOOK: Duration = Duration::from_millis(150);

/// Whether the leader that this node follows is gone, by its own evidence. `candidate` asks.
pub(super) async fn leader_is_gone(consensus: &Consensus, candidate: NodeId) -> bool {
    let standing = consensus.standing.borrow().clone();
    let Some(leader) = standing.leader.as_ref().map(|l| l.node) else { return false };
    if leader == consensus.local.node || leader == candidate {
        return false;
    }
    if consensus.presence.is_gone(leader) {
        return true;
    }
    match standing.destination(leader) {
        Some(to) => consensus.presence.ask_whether_gone(&to, LOOK).await,
        None => false,
    }
}

pub(super) async fn hurry(consensus: Arc<Consensus>) {
    let mut events = consensus.presence.events();
    let mut standing = consensus.standing.subscribe();
    loop {
        let lost = standing.borrow_and_update().leader.as_ref().map(|l| l.node);
        if let Some(lost) = lost.filter(|l| consensus.presence.is_gone(*l)) {
            elect(&consensus, lost).await;
        }
        tokio::select! {
            event = events.recv() => match event {
                Ok(PeerEvent::Gone { .. }) | Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => {}
                Ok(_) => continue,
                Err(tokio::sync::broadcast::error::RecvError::Closed) => return,
            },
            changed = standing.changed() => if changed.is_err() { return },
        }
    }
}

/// Tries to replace the leader `lost`, until there is another one or it is back.
async fn elect(consensus: &Consensus, lost: NodeId) {
    let mut standing = consensus.standing.subscribe();
    for attempt in 0..ATTEMPTS {
        let now = standing.borrow().clone();
        // The highest id first: of two candidates in one term it wins.
        let rank = now.voters().rev().filter(|v| *v != lost).position(|v| v == consensus.local.node);
        let Some(rank) = rank else { return };
        let turn = if attempt == 0 { STAGGER * rank as u32 } else { AGAIN + STAGGER * rank as u32 };
        let replaced = standing.wait_for(|s| s.leader.as_ref().is_some_and(|l| l.node != lost));
        if tokio::time::timeout(turn, replaced).await.is_ok() || !consensus.presence.is_gone(lost) {
            return;
        }
        tracing::info!(lost, attempt, "the leader's process is gone, electing another");
        if consensus.raft.trigger().elect(false).await.is_err() {
            return;
        }
    }
}
