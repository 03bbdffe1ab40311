//! The options of a connector that has all of these.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use thalweg_config::debezium::{DEBEZIUM_COMMON, compose, composed_len};
use thalweg_config::{OptionTable, Properties};

use super::super::column_mappers::{ColumnMappers, MAPPER_PREFIXES};
use super::super::history::{Captured, HISTORY, HISTORY_CHECKS, HISTORY_PREFIXES, HistoryPlace};
use super::super::modes::{BinaryMode, DecimalMode, TimePrecision, ValueModes};
use super::super::table_filter::NameLists;
use super::*;

const LISTS: [OptionDef; composed_len(DATABASE_LISTS, RELATIONAL)] = compose(DATABASE_LISTS, RELATIONAL);
const OWN: [OptionDef; composed_len(&LISTS, HISTORY)] = compose(&LISTS, HISTORY);
static ALL: [OptionDef; composed_len(&OWN, DEBEZIUM_COMMON)] = compose(&OWN, DEBEZIUM_COMMON);
static TABLE: OptionTable = OptionTable {
    title: "t",
    options: &ALL,
    open_prefixes: &[
        OPEN_PREFIXES[0],
        OPEN_PREFIXES[1],
        OPEN_PREFIXES[2],
        OPEN_PREFIXES[3],
        HISTORY_PREFIXES[0],
        HISTORY_PREFIXES[1],
    ],
    cross_checks: &[RELATIONAL_CHECKS[0], DATABASE_LIST_CHECKS[0], HISTORY_CHECKS[0]],
};

