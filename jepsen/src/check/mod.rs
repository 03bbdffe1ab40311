//! Verdicts from what was written and what was seen. Pure: the tests feed them made-up runs.
//!
//! `false` beats `unknown` beats `true`: one violation is a violation, and a run in which nothing
//! succeeded proves nothing.

pub mod copied;
mod last;
mod loss;
mod offsets;
mod order;
mod rows;
mod stale;
pub mod undisturbed;

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Serialize;

use self::copied::Copying;
use self::undisturbed::ShardChange;
use crate::asker::Asked;
use crate::history::{Function, Op, OpType};
use crate::observe::{SeenEpoch, SeenMessage, SeenOffset};
use crate::scenario::Scenario;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Valid,
    Unknown,
    Invalid,
}

/// Result of one checker.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    pub checker: &'static str,
    pub verdict: Verdict,
    /// What was looked at, as a number.
    pub checked: usize,
    /// The first violations, in words.
    pub violations: Vec<String>,
    pub violation_count: usize,
    /// Figures that decide nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Finding {
    fn new(checker: &'static str, checked: usize, violations: Vec<String>) -> Self {
        let verdict = match (violations.is_empty(), checked) {
            (false, _) => Verdict::Invalid,
            (true, 0) => Verdict::Unknown,
            (true, _) => Verdict::Valid,
        };
        let violation_count = violations.len();
        let violations = violations.into_iter().take(20).collect();
        Self { checker, verdict, checked, violations, violation_count, notes: Vec::new() }
    }

    fn noting(self, notes: Vec<String>) -> Self {
        Self { notes, ..self }
    }
}

/// Everything the checkers look at, per connector (database name).
#[derive(Debug, Default)]
pub struct Evidence {
    pub scenario: Scenario,
    /// Start of the run, milliseconds since the epoch.
    pub start_ms: i64,
    pub ops: Vec<Op>,
    /// Messages of each connector's topic in offset order.
    pub topics: Vec<Vec<SeenMessage>>,
    /// Version of every document in the source at the end.
    pub source: Vec<BTreeMap<i64, i64>>,
    pub offsets: Vec<SeenOffset>,
    pub epochs: Vec<SeenEpoch>,
    /// Keys that had version 0 before there was a connector.
    pub filled: Vec<Vec<Range<i64>>>,
    pub asked: Vec<Asked>,
    pub copies: Vec<Copying>,
    pub changes: Vec<ShardChange>,
}

/// What is known about one operation on a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    pub version: i64,
    pub delete: bool,
    pub outcome: OpType,
}

impl Evidence {
    /// Operations by connector and key, in the order of their versions.
    pub(crate) fn written(&self, database: impl Fn(usize) -> String) -> Vec<BTreeMap<i64, Vec<Written>>> {
        let mut all = vec![BTreeMap::<i64, Vec<Written>>::new(); self.topics.len()];
        for op in self.ops.iter().filter(|o| o.kind != OpType::Invoke) {
            let (collection, key, version, delete) = match &op.function {
                Function::Write { collection, key, version } => (collection, *key, *version, false),
                Function::Delete { collection, key, version } => (collection, *key, *version, true),
                Function::Fault { .. } | Function::Snapshot { .. } => continue,
            };
            if let Some(index) = (0..all.len()).find(|i| database(*i) == *collection) {
                all[index].entry(key).or_default().push(Written { version, delete, outcome: op.kind });
            }
        }
        all
    }
}

/// Runs every checker.
pub fn check(evidence: &Evidence, database: impl Fn(usize) -> String) -> Vec<Finding> {
    let written = evidence.written(database);
    let mut findings = vec![
        loss::check(evidence, &written),
        order::check(evidence),
        last::check(evidence),
        last::check_tail(evidence),
        offsets::check(evidence),
    ];
    if evidence.scenario != Scenario::Stream {
        findings.push(stale::check(evidence));
    }
    match evidence.scenario {
        Scenario::Stream => {}
        Scenario::Incremental | Scenario::IncrementalKafka => {
            findings.push(rows::check_ends(evidence));
            findings.push(rows::check_asked(evidence, &written));
        }
        Scenario::Initial => {
            findings.push(rows::check_copied(evidence, &written));
            findings.push(copied::check(evidence));
        }
        Scenario::Shards => {
            findings.push(rows::check_copied(evidence, &written));
            findings.push(undisturbed::check(evidence));
        }
    }
    findings
}

/// The verdict of a run.
pub fn verdict(findings: &[Finding]) -> Verdict {
    findings.iter().map(|f| f.verdict).max().unwrap_or(Verdict::Unknown)
}

#[cfg(test)]
mod tests;
