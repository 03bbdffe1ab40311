//! First occurrences of a document's versions come in the order in which they were written. Rows that a
//! snapshot read are apart: the stream begins where the snapshot began, so it comes to their past.

use std::collections::BTreeMap;

use super::{Evidence, Finding};
use crate::observe::SeenEvent;

pub(super) fn check(evidence: &Evidence) -> Finding {
    let (mut checked, mut violations) = (0, Vec::new());
    for (connector, messages) in evidence.topics.iter().enumerate() {
        let mut newest = BTreeMap::<i64, i64>::new();
        let mut seen = std::collections::BTreeSet::<(i64, i64)>::new();
        for message in messages {
            let SeenEvent::Version(version) = message.event else {
                continue;
            };
            if !seen.insert((message.key, version)) {
                continue;
            }
            checked += 1;
            let last = newest.entry(message.key).or_insert(i64::MIN);
            if version < *last {
                violations.push(format!(
                    "connector {connector}: key {} version {version} first appears at offset {} behind version {last}",
                    message.key, message.offset
                ));
            }
            *last = (*last).max(version);
        }
    }
    Finding::new("first occurrences in order", checked, violations)
}
