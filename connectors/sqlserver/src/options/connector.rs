//! Options of snapshots, streaming and events that only this connector has, or has with other values.

use thalweg_config::alias::SNAPSHOT_MODES;
use thalweg_config::debezium::shared;
use thalweg_config::rule::{boolean, topic_name_chars};
use thalweg_config::{Importance, OptionDef, OptionKind, Rule, Width};
use thalweg_core::naming::NAMING_STRATEGIES;

const GROUP: &str = "Connector";
const NO_CLASSES: &str = "classes cannot be loaded";

const fn option(name: &'static str, kind: OptionKind, display: &'static str, doc: &'static str) -> OptionDef {
    OptionDef::new(name, kind, doc).group(GROUP).display(display).importance(Importance::Low)
}

const fn flag(name: &'static str, default: &'static str, display: &'static str, doc: &'static str) -> OptionDef {
    option(name, OptionKind::Boolean, display, doc).default(default).check(boolean).width(Width::Short)
}

const fn number(
    name: &'static str,
    kind: OptionKind,
    default: &'static str,
    least: i64,
    display: &'static str,
    doc: &'static str,
) -> OptionDef {
    option(name, kind, display, doc).default(default).at_least(least).width(Width::Short)
}

const fn regexes(name: &'static str, display: &'static str, doc: &'static str) -> OptionDef {
    option(name, OptionKind::List, display, doc).rule(Rule::Regexes).width(Width::Long).unpublished()
}

const fn signal(name: &'static str, kind: OptionKind, display: &'static str, doc: &'static str) -> OptionDef {
    option(name, kind, display, doc).unpublished()
}

fn regex(text: &str) -> Result<(), String> {
    fancy_regex::Regex::new(text).map(drop).map_err(|e| format!("A regular expression is expected, but {e}"))
}

