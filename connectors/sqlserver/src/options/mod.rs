//! The connector's options as data, the rules between them, and their typed form.
//!
//! Names, defaults and messages are Debezium's where it has them. What cannot be honoured is refused with
//! advice, or accepted with a warning where it changes nothing. Options of the framework (`name`, `tasks.max`,
//! converters, transformations) are not here.

mod config;
mod connection;
mod connector;
mod events;
mod snapshot;

use thalweg_config::debezium::{DEBEZIUM_CHECKS, DEBEZIUM_COMMON, compose, composed_len};
use thalweg_config::{OptionDef, OptionTable, Properties, Settings, Validation, alias};
use thalweg_core::naming::NamingStrategy;
use thalweg_core::relational::column_mappers::ColumnMappers;
use thalweg_core::relational::history::{HISTORY, HISTORY_CHECKS, HISTORY_PREFIXES};
use thalweg_core::relational::options::{OPEN_PREFIXES, RELATIONAL, RELATIONAL_CHECKS, exclusive};
use thalweg_core::relational::select_overrides::SelectOverrides;
use thalweg_core::relational::table_id::{TableId, TwoParts};

pub use config::*;
pub use events::EventConfig;
pub use snapshot::{Included, Isolation, SnapshotConfig, TableOrder};

const OWN: [OptionDef; composed_len(connection::OPTIONS, connector::OPTIONS)] =
    compose(connection::OPTIONS, connector::OPTIONS);
// Steps on the way to OPTIONS, which alone is in the program.
#[allow(clippy::large_const_arrays)]
const WITH_RELATIONAL: [OptionDef; composed_len(&OWN, RELATIONAL)] = compose(&OWN, RELATIONAL);
#[allow(clippy::large_const_arrays)]
const WITH_HISTORY: [OptionDef; composed_len(&WITH_RELATIONAL, HISTORY)] = compose(&WITH_RELATIONAL, HISTORY);
static OPTIONS: [OptionDef; composed_len(&WITH_HISTORY, DEBEZIUM_COMMON)] = compose(&WITH_HISTORY, DEBEZIUM_COMMON);

/// Keys under these are the driver's, the latter in older configurations.
const DRIVER_PREFIXES: [&str; 2] = ["driver.", "database."];

/// Every option of the connector.
pub static TABLE: OptionTable = OptionTable {
    title: "SQL Server connector",
    options: &OPTIONS,
    open_prefixes: &[
        DRIVER_PREFIXES[0],
        DRIVER_PREFIXES[1],
        OPEN_PREFIXES[0],
        OPEN_PREFIXES[1],
        OPEN_PREFIXES[2],
        OPEN_PREFIXES[3],
        HISTORY_PREFIXES[0],
        HISTORY_PREFIXES[1],
        "signal.consumer.",
        "snapshot.max.threads.multiplier.",
        "openlineage.integration.",
    ],
    cross_checks: &[
        databases,
        trust,
        operations,
        custom_modes,
        naming,
        capture_instances,
        signal_tables,
        signal_channels,
        DEBEZIUM_CHECKS[0],
        DEBEZIUM_CHECKS[1],
        RELATIONAL_CHECKS[0],
        HISTORY_CHECKS[0],
    ],
};

/// The whole check without I/O: the table, then what it cannot know.
pub fn validate(properties: &Properties) -> Validation {
    let mut validation = TABLE.validate(properties);
    ColumnMappers::validate(properties, &mut validation);
    SelectOverrides::validate(properties, TwoParts::SchemaAndTable, &mut validation);
    let several = properties.get("tasks.max").and_then(|max| max.trim().parse().ok()).is_some_and(|max: i64| max > 1);
    if several && validation.settings.list("database.names").is_empty() && validation.settings.is_set("database.dbname")
    {
        let text = "Only a single connector task may be started in single-partition mode: use database.names";
        validation.error("tasks.max", text.to_owned());
    }
    let ignored = ignored(properties);
    if !ignored.is_empty() {
        validation.warnings.push(format!("properties of the JDBC driver that have no effect: {}", ignored.join(", ")));
    }
    if !validation.settings.list("signal.data.collection").is_empty() {
        let text = "'signal.data.collection': signals of SQL Server are not followed yet; their table is left out";
        validation.warnings.push(text.to_owned());
    }
    if validation.settings.int("snapshot.max.threads") > 1 {
        validation
            .warnings
            .push("'snapshot.max.threads': a snapshot of SQL Server is read by one connection".to_owned());
    }
    if properties.iter().any(|(key, _)| key.starts_with("openlineage.integration.")) {
        validation
            .warnings
            .push("'openlineage.integration.*' has no effect: lineage events are not produced".to_owned());
    }
    validation
}

