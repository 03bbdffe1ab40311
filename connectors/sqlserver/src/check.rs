//! The look at the live server before a connector runs: can it connect, may it read, what would run.

use std::sync::Arc;

use thalweg_core::source::CheckReport;

use crate::catalogue::{Catalogue, database_name};
use crate::errors::{Class, Fault as LinkFault};
use crate::link::SqlLink;
use crate::options::SqlServerConfig;
use crate::plan;

/// A fault, and the property that it is attached to.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) property: &'static str,
    pub(crate) message: String,
}

/// # Errors
/// The first thing that keeps the connector from running.
pub(crate) async fn run(config: &SqlServerConfig, max_tasks: usize, report: &mut CheckReport) -> Result<(), Fault> {
    let mut link = SqlLink::new(Arc::new(config.connection.clone()), None);
    let version = link.rows("SELECT @@VERSION", &[]).await.map_err(|fault| {
        let property = if fault.class() == Class::Config { "driver.trustStore" } else { "database.hostname" };
        let server = link.describe();
        let text = format!("Unable to connect. Check this and other connection properties. Error: {server}: {fault}");
        Fault { property, message: text }
    })?;
    let version = version.first().and_then(|row| row.try_get::<&str, _>(0).ok().flatten()).unwrap_or_default();
    report.facts.push(("server".into(), version.lines().next().unwrap_or_default().trim().to_owned()));
    let property = if config.databases_are_listed { "database.names" } else { "database.dbname" };
    let mut databases = Vec::new();
    for name in &config.databases {
        let found = database_name(&mut link, name).await;
        databases.push(found.map_err(|fault| Fault { property, message: fault.to_string() })?);
    }
    let streams = config.snapshot.mode.streams();
    let mut refused = Vec::new();
    for database in &databases {
        let mut link = SqlLink::new(Arc::new(config.connection.clone()), None);
        let catalogue = Catalogue::new(database);
        match catalogue.has_access(&mut link).await {
            Ok(()) => {}
            Err(_) if !streams => continue,
            Err(fault) => {
                tracing::warn!(database, %fault, "change data capture cannot be read");
                refused.push((database.clone(), fault));
                continue;
            }
        }
        captured(config, &catalogue, &mut link, report).await?;
    }
    if !refused.is_empty() {
        return Err(no_access(config, &refused));
    }
    for (task, databases) in plan::distribute(&databases, max_tasks).iter().enumerate() {
        report.tasks.push(format!("task {task}: {}", databases.join(", ")));
    }
    Ok(())
}

async fn captured(
    config: &SqlServerConfig,
    catalogue: &Catalogue,
    link: &mut SqlLink,
    report: &mut CheckReport,
) -> Result<(), Fault> {
    let lists = |error: thalweg_core::Error| Fault { property: "table.include.list", message: error.to_string() };
    let refused = |fault: LinkFault| Fault { property: "database.user", message: fault.to_string() };
    let filter = config.tables.filter().map_err(lists)?;
    let listed = catalogue.tables(link).await.map_err(refused)?;
    let (mut captured, mut without) = (0, Vec::new());
    let enabled = catalogue.enabled_objects(link).await.map_err(refused)?;
    for table in &listed {
        if filter.is_listed(&table.id).map_err(lists)? {
            captured += 1;
            if !enabled.contains(&table.object) {
                without.push(table.id.to_string());
            }
        }
    }
    report.facts.push((format!("captured tables of {}", catalogue.database), captured.to_string()));
    if captured == 0 {
        report.warnings.push(format!(
            "database {}: after applying the include/exclude list filters, no changes will be captured. Please check \
             your configuration!",
            catalogue.database
        ));
    }
    if !without.is_empty() && config.snapshot.mode.streams() {
        report.warnings.push(format!(
            "change data capture is not enabled for {}: their rows are read, but no changes follow \
             (sys.sp_cdc_enable_table)",
            shortened(&without)
        ));
    }
    if catalogue.agent_runs(link, config.stream.agent_query.as_deref()).await.is_ok_and(|runs| !runs) {
        report.warnings.push("SQL Server Agent does not run: no changes are captured".into());
    }
    Ok(())
}

fn no_access(config: &SqlServerConfig, refused: &[(String, LinkFault)]) -> Fault {
    let names: Vec<&str> = refused.iter().map(|(name, _)| name.as_str()).collect();
    let why: Vec<String> = refused.iter().map(|(name, fault)| format!("{name}: {fault}")).collect();
    let message = format!(
        "User {} does not have access to CDC schema in the following databases: {}. This user can only be used in \
         initial_only snapshot mode ({})",
        config.connection.user,
        names.join(", "),
        why.join("; ")
    );
    Fault { property: "database.user", message }
}

/// Some names, and how many more.
fn shortened(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut text = names[..names.len().min(SHOWN)].join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}