pub(super) const OPTIONS: &[OptionDef] = &[
    shared("snapshot.mode")
        .one_of(&[
            "always",
            "initial_only",
            "configuration_based",
            "when_needed",
            "initial",
            "recovery",
            "custom",
            "no_data",
            "when_needed_no_data",
        ])
        .value_aliases(SNAPSHOT_MODES),
    option(
        "snapshot.isolation.mode",
        OptionKind::String,
        "Snapshot isolation mode",
        "How a snapshot is kept apart from changes: exclusive locks tables until its end, repeatable_read while the \
         structure is read; snapshot needs ALLOW_SNAPSHOT_ISOLATION in the database and locks nothing; read_committed \
         and read_uncommitted promise less.",
    )
    .default("repeatable_read")
    .one_of(&["exclusive", "snapshot", "repeatable_read", "read_committed", "read_uncommitted"]),
    option(
        "snapshot.locking.mode",
        OptionKind::String,
        "Snapshot locking mode",
        "Whether the modes exclusive and repeatable_read lock tables.",
    )
    .default("exclusive")
    .one_of(&["exclusive", "none", "custom"]),
    option("snapshot.query.mode", OptionKind::String, "Snapshot query mode", "Only select_all.")
        .default("select_all")
        .one_of(&["select_all", "custom"]),
    shared("snapshot.fetch.size").default("2000"),
    flag(
        "legacy.snapshot.max.threads",
        "false",
        "One thread per table",
        "Whether a table is read by one thread, however large it is.",
    ),
    shared("query.fetch.size").default("10000"),
    option(
        "data.query.mode",
        OptionKind::String,
        "Query mode",
        "Whether changes are read from the change tables themselves (direct), or through their functions (function).",
    )
    .default("direct")
    .one_of(&["direct", "function"]),
    number(
        "streaming.fetch.size",
        OptionKind::Int,
        "0",
        0,
        "Streaming fetch size",
        "Rows of a page of a change table. 0: 2000.",
    ),
    number(
        "max.iteration.transactions",
        OptionKind::Int,
        "500",
        0,
        "Transactions per iteration",
        "The most transactions that are read at once. 0: all that there are.",
    ),
    number(
        "poll.dispatch.interval.ms",
        OptionKind::Long,
        "0",
        0,
        "Dispatch interval (ms)",
        "Accepted; batches are handed over as soon as they are there.",
    )
    .inert("batches are handed over as soon as they are there"),
    flag(
        "incremental.snapshot.option.recompile",
        "false",
        "Recompile chunk queries",
        "Whether queries for chunks have OPTION(RECOMPILE).",
    ),
    option(
        "topic.naming.strategy",
        OptionKind::Class,
        "Topic naming strategy class",
        "How topics of tables are named.",
    )
    .default(NAMING_STRATEGIES[0])
    .rule(Rule::Class(&NAMING_STRATEGIES)),
    option(
        "topic.regex",
        OptionKind::String,
        "Topic regex",
        "With a regex strategy: topics whose whole name it matches get another name.",
    )
    .unpublished(),
    option("topic.replacement", OptionKind::String, "Topic replacement", "With a regex strategy: that name.")
        .unpublished(),
    option("transaction.metadata.factory", OptionKind::Class, "Transaction metadata factory", "Only the default.")
        .default("io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory")
        .rule(Rule::Class(&["io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory"])),
    option(
        "sourceinfo.struct.maker",
        OptionKind::Class,
        "Source info struct maker",
        "Accepted; classes cannot be loaded.",
    )
    .default("io.debezium.connector.sqlserver.SqlServerSourceInfoStructMaker")
    .inert(NO_CLASSES),
    option("queue.provider.type", OptionKind::String, "Queue provider", "Accepted; classes cannot be loaded.")
        .inert(NO_CLASSES),
    option("source.struct.version", OptionKind::String, "Version of source", "Accepted; there is one version.")
        .inert("there is one version of source"),
    signal(
        "signal.kafka.topic",
        OptionKind::String,
        "Signal topic",
        "Topic of the channel `kafka`. Default: <topic.prefix>-signal.",
    )
    .check(topic_name_chars),
    signal(
        "signal.kafka.bootstrap.servers",
        OptionKind::String,
        "Brokers of the signal topic",
        "Default: the brokers of the node. Properties under `signal.consumer.` are those of the consumer.",
    ),
    signal(
        "signal.kafka.groupId",
        OptionKind::String,
        "Group of the signal consumer",
        "Under this group the place in the topic is stored.",
    )
    .default("kafka-signal"),
    signal(
        "signal.kafka.poll.timeout.ms",
        OptionKind::Long,
        "Poll timeout of the signal consumer",
        "Accepted; see signal.poll.interval.ms.",
    )
    .at_least(0)
    .inert("see signal.poll.interval.ms"),
    signal("signal.file", OptionKind::String, "Signal file", "File of the channel `file`, one JSON object per line.")
        .default("file-signals.txt"),
    signal(
        "signal.emit.failure.max.retries",
        OptionKind::Int,
        "Retries of signal writes",
        "How often a watermark that the server refuses is written again.",
    )
    .default("0")
    .at_least(0),
    signal(
        "signal.emit.failure.backoff.ms",
        OptionKind::Long,
        "Delay between signal writes (ms)",
        "Pause before such a retry.",
    )
    .default("10000")
    .at_least(1),
    regexes(
        "internal.capture.instance.include.list",
        "Include capture instances",
        "Capture instances that are read. Unset: all.",
    ),
    regexes(
        "internal.capture.instance.exclude.list",
        "Exclude capture instances",
        "Capture instances that are not read.",
    ),
    flag(
        "internal.change.column.filter.override",
        "false",
        "All columns of the source tables",
        "Whether the columns of source tables count instead of those that are captured.",
    )
    .unpublished(),
    flag(
        "internal.log.position.check.enable",
        "true",
        "Check the position",
        "Whether it is checked at the start that changes since the stored position are still there.",
    )
    .unpublished(),
    flag("internal.streaming.lsn.optimization", "true", "LSN optimization", "Accepted; no longer taken into account.")
        .inert("it is no longer taken into account")
        .unpublished(),
    flag(
        "internal.advanced.metrics.enable",
        "false",
        "Counters per table",
        "Accepted; tables are counted in any case.",
    )
    .inert("tables are counted in any case")
    .unpublished(),
    number(
        "internal.offset.activity.monitor.interval.ms",
        OptionKind::Long,
        "600000",
        0,
        "Watch over the position (ms)",
        "Milliseconds without a new position after which a warning is logged; 0 never warns.",
    )
    .unpublished(),
    option(
        "internal.custom.retriable.exception",
        OptionKind::String,
        "Further errors to retry",
        "Regular expression over error messages: a match is retried instead of failing the task.",
    )
    .check(regex)
    .unpublished(),
    flag("statistics.metrics.enabled", "true", "Quantiles of the lag", "Accepted; histograms are always kept.")
        .inert("histograms are always kept"),
    option(
        "custom.sanitize.pattern",
        OptionKind::String,
        "Names of secrets",
        "Accepted; what names a secret is always hidden.",
    )
    .check(regex)
    .inert("what names a secret is always hidden"),
];
