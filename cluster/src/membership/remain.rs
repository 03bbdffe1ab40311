//! A node with data: tells the leader when its address has changed, and notices when the group has
//! gone on without it.

use std::time::Duration;

use crate::consensus::Consensus;
use crate::rpc::message::Join;
use crate::rpc::{Destination, Lane, Request, Response};

/// When no leader has spoken for this time, a node asks around.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two attempts to tell a new address.
const SOON: Duration = Duration::from_millis(500);
const ASK: Duration = Duration::from_secs(2);

pub(super) async fn remain(consensus: &Consensus) {
    let mut standing = consensus.standing();
    loop {
        let now = standing.borrow_and_update().clone();
        let listed = now.members.get(&consensus.local.node).map(|m| m.address.as_str());
        let moved = listed.is_some_and(|listed| listed != consensus.local.address) && !now.leads();
        let silent = consensus.heard.silence() >= PATIENCE && !now.leads();
        if moved || silent {
            match ask_around(consensus).await {
                Some(found) if !found.member => {
                    consensus.fail(format!(
                        "node {} was taken out of cluster {} while it was away; delete {} to let this machine join as a \
                         new node",
                        consensus.local.node,
                        now.cluster.map_or_else(|| "?".to_owned(), |c| c.to_string()),
                        consensus.store.path().display()
                    ));
                    return;
                }
                Some(found) if moved => announce(consensus, &found.leader).await,
                Some(_) | None => {}
            }
        }
        let pause = if moved { SOON } else { PATIENCE };
        if tokio::time::timeout(pause, standing.changed()).await.is_ok_and(|changed| changed.is_err()) {
            return;
        }
    }
}

async fn announce(consensus: &Consensus, leader: &Destination) {
    let join = Join { node: consensus.local.node, address: consensus.local.address.clone() };
    tracing::info!(address = consensus.local.address, "telling the leader this node's new address");
    match consensus.transport.call(leader, Lane::Consensus, Request::Join(join), ASK * 2).await {
        Ok(Response::Failed(failure)) => tracing::warn!(%failure, "the new address was not taken"),
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "the new address was not taken"),
    }
}

struct Found {
    leader: Destination,
    /// Whether this node is a member, as the leader has it.
    member: bool,
}

/// Asks members and seeds for a leader that has a majority behind it.
async fn ask_around(consensus: &Consensus) -> Option<Found> {
    let members = consensus.standing.borrow().members.clone();
    let known = members.iter().filter(|(node, _)| **node != consensus.local.node);
    let mut ask: Vec<String> = known.map(|(_, m)| m.address.clone()).collect();
    ask.extend(consensus.settings.formation.seeds().iter().cloned());
    ask.retain(|address| *address != consensus.local.address);
    ask.sort();
    ask.dedup();
    let probe = |to: Destination| async move {
        match consensus.transport.call(&to, Lane::Consensus, Request::Probe, ASK).await {
            Ok(Response::Probed(probed)) if probed.cluster == consensus.local.cluster() => Some(probed),
            _ => None,
        }
    };
    for address in ask {
        let Some((node, address)) = probe(Destination::address(address)).await.and_then(|p| p.leader) else {
            continue;
        };
        let leader = Destination::node(node, address);
        // An index is given out only after a majority has confirmed the leader.
        let confirmed = consensus.transport.call(&leader, Lane::Consensus, Request::ReadIndex, ASK).await;
        if matches!(confirmed, Ok(Response::ReadIndex { .. }))
            && let Some(probed) = probe(leader.clone()).await
        {
            return Some(Found { leader, member: probed.member });
        }
    }
    None
}
