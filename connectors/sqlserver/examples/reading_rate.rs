//! Measures the connector against the emulator, which runs as a process of its own, so that its time does not count.
//!
//!     cargo run --release -p thalweg-sqlserver --example reading_rate -- snapshot [rows] [bytes]
//!     cargo run --release -p thalweg-sqlserver --example reading_rate -- stream [rows] [bytes]
//!     cargo run --release -p thalweg-sqlserver --example reading_rate -- idle [tables]
//!
//! `snapshot` and `stream` print rows per second, and per CPU second of this process: reading them from the wire,
//! making records, and writing those as JSON without schemas. `stream` reads one transaction of so many inserts, and
//! prints the most memory that this process had. `idle` prints the CPU time of a look for changes at so many captured
//! tables.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use thalweg_config::Properties;
use thalweg_core::convert::{Converter, JsonConverter};
use thalweg_core::position::{OffsetMap, OffsetReader, SourcePartition};
use thalweg_core::progress::PartitionProgress;
use thalweg_core::relational::history::LocalStores;
use thalweg_core::signal::Inbox;
use thalweg_core::source::{Connector, PartitionContext, PartitionReader, TaskSpec};
use thalweg_sqlserver::SqlServerConnector;
use thalweg_sqlserver::link::SqlLink;
use thalweg_sqlserver::options::SqlServerConfig;
use thalweg_sqlserver_emulator::engine::{Emulator, Setup};
use thalweg_sqlserver_emulator::wire::server::{Options, TdsServer};
use tokio_util::sync::CancellationToken;

/// Rows that one statement inserts.
const AT_ONCE: usize = 500;

/// The server's process. It ends with its input.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start() -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("output")?).read_line(&mut line)?;
        Ok(Self { child, port: line.trim().parse().context("a port")? })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn serve() -> Result<()> {
    let emulator = Arc::new(Emulator::start(&Setup::default())?);
    let server = TdsServer::start(emulator, Options::default()).await?;
    println!("{}", server.address().port());
    std::io::stdout().flush()?;
    tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await??;
    Ok(())
}

fn properties(port: u16, more: &[(&str, &str)]) -> Properties {
    let port = port.to_string();
    let base = [
        ("topic.prefix", "s1"),
        ("database.hostname", "127.0.0.1"),
        ("database.port", port.as_str()),
        ("database.user", "sa"),
        ("database.password", "Password!1"),
        ("database.names", "shop"),
        ("driver.encrypt", "false"),
        ("driver.trustServerCertificate", "true"),
        ("schema.history.internal", "io.debezium.relational.history.MemorySchemaHistory"),
        ("include.schema.changes", "false"),
        ("poll.interval.ms", "50"),
    ];
    base.iter().chain(more).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

struct Bench {
    port: u16,
    admin: SqlLink,
    _server: Server,
}

impl Bench {
    async fn open() -> Result<Self> {
        let server = Server::start()?;
        let port = server.port;
        let connection = Arc::new(SqlServerConfig::parse(&properties(port, &[]))?.connection);
        let mut admin = SqlLink::new(connection.clone(), None);
        admin.run("CREATE DATABASE shop").await?;
        let mut admin = SqlLink::new(connection, Some("shop"));
        admin.run("EXEC sys.sp_cdc_enable_db").await?;
        admin.run("EXEC sys.sp_cdc_change_job @job_type = N'capture', @pollinginterval = 0").await?;
        Ok(Self { port, admin, _server: server })
    }

    async fn table(&mut self, name: &str) -> Result<()> {
        let columns =
            "id int NOT NULL PRIMARY KEY, customer bigint, amount decimal(12,2), at datetime2(3), note varchar(8000)";
        self.admin.run(&format!("CREATE TABLE dbo.{name} ({columns})")).await?;
        let enable = format!(
            "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'{name}', @role_name = NULL"
        );
        Ok(self.admin.run(&enable).await?)
    }

    /// Rows of about so many bytes, in one transaction.
    async fn insert(&mut self, rows: usize, bytes: usize) -> Result<()> {
        let note = "n".repeat(bytes.saturating_sub(40).max(1));
        self.admin.begin("BEGIN TRANSACTION").await?;
        for from in (0..rows).step_by(AT_ONCE) {
            let row = |id: usize| format!("({id}, {}, {}.25, '2026-11-30 10:00:00.123', '{note}')", id * 7, id % 1000);
            let values: Vec<String> = (from..(from + AT_ONCE).min(rows)).map(row).collect();
            self.admin.run(&format!("INSERT dbo.item VALUES {}", values.join(", "))).await?;
        }
        Ok(self.admin.end("COMMIT TRANSACTION").await?)
    }

    async fn reader(&self, more: &[(&str, &str)]) -> Result<Box<dyn PartitionReader>> {
        let config = properties(self.port, more);
        let spec = TaskSpec { connector: "rate".into(), task: 0, config, run_id: "run".into() };
        let task = SqlServerConnector::new().open(spec)?;
        let partition = task.partitions().first().context("a partition")?.clone();
        let context = PartitionContext {
            offsets: Arc::new(Nothing),
            cancel: CancellationToken::new(),
            progress: Arc::new(PartitionProgress::default()),
            histories: Arc::new(LocalStores::default()),
            signals: Inbox::default(),
        };
        Ok(task.open(&partition, context).await?)
    }
}

struct Nothing;

impl OffsetReader for Nothing {
    fn offset(&self, _: &SourcePartition) -> Option<OffsetMap> {
        None
    }
}

/// User and system time of this process.
fn cpu() -> Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().context("stat")?.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(Duration::from_millis(ticks * 10))
}

