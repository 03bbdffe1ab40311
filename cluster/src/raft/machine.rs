//! The state machine as openraft drives it: applies entries to the [`StateView`], keeps snapshots.
//!
//! The state lives in memory. What survives a restart is the snapshot, plus the log after it, which
//! openraft applies again up to the committed index; the group's leader decides about the rest.
//!
//! Invariants: an entry is applied once and in order; a snapshot that is being installed is durable
//! before its state is seen; a snapshot taken is the state after exactly one prefix of the log.
//!
//! It does not: know what a command does.

use std::io;
use std::sync::Arc;

use futures::{Stream, TryStreamExt};
use openraft::storage::{EntryResponder, RaftStateMachine};
use openraft::{EntryPayload, OptionalSend};

use super::command::Reply;
use super::snapshot::{Snapshot, SnapshotBuilder, SnapshotData};
use super::state::State;
use super::store::{Store, StoreError};
use super::types::{LogId, SnapshotMeta, StoredMembership, TypeConfig};
use super::view::StateView;

pub struct Machine {
    store: Store,
    view: Arc<StateView>,
    applied: Option<LogId>,
    membership: StoredMembership,
}

impl Machine {
    /// Restores the newest snapshot.
    pub async fn open(store: Store) -> Result<Self, StoreError> {
        let (meta, state) = match store.snapshot().await? {
            Some((meta, data)) => {
                let state = SnapshotData(data).decode().await.map_err(|why| StoreError::Corrupt {
                    path: store.path().to_owned(),
                    what: "snapshot".into(),
                    why,
                })?;
                (meta, state)
            }
            None => (SnapshotMeta::default(), State::default()),
        };
        let index = meta.last_log_id.as_ref().map_or(0, |id| id.index);
        Ok(Self {
            store,
            view: Arc::new(StateView::new(state, index)),
            applied: meta.last_log_id,
            membership: meta.last_membership,
        })
    }

    pub fn view(&self) -> Arc<StateView> {
        self.view.clone()
    }
}

impl RaftStateMachine<TypeConfig> for Machine {
    type SnapshotData = SnapshotData;
    type SnapshotBuilder = SnapshotBuilder;

    async fn applied_state(&mut self) -> io::Result<(Option<LogId>, StoredMembership)> {
        Ok((self.applied, self.membership.clone()))
    }

    async fn apply<Strm>(&mut self, mut entries: Strm) -> io::Result<()>
    where
        Strm: Stream<Item = io::Result<EntryResponder<TypeConfig>>> + Unpin + OptionalSend,
    {
        while let Some((entry, responder)) = entries.try_next().await? {
            let log_id = entry.log_id;
            let reply = match entry.payload {
                EntryPayload::Blank => Reply::Done,
                EntryPayload::Normal(command) => self.view.apply(log_id.index, &command),
                EntryPayload::Membership(membership) => {
                    self.membership = StoredMembership::new(Some(log_id), membership);
                    Reply::Done
                }
            };
            self.applied = Some(log_id);
            self.view.announce(log_id.index);
            if let Some(responder) = responder {
                responder.send(reply);
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder {
        let meta = SnapshotMeta { last_log_id: self.applied, last_membership: self.membership.clone() };
        // Encoded here, between two entries: later ones must not show.
        let data = SnapshotData::encode(self.view.clone()).await;
        SnapshotBuilder::new(self.store.clone(), meta, data)
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, snapshot: SnapshotData) -> io::Result<()> {
        let state = snapshot.decode().await.map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))?;
        self.store.save_snapshot(meta, snapshot.0).await?;
        self.applied = meta.last_log_id;
        self.membership = meta.last_membership.clone();
        self.view.install(meta.last_log_id.as_ref().map_or(0, |id| id.index), state);
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> io::Result<Option<Snapshot>> {
        let found = self.store.snapshot().await?;
        Ok(found.map(|(meta, data)| Snapshot { meta, snapshot: SnapshotData(data) }))
    }
}
