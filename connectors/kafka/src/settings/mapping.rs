//! What each client property of Kafka's Java clients means for librdkafka.
//!
//! A constant table and a look-up; the layers and the values are `settings`' business. Properties of
//! librdkafka that an operator may reasonably tune are accepted under their own names as well (those
//! that have a Java name are renamed before they get here).
//! Properties that load code, replace callbacks or belong to the runtime are not in the table.

/// The kind of client that is being configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Producer,
    Admin,
    Consumer,
}

/// What happens to a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Handed on under the same name.
    Same,
    /// Handed on under librdkafka's name.
    To(&'static str),
    /// A number of which -1 means "as the system does", which librdkafka writes as 0.
    Number { to: &'static str, least: i64, most: i64 },
    /// Translated by code in `settings`, together with its neighbours.
    Coded,
    /// Has a meaning only in a JVM, or none with this client; dropped without a word.
    JavaOnly,
    /// Decided by the runtime; setting it is worth a warning with this reason.
    Ours(&'static str),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) fate: Fate,
    families: &'static [Family],
}

const ALL: &[Family] = &[Family::Producer, Family::Admin, Family::Consumer];
const PRODUCER: &[Family] = &[Family::Producer];
const CONSUMER: &[Family] = &[Family::Consumer];

const fn all(name: &'static str, fate: Fate) -> Rule {
    Rule { name, fate, families: ALL }
}
const fn producer(name: &'static str, fate: Fate) -> Rule {
    Rule { name, fate, families: PRODUCER }
}
const fn consumer(name: &'static str, fate: Fate) -> Rule {
    Rule { name, fate, families: CONSUMER }
}
const fn millis(to: &'static str, least: i64, most: i64) -> Fate {
    Fate::Number { to, least, most }
}

const INT_MAX: i64 = i32::MAX as i64;

/// Properties with a fixed name. The first that matches name and family counts.
const RULES: &[Rule] = &[
    // Connection.
    all("bootstrap.servers", Fate::Same),
    all("client.id", Fate::Same),
    all("client.dns.lookup", Fate::Same),
    all("connections.max.idle.ms", millis("connections.max.idle.ms", 0, INT_MAX)),
    all("metadata.max.age.ms", millis("topic.metadata.refresh.interval.ms", 10, 3_600_000)),
    all("receive.buffer.bytes", millis("socket.receive.buffer.bytes", 0, 100_000_000)),
    all("send.buffer.bytes", millis("socket.send.buffer.bytes", 0, 100_000_000)),
    all("reconnect.backoff.ms", millis("reconnect.backoff.ms", 0, 3_600_000)),
    all("reconnect.backoff.max.ms", millis("reconnect.backoff.max.ms", 0, 3_600_000)),
    all("retry.backoff.ms", millis("retry.backoff.ms", 1, 300_000)),
    all("retry.backoff.max.ms", millis("retry.backoff.max.ms", 1, 300_000)),
    all("request.timeout.ms", millis("socket.timeout.ms", 10, 300_000)),
    all("socket.connection.setup.timeout.ms", millis("socket.connection.setup.timeout.ms", 1000, INT_MAX)),
    all("enable.metrics.push", Fate::Same),
    // Security. The keys of librdkafka are for those who already have PEM files.
    all("security.protocol", Fate::Coded),
    all("sasl.mechanism", Fate::Coded),
    all("sasl.jaas.config", Fate::Coded),
    all("ssl.truststore.type", Fate::Coded),
    all("ssl.truststore.location", Fate::Coded),
    all("ssl.truststore.password", Fate::Coded),
    all("ssl.truststore.certificates", Fate::Coded),
    all("ssl.keystore.type", Fate::Coded),
    all("ssl.keystore.location", Fate::Coded),
    all("ssl.keystore.password", Fate::Coded),
    all("ssl.keystore.certificate.chain", Fate::Coded),
    all("ssl.keystore.key", Fate::Coded),
    all("ssl.key.password", Fate::Same),
    all("ssl.endpoint.identification.algorithm", Fate::Coded),
    all("sasl.username", Fate::Same),
    all("sasl.password", Fate::Same),
    all("ssl.ca.location", Fate::Same),
    all("ssl.certificate.location", Fate::Same),
    all("ssl.key.location", Fate::Same),
    all("enable.ssl.certificate.verification", Fate::Same),
    // librdkafka's own, connection.
    all("socket.keepalive.enable", Fate::Same),
    all("socket.nagle.disable", Fate::Same),
    all("broker.address.family", Fate::Same),
    all("broker.address.ttl", Fate::Same),
    all("debug", Fate::Same),
    // Producer.
    producer("acks", Fate::Coded),
    producer("enable.idempotence", Fate::Coded),
    producer("max.in.flight.requests.per.connection", Fate::Coded),
    producer("delivery.timeout.ms", Fate::Coded),
    producer("transaction.timeout.ms", Fate::Coded),
    producer("max.request.size", Fate::Coded),
    producer("buffer.memory", Fate::Coded),
    producer("queue.buffering.max.kbytes", Fate::Coded),
    producer("queue.buffering.max.messages", Fate::Coded),
    producer("batch.size", millis("batch.size", 1, INT_MAX)),
    producer("linger.ms", millis("linger.ms", 0, 900_000)),
    producer("retries", millis("retries", 0, INT_MAX)),
    producer("compression.type", Fate::Coded),
    producer("compression.gzip.level", Fate::Coded),
    producer("compression.lz4.level", Fate::Coded),
    producer("compression.zstd.level", Fate::Coded),
    producer("compression.level", Fate::Coded),
    producer("partitioner.class", Fate::Coded),
    producer("batch.num.messages", Fate::Same),
    producer("sticky.partitioning.linger.ms", Fate::Same),
    producer("topic.metadata.propagation.max.ms", Fate::Same),
    producer("transactional.id", Fate::Ours("the transactional id names the task and fences its former owner")),
    producer(
        "partitioner",
        Fate::Ours("keys are partitioned as Kafka's Java producer does, so that they stay where they are"),
    ),
    producer("enable.gapless.guarantee", Fate::Ours("it follows from the delivery mode")),
    producer("key.serializer", Fate::JavaOnly),
    producer("value.serializer", Fate::JavaOnly),
    producer("max.block.ms", Fate::JavaOnly),
    producer("metadata.max.idle.ms", Fate::JavaOnly),
    producer("partitioner.adaptive.partitioning.enable", Fate::JavaOnly),
    producer("partitioner.availability.timeout.ms", Fate::JavaOnly),
    producer("partitioner.ignore.keys", Fate::JavaOnly),
    producer("transaction.two.phase.commit.enable", Fate::JavaOnly),
    // Consumer.
    consumer("group.id", Fate::Same),
    consumer("group.instance.id", Fate::Same),
    consumer("auto.offset.reset", Fate::Coded),
    consumer("isolation.level", Fate::Coded),
    consumer("fetch.min.bytes", Fate::Same),
    consumer("fetch.max.bytes", Fate::Same),
    consumer("fetch.max.wait.ms", Fate::To("fetch.wait.max.ms")),
    consumer("max.partition.fetch.bytes", Fate::Same),
    consumer("session.timeout.ms", Fate::Same),
    consumer("heartbeat.interval.ms", Fate::Same),
    consumer("max.poll.interval.ms", Fate::Same),
    consumer("client.rack", Fate::Same),
    consumer("check.crcs", Fate::Same),
    consumer("allow.auto.create.topics", Fate::Same),
    consumer("enable.auto.commit", Fate::Ours("positions are not kept in consumer groups")),
    consumer("auto.commit.interval.ms", Fate::JavaOnly),
    consumer("max.poll.records", Fate::JavaOnly),
    consumer("key.deserializer", Fate::JavaOnly),
    consumer("value.deserializer", Fate::JavaOnly),
    consumer("partition.assignment.strategy", Fate::JavaOnly),
    consumer("exclude.internal.topics", Fate::JavaOnly),
    consumer("group.protocol", Fate::JavaOnly),
    consumer("group.remote.assignor", Fate::JavaOnly),
    // Java only, every client.
    all("default.api.timeout.ms", Fate::JavaOnly),
    all("socket.connection.setup.timeout.max.ms", Fate::JavaOnly),
    all("interceptor.classes", Fate::JavaOnly),
    all("metric.reporters", Fate::JavaOnly),
    all("auto.include.jmx.reporter", Fate::JavaOnly),
    all("security.providers", Fate::JavaOnly),
    all("metadata.recovery.strategy", Fate::JavaOnly),
    all("metadata.recovery.rebootstrap.trigger.ms", Fate::JavaOnly),
    all("bootstrap.controllers", Fate::JavaOnly),
    all("ssl.protocol", Fate::JavaOnly),
    all("ssl.provider", Fate::JavaOnly),
    all("ssl.enabled.protocols", Fate::JavaOnly),
    all("ssl.cipher.suites", Fate::JavaOnly),
    all("ssl.keymanager.algorithm", Fate::JavaOnly),
    all("ssl.trustmanager.algorithm", Fate::JavaOnly),
    all("ssl.secure.random.implementation", Fate::JavaOnly),
    all("ssl.engine.factory.class", Fate::JavaOnly),
    all("sasl.client.callback.handler.class", Fate::JavaOnly),
];

/// Families of Java-only properties.
const JAVA_ONLY_PREFIXES: &[&str] = &["metrics.", "sasl.login.", "sasl.kerberos.", "sasl.oauthbearer.", "confluent."];

/// `None` for a property that nobody knows.
pub(super) fn fate(family: Family, name: &str) -> Option<Fate> {
    if let Some(rule) = RULES.iter().find(|r| r.name == name && r.families.contains(&family)) {
        return Some(rule.fate);
    }
    JAVA_ONLY_PREFIXES.iter().any(|p| name.starts_with(p)).then_some(Fate::JavaOnly)
}

/// Properties that describe the way to the cluster and apply to every client of a worker that uses
/// the worker's own brokers.
pub(super) fn is_connection(name: &str) -> bool {
    name.starts_with("ssl.")
        || name.starts_with("sasl.")
        || matches!(name, "security.protocol" | "client.dns.lookup" | "enable.ssl.certificate.verification")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_per_family() {
        for family in ALL {
            let mut seen = BTreeSet::new();
            for rule in RULES.iter().filter(|r| r.families.contains(family)) {
                assert!(seen.insert(rule.name), "{} twice for {family:?}", rule.name);
            }
        }
    }

    #[test]
    fn a_family_knows_its_own_and_the_common_names() {
        assert_eq!(fate(Family::Producer, "max.block.ms"), Some(Fate::JavaOnly));
        assert_eq!(fate(Family::Admin, "acks"), None);
        assert_eq!(fate(Family::Consumer, "sasl.login.refresh.window.factor"), Some(Fate::JavaOnly));
        assert_eq!(fate(Family::Producer, "plugin.library.paths"), None);
        assert_eq!(fate(Family::Producer, "test.mock.num.brokers"), None);
    }
}
