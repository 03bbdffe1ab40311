//! The configuration of a connector or task as typed values.
//!
//! Made by [`MongoConfig::parse`] from a valid configuration only. `Duration::ZERO` for a timeout
//! or interval means "off" where the option's documentation says so. Secrets do not print.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bson::Document;
use sha2::{Digest, Sha256};
use thalweg_config::rule::split_plain_list;
use thalweg_config::{Parsed, Properties, Secret, Settings};
use thalweg_core::event_failure::{FailureMode, Passing};
use thalweg_core::naming::NamingRules;
use thalweg_core::notification::Notifier;
use thalweg_core::position::hex;
use thalweg_core::signal::Channels;
use thalweg_core::snapshot::Strategy;
use thalweg_core::{Error, repstance};

use super::{FILTER_OVERRIDES, validate};
use crate::extended_json::JsonMode;
use crate::fields::FieldSelector;
use crate::filter::{FilterLists, MatchMode, NameList};
use crate::lenient_json::{parse_document, parse_documents};
use crate::namespace::Namespace;

#[derive(Debug, Clone)]
pub struct MongoConfig {
    pub topic_prefix: Arc<str>,
    pub connection: ConnectionConfig,
    /// `internal.mongodb.allow.offset.invalidation`.
    pub allow_offset_invalidation: bool,
    pub filters: FilterLists,
    pub capture: CaptureConfig,
    pub cursor: CursorConfig,
    pub snapshot: SnapshotConfig,
    pub signals: SignalConfig,
    pub notifier: Notifier,
    pub events: EventConfig,
    pub naming: NamingRules,
    /// Heartbeat records; zero = none.
    pub heartbeat_interval: Duration,
    /// Records per batch.
    pub batch_size: usize,
    /// Bytes behind which a batch ends, `max.queue.size.in.bytes`; zero = no limit.
    pub batch_bytes: usize,
    pub passing: Passing,
    /// Captured collections at the start: most allowed, and whether more is an error.
    pub guardrail: Option<Guardrail>,
    /// `internal.log.position.check.enable`.
    pub check_position: bool,
    /// Warn when the position has not moved for so long; zero = never.
    pub position_watch: Duration,
}

