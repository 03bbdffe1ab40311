//! The settings of Kafka's clients that a connector gives (`producer.override.*` and its like) as
//! `config/validate` lists them: with the definition that Kafka has for them, or with none.
//!
//! Names, kinds, defaults and importance are those of Kafka 4.3. It does not say what a setting does here:
//! that is `settings`' business, and so is what is wrong with it beyond its kind.

use thalweg_config::{
    HIDDEN, Importance, OptionDef, OptionKind, OptionTable, Properties, ValidatedOption, Validation, Width, mask,
};

const DOC: &str = "A setting of Kafka's clients; their documentation describes it.";

const fn setting(name: &'static str, kind: OptionKind, importance: Importance) -> OptionDef {
    OptionDef::new(name, kind, DOC).framework().group("").width(Width::None).importance(importance)
}

const fn table(title: &'static str, options: &'static [OptionDef]) -> OptionTable {
    OptionTable { title, options, open_prefixes: &[""], cross_checks: &[] }
}

static CLIENT: OptionTable = table(
    "Settings of every client",
    &[
        setting("bootstrap.servers", OptionKind::List, Importance::High).default(""),
        setting("client.dns.lookup", OptionKind::String, Importance::Medium).default("use_all_dns_ips"),
        setting("client.id", OptionKind::String, Importance::Medium).default(""),
        setting("connections.max.idle.ms", OptionKind::Long, Importance::Medium).default("540000"),
        setting("enable.metrics.push", OptionKind::Boolean, Importance::Low).default("true"),
        setting("metadata.max.age.ms", OptionKind::Long, Importance::Low).default("300000"),
        setting("metadata.recovery.rebootstrap.trigger.ms", OptionKind::Long, Importance::Low).default("300000"),
        setting("metadata.recovery.strategy", OptionKind::String, Importance::Low).default("rebootstrap"),
        setting("metric.reporters", OptionKind::List, Importance::Low)
            .default("org.apache.kafka.common.metrics.JmxReporter"),
        setting("metrics.num.samples", OptionKind::Int, Importance::Low).default("2"),
        setting("metrics.recording.level", OptionKind::String, Importance::Low).default("INFO"),
        setting("metrics.sample.window.ms", OptionKind::Long, Importance::Low).default("30000"),
        setting("reconnect.backoff.max.ms", OptionKind::Long, Importance::Low).default("1000"),
        setting("reconnect.backoff.ms", OptionKind::Long, Importance::Low).default("50"),
        setting("request.timeout.ms", OptionKind::Int, Importance::Medium).default("30000"),
        setting("retry.backoff.max.ms", OptionKind::Long, Importance::Low).default("1000"),
        setting("retry.backoff.ms", OptionKind::Long, Importance::Low).default("100"),
        setting("sasl.jaas.config", OptionKind::Password, Importance::Medium),
        setting("sasl.kerberos.service.name", OptionKind::String, Importance::Medium),
        setting("sasl.mechanism", OptionKind::String, Importance::Medium).default("GSSAPI"),
        setting("security.protocol", OptionKind::String, Importance::Medium).default("PLAINTEXT"),
        setting("security.providers", OptionKind::String, Importance::Low),
        setting("send.buffer.bytes", OptionKind::Int, Importance::Medium).default("131072"),
        setting("socket.connection.setup.timeout.max.ms", OptionKind::Long, Importance::Medium).default("30000"),
        setting("socket.connection.setup.timeout.ms", OptionKind::Long, Importance::Medium).default("10000"),
        setting("ssl.endpoint.identification.algorithm", OptionKind::String, Importance::Low).default("https"),
        setting("ssl.key.password", OptionKind::Password, Importance::High),
        setting("ssl.keystore.certificate.chain", OptionKind::Password, Importance::High),
        setting("ssl.keystore.key", OptionKind::Password, Importance::High),
        setting("ssl.keystore.location", OptionKind::String, Importance::High),
        setting("ssl.keystore.password", OptionKind::Password, Importance::High),
        setting("ssl.keystore.type", OptionKind::String, Importance::Medium).default("JKS"),
        setting("ssl.protocol", OptionKind::String, Importance::Medium).default("TLSv1.3"),
        setting("ssl.truststore.certificates", OptionKind::Password, Importance::High),
        setting("ssl.truststore.location", OptionKind::String, Importance::High),
        setting("ssl.truststore.password", OptionKind::Password, Importance::High),
        setting("ssl.truststore.type", OptionKind::String, Importance::Medium).default("JKS"),
    ],
);

static PRODUCER: OptionTable = table(
    "Settings of a producer",
    &[
        setting("acks", OptionKind::String, Importance::Low).default("all"),
        setting("batch.size", OptionKind::Int, Importance::Medium).default("16384"),
        setting("buffer.memory", OptionKind::Long, Importance::High).default("33554432"),
        setting("compression.gzip.level", OptionKind::Int, Importance::Medium).default("-1"),
        setting("compression.lz4.level", OptionKind::Int, Importance::Medium).default("9"),
        setting("compression.type", OptionKind::String, Importance::High).default("none"),
        setting("compression.zstd.level", OptionKind::Int, Importance::Medium).default("3"),
        setting("delivery.timeout.ms", OptionKind::Int, Importance::Medium).default("120000"),
        setting("enable.idempotence", OptionKind::Boolean, Importance::Low).default("true"),
        setting("interceptor.classes", OptionKind::List, Importance::Low).default(""),
        setting("key.serializer", OptionKind::Class, Importance::High).required(),
        setting("linger.ms", OptionKind::Long, Importance::Medium).default("5"),
        setting("max.block.ms", OptionKind::Long, Importance::Medium).default("60000"),
        setting("max.in.flight.requests.per.connection", OptionKind::Int, Importance::Low).default("5"),
        setting("max.request.size", OptionKind::Int, Importance::Medium).default("1048576"),
        setting("metadata.max.idle.ms", OptionKind::Long, Importance::Low).default("300000"),
        setting("partitioner.adaptive.partitioning.enable", OptionKind::Boolean, Importance::Low).default("true"),
        setting("partitioner.availability.timeout.ms", OptionKind::Long, Importance::Low).default("0"),
        setting("partitioner.class", OptionKind::Class, Importance::Medium),
        setting("partitioner.ignore.keys", OptionKind::Boolean, Importance::Medium).default("false"),
        setting("receive.buffer.bytes", OptionKind::Int, Importance::Medium).default("32768"),
        setting("retries", OptionKind::Int, Importance::High).default("2147483647"),
        setting("transaction.timeout.ms", OptionKind::Int, Importance::Low).default("60000"),
        setting("transactional.id", OptionKind::String, Importance::Low),
        setting("value.serializer", OptionKind::Class, Importance::High).required(),
    ],
);

