#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::option::{Importance, OptionKind, Rule};
use crate::{config_keys, connector, validate_reply};

fn queue_above_batch(s: &Settings) -> Vec<(&'static str, String)> {
    match s.int("max.queue.size") > s.int("max.batch.size") {
        true => vec![],
        false => vec![("max.queue.size", "Must be larger than the maximum batch size".to_owned())],
    }
}

fn not_both(s: &Settings) -> Vec<(&'static str, String)> {
    match s.list("include").is_empty() || s.list("exclude").is_empty() {
        true => vec![],
        false => vec![("exclude", "\"include\" is already specified".to_owned())],
    }
}

fn uri(text: &str) -> Result<(), String> {
    if text.starts_with("mongodb://") { Ok(()) } else { Err(format!("Invalid connection string {text}")) }
}

const TABLE: OptionTable = OptionTable {
    title: "Test",
    options: &[
        OptionDef::new("topic.prefix", OptionKind::String, "doc")
            .required()
            .check(crate::rule::topic_name_chars)
            .importance(Importance::High)
            .group("MongoDB")
            .display("Topic prefix"),
        OptionDef::new("mongodb.connection.string", OptionKind::String, "doc")
            .required()
            .missing_text("Missing connection string")
            .check(uri)
            .group("MongoDB"),
        OptionDef::new("max.batch.size", OptionKind::Int, "doc").default("2048").at_least(1),
        OptionDef::new("max.queue.size", OptionKind::Int, "doc")
            .default("8192")
            .at_least(1)
            .range_text("A positive queue size is required"),
        OptionDef::new("poll.interval.ms", OptionKind::Long, "doc").default("500").at_least(1),
        OptionDef::new("snapshot.fetch.size", OptionKind::Int, "doc").at_least(0),
        OptionDef::new("snapshot.mode", OptionKind::String, "doc")
            .default("initial")
            .one_of(&["always", "initial", "no_data"])
            .value_aliases(crate::alias::SNAPSHOT_MODES),
        OptionDef::new("tombstones.on.delete", OptionKind::Boolean, "doc").default("true"),
        OptionDef::new("skipped.operations", OptionKind::List, "doc")
            .default("t")
            .one_of(&["c", "u", "d", "t", "none"]),
        OptionDef::new("include", OptionKind::List, "doc").rule(Rule::Regexes),
        OptionDef::new("exclude", OptionKind::List, "doc").rule(Rule::Regexes).invisible(),
        OptionDef::new("plain.list", OptionKind::List, "doc"),
        OptionDef::new("ratio", OptionKind::Double, "doc").default("0.5").rule(Rule::Range(Some(0), Some(1))),
        OptionDef::new("small", OptionKind::Short, "doc").unpublished(),
        OptionDef::new("mongodb.password", OptionKind::Password, "doc")
            .check(|p| if p.contains(' ') { Err(format!("{p} has a blank")) } else { Ok(()) }),
        OptionDef::new("query.fetch.size", OptionKind::Int, "doc").default("0").inert("documents are read in batches"),
        OptionDef::new("mongodb.hosts", OptionKind::String, "doc")
            .refused("use mongodb.connection.string")
            .unpublished(),
    ],
    open_prefixes: &["signal.consumer."],
    cross_checks: &[queue_above_batch, not_both],
};

fn good() -> Properties {
    Properties::from([("topic.prefix", "p"), ("mongodb.connection.string", "mongodb://h")])
}

fn with(pairs: &[(&str, &str)]) -> Validation {
    let mut properties = good();
    for (k, v) in pairs {
        properties.set(*k, *v);
    }
    TABLE.validate(&properties)
}

fn without(key: &str) -> Validation {
    let mut properties = good();
    properties.remove(key);
    TABLE.validate(&properties)
}

