//! The options that every source connector has, whatever it reads: Kafka Connect's framework keys
//! and our own (`thalweg.`).
//!
//! Groups, order and widths are those that Kafka Connect 4.3 publishes; our own options are in its
//! groups, because tools compare the list of groups. It does not check that a converter or
//! transformation can be built; their tables are with their code.

use crate::option::{Importance, OptionDef, OptionKind, OptionTable, Rule, Width};
use crate::properties::Properties;
use crate::rule::split_plain_list;
use crate::validate::Validation;

/// Unknown keys are errors.
pub const STRICT: &str = "thalweg.config.strict";

/// Most names in a list that brings options for each of its names (`transforms`, `predicates`,
/// `topic.creation.groups`): their rows are compared with each other, which a request of some megabytes
/// could drag out for hours.
pub const MOST_NAMES: usize = 1000;

/// Converters for keys and values that this build knows.
pub const CONVERTERS: &[&str] = &[
    "io.confluent.connect.avro.AvroConverter",
    "org.apache.kafka.connect.converters.BooleanConverter",
    "org.apache.kafka.connect.converters.ByteArrayConverter",
    "org.apache.kafka.connect.converters.DoubleConverter",
    "org.apache.kafka.connect.converters.FloatConverter",
    "org.apache.kafka.connect.converters.IntegerConverter",
    "org.apache.kafka.connect.converters.LongConverter",
    "org.apache.kafka.connect.converters.ShortConverter",
    "org.apache.kafka.connect.json.JsonConverter",
    "org.apache.kafka.connect.storage.StringConverter",
];

/// Converters for headers.
pub const HEADER_CONVERTERS: &[&str] = &[
    "org.apache.kafka.connect.converters.BooleanConverter",
    "org.apache.kafka.connect.converters.ByteArrayConverter",
    "org.apache.kafka.connect.converters.DoubleConverter",
    "org.apache.kafka.connect.converters.FloatConverter",
    "org.apache.kafka.connect.converters.IntegerConverter",
    "org.apache.kafka.connect.converters.LongConverter",
    "org.apache.kafka.connect.converters.ShortConverter",
    "org.apache.kafka.connect.json.JsonConverter",
    "org.apache.kafka.connect.storage.SimpleHeaderConverter",
    "org.apache.kafka.connect.storage.StringConverter",
];

const fn new(name: &'static str, kind: OptionKind, doc: &'static str) -> OptionDef {
    OptionDef::new(name, kind, doc).framework().importance(Importance::Low)
}

const OWN_COMMITS: &str = "transactions of mode fenced end by thalweg.fenced.commit.ms";
const ONE_VERSION: &str = "a node has exactly one version of every plugin";

