//! The configuration of a connector or task as typed values.
//!
//! Made by [`SqlServerConfig::parse`] from a valid configuration only. Secrets do not print.

use std::sync::Arc;
use std::time::Duration;

use thalweg_config::{Properties, Secret, Settings, alias};
use thalweg_core::Error;
use thalweg_core::event_failure::Passing;
use thalweg_core::notification::Notifier;
use thalweg_core::relational::event::SkippedOperations;
use thalweg_core::relational::history::HistoryConfig;
use thalweg_core::relational::table_filter::{NameLists, TableFilter};
use thalweg_core::relational::table_id::{NameForm, TableId};
use thalweg_core::signal::Channels;

use super::{EventConfig, SnapshotConfig, TABLE, validate};
use crate::offsets::Layout;

/// Longest pause between two looks for changes.
const LONGEST_POLL: Duration = Duration::from_secs(5);

/// Names that table lists are matched against: the database is another option's matter.
pub const TABLE_FORMS: &[NameForm] = &[NameForm::WithoutCatalog];

#[derive(Debug, Clone)]
pub struct SqlServerConfig {
    pub topic_prefix: Arc<str>,
    pub layout: Layout,
    /// As the user spells them.
    pub databases: Vec<String>,
    /// They are in `database.names`, not in `database.dbname`.
    pub databases_are_listed: bool,
    pub connection: ConnectionConfig,
    pub tables: TableLists,
    pub stream: StreamConfig,
    pub snapshot: SnapshotConfig,
    pub events: EventConfig,
    pub history: HistoryConfig,
    pub signals: SignalConfig,
    pub notifier: Notifier,
    /// Heartbeat records; zero: none.
    pub heartbeat_interval: Duration,
    /// `heartbeat.action.query`.
    pub heartbeat_query: Option<String>,
    /// Records per batch.
    pub batch_size: usize,
    /// Bytes behind which a batch ends; zero: no limit.
    pub batch_bytes: usize,
    pub passing: Passing,
    /// Tables that may be captured at the start, and whether more are an error.
    pub guardrail: Option<(usize, bool)>,
    /// Warn when the position has not moved for so long; zero: never.
    pub position_watch: Duration,
}

/// What is listened to beside changes.
#[derive(Debug, Clone)]
pub struct SignalConfig {
    pub channels: Channels,
    /// Further attempts to write a watermark, and the pause between them.
    pub retries: u32,
    pub pause: Duration,
}

#[derive(Debug, Clone)]
pub struct ConnectionConfig {
    pub host: String,
    /// `None`: the port of the instance, or else 1433.
    pub port: Option<u16>,
    pub instance: Option<String>,
    pub user: String,
    pub password: Option<Secret>,
    pub encryption: Encryption,
    pub trust: Trust,
    pub host_in_certificate: Option<String>,
    pub read_only: bool,
    pub multi_subnet_failover: bool,
    pub application: String,
    pub workstation: Option<String>,
    pub packet_size: u32,
    /// Until a connection is logged in; `None`: no limit.
    pub login_timeout: Option<Duration>,
    /// For one statement; `None`: no limit.
    pub query_timeout: Option<Duration>,
    /// `connection.validation.timeout.ms`.
    pub validation_timeout: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    /// The login alone.
    Login,
    /// Everything behind the first packets.
    Full,
    /// From the first byte on.
    Strict,
}

/// Which certificates are taken.
#[derive(Debug, Clone)]
pub enum Trust {
    /// Any.
    All,
    /// Those that the system trusts.
    System,
    /// And those of a PEM file.
    Pem(String),
    /// And those of a PKCS12 store.
    Pkcs12 { path: String, password: Option<Secret> },
}

/// Which tables are captured, before the lists are compiled.
#[derive(Debug, Clone, Default)]
pub struct TableLists {
    pub schemas: NameLists,
    pub tables: NameLists,
    /// `internal.capture.instance.*`.
    pub instances: NameLists,
    /// `signal.data.collection`.
    pub signals: Vec<TableId>,
    /// `table.ignore.builtin`.
    pub ignores_builtin: bool,
}

