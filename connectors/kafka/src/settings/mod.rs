//! From the properties of worker and connector to the configuration of one Kafka client.
//!
//! Layers, the later wins: our defaults; the worker's properties (for producers only those that
//! describe the way to the cluster, and only while the producer uses the worker's brokers); the
//! worker's `producer.`, `admin.` or `consumer.` properties; the connector's `producer.override.`,
//! `admin.override.` or `consumer.override.` properties as far as
//! `connector.client.config.override.policy` allows them; what the delivery mode forces.
//!
//! Names are those of Kafka's Java clients (`mapping`), values are checked by librdkafka itself. An
//! unknown property is a warning and ignored, a property that matters only to a JVM is ignored.
//! Nothing here logs, and no message carries a value of a property that may be secret.
//!
//! Compression is off unless `compression.type` is set, as in Kafka's producer.
//!
//! It does not: connect, read files, or resolve `${...}` references.

mod jaas;
mod mapping;
mod pem;
mod producer;
mod security;

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use thalweg_config::Properties;
use thalweg_core::Error;
use thalweg_core::delivery::{DeliveryMode, ProducerIdentity};

use self::mapping::{Family, Fate};
pub use self::producer::{PLAIN_DELIVERY_TIMEOUT, transactional_id};

/// The client that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Producer(DeliveryMode),
    Admin,
    Consumer,
}

impl Role {
    fn family(self) -> Family {
        match self {
            Self::Producer(_) => Family::Producer,
            Self::Admin => Family::Admin,
            Self::Consumer => Family::Consumer,
        }
    }

    /// Prefix of the worker's properties for this client.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Producer(_) => "producer.",
            Self::Admin => "admin.",
            Self::Consumer => "consumer.",
        }
    }

    /// Prefix of the connector's properties for this client.
    fn override_prefix(self) -> &'static str {
        match self {
            Self::Producer(_) => "producer.override.",
            Self::Admin => "admin.override.",
            Self::Consumer => "consumer.override.",
        }
    }

    fn client_id(self, who: &ProducerIdentity) -> String {
        let kind = match self {
            Self::Producer(_) => "producer",
            Self::Admin => "adminclient",
            Self::Consumer => "consumer",
        };
        format!("connector-{kind}-{}-{}", who.connector, who.task)
    }
}

/// A property that cannot be used: its full name as the user wrote it, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("The '{key}' value is invalid: {reason}")]
pub struct SettingProblem {
    pub key: String,
    pub reason: String,
}

/// A finished client configuration.
pub struct ClientSettings {
    pub(crate) config: ClientConfig,
    /// Worth telling the user once: ignored or adjusted properties, by name.
    pub warnings: Vec<String>,
    pub(crate) limits: ProducerLimits,
}

/// What the producer itself has to respect. Meaningless for other clients.
#[derive(Debug, Clone)]
pub(crate) struct ProducerLimits {
    /// Largest record with its framing, in bytes, before compression.
    pub(crate) max_request: u64,
    /// Memory for records that are not acknowledged yet, if the user limits it for this producer.
    pub(crate) buffer_bytes: Option<u64>,
    /// Records that are not acknowledged yet.
    pub(crate) buffer_messages: u64,
    pub(crate) batch_size: u64,
    pub(crate) transaction_timeout: Duration,
    /// A request that is not answered for this long has failed.
    pub(crate) request_timeout: Duration,
    /// A record that the broker finds too large does not end the producer.
    pub(crate) tolerates_refusal: bool,
}

const POLICY: &str = "connector.client.config.override.policy";
const POLICY_SUFFIX: &str = "ConnectorClientConfigOverridePolicy";
const PRINCIPAL_KEYS: [&str; 3] = ["sasl.jaas.config", "sasl.mechanism", "security.protocol"];

/// The configuration of one client, or every property that is wrong.
pub fn client_settings(
    worker: &Properties,
    connector: &Properties,
    who: &ProducerIdentity,
    role: Role,
) -> Result<ClientSettings, Vec<SettingProblem>> {
    let mut build = Build::new(role);
    build.base(who);
    build.layers(worker, connector);
    build.translate(connector, who);
    build.finish()
}

/// The same as one error, for places where there is nobody to show a list to.
pub(crate) fn as_error(problems: &[SettingProblem]) -> Error {
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    Error::config(format!("the Kafka client cannot be configured: {}", texts.join("; ")))
}

/// One property as given by the innermost layer that has it.
#[derive(Debug, Clone)]
struct Given {
    value: String,
    /// Full name as the user wrote it.
    origin: String,
}

