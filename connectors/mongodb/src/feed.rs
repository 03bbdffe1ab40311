//! What the fetching side of a partition hands to its decoding side, in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use thalweg_core::progress::SnapshotProgress;
use thalweg_core::snapshot::Copied;

use crate::namespace::Namespace;
use crate::position::MongoPosition;
use crate::reply::{Documents, Reply};

/// Which documents of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// In the order in which they lie; where to go on is not known.
    Whole,
    /// Of a range, in the order of `_id`.
    Range {
        number: usize,
        /// The document with this `_id` is delivered already, should it be the first.
        delivered: Option<Bytes>,
        /// The range ends here.
        ended: bool,
    },
}

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
        /// What is done already, and in which ranges the rest is read.
        copied: Copied,
        /// Asked for by a signal: the stream waits, and goes on where it stands.
        blocking: bool,
    },
    Read {
        namespace: Arc<Namespace>,
        documents: Documents,
        part: Part,
    },
    /// Everything of this collection was handed over.
    CollectionRead(Arc<Namespace>),
    /// The snapshot is complete.
    Copied,
    /// This task's portion of a snapshot is; the first one goes on with it.
    PortionCopied,
    /// A blocking snapshot did not come to its end; the stream goes on.
    Aborted,
    /// The stream goes on behind this position.
    Stream(MongoPosition),
    Changes(Reply),
    /// Nothing follows, ever. What is known of the position.
    Finished(Option<MongoPosition>),
}
