//! `thalweg-jepsen`: one fault run from the command line.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use thalweg_jepsen::check::Verdict;
use thalweg_jepsen::lab::LabOptions;
use thalweg_jepsen::run::{RunOptions, run};
use thalweg_jepsen::schedule::{ALL, Fault};

/// Breaks a running cluster for a while and decides from outside whether it kept its promises.
#[derive(Parser)]
#[command(name = "thalweg-jepsen", after_help = "Example: thalweg-jepsen --time 30m --faults kill-owner,pause-long")]
struct Arguments {
    /// How long to inject faults: 90s, 30m, 2h.
    #[arg(long, default_value = "2m", value_parser = duration)]
    time: Duration,
    /// Seed of the schedule and of the writers.
    #[arg(long)]
    seed: Option<u64>,
    /// Delivery mode of the nodes: fenced or plain.
    #[arg(long, default_value = "fenced")]
    delivery: String,
    /// Comma list of faults; default all.
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
    /// Folder for history, summary, timeline and logs.
    #[arg(long, default_value = "target/jepsen")]
    out: PathBuf,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let faults = match arguments.faults.as_slice() {
        [] => ALL.to_vec(),
        names => names
            .iter()
            .map(|n| Fault::parse(n).with_context(|| format!("unknown fault {n}; known: {}", known())))
            .collect::<Result<_>>()?,
    };
    let environment = arguments.env.iter().map(|pair| {
        let (name, value) = pair.split_once('=').with_context(|| format!("--env {pair} is not NAME=VALUE"))?;
        Ok((name.to_owned(), value.to_owned()))
    });
    let seed = arguments.seed.unwrap_or_else(|| fastrand::u64(..));
    let options = RunOptions {
        lab: LabOptions {
            nodes: 3,
            delivery: arguments.delivery,
            settings: Vec::new(),
            environment: environment.collect::<Result<_>>()?,
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
    ALL.iter().map(|f| f.name()).collect::<Vec<_>>().join(", ")
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
