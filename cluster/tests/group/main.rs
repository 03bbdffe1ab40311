//! Groups of nodes: simulated ones over the in-memory network with faults, and real ones over TCP.
//!
//! Everything waits on state. A wait that takes too long fails with what the nodes say of themselves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod disk;
mod faults;
mod forming;
mod leaving;
mod quiet;
mod sim;
mod snapshots;
mod tcp;
mod writing;
