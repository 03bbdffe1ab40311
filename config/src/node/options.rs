//! The worker's option table: Kafka Connect's keys in distributed mode, and ours (`thalweg.`).

use crate::connector::{CONVERTERS, HEADER_CONVERTERS};
use crate::option::{Importance, OptionDef, OptionKind, OptionTable, Rule, Width};

const fn new(name: &'static str, kind: OptionKind, group: &'static str, doc: &'static str) -> OptionDef {
    OptionDef::new(name, kind, doc).framework().group(group)
}

/// Accepted so that a worker file of Kafka Connect starts as it is.
const fn unused(name: &'static str, why: &'static str) -> OptionDef {
    new(name, OptionKind::String, ACCEPTED, "Accepted for compatibility and without effect.")
        .inert(why)
        .importance(Importance::Low)
}

const CLUSTER: &str = "Cluster";
const KAFKA: &str = "Kafka";
const REST: &str = "REST";
const DELIVERY: &str = "Delivery and offsets";
const TOPICS: &str = "Topics";
const LOGGING: &str = "Logging";
const ACCEPTED: &str = "Accepted without effect";

const IN_RAFT: &str = "configurations and states are kept by the nodes themselves";
const IMPORT_OFFSETS: &str = "offsets are kept by the nodes themselves; import them over REST";
const NO_PLUGINS: &str = "all connectors are part of the program";
const OWN_PROTOCOL: &str = "nodes talk to each other in a protocol of their own";
const NO_JMX: &str = "metrics are served under /metrics";

/// For a node, and for a connector, whose value wins.
pub const FENCED_COMMIT: OptionDef = OptionDef::new(
    "thalweg.fenced.commit.ms",
    OptionKind::Long,
    "With thalweg.delivery=fenced: milliseconds from the first record of a transaction to its commit. A reader of committed records sees a record at most this much later, three times as much while changes come faster than Kafka takes them, and never more than half of transaction.timeout.ms; smaller values mean more commits.",
)
.default("100")
.at_least(1)
.importance(Importance::Low)
.width(Width::Short)
.display("Commit interval");

