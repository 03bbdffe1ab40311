#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use proptest::prelude::*;

use super::*;

const PLAIN: Role = Role::Producer(DeliveryMode::Plain);
const FENCED: Role = Role::Producer(DeliveryMode::Fenced);

fn who() -> ProducerIdentity {
    ProducerIdentity { group: Arc::from("cdc"), connector: Arc::from("shop"), task: 3 }
}

fn build(worker: &Properties, connector: &Properties, role: Role) -> ClientSettings {
    client_settings(worker, connector, &who(), role).unwrap()
}

fn producer(pairs: &[(&str, &str)], role: Role) -> ClientSettings {
    let connector = pairs.iter().map(|(k, v)| (format!("producer.override.{k}"), (*v).to_owned())).collect();
    build(&Properties::new(), &connector, role)
}

fn problems(worker: &Properties, connector: &Properties, role: Role) -> Vec<SettingProblem> {
    client_settings(worker, connector, &who(), role).err().expect("problems")
}

fn get<'a>(settings: &'a ClientSettings, name: &str) -> &'a str {
    settings.config.get(name).unwrap_or("-")
}

#[test]
fn producer_defaults() {
    let plain = producer(&[], PLAIN);
    for (name, value) in [
        ("bootstrap.servers", "localhost:9092"),
        ("client.id", "connector-producer-shop-3"),
        ("acks", "all"),
        ("enable.idempotence", "true"),
        ("enable.gapless.guarantee", "true"),
        ("max.in.flight.requests.per.connection", "5"),
        ("partitioner", "murmur2_random"),
        ("linger.ms", "1"),
        ("batch.size", "1000000"),
        ("compression.type", "none"),
        ("message.max.bytes", "1048576"),
        ("message.timeout.ms", "10000"),
        ("socket.timeout.ms", "10000"),
        ("socket.keepalive.enable", "true"),
        ("transactional.id", "-"),
    ] {
        assert_eq!(get(&plain, name), value, "{name}");
    }
    let fenced = producer(&[], FENCED);
    for (name, value) in [
        ("transactional.id", "cdc-shop-3"),
        ("transaction.timeout.ms", "120000"),
        ("message.timeout.ms", "120000"),
        ("socket.timeout.ms", "30000"),
        ("enable.idempotence", "true"),
        ("acks", "all"),
    ] {
        assert_eq!(get(&fenced, name), value, "{name}");
    }
    for settings in [&plain, &fenced, &build(&Properties::new(), &Properties::new(), Role::Admin)] {
        assert!(settings.warnings.is_empty());
        settings.config.create_native_config().unwrap();
    }
}

#[test]
fn names_of_java_are_translated() {
    for (java, given, native, value) in [
        ("delivery.timeout.ms", "3000", "message.timeout.ms", "3000"),
        ("max.request.size", "5000000", "message.max.bytes", "5000000"),
        ("batch.size", "0", "batch.size", "1"),
        ("linger.ms", "20", "linger.ms", "20"),
        ("request.timeout.ms", "4000", "socket.timeout.ms", "4000"),
        ("send.buffer.bytes", "-1", "socket.send.buffer.bytes", "0"),
        ("receive.buffer.bytes", "65536", "socket.receive.buffer.bytes", "65536"),
        ("connections.max.idle.ms", "540000", "connections.max.idle.ms", "540000"),
        ("metadata.max.age.ms", "300000", "topic.metadata.refresh.interval.ms", "300000"),
        ("retries", "2147483647", "retries", "2147483647"),
        ("compression.type", "LZ4", "compression.type", "lz4"),
        ("security.protocol", "PLAINTEXT", "security.protocol", "plaintext"),
        ("acks", "-1", "acks", "all"),
        ("max.in.flight.requests.per.connection", "1", "max.in.flight.requests.per.connection", "1"),
        ("queue.buffering.max.ms", "7", "linger.ms", "7"),
        ("client.id", "mine", "client.id", "mine"),
    ] {
        let settings = producer(&[(java, given)], PLAIN);
        assert_eq!(get(&settings, native), value, "{java}");
        assert!(settings.warnings.is_empty(), "{java}: {:?}", settings.warnings);
    }
    let zstd = producer(
        &[("compression.type", "zstd"), ("compression.zstd.level", "22"), ("compression.gzip.level", "1")],
        PLAIN,
    );
    assert_eq!((get(&zstd, "compression.type"), get(&zstd, "compression.level")), ("zstd", "12"));
}

