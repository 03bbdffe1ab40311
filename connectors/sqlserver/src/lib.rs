//! SQL Server source: change data capture as records in Debezium's format.
//!
//! `lsn` is a place in a database's log; `position` what a database resumes from, stored as `offsets` have it.
//! `types` says what columns hold and `literal` what their defaults are; `errors` sorts what the server refuses.

pub mod errors;
pub mod literal;
pub mod lsn;
pub mod offsets;
pub mod position;
pub mod types;
