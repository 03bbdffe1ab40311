//! Fixtures of the end-to-end tests around the product itself.
//!
//! `node` runs the `thalweg` binary; `rest` and `topic` look at what it does the way a user would.
//! The services come from `thalweg-services`. Everything that is started ends when its value is
//! dropped, and every wait is a wait on observable state with a deadline.
//!
//! It does not contain product code, and nothing may depend on it.

pub mod node;
pub mod rest;
pub mod topic;

pub use node::{Cluster, Node};
pub use thalweg_services::{Broker, BrokerOptions, MemberOptions, Proxy, ReplicaSet, free_port, until};
