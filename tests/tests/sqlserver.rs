//! Changes of SQL Server (the emulator) through three nodes to Kafka.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use thalweg_config::Properties;
use thalweg_sqlserver::link::SqlLink;
use thalweg_sqlserver::options::SqlServerConfig;
use thalweg_sqlserver_emulator::engine::{Emulator, Setup};
use thalweg_sqlserver_emulator::wire::server::{Options, TdsServer};
use thalweg_tests::{Cluster, Rest, Topic};

use crate::shared::{kafka, unique, with};

const SOON: Duration = Duration::from_secs(30);

/// A server with a database `shop` that is enabled, and somebody who works on it.
struct Shop {
    server: TdsServer,
    _emulator: Arc<Emulator>,
    admin: SqlLink,
}

impl Shop {
    async fn open() -> Result<Self> {
        let emulator = Arc::new(Emulator::start(&Setup::default())?);
        let server = TdsServer::start(emulator.clone(), Options::default()).await?;
        let properties: Properties = config(&server, "admin")
            .as_object()
            .context("an object")?
            .iter()
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect();
        let connection = Arc::new(SqlServerConfig::parse(&properties)?.connection);
        let mut shop = Self { server, _emulator: emulator, admin: SqlLink::new(connection.clone(), None) };
        shop.run("CREATE DATABASE shop").await?;
        shop.admin = SqlLink::new(connection, Some("shop"));
        shop.run("EXEC sys.sp_cdc_enable_db").await?;
        shop.run("EXEC sys.sp_cdc_change_job @job_type = N'capture', @pollinginterval = 0").await?;
        shop.run("CREATE TABLE dbo.item (id int NOT NULL PRIMARY KEY, v int NOT NULL)").await?;
        shop.run("EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'item', @role_name = NULL")
            .await?;
        Ok(shop)
    }

    async fn run(&mut self, statement: &str) -> Result<()> {
        self.admin.run(statement).await.with_context(|| statement.to_owned())
    }
}

/// A connector for the database, messages without schemas.
fn config(server: &TdsServer, prefix: &str) -> Value {
    json!({
        "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
        "tasks.max": "1",
        "database.hostname": "127.0.0.1",
        "database.port": server.address().port().to_string(),
        "database.user": "sa",
        "database.password": "Password!1",
        "database.names": "SHOP",
        "driver.trustServerCertificate": "true",
        "topic.prefix": prefix,
        "poll.interval.ms": "50",
        "include.schema.changes": "false",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "false",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    })
}

/// How often each value of the row arrived, until `last`.
async fn arrivals(topic: &Topic, last: i64) -> Result<BTreeMap<i64, usize>> {
    let mut counts = BTreeMap::new();
    topic
        .until(SOON, |message| {
            let Some(v) = message.payload()["after"]["v"].as_i64() else { return false };
            *counts.entry(v).or_insert(0) += 1;
            v >= last
        })
        .await
        .with_context(|| format!("of {last} came {counts:?}"))?;
    Ok(counts)
}

