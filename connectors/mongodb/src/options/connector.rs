//! Options of the group `Connector`: batches, snapshots, retries, and other behaviour of the task.

use thalweg_config::debezium::shared;
use thalweg_config::{Importance, OptionDef, OptionKind, Width};

use super::checks;

const GROUP: &str = "Connector";
const LINEAGE: &str = "lineage events are not produced";

const fn option(name: &'static str, kind: OptionKind, display: &'static str, doc: &'static str) -> OptionDef {
    OptionDef::new(name, kind, doc).group(GROUP).display(display)
}

const fn flag(name: &'static str, default: &'static str, display: &'static str, doc: &'static str) -> OptionDef {
    option(name, OptionKind::Boolean, display, doc).default(default)
}

const fn lineage(name: &'static str, kind: OptionKind, display: &'static str, doc: &'static str) -> OptionDef {
    option(name, kind, display, doc).importance(Importance::Low).width(Width::Long).inert(LINEAGE)
}

pub(super) const OPTIONS: &[OptionDef] = &[
    shared("event.processing.failure.handling.mode"),
    shared("max.batch.size"),
    shared("max.queue.size"),
    shared("poll.interval.ms"),
    shared("max.queue.size.in.bytes"),
    shared("provide.transaction.metadata"),
    shared("skipped.operations").check(checks::skipped_operations),
    shared("snapshot.delay.ms"),
    shared("streaming.delay.ms"),
    shared("snapshot.include.collection.list"),
    shared("snapshot.fetch.size"),
    shared("snapshot.max.threads").aliases(&["initial.sync.max.threads"]),
    shared("snapshot.max.threads.multiplier"),
    flag(
        "legacy.snapshot.max.threads",
        "false",
        "Enforces using a single thread per table regardless of table size",
        "Whether a collection is read by one thread, however large it is.",
    )
    .importance(Importance::Low)
    .width(Width::Short),
    flag(
        "internal.legacy.snapshot.max.threads",
        "false",
        "Enforces using a single thread per table regardless of table size",
        "Older name of `legacy.snapshot.max.threads`.",
    )
    .importance(Importance::Low)
    .width(Width::Short)
    .inert("see legacy.snapshot.max.threads"),
    option(
        "snapshot.mode.custom.name",
        OptionKind::String,
        "Snapshot Mode Custom Name",
        "With `snapshot.mode=custom`: one of the built-in modes. Classes cannot be loaded.",
    ),
    shared("snapshot.mode.configuration.based.snapshot.data"),
    shared("snapshot.mode.configuration.based.snapshot.schema").inert("MongoDB has no schema to read"),
    shared("snapshot.mode.configuration.based.start.stream"),
    shared("snapshot.mode.configuration.based.snapshot.on.schema.error").inert("MongoDB has no schema to lose"),
    shared("snapshot.mode.configuration.based.snapshot.on.data.error"),
    shared("retriable.restart.connector.wait.ms"),
    shared("query.fetch.size").inert("see snapshot.fetch.size"),
    shared("errors.max.retries"),
    shared("incremental.snapshot.watermarking.strategy"),
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
    shared("connection.validation.timeout.ms"),
    shared("executor.shutdown.timeout.ms"),
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
    shared("extended.headers.enabled"),
    shared("guardrail.collections.max"),
    shared("guardrail.collections.limit.action"),
    shared("custom.sanitize.pattern"),
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
    .value_aliases(thalweg_config::alias::SNAPSHOT_MODES),
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
    shared("schema.name.adjustment.mode"),
    shared("field.name.adjustment.mode").inert("documents are JSON text, whose field names are never changed"),
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
    flag(
        "thalweg.snapshot.resume",
        "true",
        "Resume snapshots",
        "Whether an interrupted snapshot goes on where it stood: collections that are done are not read again, and \
         large ones (10,000 documents or 64 MB) go on within ranges of `_id`. `false` begins anew, as Debezium does.",
    ),
    flag(
        "thalweg.snapshot.spread",
        "false",
        "Spread snapshots",
        "Whether a snapshot is shared by as many tasks as `tasks.max` allows, so that several nodes read it: ranges of \
         large collections, and small collections as a whole. The first task streams, as soon as all of them are \
         done; the others then wait for the next snapshot. Needs `thalweg.snapshot.resume`. Not with \
         `mongodb.connection.mode=replica_set` on a sharded cluster, whose shards have tasks of their own.",
    ),
    shared("incremental.snapshot.chunk.size"),
    shared("incremental.snapshot.allow.schema.changes").inert("MongoDB has no schema"),
    shared("poll.dispatch.interval.ms"),
    shared("internal.custom.retriable.exception"),
    shared("internal.offset.activity.monitor.interval.ms"),
    shared("source.version.reported"),
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
