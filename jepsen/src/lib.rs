//! Black-box fault harness: REST, Kafka and MongoDB, nothing of the product's inside.
//!
//! In the order of a run: `lab` starts nodes, a broker and a replica set with a proxy on every link;
//! `writer` changes documents and records what the database answered; `nemesis` breaks things by the
//! schedule of `schedule`; `observe` watches stored offsets and reads the topics at the end; `check`
//! decides from the `history` alone; `report` writes it all down.
//!
//! Outcomes of the system under test and failures of the harness are different things: the latter
//! end a run without a verdict. A run in which one kind of operation never succeeded is `unknown`.

pub mod check;
pub mod history;
pub mod lab;
pub mod nemesis;
pub mod observe;
pub mod report;
pub mod run;
pub mod schedule;
pub mod writer;
