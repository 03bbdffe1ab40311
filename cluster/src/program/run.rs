//! `thalweg run`: a node, with everything concrete put in.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;
use thalweg_actors::Registry;
use thalweg_cluster::logging::{Loggers, parse_level};
use thalweg_cluster::node;
use thalweg_cluster::raft::command::LogLevel;
use thalweg_config::Properties;
use thalweg_config::node::{LogFormat, WorkerConfig, process_environment};
use thalweg_kafka::{EmbeddedBroker, KafkaSinks, cluster_id};
use thalweg_mongodb::MongoDbConnector;
use thalweg_sqlserver::SqlServerConnector;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::arguments::RunArguments;

/// Limit of one question for the id of the Kafka cluster, and the pause before the next.
const ASK_KAFKA: Duration = Duration::from_secs(10);

pub fn run(arguments: RunArguments) -> Result<()> {
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("thalweg").build().unwrap_or_else(
            |error| {
                eprintln!("thalweg: the runtime cannot start: {error}");
                std::process::exit(1)
            },
        )
    };
    actix::System::with_tokio_rt(runtime).block_on(serve(arguments))
}

async fn serve(arguments: RunArguments) -> Result<()> {
    let dev = if arguments.dev { Some(Dev::start().await?) } else { None };
    let config = match (&dev, &arguments.file) {
        (Some(dev), _) => WorkerConfig::from_properties(&dev.properties())?,
        (None, file) => WorkerConfig::load(file.as_deref(), &process_environment())?,
    };
    let level = parse_level(&config.log_level).unwrap_or(LogLevel::Info);
    let loggers = Loggers::install(config.log_format == LogFormat::Json, level);
    if let Some(dev) = &dev {
        println!("REST: http://localhost:8083   Kafka: {}   (everything is gone when this ends)", dev.bootstrap());
    }
    let stop = CancellationToken::new();
    stop_on_signals(stop.clone())?;
    let registry = registry(&config);
    let parts = node::Parts { registry, loggers, kafka_cluster_id: ask_kafka(&config, stop.clone()), config };
    node::run(parts, stop).await.context("the node ended")
}

/// Every connector of this build, and the way to Kafka.
pub fn registry(config: &WorkerConfig) -> Registry {
    Registry::new(Arc::new(KafkaSinks::new(config.properties.clone())), config.providers.clone())
        .with(Arc::new(MongoDbConnector::new()))
        .with(Arc::new(SqlServerConnector::new()))
}

fn stop_on_signals(stop: CancellationToken) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.cancel();
    });
    Ok(())
}

/// Asks Kafka for its id until it answers; the node does not wait for it.
fn ask_kafka(config: &WorkerConfig, stop: CancellationToken) -> watch::Receiver<Option<String>> {
    let (sender, receiver) = watch::channel(None);
    let properties = config.properties.clone();
    tokio::spawn(stop.run_until_cancelled_owned(async move {
        loop {
            match cluster_id(&properties, ASK_KAFKA).await {
                Ok(id) => {
                    sender.send_replace(Some(id));
                    return;
                }
                Err(error) => {
                    tracing::warn!(error = %error, "kafka does not answer; check bootstrap.servers and that the broker runs");
                    tokio::time::sleep(ASK_KAFKA).await;
                }
            }
        }
    }));
    receiver
}

/// What `--dev` needs beside the node.
struct Dev {
    broker: EmbeddedBroker,
    folder: TempDir,
}

impl Dev {
    async fn start() -> Result<Self> {
        let broker = EmbeddedBroker::start().await.map_err(|e| anyhow::anyhow!("{}", e.trace()))?;
        Ok(Self { broker, folder: tempfile::Builder::new().prefix("thalweg-dev-").tempdir()? })
    }

    fn bootstrap(&self) -> &str {
        self.broker.bootstrap_servers()
    }

    fn properties(&self) -> Properties {
        let mut properties = dev_properties(self.bootstrap());
        properties.set("thalweg.data.dir", self.folder.path().join("data").display().to_string());
        properties
    }
}

/// A worker file for one node alone.
pub fn dev_properties(bootstrap: &str) -> Properties {
    [
        ("bootstrap.servers", bootstrap),
        ("group.id", "dev"),
        ("listeners", "http://localhost:8083"),
        ("key.converter", "org.apache.kafka.connect.json.JsonConverter"),
        ("value.converter", "org.apache.kafka.connect.json.JsonConverter"),
        ("config.storage.topic", "dev-config"),
        ("offset.storage.topic", "dev-offsets"),
        ("status.storage.topic", "dev-status"),
    ]
    .into()
}
