//! Structures: in records for consumers, in the history, and in the rows that have them.

use serde_json::json;

use crate::fixture::run::{Offsets, Run, afters, markers, settled, shown};
use crate::fixture::{Lab, properties};
use crate::reading::plain;

#[tokio::test]
async fn sql_42_consumers_are_told_of_structures() {
    let mut lab = Lab::start().await;
    lab.table("a", "id int NOT NULL PRIMARY KEY").await;
    lab.table("b", "id int NOT NULL PRIMARY KEY").await;
    lab.capture();
    let mut run = Run::start(&properties(&lab.server, &[]), &Offsets::new()).await.unwrap();
    let created = run.take(2).await.unwrap();
    settled(&mut run).await;
    let what = |at: usize| {
        let value = &created[at].value;
        (value["tableChanges"][0]["type"].clone(), value["tableChanges"][0]["id"].clone(), value["ddl"].clone())
    };
    assert_eq!(created[0].topic, "s1");
    assert_eq!(created[0].key, json!({"databaseName": "shop"}));
    assert_eq!(what(0), (json!("CREATE"), json!(r#""shop"."dbo"."a""#), json!(null)));
    assert_eq!(what(1), (json!("CREATE"), json!(r#""shop"."dbo"."b""#), json!(null)));
    assert_eq!(markers(&created), ["true", "true"]);
    lab.sql("ALTER TABLE dbo.b ADD nc int NOT NULL DEFAULT 7").await;
    lab.enable("b", ", @capture_instance = N'b_v2'").await;
    lab.change("INSERT dbo.b VALUES (1, 3)").await;
    let told = run.take(2).await.unwrap();
    assert_eq!((&told[0].topic, &told[0].value["ddl"], told[0].snapshot()), (&"s1".to_owned(), &json!("N/A"), "false"));
    assert_eq!(told[0].value["schemaName"], "dbo");
    let change = &told[0].value["tableChanges"][0];
    assert_eq!((&change["type"], &change["table"]["columns"][1]["name"]), (&json!("ALTER"), &json!("nc")));
    assert_eq!(change["table"]["columns"][1]["defaultValueExpression"], "((7))");
    assert_eq!(told[1].after(), json!({"id": 1, "nc": 3}));
    run.stop().await.unwrap();
}

#[tokio::test]
async fn the_last_structure_ends_a_snapshot_that_reads_no_rows() {
    let mut lab = Lab::start().await;
    for table in ["a", "b"] {
        lab.table(table, "id int NOT NULL PRIMARY KEY").await;
    }
    let config = properties(&lab.server, &[("snapshot.mode", "no_data")]);
    let mut run = Run::start(&config, &Offsets::new()).await.unwrap();
    assert_eq!(markers(&run.take(2).await.unwrap()), ["true", "last"]);
    run.stop().await.unwrap();
}

#[tokio::test]
async fn sql_16_a_second_instance_changes_the_structure_between_two_rows() {
    for transactions in ["1", "0"] {
        let mut lab = Lab::start().await;
        lab.table("b", "id int NOT NULL PRIMARY KEY, colb varchar(30)").await;
        lab.capture();
        let config = plain(&lab, &[("max.iteration.transactions", transactions), ("snapshot.mode", "no_data")]);
        let offsets = Offsets::new();
        let mut run = Run::start(&config, &offsets).await.unwrap();
        settled(&mut run).await;
        run.stop().await.unwrap();
        lab.sql("INSERT dbo.b VALUES (10, 'a')").await;
        lab.sql("ALTER TABLE dbo.b ADD nc int NOT NULL DEFAULT 0").await;
        lab.sql("INSERT dbo.b VALUES (100, 'a', 2)").await;
        lab.capture();
        lab.enable("b", ", @capture_instance = N'b_v2'").await;
        lab.change("INSERT dbo.b VALUES (1000, 'a', 3)").await;
        let mut run = Run::start(&config, &offsets).await.unwrap();
        let seen = run.take(3).await.unwrap();
        let expected = [
            json!({"id": 10, "colb": "a"}),
            json!({"id": 100, "colb": "a"}),
            json!({"id": 1000, "colb": "a", "nc": 3}),
        ];
        assert_eq!(afters(&seen), expected);
        run.stop().await.unwrap();
        // Whoever goes on behind the switch knows the new structure from the history.
        lab.change("INSERT dbo.b VALUES (1001, 'b', 4)").await;
        let mut run = Run::start(&config, &offsets).await.unwrap();
        assert_eq!(afters(&run.take(1).await.unwrap()), [json!({"id": 1001, "colb": "b", "nc": 4})]);
        run.stop().await.unwrap();
    }
}

#[tokio::test]
async fn t_63_a_structure_behind_an_idle_stop_is_kept() {
    let mut lab = Lab::start().await;
    lab.table("b", "id int NOT NULL PRIMARY KEY").await;
    lab.table("other", "id int").await;
    lab.capture();
    let config = plain(&lab, &[("snapshot.mode", "no_data"), ("table.include.list", "dbo.b")]);
    let offsets = Offsets::new();
    let mut run = Run::start(&config, &offsets).await.unwrap();
    settled(&mut run).await;
    lab.sql("ALTER TABLE dbo.b ADD nc int").await;
    lab.enable("b", ", @capture_instance = N'b_v2'").await;
    lab.change("INSERT dbo.b VALUES (1, 1)").await;
    run.take(1).await.unwrap();
    lab.change("INSERT dbo.other VALUES (1)").await;
    assert_eq!(run.quiet().await.unwrap()["change_lsn"], "NULL");
    run.stop().await.unwrap();
    // The table has another structure by now; the rows of the instance have not.
    lab.sql("ALTER TABLE dbo.b ADD later int").await;
    lab.change("INSERT dbo.b VALUES (2, 2, 2)").await;
    let mut run = Run::start(&config, &offsets).await.unwrap();
    assert_eq!(shown(&run.take(1).await.unwrap()), [r#"b c null>{"id":2,"nc":2}"#]);
    run.stop().await.unwrap();
}

#[tokio::test]
async fn t_29_a_table_that_is_captured_later_is_created_then() {
    let mut lab = Lab::start().await;
    lab.table("a", "id int NOT NULL PRIMARY KEY").await;
    lab.capture();
    let mut run = Run::start(&properties(&lab.server, &[]), &Offsets::new()).await.unwrap();
    run.take(1).await.unwrap();
    settled(&mut run).await;
    lab.table("b", "id int NOT NULL PRIMARY KEY").await;
    lab.change("INSERT dbo.b VALUES (1)").await;
    let told = run.take(2).await.unwrap();
    assert_eq!(told[0].value["tableChanges"][0]["type"], "CREATE");
    assert_eq!((told[1].topic.as_str(), told[1].after()), ("s1.shop.dbo.b", json!({"id": 1})));
    run.stop().await.unwrap();
}

#[tokio::test]
async fn t_30_a_table_that_is_no_longer_captured_leaves_the_others_alone() {
    for mode in ["direct", "function"] {
        let mut lab = Lab::start().await;
        for table in ["a", "b"] {
            lab.table(table, "id int NOT NULL PRIMARY KEY").await;
        }
        lab.capture();
        let config = plain(&lab, &[("snapshot.mode", "no_data"), ("data.query.mode", mode)]);
        let mut run = Run::start(&config, &Offsets::new()).await.unwrap();
        settled(&mut run).await;
        lab.change("INSERT dbo.a VALUES (1)").await;
        run.take(1).await.unwrap();
        lab.sql(
            "EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'a', @capture_instance = N'all'",
        )
        .await;
        lab.change("INSERT dbo.b VALUES (1)").await;
        assert_eq!(shown(&run.take(1).await.unwrap()), [r#"b c null>{"id":1}"#], "{mode}");
        run.stop().await.unwrap();
    }
}

#[tokio::test]
async fn t_21_it_is_told_when_an_instance_may_be_dropped() {
    let mut lab = Lab::start().await;
    lab.table("b", "id int NOT NULL PRIMARY KEY").await;
    lab.capture();
    let config = plain(
        &lab,
        &[
            ("snapshot.mode", "no_data"),
            ("notification.enabled.channels", "sink"),
            ("notification.sink.topic.name", "notices"),
        ],
    );
    let mut run = Run::start(&config, &Offsets::new()).await.unwrap();
    while run.record().await.unwrap().value["type"] != "COMPLETED" {}
    lab.sql("ALTER TABLE dbo.b ADD nc int").await;
    lab.enable("b", ", @capture_instance = N'b_v2'").await;
    lab.change("INSERT dbo.b VALUES (1, 1)").await;
    let change = run.record().await.unwrap();
    assert_eq!(change.op(), "c");
    run.tell_stored().unwrap();
    lab.change("INSERT dbo.b VALUES (2, 2)").await;
    let told = run.take(2).await.unwrap();
    let notice = told.iter().find(|seen| seen.topic == "notices").expect("a notice");
    assert_eq!(
        (&notice.value["aggregate_type"], &notice.value["type"]),
        (&json!("Capture Instance"), &json!("COMPLETED"))
    );
    let data = &notice.value["additional_data"];
    let names = (&data["connector_name"], &data["capture_instance"], &data["server"], &data["database"]);
    assert_eq!(names, (&json!("s1"), &json!("dbo_b"), &json!("s1"), &json!("shop")));
    assert_eq!(data["commit_lsn"], change.value["source"]["commit_lsn"]);
    assert!(data["start_lsn"].as_str() < data["stop_lsn"].as_str());
    run.stop().await.unwrap();
}
