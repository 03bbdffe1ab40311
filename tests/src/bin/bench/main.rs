//! `bench`: throughput, latency, memory and failover of a node, each beside the ceiling of the machine
//! measured in the same run: the barest reader piped into the barest producer.
//!
//! Services run on processor 0, nodes and the ceiling's pipe on processor 1. Every throughput run is
//! read back and counted. Results are printed and appended as JSON lines.

#![allow(unreachable_pub, reason = "modules of a program, not of a library")]

mod ceiling;
mod failover;
mod lab;
mod latency;
mod measure;
mod startup;
mod throughput;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};
use lab::LabOptions;
use measure::Results;

#[derive(Parser)]
#[command(
    name = "bench",
    after_help = "Example: cargo run --release -p thalweg-tests --bin bench -- snapshot --documents 1000000"
)]
struct Arguments {
    #[command(subcommand)]
    what: What,
    /// thalweg.delivery of the nodes: plain or fenced.
    #[arg(long, global = true, default_value = "fenced")]
    delivery: String,
    /// producer.override.compression.type of the connectors.
    #[arg(long, global = true, default_value = "lz4")]
    compression: String,
    /// More settings of the connectors, key=value.
    #[arg(long = "set", global = true, value_parser = pair)]
    settings: Vec<(String, String)>,
    /// Repetitions.
    #[arg(long, global = true, default_value_t = 3)]
    rounds: usize,
    /// Where JSON lines are appended.
    #[arg(long, global = true, default_value = "target/bench.jsonl")]
    results: PathBuf,
}

#[derive(Subcommand)]
enum What {
    /// Copies documents of about 500 bytes.
    Snapshot {
        #[arg(long, default_value_t = 500_000)]
        documents: usize,
    },
    /// Drains a backlog of 60 % inserts, 30 % updates, 10 % deletes.
    Drain {
        #[arg(long, default_value_t = 300_000)]
        changes: usize,
    },
    /// Delay from the write to the append in Kafka at steady rates.
    Latency {
        /// Changes a second.
        #[arg(long, value_delimiter = ',', default_values_t = [1, 100, 1_000, 5_000])]
        rates: Vec<u32>,
        /// Seconds at each rate.
        #[arg(long, default_value_t = 20)]
        seconds: u64,
    },
    /// Memory and processor of a node that has nothing to do.
    Idle {
        #[arg(long, value_delimiter = ',', default_values_t = [1, 20])]
        connectors: Vec<usize>,
    },
    /// Process start to REST, connector creation to the first message.
    Startup,
    /// Silence and repeats when an owner is killed or stopped at 200 changes a second.
    Failover {
        #[arg(long, default_value_t = 20)]
        times: usize,
    },
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write key=value")?;
    Ok((key.to_owned(), value.to_owned()))
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let options =
        LabOptions { delivery: arguments.delivery, compression: arguments.compression, settings: arguments.settings };
    let mut results = Results::open(&arguments.results)?;
    thalweg_tests::pin(thalweg_tests::Role::Service, 0);
    match arguments.what {
        What::Snapshot { documents } => throughput::snapshot(&options, documents, arguments.rounds, &mut results).await,
        What::Drain { changes } => throughput::drain(&options, changes, arguments.rounds, &mut results).await,
        What::Latency { rates, seconds } => latency::run(&options, &rates, seconds, &mut results).await,
        What::Idle { connectors } => startup::idle(&options, &connectors, &mut results).await,
        What::Startup => startup::run(&options, arguments.rounds, &mut results).await,
        What::Failover { times } => failover::run(&options, times, &mut results).await,
    }
}
