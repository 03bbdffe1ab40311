//! Signals from every channel, and an incremental snapshot whose owner dies.

use std::time::Duration;

use anyhow::{Context, Result};
use bson::{Document, doc};
use rdkafka::ClientConfig;
use rdkafka::producer::{FutureProducer, FutureRecord};
use serde_json::{Value, json};
use thalweg_tests::{Cluster, Topic, until};

use crate::rows::Rows;
use crate::shared::{connector, kafka, mongo, unique, with};

const SOON: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn signals_come_through_a_topic_and_a_file() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("signals"), unique("db"));
    let db = set.client().await?.database(&database);
    db.collection::<Document>("a").insert_many((0..5).map(|i| doc! {"_id": i})).await?;
    db.collection::<Document>("b").insert_many((0..3).map(|i| doc! {"_id": i})).await?;
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("signals.txt");
    let collection = format!("{database}.signals");
    let options = [
        ("snapshot.mode", "no_data"),
        ("signal.data.collection", &*collection),
        ("signal.enabled.channels", "kafka,file"),
        ("signal.poll.interval.ms", "100"),
        ("signal.file", file.to_str().context("path")?),
        ("notification.enabled.channels", "sink"),
        ("notification.sink.topic.name", &*format!("{name}.notices")),
    ];
    let rest = cluster.rest()?;
    rest.create(&name, with(connector(set, &name, &database), &options)).await?;
    rest.awaits(&name, 1, "RUNNING").await?;
    rest.awaits_offset(&name).await?;

    let producer: FutureProducer = ClientConfig::new().set("bootstrap.servers", broker.bootstrap()).create()?;
    let topic = format!("{name}-signal");
    let send = async |key: &str, value: String| {
        let record = FutureRecord::to(&topic).key(key).payload(&value).partition(0);
        producer.send(record, SOON).await.map_err(|(error, _)| error)
    };
    let ask = |collection: &str, kind: &str| {
        let data = json!({"data-collections": [format!("{database}.{collection}")], "type": kind});
        json!({"id": format!("ask-{collection}"), "type": "execute-snapshot", "data": data}).to_string()
    };
    // One that is meant for another connector, and one that is none.
    send("other", ask("b", "incremental")).await?;
    send(&name, "nonsense".into()).await?;
    send(&name, ask("a", "incremental")).await?;
    let read = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.a"))?.take(5, SOON).await?;
    assert!(read.iter().all(|r| r.value_json()["source"]["snapshot"] == "incremental"));

    std::fs::write(&file, ask("b", "blocking"))?;
    let read = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.b"))?.take(3, SOON).await?;
    let marks: Vec<Value> = read.iter().map(|r| r.value_json()["source"]["snapshot"].clone()).collect();
    assert_eq!(marks, ["true", "true", "last"]);
    assert_eq!(std::fs::read(&file)?, b"");

    let notices = Topic::read(&broker.bootstrap(), &format!("{name}.notices"))?;
    let mut told = Vec::new();
    notices
        .until(SOON, |notice| {
            let notice = notice.value_json();
            told.push(format!("{} {}", notice["aggregate_type"], notice["type"]).replace('"', ""));
            told.last().is_some_and(|last| last == "Initial Snapshot COMPLETED")
        })
        .await?;
    assert_eq!(told[..2], ["Initial Snapshot SKIPPED", "Incremental Snapshot STARTED"]);
    assert!(told.contains(&"Incremental Snapshot COMPLETED".to_owned()), "{told:?}");
    Ok(())
}

