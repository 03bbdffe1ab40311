//! A script of writes, and the power failing before each single write and sync of the disk below.

use std::io;

use openraft::storage::RaftLogReader;

use super::disk::Disk;
use super::*;
use crate::raft::types::StoredMembership;

/// What must be there after a restart.
#[derive(Debug, Clone, PartialEq, Default)]
struct Kept {
    vote: Option<(u64, bool)>,
    /// Term and index.
    log: Vec<(u64, u64)>,
    purged: Option<u64>,
    snapshot: Option<u64>,
    cluster: bool,
}

async fn kept(store: &mut Store) -> Kept {
    let log = store.try_get_log_entries(..).await.unwrap();
    for entry in &log {
        assert_eq!(*entry, super::entry(entry.log_id.leader_id.term, entry.log_id.index), "content of an entry");
    }
    Kept {
        vote: store.read_vote().await.unwrap().map(|v| (v.leader_id.term, v.committed)),
        log: log.iter().map(|e| (e.log_id.leader_id.term, e.log_id.index)).collect(),
        purged: store.get_log_state().await.unwrap().last_purged_log_id.map(|id| id.index),
        snapshot: store.snapshot().await.unwrap().map(|(meta, data)| {
            assert_eq!(data.len(), 5000, "the whole snapshot");
            meta.last_log_id.unwrap().index
        }),
        cluster: store.identity().cluster.is_some(),
    }
}

#[derive(Debug, Clone)]
enum Step {
    Vote(u64),
    Append(u64, std::ops::Range<u64>),
    Committed(u64, u64),
    Truncate(Option<(u64, u64)>),
    Snapshot(u64, u64),
    Purge(u64, u64),
    Cluster,
}

fn script() -> Vec<Step> {
    use Step::{Append, Cluster, Committed, Purge, Snapshot, Truncate, Vote};
    vec![
        Cluster,
        Vote(1),
        Append(1, 0..4),
        Committed(1, 2),
        Vote(3),
        Truncate(Some((1, 2))),
        Append(3, 3..40),
        Committed(3, 20),
        Snapshot(3, 20),
        Purge(3, 15),
        Vote(4),
        Append(4, 40..42),
        Snapshot(4, 41),
        Purge(4, 41),
        Append(4, 42..50),
        Truncate(Some((4, 45))),
    ]
}

async fn perform(store: &mut Store, step: &Step) -> Result<(), String> {
    let text = |e: io::Error| e.to_string();
    match step {
        Step::Vote(term) => store.save_vote(&Vote::new_committed(*term, 1)).await.map_err(text),
        Step::Append(term, indexes) => append(store, *term, indexes.clone()).await,
        Step::Committed(term, index) => store.save_committed(Some(log_id(*term, *index))).await.map_err(text),
        Step::Truncate(last) => store.truncate_after(last.map(|(t, i)| log_id(t, i))).await.map_err(text),
        Step::Snapshot(term, index) => {
            let meta =
                SnapshotMeta { last_log_id: Some(log_id(*term, *index)), last_membership: StoredMembership::default() };
            store.save_snapshot(&meta, vec![7; 5000].into()).await.map_err(|e| e.to_string())
        }
        Step::Purge(term, index) => store.purge(log_id(*term, *index)).await.map_err(text),
        Step::Cluster => store.set_cluster(ClusterId([9; 16])).await.map_err(|e| e.to_string()),
    }
}

fn expect(kept: &mut Kept, step: &Step) {
    match step {
        Step::Vote(term) => kept.vote = Some((*term, true)),
        Step::Append(term, indexes) => kept.log.extend(indexes.clone().map(|i| (*term, i))),
        Step::Committed(..) => {}
        Step::Truncate(last) => kept.log.retain(|(_, i)| last.is_some_and(|(_, l)| *i <= l)),
        Step::Snapshot(_, index) => kept.snapshot = Some(*index),
        Step::Purge(_, index) => {
            kept.purged = Some(*index);
            kept.log.retain(|(_, i)| i > index);
        }
        Step::Cluster => kept.cluster = true,
    }
}

