//! Snapshots, as far as they are the same for all connectors: how far a first one has come ([`Copied`]),
//! how several tasks share it ([`Spread`]), and those that are taken while changes are streamed.
//!
//! [`Incremental`] is the state machine that a reader drives in the order of its log: it is told of
//! signals, watermarks and changed keys, and gives back the rows that no change has overtaken.
//! [`read_chunk`] reads one chunk between two watermarks over what a connector offers as a [`ChunkReader`].
//! What is under way is kept in the stored offset, beside the position.
//!
//! It does not: read a log, make records of rows, or decide where they go.

mod chunk;
mod copied;
mod incremental;
mod meter;
mod spread;
mod state;

pub use chunk::{Chunk, ChunkOrder, ChunkReader, ChunkRow, Status, Step, Strategy, means, read_chunk};
pub use copied::{Advance, COPIED, Copied, Range};
pub use incremental::{Closed, Incremental, Limits, Pattern, Queued};
pub use meter::{IncrementalMeter, IncrementalView, Scanned, Standing};
pub use spread::{Spread, portion_of};
pub use state::{KeyText, is_state};