/// Signals that are read and not followed yet: the node that has read them dies, the next one follows them.
#[tokio::test(flavor = "multi_thread")]
async fn signals_outlive_the_node_that_has_read_them() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let mut cluster = Cluster::start(3, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("outlive"), unique("db"));
    let db = set.client().await?.database(&database);
    for collection in ["a", "b"] {
        db.collection::<Document>(collection).insert_many((0..5).map(|i| doc! {"_id": i})).await?;
    }
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("signals.txt");
    let collection = format!("{database}.signals");
    let ask = |collection: &str| {
        let data = json!({"data-collections": [format!("{database}.{collection}")]});
        json!({"id": format!("ask-{collection}"), "type": "execute-snapshot", "data": data}).to_string()
    };
    let producer: FutureProducer = ClientConfig::new().set("bootstrap.servers", broker.bootstrap()).create()?;
    let topic = format!("{name}-signal");
    let of_a = ask("a");
    let record = FutureRecord::to(&topic).key(&name).payload(&of_a).partition(0);
    producer.send(record, SOON).await.map_err(|(error, _)| error)?;
    std::fs::write(&file, ask("b"))?;
    // Before its snapshot the task waits, and hears no signals.
    let options = [
        ("snapshot.include.collection.list", "none"),
        ("snapshot.delay.ms", "8000"),
        ("signal.data.collection", &*collection),
        ("signal.enabled.channels", "kafka,file"),
        ("signal.poll.interval.ms", "100"),
        ("signal.file", file.to_str().context("path")?),
    ];
    let rest = cluster.rest()?;
    rest.create(&name, with(connector(set, &name, &database), &options)).await?;
    rest.awaits(&name, 1, "RUNNING").await?;
    let taken = || std::fs::read(&file).is_ok_and(|text| text.is_empty());
    until("the file is read", SOON, || async { Ok(taken().then_some(())) }).await?;
    let owner = cluster.owner(&name, 0).await?;
    until("the topic is read", SOON, || async { Ok(cluster.nodes[owner].log().contains("ask-a").then_some(())) })
        .await?;
    cluster.nodes[owner].kill()?;
    for collection in ["a", "b"] {
        let read = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.{collection}"))?.take(5, SOON).await?;
        assert!(read.iter().all(|r| r.value_json()["source"]["snapshot"] == "incremental"));
    }
    until("the file is confirmed", SOON, || async { Ok((std::fs::read_dir(dir.path())?.count() == 1).then_some(())) })
        .await
}

/// The cluster keeps a signal that any node has taken, until it is followed: its first owner dies before that.
#[tokio::test(flavor = "multi_thread")]
async fn signals_through_rest_outlive_the_node_that_has_read_them() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let mut cluster = Cluster::start(3, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("posted"), unique("db"));
    let db = set.client().await?.database(&database);
    db.collection::<Document>("a").insert_many((0..50).map(|i| doc! {"_id": i})).await?;
    let collection = format!("{database}.signals");
    // Before its snapshot the task waits, and follows no signals.
    let options = [
        ("snapshot.include.collection.list", "none"),
        ("snapshot.delay.ms", "8000"),
        ("signal.data.collection", &*collection),
        ("signal.enabled.channels", "rest"),
        ("signal.poll.interval.ms", "100"),
        ("incremental.snapshot.chunk.size", "20"),
    ];
    let rest = cluster.rest()?;
    rest.create(&name, with(connector(set, &name, &database), &options)).await?;
    rest.awaits(&name, 1, "RUNNING").await?;
    let owner = cluster.owner(&name, 0).await?;
    let other = cluster.nodes[(owner + 1) % 3].rest();
    let path = format!("/connectors/{name}/signals");
    let signal = json!({"id": "ask-a", "type": "execute-snapshot",
        "data": {"data-collections": [format!("{database}.a")]}});
    let posted = other.post(&path, Some(&signal)).await?;
    assert_eq!(posted, (202, json!({"id": "ask-a", "type": "execute-snapshot", "state": "WAITING"})));
    assert_eq!(other.post(&path, Some(&signal)).await?.0, 200, "it is the same one");
    assert_eq!(other.post(&path, Some(&json!({"id": "ask-a", "type": "pause-snapshot"}))).await?.0, 409);
    let (status, refused) = other.post(&path, Some(&json!({"id": "s", "type": "no"}))).await?;
    assert_eq!((status, &refused["error_code"]), (400, &json!(400)));
    assert_eq!(other.get(&path).await?.1["signals"][0]["id"], "ask-a");
    until("the signal is read", SOON, || async { Ok(cluster.nodes[owner].log().contains("ask-a").then_some(())) })
        .await?;
    cluster.nodes[owner].kill()?;
    let read = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.a"))?.take(50, SOON).await?;
    assert!(read.iter().all(|r| r.value_json()["source"]["snapshot"] == "incremental"));
    let none = json!({"signals": []});
    until("nothing waits", SOON, || async { Ok((other.get(&path).await?.1 == none).then_some(())) }).await?;
    let (status, known) = other.post(&path, Some(&signal)).await?;
    assert_eq!((status, &known["state"]), (200, &json!("FOLLOWED")), "it is not followed again");

    let served = async || -> Result<Vec<String>> {
        let owner = cluster.owner(&name, 0).await?;
        let page = cluster.nodes[owner].rest().get("/metrics").await?.1;
        let page = page.as_str().context("text")?.to_owned();
        let ours = |line: &&str| line.contains(&format!("connector=\"{name}\""));
        Ok(page
            .lines()
            .filter(ours)
            .filter_map(|line| line.split_once('{').zip(line.rsplit_once(' ')))
            .map(|((metric, _), (_, value))| format!("{metric} {value}"))
            .collect())
    };
    // Chunks of 20: 50 documents are three of them.
    let expected = [
        "debezium_metrics_SnapshotCompleted 1",
        "debezium_metrics_TotalTableCount 1",
        "debezium_metrics_RemainingTableCount 0",
        "debezium_metrics_RowsScanned 50",
        "debezium_metrics_TableChunksCompletedCounts 3",
    ];
    until("the numbers of the snapshot are served", SOON, || async {
        let served = served().await?;
        let missing: Vec<_> = expected.iter().filter(|line| !served.iter().any(|s| s == *line)).collect();
        anyhow::ensure!(missing.is_empty(), "{missing:?} of {served:?}");
        Ok(Some(()))
    })
    .await
}

