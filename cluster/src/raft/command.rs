//! What can be written to the replicated log, and what each write answers.
//!
//! Invariants: every body is an enum whose variants are appended, never reordered, removed or
//! changed (golden bytes in `tests/golden/commands.txt`); a command carries everything its effect
//! depends on, because applying it may not look at a clock. Wall-clock members (`now_ms`) only
//! bound waiting, never decide who owns what. `Debug` shows names of configuration keys, no values.
//!
//! It does not: say what a command does (that is [`super::state`]), or travel by itself (`rpc`).

use std::fmt;
use std::sync::Arc;

use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};
use thalweg_actors::port::{Target, UnitState};
use thalweg_config::Properties;
use thalweg_core::delivery::DeliveryMode;

use super::unit::{Name, NodeId, Unit};

/// Highest feature level this build can apply. A command that needs a level is refused below it.
pub const FEATURE_LEVEL: u32 = 3;
/// From this level on signals can come through REST.
pub const SIGNALS_LEVEL: u32 = 2;
/// From this level on the state can keep schema histories.
pub const HISTORIES_LEVEL: u32 = 3;

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub enum Command {
    V1(CommandV1),
}

impl From<CommandV1> for Command {
    fn from(command: CommandV1) -> Self {
        Self::V1(command)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub enum CommandV1 {
    /// A process has started (or has lost its incarnation): it gets the next incarnation of its
    /// node. Idempotent per `boot`. By the node. [`Reply::NodeRegistered`]
    RegisterNode {
        node: NodeId,
        boot: [u8; 16],
        about: NodeAbout,
        now_ms: u64,
        delay_ms: u64,
    },
    /// The lease has ended or the process is known to be gone. By the leader.
    ExpireNode {
        node: NodeId,
        incarnation: u64,
        gone: bool,
        now_ms: u64,
        delay_ms: u64,
    },
    /// The node takes nothing new and gives up what it has. By REST or the node.
    DrainNode {
        node: NodeId,
        mode: DrainMode,
    },
    UndrainNode {
        node: NodeId,
    },
    /// The process has stopped everything and ends; units that call it home wait `hold_ms` for it.
    NodeLeft {
        node: NodeId,
        incarnation: u64,
        now_ms: u64,
        hold_ms: u64,
    },
    /// Forgets a node that has left or expired.
    RemoveNode {
        node: NodeId,
    },
    /// Allows commands of a higher level once every registered node can apply them.
    SetFeatureLevel {
        level: u32,
    },
    /// Creates or replaces a configuration. [`Reply::ConnectorPut`]
    PutConnector {
        name: Name,
        #[bincode(with_serde)]
        config: Properties,
        /// Target of a new connector; an existing one keeps its own.
        target: TargetState,
        expect: Expect,
    },
    /// Offsets stay and are reused if the name comes back.
    DeleteConnector {
        name: Name,
    },
    /// `Stopped` empties the task list in the same step.
    SetTarget {
        name: Name,
        target: TargetState,
    },
    /// The connector unit's plan. Replaces the whole set. [`Reply::TasksReplaced`]
    ReplaceTasks {
        name: Name,
        epoch: u64,
        config_revision: u64,
        #[bincode(with_serde)]
        tasks: Vec<Properties>,
    },
    /// Places a free unit; the index of this entry becomes its epoch. By the leader. [`Reply::Assigned`]
    Assign {
        unit: Unit,
        node: NodeId,
        incarnation: u64,
        /// Epoch of the placement that the leader saw ended; 0 = there was none.
        previous: u64,
        mode: Delivery,
        /// The new owner sends nothing before this time has passed since it learnt of the placement.
        fence_wait_ms: u64,
        /// For so long from now on, sends of former owners may arrive that only the producer of this one shuts
        /// out: not less than the wait.
        late_sends_ms: u64,
    },
    /// Takes a placement back: the owner drains, commits and releases. By the leader.
    Revoke {
        unit: Unit,
        epoch: u64,
    },
    /// Drops the memory of a placement that is no longer held and whose unit no longer exists. By the
    /// leader.
    Forget {
        unit: Unit,
        epoch: u64,
    },
    /// Everything a node has to tell since its last report, applied in the order of the members.
    /// [`Reply::Reported`]
    Report {
        node: NodeId,
        incarnation: u64,
        offsets: Vec<OffsetItem>,
        topics: Vec<TopicItem>,
        statuses: Vec<StatusItem>,
        released: Vec<(Unit, u64)>,
    },
    /// Changes stored positions of a stopped connector. [`Reply::OffsetsAltered`]
    AlterOffsets {
        name: Name,
        /// Revision of the offsets that was read before; `None` = whatever it is.
        expect_revision: Option<u64>,
        change: OffsetChange,
    },
    /// [`Reply::Restarting`]
    Restart {
        name: Name,
        scope: RestartScope,
    },
    ResetTopics {
        name: Name,
    },
    /// `None` removes an explicit level.
    SetLogger {
        logger: String,
        level: Option<LogLevel>,
        now_ms: u64,
    },
    /// Keeps a signal for the tasks of a connector. Idempotent per id. [`Reply::SignalPut`]
    PutSignal {
        name: Name,
        id: String,
        text: SignalText,
        now_ms: u64,
    },
    /// A task has stored what followed from all signals up to this number. By its owner.
    ConfirmSignals {
        unit: Unit,
        epoch: u64,
        through: u64,
    },
    /// A change of the schema history that a task keeps for one of its partitions. By its owner.
    /// [`Reply::HistoryChanged`]
    ChangeHistory {
        unit: Unit,
        epoch: u64,
        /// Canonical.
        partition: String,
        change: HistoryChange,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub enum HistoryChange {
    /// Behind all others.
    Append(HistoryText),
    /// Lays texts aside for [`HistoryChange::Fold`]; `is_first`: what was laid aside before is dropped.
    Stage { is_first: bool, texts: Vec<HistoryText> },
    /// What was laid aside comes into the place of the first `count` texts.
    Fold {
        count: u64,
        /// Index of the last fold that was seen; 0 = there was none.
        since: u64,
    },
}

/// A record of a schema history. It names tables and columns and has their default values, so it is not shown.
#[derive(Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub struct HistoryText(pub Arc<str>);

impl fmt::Debug for HistoryText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HistoryText({} bytes)", self.0.len())
    }
}

/// A signal as a compact JSON object; its data may name what documents hold, so it is not shown.
#[derive(Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub struct SignalText(pub String);

impl fmt::Debug for SignalText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignalText({} bytes)", self.0.len())
    }
}

