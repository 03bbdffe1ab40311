//! The connector against real mongod processes, and against a stand-in for a router.
//!
//! Every test has databases of its own; most share one server. Nothing sleeps: tests wait for
//! records, errors and states of servers. Names that start with `mgo_`, `cnv_`, `cfg_` and `kfk_` are cases of
//! the catalogue of known faults of comparable products, those with `t_` and a number of the list of cases that
//! this connector is measured by.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]

mod access;
mod ad_hoc;
mod cases;
mod elections;
mod faults;
mod fixture;
mod heartbeats;
mod images;
mod lost;
mod modes;
mod namespaces;
mod resume;
mod sharded;
mod snapshot;
mod spread;
mod stream;
mod transactions;
