//! Options of snapshots, streaming and events that only this connector has, or has with other values.

use thalweg_config::debezium::{named, shared};
use thalweg_config::rule::boolean;
use thalweg_config::{Importance, OptionDef, OptionKind, Rule, Width};
use thalweg_core::naming::NAMING_STRATEGIES;
use thalweg_core::relational::options::RELATIONAL;

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

pub(super) const OPTIONS: &[OptionDef] = &[
    shared("snapshot.mode").one_of(&[
        "always",
        "initial_only",
        "configuration_based",
        "when_needed",
        "initial",
        "recovery",
        "custom",
        "no_data",
        "when_needed_no_data",
    ]),
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
    flag(
        "incremental.snapshot.option.recompile",
        "false",
        "Recompile chunk queries",
        "Whether queries for chunks have OPTION(RECOMPILE).",
    ),
    named(RELATIONAL, "include.schema.comments").inert("comments of tables and columns are not read"),
    option(
        "topic.naming.strategy",
        OptionKind::Class,
        "Topic naming strategy class",
        "How topics of tables are named.",
    )
    .default(NAMING_STRATEGIES[0])
    .rule(Rule::Class(&NAMING_STRATEGIES)),
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
    shared("signal.kafka.topic").unpublished(),
    shared("signal.kafka.bootstrap.servers").unpublished(),
    shared("signal.kafka.groupId").unpublished(),
    shared("signal.kafka.poll.timeout.ms").unpublished(),
    shared("signal.file").unpublished(),
    shared("signal.emit.failure.max.retries").unpublished(),
    shared("signal.emit.failure.backoff.ms").unpublished(),
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
    flag("statistics.metrics.enabled", "true", "Quantiles of the lag", "Accepted; histograms are always kept.")
        .inert("histograms are always kept"),
];