/// A configuration being built.
struct Build {
    role: Role,
    given: BTreeMap<String, Given>,
    /// librdkafka's names.
    out: BTreeMap<String, String>,
    /// Which property of the user a librdkafka property came from.
    origins: BTreeMap<String, String>,
    problems: Vec<SettingProblem>,
    warnings: Vec<String>,
    limits: ProducerLimits,
}

impl Build {
    fn new(role: Role) -> Self {
        Self {
            role,
            given: BTreeMap::new(),
            out: BTreeMap::new(),
            origins: BTreeMap::new(),
            problems: Vec::new(),
            warnings: Vec::new(),
            limits: producer::default_limits(),
        }
    }

    fn base(&mut self, who: &ProducerIdentity) {
        for (key, value) in [
            ("bootstrap.servers", "localhost:9092"),
            ("client.software.name", "thalweg"),
            ("client.software.version", env!("CARGO_PKG_VERSION")),
            ("socket.keepalive.enable", "true"),
            ("socket.timeout.ms", "30000"),
            ("socket.connection.setup.timeout.ms", "10000"),
            // A broker that is back must be found again within a second.
            ("reconnect.backoff.ms", "50"),
            ("reconnect.backoff.max.ms", "1000"),
            // An idle connection that the broker closes is not news.
            ("log.connection.close", "false"),
            ("enable.metrics.push", "false"),
        ] {
            self.out.insert(key.to_owned(), value.to_owned());
        }
        self.out.insert("client.id".to_owned(), self.role.client_id(who));
    }

    /// Collects what the user gave, innermost layer last.
    fn layers(&mut self, worker: &Properties, connector: &Properties) {
        let own_prefix = self.role.prefix();
        let override_prefix = self.role.override_prefix();
        let mine = worker.below(own_prefix);
        let overrides = connector.below(override_prefix);
        let own_brokers = [&mine, &overrides].iter().any(|p| p.get("bootstrap.servers").is_some());

        for (key, value) in worker.iter() {
            let inherited = match self.role.family() {
                Family::Producer => mapping::is_connection(key) && !own_brokers,
                // The worker's own properties carry names of its own (session.timeout.ms, group.id)
                // that mean something else to a client: only what concerns the connection passes.
                Family::Admin | Family::Consumer => {
                    mapping::is_connection(key) || matches!(key, "request.timeout.ms" | "retry.backoff.ms")
                }
            };
            if key == "bootstrap.servers" || inherited {
                self.give(key, value, key.to_owned());
            }
        }
        for (key, value) in mine.iter() {
            self.give(key, value, format!("{own_prefix}{key}"));
        }
        self.problems.extend(refused_overrides(worker, &overrides, override_prefix));
        for (key, value) in overrides.iter() {
            self.give(key, value, format!("{override_prefix}{key}"));
        }
    }

    fn give(&mut self, key: &str, value: &str, origin: String) {
        // librdkafka's name and Java's are one property; whichever the later layer uses must win.
        let key = match key {
            "sasl.mechanisms" => "sasl.mechanism",
            "max.in.flight" => "max.in.flight.requests.per.connection",
            "request.required.acks" => "acks",
            "message.timeout.ms" => "delivery.timeout.ms",
            "message.max.bytes" => "max.request.size",
            "compression.codec" => "compression.type",
            "queue.buffering.max.ms" => "linger.ms",
            "message.send.max.retries" => "retries",
            "socket.timeout.ms" => "request.timeout.ms",
            "topic.metadata.refresh.interval.ms" => "metadata.max.age.ms",
            "socket.receive.buffer.bytes" => "receive.buffer.bytes",
            "socket.send.buffer.bytes" => "send.buffer.bytes",
            "fetch.wait.max.ms" => "fetch.max.wait.ms",
            other => other,
        };
        self.given.insert(key.to_owned(), Given { value: value.trim().to_owned(), origin });
    }

    fn translate(&mut self, connector: &Properties, who: &ProducerIdentity) {
        for (key, given) in std::mem::take(&mut self.given) {
            match mapping::fate(self.role.family(), &key) {
                Some(Fate::Same) => self.put(&key, given.value, &given.origin),
                Some(Fate::To(name)) => self.put(name, given.value, &given.origin),
                Some(Fate::Number { to, least, most }) => self.put_number(to, &given, least, most),
                Some(Fate::Coded) => {
                    self.given.insert(key, given);
                }
                Some(Fate::JavaOnly) => {}
                Some(Fate::Ours(why)) => self.warnings.push(format!("{} is ignored: {why}", given.origin)),
                None => self.warnings.push(format!("{} is ignored: no such client property", given.origin)),
            }
        }
        self.security();
        match self.role {
            Role::Producer(mode) => self.producer(mode, connector, who),
            Role::Admin => {}
            Role::Consumer => self.consumer(),
        }
    }

