//! Options that Debezium's connectors share, and a way for a connector's table to take them over.
//!
//! A connector lists its own options and joins them with [`DEBEZIUM_COMMON`]; where both have a name,
//! the connector's definition is the one that counts (another default, other modes). Whether an
//! option has an effect is the connector's business: here are the names, kinds, defaults and rules.

use crate::alias::SNAPSHOT_MODES;
use crate::option::{CrossCheck, Importance, OptionDef, OptionKind, Rule, Width};
use crate::rule::{boolean, regex, topic_name_chars};
use crate::settings::Settings;

const CONNECTOR: &str = "Connector";
const EVENTS: &str = "Events";

const fn new(
    name: &'static str,
    kind: OptionKind,
    group: &'static str,
    display: &'static str,
    doc: &'static str,
) -> OptionDef {
    OptionDef::new(name, kind, doc).group(group).display(display)
}

const fn flag(name: &'static str, group: &'static str, display: &'static str, doc: &'static str) -> OptionDef {
    new(name, OptionKind::Boolean, group, display, doc).default("false")
}

const fn low(option: OptionDef) -> OptionDef {
    option.importance(Importance::Low)
}

const ADJUSTMENT_MODES: &[&str] = &["none", "avro_unicode", "avro"];

/// Debezium's default. What it names is hidden always ([`crate::mask`]).
const SANITIZE_PATTERN: &str = r".*secret$|.*password$|.*sasl\.jaas\.config$|.*basic\.auth\.user\.info|.*registry\.auth\.client-secret|.*credentials\.json$|.*connectionstring$|.*connection\.string$";

