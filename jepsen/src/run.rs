//! One run from start to verdict.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bson::doc;
use futures::TryStreamExt;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::check::{Evidence, Finding, Verdict, check, verdict};
use crate::history::History;
use crate::lab::{CONNECTORS, Lab, LabOptions};
use crate::nemesis::{Injected, Nemesis};
use crate::observe::{read_topic, watch_offsets};
use crate::report;
use crate::schedule::{Fault, Schedule};
use crate::writer::{Writer, orders};

/// Written last to every collection: a topic is complete when it has this key.
const END_KEY: i64 = 1_000_000_000;
/// Longest wait for all tasks to run again after a fault was healed.
const CONVERGES: Duration = Duration::from_secs(90);
/// Undisturbed time after a fault, so that its effects are not mixed with the next one's.
const CALM: Duration = Duration::from_secs(3);

#[derive(Debug, Clone)]
pub struct RunOptions {
    pub lab: LabOptions,
    pub time: Duration,
    pub seed: u64,
    pub faults: Vec<Fault>,
    /// Pause of each writer between two writes.
    pub pace: Duration,
    /// Evidence goes here.
    pub folder: PathBuf,
}

#[derive(Debug)]
pub struct Outcome {
    pub verdict: Verdict,
    pub findings: Vec<Finding>,
    pub injected: Vec<Injected>,
    pub summary: serde_json::Value,
}

/// Runs everything. An error is a failure of the harness: there is no verdict then.
pub async fn run(options: &RunOptions) -> Result<Outcome> {
    std::fs::create_dir_all(&options.folder)?;
    let mut lab = Lab::start(&options.lab).await.context("starting the lab")?;
    let outcome = drive(options, &mut lab).await;
    for node in &lab.cluster.nodes {
        std::fs::write(options.folder.join(format!("node-{}.log", node.id)), node.log())?;
    }
    outcome
}

async fn drive(options: &RunOptions, lab: &mut Lab) -> Result<Outcome> {
    lab.create_connectors().await.context("creating the connectors")?;
    let history = History::default();
    let stop = CancellationToken::new();
    let tasks = TaskTracker::new();
    for (number, connector) in (0..CONNECTORS).chain(0..CONNECTORS).enumerate() {
        let writer = Writer {
            name: format!("writer-{number}"),
            connector,
            first: number as i64 * 1_000,
            pace: options.pace,
            seed: options.seed.wrapping_add(number as u64),
        };
        tasks.spawn(writer.run(lab.client().await?, history.clone(), stop.clone()));
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    for node in &lab.cluster.nodes {
        tasks.spawn(watch_offsets(node.id, node.rest(), history.clone(), seen.clone(), stop.clone()));
    }
    let injected = disturb(options, lab, &history).await;
    stop.cancel();
    tasks.close();
    tasks.wait().await;
    let injected = injected?;

    let client = lab.set.client().await?;
    let (mut topics, mut source) = (Vec::new(), Vec::new());
    for connector in 0..CONNECTORS {
        orders(&client, connector).insert_one(doc! {"_id": END_KEY, "v": 1_i64}).await?;
    }
    for connector in 0..CONNECTORS {
        let read = read_topic(&lab.broker.bootstrap(), connector, END_KEY).await;
        let status = lab.cluster.rest()?.get(&format!("/connectors/{}/status", Lab::connector(connector))).await;
        topics.push(read.with_context(|| format!("reading the topic of connector {connector}; status {status:?}"))?);
        let mut held = BTreeMap::new();
        let mut cursor = orders(&client, connector).find(doc! {}).await?;
        while let Some(document) = cursor.try_next().await? {
            held.insert(document.get_i64("_id")?, document.get_i64("v")?);
        }
        source.push(held);
    }
    let evidence = Evidence { ops: history.ops(), topics, source, offsets: seen.lock().clone() };
    let findings = check(&evidence, Lab::database);
    history.save(&options.folder)?;
    let summary = report::write(options, &history, &evidence, &findings, &injected)?;
    Ok(Outcome { verdict: verdict(&findings), findings, injected, summary })
}

/// Faults until the time is up.
async fn disturb(options: &RunOptions, lab: &mut Lab, history: &History) -> Result<Vec<Injected>> {
    let mut schedule = Schedule::new(options.faults.clone(), options.seed);
    let mut injected = Vec::new();
    let end = Instant::now() + options.time;
    tokio::time::sleep(CALM).await;
    while Instant::now() < end {
        let Some(fault) = schedule.next_fault() else {
            break;
        };
        let mut nemesis = Nemesis { lab: &mut *lab, history: history.clone() };
        let mut done = nemesis.inject(fault, &mut schedule).await?;
        converge(lab).await.with_context(|| format!("after {} of {}", fault.name(), done.target))?;
        done.converged = Some(history.now());
        println!(
            "{:>7.1} s  {:<14} {:<10} healed after {:.1} s, all tasks running {:.1} s later",
            done.from as f64 / 1e3,
            fault.name(),
            done.target,
            (done.healed - done.from) as f64 / 1e3,
            (history.now() - done.healed) as f64 / 1e3,
        );
        injected.push(done);
        tokio::time::sleep(CALM).await;
    }
    Ok(injected)
}

async fn converge(lab: &Lab) -> Result<()> {
    let rest = lab.cluster.rest()?;
    thalweg_services::until("all tasks run", CONVERGES, || async {
        for connector in 0..CONNECTORS {
            let status = rest.get(&format!("/connectors/{}/status", Lab::connector(connector))).await?.1;
            let tasks = status["tasks"].as_array().cloned().unwrap_or_default();
            if tasks.is_empty() || tasks.iter().any(|t| t["state"] != "RUNNING") {
                anyhow::bail!("status of {} is {status}", Lab::connector(connector));
            }
        }
        Ok(Some(()))
    })
    .await
}
