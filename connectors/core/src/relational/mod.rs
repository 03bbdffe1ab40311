//! What sources with tables share: structures, their history, and events from rows.
//!
//! `table_id`, `column` and `table` describe tables, `table_json` is their form in records.
//!
//! It does not: know a database product, connect to one, or run tasks.

pub mod column;
pub mod table;
pub mod table_id;
pub mod table_json;
