//! Files: identity, locks, damage, versions; bounded reads and purges.

use openraft::storage::RaftLogReader;
use tempfile::TempDir;

use super::*;
use crate::raft::types::{EntryRecord, EntryRef, PayloadRecord};
use crate::rpc::frame::encode;

fn path(dir: &TempDir) -> PathBuf {
    dir.path().join("data").join("raft.redb")
}

#[tokio::test]
async fn a_file_keeps_its_node_and_counts_its_starts() {
    let dir = TempDir::new().unwrap();
    let first = {
        let mut store = Store::open(&path(&dir)).unwrap();
        assert!(store.is_pristine());
        assert_eq!(store.identity().incarnation, 1);
        store.set_cluster(ClusterId([3; 16])).await.unwrap();
        append(&mut store, 1, 0..2).await.unwrap();
        store.close().await;
        store.identity()
    };
    assert!(first.node > 0 && first.node < 1 << 53);
    let store = Store::open(&path(&dir)).unwrap();
    assert!(!store.is_pristine());
    assert_eq!(store.identity(), Identity { incarnation: 2, ..first.clone() });
    store.close().await;
    drop(store);
    // Another disk is another node.
    let other = TempDir::new().unwrap();
    assert_ne!(Store::open(&path(&other)).unwrap().identity().node, first.node);
}

#[tokio::test]
async fn a_node_that_left_does_not_start_again() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(&path(&dir)).unwrap();
    store.set_left().await.unwrap();
    store.close().await;
    drop(store);
    let error = Store::open(&path(&dir)).err().unwrap();
    assert!(matches!(error, StoreError::Left { .. }), "{error}");
    assert!(error.to_string().contains("raft.redb"), "{error}");
}

#[tokio::test]
async fn a_file_has_one_user() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(&path(&dir)).unwrap();
    let error = Store::open(&path(&dir)).err().unwrap();
    assert_eq!(error, StoreError::Locked { path: path(&dir) });
    assert!(error.to_string().contains("another process"), "{error}");
    store.close().await;
}

#[tokio::test]
async fn damaged_files_are_errors_that_name_them() {
    let dir = TempDir::new().unwrap();
    let mut store = Store::open(&path(&dir)).unwrap();
    append(&mut store, 1, 0..500).await.unwrap();
    store.close().await;
    drop(store);
    let good = std::fs::read(path(&dir)).unwrap();

    let open = |bytes: &[u8]| {
        std::fs::write(path(&dir), bytes).unwrap();
        let opened = Store::open(&path(&dir));
        if let Err(error) = &opened {
            assert!(error.to_string().contains("raft.redb"), "{error}");
        }
        opened
    };
    assert!(matches!(open(b"not a database at all, rather a text").err().unwrap(), StoreError::NotAStore { .. }));
    for cut in [100, 4096, good.len() / 2] {
        assert!(open(&good[..cut]).is_err(), "a file of {cut} bytes");
    }
    // Damage in the middle is found when the file is opened, or when what it hit is read.
    let mut found = 0;
    for at in (0..good.len()).step_by(good.len() / 64) {
        let mut bad = good.clone();
        bad[at..(at + 64).min(good.len())].fill(0xa5);
        if let Ok(mut store) = open(&bad) {
            match store.try_get_log_entries(..).await {
                Ok(entries) => assert!(entries.iter().all(|e| *e == entry(1, e.log_id.index)), "wrong content"),
                Err(e) => {
                    assert!(e.to_string().contains("raft.redb"), "{e}");
                    found += 1;
                }
            }
            store.close().await;
        } else {
            found += 1;
        }
    }
    assert!(found > 0, "some damage hits something");
}

#[tokio::test]
async fn a_newer_file_is_refused_with_its_version() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(&path(&dir)).unwrap();
    let put = |store: &Store, header: Header| {
        let frame = encode(Kind::StoreHeader, &header, MAX_BODY).unwrap();
        let store = store.clone();
        async move { store.write(|done| Write::Meta { key: HEADER, frame, done }).await.unwrap() }
    };
    put(&store, Header { format: FORMAT, upgrading: Some(FORMAT + 1), cleaning: false }).await;
    store.close().await;
    drop(store);
    let error = Store::open(&path(&dir)).err().unwrap();
    assert_eq!(error, StoreError::Newer { path: path(&dir), found: FORMAT + 1, known: FORMAT });
    assert!(error.to_string().contains("newer version"), "{error}");
}

