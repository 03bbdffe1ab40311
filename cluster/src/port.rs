//! The cluster as the actors see it: the implementation of [`ClusterPort`].
//!
//! Invariant: nothing here waits for consensus except [`ClusterPort::settled`], [`ClusterPort::publish_tasks`],
//! [`ClusterPort::confirm_signals`] and what changes schema histories; [`ClusterPort::lease_held`] is a clock read.
//!
//! It does not: hold any state of its own.

mod histories;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value as Json;
use thalweg_actors::port::{ClusterPort, Epoch, KeptHistory, OffsetCommit, UnitId, UnitStatus};
use thalweg_config::Properties;
use thalweg_core::error::{Error, ErrorKind, Phase};
use thalweg_core::position::{OffsetMap, OffsetReader, SourcePartition};
use thalweg_core::signal::{Mark, REST, Received, Signal};

use crate::commit::Coalescer;
use crate::lease::LeaseGuard;
use crate::raft::command::{CommandV1, HistoryChange, HistoryText, Refusal};
use crate::raft::{ProposeError, Proposer, Reply, StateView, Unit};

pub struct NodePort {
    pub group: Arc<str>,
    pub view: Arc<StateView>,
    pub proposer: Arc<dyn Proposer>,
    pub reports: Arc<Coalescer>,
    pub guard: Arc<LeaseGuard>,
    /// `topic.tracking.enable`.
    pub topic_tracking: bool,
}

#[async_trait]
impl ClusterPort for NodePort {
    fn commit(&self, commit: OffsetCommit) {
        self.reports.commit(commit);
    }

    async fn settled(&self, unit: &UnitId) -> Result<(), Error> {
        self.reports.settled(unit).await
    }

    fn status(&self, unit: &UnitId, epoch: Epoch, status: UnitStatus) {
        self.reports.status(unit, epoch, status);
    }

    fn released(&self, unit: &UnitId, epoch: Epoch) {
        self.reports.released(unit, epoch);
    }

    fn tasks(&self, connector: &Arc<str>, config_revision: u64) -> Vec<Properties> {
        let state = self.view.read();
        let known = state.connectors.get(connector).filter(|known| known.tasks_from == config_revision);
        known.map(|known| known.tasks.clone()).unwrap_or_default()
    }

    async fn publish_tasks(
        &self,
        connector: &Arc<str>,
        epoch: Epoch,
        config_revision: u64,
        tasks: Vec<Properties>,
    ) -> Result<(), Error> {
        {
            let state = self.view.read();
            if let Some(known) = state.connectors.get(connector)
                && known.tasks_from == config_revision
                && known.tasks == tasks
            {
                return Ok(());
            }
        }
        let command = CommandV1::ReplaceTasks { name: connector.clone(), epoch: epoch.0, config_revision, tasks };
        match self.proposer.propose(command.into()).await {
            Ok(Reply::TasksReplaced { .. }) => Ok(()),
            Ok(Reply::Refused(why)) => Err(publish_refused(connector, &why)),
            Ok(other) => {
                let message = format!("publishing the tasks of connector {connector} was answered with {other:?}");
                Err(Error::new(ErrorKind::Internal, Phase::Start, message))
            }
            Err(error) => {
                let kind = match error {
                    ProposeError::NoLeader | ProposeError::QuorumLost | ProposeError::Unknown => ErrorKind::QuorumLost,
                    ProposeError::TooLarge { .. } => ErrorKind::Config,
                    ProposeError::FeatureLevel { .. } | ProposeError::Failed(_) => ErrorKind::Storage,
                };
                let message = format!("the tasks of connector {connector} could not be published: {error}");
                Err(Error::new(kind, Phase::Start, message))
            }
        }
    }

    fn signals(&self, connector: &Arc<str>, after: i64) -> Vec<Received> {
        let from = u64::try_from(after).map_or(0, |after| after.saturating_add(1));
        let state = self.view.read();
        let waiting = state.signals.get(connector).into_iter().flat_map(|signals| signals.waiting.range(from..));
        waiting
            .filter_map(|(number, signal)| {
                // It was checked before it was taken.
                let parsed = Signal::from_json(signal.text.0.as_bytes()).ok()?;
                Some(Received { signal: Some(parsed), mark: mark(*number, signal.given_ms) })
            })
            .collect()
    }

