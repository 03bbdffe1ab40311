//! `thalweg check`.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use thalweg_cluster::screen;
use thalweg_config::node::{WorkerConfig, process_environment};
use thalweg_config::parse::file::connector_file;

use super::arguments::CheckArguments;
use super::run::registry;

pub async fn run(arguments: CheckArguments) -> Result<()> {
    let shown = arguments.file.display();
    let bytes = std::fs::read(&arguments.file).with_context(|| format!("{shown} cannot be read"))?;
    let file = connector_file(&bytes).with_context(|| format!("{shown} is no connector configuration"))?;
    for warning in &file.warnings {
        println!("{shown}: {warning}");
    }
    let worker = match &arguments.worker {
        Some(path) => WorkerConfig::load(Some(path), &process_environment())?,
        None => WorkerConfig::from_properties(&super::run::dev_properties("localhost:9092"))?,
    };
    let name: Option<String> = file.name.clone().or_else(|| Some(arguments.file.file_stem()?.to_str()?.to_owned()));
    let name = name.unwrap_or_else(|| "?".to_owned());
    let mut config = file.config;
    if config.get("name").is_none() {
        config.set("name", name.as_str());
    }
    let registry = registry(&worker);
    let deadline = Duration::from_secs(arguments.timeout);
    let report = screen::report(&registry, &worker.properties, &name, &config, deadline).await?;
    print!("{}", report.text);
    if !report.is_valid {
        bail!("{shown} is not valid");
    }
    Ok(())
}
