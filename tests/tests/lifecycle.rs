//! Pausing, stopping, restarting, moving, forwarding: what an operator does all day.

use std::time::Duration;

use anyhow::Result;
use bson::{Document, doc};
use serde_json::json;
use thalweg_tests::{Cluster, Topic, until};

use crate::shared::{connector, kafka, mongo, unique, with};

const SOON: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn run_09_pause_stop_and_resume_survive_a_restart() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let mut cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("pause"), unique("db"));
    let collection = set.client().await?.database(&database).collection::<Document>("c");
    collection.insert_one(doc! {"_id": 1}).await?;
    let rest = cluster.nodes[0].rest();
    rest.create(&name, connector(set, &name, &database)).await?;
    rest.awaits(&name, 1, "RUNNING").await?;
    let topic = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.c"))?;
    topic.take(1, SOON).await?;
    assert_eq!(rest.put(&format!("/connectors/{name}/pause"), None).await?.0, 202);
    rest.awaits(&name, 1, "PAUSED").await?;
    collection.insert_one(doc! {"_id": 2}).await?;
    cluster.nodes[0].stop().await?;
    cluster.nodes[0].start()?;
    cluster.nodes[0].ready().await?;
    rest.awaits(&name, 1, "PAUSED").await?;
    assert_eq!(rest.put(&format!("/connectors/{name}/resume"), None).await?.0, 202);
    rest.awaits(&name, 1, "RUNNING").await?;
    let next = topic.take(1, SOON).await?;
    assert_eq!(next[0].key_json()["id"], "2");
    assert_eq!(rest.put(&format!("/connectors/{name}/stop"), None).await?.0, 204);
    until("stopped without tasks", SOON, || async {
        let status = rest.get(&format!("/connectors/{name}/status")).await?.1;
        Ok((status["connector"]["state"] == "STOPPED" && status["tasks"] == json!([])).then_some(()))
    })
    .await?;
    collection.insert_one(doc! {"_id": 3}).await?;
    rest.put(&format!("/connectors/{name}/resume"), None).await?;
    let next = topic.take(1, SOON).await?;
    assert_eq!(next[0].key_json()["id"], "3", "nothing is repeated after an orderly stop");
    Ok(())
}

