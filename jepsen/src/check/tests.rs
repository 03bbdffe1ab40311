//! The checkers against made-up runs: a good one passes, each kind of damage is found.

use super::*;
use crate::observe::SeenEvent::{Delete, Tombstone, Version};

fn op(kind: OpType, function: Function) -> Op {
    Op { index: 0, time: 0, process: "w".into(), kind, function, error: None }
}

fn write(kind: OpType, key: i64, version: i64) -> Op {
    op(kind, Function::Write { collection: "db0".into(), key, version })
}

fn delete(kind: OpType, key: i64, version: i64) -> Op {
    op(kind, Function::Delete { collection: "db0".into(), key, version })
}

fn messages(events: &[(i64, crate::observe::SeenEvent)]) -> Vec<SeenMessage> {
    let numbered = events.iter().zip(0..);
    numbered.map(|((key, event), offset)| SeenMessage { offset, appended: 0, key: *key, event: *event }).collect()
}

fn good() -> Evidence {
    Evidence {
        ops: vec![
            write(OpType::Ok, 1, 1),
            write(OpType::Info, 1, 2),
            write(OpType::Ok, 1, 3),
            write(OpType::Fail, 2, 1),
            write(OpType::Ok, 2, 2),
            delete(OpType::Ok, 2, 3),
        ],
        topics: vec![messages(&[
            (1, Version(1)),
            (2, Version(2)),
            (1, Version(3)),
            (2, Delete),
            (2, Tombstone),
            // A repeated stretch after a takeover.
            (1, Version(1)),
            (1, Version(3)),
            (2, Version(2)),
            (2, Delete),
            (2, Tombstone),
        ])],
        source: vec![BTreeMap::from([(1, 3)])],
        offsets: vec![SeenOffset { time: 1, node: 1, run: 0, connector: 0, at: (5, 1) }],
    }
}

fn bad(evidence: &Evidence) -> Vec<&'static str> {
    let findings = check(evidence, |i| format!("db{i}"));
    findings.into_iter().filter(|f| f.verdict == Verdict::Invalid).map(|f| f.checker).collect()
}

#[test]
fn a_good_run_is_valid() {
    let findings = check(&good(), |i| format!("db{i}"));
    assert_eq!(verdict(&findings), Verdict::Valid, "{findings:?}");
}

#[test]
fn a_run_without_successes_is_unknown() {
    let evidence = Evidence { topics: vec![vec![]], source: vec![BTreeMap::new()], ..Evidence::default() };
    assert_eq!(verdict(&check(&evidence, |i| format!("db{i}"))), Verdict::Unknown);
}

#[test]
fn a_lost_write_is_found() {
    let mut evidence = good();
    evidence.topics[0].retain(|m| m.event != Version(1));
    assert_eq!(bad(&evidence), ["no acknowledged write missing"]);
}

#[test]
fn a_lost_delete_is_found() {
    let mut evidence = good();
    evidence.topics[0].retain(|m| m.event != Delete);
    assert_eq!(bad(&evidence), ["no acknowledged write missing"]);
}

#[test]
fn an_invented_version_is_found() {
    let mut evidence = good();
    evidence.topics[0].insert(0, SeenMessage { offset: -1, appended: 0, key: 2, event: Version(1) });
    assert_eq!(bad(&evidence), ["no acknowledged write missing"]);
}

#[test]
fn a_skipped_version_that_comes_later_is_found() {
    let mut evidence = good();
    evidence.topics[0] =
        messages(&[(1, Version(3)), (1, Version(1)), (1, Version(3)), (2, Version(2)), (2, Delete), (2, Tombstone)]);
    assert_eq!(bad(&evidence), ["first occurrences in order"]);
}

#[test]
fn a_late_write_of_a_stale_owner_is_found() {
    let mut evidence = good();
    evidence.topics[0].push(SeenMessage { offset: 99, appended: 0, key: 1, event: Version(1) });
    assert_eq!(bad(&evidence), ["last record equals source", "no stale tail"]);
}

#[test]
fn a_resurrected_document_is_found() {
    let mut evidence = good();
    evidence.topics[0].push(SeenMessage { offset: 99, appended: 0, key: 2, event: Version(2) });
    assert_eq!(bad(&evidence), ["last record equals source"]);
}

#[test]
fn an_offset_that_moves_back_is_found() {
    let mut evidence = good();
    evidence.offsets.push(SeenOffset { time: 2, node: 1, run: 0, connector: 0, at: (4, 9) });
    assert_eq!(bad(&evidence), ["offsets never move back"]);
    // Another node's replica may lag, and a restarted one replays.
    evidence.offsets[1].run = 1;
    assert_eq!(bad(&evidence), [""; 0]);
}
