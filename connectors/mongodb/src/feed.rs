//! What the fetching side of a partition hands to its decoding side, in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use thalweg_core::progress::SnapshotProgress;

use crate::namespace::Namespace;
use crate::position::MongoPosition;
use crate::reply::{Documents, Reply};

#[derive(Debug)]
pub(crate) enum Feed {
    /// Reading starts here. To be stored before the first record: whoever takes over before a record
    /// is acknowledged must start at the same place.
    Start(MongoPosition),
    /// Documents follow, all read at or after this position; per collection what is expected.
    Snapshot(MongoPosition, BTreeMap<String, SnapshotProgress>),
    Read {
        namespace: Arc<Namespace>,
        documents: Documents,
        /// The collection ends here.
        finished: bool,
    },
    /// The snapshot is complete.
    Copied,
    /// The stream goes on behind this position.
    Stream(MongoPosition),
    Changes(Reply),
    /// Nothing follows, ever. What is known of the position.
    Finished(Option<MongoPosition>),
}
