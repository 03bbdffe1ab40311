//! The history of structures: what tables looked like at each position of the log.
//!
//! Rows in a log have values without types, so a task that goes on at a position has to know the structures as
//! they were there. Each change of a structure is a `record` in a `store` (`file`, `memory`), with the position
//! behind which it counts; `recover` applies those up to the stored position.
//!
//! It does not: parse statements, or know how positions of a source compare.

mod config;
mod file;
mod memory;
mod options;
mod record;
mod recover;
mod store;

pub use config::{HistoryConfig, HistoryStores, LocalStores};
pub use file::FileHistory;
pub use memory::MemoryHistory;
pub use options::{HISTORY, HISTORY_CHECKS, HISTORY_PREFIXES, HistoryPlace};
pub use record::HistoryRecord;
pub use recover::{Captured, HistoryOrder, Resumed, SchemaHistory, StopPoint};
pub use store::{HistoryReader, HistoryStore};
