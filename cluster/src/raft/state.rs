//! The replicated state: what every node knows after the same prefix of the log.
//!
//! Invariants: [`State::apply`] is a function of the state, the index and the command alone (no
//! clock, randomness, floats, I/O or hash order), so replicas at one index have one [`State::hash`];
//! the epoch of a placement is the index of its `Assign`, so epochs rise over the whole cluster and
//! never repeat, not even over delete and create of one name; a refused command changes nothing but
//! the clock; a unit has at most one placement; nothing stale is ever merged.
//!
//! Life of a placement: free, `Assigned`, `Revoking`, `Released` (free again) or
//! `Lost` (free as soon as delay and fencing allow, which is the planner's business).
//!
//! It does not: decide placements (`plan`), keep leases (`lease`), or know openraft.

mod connectors;
mod encoded;
mod histories;
mod nodes;
mod placements;
mod report;
mod signals;

pub(crate) use histories::MAX_HISTORY_TEXT;
pub use histories::{Histories, History};
pub(crate) use report::cut;
pub use signals::{FollowedSignal, Signals, WaitingSignal};

use std::collections::{BTreeMap, BTreeSet};

use bincode::{Decode, Encode};
use thalweg_config::Properties;

use super::command::{
    Command, CommandV1, Delivery, DrainMode, LogLevel, NodeAbout, Refusal, Reply, ReportedState, TargetState,
};
use super::unit::{Name, NodeId, Unit};

/// A configuration or a whole set of task configurations: names and values in bytes.
pub const MAX_CONFIG: usize = 4 << 20;
/// A stored position, as text.
pub const MAX_OFFSET: usize = 1 << 20;
/// A partition, as text.
pub const MAX_PARTITION: usize = 16 << 10;
/// A trace; longer ones are cut.
pub const MAX_TRACE: usize = 16 << 10;
/// Names of connectors, topics and loggers.
pub const MAX_NAME: usize = 1024;
/// Tasks of a connector.
pub const MAX_TASKS: usize = 10_000;
/// Topics kept for a connector.
pub const MAX_TOPICS: usize = 100_000;
/// Loggers with an explicit level.
pub const MAX_LOGGERS: usize = 1_000;

