//! What a run is about besides changes and faults: which snapshots are taken, and of what.

use serde::Serialize;

use crate::schedule::{ALL, Fault};

/// Named as on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// Changes only.
    #[default]
    Stream,
    /// Collections that were filled before the connector came, which takes no snapshot of its own;
    /// incremental ones are asked for again and again, through the signal collection.
    Incremental,
    /// The same through the topic of signals.
    IncrementalKafka,
    /// Filled collections, read by an initial snapshot over slow links while the faults come.
    Initial,
    /// One connector, a task for each shard behind a stand-in of a router; a shard comes and goes.
    Shards,
}

pub const SCENARIOS: &[Scenario] =
    &[Scenario::Stream, Scenario::Incremental, Scenario::IncrementalKafka, Scenario::Initial, Scenario::Shards];

impl Scenario {
    pub fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Incremental => "incremental",
            Self::IncrementalKafka => "incremental-kafka",
            Self::Initial => "initial",
            Self::Shards => "shards",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        SCENARIOS.iter().copied().find(|s| s.name() == name)
    }

    /// Whether incremental snapshots are asked for.
    pub fn asks(self) -> bool {
        matches!(self, Self::Incremental | Self::IncrementalKafka)
    }

    /// Whether the connectors take a snapshot of their own, so that writers need not wait for them.
    pub fn begins_with_snapshot(self) -> bool {
        matches!(self, Self::Initial | Self::Shards)
    }

    /// Faults of a run that names none.
    pub fn faults(self) -> Vec<Fault> {
        match self {
            Self::Stream | Self::Incremental | Self::IncrementalKafka => ALL.to_vec(),
            // Faults after which the old owner sends nothing: the bound of what is repeated counts from there.
            Self::Initial => {
                vec![Fault::KillOwner, Fault::KillLeader, Fault::KillAll, Fault::PauseLong, Fault::Restart]
            }
            Self::Shards => vec![
                Fault::Reshard,
                Fault::ReshardKill,
                Fault::KillOwner,
                Fault::KillLeader,
                Fault::PauseLong,
                Fault::Reshard,
                Fault::KillAll,
                Fault::ReshardKill,
            ],
        }
    }

    /// Rows of each collection before there is a connector.
    pub fn rows(self) -> i64 {
        match self {
            Self::Stream => 0,
            Self::Incremental | Self::IncrementalKafka => 2_000,
            // Smaller collections are read again from their beginning.
            Self::Initial => 12_000,
            Self::Shards => 500,
        }
    }

    /// Properties of the connectors beyond the usual ones; `database` is the connector's.
    pub fn properties(self, connector: &str, database: &str) -> Vec<(&'static str, String)> {
        let incremental = |channels: &str| {
            vec![
                ("snapshot.mode", "no_data".to_owned()),
                ("signal.data.collection", format!("{database}.signals")),
                ("signal.enabled.channels", channels.to_owned()),
                ("signal.poll.interval.ms", "1000".to_owned()),
                // Connectors share the topic's default group otherwise.
                ("signal.kafka.groupId", format!("{connector}-signals")),
                ("incremental.snapshot.chunk.size", "100".to_owned()),
                ("signal.emit.failure.max.retries", "20".to_owned()),
                ("signal.emit.failure.backoff.ms", "500".to_owned()),
                ("notification.enabled.channels", "sink".to_owned()),
                ("notification.sink.topic.name", format!("{connector}.notices")),
            ]
        };
        match self {
            Self::Stream => Vec::new(),
            Self::Incremental => incremental("source"),
            Self::IncrementalKafka => incremental("source,kafka"),
            Self::Initial => vec![
                ("snapshot.fetch.size", COPY_ANSWER.to_string()),
                ("snapshot.max.threads", COPY_READERS.to_string()),
            ],
            Self::Shards => vec![
                ("mongodb.connection.mode", "replica_set".to_owned()),
                ("tasks.max", "3".to_owned()),
                ("mongodb.poll.interval.ms", "500".to_owned()),
            ],
        }
    }
}

/// Documents in an answer of the server to a reader of the initial snapshot.
pub const COPY_ANSWER: u64 = 100;
/// Readers of an initial snapshot.
pub const COPY_READERS: u64 = 2;
