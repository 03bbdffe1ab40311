//! Verdicts from what was written and what was seen. Pure: the tests feed them made-up runs.
//!
//! `false` beats `unknown` beats `true`: one violation is a violation, and a run in which nothing
//! succeeded proves nothing.

mod last;
mod loss;
mod offsets;
mod order;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::history::{Function, Op, OpType};
use crate::observe::{SeenMessage, SeenOffset};

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
}

impl Finding {
    fn new(checker: &'static str, checked: usize, violations: Vec<String>) -> Self {
        let verdict = match (violations.is_empty(), checked) {
            (false, _) => Verdict::Invalid,
            (true, 0) => Verdict::Unknown,
            (true, _) => Verdict::Valid,
        };
        let violation_count = violations.len();
        Self { checker, verdict, checked, violations: violations.into_iter().take(20).collect(), violation_count }
    }
}

/// Everything the checkers look at, per connector (database name).
#[derive(Debug, Default)]
pub struct Evidence {
    pub ops: Vec<Op>,
    /// Messages of each connector's topic in offset order.
    pub topics: Vec<Vec<SeenMessage>>,
    /// Version of every document in the source at the end.
    pub source: Vec<BTreeMap<i64, i64>>,
    pub offsets: Vec<SeenOffset>,
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
                Function::Fault { .. } => continue,
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
    vec![
        loss::check(evidence, &written),
        order::check(evidence),
        last::check(evidence),
        last::check_tail(evidence),
        offsets::check(evidence),
    ]
}

/// The verdict of a run.
pub fn verdict(findings: &[Finding]) -> Verdict {
    findings.iter().map(|f| f.verdict).max().unwrap_or(Verdict::Unknown)
}

#[cfg(test)]
mod tests;
