//! What a node serves under `/metrics` while a connector reads: the names that `docs/metrics.md` tells,
//! with the numbers of what was done.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use bson::{Document, doc};
use thalweg_tests::{Cluster, ReplicaSet, Topic, until};

use crate::shared::{connector, kafka, mongo, unique, with};

const SOON: Duration = Duration::from_secs(30);

/// Samples of one connector: name and, where there is one, table; without other labels.
fn samples(page: &str, connector: &str) -> BTreeMap<String, f64> {
    let of_connector = format!("connector=\"{connector}\"");
    let sample = |line: &str| {
        let (series, value) = line.rsplit_once(' ')?;
        let (name, labels) = series.split_once('{')?;
        let table = labels.split_once("table=\"").and_then(|(_, rest)| rest.split_once('"')).map(|(table, _)| table);
        let name = table.map_or(name.to_owned(), |table| format!("{name} {table}"));
        labels.contains(&of_connector).then_some((name, value.parse().ok()?))
    };
    page.lines().filter(|line| !line.starts_with('#')).filter_map(sample).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_of_a_connector_say_what_was_read() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("counted"), unique("db"));
    let client = set.client().await?;
    let collection = client.database(&database).collection::<Document>("c");
    collection.insert_many((0..3).map(|id| doc! {"_id": id})).await?;
    let rest = cluster.rest()?;
    let options = [("provide.transaction.metadata", "true"), ("custom.metric.tags", "team=blue")];
    rest.create(&name, with(connector(set, &name, &database), &options)).await?;
    let topic = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.c"))?;
    topic.take(3, SOON).await?;
    let mut session = client.start_session().await?;
    session.start_transaction().await?;
    for id in 10..12 {
        collection.insert_one(doc! {"_id": id}).session(&mut session).await?;
    }
    session.commit_transaction().await?;
    collection.update_one(doc! {"_id": 1}, doc! {"$set": {"x": 1}}).await?;
    collection.delete_one(doc! {"_id": 2}).await?;
    topic.take(5, SOON).await?;

    let table = format!("debezium_metrics_RowsScanned {database}.c");
    let expected = [
        ("debezium_metrics_TotalNumberOfEventsSeen", 7.0),
        ("debezium_metrics_TotalNumberOfCreateEventsSeen", 2.0),
        ("debezium_metrics_TotalNumberOfUpdateEventsSeen", 1.0),
        ("debezium_metrics_TotalNumberOfDeleteEventsSeen", 1.0),
        ("debezium_metrics_NumberOfCommittedTransactions", 1.0),
        ("debezium_metrics_SnapshotCompleted", 1.0),
        ("debezium_metrics_Connected", 1.0),
        ("debezium_metrics_QueueTotalCapacity", 8192.0),
        (&table, 3.0),
        // Three reads, four changes, a tombstone, and the begin and the end of the transaction.
        ("kafka_connect_source_task_metrics_source_record_write_total", 10.0),
        ("kafka_connect_connect_worker_metrics_task_startup_success_total", 1.0),
    ];
    let page = until("the page tells all that was done", SOON, || async {
        let page = rest.get("/metrics").await?.1.as_str().context("text")?.to_owned();
        let served = samples(&page, &name);
        let odd: Vec<_> = expected.iter().filter(|(name, value)| served.get(*name) != Some(value)).collect();
        anyhow::ensure!(odd.is_empty(), "wanted {odd:?}, served {served:?}");
        Ok(Some(page))
    })
    .await?;
    let served = samples(&page, &name);
    assert!(served["debezium_metrics_MilliSecondsBehindSource"] >= 0.0);
    assert!(served["debezium_metrics_MilliSecondsSinceLastEvent"] >= 0.0);
    assert!(served["debezium_metrics_SourceEventPosition"] >= -1.0);
    let label = format!("plugin=\"mongodb\",name=\"{name}\",team=\"blue\"");
    assert!(page.contains(&label), "{label} is not in {page}");
    let documented = include_str!("../../docs/metrics.md");
    for line in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let metric = line.split(' ').next().unwrap_or_default();
        assert!(documented.contains(&format!("`{metric}")) || documented.contains(&format!(" {metric}")), "{metric}");
    }
    Ok(())
}

/// A stream whose server is away: its task goes on trying, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_away_is_told_and_so_is_its_return() -> Result<()> {
    let (broker, mut set) = (kafka().await?, ReplicaSet::single().await?);
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("away"), unique("db"));
    let rest = cluster.rest()?;
    let options = [
        ("connect.backoff.initial.delay.ms", "100"),
        ("connect.backoff.max.delay.ms", "500"),
        ("mongodb.server.selection.timeout.ms", "500"),
    ];
    rest.create(&name, with(connector(&set, &name, &database), &options)).await?;
    rest.awaits(&name, 1, "RUNNING").await?;
    let is = |connected: f64| {
        let (rest, name) = (&rest, &name);
        async move {
            let page = rest.get("/metrics").await?.1.as_str().context("text")?.to_owned();
            let served = samples(&page, name).get("debezium_metrics_Connected").copied();
            let task = rest.get(&format!("/connectors/{name}/status")).await?.1["tasks"][0].take();
            let retrying = task["retrying"][0].as_str().is_some_and(|text| text.contains("has not answered for"));
            let told = served == Some(connected) && task["state"] == "RUNNING" && retrying == (connected == 0.0);
            Ok(told.then_some(()))
        }
    };
    until("the stream is open", SOON, || is(1.0)).await?;
    set.members[0].kill()?;
    until("the server is away", SOON, || is(0.0)).await?;
    set.members[0].start()?;
    until("the stream is open again", 2 * SOON, || is(1.0)).await?;
    set.client().await?.database(&database).collection::<Document>("c").insert_one(doc! {"_id": 1}).await?;
    Topic::read(&broker.bootstrap(), &format!("{name}.{database}.c"))?.take(1, SOON).await?;
    Ok(())
}
