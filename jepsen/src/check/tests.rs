//! The checkers against made-up runs: a good one passes, each kind of damage is found.

use super::*;
use crate::lab::SHARD_KEYS;
use crate::observe::SeenEvent::{Delete, Read, Tombstone, Version};

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

fn offset(time: u64, shard: &str, at: (u32, u32)) -> SeenOffset {
    SeenOffset { time, node: 1, run: 0, connector: 0, partition: shard.to_owned(), at }
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
        offsets: vec![offset(1, "", (5, 1))],
        ..Evidence::default()
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
    evidence.offsets.push(offset(2, "", (4, 9)));
    assert_eq!(bad(&evidence), ["offsets never move back"]);
    // Another node's replica may lag, and a restarted one replays.
    evidence.offsets[1].run = 1;
    assert_eq!(bad(&evidence), [""; 0]);
}

/// Three rows were there; a signal came at 100 ms; row 2 was changed before, row 3 deleted in between.
fn good_incremental() -> Evidence {
    let mut evidence = Evidence {
        scenario: Scenario::Incremental,
        ops: vec![
            write(OpType::Ok, 2, 1),
            delete(OpType::Ok, 3, 1),
            write(OpType::Ok, 3, 2),
            write(OpType::Ok, 4, 1),
            write(OpType::Ok, 2, 2),
        ],
        topics: vec![messages(&[
            (2, Version(1)),
            (1, Read(0)),
            (3, Delete),
            (3, Tombstone),
            (2, Read(1)),
            (3, Version(2)),
            (4, Version(1)),
            (2, Version(2)),
            // A repeated chunk and a repeated stretch.
            (1, Read(0)),
            (2, Read(2)),
            (3, Read(2)),
            (4, Version(1)),
            (2, Version(2)),
        ])],
        source: vec![BTreeMap::from([(1, 0), (2, 2), (3, 2), (4, 1)])],
        offsets: vec![offset(1, "", (5, 1))],
        filled: vec![vec![1..4]],
        asked: vec![Asked { connector: 0, id: "s".into(), sent: 1, ended: Some(9), aborted: false }],
        ..Evidence::default()
    };
    for message in &mut evidence.topics[0] {
        message.appended = message.offset;
    }
    evidence
}

#[test]
fn a_good_incremental_run_is_valid() {
    let findings = check(&good_incremental(), |i| format!("db{i}"));
    assert_eq!(verdict(&findings), Verdict::Valid, "{findings:?}");
}

#[test]
fn a_row_that_no_signal_brings_is_found() {
    let mut evidence = good_incremental();
    evidence.topics[0].retain(|m| m.key != 1);
    assert_eq!(bad(&evidence), ["last record equals source", "no row missed after a signal"]);
    // It came before the signal, and not after it.
    let mut evidence = good_incremental();
    evidence.asked[0].sent = 9;
    assert_eq!(bad(&evidence), ["no row missed after a signal"]);
}

#[test]
fn a_row_behind_a_newer_change_is_found() {
    let mut evidence = good_incremental();
    let stale = SeenMessage { offset: 7, appended: 7, key: 2, event: Read(0) };
    evidence.topics[0].insert(7, stale);
    assert_eq!(bad(&evidence), ["no stale row"]);
}

#[test]
fn a_row_that_comes_after_its_delete_is_found() {
    let mut evidence = good_incremental();
    evidence.topics[0].insert(4, SeenMessage { offset: 4, appended: 4, key: 3, event: Read(0) });
    assert_eq!(bad(&evidence), ["no stale row"]);
}

#[test]
fn a_snapshot_that_does_not_end_or_is_given_up_is_found() {
    let mut evidence = good_incremental();
    evidence.asked[0].ended = None;
    assert!(bad(&evidence).contains(&"incremental snapshots end"));
    let mut evidence = good_incremental();
    evidence.asked[0].aborted = true;
    assert!(bad(&evidence).contains(&"incremental snapshots end"));
    evidence.asked.clear();
    assert_eq!(verdict(&check(&evidence, |i| format!("db{i}"))), Verdict::Unknown, "nothing was asked for");
}

/// Four rows, read with one interruption that repeats one; the stream begins where the snapshot did.
fn good_initial() -> Evidence {
    let mut evidence = Evidence {
        scenario: Scenario::Initial,
        ops: vec![
            write(OpType::Ok, 2, 1),
            write(OpType::Ok, 2, 2),
            write(OpType::Ok, 2, 3),
            write(OpType::Ok, 9, 1),
            delete(OpType::Ok, 9, 2),
        ],
        topics: vec![messages(&[
            (1, Read(0)),
            (2, Read(1)),
            (2, Read(2)),
            (3, Read(0)),
            (4, Read(0)),
            (2, Version(1)),
            (2, Version(2)),
            (2, Version(3)),
            (9, Version(1)),
            (9, Delete),
            (9, Tombstone),
        ])],
        source: vec![BTreeMap::from([(1, 0), (2, 3), (3, 0), (4, 0)])],
        offsets: vec![offset(1, "", (5, 1))],
        filled: vec![vec![1..5]],
        copies: vec![copied::Copying { connector: 0, ended: Some(5), moves: 1, unstored: vec![(-2, -1)], chunk: 1 }],
        ..Evidence::default()
    };
    for message in &mut evidence.topics[0] {
        message.appended = message.offset;
    }
    evidence
}

#[test]
fn a_good_initial_run_is_valid() {
    let findings = check(&good_initial(), |i| format!("db{i}"));
    assert_eq!(verdict(&findings), Verdict::Valid, "{findings:?}");
}

