//! A shard that comes or goes does not disturb the others: their positions go on, their tasks are not
//! started anew, and nothing of theirs is repeated or comes late. All of it where no other fault meddles;
//! the positions always.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::{Evidence, Finding};
use crate::lab::{GUEST, GUEST_TASK, SHARD_KEYS};
use crate::observe::SeenEvent;

/// A shard that came or went; times in milliseconds since the start of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardChange {
    pub from: u64,
    /// All tasks run again, and every shard that stays is read, or the wait for that was over.
    pub settled: u64,
    pub came: bool,
    /// Nothing else happened meanwhile.
    pub alone: bool,
}

/// A change shows until so long after everything runs, in milliseconds.
const AFTER: u64 = 2_000;
/// Longest time without a message of a shard that stays, in milliseconds.
const LATE: i64 = 5_000;

pub(super) fn check(evidence: &Evidence) -> Finding {
    let (mut violations, mut notes) = (Vec::new(), Vec::new());
    for change in &evidence.changes {
        let what = format!("shard {} at {} ms", if change.came { "came" } else { "went" }, change.from);
        positions(evidence, change, &what, &mut violations);
        if change.alone {
            let starts = starts(evidence, change);
            notes.push(format!("{what}: {} starts of tasks", starts.values().sum::<usize>()));
            let needed = |task: u64| usize::from(change.came && task == GUEST_TASK);
            for (task, starts) in starts.iter().filter(|(task, starts)| **starts > needed(**task)) {
                violations.push(format!("{what}: task {task} was started {starts} times"));
            }
            messages(evidence, change, &what, &mut violations);
        }
    }
    Finding::new("shards that stay are not disturbed", evidence.changes.len(), violations).noting(notes)
}

/// Stored positions of the shards that stay are newer afterwards.
fn positions(evidence: &Evidence, change: &ShardChange, what: &str, violations: &mut Vec<String>) {
    let newest = |until: u64| {
        let mut newest = BTreeMap::new();
        for seen in evidence.offsets.iter().filter(|o| o.time <= until && o.partition != crate::lab::Lab::guest()) {
            let at = newest.entry(&seen.partition).or_insert(seen.at);
            *at = seen.at.max(*at);
        }
        newest
    };
    let after = newest(change.settled + AFTER);
    for (shard, before) in newest(change.from) {
        if after.get(shard).is_none_or(|after| *after <= before) {
            violations.push(format!("{what}: the position of {shard} stayed at {before:?}"));
        }
    }
}

/// New epochs by task.
fn starts(evidence: &Evidence, change: &ShardChange) -> BTreeMap<u64, usize> {
    let mut starts = BTreeMap::new();
    for seen in evidence.epochs.iter().filter(|e| (change.from..=change.settled + AFTER).contains(&e.time)) {
        *starts.entry(seen.task).or_default() += 1;
    }
    starts
}

/// Messages of the shards that stay: no repetition and no long silence.
fn messages(evidence: &Evidence, change: &ShardChange, what: &str, violations: &mut Vec<String>) {
    let from = evidence.start_ms + change.from as i64;
    let to = evidence.start_ms + (change.settled + AFTER) as i64;
    for (number, topic) in evidence.topics.iter().enumerate() {
        let mut seen = BTreeSet::new();
        let mut times = BTreeMap::<i64, Vec<i64>>::new();
        for message in topic {
            let SeenEvent::Version(version) = message.event else { continue };
            let shard = message.key.div_euclid(SHARD_KEYS);
            let first = seen.insert((message.key, version));
            let filled = |keys: &Range<i64>| keys.start.div_euclid(SHARD_KEYS) == shard;
            if shard == GUEST as i64 || !evidence.filled[number].iter().any(filled) {
                continue;
            }
            let times = times.entry(shard).or_default();
            if !(from..=to).contains(&message.appended) {
                continue;
            }
            times.push(message.appended);
            if !first {
                let offset = message.offset;
                violations.push(format!("{what}: key {} version {version} is repeated at {offset}", message.key));
            }
        }
        for (shard, times) in times {
            let ends = std::iter::once(from).chain(times.iter().copied());
            let silence = ends.zip(times.iter().chain([&to])).map(|(a, b)| b - a).max().unwrap_or(0);
            if silence > LATE {
                violations.push(format!("{what}: {silence} ms without a message of shard {shard}"));
            }
        }
    }
}
