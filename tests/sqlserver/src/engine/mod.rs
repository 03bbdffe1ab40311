//! The engine: T-SQL and change data capture on embedded SQLite.
//!
//! A request goes through `sql` (text to statements), `bind` (names looked up, types found, SQLite's SQL
//! written), `run` (control of flow, reading, writing, transactions) and comes out at `Answers`. `functions`
//! are what expressions call, `views` and `procedures` what the system itself offers, `cdc` the capture job
//! and what it makes.
//!
//! How it keeps and shares data:
//! - Definitions (`catalogue`) are in memory and immutable; a definition replaces a whole database value.
//! - Rows are in one SQLite file in a temporary folder, in WAL mode; nothing outlives the engine. A table
//!   is a SQLite table named after its object id, so statements reach over databases freely.
//! - Every session has a SQLite connection of its own. A T-SQL statement is one SQLite transaction: reading
//!   statements see one state and hold nobody up, writing statements run one after the other.
//! - T-SQL transactions are made of row versions, not of SQLite's: each row says which transaction made it
//!   and which ended it. From that come rollback, savepoints, dirty reads and `SNAPSHOT`. Versions that
//!   nobody can see any more are deleted.
//! - `locks` holds locks of whole tables; what row locks would do follows from the versions.
//!
//! Limits that follow from this: a reader under `READ COMMITTED` waits for every writer of the table, also
//! when its rows are others; `SERIALIZABLE` locks whole tables. Definitions in a transaction can be rolled
//! back, but other sessions see them before the commit.

pub(crate) mod bind;
pub(crate) mod catalogue;
pub(crate) mod cdc;
pub(crate) mod fault;
pub(crate) mod functions;
pub(crate) mod kinds;
pub(crate) mod locks;
pub(crate) mod log;
pub(crate) mod procedures;
pub(crate) mod run;
pub(crate) mod session;
pub(crate) mod shared;
pub(crate) mod sql;
pub(crate) mod views;
pub(crate) mod world;

mod emulator;

pub use emulator::{Capturing, Emulator, Setup};