/// What became of a signal that was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub enum SignalStanding {
    Added,
    /// It was given before, and waits for tasks to confirm it.
    Waiting,
    /// It was given before, and all tasks have confirmed it.
    Followed,
}

/// What a node says about itself when it registers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, Serialize, Deserialize)]
pub struct NodeAbout {
    /// `host:port` of the advertised REST address: what REST shows as `worker_id`.
    pub worker_id: String,
    pub rest_url: String,
    /// `host:port` for other nodes.
    pub rpc_address: String,
    /// Highest level the build can apply.
    pub feature_level: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub enum DrainMode {
    /// Units are handed to other nodes, a few at a time.
    Move,
    /// Units stop at once and wait for the node to come back.
    Hold,
}

/// What must be true of a connector before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub enum Expect {
    Absent,
    Any,
    Revision(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode, Serialize, Deserialize)]
pub enum TargetState {
    #[default]
    Started,
    Paused,
    Stopped,
}

impl From<TargetState> for Target {
    fn from(target: TargetState) -> Self {
        match target {
            TargetState::Started => Self::Started,
            TargetState::Paused => Self::Paused,
            TargetState::Stopped => Self::Stopped,
        }
    }
}

/// Delivery mode under which a placement runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub enum Delivery {
    Plain,
    Fenced,
}

impl Delivery {
    /// The mode that a configuration's text names, if it names one.
    pub fn named(text: &str) -> Option<Self> {
        let is = |name: &str| text.trim().eq_ignore_ascii_case(name);
        is("plain").then_some(Self::Plain).or_else(|| is("fenced").then_some(Self::Fenced))
    }
}

impl From<Delivery> for DeliveryMode {
    fn from(delivery: Delivery) -> Self {
        match delivery {
            Delivery::Plain => Self::Plain,
            Delivery::Fenced => Self::Fenced,
        }
    }
}