#[test]
fn later_layers_win_whatever_the_spelling() {
    let worker = Properties::from([
        ("bootstrap.servers", "a:1"),
        ("linger.ms", "1000"),
        ("producer.linger.ms", "5"),
        ("producer.delivery.timeout.ms", "2000"),
    ]);
    let settings = build(&worker, &Properties::new(), PLAIN);
    assert_eq!(get(&settings, "linger.ms"), "5", "the worker's own key is not the producer's");
    let connector = Properties::from([
        ("producer.override.queue.buffering.max.ms", "9"),
        ("producer.override.message.timeout.ms", "1500"),
        ("producer.override.bootstrap.servers", "b:2"),
        ("producer.linger.ms", "77"),
    ]);
    let settings = build(&worker, &connector, PLAIN);
    assert_eq!(get(&settings, "linger.ms"), "9");
    assert_eq!(get(&settings, "message.timeout.ms"), "1500");
    assert_eq!(get(&settings, "bootstrap.servers"), "b:2");
}

#[test]
fn security_of_the_worker_reaches_producers_that_use_its_brokers() {
    let worker = Properties::from([
        ("bootstrap.servers", "a:1"),
        ("security.protocol", "SASL_PLAINTEXT"),
        ("sasl.mechanism", "SCRAM-SHA-512"),
        (
            "sasl.jaas.config",
            "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"u\" password=\"p w\";",
        ),
        ("session.timeout.ms", "1"),
        ("group.id", "cdc"),
    ]);
    for role in [PLAIN, FENCED, Role::Admin, Role::Consumer] {
        let settings = build(&worker, &Properties::new(), role);
        assert_eq!(get(&settings, "security.protocol"), "sasl_plaintext");
        assert_eq!(get(&settings, "sasl.mechanism"), "SCRAM-SHA-512");
        assert_eq!((get(&settings, "sasl.username"), get(&settings, "sasl.password")), ("u", "p w"));
        assert_eq!((get(&settings, "session.timeout.ms"), get(&settings, "group.id")), ("-", "-"));
        assert!(!format!("{:?}{:?}", settings.config, settings.warnings).contains("p w"));
    }
    let elsewhere = Properties::from([("producer.override.bootstrap.servers", "b:2")]);
    assert_eq!(get(&build(&worker, &elsewhere, PLAIN), "security.protocol"), "-");
}

#[test]
fn delivery_timeout_is_bounded_by_the_mode() {
    let plain = producer(&[("delivery.timeout.ms", "2147483647")], PLAIN);
    assert_eq!(get(&plain, "message.timeout.ms"), "10000");
    assert!(plain.warnings[0].contains("producer.override.delivery.timeout.ms was lowered"), "{:?}", plain.warnings);
    let fenced = producer(&[("transaction.timeout.ms", "20000"), ("delivery.timeout.ms", "60000")], FENCED);
    assert_eq!((get(&fenced, "message.timeout.ms"), get(&fenced, "socket.timeout.ms")), ("20000", "20000"));
    let short = problems(&Properties::new(), &Properties::from([("producer.override.linger.ms", "10000")]), PLAIN);
    assert_eq!(short[0].key, "producer.override.linger.ms");
}

