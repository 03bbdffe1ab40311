//! MongoDB source: change streams and snapshots, as records in Debezium's format.
//!
//! In the order in which a change passes: `options` is the configuration; `pipeline` builds the
//! change stream that is asked for; `token` and `position` say where it resumes; `split` joins the
//! fragments of large events; `filter` decides what is captured; `event` makes records with the
//! schemas of `schema`, the keys of `key` and the texts of `extended_json`; `errors` sorts what the
//! server refuses. `lenient_json` reads queries that people write.

mod connect;
pub mod extended_json;
mod failure;
pub mod filter;
pub mod lenient_json;
pub mod namespace;
pub mod options;
mod outage;
mod plan;
pub mod raw;
mod reply;
mod shard;
mod start;
mod stream;
mod topology;
mod window;
mod errors;
pub mod pipeline;
pub mod position;
pub mod token;
mod change;
pub mod event;
pub mod key;
pub mod schema;
pub mod split;
