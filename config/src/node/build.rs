//! From checked options to a [`WorkerConfig`], gathering every error on the way.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{
    Address, ClusterShape, Delivery, LogFormat, Origins, RpcConfig, RpcTls, ShutdownMode, WORKER, WorkerConfig,
    WorkerError, WorkerErrors,
};
use crate::option::{OptionDef, OptionKind, Rule};
use crate::properties::Properties;
use crate::provider::Providers;
use crate::settings::Settings;

const RPC_PORT: u16 = 8084;

pub(super) fn build(
    given: Properties,
    environment: &BTreeMap<String, String>,
    origins: &Origins,
    mut notes: Vec<String>,
) -> Result<WorkerConfig, WorkerErrors> {
    let mut errors = Errors { origins, list: Vec::new() };
    let providers = Providers::new(&given, environment).unwrap_or_else(|wrong| {
        for e in wrong {
            errors.add(&e.key, e.text, "correct it, or remove the provider from config.providers");
        }
        Providers::default()
    });
    let resolution = providers.resolve(&given);
    notes.extend(resolution.warnings);
    let mut validation = WORKER.validate(&resolution.properties);
    validation.conclude(false);
    resolution.references.hide_validation(&mut validation);
    notes.append(&mut validation.warnings);
    for row in &validation.options {
        for message in &row.errors {
            errors.add(&row.name, message.clone(), &advice(&row.def, origins));
        }
    }

    let properties = resolution.properties;
    let builder = Builder { s: &validation.settings, properties: &properties, host: local_host(environment) };
    let cluster = builder.cluster(&mut errors);
    let alone = matches!(cluster, ClusterShape::Alone { .. });
    let group = builder.group(alone, &mut errors, &mut notes);
    let node_id = builder.node_id(alone, &mut errors);
    let rest = builder.rest(&mut errors, &mut notes);
    builder.times(&mut errors);
    builder.brokers(&mut errors);
    let data_dir = builder.path("thalweg.data.dir").unwrap_or_default();
    if !errors.list.is_empty() {
        for error in &mut errors.list {
            error.problem = resolution.references.hide_in(&error.problem);
        }
        return Err(WorkerErrors(errors.list));
    }

    let s = validation.settings;
    let text = |name: &str| s.text_or_empty(name).to_owned();
    Ok(WorkerConfig {
        providers,
        notes,
        group,
        node_id,
        data_dir,
        cluster,
        session_timeout: s.millis("session.timeout.ms"),
        heartbeat_interval: s.millis("heartbeat.interval.ms"),
        rebalance_timeout: s.millis("rebalance.timeout.ms"),
        scheduled_rebalance_max_delay: s.millis("scheduled.rebalance.max.delay.ms"),
        shutdown_mode: if s.text("shutdown.mode") == Some("hold") { ShutdownMode::Hold } else { ShutdownMode::Move },
        task_shutdown_timeout: s.millis("task.shutdown.graceful.timeout.ms"),
        bootstrap_servers: s.list("bootstrap.servers").to_vec(),
        delivery: if s.text("thalweg.delivery") == Some("plain") { Delivery::Plain } else { Delivery::Fenced },
        exactly_once: s.text("exactly.once.source.support") == Some("enabled"),
        offset_commit: s.millis("thalweg.offset.commit.ms"),
        offset_flush_interval: s.millis("offset.flush.interval.ms"),
        offset_flush_timeout: s.millis("offset.flush.timeout.ms"),
        rest,
        topic_tracking: s.bool("topic.tracking.enable"),
        topic_tracking_reset: s.bool("topic.tracking.allow.reset"),
        log_level: text("thalweg.log.level"),
        log_format: if s.text("thalweg.log.format") == Some("json") { LogFormat::Json } else { LogFormat::Text },
        properties,
    })
}

/// Errors so far.
pub(super) struct Errors<'a> {
    origins: &'a Origins,
    pub(super) list: Vec<WorkerError>,
}

impl Errors<'_> {
    pub(super) fn add(&mut self, option: &str, problem: impl Into<String>, advice: &str) {
        self.list.push(WorkerError {
            option: option.to_owned(),
            origin: self.origins.of(option),
            problem: problem.into(),
            advice: advice.to_owned(),
        });
    }
}

