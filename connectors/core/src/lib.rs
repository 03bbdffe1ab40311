//! The event core that all connectors share.
//!
//! In the order in which a change passes: `source` is the SPI that a connector implements and
//! `position` what it resumes from; `record` the data model; `naming`, `filter` and `envelope` make
//! records from changes; `convert` turns them into bytes; `delivery` is the SPI towards Kafka and
//! `ack` moves the position over the contiguous prefix of acknowledged messages. `heartbeat` adds
//! records of its own; `progress` is what status and metrics read; `error` is the one error type.
//!
//! It does not: connect to anything, know a database or a Kafka client, or run tasks.

pub mod ack;
pub mod convert;
pub mod delivery;
pub mod envelope;
pub mod error;
pub mod position;
pub mod progress;
pub mod queue;
pub mod record;
pub mod source;

pub use error::{Error, ErrorKind, Phase, Policy};
