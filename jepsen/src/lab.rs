//! Everything under test and around it: three nodes, one broker, one replica set of three, and a
//! proxy on every link between them.

use std::path::PathBuf;

use anyhow::Result;
use bson::doc;
use mongodb::Client;
use serde_json::json;
use thalweg_services::node::Launch;
use thalweg_services::{Broker, BrokerOptions, Cluster, MemberOptions, ReplicaSet};

/// Connectors of a run, one database and collection each.
pub const CONNECTORS: usize = 3;

#[derive(Debug, Clone)]
pub struct LabOptions {
    pub nodes: u64,
    /// `thalweg.delivery`.
    pub delivery: String,
    pub settings: Vec<(String, String)>,
    /// Environment of the node processes.
    pub environment: Vec<(String, String)>,
    pub binary: Option<PathBuf>,
}

pub struct Lab {
    pub broker: Broker,
    pub set: ReplicaSet,
    pub cluster: Cluster,
}

impl Lab {
    pub async fn start(options: &LabOptions) -> Result<Self> {
        let broker = Broker::with(BrokerOptions { behind_proxy: true, ..Default::default() }).await?;
        let members = MemberOptions { behind_proxies: true, ..Default::default() };
        let set = ReplicaSet::start("rs0", 3, &members).await?;
        let mut extra = vec![("thalweg.delivery", options.delivery.as_str())];
        extra.extend(options.settings.iter().map(|(k, v)| (k.as_str(), v.as_str())));
        let bootstrap = broker.bootstrap();
        let launch = Launch { binary: options.binary.clone(), environment: options.environment.clone() };
        let cluster = Cluster::start_behind_proxies(options.nodes, &bootstrap, &extra, &launch).await?;
        Ok(Self { broker, set, cluster })
    }

    pub fn database(connector: usize) -> String {
        format!("shop{connector}")
    }

    pub fn connector(connector: usize) -> String {
        format!("orders{connector}")
    }

    pub fn topic(connector: usize) -> String {
        format!("{}.{}.orders", Self::connector(connector), Self::database(connector))
    }

    /// A client that gives an answer within seconds, whatever is broken.
    pub async fn client(&self) -> Result<Client> {
        let uri = format!("{}&serverSelectionTimeoutMS=3000&connectTimeoutMS=1000", self.set.uri());
        Ok(Client::with_uri_str(uri).await?)
    }

    /// Creates the collections and one connector for each.
    pub async fn create_connectors(&self) -> Result<()> {
        let client = self.set.client().await?;
        let rest = self.cluster.rest()?;
        for connector in 0..CONNECTORS {
            let database = Self::database(connector);
            client.database(&database).collection("orders").insert_one(doc! {"_id": -1_i64, "v": 0_i64}).await?;
            rest.create(
                &Self::connector(connector),
                json!({
                    "connector.class": "io.debezium.connector.mongodb.MongoDbConnector",
                    "topic.prefix": Self::connector(connector),
                    "mongodb.connection.string": self.set.uri(),
                    "collection.include.list": format!("{database}.orders"),
                    "key.converter.schemas.enable": "false",
                    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
                    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
                    "value.converter.schemas.enable": "false",
                }),
            )
            .await?;
            rest.awaits(&Self::connector(connector), 1, "RUNNING").await?;
        }
        Ok(())
    }
}
