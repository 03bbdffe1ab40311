//! Control plane of one node: who runs what, life cycle, restart, status.

pub mod port;
