//! Nodes of the product: the real binary, one process each.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::ports::free_port;
use crate::process::{Process, Role};
use crate::proxy::Proxy;
use crate::rest::Rest;
use crate::wait::until;

const UP: Duration = Duration::from_secs(20);

static PATH: OnceLock<Result<PathBuf, String>> = OnceLock::new();

/// Path of the `thalweg` binary of this build profile; built if need be.
pub fn binary() -> Result<PathBuf> {
    PATH.get_or_init(|| build().map_err(|e| format!("{e:#}"))).clone().map_err(anyhow::Error::msg)
}

fn build() -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    // A test lies in `deps` of its profile's folder, a program in the folder itself.
    let folder = test.ancestors().skip(1).find(|f| !f.ends_with("deps")).context("this program has no folder")?;
    let binary = folder.join("thalweg");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if is_current(&binary, &root) {
        return Ok(binary);
    }
    let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    command.args(["build", "--quiet", "--package", "thalweg-cluster", "--bin", "thalweg"]).current_dir(&root);
    if let Some(target) = folder.parent() {
        command.arg("--target-dir").arg(target);
    }
    if folder.ends_with("release") {
        command.arg("--release");
    }
    let output = command.output().context("running cargo")?;
    if !output.status.success() {
        bail!("building thalweg: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(binary)
}

/// Whether the binary is newer than every source of the product: a run of all tests has built it, and
/// building one package alone would compile its libraries with other features again.
fn is_current(binary: &Path, root: &Path) -> bool {
    let Ok(built) = std::fs::metadata(binary).and_then(|m| m.modified()) else {
        return false;
    };
    let mut open: Vec<PathBuf> =
        ["Cargo.lock", "config", "connectors", "actors", "cluster"].map(|f| root.join(f)).into();
    while let Some(path) = open.pop() {
        let source = path.extension().is_some_and(|e| e == "rs" || e == "toml" || e == "lock");
        match std::fs::metadata(&path) {
            Ok(meta) if meta.is_dir() => {
                let tests = path.ends_with("tests");
                let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
                open.extend(entries.map(|e| e.path()).filter(|_| !tests));
            }
            Ok(meta) if source && meta.modified().is_ok_and(|m| m > built) => return false,
            _ => {}
        }
    }
    true
}

/// How node processes are started.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// Otherwise [`binary`].
    pub binary: Option<PathBuf>,
    pub environment: Vec<(String, String)>,
}

pub struct Node {
    pub id: u64,
    pub rest_port: u16,
    pub rpc_port: u16,
    /// Between this node's RPC port and the other nodes, if the cluster was started behind proxies.
    pub proxy: Option<Proxy>,
    launch: Launch,
    dir: TempDir,
    process: Option<Process>,
}

impl Node {
    fn new(id: u64) -> Result<Self> {
        Ok(Self {
            id,
            rest_port: free_port()?,
            rpc_port: free_port()?,
            proxy: None,
            launch: Launch::default(),
            dir: tempfile::Builder::new().prefix("thalweg-node-").tempdir()?,
            process: None,
        })
    }

    pub fn file(&self) -> PathBuf {
        self.dir.path().join("node.properties")
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn write_file(&self, bootstrap: &str, group: &str, seeds: Option<&str>, extra: &[(&str, &str)]) -> Result<()> {
        let mut text = format!(
            "bootstrap.servers={bootstrap}\ngroup.id={group}\nlisteners=http://127.0.0.1:{}\n\
             key.converter=org.apache.kafka.connect.json.JsonConverter\n\
             value.converter=org.apache.kafka.connect.json.JsonConverter\n\
             config.storage.topic={group}-config\noffset.storage.topic={group}-offsets\n\
             status.storage.topic={group}-status\nthalweg.node.id={}\nthalweg.data.dir={}\n\
             thalweg.rpc.listen=127.0.0.1:{}\n",
            self.rest_port,
            self.id,
            self.data().display(),
            self.rpc_port
        );
        if let Some(proxy) = &self.proxy {
            text.push_str(&format!("thalweg.rpc.advertised=127.0.0.1:{}\n", proxy.port));
        }
        if let Some(seeds) = seeds {
            text.push_str(&format!("thalweg.seeds={seeds}\n"));
        }
        for (key, value) in extra {
            text.push_str(&format!("{key}={value}\n"));
        }
        std::fs::write(self.file(), text)?;
        Ok(())
    }

    /// Starts the process (again) with the same file and data.
    pub fn start(&mut self) -> Result<()> {
        let program = match &self.launch.binary {
            Some(path) => path.clone(),
            None => binary()?,
        };
        let mut command = Command::new(program);
        command.arg("run").arg(self.file()).envs(self.launch.environment.iter().map(|(k, v)| (k, v)));
        let name = format!("thalweg node {}", self.id);
        self.process = Some(Process::start_as(Role::Node, &name, command, &self.dir.path().join("log"))?);
        Ok(())
    }

    /// Port under which the other nodes reach this one.
    pub fn rpc_address_port(&self) -> u16 {
        self.proxy.as_ref().map_or(self.rpc_port, |p| p.port)
    }

    pub fn rest(&self) -> Rest {
        Rest::new(self.rest_port)
    }

    pub async fn ready(&self) -> Result<()> {
        let rest = self.rest();
        let ready =
            until("the node is ready", UP, || async { Ok((rest.get("/health/ready").await?.0 == 200).then_some(())) })
                .await;
        match (ready, &self.process) {
            (Err(e), Some(process)) => Err(process.failure(&format!("{e:#}"))),
            (ready, _) => ready,
        }
    }

    pub fn process(&mut self) -> Result<&mut Process> {
        self.process.as_mut().context("the node is not running")
    }

    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// SIGKILL.
    pub fn kill(&mut self) -> Result<()> {
        self.process()?.kill()?;
        self.process = None;
        Ok(())
    }

    /// SIGTERM, and waits for the end.
    pub async fn stop(&mut self) -> Result<()> {
        let process = self.process()?;
        process.signal(Signal::SIGTERM)?;
        process.ended(Duration::from_secs(30)).await?;
        self.process = None;
        Ok(())
    }

    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.dir.path().join("log")).unwrap_or_default()).into_owned()
    }
}