/// Framework options of a source connector.
pub const FRAMEWORK: OptionTable = OptionTable {
    title: "Options of every connector",
    options: &[
        new("name", OptionKind::String, "Name of the connector, unique in the cluster.")
            .required()
            .check(name_text)
            .importance(Importance::High)
            .group("Common")
            .display("Connector name")
            .order(1),
        new(
            "connector.class",
            OptionKind::String,
            "Class of the connector: its full name, its simple name, or the simple name without \"Connector\".",
        )
        .required()
        .importance(Importance::High)
        .group("Common")
        .width(Width::Long)
        .display("Connector class")
        .order(2),
        new(
            "connector.plugin.version",
            OptionKind::String,
            "Accepted for compatibility and without effect: a node has one version of the connector.",
        )
        .inert(ONE_VERSION)
        .importance(Importance::Medium)
        .group("Common")
        .display("Connector version")
        .order(3),
        new("tasks.max", OptionKind::Int, "The most tasks that the connector may be split into.")
            .default("1")
            .at_least(1)
            .importance(Importance::High)
            .group("Common")
            .width(Width::Short)
            .display("Tasks max")
            .order(4),
        new(
            "tasks.max.enforce",
            OptionKind::Boolean,
            "Whether a connector that would need more tasks than tasks.max fails. false: the surplus runs, with a warning.",
        )
        .default("true")
        .group("Common")
        .width(Width::Short)
        .display("Enforce tasks max")
        .order(5),
        new(
            "key.converter",
            OptionKind::Class,
            "Converter of keys. Unset: the worker's. If it is set here, the worker's key.converter.* options do not count.",
        )
        .rule(Rule::Class(CONVERTERS))
        .group("Common")
        .width(Width::Short)
        .display("Key converter class")
        .order(6),
        new("key.converter.plugin.version", OptionKind::String, "Accepted for compatibility and without effect.")
            .inert(ONE_VERSION)
            .group("Common")
            .width(Width::Short)
            .display("Key converter version")
            .order(7),
        new(
            "value.converter",
            OptionKind::Class,
            "Converter of values. Unset: the worker's. If it is set here, the worker's value.converter.* options do not count.",
        )
        .rule(Rule::Class(CONVERTERS))
        .group("Common")
        .width(Width::Short)
        .display("Value converter class")
        .order(8),
        new("value.converter.plugin.version", OptionKind::String, "Accepted for compatibility and without effect.")
            .inert(ONE_VERSION)
            .group("Common")
            .width(Width::Short)
            .display("Value converter version")
            .order(9),
        new(
            "header.converter",
            OptionKind::Class,
            "Converter of header values. Unset: the worker's, with its options.",
        )
        .rule(Rule::Class(HEADER_CONVERTERS))
        .group("Common")
        .width(Width::Short)
        .display("Header converter class")
        .order(10),
        new("header.converter.plugin.version", OptionKind::String, "Accepted for compatibility and without effect.")
            .inert(ONE_VERSION)
            .group("Common")
            .width(Width::Short)
            .display("Header converter version")
            .order(11),
        new(
            "transforms",
            OptionKind::List,
            "Names of the transformations, in the order in which a message passes through them; each has its class in transforms.<name>.type.",
        )
        .default("")
        .check(unique)
        .group("Transforms")
        .width(Width::Long)
        .display("Transforms")
        .order(12),
        new(
            "predicates",
            OptionKind::List,
            "Names of the predicates that transformations refer to; each has its class in predicates.<name>.type.",
        )
        .default("")
        .check(unique)
        .group("Predicates")
        .width(Width::Long)
        .display("Predicates")
        .order(13),
        new(
            "config.action.reload",
            OptionKind::String,
            "What happens when a value behind a reference expires: restart the connector, or nothing.",
        )
        .default("restart")
        .exactly(&["none", "restart"])
        .group("Common")
        .display("Reload Action")
        .order(14),
        new(
            "errors.retry.timeout",
            OptionKind::Long,
            "How long, in milliseconds, a failed conversion or transformation is tried again. 0: not at all; -1: for ever.",
        )
        .default("0")
        .importance(Importance::Medium)
        .group("Error Handling")
        .display("Retry Timeout for Errors"),
        new("errors.retry.delay.max.ms", OptionKind::Long, "The longest time in milliseconds between two attempts.")
            .default("60000")
            .importance(Importance::Medium)
            .group("Error Handling")
            .display("Maximum Delay Between Retries for Errors"),
        new(
            "errors.tolerance",
            OptionKind::String,
            "What a message does that cannot be converted or transformed: stop the task (none), or be left out, counted and logged (all).",
        )
        .default("none")
        .exactly(&["none", "all"])
        .importance(Importance::Medium)
        .group("Error Handling")
        .width(Width::Short)
        .display("Error Tolerance"),
        new("errors.log.enable", OptionKind::Boolean, "Whether tolerated errors are logged with their coordinates.")
            .default("false")
            .importance(Importance::Medium)
            .group("Error Handling")
            .width(Width::Short)
            .display("Log Errors"),
        new(
            "errors.log.include.messages",
            OptionKind::Boolean,
            "Whether such log lines name the message's topic, partition and position. Its contents are never logged.",
        )
        .default("false")
        .importance(Importance::Medium)
        .group("Error Handling")
        .width(Width::Short)
        .display("Log Error Details"),
        new(
            "topic.creation.groups",
            OptionKind::List,
            "Names of groups of topics that are created with settings of their own (topic.creation.<group>.*). The group \"default\" always exists.",
        )
        .default("")
        .check(unique)
        .group("Topic Creation")
        .width(Width::Long)
        .display("Topic Creation Groups")
        .order(1),
        new(
            "exactly.once.support",
            OptionKind::String,
            "required: the connector starts only where exactly.once.source.support is enabled on the workers. requested: no check.",
        )
        .default("requested")
        .one_of(&["REQUIRED", "REQUESTED"])
        .importance(Importance::Medium)
        .group("Exactly Once Support")
        .width(Width::Short)
        .display("Exactly once support")
        .order(2),
        new(
            "transaction.boundary",
            OptionKind::String,
            "Where transactions with exactly-once delivery end: after each batch of the source (poll), after a time (interval), or where the connector says (connector).",
        )
        .default("poll")
        .one_of(&["INTERVAL", "POLL", "CONNECTOR"])
        .importance(Importance::Medium)
        .group("Exactly Once Support")
        .width(Width::Short)
        .display("Transaction Boundary")
        .inert(OWN_COMMITS)
        .order(3),
        new(
            "transaction.boundary.interval.ms",
            OptionKind::Long,
            "Time in milliseconds between two commits with transaction.boundary=interval. Unset: the worker's offset.flush.interval.ms.",
        )
        .at_least(1)
        .group("Exactly Once Support")
        .width(Width::Short)
        .display("Transaction boundary interval")
        .inert(OWN_COMMITS)
        .order(4),
        new(
            "offsets.storage.topic",
            OptionKind::String,
            "Topic for this connector's offsets with exactly-once delivery. Unset: the worker's.",
        )
        .check(topic_name)
        .group("offsets.topic")
        .width(Width::Long)
        .display("Offsets topic")
        .inert("offsets are kept by the nodes")
        .order(1),
        new(
            "errors.retry.delay.initial.ms",
            OptionKind::Long,
            "Milliseconds before the first restart of a task after an error that may pass; the wait doubles with each one that follows, up to errors.retry.delay.max.ms. retriable.restart.connector.wait.ms, if set, makes all waits the same.",
        )
        .default("500")
        .at_least(1)
        .importance(Importance::Low)
        .group("Error Handling")
        .display("Initial Delay Between Retries for Errors"),
        new(
            "errors.deadletterqueue.topic.name",
            OptionKind::String,
            "Topic for what is left out of records with errors.tolerance=all: the record as JSON, with its place in the source and the reason in headers. Unset: what is left out is only counted and logged.",
        )
        .default("")
        .check(topic_name_or_none)
        .importance(Importance::Medium)
        .group("Error Handling")
        .display("Dead Letter Queue Topic Name"),
        new(
            "errors.deadletterqueue.topic.replication.factor",
            OptionKind::Short,
            "Replication factor of that topic if it has to be created; -1: the broker's default. It has one partition.",
        )
        .default("3")
        .check(replication)
        .importance(Importance::Medium)
        .group("Error Handling")
        .display("Dead Letter Queue Topic Replication Factor"),
        new(
            "errors.deadletterqueue.context.headers.enable",
            OptionKind::Boolean,
            "Whether dead letters have headers that tell the place in the source, the stage and the error.",
        )
        .default("true")
        .importance(Importance::Medium)
        .group("Error Handling")
        .display("Enable Error Context Headers"),
        new(
            "thalweg.delivery",
            OptionKind::String,
            "plain: an idempotent producer for each task. fenced: a transactional one, so that the broker refuses a task's former owner. Unset: the worker's.",
        )
        .one_of(&["plain", "fenced"])
        .group("Exactly Once Support")
        .display("Delivery")
        .order(5),
        new(
            "thalweg.progress.timeout.ms",
            OptionKind::Long,
            "Silence in milliseconds after which a source partition that is said to run is taken for stuck and opened again from its last committed position. Waiting for a slow broker does not count, nor do delays that the configuration asks for. 0: never.",
        )
        .default("300000")
        .at_least(0)
        .group("Error Handling")
        .display("Progress timeout")
        .order(6),
        new(
            "thalweg.format",
            OptionKind::String,
            "Format of the messages of changes. debezium: the connector's own. repstance: JSON without schemas as Repstance publishes it, see the page about the format.",
        )
        .default("debezium")
        .one_of(&["debezium", "repstance"])
        .group("Common")
        .width(Width::Short)
        .display("Message format")
        .order(16),
        new(
            "thalweg.repstance.tombstones",
            OptionKind::Boolean,
            "Format repstance: whether a delete, and a change of the key of a row, is followed by a message with the old key and no value. tombstones.on.delete is without effect there.",
        )
        .default("true")
        .group("Common")
        .width(Width::Short)
        .display("Repstance tombstones")
        .order(17),
        new(
            "thalweg.repstance.key.include.table",
            OptionKind::Boolean,
            "Format repstance: whether keys start with the member __table, the schema and the name of the source table. For tables that share a topic.",
        )
        .default("false")
        .group("Common")
        .width(Width::Short)
        .display("Repstance table in keys")
        .order(18),
        new(
            "thalweg.repstance.max.message.bytes",
            OptionKind::Long,
            "Format repstance: the most bytes of key and value together, before transformations. The longest strings of a larger row are cut, and the message names them in source.truncated. 0: nothing is cut.",
        )
        .default("980000")
        .at_least(0)
        .group("Common")
        .width(Width::Short)
        .display("Repstance message limit")
        .order(19),
        new(
            STRICT,
            OptionKind::Boolean,
            "Whether an option that nobody knows is an error. Otherwise it is a warning.",
        )
        .default("false")
        .group("Common")
        .width(Width::Short)
        .display("Strict configuration")
        .order(15),
    ],
    open_prefixes: OPEN_PREFIXES,
    cross_checks: &[],
};

