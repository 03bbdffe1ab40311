//! The connector: validation, the look at the live server, and the planning of tasks.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use thalweg_config::{OptionTable, Properties, Validation};
use thalweg_core::position::{PositionCodec, SourcePartition};
use thalweg_core::source::{CheckReport, Connector, Plugin, SourceTask, TaskSpec};
use thalweg_core::{Error, ErrorKind, Phase};
use tokio_util::sync::CancellationToken;

use crate::catalogue::database_name;
use crate::check;
use crate::errors::{Class, Fault};
use crate::link::SqlLink;
use crate::offsets;
use crate::options::{self, SqlServerConfig};
use crate::plan;
use crate::position::SqlServerCodec;
use crate::task::SqlServerTask;

static PLUGIN: Plugin = Plugin {
    class: "io.debezium.connector.sqlserver.SqlServerConnector",
    aliases: &["SqlServerConnector", "SqlServer", "sqlserver"],
    version: env!("CARGO_PKG_VERSION"),
};

/// `io.debezium.connector.sqlserver.SqlServerConnector`.
#[derive(Debug, Default)]
pub struct SqlServerConnector;

impl SqlServerConnector {
    pub const fn new() -> Self {
        Self
    }
}

/// The databases as the server spells them.
async fn spelt(config: &SqlServerConfig) -> Result<Vec<String>, Error> {
    let mut link = SqlLink::new(Arc::new(config.connection.clone()), None);
    let mut databases = Vec::new();
    for name in &config.databases {
        let found = database_name(&mut link, name).await;
        databases.push(found.map_err(|fault| unspelt(&fault, &link.describe()))?);
    }
    Ok(databases)
}

/// A server that does not answer is asked again; a name that nobody has needs a person.
fn unspelt(fault: &Fault, server: &str) -> Error {
    match fault.class() {
        Class::Other | Class::NoDatabase => {
            Error::new(ErrorKind::Config, Phase::Start, format!("Could not build task configs: {fault}"))
                .advise("correct database.names, or create the database")
        }
        _ => fault.error(server, Phase::Start),
    }
}

#[async_trait]
impl Connector for SqlServerConnector {
    fn plugin(&self) -> &Plugin {
        &PLUGIN
    }

    fn options(&self) -> &'static OptionTable {
        &options::TABLE
    }

    fn validate(&self, config: &Properties) -> Validation {
        options::validate(config)
    }

    async fn check(&self, config: &Properties, validation: &mut Validation, deadline: Duration) -> CheckReport {
        let mut report = CheckReport::default();
        // Faults of other properties are reported already; they do not keep from connecting.
        let mut sound = config.clone();
        let wrong = |name: &str| validation.options.iter().any(|o| o.name == name && !o.errors.is_empty());
        if wrong("database.names") || wrong("database.dbname") {
            return report;
        }
        for option in validation.options.iter().filter(|o| !o.errors.is_empty()) {
            sound.remove(&option.name);
        }
        if sound.get("topic.prefix").is_none() {
            sound.set("topic.prefix", "check");
        }
        let Ok(config) = SqlServerConfig::parse(&sound) else { return report };
        let limit = deadline.min(config.connection.validation_timeout);
        let max_tasks = sound.get("tasks.max").and_then(|t| t.trim().parse().ok()).unwrap_or(1);
        match tokio::time::timeout(limit, check::run(&config, max_tasks, &mut report)).await {
            Ok(Ok(())) => {}
            Ok(Err(fault)) => validation.error(fault.property, fault.message),
            Err(_) => {
                let message = format!("Connection validation timed out after {} ms", limit.as_millis());
                validation.error("database.hostname", message);
            }
        }
        report
    }

    async fn plan_tasks(
        &self,
        config: &Properties,
        max: usize,
        _present: &[Properties],
    ) -> Result<Vec<Properties>, Error> {
        let parsed = SqlServerConfig::parse(config)?;
        let databases = spelt(&parsed).await?;
        let tasks = plan::distribute(&databases, max);
        Ok(tasks.iter().map(|own| plan::task(config, own, databases.len())).collect())
    }

    async fn replan_wanted(&self, _config: &Properties, _cancel: CancellationToken) {
        std::future::pending().await
    }

    fn codec(&self) -> &dyn PositionCodec {
        &SqlServerCodec
    }

    fn check_owner(&self, partition: &SourcePartition, config: &Properties) -> Result<(), String> {
        let Ok(config) = SqlServerConfig::parse(config) else { return Ok(()) };
        offsets::check_owner(partition, &config.topic_prefix, &config.databases, config.layout)
    }

    fn open(&self, task: TaskSpec) -> Result<Box<dyn SourceTask>, Error> {
        Ok(Box::new(SqlServerTask::new(task)?))
    }
}
