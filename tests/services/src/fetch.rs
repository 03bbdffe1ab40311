//! Finding the services' programs, or fetching them once with the scripts beside this crate.
//!
//! The scripts travel inside the binary, so that an installed `thalweg demo` can fetch too. Cached
//! under `target/services` of the checkout if there is one, else in the user's cache folder.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

static MONGOD: Fetched = Fetched::new(include_str!("../mongod.sh"), "mongod");
static KAFKA: Fetched = Fetched::new(include_str!("../kafka.sh"), "kafka");
static PYMSSQL: Fetched = Fetched::new(include_str!("../pymssql.sh"), "pymssql");
static MSSQL_JDBC: Fetched = Fetched::new(include_str!("../mssql-jdbc.sh"), "mssql-jdbc");
#[cfg(feature = "nodes")]
static REGISTRY: Fetched = Fetched::new(include_str!("../registry.sh"), "registry");

/// What a script prints, once it was asked for.
struct Fetched {
    script: &'static str,
    name: &'static str,
    path: OnceLock<Result<PathBuf, String>>,
}

impl Fetched {
    const fn new(script: &'static str, name: &'static str) -> Self {
        Self { script, name, path: OnceLock::new() }
    }

    fn get(&self) -> Result<PathBuf> {
        let path = self.path.get_or_init(|| fetch(self.script, self.name).map_err(|e| format!("{e:#}")));
        path.clone().map_err(anyhow::Error::msg)
    }
}

/// Path of a mongod 6.0.5 binary.
pub fn mongod_binary() -> Result<PathBuf> {
    MONGOD.get()
}

/// Uses this mongod instead of fetching one. Has no effect after the first [`mongod_binary`].
pub fn use_mongod(path: PathBuf) {
    let _ = MONGOD.path.set(Ok(path));
}

/// Folder with the jars of a Kafka 4.4.0 broker.
pub fn kafka_libs() -> Result<PathBuf> {
    KAFKA.get()
}

/// Folder with the Python package pymssql, a SQL Server client on FreeTDS; for `PYTHONPATH`.
pub fn pymssql() -> Result<PathBuf> {
    PYMSSQL.get()
}

/// Path of the jar of Microsoft's JDBC driver for SQL Server.
pub fn mssql_jdbc() -> Result<PathBuf> {
    MSSQL_JDBC.get()
}

/// Folder with an Apicurio schema registry.
#[cfg(feature = "nodes")]
pub(crate) fn registry_home() -> Result<PathBuf> {
    REGISTRY.get()
}

fn fetch(script: &str, name: &str) -> Result<PathBuf> {
    let cache = cache_folder().join(name);
    let mut shell = Command::new("sh")
        .args(["-s", "--"])
        .arg(&cache)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("running sh")?;
    if let Some(mut input) = shell.stdin.take() {
        input.write_all(script.as_bytes())?;
    }
    let output = shell.wait_with_output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

fn cache_folder() -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    if let Ok(target) = target.canonicalize() {
        return target.join("services");
    }
    let home = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache")));
    home.unwrap_or_else(std::env::temp_dir).join("thalweg")
}
