//! The processes of the demo. Dropping the stage ends them all.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bson::doc;
use serde_json::json;
use tempfile::TempDir;
use thalweg_kafka::EmbeddedBroker;
use thalweg_services::{Process, ReplicaSet, free_port, until, use_mongod};

use super::rest;

pub(super) const CONNECTOR: &str = "orders";
pub(super) const TOPIC: &str = "demo.shop.orders";
const NODES: u64 = 3;
/// REST ports tried first, so that the demo is where people look for it.
const FIRST_REST_PORT: u16 = 8083;
const UP: Duration = Duration::from_secs(30);

struct Node {
    id: u64,
    rest: u16,
    rpc: u16,
    process: Option<Process>,
}

pub(super) struct Stage {
    nodes: Vec<Node>,
    set: ReplicaSet,
    broker: Option<EmbeddedBroker>,
    bootstrap: String,
    folder: TempDir,
}

impl Stage {
    pub async fn start(mongod: Option<PathBuf>, bootstrap: Option<&str>) -> Result<Self> {
        match mongod.or_else(on_path) {
            Some(path) => {
                println!("mongod: {}", path.display());
                use_mongod(path);
            }
            None => println!("mongod: 6.0.5, fetched once if it is not cached (about 42 MB)"),
        }
        let folder = tempfile::Builder::new().prefix("thalweg-demo-").tempdir()?;
        let set = ReplicaSet::single().await.context("starting mongod")?;
        println!("MongoDB: {}", set.uri());
        let (broker, bootstrap) = match bootstrap {
            Some(servers) => {
                println!("Kafka: {servers}");
                (None, servers.to_owned())
            }
            None => {
                let broker = EmbeddedBroker::start().await.map_err(|e| anyhow::anyhow!("{}", e.trace()))?;
                let bootstrap = broker.bootstrap_servers().to_owned();
                println!("Kafka: {bootstrap} (inside this process, in memory)");
                (Some(broker), bootstrap)
            }
        };
        let mut stage = Self { nodes: Vec::new(), set, broker, bootstrap, folder };
        stage.start_nodes().await?;
        Ok(stage)
    }

    async fn start_nodes(&mut self) -> Result<()> {
        for id in 1..=NODES {
            let wanted = FIRST_REST_PORT + id as u16 - 1;
            let rest = if TcpListener::bind(("127.0.0.1", wanted)).is_ok() { wanted } else { free_port()? };
            self.nodes.push(Node { id, rest, rpc: free_port()?, process: None });
        }
        let seeds: Vec<String> = self.nodes.iter().map(|n| format!("127.0.0.1:{}", n.rpc)).collect();
        let program = std::env::current_exe().context("finding this program")?;
        for node in &mut self.nodes {
            let folder = self.folder.path().join(format!("node-{}", node.id));
            std::fs::create_dir_all(&folder)?;
            let file = folder.join("node.properties");
            let text = format!(
                "bootstrap.servers={}\ngroup.id=demo\nlisteners=http://127.0.0.1:{}\n\
                 key.converter=org.apache.kafka.connect.json.JsonConverter\n\
                 value.converter=org.apache.kafka.connect.json.JsonConverter\n\
                 config.storage.topic=demo-config\noffset.storage.topic=demo-offsets\nstatus.storage.topic=demo-status\n\
                 thalweg.node.id={}\nthalweg.data.dir={}\nthalweg.rpc.listen=127.0.0.1:{}\nthalweg.seeds={}\n",
                self.bootstrap,
                node.rest,
                node.id,
                folder.join("data").display(),
                node.rpc,
                seeds.join(","),
            );
            std::fs::write(&file, text)?;
            let mut command = Command::new(&program);
            command.arg("run").arg(&file);
            node.process = Some(Process::start(&format!("node {}", node.id), command, &folder.join("log"))?);
        }
        for node in &self.nodes {
            let ready = until("the node is ready", UP, || async {
                Ok((rest::get(node.rest, "/health/ready").await?.0 == 200).then_some(()))
            })
            .await;
            match (ready, &node.process) {
                (Err(e), Some(process)) => return Err(process.failure(&format!("{e:#}"))),
                (ready, _) => ready?,
            }
            println!("node {}: process {}, REST http://127.0.0.1:{}", node.id, self.process(node.id), node.rest);
        }
        Ok(())
    }

    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    pub async fn mongo(&self) -> Result<mongodb::Client> {
        self.set.client().await
    }

    /// Some documents to take a snapshot of, then the connector, as a user would create it.
    pub async fn create_connector(&self) -> Result<()> {
        if let Some(broker) = &self.broker {
            broker.create_topic(TOPIC, 1).map_err(|e| anyhow::anyhow!("{}", e.trace()))?;
        }
        let orders = self.mongo().await?.database("shop").collection("orders");
        let some: Vec<_> = (0..5).map(|id| doc! {"_id": id, "seq": 0_i64, "status": "new"}).collect();
        orders.insert_many(some).await?;
        let body = json!({"name": CONNECTOR, "config": {
            "connector.class": "io.debezium.connector.mongodb.MongoDbConnector",
            "mongodb.connection.string": self.set.uri(),
            "topic.prefix": "demo",
            "collection.include.list": "shop.orders",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
        }});
        let port = self.alive().next().context("no node is running")?.rest;
        println!("\nPOST http://127.0.0.1:{port}/connectors\n{}", serde_json::to_string_pretty(&body)?);
        let (status, answer) = rest::call(port, "POST", "/connectors", Some(&body)).await?;
        if status != 201 {
            bail!("creating the connector: {status} {answer}");
        }
        Ok(())
    }

    fn alive(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|n| n.process.is_some())
    }

    /// REST ports of the nodes that run, with their ids.
    pub fn rest_ports(&self) -> Vec<(u64, u16)> {
        self.alive().map(|n| (n.id, n.rest)).collect()
    }

    pub fn rest_address(&self, node: u64) -> String {
        self.nodes.iter().find(|n| n.id == node).map_or_else(String::new, |n| format!("http://127.0.0.1:{}", n.rest))
    }

    pub fn process(&self, node: u64) -> u32 {
        self.nodes.iter().find(|n| n.id == node).and_then(|n| n.process.as_ref()).map_or(0, Process::id)
    }

    pub fn kill(&mut self, node: u64) -> Result<()> {
        let node = self.nodes.iter_mut().find(|n| n.id == node).context("no such node")?;
        if let Some(mut process) = node.process.take() {
            process.kill()?;
        }
        Ok(())
    }

    /// Nodes whose process has ended since the last call.
    pub fn ended(&mut self) -> Result<Vec<u64>> {
        let mut ended = Vec::new();
        for node in &mut self.nodes {
            if let Some(process) = &mut node.process
                && process.exited()?.is_some()
            {
                node.process = None;
                ended.push(node.id);
            }
        }
        Ok(ended)
    }
}

fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("mongod")).find(|file| file.is_file())
}
