//! `thalweg-jepsen`: one fault run from the command line.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use thalweg_jepsen::check::Verdict;
use thalweg_jepsen::lab::LabOptions;
use thalweg_jepsen::run::{RunOptions, run};
use thalweg_jepsen::scenario::{SCENARIOS, Scenario};
use thalweg_jepsen::schedule::{ALL, Fault, WITH_SHARDS};

/// Breaks a running cluster for a while and decides from outside whether it kept its promises.
#[derive(Parser)]
#[command(name = "thalweg-jepsen", after_help = "Example: thalweg-jepsen --time 30m --faults kill-owner,pause-long")]
struct Arguments {
    /// What the run is about: stream, incremental, incremental-kafka, initial or shards.
    #[arg(long, default_value = "stream", value_parser = scenario)]
    scenario: Scenario,
    /// How long to inject faults: 90s, 30m, 2h.
    #[arg(long, default_value = "2m", value_parser = duration)]
    time: Duration,
    /// Seed of the schedule and of the writers.
    #[arg(long)]
    seed: Option<u64>,
    /// Delivery mode of the nodes: fenced or plain.
    #[arg(long, default_value = "fenced")]
    delivery: String,
    /// Comma list of faults; default all that fit the scenario.
    #[arg(long, value_delimiter = ',')]
    faults: Vec<String>,
    /// Pause of each of the six writers between two writes, in milliseconds.
    #[arg(long, default_value_t = 25)]
    pace_ms: u64,
    /// The binary under test; built if not given.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Environment of the nodes, NAME=VALUE.
    #[arg(long)]
    env: Vec<String>,
    /// Properties of the connectors beyond the scenario's, NAME=VALUE.
    #[arg(long)]
    connector: Vec<String>,
    /// Folder for history, summary, timeline and logs.
    #[arg(long, default_value = "target/jepsen")]
    out: PathBuf,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let faults = match arguments.faults.as_slice() {
        [] => arguments.scenario.faults(),
        names => names
            .iter()
            .map(|n| Fault::parse(n).with_context(|| format!("unknown fault {n}; known: {}", known())))
            .collect::<Result<_>>()?,
    };
    if arguments.scenario != Scenario::Shards && faults.iter().any(|f| WITH_SHARDS.contains(f)) {
        bail!("there are no shards in this scenario: --scenario shards");
    }
    let pairs = |all: &[String]| -> Result<Vec<(String, String)>> {
        let pair = |pair: &String| {
            let (name, value) = pair.split_once('=').with_context(|| format!("{pair} is not NAME=VALUE"))?;
            Ok((name.to_owned(), value.to_owned()))
        };
        all.iter().map(pair).collect()
    };
    let seed = arguments.seed.unwrap_or_else(|| fastrand::u64(..));
    let options = RunOptions {
        lab: LabOptions {
            scenario: arguments.scenario,
            nodes: 3,
            delivery: arguments.delivery,
            settings: Vec::new(),
            connector: pairs(&arguments.connector)?,
            environment: pairs(&arguments.env)?,
            binary: arguments.binary,
        },
        time: arguments.time,
        seed,
        faults,
        pace: Duration::from_millis(arguments.pace_ms),
        folder: arguments.out.join(format!("seed-{seed}")),
    };
    println!("seed {seed}, evidence in {}", options.folder.display());
    let outcome = run(&options).await?;
    println!("{}", serde_json::to_string_pretty(&outcome.summary)?);
    println!("verdict: {:?}", outcome.verdict);
    Ok(if outcome.verdict == Verdict::Valid { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

fn known() -> String {
    ALL.iter().chain(WITH_SHARDS).map(|f| f.name()).collect::<Vec<_>>().join(", ")
}

fn scenario(name: &str) -> Result<Scenario> {
    let names = || SCENARIOS.iter().map(|s| s.name()).collect::<Vec<_>>().join(", ");
    Scenario::parse(name).with_context(|| format!("unknown scenario {name}; known: {}", names()))
}

fn duration(text: &str) -> Result<Duration> {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..at].parse().context("a time looks like 90s, 30m or 2h")?;
    Ok(Duration::from_secs(match &text[at..] {
        "" | "s" => number,
        "m" => number * 60,
        "h" => number * 3_600,
        unit => bail!("unknown unit {unit}; a time looks like 90s, 30m or 2h"),
    }))
}