#[test]
fn defaults_and_types() {
    let v = TABLE.validate(&good());
    assert!(v.is_valid(), "{:?}", v.messages());
    assert_eq!(v.settings.text("topic.prefix"), Some("p"));
    assert_eq!(v.settings.int("max.batch.size"), 2048);
    assert_eq!(v.settings.millis("poll.interval.ms"), std::time::Duration::from_millis(500));
    assert_eq!(v.settings.opt_int("snapshot.fetch.size"), None);
    assert!(v.settings.bool("tombstones.on.delete"));
    assert_eq!(v.settings.double("ratio"), Some(0.5));
    assert_eq!(v.settings.list("skipped.operations"), ["t"]);
    assert!(v.settings.secret("mongodb.password").is_none());
    assert!(!v.settings.is_set("include"));
}

#[test]
fn cfg_04_values_are_read_with_tolerance() {
    let v = with(&[
        ("snapshot.mode", " Initial "),
        ("tombstones.on.delete", " False"),
        ("max.batch.size", " 17 "),
        ("skipped.operations", "C, none,"),
        ("include", "a\\,b ,\n c,"),
        ("plain.list", "a\\,b ,\n c,"),
        ("ratio", "1"),
    ]);
    assert!(v.is_valid(), "{:?}", v.messages());
    assert_eq!(v.settings.text("snapshot.mode"), Some("initial"));
    assert!(!v.settings.bool("tombstones.on.delete"));
    assert_eq!(v.settings.int("max.batch.size"), 17);
    assert_eq!(v.settings.list("skipped.operations"), ["c", "none"]);
    assert_eq!(v.settings.list("include"), ["a\\,b", "c"]);
    assert_eq!(v.settings.list("plain.list"), ["a,b", "c"]);
    assert_eq!(v.settings.double("ratio"), Some(1.0));
    let wrong = with(&[("snapshot.mode", "sometimes")]);
    assert_eq!(
        wrong.messages(),
        ["The 'snapshot.mode' value is invalid: Value must be one of always, initial, no_data"]
    );
}

#[test]
fn messages_of_connector_options_have_the_known_texts() {
    let one = |v: Validation, name: &str, texts: &[&str]| {
        let expected: Vec<String> = texts.iter().map(|t| format!("The '{name}' value is invalid: {t}")).collect();
        assert_eq!(v.messages(), expected, "{name}");
        assert_eq!(v.option(name).unwrap().errors, expected);
        assert_eq!(v.error_count(), texts.len());
    };
    one(without("topic.prefix"), "topic.prefix", &["A value is required"]);
    one(with(&[("topic.prefix", " ")]), "topic.prefix", &["A value is required"]);
    one(
        with(&[("topic.prefix", "a b")]),
        "topic.prefix",
        &["a b has invalid format (only the underscore, hyphen, dot and alphanumeric characters are allowed)"],
    );
    one(without("mongodb.connection.string"), "mongodb.connection.string", &["Missing connection string"]);
    one(with(&[("mongodb.connection.string", "")]), "mongodb.connection.string", &["Invalid connection string "]);
    one(
        with(&[("max.batch.size", "abc")]),
        "max.batch.size",
        &["An integer is expected", "A positive, non-zero integer value is expected"],
    );
    one(with(&[("poll.interval.ms", "-1")]), "poll.interval.ms", &["A positive, non-zero integer value is expected"]);
    one(
        with(&[("snapshot.fetch.size", "x")]),
        "snapshot.fetch.size",
        &["An integer is expected", "An non-negative integer is expected"],
    );
    // Both at once: the single value is wrong, and so is its relation to the other one's default.
    one(
        with(&[("max.queue.size", "0")]),
        "max.queue.size",
        &["A positive queue size is required", "Must be larger than the maximum batch size"],
    );
    // Whatever an option checks by itself comes on top, even if it is the same.
    const TWICE: OptionTable = OptionTable {
        title: "t",
        options: &[OptionDef::new("b", OptionKind::Boolean, "doc").default("true").check(crate::rule::boolean)],
        open_prefixes: &[],
        cross_checks: &[],
    };
    assert_eq!(
        TWICE.validate(&Properties::from([("b", "maybe")])).messages(),
        ["The 'b' value is invalid: Either 'true' or 'false' is expected"; 2]
    );
    assert!(TWICE.validate(&Properties::from([("b", " TRUE")])).is_valid());
    one(with(&[("tombstones.on.delete", "1")]), "tombstones.on.delete", &["Either 'true' or 'false' is expected"]);
    one(with(&[("skipped.operations", "c,x")]), "skipped.operations", &["Value must be one of c, u, d, t, none"]);
    one(with(&[("ratio", "1.5")]), "ratio", &["Value must be between 0 and 1"]);
    one(with(&[("ratio", "NaN")]), "ratio", &["A double value is expected", "Value must be between 0 and 1"]);
    one(with(&[("small", "40000")]), "small", &["A short value is expected"]);
    one(
        with(&[("max.batch.size", "2147483648")]),
        "max.batch.size",
        &["An integer is expected", "A positive, non-zero integer value is expected"],
    );
    one(with(&[("mongodb.hosts", "h")]), "mongodb.hosts", &["use mongodb.connection.string"]);
}

