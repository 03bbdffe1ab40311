//! What the actors need from the cluster and what they tell it: the only seam between the two.
//!
//! Invariants: everything a unit reports carries its epoch, and the cluster drops what is stale;
//! nothing here blocks or waits for consensus except where it says so.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use thalweg_config::Properties;
use thalweg_core::Error;
use thalweg_core::delivery::DeliveryMode;
use thalweg_core::position::{OffsetMap, OffsetReader, SourcePartition};
use thalweg_core::signal::Received;

/// The Raft index of the entry that made an assignment: unique and rising over the whole cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// What can be placed on a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnitId {
    /// The connector object: plans tasks and watches whether they must be planned again.
    Connector(Arc<str>),
    Task(Arc<str>, u32),
}

impl UnitId {
    pub fn connector(&self) -> &Arc<str> {
        match self {
            Self::Connector(name) | Self::Task(name, _) => name,
        }
    }
}

/// As logs and messages name it: `connector shop`, `task shop-0`.
impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connector(name) => write!(f, "connector {name}"),
            Self::Task(name, task) => write!(f, "task {name}-{task}"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    Started,
    Paused,
    /// Connector units only; a stopped connector has no tasks.
    Stopped,
}

/// A unit that this node is to run, as the applied state says.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    pub unit: UnitId,
    pub epoch: Epoch,
    pub target: Target,
    /// Raw configuration (references unresolved): the connector's, or the task's own.
    pub config: Properties,
    /// Revision of the connector configuration; changes restart a connector unit in place.
    pub config_revision: u64,
    /// Rises when REST asks for a restart of this unit.
    pub restart: u64,
    /// The placement is being taken back: drain, commit, report [`ClusterPort::released`].
    pub revoked: bool,
    /// `plain` mode only: no record is sent before this instant (a lost owner's last sends must
    /// have ended).
    pub send_after: Option<Instant>,
    pub mode: DeliveryMode,
}

/// Reported states; spelled as Kafka Connect does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnitState {
    Unassigned,
    Running,
    Paused,
    Stopped,
    Failed,
    Restarting,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitStatus {
    pub state: UnitState,
    /// Error chain, starts with an exception-like class name, then advice. Always there for `Failed`.
    pub trace: Option<String>,
}

/// One partition's position after a durable prefix.
#[derive(Debug, Clone)]
pub struct OffsetCommit {
    pub unit: UnitId,
    pub epoch: Epoch,
    pub partition: SourcePartition,
    pub offset: OffsetMap,
    /// Rises with every commit of this unit and partition; the state machine refuses others.
    pub seq: u64,
}

/// A schema history as the cluster keeps it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptHistory {
    /// In their order.
    pub texts: Vec<Arc<str>>,
    /// Says since when its first texts stand for others; another one after each time.
    pub folded: u64,
}

#[async_trait]
pub trait ClusterPort: Send + Sync + 'static {
    /// Queues a commit; coalesced per node and proposed at least every 250 ms. A newer commit of
    /// the same partition replaces a queued one.
    fn commit(&self, commit: OffsetCommit);

    /// Resolves when every commit queued for `unit` has been applied or refused. `Err` with kind
    /// `Fenced` when one was refused as stale, `QuorumLost` when the time is up.
    async fn settled(&self, unit: &UnitId) -> Result<(), Error>;

    /// Queues a status; a newer one of the same unit replaces a queued one.
    fn status(&self, unit: &UnitId, epoch: Epoch, status: UnitStatus);

    /// A revoked unit has drained, committed and stopped.
    fn released(&self, unit: &UnitId, epoch: Epoch);

    /// A connector's task configurations as they are published, if they were planned from this revision of
    /// its configuration.
    fn tasks(&self, connector: &Arc<str>, config_revision: u64) -> Vec<Properties>;

    /// Publishes a connector's task configurations (raw, references unresolved). Only if they differ from the present;
    /// a task whose own do not differ goes on.
    async fn publish_tasks(
        &self,
        connector: &Arc<str>,
        epoch: Epoch,
        config_revision: u64,
        tasks: Vec<Properties>,
    ) -> Result<(), Error>;

    /// Signals that the cluster keeps for the connector, those behind the mark `after`, in their order.
    fn signals(&self, connector: &Arc<str>, after: i64) -> Vec<Received>;

    /// Whether the cluster keeps a signal for the connector up to this mark.
    fn keeps_signals(&self, connector: &Arc<str>, through: i64) -> bool;

    /// The unit has stored what followed from all signals up to this mark. Waits for consensus.
    async fn confirm_signals(&self, unit: &UnitId, epoch: Epoch, through: i64) -> Result<(), Error>;

    /// The schema history of a partition: everything that former owners of the task have added, and that this node
    /// has.
    fn history(&self, connector: &Arc<str>, partition: &SourcePartition) -> KeptHistory;

    /// Adds a text behind all others. Waits for consensus, and until this node knows it.
    async fn append_history(
        &self,
        unit: &UnitId,
        epoch: Epoch,
        partition: &SourcePartition,
        text: Arc<str>,
    ) -> Result<(), Error>;

    /// Puts `texts` in the place of the first `count` that [`ClusterPort::history`] gave with `folded`, all at once.
    /// Waits as [`ClusterPort::append_history`] does.
    async fn fold_history(
        &self,
        unit: &UnitId,
        epoch: Epoch,
        partition: &SourcePartition,
        (count, folded): (u64, u64),
        texts: Vec<Arc<str>>,
    ) -> Result<(), Error>;

    /// First message to a topic since creation or reset.
    fn topic_used(&self, connector: &Arc<str>, topic: &Arc<str>);

    fn offsets(&self, connector: &Arc<str>) -> Arc<dyn OffsetReader>;

    /// Whether this node may hand records to Kafka right now. Cheap: called before every send batch.
    fn lease_held(&self) -> bool;

    /// Resolves when the lease is lost (returns at once if it is not held).
    async fn lease_lost(&self);

    /// Name of the cluster (`group.id`), part of client and transactional ids.
    fn group(&self) -> &Arc<str>;
}
