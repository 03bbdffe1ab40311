//! Replays recordings of Debezium's MongoDB connector against the product and compares what comes out.
//!
//! A recording (`tests/golden`) holds a scenario and everything that Debezium answered or emitted for it.
//! [`replay`] runs its steps again and collects [`Difference`]s. Texts are compared as texts: the order of
//! fields, spacing and the notation of numbers count; only what differs between any two runs is masked.
//! What differs on purpose stands in one table ([`deliberate`]); a row that is no longer true is a fault of
//! its own.
//!
//! It uses no product code: it sees the product through REST and topics, as its users do.

mod call;
mod clocks;
mod compare;
pub mod deliberate;
mod difference;
mod document;
mod mask;
mod names;
mod observe;
mod recording;
mod replay;
mod rest_mask;
mod run;
mod shorten;
mod text;
mod verdict;
mod write;

pub use difference::Difference;
pub use recording::{Recording, load};
pub use replay::{Surroundings, replay};
pub use verdict::Verdict;
