//! The connector: validation, the look at the live source, and the planning of tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mongodb::Client;
use parking_lot::Mutex;
use serde_json::Value;
use thalweg_config::{OptionTable, Properties, Validation};
use thalweg_core::position::{PositionCodec, SourcePartition};
use thalweg_core::source::{CheckReport, Connector, Plugin, SourceTask, TaskSpec};
use thalweg_core::transform::TransformClass;
use thalweg_core::{Error, ErrorKind, Phase};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::check::Check;
use crate::connect;
use crate::errors;
use crate::options::{self, ConnectionMode, MongoConfig};
use crate::plan;
use crate::position::MongoCodec;
use crate::pump::standalone;
use crate::shard::{self, Shard};
use crate::task::MongoTask;
use crate::topology::{self, Cluster};
use crate::transforms;

static PLUGIN: Plugin = Plugin {
    class: "io.debezium.connector.mongodb.MongoDbConnector",
    aliases: &["MongoDbConnector", "MongoDb", "mongodb"],
    version: env!("CARGO_PKG_VERSION"),
};

const CONNECTION_STRING: &str = "mongodb.connection.string";

type ShardNames = BTreeSet<Arc<str>>;

/// `io.debezium.connector.mongodb.MongoDbConnector`.
#[derive(Debug, Default)]
pub struct MongoDbConnector {
    /// Shards of the last plan by topic prefix: what [`Connector::replan_wanted`] compares with.
    planned: Mutex<BTreeMap<Arc<str>, ShardNames>>,
}

impl MongoDbConnector {
    pub fn new() -> Self {
        Self::default()
    }

    /// The shards of a sharded cluster; `None`: it is a replica set.
    async fn shards(&self, config: &MongoConfig) -> Result<Option<Vec<Shard>>, Error> {
        let failed = |e: &mongodb::error::Error| errors::error(e, Phase::Start);
        let uri = config.connection.string.reveal();
        let client = connect::client(&config.connection, uri, 1, None).await.map_err(|e| failed(&e))?;
        match topology::detect(&client).await.map_err(|e| failed(&e))? {
            Cluster::ReplicaSet(_) => Ok(None),
            Cluster::Standalone => Err(standalone()),
            Cluster::Sharded => match shard::read_shards(&client).await {
                Ok(shards) => Ok(Some(shards)),
                Err(e) => {
                    let cause = failed(&e);
                    let mut error = Error { message: "config.shards cannot be read".into(), ..cause.clone() };
                    error.causes.insert(0, cause.message);
                    Err(error)
                }
            },
        }
    }
}

fn names(shards: &[Shard]) -> ShardNames {
    shards.iter().map(|s| s.name.clone()).collect()
}

#[async_trait]
impl Connector for MongoDbConnector {
    fn plugin(&self) -> &Plugin {
        &PLUGIN
    }