#[test]
fn cfg_02_and_cfg_05_rules_over_several_options() {
    let v = with(&[("include", "a"), ("exclude", "b")]);
    assert_eq!(v.messages(), ["The 'exclude' value is invalid: \"include\" is already specified"]);
    let v = with(&[("include", "a, [b")]);
    assert!(v.messages()[0].starts_with(
        "The 'include' value is invalid: A comma-separated list of valid regular expressions is expected, but"
    ));
    assert!(v.messages()[0].contains("[b"));
    let v = with(&[("max.queue.size", "10"), ("max.batch.size", "10")]);
    assert_eq!(v.messages(), ["The 'max.queue.size' value is invalid: Must be larger than the maximum batch size"]);
    assert!(with(&[("max.queue.size", "11"), ("max.batch.size", "10")]).is_valid());
}

#[test]
fn cfg_03_and_run_06_no_secret_is_shown() {
    let v = with(&[("mongodb.password", "s3cret word"), ("mongodb.connection.string", "x://u:s3cret@h")]);
    assert_eq!(
        v.messages(),
        [
            "The 'mongodb.connection.string' value is invalid: Invalid connection string [hidden]",
            "The 'mongodb.password' value is invalid: [hidden] has a blank",
        ]
    );
    assert_eq!(v.option("mongodb.password").unwrap().value.as_deref(), Some("[hidden]"));
    assert_eq!(v.option("mongodb.connection.string").unwrap().value.as_deref(), Some("[hidden]"));
    assert_eq!(v.settings.secret("mongodb.password").unwrap().reveal(), "s3cret word");
    for shown in [format!("{v:?}"), validate_reply(&v, "x").to_string()] {
        // The settings hold connection strings as text; their owner must not print them.
        let shown = shown.replace("Text(\"x://u:s3cret@h\")", "");
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}

#[test]
fn inert_options_and_old_values_are_warned_about() {
    let v = with(&[("query.fetch.size", "5"), ("snapshot.mode", "SCHEMA_only")]);
    assert!(v.is_valid());
    assert_eq!(v.settings.text("snapshot.mode"), Some("no_data"));
    assert_eq!(
        v.warnings,
        [
            "value 'schema_only' of 'snapshot.mode' is an older name of 'no_data'",
            "option 'query.fetch.size' has no effect: documents are read in batches",
        ]
    );
    assert!(TABLE.validate(&good()).warnings.is_empty());
}

#[test]
fn a_key_is_unknown_only_if_no_table_knows_it() {
    let mut properties = good();
    for (k, v) in [
        ("name", "c"),
        ("connector.class", "x"),
        ("database.server.name", "p"),
        ("key.converter.flag", "x"),
        ("key.converter.flga", "x"),
        ("transforms.t.whatever", "x"),
        ("signal.consumer.group", "x"),
        ("max.bacth.size", "1"),
        ("entirely.different", "x"),
    ] {
        properties.set(k, v);
    }
    const CONVERTER: OptionTable = OptionTable {
        title: "Converter",
        options: &[OptionDef::new("flag", OptionKind::String, "").framework()],
        open_prefixes: &[],
        cross_checks: &[],
    };
    let merged = || {
        TABLE
            .validate(&properties)
            .merge(CONVERTER.validate_under("key.converter.", &properties))
            .merge(connector::validate(&properties))
    };
    let mut v = merged();
    assert_eq!(v.unknown_keys().collect::<Vec<_>>(), ["entirely.different", "key.converter.flga", "max.bacth.size"]);
    v.conclude(false);
    assert!(v.is_valid(), "{:?}", v.messages());
    assert!(v.warnings.contains(&"'max.bacth.size' is no known option; did you mean 'max.batch.size'?".to_owned()));
    assert!(
        v.warnings.contains(&"'key.converter.flga' is no known option; did you mean 'key.converter.flag'?".to_owned())
    );
    assert!(v.warnings.contains(&"'entirely.different' is no known option and has no effect".to_owned()));

    let mut strict = merged();
    strict.conclude(true);
    assert_eq!(strict.error_count(), 3);
    assert_eq!(strict.option(connector::STRICT).unwrap().errors.len(), 3);
    assert!(connector::is_strict(&Properties::from([(connector::STRICT, "TRUE")])));
    assert!(!connector::is_strict(&properties));
}

#[test]
fn a_table_under_a_prefix() {
    let properties = Properties::from([("x.topic.prefix", "a b"), ("x.max.batch.size", "9"), ("max.batch.size", "8")]);
    let v = TABLE.validate_under("x.", &properties);
    assert_eq!(v.settings.int("max.batch.size"), 9);
    assert!(v.messages()[0].starts_with("The 'x.topic.prefix' value is invalid: a b has"));
    assert!(v.messages()[1].starts_with("The 'x.mongodb.connection.string' value is invalid: Missing"));
    let outer = TABLE.validate(&properties).merge(v);
    assert_eq!(outer.settings.int("max.batch.size"), 8);
}

#[test]
fn merging_keeps_rows_single_and_errors_all() {
    let first = without("topic.prefix");
    let mut second = without("topic.prefix");
    second.invalid("topic.prefix", "other");
    let merged = first.merge(second);
    assert_eq!(merged.options.len(), TABLE.options.len());
    assert_eq!(merged.error_count(), 2);
}

#[test]
fn framework_messages() {
    let base = Properties::from([("name", "c"), ("connector.class", "x")]);
    let one = |key: &str, value: &str| {
        let mut p = base.clone();
        p.set(key, value);
        connector::validate(&p).messages()
    };
    assert!(connector::validate(&base).is_valid());
    assert_eq!(one("tasks.max", "0"), ["Invalid value 0 for configuration tasks.max: Value must be at least 1"]);
    assert_eq!(one("tasks.max", "x"), ["Invalid value x for configuration tasks.max: Not a number of type INT"]);
    assert_eq!(one("name", ""), ["Invalid value  for configuration name: String may not be empty"]);
    assert!(one("name", "a\u{1}")[0].ends_with("had the following ASCII chars: 1"));
    assert_eq!(
        one("key.converter", "no.such.Class"),
        ["Invalid value no.such.Class for configuration key.converter: Class no.such.Class could not be found."]
    );
    assert_eq!(
        one("errors.log.enable", "maybe"),
        ["Invalid value maybe for configuration errors.log.enable: Expected value to be either true or false"]
    );
    assert_eq!(
        one("errors.tolerance", "some"),
        ["Invalid value some for configuration errors.tolerance: String must be one of: none, all"]
    );
    assert_eq!(
        one("transforms", "a, b, a"),
        ["Invalid value [a, b, a] for configuration transforms: Duplicate alias provided: a"]
    );
    let many = |count: usize| (0..count).map(|n| format!("t{n}")).collect::<Vec<_>>().join(",");
    assert_eq!(one("transforms", &many(1000)), [""; 0]);
    assert!(one("predicates", &many(1001))[0].ends_with("No more than 1000 names are possible, but there are 1001"));
    assert_eq!(
        connector::validate(&Properties::new()).messages(),
        [
            "Missing required configuration \"name\" which has no default value.",
            "Missing required configuration \"connector.class\" which has no default value.",
        ]
    );
    let mut p = base;
    p.set("value.converter", "JsonConverter");
    p.set("header.converter", "Simple");
    let v = connector::validate(&p);
    assert_eq!(v.settings.text("value.converter"), Some("org.apache.kafka.connect.json.JsonConverter"));
    assert_eq!(v.settings.text("header.converter"), Some("org.apache.kafka.connect.storage.SimpleHeaderConverter"));
}

#[test]
fn topic_creation_groups() {
    let mut p = Properties::from([
        ("name", "c"),
        ("connector.class", "x"),
        ("topic.creation.groups", "logs, default"),
        ("topic.creation.default.partitions", "0"),
        ("topic.creation.logs.cleanup.policy", "compact"),
    ]);
    let v = connector::validate(&p);
    assert_eq!(
        v.messages(),
        [
            "Missing required configuration \"topic.creation.default.replication.factor\" which has no default value."
                .to_owned(),
            "Invalid value 0 for configuration topic.creation.default.partitions: Partition count must be positive, or -1 to use the broker's default".to_owned(),
            "Missing required configuration \"topic.creation.logs.include\" which has no default value.".to_owned(),
        ]
    );
    assert_eq!(v.unknown_keys().count(), 0);
    for (k, value) in [
        ("topic.creation.default.partitions", "-1"),
        ("topic.creation.default.replication.factor", "-1"),
        ("topic.creation.logs.include", "log.*"),
    ] {
        p.set(k, value);
    }
    assert!(connector::validate(&p).is_valid());
    assert_eq!(connector::topic_groups(&p), ["logs"]);
    p.set("topic.creation.logs.include", "(");
    assert_eq!(connector::validate(&p).error_count(), 1);
    p.set("topic.creation.groups", "a,a");
    assert!(!connector::validate(&p).is_valid());
    // They are refused, and nothing is done for each of them.
    p.set("topic.creation.groups", (0..300_000).map(|n| format!("g{n},")).collect::<String>());
    let v = connector::validate(&p);
    assert!(v.messages().iter().any(|m| m.ends_with("No more than 1000 names are possible, but there are 300000")));
    assert_eq!(connector::topic_groups(&p).len(), connector::MOST_NAMES);
}

/// A key of the size of a request is looked up among the known ones like any other.
#[test]
fn long_unknown_keys() {
    let long = "max.batch.size".repeat(200_000);
    let mut v = TABLE.validate(&Properties::from([(long.as_str(), "1"), ("MAX.batch.siz", "1")]));
    v.conclude(false);
    assert!(v.warnings.contains(&format!("'{long}' is no known option and has no effect")));
    assert!(v.warnings.contains(&"'MAX.batch.siz' is no known option; did you mean 'max.batch.size'?".to_owned()));
}

/// Recorded rows, as text.
fn recorded() -> Vec<Vec<String>> {
    include_str!("fixtures/connect-framework.tsv")
        .lines()
        .filter(|l| !l.starts_with('#'))
        .map(|l| l.split('\t').map(str::to_owned).collect())
        .collect()
}

fn row_of(definition: &Value) -> Vec<String> {
    ["name", "type", "required", "default_value", "importance", "group", "order_in_group", "width", "display_name"]
        .iter()
        .map(|key| match &definition[key] {
            Value::Null => "-".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
        .collect()
}

#[test]
fn framework_options_are_published_as_kafka_connect_does() {
    let keys = config_keys(&[&connector::FRAMEWORK], &[]);
    let rows: Vec<Vec<String>> = keys.as_array().unwrap().iter().map(row_of).collect();
    let recorded = recorded();
    assert_eq!(rows[..recorded.len()], recorded[..]);
    let prefixes = ["thalweg.", "errors.deadletterqueue."];
    let own =
        |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix)) || name == "errors.retry.delay.initial.ms";
    assert!(rows[recorded.len()..].iter().all(|row| own(&row[0])));
    let with_default = config_keys(&[&connector::FRAMEWORK], &[("connector.plugin.version", "1.2")]);
    assert_eq!(with_default[2]["default_value"], "1.2");
}

#[test]
fn the_version_of_a_plugin_is_default_value_and_recommendation() {
    let mut v = connector::validate(&good());
    v.only_value("key.converter.plugin.version", "4.3.0");
    let row = v.option("key.converter.plugin.version").unwrap();
    assert_eq!((row.default.as_deref(), row.value.as_deref()), (Some("4.3.0"), Some("4.3.0")));
    assert_eq!(row.recommended, ["4.3.0"]);
}

#[test]
fn a_default_that_another_option_decides_leaves_what_was_given() {
    for (given, seen) in [(None, "all"), (Some("none"), "none"), (Some("all"), "all")] {
        let mut p = Properties::from([("name", "c"), ("connector.class", "MongoDb")]);
        if let Some(given) = given {
            p.set("errors.tolerance", given);
        }
        let mut v = connector::validate(&p);
        v.default_to("errors.tolerance", "all");
        let row = v.option("errors.tolerance").unwrap();
        assert_eq!((row.default.as_deref(), row.value.as_deref()), (Some("all"), Some(seen)));
        assert_eq!(v.settings.text("errors.tolerance"), Some(seen));
    }
}

#[test]
fn the_validate_reply_has_the_recorded_shape() {
    let mut p = good();
    for (k, v) in [("name", "c"), ("connector.class", "MongoDb"), ("poll.interval.ms", "50"), ("tasks.max", "0")] {
        p.set(k, v);
    }
    let mut v = connector::validate(&p).merge(TABLE.validate(&p));
    v.default_to("key.converter", "org.apache.kafka.connect.json.JsonConverter");
    let reply = validate_reply(&v, "MongoDb");
    assert_eq!(reply.as_object().unwrap().keys().collect::<Vec<_>>(), ["name", "error_count", "groups", "configs"]);
    assert_eq!(reply["name"], "MongoDb");
    assert_eq!(reply["error_count"], 1);
    assert_eq!(
        reply["groups"],
        json!([
            "Common",
            "Transforms",
            "Predicates",
            "Error Handling",
            "Topic Creation",
            "Exactly Once Support",
            "offsets.topic",
            "MongoDB",
            "Connector"
        ])
    );
    let rows = reply["configs"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|r| r["definition"]["name"] == name).unwrap();
    assert_eq!(
        serde_json::to_string(&row("topic.prefix")).unwrap(),
        r#"{"definition":{"name":"topic.prefix","type":"STRING","required":false,"default_value":null,"importance":"HIGH","documentation":"doc","group":"MongoDB","order_in_group":1,"width":"MEDIUM","display_name":"Topic prefix","dependents":[]},"value":{"name":"topic.prefix","value":null,"recommended_values":[],"errors":[],"visible":true}}"#
    );
    assert_eq!(row("tasks.max")["value"]["value"], "0");
    assert_eq!(
        row("tasks.max")["value"]["errors"],
        json!(["Invalid value 0 for configuration tasks.max: Value must be at least 1"])
    );
    assert_eq!(row("errors.tolerance")["value"]["recommended_values"], json!([]));
    assert_eq!(row("transforms")["value"]["value"], "");
    assert_eq!(row("key.converter")["definition"]["default_value"], "org.apache.kafka.connect.json.JsonConverter");
    assert_eq!(row("key.converter")["value"]["value"], "org.apache.kafka.connect.json.JsonConverter");
    assert_eq!(v.settings.text("key.converter"), Some("org.apache.kafka.connect.json.JsonConverter"));
    assert_eq!(row("snapshot.mode")["value"]["recommended_values"], json!(["always", "initial", "no_data"]));
    assert_eq!(row("exclude")["value"]["visible"], false);
    assert!(!rows.iter().any(|r| r["definition"]["name"] == "mongodb.hosts"));
    let refused = validate_reply(&with(&[("mongodb.hosts", "h")]), "x");
    assert_eq!(refused["error_count"], 1);
    assert!(refused.to_string().contains("use mongodb.connection.string"));
}

#[test]
fn options_of_framework_wording_without_group() {
    const TRANSFORM: OptionTable = OptionTable {
        title: "RegexRouter",
        options: &[OptionDef::new("regex", OptionKind::String, "").required().framework().group("").display("regex")],
        open_prefixes: &[],
        cross_checks: &[],
    };
    let v = TRANSFORM.validate_under("transforms.t.", &Properties::new());
    assert_eq!(v.messages(), ["Missing required configuration \"transforms.t.regex\" which has no default value."]);
    let reply = validate_reply(&v, "x");
    assert_eq!(reply["groups"], json!([]));
    assert_eq!(reply["configs"][0]["definition"]["group"], Value::Null);
    assert_eq!(reply["configs"][0]["definition"]["order_in_group"], -1);
    assert_eq!(reply["configs"][0]["definition"]["required"], true);
}

#[test]
fn class_names() {
    let classes = ["a.JsonConverter", "b.JsonConverter", "c.AvroConverter", "d.SimpleHeaderConverter", "e.X$Value"];
    let called = |name| crate::value::class_called(&classes, name);
    assert_eq!(called("b.JsonConverter"), Some("b.JsonConverter"));
    assert_eq!(called("JsonConverter"), None);
    assert_eq!(called("Avro"), Some("c.AvroConverter"));
    assert_eq!(called("Simple"), Some("d.SimpleHeaderConverter"));
    assert_eq!(called("X$Value"), Some("e.X$Value"));
    assert_eq!(called(""), None);
}

#[test]
fn distances() {
    assert_eq!(distance("", "abc"), 3);
    assert_eq!(distance("kitten", "sitting"), 3);
    assert_eq!(distance("bacth", "batch"), 1);
    assert_eq!(distance("A.b", "a.B"), 0);
}

proptest! {
    #[test]
    fn distance_is_symmetric_and_bounded(a in "[a-c.]{0,8}", b in "[a-c.]{0,8}") {
        let d = distance(&a, &b);
        prop_assert_eq!(d, distance(&b, &a));
        prop_assert_eq!(d == 0, a == b);
        prop_assert!(d <= a.len().max(b.len()));
        prop_assert!(d >= a.len().abs_diff(b.len()));
    }

    #[test]
    fn any_value_yields_settings_or_an_error(index in 0..TABLE.options.len(), value in "\\PC{0,12}|-?[0-9]{1,20}") {
        let def = &TABLE.options[index];
        let mut p = good();
        p.set(def.name, value);
        let v = TABLE.validate(&p);
        // Every option can be asked for, whatever was given, and every complaint is at some row.
        for def in TABLE.options {
            let _ = v.settings.get(def.name);
        }
        prop_assert_eq!(v.error_count(), v.messages().len());
        prop_assert_eq!(v.options.len(), TABLE.options.len());
    }

    #[test]
    fn numbers_in_range_are_taken_as_they_are(n in 1..=i32::MAX) {
        let v = with(&[("max.batch.size", &n.to_string()), ("max.queue.size", &i32::MAX.to_string())]);
        prop_assert_eq!(v.settings.int("max.batch.size"), i64::from(n));
        prop_assert_eq!(v.is_valid(), n < i32::MAX);
    }
}

#[test]
fn an_older_option_is_named_once_with_its_successor() {
    const TABLE: OptionTable = OptionTable {
        title: "t",
        options: &[
            OptionDef::new("mode", OptionKind::String, "").default("a"),
            OptionDef::new("drop", OptionKind::Boolean, "").older("mode"),
        ],
        open_prefixes: &[],
        cross_checks: &[],
    };
    let v = TABLE.validate_under("p.", &Properties::from([("p.drop", "true")]));
    assert_eq!(v.warnings, ["option 'p.drop' is an older one; 'p.mode' says the same today"]);
    assert!(v.is_valid() && v.settings.bool("drop"));
    assert_eq!((v.settings.is_given("drop"), v.settings.is_given("mode")), (true, false));
    assert_eq!(v.settings.text("mode"), Some("a"));
}
