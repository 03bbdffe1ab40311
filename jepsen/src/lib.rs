//! Black-box fault harness: REST, Kafka and MongoDB, nothing of the product's inside.
//!
//! In the order of a run: `scenario` says what it is about besides changes and faults (snapshots that are
//! asked for, an initial one that is interrupted, shards that come and go); `lab` starts nodes, a broker
//! and a replica set, or several as shards, with a proxy on every link; `writer` changes documents and
//! records what the database answered; `asker` asks for incremental snapshots; `nemesis` breaks things by
//! the schedule of `schedule`; `observe` watches stored offsets and owners and reads the topics at the
//! end; `check` decides from the `history` and what was seen alone; `report` writes it all down.
//!
//! Outcomes of the system under test and failures of the harness are different things: the latter
//! end a run without a verdict. A run in which one kind of operation never succeeded is `unknown`.

pub mod asker;
pub mod check;
pub mod history;
pub mod lab;
pub mod nemesis;
pub mod observe;
pub mod report;
pub mod run;
pub mod scenario;
pub mod schedule;
pub mod writer;