/// Prefixes whose keys belong to others: Kafka clients, converters, transformations, topics.
pub const OPEN_PREFIXES: &[&str] = &[
    "producer.override.",
    "consumer.override.",
    "admin.override.",
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "transforms.",
    "predicates.",
    "topic.creation.",
];

/// Options of one group of topics, under `topic.creation.<group>.`. Every other key of a group is
/// a setting of the topic (`cleanup.policy`). Kafka Connect looks at them only when the connector starts and
/// publishes none; here they are shown where they are wrong.
const TOPIC_GROUP: OptionTable = OptionTable {
    title: "Options of a topic creation group",
    options: &[INCLUDE, EXCLUDE, REPLICATION, PARTITIONS],
    open_prefixes: &[""],
    cross_checks: &[],
};

/// The same for the group `default`, which has every topic and must give both numbers.
const TOPIC_GROUP_DEFAULT: OptionTable = OptionTable {
    title: "Options of the default topic creation group",
    options: &[REPLICATION.required(), PARTITIONS.required()],
    open_prefixes: &[""],
    cross_checks: &[],
};

const INCLUDE: OptionDef =
    new("include", OptionKind::List, "Regular expressions for the names of the topics in this group.")
        .required()
        .rule(Rule::Regexes)
        .group("Topic Creation")
        .width(Width::Long)
        .display("Inclusion Topic Pattern")
        .unpublished();
