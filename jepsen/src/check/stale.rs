//! A row that a snapshot read never stands behind a newer change of the same document. So whoever takes
//! each message as it comes has what the database has.

use std::collections::BTreeMap;

use super::{Evidence, Finding};
use crate::observe::SeenEvent;

/// What the topic has told of a document so far.
#[derive(Default)]
struct Told {
    /// Newest version.
    newest: i64,
    /// Oldest version that a row may still have: a deleted document comes again with a newer one.
    floor: i64,
}

pub(super) fn check(evidence: &Evidence) -> Finding {
    let (mut checked, mut violations) = (0, Vec::new());
    for (connector, messages) in evidence.topics.iter().enumerate() {
        let mut told = BTreeMap::<i64, Told>::new();
        for message in messages {
            let told = told.entry(message.key).or_default();
            match message.event {
                SeenEvent::Read(version) => {
                    checked += 1;
                    let oldest = told.floor.max(told.newest);
                    if version < oldest {
                        violations.push(format!(
                            "connector {connector}: key {} is read as version {version} at offset {}, where version \
                             {oldest} or a newer one was told of",
                            message.key, message.offset
                        ));
                    }
                    told.newest = told.newest.max(version);
                }
                SeenEvent::Version(version) => told.newest = told.newest.max(version),
                // It takes a version of its own.
                SeenEvent::Delete => told.floor = told.newest + 1,
                SeenEvent::Tombstone => {}
            }
        }
    }
    Finding::new("no stale row", checked, violations)
}