/// The user's own stages hide the watermarks: that is said, and the stream goes on.
#[tokio::test(flavor = "multi_thread")]
async fn watermarks_that_a_pipeline_hides_are_missed_in_words() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("hidden"), unique("db"));
    let db = set.client().await?.database(&database);
    let rows = db.collection::<Document>("a");
    rows.insert_one(doc! {"_id": 1}).await?;
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("signals.txt");
    let options = [
        ("snapshot.mode", "no_data"),
        ("signal.data.collection", &*format!("{database}.signals")),
        ("signal.enabled.channels", "file"),
        ("signal.poll.interval.ms", "100"),
        ("signal.file", file.to_str().context("path")?),
        ("cursor.pipeline", r#"[{"$match": {"ns.coll": "a"}}]"#),
        ("cursor.max.await.time.ms", "50"),
    ];
    let rest = cluster.rest()?;
    rest.create(&name, with(connector(set, &name, &database), &options)).await?;
    rest.awaits(&name, 1, "RUNNING").await?;
    rest.awaits_offset(&name).await?;
    let data = json!({"data-collections": [format!("{database}.a")]});
    std::fs::write(&file, json!({"id": "ask", "type": "execute-snapshot", "data": data}).to_string())?;
    let said = "the incremental snapshot waits for its watermark, which the stream has passed without showing it";
    let log = || cluster.nodes[0].log();
    until("the log says what is wrong", SOON, || async { Ok(log().contains(said).then_some(())) }).await?;
    assert_eq!(log().matches(said).count(), 1, "not with every answer of the server");
    rows.insert_one(doc! {"_id": 2}).await?;
    let change = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.a"))?.take(1, SOON).await?;
    assert_eq!(change[0].value_json()["op"], "c");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_incremental_snapshot_goes_on_where_its_owner_died() -> Result<()> {
    const ROWS: i32 = 12_000;
    let (broker, set) = (kafka().await?, mongo().await?);
    let mut cluster = Cluster::start(3, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("chunks"), unique("db"));
    let db = set.client().await?.database(&database);
    let mut rows = Rows::fill(db.collection("rows"), ROWS).await?;
    let collection = format!("{database}.signals");
    let options = [
        ("snapshot.mode", "no_data"),
        ("signal.data.collection", &*collection),
        ("incremental.snapshot.chunk.size", "100"),
    ];
    let rest = cluster.rest()?;
    rest.create(&name, with(connector(set, &name, &database), &options)).await?;
    rest.awaits(&name, 1, "RUNNING").await?;
    rest.awaits_offset(&name).await?;
    let data = doc! {"data-collections": [format!("{database}.rows")]};
    let signal = doc! {"_id": "s1", "type": "execute-snapshot", "data": data};
    db.collection::<Document>("signals").insert_one(signal).await?;

    let topic = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.rows"))?;
    rows.read_until(&topic, |rows| rows.reads >= 4_000).await?;
    until("the place in the collection is stored", SOON, || async {
        let (_, offsets) = rest.get(&format!("/connectors/{name}/offsets")).await?;
        Ok(offsets.to_string().contains("incremental_snapshot_primary_key").then_some(()))
    })
    .await?;
    let owner = cluster.owner(&name, 0).await?;
    cluster.nodes[owner].kill()?;
    // What changes while nobody reads is newer than what a chunk had.
    rows.change().await?;
    rows.read_until(&topic, Rows::are_all).await?;
    // What was read and not yet committed is repeated, and nothing before.
    assert_eq!(rows.begins, 1, "it began anew; {} rows read", rows.reads);
    rows.check()
}
