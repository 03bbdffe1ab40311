//! Short runs: the product passes, and builds with deliberate defects are caught.
//!
//! One after the other, because each run has services and nodes of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use thalweg_jepsen::check::Verdict;
use thalweg_jepsen::lab::LabOptions;
use thalweg_jepsen::run::{Outcome, RunOptions, run};
use thalweg_jepsen::scenario::Scenario;
use thalweg_jepsen::schedule::Fault;
use tokio::sync::Mutex;

static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

fn options(name: &str, faults: &[Fault], rounds: u64) -> RunOptions {
    RunOptions {
        lab: LabOptions { nodes: 3, delivery: "fenced".to_owned(), ..LabOptions::default() },
        // Long enough for each fault to come `rounds` times; the last one is always finished.
        time: Duration::from_secs(rounds * 8 * faults.len() as u64),
        seed: 7,
        faults: faults.to_vec(),
        pace: Duration::from_millis(20),
        folder: Path::new(env!("CARGO_TARGET_TMPDIR")).join(name),
    }
}

/// The program with the defects compiled in, beside the usual one.
fn sabotaged() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let test = std::env::current_exe()?;
    let folder = test.ancestors().skip(1).find(|f| !f.ends_with("deps")).context("this program has no folder")?;
    let output = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
        .args(["build", "--quiet", "--package", "thalweg-cluster", "--features", "sabotage"])
        .args(["--bin", "thalweg-sabotaged"])
        .arg("--target-dir")
        .arg(folder.parent().context("no target folder")?)
        .args(folder.ends_with("release").then_some("--release"))
        .current_dir(root)
        .output()?;
    ensure!(output.status.success(), "building with sabotage: {}", String::from_utf8_lossy(&output.stderr));
    Ok(folder.join("thalweg-sabotaged"))
}

async fn broken(defect: &str, delivery: &str, faults: &[Fault], rounds: u64) -> Result<Outcome> {
    let mut options = options(defect, faults, rounds);
    options.lab.delivery = delivery.to_owned();
    options.lab.binary = Some(sabotaged()?);
    options.lab.environment = vec![("THALWEG_SABOTAGE".to_owned(), defect.to_owned())];
    run(&options).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_run_over_the_common_faults_is_valid() -> Result<()> {
    let _alone = ONE_AT_A_TIME.lock().await;
    let faults = [Fault::KillOwner, Fault::PauseLong, Fault::StepDown, Fault::RestartBroker, Fault::CutKafkaKill];
    let outcome = run(&options("short", &faults, 1)).await?;
    if outcome.verdict != Verdict::Valid {
        bail!("{:#}", outcome.summary);
    }
    Ok(())
}

/// A short run of a scenario is valid.
async fn holds(scenario: Scenario, seconds: u64, faults: &[Fault]) -> Result<()> {
    let _alone = ONE_AT_A_TIME.lock().await;
    let mut options = options(scenario.name(), faults, 1);
    options.lab.scenario = scenario;
    options.time = Duration::from_secs(seconds);
    let outcome = run(&options).await?;
    ensure!(outcome.verdict == Verdict::Valid, "{:#}", outcome.summary);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn incremental_snapshots_miss_nothing_while_nodes_die() -> Result<()> {
    holds(Scenario::Incremental, 9, &[Fault::KillOwner, Fault::KillAll]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn incremental_snapshots_asked_for_through_kafka_miss_nothing_while_nodes_die() -> Result<()> {
    holds(Scenario::IncrementalKafka, 9, &[Fault::KillOwner, Fault::KillAll]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_initial_snapshot_goes_on_when_nodes_die() -> Result<()> {
    holds(Scenario::Initial, 9, &[Fault::KillOwner, Fault::KillAll]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn shards_come_and_go_without_disturbing_the_others() -> Result<()> {
    // Long enough for both.
    holds(Scenario::Shards, 20, &[Fault::Reshard, Fault::ReshardKill]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_committed_before_acknowledgement_are_caught() -> Result<()> {
    let _alone = ONE_AT_A_TIME.lock().await;
    // With `fenced`, a cut between two transactions keeps the next records from being handed over at all.
    // Not every cut loses something: several, so that one of them does.
    let outcome = broken("commit-early", "plain", &[Fault::CutKafkaKill], 3).await?;
    ensure!(outcome.verdict == Verdict::Invalid, "not caught: {:#}", outcome.summary);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_fencing_is_caught() -> Result<()> {
    let _alone = ONE_AT_A_TIME.lock().await;
    // The new owner writes over what the stale one wrote within a quarter of a second, and a paused
    // node may own nothing: several pauses, so that one of them is seen.
    let outcome = broken("no-fencing", "fenced", &[Fault::PauseLong], 8).await?;
    ensure!(outcome.verdict == Verdict::Invalid, "not caught: {:#}", outcome.summary);
    Ok(())
}
