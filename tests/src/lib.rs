//! End-to-end, compatibility and benchmark code around the product; the fixtures come from
//! `thalweg-services`. It does not contain product code, and nothing may depend on it.

pub mod golden;

pub use thalweg_services::{
    Broker, BrokerOptions, Cluster, MemberOptions, Node, Process, Proxy, Received, ReplicaSet, Rest, Role, Router,
    SchemaRegistry, Shards, Topic, free_port, node, pin, until,
};
