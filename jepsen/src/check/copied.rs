//! An initial snapshot that is interrupted goes on where it stood: at most one answer of the server for
//! each reader is repeated, beside what was delivered and not stored yet.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Evidence, Finding};
use crate::observe::SeenEvent;

/// One initial snapshot; times in milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Copying {
    pub connector: usize,
    /// `None`: not within the run.
    pub ended: Option<i64>,
    /// How often another owner, or the same one anew, took the task before the end.
    pub moves: usize,
    /// Around each fault of an owner before the end: what came meanwhile may not have been stored.
    pub unstored: Vec<(i64, i64)>,
    /// Most rows that one interruption repeats: readers times the rows of an answer.
    pub chunk: usize,
}

pub(super) fn check(evidence: &Evidence) -> Finding {
    let (mut checked, mut violations, mut notes) = (0, Vec::new(), Vec::new());
    for copying in &evidence.copies {
        let connector = copying.connector;
        let reads: Vec<_> =
            evidence.topics[connector].iter().filter(|m| matches!(m.event, SeenEvent::Read(_))).collect();
        checked += reads.len();
        if copying.ended.is_none() {
            violations.push(format!("connector {connector}: the snapshot has not ended"));
        }
        let rows = reads.iter().map(|m| m.key).collect::<BTreeSet<_>>().len();
        let repeated = reads.len() - rows;
        let unstored: usize = copying
            .unstored
            .iter()
            .map(|(from, to)| reads.iter().filter(|m| (*from..=*to).contains(&m.appended)).count())
            .sum();
        let interruptions = copying.moves.max(copying.unstored.len());
        let allowed = interruptions * copying.chunk + unstored;
        let figures = format!(
            "connector {connector}: {rows} rows, {repeated} repeated in {interruptions} interruptions, at most \
             {allowed} may be ({unstored} not stored yet)"
        );
        if repeated > allowed {
            violations.push(figures.clone());
        }
        notes.push(figures);
    }
    Finding::new("interrupted snapshots go on", checked, violations).noting(notes)
}