/// Options of every connector of the Debezium family.
pub const DEBEZIUM_COMMON: &[OptionDef] = &[
    new(
        "topic.prefix",
        OptionKind::String,
        CONNECTOR,
        "Topic prefix",
        "Name of the source: first part of all topic names and key of the stored offsets. Unique in a Kafka cluster; a changed name is a new source.",
    )
    .required()
    .check(topic_name_chars)
    .importance(Importance::High),
    new(
        "event.processing.failure.handling.mode",
        OptionKind::String,
        CONNECTOR,
        "Event deserialization failure handling",
        "What happens to a change that cannot be read: stop the task (fail), leave it out with a log line (warn), or leave it out (skip). It is always counted.",
    )
    .default("fail")
    .one_of(&["warn", "fail", "ignore", "skip"])
    .width(Width::Short),
    new(
        "max.batch.size",
        OptionKind::Int,
        CONNECTOR,
        "Change event batch size",
        "The most changes that are handed over together.",
    )
    .default("2048")
    .at_least(1)
    .width(Width::Short),
    new(
        "max.queue.size",
        OptionKind::Int,
        CONNECTOR,
        "Change event buffer size",
        "The most changes that are read ahead of Kafka. More than max.batch.size.",
    )
    .default("8192")
    .at_least(1)
    .range_text("A positive queue size is required")
    .width(Width::Short),
    new(
        "max.queue.size.in.bytes",
        OptionKind::Long,
        CONNECTOR,
        "Change event buffer size in bytes",
        "The same limit in bytes; the one that is reached first counts. 0: none.",
    )
    .default("0")
    .at_least(0)
    .range_text("A non-negative long value is expected")
    .width(Width::Long),
    new(
        "poll.interval.ms",
        OptionKind::Long,
        CONNECTOR,
        "Poll interval (ms)",
        "The most milliseconds between two looks for new changes.",
    )
    .default("500")
    .at_least(1)
    .width(Width::Short),
    low(flag(
        "provide.transaction.metadata",
        CONNECTOR,
        "Store transaction metadata information in a dedicated topic.",
        "Whether the begin and end of transactions are written to a topic, and changes say where in a transaction they are.",
    ))
    .width(Width::Short),
    low(new(
        "skipped.operations",
        OptionKind::List,
        CONNECTOR,
        "Skipped Operations",
        "Operations that are left out: c (create), u (update), d (delete), t (truncate), r (read), or none.",
    ))
    .default("t")
    .one_of(&["c", "u", "d", "t", "r", "none"])
    .width(Width::Short),
    low(new(
        "snapshot.delay.ms",
        OptionKind::Long,
        CONNECTOR,
        "Snapshot Delay (milliseconds)",
        "Milliseconds to wait before the snapshot.",
    ))
    .default("0")
    .at_least(0)
    .range_text("A non-negative long value is expected"),
    low(new(
        "streaming.delay.ms",
        OptionKind::Long,
        CONNECTOR,
        "Streaming Delay (milliseconds)",
        "Milliseconds to wait after the snapshot before changes are read.",
    ))
    .default("0")
    .at_least(0)
    .range_text("A non-negative long value is expected"),
    new(
        "snapshot.include.collection.list",
        OptionKind::List,
        CONNECTOR,
        "Snapshot mode include data collection",
        "Regular expressions for the captured tables or collections that the first snapshot copies. Unset: all.",
    )
    .rule(Rule::Regexes)
    .width(Width::Long),
    new(
        "snapshot.fetch.size",
        OptionKind::Int,
        CONNECTOR,
        "Snapshot fetch size",
        "The most rows that a snapshot fetches at once.",
    )
    .at_least(0),
    new(
        "snapshot.max.threads",
        OptionKind::Int,
        CONNECTOR,
        "Snapshot maximum threads",
        "How many tables or chunks a snapshot copies at the same time.",
    )
    .default("1")
    .at_least(1)
    .width(Width::Short),
    new(
        "snapshot.max.threads.multiplier",
        OptionKind::Int,
        CONNECTOR,
        "Snapshot maximum thread multiplier",
        "Chunks of a table for each of snapshot.max.threads.",
    )
    .default("1")
    .at_least(1)
    .width(Width::Short),
    low(new(
        "snapshot.mode",
        OptionKind::String,
        CONNECTOR,
        "Snapshot mode",
        "When the present contents are copied before changes are read.",
    ))
    .default("initial")
    .one_of(&[
        "always",
        "initial_only",
        "configuration_based",
        "when_needed",
        "initial",
        "recovery",
        "custom",
        "no_data",
    ])
    .value_aliases(SNAPSHOT_MODES)
    .width(Width::Short),
    new(
        "snapshot.mode.custom.name",
        OptionKind::String,
        CONNECTOR,
        "Snapshot Mode Custom Name",
        "Name of a class for snapshot.mode=custom.",
    ),
    flag(
        "snapshot.mode.configuration.based.snapshot.data",
        CONNECTOR,
        "Snapshot mode property based snapshot data",
        "With snapshot.mode=configuration_based: whether each start copies the contents.",
    ),
    flag(
        "snapshot.mode.configuration.based.snapshot.schema",
        CONNECTOR,
        "Snapshot mode property based snapshot schema",
        "With snapshot.mode=configuration_based: whether each start reads the structure of the tables.",
    ),
    flag(
        "snapshot.mode.configuration.based.start.stream",
        CONNECTOR,
        "Snapshot mode property based start stream",
        "With snapshot.mode=configuration_based: whether changes are read.",
    ),
    flag(
        "snapshot.mode.configuration.based.snapshot.on.schema.error",
        CONNECTOR,
        "Snapshot mode property based snapshot on schema error",
        "With snapshot.mode=configuration_based: whether the structure is read anew if it is not known for the position.",
    ),
    flag(
        "snapshot.mode.configuration.based.snapshot.on.data.error",
        CONNECTOR,
        "Snapshot mode property based snapshot on data error",
        "With snapshot.mode=configuration_based: whether the contents are copied if the source no longer has the position.",
    ),
    low(new(
        "retriable.restart.connector.wait.ms",
        OptionKind::Long,
        CONNECTOR,
        "Retriable restart wait (ms)",
        "Milliseconds to wait before a try after an error that may pass. Not set: from 0.5 s on and doubling, see errors.retry.delay.initial.ms.",
    ))
    .default("10000")
    .at_least(1),
    low(new(
        "errors.max.retries",
        OptionKind::Int,
        CONNECTOR,
        "The maximum number of retries",
        "How often an error that may pass is tried again. -1: without end; 0: never.",
    ))
    .default("-1")
    .at_least(-1),
    new(
        "query.fetch.size",
        OptionKind::Int,
        CONNECTOR,
        "Query fetch size",
        "The most rows that a query for changes fetches at once. 0: the driver's default.",
    )
    .default("0")
    .at_least(0),
    low(new(
        "incremental.snapshot.chunk.size",
        OptionKind::Int,
        CONNECTOR,
        "Incremental snapshot chunk size",
        "Rows of a chunk of an incremental snapshot.",
    ))
    .default("1024")
    .at_least(1),
    low(flag(
        "incremental.snapshot.allow.schema.changes",
        CONNECTOR,
        "Allow schema changes during incremental snapshot if supported.",
        "Whether the structure of a table may change while an incremental snapshot copies it.",
    )),
    low(new(
        "incremental.snapshot.watermarking.strategy",
        OptionKind::String,
        CONNECTOR,
        "Incremental snapshot watermarking strategy",
        "How a chunk's window is marked in the signal table: two rows (insert_insert), or one that is deleted again (insert_delete).",
    ))
    .default("INSERT_INSERT")
    .one_of(&["insert_delete", "insert_insert"]),
    low(new(
        "connection.validation.timeout.ms",
        OptionKind::Long,
        CONNECTOR,
        "Connection validation timeout (ms)",
        "The most milliseconds that a check of the configuration waits for the source.",
    ))
    .default("60000")
    .at_least(1)
    .range_text("A positive, non-zero long value is expected")
    .width(Width::Short),
    new(
        "executor.shutdown.timeout.ms",
        OptionKind::Long,
        CONNECTOR,
        "Executor shutdown timeout (ms)",
        "The most milliseconds that a reader has to let go of its connections when its task stops.",
    )
    .default("4000")
    .at_least(1)
    .range_text("A positive, non-zero long value is expected"),
    low(flag(
        "extended.headers.enabled",
        CONNECTOR,
        "Enable/Disable extended headers",
        "Whether each message has headers that name the connector, the task and the run.",
    ))
    .default("true")
    .width(Width::Short),
    new(
        "guardrail.collections.max",
        OptionKind::Int,
        CONNECTOR,
        "Maximum number of collections or tables",
        "More captured tables than this are taken for a mistake. 0: no limit.",
    )
    .default("0")
    .at_least(0)
    .width(Width::Short),
    new(
        "guardrail.collections.limit.action",
        OptionKind::String,
        CONNECTOR,
        "Guardrail collections limit action",
        "What too many tables do: a warning, or a failing start.",
    )
    .default("warn")
    .one_of(&["warn", "fail"])
    .width(Width::Short),
    low(new(
        "schema.name.adjustment.mode",
        OptionKind::String,
        CONNECTOR,
        "Schema Name Adjustment",
        "How names of schemas become valid in Avro.",
    ))
    .default("none")
    .one_of(ADJUSTMENT_MODES),
    low(new(
        "field.name.adjustment.mode",
        OptionKind::String,
        CONNECTOR,
        "Field Name Adjustment",
        "How names of fields become valid in Avro. Unset: avro, if the connector itself names the Avro converter.",
    ))
    .default("none")
    .one_of(ADJUSTMENT_MODES),
    low(new(
        "converters",
        OptionKind::List,
        EVENTS,
        "List of prefixes defining custom values converters.",
        "Accepted for compatibility and without effect: Java classes cannot be loaded.",
    ))
    .inert("Java classes cannot be loaded"),
    low(new(
        "post.processors",
        OptionKind::List,
        EVENTS,
        "List of change event post processors.",
        "Accepted for compatibility and without effect: Java classes cannot be loaded.",
    ))
    .inert("Java classes cannot be loaded"),
    new(
        "tombstones.on.delete",
        OptionKind::Boolean,
        EVENTS,
        "Change the behaviour of Debezium with regards to delete operations",
        "Whether a delete is followed by a message without value, so that Kafka's compaction can drop the key.",
    )
    .default("true")
    .check(boolean)
    .width(Width::Short),
    new(
        "heartbeat.interval.ms",
        OptionKind::Int,
        EVENTS,
        "Connector heartbeat interval (milli-seconds)",
        "Milliseconds between two heartbeat messages. 0: none.",
    )
    .default("0")
    .at_least(0),
    low(new(
        "topic.heartbeat.prefix",
        OptionKind::String,
        EVENTS,
        "A prefix used for naming of heartbeat topics",
        "First part of the name of the heartbeat topic; the second is topic.prefix.",
    ))
    .default("__debezium-heartbeat")
    .check(topic_name_chars),
    low(new(
        "topic.heartbeat.name",
        OptionKind::String,
        EVENTS,
        "Name of the heartbeat topic",
        "Whole name of the heartbeat topic, instead of the one made from topic.heartbeat.prefix.",
    ))
    .check(topic_name_chars),
    low(new(
        "topic.delimiter",
        OptionKind::String,
        EVENTS,
        "Topic delimiter",
        "Stands between the parts of topic names.",
    ))
    .default(".")
    .check(topic_name_chars),
    low(new("topic.cache.size", OptionKind::Int, EVENTS, "Topic cache size", "The most topic names that are remembered."))
        .default("10000")
        .at_least(1),
    low(new(
        "topic.transaction",
        OptionKind::String,
        EVENTS,
        "Transaction topic",
        "Last part of the name of the topic for transactions.",
    ))
    .default("transaction")
    .check(topic_name_chars),
    new(
        "signal.data.collection",
        OptionKind::List,
        EVENTS,
        "Signaling data collection",
        "Full name of the table or collection for signals.",
    ),
    new(
        "signal.enabled.channels",
        OptionKind::List,
        EVENTS,
        "Enabled channels names",
        "Where signals are taken from.",
    )
    .default("source")
    .one_of(&["source", "kafka", "file", "rest", "jmx", "in-process"])
    .width(Width::Long),
    new(
        "signal.poll.interval.ms",
        OptionKind::Long,
        EVENTS,
        "Signal processor poll interval",
        "Milliseconds between two looks for signals outside of the source.",
    )
    .default("5000")
    .at_least(1)
    .width(Width::Short),
    new(
        "notification.enabled.channels",
        OptionKind::List,
        EVENTS,
        "Enabled notification channels names",
        "Where notifications are sent to.",
    )
    .one_of(&["sink", "log", "jmx"])
    .width(Width::Long),
    new(
        "notification.sink.topic.name",
        OptionKind::String,
        EVENTS,
        "Notification topic name",
        "Topic for notifications. Required if notification.enabled.channels has sink.",
    )
    .check(topic_name_chars)
    .importance(Importance::High)
    .width(Width::Long),
    low(new(
        "custom.metric.tags",
        OptionKind::List,
        EVENTS,
        "Customize metric tags",
        "Further labels of the connector's metrics: name=value, comma-separated.",
    ))
    .check(metric_tags),
    new(
        "topic.regex",
        OptionKind::String,
        EVENTS,
        "Topic regex",
        "With a regex strategy of `topic.naming.strategy`: topics whose whole name it matches get the name that \
         `topic.replacement` makes of it.",
    )
    .importance(Importance::Low)
    .width(Width::Long)
    .unpublished(),
    new(
        "topic.replacement",
        OptionKind::String,
        EVENTS,
        "Topic replacement",
        "With a regex strategy: the new name of a topic, with groups of `topic.regex` as $1 or ${name}.",
    )
    .importance(Importance::Low)
    .width(Width::Long)
    .unpublished(),
    new(
        "signal.kafka.topic",
        OptionKind::String,
        EVENTS,
        "Signal topic",
        "Topic of the channel `kafka`; its partition 0 is read. Default: <topic.prefix>-signal.",
    )
    .check(topic_name_chars),
    new(
        "signal.kafka.bootstrap.servers",
        OptionKind::String,
        EVENTS,
        "Brokers of the signal topic",
        "Default: the brokers of the node. Properties under `signal.consumer.` are those of the consumer.",
    ),
    new(
        "signal.kafka.groupId",
        OptionKind::String,
        EVENTS,
        "Group of the signal consumer",
        "Under this group the place in the signal topic is stored.",
    )
    .default("kafka-signal"),
    new(
        "signal.kafka.poll.timeout.ms",
        OptionKind::Long,
        EVENTS,
        "Poll timeout of the signal consumer",
        "Accepted; see signal.poll.interval.ms.",
    )
    .at_least(0)
    .inert("see signal.poll.interval.ms"),
    new(
        "signal.file",
        OptionKind::String,
        EVENTS,
        "Signal file",
        "File of the channel `file`, one JSON object per line. It is emptied as it is read, on whichever host runs the \
         task.",
    )
    .default("file-signals.txt"),
    new(
        "signal.emit.failure.max.retries",
        OptionKind::Int,
        EVENTS,
        "Retries of signal writes",
        "How often an incremental snapshot tries again to write a watermark that the source refuses, before it is given \
         up. A source that does not answer is waited for.",
    )
    .default("0")
    .at_least(0),
    new(
        "signal.emit.failure.backoff.ms",
        OptionKind::Long,
        EVENTS,
        "Delay between signal writes (ms)",
        "Pause before such a retry.",
    )
    .default("10000")
    .at_least(1),
    new(
        "custom.sanitize.pattern",
        OptionKind::String,
        CONNECTOR,
        "Custom pattern for masking sensitive configuration",
        "Regular expression for names of options whose values are hidden in what a check of the configuration answers, \
         besides those that are secret by themselves. Configurations are not logged.",
    )
    .default(SANITIZE_PATTERN)
    .importance(Importance::Low)
    .width(Width::Long)
    .check(regex),
    new(
        "poll.dispatch.interval.ms",
        OptionKind::Long,
        CONNECTOR,
        "Dispatch interval (ms)",
        "Accepted; batches are handed over as soon as they are there.",
    )
    .default("0")
    .at_least(0)
    .range_text("A non-negative long value is expected")
    .inert("batches are handed over as soon as they are there"),
    new(
        "source.version.reported",
        OptionKind::String,
        CONNECTOR,
        "Reported version",
        "Text for the field `version` of `source`, for consumers that check it; unset reports the product's version.",
    ),
    new(
        "internal.custom.retriable.exception",
        OptionKind::String,
        CONNECTOR,
        "Further errors to retry",
        "Regular expression over error messages: a match is retried instead of failing the task.",
    )
    .check(regex)
    .unpublished(),
    new(
        "internal.offset.activity.monitor.interval.ms",
        OptionKind::Long,
        CONNECTOR,
        "Watch over the position (ms)",
        "Milliseconds without a new position after which a warning is logged; 0 never warns.",
    )
    .default("600000")
    .at_least(0)
    .range_text("A non-negative long value is expected")
    .unpublished(),
];