impl From<DeliveryMode> for Delivery {
    fn from(mode: DeliveryMode) -> Self {
        match mode {
            DeliveryMode::Plain => Self::Plain,
            DeliveryMode::Fenced => Self::Fenced,
        }
    }
}

/// A position after a durable prefix.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub struct OffsetItem {
    pub unit: Unit,
    pub epoch: u64,
    pub seq: u64,
    pub partition: PartitionText,
    /// Compact JSON object.
    pub offset: String,
}

/// A source partition in both spellings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, Serialize, Deserialize)]
pub struct PartitionText {
    /// Compact JSON with sorted members: the key.
    pub canonical: String,
    /// Member order of the connector: what Debezium's offset topic holds.
    pub original: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub struct TopicItem {
    pub connector: Name,
    pub topic: Name,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub struct StatusItem {
    pub unit: Unit,
    pub epoch: u64,
    pub state: ReportedState,
    pub trace: Option<String>,
}

/// States as Kafka Connect reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub enum ReportedState {
    Unassigned,
    Running,
    Paused,
    Stopped,
    Failed,
    Restarting,
}

impl ReportedState {
    /// Connect's spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unassigned => "UNASSIGNED",
            Self::Running => "RUNNING",
            Self::Paused => "PAUSED",
            Self::Stopped => "STOPPED",
            Self::Failed => "FAILED",
            Self::Restarting => "RESTARTING",
        }
    }
}

