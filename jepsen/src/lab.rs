//! Everything under test and around it: three nodes, one broker, one replica set of three, and a
//! proxy on every link between them. For shards: sets of one member behind a stand-in of a router.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use bson::{Document, doc};
use mongodb::{Client, Collection};
use serde_json::json;
use thalweg_services::node::Launch;
use thalweg_services::{Broker, BrokerOptions, Cluster, MemberOptions, ReplicaSet, Router, Shards};
use tokio::sync::RwLock;

use crate::scenario::Scenario;
use crate::writer::orders_of;

/// Connectors of a run, one database and collection each; with shards there is one.
const CONNECTORS: usize = 3;
/// Replica sets of the shards. The one in the middle of their order comes and goes.
const SHARDS: [&str; 3] = ["rsA", "rsB", "rsC"];
/// Which one comes and goes.
pub const GUEST: usize = 1;
/// Its task, behind those of the shards that stay.
pub const GUEST_TASK: u64 = SHARDS.len() as u64 - 1;
/// Keys of a shard begin at its number times this.
pub const SHARD_KEYS: i64 = 1_000_000;
/// Bytes a second of each link to the source while an initial snapshot is read.
const SLOW_LINK: Option<NonZeroU32> = NonZeroU32::new(160 * 1024);

#[derive(Debug, Clone, Default)]
pub struct LabOptions {
    pub scenario: Scenario,
    pub nodes: u64,
    /// `thalweg.delivery`.
    pub delivery: String,
    pub settings: Vec<(String, String)>,
    /// Properties of the connectors, over those of the scenario.
    pub connector: Vec<(String, String)>,
    /// Environment of the node processes.
    pub environment: Vec<(String, String)>,
    pub binary: Option<PathBuf>,
}

/// The shards and what lists them.
pub struct Sharded {
    router: Router,
    /// Those after the first, which is the lab's `set`.
    others: Vec<ReplicaSet>,
    /// Whether the guest is on the list; its writers write only then.
    pub guest: Arc<RwLock<bool>>,
}

pub struct Lab {
    pub scenario: Scenario,
    pub broker: Broker,
    pub set: ReplicaSet,
    pub sharded: Option<Sharded>,
    pub cluster: Cluster,
    properties: Vec<(String, String)>,
}

impl Lab {
    pub async fn start(options: &LabOptions) -> Result<Self> {
        let scenario = options.scenario;
        let broker = Broker::with(BrokerOptions { behind_proxy: true, ..Default::default() }).await?;
        let members = MemberOptions { behind_proxies: true, ..Default::default() };
        let (set, sharded) = if scenario == Scenario::Shards {
            let mut sets = Vec::new();
            for name in SHARDS {
                sets.push(ReplicaSet::start(name, 1, &members).await?);
            }
            let first = sets.remove(0);
            let router = Router::start(Shards::Are(Vec::new()), Some(first.members[0].port)).await?;
            (first, Some(Sharded { router, others: sets, guest: Arc::new(RwLock::new(false)) }))
        } else {
            (ReplicaSet::start("rs0", 3, &members).await?, None)
        };
        let mut extra = vec![("thalweg.delivery", options.delivery.as_str())];
        extra.extend(options.settings.iter().map(|(k, v)| (k.as_str(), v.as_str())));
        let bootstrap = broker.bootstrap();
        let launch = Launch { binary: options.binary.clone(), environment: options.environment.clone() };
        let cluster = Cluster::start_behind_proxies(options.nodes, &bootstrap, &extra, &launch).await?;
        let lab = Self { scenario, broker, set, sharded, cluster, properties: options.connector.clone() };
        lab.list_shards(false);
        Ok(lab)
    }

    pub fn connectors(&self) -> usize {
        if self.sharded.is_some() { 1 } else { CONNECTORS }
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

    /// Replica sets of the source: the shards, or the only one.
    pub fn sets(&self) -> impl Iterator<Item = &ReplicaSet> {
        std::iter::once(&self.set).chain(self.sharded.iter().flat_map(|s| &s.others))
    }

    /// Tasks that run once everything has settled, of each connector.
    pub async fn tasks(&self) -> usize {
        match &self.sharded {
            None => 1,
            Some(sharded) => SHARDS.len() - usize::from(!*sharded.guest.read().await),
        }
    }

    /// Name of the shard that comes and goes.
    pub fn guest() -> &'static str {
        SHARDS[GUEST]
    }