async fn fresh() -> Disk {
    let disk = Disk::default();
    let store = Store::open_backend(Path::new("disk"), disk.clone()).unwrap();
    store.close().await;
    drop(store);
    disk.after_power_failure(0)
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_wherever_the_power_fails() {
    let operations = {
        let disk = fresh().await;
        let mut store = Store::open_backend(Path::new("disk"), disk.clone()).unwrap();
        let mut model = Kept::default();
        for step in script() {
            perform(&mut store, &step).await.unwrap();
            expect(&mut model, &step);
            assert_eq!(kept(&mut store).await, model, "without a crash, after {step:?}");
        }
        store.close().await;
        disk.operations()
    };
    assert!(operations > 50, "the script does write: {operations}");

    for at in 0..operations {
        for random in 0..3 {
            let disk = fresh().await;
            let identity;
            let (mut before, mut after) = (Kept::default(), Kept::default());
            disk.break_at(at, io::ErrorKind::Other);
            match Store::open_backend(Path::new("disk"), disk.clone()) {
                Err(_) => identity = None,
                Ok(mut store) => {
                    identity = Some(store.identity());
                    for step in script() {
                        expect(&mut after, &step);
                        match perform(&mut store, &step).await {
                            Ok(()) => before = after.clone(),
                            Err(_) => break,
                        }
                    }
                    store.close().await;
                }
            }
            let left = disk.after_power_failure(random * 7919 + at as u64);
            let mut store = Store::open_backend(Path::new("disk"), left)
                .unwrap_or_else(|e| panic!("after a power failure at operation {at} ({random}): {e}"));
            let found = kept(&mut store).await;
            assert!(
                found == before || found == after,
                "power failure at operation {at} ({random}):\nfound  {found:?}\nbefore {before:?}\nafter  {after:?}"
            );
            if let Some(identity) = identity {
                assert_eq!(store.identity().node, identity.node);
                assert!(store.identity().incarnation > identity.incarnation, "starts are counted");
            }
            // It goes on from there.
            let next = store.get_log_state().await.unwrap().last_log_id.map_or(0, |l| l.index + 1);
            append(&mut store, 9, next..next + 2).await.unwrap();
            assert!(store.read_committed().await.unwrap().is_none_or(|c| c.index <= 20 || c.index == 41));
        }
    }
}

#[tokio::test]
async fn a_failed_write_is_the_last_one_and_says_why() {
    let disk = fresh().await;
    let mut store = Store::open_backend(Path::new("data/raft.redb"), disk.clone()).unwrap();
    append(&mut store, 1, 0..3).await.unwrap();
    disk.break_at(0, io::ErrorKind::StorageFull);
    let error = store.save_vote(&Vote::new(2, 1)).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert!(error.to_string().contains("data/raft.redb"), "{error}");
    disk.break_at(usize::MAX, io::ErrorKind::Other);
    assert!(append(&mut store, 2, 3..4).await.is_err(), "the disk works again, but what it holds is unknown");
    assert_eq!(*store.failure().borrow(), Some(StoreError::Full { path: "data/raft.redb".into() }));
    // Readers still read what was durable.
    assert_eq!(store.try_get_log_entries(0..3).await.unwrap().len(), 3);
}

#[tokio::test]
async fn many_small_appends_share_a_sync() {
    let disk = fresh().await;
    let store = Store::open_backend(Path::new("disk"), disk.clone()).unwrap();
    let before = disk.syncs();
    // Holds the writer up while the others queue.
    let big = SnapshotMeta { last_log_id: Some(log_id(1, 0)), last_membership: StoredMembership::default() };
    let slow = store.clone();
    let slow = tokio::spawn(async move { slow.save_snapshot(&big, vec![1; 8 << 20].into()).await });
    let mut answers = Vec::new();
    for index in 0..200 {
        let (sender, answer) = oneshot::channel();
        store.enqueue(Write::Append { rows: vec![(index, vec![0; 100])], done: Done::Asked(sender) }).await.unwrap();
        answers.push(answer);
    }
    for answer in answers {
        answer.await.unwrap().unwrap();
    }
    slow.await.unwrap().unwrap();
    let syncs = disk.syncs() - before;
    assert!(syncs < 100, "{syncs} syncs for 201 writes");
}