/// Rules over the options of [`DEBEZIUM_COMMON`].
pub const DEBEZIUM_CHECKS: &[CrossCheck] = &[queue_above_batch, sink_has_topic];

fn queue_above_batch(s: &Settings) -> Vec<(&'static str, String)> {
    if s.int("max.queue.size") > s.int("max.batch.size") {
        return Vec::new();
    }
    vec![("max.queue.size", "Must be larger than the maximum batch size".to_owned())]
}

fn sink_has_topic(s: &Settings) -> Vec<(&'static str, String)> {
    let sink = s.list("notification.enabled.channels").iter().any(|c| c == "sink");
    if !sink || s.text("notification.sink.topic.name").is_some_and(|t| !t.trim().is_empty()) {
        return Vec::new();
    }
    let text = "Notification topic name must be provided when kafka notification channel is enabled";
    vec![("notification.sink.topic.name", text.to_owned())]
}

fn metric_tags(text: &str) -> Result<(), String> {
    for tag in crate::rule::split_plain_list(text) {
        match tag.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {}
            _ => return Err(format!("'{tag}' is no tag; name=value is expected")),
        }
    }
    Ok(())
}

/// The shared option called `name`, for a table with an order of its own. An unknown name does not
/// compile.
pub const fn shared(name: &str) -> OptionDef {
    named(DEBEZIUM_COMMON, name)
}

