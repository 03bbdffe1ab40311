//! The replicated log and what it makes of itself.
//!
//! Files in the order in which a write passes through them: `unit` names what is placed; `command`
//! is what can be written and answered; `proposer` is how everybody above hands a command in;
//! `state` is what applying it does; `view` is how everybody above reads the result. Beneath:
//! `types` are openraft's parameters and their stored forms, `store` keeps log and vote, `network`
//! carries openraft's calls, `ballots` keeps what voters say with their votes, `machine` applies entries, `snapshot` is the state as bytes.
//!
//! Everything above Raft uses [`Proposer`] and [`StateView`] only.

pub mod ballots;
pub mod command;
pub mod machine;
pub mod network;
pub mod proposer;
pub mod snapshot;
pub mod state;
pub mod store;
pub mod types;
pub mod unit;
pub mod view;

pub use ballots::Leadership;
pub use command::{Command, CommandV1, Refusal, Reply};
pub use proposer::{ProposeError, Proposer};
pub use state::State;
pub use unit::{Name, NodeId, Unit};
pub use view::StateView;

use bincode::config::{Configuration, Limit, LittleEndian, Varint};

/// Encoding of every persisted or sent body (inside a frame with its own length and checksum). The
/// limit bounds what a damaged length can make a decoder allocate.
pub const BODY: Configuration<LittleEndian, Varint, Limit<{ 1 << 30 }>> =
    bincode::config::standard().with_limit::<{ 1 << 30 }>();

#[cfg(test)]
mod golden;
#[cfg(test)]
pub(crate) mod local;