impl TableLists {
    /// # Errors
    /// An entry that is no regular expression.
    pub fn filter(&self) -> Result<TableFilter, Error> {
        let filter = TableFilter::new(&NameLists::default(), &self.schemas, &self.tables, TABLE_FORMS)?;
        let filter = filter.with_signals(self.signals.clone());
        Ok(if self.ignores_builtin { filter.without_builtin(is_builtin) } else { filter })
    }
}

/// Tables that the server made for itself.
fn is_builtin(id: &TableId) -> bool {
    let schema = id.schema().unwrap_or_default();
    ["cdc", "sys"].iter().any(|own| schema.eq_ignore_ascii_case(own)) || id.table() == "systranschemas"
}

#[derive(Debug, Clone)]
pub struct StreamConfig {
    pub query_mode: QueryMode,
    /// Rows of a page.
    pub page_rows: usize,
    /// `max.iteration.transactions`; `None`: all.
    pub transactions: Option<u32>,
    /// Pause while nothing comes.
    pub poll_interval: Duration,
    pub skipped: SkippedOperations,
    /// `internal.change.column.filter.override`.
    pub all_columns: bool,
    /// `internal.log.position.check.enable`.
    pub checks_position: bool,
    /// `driver.sqlserver.agent.status.query`.
    pub agent_query: Option<String>,
}

/// Where changes are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryMode {
    /// The change tables.
    Direct,
    /// `cdc.fn_cdc_get_all_changes_<capture instance>`.
    Function,
}

/// Rows of a page if the user does not say.
const PAGE_ROWS: usize = 2_000;

impl SqlServerConfig {
    /// Validates and converts.
    ///
    /// # Errors
    /// Every message of the validation.
    pub fn parse(properties: &Properties) -> Result<Self, Error> {
        let validation = validate(properties);
        match Error::invalid_config(&validation) {
            Some(error) => Err(error),
            None => {
                // Keys that hold parameters are looked for under their present names.
                Self::from_settings(&validation.settings, &alias::canonical(properties, &TABLE).properties)
            }
        }
    }

    fn from_settings(s: &Settings, properties: &Properties) -> Result<Self, Error> {
        let number = |name: &str| usize::try_from(s.int(name)).unwrap_or(0);
        let mut databases = s.list("database.names").to_vec();
        let by_names = !databases.is_empty();
        databases.extend(text(s, "database.dbname"));
        let layout = match s.text_or_empty("sqlserver.legacy.naming") {
            "always" => Layout::Single,
            "auto" if !by_names => Layout::Single,
            _ => Layout::ByDatabase,
        };
        Ok(Self {
            topic_prefix: s.text_or_empty("topic.prefix").into(),
            layout,
            databases,
            databases_are_listed: by_names,
            connection: connection(s),
            tables: tables(s),
            stream: stream(s),
            snapshot: SnapshotConfig::new(s, properties)?,
            events: EventConfig::new(s, properties, layout)?,
            history: HistoryConfig::new(s, properties),
            signals: SignalConfig {
                channels: Channels::of(s),
                retries: u32::try_from(s.int("signal.emit.failure.max.retries")).unwrap_or(0),
                pause: s.millis("signal.emit.failure.backoff.ms"),
            },
            notifier: Notifier::of(s),
            heartbeat_interval: s.millis("heartbeat.interval.ms"),
            heartbeat_query: text(s, "heartbeat.action.query"),
            batch_size: number("max.batch.size"),
            batch_bytes: number("max.queue.size.in.bytes"),
            passing: Passing::from_settings(s)?,
            guardrail: Some(number("guardrail.collections.max"))
                .filter(|max| *max > 0)
                .map(|max| (max, s.text_or_empty("guardrail.collections.limit.action") == "fail")),
            position_watch: s.millis("internal.offset.activity.monitor.interval.ms"),
        })
    }
}

