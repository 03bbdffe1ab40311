//! The event core that all connectors share.
//!
//! In the order in which a change passes: `source` is the SPI that a connector implements and
//! `position` what it resumes from; `record` the data model; `filter`, `naming` and `envelope` make
//! records from changes, for sources with tables together with `relational`; `transaction`, `heartbeat` and
//! `notification` add records of their own, `signal` and `snapshot` what users ask for while changes are
//! streamed; `queue` carries batches from reader to encoder; `repstance` gives records the second message
//! format, `transform` and `convert` turn them into bytes, `tolerance` says what happens to those that cannot
//! be; `delivery` is the SPI towards Kafka and `ack` moves the position over the contiguous prefix of
//! acknowledged messages. `progress` is what status and metrics read, `stillness` notices a
//! position that does not move; `error` is the one error type, `event_failure` the reaction to an event without a
//! record.
//!
//! It does not: connect to anything, know a database or a Kafka client, or run tasks.

pub mod ack;
pub mod convert;
pub mod delivery;
pub mod envelope;
pub mod error;
pub mod event_failure;
pub mod filter;
pub mod heartbeat;
pub mod naming;
pub mod notification;
pub mod pkcs12;
pub mod position;
pub mod progress;
pub mod queue;
pub mod record;
pub mod relational;
pub mod repstance;
pub mod signal;
pub mod snapshot;
pub mod source;
pub mod stillness;
pub mod tolerance;
pub mod transaction;
pub mod transform;

pub use error::{Error, ErrorKind, Phase, Policy};