#[test]
fn giving_up_safety_takes_a_word() {
    let one = producer(&[("acks", "1")], PLAIN);
    assert_eq!((get(&one, "acks"), get(&one, "enable.idempotence")), ("1", "false"));
    assert_eq!(get(&one, "max.in.flight.requests.per.connection"), "1", "order is kept");
    assert_eq!(get(&one, "enable.gapless.guarantee"), "-");
    assert!(one.warnings[0].contains("acks"));
    one.config.create_native_config().unwrap();
    let both = Properties::from([("producer.override.acks", "1"), ("producer.override.enable.idempotence", "true")]);
    assert_eq!(problems(&Properties::new(), &both, PLAIN)[0].key, "producer.override.acks");
    let fenced = producer(
        &[
            ("acks", "0"),
            ("enable.idempotence", "false"),
            ("max.in.flight.requests.per.connection", "50"),
            ("transactional.id", "x"),
        ],
        FENCED,
    );
    assert_eq!((get(&fenced, "acks"), get(&fenced, "enable.idempotence")), ("all", "true"));
    assert_eq!(get(&fenced, "max.in.flight.requests.per.connection"), "5");
    assert_eq!(get(&fenced, "transactional.id"), "cdc-shop-3");
    assert_eq!(fenced.warnings.len(), 4, "{:?}", fenced.warnings);
    let tolerant = Properties::from([("errors.tolerance", "all")]);
    assert_eq!(get(&build(&Properties::new(), &tolerant, PLAIN), "enable.gapless.guarantee"), "-");
    assert_eq!(get(&build(&Properties::new(), &tolerant, FENCED), "enable.gapless.guarantee"), "true");
}

#[test]
fn unknown_keys_warn_and_java_keys_do_not() {
    let settings = producer(
        &[
            ("no.such.key", "s3cret"),
            ("plugin.library.paths", "/tmp/x.so"),
            ("max.block.ms", "1"),
            ("metric.reporters", "a.B"),
            ("metrics.num.samples", "2"),
            ("key.serializer", "a.B"),
            ("sasl.login.refresh.min.period.seconds", "60"),
            ("partitioner.class", "a.RoundRobinPartitioner"),
            ("partitioner", "consistent"),
        ],
        PLAIN,
    );
    let warned: Vec<_> = settings.warnings.iter().map(|w| w.split(' ').next().unwrap()).collect();
    assert_eq!(
        warned,
        [
            "producer.override.no.such.key",
            "producer.override.partitioner",
            "producer.override.partitioner.class",
            "producer.override.plugin.library.paths"
        ]
    );
    assert!(!settings.warnings.concat().contains("s3cret"));
    assert_eq!((get(&settings, "partitioner"), get(&settings, "plugin.library.paths")), ("murmur2_random", "-"));
}

#[test]
fn override_policies() {
    let connector = Properties::from([
        ("producer.override.linger.ms", "5"),
        ("producer.override.security.protocol", "PLAINTEXT"),
        ("admin.override.client.id", "x"),
    ]);
    for (policy, refused) in [
        ("All", vec![]),
        ("Principal", vec!["producer.override.linger.ms"]),
        (
            "org.apache.kafka.connect.connector.policy.PrincipalConnectorClientConfigOverridePolicy",
            vec!["producer.override.linger.ms"],
        ),
        ("None", vec!["producer.override.linger.ms", "producer.override.security.protocol"]),
        ("Mine", vec![POLICY]),
    ] {
        let worker = Properties::from([(POLICY, policy)]);
        let keys: Vec<_> = match client_settings(&worker, &connector, &who(), PLAIN) {
            Ok(_) => vec![],
            Err(problems) => problems.into_iter().map(|p| p.key).collect(),
        };
        assert_eq!(keys, refused, "{policy}");
    }
}

