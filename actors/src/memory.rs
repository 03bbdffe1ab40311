//! What a unit remembers while it is placed on this node: it outlives generations and actors.
//!
//! Held by the node actor and lent to the unit's actors and data tasks; views for REST and metrics
//! are made from it without asking an actor, so they are answered even when one is stuck.
//!
//! Invariants: a memory belongs to one epoch, so a position that was changed over REST (which needs
//! a stopped connector, hence a new epoch) is never hidden by a remembered one; commit sequence
//! numbers only rise; `occupancy` outlives the epoch, so two incarnations never send at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use thalweg_config::provider::References;
use thalweg_core::Error;
use thalweg_core::position::{OffsetMap, OffsetReader, SourcePartition};
use thalweg_core::progress::PartitionProgress;
use thalweg_core::queue::Gauge;
use thalweg_core::relational::history::LocalStores;
use thalweg_core::tolerance::ErrorCounters;
use tokio::sync::Semaphore;
use tracing::{Span, error_span};

use crate::counters::{Counters, now_ms};
use crate::port::{ClusterPort, Epoch, OffsetCommit, Target, UnitId, UnitState, UnitStatus};
use crate::progress::Pulse;
use crate::refused::Refusals;
use crate::view::{Activity, TableView};

pub(crate) struct UnitMemory {
    pub unit: UnitId,
    pub epoch: Epoch,
    /// Names the unit on every line that is logged for it.
    pub(crate) span: Span,
    /// One permit: who holds it may send. Shared with former and later epochs of the unit.
    pub occupancy: Arc<Semaphore>,
    pub counters: Counters,
    pub errors: Arc<ErrorCounters>,
    pub encoder: Pulse,
    /// Messages handed to the producer and not yet acknowledged.
    pub in_flight: AtomicU64,
    pub refusals: Mutex<Refusals>,
    /// Raised by the unit's actor: it still takes its turns.
    pub beat: AtomicU64,
    /// Schema histories that outlive a run of the task, but not the process.
    pub histories: LocalStores,
    /// What must not be shown: put back into references wherever a text leaves.
    secrets: Mutex<References>,
    told: Mutex<Told>,
    partitions: Mutex<BTreeMap<Arc<str>, Arc<PartitionMemory>>>,
}

/// What is said about the unit.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub target: Target,
    pub status: UnitStatus,
    /// The cluster has heard it from this placement.
    reported: bool,
    pub since: Instant,
    pub class: Option<&'static str>,
    pub version: Option<&'static str>,
    /// Worth knowing, but no state: retries, panics, limits.
    pub note: Option<String>,
}

impl UnitMemory {
    pub(crate) fn new(unit: UnitId, epoch: Epoch, target: Target, occupancy: Arc<Semaphore>) -> Self {
        let status = UnitStatus { state: UnitState::Unassigned, trace: None };
        let told =
            Told { target, status, reported: false, since: Instant::now(), class: None, version: None, note: None };
        let span = match &unit {
            UnitId::Connector(connector) => error_span!("connector", %connector, epoch = epoch.0),
            UnitId::Task(connector, task) => error_span!("task", %connector, task, epoch = epoch.0),
        };
        Self {
            unit,
            epoch,
            span,
            occupancy,
            counters: Counters::default(),
            errors: Arc::default(),
            encoder: Pulse::default(),
            in_flight: AtomicU64::new(0),
            refusals: Mutex::default(),
            beat: AtomicU64::new(0),
            histories: LocalStores::default(),
            secrets: Mutex::default(),
            told: Mutex::new(told),
            partitions: Mutex::default(),
        }
    }
    pub(crate) fn told(&self) -> Told {
        self.told.lock().clone()
    }
    pub(crate) fn state(&self) -> UnitState {
        self.told.lock().status.state
    }
    pub(crate) fn set_target(&self, target: Target) {
        self.told.lock().target = target;
    }
    pub(crate) fn set_class(&self, class: &'static str, version: &'static str) {
        let mut told = self.told.lock();
        told.class = Some(class);
        told.version = Some(version);
    }
    pub(crate) fn set_note(&self, note: Option<String>) {
        let note = note.map(|text| self.hide(&text));
        self.told.lock().note = note;
    }
    pub(crate) fn set_secrets(&self, secrets: References) {
        *self.secrets.lock() = secrets;
    }
    /// `text` without resolved references.
    pub(crate) fn hide(&self, text: &str) -> String {
        self.secrets.lock().hide_in(text)
    }
    pub(crate) fn error_seen(&self) {
        self.errors.last_error_timestamp.store(i64::try_from(now_ms()).unwrap_or(i64::MAX), Ordering::Relaxed);
    }
    /// Reports a state to the cluster, once per change.
    pub(crate) fn report(&self, port: &dyn ClusterPort, state: UnitState, cause: Option<&Error>) {
        let status = UnitStatus { state, trace: cause.map(|error| self.hide(&error.trace())) };
        {
            let mut told = self.told.lock();
            if told.reported && told.status == status {
                return;
            }
            told.reported = true;
            told.status = status.clone();
            told.since = Instant::now();
        }
        if state == UnitState::Failed {
            Counters::add(&self.counters.failures, 1);
            self.error_seen();
        }
        port.status(&self.unit, self.epoch, status);
    }
    /// The memory of a partition, made on first use.
    pub(crate) fn partition(&self, partition: &SourcePartition) -> Arc<PartitionMemory> {
        let mut partitions = self.partitions.lock();
        partitions
            .entry(partition.canonical().clone())
            .or_insert_with(|| Arc::new(PartitionMemory::new(partition.clone(), &self.span)))
            .clone()
    }
    pub(crate) fn partitions(&self) -> Vec<Arc<PartitionMemory>> {
        self.partitions.lock().values().cloned().collect()
    }
}

