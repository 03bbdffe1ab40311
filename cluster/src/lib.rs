//! The cluster: identical nodes that agree through Raft on who runs what.
//!
//! Files in the order in which a change of plan passes through them: `raft` (commands, replicated
//! state), `lease` (who may run at all), `plan` (who should run what), `leader` (proposes that),
//! `herder` (what this node runs), `port` (what its units see of the cluster), `commit` (what they
//! report back). Underneath: `rpc` carries calls between nodes, `consensus` is the running Raft node,
//! `membership` says who belongs to it. On top: `api` is what can be asked for, `rest` and `screen` how
//! people ask, `logging` what they read; `node` puts everything together.
//!
//! It does not know a connector: those come in through the traits of `connectors/core`.

pub mod api;
pub mod commit;
pub mod consensus;
pub mod herder;
pub mod leader;
pub mod lease;
pub mod logging;
pub mod membership;
pub mod node;
pub mod plan;
pub mod port;
pub mod raft;
pub mod rest;
pub mod rpc;
pub mod screen;

/// Commit the build was made from, if the build was told.
pub const COMMIT: &str = match option_env!("THALWEG_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

/// Milliseconds since the epoch. For what people read; nothing is decided by it.
pub(crate) fn wall_clock_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod simulation;
