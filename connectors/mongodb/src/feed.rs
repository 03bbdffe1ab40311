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
    /// Documents follow, all read at or after `position`.
    Snapshot {
        position: MongoPosition,
        /// Per collection what is expected.
        expected: BTreeMap<String, SnapshotProgress>,
        /// Asked for by a signal: the stream waits, and goes on where it stands.
        blocking: bool,
    },
    Read {
        namespace: Arc<Namespace>,
        documents: Documents,
        /// The collection begins here.
        begun: bool,
        /// The collection ends here.
        finished: bool,
    },
    /// The snapshot is complete.
    Copied,
    /// A blocking snapshot did not come to its end; the stream goes on.
    Aborted,
    /// The stream goes on behind this position.
    Stream(MongoPosition),
    Changes(Reply),
    /// Nothing follows, ever. What is known of the position.
    Finished(Option<MongoPosition>),
}
