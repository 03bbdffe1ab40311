//! The options of the format, and the converters that it works with.
//!
//! The options themselves are in the table of the framework, because every connector has them. A
//! connector that names no converter gets JSON without schemas, whatever the node's converter is.

use thalweg_config::connector::FRAMEWORK;
use thalweg_config::{Properties, Settings};

use crate::convert::Role;
use crate::error::Error;

const FORMAT: &str = "thalweg.format";
const JSON: &str = "org.apache.kafka.connect.json.JsonConverter";
const AVRO: &str = "io.confluent.connect.avro.AvroConverter";
const OWN: &str = "thalweg.repstance.";
const ROLES: [Role; 2] = [Role::Key, Role::Value];

/// Whether a connector's messages have this format. Its connector then makes no tombstones and, where it
/// writes documents as text, writes them so that a plain JSON reader understands them.
pub fn is_chosen(config: &Properties) -> bool {
    config.get(FORMAT).is_some_and(|format| format.trim().eq_ignore_ascii_case("repstance"))
}

/// The topic of definitions, which wants one partition; `None` with another format.
pub fn ddl_topic(config: &Properties) -> Option<String> {
    let prefix = config.get("topic.prefix").map(str::trim).filter(|prefix| !prefix.is_empty());
    is_chosen(config).then(|| prefix.map_or("ddl".to_owned(), |prefix| format!("{prefix}.ddl")))
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) tombstones: bool,
    /// The key has the table as its first member.
    pub(super) table_in_key: bool,
    /// Bytes of key and value together; 0: no limit.
    pub(super) most: usize,
}

impl Rules {
    pub(super) fn read(config: &Properties) -> Self {
        let settings: Settings = FRAMEWORK.validate(config).settings;
        let most = settings.int("thalweg.repstance.max.message.bytes");
        Self {
            tombstones: settings.bool("thalweg.repstance.tombstones"),
            table_in_key: settings.bool("thalweg.repstance.key.include.table"),
            most: usize::try_from(most).unwrap_or(0),
        }
    }
}

/// The configuration with the format's converters, where the connector does not name its own.
pub fn with_converters(config: &Properties) -> Properties {
    let mut config = config.clone();
    if is_chosen(&config) {
        for role in ROLES {
            if config.get(role.property()).is_none() {
                config.set(role.property(), JSON);
                config.set(format!("{}schemas.enable", role.prefix()), "false");
            }
        }
    }
    config
}

/// What is wrong or doubtful about the format in a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormatCheck {
    /// Option of the framework and text, without the standard beginning of a message.
    pub problems: Vec<(&'static str, String)>,
    pub warnings: Vec<String>,
}

impl FormatCheck {
    /// All problems as one error.
    pub fn error(&self) -> Option<Error> {
        let problems: Vec<_> = self.problems.iter().map(|(option, text)| format!("{option}: {text}")).collect();
        (!problems.is_empty()).then(|| Error::config(problems.join("; ")))
    }
}

/// Checks `config` (references resolved).
pub fn check(config: &Properties) -> FormatCheck {
    let mut found = FormatCheck::default();
    if !is_chosen(config) {
        let idle = config.below(OWN);
        let idle = idle.iter().map(|(key, _)| format!("{OWN}{key} is without effect: it needs {FORMAT}=repstance"));
        found.warnings.extend(idle);
        return found;
    }
    let transforms = config.get("transforms").is_some_and(|names| !names.trim().is_empty());
    for role in ROLES {
        let (property, schemas) = (role.property(), format!("{}schemas.enable", role.prefix()));
        let with_schemas = || config.get(&schemas).is_none_or(|text| !text.trim().eq_ignore_ascii_case("false"));
        let class = config.get(property).map(|name| role.class(name).map(|class| class.class));
        let text = match class {
            None if config.get(&schemas).is_some() && with_schemas() => {
                format!("messages of {FORMAT}=repstance have no schemas: leave {schemas} out")
            }
            Some(Ok(JSON)) if with_schemas() => format!(
                "messages of {FORMAT}=repstance have no schemas: set {schemas}=false, or leave out {property} and its options"
            ),
            // A transform may have made something else of the messages.
            Some(Ok(other)) if other != JSON && (other == AVRO || !transforms) => format!(
                "{other} cannot write the JSON messages of {FORMAT}=repstance: leave {property} and its options out, or set {FORMAT}=debezium"
            ),
            // A class that does not exist is reported with its option.
            _ => continue,
        };
        found.problems.push((property, text));
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::convert::Converters;

    fn found(pairs: &[(&str, &str)]) -> FormatCheck {
        check(&pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn converters_that_cannot_write_the_format_are_errors_with_advice() {
        let chosen = (FORMAT, "repstance");
        let none: &[&[(&str, &str)]] = &[
            &[chosen],
            &[chosen, ("value.converter", "JsonConverter"), ("value.converter.schemas.enable", "false")],
            &[chosen, ("key.converter", "StringConverter"), ("transforms", "t")],
            &[("value.converter", AVRO)],
            &[chosen, ("value.converter", "no.such.Class")],
        ];
        for pairs in none {
            assert!(found(pairs).error().is_none(), "{pairs:?}");
        }
        let json = [chosen, ("value.converter", JSON)];
        for (pairs, option, part) in [
            (
                &[chosen, ("value.converter", AVRO), ("transforms", "t")][..],
                "value.converter",
                "thalweg.format=debezium",
            ),
            (&[chosen, ("key.converter", "StringConverter")], "key.converter", "leave key.converter"),
            (&json, "value.converter", "value.converter.schemas.enable=false"),
            (
                &[chosen, ("key.converter.schemas.enable", "true")],
                "key.converter",
                "leave key.converter.schemas.enable out",
            ),
        ] {
            let found = found(pairs);
            assert!(found.problems.len() == 1 && found.problems[0].0 == option, "{found:?}");
            assert!(found.error().unwrap().message.contains(part), "{found:?}");
        }
        let idle = found(&[("thalweg.repstance.tombstones", "false")]);
        assert!(idle.problems.is_empty() && idle.warnings[0].contains("thalweg.format=repstance"), "{idle:?}");
    }

    #[test]
    fn the_format_brings_its_converters() {
        let worker = Properties::from([("key.converter", AVRO), ("value.converter", AVRO)]);
        let config = with_converters(&Properties::from([(FORMAT, "Repstance")]));
        let converters = Converters::from_config(&config, &worker).unwrap();
        assert_eq!((converters.key.class(), converters.value.class()), (JSON, JSON));
        assert_eq!(with_converters(&Properties::new()), Properties::new());
        assert_eq!(
            ddl_topic(&Properties::from([(FORMAT, "repstance"), ("topic.prefix", "a")])).as_deref(),
            Some("a.ddl")
        );
        assert_eq!(ddl_topic(&Properties::from([("topic.prefix", "a")])), None);
    }
}
