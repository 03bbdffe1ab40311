//! No acknowledged write is missing from its topic, and nothing is there that nobody wrote.
//!
//! Where capturing begins with a snapshot, it passes over what came before the first version that a
//! document is seen with; from then on nothing may be missing.

use std::collections::{BTreeMap, BTreeSet};

use super::{Evidence, Finding, Written};
use crate::history::OpType;
use crate::observe::SeenEvent;

pub(super) fn check(evidence: &Evidence, written: &[BTreeMap<i64, Vec<Written>>]) -> Finding {
    let begins_with_snapshot = evidence.scenario.begins_with_snapshot();
    let (mut checked, mut violations) = (0, Vec::new());
    for (connector, (messages, documents)) in evidence.topics.iter().zip(written).enumerate() {
        let mut versions = BTreeMap::<i64, BTreeSet<i64>>::new();
        let mut deletes = BTreeMap::<i64, usize>::new();
        for message in messages {
            match message.event {
                SeenEvent::Version(v) | SeenEvent::Read(v) => {
                    versions.entry(message.key).or_default().insert(v);
                }
                SeenEvent::Delete => *deletes.entry(message.key).or_default() += 1,
                SeenEvent::Tombstone => {}
            }
        }
        for (key, operations) in documents {
            let seen = versions.remove(key).unwrap_or_default();
            let first = match begins_with_snapshot {
                true => seen.first().copied().unwrap_or(i64::MAX),
                false => i64::MIN,
            };
            let acknowledged = |o: &&Written| o.outcome == OpType::Ok && o.version >= first;
            for operation in operations.iter().filter(acknowledged).filter(|o| !o.delete) {
                checked += 1;
                if !seen.contains(&operation.version) {
                    violations.push(format!("connector {connector}: key {key} version {} is lost", operation.version));
                }
            }
            let filled = evidence.filled.get(connector).is_some_and(|f| f.iter().any(|keys| keys.contains(key)));
            for version in &seen {
                let known = (*version == 0 && filled)
                    || operations.iter().any(|o| !o.delete && o.version == *version && o.outcome != OpType::Fail);
                if !known {
                    violations.push(format!("connector {connector}: key {key} version {version} was never written"));
                }
            }
            // Deletes carry no version: there must be at least as many as were acknowledged.
            let acknowledged = operations.iter().filter(acknowledged).filter(|o| o.delete).count();
            let seen_deletes = deletes.get(key).copied().unwrap_or(0);
            checked += acknowledged;
            if seen_deletes < acknowledged {
                violations
                    .push(format!("connector {connector}: key {key} has {seen_deletes} of {acknowledged} deletes"));
            }
        }
    }
    Finding::new("no acknowledged write missing", checked, violations)
}