    fn consumer(&mut self) {
        self.out.insert("enable.auto.commit".to_owned(), "false".to_owned());
        if let Some(given) = self.given.remove("auto.offset.reset") {
            let value = if given.value.eq_ignore_ascii_case("none") { "error".to_owned() } else { given.value };
            self.put("auto.offset.reset", value, &given.origin);
        }
        if let Some(given) = self.given.remove("isolation.level") {
            self.put("isolation.level", given.value.to_ascii_lowercase(), &given.origin);
        }
    }

    fn put(&mut self, name: &str, value: String, origin: &str) {
        self.origins.insert(name.to_owned(), origin.to_owned());
        self.out.insert(name.to_owned(), value);
    }

    /// Sets what the user has not set.
    fn put_default(&mut self, name: &str, value: impl ToString) {
        if !self.origins.contains_key(name) {
            self.out.insert(name.to_owned(), value.to_string());
        }
    }

    fn put_number(&mut self, name: &str, given: &Given, least: i64, most: i64) {
        let Some(number) = self.number(given) else { return };
        let number = if number == -1 { 0 } else { number };
        self.put(name, number.clamp(least, most).to_string(), &given.origin);
    }

    /// A number, or a problem. Java's configuration accepts fractions nowhere in these properties.
    fn number(&mut self, given: &Given) -> Option<i64> {
        let number = given.value.parse::<i64>().ok();
        if number.is_none() {
            self.problem(&given.origin, "not a whole number");
        }
        number
    }

    fn problem(&mut self, key: &str, reason: impl Into<String>) {
        self.problems.push(SettingProblem { key: key.to_owned(), reason: reason.into() });
    }

    fn warn(&mut self, text: String) {
        self.warnings.push(text);
    }

    fn finish(mut self) -> Result<ClientSettings, Vec<SettingProblem>> {
        for (name, origin) in &self.origins {
            let Some(value) = self.out.get(name) else { continue };
            if let Err(reason) = accepted(name, value) {
                self.problems.push(SettingProblem { key: origin.clone(), reason });
            }
        }
        if !self.problems.is_empty() {
            self.problems.sort_by(|a, b| a.key.cmp(&b.key));
            return Err(self.problems);
        }
        let mut config: ClientConfig = self.out.into_iter().collect();
        let level = if config.get("debug").is_some() { RDKafkaLogLevel::Debug } else { RDKafkaLogLevel::Info };
        config.set_log_level(level);
        self.warnings.sort();
        Ok(ClientSettings { config, warnings: self.warnings, limits: self.limits })
    }
}

/// Asks librdkafka whether it takes the value.
fn accepted(name: &str, value: &str) -> Result<(), String> {
    let mut one = ClientConfig::new();
    one.set(name, value);
    match one.create_native_config() {
        Ok(_) => Ok(()),
        Err(KafkaError::ClientConfig(_, reason, ..)) if !is_secret(name) => Err(reason),
        Err(_) => Err("the value is not accepted".to_owned()),
    }
}

/// Values of these never appear in a message.
fn is_secret(name: &str) -> bool {
    name.contains("password") || name.contains("jaas") || name.contains("pem") || name.contains("secret")
}

/// Overrides of the connector that the worker's policy forbids, and an unknown policy.
fn refused_overrides(worker: &Properties, overrides: &Properties, prefix: &str) -> Vec<SettingProblem> {
    let text = worker.get(POLICY).unwrap_or("All").trim();
    let name = text.rsplit('.').next().unwrap_or_default();
    let name = name.strip_suffix(POLICY_SUFFIX).unwrap_or(name);
    let allowed: fn(&str) -> bool = match name.to_ascii_lowercase().as_str() {
        "all" => |_| true,
        "none" => |_| false,
        "principal" => |key| PRINCIPAL_KEYS.contains(&key),
        _ => {
            return vec![SettingProblem {
                key: POLICY.to_owned(),
                reason: "the policy must be All, None or Principal".to_owned(),
            }];
        }
    };
    overrides
        .iter()
        .filter(|(key, _)| !allowed(key))
        .map(|(key, _)| SettingProblem {
            key: format!("{prefix}{key}"),
            reason: format!("the worker's {POLICY}={name} does not let connectors set this property"),
        })
        .collect()
}

#[cfg(test)]
mod tests;
