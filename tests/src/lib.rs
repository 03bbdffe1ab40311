//! Fixtures of the end-to-end tests: real services, real nodes.
//!
//! `services` starts mongod replica sets, Kafka brokers and TCP proxies; `node` runs the `thalweg`
//! binary; `rest` and `topic` look at what it does the way a user would. Everything that is started
//! ends when its value is dropped, and every wait is a wait on observable state with a deadline.
//!
//! It does not contain product code, and nothing may depend on it.

pub mod node;
pub mod ports;
pub mod process;
pub mod rest;
pub mod services;
pub mod topic;
pub mod wait;

pub use node::{Cluster, Node};
pub use services::{Broker, ReplicaSet};