/// The option of a list that is called `name`. An unknown name does not compile.
pub const fn named(options: &[OptionDef], name: &str) -> OptionDef {
    let mut i = 0;
    while !equal(options[i].name.as_bytes(), name.as_bytes()) {
        i += 1;
    }
    options[i]
}

/// Length of [`compose`]'s result.
pub const fn composed_len(own: &[OptionDef], common: &[OptionDef]) -> usize {
    let mut length = own.len();
    let mut i = 0;
    while i < common.len() {
        if !has(own, common[i].name) {
            length += 1;
        }
        i += 1;
    }
    length
}

/// `own`, and behind them the options of `common` that `own` does not define. To be used as
/// `const ALL: [OptionDef; composed_len(OWN, DEBEZIUM_COMMON)] = compose(OWN, DEBEZIUM_COMMON);`.
/// A wrong length does not compile.
pub const fn compose<const N: usize>(own: &[OptionDef], common: &[OptionDef]) -> [OptionDef; N] {
    assert!(N == composed_len(own, common));
    let mut all = [OptionDef::new("", OptionKind::String, ""); N];
    let mut at = 0;
    while at < own.len() {
        all[at] = own[at];
        at += 1;
    }
    let mut i = 0;
    while i < common.len() {
        if !has(own, common[i].name) {
            all[at] = common[i];
            at += 1;
        }
        i += 1;
    }
    all
}

