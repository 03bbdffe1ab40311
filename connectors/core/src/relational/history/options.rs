//! Options of a schema history (`schema.history.internal.*`), besides those of its store's clients.

use thalweg_config::{CrossCheck, Importance, OptionDef, OptionKind, Rule, Settings, Width};

use super::recover::Captured;

const GROUP: &str = "Schema History";

const fn new(name: &'static str, kind: OptionKind, display: &'static str, doc: &'static str) -> OptionDef {
    OptionDef::new(name, kind, doc).group(GROUP).display(display)
}

const fn low(option: OptionDef) -> OptionDef {
    option.importance(Importance::Low).width(Width::Short)
}

const NO_PARSER: &str = "structures are read from the source, not from statements";

const KAFKA: &str = "io.debezium.storage.kafka.history.KafkaSchemaHistory";
const FILE: &str = "io.debezium.storage.file.history.FileSchemaHistory";
const MEMORY: &str = "io.debezium.relational.history.MemorySchemaHistory";
/// In the state that all nodes have.
const REPLICATED: &str = "thalweg.ReplicatedSchemaHistory";

/// Where a history is kept (`schema.history.internal`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryPlace {
    Kafka,
    File,
    Memory,
    Replicated,
}

impl HistoryPlace {
    /// Without a class the topic decides: with one it is Kafka, else the replicated state.
    pub fn from_settings(settings: &Settings) -> Self {
        match settings.text("schema.history.internal") {
            Some(FILE) => Self::File,
            Some(MEMORY) => Self::Memory,
            Some(REPLICATED) => Self::Replicated,
            Some(_) => Self::Kafka,
            None if settings.is_set("schema.history.internal.kafka.topic") => Self::Kafka,
            None => Self::Replicated,
        }
    }
}

impl Captured {
    /// The narrower one of the two options counts.
    pub fn from_settings(settings: &Settings) -> Self {
        if settings.bool("schema.history.internal.store.only.captured.tables.ddl") {
            Self::Tables
        } else if settings.bool("schema.history.internal.store.only.captured.databases.ddl") {
            Self::Databases
        } else {
            Self::All
        }
    }
}

/// Keys under these are options of Kafka clients.
pub const HISTORY_PREFIXES: [&str; 2] = ["schema.history.internal.producer.", "schema.history.internal.consumer."];

pub const HISTORY: &[OptionDef] = &[
    new(
        "schema.history.internal",
        OptionKind::Class,
        "Schema history",
        "Class that keeps the schema history: in a Kafka topic, in a file, in memory (gone with the process), or in the state that the nodes share. Unset: in a Kafka topic if schema.history.internal.kafka.topic is set, else in the shared state.",
    )
    .rule(Rule::Class(&[KAFKA, FILE, MEMORY, REPLICATED]))
    .importance(Importance::Low)
    .width(Width::Long),
    new(
        "schema.history.internal.name",
        OptionKind::String,
        "Logical name for the database schema history",
        "Name of the clients of the history's store. Unset: <topic.prefix>-schemahistory.",
    )
    .importance(Importance::Low),
    new(
        "schema.history.internal.kafka.topic",
        OptionKind::String,
        "Database schema history topic name",
        "Topic of the history: one partition, kept without limit. It is made if it is missing.",
    )
    .check(thalweg_config::rule::topic_name_chars)
    .importance(Importance::High)
    .width(Width::Long),
    new(
        "schema.history.internal.kafka.bootstrap.servers",
        OptionKind::String,
        "Kafka broker addresses",
        "Brokers of that topic.",
    )
    .importance(Importance::High)
    .width(Width::Long),
    low(new(
        "schema.history.internal.kafka.recovery.poll.interval.ms",
        OptionKind::Int,
        "Poll interval during database schema history recovery (ms)",
        "The most milliseconds to wait for records when the history is read.",
    ))
    .default("100")
    .at_least(0),
    low(new(
        "schema.history.internal.kafka.recovery.attempts",
        OptionKind::Int,
        "Max attempts to recovery database schema history",
        "So many waits without a record, before the end of the topic, make reading fail.",
    ))
    .default("100")
    .at_least(0),
    low(new(
        "schema.history.internal.kafka.query.timeout.ms",
        OptionKind::Long,
        "Kafka admin client query timeout (ms)",
        "The most milliseconds to wait for what the brokers know of the topic.",
    ))
    .default("3000")
    .at_least(1),
    low(new(
        "schema.history.internal.kafka.create.timeout.ms",
        OptionKind::Long,
        "Kafka admin client create timeout (ms)",
        "The most milliseconds to wait for the topic to be made.",
    ))
    .default("30000")
    .at_least(1),
    low(new(
        "schema.history.internal.kafka.buffer.batch.size",
        OptionKind::Int,
        "Records read at once",
        "The most records of the history that are fetched together.",
    ))
    .default("1024")
    .at_least(1),
    new(
        "schema.history.internal.file.filename",
        OptionKind::String,
        "Database schema history file path",
        "File of the history. Required if schema.history.internal is the file history.",
    )
    .width(Width::Long)
    .importance(Importance::Low),
    low(new(
        "schema.history.internal.store.only.captured.tables.ddl",
        OptionKind::Boolean,
        "Store only captured tables",
        "Whether only the structures of captured tables are kept. A table that is captured later is then read anew.",
    ))
    .default("false"),
    low(new(
        "schema.history.internal.store.only.captured.databases.ddl",
        OptionKind::Boolean,
        "Store only captured databases",
        "Whether only the structures in captured databases are kept.",
    ))
    .default("false"),
    low(new(
        "schema.history.internal.skip.unparseable.ddl",
        OptionKind::Boolean,
        "Skip DDL statements that cannot be parsed",
        "Accepted for compatibility and without effect.",
    ))
    .default("false")
    .inert(NO_PARSER),
    low(new(
        "schema.history.internal.ddl.filter",
        OptionKind::String,
        "DDL filter",
        "Accepted for compatibility and without effect.",
    ))
    .inert(NO_PARSER),
    low(new(
        "schema.history.internal.prefer.ddl",
        OptionKind::Boolean,
        "Prefer DDL",
        "Accepted for compatibility and without effect.",
    ))
    .default("false")
    .inert(NO_PARSER),
];

/// Rules over the options of [`HISTORY`].
pub const HISTORY_CHECKS: &[CrossCheck] = &[what_the_place_needs];

fn what_the_place_needs(s: &Settings) -> Vec<(&'static str, String)> {
    let needed: &[&'static str] = match HistoryPlace::from_settings(s) {
        HistoryPlace::Kafka => {
            &["schema.history.internal.kafka.topic", "schema.history.internal.kafka.bootstrap.servers"]
        }
        HistoryPlace::File => &["schema.history.internal.file.filename"],
        HistoryPlace::Memory | HistoryPlace::Replicated => &[],
    };
    let missing = needed.iter().filter(|name| s.text_or_empty(name).trim().is_empty());
    missing.map(|name| (*name, "A value is required".to_owned())).collect()
}