    fn keeps_signals(&self, connector: &Arc<str>, through: i64) -> bool {
        let Ok(through) = u64::try_from(through) else { return false };
        let state = self.view.read();
        state.signals.get(connector).is_some_and(|signals| signals.waiting.range(..=through).next().is_some())
    }

    async fn confirm_signals(&self, unit: &UnitId, epoch: Epoch, through: i64) -> Result<(), Error> {
        let Ok(through) = u64::try_from(through) else { return Ok(()) };
        let command = CommandV1::ConfirmSignals { unit: Unit::from(unit), epoch: epoch.0, through };
        let (kind, why) = match self.proposer.propose(command.into()).await {
            Ok(Reply::Refused(why)) => (ErrorKind::Fenced, why.to_string()),
            Ok(_) => return Ok(()),
            Err(error) => (ErrorKind::QuorumLost, error.to_string()),
        };
        Err(Error::new(kind, Phase::Stream, format!("signals of {unit} could not be confirmed: {why}")))
    }

    fn history(&self, connector: &Arc<str>, partition: &SourcePartition) -> KeptHistory {
        histories::kept(&self.view, connector, partition)
    }

    async fn append_history(
        &self,
        unit: &UnitId,
        epoch: Epoch,
        partition: &SourcePartition,
        text: Arc<str>,
    ) -> Result<(), Error> {
        let change = HistoryChange::Append(HistoryText(text));
        histories::Writer::new(self, unit, epoch, partition).change(change).await
    }

    async fn fold_history(
        &self,
        unit: &UnitId,
        epoch: Epoch,
        partition: &SourcePartition,
        (count, since): (u64, u64),
        texts: Vec<Arc<str>>,
    ) -> Result<(), Error> {
        histories::Writer::new(self, unit, epoch, partition).fold(count, since, texts).await
    }

    fn topic_used(&self, connector: &Arc<str>, topic: &Arc<str>) {
        let known = |topics: &std::collections::BTreeSet<Arc<str>>| topics.contains(topic);
        if self.topic_tracking && !self.view.read().topics.get(connector).is_some_and(known) {
            self.reports.topic_used(connector, topic);
        }
    }

    fn offsets(&self, connector: &Arc<str>) -> Arc<dyn OffsetReader> {
        Arc::new(StoredOffsets { connector: connector.clone(), view: self.view.clone() })
    }

    fn lease_held(&self) -> bool {
        self.guard.held()
    }

    async fn lease_lost(&self) {
        self.guard.lost().await;
    }

    fn group(&self) -> &Arc<str> {
        &self.group
    }
}

/// Numbers rise over the whole cluster, so that no series is ever begun again.
fn mark(index: u64, given_ms: u64) -> Mark {
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    Mark { channel: REST, series: "raft".into(), number: number(index), time_ms: number(given_ms) }
}

/// A stale owner has to stop; an owner whose plan was overtaken plans again.
fn publish_refused(connector: &Arc<str>, why: &Refusal) -> Error {
    let kind = match why {
        Refusal::StaleEpoch(_) | Refusal::UnknownConnector(_) => ErrorKind::Fenced,
        Refusal::StaleRevision { .. } | Refusal::NotStarted(_) => ErrorKind::SourceBusy,
        Refusal::TooLarge { .. } | Refusal::Invalid(_) => ErrorKind::Config,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, Phase::Start, format!("the tasks of connector {connector} were not taken: {why}"))
}

/// Stored positions of one connector, read from the applied state of this node.
struct StoredOffsets {
    connector: Arc<str>,
    view: Arc<StateView>,
}

impl OffsetReader for StoredOffsets {
    fn offset(&self, partition: &SourcePartition) -> Option<OffsetMap> {
        let text = self.view.read().offset(&self.connector, partition.canonical())?.to_owned();
        match serde_json::from_str(&text) {
            Ok(Json::Object(map)) if !map.is_empty() => Some(map),
            // What an import or a deletion left behind says nothing: as if there were no row.
            Ok(Json::Null | Json::Object(_)) => None,
            Ok(_) | Err(_) => {
                tracing::error!(
                    connector = %self.connector,
                    partition = ?partition,
                    "the stored position is no JSON object and counts as missing; correct it with PATCH offsets"
                );
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