fn properties(more: &[(&str, &str)]) -> Properties {
    let base = [
        ("topic.prefix", "s1"),
        ("database.hostname", "h"),
        ("schema.history.internal.kafka.topic", "hist.s1"),
        ("schema.history.internal.kafka.bootstrap.servers", "k:9092"),
    ];
    base.iter().chain(more).map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn messages(more: &[(&str, &str)]) -> Vec<String> {
    let properties = properties(more);
    let mut validation = TABLE.validate(&properties);
    ColumnMappers::validate(&properties, &mut validation);
    validation.conclude(true);
    validation.messages()
}

fn settings(more: &[(&str, &str)]) -> Settings {
    let validation = TABLE.validate(&properties(more));
    assert_eq!(validation.messages(), [""; 0]);
    validation.settings
}

#[test]
fn every_option_has_a_place_and_a_text() {
    let mut names: Vec<&str> = ALL.iter().map(|option| option.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ALL.len());
    assert!(ALL.iter().all(|option| option.doc.ends_with('.')));
    assert!(MAPPER_PREFIXES.iter().all(|prefix| OPEN_PREFIXES.contains(prefix)));
    assert_eq!(messages(&[]), [""; 0]);
}

#[test]
fn defaults_are_debeziums() {
    let settings = settings(&[]);
    assert_eq!(ValueModes::from_settings(&settings), ValueModes::default());
    for (name, text) in [
        ("decimal.handling.mode", "precise"),
        ("time.precision.mode", "adaptive"),
        ("binary.handling.mode", "bytes"),
        ("event.converting.failure.handling.mode", "warn"),
        ("unavailable.value.placeholder", "__debezium_unavailable_value"),
        ("snapshot.tables.order.by.row.count", "disabled"),
    ] {
        assert_eq!(settings.text(name), Some(text));
    }
    for (name, on) in [
        ("include.schema.changes", true),
        ("include.schema.comments", false),
        ("table.ignore.builtin", true),
        ("skip.messages.without.change", false),
    ] {
        assert_eq!(settings.get(name), &thalweg_config::Parsed::Bool(on), "{name}");
    }
    assert_eq!(
        (settings.int("snapshot.lock.timeout.ms"), settings.int("database.query.timeout.ms")),
        (10_000, 600_000)
    );
    assert_eq!(
        (HistoryPlace::from_settings(&settings), Captured::from_settings(&settings)),
        (HistoryPlace::Kafka, Captured::All)
    );
}

#[test]
fn cfg_04_modes_in_any_case() {
    let settings = settings(&[
        ("decimal.handling.mode", "STRING"),
        ("time.precision.mode", " Nanoseconds "),
        ("binary.handling.mode", "Base64-URL-safe"),
    ]);
    let expected = ValueModes {
        decimal: DecimalMode::String,
        time: TimePrecision::Nanoseconds,
        binary: BinaryMode::Base64UrlSafe,
    };
    assert_eq!(ValueModes::from_settings(&settings), expected);
    assert_eq!(
        messages(&[("decimal.handling.mode", "exact")]),
        ["The 'decimal.handling.mode' value is invalid: Value must be one of precise, string, double"]
    );
    for (at, mode) in TIME_PRECISIONS.iter().enumerate() {
        let settings = self::settings(&[("time.precision.mode", mode)]);
        assert_eq!(ValueModes::from_settings(&settings).time == TimePrecision::Adaptive, at == 0, "{mode}");
    }
}

#[test]
fn cfg_02_lists_that_exclude_each_other() {
    for kind in ["database", "schema", "table", "column"] {
        let (include, exclude) = (format!("{kind}.include.list"), format!("{kind}.exclude.list"));
        let expected = format!("The '{exclude}' value is invalid: \"{include}\" is already specified");
        assert_eq!(messages(&[(&include, "a"), (&exclude, "b")]), [expected]);
    }
    assert!(messages(&[("table.include.list", "[a")])[0].contains("Unclosed character class"));
}

#[test]
fn cfg_01_names_of_both_eras() {
    let old = [("table.whitelist", "dbo.a"), ("column.blacklist", "dbo.a.x, dbo.a.y")];
    let settings = settings(&old);
    assert_eq!(NameLists::of(&settings, "table").include, ["dbo.a"]);
    assert_eq!(NameLists::of(&settings, "column").exclude, ["dbo.a.x", "dbo.a.y"]);
    let history = Properties::from([
        ("topic.prefix", "s1"),
        ("database.hostname", "h"),
        ("database.history", "io.debezium.relational.history.FileDatabaseHistory"),
        ("database.history.file.filename", "/x"),
        ("database.history.store.only.monitored.tables.ddl", "true"),
    ]);
    let validation = TABLE.validate(&history);
    assert_eq!(validation.messages(), [""; 0]);
    assert_eq!(HistoryPlace::from_settings(&validation.settings), HistoryPlace::File);
    assert_eq!(Captured::from_settings(&validation.settings), Captured::Tables);
}

#[test]
fn single_values_are_checked() {
    for (name, value, text) in [
        ("message.key.columns", "a", "a has an invalid format"),
        ("unavailable.value.placeholder", "hex:1", "pairs of hexadecimal digits are expected behind hex:"),
        ("column.mask.with.x.chars", "a", "column.mask.with.<n>.chars is expected"),
        ("column.mask.with.3.chars", "[a", "A comma-separated list of valid regular expressions is expected"),
        ("column.propagate.source.type", "[a", "A comma-separated list of valid regular expressions is expected"),
        ("database.port", "70000", ""),
        ("include.schema.changes", "maybe", "Either 'true' or 'false' is expected"),
    ] {
        let messages = messages(&[(name, value)]);
        let start = format!("The '{name}' value is invalid: {text}");
        assert!(messages.first().is_some_and(|message| message.starts_with(&start)), "{messages:?}");
    }
    let fine = [
        ("column.mask.hash.v2.SHA-256.with.salt.x.y", "dbo.a.b"),
        ("column.truncate.to.20.chars", "dbo.a.c"),
        ("snapshot.select.statement.overrides.dbo.a", "SELECT 1"),
        ("schema.history.internal.consumer.security.protocol", "SSL"),
    ];
    assert_eq!(messages(&fine), [""; 0]);
    assert!(messages(&[("column.mask.wit.3.chars", "a")])[0].contains("no known option"));
}

#[test]
fn a_history_needs_a_place() {
    let place = |class: &'static str| {
        let properties =
            Properties::from([("topic.prefix", "s"), ("database.hostname", "h"), ("schema.history.internal", class)]);
        TABLE.validate(&properties).messages()
    };
    let required = |name: &str| format!("The 'schema.history.internal.{name}' value is invalid: A value is required");
    assert_eq!(
        place("io.debezium.storage.kafka.history.KafkaSchemaHistory"),
        [required("kafka.topic"), required("kafka.bootstrap.servers")]
    );
    let unset = |topic: &[(&str, &str)]| {
        let base = [("topic.prefix", "s"), ("database.hostname", "h")];
        let properties = base.iter().chain(topic).map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let validation = TABLE.validate(&properties);
        (HistoryPlace::from_settings(&validation.settings), validation.messages())
    };
    assert_eq!(unset(&[]), (HistoryPlace::Replicated, Vec::new()));
    let (kafka, missing) = unset(&[("schema.history.internal.kafka.topic", "hist")]);
    assert_eq!((kafka, missing), (HistoryPlace::Kafka, vec![required("kafka.bootstrap.servers")]));
    assert_eq!(place("FileSchemaHistory"), [required("file.filename")]);
    assert_eq!(place("MemorySchemaHistory"), [""; 0]);
    assert_eq!(place("thalweg.ReplicatedSchemaHistory"), [""; 0]);
    assert_eq!(place("io.debezium.storage.jdbc.history.JdbcSchemaHistory").len(), 1);
}
