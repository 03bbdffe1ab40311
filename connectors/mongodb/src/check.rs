//! The look at the live source before a connector runs: can it connect, may it read, what would run.

use mongodb::Client;
use thalweg_core::source::CheckReport;

use crate::connect;
use crate::errors::{self, Class};
use crate::failure::Failure;
use crate::filter::{NameList, NamespaceFilter};
use crate::keystore::{self, Unusable};
use crate::options::{CaptureScope, ConnectionMode, MongoConfig};
use crate::pipeline;
use crate::plan;
use crate::reply::Budget;
use crate::shard;
use crate::snapshot;
use crate::stream::{ChangeStream, StartAt, StreamSettings};
use crate::topology::{self, Cluster};

const CONNECTION_STRING: &str = "mongodb.connection.string";

/// A fault, and the property that it is attached to.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) property: &'static str,
    pub(crate) message: String,
}

impl Fault {
    fn new(message: impl Into<String>) -> Self {
        Self { property: CONNECTION_STRING, message: message.into() }
    }
}

impl From<mongodb::error::Error> for Fault {
    fn from(error: mongodb::error::Error) -> Self {
        let message = errors::text(&error);
        if let Some(store) = error.get_custom::<Unusable>() {
            return Self { property: keystore::property(store.purpose), message };
        }
        Self::new(match errors::class(&error) {
            Class::Permission => format!("User doesn't have sufficient privileges: {message}"),
            _ => format!("Unable to connect: {message}"),
        })
    }
}

pub(crate) struct Check<'a> {
    config: &'a MongoConfig,
    max_tasks: usize,
}

impl<'a> Check<'a> {
    pub(crate) fn new(config: &'a MongoConfig, max_tasks: usize) -> Self {
        Self { config, max_tasks }
    }

    pub(crate) async fn run(&self, report: &mut CheckReport) -> Result<(), Fault> {
        let uri = self.config.connection.string.reveal();
        let client = connect::client(&self.config.connection, uri, 1, None).await?;
        if client.list_database_names().await?.is_empty() {
            return Err(Fault::new(
                "User doesn't have rights to list databases. Please verify credentials and database permissions.",
            ));
        }
        let cluster = topology::detect(&client).await?;
        let kind = match &cluster {
            Cluster::ReplicaSet(name) => format!("replica set {name}"),
            Cluster::Sharded => "sharded cluster".to_owned(),
            Cluster::Standalone => {
                return Err(Fault::new(
                    "The server is standalone and has no change streams. Make it a replica set, of one member if need \
                     be: start mongod with --replSet rs0, run rs.initiate(), and add replicaSet=rs0 to the connection \
                     string.",
                ));
            }
        };
        report.facts.push(("server".into(), format!("MongoDB {}, {kind}", topology::version(&client).await?)));
        self.tasks(&client, &cluster, report).await?;
        let named = connect::parse(uri)?.replica_set.is_some();
        if matches!(cluster, Cluster::ReplicaSet(_)) && !named {
            return Err(Fault::new("Replica set not specified in connection string for REPLICA_SET cluster."));
        }
        self.stream(&client).await?;
        self.captured(&client, report).await
    }

    async fn tasks(&self, client: &Client, cluster: &Cluster, report: &mut CheckReport) -> Result<(), Fault> {
        if *cluster != Cluster::Sharded || self.config.connection.mode == ConnectionMode::Sharded {
            report.tasks.push("task 0: the whole cluster".into());
            let helping = 1..plan::portions(self.config, self.max_tasks);
            report.tasks.extend(helping.map(|task| format!("task {task}: a portion of each snapshot")));
            return Ok(());
        }
        let groups = plan::distribute(&[], shard::read_shards(client).await?, self.max_tasks);
        if groups.is_empty() {
            report.warnings.push("config.shards lists no replica set: no task would run".into());
        }
        for (task, group) in groups.iter().enumerate() {
            let names: Vec<&str> = group.iter().map(|s| &*s.name).collect();
            report.tasks.push(format!("task {task}: {}", names.join(", ")));
        }
        Ok(())
    }

    /// Opens the change stream as a task would.
    async fn stream(&self, client: &Client) -> Result<(), Fault> {
        let settings = StreamSettings::new(self.config, pipeline::stages(self.config), None);
        let opened = ChangeStream::open(client, &settings, &StartAt::Now, true, &Budget::new(usize::MAX)).await;
        let Err(error) = opened else { return Ok(()) };
        let mut fault = Fault::from(error.clone());
        match errors::class(&error) {
            Class::Permission => {
                let needed = match &self.config.capture.scope {
                    CaptureScope::Deployment => {
                        "capture.scope=deployment needs find and changeStream on every database (role \
                         readAnyDatabase); with rights on one database only, set capture.scope=database and \
                         capture.target"
                            .to_owned()
                    }
                    CaptureScope::Database(db) => format!("capture.scope=database needs the role read on {db}"),
                    CaptureScope::Collection(namespace) => {
                        format!("capture.scope=collection needs find and changeStream on {namespace}")
                    }
                };
                fault.message = format!("{}. {needed}", fault.message.trim_end_matches('.'));
            }
            Class::Config => {
                let split =
                    errors::code(&error) == Some(errors::UNKNOWN_STAGE) && self.config.cursor.pipeline.is_empty();
                fault.property = if split { "cursor.oversize.handling.mode" } else { "cursor.pipeline" };
                fault.message = format!("The server refuses the change stream: {}", errors::text(&error));
            }
            _ => {}
        }
        Err(fault)
    }

    async fn captured(&self, client: &Client, report: &mut CheckReport) -> Result<(), Fault> {
        let filter = NamespaceFilter::new(&self.config.filters).map_err(|e| Fault::new(e.to_string()))?;
        let captured = match snapshot::captured(client, self.config, &filter).await {
            Ok(captured) => captured,
            Err(Failure::Server(error)) => return Err(error.into()),
            Err(Failure::Final(error)) => return Err(Fault::new(error.to_string())),
        };
        report.facts.push(("captured collections".into(), captured.len().to_string()));
        let lists = &self.config.filters;
        let all = lists.databases == NameList::All && lists.collections == NameList::All;
        if captured.is_empty() && !all {
            report.warnings.push(
                "After applying the include/exclude list filters, no changes will be captured. Please check your \
                 configuration!"
                    .into(),
            );
        }
        Ok(())
    }
}