#[test]
fn wrong_values_name_the_users_key() {
    for (key, value, says) in [
        ("linger.ms", "soon", "whole number"),
        ("security.protocol", "TLS", "security.protocol"),
        ("acks", "two", "acks"),
        ("queue.buffering.max.messages", "0", "greater than 0"),
        ("buffer.memory", "-5", "greater than 0"),
        ("compression.type", "brotli", "compression"),
        ("sasl.mechanism", "GSSAPI", "SCRAM-SHA-512"),
        ("sasl.mechanism", "OAUTHBEARER", "PLAIN"),
        ("sasl.jaas.config", "a.Krb5LoginModule required;", "Krb5LoginModule"),
        ("sasl.jaas.config", "a.ScramLoginModule required username=u password=s3cret;", "needs sasl.mechanism"),
        ("ssl.truststore.location", "/etc/trust.jks", "PEM"),
        ("ssl.truststore.location", "/etc/trust.p12", "PEM"),
        ("ssl.keystore.location", "/etc/key.jks", "keytool"),
        ("ssl.keystore.location", "/etc/key.p12", "ssl.keystore.password"),
        ("ssl.keystore.key", "s3cret", "PEM"),
        ("broker.address.family", "v5", "broker.address.family"),
    ] {
        let full = format!("producer.override.{key}");
        let connector = [(full.clone(), value.to_owned())].into_iter().collect();
        let problems = problems(&Properties::new(), &connector, PLAIN);
        assert_eq!(problems[0].key, full);
        assert!(problems[0].reason.contains(says), "{key}: {}", problems[0].reason);
        assert!(!problems[0].reason.contains("s3cret"), "{}", problems[0].reason);
        let error = as_error(&problems);
        assert_eq!(error.kind, thalweg_core::ErrorKind::Config);
        assert!(error.message.contains(&full));
    }
}

#[test]
fn pem_stores() {
    let pem = "-----BEGIN CERTIFICATE----- QUJD -----END CERTIFICATE-----";
    let settings = producer(
        &[
            ("security.protocol", "SSL"),
            ("ssl.truststore.type", "PEM"),
            ("ssl.truststore.certificates", pem),
            ("ssl.keystore.type", "PEM"),
            ("ssl.keystore.certificate.chain", pem),
            ("ssl.keystore.key", "-----BEGIN PRIVATE KEY----- QUJD -----END PRIVATE KEY-----"),
            ("ssl.key.password", "k"),
            ("ssl.endpoint.identification.algorithm", ""),
        ],
        PLAIN,
    );
    assert_eq!(get(&settings, "ssl.ca.pem"), "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n");
    assert_eq!(get(&settings, "ssl.key.pem"), "-----BEGIN PRIVATE KEY-----\nQUJD\n-----END PRIVATE KEY-----\n");
    assert_eq!(get(&settings, "ssl.endpoint.identification.algorithm"), "none");
    assert_eq!(get(&settings, "ssl.ca.location"), "-");
    let files = producer(
        &[
            ("security.protocol", "ssl"),
            ("ssl.truststore.location", "/etc/ca.crt"),
            ("ssl.keystore.type", "pem"),
            ("ssl.keystore.location", "/etc/client"),
        ],
        PLAIN,
    );
    assert_eq!(get(&files, "ssl.ca.location"), "/etc/ca.crt");
    assert_eq!(
        (get(&files, "ssl.certificate.location"), get(&files, "ssl.key.location")),
        ("/etc/client", "/etc/client")
    );
    let p12 = producer(&[("ssl.keystore.location", "/etc/client.p12"), ("ssl.keystore.password", "s")], PLAIN);
    assert_eq!((get(&p12, "ssl.keystore.location"), get(&p12, "ssl.keystore.password")), ("/etc/client.p12", "s"));
    assert_eq!(get(&producer(&[("security.protocol", "SSL")], PLAIN), "ssl.ca.location"), "probe");
}

/// PEM that lost its line breaks in a properties file is PEM again for the TLS library.
#[test]
fn one_line_pem_is_accepted_by_the_client() {
    let pair = rcgen::generate_simple_self_signed(vec!["kafka".to_owned()]).unwrap();
    let flat = |text: String| text.replace('\n', " ");
    let (certificate, key) = (flat(pair.cert.pem()), flat(pair.signing_key.serialize_pem()));
    let pairs = |key: &str| {
        producer(
            &[
                ("security.protocol", "SSL"),
                ("ssl.truststore.certificates", &certificate),
                ("ssl.keystore.certificate.chain", &certificate),
                ("ssl.keystore.key", key),
            ],
            PLAIN,
        )
    };
    let create = |settings: ClientSettings| settings.config.create::<rdkafka::producer::BaseProducer>();
    create(pairs(&key)).unwrap();
    let error = create(pairs("-----BEGIN PRIVATE KEY----- QUJD -----END PRIVATE KEY-----")).err().unwrap();
    let error = crate::errors::client(thalweg_core::Phase::Start, "creating the client", &error);
    assert_eq!(error.kind, thalweg_core::ErrorKind::Config);
    assert!(error.to_string().contains("ssl.key.pem"), "{error}");
}

