//! Whole partitions: rows, then changes, as records.

use serde_json::json;
use thalweg_config::Properties;

use crate::fixture::run::{Offsets, Run, afters, markers, settled, shown};
use crate::fixture::{Lab, properties};

/// Without records of structures.
pub(crate) fn plain(lab: &Lab, more: &[(&str, &str)]) -> Properties {
    let mut properties = properties(&lab.server, &[("include.schema.changes", "false")]);
    for (key, value) in more {
        properties.set(*key, *value);
    }
    properties
}

/// `dbo.item` with the rows 1 and 2, captured.
pub(crate) async fn items() -> Lab {
    let mut lab = Lab::start().await;
    lab.table("item", "id int NOT NULL PRIMARY KEY, v varchar(10)").await;
    lab.change("INSERT dbo.item VALUES (1, 'a'), (2, 'b')").await;
    lab
}

#[tokio::test]
async fn rows_first_and_then_changes() {
    let mut lab = items().await;
    let offsets = Offsets::new();
    let mut run = Run::start(&plain(&lab, &[]), &offsets).await.unwrap();
    let rows = run.take(2).await.unwrap();
    assert_eq!(shown(&rows), [r#"item r null>{"id":1,"v":"a"}"#, r#"item r null>{"id":2,"v":"b"}"#]);
    assert_eq!((markers(&rows), rows[0].topic.as_str()), (vec!["first", "last"], "s1.shop.dbo.item"));
    let (first, last) = (&rows[0].offset, &rows[1].offset);
    assert_eq!((&first["snapshot"], &first["snapshot_completed"]), (&json!("INITIAL"), &json!(false)));
    assert_eq!((&first["change_lsn"], &first["event_serial_no"]), (&json!("NULL"), &json!(1)));
    assert_eq!((&last["snapshot"], &last["snapshot_completed"]), (&json!("INITIAL"), &json!(true)));
    let source = &rows[0].value["source"];
    assert_eq!((&source["change_lsn"], &source["event_serial_no"]), (&json!(null), &json!(null)));
    assert_eq!(source["commit_lsn"], first["commit_lsn"]);

    lab.change("INSERT dbo.item VALUES (3, 'c')").await;
    lab.change("UPDATE dbo.item SET v = 'd' WHERE id = 3").await;
    lab.change("DELETE dbo.item WHERE id = 3").await;
    let changes = run.take(4).await.unwrap();
    let expected = [
        r#"item c null>{"id":3,"v":"c"}"#,
        r#"item u {"id":3,"v":"c"}>{"id":3,"v":"d"}"#,
        r#"item d {"id":3,"v":"d"}>null"#,
        r#"item - {"id":3}"#,
    ];
    assert_eq!(shown(&changes), expected);
    let (source, offset) = (&changes[1].value["source"], &changes[1].offset);
    assert_eq!((&source["connector"], &source["db"]), (&json!("sqlserver"), &json!("shop")));
    assert_eq!((&source["schema"], &source["table"]), (&json!("dbo"), &json!("item")));
    assert_eq!((&source["event_serial_no"], &offset["event_serial_no"]), (&json!(2), &json!(2)));
    assert_eq!((&offset["commit_lsn"], &offset["change_lsn"]), (&source["commit_lsn"], &source["change_lsn"]));
    // A delete is not told without its tombstone.
    assert_eq!(changes[2].offset["commit_lsn"], offset["commit_lsn"]);
    run.stop().await.unwrap();
}

#[tokio::test]
async fn t_11_a_restart_goes_on_behind_what_was_delivered() {
    let mut lab = items().await;
    let (config, offsets) = (plain(&lab, &[]), Offsets::new());
    let mut run = Run::start(&config, &offsets).await.unwrap();
    run.take(2).await.unwrap();
    lab.change("INSERT dbo.item VALUES (3, 'c'), (4, 'd'), (5, 'e')").await;
    run.take(2).await.unwrap();
    run.stop().await.unwrap();
    lab.change("INSERT dbo.item VALUES (6, 'f')").await;
    let mut run = Run::start(&config, &offsets).await.unwrap();
    let rest = run.take(2).await.unwrap();
    assert_eq!(afters(&rest), [json!({"id": 5, "v": "e"}), json!({"id": 6, "v": "f"})]);
    run.stop().await.unwrap();
}

#[tokio::test]
async fn t_60_a_snapshot_that_was_stopped_begins_anew() {
    let lab = items().await;
    let (config, offsets) = (plain(&lab, &[]), Offsets::new());
    let mut run = Run::start(&config, &offsets).await.unwrap();
    run.record().await.unwrap();
    assert_eq!(offsets.only()["snapshot_completed"], false);
    run.stop().await.unwrap();
    let mut run = Run::start(&config, &offsets).await.unwrap();
    assert_eq!(markers(&run.take(2).await.unwrap()), ["first", "last"]);
    run.stop().await.unwrap();
}

#[tokio::test]
async fn sql_02_names_of_everything_may_be_odd() {
    let mut lab = Lab::start().await;
    lab.sql("CREATE SCHEMA [ops ['a']]]").await;
    lab.sql("CREATE TABLE [ops ['a']]].[CRN UK$Ledger 50%] (id int NOT NULL PRIMARY KEY, [amt $net] varchar(20))")
        .await;
    lab.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'ops [''a'']', @source_name = N'CRN UK$Ledger 50%', \
         @role_name = NULL",
    )
    .await;
    lab.change("INSERT [ops ['a']]].[CRN UK$Ledger 50%] VALUES (1, 'x')").await;
    let list = r"ops \['a'\]\.CRN UK\$Ledger 50%";
    let mut run = Run::start(&plain(&lab, &[("table.include.list", list)]), &Offsets::new()).await.unwrap();
    let row = run.record().await.unwrap();
    assert_eq!(row.topic, "s1.shop.ops___a__.CRN_UK_Ledger_50_");
    lab.change("INSERT [ops ['a']]].[CRN UK$Ledger 50%] VALUES (2, 'y')").await;
    let change = run.record().await.unwrap();
    assert_eq!((row.op(), change.op()), ("r", "c"));
    assert_eq!(afters(&[row, change]), [json!({"id": 1, "amt $net": "x"}), json!({"id": 2, "amt $net": "y"})]);
    run.stop().await.unwrap();
}

#[tokio::test]
async fn sql_03_reserved_words_are_names_too() {
    let mut lab = Lab::start().await;
    lab.table("[Order]", "[key] int NOT NULL PRIMARY KEY, [Select] varchar(5)").await;
    lab.change("INSERT dbo.[Order] VALUES (1, 'a'), (2, 'b')").await;
    let mut run = Run::start(&plain(&lab, &[]), &Offsets::new()).await.unwrap();
    let mut seen = run.take(2).await.unwrap();
    lab.change("DELETE dbo.[Order] WHERE [key] = 1").await;
    seen.extend(run.take(2).await.unwrap());
    let expected = [
        r#"Order r null>{"key":1,"Select":"a"}"#,
        r#"Order r null>{"key":2,"Select":"b"}"#,
        r#"Order d {"key":1,"Select":"a"}>null"#,
        r#"Order - {"key":1}"#,
    ];
    assert_eq!(shown(&seen), expected);
    run.stop().await.unwrap();
}

#[tokio::test]
async fn sql_12_both_halves_of_a_changed_key_come_after_a_restart_between_them() {
    let mut lab = Lab::start().await;
    for table in ["a", "b"] {
        lab.table(table, "id int NOT NULL PRIMARY KEY, x int").await;
    }
    lab.sql("INSERT dbo.a VALUES (1, 1)").await;
    lab.change("INSERT dbo.b VALUES (1, 1)").await;
    let (config, offsets) = (plain(&lab, &[]), Offsets::new());
    let mut run = Run::start(&config, &offsets).await.unwrap();
    run.take(2).await.unwrap();
    lab.change("BEGIN TRAN; UPDATE dbo.a SET id = 100 WHERE id = 1; UPDATE dbo.b SET id = 100 WHERE id = 1; COMMIT")
        .await;
    let mut seen = run.take(2).await.unwrap();
    run.stop().await.unwrap();
    assert_eq!(offsets.only()["event_serial_no"], 1);
    let mut run = Run::start(&config, &offsets).await.unwrap();
    seen.extend(run.take(4).await.unwrap());
    run.stop().await.unwrap();
    let of = |table: &str| -> Vec<String> {
        shown(&seen).into_iter().filter(|text| text.starts_with(&format!("{table} "))).collect()
    };
    for table in ["a", "b"] {
        let expected = [
            format!(r#"{table} d {{"id":1,"x":1}}>null"#),
            format!(r#"{table} - {{"id":1}}"#),
            format!(r#"{table} c null>{{"id":100,"x":1}}"#),
        ];
        assert_eq!(of(table), expected);
    }
    let serials: Vec<_> =
        seen.iter().filter(|s| s.op() == "c").map(|s| &s.value["source"]["event_serial_no"]).collect();
    assert_eq!(serials, [&json!(2), &json!(2)]);
}

#[tokio::test]
async fn sql_15_the_position_of_a_quiet_database_moves_with_heartbeats() {
    let mut lab = items().await;
    lab.sql("CREATE TABLE dbo.other (id int)").await;
    lab.enable("other", "").await;
    let config = plain(&lab, &[("table.include.list", "dbo.item"), ("heartbeat.interval.ms", "1")]);
    let offsets = Offsets::new();
    let mut run = Run::start(&config, &offsets).await.unwrap();
    run.take(2).await.unwrap();
    let first = run.record().await.unwrap();
    assert_eq!((first.topic.as_str(), &first.key), ("__debezium-heartbeat.s1", &json!({"serverName": "s1"})));
    lab.change("INSERT dbo.other VALUES (1)").await;
    let moved = loop {
        let beat = run.record().await.unwrap();
        assert_eq!(beat.topic, "__debezium-heartbeat.s1");
        if beat.offset["commit_lsn"] != first.offset["commit_lsn"] {
            break beat;
        }
    };
    assert!(moved.offset["commit_lsn"].as_str() > first.offset["commit_lsn"].as_str());
    assert_eq!((&moved.offset["change_lsn"], &moved.offset["event_serial_no"]), (&json!("NULL"), &json!(0)));
    run.stop().await.unwrap();
}

#[tokio::test]
async fn sql_22_skipped_operations_leave_the_others() {
    let mut lab = items().await;
    let mut run = Run::start(&plain(&lab, &[("skipped.operations", "u,d,r")]), &Offsets::new()).await.unwrap();
    settled(&mut run).await;
    for statement in [
        "INSERT dbo.item VALUES (201, 'a')",
        "UPDATE dbo.item SET v = 'b' WHERE id = 201",
        "INSERT dbo.item VALUES (202, 'a')",
        "DELETE dbo.item WHERE id = 202",
        "INSERT dbo.item VALUES (203, 'a')",
    ] {
        lab.change(statement).await;
    }
    let seen = run.take(3).await.unwrap();
    let ids: Vec<_> = seen.iter().map(|s| (s.op(), s.key["id"].as_i64().unwrap())).collect();
    assert_eq!(ids, [("c", 201), ("c", 202), ("c", 203)]);
    run.stop().await.unwrap();
}

#[tokio::test]
async fn sql_36_a_transaction_is_told_to_its_end() {
    let mut lab = Lab::start().await;
    for table in ["a", "b"] {
        lab.table(table, "id int NOT NULL PRIMARY KEY").await;
    }
    lab.capture();
    let config = plain(&lab, &[("provide.transaction.metadata", "true"), ("snapshot.mode", "no_data")]);
    let offsets = Offsets::new();
    let mut run = Run::start(&config, &offsets).await.unwrap();
    settled(&mut run).await;
    lab.change("BEGIN TRAN; INSERT dbo.a VALUES (1), (2); INSERT dbo.b VALUES (1); COMMIT").await;
    let begun = run.take(3).await.unwrap();
    run.stop().await.unwrap();
    assert_eq!((begun[0].topic.as_str(), &begun[0].value["status"]), ("s1.transaction", &json!("BEGIN")));
    let mut run = Run::start(&config, &offsets).await.unwrap();
    lab.change("INSERT dbo.a VALUES (3)").await;
    let rest = run.take(4).await.unwrap();
    let block = |at: usize| rest[at].value["transaction"].clone();
    let id = begun[0].key["id"].clone();
    assert_eq!(begun[1].value["transaction"], json!({"id": id, "total_order": 1, "data_collection_order": 1}));
    assert_eq!(block(0), json!({"id": id, "total_order": 3, "data_collection_order": 1}));
    let counts = json!([
        {"data_collection": "shop.dbo.a", "event_count": 2},
        {"data_collection": "shop.dbo.b", "event_count": 1},
    ]);
    assert_eq!((&rest[1].value["status"], &rest[1].value["event_count"]), (&json!("END"), &json!(3)));
    assert_eq!(rest[1].value["data_collections"], counts);
    assert_eq!((&rest[2].value["status"], block(3)["total_order"].as_i64()), (&json!("BEGIN"), Some(1)));
    run.stop().await.unwrap();
}

#[tokio::test]
async fn sql_06_what_cannot_be_converted_follows_the_mode_of_failures() {
    let mut lab = Lab::start().await;
    lab.table("v", "id int NOT NULL PRIMARY KEY, until datetime2(7) NOT NULL").await;
    lab.capture();
    let odd = "INSERT dbo.v VALUES (1, '9999-12-31 23:59:59.9999999')";
    let start = [("snapshot.mode", "no_data"), ("event.processing.failure.handling.mode", "fail")];
    let mut run = Run::start(&plain(&lab, &start), &Offsets::new()).await.unwrap();
    settled(&mut run).await;
    lab.change(odd).await;
    let error = run.error().await.unwrap();
    assert!(error.message.contains("table shop.dbo.v") && error.message.contains("commit_lsn"), "{}", error.message);
    assert!(error.causes.iter().any(|cause| cause.contains("column 'until'")), "{:?}", error.causes);
    run.stop().await.unwrap();
    let start = [("snapshot.mode", "initial"), ("event.processing.failure.handling.mode", "warn")];
    lab.change("INSERT dbo.v VALUES (2, '2262-04-11 23:47:16.8547758')").await;
    let mut run = Run::start(&plain(&lab, &start), &Offsets::new()).await.unwrap();
    let row = run.record().await.unwrap();
    assert_eq!(row.after()["until"], json!(9_223_372_036_854_775_800_i64));
    run.stop().await.unwrap();
}

/// The reader is stopped behind every record of two transactions over two tables. What was delivered of a change
/// whose records were not all delivered comes again, and nothing else does.
#[tokio::test]
async fn t_11_a_restart_behind_each_record_of_a_transaction_continues_exactly_there() {
    let mut lab = Lab::start().await;
    for table in ["a", "b"] {
        lab.table(table, "id int NOT NULL PRIMARY KEY, x int").await;
    }
    lab.capture();
    let (config, begin) = (plain(&lab, &[("snapshot.mode", "no_data")]), Offsets::new());
    let mut run = Run::start(&config, &begin).await.unwrap();
    settled(&mut run).await;
    run.stop().await.unwrap();
    lab.sql(
        "BEGIN TRAN; INSERT dbo.a VALUES (1, 1), (2, 2), (3, 3); INSERT dbo.b VALUES (1, 1); UPDATE dbo.a SET x = x + 10; \
         UPDATE dbo.b SET id = 7 WHERE id = 1; DELETE dbo.a WHERE id = 2; COMMIT",
    )
    .await;
    lab.change("BEGIN TRAN; UPDATE dbo.a SET x = 0 WHERE id = 3; INSERT dbo.b VALUES (8, 8); COMMIT").await;
    const ALL: usize = 14;
    let mut run = Run::start(&config, &begin.copy()).await.unwrap();
    let whole = shown(&run.take(ALL).await.unwrap());
    run.stop().await.unwrap();
    for stop in 1..ALL {
        let offsets = begin.copy();
        let mut run = Run::start(&config, &offsets).await.unwrap();
        let mut seen = shown(&run.take(stop).await.unwrap());
        run.stop().await.unwrap();
        // A delete is delivered with its tombstone.
        let again = usize::from(whole[stop].contains(" - "));
        seen.truncate(stop - again);
        let mut run = Run::start(&config, &offsets).await.unwrap();
        seen.extend(shown(&run.take(ALL - stop + again).await.unwrap()));
        run.stop().await.unwrap();
        assert_eq!(seen, whole, "behind {}", whole[stop - 1]);
    }
}
