//! Taking a snapshot that the leader sends in chunks.
//!
//! One at a time, in memory, as the state itself is; a leader that begins anew, or another one,
//! replaces what there was.

use openraft::raft::SnapshotResponse;
use tokio::sync::Mutex;

use super::Consensus;
use crate::raft::snapshot::{Snapshot, SnapshotData};
use crate::raft::types::{LogId, SnapshotMeta, TypeConfig, Vote};
use crate::rpc::Failure;
use crate::rpc::frame::{HEADER, MAX_SNAPSHOT};
use crate::rpc::message::SnapshotChunk;

#[derive(Default)]
pub(super) struct Receiving {
    current: Mutex<Option<Incoming>>,
}

struct Incoming {
    vote: Vote,
    last: Option<LogId>,
    total: usize,
    data: Vec<u8>,
}

impl Consensus {
    /// The vote of this node after the chunk. After the last chunk the snapshot is installed.
    pub(super) async fn receive(&self, chunk: SnapshotChunk) -> Result<Vote, Failure> {
        let refused = |why: &str| Failure::Refused(format!("snapshot chunk: {why}"));
        // A snapshot that is taken counts for the leader as an answer does.
        self.heard.backs();
        let vote = Vote::from(chunk.vote);
        let last = chunk.last.map(LogId::from);
        let mine = self.vote();
        if mine > vote {
            return Ok(mine);
        }
        // What a leader owns is never newer than its own right to lead.
        if !vote.is_committed() || last.is_some_and(|last| last.leader_id > vote.leader_id) {
            return Err(refused("it is not the leader's to send"));
        }
        let total = usize::try_from(chunk.total).unwrap_or(usize::MAX);
        if total > MAX_SNAPSHOT + HEADER {
            return Err(refused("the snapshot is too large for this node"));
        }
        let mut current = self.receiving.current.lock().await;
        if chunk.offset == 0 {
            *current = Some(Incoming { vote, last, total, data: Vec::new() });
        }
        let fits = current.as_ref().is_some_and(|incoming| {
            (incoming.vote, incoming.last, incoming.total) == (vote, last, total)
                && incoming.data.len() as u64 == chunk.offset
                && incoming.data.len() + chunk.data.len() <= total
        });
        let Some(incoming) = current.as_mut().filter(|_| fits) else {
            *current = None;
            return Err(refused("it does not follow the one before"));
        };
        incoming.data.extend_from_slice(&chunk.data);
        if incoming.data.len() < total {
            return Ok(mine);
        }
        let data = std::mem::take(&mut incoming.data);
        *current = None;
        drop(current);
        let last_membership = chunk.membership.stored().map_err(|e| refused(&e))?;
        let snapshot = SnapshotData(data.into());
        snapshot.check().await.map_err(|e| refused(&e))?;
        tracing::info!(last = last.map(|l| l.index), bytes = total, "snapshot received");
        let meta = SnapshotMeta { last_log_id: last, last_membership };
        let installed = self.raft.install_full_snapshot(vote, Snapshot { meta, snapshot }).await;
        let SnapshotResponse::<TypeConfig> { vote } = installed.map_err(|e| Failure::Stopped(e.to_string()))?;
        Ok(vote)
    }
}
