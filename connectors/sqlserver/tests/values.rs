//! Values of every type, in rows and in changes.

use serde_json::{Value as Json, json};

use crate::fixture::Lab;
use crate::fixture::run::{Offsets, Run, afters, shown};
use crate::reading::plain;

/// `after` of the same row in a snapshot and in a change.
async fn both(lab: &mut Lab, insert: &str, more: &[(&str, &str)]) -> (Json, Json) {
    lab.change(insert).await;
    let mut run = Run::start(&plain(lab, more), &Offsets::new()).await.unwrap();
    let read = run.take(1).await.unwrap();
    lab.change("DELETE dbo.v").await;
    lab.change(insert).await;
    let changes = run.take(3).await.unwrap();
    run.stop().await.unwrap();
    lab.change("DELETE dbo.v").await;
    (read[0].after(), changes[2].after())
}

#[tokio::test]
async fn every_type_has_the_same_value_in_rows_and_in_changes() {
    let mut lab = Lab::start().await;
    lab.table(
        "v",
        "id int NOT NULL PRIMARY KEY, b bit, ti tinyint, si smallint, bi bigint, r real, f float, de decimal(10,3), \
         nu numeric(20,0), mo money, sm smallmoney, ch char(4), vc varchar(10), vm varchar(max), nc nchar(3), nv \
         nvarchar(10), nm nvarchar(max), bn binary(3), vb varbinary(5), vx varbinary(max), d date, t time(3), dt \
         datetime, sd smalldatetime, d2 datetime2(6), dz datetimeoffset(3), u uniqueidentifier, x xml",
    )
    .await;
    let insert = "INSERT dbo.v VALUES (1, 1, 255, -32768, 9223372036854775807, 1.5, -2.25, -0.500, 12345678901234567890, \
                  -17.8, 0.01, 'ab', 'c', 'long', N'ä', N'日本', N'ñ', 0x010203, 0x0a, 0xff, '2026-11-30', '10:20:30.123', \
                  '2026-11-30T10:20:30.007', '2026-11-30T10:20:00', '2026-11-30 10:20:30.123456', \
                  '2026-11-30 10:20:30.123 +02:00', '6F9619FF-8B86-D011-B42D-00C04FC964FF', '<a>1</a>')";
    let (read, change) = both(&mut lab, insert, &[("decimal.handling.mode", "string")]).await;
    let expected = json!({
        "id": 1, "b": true, "ti": 255, "si": -32768, "bi": i64::MAX, "r": 1.5, "f": -2.25, "de": "-0.500",
        "nu": "12345678901234567890", "mo": "-17.8000", "sm": "0.0100", "ch": "ab  ", "vc": "c", "vm": "long",
        "nc": "ä  ", "nv": "日本", "nm": "ñ", "bn": "AQID", "vb": "Cg==", "vx": "/w==", "d": 20787,
        "t": 37_230_123, "dt": 1_796_034_030_007_i64, "sd": 1_796_034_000_000_i64, "d2": 1_796_034_030_123_456_i64,
        "dz": "2026-11-30T10:20:30.123+02:00", "u": "6F9619FF-8B86-D011-B42D-00C04FC964FF", "x": "<a>1</a>"
    });
    assert_eq!(read, expected);
    assert_eq!(change, expected);
}

#[tokio::test]
async fn sql_05_times_keep_their_precision_in_both_phases() {
    let mut lab = Lab::start().await;
    lab.table("v", "id int NOT NULL PRIMARY KEY, a time(2), b time(4), c time(7), d datetime2(7)").await;
    let insert = "INSERT dbo.v VALUES (1, '21:07:09.12', '21:07:09.1234', '21:07:09.1234567', \
                  '2021-03-04 05:06:07.1234567')";
    let adaptive = json!({"id": 1, "a": 76_029_120, "b": 76_029_123_400_i64, "c": 76_029_123_456_700_i64,
        "d": 1_614_834_367_123_456_700_i64});
    let connect = json!({"id": 1, "a": 76_029_120, "b": 76_029_123, "c": 76_029_123, "d": 1_614_834_367_123_i64});
    for (mode, expected) in [("adaptive", adaptive), ("connect", connect)] {
        let (read, change) = both(&mut lab, insert, &[("time.precision.mode", mode)]).await;
        assert_eq!((&read, &change), (&expected, &expected), "{mode}");
    }
}

