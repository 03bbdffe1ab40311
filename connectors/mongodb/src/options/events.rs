//! Options of the group `Events`: which collections, which records, signals and notifications.

use thalweg_config::debezium::shared;
use thalweg_config::rule::topic_name_chars;
use thalweg_config::{Importance, OptionDef, OptionKind, Width};

use super::checks;

const GROUP: &str = "Events";

const fn option(name: &'static str, kind: OptionKind, display: &'static str, doc: &'static str) -> OptionDef {
    OptionDef::new(name, kind, doc).group(GROUP).display(display)
}

const fn list(name: &'static str, display: &'static str, doc: &'static str) -> OptionDef {
    option(name, OptionKind::List, display, doc).importance(Importance::High).width(Width::Long)
}

/// Options of the regex strategies that only concern tables.
const fn key_of_topic(name: &'static str, kind: OptionKind) -> OptionDef {
    option(name, kind, name, "Accepted; keys of documents have no field but `id`, in Debezium as well.")
        .importance(Importance::Low)
        .inert("keys of documents have no field but id, in Debezium as well")
        .unpublished()
}

pub(super) const OPTIONS: &[OptionDef] = &[
    option(
        "converters",
        OptionKind::String,
        "List of prefixes defining custom values converters.",
        "Accepted; documents are JSON text.",
    )
    .importance(Importance::Low)
    .inert("documents are JSON text"),
    option(
        "post.processors",
        OptionKind::String,
        "List of change event post processors.",
        "None can be used: Debezium's own one is for tables.",
    )
    .importance(Importance::Low)
    .check(checks::post_processors),
    shared("tombstones.on.delete"),
    shared("heartbeat.interval.ms"),
    option(
        "heartbeat.topics.prefix",
        OptionKind::String,
        "A prefix used for naming of heartbeat topics",
        "Heartbeat topics are named <this>.<topic.prefix>. `topic.heartbeat.prefix` is the newer name.",
    )
    .default("__debezium-heartbeat")
    .importance(Importance::Low)
    .check(topic_name_chars),
    shared("signal.data.collection").check(checks::signal_collection),
    shared("signal.poll.interval.ms"),
    shared("signal.enabled.channels").check(checks::signal_channels),
    option(
        "topic.naming.strategy",
        OptionKind::Class,
        "Topic naming strategy class",
        "How topics of collections are named. Schema..., Default...: <topic.prefix>.<database>.<collection>, with `_` for \
         characters that Kafka refuses. ...Unicode...: with `_u` and the character's code in hex instead, also for `_`. \
         ...Regex...: the plain name, changed by `topic.regex` and `topic.replacement`.",
    )
    .default("io.debezium.schema.SchemaTopicNamingStrategy")
    .check(checks::topic_naming),
    shared("notification.enabled.channels").check(checks::notification_channels),
    shared("notification.sink.topic.name"),
    option(
        "transaction.metadata.factory",
        OptionKind::Class,
        "Factory class to create transaction context & transaction struct maker classes",
        "Only the default.",
    )
    .default(checks::TRANSACTION_FACTORY)
    .importance(Importance::Low)
    .check(checks::transaction_factory),
    shared("custom.metric.tags"),
    list(
        "database.include.list",
        "Include Databases",
        "Databases that are captured; unset captures all. See `filters.match.mode`.",
    ),
    list("database.exclude.list", "Exclude Databases", "Databases that are not captured."),
    list(
        "collection.include.list",
        "Include Collections",
        "Collections (db.collection) that are captured; unset captures all.",
    ),
    option("collection.exclude.list", OptionKind::String, "", "Collections (db.collection) that are not captured.")
        .width(Width::None)
        .invisible(),
    option(
        "field.exclude.list",
        OptionKind::String,
        "Exclude Fields",
        "Fields (db.collection.field.nested) that are left out of documents and of what an update tells; keys of records \
         stay whole. `*` in database or collection stands for any text, and letters of either case are equal there. In \
         arrays it applies to each document, but not in arrays of arrays.",
    )
    .width(Width::Long),
    option(
        "field.renames",
        OptionKind::String,
        "Rename Fields",
        "Fields that get another name (db.collection.field.nested:name), which replaces the last part. Applied after \
         `field.exclude.list`, to the same parts of events. A renamed field moves to the end of its document. If the \
         new name is taken, `event.processing.failure.handling.mode` says what happens.",
    )
    .width(Width::Long),
    option(
        "snapshot.collection.filter.overrides",
        OptionKind::String,
        "Snapshot collection filter overrides",
        "Collections (db.collection) of which a snapshot reads only a part; the filter of each stands in a property \
         with `.<db>.<collection>` added to this name.",
    )
    .width(Width::Long),
    option(
        "sourceinfo.struct.maker",
        OptionKind::Class,
        "Source info struct maker class",
        "Accepted; classes cannot be loaded.",
    )
    .default("io.debezium.connector.mongodb.MongoDbSourceInfoStructMaker")
    .importance(Importance::Low)
    .inert("classes cannot be loaded"),
    option(
        "topic.heartbeat.prefix",
        OptionKind::String,
        "Prefix of heartbeat topics",
        "Heartbeat topics are named <this>.<topic.prefix>. Default: the value of `heartbeat.topics.prefix`.",
    )
    .importance(Importance::Low)
    .check(topic_name_chars),
    shared("topic.heartbeat.name"),
    shared("topic.delimiter"),
    shared("topic.regex"),
    shared("topic.replacement"),
    key_of_topic("topic.key.enforce.uniqueness", OptionKind::Boolean),
    key_of_topic("topic.key.field.name", OptionKind::String),
    key_of_topic("topic.key.field.regex", OptionKind::String),
    key_of_topic("topic.key.field.replacement", OptionKind::String),
    shared("topic.cache.size").inert("names are kept per collection"),
    shared("topic.transaction"),
    shared("signal.kafka.topic"),
    shared("signal.kafka.bootstrap.servers"),
    shared("signal.kafka.groupId"),
    shared("signal.kafka.poll.timeout.ms"),
    shared("signal.file"),
    shared("signal.emit.failure.max.retries"),
    shared("signal.emit.failure.backoff.ms"),
];
