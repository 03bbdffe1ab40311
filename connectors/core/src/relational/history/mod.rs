//! The history of structures: what tables looked like at each position of the log.
//!
//! Rows in a log have values without types, so a task that goes on at a position has to know the structures as
//! they were there. Each change of a structure is a `record` in a `store` (`file`, `memory`), with the position
//! behind which it counts; `recover` applies those up to the stored position, and `fold` makes few of many.
//! `options` and `config` say where a history is kept; who runs a task opens it.
//!
//! It does not: parse statements, know how positions of a source compare, or talk to Kafka and other nodes.

mod config;
mod file;
mod fold;
mod memory;
mod options;
mod record;
mod recover;
mod store;

pub use config::{HistoryConfig, HistoryStores, HistoryTopic, LocalStores};
pub use file::FileHistory;
pub use memory::MemoryHistory;
pub use options::{HISTORY, HISTORY_CHECKS, HISTORY_PREFIXES, HistoryPlace};
pub use record::HistoryRecord;
pub use recover::{Captured, HistoryOrder, Resumed, SchemaHistory, StopPoint};
pub use store::{HistoryReader, HistoryStore};
