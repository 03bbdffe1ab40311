//! The wire side, driven by the client that the connector uses and by packets made by hand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cancelling;
mod encryption;
mod faults;
mod instances;
mod logins;
mod memory;
mod packets;
mod procedures;
mod raw;
mod script;
mod tap;
mod transactions;
mod types;
