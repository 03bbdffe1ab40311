//! The cluster: identical nodes that agree through Raft on who runs what.
//!
//! Files in the order in which a change of plan passes through them: `raft` (commands, replicated
//! state), `plan` (who should run what), `lease` (who may run at all), `herder` (what this node
//! runs), `commit` (what it reports back).
//!
//! It does not know a connector: those come in through the traits of `connectors/core`.

pub mod raft;