/// What scripts written for Kafka Connect compare.
#[tokio::test(flavor = "multi_thread")]
async fn answers_have_the_members_and_words_of_kafka_connect() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("words"), unique("db"));
    set.client().await?.database(&database).collection::<Document>("c").insert_one(doc! {"_id": 1}).await?;
    let rest = cluster.rest()?;
    let members = |body: &serde_json::Value| body.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let root = rest.get("/").await?.1;
    assert_eq!(members(&root), ["version", "commit", "kafka_cluster_id"]);
    let mut config = connector(set, &name, &database);
    rest.create(&name, config.clone()).await?;
    rest.awaits(&name, 1, "RUNNING").await?;

    let path = format!("/connectors/{name}");
    config["name"] = json!(name);
    config["task.class"] = json!("io.debezium.connector.mongodb.MongoDbConnectorTask");
    assert_eq!(rest.get(&format!("{path}/tasks")).await?.1[0]["config"], config);

    // The connector object alone restarts before the answer comes.
    for _ in 0..5 {
        assert_eq!(rest.post(&format!("{path}/restart"), None).await?.0, 204);
        assert_eq!(rest.get(&format!("{path}/status")).await?.1["connector"]["state"], "RUNNING");
        let (status, body) = rest.post(&format!("{path}/restart?onlyFailed=true&includeTasks=true"), None).await?;
        assert_eq!(
            (status, &body["connector"]["state"], &body["tasks"][0]["state"]),
            (202, &json!("RUNNING"), &json!("RUNNING"))
        );
    }

    // An offset is there with the first record, which is the last of its snapshot.
    let offset = rest.awaits_offset(&name).await?;
    assert_eq!(members(&offset["offset"]), ["sec", "ord", "resume_token"]);
    rest.put(&format!("{path}/stop"), None).await?;
    let reset = until("offsets can be reset", SOON, || async {
        let (status, body) = rest.delete(&format!("{path}/offsets")).await?;
        Ok((status == 200).then_some(body))
    })
    .await?;
    assert_eq!(
        reset["message"],
        "The Connect framework-managed offsets for this connector have been reset successfully. However, if this \
         connector manages offsets externally, they will need to be manually reset in the system that the connector uses."
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn run_03_offsets_outlive_a_delete() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("again"), unique("db"));
    let collection = set.client().await?.database(&database).collection::<Document>("c");
    collection.insert_one(doc! {"_id": 1}).await?;
    let rest = cluster.rest()?;
    rest.create(&name, connector(set, &name, &database)).await?;
    let topic = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.c"))?;
    topic.take(1, SOON).await?;
    rest.awaits(&name, 1, "RUNNING").await?;
    assert_eq!(rest.delete(&format!("/connectors/{name}")).await?.0, 204);
    assert_eq!(rest.get(&format!("/connectors/{name}/status")).await?.0, 404);
    collection.insert_one(doc! {"_id": 2}).await?;
    until("the name is free again", SOON, || async {
        let body = json!({"name": name, "config": connector(set, &name, &database)});
        Ok((rest.post("/connectors", Some(&body)).await?.0 == 201).then_some(()))
    })
    .await?;
    let next = topic.take(1, SOON).await?;
    assert_eq!((next[0].payload()["op"].as_str(), next[0].key_json()["id"].as_str()), (Some("c"), Some("2")));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn clu_03_units_are_spread_evenly() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let cluster = Cluster::start(3, &broker.bootstrap(), &[]).await?;
    let rest = cluster.rest()?;
    let names: Vec<String> = (0..9).map(|_| unique("even")).collect();
    for name in &names {
        let config = with(connector(set, name, "nothing"), &[("snapshot.mode", "no_data")]);
        rest.create(name, config).await?;
    }
    for name in &names {
        rest.awaits(name, 1, "RUNNING").await?;
    }
    until("three tasks on each node", SOON, || async {
        let nodes = rest.get("/cluster").await?.1["nodes"].as_array().cloned().unwrap_or_default();
        Ok((nodes.len() == 3 && nodes.iter().all(|n| n["tasks"] == 3 && n["connectors"] == 3)).then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn clu_08_a_write_through_one_node_is_read_through_the_others() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let cluster = Cluster::start(3, &broker.bootstrap(), &[]).await?;
    let name = unique("own");
    let base = with(connector(set, &name, "nothing"), &[("snapshot.mode", "no_data")]);
    cluster.rest()?.create(&name, base.clone()).await?;
    for round in 0..30 {
        let written = with(base.clone(), &[("max.batch.size", &(1_000 + round).to_string())]);
        let writer = cluster.nodes[round % 3].rest();
        assert_eq!(writer.put(&format!("/connectors/{name}/config"), Some(&written)).await?.0, 200);
        for node in &cluster.nodes {
            let read = node.rest().get(&format!("/connectors/{name}/config")).await?.1;
            assert_eq!(read["max.batch.size"], written["max.batch.size"], "round {round}, node {}", node.id);
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn run_01_restarts_answer_as_kafka_connect_does() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let cluster = Cluster::start(3, &broker.bootstrap(), &[]).await?;
    let name = unique("restart");
    cluster.rest()?.create(&name, connector(set, &name, "nothing")).await?;
    for node in &cluster.nodes {
        let rest = node.rest();
        rest.awaits(&name, 1, "RUNNING").await?;
        assert_eq!(rest.post(&format!("/connectors/{name}/restart"), None).await?.0, 204);
        rest.awaits(&name, 1, "RUNNING").await?;
        let (status, body) = rest.post(&format!("/connectors/{name}/restart?includeTasks=true"), None).await?;
        assert_eq!((status, body["tasks"][0]["state"].as_str()), (202, Some("RESTARTING")));
        rest.awaits(&name, 1, "RUNNING").await?;
        let (status, body) =
            rest.post(&format!("/connectors/{name}/restart?includeTasks=true&onlyFailed=true"), None).await?;
        assert_eq!((status, body["tasks"][0]["state"].as_str()), (202, Some("RUNNING")));
        assert_eq!(rest.post(&format!("/connectors/{name}/tasks/0/restart"), None).await?.0, 204);
        assert_eq!(rest.post(&format!("/connectors/{name}/tasks/9/restart"), None).await?.0, 404);
        assert_eq!(rest.post("/connectors/nobody/restart", None).await?.0, 404);
    }
    Ok(())
}