/// Nodes of one group.
pub struct Cluster {
    pub nodes: Vec<Node>,
    pub group: String,
}

impl Cluster {
    /// Starts `size` nodes with the given settings on top of the usual file and waits until each is
    /// ready.
    pub async fn start(size: u64, bootstrap: &str, extra: &[(&str, &str)]) -> Result<Self> {
        let nodes: Vec<Node> = (1..=size).map(Node::new).collect::<Result<_>>()?;
        Self::run(nodes, bootstrap, extra, &Launch::default()).await
    }

    /// The same with a [`Proxy`] in front of every node's RPC port and a program of its own.
    pub async fn start_behind_proxies(
        size: u64,
        bootstrap: &str,
        extra: &[(&str, &str)],
        launch: &Launch,
    ) -> Result<Self> {
        let mut nodes: Vec<Node> = (1..=size).map(Node::new).collect::<Result<_>>()?;
        for node in &mut nodes {
            node.proxy = Some(Proxy::to(node.rpc_port).await?);
        }
        Self::run(nodes, bootstrap, extra, launch).await
    }

    async fn run(nodes: Vec<Node>, bootstrap: &str, extra: &[(&str, &str)], launch: &Launch) -> Result<Self> {
        let group = format!("g{}", free_port()?);
        let seeds: Vec<String> = nodes.iter().map(|n| format!("127.0.0.1:{}", n.rpc_address_port())).collect();
        let seeds = (nodes.len() > 1).then(|| seeds.join(","));
        let mut cluster = Self { nodes, group };
        for node in &mut cluster.nodes {
            node.launch = launch.clone();
            node.write_file(bootstrap, &cluster.group, seeds.as_deref(), extra)?;
            node.start()?;
        }
        for node in &cluster.nodes {
            node.ready().await?;
        }
        Ok(cluster)
    }

    /// Another node with the id of one of these that wants to join them. Not started.
    pub fn twin(&self, of: usize, bootstrap: &str) -> Result<Node> {
        let twin = Node::new(self.nodes[of].id)?;
        let seed = format!("127.0.0.1:{}", self.nodes[of].rpc_address_port());
        twin.write_file(bootstrap, &self.group, Some(&seed), &[("thalweg.join", "true")])?;
        Ok(twin)
    }

    /// REST of the first running node.
    pub fn rest(&self) -> Result<Rest> {
        self.nodes.iter().find(|n| n.is_running()).map(Node::rest).context("no node runs")
    }

    /// Index of the node that leads, once there is one.
    pub async fn leader(&self) -> Result<usize> {
        let rest = self.rest()?;
        until("a leader", UP, || async {
            let id = rest.get("/cluster").await?.1["leader"].as_u64();
            Ok(self.nodes.iter().position(|n| Some(n.id) == id))
        })
        .await
    }

    /// Index of the node that runs a task, from its status.
    pub async fn owner(&self, connector: &str, task: usize) -> Result<usize> {
        let rest = self.rest()?;
        until("the task runs", UP, || async {
            let status = rest.get(&format!("/connectors/{connector}/status")).await?.1;
            let task = &status["tasks"][task];
            let worker = task["worker_id"].as_str().unwrap_or_default().to_owned();
            Ok((task["state"] == "RUNNING")
                .then(|| self.nodes.iter().position(|n| worker.ends_with(&format!(":{}", n.rest_port))))
                .flatten())
        })
        .await
    }
}
