//! Which tables a snapshot reads, how, and in which order.

use serde_json::json;

use crate::fixture::Lab;
use crate::fixture::run::{Offsets, Run, afters, markers, shown};
use crate::reading::plain;

/// Tables with so many rows each.
async fn tables(rows: &[(&str, usize)]) -> Lab {
    let mut lab = Lab::start().await;
    for (name, count) in rows {
        lab.table(name, "id int NOT NULL PRIMARY KEY, dead int").await;
        for id in 1..=*count {
            lab.sql(&format!("INSERT dbo.[{}] VALUES ({id}, {})", name.trim_matches(['[', ']']), id - 1)).await;
        }
    }
    lab.capture();
    lab
}

/// Table and id of so many rows.
async fn read(lab: &Lab, more: &[(&str, &str)], count: usize) -> Vec<(String, i64)> {
    let mut run = Run::start(&plain(lab, more), &Offsets::new()).await.unwrap();
    let rows = run.take(count).await.unwrap();
    while run.offsets.only()["snapshot_completed"] != true {
        run.quiet().await.unwrap();
    }
    run.stop().await.unwrap();
    let name = |topic: &str| topic.rsplit('.').next().unwrap().to_owned();
    rows.iter().map(|row| (name(&row.topic), row.key["id"].as_i64().unwrap())).collect()
}

fn rows(expected: &[(&str, i64)]) -> Vec<(String, i64)> {
    expected.iter().map(|(table, id)| ((*table).to_owned(), *id)).collect()
}

#[tokio::test]
async fn t_59_each_row_says_where_it_stands_whatever_is_empty() {
    let lab = tables(&[("a", 0), ("b", 2), ("c", 1), ("d", 2), ("e", 0)]).await;
    let mut run = Run::start(&plain(&lab, &[]), &Offsets::new()).await.unwrap();
    let seen = run.take(5).await.unwrap();
    assert_eq!(
        markers(&seen),
        ["first", "last_in_data_collection", "last_in_data_collection", "first_in_data_collection", "last"]
    );
    assert_eq!(run.offsets.only()["snapshot_completed"], true);
    run.stop().await.unwrap();
    let empty = tables(&[("a", 0)]).await;
    assert_eq!(read(&empty, &[], 0).await, rows(&[]));
}

#[tokio::test]
async fn tables_come_in_the_order_of_the_list_or_of_their_size() {
    let lab = tables(&[("a", 2), ("b", 1), ("c", 3)]).await;
    let first = |seen: Vec<(String, i64)>| -> Vec<String> {
        let mut names: Vec<String> = seen.into_iter().map(|(table, _)| table).collect();
        names.dedup();
        names
    };
    assert_eq!(first(read(&lab, &[], 6).await), ["a", "b", "c"]);
    assert_eq!(first(read(&lab, &[("table.include.list", r"dbo\.c,dbo\.[ab]")], 6).await), ["c", "a", "b"]);
    for (order, expected) in [("ascending", ["b", "a", "c"]), ("descending", ["c", "a", "b"])] {
        let order = [("snapshot.tables.order.by.row.count", order)];
        assert_eq!(first(read(&lab, &order, 6).await), expected);
    }
}

#[tokio::test]
async fn sql_04_statements_of_the_users_read_their_tables() {
    let mut lab = tables(&[("a", 2), ("[b c]", 2), ("d", 1)]).await;
    let overrides = [
        ("snapshot.select.statement.overrides", " dbo.a , [dbo].[b c] ,dbo.d"),
        ("snapshot.select.statement.overrides.dbo.a", "SELECT * FROM dbo.a WHERE dead=0"),
        ("snapshot.select.statement.overrides.[dbo].[b c]", "SELECT id FROM [dbo].[b c] WHERE id=2"),
    ];
    let mut run = Run::start(&plain(&lab, &overrides), &Offsets::new()).await.unwrap();
    let seen = run.take(3).await.unwrap();
    let expected =
        [r#"a r null>{"id":1,"dead":0}"#, r#"b_c r null>{"id":2,"dead":null}"#, r#"d r null>{"id":1,"dead":0}"#];
    assert_eq!(shown(&seen), expected);
    lab.change("INSERT dbo.a VALUES (7, 7)").await;
    assert_eq!(shown(&run.take(1).await.unwrap()), [r#"a c null>{"id":7,"dead":7}"#], "changes are not filtered");
    run.stop().await.unwrap();
}

#[tokio::test]
async fn sql_31_lists_ignore_case_and_names_are_those_of_the_catalogue() {
    let mut lab = tables(&[("Orders", 1), ("other", 1)]).await;
    let lists = [("table.include.list", "DBO.orders"), ("snapshot.include.collection.list", "dbo.ORDERS")];
    let mut run = Run::start(&plain(&lab, &lists), &Offsets::new()).await.unwrap();
    let row = run.record().await.unwrap();
    lab.change("INSERT dbo.other VALUES (5, 5)").await;
    lab.change("INSERT dbo.Orders VALUES (2, 2)").await;
    let change = run.record().await.unwrap();
    assert_eq!((row.topic.as_str(), change.topic.as_str()), ("s1.shop.dbo.Orders", "s1.shop.dbo.Orders"));
    assert_eq!((row.op(), change.op(), change.key["id"].as_i64()), ("r", "c", Some(2)));
    run.stop().await.unwrap();
}

#[tokio::test]
async fn rows_are_read_of_listed_tables_only() {
    let mut lab = tables(&[("a", 1), ("b", 1)]).await;
    let list = [("snapshot.include.collection.list", r"shop\.dbo\.b")];
    assert_eq!(read(&lab, &list, 1).await, rows(&[("b", 1)]));
    let mut run = Run::start(&plain(&lab, &list), &Offsets::new()).await.unwrap();
    run.take(1).await.unwrap();
    lab.change("INSERT dbo.a VALUES (2, 2)").await;
    assert_eq!(shown(&run.take(1).await.unwrap()), [r#"a c null>{"id":2,"dead":2}"#]);
    run.stop().await.unwrap();
}

#[tokio::test]
async fn sql_18_a_captured_part_of_a_table_is_read_in_both_phases() {
    let mut lab = Lab::start().await;
    lab.sql("CREATE TABLE dbo.p (id int NOT NULL PRIMARY KEY, a int, b int)").await;
    lab.enable("p", ", @captured_column_list = N'b, id'").await;
    lab.change("INSERT dbo.p VALUES (1, 2, 3)").await;
    let mut run = Run::start(&plain(&lab, &[]), &Offsets::new()).await.unwrap();
    let mut seen = run.take(1).await.unwrap();
    lab.change("INSERT dbo.p VALUES (4, 5, 6)").await;
    seen.extend(run.take(1).await.unwrap());
    assert_eq!(afters(&seen), [json!({"id": 1, "b": 3}), json!({"id": 4, "b": 6})]);
    run.stop().await.unwrap();
}

#[tokio::test]
async fn t_74_too_many_tables_are_told_of_or_refused() {
    let lab = tables(&[("a", 0), ("b", 0)]).await;
    let limit = ("guardrail.collections.max", "1");
    let config = plain(&lab, &[limit, ("guardrail.collections.limit.action", "fail")]);
    let mut run = Run::start(&config, &Offsets::new()).await.unwrap();
    let error = run.error().await.unwrap();
    assert_eq!(error.message, "2 tables are captured, guardrail.collections.max allows 1");
    run.stop().await.unwrap();
    assert_eq!(read(&lab, &[limit], 0).await, rows(&[]));
}
