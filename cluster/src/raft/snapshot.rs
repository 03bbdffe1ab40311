//! A snapshot: the encoded state after a prefix of the log.
//!
//! Stored and sent as one frame, so that every reader checks length and checksum of the whole. The
//! body is the encoded [`State`], which leads with its own format.
//!
//! It does not: know which prefix it covers; that is in the meta data beside it.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use openraft::RaftSnapshotBuilder;

use super::state::State;
use super::store::Store;
use super::types::{LeaderId, Member, SnapshotMeta, TypeConfig};
use super::unit::NodeId;
use super::view::StateView;
use crate::rpc::frame::{self, Kind, MAX_SNAPSHOT};

pub type Snapshot = openraft::Snapshot<LeaderId, NodeId, Member, SnapshotData>;

/// The whole frame.
#[derive(Clone)]
pub struct SnapshotData(pub Bytes);

impl std::fmt::Debug for SnapshotData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SnapshotData({} bytes)", self.0.len())
    }
}

impl SnapshotData {
    /// Encodes what `view` shows now, off the runtime's workers.
    pub(super) async fn encode(view: Arc<StateView>) -> io::Result<Self> {
        let encoded =
            tokio::task::spawn_blocking(move || frame::encode(Kind::Snapshot, &*view.read(), MAX_SNAPSHOT)).await;
        match encoded.map_err(io::Error::other)? {
            Ok(frame) => Ok(Self(frame.into())),
            Err(e) => Err(io::Error::other(e)),
        }
    }

    /// Whether the frame is whole and unharmed.
    pub(crate) async fn check(&self) -> Result<(), String> {
        let frame = self.0.clone();
        let checked =
            tokio::task::spawn_blocking(move || frame::body(Kind::Snapshot, &frame, MAX_SNAPSHOT).map(|_| ())).await;
        checked.map_err(|e| e.to_string())?.map_err(|e| e.to_string())
    }

    /// Checks and decodes, off the runtime's workers.
    pub(super) async fn decode(&self) -> Result<State, String> {
        let frame = self.0.clone();
        let decoded = tokio::task::spawn_blocking(move || frame::decode(Kind::Snapshot, &frame, MAX_SNAPSHOT)).await;
        decoded.map_err(|e| e.to_string())?.map_err(|e| e.to_string())
    }
}

/// Holds the state as it was when the snapshot was asked for.
pub struct SnapshotBuilder {
    store: Store,
    meta: SnapshotMeta,
    data: Option<io::Result<SnapshotData>>,
}

impl SnapshotBuilder {
    pub(super) fn new(store: Store, meta: SnapshotMeta, data: io::Result<SnapshotData>) -> Self {
        Self { store, meta, data: Some(data) }
    }
}

impl RaftSnapshotBuilder<TypeConfig> for SnapshotBuilder {
    type SnapshotData = SnapshotData;

    async fn build_snapshot(&mut self) -> io::Result<Snapshot> {
        let data = self.data.take().unwrap_or_else(|| Err(io::Error::other("a snapshot builder builds once")))?;
        self.store.save_snapshot(&self.meta, data.0.clone()).await?;
        tracing::debug!(bytes = data.0.len(), "snapshot taken");
        Ok(Snapshot { meta: self.meta.clone(), snapshot: data })
    }
}