/// Options of a node.
pub const WORKER: OptionTable = OptionTable {
    title: "Options of a node",
    options: &[
        new(
            "group.id",
            OptionKind::String,
            CLUSTER,
            "Name of the cluster, part of transactional ids: clusters that share a Kafka need different ones. Required with thalweg.seeds; a node by itself is called \"thalweg\".",
        )
        .check(not_blank)
        .importance(Importance::High),
        new(
            "thalweg.node.id",
            OptionKind::Long,
            CLUSTER,
            "Number of this node, unique in the cluster and never used again for another node or a wiped disk. Required with thalweg.seeds; otherwise 1.",
        )
        .at_least(1)
        .importance(Importance::High),
        new(
            "thalweg.data.dir",
            OptionKind::String,
            CLUSTER,
            "Directory for what the node must remember. One node at a time may use it.",
        )
        .default("thalweg-data")
        .check(not_blank)
        .importance(Importance::High),
        new(
            "thalweg.seeds",
            OptionKind::List,
            CLUSTER,
            "RPC addresses (host:port) of the nodes that form the cluster at its first start, the same on each of them. Unset: this node is a cluster by itself.",
        )
        .importance(Importance::High),
        new(
            "thalweg.join",
            OptionKind::Boolean,
            CLUSTER,
            "Whether this node joins a cluster that exists already. thalweg.seeds then names nodes of that cluster.",
        )
        .default("false"),
        new(
            "thalweg.rpc.listen",
            OptionKind::String,
            CLUSTER,
            "host:port at which the node listens for the other nodes; no host: all interfaces. Default: :8084 with thalweg.seeds, otherwise nowhere.",
        ),
        new(
            "thalweg.rpc.advertised",
            OptionKind::String,
            CLUSTER,
            "host:port at which the other nodes reach this one, written as in their thalweg.seeds. Default: the host of thalweg.rpc.listen or the host's name, with the port of thalweg.rpc.listen.",
        ),
        new("thalweg.rpc.tls.ca", OptionKind::String, CLUSTER, "PEM file with the authorities whose certificates nodes must have. Set all three thalweg.rpc.tls options or none."),
        new("thalweg.rpc.tls.cert", OptionKind::String, CLUSTER, "PEM file with this node's certificate chain."),
        new("thalweg.rpc.tls.key", OptionKind::String, CLUSTER, "PEM file with the private key of the certificate."),
        new(
            "session.timeout.ms",
            OptionKind::Int,
            CLUSTER,
            "Length of a node's lease in milliseconds: how long the others wait before they take over the tasks of a node that they cannot hear.",
        )
        .default("3000")
        .at_least(500),
        new("heartbeat.interval.ms", OptionKind::Int, CLUSTER, "Time in milliseconds between two renewals of the lease.")
            .default("500")
            .at_least(50),
        new(
            "rebalance.timeout.ms",
            OptionKind::Int,
            CLUSTER,
            "The most milliseconds that a node has to give a task back.",
        )
        .default("60000")
        .at_least(1),
        new(
            "scheduled.rebalance.max.delay.ms",
            OptionKind::Int,
            CLUSTER,
            "How many milliseconds the tasks of a lost node wait for it to come back before others take them.",
        )
        .default("0")
        .at_least(0),
        new(
            "shutdown.mode",
            OptionKind::String,
            CLUSTER,
            "What a node's tasks do when it is told to stop: others take them at once (move), or they wait for it to come back (hold).",
        )
        .default("move")
        .one_of(&["move", "hold"]),
        new(
            "task.shutdown.graceful.timeout.ms",
            OptionKind::Long,
            CLUSTER,
            "The most milliseconds that a task has to send what it has read and to stop.",
        )
        .default("10000")
        .at_least(1),
        new(
            "bootstrap.servers",
            OptionKind::List,
            KAFKA,
            "Brokers (host:port) through which Kafka is found.",
        )
        .default("localhost:9092")
        .importance(Importance::High),
        new("client.id", OptionKind::String, KAFKA, "Name of the node's own Kafka clients.").importance(Importance::Low),
        new("key.converter", OptionKind::Class, KAFKA, "Converter of keys, for connectors that set none.")
            .default("org.apache.kafka.connect.json.JsonConverter")
            .rule(Rule::Class(CONVERTERS))
            .importance(Importance::High),
        new("value.converter", OptionKind::Class, KAFKA, "Converter of values, for connectors that set none.")
            .default("org.apache.kafka.connect.json.JsonConverter")
            .rule(Rule::Class(CONVERTERS))
            .importance(Importance::High),
        new("header.converter", OptionKind::Class, KAFKA, "Converter of header values, for connectors that set none.")
            .default("org.apache.kafka.connect.storage.SimpleHeaderConverter")
            .rule(Rule::Class(HEADER_CONVERTERS))
            .importance(Importance::Low),
        new(
            "connector.client.config.override.policy",
            OptionKind::String,
            KAFKA,
            "Which producer.override., consumer.override. and admin.override. options connectors may set: All, None, or only those of login (Principal).",
        )
        .default("All")
        .one_of(&["All", "None", "Principal"])
        .value_aliases(&[
            ("AllConnectorClientConfigOverridePolicy", "All"),
            ("NoneConnectorClientConfigOverridePolicy", "None"),
            ("PrincipalConnectorClientConfigOverridePolicy", "Principal"),
            ("org.apache.kafka.connect.connector.policy.AllConnectorClientConfigOverridePolicy", "All"),
            ("org.apache.kafka.connect.connector.policy.NoneConnectorClientConfigOverridePolicy", "None"),
            ("org.apache.kafka.connect.connector.policy.PrincipalConnectorClientConfigOverridePolicy", "Principal"),
        ]),
        new(
            "config.providers",
            OptionKind::List,
            KAFKA,
            "Names of the providers that ${name:path:key} in values refers to; each has its class in config.providers.<name>.class (FileConfigProvider, DirectoryConfigProvider, EnvVarConfigProvider).",
        )
        .default(""),
        new(
            "thalweg.delivery",
            OptionKind::String,
            DELIVERY,
            "plain: an idempotent producer for each task. fenced: a transactional one, so that the broker refuses a task's former owner.",
        )
        .default("fenced")
        .one_of(&["plain", "fenced"])
        .importance(Importance::High),
        FENCED_COMMIT.framework().group(DELIVERY),
        new(
            "thalweg.producer.buffer.bytes",
            OptionKind::Long,
            DELIVERY,
            "Bytes that all producers of this node together may hold in records that Kafka has not acknowledged yet. Each producer gets an equal share; producer.buffer.memory limits a single one.",
        )
        .default("25165824")
        .at_least(1_048_576)
        .importance(Importance::Low),
        new(
            "exactly.once.source.support",
            OptionKind::String,
            DELIVERY,
            "Whether connectors can ask for exactly-once delivery, with their offsets in a Kafka topic. Not supported: enabled ends the start, preparing is without effect.",
        )
        .default("disabled")
        .one_of(&["disabled", "preparing", "enabled"]),
        new(
            "thalweg.offset.commit.ms",
            OptionKind::Long,
            DELIVERY,
            "Time in milliseconds for which the offsets of all tasks of a node are gathered before they are stored together.",
        )
        .default("250")
        .at_least(1),
        new(
            "offset.flush.interval.ms",
            OptionKind::Long,
            DELIVERY,
            "The longest time in milliseconds between two commits of a task's offset.",
        )
        .default("10000")
        .at_least(1),
        new("offset.flush.timeout.ms", OptionKind::Long, DELIVERY, "The most milliseconds that a commit of offsets may take.")
            .default("5000")
            .at_least(1),
        new(
            "listeners",
            OptionKind::List,
            REST,
            "Where the REST interface and the console listen: http://host:port or https://host:port; no host: all interfaces.",
        )
        .default("http://:8083")
        .importance(Importance::High),
        new("rest.host.name", OptionKind::String, REST, "Older form of listeners: the host. Counts only if listeners is not set.")
            .importance(Importance::Low),
        new("rest.port", OptionKind::Int, REST, "Older form of listeners: the port. Counts only if listeners is not set.")
            .rule(Rule::Range(Some(0), Some(65535)))
            .importance(Importance::Low),
        new(
            "rest.advertised.host.name",
            OptionKind::String,
            REST,
            "Host under which the other nodes and users reach the REST interface. Default: the host of the first listener, or the host's name.",
        ),
        new("rest.advertised.port", OptionKind::Int, REST, "Port to that host. Default: that of the listener.")
            .rule(Rule::Range(Some(0), Some(65535))),
        new("rest.advertised.listener", OptionKind::String, REST, "Scheme of the listener that is advertised: http or https.")
            .one_of(&["http", "https"]),
        new(
            "rest.reported.version",
            OptionKind::String,
            REST,
            "Version of Kafka Connect that the REST interface reports, for tools that look at it.",
        )
        .default("4.3.0")
        .check(not_blank)
        .importance(Importance::Low),
        new(
            "rest.auth.basic.file",
            OptionKind::String,
            REST,
            "File with name=password lines of users who may use the REST interface. Unset: everybody.",
        ),
        new(
            "admin.listeners",
            OptionKind::List,
            REST,
            "Listeners that serve /admin. Unset: the same as everything else. Empty: /admin is not served.",
        )
        .importance(Importance::Low),
        new("access.control.allow.origin", OptionKind::String, REST, "Origin that browsers may call from; empty: none.")
            .default("")
            .importance(Importance::Low),
        new("access.control.allow.methods", OptionKind::String, REST, "Methods that browsers may call with; empty: the simple ones.")
            .default("")
            .importance(Importance::Low),
        new(
            "response.http.headers.config",
            OptionKind::String,
            REST,
            "Headers of all answers: a comma list of \"action name: value\", with the actions set, add, setDate, addDate.",
        )
        .default("")
        .importance(Importance::Low),
        new("rest.extension.classes", OptionKind::List, REST, "Not supported: Java classes cannot be loaded.")
            .refused("Java classes cannot be loaded; for a login set rest.auth.basic.file, otherwise remove the option")
            .importance(Importance::Low),
        new("topic.tracking.enable", OptionKind::Boolean, TOPICS, "Whether the topics that connectors use are remembered.")
            .default("true")
            .importance(Importance::Low),
        new("topic.tracking.allow.reset", OptionKind::Boolean, TOPICS, "Whether users may reset that list.")
            .default("true")
            .importance(Importance::Low),
        new(
            "topic.creation.enable",
            OptionKind::Boolean,
            TOPICS,
            "Whether connectors with topic.creation. options create their topics. Otherwise the broker does, if it may.",
        )
        .default("true")
        .importance(Importance::Low),
        new("thalweg.log.level", OptionKind::String, LOGGING, "Level of the log at start; /admin/loggers changes it while the node runs.")
            .default("info")
            .one_of(&["off", "error", "warn", "info", "debug", "trace"]),
        new("thalweg.log.format", OptionKind::String, LOGGING, "Lines of text, or one JSON object for each entry.")
            .default("text")
            .one_of(&["text", "json"]),
        unused("config.storage.topic", IN_RAFT),
        unused("config.storage.replication.factor", IN_RAFT),
        unused("status.storage.topic", IN_RAFT),
        unused("status.storage.partitions", IN_RAFT),
        unused("status.storage.replication.factor", IN_RAFT),
        unused("offset.storage.topic", IMPORT_OFFSETS),
        unused("offset.storage.partitions", IMPORT_OFFSETS),
        unused("offset.storage.replication.factor", IMPORT_OFFSETS),
        unused("offset.storage.file.filename", IMPORT_OFFSETS),
        unused("worker.sync.timeout.ms", IN_RAFT),
        unused("worker.unsync.backoff.ms", IN_RAFT),
        unused("connect.protocol", OWN_PROTOCOL),
        unused("plugin.path", NO_PLUGINS),
        unused("plugin.discovery", NO_PLUGINS),
        unused("internal.key.converter", IN_RAFT),
        unused("internal.value.converter", IN_RAFT),
        unused("internal.key.converter.schemas.enable", IN_RAFT),
        unused("internal.value.converter.schemas.enable", IN_RAFT),
        unused("inter.worker.key.generation.algorithm", OWN_PROTOCOL),
        unused("inter.worker.key.size", OWN_PROTOCOL),
        unused("inter.worker.key.ttl.ms", OWN_PROTOCOL),
        unused("inter.worker.signature.algorithm", OWN_PROTOCOL),
        unused("inter.worker.verification.algorithms", OWN_PROTOCOL),
        unused("metric.reporters", NO_JMX),
        unused("metrics.num.samples", NO_JMX),
        unused("metrics.recording.level", NO_JMX),
        unused("metrics.sample.window.ms", NO_JMX),
    ],
    open_prefixes: &[
        "producer.",
        "consumer.",
        "admin.",
        "key.converter.",
        "value.converter.",
        "header.converter.",
        "config.providers.",
        "listeners.https.",
        // Settings of Kafka clients.
        "security.",
        "ssl.",
        "sasl.",
        "client.dns.lookup",
        "connections.max.idle.ms",
        "metadata.max.age.ms",
        "receive.buffer.bytes",
        "reconnect.backoff.",
        "request.timeout.ms",
        "retry.backoff.",
        "send.buffer.bytes",
        "socket.connection.setup.timeout.",
    ],
    cross_checks: &[],
};

fn not_blank(text: &str) -> Result<(), String> {
    if text.trim().is_empty() { Err("String may not be empty".to_owned()) } else { Ok(()) }
}
