//! Rows that were there before the connector: each is delivered, by every snapshot that was asked for.

use std::collections::{BTreeMap, BTreeSet};

use super::{Evidence, Finding, Written};
use crate::history::OpType;
use crate::observe::SeenEvent;

/// Filled keys of a topic that surely were there all along: nobody may have deleted them.
fn lasting<'a>(
    evidence: &'a Evidence,
    topic: usize,
    written: &'a BTreeMap<i64, Vec<Written>>,
) -> impl Iterator<Item = i64> + 'a {
    let deleted =
        |key: &i64| written.get(key).is_some_and(|ops| ops.iter().any(|o| o.delete && o.outcome != OpType::Fail));
    evidence.filled[topic].iter().flat_map(Clone::clone).filter(move |key| !deleted(key))
}

/// Every lasting row is read by the initial snapshot.
pub(super) fn check_copied(evidence: &Evidence, written: &[BTreeMap<i64, Vec<Written>>]) -> Finding {
    let (mut checked, mut violations) = (0, Vec::new());
    for (topic, messages) in evidence.topics.iter().enumerate() {
        let read = |m: &&crate::observe::SeenMessage| matches!(m.event, SeenEvent::Read(_));
        let seen: BTreeSet<i64> = messages.iter().filter(read).map(|m| m.key).collect();
        for key in lasting(evidence, topic, &written[topic]) {
            checked += 1;
            if !seen.contains(&key) {
                violations.push(format!("connector {topic}: key {key} was not read by the snapshot"));
            }
        }
    }
    Finding::new("no row missed by the snapshot", checked, violations)
}

/// Between a signal and the end of the topic, every lasting row comes: read, or changed. One that nobody
/// changed can only have been read.
pub(super) fn check_asked(evidence: &Evidence, written: &[BTreeMap<i64, Vec<Written>>]) -> Finding {
    let (mut checked, mut violations) = (0, Vec::new());
    for (topic, messages) in evidence.topics.iter().enumerate() {
        // When a key came last, by append time.
        let last: BTreeMap<i64, i64> = messages.iter().map(|m| (m.key, m.appended)).collect();
        for asked in evidence.asked.iter().filter(|a| a.connector == topic && a.ended.is_some() && !a.aborted) {
            let sent = evidence.start_ms + asked.sent as i64;
            for key in lasting(evidence, topic, &written[topic]) {
                checked += 1;
                if last.get(&key).is_none_or(|appended| *appended < sent) {
                    violations.push(format!("connector {topic}: key {key} did not come after signal {}", asked.id));
                }
            }
        }
    }
    Finding::new("no row missed after a signal", checked, violations)
}

/// Every snapshot that was asked for comes to its end.
pub(super) fn check_ends(evidence: &Evidence) -> Finding {
    let mut violations = Vec::new();
    for asked in &evidence.asked {
        match asked.ended {
            None => violations.push(format!("signal {} of {} ms: the snapshot has not ended", asked.id, asked.sent)),
            Some(at) if asked.aborted => {
                violations.push(format!("signal {}: the snapshot was given up at {at} ms", asked.id));
            }
            Some(_) => {}
        }
    }
    Finding::new("incremental snapshots end", evidence.asked.len(), violations)
}