/// The most memory so far, in MiB.
fn most_memory() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM")).context("VmHWM")?;
    Ok(line.split_whitespace().nth(1).context("a number")?.parse::<u64>()? / 1024)
}

/// Reads so many events and writes them as JSON.
async fn read(reader: &mut dyn PartitionReader, rows: usize) -> Result<(f64, f64, u64)> {
    let mut converter = JsonConverter { schemas: false, ..JsonConverter::with_schemas() };
    let (mut seen, mut bytes) = (0, 0);
    let mut out = Vec::new();
    let (mut started, mut used) = (Instant::now(), cpu()?);
    while seen < rows {
        let batch = reader.next().await?;
        if seen == 0 {
            (started, used) = (Instant::now(), cpu()?);
        }
        for record in &batch.records {
            out.clear();
            converter.convert_datum(&record.topic, &record.key, &mut out)?;
            converter.convert_datum(&record.topic, &record.value, &mut out)?;
            bytes += out.len() as u64;
            seen += 1;
        }
    }
    let spent = cpu()?.saturating_sub(used);
    Ok((started.elapsed().as_secs_f64(), spent.as_secs_f64(), bytes))
}

fn report(what: &str, rows: usize, (wall, spent, bytes): (f64, f64, u64)) -> Result<()> {
    println!(
        "{what}: {rows} rows in {wall:.2} s, {spent:.2} CPU s: {:.0} rows/s, {:.0} rows per CPU s; {} bytes a message; \
         most memory {} MiB",
        rows as f64 / wall,
        rows as f64 / spent,
        bytes / rows as u64,
        most_memory()?
    );
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| arguments.get(at).map_or(Ok(default), |text| text.parse());
    match arguments.first().map(String::as_str) {
        Some("serve") => return serve().await,
        Some("snapshot") => {
            let (rows, bytes) = (number(1, 100_000)?, number(2, 200)?);
            let mut bench = Bench::open().await?;
            bench.table("item").await?;
            bench.insert(rows, bytes).await?;
            let mut reader = bench.reader(&[("snapshot.mode", "initial_only")]).await?;
            report("snapshot", rows, read(&mut *reader, rows).await?)?;
            reader.close(Duration::from_secs(5)).await;
        }
        Some("stream") => {
            let (rows, bytes) = (number(1, 100_000)?, number(2, 200)?);
            let mut bench = Bench::open().await?;
            bench.table("item").await?;
            let mut reader = bench.reader(&[("snapshot.mode", "no_data")]).await?;
            reader.next().await?;
            bench.insert(rows, bytes).await?;
            report("stream", rows, read(&mut *reader, rows).await?)?;
            reader.close(Duration::from_secs(5)).await;
        }
        Some("idle") => {
            let tables = number(1, 1_000)?;
            let mut bench = Bench::open().await?;
            for table in 0..tables {
                bench.table(&format!("t{table}")).await?;
            }
            let mut reader = bench.reader(&[("snapshot.mode", "no_data"), ("heartbeat.interval.ms", "1")]).await?;
            for _ in 0..20 {
                reader.next().await?;
            }
            let (started, used) = (Instant::now(), cpu()?);
            let mut beats = 0;
            while started.elapsed() < Duration::from_secs(20) {
                beats += reader.next().await?.records.len();
            }
            let spent = cpu()?.saturating_sub(used);
            println!(
                "idle: {tables} tables, {beats} looks in {:.1} s, {:.3} ms of CPU each",
                started.elapsed().as_secs_f64(),
                spent.as_secs_f64() * 1000.0 / beats.max(1) as f64
            );
            reader.close(Duration::from_secs(5)).await;
        }
        _ => bail!("snapshot, stream or idle"),
    }
    Ok(())
}