/// Keys under the driver's prefixes that nobody reads.
fn ignored(properties: &Properties) -> Vec<String> {
    let present = alias::canonical(properties, &TABLE).properties;
    let of_driver = |key: &str| DRIVER_PREFIXES.iter().any(|prefix| key.starts_with(prefix));
    let keys = present.iter().map(|(key, _)| key).filter(|key| of_driver(key) && TABLE.option(key).is_none());
    keys.map(str::to_owned).collect()
}

fn databases(s: &Settings) -> Vec<(&'static str, String)> {
    let names = s.list("database.names");
    let one = s.text("database.dbname").is_some_and(|name| !name.trim().is_empty());
    let mut faults = Vec::new();
    match (names.is_empty(), one) {
        (true, false) => faults.push(("database.names", "Cannot be empty".to_owned())),
        (false, true) => faults.push(("database.dbname", "Must not be used with database.names".to_owned())),
        _ => {}
    }
    if names.len() > 1 && s.text_or_empty("sqlserver.legacy.naming") == "always" {
        let text = "always is for one database only: topics of several would get the same names";
        faults.push(("sqlserver.legacy.naming", text.to_owned()));
    }
    faults
}

fn trust(s: &Settings) -> Vec<(&'static str, String)> {
    let given = |name: &str| s.text(name).is_some_and(|text| !text.trim().is_empty());
    let mut faults = Vec::new();
    if s.bool("driver.trustServerCertificate") {
        let text = "\"driver.trustServerCertificate\" is already specified, with which no certificate is checked";
        let both = ["driver.trustStore", "driver.serverCertificate"].into_iter().filter(|name| given(name));
        faults.extend(both.map(|name| (name, text.to_owned())));
    }
    if given("driver.trustStore") && s.text_or_empty("driver.trustStoreType") == "JKS" {
        let text = "JKS stores cannot be read; convert it: keytool -importkeystore -srckeystore <file> -destkeystore \
                    <new file> -deststoretype PKCS12";
        faults.push(("driver.trustStoreType", text.to_owned()));
    }
    faults
}

fn operations(s: &Settings) -> Vec<(&'static str, String)> {
    let items = s.list("skipped.operations");
    let mixed = items.len() > 1 && items.iter().any(|item| item.eq_ignore_ascii_case("none"));
    let text = "'none' cannot be specified with other skipped operation types";
    if mixed { vec![("skipped.operations", text.to_owned())] } else { Vec::new() }
}

/// Classes of the user's cannot be loaded.
fn custom_modes(s: &Settings) -> Vec<(&'static str, String)> {
    let mut faults = Vec::new();
    let modes = [("snapshot.locking.mode", "exclusive or none"), ("snapshot.query.mode", "select_all")];
    for (name, others) in modes {
        if s.text_or_empty(name) == "custom" {
            faults.push((name, format!("custom is not supported: classes cannot be loaded; use {others}")));
        }
    }
    if s.text_or_empty("snapshot.mode") == "custom" {
        let text = match s.text_or_empty("snapshot.mode.custom.name").trim() {
            "" => "snapshot.mode.custom.name cannot be empty when snapshot.mode 'custom' is defined",
            _ => "custom snapshotters are not supported: classes cannot be loaded; use another snapshot.mode",
        };
        faults.push(("snapshot.mode.custom.name", text.to_owned()));
    }
    faults
}

fn naming(s: &Settings) -> Vec<(&'static str, String)> {
    NamingStrategy::from_settings(s).err().into_iter().collect()
}

/// Nobody would answer what comes through them.
fn signal_channels(s: &Settings) -> Vec<(&'static str, String)> {
    let served = ["source", "jmx", "in-process"];
    let others = s.list("signal.enabled.channels").iter();
    let others = others.filter(|channel| !served.iter().any(|known| channel.eq_ignore_ascii_case(known)));
    let text = |channel: &String| format!("'{channel}' is not there yet for SQL Server: signals are not followed");
    others.map(|channel| ("signal.enabled.channels", text(channel))).collect()
}

/// A name that is not whole would be the name of no table, and its signals would be taken for rows.
fn signal_tables(s: &Settings) -> Vec<(&'static str, String)> {
    let fault = |name: &String| match TableId::parse(name, TwoParts::SchemaAndTable) {
        Ok(id) if id.catalog().is_some() => None,
        Ok(_) => Some(format!("'{name}' is not whole: <database>.<schema>.<table> is expected")),
        Err(error) => Some(error.to_string()),
    };
    s.list("signal.data.collection").iter().filter_map(fault).map(|text| ("signal.data.collection", text)).collect()
}

fn capture_instances(s: &Settings) -> Vec<(&'static str, String)> {
    let lists = ("internal.capture.instance.include.list", "internal.capture.instance.exclude.list");
    exclusive(s, lists).into_iter().collect()
}

#[cfg(test)]
mod tests;
