//! Options of the group `MongoDB`: connection, authentication, TLS, what is captured, and the cursor.
//!
//! Published names, order, types, importance and width are those of Debezium's MongoDB connector;
//! what it reads without publishing follows behind.

use thalweg_config::debezium::shared;
use thalweg_config::rule::boolean;
use thalweg_config::{Importance, OptionDef, OptionKind, Width};

use super::checks;

const GROUP: &str = "MongoDB";

const fn option(name: &'static str, kind: OptionKind, display: &'static str, doc: &'static str) -> OptionDef {
    OptionDef::new(name, kind, doc).group(GROUP).display(display).width(Width::Short)
}

const fn millis(name: &'static str, default: &'static str, display: &'static str, doc: &'static str) -> OptionDef {
    option(name, OptionKind::Int, display, doc).default(default).importance(Importance::Low).at_least(0)
}

pub(super) const OPTIONS: &[OptionDef] = &[
    shared("topic.prefix").group(GROUP),
    option(
        "mongodb.connection.string",
        OptionKind::String,
        "Connection String",
        "Where MongoDB is: mongodb://host1,host2/?replicaSet=rs0 or mongodb+srv://host/. What it says about credentials, \
         TLS, timeouts and read preference wins over the single properties.",
    )
    .importance(Importance::High)
    .width(Width::Medium)
    .required()
    .missing_text("Missing connection string")
    .check(checks::connection_string),
    option(
        "internal.mongodb.allow.offset.invalidation",
        OptionKind::Boolean,
        "",
        "Permits to go on from the oldest offset of the shards when a sharded cluster that was captured shard by shard \
         is now captured through its router.",
    )
    .default("false")
    .width(Width::None),
    option("mongodb.user", OptionKind::String, "User", "User name, unless the connection string has one.")
        .importance(Importance::High),
    option("mongodb.password", OptionKind::Password, "Password", "Password of `mongodb.user`.")
        .importance(Importance::High),
    option(
        "mongodb.authsource",
        OptionKind::String,
        "Credentials Database",
        "Database that holds the credentials of `mongodb.user`.",
    )
    .default("admin"),
    millis(
        "mongodb.connect.timeout.ms",
        "10000",
        "Connect Timeout MS",
        "Milliseconds to wait until a new connection stands.",
    ),
    millis(
        "mongodb.heartbeat.frequency.ms",
        "10000",
        "Heartbeat frequency ms",
        "Milliseconds between two looks of the cluster monitor at a server; at least 500.",
    )
    .at_least(1),
    millis(
        "mongodb.socket.timeout.ms",
        "0",
        "Socket timeout MS",
        "Milliseconds to wait for the answer to one operation; 0 waits without limit.",
    ),
    millis(
        "mongodb.server.selection.timeout.ms",
        "30000",
        "Server selection timeout MS",
        "Milliseconds to wait for a usable server.",
    ),
    option(
        "mongodb.poll.interval.ms",
        OptionKind::Long,
        "Replica membership poll interval (ms)",
        "Milliseconds between two looks at the list of shards, with `mongodb.connection.mode=replica_set`.",
    )
    .default("30000")
    .at_least(1),
    option(
        "mongodb.ssl.enabled",
        OptionKind::Boolean,
        "Enable SSL connection to MongoDB",
        "Connect with TLS. `tls=` in the connection string wins.",
    )
    .default("false")
    .check(boolean),
    option(
        "mongodb.ssl.invalid.hostname.allowed",
        OptionKind::Boolean,
        "Allow invalid hostnames for SSL connection",
        "Do not check that the server's certificate names its host.",
    )
    .default("false")
    .check(boolean),
    option(
        "cursor.max.await.time.ms",
        OptionKind::Int,
        "Server's oplog streaming cursor max await time",
        "Milliseconds the server may hold back an empty answer; 0 or unset leaves it to the server (about 1000).",
    )
    .importance(Importance::Low)
    .at_least(0),
    option(
        "mongodb.connection.mode",
        OptionKind::String,
        "Connection mode",
        "For sharded clusters: sharded reads one stream through the router; replica_set reads every shard by itself and \
         spreads them over `tasks.max` tasks.",
    )
    .default("sharded")
    .one_of(&["replica_set", "sharded"]),
    option(
        "mongodb.connection.string.shard.params",
        OptionKind::String,
        "Shard connection parameters",
        "Parameters for the connection strings of the shards, e.g. readPreference=secondary&maxStalenessSeconds=90.",
    )
    .check(checks::shard_params),
    option(
        "mongodb.authentication.class",
        OptionKind::Class,
        "Authentication provider",
        "Only the default provider; other mechanisms are chosen in the connection string (authMechanism).",
    )
    .default(checks::DEFAULT_AUTH_PROVIDER)
    .check(checks::auth_provider),
    option("mongodb.ssl.keystore", OptionKind::String, "Key store", "File with the client's certificate and key."),
    option("mongodb.ssl.keystore.password", OptionKind::Password, "Key store password", "Password of the key store and of its key."),
    option("mongodb.ssl.keystore.type", OptionKind::String, "Key store type", "Format of the key store.")
        .default("PKCS12")
        .one_of(STORE_TYPES),
    option(
        "mongodb.ssl.truststore",
        OptionKind::String,
        "Trust store",
        "File with the certificates of the authorities to trust; unset trusts those of the system.",
    ),
    option("mongodb.ssl.truststore.password", OptionKind::Password, "Trust store password", "Password of the trust store."),
    option("mongodb.ssl.truststore.type", OptionKind::String, "Trust store type", "Format of the trust store.")
        .default("PKCS12")
        .one_of(STORE_TYPES),
    option(
        "connect.backoff.initial.delay.ms",
        OptionKind::Long,
        "Initial delay between connection attempts (ms)",
        "Milliseconds before the second attempt to connect; doubles with every attempt.",
    )
    .default("1000")
    .at_least(1),
    option(
        "connect.backoff.max.delay.ms",
        OptionKind::Long,
        "Largest delay between connection attempts (ms)",
        "Upper limit of the delay between attempts to connect.",
    )
    .default("120000")
    .at_least(1),
    option(
        "connect.max.attempts",
        OptionKind::Int,
        "Connection attempts",
        "Attempts to connect in one outage before the task fails.",
    )
    .default("16")
    .at_least(1),
    option(
        "capture.mode.full.update.type",
        OptionKind::String,
        "Source of full documents",
        "Where the full document of an update comes from: lookup reads its present state, post_image the state right \
         after the update (MongoDB 6.0, enabled on the collection).",
    )
    .default("lookup")
    .one_of(&["lookup", "post_image"]),
    option(
        "capture.scope",
        OptionKind::String,
        "Scope of the change stream",
        "What the change stream is opened on: the deployment, one database, or one collection.",
    )
    .default("deployment")
    .one_of(&["deployment", "database", "collection"]),
    option(
        "capture.target",
        OptionKind::String,
        "Target of the change stream",
        "Database, or database.collection, when `capture.scope` is not deployment.",
    ),
    option(
        "capture.start.op.time",
        OptionKind::Long,
        "Start time of the change stream",
        "Cluster time (seconds << 32 | increment) to start at when there is neither an offset nor a snapshot; -1 starts now.",
    )
    .default("-1")
    .check(checks::start_time),
    option(
        "filters.match.mode",
        OptionKind::String,
        "Matching of include and exclude lists",
        "regex: entries are regular expressions for the whole name, ignoring case. literal: entries are names.",
    )
    .default("regex")
    .one_of(&["regex", "literal"]),
    option(
        "cursor.pipeline",
        OptionKind::String,
        "Own stages of the change stream",
        "JSON array of aggregation stages that are added to the change stream.",
    )
    .width(Width::Long)
    .check(checks::pipeline),
    option(
        "cursor.pipeline.order",
        OptionKind::String,
        "Order of stages",
        "Whether the connector's stages or those of `cursor.pipeline` come first, or only the latter are used.",
    )
    .default("internal_first")
    .one_of(&["internal_first", "user_first", "user_only"]),
    option(
        "cursor.oversize.handling.mode",
        OptionKind::String,
        "Handling of oversized events",
        "For change events above the server's limit of 16 MB: fail, skip those with a document above \
         `cursor.oversize.skip.threshold`, or split them (server 6.0.9).",
    )
    .default("fail")
    .one_of(&["fail", "skip", "split"]),
    option(
        "cursor.oversize.skip.threshold",
        OptionKind::Int,
        "Largest document in bytes",
        "Events with a larger document or pre-image are left out when `cursor.oversize.handling.mode` is skip.",
    )
    .default("0")
    .at_least(0),
];

const STORE_TYPES: &[&str] = &["PKCS12", "JKS", "PEM"];
