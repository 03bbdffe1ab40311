//! Bad input gets an error that says what happened, to which object, and what to do next.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use bson::{Document, doc};
use serde_json::{Value, json};
use thalweg_tests::{Broker, BrokerOptions, Cluster, Topic, free_port, node, until};

use crate::shared::{connector, kafka, mongo, unique, with};

const SOON: Duration = Duration::from_secs(30);

async fn alone() -> Result<Cluster> {
    Cluster::start(1, &kafka().await?.bootstrap(), &[]).await
}

async fn refused(cluster: &Cluster, config: Value, expected: &[&str]) -> Result<()> {
    let name = unique("refused");
    let (status, body) = cluster.rest()?.post("/connectors", Some(&json!({"name": name, "config": config}))).await?;
    let message = body["message"].as_str().unwrap_or_default();
    assert_eq!(status, 400, "{body}");
    for part in expected {
        assert!(message.contains(part), "'{part}' is not in: {message}");
    }
    assert_eq!(cluster.rest()?.get(&format!("/connectors/{name}")).await?.0, 404, "nothing is stored");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn run_02_wrong_configurations_are_400_with_every_message() -> Result<()> {
    let (cluster, set) = (alone().await?, mongo().await?);
    let good = connector(set, "p", "db");
    refused(
        &cluster,
        with(good.clone(), &[("tasks.max", "0"), ("poll.interval.ms", "x"), ("database.exclude.list", "b")]),
        &["4 error(s)", "tasks.max", "poll.interval.ms", "\"database.include.list\" is already specified"],
    )
    .await?;
    refused(&cluster, with(good.clone(), &[("mongodb.connection.string", "http://x")]), &["Invalid connection string"])
        .await?;
    refused(
        &cluster,
        with(good.clone(), &[("connector.class", "no.such.Class")]),
        &["Failed to find any class", "MongoDb"],
    )
    .await?;
    refused(&cluster, with(good.clone(), &[("transforms", "t")]), &["required configuration \"transforms.t.type\""])
        .await?;
    refused(&cluster, with(good.clone(), &[("value.converter", "no.such.Converter")]), &["value.converter"]).await?;
    refused(
        &cluster,
        with(good.clone(), &[("exactly.once.support", "required")]),
        &["does not have exactly-once source"],
    )
    .await?;
    refused(&cluster, with(good.clone(), &[("tasks.max", "abc")]), &["tasks.max", "abc"]).await?;
    // Values that are none do not keep the rest from being checked.
    let mut nulls = with(good.clone(), &[("tasks.max", "0"), ("value.converter", "no.such.Converter")]);
    nulls["snapshot.mode"] = Value::Null;
    nulls["topic.prefix"] = json!(["p"]);
    let all = ["Null value can not be supplied", "An array can not be supplied", "tasks.max", "value.converter"];
    refused(&cluster, nulls.clone(), &all).await?;
    let (status, body) = cluster.rest()?.put("/connectors/nulls/config", Some(&nulls)).await?;
    let message = body["message"].as_str().unwrap_or_default();
    assert!(status == 400 && all.iter().all(|part| message.contains(part)), "{status} {body}");
    nulls["connector.class"] = Value::Null;
    refused(&cluster, nulls, &["'connector.class'", "'snapshot.mode'", "contains no connector type"]).await?;
    let nowhere = format!("mongodb://127.0.0.1:{}/?replicaSet=rs0", free_port()?);
    let quick = ("mongodb.server.selection.timeout.ms", "500");
    refused(&cluster, with(good, &[("mongodb.connection.string", &nowhere), quick]), &["Unable to connect"]).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn cfg_unknown_options_are_named_and_strict_refuses_them() -> Result<()> {
    let (cluster, set) = (alone().await?, mongo().await?);
    let name = unique("typo");
    let config = with(connector(set, &name, "db"), &[("snapshot.fetch.sise", "10")]);
    let strict = with(config.clone(), &[("thalweg.config.strict", "true")]);
    refused(&cluster, strict, &["snapshot.fetch.sise", "snapshot.fetch.size"]).await?;
    cluster.rest()?.create(&name, config).await?;
    let status = cluster.rest()?.awaits(&name, 1, "RUNNING").await?;
    let warnings = status["warnings"].to_string();
    assert!(warnings.contains("snapshot.fetch.size"), "{status}");
    Ok(())
}

/// What the mode of the node forbids is refused, whether the connector names the mode or not.
#[tokio::test(flavor = "multi_thread")]
async fn run_02_settings_that_break_the_node_s_delivery_mode_are_400() -> Result<()> {
    let cluster = Cluster::start(1, &kafka().await?.bootstrap(), &[("thalweg.delivery", "plain")]).await?;
    let good = connector(mongo().await?, "p", "db");
    let (acks, idempotence) = ("producer.override.acks", "producer.override.enable.idempotence");
    let bold = with(good, &[(acks, "1"), (idempotence, "true")]);
    refused(&cluster, bold.clone(), &[acks, "enable.idempotence=true needs acks=all"]).await?;
    // Where transactions overrule it, it is a warning.
    let name = unique("overruled");
    let fenced = with(bold, &[("thalweg.delivery", "fenced"), ("topic.prefix", &name)]);
    cluster.rest()?.create(&name, fenced).await?;
    let status = cluster.rest()?.awaits(&name, 1, "RUNNING").await?;
    assert!(status["warnings"].to_string().contains(acks), "{status}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn cfg_02_lists_that_match_nothing_are_a_warning_in_log_and_status() -> Result<()> {
    let cluster = Cluster::start(3, &kafka().await?.bootstrap(), &[]).await?;
    let (name, expected) = (unique("nothing"), "no changes will be captured");
    cluster.nodes[0].rest().create(&name, connector(mongo().await?, &name, "no_such_database")).await?;
    assert!(cluster.nodes[0].log().contains(expected), "the node that took it logs it");
    for node in &cluster.nodes {
        // What another node knows comes if it answers in time.
        let status = until("the warning is shown", SOON, || async {
            let status = node.rest().awaits(&name, 1, "RUNNING").await?;
            Ok(status["warnings"].is_array().then_some(status))
        })
        .await?;
        let warnings = status["warnings"].as_array().cloned().unwrap_or_default();
        let said = warnings.iter().filter(|w| w.as_str().is_some_and(|w| w.contains(expected))).count();
        assert_eq!(said, 1, "node {}: {status}", node.id);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_that_cannot_be_read_are_refused_as_json() -> Result<()> {
    let cluster = alone().await?;
    let client = reqwest::Client::new();
    for (method, path, status) in [
        ("GET", "/connectors/%FF", 400),
        ("PUT", "/connectors/%FF/config", 400),
        ("GET", "/connector-plugins/%FF/config", 400),
        ("POST", "/cluster/nodes/abc/drain", 404),
        ("DELETE", "/cluster/nodes/-1", 404),
        ("GET", "/connectors/a/tasks/x/status", 404),
    ] {
        let url = format!("http://127.0.0.1:{}{path}", cluster.nodes[0].rest_port);
        let answer = client.request(method.parse()?, &url).send().await?;
        assert_eq!(answer.status().as_u16(), status, "{path}");
        assert_eq!(answer.headers()["content-type"], "application/json", "{path}");
        let body: Value = answer.json().await?;
        assert_eq!(body["error_code"], status, "{path}: {body}");
        assert!(body["message"].is_string(), "{path}: {body}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_no_json_or_too_large_are_refused() -> Result<()> {
    let cluster = alone().await?;
    let client = reqwest::Client::new();
    let url = format!("http://127.0.0.1:{}/connectors", cluster.nodes[0].rest_port);
    let post = |body: String| client.post(&url).header("Content-Type", "application/json").body(body).send();
    let wrong = post("{not json".to_owned()).await?;
    assert_eq!(wrong.status(), 400);
    assert!(wrong.text().await?.contains("line 1"), "the place is named");
    let large = post(format!("{{\"name\":\"{}\"}}", "x".repeat(5 << 20))).await?;
    assert_eq!(large.status(), 413);
    assert!(large.text().await?.contains("bytes"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn kfk_03_an_oversized_record_fails_with_coordinates_or_is_left_out() -> Result<()> {
    let (cluster, broker, set) = (alone().await?, kafka().await?, mongo().await?);
    let (name, database) = (unique("large"), unique("db"));
    let collection = set.client().await?.database(&database).collection::<Document>("c");
    collection.insert_one(doc! {"_id": 1}).await?;
    let rest = cluster.rest()?;
    rest.create(&name, connector(set, &name, &database)).await?;
    rest.awaits(&name, 1, "RUNNING").await?;
    let topic = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.c"))?;
    topic.take(1, SOON).await?;
    collection.insert_one(doc! {"_id": 2, "text": "x".repeat(3 << 20)}).await?;
    collection.insert_one(doc! {"_id": 3}).await?;
    let status = rest.awaits(&name, 1, "FAILED").await?;
    let trace = status["tasks"][0]["trace"].as_str().context("a trace")?;
    for part in [format!("{name}.{database}.c").as_str(), "max.request.size"] {
        assert!(trace.contains(part), "'{part}' is not in: {trace}");
    }
    assert!(!trace.contains("xxxx"), "no values in traces");
    let tolerant = with(connector(set, &name, &database), &[("errors.tolerance", "all")]);
    let (status, body) = rest.put(&format!("/connectors/{name}/config"), Some(&tolerant)).await?;
    assert_eq!(status, 200, "{body}");
    topic.until(SOON, |m| m.key_json()["id"] == "3").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn kfk_06_a_missing_topic_that_nobody_may_create_fails_the_task_and_loses_nothing() -> Result<()> {
    let settings = vec![("auto.create.topics.enable".to_owned(), "false".to_owned())];
    let broker = Broker::with(BrokerOptions { settings, ..Default::default() }).await?;
    let (cluster, set) = (Cluster::start(1, &broker.bootstrap(), &[]).await?, mongo().await?);
    let (name, database) = (unique("missing"), unique("db"));
    let collection = set.client().await?.database(&database).collection::<Document>("c");
    collection.insert_one(doc! {"_id": 1}).await?;
    let rest = cluster.rest()?;
    rest.create(&name, connector(set, &name, &database)).await?;
    let status = rest.awaits(&name, 1, "FAILED").await?;
    let trace = status["tasks"][0]["trace"].as_str().context("a trace")?;
    let topic = format!("{name}.{database}.c");
    for part in [topic.as_str(), "topic.creation"] {
        assert!(trace.contains(part), "'{part}' is not in: {trace}");
    }
    collection.insert_one(doc! {"_id": 2}).await?;
    let creating = [("topic.creation.default.partitions", "1"), ("topic.creation.default.replication.factor", "1")];
    let config = with(connector(set, &name, &database), &creating);
    let (status, body) = rest.put(&format!("/connectors/{name}/config"), Some(&config)).await?;
    assert_eq!(status, 200, "{body}");
    let read = Topic::read(&broker.bootstrap(), &topic)?.take(2, SOON).await?;
    let keys: Vec<Value> = read.iter().map(|m| m.key_json()["id"].clone()).collect();
    assert_eq!(keys, [json!("1"), json!("2")]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn clu_09_without_a_majority_writes_are_refused_and_reads_answer() -> Result<()> {
    let mut cluster = Cluster::start(3, &kafka().await?.bootstrap(), &[]).await?;
    let name = unique("alone");
    cluster.rest()?.create(&name, connector(mongo().await?, &name, "db")).await?;
    cluster.nodes[1].kill()?;
    cluster.nodes[2].kill()?;
    let rest = cluster.nodes[0].rest();
    until("the write is refused", SOON, || async {
        let (status, body) = rest.put(&format!("/connectors/{name}/pause"), None).await?;
        assert!(status >= 400, "a write without a majority was acknowledged: {status} {body}");
        assert!(!body["message"].as_str().unwrap_or_default().is_empty());
        // 500 if the majority was lost while the change was on its way.
        Ok((status == 503 || status == 500).then_some(()))
    })
    .await?;
    let answer = reqwest::get(format!("http://127.0.0.1:{}/connectors", cluster.nodes[0].rest_port)).await?;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers().get("X-Cluster-Quorum").and_then(|h| h.to_str().ok()), Some("lost"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_with_the_same_node_id_is_refused_and_leaves_no_trace() -> Result<()> {
    let cluster = alone().await?;
    let twin = cluster.twin(0, &kafka().await?.bootstrap())?;
    let said = tokio::task::spawn_blocking({
        let file = twin.file();
        move || failing(&file)
    })
    .await??;
    let first = format!("127.0.0.1:{}", cluster.nodes[0].rpc_port);
    for part in ["thalweg.node.id=1", "in use", first.as_str()] {
        assert!(said.contains(part), "'{part}' is not in: {said}");
    }
    let (status, body) = cluster.rest()?.get("/cluster").await?;
    assert_eq!((status, body["nodes"].as_array().map(Vec::len)), (200, Some(1)), "{body}");
    let named = body["nodes"][0]["rpc_address"].as_str().unwrap_or_default().to_owned();
    assert_eq!(named, first, "{body}");
    Ok(())
}

/// Runs a node that cannot start and gives what it said.
fn failing(file: &std::path::Path) -> Result<String> {
    let output = Command::new(node::binary()?).arg("run").arg(file).output()?;
    assert!(!output.status.success());
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_cannot_start_says_why() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("node.properties");
    let base = format!(
        "bootstrap.servers=127.0.0.1:1\ngroup.id=g\nkey.converter=org.apache.kafka.connect.json.JsonConverter\n\
         value.converter=org.apache.kafka.connect.json.JsonConverter\nconfig.storage.topic=c\noffset.storage.topic=o\n\
         status.storage.topic=s\nthalweg.data.dir={}\n",
        folder.path().join("data").display()
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let port = taken.local_addr()?.port();
    std::fs::write(&file, format!("{base}listeners=http://127.0.0.1:{port}\n"))?;
    let said = failing(&file)?;
    assert!(said.contains(&port.to_string()) && said.contains("listeners"), "{said}");

    std::fs::write(&file, format!("{base}listeners=http://127.0.0.1:0\nthalweg.node.id=zero\n"))?;
    let said = failing(&file)?;
    assert!(said.contains("thalweg.node.id") && said.contains("zero"), "{said}");

    let free = free_port()?;
    let users = folder.path().join("users");
    std::fs::write(&users, "# nobody\n")?;
    for (option, value) in [
        ("rest.auth.basic.file", users.display().to_string()),
        ("response.http.headers.config", "set X(Y): 1".to_owned()),
        ("access.control.allow.methods", "G E T".to_owned()),
        ("exactly.once.source.support", "enabled".to_owned()),
    ] {
        let origin = "access.control.allow.origin=*";
        std::fs::write(&file, format!("{base}listeners=http://127.0.0.1:{free}\n{origin}\n{option}={value}\n"))?;
        let said = failing(&file)?;
        assert!(said.contains(option), "{option}: {said}");
    }

    let seeds = "thalweg.rpc.listen=127.0.0.1:19999\nthalweg.node.id=1\nthalweg.seeds=127.0.0.1:1,127.0.0.1:2\n";
    std::fs::write(&file, format!("{base}listeners=http://127.0.0.1:{free}\n{seeds}"))?;
    let said = failing(&file)?;
    assert!(said.contains("thalweg.seeds"), "{said}");

    let data = folder.path().join("data");
    std::fs::create_dir_all(&data)?;
    std::fs::write(data.join("raft.redb"), "this is no store".repeat(1_000))?;
    std::fs::write(&file, format!("{base}listeners=http://127.0.0.1:{free}\n"))?;
    let said = failing(&file)?;
    assert!(said.contains("raft.redb"), "{said}");
    Ok(())
}
