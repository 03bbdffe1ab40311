//! Streams that go on behind every single change.

use thalweg_sqlserver::position::SqlServerPosition;
use thalweg_sqlserver::stream::Step;

use crate::fixture::{Lab, behind, changes, drain, known, shown};

/// What is known of tables behind the steps.
/// Stops behind each change and goes on from its position: exactly the rest follows.
async fn everywhere(lab: &Lab, more: &[(&str, &str)]) {
    let whole = drain(&mut lab.stream(more)).await;
    let (all, tables) = (changes(&whole), known(&whole));
    let text: Vec<String> = shown(&whole).into_iter().filter(|step| !step.starts_with("CREATE")).collect();
    assert_eq!(text.len(), all.len());
    for (at, change) in all.iter().enumerate() {
        let mut rest = lab.stream_from(more, tables.clone(), &behind(change));
        let steps = drain(&mut rest).await;
        assert_eq!(shown(&steps), text[at + 1..], "{more:?}, behind {}", text[at]);
        // Positions of the second run are those of the first: serials go on inside of a place.
        let places = |changes: &[&thalweg_sqlserver::change::Change]| -> Vec<_> {
            changes.iter().map(|c| (c.place, c.serial)).collect()
        };
        assert_eq!(places(&changes(&steps)), places(&all[at + 1..]));
    }
}

#[tokio::test]
async fn t_11_a_restart_behind_every_change_continues_exactly_there() {
    let mut lab = Lab::start().await;
    for name in ["a", "b", "c"] {
        lab.table(name, "id int PRIMARY KEY, v int").await;
    }
    lab.change("BEGIN TRAN; INSERT dbo.a VALUES (1, 0), (2, 0); INSERT dbo.b VALUES (1, 0); UPDATE dbo.a SET id = id + 10; UPDATE dbo.b SET v = 5; INSERT dbo.c VALUES (3, 3); COMMIT").await;
    lab.change("INSERT dbo.c VALUES (4, 4); DELETE dbo.a").await;
    lab.change("UPDATE dbo.c SET id = id + 1").await;
    for mode in ["direct", "function"] {
        for rows in ["1", "2", "100"] {
            everywhere(&lab, &[("data.query.mode", mode), ("streaming.fetch.size", rows)]).await;
            let few = [("data.query.mode", mode), ("streaming.fetch.size", rows), ("max.iteration.transactions", "1")];
            everywhere(&lab, &few).await;
        }
    }
}

#[tokio::test]
async fn t_12_a_restart_between_delete_and_insert_of_a_new_key() {
    let mut lab = Lab::start().await;
    lab.table("a", "id int PRIMARY KEY, x int").await;
    lab.table("b", "id int PRIMARY KEY, x int").await;
    lab.change("INSERT dbo.a VALUES (1, 0); INSERT dbo.b VALUES (1, 0)").await;
    lab.change("BEGIN TRAN; UPDATE dbo.a SET id = 100 WHERE id = 1; UPDATE dbo.b SET id = 100 WHERE id = 1; COMMIT")
        .await;
    let steps = drain(&mut lab.stream(&[])).await;
    let all = changes(&steps);
    let delete = behind(all[2]);
    assert_eq!((shown(&steps)[4].as_str(), delete.serial), ("a -1,0", 1));
    let rest = drain(&mut lab.stream_from(&[], known(&steps), &delete)).await;
    assert_eq!(shown(&rest), ["a +100,0", "b -1,0", "b +100,0"]);
}

#[tokio::test]
async fn sql_13_rows_of_one_place_are_counted() {
    let mut lab = Lab::start().await;
    lab.table("t", "id int PRIMARY KEY").await;
    lab.change("INSERT dbo.t VALUES (1), (2), (3), (4), (5), (6)").await;
    // Rows that were loaded in bulk share a place; here all six do.
    lab.sql("UPDATE cdc.dbo_t_CT SET __$seqval = (SELECT MIN(__$seqval) FROM cdc.dbo_t_CT)").await;
    let steps = drain(&mut lab.stream(&[])).await;
    let serials: Vec<i64> = changes(&steps).iter().map(|change| change.serial).collect();
    assert_eq!(serials, [1, 2, 3, 4, 5, 6]);
    for mode in ["direct", "function"] {
        everywhere(&lab, &[("data.query.mode", mode), ("streaming.fetch.size", "2")]).await;
    }
}

#[tokio::test]
async fn sql_40_behind_a_snapshot_the_next_commit_is_the_first() {
    let mut lab = Lab::start().await;
    lab.table("t", "id int PRIMARY KEY").await;
    lab.change("INSERT dbo.t VALUES (1)").await;
    let steps = drain(&mut lab.stream(&[])).await;
    let commit = changes(&steps)[0].place.commit;
    let snapshot = SqlServerPosition::from_offset(
        serde_json::json!({
            "snapshot": "INITIAL", "snapshot_completed": true, "commit_lsn": commit.unwrap().to_string(),
            "change_lsn": "NULL", "event_serial_no": 1
        })
        .as_object()
        .unwrap(),
    )
    .unwrap();
    let mut stream = lab.stream_from(&[], known(&steps), &snapshot);
    assert_eq!(drain(&mut stream).await, []);
    lab.change("INSERT dbo.t VALUES (2)").await;
    assert_eq!(shown(&drain(&mut stream).await), ["t +2"]);
}

#[tokio::test]
async fn a_dropped_wait_loses_nothing() {
    let mut lab = Lab::start().await;
    lab.table("t", "id int PRIMARY KEY, v int").await;
    lab.change("INSERT dbo.t VALUES (1, 0), (2, 0), (3, 0); UPDATE dbo.t SET v = 1").await;
    let whole = shown(&drain(&mut lab.stream(&[])).await);
    let mut stream = lab.stream(&[("streaming.fetch.size", "1")]);
    let (mut seen, mut polls) = (Vec::new(), 1);
    // Each try is given a little more time than the one before, so that it ends somewhere else.
    loop {
        let step = {
            let mut next = std::pin::pin!(stream.next());
            let mut step = None;
            for _ in 0..polls {
                if let std::task::Poll::Ready(ready) = futures::poll!(next.as_mut()) {
                    step = Some(ready.unwrap());
                    break;
                }
                tokio::task::yield_now().await;
            }
            step
        };
        match step {
            Some(Step::Idle) => break,
            Some(step) => seen.extend(shown(&[step])),
            None => polls = polls * 3 / 2 + 1,
        }
    }
    assert_eq!(seen, whole);
}
