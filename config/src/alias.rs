//! Older names of options become the newer ones before anything is checked.
//!
//! Sources of old names: [`OptionDef::aliases`](crate::OptionDef), and the tables below for names that
//! every Debezium connector renamed (1.9 to 3.x). A rename applies only where the table knows the
//! new name and not the old one. If both are given the newer one wins. Invariant: one warning for
//! each old key.
//!
//! Older values of an option are its own matter: [`OptionDef::value_aliases`](crate::OptionDef).

use crate::option::{OptionDef, OptionTable};
use crate::properties::Properties;

/// `(old, new)`.
const RENAMED: &[(&str, &str)] = &[
    ("database.server.name", "topic.prefix"),
    ("mongodb.name", "topic.prefix"),
    ("database.history", "schema.history.internal"),
    ("database.history.store.only.monitored.tables.ddl", "schema.history.internal.store.only.captured.tables.ddl"),
    ("heartbeat.topics.prefix", "topic.heartbeat.prefix"),
    ("transaction.topic", "topic.transaction"),
    ("sanitize.field.names", "field.name.adjustment.mode"),
    ("database.whitelist", "database.include.list"),
    ("database.blacklist", "database.exclude.list"),
    ("schema.whitelist", "schema.include.list"),
    ("schema.blacklist", "schema.exclude.list"),
    ("table.whitelist", "table.include.list"),
    ("table.blacklist", "table.exclude.list"),
    ("column.whitelist", "column.include.list"),
    ("column.blacklist", "column.exclude.list"),
    ("collection.whitelist", "collection.include.list"),
    ("collection.blacklist", "collection.exclude.list"),
    ("field.blacklist", "field.exclude.list"),
];

/// `(old prefix, new prefix)`: everything below them keeps its name.
const RENAMED_PREFIXES: &[(&str, &str)] = &[("database.history.", "schema.history.internal.")];

/// Older values of `snapshot.mode`, for the option tables of connectors.
pub const SNAPSHOT_MODES: &[(&str, &str)] =
    &[("never", "no_data"), ("schema_only", "no_data"), ("schema_only_recovery", "recovery")];

/// A configuration in today's names.
#[derive(Debug)]
pub struct Canonical {
    pub properties: Properties,
    pub warnings: Vec<String>,
    /// The old keys that were found.
    pub old_names: Vec<String>,
}

/// Whether `name` is an older name of the option.
pub(crate) fn is_older(name: &str, option: &OptionDef) -> bool {
    option.aliases.contains(&name) || RENAMED.iter().any(|(old, new)| *old == name && *new == option.name)
}

/// Renames what `table` has newer names for.
pub fn canonical(given: &Properties, table: &OptionTable) -> Canonical {
    let mut result = Canonical { properties: given.clone(), warnings: Vec::new(), old_names: Vec::new() };
    for def in table.options {
        for old in def.aliases {
            result.rename(old, def.name);
        }
    }
    for (old, new) in RENAMED {
        if table.option(old).is_none() && table.option(new).is_some() {
            result.rename(old, new);
        }
    }
    for (old_prefix, new_prefix) in RENAMED_PREFIXES {
        for (key, _) in given.below(old_prefix).iter() {
            let (old, new) = (format!("{old_prefix}{key}"), format!("{new_prefix}{key}"));
            let known = table.option(&new).is_some() || table.is_open(&new);
            if known && table.option(&old).is_none() {
                result.rename(&old, &new);
            }
        }
    }
    result
}

impl Canonical {
    fn rename(&mut self, old: &str, new: &str) {
        let Some(value) = self.properties.remove(old) else { return };
        let value = converted(old, value);
        self.old_names.push(old.to_owned());
        self.warnings.push(match self.properties.get(new) {
            None => {
                self.properties.set(new, value);
                format!("'{old}' is an older name of '{new}'")
            }
            Some(present) if present == value => format!("'{old}' is an older name of '{new}'; both are set"),
            Some(_) => {
                format!("'{old}' is an older name of '{new}'; both are set and differ: '{new}' counts, remove '{old}'")
            }
        });
    }
}

