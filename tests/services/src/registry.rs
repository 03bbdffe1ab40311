//! A real schema registry: Apicurio, with everything in memory, spoken to as Confluent's.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

use crate::ports::free_port;
use crate::process::Process;
use crate::wait::until;

const UP: Duration = Duration::from_secs(90);

pub struct SchemaRegistry {
    port: u16,
    process: Process,
    _dir: TempDir,
}

impl SchemaRegistry {
    /// Starts it and waits until it answers.
    pub async fn start() -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("thalweg-registry-").tempdir()?;
        let port = free_port()?;
        let mut command = Command::new("java");
        command
            .args(["-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
            .arg("-jar")
            .arg(crate::fetch::registry_home()?.join("apicurio-registry-app-3.0.9-runner.jar"))
            .env("QUARKUS_HTTP_HOST", "127.0.0.1")
            .env("QUARKUS_HTTP_PORT", port.to_string())
            .current_dir(dir.path());
        let process = Process::start("schema registry", command, &dir.path().join("log"))?;
        let registry = Self { port, process, _dir: dir };
        let up = until("the schema registry answers", UP, || async { registry.get("/subjects").await.map(Some) }).await;
        match up {
            Ok(_) => Ok(registry),
            Err(e) => Err(registry.process.failure(&format!("{e:#}"))),
        }
    }

    /// What `schema.registry.url` is set to.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/apis/ccompat/v7", self.port)
    }

    /// A JSON answer of Confluent's interface.
    pub async fn get(&self, path: &str) -> Result<Value> {
        let response = reqwest::get(format!("{}{path}", self.url())).await?;
        if !response.status().is_success() {
            bail!("GET {path}: {}", response.status());
        }
        Ok(response.json().await?)
    }

    /// Text of the schema with this id.
    pub async fn schema(&self, id: u32) -> Result<String> {
        let answer = self.get(&format!("/schemas/ids/{id}")).await?;
        Ok(answer["schema"].as_str().context("a schema")?.to_owned())
    }
}
