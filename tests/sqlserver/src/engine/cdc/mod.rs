//! Change data capture.
//!
//! Follows "What is change data capture (CDC)?", "Administer and monitor change data capture" and the pages
//! of the procedures, tables and functions. `capture` is what an instance is, `enable` makes and drops them,
//! `scan` moves changes from the log into change tables, `job` says when, `cleanup` deletes them.

pub(crate) mod capture;
mod cleanup;
pub(crate) mod enable;
pub(crate) mod job;
mod scan;
