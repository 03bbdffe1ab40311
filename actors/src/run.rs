//! One run of a task: the opened source, its encoder, and what its partitions share.
//!
//! Opened anew as a whole after anything task-wide failed. Every step that can fail on a wrong
//! configuration is done before the task counts as running.
//! It does not: restart anything (that is the actors' part).

use std::sync::Arc;

use thalweg_config::Properties;
use thalweg_config::provider::{Providers, Resolution};
use thalweg_core::delivery::ProducerIdentity;
use thalweg_core::position::{OffsetReader, SourcePartition};
use thalweg_core::relational::history::HistoryStores;
use thalweg_core::signal::Followed;
use thalweg_core::source::{SourceTask, TaskSpec};
use thalweg_core::{Error, ErrorKind, Phase};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing::warn;

use crate::coder::Coder;
use crate::encoder::{Encoder, EncoderHandle, EncoderParts};
use crate::exit::Exit;
use crate::histories::TaskHistories;
use crate::memory::{RememberedOffsets, UnitMemory};
use crate::node::NodeContext;
use crate::port::{Assignment, UnitId};
use crate::rest_signals::RestSignals;
use crate::settings::UnitSettings;
use crate::signals::{Listener, Signals};

pub(crate) struct TaskRun {
    pub source: Box<dyn SourceTask>,
    pub partitions: Vec<SourcePartition>,
    pub encoder: EncoderHandle,
    pub offsets: Arc<dyn OffsetReader>,
    pub memory: Arc<UnitMemory>,
    pub settings: UnitSettings,
    pub signals: Signals,
    pub histories: Arc<dyn HistoryStores>,
}

pub(crate) struct Opened {
    pub run: Arc<TaskRun>,
    pub encoder: JoinHandle<Exit>,
    /// Told once the producer is open.
    pub ready: oneshot::Receiver<()>,
}

/// Opens a task's source and starts its encoder, whose producer opens meanwhile.
pub(crate) async fn open(
    node: Arc<NodeContext>,
    assignment: Assignment,
    memory: Arc<UnitMemory>,
) -> Result<Opened, Error> {
    let UnitId::Task(connector_name, task) = assignment.unit.clone() else {
        return Err(Error::new(ErrorKind::Internal, Phase::Start, "a connector object was opened as a task"));
    };
    let resolution = resolve(&node, assignment.config.clone(), &memory).await?;
    let config = resolution.properties;
    let settings = UnitSettings::read(&config)?;
    let connector = node.registry.connector_of(&config)?.clone();
    memory.set_class(connector.plugin().class, connector.plugin().version);
    let classes = node.registry.transforms();
    let coder = Coder::new(&config, &node.options.worker, classes, (&connector_name, task), memory.errors.clone())?;
    let source = connector.open(TaskSpec {
        connector: connector_name.clone(),
        task,
        config: config.clone(),
        run_id: uuid::Uuid::new_v4().to_string().into(),
    })?;
    let partitions = source.partitions();
    let stored = node.port.offsets(&connector_name);
    let identity = ProducerIdentity { group: node.port.group().clone(), connector: connector_name, task };
    let listener = source.channels().map(|channels| Listener {
        channels,
        identity: identity.clone(),
        producers: node.registry.producers().clone(),
        config: config.clone(),
        memory: memory.clone(),
        rest: RestSignals::new(node.port.clone(), assignment.unit.clone(), assignment.epoch),
        shares: source.shares_signals(),
        followed: partitions.iter().filter_map(|p| stored.offset(p)).map(|o| Followed::from_offset(&o)).collect(),
    });
    let histories = Arc::new(TaskHistories {
        local: memory.histories.clone(),
        producers: node.registry.producers().clone(),
        port: node.port.clone(),
        unit: assignment.unit.clone(),
        epoch: assignment.epoch,
    });
    let signals = Signals::start(partitions.len(), source.follows_signals(), listener);
    let (encoder, handle, ready) = Encoder::spawn(EncoderParts {
        identity,
        mode: assignment.mode,
        send_after: assignment.send_after,
        config,
        connector,
        coder,
        partitions: partitions.iter().map(|p| memory.partition(p)).collect(),
        memory: memory.clone(),
        node,
    });
    let offsets = Arc::new(RememberedOffsets { memory: memory.clone(), stored });
    let run = Arc::new(TaskRun { source, partitions, encoder: handle, offsets, memory, settings, signals, histories });
    Ok(Opened { run, encoder, ready })
}

/// A unit's configuration with its references resolved; files are read off the worker threads.
pub(crate) async fn resolve(node: &NodeContext, raw: Properties, memory: &UnitMemory) -> Result<Resolution, Error> {
    let providers: Providers = node.registry.providers().clone();
    let resolution = tokio::task::spawn_blocking(move || providers.resolve(&raw)).await.map_err(|join| {
        Error::new(ErrorKind::Internal, Phase::Start, "configuration providers failed").because(&join)
    })?;
    for warning in &resolution.warnings {
        warn!(detail = %warning, "a configuration reference stays as it is");
    }
    memory.set_secrets(resolution.references.clone());
    Ok(resolution)
}