impl From<UnitState> for ReportedState {
    fn from(state: UnitState) -> Self {
        match state {
            UnitState::Unassigned => Self::Unassigned,
            UnitState::Running => Self::Running,
            UnitState::Paused => Self::Paused,
            UnitState::Stopped => Self::Stopped,
            UnitState::Failed => Self::Failed,
            UnitState::Restarting => Self::Restarting,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub enum OffsetChange {
    /// `None` removes the position of that partition; partitions not named stay.
    Set(Vec<(PartitionText, Option<String>)>),
    RemoveAll,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub enum RestartScope {
    /// The connector object and, if wanted, its tasks; `only_failed` leaves out what has not failed.
    Connector {
        include_tasks: bool,
        only_failed: bool,
    },
    Task(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// What a command answered. The same on every replica.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub enum Reply {
    Done,
    NodeRegistered {
        incarnation: u64,
    },
    ConnectorPut {
        created: bool,
        revision: u64,
    },
    /// `changed` is false if the set and the configuration it came from were the present ones.
    TasksReplaced {
        changed: bool,
    },
    Assigned {
        epoch: u64,
    },
    Reported {
        /// Items that were not taken, in order; the rest was.
        refused: Vec<RefusedItem>,
    },
    OffsetsAltered {
        revision: u64,
    },
    /// The units that restart; empty if none matched.
    Restarting {
        units: Vec<Unit>,
    },
    /// Nothing was changed.
    Refused(Refusal),
    SignalPut {
        number: u64,
        standing: SignalStanding,
    },
    /// Known to every node that has applied this index.
    HistoryChanged {
        index: u64,
    },
}

/// One item of a report that was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub struct RefusedItem {
    pub unit: Unit,
    pub epoch: u64,
    /// Canonical partition for a position.
    pub partition: Option<String>,
    pub why: ItemRefusal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub enum ItemRefusal {
    /// The unit is placed elsewhere, anew, or nowhere: its owner has to stop.
    StaleEpoch,
    /// A newer position of this epoch is stored already.
    OldSequence,
    TooLarge,
}

/// Why a command had no effect.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub enum Refusal {
    UnknownConnector(Name),
    UnknownTask(Name, u32),
    UnknownNode(NodeId),
    AlreadyExists(Name),
    /// The object was changed since it was read.
    StaleRevision {
        name: Name,
        current: u64,
    },
    /// The placement is not (or no longer) the current one.
    StaleEpoch(Unit),
    /// The incarnation is not the current one, or has ended.
    StaleIncarnation {
        node: NodeId,
        current: u64,
    },
    /// Positions can be changed only while the connector is stopped and none of its tasks runs.
    NotStopped(Name),
    /// The connector's target state has no tasks.
    NotStarted(Name),
    /// The unit is not free yet.
    NotFree(Unit),
    /// The node takes nothing now.
    NodeNotAlive(NodeId),
    /// The node is still in use.
    NodeInUse(NodeId),
    /// A node that cannot apply this level is registered, or the level would sink.
    FeatureLevel {
        wanted: u32,
        possible: u32,
    },
    TooLarge {
        what: String,
        limit: u64,
    },
    Invalid(String),
    /// A process that is there has this node id at another address.
    NodeIdInUse {
        node: NodeId,
        address: String,
    },
    /// Something stands against it that may pass, or that is named otherwise.
    Conflict(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownConnector(name) => write!(f, "Connector {name} not found"),
            Self::UnknownTask(name, task) => write!(f, "Unknown task: {name}-{task}"),
            Self::UnknownNode(node) => write!(f, "Node {node} is not registered"),
            Self::AlreadyExists(name) => write!(f, "Connector {name} already exists"),
            Self::StaleRevision { name, current } => {
                write!(f, "Connector {name} was changed meanwhile (revision {current}); read it again and repeat")
            }
            Self::StaleEpoch(unit) => write!(f, "The placement of {unit} is no longer current"),
            Self::StaleIncarnation { node, current } => {
                write!(f, "Node {node} speaks for an incarnation that has ended (current is {current})")
            }
            Self::NotStopped(name) => write!(
                f,
                "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for \
                 the specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
            ),
            Self::NotStarted(name) => write!(f, "Connector {name} is not started, so it has no tasks"),
            Self::NotFree(unit) => write!(f, "The present owner of {unit} has not released it yet"),
            Self::NodeNotAlive(node) => write!(f, "Node {node} takes no units now"),
            Self::NodeInUse(node) => write!(f, "Node {node} is in use; drain it and stop it first"),
            Self::FeatureLevel { wanted, possible } => {
                write!(f, "Feature level {wanted} is not possible: the nodes of this cluster support {possible}")
            }
            Self::TooLarge { what, limit } => write!(f, "{what} is larger than the limit of {limit} bytes"),
            Self::Invalid(why) | Self::Conflict(why) => f.write_str(why),
            Self::NodeIdInUse { node, address } => write!(f, "Node {node} is running at {address}"),
        }
    }
}

impl Command {
    /// Lowest feature level at which the command may be proposed.
    pub fn feature_level(&self) -> u32 {
        match self {
            Self::V1(CommandV1::PutSignal { .. } | CommandV1::ConfirmSignals { .. }) => SIGNALS_LEVEL,
            Self::V1(CommandV1::ChangeHistory { .. }) => HISTORIES_LEVEL,
            Self::V1(_) => 1,
        }
    }
    /// For logs and metrics: the kind, no content.
    pub fn kind(&self) -> &'static str {
        let Self::V1(command) = self;
        match command {
            CommandV1::RegisterNode { .. } => "register_node",
            CommandV1::ExpireNode { .. } => "expire_node",
            CommandV1::DrainNode { .. } => "drain_node",
            CommandV1::UndrainNode { .. } => "undrain_node",
            CommandV1::NodeLeft { .. } => "node_left",
            CommandV1::RemoveNode { .. } => "remove_node",
            CommandV1::SetFeatureLevel { .. } => "set_feature_level",
            CommandV1::PutConnector { .. } => "put_connector",
            CommandV1::DeleteConnector { .. } => "delete_connector",
            CommandV1::SetTarget { .. } => "set_target",
            CommandV1::ReplaceTasks { .. } => "replace_tasks",
            CommandV1::Assign { .. } => "assign",
            CommandV1::Revoke { .. } => "revoke",
            CommandV1::Forget { .. } => "forget",
            CommandV1::Report { .. } => "report",
            CommandV1::AlterOffsets { .. } => "alter_offsets",
            CommandV1::Restart { .. } => "restart",
            CommandV1::ResetTopics { .. } => "reset_topics",
            CommandV1::SetLogger { .. } => "set_logger",
            CommandV1::PutSignal { .. } => "put_signal",
            CommandV1::ConfirmSignals { .. } => "confirm_signals",
            CommandV1::ChangeHistory { .. } => "change_history",
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}
