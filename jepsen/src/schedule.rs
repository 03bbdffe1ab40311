//! Which fault comes when: a seeded sequence that visits every kind before it repeats one.

use std::time::Duration;

/// Kinds of faults, named as on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// SIGKILL of the node that owns a task, later a start.
    KillOwner,
    /// SIGKILL of the Raft leader, later a start.
    KillLeader,
    /// SIGKILL of all nodes at once, later a start.
    KillAll,
    /// SIGSTOP of an owner for less than a lease.
    PauseShort,
    /// SIGSTOP of an owner for much more than a lease.
    PauseLong,
    /// SIGTERM of an owner and a start.
    Restart,
    /// The MongoDB primary steps down.
    StepDown,
    /// SIGKILL of the MongoDB primary, later a start.
    KillPrimary,
    /// SIGKILL of the broker and a start.
    RestartBroker,
    /// An owner is cut off from the other nodes.
    CutNode,
    /// An owner is cut off from Kafka only.
    CutKafka,
    /// An owner is cut off from MongoDB only.
    CutSource,
    /// An owner is cut off from everything.
    CutAll,
    /// An owner is cut off from Kafka and killed while it is.
    CutKafkaKill,
    /// An owner is cut off from MongoDB and killed while it is.
    CutSourceKill,
    /// A shard comes, or goes if it is there.
    Reshard,
    /// The same, and an owner is killed at that moment.
    ReshardKill,
}

/// Faults of the cluster and of what is around it.
pub const ALL: &[Fault] = &[
    Fault::KillOwner,
    Fault::KillLeader,
    Fault::KillAll,
    Fault::PauseShort,
    Fault::PauseLong,
    Fault::Restart,
    Fault::StepDown,
    Fault::KillPrimary,
    Fault::RestartBroker,
    Fault::CutNode,
    Fault::CutKafka,
    Fault::CutSource,
    Fault::CutAll,
    Fault::CutKafkaKill,
    Fault::CutSourceKill,
];

/// Those that need shards.
pub const WITH_SHARDS: &[Fault] = &[Fault::Reshard, Fault::ReshardKill];

impl Fault {
    pub fn name(self) -> &'static str {
        match self {
            Self::KillOwner => "kill-owner",
            Self::KillLeader => "kill-leader",
            Self::KillAll => "kill-all",
            Self::PauseShort => "pause-short",
            Self::PauseLong => "pause-long",
            Self::Restart => "restart",
            Self::StepDown => "step-down",
            Self::KillPrimary => "kill-primary",
            Self::RestartBroker => "restart-broker",
            Self::CutNode => "cut-node",
            Self::CutKafka => "cut-kafka",
            Self::CutSource => "cut-source",
            Self::CutAll => "cut-all",
            Self::CutKafkaKill => "cut-kafka-kill",
            Self::CutSourceKill => "cut-source-kill",
            Self::Reshard => "reshard",
            Self::ReshardKill => "reshard-kill",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        ALL.iter().chain(WITH_SHARDS).copied().find(|f| f.name() == name)
    }

    /// How long the fault lasts before it is healed.
    pub fn lasts(self) -> Duration {
        Duration::from_millis(match self {
            Self::PauseShort => 1_200,
            Self::StepDown | Self::Restart | Self::RestartBroker | Self::Reshard => 0,
            Self::KillAll => 1_000,
            Self::CutKafkaKill | Self::CutSourceKill => 3_000,
            Self::KillOwner | Self::KillLeader | Self::KillPrimary | Self::ReshardKill => 6_000,
            Self::PauseLong | Self::CutNode | Self::CutKafka | Self::CutSource | Self::CutAll => 9_000,
        })
    }
}

/// An endless sequence of faults.
pub struct Schedule {
    kinds: Vec<Fault>,
    left: Vec<Fault>,
    random: fastrand::Rng,
}

impl Schedule {
    pub fn new(kinds: Vec<Fault>, seed: u64) -> Self {
        Self { kinds, left: Vec::new(), random: fastrand::Rng::with_seed(seed) }
    }

    pub fn next_fault(&mut self) -> Option<Fault> {
        if self.left.is_empty() {
            self.left.clone_from(&self.kinds);
            self.random.shuffle(&mut self.left);
        }
        self.left.pop()
    }

    pub fn pick(&mut self, below: usize) -> usize {
        self.random.usize(0..below.max(1))
    }
}
