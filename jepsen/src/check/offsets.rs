//! A stored offset never moves back, as any one node shows it between two of its restarts.

use std::collections::BTreeMap;

use super::{Evidence, Finding};
use crate::observe::ClusterTime;

pub(super) fn check(evidence: &Evidence) -> Finding {
    let mut newest = BTreeMap::<(u64, u64, usize, &str), ClusterTime>::new();
    let mut violations = Vec::new();
    for seen in &evidence.offsets {
        let last = newest.entry((seen.node, seen.run, seen.connector, &seen.partition)).or_insert(seen.at);
        if seen.at < *last {
            violations.push(format!(
                "connector {} {}: node {} showed {:?} at {} ms after {last:?}",
                seen.connector, seen.partition, seen.node, seen.at, seen.time
            ));
        }
        *last = (*last).max(seen.at);
    }
    Finding::new("offsets never move back", evidence.offsets.len(), violations)
}