#[derive(Debug, Clone)]
pub struct ConnectionConfig {
    pub string: Secret,
    pub mode: ConnectionMode,
    /// Raw `k=v&k=v` for the connection strings of shards.
    pub shard_params: Option<String>,
    pub user: Option<String>,
    pub password: Option<Secret>,
    pub auth_source: String,
    pub tls: TlsOptions,
    pub connect_timeout: Duration,
    pub server_selection_timeout: Duration,
    /// Per operation; zero = no limit.
    pub socket_timeout: Duration,
    pub heartbeat_frequency: Duration,
    /// Between two looks at `config.shards`.
    pub topology_interval: Duration,
    pub validation_timeout: Duration,
    pub backoff_initial: Duration,
    pub backoff_max: Duration,
    pub max_attempts: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionMode {
    /// One stream through the router.
    Sharded,
    /// One stream per shard.
    ReplicaSet,
}

#[derive(Debug, Clone)]
pub struct TlsOptions {
    pub enabled: bool,
    pub allow_invalid_hostnames: bool,
    pub keystore: Option<Store>,
    pub truststore: Option<Store>,
}

#[derive(Debug, Clone)]
pub struct Store {
    pub path: String,
    pub password: Option<Secret>,
    pub format: StoreFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFormat {
    Pkcs12,
    Jks,
    Pem,
}

#[derive(Debug, Clone)]
pub struct CaptureConfig {
    pub scope: CaptureScope,
    pub full_document: FullDocument,
    /// `fullDocumentBeforeChange: whenAvailable`.
    pub pre_images: bool,
    /// `capture.start.op.time` as (seconds, increment).
    pub start_at: Option<bson::Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptureScope {
    Deployment,
    Database(Arc<str>),
    Collection(Namespace),
}

/// `fullDocument` of the change stream for updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FullDocument {
    Omitted,
    Lookup,
    PostImage,
}

#[derive(Debug, Clone)]
pub struct CursorConfig {
    /// The user's stages.
    pub pipeline: Vec<Document>,
    pub order: PipelineOrder,
    pub oversize: Oversize,
    /// `maxTimeMS` of a getMore; `None` = the server's default.
    pub max_await: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipelineOrder {
    InternalFirst,
    UserFirst,
    UserOnly,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oversize {
    Fail,
    /// Leave out events with an image of more bytes than this.
    Skip(i32),
    Split,
}

#[derive(Debug, Clone)]
pub struct SnapshotConfig {
    pub mode: SnapshotMode,
    /// Entries of `snapshot.include.collection.list`; empty = all.
    pub include: Vec<String>,
    /// Find filters of single collections.
    pub filters: BTreeMap<Namespace, Document>,
    pub include_views: bool,
    /// Tells which documents are read from any other choice of documents.
    pub choice: String,
    pub threads: usize,
    /// Most ranges in which a large collection is read.
    pub parts: usize,
    /// An interrupted snapshot goes on where it stood, instead of beginning anew.
    pub resumes: bool,
    /// All tasks share a snapshot.
    pub spreads: bool,
    /// Before the snapshot.
    pub delay: Duration,
    /// Between a completed snapshot and the stream.
    pub streaming_delay: Duration,
    /// Documents per answer; 0 = the server's default.
    pub fetch_size: u32,
    /// Documents in a chunk of an incremental snapshot, for each of `threads`.
    pub chunk_size: usize,
    pub watermarks: Strategy,
}

/// What is listened to beside changes.
#[derive(Debug, Clone)]
pub struct SignalConfig {
    pub channels: Channels,
    /// Further attempts to write a watermark, and the pause between them.
    pub retries: u32,
    pub pause: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotMode {
    Initial,
    InitialOnly,
    Always,
    NoData,
    WhenNeeded,
    ConfigurationBased { data: bool, stream: bool, on_data_error: bool },
}

/// What records look like.
#[derive(Debug, Clone)]
pub struct EventConfig {
    pub json: JsonMode,
    /// `field.exclude.list` and `field.renames`.
    pub fields: FieldSelector,
    pub tombstones: bool,
    pub skipped: SkippedOperations,
    pub extended_headers: bool,
    /// `source.version`.
    pub reported_version: Arc<str>,
    pub on_failure: FailureMode,
    /// Whether begin and end of transactions are told, and changes say where in one they are.
    pub transactions: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SkippedOperations {
    pub create: bool,
    pub update: bool,
    pub delete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guardrail {
    pub max: usize,
    pub fail: bool,
}

impl MongoConfig {
    /// Validates and converts. The error lists every message.
    pub fn parse(properties: &Properties) -> Result<Self, Error> {
        let validation = validate(properties);
        if !validation.is_valid() {
            let mut error =
                Error::config("Error configuring an instance of MongoDbConnector; check the logs for details");
            error.causes = validation.messages();
            return Err(error.advise("Correct the properties that the messages name."));
        }
        Self::from_settings(&validation.settings, properties)
    }

    fn from_settings(s: &Settings, raw: &Properties) -> Result<Self, Error> {
        let text = |name: &str| s.text(name).filter(|t| !t.trim().is_empty()).map(|t| t.trim().to_owned());
        let images = s.text_or_empty("capture.mode");
        let full_document = match (images.contains("update_full"), s.text_or_empty("capture.mode.full.update.type")) {
            (false, _) => FullDocument::Omitted,
            (true, "post_image") => FullDocument::PostImage,
            (true, _) => FullDocument::Lookup,
        };
        let op_time = s.int("capture.start.op.time");
        Ok(Self {
            topic_prefix: s.text_or_empty("topic.prefix").into(),
            connection: connection(s),
            allow_offset_invalidation: s.bool("internal.mongodb.allow.offset.invalidation"),
            filters: filters(s),
            capture: CaptureConfig {
                scope: scope(s),
                full_document,
                pre_images: images.contains("with_pre_image"),
                start_at: u64::try_from(op_time)
                    .ok()
                    .map(|t| bson::Timestamp { time: (t >> 32) as u32, increment: (t & u64::from(u32::MAX)) as u32 }),
            },
            cursor: cursor(s)?,
            snapshot: snapshot(s, raw)?,
            signals: SignalConfig {
                channels: Channels::of(s),
                retries: u32::try_from(s.int("signal.emit.failure.max.retries")).unwrap_or(0),
                pause: s.millis("signal.emit.failure.backoff.ms"),
            },
            notifier: Notifier::of(s),
            events: EventConfig {
                json: json_mode(s, raw),
                fields: FieldSelector::parse(s.text_or_empty("field.exclude.list"), s.text_or_empty("field.renames"))
                    .map_err(Error::config)?,
                tombstones: s.bool("tombstones.on.delete") && !repstance::is_chosen(raw),
                skipped: skipped(s.list("skipped.operations")),
                extended_headers: s.bool("extended.headers.enabled"),
                reported_version: text("source.version.reported")
                    .unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned())
                    .into(),
                on_failure: FailureMode::from_settings(s),
                transactions: s.bool("provide.transaction.metadata"),
            },
            naming: NamingRules::from_settings(s).map_err(|(name, text)| Error::config(format!("{name}: {text}")))?,
            heartbeat_interval: s.millis("heartbeat.interval.ms"),
            batch_size: count(s, "max.batch.size"),
            batch_bytes: count(s, "max.queue.size.in.bytes"),
            passing: Passing::from_settings(s)?,
            guardrail: (s.int("guardrail.collections.max") > 0).then(|| Guardrail {
                max: count(s, "guardrail.collections.max"),
                fail: s.text_or_empty("guardrail.collections.limit.action") == "fail",
            }),
            check_position: s.bool("internal.log.position.check.enable"),
            position_watch: s.millis("internal.offset.activity.monitor.interval.ms"),
        })
    }
}

fn count(s: &Settings, name: &str) -> usize {
    usize::try_from(s.int(name)).unwrap_or(0)
}

fn connection(s: &Settings) -> ConnectionConfig {
    let text = |name: &str| s.text(name).filter(|t| !t.trim().is_empty()).map(|t| t.trim().to_owned());
    let store = |file: &str, password: &str, format: &str| {
        text(file).map(|path| Store {
            path,
            password: s.secret(password).cloned(),
            format: match s.text_or_empty(format) {
                "JKS" => StoreFormat::Jks,
                "PEM" => StoreFormat::Pem,
                _ => StoreFormat::Pkcs12,
            },
        })
    };
    ConnectionConfig {
        string: Secret::new(s.text_or_empty("mongodb.connection.string").trim()),
        mode: match s.text_or_empty("mongodb.connection.mode") {
            "replica_set" => ConnectionMode::ReplicaSet,
            _ => ConnectionMode::Sharded,
        },
        shard_params: text("mongodb.connection.string.shard.params"),
        user: text("mongodb.user"),
        password: s.secret("mongodb.password").cloned(),
        auth_source: text("mongodb.authsource").unwrap_or_default(),
        tls: TlsOptions {
            enabled: s.bool("mongodb.ssl.enabled"),
            allow_invalid_hostnames: s.bool("mongodb.ssl.invalid.hostname.allowed"),
            keystore: store("mongodb.ssl.keystore", "mongodb.ssl.keystore.password", "mongodb.ssl.keystore.type"),
            truststore: store(
                "mongodb.ssl.truststore",
                "mongodb.ssl.truststore.password",
                "mongodb.ssl.truststore.type",
            ),
        },
        connect_timeout: s.millis("mongodb.connect.timeout.ms"),
        server_selection_timeout: s.millis("mongodb.server.selection.timeout.ms"),
        socket_timeout: s.millis("mongodb.socket.timeout.ms"),
        heartbeat_frequency: s.millis("mongodb.heartbeat.frequency.ms").max(Duration::from_millis(500)),
        topology_interval: s.millis("mongodb.poll.interval.ms"),
        validation_timeout: s.millis("connection.validation.timeout.ms"),
        backoff_initial: s.millis("connect.backoff.initial.delay.ms"),
        backoff_max: s.millis("connect.backoff.max.delay.ms"),
        max_attempts: u32::try_from(s.int("connect.max.attempts")).unwrap_or(1),
    }
}

fn filters(s: &Settings) -> FilterLists {
    let list = |include: &str, exclude: &str| match (entries(s, include), entries(s, exclude)) {
        (names, _) if !names.is_empty() => NameList::Include(names),
        (_, names) if !names.is_empty() => NameList::Exclude(names),
        _ => NameList::All,
    };
    FilterLists {
        mode: match s.text_or_empty("filters.match.mode") {
            "literal" => MatchMode::Literal,
            _ => MatchMode::Regex,
        },
        databases: list("database.include.list", "database.exclude.list"),
        collections: list("collection.include.list", "collection.exclude.list"),
        signals: s.list("signal.data.collection").first().and_then(|name| Namespace::parse(name)),
    }
}

/// Entries of a list, whether its option is a LIST or (as published) a STRING.
pub(super) fn entries(s: &Settings, name: &str) -> Vec<String> {
    match s.get(name) {
        Parsed::List(list) => list.clone(),
        Parsed::Text(text) => split_plain_list(text),
        _ => Vec::new(),
    }
}

fn scope(s: &Settings) -> CaptureScope {
    let target = s.text_or_empty("capture.target").trim();
    match (s.text_or_empty("capture.scope"), Namespace::parse(target)) {
        ("database", _) => CaptureScope::Database(target.into()),
        ("collection", Some(namespace)) => CaptureScope::Collection(namespace),
        _ => CaptureScope::Deployment,
    }
}

fn cursor(s: &Settings) -> Result<CursorConfig, Error> {
    let pipeline = s.text_or_empty("cursor.pipeline");
    let pipeline = if pipeline.trim().is_empty() { Ok(Vec::new()) } else { parse_documents(pipeline) };
    Ok(CursorConfig {
        pipeline: pipeline.map_err(|e| Error::config("Change stream pipeline JSON is invalid").because(&e))?,
        order: match s.text_or_empty("cursor.pipeline.order") {
            "user_first" => PipelineOrder::UserFirst,
            "user_only" => PipelineOrder::UserOnly,
            _ => PipelineOrder::InternalFirst,
        },
        oversize: match s.text_or_empty("cursor.oversize.handling.mode") {
            "skip" => Oversize::Skip(i32::try_from(s.int("cursor.oversize.skip.threshold")).unwrap_or(i32::MAX)),
            "split" => Oversize::Split,
            _ => Oversize::Fail,
        },
        max_await: Some(s.millis("cursor.max.await.time.ms")).filter(|d| !d.is_zero()),
    })
}

/// Format `repstance` has documents as JSON objects, in the form that keys have, unless told otherwise.
fn json_mode(s: &Settings, raw: &Properties) -> JsonMode {
    match raw.get("json.serialization.mode") {
        None if repstance::is_chosen(raw) => JsonMode::Relaxed,
        _ => JsonMode::parse(s.text_or_empty("json.serialization.mode")),
    }
}

/// Options that say which documents a snapshot reads, beside the filters under [`FILTER_OVERRIDES`].
const CHOOSING: [&str; 9] = [
    "database.include.list",
    "database.exclude.list",
    "collection.include.list",
    "collection.exclude.list",
    "filters.match.mode",
    "capture.scope",
    "capture.target",
    "snapshot.include.collection.list",
    "snapshot.include.views",
];

/// A digest of what is configured: it depends on no more than the texts.
fn choice(raw: &Properties) -> String {
    let chooses = |name: &str| CHOOSING.contains(&name) || name.starts_with(FILTER_OVERRIDES);
    let texts: BTreeMap<&str, &str> = raw.iter().filter(|(name, _)| chooses(name)).collect();
    let mut digest = Sha256::new();
    for text in texts.into_iter().flat_map(|(name, value)| [name, value.trim()]) {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    hex(&digest.finalize()[..8])
}

fn snapshot(s: &Settings, raw: &Properties) -> Result<SnapshotConfig, Error> {
    let flag = |name: &str| s.bool(&format!("snapshot.mode.configuration.based.{name}"));
    let mut mode = s.text_or_empty("snapshot.mode");
    if mode == "custom" {
        mode = s.text_or_empty("snapshot.mode.custom.name").trim();
    }
    let mut filters = BTreeMap::new();
    for name in split_plain_list(s.text_or_empty(FILTER_OVERRIDES)) {
        let property = format!("{FILTER_OVERRIDES}.{name}");
        if let (Some(namespace), Some(text)) = (Namespace::parse(&name), raw.get(&property)) {
            let filter = parse_document(text)
                .map_err(|e| Error::config(format!("{property} is not a query filter")).because(&e))?;
            filters.insert(namespace, filter);
        }
    }
    Ok(SnapshotConfig {
        mode: match mode {
            "initial_only" => SnapshotMode::InitialOnly,
            "always" => SnapshotMode::Always,
            "no_data" => SnapshotMode::NoData,
            "when_needed" => SnapshotMode::WhenNeeded,
            "configuration_based" => SnapshotMode::ConfigurationBased {
                data: flag("snapshot.data"),
                stream: flag("start.stream"),
                on_data_error: flag("snapshot.on.data.error"),
            },
            _ => SnapshotMode::Initial,
        },
        include: s.list("snapshot.include.collection.list").to_vec(),
        filters,
        include_views: s.bool("snapshot.include.views"),
        choice: choice(raw),
        threads: count(s, "snapshot.max.threads"),
        parts: match s.bool("legacy.snapshot.max.threads") {
            true => 1,
            false => count(s, "snapshot.max.threads").saturating_mul(count(s, "snapshot.max.threads.multiplier")),
        },
        resumes: s.bool("thalweg.snapshot.resume"),
        spreads: s.bool("thalweg.snapshot.spread"),
        delay: s.millis("snapshot.delay.ms"),
        streaming_delay: s.millis("streaming.delay.ms"),
        fetch_size: u32::try_from(s.int("snapshot.fetch.size")).unwrap_or(0),
        chunk_size: count(s, "incremental.snapshot.chunk.size"),
        watermarks: match s.text_or_empty("incremental.snapshot.watermarking.strategy") {
            text if text.eq_ignore_ascii_case("insert_delete") => Strategy::InsertDelete,
            _ => Strategy::InsertInsert,
        },
    })
}

fn skipped(operations: &[String]) -> SkippedOperations {
    let skips = |operation: &str| operations.iter().any(|o| o.eq_ignore_ascii_case(operation));
    SkippedOperations { create: skips("c"), update: skips("u"), delete: skips("d") }
}
