//! Schema histories of a task, wherever they are kept: in a file or in memory, in Kafka, or by the cluster.
//!
//! Invariant: what the cluster keeps is changed under the epoch of the task, so that a task that was replaced adds
//! nothing to it any more.
//!
//! It does not: look into the texts.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use thalweg_core::delivery::ProducerFactory;
use thalweg_core::error::{Error, ErrorKind, Phase, Result};
use thalweg_core::position::SourcePartition;
use thalweg_core::relational::history::{
    HistoryConfig, HistoryPlace, HistoryReader, HistoryStore, HistoryStores, LocalStores,
};

use crate::port::{ClusterPort, Epoch, UnitId};

/// Bytes of records that are handed over together.
const HANDY: usize = 1 << 20;

pub(crate) struct TaskHistories {
    /// Lives as long as the placement of the task.
    pub(crate) local: LocalStores,
    pub(crate) producers: Arc<dyn ProducerFactory>,
    pub(crate) port: Arc<dyn ClusterPort>,
    pub(crate) unit: UnitId,
    pub(crate) epoch: Epoch,
}

impl HistoryStores for TaskHistories {
    fn open(&self, config: &HistoryConfig, partition: &SourcePartition) -> Result<Box<dyn HistoryStore>> {
        match config.place {
            HistoryPlace::File | HistoryPlace::Memory => self.local.open(config, partition),
            HistoryPlace::Kafka => self.producers.history(&config.topic),
            HistoryPlace::Replicated => Ok(Box::new(ReplicatedHistory {
                port: self.port.clone(),
                unit: self.unit.clone(),
                epoch: self.epoch,
                partition: partition.clone(),
                folded: 0,
            })),
        }
    }
}

/// The history of one partition in the state that all nodes have.
struct ReplicatedHistory {
    port: Arc<dyn ClusterPort>,
    unit: UnitId,
    epoch: Epoch,
    partition: SourcePartition,
    /// Of what was read last.
    folded: u64,
}

fn text(bytes: &Bytes) -> Result<Arc<str>> {
    let no_text =
        |e| Error::new(ErrorKind::Internal, Phase::Start, "a record of a schema history is no text").because(&e);
    std::str::from_utf8(bytes).map(Arc::from).map_err(no_text)
}

#[async_trait]
impl HistoryStore for ReplicatedHistory {
    fn describe(&self) -> String {
        format!("the cluster's state for {} {}", self.unit, self.partition.original())
    }

    async fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    async fn append(&mut self, record: Bytes) -> Result<()> {
        self.port.append_history(&self.unit, self.epoch, &self.partition, text(&record)?).await
    }

    async fn read(&mut self) -> Result<Box<dyn HistoryReader>> {
        let kept = self.port.history(self.unit.connector(), &self.partition);
        self.folded = kept.folded;
        Ok(Box::new(Reader(kept.texts.into())))
    }

    fn compacts(&self) -> bool {
        true
    }

    async fn replace(&mut self, count: usize, texts: Vec<Bytes>) -> Result<()> {
        let texts: Result<Vec<Arc<str>>> = texts.iter().map(text).collect();
        let first = (count as u64, self.folded);
        self.port.fold_history(&self.unit, self.epoch, &self.partition, first, texts?).await
    }
}

/// Shares the texts with the state and copies a portion of them at a time.
struct Reader(VecDeque<Arc<str>>);

#[async_trait]
impl HistoryReader for Reader {
    async fn next(&mut self) -> Result<Option<Vec<Bytes>>> {
        let (mut records, mut bytes) = (Vec::new(), 0);
        while bytes < HANDY
            && let Some(text) = self.0.pop_front()
        {
            bytes += text.len();
            records.push(Bytes::copy_from_slice(text.as_bytes()));
        }
        Ok(Some(records).filter(|records| !records.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use thalweg_config::{OptionTable, Properties};
    use thalweg_core::relational::history::{HISTORY, HISTORY_PREFIXES};

    use super::*;
    use crate::support::Stage;

    static TABLE: OptionTable =
        OptionTable { title: "", options: HISTORY, open_prefixes: &HISTORY_PREFIXES, cross_checks: &[] };

    fn config(pairs: &[(&str, &str)]) -> HistoryConfig {
        let properties: Properties = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        HistoryConfig::new(&TABLE.validate(&properties).settings, &properties)
    }

    fn of_task(stage: &Stage, epoch: u64) -> TaskHistories {
        let task = stage.task(epoch);
        TaskHistories {
            local: LocalStores::default(),
            producers: Arc::new(stage.broker.producers()),
            port: stage.cluster.member(),
            unit: task.unit,
            epoch: task.epoch,
        }
    }

    async fn texts(store: &mut Box<dyn HistoryStore>) -> Vec<Vec<Bytes>> {
        let mut reader = store.read().await.unwrap();
        let mut portions = Vec::new();
        while let Some(records) = reader.next().await.unwrap() {
            portions.push(records);
        }
        portions
    }

    #[tokio::test]
    async fn a_history_without_a_place_is_kept_by_the_cluster_and_belongs_to_the_present_owner() {
        let stage = Stage::of(0);
        let partition = SourcePartition::new([("server", "s1")]);
        let mut old = of_task(&stage, 5).open(&config(&[]), &partition).unwrap();
        old.prepare().await.unwrap();
        assert!(texts(&mut old).await.is_empty());
        for text in ["a", "b", "c"] {
            old.append(text.into()).await.unwrap();
        }
        let large = "x".repeat(HANDY);
        old.append(large.clone().into()).await.unwrap();
        old.append("d".into()).await.unwrap();
        let mut new = of_task(&stage, 6).open(&config(&[]), &partition).unwrap();
        let portions = texts(&mut new).await;
        assert_eq!(portions.iter().map(Vec::len).collect::<Vec<_>>(), [4, 1], "portions are bounded");
        assert_eq!(old.append("e".into()).await.unwrap_err().kind, ErrorKind::Fenced);
        assert!(new.compacts());
        new.replace(4, vec!["abc".into()]).await.unwrap();
        assert_eq!(texts(&mut new).await.concat(), ["abc", "d"]);
        assert!(new.append(Bytes::from_static(&[0xff])).await.is_err(), "no text");
    }

    #[tokio::test]
    async fn memory_outlives_an_opening_and_kafka_is_the_producers_matter() {
        let stage = Stage::of(0);
        let histories = of_task(&stage, 5);
        let partition = SourcePartition::new([("server", "s1")]);
        let memory = config(&[("schema.history.internal", "io.debezium.relational.history.MemorySchemaHistory")]);
        histories.open(&memory, &partition).unwrap().append("a".into()).await.unwrap();
        assert_eq!(texts(&mut histories.open(&memory, &partition).unwrap()).await.concat(), ["a"]);
        let kafka = config(&[("schema.history.internal.kafka.topic", "h")]);
        let refused = histories.open(&kafka, &partition).map(|_| ()).unwrap_err();
        assert_eq!(refused.message, "this broker has no schema histories");
    }
}
