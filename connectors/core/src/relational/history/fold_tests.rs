//! A history says the same before and after it was made shorter.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::super::recover::tests::{Fixture, change, id};
use super::super::recover::{Captured, Resumed};
use super::*;
use crate::relational::history::HistoryStore;

/// The numbers of tables' columns at a position; `None`: the history knows nothing.
async fn at(fixture: &mut Fixture, lsn: i64) -> Option<Vec<(String, usize)>> {
    match fixture.resume(lsn, true).await.unwrap() {
        Resumed::Recovered(tables) => {
            Some(tables.iter().map(|t| (t.id.table().to_owned(), t.columns().len())).collect())
        }
        _ => None,
    }
}

async fn length(fixture: &Fixture) -> usize {
    let mut reader = fixture.store.clone().read().await.unwrap();
    reader.next().await.unwrap().map_or(0, |records| records.len())
}

/// More changes than a history keeps, at positions 1, 2, 3 and so on.
async fn long() -> Fixture {
    let mut fixture = Fixture::new(Captured::All);
    for lsn in 1..=MANY as i64 + 10 {
        let name = ["a", "b", "c"][lsn as usize % 3];
        fixture.record("shop", lsn, vec![change(ChangeKind::Alter, name, 1 + lsn as i32 % 7)]).await;
    }
    fixture
}

#[tokio::test]
async fn a_long_history_becomes_one_record_for_each_table() {
    let mut fixture = long().await;
    let stop = MANY as i64 + 5;
    assert_eq!(length(&fixture).await, MANY + 10);
    let before = at(&mut fixture, stop).await;
    // Five records are behind the stop.
    assert_eq!(length(&fixture).await, 3 + 5);
    let unfolded = long().await;
    for later in stop..=stop + 5 {
        let expected = expected_at(&unfolded.store, later).await;
        assert_eq!(at(&mut fixture, later).await, Some(expected), "at {later}");
    }
    assert!(before.is_some());
    assert_eq!(length(&fixture).await, 8, "it is not long any more");
}

/// The same, from the records themselves.
async fn expected_at(store: &super::super::memory::MemoryHistory, lsn: i64) -> Vec<(String, usize)> {
    let mut reader = store.clone().read().await.unwrap();
    let mut known = BTreeMap::new();
    for text in reader.next().await.unwrap().unwrap() {
        let record = HistoryRecord::parse(&text, crate::relational::table_id::TwoParts::SchemaAndTable).unwrap();
        if record.position["lsn"].as_i64().unwrap() > lsn {
            continue;
        }
        for change in record.changes.unwrap() {
            if let Some(previous) = change.previous_id {
                known.remove(previous.table());
            }
            match change.kind {
                ChangeKind::Drop => known.remove(change.table.id.table()),
                _ => known.insert(change.table.id.table().to_owned(), change.table.columns().len()),
            };
        }
    }
    known.into_iter().collect()
}

#[tokio::test]
async fn a_short_history_and_one_of_many_tables_stay_as_they_are() {
    let mut fixture = Fixture::new(Captured::All);
    for n in 0..MANY {
        fixture.record("shop", 1, vec![change(ChangeKind::Create, &format!("t{n}"), 1)]).await;
    }
    at(&mut fixture, 1).await;
    assert_eq!(length(&fixture).await, MANY);
    fixture.record("shop", 1, vec![change(ChangeKind::Create, "one more", 1)]).await;
    at(&mut fixture, 1).await;
    assert_eq!(length(&fixture).await, MANY + 1, "nothing would be won");
}

#[tokio::test]
async fn tables_that_are_all_dropped_leave_a_record() {
    let mut fixture = long().await;
    for name in ["a", "b", "c"] {
        fixture.record("shop", 5_000, vec![change(ChangeKind::Drop, name, 1)]).await;
    }
    assert_eq!(at(&mut fixture, 5_000).await, Some(Vec::new()));
    assert_eq!(length(&fixture).await, 1);
    assert_eq!(at(&mut fixture, 5_000).await, Some(Vec::new()), "the history is not lost");
}

#[tokio::test]
async fn records_of_another_source_end_what_is_folded() {
    let mut fixture = long().await;
    fixture.record("other", 1, vec![change(ChangeKind::Create, "x", 1)]).await;
    fixture.record("shop", 6_000, vec![change(ChangeKind::Create, "d", 1)]).await;
    at(&mut fixture, 6_000).await;
    assert_eq!(length(&fixture).await, 3 + 2);
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, i32),
    Drop(u8),
    Rename(u8, u8),
}

fn steps() -> impl Strategy<Value = Vec<(Step, i64)>> {
    let step = prop_oneof![
        6 => (0u8..5, 1i32..9).prop_map(|(t, n)| Step::Put(t, n)),
        2 => (0u8..5).prop_map(Step::Drop),
        1 => (0u8..5, 0u8..5).prop_map(|(a, b)| Step::Rename(a, b)),
    ];
    // Positions may stand still, and go back a little as after a repetition.
    prop::collection::vec((step, -3i64..6), MANY + 1..MANY + 60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]

    #[test]
    fn every_later_stop_finds_the_same(steps in steps(), back in 0i64..40, ahead in prop::collection::vec(0i64..60, 1..6)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (mut fixture, mut lsn) = (Fixture::new(Captured::All), 100i64);
            let name = |t: u8| format!("t{t}");
            for (step, by) in steps {
                lsn = (lsn + by).max(1);
                let change = match step {
                    Step::Put(t, columns) => change(ChangeKind::Alter, &name(t), columns),
                    Step::Drop(t) => change(ChangeKind::Drop, &name(t), 1),
                    Step::Rename(from, to) => {
                        TableChange { previous_id: Some(id(&name(from))), ..change(ChangeKind::Alter, &name(to), 2) }
                    }
                };
                fixture.record("shop", lsn, vec![change]).await;
            }
            let texts = {
                let mut copy = super::super::memory::MemoryHistory::default();
                let mut reader = fixture.store.clone().read().await.unwrap();
                for text in reader.next().await.unwrap().unwrap() {
                    copy.append(text).await.unwrap();
                }
                copy
            };
            let mut stop = lsn - back;
            for step in ahead {
                let found = at(&mut fixture, stop).await.unwrap();
                assert_eq!(found, expected_at(&texts, stop).await, "at {stop}");
                stop += step;
            }
        });
    }
}
