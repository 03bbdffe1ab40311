//! Schema histories in the replicated state: read from this node, written through the log.
//!
//! Invariant: a change is known to this node when it is confirmed, so that a task that opens its history anew finds
//! what it has added. What former owners added is there before a task is placed.

use std::sync::Arc;
use std::time::Duration;

use thalweg_actors::port::{Epoch, KeptHistory, UnitId};
use thalweg_core::error::{Error, ErrorKind, Phase};
use thalweg_core::position::SourcePartition;

use super::NodePort;
use crate::raft::command::{CommandV1, HISTORIES_LEVEL, HistoryChange, HistoryText, Refusal};
use crate::raft::state::MAX_HISTORY_TEXT;
use crate::raft::{ProposeError, Reply, StateView, Unit};

/// An applied change comes to this node within this, unless it is cut off.
const HEARD: Duration = Duration::from_secs(5);

pub(super) fn kept(view: &StateView, connector: &Arc<str>, partition: &SourcePartition) -> KeptHistory {
    let state = view.read();
    let history = state.histories.get(connector).and_then(|h| h.partitions.get(&**partition.canonical()));
    history.map_or_else(KeptHistory::default, |history| KeptHistory {
        texts: history.texts.iter().map(|text| text.0.clone()).collect(),
        folded: history.folded,
    })
}

/// Changes the history of one partition for one owner.
pub(super) struct Writer<'a> {
    port: &'a NodePort,
    unit: &'a UnitId,
    epoch: Epoch,
    partition: &'a SourcePartition,
}

impl<'a> Writer<'a> {
    pub(super) fn new(port: &'a NodePort, unit: &'a UnitId, epoch: Epoch, partition: &'a SourcePartition) -> Self {
        Self { port, unit, epoch, partition }
    }

    /// As many entries as the texts need; the last one makes them count.
    pub(super) async fn fold(&self, count: u64, since: u64, texts: Vec<Arc<str>>) -> Result<(), Error> {
        let mut is_first = true;
        for texts in portions(texts) {
            self.change(HistoryChange::Stage { is_first, texts }).await?;
            is_first = false;
        }
        self.change(HistoryChange::Fold { count, since }).await
    }

    pub(super) async fn change(&self, change: HistoryChange) -> Result<(), Error> {
        self.raise_level().await?;
        let command = CommandV1::ChangeHistory {
            unit: Unit::from(self.unit),
            epoch: self.epoch.0,
            partition: self.partition.canonical().to_string(),
            change,
        };
        if let Reply::HistoryChanged { index } = self.propose(command).await? {
            self.port.view.wait_for(index).await;
        }
        Ok(())
    }

    /// The first history of a cluster needs a level that all its nodes have to know.
    async fn raise_level(&self) -> Result<(), Error> {
        let is_low = || self.port.view.read().feature_level < HISTORIES_LEVEL;
        let mut changes = self.port.view.changes();
        if !is_low() {
            return Ok(());
        }
        self.propose(CommandV1::SetFeatureLevel { level: HISTORIES_LEVEL }).await?;
        let known = async { while is_low() && changes.changed().await.is_ok() {} };
        // A node that does not hear of it is told by the next proposal.
        let _ = tokio::time::timeout(HEARD, known).await;
        Ok(())
    }

    async fn propose(&self, command: CommandV1) -> Result<Reply, Error> {
        let (kind, why) = match self.port.proposer.propose(command.into()).await {
            Ok(Reply::Refused(why)) => (refused(&why), why.to_string()),
            Ok(reply) => return Ok(reply),
            Err(error) => (not_written(&error), error.to_string()),
        };
        let message =
            format!("the schema history of {} could not be written into the state that the nodes share", self.unit);
        Err(Error::new(kind, Phase::Start, format!("{message}: {why}")))
    }
}

fn refused(why: &Refusal) -> ErrorKind {
    match why {
        Refusal::StaleEpoch(_) | Refusal::UnknownConnector(_) => ErrorKind::Fenced,
        Refusal::StaleRevision { .. } => ErrorKind::SourceBusy,
        // Nodes of an earlier release, or a history that is full.
        _ => ErrorKind::Config,
    }
}

fn not_written(error: &ProposeError) -> ErrorKind {
    match error {
        ProposeError::NoLeader | ProposeError::QuorumLost | ProposeError::Unknown => ErrorKind::QuorumLost,
        // The level was raised, and this node has not heard of it yet.
        ProposeError::FeatureLevel { .. } => ErrorKind::QuorumLost,
        ProposeError::TooLarge { .. } => ErrorKind::Config,
        ProposeError::Failed(_) => ErrorKind::Storage,
    }
}

/// In pieces that fit into an entry of the log; at least one, which may be empty.
fn portions(texts: Vec<Arc<str>>) -> Vec<Vec<HistoryText>> {
    let (mut portions, mut bytes) = (vec![Vec::new()], 0);
    for text in texts {
        if bytes + text.len() > MAX_HISTORY_TEXT && bytes > 0 {
            portions.push(Vec::new());
            bytes = 0;
        }
        bytes += text.len();
        if let Some(last) = portions.last_mut() {
            last.push(HistoryText(text));
        }
    }
    portions
}
