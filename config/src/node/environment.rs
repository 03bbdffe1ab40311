//! Environment variables as container images for Kafka Connect use them.
//!
//! `CONNECT_BOOTSTRAP_SERVERS` is `bootstrap.servers`: behind the prefix `_` is a dot, `__` an
//! underscore, `___` a hyphen. A few short names (`BOOTSTRAP_SERVERS`) are those of Debezium's image.

use std::collections::BTreeMap;

const PREFIX: &str = "CONNECT_";

/// Parts of images that configure something else than the worker.
const NOT_OPTIONS: &[&str] = &["LOG4J", "TOOLS_", "CUB_", "CLASSPATH"];

/// `(variable, option)`.
const SHORT: &[(&str, &str)] = &[
    ("BOOTSTRAP_SERVERS", "bootstrap.servers"),
    ("GROUP_ID", "group.id"),
    ("CONFIG_STORAGE_TOPIC", "config.storage.topic"),
    ("OFFSET_STORAGE_TOPIC", "offset.storage.topic"),
    ("STATUS_STORAGE_TOPIC", "status.storage.topic"),
    ("KEY_CONVERTER", "key.converter"),
    ("VALUE_CONVERTER", "value.converter"),
    ("OFFSET_FLUSH_INTERVAL_MS", "offset.flush.interval.ms"),
    ("OFFSET_FLUSH_TIMEOUT_MS", "offset.flush.timeout.ms"),
    ("SHUTDOWN_TIMEOUT", "task.shutdown.graceful.timeout.ms"),
    ("REST_HOST_NAME", "rest.host.name"),
    ("REST_PORT", "rest.port"),
    ("HOST_NAME", "rest.advertised.host.name"),
    ("ADVERTISED_HOST_NAME", "rest.advertised.host.name"),
    ("ADVERTISED_PORT", "rest.advertised.port"),
];

/// An option that was given by a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FromVariable {
    pub(super) option: String,
    pub(super) variable: String,
}

/// Options in the environment; of two variables for one option the later in the list counts, and one
/// with the prefix over a short one.
pub(super) fn options(environment: &BTreeMap<String, String>) -> Vec<FromVariable> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for (variable, option) in SHORT {
        if environment.get(*variable).is_some_and(|v| !v.is_empty()) {
            found.insert((*option).to_owned(), (*variable).to_owned());
        }
    }
    for variable in environment.keys() {
        let Some(rest) = variable.strip_prefix(PREFIX) else { continue };
        if rest.is_empty() || NOT_OPTIONS.iter().any(|other| rest.starts_with(other)) {
            continue;
        }
        found.insert(option_name(rest), variable.clone());
    }
    found.into_iter().map(|(option, variable)| FromVariable { option, variable }).collect()
}

fn option_name(variable: &str) -> String {
    variable.to_ascii_lowercase().replace("___", "-").replace("__", "\0").replace('_', ".").replace('\0', "_")
}

/// This process's environment; variables that are not Unicode are left out.
pub fn process_environment() -> BTreeMap<String, String> {
    std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn found(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let environment = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        options(&environment).into_iter().map(|f| (f.option, f.variable)).collect()
    }

    #[test]
    fn names_are_translated() {
        assert_eq!(option_name("BOOTSTRAP_SERVERS"), "bootstrap.servers");
        assert_eq!(option_name("A__B_C___D"), "a_b.c-d");
        assert_eq!(
            option_name("CONFIG_PROVIDERS_FILE_PARAM_ALLOWED_PATHS"),
            "config.providers.file.param.allowed.paths"
        );
    }

    #[test]
    fn the_prefix_wins_over_short_names() {
        assert_eq!(
            found(&[("BOOTSTRAP_SERVERS", "a"), ("CONNECT_BOOTSTRAP_SERVERS", "b"), ("PATH", "x"), ("GROUP_ID", "")]),
            [("bootstrap.servers".to_owned(), "CONNECT_BOOTSTRAP_SERVERS".to_owned())]
        );
        assert_eq!(found(&[("HOST_NAME", "a"), ("ADVERTISED_HOST_NAME", "b")])[0].1, "ADVERTISED_HOST_NAME");
        assert!(
            found(&[("CONNECT_LOG4J_LOGGERS", "x"), ("CONNECT_", "x"), ("CONNECT_TOOLS_LOG4J_LOGLEVEL", "x")])
                .is_empty()
        );
    }
}
