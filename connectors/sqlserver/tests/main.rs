//! The connector against the emulator.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod catalogue;
mod databases;
mod fixture;
mod handover;
mod histories;
mod link;
mod modes;
mod order;
mod reading;
mod resume;
mod stream;
mod structures;
mod tables;
mod values;
