//! After everything has healed, the last record of a document is what the source holds.

use std::collections::BTreeMap;

use super::{Evidence, Finding};
use crate::observe::SeenEvent;

pub(super) fn check(evidence: &Evidence) -> Finding {
    let (mut checked, mut violations) = (0, Vec::new());
    for (connector, (messages, source)) in evidence.topics.iter().zip(&evidence.source).enumerate() {
        let last: BTreeMap<i64, SeenEvent> = messages.iter().map(|m| (m.key, m.event)).collect();
        for (key, event) in &last {
            checked += 1;
            match (event, source.get(key)) {
                (SeenEvent::Version(v) | SeenEvent::Read(v), Some(s)) if v == s => {}
                (SeenEvent::Tombstone, None) => {}
                (event, held) => violations
                    .push(format!("connector {connector}: key {key} ends with {event:?}, the source holds {held:?}")),
            }
        }
        for key in source.keys().filter(|k| !last.contains_key(k)) {
            violations.push(format!("connector {connector}: key {key} of the source has no record"));
        }
    }
    Finding::new("last record equals source", checked, violations)
}

/// The last version of a document is the newest one that the topic has: a late write of a stale
/// owner would stand behind newer ones.
pub(super) fn check_tail(evidence: &Evidence) -> Finding {
    let (mut checked, mut violations) = (0, Vec::new());
    for (connector, messages) in evidence.topics.iter().enumerate() {
        let mut newest = BTreeMap::<i64, (i64, i64)>::new();
        for message in messages {
            if let SeenEvent::Version(version) | SeenEvent::Read(version) = message.event {
                let entry = newest.entry(message.key).or_insert((version, version));
                *entry = (entry.0.max(version), version);
            }
        }
        for (key, (newest, last)) in newest {
            checked += 1;
            if last < newest {
                violations
                    .push(format!("connector {connector}: key {key} ends with version {last}, newest was {newest}"));
            }
        }
    }
    Finding::new("no stale tail", checked, violations)
}
