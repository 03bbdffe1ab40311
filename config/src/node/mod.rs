//! The configuration of a node: a worker file of Kafka Connect, overridden by environment variables,
//! checked against [`WORKER`] and turned into a [`WorkerConfig`].
//!
//! Invariants: all errors are reported at once, each with its option, where it was set, and the next
//! step; a value that was given is never dropped without a note. It does not open ports or create
//! directories; of the files that options name it only asks whether they exist.

mod address;
mod build;
mod environment;
mod error;
mod options;
mod rest;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use address::{Address, Listener, Scheme};
pub use environment::process_environment;
pub use error::{WorkerError, WorkerErrors};
pub use options::{FENCED_COMMIT, WORKER};

use crate::parse;
use crate::properties::Properties;
use crate::provider::Providers;

/// A node's configuration.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// Everything that was given, after the environment, with references resolved: for the layering
    /// of client settings (`producer.`, `consumer.`, `admin.`, plain) and converter options. Holds
    /// secrets; its `Debug` prints names only.
    pub properties: Properties,
    /// For the references in connector configurations.
    pub providers: Providers,
    /// Said once at start: what came from the environment, old names, options without effect.
    pub notes: Vec<String>,

    /// Name of the cluster (`group.id`).
    pub group: String,
    pub node_id: u64,
    pub data_dir: PathBuf,
    pub cluster: ClusterShape,
    pub session_timeout: Duration,
    pub heartbeat_interval: Duration,
    pub rebalance_timeout: Duration,
    pub scheduled_rebalance_max_delay: Duration,
    pub shutdown_mode: ShutdownMode,
    pub task_shutdown_timeout: Duration,

    pub bootstrap_servers: Vec<String>,

    pub delivery: Delivery,
    /// `exactly.once.source.support=enabled`, which is not served.
    pub exactly_once: bool,
    /// Offsets are gathered for this long before they are stored together.
    pub offset_commit: Duration,
    pub offset_flush_interval: Duration,
    pub offset_flush_timeout: Duration,

    pub rest: RestConfig,
    pub topic_tracking: bool,
    pub topic_tracking_reset: bool,

    pub log_level: String,
    pub log_format: LogFormat,
}

/// How this node belongs to a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterShape {
    /// A cluster of one. It can be joined if it listens.
    Alone { rpc: Option<RpcConfig> },
    /// One of the nodes that form the cluster at its first start; `seeds` has this node's address.
    Founding { rpc: RpcConfig, seeds: Vec<Address> },
    /// Joins a cluster through `seeds`.
    Joining { rpc: RpcConfig, seeds: Vec<Address> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcConfig {
    pub listen: Address,
    pub advertised: Address,
    pub tls: Option<RpcTls>,
}

/// PEM files for mutual TLS between nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcTls {
    pub ca: PathBuf,
    pub cert: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestConfig {
    /// At least one.
    pub listeners: Vec<Listener>,
    /// Under which the others reach this node; `host:port` of it is the worker id.
    pub advertised: Listener,
    pub admin: AdminListeners,
    /// There if a listener is `https`.
    pub tls: Option<RestTls>,
    pub basic_auth_file: Option<PathBuf>,
    /// Empty: no CORS headers.
    pub allow_origin: String,
    pub allow_methods: String,
    pub response_headers: Vec<ResponseHeader>,
    /// Version of Kafka Connect that is reported.
    pub reported_version: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdminListeners {
    /// `/admin` is served with everything else.
    Same,
    Off,
    Own(Vec<Listener>),
}

/// PEM files for `https` listeners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestTls {
    /// Private key and certificate chain in one file.
    pub key_store: PathBuf,
    /// Authorities of client certificates.
    pub trust_store: Option<PathBuf>,
    pub client_auth: ClientAuth,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuth {
    None,
    Requested,
    Required,
}

/// One entry of `response.http.headers.config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseHeader {
    pub action: HeaderAction,
    pub name: String,
    pub value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderAction {
    Set,
    Add,
    /// The value is a number of milliseconds since 1970, sent as a date.
    SetDate,
    AddDate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShutdownMode {
    Move,
    Hold,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    Plain,
    Fenced,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

/// Where options were set, for messages.
#[derive(Debug, Default)]
struct Origins {
    file: Option<PathBuf>,
    variables: BTreeMap<String, String>,
    in_file: Properties,
}

impl Origins {
    fn of(&self, option: &str) -> String {
        let names = WORKER.option(option).map_or(&[][..], |def| def.aliases);
        for name in std::iter::once(option).chain(names.iter().copied()) {
            if let Some(variable) = self.variables.get(name) {
                return format!("environment variable {variable}");
            }
            if self.in_file.get(name).is_some() {
                return self.place();
            }
        }
        "not set".to_owned()
    }

    /// Where to put an option.
    fn place(&self) -> String {
        match &self.file {
            Some(path) => path.display().to_string(),
            None => "worker configuration".to_owned(),
        }
    }
}

impl WorkerConfig {
    /// Reads the worker file, if there is one, and the environment, which overrides it.
    ///
    /// # Errors
    /// Everything that is wrong, with the next step for each.
    pub fn load(file: Option<&Path>, environment: &BTreeMap<String, String>) -> Result<Self, WorkerErrors> {
        let mut notes = Vec::new();
        let mut in_file = Properties::new();
        if let Some(path) = file {
            let reading = read(path)?;
            notes.extend(reading.warnings.into_iter().map(|w| format!("{}: {w}", path.display())));
            in_file = reading.properties;
        }
        let mut given = in_file.clone();
        let mut variables = BTreeMap::new();
        for from in environment::options(environment) {
            let value = environment.get(&from.variable).map_or("", String::as_str);
            let instead = match in_file.get(&from.option) {
                Some(other) if other != value => ", in place of another value in the file",
                _ => "",
            };
            notes.push(format!(
                "option '{}' is set by the environment variable {}{instead}",
                from.option, from.variable
            ));
            given.set(from.option.clone(), value);
            variables.insert(from.option, from.variable);
        }
        let origins = Origins { file: file.map(Path::to_owned), variables, in_file };
        build::build(given, environment, &origins, notes)
    }

    /// From properties alone: no file, no environment.
    ///
    /// # Errors
    /// As [`WorkerConfig::load`].
    pub fn from_properties(properties: &Properties) -> Result<Self, WorkerErrors> {
        let origins = Origins { in_file: properties.clone(), ..Origins::default() };
        build::build(properties.clone(), &BTreeMap::new(), &origins, Vec::new())
    }

    /// `host:port` under which this node is known in Connect's answers.
    pub fn worker_id(&self) -> String {
        self.rest.advertised.address.to_string()
    }
}

fn read(path: &Path) -> Result<parse::Reading, WorkerErrors> {
    let error = |problem: String, advice: &str| {
        WorkerErrors(vec![WorkerError {
            option: String::new(),
            origin: path.display().to_string(),
            problem,
            advice: advice.to_owned(),
        }])
    };
    let bytes = std::fs::read(path).map_err(|e| {
        error(format!("the file cannot be read: {e}"), "name a worker file that exists and is readable")
    })?;
    parse::properties::read(&bytes).map_err(|e| error(e.to_string(), "correct this line"))
}

#[cfg(test)]
mod tests;
