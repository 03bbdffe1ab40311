//! A change travels from MongoDB through three nodes to Kafka, and survives the loss of any of them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bson::{Document, doc};
use mongodb::Collection;
use thalweg_tests::{Cluster, Received, Topic, until};

use crate::shared::{connector, kafka, mongo, unique};

const SOON: Duration = Duration::from_secs(30);

/// Value of `n` in the document that a message carries.
fn number(message: &Received) -> Option<i64> {
    let payload = message.payload();
    let text = payload["updateDescription"]["updatedFields"].as_str().or_else(|| payload["after"].as_str())?;
    let document: serde_json::Value = serde_json::from_str(text).ok()?;
    document["n"].as_i64()
}

struct Scene {
    cluster: Cluster,
    name: String,
    collection: Collection<Document>,
    topic: Topic,
}

impl Scene {
    /// A cluster with one connector that has copied one document and streams.
    async fn open(nodes: u64, settings: &[(&str, &str)]) -> Result<Self> {
        let (broker, set) = (kafka().await?, mongo().await?);
        let cluster = Cluster::start(nodes, &broker.bootstrap(), settings).await?;
        let (name, database) = (unique("spine"), unique("db"));
        let collection = set.client().await?.database(&database).collection("c");
        collection.insert_one(doc! {"_id": 0, "n": 0}).await?;
        let rest = cluster.rest()?;
        rest.create(&name, connector(set, &name, &database)).await?;
        rest.awaits(&name, 1, "RUNNING").await?;
        let topic = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.c"))?;
        let first = topic.take(1, SOON).await?;
        assert_eq!(first[0].payload()["op"], "r");
        assert_eq!(first[0].payload()["source"]["snapshot"], "last");
        Ok(Self { cluster, name, collection, topic })
    }

    async fn write(&self, numbers: std::ops::RangeInclusive<i64>) -> Result<()> {
        for n in numbers {
            self.collection.update_one(doc! {"_id": 1}, doc! {"$set": {"n": n as i32}}).upsert(true).await?;
        }
        Ok(())
    }

    /// Reads until the change `last` and counts how often each change arrived.
    async fn arrivals(&self, last: i64) -> Result<BTreeMap<i64, usize>> {
        let mut counts = BTreeMap::new();
        let mut newest = 0;
        let mut disorder = None;
        self.topic
            .until(SOON, |message| {
                let Some(n) = number(&message) else {
                    return false;
                };
                let seen = counts.entry(n).or_insert(0);
                if *seen == 0 && n < newest {
                    disorder = Some((n, newest));
                }
                *seen += 1;
                newest = newest.max(n);
                n >= last
            })
            .await
            .with_context(|| format!("newest change seen is {newest} of {last}"))?;
        if let Some((late, newest)) = disorder {
            bail!("change {late} first came after {newest}");
        }
        Ok(counts)
    }
}