/// Its stored form is in `encoded`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Highest wall clock that a command carried, in ms since the epoch. Advisory.
    pub clock_ms: u64,
    /// Index of the last entry that changed nodes, connectors or placements: while it stands, there
    /// is nothing new to plan or to start.
    pub layout: u64,
    pub feature_level: u32,
    pub nodes: BTreeMap<NodeId, Node>,
    pub connectors: BTreeMap<Name, Connector>,
    pub placements: BTreeMap<Unit, Placement>,
    /// Outlives its connector.
    pub offsets: BTreeMap<Name, Offsets>,
    pub statuses: BTreeMap<Unit, Status>,
    pub topics: BTreeMap<Name, BTreeSet<Name>>,
    pub loggers: BTreeMap<String, Logger>,
    /// Those that came through REST.
    pub signals: BTreeMap<Name, Signals>,
    /// Schema histories. They outlive their connector as long as it has offsets.
    pub histories: BTreeMap<Name, Histories>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            clock_ms: 0,
            layout: 0,
            feature_level: 1,
            nodes: BTreeMap::new(),
            connectors: BTreeMap::new(),
            placements: BTreeMap::new(),
            offsets: BTreeMap::new(),
            statuses: BTreeMap::new(),
            topics: BTreeMap::new(),
            loggers: BTreeMap::new(),
            signals: BTreeMap::new(),
            histories: BTreeMap::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Node {
    /// Index of the registration: another process, or the same after it was expired, has another.
    pub incarnation: u64,
    pub boot: [u8; 16],
    pub about: NodeAbout,
    pub state: NodeState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum NodeState {
    Alive,
    Draining(DrainMode),
    /// Ended in order; its units wait for it until then (wall clock).
    Left {
        since_ms: u64,
        hold_until_ms: u64,
    },
    Expired,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Connector {
    #[bincode(with_serde)]
    pub config: Properties,
    /// Index of the entry that wrote the configuration.
    pub revision: u64,
    pub target: TargetState,
    #[bincode(with_serde)]
    pub tasks: Vec<Properties>,
    /// Index of the entry that replaced the task set; 0 = never.
    pub tasks_revision: u64,
    /// Configuration revision from which the set was planned; 0 = none.
    pub tasks_from: u64,
    /// Index of the last request to restart the connector object; 0 = none.
    pub restart: u64,
    /// The same for tasks, where there was one since the task was made.
    pub task_restarts: BTreeMap<u32, u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Placement {
    pub node: NodeId,
    pub incarnation: u64,
    /// Index of the `Assign`.
    pub epoch: u64,
    /// Newest task set that has the task as the placement's owner was given it; 0 for connector objects.
    pub tasks_revision: u64,
    pub mode: Delivery,
    /// What the owner was told to wait before its first send.
    pub fence_wait_ms: u64,
    /// For so long since the `Assign`, sends of former owners may arrive that only the owner's producer shuts
    /// out: whoever gets its partitions as another task has to wait for them. Not less than the wait.
    pub late_sends_ms: u64,
    pub phase: Phase,
}

impl Placement {
    /// The owner may still commit.
    pub fn is_held(&self) -> bool {
        matches!(self.phase, Phase::Assigned | Phase::Revoking)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Phase {
    Assigned,
    Revoking,
    /// Free; the owner has stopped in order.
    Released,
    /// Free for others once the delay is over (wall clock) and the old owner's sends have ended.
    Lost {
        since_ms: u64,
        until_ms: u64,
        loss: Loss,
    },
}

/// How a placement got lost: what is known of the owner decides how long its last sends may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Loss {
    /// Its lease has run out.
    LeaseEnded,
    /// Its address refuses connections; the lease may still run.
    Gone,
    /// Its node registered a new incarnation.
    Restarted,
    /// It ended without having released the unit.
    Left,
}

/// Stored positions of one connector name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct Offsets {
    /// Index of the last entry that changed them by hand; 0 = none.
    pub revision: u64,
    /// By canonical partition text.
    pub rows: BTreeMap<String, Offset>,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Offset {
    /// Partition in the connector's member order.
    pub partition: String,
    /// Compact JSON object.
    pub offset: String,
    /// Epoch of the writer, or the index of the alteration.
    pub epoch: u64,
    pub seq: u64,
    /// Index of the entry that wrote the row.
    pub revision: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Status {
    pub state: ReportedState,
    pub worker_id: String,
    pub trace: Option<String>,
    pub epoch: u64,
    /// Index of the entry that wrote it.
    pub revision: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Logger {
    pub level: LogLevel,
    pub modified_ms: u64,
}

impl State {
    /// Applies the command at `index` (rising from call to call).
    pub fn apply(&mut self, index: u64, command: &Command) -> Reply {
        let Command::V1(command) = command;
        match self.apply_v1(index, command) {
            Ok(reply) => {
                if changes_layout(command) {
                    self.layout = index;
                }
                reply
            }
            Err(refusal) => Reply::Refused(refusal),
        }
    }

    fn apply_v1(&mut self, index: u64, command: &CommandV1) -> Result<Reply, Refusal> {
        match command {
            CommandV1::RegisterNode { node, boot, about, now_ms, delay_ms } => {
                self.see_clock(*now_ms);
                self.register_node(index, *node, *boot, about, *delay_ms)
            }
            CommandV1::ExpireNode { node, incarnation, gone, now_ms, delay_ms } => {
                self.see_clock(*now_ms);
                self.expire_node(index, *node, *incarnation, *gone, *delay_ms)
            }
            CommandV1::DrainNode { node, mode } => self.drain_node(*node, *mode),
            CommandV1::UndrainNode { node } => self.undrain_node(*node),
            CommandV1::NodeLeft { node, incarnation, now_ms, hold_ms } => {
                self.see_clock(*now_ms);
                self.node_left(index, *node, *incarnation, *hold_ms)
            }
            CommandV1::RemoveNode { node } => self.remove_node(*node),
            CommandV1::SetFeatureLevel { level } => self.set_feature_level(*level),
            CommandV1::PutConnector { name, config, target, expect } => {
                self.put_connector(index, name, config, *target, *expect)
            }
            CommandV1::DeleteConnector { name } => self.delete_connector(name),
            CommandV1::SetTarget { name, target } => self.set_target(index, name, *target),
            CommandV1::ReplaceTasks { name, epoch, config_revision, tasks } => {
                self.replace_tasks(index, name, *epoch, *config_revision, tasks)
            }
            CommandV1::Assign { unit, node, incarnation, previous, mode, fence_wait_ms, late_sends_ms } => {
                let waits = (*fence_wait_ms, *late_sends_ms);
                self.assign(index, unit, *node, *incarnation, *previous, *mode, waits)
            }
            CommandV1::Revoke { unit, epoch } => self.revoke(unit, *epoch),
            CommandV1::Forget { unit, epoch } => self.forget(unit, *epoch),
            CommandV1::Report { node, incarnation, offsets, topics, statuses, released } => {
                self.report(index, (*node, *incarnation), offsets, topics, statuses, released)
            }
            CommandV1::AlterOffsets { name, expect_revision, change } => {
                self.alter_offsets(index, name, *expect_revision, change)
            }
            CommandV1::Restart { name, scope } => self.restart(index, name, *scope),
            CommandV1::ResetTopics { name } => self.reset_topics(name),
            CommandV1::SetLogger { logger, level, now_ms } => {
                self.see_clock(*now_ms);
                self.set_logger(logger, *level)
            }
            CommandV1::PutSignal { name, id, text, now_ms } => {
                self.see_clock(*now_ms);
                self.put_signal(index, name, id, text, *now_ms)
            }
            CommandV1::ConfirmSignals { unit, epoch, through } => self.confirm_signals(unit, *epoch, *through),
            CommandV1::ChangeHistory { unit, epoch, partition, change } => {
                self.change_history(index, unit, *epoch, partition, change)
            }
        }
    }

    /// The same on every replica at one index: FNV-1a over the encoded state.
    pub fn hash(&self) -> u64 {
        let mut sink = HashSink::default();
        // The sink takes everything, and encoding maps and strings cannot fail.
        let _ = bincode::encode_into_writer(self, &mut sink, super::BODY);
        sink.0
    }

    /// Whether the unit is one that should run: its connector exists, and for a task the set has it.
    pub fn exists(&self, unit: &Unit) -> bool {
        self.connectors.get(&unit.connector).is_some_and(|c| match unit.task {
            None => true,
            Some(task) => (task as usize) < c.tasks.len(),
        })
    }

    /// Every unit that should run, in order.
    pub fn units(&self) -> impl Iterator<Item = Unit> + '_ {
        self.connectors.iter().flat_map(|(name, connector)| {
            let tasks = (0..connector.tasks.len()).map(|n| Unit::task(name.clone(), n as u32));
            std::iter::once(Unit::connector(name.clone())).chain(tasks)
        })
    }

    /// Placements of the tasks of a connector name, also of tasks that no longer exist.
    pub fn task_placements(&self, name: &Name) -> impl Iterator<Item = (&Unit, &Placement)> {
        self.placements.range(Unit::task(name.clone(), 0)..=Unit::task(name.clone(), u32::MAX))
    }

    /// The stored position of a partition, as JSON text.
    pub fn offset(&self, name: &str, canonical: &str) -> Option<&str> {
        self.offsets.get(name)?.rows.get(canonical).map(|row| row.offset.as_str())
    }

    fn see_clock(&mut self, now_ms: u64) {
        self.clock_ms = self.clock_ms.max(now_ms);
    }

    fn set_logger(&mut self, logger: &str, level: Option<LogLevel>) -> Result<Reply, Refusal> {
        check_size("logger name", logger.len(), MAX_NAME)?;
        match level {
            None => {
                self.loggers.remove(logger);
            }
            Some(level) => {
                if self.loggers.len() >= MAX_LOGGERS && !self.loggers.contains_key(logger) {
                    return Err(Refusal::Invalid(format!("{MAX_LOGGERS} loggers have an explicit level already")));
                }
                self.loggers.insert(logger.to_owned(), Logger { level, modified_ms: self.clock_ms });
            }
        }
        Ok(Reply::Done)
    }
}

fn changes_layout(command: &CommandV1) -> bool {
    match command {
        CommandV1::Report { released, .. } => !released.is_empty(),
        CommandV1::AlterOffsets { .. }
        | CommandV1::ResetTopics { .. }
        | CommandV1::SetLogger { .. }
        | CommandV1::SetFeatureLevel { .. }
        | CommandV1::PutSignal { .. }
        | CommandV1::ConfirmSignals { .. }
        | CommandV1::ChangeHistory { .. } => false,
        _ => true,
    }
}

fn check_size(what: &str, size: usize, limit: usize) -> Result<(), Refusal> {
    if size > limit {
        return Err(Refusal::TooLarge { what: what.to_owned(), limit: limit as u64 });
    }
    Ok(())
}

/// FNV-1a.
struct HashSink(u64);

impl Default for HashSink {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl bincode::enc::write::Writer for HashSink {
    fn write(&mut self, bytes: &[u8]) -> Result<(), bincode::error::EncodeError> {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(())
    }
}

#[cfg(test)]
mod streams;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod world;