#[test]
fn a_row_that_the_snapshot_passes_over_is_found() {
    let mut evidence = good_initial();
    evidence.topics[0].retain(|m| m.key != 3);
    assert_eq!(bad(&evidence), ["last record equals source", "no row missed by the snapshot"]);
}

#[test]
fn a_change_between_snapshot_and_stream_that_is_missing_is_found() {
    let mut evidence = good_initial();
    // The stream began behind version 2, which no snapshot has.
    evidence.topics[0].retain(|m| !(m.key == 2 && matches!(m.event, Version(1 | 2) | Read(2))));
    assert_eq!(bad(&evidence), ["no acknowledged write missing"]);
    // With the snapshot at version 2, nothing is: it passes over what is older.
    let mut evidence = good_initial();
    evidence.topics[0].retain(|m| !(m.key == 2 && matches!(m.event, Version(1 | 2) | Read(1))));
    assert_eq!(bad(&evidence), [""; 0]);
}

#[test]
fn a_snapshot_that_begins_anew_is_found() {
    let mut evidence = good_initial();
    evidence.topics[0].splice(3..3, messages(&[(1, Read(0)), (2, Read(2))]));
    assert_eq!(bad(&evidence), ["interrupted snapshots go on"]);
    // If it was delivered right before the fault, it need not have been stored.
    evidence.copies[0].unstored = vec![(0, 1)];
    assert_eq!(bad(&evidence), [""; 0]);
}

#[test]
fn an_initial_snapshot_that_does_not_end_is_found() {
    let mut evidence = good_initial();
    evidence.copies[0].ended = None;
    assert_eq!(bad(&evidence), ["interrupted snapshots go on"]);
}

/// Two shards stay, with a change each before, while and after the third comes.
fn good_shards() -> Evidence {
    const C: i64 = 2 * SHARD_KEYS;
    const B: i64 = SHARD_KEYS;
    let mut evidence = Evidence {
        scenario: Scenario::Shards,
        ops: [1, C].iter().flat_map(|key| (1..4).map(|version| write(OpType::Ok, *key, version))).collect(),
        topics: vec![messages(&[
            (1, Read(0)),
            (C, Read(0)),
            (1, Version(1)),
            (C, Version(1)),
            (1, Version(2)),
            (B, Read(0)),
            (C, Version(2)),
            (1, Version(3)),
            (C, Version(3)),
        ])],
        source: vec![BTreeMap::from([(1, 3), (B, 0), (C, 3)])],
        offsets: [(1, 1), (9_000, 2)]
            .iter()
            .flat_map(|(time, at)| ["rsA", "rsC"].map(|shard| offset(*time, shard, (*at, 0))))
            .collect(),
        epochs: [(1, 0), (1, 1), (4_500, 2)]
            .iter()
            .map(|(time, task)| SeenEpoch { time: *time, connector: 0, task: *task, epoch: *time })
            .collect(),
        filled: vec![vec![1..2, B..B + 1, C..C + 1]],
        changes: vec![undisturbed::ShardChange { from: 4_000, settled: 7_000, came: true, alone: true }],
        ..Evidence::default()
    };
    for message in &mut evidence.topics[0] {
        message.appended = 1_000 * message.offset;
    }
    evidence
}

#[test]
fn a_good_run_with_shards_is_valid() {
    let findings = check(&good_shards(), |i| format!("db{i}"));
    assert_eq!(verdict(&findings), Verdict::Valid, "{findings:?}");
}

#[test]
fn rows_of_a_shard_that_came_and_are_missing_are_found() {
    let mut evidence = good_shards();
    evidence.topics[0].retain(|m| m.key != SHARD_KEYS);
    assert_eq!(bad(&evidence), ["last record equals source", "no row missed by the snapshot"]);
}

#[test]
fn a_position_that_stands_still_is_found() {
    let mut evidence = good_shards();
    evidence.offsets.retain(|o| o.time == 1 || o.partition != "rsC");
    assert_eq!(bad(&evidence), ["shards that stay are not disturbed"]);
}

#[test]
fn a_task_that_is_started_because_of_another_is_found() {
    let mut evidence = good_shards();
    evidence.changes[0].came = false;
    assert_eq!(bad(&evidence), ["shards that stay are not disturbed"], "a shard that goes needs no start at all");
    let mut evidence = good_shards();
    evidence.epochs.push(SeenEpoch { time: 5_000, connector: 0, task: 1, epoch: 5_000 });
    assert_eq!(bad(&evidence), ["shards that stay are not disturbed"]);
    // A node was killed meanwhile.
    evidence.changes[0].alone = false;
    assert_eq!(bad(&evidence), [""; 0]);
}

#[test]
fn a_shard_that_repeats_or_pauses_because_another_came_is_found() {
    let mut evidence = good_shards();
    let repeated = SeenMessage { offset: 4, appended: 4_400, key: 1, event: Version(1) };
    evidence.topics[0].insert(5, repeated);
    assert_eq!(bad(&evidence), ["shards that stay are not disturbed"]);
    let mut evidence = good_shards();
    evidence.changes[0].settled = 8_000;
    assert_eq!(bad(&evidence), [""; 0]);
    // One of the two says nothing at all meanwhile.
    for message in evidence.topics[0].iter_mut().filter(|m| m.key == 2 * SHARD_KEYS) {
        message.appended = 3_000;
    }
    assert_eq!(bad(&evidence), ["shards that stay are not disturbed"]);
}