    /// Puts the shards on the router's list.
    pub fn list_shards(&self, guest: bool) {
        let Some(sharded) = &self.sharded else { return };
        let listed = self.sets().enumerate().filter(|(index, _)| guest || *index != GUEST);
        let listed = listed.map(|(_, set)| (set.name.clone(), format!("{}/{}", set.name, set.members[0].address())));
        sharded.router.set_shards(Shards::Are(listed.collect()));
    }

    /// A client that gives an answer within seconds, whatever is broken.
    pub async fn client(&self, set: &ReplicaSet) -> Result<Client> {
        let uri = format!("{}&serverSelectionTimeoutMS=3000&connectTimeoutMS=1000", set.uri());
        Ok(Client::with_uri_str(uri).await?)
    }

    /// The connector's collection in each replica set that has a part of it.
    pub async fn collections(&self, connector: usize) -> Result<Vec<Collection<Document>>> {
        let mut all = Vec::new();
        for set in self.sets() {
            all.push(orders_of(&set.client().await?, connector));
        }
        Ok(all)
    }

    /// Creates the collections with the scenario's rows: version 0, keys from 0 (and of each shard from
    /// its beginning).
    pub async fn fill(&self) -> Result<()> {
        for connector in 0..self.connectors() {
            for (shard, collection) in self.collections(connector).await?.iter().enumerate() {
                let first = shard as i64 * SHARD_KEYS;
                collection.insert_one(doc! {"_id": first - 1, "v": 0_i64}).await?;
                let keys: Vec<i64> = (first..first + self.scenario.rows()).collect();
                for keys in keys.chunks(4_000) {
                    let pad = "x".repeat(150);
                    collection.insert_many(keys.iter().map(|key| doc! {"_id": key, "v": 0_i64, "pad": &pad})).await?;
                }
            }
        }
        Ok(())
    }

    /// Slows every link to the source, so that a snapshot takes as long as one of a large collection; or
    /// ends that.
    pub fn slow_source(&self, slow: bool) {
        let rate = SLOW_LINK.filter(|_| slow);
        self.sets().flat_map(|s| &s.members).filter_map(|m| m.proxy.as_ref()).for_each(|p| p.slow(rate));
    }

    /// Connectors with a task on this node, as the status says at this moment.
    pub async fn owned(&self, node: usize) -> Result<Vec<usize>> {
        let rest = self.cluster.rest()?;
        let port = format!(":{}", self.cluster.nodes[node].rest_port);
        let mut owned = Vec::new();
        for connector in 0..self.connectors() {
            let status = rest.get(&format!("/connectors/{}/status", Self::connector(connector))).await?.1;
            let mut workers = status["tasks"].as_array().into_iter().flatten().filter_map(|t| t["worker_id"].as_str());
            if workers.any(|worker| worker.ends_with(&port)) {
                owned.push(connector);
            }
        }
        Ok(owned)
    }

    /// Creates the connectors; those that take no snapshot are awaited until their stream has begun.
    pub async fn create_connectors(&self) -> Result<()> {
        let rest = self.cluster.rest()?;
        for connector in 0..self.connectors() {
            let (name, database) = (Self::connector(connector), Self::database(connector));
            let mut config = json!({
                "connector.class": "io.debezium.connector.mongodb.MongoDbConnector",
                "topic.prefix": name,
                "mongodb.connection.string": match &self.sharded {
                    Some(sharded) => sharded.router.uri(),
                    None => self.set.uri(),
                },
                "collection.include.list": format!("{database}.orders"),
                "key.converter.schemas.enable": "false",
                "key.converter": "org.apache.kafka.connect.json.JsonConverter",
                "value.converter": "org.apache.kafka.connect.json.JsonConverter",
                "value.converter.schemas.enable": "false",
            });
            for (key, value) in self.scenario.properties(&name, &database) {
                config[key] = value.into();
            }
            for (key, value) in &self.properties {
                config[key] = value.as_str().into();
            }
            rest.create(&name, config).await?;
        }
        for connector in 0..self.connectors() {
            let name = Self::connector(connector);
            rest.awaits(&name, self.tasks().await, "RUNNING").await?;
            if self.scenario.asks() {
                // Without a snapshot, what was written before the first position is not captured.
                rest.awaits_offset(&name).await.context("the stream has begun")?;
            }
        }
        Ok(())
    }
}
