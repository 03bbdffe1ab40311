//! The real services that tests run against; each is fetched once by its script.

mod kafka;
mod mongod;
mod proxy;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

pub use kafka::{Broker, BrokerOptions};
pub use mongod::{Member, MemberOptions, ReplicaSet};
pub use proxy::Proxy;

/// Runs a fetch script of `tests/services` and returns the path it prints.
fn fetch(script: &str) -> Result<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("services").join(script);
    let output = Command::new(&path).output().with_context(|| format!("running {}", path.display()))?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

/// Path of the mongod binary.
pub fn mongod_binary() -> Result<PathBuf> {
    static PATH: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PATH.get_or_init(|| fetch("mongod.sh").map_err(|e| format!("{e:#}"))).clone().map_err(anyhow::Error::msg)
}

/// Folder with the broker's jars.
pub fn kafka_libs() -> Result<PathBuf> {
    static PATH: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PATH.get_or_init(|| fetch("kafka.sh").map_err(|e| format!("{e:#}"))).clone().map_err(anyhow::Error::msg)
}