#[tokio::test]
async fn reads_for_others_are_bounded_and_complete() {
    let dir = TempDir::new().unwrap();
    let mut store = Store::open(&path(&dir)).unwrap();
    append(&mut store, 1, 0..3000).await.unwrap();
    let chunk = store.limited_get_log_entries(0, 3000).await.unwrap();
    assert!(!chunk.is_empty() && chunk.len() <= 256, "{}", chunk.len());
    let streamed: Vec<Entry> = futures::TryStreamExt::try_collect(store.entries_stream(10..2990).await).await.unwrap();
    assert_eq!(streamed.len(), 2980);
    let all = store.try_get_log_entries(..).await.unwrap();
    assert_eq!(all.len(), 3000);
    assert_eq!(streamed, all[10..2990]);
    // And from the file alone.
    store.close().await;
    drop(store);
    let mut store = Store::open(&path(&dir)).unwrap();
    assert_eq!(store.try_get_log_entries(..).await.unwrap(), all);
    assert!(store.limited_get_log_entries(0, 3000).await.unwrap().len() <= 256);
}

#[tokio::test]
async fn a_long_purge_goes_in_steps_and_to_its_end() {
    let dir = TempDir::new().unwrap();
    let mut store = Store::open(&path(&dir)).unwrap();
    append(&mut store, 1, 0..3500).await.unwrap();
    store.purge(log_id(1, 3200)).await.unwrap();
    assert_eq!(store.try_get_log_entries(..).await.unwrap().len(), 299);
    // A later write is answered although steps remain, and the steps are done in the end.
    store.save_vote(&Vote::new(2, 1)).await.unwrap();
    store.close().await;
    drop(store);
    let mut store = Store::open(&path(&dir)).unwrap();
    assert_eq!(store.try_get_log_entries(..).await.unwrap().len(), 299);
    assert_eq!(store.get_log_state().await.unwrap().last_purged_log_id, Some(log_id(1, 3200)));
}

/// CLU-07: what is stored and sent survives the round trip, and its bytes do not change.
#[test]
fn clu_07_golden_bytes_of_the_store() {
    let hex = |bytes: Vec<u8>| bytes[16..].iter().map(|b| format!("{b:02x}")).collect::<String>();
    let vote = VoteRecord { term: 3, node: 300, committed: true };
    assert_eq!(hex(encode(Kind::Vote, &vote, 99).unwrap()), "03fb2c0101");
    let id = LogIdRecord { term: 1, node: 2, index: 3 };
    assert_eq!(hex(encode(Kind::LogId, &id, 99).unwrap()), "010203");
    let identity = Identity { node: 5, cluster: Some(ClusterId([7; 16])), incarnation: 2, left: false };
    assert_eq!(hex(encode(Kind::Identity, &identity, 99).unwrap()), "0501070707070707070707070707070707070200");
    let header = Header { format: 1, upgrading: None, cleaning: false };
    assert_eq!(hex(encode(Kind::StoreHeader, &header, 99).unwrap()), "010000");

    let membership = MembershipRecord {
        log_id: None,
        voters: vec![vec![1, 2], vec![2, 3]],
        members: (1..=3).map(|n| (n, crate::raft::types::Member { address: format!("n{n}:1") })).collect(),
    };
    let golden = [
        (PayloadRecord::Blank, "0001020300"),
        (PayloadRecord::Command(Command::V1(CommandV1::DeleteConnector { name: "a".into() })), "00010203010008 0161"),
        (
            PayloadRecord::Membership(membership),
            "0001020302 00 02 02 01 02 02 02 03 03 01 04 6e313a31 02 04 6e323a31 03 04 6e333a31",
        ),
    ];
    for (payload, bytes) in golden {
        let record = EntryRecord::V1(id, payload);
        let frame = encode(Kind::Entry, &record, 999).unwrap();
        assert_eq!(hex(frame.clone()), bytes.replace(' ', ""), "{record:?}");
        assert_eq!(frame::decode::<EntryRecord>(Kind::Entry, &frame, 999).unwrap(), record);
        let entry = Entry::try_from(record.clone()).unwrap();
        assert_eq!(encode(Kind::Entry, &EntryRef::from(&entry), 999).unwrap(), frame, "borrowed and owned agree");
        assert_eq!(EntryRecord::from(entry), record);
    }
}
