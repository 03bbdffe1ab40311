//! Options of the group `Connector`: batches, snapshots, retries, and other behaviour of the task.

use thalweg_config::{Importance, OptionDef, OptionKind, Rule, Width};

use super::checks;

const GROUP: &str = "Connector";
const LINEAGE: &str = "lineage events are not produced";

const fn option(name: &'static str, kind: OptionKind, display: &'static str, doc: &'static str) -> OptionDef {
    OptionDef::new(name, kind, doc).group(GROUP).display(display)
}

const fn number(
    name: &'static str,
    kind: OptionKind,
    default: &'static str,
    min: i64,
    display: &'static str,
    doc: &'static str,
) -> OptionDef {
    option(name, kind, display, doc).default(default).at_least(min)
}

const fn flag(name: &'static str, default: &'static str, display: &'static str, doc: &'static str) -> OptionDef {
    option(name, OptionKind::Boolean, display, doc).default(default)
}

const fn lineage(name: &'static str, kind: OptionKind, display: &'static str, doc: &'static str) -> OptionDef {
    option(name, kind, display, doc).importance(Importance::Low).width(Width::Long).inert(LINEAGE)
}

pub(super) const OPTIONS: &[OptionDef] = &[
    option(
        "event.processing.failure.handling.mode",
        OptionKind::String,
        "Event deserialization failure handling",
        "What happens to an event that cannot be made into a record: fail stops the task, warn logs and leaves it out, \
         skip (or ignore) leaves it out.",
    )
    .default("fail")
    .width(Width::Short)
    .one_of(&["warn", "fail", "ignore", "skip"]),
    number(
        "max.batch.size",
        OptionKind::Int,
        "2048",
        1,
        "Change event batch size",
        "Most events that are handed over at once.",
    )
    .width(Width::Short),
    number(
        "max.queue.size",
        OptionKind::Int,
        "8192",
        1,
        "Change event buffer size",
        "Most events that wait between reading and sending; must exceed `max.batch.size`.",
    )
    .width(Width::Short)
    .range_text("A positive queue size is required"),
    number(
        "poll.interval.ms",
        OptionKind::Long,
        "500",
        1,
        "Poll interval (ms)",
        "Milliseconds to wait for new events after an empty answer; more than 5000 counts as 5000.",
    )
    .width(Width::Short),
    number(
        "max.queue.size.in.bytes",
        OptionKind::Long,
        "0",
        0,
        "Change event buffer size in bytes",
        "Most bytes that wait between reading and sending; 0 sets no limit in bytes.",
    )
    .width(Width::Long),
    flag(
        "provide.transaction.metadata",
        "false",
        "Store transaction metadata information in a dedicated topic.",
        "Begin and end of transactions on a topic of their own, and their ids in events.",
    )
    .importance(Importance::Low)
    .width(Width::Short)
    .check(checks::transaction_metadata),
    option(
        "skipped.operations",
        OptionKind::List,
        "Skipped Operations",
        "Operations that yield no records: c (create), u (update), d (delete), t (truncate), r (read), or none.",
    )
    .default("t")
    .importance(Importance::Low)
    .width(Width::Short)
    .check(checks::skipped_operations),
    number(
        "snapshot.delay.ms",
        OptionKind::Long,
        "0",
        0,
        "Snapshot Delay (milliseconds)",
        "Milliseconds between the start of the task and its snapshot.",
    )
    .importance(Importance::Low),
    number(
        "streaming.delay.ms",
        OptionKind::Long,
        "0",
        0,
        "Streaming Delay (milliseconds)",
        "Milliseconds between the end of the snapshot and the change stream.",
    )
    .importance(Importance::Low),
    option(
        "snapshot.include.collection.list",
        OptionKind::List,
        "Snapshot mode include data collection",
        "Collections (regular expressions for db.collection) that a snapshot reads; unset reads all captured ones.",
    )
    .width(Width::Long)
    .rule(Rule::Regexes),
    option(
        "snapshot.fetch.size",
        OptionKind::Int,
        "Snapshot fetch size",
        "Documents per answer while a collection is read; 0 or unset leaves it to the server.",
    )
    .at_least(0),
    number(
        "snapshot.max.threads",
        OptionKind::Int,
        "1",
        1,
        "Snapshot maximum threads",
        "Collections that are read at the same time.",
    )
    .width(Width::Short)
    .aliases(&["initial.sync.max.threads"]),
    number(
        "snapshot.max.threads.multiplier",
        OptionKind::Int,
        "1",
        1,
        "Snapshot maximum thread multiplier",
        "Accepted; a collection is never divided between threads.",
    )
    .width(Width::Short)
    .inert("a collection is never divided between threads"),
    flag(
        "legacy.snapshot.max.threads",
        "false",
        "Enforces using a single thread per table regardless of table size",
        "Accepted; one collection is always read by one thread.",
    )
    .importance(Importance::Low)
    .width(Width::Short)
    .inert("one collection is always read by one thread"),
    flag(
        "internal.legacy.snapshot.max.threads",
        "false",
        "Enforces using a single thread per table regardless of table size",
        "Older name of `legacy.snapshot.max.threads`.",
    )
    .importance(Importance::Low)
    .width(Width::Short)
    .inert("one collection is always read by one thread"),
    option(
        "snapshot.mode.custom.name",
        OptionKind::String,
        "Snapshot Mode Custom Name",
        "With `snapshot.mode=custom`: one of the built-in modes. Classes cannot be loaded.",
    ),
    flag(
        "snapshot.mode.configuration.based.snapshot.data",
        "false",
        "Snapshot mode property based snapshot data",
        "With `snapshot.mode=configuration_based`: take a snapshot at every start.",
    ),
    flag(
        "snapshot.mode.configuration.based.snapshot.schema",
        "false",
        "Snapshot mode property based snapshot schema",
        "Accepted; there is no schema to read.",
    )
    .inert("MongoDB has no schema to read"),
    flag(
        "snapshot.mode.configuration.based.start.stream",
        "false",
        "Snapshot mode property based start stream",
        "With `snapshot.mode=configuration_based`: read the change stream.",
    ),
    flag(
        "snapshot.mode.configuration.based.snapshot.on.schema.error",
        "false",
        "Snapshot mode property based snapshot on schema error",
        "Accepted; there is no schema to lose.",
    )
    .inert("MongoDB has no schema to lose"),
    flag(
        "snapshot.mode.configuration.based.snapshot.on.data.error",
        "false",
        "Snapshot mode property based snapshot on data error",
        "With `snapshot.mode=configuration_based`: take a new snapshot when the stored position is lost.",
    ),
    number(
        "retriable.restart.connector.wait.ms",
        OptionKind::Long,
        "10000",
        1,
        "Retriable restart wait (ms)",
        "Milliseconds before a task is restarted after an error that may go away by itself.",
    )
    .importance(Importance::Low),
    number("query.fetch.size", OptionKind::Int, "0", 0, "Query fetch size", "Accepted; see `snapshot.fetch.size`.")
        .inert("see snapshot.fetch.size"),
    option(
        "errors.max.retries",
        OptionKind::Int,
        "The maximum number of retries",
        "Restarts in a row after errors that may go away by themselves: -1 without limit, 0 none.",
    )
    .default("-1")
    .importance(Importance::Low),
    option(
        "incremental.snapshot.watermarking.strategy",
        OptionKind::String,
        "Incremental snapshot watermarking strategy",
        "How the window of a chunk is closed in the signal collection. No effect without incremental snapshots.",
    )
    .default("INSERT_INSERT")
    .importance(Importance::Low)
    .one_of(&["insert_delete", "insert_insert"]),
    flag(
        "internal.log.position.check.enable",
        "true",
        "Enable/Disable log position check",
        "Whether a start checks that the server still holds the stored position.",
    ),
    flag(
        "internal.advanced.metrics.enable",
        "false",
        "Enable/Disable advance metrics",
        "Accepted; metrics per collection are always there.",
    )
    .inert("metrics are not configurable"),
    number(
        "connection.validation.timeout.ms",
        OptionKind::Long,
        "60000",
        1,
        "Connection validation timeout (ms)",
        "Milliseconds for the attempt to connect when a configuration is validated.",
    )
    .importance(Importance::Low)
    .width(Width::Short),
    number(
        "executor.shutdown.timeout.ms",
        OptionKind::Long,
        "4000",
        1,
        "Executor shutdown timeout (ms)",
        "Milliseconds that a task may take to stop in order.",
    ),
    lineage(
        "openlineage.integration.enabled",
        OptionKind::Boolean,
        "Enables OpenLineage integration",
        "Accepted; lineage events are not produced.",
    )
    .default("false")
    .width(Width::Short),
    lineage(
        "openlineage.integration.config.file.path",
        OptionKind::String,
        "Path to OpenLineage file configuration",
        "Accepted; lineage events are not produced.",
    )
    .default("./openlineage.yml"),
    lineage(
        "openlineage.integration.job.namespace",
        OptionKind::String,
        "Namespace used for Debezium job",
        "Accepted; lineage events are not produced.",
    ),
    lineage(
        "openlineage.integration.job.description",
        OptionKind::String,
        "Description used for Debezium job",
        "Accepted; lineage events are not produced.",
    )
    .default("Debezium change data capture job"),
    lineage(
        "openlineage.integration.job.tags",
        OptionKind::List,
        "Debezium job tags",
        "Accepted; lineage events are not produced.",
    ),
    lineage(
        "openlineage.integration.job.owners",
        OptionKind::List,
        "Debezium job owners",
        "Accepted; lineage events are not produced.",
    ),
    lineage(
        "openlineage.integration.dataset.kafka.bootstrap.servers",
        OptionKind::String,
        "Kafka bootstrap server used in Kafka Connect deployment",
        "Accepted; lineage events are not produced.",
    ),
    flag(
        "extended.headers.enabled",
        "true",
        "Enable/Disable extended headers",
        "Adds headers with connector, task and run to every record of a change.",
    )
    .importance(Importance::Low)
    .width(Width::Short),
    number(
        "guardrail.collections.max",
        OptionKind::Int,
        "0",
        0,
        "Maximum number of collections or tables",
        "Most collections that may be captured, counted at the start of a task; 0 sets no limit.",
    )
    .width(Width::Short),
    option(
        "guardrail.collections.limit.action",
        OptionKind::String,
        "Guardrail collections limit action",
        "What happens above `guardrail.collections.max`: warn logs, fail stops the task.",
    )
    .default("warn")
    .width(Width::Short)
    .one_of(&["warn", "fail"]),
    option(
        "custom.sanitize.pattern",
        OptionKind::String,
        "Custom pattern for masking sensitive configuration",
        "Regular expression for names of properties whose values are masked.",
    )
    .default(checks::SANITIZE_PATTERN)
    .importance(Importance::Low)
    .width(Width::Long)
    .check(checks::regex),
    flag(
        "statistics.metrics.enabled",
        "true",
        "Enable collecting statistics metrics like latencies",
        "Accepted; metrics are not configurable.",
    )
    .width(Width::Short)
    .inert("metrics are not configurable"),
    option(
        "snapshot.mode",
        OptionKind::String,
        "Snapshot mode",
        "When collections are read before the stream: initial (no offset yet), always, initial_only (and then no \
         stream), no_data, when_needed (no offset, or the server lost the position), configuration_based.",
    )
    .default("initial")
    .importance(Importance::Low)
    .width(Width::Short)
    .one_of(&["always", "initial_only", "configuration_based", "when_needed", "initial", "custom", "no_data"])
    .value_aliases(&[("never", "no_data"), ("schema_only", "no_data")]),
    option(
        "capture.mode",
        OptionKind::String,
        "Capture mode",
        "What the server adds to events: full documents for updates (update_full), documents as they were before a \
         change (with_pre_image).",
    )
    .default("change_streams_update_full")
    .width(Width::Short)
    .one_of(&[
        "change_streams",
        "change_streams_update_full",
        "change_streams_with_pre_image",
        "change_streams_update_full_with_pre_image",
    ]),
    option(
        "schema.name.adjustment.mode",
        OptionKind::String,
        "Schema Name Adjustment",
        "Makes schema names valid for Avro: avro replaces characters by _, avro_unicode by _uXXXX.",
    )
    .default("none")
    .importance(Importance::Low)
    .one_of(&["none", "avro_unicode", "avro"]),
    option(
        "field.name.adjustment.mode",
        OptionKind::String,
        "Field Name Adjustment",
        "Accepted; documents are JSON text, whose field names are never changed.",
    )
    .default("none")
    .importance(Importance::Low)
    .one_of(&["none", "avro_unicode", "avro"])
    .aliases(&["sanitize.field.names"])
    .value_aliases(&[("true", "avro"), ("false", "none")]),
    option(
        "json.serialization.mode",
        OptionKind::String,
        "JSON form of documents",
        "Extended JSON of documents: legacy (before and after strict, updatedFields relaxed), strict, extended (every \
         value with its type), relaxed.",
    )
    .default("legacy")
    .one_of(&["legacy", "strict", "extended", "relaxed"]),
    flag(
        "snapshot.include.views",
        "false",
        "Read views in snapshots",
        "Whether a snapshot reads views. They never stream.",
    ),
    number(
        "incremental.snapshot.chunk.size",
        OptionKind::Int,
        "1024",
        1,
        "Incremental snapshot chunk size",
        "Documents per chunk. No effect without incremental snapshots.",
    ),
    flag(
        "incremental.snapshot.allow.schema.changes",
        "false",
        "Schema changes in incremental snapshots",
        "Accepted; MongoDB has no schema.",
    )
    .inert("MongoDB has no schema"),
    number(
        "poll.dispatch.interval.ms",
        OptionKind::Long,
        "0",
        0,
        "Dispatch interval (ms)",
        "Accepted; batches are handed over as soon as they are there.",
    )
    .inert("batches are handed over as soon as they are there"),
    option(
        "internal.custom.retriable.exception",
        OptionKind::String,
        "Further errors to retry",
        "Regular expression over error messages: a match is retried instead of failing the task.",
    )
    .check(checks::regex)
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
        "source.version.reported",
        OptionKind::String,
        "Reported version",
        "Text for the field `version` of `source`, for consumers that check it; unset reports the product's version.",
    ),
    flag(
        "skip.messages.without.change",
        "false",
        "Skip messages without change",
        "Accepted; the server sends no such events.",
    )
    .inert("the server sends no events without a change"),
    option("binary.handling.mode", OptionKind::String, "Binary handling", "Accepted; documents are JSON text.")
        .inert("documents are JSON text"),
    option(
        "event.converting.failure.handling.mode",
        OptionKind::String,
        "Converting failure handling",
        "Accepted; every BSON value has a JSON form.",
    )
    .inert("every BSON value has a JSON form"),
    option("source.struct.version", OptionKind::String, "Version of source", "Accepted; there is one version.")
        .inert("there is one version of source"),
];
