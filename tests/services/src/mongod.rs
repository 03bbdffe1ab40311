//! Replica sets of real mongod processes on the loopback address.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use bson::{Document, doc};
use mongodb::Client;
use mongodb::options::{ClientOptions, ServerAddress};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::ports::free_port;
use crate::process::Process;
use crate::proxy::Proxy;
use crate::wait::until;

const UP: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub struct MemberOptions {
    pub oplog_mb: u32,
    pub cache_gb: f32,
    /// Further command-line arguments.
    pub args: Vec<String>,
    /// Puts a [`Proxy`] in front of every member; clients and members then meet through it.
    pub behind_proxies: bool,
}

impl Default for MemberOptions {
    fn default() -> Self {
        Self { oplog_mb: 64, cache_gb: 0.25, args: Vec::new(), behind_proxies: false }
    }
}

/// One mongod. It can be stopped and started again on the same data.
pub struct Member {
    /// Where the process itself listens.
    pub port: u16,
    pub proxy: Option<Proxy>,
    set: String,
    options: MemberOptions,
    dir: TempDir,
    process: Option<Process>,
}

impl Member {
    async fn start_new(set: &str, options: &MemberOptions) -> Result<Self> {
        let port = free_port()?;
        let mut member = Self {
            port,
            proxy: if options.behind_proxies { Some(Proxy::to(port).await?) } else { None },
            set: set.to_owned(),
            options: options.clone(),
            dir: tempfile::Builder::new().prefix("thalweg-mongod-").tempdir()?,
            process: None,
        };
        member.start()?;
        Ok(member)
    }

    /// Starts the process (again).
    pub fn start(&mut self) -> Result<()> {
        let data = self.dir.path().join("data");
        std::fs::create_dir_all(&data)?;
        let mut command = Command::new(crate::fetch::mongod_binary()?);
        command
            .args(["--replSet", &self.set, "--bind_ip", "127.0.0.1", "--port", &self.port.to_string()])
            .arg("--dbpath")
            .arg(&data)
            .args(["--oplogSize", &self.options.oplog_mb.to_string()])
            .args(["--wiredTigerCacheSizeGB", &self.options.cache_gb.to_string()])
            .args(["--setParameter", "enableTestCommands=1", "--setParameter", "diagnosticDataCollectionEnabled=false"])
            .args(&self.options.args);
        self.process = Some(Process::start("mongod", command, &self.dir.path().join("log"))?);
        Ok(())
    }

    /// Where the set's configuration says it is.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.proxy.as_ref().map_or(self.port, |p| p.port))
    }

    /// A client of this member alone.
    pub async fn direct(&self) -> Result<Client> {
        let mut options = ClientOptions::builder()
            .hosts(vec![ServerAddress::Tcp { host: "127.0.0.1".into(), port: Some(self.port) }])
            .direct_connection(true)
            .build();
        options.server_selection_timeout = Some(UP);
        Ok(Client::with_options(options)?)
    }

    pub fn kill(&mut self) -> Result<()> {
        self.process.as_mut().context("mongod is not running")?.kill()?;
        self.process = None;
        Ok(())
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.process.as_ref().context("mongod is not running")?.signal(signal)
    }

    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }
}

pub struct ReplicaSet {
    pub name: String,
    pub members: Vec<Member>,
}

impl ReplicaSet {
    /// One member: up in a fraction of a second.
    pub async fn single() -> Result<Self> {
        Self::start("rs0", 1, &MemberOptions::default()).await
    }

    /// Starts `size` members, initiates the set and waits for a primary.
    pub async fn start(name: &str, size: usize, options: &MemberOptions) -> Result<Self> {
        let mut members = Vec::with_capacity(size);
        for _ in 0..size {
            members.push(Member::start_new(name, options).await?);
        }
        let set = Self { name: name.to_owned(), members };
        let hosts: Vec<Document> =
            set.members.iter().zip(0_i32..).map(|(m, id)| doc! {"_id": id, "host": m.address()}).collect();
        let settings = if size == 1 {
            doc! {"electionTimeoutMillis": 500}
        } else {
            doc! {"electionTimeoutMillis": 1000, "heartbeatIntervalMillis": 200, "catchUpTimeoutMillis": 1000}
        };
        let first = set.members[0].direct().await?;
        let initiate = doc! {"replSetInitiate": {"_id": name, "members": hosts, "settings": settings}};
        // Refused until every member listens.
        until("replSetInitiate", UP, || async {
            first.database("admin").run_command(initiate.clone()).await?;
            Ok(Some(()))
        })
        .await
        .map_err(|e| match &set.members[0].process {
            Some(p) => p.failure(&format!("{e:#}")),
            None => e,
        })?;
        let primary = set.primary().await?;
        let client = set.members[primary].direct().await?;
        until("every member is primary or secondary", UP, || async {
            let status = client.database("admin").run_command(doc! {"replSetGetStatus": 1}).await?;
            let states: Vec<String> = status
                .get_array("members")?
                .iter()
                .filter_map(|m| m.as_document()?.get_str("stateStr").ok().map(str::to_owned))
                .collect();
            if states.iter().all(|s| s == "PRIMARY" || s == "SECONDARY") {
                return Ok(Some(()));
            }
            anyhow::bail!("members are {states:?}")
        })
        .await?;
        Ok(set)
    }

    /// Connection string of the whole set.
    pub fn uri(&self) -> String {
        let hosts: Vec<String> = self.members.iter().map(Member::address).collect();
        format!("mongodb://{}/?replicaSet={}", hosts.join(","), self.name)
    }

    pub async fn client(&self) -> Result<Client> {
        let mut options = ClientOptions::parse(self.uri()).await?;
        options.server_selection_timeout = Some(UP);
        Ok(Client::with_options(options)?)
    }

    /// Index of the present primary; waits for one.
    pub async fn primary(&self) -> Result<usize> {
        until("a primary", UP, || async {
            for (index, member) in self.members.iter().enumerate().filter(|(_, m)| m.is_running()) {
                let client = member.direct().await?;
                let hello = tokio::time::timeout(
                    Duration::from_secs(2),
                    client.database("admin").run_command(doc! {"hello": 1}),
                )
                .await;
                if let Ok(Ok(hello)) = hello
                    && hello.get_bool("isWritablePrimary").unwrap_or(false)
                {
                    return Ok(Some(index));
                }
            }
            Ok(None)
        })
        .await
    }

    /// Makes the primary step down; the new one is awaited.
    pub async fn step_down(&self) -> Result<usize> {
        let old = self.primary().await?;
        let client = self.members[old].direct().await?;
        // A young set refuses until a secondary has caught up; the connection may close instead of an answer.
        until("the primary steps down", UP, || async {
            let answer = client
                .database("admin")
                .run_command(doc! {"replSetStepDown": 10, "secondaryCatchUpPeriodSecs": 5})
                .await;
            match answer {
                Err(e) if matches!(*e.kind, mongodb::error::ErrorKind::Command(_)) => Err(e.into()),
                _ => Ok(Some(())),
            }
        })
        .await?;
        until("another primary", UP, || async {
            let now = self.primary().await?;
            Ok((now != old).then_some(now))
        })
        .await
    }
}
