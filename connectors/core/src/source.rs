//! The source SPI: what a connector crate offers to the runtime.
//!
//! A [`Connector`] describes a class and plans tasks. A [`SourceTask`] owns one or more source
//! partitions; each opens at a stored offset as a [`PartitionReader`] that yields batches.
//! Invariants the runtime relies on: planning is deterministic; `next` is cancel-safe (dropping the
//! future loses nothing) and never blocks a worker thread; every record carries its position.
//!
//! It does not know how records are converted, sent, or committed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use thalweg_config::{OptionTable, Properties, Validation};
use tokio_util::sync::CancellationToken;

use crate::error::Result;
use crate::position::{OffsetReader, Position, PositionCodec, SourcePartition};
use crate::progress::PartitionProgress;
use crate::record::Record;
use crate::relational::history::HistoryStores;
use crate::signal::{Channels, Inbox};
use crate::transform::TransformClass;

/// Names under which a class is known.
#[derive(Debug, Clone, Copy)]
pub struct Plugin {
    /// Full class name, e.g. `io.debezium.connector.mongodb.MongoDbConnector`.
    pub class: &'static str,
    /// Further accepted names, e.g. `MongoDb`, `mongodb`.
    pub aliases: &'static [&'static str],
    pub version: &'static str,
}

#[async_trait]
pub trait Connector: Send + Sync + 'static {
    fn plugin(&self) -> &Plugin;

    /// The connector's own options (framework options are the runtime's).
    fn options(&self) -> &'static OptionTable;

    /// Transforms that are only for the records of this connector. Every chain of the node knows them.
    fn transforms(&self) -> &'static [TransformClass] {
        &[]
    }

    /// Checks a configuration without I/O: the table, then the connector's own rules.
    fn validate(&self, config: &Properties) -> Validation {
        self.options().validate(config)
    }

    /// Checks against the live source, attaching errors to `validation`; returns what would run.
    /// Finishes within `deadline`. Called only if `validate` found no error that forbids connecting.
    async fn check(&self, config: &Properties, validation: &mut Validation, deadline: Duration) -> CheckReport;

    /// At most `max` task configurations, deterministic for equal input and equal topology.
    ///
    /// `present` are those that were planned from this configuration before, references unresolved; none:
    /// there are no such tasks. A task that gets an equal configuration at its place goes on undisturbed;
    /// every other one is stopped, and started anew.
    async fn plan_tasks(&self, config: &Properties, max: usize, present: &[Properties]) -> Result<Vec<Properties>>;

    /// Resolves when the set of tasks should be planned again (a shard came or went). Pending for
    /// ever where that cannot happen.
    async fn replan_wanted(&self, config: &Properties, cancel: CancellationToken);

    fn codec(&self) -> &dyn PositionCodec;

    /// Whether a task of this configuration can ever look for a position of `partition`, whose shape is
    /// right. Asked before somebody's position is stored there.
    ///
    /// # Errors
    /// Why none can; for the answer of the REST call that brought it.
    fn check_owner(&self, _partition: &SourcePartition, _config: &Properties) -> Result<(), String> {
        Ok(())
    }

    /// Opens a task. No lasting connection is needed yet; partitions connect when they open.
    fn open(&self, task: TaskSpec) -> Result<Box<dyn SourceTask>>;
}

/// What `thalweg check` shows beside errors and warnings.
#[derive(Debug, Clone, Default)]
pub struct CheckReport {
    /// Facts about the source, e.g. `("server", "MongoDB 6.0.5, replica set rs0")`.
    pub facts: Vec<(String, String)>,
    /// One line per task that would run.
    pub tasks: Vec<String>,
    /// What is missing or doubtful but does not forbid a start.
    pub warnings: Vec<String>,
}

/// One task as assigned to this node.
#[derive(Debug, Clone)]
pub struct TaskSpec {
    pub connector: Arc<str>,
    pub task: u32,
    /// The task's configuration with references resolved.
    pub config: Properties,
    /// Unique per run; the value of the header `__debezium.context.runId`.
    pub run_id: Arc<str>,
}

#[async_trait]
pub trait SourceTask: Send + Sync {
    /// The partitions of this task, disjoint from those of other tasks, in a fixed order.
    fn partitions(&self) -> Vec<SourcePartition>;

    /// Where the task listens for signals; `None`: it knows none.
    fn channels(&self) -> Option<Channels> {
        None
    }

    /// Whether its partitions follow signals. If not, it only confirms those that every task has to.
    fn follows_signals(&self) -> bool {
        true
    }

    /// Whether other tasks of the connector follow the same signals.
    fn shares_signals(&self) -> bool {
        false
    }

    /// Opens one partition at what is stored for it. Snapshot or stream is the reader's decision.
    async fn open(&self, partition: &SourcePartition, context: PartitionContext) -> Result<Box<dyn PartitionReader>>;
}

/// What the runtime lends to a reader.
#[derive(Clone)]
pub struct PartitionContext {
    pub offsets: Arc<dyn OffsetReader>,
    /// Cancelled when the generation ends; background fetches must end too.
    pub cancel: CancellationToken,
    /// Shared with status, metrics and the progress watch.
    pub progress: Arc<PartitionProgress>,
    /// Where histories of structures are kept.
    pub histories: Arc<dyn HistoryStores>,
    /// Signals from outside of the source; outlives generations.
    pub signals: Inbox,
}

#[async_trait]
pub trait PartitionReader: Send {
    /// The next batch. Waits while the source is quiet, but returns at least a batch with
    /// `progress` about every second when the position moves without events. Cancel-safe.
    ///
    /// If nothing was stored for the partition, the first batch has no records and its `progress`
    /// is where the reader starts: it is stored before the first message is sent, so that a
    /// successor never starts from a later "now". If a snapshot starts there, its offset has the
    /// member [`UNDELIVERED`](crate::position::UNDELIVERED).
    async fn next(&mut self) -> Result<Batch>;

    /// Whether nothing follows the last batch (a snapshot without a stream, and nothing left to wait
    /// for). The partition then ends for good, with everything delivered and committed.
    fn finished(&self) -> bool {
        false
    }

    /// Everything up to `position` is durable in Kafka and in the offset store.
    fn durable(&mut self, _position: &Position) {}

    /// Releases connections; gives up after `deadline`.
    async fn close(self: Box<Self>, deadline: Duration);
}

/// Records in order, and the position after them.
#[derive(Debug, Default)]
pub struct Batch {
    pub records: Vec<Record>,
    /// Source events in it (a delete and its tombstone are one).
    pub events: usize,
    /// Approximate size in memory: what the bounded channel counts.
    pub bytes: usize,
    /// Position behind the last record, when it moved further than the last record's own (filtered
    /// events, quiet progress). Takes its place in the sequence behind the records.
    pub progress: Option<Position>,
}