#[test]
fn queue_limits_are_the_producers_own() {
    let settings = producer(&[("queue.buffering.max.messages", "100"), ("buffer.memory", "1000000")], PLAIN);
    assert_eq!((settings.limits.buffer_messages, settings.limits.buffer_bytes), (100, Some(1_000_000)));
    assert_eq!(get(&settings, "queue.buffering.max.messages"), "0", "librdkafka itself does not limit");
    let settings = producer(&[("queue.buffering.max.kbytes", "2"), ("max.request.size", "10")], PLAIN);
    assert_eq!((settings.limits.buffer_bytes, settings.limits.max_request), (Some(2048), 1000));
}

#[test]
fn consumer_and_admin() {
    let worker = Properties::from([
        ("bootstrap.servers", "a:1"),
        ("consumer.fetch.max.wait.ms", "30"),
        ("consumer.isolation.level", "READ_UNCOMMITTED"),
        ("consumer.enable.auto.commit", "true"),
        ("admin.request.timeout.ms", "1234"),
    ]);
    let consumer = build(&worker, &Properties::from([("consumer.override.auto.offset.reset", "none")]), Role::Consumer);
    assert_eq!(get(&consumer, "fetch.wait.max.ms"), "30");
    assert_eq!(get(&consumer, "isolation.level"), "read_uncommitted");
    assert_eq!((get(&consumer, "enable.auto.commit"), get(&consumer, "auto.offset.reset")), ("false", "error"));
    assert_eq!(consumer.warnings.len(), 1);
    let admin = build(&worker, &Properties::new(), Role::Admin);
    assert_eq!((get(&admin, "socket.timeout.ms"), get(&admin, "client.id")), ("1234", "connector-adminclient-shop-3"));
    assert_eq!(get(&admin, "enable.idempotence"), "-");
}

proptest! {
    /// No text whatever leads to a panic, a leaked value, or a client that cannot be built.
    #[test]
    fn any_override_is_answered(
        name in prop::sample::select(vec![
            "linger.ms", "batch.size", "acks", "retries", "compression.type", "compression.level", "max.request.size",
            "delivery.timeout.ms", "transaction.timeout.ms", "request.timeout.ms", "reconnect.backoff.ms",
            "max.in.flight.requests.per.connection", "enable.idempotence", "security.protocol", "sasl.mechanism",
            "sasl.jaas.config", "sasl.password", "ssl.keystore.key", "ssl.key.password", "buffer.memory",
            "queue.buffering.max.messages", "unknown.key", "bootstrap.servers", "metadata.max.age.ms",
        ]),
        value in prop_oneof!["-?[0-9]{1,12}", "\\PC{0,16}", Just("all".to_owned()), Just("true".to_owned())],
        fenced in any::<bool>(),
    ) {
        let role = if fenced { FENCED } else { PLAIN };
        let key = format!("producer.override.{name}");
        let connector: Properties = [(key.clone(), value)].into_iter().collect();
        match client_settings(&Properties::new(), &connector, &who(), role) {
            Ok(settings) => {
                prop_assert!(settings.config.create_native_config().is_ok());
                prop_assert_eq!(get(&settings, "partitioner"), "murmur2_random");
                prop_assert!(get(&settings, "message.timeout.ms").parse::<u64>().unwrap() > 0);
            }
            Err(problems) => prop_assert!(problems.iter().all(|p| p.key == key), "{problems:?}"),
        }
    }

    /// The connector's layer decides over the worker's.
    #[test]
    fn the_last_layer_wins(inner in 0u32..100, outer in 0u32..100) {
        let worker: Properties = [("producer.linger.ms".to_owned(), inner.to_string())].into_iter().collect();
        let connector: Properties = [("producer.override.linger.ms".to_owned(), outer.to_string())].into_iter().collect();
        let outer = outer.to_string();
        let settings = build(&worker, &connector, PLAIN);
        prop_assert_eq!(get(&settings, "linger.ms"), outer.as_str());
    }
}
