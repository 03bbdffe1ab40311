//! How a node takes part: its address, how it finds its group, and all times.

use std::time::Duration;

use openraft::{Config, SnapshotPolicy};

#[derive(Debug, Clone)]
pub struct Settings {
    /// `host:port` under which other nodes reach this one.
    pub address: String,
    pub formation: Formation,
    pub timing: Timing,
}

/// How a node without data finds its group. With data, it knows its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Formation {
    /// A group of its own.
    Alone,
    /// One of the nodes that form the group at their first start. `seeds` are the addresses of all of
    /// them, this node's among them, written alike on every node.
    Found { seeds: Vec<String> },
    /// Joins a group that exists; `seeds` are addresses of its nodes.
    Join { seeds: Vec<String> },
}

impl Formation {
    pub fn seeds(&self) -> &[String] {
        match self {
            Self::Alone => &[],
            Self::Found { seeds } | Self::Join { seeds } => seeds,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Timing {
    pub heartbeat: Duration,
    /// A follower that hears nothing waits out the leader's right (the longest of these) and then a
    /// random time between the two, before it asks the others whether they would vote for it. So an
    /// unreachable leader is replaced after 1.4 to 1.8 s, within the lease of the workers; one whose
    /// process is known to be gone after 0.3 to 0.5 s.
    pub election: (Duration, Duration),
    /// Limit of a proposal.
    pub propose: Duration,
    /// Entries between two snapshots: what a restart may have to apply again.
    pub snapshot_entries: u64,
    /// Encoded size of entries after which a snapshot is due as well.
    pub snapshot_bytes: u64,
    /// Entries kept behind a snapshot, for followers that are a little late.
    pub keep_entries: u64,
    /// A voter that is not there for this time is replaced, if a learner can take its place.
    pub replace_after: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_millis(250),
            election: (Duration::from_millis(500), Duration::from_millis(900)),
            propose: Duration::from_secs(5),
            snapshot_entries: 2_000,
            snapshot_bytes: 32 << 20,
            keep_entries: 1_000,
            replace_after: Duration::from_secs(30),
        }
    }
}

impl Timing {
    pub(super) fn config(&self) -> Result<Config, String> {
        let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        let (shortest, longest) = self.election;
        let config = Config {
            cluster_name: "thalweg".into(),
            heartbeat_interval: millis(self.heartbeat),
            election_timeout_min: millis(shortest),
            election_timeout_max: millis(longest),
            enable_pre_vote: Some(true),
            // A leader that lost its majority falls silent at times, so that those it still reaches
            // are free to elect another one.
            quorum_loss_probe_interval: Some(millis(longest) * 2),
            // The state machine is not durable entry by entry: a restarted leader is elected anew.
            enable_leader_restore: Some(false),
            snapshot_policy: SnapshotPolicy::LogsSinceLast(self.snapshot_entries),
            max_in_snapshot_log_to_keep: self.keep_entries,
            replication_lag_threshold: self.snapshot_entries.saturating_mul(2),
            // Bounds what waits in memory; the numbers are far above what a cluster needs.
            api_channel_size: Some(1_024),
            notification_channel_size: Some(2_048),
            max_payload_entries: 256,
            install_snapshot_timeout: 30_000,
            ..Config::default()
        };
        config.validate().map_err(|e| e.to_string())
    }
}
