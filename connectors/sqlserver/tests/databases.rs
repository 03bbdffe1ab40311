//! Several databases, their tasks, and what happens when the server goes away.

use serde_json::json;
use thalweg_core::source::Connector;
use thalweg_core::{ErrorKind, Policy};
use thalweg_sqlserver::SqlServerConnector;

use crate::fixture::Lab;
use crate::fixture::run::{Offsets, Run, afters, settled};
use crate::reading::{items, plain};

async fn with_databases(names: &[&str]) -> Lab {
    let mut lab = Lab::start().await;
    for name in names {
        lab.sql(&format!("CREATE DATABASE [{name}]")).await;
    }
    lab
}

#[tokio::test]
async fn sql_33_databases_go_to_tasks_as_the_server_spells_them() {
    let lab = with_databases(&["D1", "d2", "d3"]).await;
    let connector = SqlServerConnector::new();
    let planned = async |names: &str, max: usize| {
        let tasks = connector.plan_tasks(&plain(&lab, &[("database.names", names)]), max, &[]).await.unwrap();
        tasks.iter().map(|task| task.get("database.names").unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(planned("d1,D2", 4).await, ["D1", "d2"]);
    assert_eq!(planned("d1,D2", 1).await, ["D1,d2"]);
    assert_eq!(planned("d1,D2,d3", 2).await, ["D1,d3", "d2"]);
}

#[tokio::test]
async fn t_44_a_database_that_is_not_there_needs_a_person() {
    let lab = with_databases(&[]).await;
    let config = plain(&lab, &[("database.names", "nosuchdb")]);
    let error = SqlServerConnector::new().plan_tasks(&config, 1, &[]).await.unwrap_err();
    assert_eq!((error.kind, error.policy()), (ErrorKind::Config, Policy::NeedsUser));
    assert!(error.message.starts_with("Could not build task configs: Could not retrieve exactly one database name"));
}

#[tokio::test]
async fn t_49_an_offset_of_the_other_layout_is_gone_on_with() {
    let mut lab = items().await;
    let offsets = Offsets::new();
    let mut run = Run::start(&plain(&lab, &[]), &offsets).await.unwrap();
    run.take(2).await.unwrap();
    settled(&mut run).await;
    run.stop().await.unwrap();
    lab.change("INSERT dbo.item VALUES (3, 'c')").await;
    let mut single = plain(&lab, &[("database.dbname", "shop")]);
    single.remove("database.names");
    let mut run = Run::start(&single, &offsets).await.unwrap();
    let change = run.record().await.unwrap();
    assert_eq!((change.topic.as_str(), change.after()), ("s1.dbo.item", json!({"id": 3, "v": "c"})));
    assert_eq!(run.partition.to_map().len(), 1);
    run.stop().await.unwrap();
}

#[tokio::test]
async fn sql_26_t_43_a_connection_that_breaks_in_a_snapshot_makes_it_be_taken_again() {
    let mut lab = Lab::start().await;
    lab.table("item", "id int NOT NULL PRIMARY KEY, pad varchar(200)").await;
    for from in 0..20 {
        let row = |at: i32| format!("({}, '{}')", from * 100 + at, "x".repeat(200));
        let rows: Vec<String> = (0..100).map(row).collect();
        lab.sql(&format!("INSERT dbo.item VALUES {}", rows.join(", "))).await;
    }
    lab.capture();
    let offsets = Offsets::new();
    let config = plain(&lab, &[("snapshot.fetch.size", "10")]);
    let mut run = Run::start(&config, &offsets).await.unwrap();
    run.take(5).await.unwrap();
    lab.server.connections().iter().for_each(|connection| connection.cut());
    let error = run.error().await.unwrap();
    assert!(error.is_retriable(), "{error}");
    run.stop().await.unwrap();
    let mut run = Run::start(&config, &offsets).await.unwrap();
    let rows = run.take(2_000).await.unwrap();
    assert_eq!((rows[0].snapshot(), rows[1_999].snapshot()), ("first", "last"));
    run.stop().await.unwrap();
}

#[tokio::test]
async fn a_statement_of_the_users_runs_with_heartbeats() {
    let mut lab = items().await;
    lab.sql("CREATE TABLE dbo.beats (id int IDENTITY PRIMARY KEY, at datetime2 NULL)").await;
    let beat = ("heartbeat.interval.ms", "5");
    let query = ("heartbeat.action.query", "INSERT dbo.beats (at) VALUES (SYSDATETIME())");
    let list = ("table.include.list", "dbo.item");
    let mut run = Run::start(&plain(&lab, &[beat, query, list]), &Offsets::new()).await.unwrap();
    run.take(2).await.unwrap();
    loop {
        run.record().await.unwrap();
        let rows = lab.admin.rows("SELECT COUNT(*) FROM dbo.beats", &[]).await.unwrap();
        if rows[0].get::<i32, _>(0) > Some(1) {
            break;
        }
    }
    run.stop().await.unwrap();
    let wrong = ("heartbeat.action.query", "INSERT dbo.nothing VALUES (1)");
    let mut run = Run::start(&plain(&lab, &[beat, wrong, list]), &Offsets::new()).await.unwrap();
    let error = run.error().await.unwrap();
    assert!(error.message.starts_with("Could not execute heartbeat action query (Error: "), "{}", error.message);
    assert!(error.is_retriable());
    run.stop().await.unwrap();
}

#[tokio::test]
async fn sql_20_a_renamed_table_keeps_its_topic_until_the_task_restarts() {
    let mut lab = Lab::start().await;
    lab.table("account", "id int NOT NULL PRIMARY KEY, amt int").await;
    lab.capture();
    let offsets = Offsets::new();
    let config = plain(&lab, &[("snapshot.mode", "no_data")]);
    let mut run = Run::start(&config, &offsets).await.unwrap();
    settled(&mut run).await;
    lab.change("INSERT dbo.account VALUES (10, 1)").await;
    let mut seen = run.take(1).await.unwrap();
    lab.sql("EXEC sp_rename 'dbo.account', 'account_new'").await;
    lab.change("INSERT dbo.account_new VALUES (11, 1)").await;
    seen.extend(run.take(1).await.unwrap());
    run.stop().await.unwrap();
    let mut run = Run::start(&config, &offsets).await.unwrap();
    lab.change("INSERT dbo.account_new VALUES (12, 1)").await;
    seen.extend(run.take(1).await.unwrap());
    run.stop().await.unwrap();
    let topics: Vec<&str> = seen.iter().map(|seen| seen.topic.as_str()).collect();
    assert_eq!(topics, ["s1.shop.dbo.account", "s1.shop.dbo.account", "s1.shop.dbo.account_new"]);
    let ids: Vec<_> = afters(&seen).iter().map(|after| after["id"].clone()).collect();
    assert_eq!(ids, [json!(10), json!(11), json!(12)]);
}