fn text(s: &Settings, name: &str) -> Option<String> {
    s.text(name).map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn connection(s: &Settings) -> ConnectionConfig {
    let limit = |duration: Duration| Some(duration).filter(|duration| !duration.is_zero());
    let seconds = |name: &str| s.opt_int(name).and_then(|n| u64::try_from(n).ok()).map(Duration::from_secs);
    let given = text(s, "database.hostname").unwrap_or_default();
    let (host, named) = match given.split_once('\\') {
        Some((host, instance)) => (host.to_owned(), Some(instance.to_owned())),
        None => (given, None),
    };
    let instance = text(s, "database.instance").or(named);
    let port = u16::try_from(s.int("database.port")).ok();
    let query_timeout = match seconds("driver.queryTimeout") {
        Some(timeout) if !s.is_given("database.query.timeout.ms") => timeout,
        _ => s.millis("database.query.timeout.ms"),
    };
    ConnectionConfig {
        host,
        port: port.filter(|_| instance.is_none() || s.is_given("database.port")),
        instance,
        user: text(s, "database.user").unwrap_or_default(),
        password: s.secret("database.password").cloned(),
        encryption: match s.text_or_empty("driver.encrypt") {
            "false" | "optional" => Encryption::Login,
            "strict" => Encryption::Strict,
            _ => Encryption::Full,
        },
        trust: trust(s),
        host_in_certificate: text(s, "driver.hostNameInCertificate"),
        read_only: s.text_or_empty("driver.applicationIntent") == "ReadOnly",
        multi_subnet_failover: s.bool("driver.multiSubnetFailover"),
        application: s.text_or_empty("driver.applicationName").to_owned(),
        workstation: text(s, "driver.workstationID"),
        packet_size: u32::try_from(s.int("driver.packetSize")).unwrap_or(8_000),
        login_timeout: seconds("driver.loginTimeout").and_then(limit),
        query_timeout: limit(query_timeout),
        validation_timeout: s.millis("connection.validation.timeout.ms"),
    }
}

fn trust(s: &Settings) -> Trust {
    if s.bool("driver.trustServerCertificate") {
        return Trust::All;
    }
    if let Some(path) = text(s, "driver.serverCertificate") {
        return Trust::Pem(path);
    }
    match (text(s, "driver.trustStore"), s.text_or_empty("driver.trustStoreType")) {
        (None, _) => Trust::System,
        (Some(path), "PEM") => Trust::Pem(path),
        (Some(path), _) => Trust::Pkcs12 { path, password: s.secret("driver.trustStorePassword").cloned() },
    }
}

fn tables(s: &Settings) -> TableLists {
    use thalweg_core::relational::table_id::TwoParts::SchemaAndTable;
    let signals = s.list("signal.data.collection").iter();
    TableLists {
        schemas: NameLists::of(s, "schema"),
        tables: NameLists::of(s, "table"),
        instances: NameLists::of(s, "internal.capture.instance"),
        signals: signals.filter_map(|name| TableId::parse(name, SchemaAndTable).ok()).collect(),
        ignores_builtin: s.bool("table.ignore.builtin"),
    }
}

fn stream(s: &Settings) -> StreamConfig {
    let number = |name: &str| usize::try_from(s.int(name)).unwrap_or(0);
    let poll = s.millis("poll.interval.ms");
    if poll > LONGEST_POLL {
        tracing::warn!("poll.interval.ms is more than 5000, which is taken instead");
    }
    StreamConfig {
        query_mode: match s.text_or_empty("data.query.mode") {
            "function" => QueryMode::Function,
            _ => QueryMode::Direct,
        },
        page_rows: Some(number("streaming.fetch.size")).filter(|rows| *rows > 0).unwrap_or(PAGE_ROWS),
        transactions: u32::try_from(s.int("max.iteration.transactions")).ok().filter(|n| *n > 0),
        poll_interval: poll.min(LONGEST_POLL),
        skipped: SkippedOperations::new(s.list("skipped.operations")),
        all_columns: s.bool("internal.change.column.filter.override"),
        checks_position: s.bool("internal.log.position.check.enable"),
        agent_query: text(s, "driver.sqlserver.agent.status.query"),
    }
}
