//! From checked options to a [`WorkerConfig`], gathering every error on the way.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{
    Address, AdminListeners, ClientAuth, ClusterShape, Delivery, ExactlyOnceSupport, HeaderAction, Listener, LogFormat,
    Origins, OverridePolicy, ResponseHeader, RestConfig, RestTls, RpcConfig, RpcTls, Scheme, ShutdownMode, WORKER,
    WorkerConfig, WorkerError, WorkerErrors,
};
use crate::option::{OptionDef, OptionKind, Rule};
use crate::properties::Properties;
use crate::provider::Providers;
use crate::rule::split_plain_list;
use crate::settings::Settings;

const RPC_PORT: u16 = 8084;
const REST_PORT: u16 = 8083;

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
    let (data_dir, offset_topic) =
        (builder.path("thalweg.data.dir").unwrap_or_default(), builder.some("offset.storage.topic"));
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
        key_converter: text("key.converter"),
        value_converter: text("value.converter"),
        header_converter: text("header.converter"),
        override_policy: match s.text("connector.client.config.override.policy") {
            Some("None") => OverridePolicy::None,
            Some("Principal") => OverridePolicy::Principal,
            _ => OverridePolicy::All,
        },
        delivery: if s.text("thalweg.delivery") == Some("plain") { Delivery::Plain } else { Delivery::Fenced },
        exactly_once: match s.text("exactly.once.source.support") {
            Some("enabled") => ExactlyOnceSupport::Enabled,
            Some("preparing") => ExactlyOnceSupport::Preparing,
            _ => ExactlyOnceSupport::Disabled,
        },
        offset_commit: s.millis("thalweg.offset.commit.ms"),
        offset_flush_interval: s.millis("offset.flush.interval.ms"),
        offset_flush_timeout: s.millis("offset.flush.timeout.ms"),
        offset_topic,
        offset_topic_partitions: i32::try_from(s.int("offset.storage.partitions")).unwrap_or(-1),
        offset_topic_replication: i16::try_from(s.int("offset.storage.replication.factor")).unwrap_or(-1),
        rest,
        topic_tracking: s.bool("topic.tracking.enable"),
        topic_tracking_reset: s.bool("topic.tracking.allow.reset"),
        topic_creation: s.bool("topic.creation.enable"),
        log_level: text("thalweg.log.level"),
        log_format: if s.text("thalweg.log.format") == Some("json") { LogFormat::Json } else { LogFormat::Text },
        properties,
    })
}

/// Errors so far.
struct Errors<'a> {
    origins: &'a Origins,
    list: Vec<WorkerError>,
}

impl Errors<'_> {
    fn add(&mut self, option: &str, problem: impl Into<String>, advice: &str) {
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

struct Builder<'a> {
    s: &'a Settings,
    properties: &'a Properties,
    host: String,
}

