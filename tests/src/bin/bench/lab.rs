//! Services and nodes for a measurement.

use std::time::Duration;

use anyhow::{Result, bail};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::error::RDKafkaErrorCode;
use serde_json::{Value, json};
use thalweg_tests::{Broker, BrokerOptions, Cluster, MemberOptions, ReplicaSet, Role, SchemaRegistry, pin};

use crate::arrivals::Arrivals;

/// What the broker takes, in bytes.
pub const LARGEST_MESSAGE: usize = 40_000_000;

pub struct LabOptions {
    pub delivery: String,
    pub compression: String,
    /// More connector settings, `key=value`.
    pub settings: Vec<(String, String)>,
}

pub struct Lab {
    pub broker: Broker,
    pub set: ReplicaSet,
    pub cluster: Cluster,
    registry: Option<SchemaRegistry>,
    compression: String,
    settings: Vec<(String, String)>,
}

impl Lab {
    /// One node on processor 1, or several that run anywhere.
    pub async fn start(options: &LabOptions, nodes: u64) -> Result<Self> {
        let settings = vec![("message.max.bytes".to_owned(), LARGEST_MESSAGE.to_string())];
        let broker = Broker::with(BrokerOptions { settings, ..Default::default() }).await?;
        let members = MemberOptions { oplog_mb: 20_000, cache_gb: 2.0, ..Default::default() };
        let set = ReplicaSet::start("rs0", 1, &members).await?;
        if nodes == 1 {
            pin(Role::Node, 1);
        }
        let extra = [("thalweg.delivery", options.delivery.as_str())];
        let cluster = Cluster::start(nodes, &broker.bootstrap(), &extra).await?;
        let (compression, settings) = (options.compression.clone(), options.settings.clone());
        Ok(Self { broker, set, cluster, registry: None, compression, settings })
    }

    pub fn process(&mut self) -> Result<u32> {
        Ok(self.cluster.nodes[0].process()?.id())
    }

    /// The profile of an expert: messages without schemas, the configured compression.
    pub fn connector(&self, name: &str, database: &str, more: &[(&str, &str)]) -> Value {
        let mut config = json!({
            "connector.class": "io.debezium.connector.mongodb.MongoDbConnector",
            "topic.prefix": name,
            "mongodb.connection.string": self.set.uri(),
            "capture.scope": "database",
            "capture.target": database,
            "filters.match.mode": "literal",
            "database.include.list": database,
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "producer.override.compression.type": self.compression,
        });
        for (key, value) in more {
            config[*key] = json!(value);
        }
        for (key, value) in &self.settings {
            config[key] = json!(value);
        }
        config
    }

    /// Waits until a new topic holds `messages` messages; gives append times of the first and the last
    /// in ms since the epoch.
    pub async fn arrived(&self, topic: &str, messages: usize) -> Result<(i64, i64)> {
        Arrivals::of_new(self.broker.bootstrap(), topic).wait(messages).await
    }

    /// Waits for messages of a connector, or for its failure.
    pub async fn wait(&self, name: &str, arrivals: Arrivals, messages: usize) -> Result<(i64, i64)> {
        tokio::select! {
            arrived = arrivals.wait(messages) => arrived,
            failed = self.failure(name) => Err(failed?),
        }
    }

    /// Resolves when a task has failed.
    async fn failure(&self, name: &str) -> Result<anyhow::Error> {
        let rest = self.cluster.rest()?;
        let mut look = tokio::time::interval(Duration::from_secs(1));
        loop {
            look.tick().await;
            let (_, status) = rest.get(&format!("/connectors/{name}/status")).await?;
            let tasks = status["tasks"].as_array().into_iter().flatten();
            if let Some(task) = tasks.into_iter().find(|task| task["state"] == "FAILED") {
                return Ok(anyhow::anyhow!("{name} has failed: {}", task["trace"].as_str().unwrap_or_default()));
            }
        }
    }

    /// Makes topics of one partition, so that making them is no part of what is measured. Those that
    /// are there stay as they are.
    pub async fn make_topics(&self, names: &[String]) -> Result<()> {
        let admin: AdminClient<_> = ClientConfig::new().set("bootstrap.servers", self.broker.bootstrap()).create()?;
        for names in names.chunks(100) {
            let topics = names.iter().map(|n| NewTopic::new(n, 1, TopicReplication::Fixed(1))).collect::<Vec<_>>();
            for made in admin.create_topics(&topics, &AdminOptions::new()).await? {
                match made {
                    Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
                    Err((topic, code)) => bail!("topic {topic} cannot be made: {code}"),
                }
            }
        }
        Ok(())
    }

    /// Starts a schema registry and gives the settings of a connector that writes Avro to it.
    pub async fn avro(&mut self) -> Result<Vec<(String, String)>> {
        let registry = match self.registry.take() {
            Some(registry) => registry,
            None => SchemaRegistry::start().await?,
        };
        let url = self.registry.insert(registry).url();
        let of = |part: &str| {
            let class = (format!("{part}.converter"), "io.confluent.connect.avro.AvroConverter".to_owned());
            [class, (format!("{part}.converter.schema.registry.url"), url.clone())]
        };
        Ok(["key", "value"].into_iter().flat_map(of).collect())
    }
}
