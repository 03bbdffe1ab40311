//! Real services on the loopback address: MongoDB replica sets, Kafka brokers, TCP proxies.
//!
//! The one place that finds, fetches and starts them, for the end-to-end tests, the fault harness
//! and the demo. Everything started ends when its value is dropped, or when this process dies;
//! every wait is a wait on observable state with a deadline. It knows nothing of Thalweg.

mod fetch;
mod kafka;
mod mongod;
mod ports;
mod process;
mod proxy;
mod wait;

pub use fetch::{kafka_libs, mongod_binary, use_mongod};
pub use kafka::{Broker, BrokerOptions};
pub use mongod::{Member, MemberOptions, ReplicaSet};
pub use ports::free_port;
pub use process::Process;
pub use proxy::Proxy;
pub use wait::until;