const EXCLUDE: OptionDef = new(
    "exclude",
    OptionKind::List,
    "Regular expressions for the names of topics that are not in this group after all.",
)
.rule(Rule::Regexes)
.group("Topic Creation")
.width(Width::Long)
.display("Exclusion Topic Pattern")
.unpublished();
const REPLICATION: OptionDef =
    new("replication.factor", OptionKind::Short, "Replication factor of new topics; -1: the broker's default.")
        .check(replication)
        .group("Topic Creation")
        .width(Width::Long)
        .display("Replication Factor for Topics")
        .unpublished();
const PARTITIONS: OptionDef =
    new("partitions", OptionKind::Int, "Number of partitions of new topics; -1: the broker's default.")
        .check(partitions)
        .group("Topic Creation")
        .width(Width::Long)
        .display("Partition Count for Topics")
        .unpublished();

/// Whether unknown keys are errors in this configuration.
pub fn is_strict(properties: &Properties) -> bool {
    properties.get(STRICT).is_some_and(|v| v.trim().eq_ignore_ascii_case("true"))
}

/// Whether a worker allows that topics are created as `topic.creation.*` of connectors says.
pub fn creates_topics(worker: &Properties) -> bool {
    worker.get("topic.creation.enable").is_none_or(|v| !v.trim().eq_ignore_ascii_case("false"))
}

