//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::demo::DemoArguments;

/// Change-data-capture from databases to Kafka, as a cluster of equal nodes.
///
/// Takes the configuration files, REST calls and offsets of Debezium on Kafka Connect.
#[derive(Debug, Parser)]
#[command(
    name = "thalweg",
    version,
    after_help = "Examples:\n  thalweg demo\n  thalweg run --dev\n  \
    thalweg run connect-distributed.properties\n  thalweg check inventory.json"
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs a node.
    Run(RunArguments),
    /// Shows everything: three nodes, MongoDB, Kafka, changes, and the loss of a node.
    Demo(DemoArguments),
    /// Tries a connector's configuration against the live source.
    Check(CheckArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  thalweg run node.properties\n  thalweg run --dev\n  \
    CONNECT_BOOTSTRAP_SERVERS=kafka:9092 CONNECT_GROUP_ID=cdc thalweg run node.properties")]
pub struct RunArguments {
    /// A Kafka Connect distributed worker file with thalweg's own keys; environment variables override it.
    #[arg(required_unless_present = "dev")]
    pub file: Option<PathBuf>,
    /// One node without a file: data in a temporary folder, a Kafka broker inside, REST on 8083.
    #[arg(long, conflicts_with = "file")]
    pub dev: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  thalweg check inventory.json\n  thalweg check inventory.properties --worker node.properties"
)]
pub struct CheckArguments {
    /// The connector's configuration: properties, or JSON as it is sent to POST /connectors.
    pub file: PathBuf,
    /// The node's file, for its converters and config providers.
    #[arg(long)]
    pub worker: Option<PathBuf>,
    /// Longest time for the source to answer, in seconds.
    #[arg(long, default_value_t = 30)]
    pub timeout: u64,
}