/// The next step for a value that breaks its option's own rule.
fn advice(def: &OptionDef, origins: &Origins) -> String {
    let or_default = match def.default {
        Some("") => ", or remove the option".to_owned(),
        Some(default) => format!(", or remove the option for its default {default}"),
        None => String::new(),
    };
    match (def.kind, def.rule) {
        _ if def.required => format!("add {}=... in {}", def.name, origins.place()),
        (OptionKind::Boolean, _) => format!("write true or false{or_default}"),
        (_, Rule::OneOf(values)) => format!("write one of {}{or_default}", values.join(", ")),
        (_, Rule::Class(classes)) => format!("write one of {}{or_default}", classes.join(", ")),
        (OptionKind::Int | OptionKind::Short | OptionKind::Long, Rule::Range(min, max)) => {
            let bounds = match (min, max) {
                (Some(min), Some(max)) => format!(" from {min} to {max}"),
                (Some(min), None) => format!(" from {min}"),
                _ => String::new(),
            };
            format!("write a whole number{bounds}{or_default}")
        }
        (OptionKind::Int | OptionKind::Short | OptionKind::Long, _) => format!("write a whole number{or_default}"),
        _ => format!("correct the value{or_default}"),
    }
}

/// This host's name as others may know it.
fn local_host(environment: &BTreeMap<String, String>) -> String {
    let of_kernel = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let named = environment.get("HOSTNAME").cloned().filter(|n| !n.trim().is_empty()).or_else(of_kernel);
    match named.as_deref().map(str::trim) {
        None | Some("" | "(none)") => "localhost".to_owned(),
        Some(name) => name.to_owned(),
    }
}

/// Reads what takes more than one option.
pub(super) struct Builder<'a> {
    pub(super) s: &'a Settings,
    pub(super) properties: &'a Properties,
    /// This host's name.
    pub(super) host: String,
}

