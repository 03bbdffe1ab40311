//! The command line as a person uses it.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, Result};
use bson::{Document, doc};
use nix::sys::signal::Signal;
use serde_json::json;
use thalweg_tests::{Process, Rest, free_port, node, until};

use crate::shared::{connector, mongo, unique, with};

/// For the demo and everything that starts services of its own.
const LONG: Duration = Duration::from_secs(120);

async fn thalweg(arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new(node::binary()?);
    command.args(arguments);
    Ok(tokio::task::spawn_blocking(move || command.output()).await??)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn help_and_version() -> Result<()> {
    let version = thalweg(&["--version"]).await?;
    assert_eq!(text(&version.stdout).trim(), format!("thalweg {}", env!("CARGO_PKG_VERSION")));
    for (arguments, examples) in [
        (&["--help"][..], "thalweg run connect-distributed.properties"),
        (&["run", "--help"], "CONNECT_BOOTSTRAP_SERVERS="),
        (&["demo", "--help"], "--bootstrap-servers localhost:9092"),
        (&["check", "--help"], "--worker node.properties"),
    ] {
        let help = thalweg(arguments).await?;
        assert!(help.status.success() && text(&help.stdout).contains(examples), "{arguments:?}: {help:?}");
    }
    let wrong = thalweg(&["run"]).await?;
    assert!(!wrong.status.success() && text(&wrong.stderr).contains("FILE"), "{wrong:?}");
    Ok(())
}

async fn check(folder: &Path, name: &str, content: &str) -> Result<(bool, String)> {
    let file = folder.join(name);
    std::fs::write(&file, content)?;
    let output = thalweg(&["check", &file.display().to_string()]).await?;
    Ok((output.status.success(), text(&output.stdout) + &text(&output.stderr)))
}

#[tokio::test(flavor = "multi_thread")]
async fn check_tells_what_there_would_be_and_what_is_missing() -> Result<()> {
    let (folder, set, database) = (tempfile::tempdir()?, mongo().await?, unique("checked"));
    set.client().await?.database(&database).collection::<Document>("c").insert_one(doc! {"_id": 1}).await?;
    let good = connector(set, "p", &database);
    let (valid, said) = check(folder.path(), "good.json", &good.to_string()).await?;
    assert!(valid && said.contains("rs0") && said.contains("1 task"), "{said}");
    assert!(said.lines().count() <= 40, "one screen: {said}");

    // As it is sent to POST /connectors, and as a file of properties.
    let wrapped = json!({"name": "inventory", "config": good}).to_string();
    let (valid, said) = check(folder.path(), "wrapped.json", &wrapped).await?;
    assert!(valid && said.contains("inventory"), "{said}");
    let lines: Vec<String> =
        good.as_object().context("object")?.iter().map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or(""))).collect();
    let (valid, said) = check(folder.path(), "lines.properties", &lines.join("\n")).await?;
    assert!(valid && said.contains("lines"), "{said}");

    let misspelt = with(good.clone(), &[("colection.include.list", "a.b")]);
    let (valid, said) = check(folder.path(), "misspelt.json", &misspelt.to_string()).await?;
    assert!(valid && said.contains("colection.include.list") && said.contains("collection.include.list"), "{said}");

    let (valid, said) =
        check(folder.path(), "wrong.json", &with(good.clone(), &[("tasks.max", "0")]).to_string()).await?;
    assert!(!valid && said.contains("tasks.max") && said.contains("is not valid"), "{said}");
    let nowhere = format!("mongodb://127.0.0.1:{}/?replicaSet=rs0", free_port()?);
    let away = with(good, &[("mongodb.connection.string", &nowhere), ("mongodb.server.selection.timeout.ms", "500")]);
    let (valid, said) = check(folder.path(), "away.json", &away.to_string()).await?;
    assert!(!valid && said.contains("Unable to connect"), "{said}");

    let (valid, said) = check(folder.path(), "broken.json", "{\"name\": ").await?;
    assert!(!valid && said.contains("broken.json") && said.contains("no connector configuration"), "{said}");
    let missing = thalweg(&["check", "no-such-file.json"]).await?;
    assert!(!missing.status.success() && text(&missing.stderr).contains("no-such-file.json"), "{missing:?}");
    Ok(())
}

/// Names in a temporary folder, without the one where fixtures agree on ports.
fn left_in(folder: &Path) -> Result<Vec<String>> {
    let names = std::fs::read_dir(folder)?.filter_map(|e| e.ok()?.file_name().into_string().ok());
    Ok(names.filter(|n| n != "thalweg-test-ports").collect())
}

/// One after the other: a node without a file has the usual port.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_a_file_and_the_demo() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let set = mongo().await?;
    let database = unique("dev");
    set.client().await?.database(&database).collection::<Document>("c").insert_one(doc! {"_id": 1}).await?;
    let mut command = Command::new(node::binary()?);
    command.args(["run", "--dev"]).env("TMPDIR", folder.path());
    let mut dev = Process::start("thalweg run --dev", command, &folder.path().join("log"))?;
    let rest = Rest::new(8083);
    until("the node is ready", LONG, || async { Ok((rest.get("/health/ready").await?.0 == 200).then_some(())) })
        .await?;
    rest.create("dev", connector(set, "dev", &database)).await?;
    rest.awaits("dev", 1, "RUNNING").await?;
    rest.awaits_offset("dev").await?;
    dev.signal(Signal::SIGINT)?;
    assert!(dev.ended(LONG).await?.success(), "{}", dev.output());
    assert_eq!(left_in(folder.path())?, ["log"], "everything is gone");

    let mut command = Command::new(node::binary()?);
    command.args(["demo", "--kill"]).env("TMPDIR", folder.path());
    let mut demo = Process::start("thalweg demo", command, &folder.path().join("log"))?;
    assert!(demo.ended(LONG).await?.success(), "{}", demo.output());
    let said = demo.output();
    let report = said.lines().find(|l| l.contains("s without an event")).context("no report")?;
    assert!(report.contains(", 0 lost, "), "{report}");
    assert!(said.contains("=== killing node") && said.contains("kill it with: kill -9"), "{said}");
    assert_eq!(left_in(folder.path())?, ["log"], "nothing is left behind");
    Ok(())
}