/// Checks the framework's part of a connector's configuration, with its topic creation groups unless
/// `worker` creates no topics.
pub fn validate(properties: &Properties, worker: &Properties) -> Validation {
    let mut validation = FRAMEWORK.validate(properties);
    if !creates_topics(worker) || properties.below("topic.creation.").iter().next().is_none() {
        return validation;
    }
    validation = validation.merge(TOPIC_GROUP_DEFAULT.validate_under("topic.creation.default.", properties));
    for group in topic_groups(properties) {
        validation = validation.merge(TOPIC_GROUP.validate_under(&format!("topic.creation.{group}."), properties));
    }
    validation
}

/// The groups of `topic.creation.groups` in order, without the implicit `default`; no more than
/// [`MOST_NAMES`].
pub fn topic_groups(properties: &Properties) -> Vec<String> {
    let mut groups = split_plain_list(properties.get("topic.creation.groups").unwrap_or(""));
    groups.retain(|g| g != "default");
    groups.truncate(MOST_NAMES);
    groups
}

fn name_text(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("String may not be empty".to_owned());
    }
    let control: Vec<String> = text.chars().filter(|c| c.is_control()).map(|c| u32::from(c).to_string()).collect();
    if control.is_empty() {
        return Ok(());
    }
    Err(format!("String may not contain control sequences but had the following ASCII chars: {}", control.join(", ")))
}

fn topic_name_or_none(text: &str) -> Result<(), String> {
    if text.trim().is_empty() { Ok(()) } else { topic_name(text.trim()) }
}

fn topic_name(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("String may not be empty".to_owned());
    }
    crate::rule::topic_name_chars(text)
}

fn unique(text: &str) -> Result<(), String> {
    let mut names = split_plain_list(text);
    if names.len() > MOST_NAMES {
        return Err(format!("No more than {MOST_NAMES} names are possible, but there are {}", names.len()));
    }
    names.sort_unstable();
    match names.windows(2).any(|pair| pair[0] == pair[1]) {
        true => Err("Duplicate alias provided.".to_owned()),
        false => Ok(()),
    }
}

fn replication(text: &str) -> Result<(), String> {
    minus_one_or_positive(text).then_some(()).ok_or_else(|| {
        "Replication factor must be positive and not larger than the number of brokers in the Kafka cluster, or -1 to use the broker's default".to_owned()
    })
}

fn partitions(text: &str) -> Result<(), String> {
    minus_one_or_positive(text)
        .then_some(())
        .ok_or_else(|| "Partition count must be positive, or -1 to use the broker's default".to_owned())
}

fn minus_one_or_positive(text: &str) -> bool {
    text.trim().parse::<i64>().is_ok_and(|n| n == -1 || n >= 1)
}
