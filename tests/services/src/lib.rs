//! Real services on the loopback address: MongoDB replica sets, Kafka brokers, TCP proxies; and one that
//! is not real, the router of a sharded cluster, whose shards are. It also fetches clients of SQL Server.
//!
//! The one place that finds, fetches and starts them, for the end-to-end tests, the fault harness
//! and the demo. Everything started ends when its value is dropped, or when this process dies;
//! every wait is a wait on observable state with a deadline. Feature `nodes` adds nodes of the product
//! as processes, and the two things a user sees of them: REST and topics. It uses no product code.

mod fetch;
mod kafka;
mod mongod;
mod ports;
mod process;
mod proxy;
mod router;
mod wait;

#[cfg(feature = "nodes")]
pub mod node;
#[cfg(feature = "nodes")]
mod registry;
#[cfg(feature = "nodes")]
mod rest;
#[cfg(feature = "nodes")]
mod topic;

pub use fetch::{kafka_libs, mongod_binary, mssql_jdbc, pymssql, use_mongod};
pub use kafka::{Broker, BrokerOptions};
pub use mongod::{Member, MemberOptions, ReplicaSet};
pub use ports::free_port;
pub use process::{Process, Role, pin};
pub use proxy::Proxy;
pub use router::{Router, Shards, ask_without_session};
pub use wait::until;
#[cfg(feature = "nodes")]
pub use {
    node::{Cluster, Node},
    registry::SchemaRegistry,
    rest::{Answer, Rest},
    topic::{Received, Topic},
};