pub(crate) struct PartitionMemory {
    /// Names unit and partition on every line.
    pub(crate) span: Span,
    pub partition: SourcePartition,
    /// Shared by all generations: counters carry on.
    pub progress: Arc<PartitionProgress>,
    pub reader: Pulse,
    /// One permit: held by the running generation until all of it has ended.
    pub turn: Arc<Semaphore>,
    /// Number of the present or last generation.
    pub generation: AtomicU64,
    commit_seq: AtomicU64,
    present: Mutex<Present>,
}

#[derive(Default)]
struct Present {
    activity: Activity,
    committed: Option<OffsetMap>,
    last_error: Option<String>,
    queue: Option<Gauge>,
    tables: BTreeMap<String, TableView>,
}

impl PartitionMemory {
    fn new(partition: SourcePartition, unit: &Span) -> Self {
        Self {
            span: error_span!(parent: unit, "source", partition = %partition.original()),
            partition,
            progress: Arc::default(),
            reader: Pulse::default(),
            turn: Arc::new(Semaphore::new(1)),
            generation: AtomicU64::new(0),
            commit_seq: AtomicU64::new(0),
            present: Mutex::default(),
        }
    }
    pub(crate) fn activity(&self) -> Activity {
        self.present.lock().activity.clone()
    }
    pub(crate) fn set_activity(&self, activity: Activity) {
        self.present.lock().activity = activity;
    }
    pub(crate) fn last_error(&self) -> Option<String> {
        self.present.lock().last_error.clone()
    }
    pub(crate) fn set_last_error(&self, text: String) {
        self.present.lock().last_error = Some(text);
    }
    pub(crate) fn queue(&self) -> Option<Gauge> {
        self.present.lock().queue.clone()
    }
    pub(crate) fn set_queue(&self, queue: Gauge) {
        self.present.lock().queue = Some(queue);
    }
    pub(crate) fn tables(&self) -> Vec<TableView> {
        self.present.lock().tables.values().cloned().collect()
    }
    pub(crate) fn set_table(&self, table: TableView) {
        self.present.lock().tables.insert(table.name.clone(), table);
    }
    pub(crate) fn forget_tables(&self) {
        self.present.lock().tables.clear();
    }
    /// The last position of this epoch that was handed to the cluster.
    pub(crate) fn committed(&self) -> Option<OffsetMap> {
        self.present.lock().committed.clone()
    }
    /// Remembers a position and hands it to the cluster.
    pub(crate) fn commit(&self, port: &dyn ClusterPort, unit: &UnitId, epoch: Epoch, offset: OffsetMap) {
        let seq = self.commit_seq.fetch_add(1, Ordering::Relaxed) + 1;
        self.present.lock().committed = Some(offset.clone());
        port.commit(OffsetCommit { unit: unit.clone(), epoch, partition: self.partition.clone(), offset, seq });
    }
}

/// The stored offsets, with this epoch's own newer commits in front: what was acknowledged and
/// handed over need not be read again because the cluster has not applied it yet.
pub(crate) struct RememberedOffsets {
    pub memory: Arc<UnitMemory>,
    pub stored: Arc<dyn OffsetReader>,
}

impl OffsetReader for RememberedOffsets {
    fn offset(&self, partition: &SourcePartition) -> Option<OffsetMap> {
        let own = self.memory.partitions.lock().get(partition.canonical()).cloned();
        own.and_then(|memory| memory.committed()).or_else(|| self.stored.offset(partition))
    }
}
