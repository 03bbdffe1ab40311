//! A real Kafka broker in KRaft mode.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::ports::free_port;
use crate::process::Process;
use crate::proxy::Proxy;
use crate::wait::until;

const UP: Duration = Duration::from_secs(60);

/// Broker settings on top of the fixture's.
#[derive(Debug, Clone, Default)]
pub struct BrokerOptions {
    pub settings: Vec<(String, String)>,
    /// Puts a [`Proxy`] in front; clients meet the broker through it.
    pub behind_proxy: bool,
}

pub struct Broker {
    /// Where the process itself listens.
    pub port: u16,
    pub proxy: Option<Proxy>,
    controller: u16,
    dir: TempDir,
    process: Option<Process>,
}

impl Broker {
    pub async fn start() -> Result<Self> {
        Self::with(BrokerOptions::default()).await
    }

    pub async fn with(options: BrokerOptions) -> Result<Self> {
        let port = free_port()?;
        let mut broker = Self {
            port,
            proxy: if options.behind_proxy { Some(Proxy::to(port).await?) } else { None },
            controller: free_port()?,
            dir: tempfile::Builder::new().prefix("thalweg-kafka-").tempdir()?,
            process: None,
        };
        broker.format(&options)?;
        broker.restart().await?;
        Ok(broker)
    }

    fn format(&self, options: &BrokerOptions) -> Result<()> {
        let (port, controller) = (self.port, self.controller);
        let advertised = self.bootstrap();
        let data = self.dir.path().join("data");
        let mut settings = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners=CLIENT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners=CLIENT://{advertised}\ncontroller.listener.names=CONTROLLER\n\
             inter.broker.listener.name=CLIENT\nlistener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
             log.dirs={}\nnum.partitions=1\noffsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\n\
             transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n\
             transaction.state.log.num.partitions=2\ngroup.initial.rebalance.delay.ms=0\n\
             log.message.timestamp.type=LogAppendTime\nlog.cleaner.enable=false\n",
            data.display()
        );
        for (key, value) in &options.settings {
            settings.push_str(&format!("{key}={value}\n"));
        }
        std::fs::write(self.config(), settings)?;
        std::fs::write(
            self.dir.path().join("log4j2.yaml"),
            "Configuration:\n  Appenders:\n    Console:\n      name: out\n      target: SYSTEM_OUT\n      PatternLayout:\n        pattern: \"%d %p %c %m%n\"\n  Loggers:\n    Root:\n      level: WARN\n      AppenderRef:\n        - ref: out\n",
        )?;
        let output = self
            .java()?
            .args(["kafka.tools.StorageTool", "format", "--cluster-id", "5L6g3nShT-eMCtK--X86sw", "--config"])
            .arg(self.config())
            .output()
            .context("running java; install a Java runtime, 17 or newer")?;
        if !output.status.success() {
            bail!("formatting the broker's storage: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }

    fn config(&self) -> std::path::PathBuf {
        self.dir.path().join("server.properties")
    }

    fn java(&self) -> Result<Command> {
        let mut command = Command::new("java");
        command
            .args(["-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
            .arg(format!("-Dlog4j2.configurationFile={}", self.dir.path().join("log4j2.yaml").display()))
            .arg("-cp")
            .arg(crate::fetch::kafka_libs()?.join("*"));
        Ok(command)
    }

    /// Starts the process (again) on the same data and waits until it answers.
    pub async fn restart(&mut self) -> Result<()> {
        if self.process.is_some() {
            self.kill()?;
        }
        let mut command = self.java()?;
        command.arg("kafka.Kafka").arg(self.config());
        self.process = Some(Process::start("kafka", command, &self.dir.path().join("log"))?);
        let port = self.port;
        let up = until("the broker answers", UP, || answers(port)).await;
        match (up, &self.process) {
            (Err(e), Some(process)) => Err(process.failure(&format!("{e:#}"))),
            (up, _) => up,
        }
    }

    pub fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.proxy.as_ref().map_or(self.port, |p| p.port))
    }

    pub fn kill(&mut self) -> Result<()> {
        self.process.as_mut().context("kafka is not running")?.kill()?;
        self.process = None;
        Ok(())
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.process.as_ref().context("kafka is not running")?.signal(signal)
    }
}

/// Asks for the cluster's metadata: a broker that is up lists itself.
async fn answers(port: u16) -> Result<Option<()>> {
    // Metadata request, version 1: header (key 3, version 1, correlation 1, null client id), no topics.
    const REQUEST: [u8; 18] = [0, 0, 0, 14, 0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xff, 0, 0, 0, 0];
    let exchange = async {
        let mut link = TcpStream::connect(("127.0.0.1", port)).await?;
        link.write_all(&REQUEST).await?;
        // Length, correlation id, number of brokers.
        let mut head = [0; 12];
        link.read_exact(&mut head).await?;
        Ok(head[8..12] != [0, 0, 0, 0])
    };
    let answered: Result<bool> = tokio::time::timeout(Duration::from_secs(1), exchange).await?;
    Ok(answered?.then_some(()))
}
