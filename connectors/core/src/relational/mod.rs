//! What sources with tables share: structures, their history, and events from rows.
//!
//! `table_id`, `column` and `table` describe tables, `table_json` is their form in records. Which of them are
//! captured is said by `table_filter` and `column_filter`, which columns make a key by `message_key`. A row is
//! of `cell`s with the dates and times of `moment`; `value_type` turns them into values of messages as `modes`
//! say (`temporal` for dates and times), and `column_mappers` change those as the user's rules want it
//! (`mapping`, `digest`). `schema_builder` makes the `table_schema` of a table, with which `event` turns changes
//! of rows into records. `history` keeps what structures were at which position, and `schema_change` tells
//! consumers of their changes. `options` has what a user chooses, `snapshot_mode` what a start reads,
//! `select_overrides` the user's statements for it, and `marks` says of each row where in a snapshot it stands.
//!
//! It does not: know a database product, connect to one, or run tasks.

pub mod cell;
pub mod column;
pub mod column_filter;
pub mod column_mappers;
mod digest;
pub mod event;
#[cfg(test)]
mod fixture;
pub mod history;
mod mapping;
pub mod marks;
pub mod message_key;
pub mod modes;
pub mod moment;
pub mod options;
pub mod schema_builder;
pub mod schema_change;
pub mod select_overrides;
pub mod snapshot_mode;
pub mod table;
pub mod table_filter;
pub mod table_id;
pub mod table_json;
pub mod table_schema;
mod temporal;
pub mod value_type;
