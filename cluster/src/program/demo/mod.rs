//! `thalweg demo`: the product to look at. Three nodes as processes of their own, a real mongod, a
//! broker, a connector, a writer that never stops, and what arrives in Kafka as it arrives.
//!
//! `stage` starts and owns all of it; `writer` changes documents; `watch` tells who owns the task;
//! `gaps` measures the silence when an owner dies; `rest` is a client of a few lines.
//!
//! Everything ends with this process; folders are temporary. It uses the product from outside only.

mod gaps;
mod rest;
mod stage;
mod watch;
mod writer;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use thalweg_kafka::{Tail, TailFrom, TopicPattern};
use tokio_util::sync::CancellationToken;

use gaps::Gaps;
use stage::{CONNECTOR, Stage, TOPIC};
use watch::Change;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  thalweg demo                 \
    then kill -9 the node that owns the task, and watch\n  thalweg demo --kill          \
    kills the owner once, prints the gap, and ends\n  thalweg demo --bootstrap-servers localhost:9092")]
pub struct DemoArguments {
    /// A mongod binary; otherwise the one on the PATH, otherwise mongod 6.0.5 is fetched once.
    #[arg(long)]
    mongod: Option<PathBuf>,
    /// A Kafka cluster; otherwise a broker inside this process.
    #[arg(long)]
    bootstrap_servers: Option<String>,
    /// Changes a second.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=5_000))]
    rate: u32,
    /// Kills the owner of the task once, prints the gap, and ends.
    #[arg(long)]
    kill: bool,
}

/// Steady events before `--kill` strikes, and after it before the demo ends.
const BEFORE_KILL: Duration = Duration::from_secs(4);
const AFTER_KILL: Duration = Duration::from_secs(3);
/// Longest wait for events to come back.
const PATIENCE: Duration = Duration::from_secs(60);

pub async fn run(arguments: DemoArguments) -> Result<()> {
    let stop = CancellationToken::new();
    let ended = tokio::select! {
        done = play(&arguments, stop.clone()) => done,
        signal = tokio::signal::ctrl_c() => {
            signal.context("waiting for Ctrl-C")?;
            println!("\nstopping everything");
            Ok(())
        }
    };
    stop.cancel();
    ended
}

async fn play(arguments: &DemoArguments, stop: CancellationToken) -> Result<()> {
    let mut stage = Stage::start(arguments.mongod.clone(), arguments.bootstrap_servers.as_deref()).await?;
    let worker = [("bootstrap.servers", stage.bootstrap())].into();
    let mut tail = Tail::start(&worker, TopicPattern::Prefix(TOPIC.to_owned()), TailFrom::Beginning, 1_000)
        .await
        .map_err(|e| anyhow::anyhow!("{}", e.trace()))?;
    stage.create_connector().await?;
    let writes = tokio::spawn(writer::run(stage.mongo().await?, arguments.rate, stop.clone()));
    println!(
        "\nA writer changes documents in shop.orders, {} times a second. What arrives in {TOPIC}:\n",
        arguments.rate
    );

    let mut changes = watch::owners(stage.rest_ports());
    let mut owner = None;
    let mut gaps = Gaps::default();
    let mut look = tokio::time::interval(Duration::from_millis(100));
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut strike = arguments.kill.then(|| tokio::time::Instant::now() + BEFORE_KILL);
    let mut curtain: Option<tokio::time::Instant> = None;
    let mut steady = false;
    loop {
        tokio::select! {
            record = tail.next() => {
                let record = record.context("the consumer has ended")?.map_err(|e| anyhow::anyhow!("{}", e.trace()))?;
                if let Some(event) = gaps.arrived(&record) {
                    println!("{}", event.line(owner));
                }
                if !steady {
                    steady = true;
                    strike = strike.map(|_| tokio::time::Instant::now() + BEFORE_KILL);
                }
                if let Some(report) = gaps.finished() {
                    println!("\n=== {report}\n");
                    curtain = arguments.kill.then(|| tokio::time::Instant::now() + AFTER_KILL);
                }
            }
            _ = look.tick() => {
                for node in stage.ended()? {
                    println!("\n=== node {node} has died\n");
                    gaps.node_died(node);
                }
            }
            Some(change) = changes.recv() => {
                if let Change::Owner(node) = change {
                    owner = Some(node);
                }
                print_change(&change, &stage);
            }
            () = at(strike) => {
                strike = None;
                let Some(owner) = owner else { continue };
                println!("\n=== killing node {owner}, the owner of the task (SIGKILL)\n");
                stage.kill(owner)?;
                gaps.node_died(owner);
                curtain = Some(tokio::time::Instant::now() + PATIENCE);
            }
            () = at(curtain) => {
                stop.cancel();
                writes.await.context("the writer")??;
                return gaps.verdict();
            }
        }
    }
}

/// Resolves at the given time, or never.
async fn at(time: Option<tokio::time::Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn print_change(change: &Change, stage: &Stage) {
    match change {
        Change::Owner(node) => println!(
            "=== task {CONNECTOR}-0 runs on node {node} (REST {}); kill it with: kill -9 {}",
            stage.rest_address(*node),
            stage.process(*node)
        ),
        Change::State(state) => println!("=== task {CONNECTOR}-0 is {state}"),
        Change::Progress(text) => println!("=== snapshot: {text}"),
    }
}