/// The value in today's terms, where an option changed its meaning together with its name.
fn converted(old: &str, value: String) -> String {
    match (old, value.trim()) {
        ("sanitize.field.names", v) if v.eq_ignore_ascii_case("true") => "avro".to_owned(),
        ("sanitize.field.names", v) if v.eq_ignore_ascii_case("false") => "none".to_owned(),
        // Was a whole topic name with the server's name in it, is now its last part.
        ("transaction.topic", v) => v.strip_prefix("${database.server.name}.").unwrap_or(v).to_owned(),
        ("database.history", "io.debezium.relational.history.KafkaDatabaseHistory") => {
            "io.debezium.storage.kafka.history.KafkaSchemaHistory".to_owned()
        }
        ("database.history", "io.debezium.relational.history.FileDatabaseHistory") => {
            "io.debezium.storage.file.history.FileSchemaHistory".to_owned()
        }
        ("database.history", "io.debezium.relational.history.MemoryDatabaseHistory") => {
            "io.debezium.relational.history.MemorySchemaHistory".to_owned()
        }
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::option::{OptionDef, OptionKind};

    const TABLE: OptionTable = OptionTable {
        title: "t",
        options: &[
            OptionDef::new("topic.prefix", OptionKind::String, ""),
            OptionDef::new("table.include.list", OptionKind::List, ""),
            OptionDef::new("topic.transaction", OptionKind::String, ""),
            OptionDef::new("field.name.adjustment.mode", OptionKind::String, "").one_of(&["none", "avro"]),
            OptionDef::new("snapshot.mode", OptionKind::String, "")
                .one_of(&["initial", "no_data", "recovery"])
                .value_aliases(SNAPSHOT_MODES),
            OptionDef::new("schema.history.internal", OptionKind::Class, ""),
            OptionDef::new("schema.history.internal.store.only.captured.tables.ddl", OptionKind::Boolean, ""),
            OptionDef::new("limit", OptionKind::Int, "").aliases(&["max", "most"]),
        ],
        open_prefixes: &["schema.history.internal."],
        cross_checks: &[],
    };

    #[test]
    fn cfg_01_both_eras_mean_the_same() {
        let old = Properties::from([
            ("database.server.name", "p"),
            ("table.whitelist", "a,b"),
            ("snapshot.mode", "schema_only"),
            ("transaction.topic", "${database.server.name}.tx"),
            ("sanitize.field.names", "true"),
            ("database.history", "io.debezium.relational.history.KafkaDatabaseHistory"),
            ("database.history.kafka.topic", "h"),
            ("database.history.store.only.monitored.tables.ddl", "true"),
            ("most", "3"),
        ]);
        let new = Properties::from([
            ("topic.prefix", "p"),
            ("table.include.list", "a,b"),
            ("snapshot.mode", "no_data"),
            ("topic.transaction", "tx"),
            ("field.name.adjustment.mode", "avro"),
            ("schema.history.internal", "io.debezium.storage.kafka.history.KafkaSchemaHistory"),
            ("schema.history.internal.kafka.topic", "h"),
            ("schema.history.internal.store.only.captured.tables.ddl", "true"),
            ("limit", "3"),
        ]);
        let (of_old, of_new) = (TABLE.validate(&old), TABLE.validate(&new));
        assert_eq!(of_old.messages(), [""; 0]);
        for def in TABLE.options {
            assert_eq!(of_old.settings.get(def.name), of_new.settings.get(def.name), "{}", def.name);
        }
        assert_eq!(canonical(&old, &TABLE).properties.get("schema.history.internal.kafka.topic"), Some("h"));
        // One line for each old key, and one for the old value.
        assert_eq!(of_old.warnings.len(), 9, "{:?}", of_old.warnings);
        assert!(of_old.warnings.contains(&"'table.whitelist' is an older name of 'table.include.list'".to_owned()));
        assert!(of_new.warnings.is_empty());
        assert_eq!(of_old.unknown_keys().count(), 0);
    }

    #[test]
    fn the_newer_name_wins_and_a_difference_is_said() {
        let both = Properties::from([("topic.prefix", "new"), ("database.server.name", "old")]);
        let result = canonical(&both, &TABLE);
        assert_eq!(result.properties, Properties::from([("topic.prefix", "new")]));
        assert_eq!(result.warnings.len(), 1);
        assert!(result.warnings[0].contains("differ: 'topic.prefix' counts"), "{:?}", result.warnings);

        let same = Properties::from([("limit", "1"), ("max", "1"), ("most", "2")]);
        let result = canonical(&same, &TABLE);
        assert_eq!(result.properties, Properties::from([("limit", "1")]));
        assert_eq!(result.warnings.len(), 2);
    }

    #[test]
    fn a_table_that_does_not_know_the_new_name_renames_nothing() {
        const OTHER: OptionTable = OptionTable {
            title: "t",
            options: &[OptionDef::new("table.whitelist", OptionKind::List, "")],
            open_prefixes: &[],
            cross_checks: &[],
        };
        let given = Properties::from([("table.whitelist", "a"), ("database.history.kafka.topic", "h")]);
        let result = canonical(&given, &OTHER);
        assert_eq!(result.properties, given);
        assert!(result.warnings.is_empty() && result.old_names.is_empty());
    }
}