static ADMIN: OptionTable = table(
    "Settings of an admin client",
    &[
        setting("default.api.timeout.ms", OptionKind::Int, Importance::Medium).default("60000"),
        setting("receive.buffer.bytes", OptionKind::Int, Importance::Medium).default("65536"),
        setting("retries", OptionKind::Int, Importance::Low).default("2147483647"),
    ],
);

/// The rows of what `connector` gives to clients that it has: a producer always, an admin client to create
/// topics. A topic of its own for offsets brings that client and a consumer as well.
pub(crate) fn listed(connector: &Properties) -> Validation {
    let own_offsets = connector.get("offsets.storage.topic").is_some_and(|topic| !topic.trim().is_empty());
    let creates_topics = connector.below("topic.creation.").iter().next().is_some();
    let clients: [(&str, bool, &[&OptionTable]); 3] = [
        ("producer.override.", true, &[&PRODUCER, &CLIENT]),
        ("consumer.override.", own_offsets, &[&CLIENT]),
        ("admin.override.", creates_topics || own_offsets, &[&ADMIN, &CLIENT]),
    ];
    let mut all = Validation::default();
    for (prefix, _, tables) in clients.into_iter().filter(|(_, is_used, _)| *is_used) {
        for table in tables {
            let mut rows = table.validate_under(prefix, connector);
            rows.options.retain(|row| connector.get(&row.name).is_some());
            all = all.merge(rows);
        }
        for (key, value) in connector.below(prefix).iter() {
            let name = format!("{prefix}{key}");
            if all.option(&name).is_none() {
                let shown = if mask::is_secret(key) { HIDDEN } else { value };
                all.options.push(ValidatedOption::undefined(&name, Some(shown)));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use thalweg_config::validate_reply;

    use super::*;

    fn rows(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let connector = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let reply = validate_reply(&listed(&connector), "x");
        let rows = reply["configs"].as_array().unwrap().iter();
        rows.map(|row| (row["value"]["name"].as_str().unwrap().to_owned(), row.to_string())).collect()
    }

    #[test]
    fn what_is_given_is_listed_with_its_definition_if_it_has_one() {
        let rows = rows(&[
            ("producer.override.linger.ms", "7"),
            ("producer.override.no.such", "1"),
            ("producer.override.sasl.jaas.config", "login"),
            ("producer.override.own.password", "word"),
            ("producer.override.batch.size", "many"),
            ("admin.override.retries", "1"),
            ("consumer.override.retries", "1"),
            ("other", "1"),
        ]);
        let row = |name: &str| &rows.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("{name}: {rows:?}")).1;
        assert_eq!(rows.len(), 5, "{rows:?}");
        assert_eq!(
            row("producer.override.linger.ms"),
            &format!(
                "{{\"definition\":{{\"name\":\"producer.override.linger.ms\",\"type\":\"LONG\",\"required\":false,\
                 \"default_value\":\"5\",\"importance\":\"MEDIUM\",\"documentation\":\"{DOC}\",\"group\":null,\
                 \"order_in_group\":-1,\"width\":\"NONE\",\"display_name\":\"linger.ms\",\"dependents\":[]}},\
                 \"value\":{{\"name\":\"producer.override.linger.ms\",\"value\":\"7\",\"recommended_values\":[],\
                 \"errors\":[],\"visible\":true}}}}"
            )
        );
        assert!(row("producer.override.no.such").starts_with("{\"definition\":null,"), "{rows:?}");
        assert!(row("producer.override.batch.size").contains("batch.size: Not a number of type INT"));
        for secret in ["producer.override.sasl.jaas.config", "producer.override.own.password"] {
            assert!(row(secret).contains("\"value\":\"[hidden]\""), "{rows:?}");
        }
    }

    #[test]
    fn clients_that_a_connector_does_not_have_are_not_listed() {
        let given = [("admin.override.retries", "1"), ("consumer.override.client.id", "c")];
        let with = |more: (&str, &str)| {
            let rows = rows(&[&given[..], &[more]].concat());
            rows.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(with(("other", "1")), [""; 0]);
        assert_eq!(with(("topic.creation.default.partitions", "1")), ["admin.override.retries"]);
        assert_eq!(with(("offsets.storage.topic", "o")), ["consumer.override.client.id", "admin.override.retries"]);
    }

    #[test]
    fn unknown_settings_are_no_unknown_options() {
        let connector = Properties::from([("producer.override.no.such", "1"), ("producer.override.linger.ms", "1")]);
        assert_eq!(listed(&connector).unknown_keys().count(), 0);
    }
}
