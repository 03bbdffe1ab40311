//! Passwords are seen by nobody but the source.

use std::time::Duration;

use anyhow::{Context, Result};
use bson::doc;
use serde_json::{Value, json};
use thalweg_tests::{Cluster, MemberOptions, ReplicaSet, until};

use crate::shared::{connector, kafka, unique, with};

const SOON: Duration = Duration::from_secs(30);
const PASSWORD: &str = "qZ7:p@ss/w%rd+x";
const ENCODED: &str = "qZ7%3Ap%40ss%2Fw%25rd%2Bx";
const WRONG: &str = "Wr0ng:s@crit/x";
/// What would give them away, however it is quoted.
const SECRETS: &[&str] = &[PASSWORD, ENCODED, WRONG, "qZ7", "Wr0ng"];

fn assert_silent(what: &str, text: &str) {
    for secret in SECRETS {
        let line = text.lines().find(|line| line.contains(secret));
        assert!(line.is_none(), "{what} shows {secret}: {}", line.unwrap_or_default());
    }
}

/// A set that takes logins, and clients without one for the sake of its fixture.
async fn set_with_logins(folder: &tempfile::TempDir) -> Result<ReplicaSet> {
    let key = folder.path().join("key");
    std::fs::write(&key, "a2V5b2ZtZW1iZXJz")?;
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    let args = vec!["--keyFile".to_owned(), key.display().to_string(), "--transitionToAuth".to_owned()];
    let set = ReplicaSet::start("rs0", 1, &MemberOptions { args, ..Default::default() }).await?;
    let user = doc! {"createUser": "cdc", "pwd": PASSWORD, "roles": ["root"]};
    set.client().await?.database("admin").run_command(user).await?;
    Ok(set)
}

#[tokio::test(flavor = "multi_thread")]
async fn run_06_cfg_03_a_secret_is_in_no_log_metric_status_or_error() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let set = set_with_logins(&folder).await?;
    let file = folder.path().join("sec.properties");
    let escaped = PASSWORD.replace(':', "\\:");
    std::fs::write(&file, format!("pw={escaped}\n"))?;
    let settings = [
        ("thalweg.log.level", "DEBUG"),
        ("config.providers", "file"),
        ("config.providers.file.class", "org.apache.kafka.common.config.provider.FileConfigProvider"),
    ];
    let cluster = Cluster::start(3, &kafka().await?.bootstrap(), &settings).await?;
    let rest = cluster.rest()?;

    // By reference, and inside the connection string.
    let (by_reference, by_string) = (unique("reference"), unique("string"));
    let reference = format!("${{file:{}:pw}}", file.display());
    let login = [("mongodb.user", "cdc"), ("mongodb.password", reference.as_str()), ("mongodb.authsource", "admin")];
    let referring = with(connector(&set, &by_reference, "db"), &login);
    let uri = set.uri().replace("mongodb://", &format!("mongodb://cdc:{ENCODED}@")) + "&authSource=admin";
    let literal = with(connector(&set, &by_string, "db"), &[("mongodb.connection.string", &uri)]);
    set.client().await?.database("db").collection("c").insert_one(doc! {"_id": 1}).await?;
    rest.create(&by_reference, referring.clone()).await?;
    rest.create(&by_string, literal.clone()).await?;
    for name in [&by_reference, &by_string] {
        rest.awaits(name, 1, "RUNNING").await?;
        rest.awaits_offset(name).await?;
    }

    // Shown as it was submitted: a reference stays one, and what was written out is echoed.
    let path = format!("/connectors/{by_reference}");
    for part in ["", "/config", "/tasks", "/tasks-config", "/status", "/offsets"] {
        let (status, body) = rest.get(&format!("{path}{part}")).await?;
        assert_eq!(status, 200, "{body}");
        assert_silent(&format!("GET {path}{part}"), &body.to_string());
    }
    let config = rest.get(&format!("{path}/config")).await?.1;
    assert_eq!(config["mongodb.password"], json!(reference));
    assert_eq!(rest.get(&format!("{path}/tasks")).await?.1[0]["config"]["mongodb.password"], json!(reference));
    let echoed = rest.get(&format!("/connectors/{by_string}/config")).await?.1;
    assert_eq!(echoed["mongodb.connection.string"], json!(uri));

    // Errors of every kind.
    let wrong = with(referring.clone(), &[("mongodb.password", WRONG)]);
    let mut answers: Vec<(u16, Value)> = Vec::new();
    for refused in [
        wrong.clone(),
        with(wrong.clone(), &[("tasks.max", "0"), ("thalweg.config.strict", "true"), ("mongodb.pasword", WRONG)]),
        with(literal.clone(), &[("mongodb.connection.string", &uri.replace("mongodb://", "mongo://"))]),
        with(literal.clone(), &[("mongodb.connection.string", &uri.replace(ENCODED, PASSWORD))]),
        with(wrong.clone(), &[("connector.class", "no.such.Class")]),
    ] {
        answers.push(rest.post("/connectors", Some(&json!({"name": unique("no"), "config": refused}))).await?);
    }
    let mut classless = wrong.clone();
    classless.as_object_mut().context("an object")?.remove("connector.class");
    answers.push(rest.put("/connectors/no/config", Some(&classless)).await?);
    answers.push(rest.put("/connectors/no/config", Some(&json!({"mongodb.password": [WRONG]}))).await?);
    for (status, body) in &answers {
        assert_eq!(*status, 400, "{body}");
        assert_silent("an error", &body.to_string());
    }
    for config in [&referring, &wrong, &literal] {
        let (status, body) = rest.put("/connector-plugins/MongoDb/config/validate", Some(config)).await?;
        assert_eq!(status, 200, "{body}");
        assert_silent("validate", &body.to_string());
    }

    // A login that fails while it runs: its trace says so.
    set.client().await?.database("admin").run_command(doc! {"updateUser": "cdc", "pwd": "other"}).await?;
    for name in [&by_reference, &by_string] {
        assert_eq!(rest.post(&format!("/connectors/{name}/tasks/0/restart"), None).await?.0, 204);
        let status = until("the login has failed", SOON, || async {
            let status = rest.get(&format!("/connectors/{name}/status")).await?.1;
            let task = &status["tasks"][0];
            Ok((task["state"] == "FAILED" || task["retrying"].is_array()).then_some(status))
        })
        .await?;
        assert_silent("the status", &status.to_string());
    }
    // The file is gone: the reference stays as it stands.
    std::fs::remove_file(&file)?;
    let (status, body) = rest.post(&format!("{path}/restart?includeTasks=true"), None).await?;
    assert_eq!(status, 202, "{body}");
    rest.awaits(&by_reference, 1, "FAILED").await?;
    let dump = rest.get("/connectors?expand=status").await?.1;
    assert_silent("the status of all", &dump.to_string());

    for node in &cluster.nodes {
        assert_silent("/metrics", node.rest().get("/metrics").await?.1.as_str().context("text")?);
        assert_silent(&format!("the log of node {}", node.id), &node.log());
    }
    let lines: usize = cluster.nodes.iter().map(|n| n.log().matches(" DEBUG ").count()).sum();
    assert!(lines > 0, "the level is as it was set");
    Ok(())
}