    fn options(&self) -> &'static OptionTable {
        &options::TABLE
    }

    fn transforms(&self) -> &'static [TransformClass] {
        transforms::CLASSES
    }

    fn validate(&self, config: &Properties) -> Validation {
        let mut validation = options::validate(config);
        if validation.is_valid()
            && let Ok(config) = MongoConfig::parse(config)
        {
            for (property, text) in connect::check_tls(&config.connection) {
                validation.invalid(property, &text);
            }
        }
        validation
    }

    async fn check(&self, config: &Properties, validation: &mut Validation, deadline: Duration) -> CheckReport {
        // Faults of other properties are reported already; they do not keep from connecting.
        let mut sound = config.clone();
        for option in validation.options.iter().filter(|o| !o.errors.is_empty()) {
            sound.remove(&option.name);
        }
        if sound.get("topic.prefix").is_none() {
            sound.set("topic.prefix", "check");
        }
        let mut report = CheckReport::default();
        let Ok(config) = MongoConfig::parse(&sound) else { return report };
        let limit = deadline.min(config.connection.validation_timeout);
        let max_tasks = sound.get("tasks.max").and_then(|t| t.trim().parse().ok()).unwrap_or(1);
        let check = Check::new(&config, max_tasks);
        match tokio::time::timeout(limit, check.run(&mut report)).await {
            Ok(Ok(())) => {}
            Ok(Err(fault)) => validation.error(fault.property, fault.message),
            Err(_) => {
                let message = format!("Connection validation timed out after {}ms", limit.as_millis());
                validation.error(CONNECTION_STRING, message);
            }
        }
        report
    }

    async fn plan_tasks(
        &self,
        config: &Properties,
        max: usize,
        present: &[Properties],
    ) -> Result<Vec<Properties>, Error> {
        let parsed = MongoConfig::parse(config)?;
        if parsed.connection.mode == ConnectionMode::Sharded {
            return Ok(plan::whole_cluster(config, plan::portions(&parsed, max)));
        }
        let Some(shards) = self.shards(&parsed).await? else {
            return Ok(plan::whole_cluster(config, plan::portions(&parsed, max)));
        };
        self.planned.lock().insert(parsed.topic_prefix.clone(), names(&shards));
        if shards.is_empty() {
            error!(
                connector = %parsed.topic_prefix,
                "found no replica sets, so there is nothing to monitor and no connector tasks will be started"
            );
        }
        plan::by_shard(config, &plan::distribute(present, shards, max)).map_err(|e| {
            Error::new(ErrorKind::Internal, Phase::Start, "task configurations cannot be written").because(&e)
        })
    }

    async fn replan_wanted(&self, config: &Properties, cancel: CancellationToken) {
        let parsed = MongoConfig::parse(config).ok().filter(|c| c.connection.mode == ConnectionMode::ReplicaSet);
        let Some(config) = parsed else { return std::future::pending().await };
        tokio::select! {
            () = cancel.cancelled() => std::future::pending().await,
            () = self.shards_change(&config) => {}
        }
    }

    fn codec(&self) -> &dyn PositionCodec {
        &MongoCodec
    }

    fn check_owner(&self, partition: &SourcePartition, config: &Properties) -> Result<(), String> {
        let Ok(config) = MongoConfig::parse(config) else { return Ok(()) };
        let prefix = &*config.topic_prefix;
        match partition.to_map().get("server_id").and_then(Value::as_str) {
            Some(server) if server != prefix => Err(format!(
                "no task of this connector reads 'server_id' '{server}': its topic.prefix is '{prefix}'. Use \
                 {{\"server_id\":\"{prefix}\"}}, or give the connector that topic.prefix"
            )),
            _ => Ok(()),
        }
    }

    fn open(&self, task: TaskSpec) -> Result<Box<dyn SourceTask>, Error> {
        Ok(Box::new(MongoTask::new(task)?))
    }
}

impl MongoDbConnector {
    /// Resolves when the cluster has other shards than were planned. A look that fails changes
    /// nothing: the known set stays.
    async fn shards_change(&self, config: &MongoConfig) {
        let mut known = self.planned.lock().get(&config.topic_prefix).cloned();
        let mut client: Option<Client> = None;
        loop {
            let looked = look(config, &mut client).await;
            match looked {
                Ok(now) => match &known {
                    Some(known) if *known != now => {
                        info!(?known, ?now, "the cluster has other shards than before");
                        return;
                    }
                    _ => known = Some(now),
                },
                Err(error) => {
                    warn!(error = errors::text(&error), "config.shards cannot be read, the known shards stay")
                }
            }
            tokio::time::sleep(config.connection.topology_interval).await;
        }
    }
}

async fn look(config: &MongoConfig, client: &mut Option<Client>) -> mongodb::error::Result<ShardNames> {
    let connected = match client.take() {
        Some(client) => client,
        None => connect::client(&config.connection, config.connection.string.reveal(), 1, None).await?,
    };
    let router = client.insert(connected);
    // A plain replica set has no shards that could change.
    if matches!(topology::detect(router).await?, Cluster::ReplicaSet(_)) {
        return Ok(ShardNames::new());
    }
    Ok(names(&shard::read_shards(router).await?))
}