impl Builder<'_> {
    /// The option's text, if it is set and not blank.
    fn some(&self, name: &str) -> Option<String> {
        self.s.text(name).map(str::trim).filter(|t| !t.is_empty()).map(str::to_owned)
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.some(name).map(PathBuf::from)
    }

    /// The path of an existing file.
    fn file(&self, name: &str, errors: &mut Errors<'_>) -> Option<PathBuf> {
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

    fn listeners(&self, name: &str, errors: &mut Errors<'_>) -> Vec<Listener> {
        let mut listeners = Vec::new();
        for text in self.s.list(name) {
            match text.parse() {
                Ok(listener) => listeners.push(listener),
                Err(why) => errors.add(
                    name,
                    format!("'{text}' is no listener: {why}"),
                    "write http://host:port or https://host:port; without a host it listens at all interfaces",
                ),
            }
        }
        listeners
    }

    fn rest(&self, errors: &mut Errors<'_>, notes: &mut Vec<String>) -> RestConfig {
        const ADVERTISED: &str = "rest.advertised.listener";
        let before = errors.list.len();
        let mut listeners = self.listeners("listeners", errors);
        let old = self.properties.get("rest.host.name").is_some() || self.properties.get("rest.port").is_some();
        if old && self.properties.get("listeners").is_some() {
            notes.push("rest.host.name and rest.port have no effect, because listeners is set".to_owned());
        } else if old {
            let port = self.s.opt_int("rest.port").and_then(|p| u16::try_from(p).ok()).unwrap_or(REST_PORT);
            let address = Address::new(self.some("rest.host.name").unwrap_or_default(), port);
            listeners = vec![Listener { scheme: Scheme::Http, address }];
        }
        if listeners.is_empty() && errors.list.len() == before {
            errors.add(
                "listeners",
                "it names no listener",
                "write http://host:port, or remove the option for http://:8083",
            );
        }
        let wanted = self.some(ADVERTISED);
        let chosen = listeners.iter().find(|l| wanted.as_deref().is_none_or(|w| w == l.scheme.name()));
        if let (None, Some(wanted), false) = (chosen, &wanted, listeners.is_empty()) {
            errors.add(ADVERTISED, format!("no listener is {wanted}"), "add one to listeners, or remove the option");
        }
        let base = chosen.cloned().unwrap_or(Listener { scheme: Scheme::Http, address: Address::new("", REST_PORT) });
        let host = self.some("rest.advertised.host.name").unwrap_or_else(|| match base.address.is_wildcard() {
            true => self.host.clone(),
            false => base.address.host.clone(),
        });
        let port = self.s.opt_int("rest.advertised.port").and_then(|p| u16::try_from(p).ok());
        let advertised =
            Listener { scheme: base.scheme, address: Address::new(host, port.unwrap_or(base.address.port)) };
        let admin = match self.properties.get("admin.listeners") {
            None => AdminListeners::Same,
            Some(_) if self.s.list("admin.listeners").is_empty() => AdminListeners::Off,
            Some(_) => AdminListeners::Own(self.listeners("admin.listeners", errors)),
        };
        let own = if let AdminListeners::Own(own) = &admin { own.as_slice() } else { &[] };
        let https = listeners.iter().chain(own).any(|l| l.scheme == Scheme::Https);
        RestConfig {
            tls: if https { self.rest_tls(errors) } else { None },
            basic_auth_file: self.file("rest.auth.basic.file", errors),
            allow_origin: self.some("access.control.allow.origin").unwrap_or_default(),
            allow_methods: self.some("access.control.allow.methods").unwrap_or_default(),
            response_headers: self.response_headers(errors),
            reported_version: self.some("rest.reported.version").unwrap_or_default(),
            listeners,
            advertised,
            admin,
        }
    }

    /// Settings of `https` listeners: with their prefix, or else the plain ones.
    fn rest_tls(&self, errors: &mut Errors<'_>) -> Option<RestTls> {
        let find = |key: &str| {
            let prefixed = format!("listeners.https.{key}");
            let name = if self.properties.get(&prefixed).is_some() { prefixed } else { key.to_owned() };
            let value = self.properties.get(&name).map(str::trim).filter(|v| !v.is_empty()).map(str::to_owned);
            (name, value)
        };
        let store = |which: &str, errors: &mut Errors<'_>| {
            let (name, path) = find(&format!("ssl.{which}.location"));
            let path = path.map(PathBuf::from)?;
            let (type_name, kind) = find(&format!("ssl.{which}.type"));
            if !kind.as_deref().is_some_and(|k| k.eq_ignore_ascii_case("PEM")) {
                errors.add(
                    &type_name,
                    format!("Java key stores are not read ({})", kind.as_deref().unwrap_or("JKS")),
                    "convert the store (openssl pkcs12 -in store.p12 -nodes -out store.pem), name the new file and set the type to PEM",
                );
            }
            check_file(&name, &path, errors);
            Some(path)
        };
        let key_store = store("keystore", errors);
        let trust_store = store("truststore", errors);
        let (auth_name, auth) = find("ssl.client.auth");
        let client_auth = match auth.as_deref().unwrap_or("none") {
            "none" => ClientAuth::None,
            "requested" => ClientAuth::Requested,
            "required" => ClientAuth::Required,
            other => {
                errors.add(&auth_name, format!("'{other}' is unknown"), "write one of none, requested, required");
                ClientAuth::None
            }
        };
        if client_auth != ClientAuth::None && trust_store.is_none() {
            errors.add(
                "listeners.https.ssl.truststore.location",
                "client certificates cannot be checked without authorities",
                "add the PEM file with them, or set ssl.client.auth=none",
            );
        }
        if key_store.is_none() {
            errors.add(
                "listeners.https.ssl.keystore.location",
                "an https listener needs a key and a certificate",
                "add the PEM file with both, and listeners.https.ssl.keystore.type=PEM",
            );
        }
        Some(RestTls { key_store: key_store?, trust_store, client_auth })
    }

    fn response_headers(&self, errors: &mut Errors<'_>) -> Vec<ResponseHeader> {
        const NAME: &str = "response.http.headers.config";
        let mut headers = Vec::new();
        for entry in split_plain_list(&self.some(NAME).unwrap_or_default()) {
            let parsed = entry.split_once(':').and_then(|(left, value)| {
                let (action, name) = left.trim().split_once(char::is_whitespace)?;
                let action = match action.to_ascii_lowercase().as_str() {
                    "set" => HeaderAction::Set,
                    "add" => HeaderAction::Add,
                    "setdate" => HeaderAction::SetDate,
                    "adddate" => HeaderAction::AddDate,
                    _ => return None,
                };
                let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
                let plain =
                    !name.is_empty() && !name.contains(char::is_whitespace) && !value.contains(char::is_control);
                let date =
                    !matches!(action, HeaderAction::SetDate | HeaderAction::AddDate) || value.parse::<i64>().is_ok();
                (plain && date).then_some(ResponseHeader { action, name, value })
            });
            match parsed {
                Some(header) => headers.push(header),
                None => errors.add(
                    NAME,
                    format!("'{entry}' is no header"),
                    "write \"action name: value\" with one of the actions set, add, setDate, addDate; dates are milliseconds since 1970",
                ),
            }
        }
        headers
    }
}

fn check_file(name: &str, path: &std::path::Path, errors: &mut Errors<'_>) {
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
