//! `bench`: throughput, latency, memory and failover of a node, each beside the ceiling of the machine
//! measured in the same run: the barest reader piped into the barest producer.
//!
//! Services run on processor 0, nodes and the ceiling's pipe on processor 1. Every throughput run is
//! read back and counted. Results are printed and appended as JSON lines.

#![allow(unreachable_pub, reason = "modules of a program, not of a library")]

mod arrivals;
mod ceiling;
mod compare;
mod failover;
mod lab;
mod latency;
mod load;
mod measure;
mod memory;
mod startup;
mod throughput;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};
use compare::{Case, Work};
use lab::LabOptions;
use load::{Shape, USUAL_BYTES};
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
    /// Copies documents of one size after the other.
    Snapshot {
        /// Default: 500,000, or as many as make a gigabyte.
        #[arg(long)]
        documents: Option<usize>,
        /// Size of the documents.
        #[arg(long, value_delimiter = ',', default_values_t = [USUAL_BYTES])]
        bytes: Vec<usize>,
    },
    /// Drains a backlog of 60 % inserts, 30 % updates, 10 % deletes, of documents of one size after the
    /// other.
    Drain {
        /// Default: 300,000, or as many as make a gigabyte.
        #[arg(long)]
        changes: Option<usize>,
        /// Size of the documents.
        #[arg(long, value_delimiter = ',', default_values_t = [USUAL_BYTES])]
        bytes: Vec<usize>,
    },
    /// The same work in several ways, by turns: what each costs against the first.
    Compare {
        case: Case,
        #[arg(long, value_delimiter = ',', default_values_t = [Work::Snapshot, Work::Drain])]
        work: Vec<Work>,
        /// Documents of a snapshot, changes of a backlog.
        #[arg(long, default_value_t = 200_000)]
        events: usize,
        /// Size of the documents.
        #[arg(long, default_value_t = USUAL_BYTES)]
        bytes: usize,
    },
    /// Memory of the node while very large documents are drained and copied.
    Large {
        #[arg(long, default_value_t = 1_000)]
        documents: usize,
        #[arg(long, default_value_t = 15_000_000)]
        bytes: usize,
    },
    /// Memory of the node over large transactions in a row.
    Transactions {
        /// Of each transaction.
        #[arg(long, default_value_t = 100_000)]
        operations: usize,
        #[arg(long, default_value_t = 3)]
        times: usize,
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
        What::Snapshot { documents, bytes } => {
            for shape in bytes.into_iter().map(Shape::of) {
                let documents = documents.unwrap_or_else(|| shape.count(500_000));
                throughput::snapshot(&options, shape, documents, arguments.rounds, &mut results).await?;
            }
            Ok(())
        }
        What::Drain { changes, bytes } => {
            for shape in bytes.into_iter().map(Shape::of) {
                let changes = changes.unwrap_or_else(|| shape.count(300_000));
                throughput::drain(&options, shape, changes, arguments.rounds, &mut results).await?;
            }
            Ok(())
        }
        What::Compare { case, work, events, bytes } => {
            compare::run(&options, case, &work, (bytes, events), arguments.rounds, &mut results).await
        }
        What::Large { documents, bytes } => memory::large(&options, documents, bytes, &mut results).await,
        What::Transactions { operations, times } => {
            memory::transactions(&options, operations, times, &mut results).await
        }
        What::Latency { rates, seconds } => latency::run(&options, &rates, seconds, &mut results).await,
        What::Idle { connectors } => startup::idle(&options, &connectors, &mut results).await,
        What::Startup => startup::run(&options, arguments.rounds, &mut results).await,
        What::Failover { times } => failover::run(&options, times, &mut results).await,
    }
}