fn assert_complete(counts: &BTreeMap<i64, usize>, last: i64) {
    let missing: Vec<i64> = (1..=last).filter(|n| !counts.contains_key(n)).collect();
    assert!(missing.is_empty(), "missing changes {missing:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_arrive_once_and_in_order() -> Result<()> {
    let scene = Scene::open(3, &[]).await?;
    scene.write(1..=50).await?;
    let counts = scene.arrivals(50).await?;
    assert_complete(&counts, 50);
    assert!(counts.values().all(|c| *c == 1), "{counts:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn clu_01_the_tasks_of_a_killed_node_run_elsewhere() -> Result<()> {
    let mut scene = Scene::open(3, &[]).await?;
    scene.write(1..=20).await?;
    let owner = scene.cluster.owner(&scene.name, 0).await?;
    scene.cluster.nodes[owner].kill()?;
    scene.write(21..=40).await?;
    let counts = scene.arrivals(40).await?;
    assert_complete(&counts, 40);
    let next = until("another node owns the task", SOON, || async {
        let next = scene.cluster.owner(&scene.name, 0).await?;
        Ok((next != owner).then_some(next))
    })
    .await?;
    assert_ne!(next, owner);
    // The lost node comes back and nothing moves or repeats because of it.
    scene.cluster.nodes[owner].start()?;
    scene.cluster.nodes[owner].ready().await?;
    scene.write(41..=60).await?;
    let counts = scene.arrivals(60).await?;
    assert_eq!((41..=60).filter(|n| counts.get(n) == Some(&1)).count(), 20, "{counts:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_node_hands_its_task_over_without_a_repeat() -> Result<()> {
    let mut scene = Scene::open(3, &[]).await?;
    scene.write(1..=20).await?;
    let owner = scene.cluster.owner(&scene.name, 0).await?;
    scene.cluster.nodes[owner].stop().await?;
    scene.write(21..=40).await?;
    let counts = scene.arrivals(40).await?;
    assert_complete(&counts, 40);
    assert!(counts.values().all(|c| *c == 1), "a planned move repeats nothing: {counts:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn clu_04_a_cluster_of_one_goes_on_after_a_crash() -> Result<()> {
    let mut scene = Scene::open(1, &[]).await?;
    scene.write(1..=10).await?;
    scene.cluster.nodes[0].kill()?;
    scene.write(11..=20).await?;
    scene.cluster.nodes[0].start()?;
    scene.cluster.nodes[0].ready().await?;
    let counts = scene.arrivals(20).await?;
    assert_complete(&counts, 20);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn clu_04_three_nodes_go_on_after_all_were_killed() -> Result<()> {
    let mut scene = Scene::open(3, &[]).await?;
    scene.write(1..=10).await?;
    for node in &mut scene.cluster.nodes {
        node.kill()?;
    }
    scene.write(11..=20).await?;
    for node in &mut scene.cluster.nodes {
        node.start()?;
    }
    for node in &scene.cluster.nodes {
        node.ready().await?;
    }
    let counts = scene.arrivals(20).await?;
    assert_complete(&counts, 20);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn run_16_a_position_exists_before_the_first_message() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    // Periodic commits are held back for the length of the test.
    let held_back = [("thalweg.offset.commit.ms", "600000"), ("offset.flush.interval.ms", "600000")];
    let mut cluster = Cluster::start(3, &broker.bootstrap(), &held_back).await?;
    let (name, database) = (unique("first"), unique("db"));
    let collection: Collection<Document> = set.client().await?.database(&database).collection("c");
    let config = crate::shared::with(connector(set, &name, &database), &[("snapshot.mode", "no_data")]);
    cluster.rest()?.create(&name, config).await?;
    cluster.rest()?.awaits(&name, 1, "RUNNING").await?;
    let topic = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.c"))?;
    collection.insert_one(doc! {"_id": 1, "n": 1}).await?;
    topic.take(1, SOON).await?;
    let owner = cluster.owner(&name, 0).await?;
    cluster.nodes[owner].kill()?;
    for n in 2..=20 {
        collection.insert_one(doc! {"_id": n, "n": n}).await?;
    }
    let mut seen = std::collections::BTreeSet::new();
    topic
        .until(SOON, |m| {
            seen.extend(number(&m));
            seen.len() == 19 && seen.contains(&20) || seen.len() == 20
        })
        .await
        .with_context(|| format!("seen {seen:?}"))?;
    assert!((2..=20).all(|n| seen.contains(&n)), "{seen:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wiped_node_is_taken_in_again() -> Result<()> {
    let mut scene = Scene::open(3, &[]).await?;
    let owner = scene.cluster.owner(&scene.name, 0).await?;
    let other = (owner + 1) % 3;
    scene.cluster.nodes[other].kill()?;
    std::fs::remove_dir_all(scene.cluster.nodes[other].data())?;
    scene.cluster.nodes[other].start()?;
    scene.cluster.nodes[other].ready().await?;
    let listed = scene.cluster.nodes[other].rest().get("/connectors").await?.1;
    assert_eq!(listed, serde_json::json!([scene.name]));
    scene.write(1..=10).await?;
    assert_complete(&scene.arrivals(10).await?, 10);
    Ok(())
}
