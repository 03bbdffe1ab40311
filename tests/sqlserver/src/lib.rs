//! A server that speaks TDS and runs T-SQL with change data capture, for tests of the SQL Server connector.
//!
//! From the socket inwards: `wire` (packets, TLS, login, requests, answers as tokens) calls a [`Session`]
//! for each request; `engine` implements it: T-SQL parsed, translated and run on SQLite, with the capture
//! job beside it. `types` and `value` are what both sides mean by a column and a value.
//!
//! Every behaviour cites the documentation that it follows; where that is silent, it says so. It does not
//! model cost, plans or storage.

pub mod engine;
pub mod session;
pub mod types;
pub mod value;
pub mod wire;