impl Builder<'_> {
    /// The option's text, if it is set and not blank.
    pub(super) fn some(&self, name: &str) -> Option<String> {
        self.s.text(name).map(str::trim).filter(|t| !t.is_empty()).map(str::to_owned)
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.some(name).map(PathBuf::from)
    }

    /// The path of an existing file.
    pub(super) fn file(&self, name: &str, errors: &mut Errors<'_>) -> Option<PathBuf> {
        let path = self.path(name)?;
        check_file(name, &path, errors);
        Some(path)
    }

    fn group(&self, alone: bool, errors: &mut Errors<'_>, notes: &mut Vec<String>) -> String {
        match self.some("group.id") {
            Some(group) => group,
            None => {
                if !alone && !self.s.is_set("group.id") {
                    errors.add(
                        "group.id",
                        "a cluster needs a name",
                        "add group.id=<name>, the same on all nodes and different from other clusters of this Kafka",
                    );
                } else if alone {
                    notes.push("group.id is not set; this cluster is called 'thalweg'".to_owned());
                }
                "thalweg".to_owned()
            }
        }
    }

    fn node_id(&self, alone: bool, errors: &mut Errors<'_>) -> u64 {
        const NAME: &str = "thalweg.node.id";
        match self.s.opt_int(NAME) {
            Some(id) => u64::try_from(id).unwrap_or(1),
            None => {
                // Not set, or set to something that is reported already.
                if !alone && self.properties.get(NAME).is_none() {
                    errors.add(
                        NAME,
                        "nodes of a cluster need numbers",
                        "add thalweg.node.id=<n>, another one on each node",
                    );
                }
                1
            }
        }
    }

    fn address(&self, name: &str, errors: &mut Errors<'_>) -> Option<Address> {
        let text = self.some(name)?;
        match text.parse() {
            Ok(address) => Some(address),
            Err(why) => {
                errors.add(name, format!("'{text}' is no address: {why}"), "write host:port");
                None
            }
        }
    }

    fn cluster(&self, errors: &mut Errors<'_>) -> ClusterShape {
        const SEEDS: &str = "thalweg.seeds";
        let mut seeds: Vec<Address> = Vec::new();
        for text in self.s.list(SEEDS) {
            match text.parse::<Address>() {
                Ok(seed) if seed.is_wildcard() || seed.port == 0 => {
                    errors.add(SEEDS, format!("nobody can connect to '{text}'"), "write host:port of each node");
                }
                Ok(seed) if seeds.contains(&seed) => {
                    errors.add(SEEDS, format!("'{text}' is there twice"), "name each node once");
                }
                Ok(seed) => seeds.push(seed),
                Err(why) => errors.add(SEEDS, format!("'{text}' is no address: {why}"), "write host:port of each node"),
            }
        }
        let alone = self.s.list(SEEDS).is_empty();
        let joining = self.s.bool("thalweg.join");
        let rpc = self.rpc(alone, errors);
        if alone {
            if joining {
                errors.add(
                    SEEDS,
                    "a node that joins must know where",
                    "add thalweg.seeds=<host:port of a node of the cluster>",
                );
            }
            return ClusterShape::Alone { rpc };
        }
        let Some(rpc) = rpc else {
            // Its address is wrong, and reported.
            return ClusterShape::Alone { rpc: None };
        };
        if joining {
            return ClusterShape::Joining { rpc, seeds };
        }
        if !seeds.is_empty() && !seeds.contains(&rpc.advertised) {
            errors.add(
                SEEDS,
                format!("this node's own address {} is not among them", rpc.advertised),
                "set thalweg.rpc.advertised to this node's entry, add the address on all nodes, or set thalweg.join=true if the cluster exists already",
            );
        }
        ClusterShape::Founding { rpc, seeds }
    }

    /// `None`: not set, or wrong.
    fn rpc(&self, alone: bool, errors: &mut Errors<'_>) -> Option<RpcConfig> {
        const LISTEN: &str = "thalweg.rpc.listen";
        const ADVERTISED: &str = "thalweg.rpc.advertised";
        let tls = self.rpc_tls(errors);
        let listen = match self.some(LISTEN) {
            Some(_) => self.address(LISTEN, errors)?,
            None if alone => {
                if self.some(ADVERTISED).is_some() {
                    errors.add(
                        ADVERTISED,
                        "the node does not listen",
                        "add thalweg.rpc.listen=<host:port>, or remove the option",
                    );
                }
                return None;
            }
            None => Address::new("", RPC_PORT),
        };
        let advertised = match self.some(ADVERTISED) {
            Some(_) => self.address(ADVERTISED, errors)?,
            None if listen.is_wildcard() => Address::new(self.host.clone(), listen.port),
            None => listen.clone(),
        };
        if self.some(ADVERTISED).is_some() && (advertised.is_wildcard() || advertised.port == 0) {
            errors.add(
                ADVERTISED,
                format!("nobody can connect to '{advertised}'"),
                "write the host and port that other nodes use",
            );
        }
        Some(RpcConfig { listen, advertised, tls })
    }

    fn rpc_tls(&self, errors: &mut Errors<'_>) -> Option<RpcTls> {
        let names = ["thalweg.rpc.tls.ca", "thalweg.rpc.tls.cert", "thalweg.rpc.tls.key"];
        let [ca, cert, key] = names.map(|name| self.file(name, errors));
        match (ca, cert, key) {
            (Some(ca), Some(cert), Some(key)) => Some(RpcTls { ca, cert, key }),
            (None, None, None) => None,
            _ => {
                for name in names.iter().filter(|n| self.some(n).is_none()) {
                    errors.add(
                        name,
                        "is missing beside the other thalweg.rpc.tls options",
                        "set all three, or none for plain connections",
                    );
                }
                None
            }
        }
    }

    fn times(&self, errors: &mut Errors<'_>) {
        let (session, heartbeat) = (self.s.int("session.timeout.ms"), self.s.int("heartbeat.interval.ms"));
        if session < heartbeat.saturating_mul(2) {
            errors.add(
                "heartbeat.interval.ms",
                format!(
                    "with {heartbeat} ms and a session.timeout.ms of {session} ms one lost heartbeat ends the lease"
                ),
                "make it at most half of session.timeout.ms",
            );
        }
        let (commit, flush) = (self.s.int("thalweg.offset.commit.ms"), self.s.int("offset.flush.interval.ms"));
        if commit > flush {
            errors.add(
                "thalweg.offset.commit.ms",
                format!("{commit} ms is longer than offset.flush.interval.ms ({flush} ms)"),
                "make it at most offset.flush.interval.ms",
            );
        }
    }

    fn brokers(&self, errors: &mut Errors<'_>) {
        const NAME: &str = "bootstrap.servers";
        let servers = self.s.list(NAME);
        if servers.is_empty() {
            errors.add(NAME, "it names no broker", "write host:port of at least one broker");
        }
        for server in servers {
            // Listener names of brokers are accepted as librdkafka does: PLAINTEXT://host:port.
            let address = server.split_once("://").map_or(server.as_str(), |(_, address)| address);
            match address.parse::<Address>() {
                Ok(a) if a.host.is_empty() => errors.add(NAME, format!("'{server}' has no host"), "write host:port"),
                Ok(_) => {}
                Err(why) => errors.add(NAME, format!("'{server}' is no address: {why}"), "write host:port"),
            }
        }
    }
}

pub(super) fn check_file(name: &str, path: &std::path::Path, errors: &mut Errors<'_>) {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() => {}
        Ok(_) => errors.add(name, format!("{} is no file", path.display()), "name a file"),
        Err(e) => {
            errors.add(
                name,
                format!("{} cannot be read: {e}", path.display()),
                "name a file that exists and is readable",
            );
        }
    }
}
