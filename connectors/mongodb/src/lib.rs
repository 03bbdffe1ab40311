//! MongoDB source: change streams and snapshots, as records in Debezium's format.
//!
//! In the order in which a change passes: `options` is the configuration; `connector` plans the tasks
//! (`plan`), having looked at the cluster (`check`, `topology`, `shard`), and `task` opens their
//! partitions. A partition has two sides. `pump` fetches: over a `link` (`connect`, `keystore`, `outage`) it
//! finds where to `start` (`offsets`), copies collections (`snapshot`, `window`) and follows the change
//! `stream`, whose `pipeline` is asked for; raw replies (`reply`) go as `feed` to the other side.
//! `reader` decodes: `token` and `position` say where to resume; `split` joins the fragments of large
//! events; `filter` decides what is captured; `event` makes records of a `change` with the schemas of
//! `schema`, the keys of `key` and the texts of `extended_json`; `fields` leaves out or renames some
//! fields of its documents; `transaction` tells begin and end of transactions. Beside the stream `ad_hoc`
//! follows `signals`, and `chunks` reads what incremental snapshots ask for;
//! a `place` is where both stand in a collection. `transforms`
//! are those that only know this connector's records. `errors` sorts what the server
//! refuses. `raw` walks BSON; `lenient_json` reads queries that people write.

mod ad_hoc;
mod change;
mod check;
mod chunks;
mod connect;
mod connector;
mod copier;
mod errors;
pub mod event;
pub mod extended_json;
mod failure;
mod feed;
pub mod fields;
pub mod filter;
pub mod key;
mod keystore;
pub mod lenient_json;
mod link;
pub mod namespace;
mod offsets;
pub mod options;
mod outage;
pub mod pipeline;
mod place;
mod plan;
pub mod position;
mod pump;
pub mod raw;
mod reader;
mod reply;
pub mod schema;
mod shard;
pub mod signals;
mod snapshot;
pub mod split;
mod spread;
mod start;
mod stream;
mod task;
pub mod token;
mod topology;
mod transaction;
mod transforms;
mod unseen;
mod window;

pub use connector::MongoDbConnector;
pub use place::PlaceText;