const fn has(options: &[OptionDef], name: &str) -> bool {
    let mut i = 0;
    while i < options.len() {
        if equal(options[i].name.as_bytes(), name.as_bytes()) {
            return true;
        }
        i += 1;
    }
    false
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::option::OptionTable;
    use crate::properties::Properties;

    const OWN: &[OptionDef] = &[
        OptionDef::new("own", OptionKind::String, "Own."),
        OptionDef::new("snapshot.fetch.size", OptionKind::Int, "Own.").default("2000").at_least(1),
    ];
    const ALL: [OptionDef; composed_len(OWN, DEBEZIUM_COMMON)] = compose(OWN, DEBEZIUM_COMMON);
    const TABLE: OptionTable =
        OptionTable { title: "t", options: &ALL, open_prefixes: &[], cross_checks: DEBEZIUM_CHECKS };

    fn messages(pairs: &[(&str, &str)]) -> Vec<String> {
        let mut properties = Properties::from([("topic.prefix", "p")]);
        for (k, v) in pairs {
            properties.set(*k, *v);
        }
        TABLE.validate(&properties).messages()
    }

    #[test]
    fn a_connector_takes_the_options_over() {
        assert_eq!(ALL.len(), DEBEZIUM_COMMON.len() + 1);
        let validation = TABLE.validate(&Properties::from([("topic.prefix", "p")]));
        assert_eq!(validation.messages(), [""; 0]);
        assert_eq!(validation.settings.int("snapshot.fetch.size"), 2000);
        assert_eq!(validation.settings.text("incremental.snapshot.watermarking.strategy"), Some("insert_insert"));
        let mut names: Vec<&str> = ALL.iter().map(|o| o.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        assert!(DEBEZIUM_COMMON.iter().all(|o| o.doc.ends_with('.')));
    }

    #[test]
    fn a_single_option_is_found_by_its_name() {
        const DELETES: OptionDef = shared("tombstones.on.delete");
        assert_eq!((DELETES.name, DELETES.default), ("tombstones.on.delete", Some("true")));
    }

    #[test]
    fn rules_over_several_options() {
        assert_eq!(
            messages(&[("notification.enabled.channels", "log,sink")]),
            [
                "The 'notification.sink.topic.name' value is invalid: Notification topic name must be provided when kafka notification channel is enabled"
            ]
        );
        assert!(
            messages(&[("notification.enabled.channels", "sink"), ("notification.sink.topic.name", "n")]).is_empty()
        );
        assert_eq!(
            messages(&[("max.queue.size", "10"), ("max.batch.size", "10")]),
            ["The 'max.queue.size' value is invalid: Must be larger than the maximum batch size"]
        );
        assert_eq!(messages(&[("custom.metric.tags", "a=b,c")]).len(), 1);
        assert!(messages(&[("custom.metric.tags", "a=b, c=d")]).is_empty());
    }

    #[test]
    fn cfg_01_names_of_both_eras() {
        let old = Properties::from([
            ("database.server.name", "p"),
            ("heartbeat.topics.prefix", "h"),
            ("snapshot.mode", "never"),
        ]);
        let validation = TABLE.validate(&old);
        assert!(validation.is_valid(), "{:?}", validation.messages());
        assert_eq!(validation.settings.text("topic.heartbeat.prefix"), Some("h"));
        assert_eq!(validation.settings.text("snapshot.mode"), Some("no_data"));
        assert_eq!(validation.warnings.len(), 3);
    }
}
