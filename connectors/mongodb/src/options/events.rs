//! Options of the group `Events`: which collections, which records, signals and notifications.

use thalweg_config::{Importance, OptionDef, OptionKind, Width};

use super::checks;

const GROUP: &str = "Events";
const NO_SIGNALS: &str = "signals are not supported yet";

const fn option(name: &'static str, kind: OptionKind, display: &'static str, doc: &'static str) -> OptionDef {
    OptionDef::new(name, kind, doc).group(GROUP).display(display)
}

const fn list(name: &'static str, display: &'static str, doc: &'static str) -> OptionDef {
    option(name, OptionKind::List, display, doc).importance(Importance::High).width(Width::Long)
}

const fn signal(name: &'static str, display: &'static str) -> OptionDef {
    option(name, OptionKind::String, display, "Accepted; signals are not supported yet.").inert(NO_SIGNALS)
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
        "Accepted; classes that change events cannot be loaded.",
    )
    .importance(Importance::Low)
    .inert("classes that change events cannot be loaded"),
    option(
        "tombstones.on.delete",
        OptionKind::Boolean,
        "Change the behaviour of Debezium with regards to delete operations",
        "Whether a delete is followed by a message with the same key and no value, which lets compaction drop the key.",
    )
    .default("true")
    .width(Width::Short),
    option(
        "heartbeat.interval.ms",
        OptionKind::Int,
        "Connector heartbeat interval (milli-seconds)",
        "Milliseconds between heartbeat messages while streaming; 0 sends none.",
    )
    .default("0")
    .at_least(0),
    option(
        "heartbeat.topics.prefix",
        OptionKind::String,
        "A prefix used for naming of heartbeat topics",
        "Heartbeat topics are named <this>.<topic.prefix>. `topic.heartbeat.prefix` is the newer name.",
    )
    .default("__debezium-heartbeat")
    .importance(Importance::Low)
    .check(checks::topic_part),
    option(
        "signal.data.collection",
        OptionKind::List,
        "Signaling data collection",
        "Collection (db.collection) whose inserts are signals. Not supported yet.",
    )
    .check(checks::signal_collection),
    option(
        "signal.poll.interval.ms",
        OptionKind::Long,
        "Signal processor poll interval",
        "Milliseconds between two looks at signal channels. No effect without signals.",
    )
    .default("5000")
    .width(Width::Short)
    .at_least(1),
    option(
        "signal.enabled.channels",
        OptionKind::List,
        "Enabled channels names",
        "Where signals come from. Only the default; signals are not supported yet.",
    )
    .default("source")
    .width(Width::Long)
    .check(checks::signal_channels),
    option(
        "topic.naming.strategy",
        OptionKind::Class,
        "Topic naming strategy class",
        "Only the default: <topic.prefix>.<database>.<collection>.",
    )
    .default("io.debezium.schema.SchemaTopicNamingStrategy")
    .check(checks::topic_naming),
    option(
        "notification.enabled.channels",
        OptionKind::List,
        "Enabled notification channels names",
        "Where notifications about snapshots go. Not supported yet.",
    )
    .width(Width::Long)
    .check(checks::notification_channels),
    option(
        "notification.sink.topic.name",
        OptionKind::String,
        "Notification topic name",
        "Topic for notifications. Not supported yet.",
    )
    .importance(Importance::High)
    .width(Width::Long)
    .check(checks::topic_part),
    option(
        "transaction.metadata.factory",
        OptionKind::Class,
        "Factory class to create transaction context & transaction struct maker classes",
        "Accepted; classes cannot be loaded.",
    )
    .default("io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory")
    .importance(Importance::Low)
    .inert("classes cannot be loaded"),
    option(
        "custom.metric.tags",
        OptionKind::List,
        "Customize metric tags",
        "Tags (key=value) that are added to the connector's metrics.",
    )
    .importance(Importance::Low)
    .check(checks::metric_tags),
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
        "Fields (db.collection.field.nested) that are left out of events. Not supported yet.",
    )
    .width(Width::Long)
    .check(checks::field_exclude_list),
    option(
        "field.renames",
        OptionKind::String,
        "Rename Fields",
        "Fields that get another name (db.collection.field.nested:name). Not supported yet.",
    )
    .width(Width::Long)
    .check(checks::field_renames),
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
    .check(checks::topic_part),
    option(
        "topic.heartbeat.name",
        OptionKind::String,
        "Name of the heartbeat topic",
        "Full name of the heartbeat topic, instead of one made from prefixes.",
    )
    .importance(Importance::Low)
    .check(checks::topic_part),
    option("topic.delimiter", OptionKind::String, "Topic delimiter", "What stands between the parts of a topic name.")
        .default(".")
        .importance(Importance::Low)
        .width(Width::Short)
        .check(checks::topic_part),
    option("topic.cache.size", OptionKind::Int, "Topic cache size", "Accepted; names are kept per collection.")
        .default("10000")
        .importance(Importance::Low)
        .at_least(1)
        .inert("names are kept per collection"),
    option(
        "topic.transaction",
        OptionKind::String,
        "Transaction topic",
        "Last part of the name of the topic for transaction metadata, which is not supported yet.",
    )
    .default("transaction")
    .importance(Importance::Low)
    .check(checks::topic_part),
    signal("signal.kafka.topic", "Signal topic"),
    signal("signal.kafka.bootstrap.servers", "Brokers of the signal topic"),
    signal("signal.kafka.groupId", "Group of the signal consumer"),
    signal("signal.kafka.poll.timeout.ms", "Poll timeout of the signal consumer"),
    signal("signal.file", "Signal file"),
    signal("signal.emit.failure.max.retries", "Retries of signal writes"),
    signal("signal.emit.failure.backoff.ms", "Delay between signal writes (ms)"),
];
