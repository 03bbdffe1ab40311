//! What a node says about itself and about writes while it cannot serve.

use std::time::{Duration, Instant};

use anyhow::Result;
use bson::{Document, doc};
use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::{Value, json};
use thalweg_tests::{Cluster, ReplicaSet, Rest, Topic, until};

use crate::shared::{connector, kafka, mongo, unique, with};

const SOON: Duration = Duration::from_secs(30);
/// Shorter than any time limit that a source has.
const AT_ONCE: Duration = Duration::from_secs(10);

async fn awaits_health(rest: &Rest, code: u16, status: &str) -> Result<Value> {
    until(&format!("/health is {code} {status}"), SOON, || async {
        let (now, body) = rest.get("/health").await?;
        if (now, body["status"].as_str()) == (code, Some(status)) {
            return Ok(Some(body));
        }
        anyhow::bail!("/health answers {now} {body}")
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn run_11_health_tells_starting_healthy_and_unhealthy_apart() -> Result<()> {
    let mut cluster = Cluster::start(3, &kafka().await?.bootstrap(), &[]).await?;
    let rest = cluster.nodes[0].rest();
    let healthy = awaits_health(&rest, 200, "healthy").await?;
    assert_eq!(healthy["message"], "Worker has completed startup and is ready to handle requests.");
    for node in &mut cluster.nodes {
        node.kill()?;
    }

    cluster.nodes[0].start()?;
    let starting = awaits_health(&rest, 503, "starting").await?;
    let message = starting["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("Worker is still starting up. ") && message.contains("majority"), "{message}");
    // What it has may be old, so it is not shown.
    let (status, body) = rest.get("/connectors").await?;
    assert_eq!((status, &body["error_code"]), (503, &json!(503)), "{body}");

    cluster.nodes[1].start()?;
    awaits_health(&rest, 200, "healthy").await?;
    assert_eq!(rest.get("/connectors").await?, (200, json!([])));

    cluster.nodes[1].kill()?;
    let unhealthy = awaits_health(&rest, 500, "unhealthy").await?;
    let message = unhealthy["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("Worker was unable to handle this request"), "{message}");
    Ok(())
}

/// RUN-11: the source stops in the middle of everything; whoever asks the node does not wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn run_11_a_wedged_reader_does_not_hold_up_answers() -> Result<()> {
    let broker = kafka().await?;
    let set = ReplicaSet::single().await?;
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("wedged"), unique("db"));
    let collection = set.client().await?.database(&database).collection::<Document>("c");
    collection.insert_one(doc! {"_id": 1}).await?;
    let rest = cluster.rest()?;
    rest.create(&name, connector(&set, &name, &database)).await?;
    let topic = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.c"))?;
    topic.take(1, SOON).await?;

    set.members[0].signal(Signal::SIGSTOP)?;
    for path in ["/health", "/health/live", "/health/ready", "/connectors", "/metrics", "/cluster"] {
        answers(&rest, path, 200).await?;
    }
    answers(&rest, &format!("/connectors/{name}/status"), 200).await?;
    answers(&rest, &format!("/connectors/{name}/offsets"), 200).await?;
    let asked = Instant::now();
    assert_eq!(rest.put(&format!("/connectors/{name}/pause"), None).await?.0, 202);
    rest.awaits(&name, 1, "PAUSED").await?;
    assert!(asked.elapsed() < AT_ONCE, "pausing took {:?}", asked.elapsed());
    assert_eq!(rest.put(&format!("/connectors/{name}/resume"), None).await?.0, 202);

    set.members[0].signal(Signal::SIGCONT)?;
    collection.insert_one(doc! {"_id": 2}).await?;
    assert_eq!(topic.take(1, SOON).await?[0].key_json()["id"], "2");
    Ok(())
}

async fn answers(rest: &Rest, path: &str, code: u16) -> Result<()> {
    let asked = Instant::now();
    let (status, body) = rest.get(path).await?;
    assert_eq!(status, code, "{path}: {body}");
    assert!(asked.elapsed() < AT_ONCE, "{path} took {:?}", asked.elapsed());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn run_10_without_a_majority_every_write_says_so_in_time_and_reads_answer() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let mut cluster = Cluster::start(3, &broker.bootstrap(), &[]).await?;
    let name = unique("majority");
    let config = with(connector(set, &name, "nothing"), &[("snapshot.mode", "no_data")]);
    cluster.rest()?.create(&name, config.clone()).await?;
    cluster.rest()?.awaits(&name, 1, "RUNNING").await?;
    cluster.nodes[1].kill()?;
    cluster.nodes[2].kill()?;
    let (rest, path) = (cluster.nodes[0].rest(), format!("/connectors/{name}"));
    let other = json!({"name": unique("other"), "config": config});
    let writes = [
        (Method::PUT, format!("{path}/pause"), None),
        (Method::PUT, format!("{path}/config"), Some(config.clone())),
        (Method::PATCH, format!("{path}/config"), Some(json!({"max.batch.size": "10"}))),
        (Method::POST, "/connectors".to_owned(), Some(other)),
        (Method::POST, format!("{path}/restart?includeTasks=true"), None),
        (Method::DELETE, format!("{path}/offsets"), None),
        (Method::DELETE, path.clone(), None),
    ];
    for (method, path, body) in writes {
        let asked = Instant::now();
        let (status, answer) = rest.call(method.clone(), &path, body.as_ref()).await?;
        // 500 if the majority was lost while the change was on its way.
        assert!(matches!(status, 500 | 503), "{method} {path}: {status} {answer}");
        assert!(answer["message"].as_str().is_some_and(|m| m.contains("majority")), "{method} {path}: {answer}");
        assert!(asked.elapsed() < Duration::from_secs(15), "{method} {path} took {:?}", asked.elapsed());
    }
    let (status, _) = rest.put(&format!("{path}/pause"), None).await?;
    assert_eq!(status, 503, "a lasting condition is no conflict");
    for path in [path.as_str(), &format!("{path}/status"), "/connectors", "/cluster", "/metrics"] {
        assert_eq!(rest.get(path).await?.0, 200, "{path}");
    }
    Ok(())
}