#[tokio::test]
async fn sql_01_a_system_versioned_table_is_read_with_its_period() {
    let mut lab = Lab::start().await;
    lab.sql(
        "CREATE TABLE dbo.price (id int NOT NULL PRIMARY KEY, cur varchar(3), t0 datetime2(7) GENERATED ALWAYS AS ROW START \
         HIDDEN NOT NULL, t1 datetime2(7) GENERATED ALWAYS AS ROW END HIDDEN NOT NULL, PERIOD FOR SYSTEM_TIME (t0, t1)) \
         WITH (SYSTEM_VERSIONING = ON (HISTORY_TABLE = dbo.price_h))",
    )
    .await;
    lab.enable("price", "").await;
    lab.change("INSERT dbo.price (id, cur) VALUES (1, 'EUR')").await;
    let config = plain(&lab, &[("table.include.list", r"dbo\.price"), ("time.precision.mode", "microseconds")]);
    let mut run = Run::start(&config, &Offsets::new()).await.unwrap();
    let row = run.record().await.unwrap();
    assert_eq!((row.op(), &row.key, &row.after()["cur"]), ("r", &json!({"id": 1}), &json!("EUR")));
    assert_eq!(row.snapshot(), "last");
    run.stop().await.unwrap();
}

#[tokio::test]
async fn sql_28_a_table_without_a_key_has_events_without_one() {
    let mut lab = Lab::start().await;
    lab.table("kl", "a int, b varchar(9)").await;
    lab.capture();
    let config = plain(&lab, &[("snapshot.mode", "no_data")]);
    let mut run = Run::start(&config, &Offsets::new()).await.unwrap();
    crate::fixture::run::settled(&mut run).await;
    for statement in ["INSERT dbo.kl VALUES (1, 'k')", "UPDATE dbo.kl SET a = 3", "DELETE dbo.kl"] {
        lab.change(statement).await;
    }
    let seen = run.take(3).await.unwrap();
    let expected =
        [r#"kl c null>{"a":1,"b":"k"}"#, r#"kl u {"a":1,"b":"k"}>{"a":3,"b":"k"}"#, r#"kl d {"a":3,"b":"k"}>null"#];
    assert_eq!(shown(&seen), expected);
    assert!(seen.iter().all(|seen| seen.record.key.is_none()));
    run.stop().await.unwrap();
}

#[tokio::test]
async fn sql_29_keys_are_of_the_columns_that_were_chosen() {
    let mut lab = Lab::start().await;
    lab.table("a", "x int NOT NULL, id int NOT NULL PRIMARY KEY").await;
    lab.change("INSERT dbo.a VALUES (7, 1)").await;
    for spelling in ["dbo.a:x,id;", "shop.dbo.a:x,id", "(.*).a:x,id"] {
        let mut run = Run::start(&plain(&lab, &[("message.key.columns", spelling)]), &Offsets::new()).await.unwrap();
        let row = run.record().await.unwrap();
        assert_eq!(row.key.to_string(), r#"{"x":7,"id":1}"#, "{spelling}");
        run.stop().await.unwrap();
    }
    let mut run = Run::start(&plain(&lab, &[("message.key.columns", "dbo.a:x")]), &Offsets::new()).await.unwrap();
    run.take(1).await.unwrap();
    crate::fixture::run::settled(&mut run).await;
    lab.change("UPDATE dbo.a SET x = 8").await;
    let seen = run.take(3).await.unwrap();
    assert_eq!(
        shown(&seen),
        [r#"a d {"x":7,"id":1}>null"#, r#"a - {"x":7}"#, r#"a c null>{"x":8,"id":1}"#],
        "another key is a delete and a create"
    );
    run.stop().await.unwrap();
}

#[tokio::test]
async fn sql_39_columns_that_messages_have_nothing_for_are_left_out() {
    let mut lab = Lab::start().await;
    lab.table("v", "id int NOT NULL PRIMARY KEY, s sql_variant, x xml, rv rowversion").await;
    let (read, change) = both(&mut lab, "INSERT dbo.v (id, s, x) VALUES (1, 5, '<a/>')", &[]).await;
    for value in [read, change] {
        let names: Vec<&String> = value.as_object().unwrap().keys().collect();
        assert_eq!(names, ["id", "x", "rv"]);
        assert_eq!(value["x"], "<a/>");
    }
}

#[tokio::test]
async fn sql_11_values_that_the_log_does_not_hold_have_a_stand_in() {
    let mut lab = Lab::start().await;
    lab.table("v", "id int NOT NULL PRIMARY KEY, n int, m nvarchar(max), o varbinary(max)").await;
    lab.change("INSERT dbo.v VALUES (1, 1, N'text', 0x01)").await;
    let mut run = Run::start(&plain(&lab, &[]), &Offsets::new()).await.unwrap();
    run.take(1).await.unwrap();
    crate::fixture::run::settled(&mut run).await;
    lab.change("UPDATE dbo.v SET n = 2").await;
    lab.change("UPDATE dbo.v SET m = NULL").await;
    let seen = run.take(2).await.unwrap();
    let bytes = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==";
    let absent = "__debezium_unavailable_value";
    let expected = [json!({"id": 1, "n": 2, "m": absent, "o": bytes}), json!({"id": 1, "n": 2, "m": null, "o": bytes})];
    assert_eq!(afters(&seen), expected);
    run.stop().await.unwrap();
}
