//! SQL Server source: change data capture as records in Debezium's format.
//!
//! In the order in which a change passes: `options` is the configuration; a `link` speaks to the server, in the
//! words of `statement`; the `catalogue` is what a database says of itself, its capture `instance`s among it. The
//! `stream` finds the window to read: `pages` of each change table, whose rows (`change`) `merge` puts in the
//! order of the log. `pace` is how long to wait for the next, `transaction_end` tells when a transaction is over that
//! nothing follows. `lsn` is a place in that log; `position` what a database resumes from, stored as `offsets`
//! have it. `types` says what columns hold and `literal` what their defaults are; `errors` sorts what the server
//! refuses.
//!
//! Around it: `connector` plans tasks (`plan`) and looks at the server (`check`); a `task` opens a partition for each
//! database. Its `pump` fetches: the rows of a `snapshot`, read by the statements of `select`, and the stream; the
//! `history` has a structure before anything is told that has it. What is fetched goes as `feed` to the `reader`, whose
//! `recorder` makes records with their `source_block`.
//!
//! Not there yet: signals, and with them incremental and blocking snapshots.

pub mod catalogue;
pub mod change;
mod check;
mod connector;
pub mod errors;
mod feed;
mod history;
pub mod instance;
pub mod link;
pub mod literal;
pub mod lsn;
mod merge;
pub mod offsets;
pub mod options;
pub mod pace;
mod pages;
mod plan;
pub mod position;
mod pump;
mod reader;
pub mod recorder;
pub mod select;
mod snapshot;
pub mod source_block;
pub mod statement;
pub mod stream;
mod task;
pub mod transaction_end;
pub mod types;

pub use connector::SqlServerConnector;