async fn running(cluster: &Cluster, name: &str, config: Value) -> Result<Rest> {
    let rest = cluster.rest()?;
    rest.create(name, config).await?;
    rest.awaits(name, 1, "RUNNING").await?;
    Ok(rest)
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_and_changes_arrive_and_survive_the_loss_of_their_owner() -> Result<()> {
    let broker = kafka().await?;
    let mut cluster = Cluster::start(3, &broker.bootstrap(), &[]).await?;
    let mut shop = Shop::open().await?;
    shop.run("INSERT dbo.item VALUES (1, 0)").await?;
    let name = unique("sql");
    let rest = running(&cluster, &name, config(&shop.server, &name)).await?;
    let topic = Topic::read(&broker.bootstrap(), &format!("{name}.shop.dbo.item"))?;
    let first = topic.take(1, SOON).await?;
    assert_eq!((first[0].payload()["op"].as_str(), &first[0].key_json()), (Some("r"), &json!({"id": 1})));
    for v in 1..=20 {
        shop.run(&format!("UPDATE dbo.item SET v = {v} WHERE id = 1")).await?;
    }
    let mut counts = arrivals(&topic, 20).await?;
    let owner = cluster.owner(&name, 0).await?;
    cluster.nodes[owner].kill()?;
    for v in 21..=40 {
        shop.run(&format!("UPDATE dbo.item SET v = {v} WHERE id = 1")).await?;
    }
    counts.extend(arrivals(&topic, 40).await?);
    let missing: Vec<i64> = (1..=40).filter(|v| !counts.contains_key(v)).collect();
    assert!(missing.is_empty(), "missing {missing:?}");
    let offsets = rest.get(&format!("/connectors/{name}/offsets")).await;
    let offsets = match offsets {
        Ok((200, body)) => body,
        // The node that was asked is the one that was killed.
        _ => cluster.rest()?.get(&format!("/connectors/{name}/offsets")).await?.1,
    };
    // The server's spelling of the name counts.
    assert_eq!(offsets["offsets"][0]["partition"], json!({"server": name, "database": "shop"}));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_is_added_arrives_with_its_instance() -> Result<()> {
    column_added(&[]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_is_added_is_known_from_a_history_in_kafka() -> Result<()> {
    let (bootstrap, topic) = (kafka().await?.bootstrap(), unique("history"));
    let history = [
        ("schema.history.internal.kafka.bootstrap.servers", bootstrap.as_str()),
        ("schema.history.internal.kafka.topic", topic.as_str()),
    ];
    column_added(&history).await?;
    let records = Topic::read(&bootstrap, &topic)?.take(2, SOON).await?;
    let kinds: Vec<_> = records
        .iter()
        .filter_map(|record| Some(record.value_json()["tableChanges"][0]["type"].as_str()?.to_owned()))
        .collect();
    assert_eq!((kinds, records[0].key.as_deref()), (vec!["CREATE".to_owned(), "ALTER".to_owned()], None));
    Ok(())
}

async fn column_added(history: &[(&str, &str)]) -> Result<()> {
    let broker = kafka().await?;
    let mut cluster = Cluster::start(3, &broker.bootstrap(), &[]).await?;
    let mut shop = Shop::open().await?;
    let name = unique("sql");
    running(&cluster, &name, with(with(config(&shop.server, &name), &[("include.schema.changes", "true")]), history))
        .await?;
    let structures = Topic::read(&broker.bootstrap(), &name)?;
    assert_eq!(structures.take(1, SOON).await?[0].payload()["tableChanges"][0]["type"], "CREATE");
    shop.run("INSERT dbo.item VALUES (1, 1)").await?;
    let topic = Topic::read(&broker.bootstrap(), &format!("{name}.shop.dbo.item"))?;
    arrivals(&topic, 1).await?;
    shop.run("ALTER TABLE dbo.item ADD note varchar(10) NULL").await?;
    shop.run(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'item', @role_name = NULL, \
         @capture_instance = N'item_2'",
    )
    .await?;
    shop.run("INSERT dbo.item VALUES (2, 2, 'new')").await?;
    let change = topic.take(1, SOON).await?;
    assert_eq!(change[0].payload()["after"], json!({"id": 2, "v": 2, "note": "new"}));
    assert_eq!(structures.take(1, SOON).await?[0].payload()["tableChanges"][0]["type"], "ALTER");
    // Whoever takes over knows the structure from the history.
    let owner = cluster.owner(&name, 0).await?;
    cluster.nodes[owner].kill()?;
    shop.run("INSERT dbo.item VALUES (3, 3, 'more')").await?;
    let mut last = Value::Null;
    topic
        .until(SOON, |message| {
            last = message.payload()["after"].clone();
            last["id"] == 3
        })
        .await?;
    assert_eq!(last, json!({"id": 3, "v": 3, "note": "more"}));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_24_what_cannot_run_is_refused_when_it_is_created() -> Result<()> {
    let broker = kafka().await?;
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let mut shop = Shop::open().await?;
    shop.run("CREATE DATABASE plain").await?;
    let rest = cluster.rest()?;
    let name = unique("sql");
    for (more, expected) in [
        (("database.names", "nosuchdb"), "Could not retrieve exactly one database name for 'nosuchdb'"),
        (("database.names", "plain"), "does not have access to CDC schema in the following databases: plain"),
        (("database.password", "wrong"), "Unable to connect. Check this and other connection properties."),
        (("database.names", " "), "The 'database.names' value is invalid: Cannot be empty"),
    ] {
        let body = json!({"name": name, "config": with(config(&shop.server, &name), &[more])});
        let (status, answer) = rest.post("/connectors", Some(&body)).await?;
        let text = answer["message"].as_str().unwrap_or_default();
        assert!(status == 400 && text.contains(expected), "{status}: {answer}");
    }
    let once = with(config(&shop.server, &name), &[("database.names", "plain"), ("snapshot.mode", "initial_only")]);
    running(&cluster, &name, once).await?;
    Ok(())
}
