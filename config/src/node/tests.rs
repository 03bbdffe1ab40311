#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

fn config(pairs: &[(&str, &str)]) -> Result<WorkerConfig, WorkerErrors> {
    let properties = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    WorkerConfig::from_properties(&properties)
}

/// The only error of a configuration.
fn error(pairs: &[(&str, &str)]) -> WorkerError {
    let errors = config(pairs).unwrap_err().0;
    assert_eq!(errors.len(), 1, "{errors:?}");
    let error = errors.into_iter().next().unwrap();
    assert!(!error.advice.is_empty());
    error
}

fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

#[test]
fn a_node_needs_no_configuration() {
    let c = config(&[]).unwrap();
    assert_eq!((c.group.as_str(), c.node_id), ("thalweg", 1));
    assert_eq!(c.cluster, ClusterShape::Alone { rpc: None });
    assert_eq!(c.session_timeout, Duration::from_secs(3));
    assert_eq!(c.heartbeat_interval, Duration::from_millis(500));
    assert_eq!(c.scheduled_rebalance_max_delay, Duration::ZERO);
    assert_eq!(c.shutdown_mode, ShutdownMode::Move);
    assert_eq!(c.offset_flush_interval, Duration::from_secs(10));
    assert_eq!(c.offset_commit, Duration::from_millis(250));
    assert_eq!(c.delivery, Delivery::Fenced);
    assert_eq!(c.log_format, LogFormat::Text);
    assert_eq!(c.rest.reported_version, "4.3.0");
    assert_eq!(c.rest.listeners, ["http://:8083".parse().unwrap()]);
    assert_eq!(c.rest.admin, AdminListeners::Same);
    assert!(c.worker_id().ends_with(":8083") && !c.worker_id().starts_with(':'));
    assert_eq!(c.bootstrap_servers, ["localhost:9092"]);
    assert_eq!(c.notes, ["group.id is not set; this cluster is called 'thalweg'"]);
}

#[test]
fn a_worker_file_of_kafka_connect_starts_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("connect-distributed.properties");
    std::fs::write(
        &file,
        "bootstrap.servers=a:9092,b:9092\ngroup.id=connect-cluster\nkey.converter=org.apache.kafka.connect.json.JsonConverter\n\
         value.converter=org.apache.kafka.connect.json.JsonConverter\nkey.converter.schemas.enable=true\n\
         offset.storage.topic=connect-offsets\noffset.storage.replication.factor=1\nconfig.storage.topic=connect-configs\n\
         config.storage.replication.factor=1\nstatus.storage.topic=connect-status\nstatus.storage.replication.factor=1\n\
         offset.flush.interval.ms=10000\nplugin.path=/usr/share/java\ninternal.key.converter=x\nproducer.linger.ms=5\n\
         security.protocol=SSL\nlisteners=HTTP://:18083\n",
    )
    .unwrap();
    let c = WorkerConfig::load(Some(&file), &BTreeMap::new()).unwrap();
    assert_eq!(c.group, "connect-cluster");
    assert_eq!(c.bootstrap_servers, ["a:9092", "b:9092"]);
    assert_eq!(c.rest.listeners[0].address.port, 18083);
    assert_eq!(c.properties.get("producer.linger.ms"), Some("5"));
    // Everything else is said to have no effect, and nothing is unknown.
    assert_eq!(c.notes.len(), 8, "{:?}", c.notes);
    assert!(c.notes.iter().all(|n| n.contains("has no effect")));
}

#[test]
fn the_environment_overrides_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("w.properties");
    std::fs::write(&file, "group.id=file\nbootstrap.servers=file:1\ngroup.id=again\n").unwrap();
    let environment = env(&[
        ("CONNECT_GROUP_ID", "variable"),
        ("BOOTSTRAP_SERVERS", "file:1"),
        ("CONNECT_THALWEG_NODE_ID", "7"),
        ("CONNECT_NO_SUCH_OPTION", "x"),
        ("HOSTNAME", "pod-0"),
    ]);
    let c = WorkerConfig::load(Some(&file), &environment).unwrap();
    assert_eq!((c.group.as_str(), c.node_id), ("variable", 7));
    assert_eq!(c.worker_id(), "pod-0:8083");
    let notes = c.notes.join("\n");
    assert!(notes.contains("'group.id' is set in line 1 and again in line 3"), "{notes}");
    assert!(
        notes.contains("option 'group.id' is set by the environment variable CONNECT_GROUP_ID, in place of another")
    );
    assert!(notes.contains("option 'bootstrap.servers' is set by the environment variable BOOTSTRAP_SERVERS\n"));
    assert!(notes.contains("'no.such.option' is no known option"));

    let wrong = WorkerConfig::load(Some(&file), &env(&[("CONNECT_THALWEG_NODE_ID", "0")])).unwrap_err();
    assert_eq!(
        wrong.0[0].to_string(),
        "thalweg.node.id (environment variable CONNECT_THALWEG_NODE_ID): Invalid value 0 for configuration \
         thalweg.node.id: Value must be at least 1; write a whole number from 1"
    );
}

#[test]
fn errors_name_option_file_and_next_step() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("w.properties");
    std::fs::write(
        &file,
        "thalweg.node.id=one\nlisteners=http://:x, ftp://h:1\nthalweg.delivery=fast\nrest.port=70000\n",
    )
    .unwrap();
    let errors = WorkerConfig::load(Some(&file), &BTreeMap::new()).unwrap_err();
    let named: Vec<&str> = errors.0.iter().map(|e| e.option.as_str()).collect();
    assert_eq!(named, ["thalweg.node.id", "thalweg.delivery", "rest.port", "listeners", "listeners"]);
    for e in &errors.0 {
        assert_eq!(e.origin, file.display().to_string());
        assert!(!e.advice.is_empty());
    }
    let text = errors.to_string();
    assert!(text.starts_with("the configuration of this node has 5 error(s)\n"), "{text}");
    assert!(text.contains("'http://:x' is no listener: 'x' is no port"), "{text}");
    assert!(text.contains("write one of plain, fenced, or remove the option for its default fenced"), "{text}");

    let missing = WorkerConfig::load(Some(&dir.path().join("none")), &BTreeMap::new()).unwrap_err();
    assert!(missing.to_string().contains("the file cannot be read"));
    std::fs::write(&file, "a=1\nb=\\u12").unwrap();
    let broken = WorkerConfig::load(Some(&file), &BTreeMap::new()).unwrap_err();
    assert!(broken.to_string().contains("line 2"), "{broken}");
}

#[test]
fn founding_a_cluster() {
    let good = [
        ("group.id", "g"),
        ("thalweg.node.id", "2"),
        ("thalweg.seeds", "a:8084, b:8084, c:8084"),
        ("thalweg.rpc.advertised", "b:8084"),
    ];
    let c = config(&good).unwrap();
    let ClusterShape::Founding { rpc, seeds } = &c.cluster else { panic!("{:?}", c.cluster) };
    assert_eq!((c.node_id, seeds.len()), (2, 3));
    assert_eq!(rpc.listen, Address::new("", 8084));
    assert_eq!(rpc.advertised, Address::new("b", 8084));

    let with = |key: &'static str, value: &'static str| {
        let mut pairs: Vec<_> = good.iter().copied().filter(|(k, _)| *k != key).collect();
        if !value.is_empty() {
            pairs.push((key, value));
        }
        pairs
    };
    let e = error(&with("thalweg.rpc.advertised", "d:8084"));
    assert_eq!(e.option, "thalweg.seeds");
    assert!(e.problem.contains("d:8084 is not among them") && e.advice.contains("thalweg.join=true"), "{e}");
    assert_eq!(error(&with("group.id", "")).option, "group.id");
    let e = error(&with("thalweg.node.id", ""));
    assert_eq!((e.option.as_str(), e.origin.as_str()), ("thalweg.node.id", "not set"));
    assert!(error(&with("thalweg.seeds", "b:8084,b:8084")).problem.contains("twice"));
    assert!(error(&with("thalweg.seeds", "b:8084,x")).problem.contains("'x' is no address: it has no port"));
    assert!(error(&with("thalweg.seeds", "b:8084,:8084")).problem.contains("nobody can connect"));
    assert_eq!(error(&with("thalweg.rpc.listen", "8084")).option, "thalweg.rpc.listen");
    assert_eq!(
        config(&with("thalweg.rpc.advertised", "0.0.0.0:8084")).unwrap_err().0[0].option,
        "thalweg.rpc.advertised"
    );

    let mut joining = with("thalweg.rpc.advertised", "d:8084");
    joining.push(("thalweg.join", "true"));
    assert!(matches!(config(&joining).unwrap().cluster, ClusterShape::Joining { .. }));
    assert_eq!(error(&[("thalweg.join", "true")]).option, "thalweg.seeds");
    let listening = config(&[("thalweg.rpc.listen", "h:1")]).unwrap().cluster;
    let rpc = RpcConfig { listen: Address::new("h", 1), advertised: Address::new("h", 1), tls: None };
    assert_eq!(listening, ClusterShape::Alone { rpc: Some(rpc) });
    assert_eq!(error(&[("thalweg.rpc.advertised", "h:1")]).option, "thalweg.rpc.advertised");
}

#[test]
fn tls_files_must_be_there_and_complete() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.pem");
    std::fs::write(&file, "").unwrap();
    let file = file.to_str().unwrap();
    let all = [("thalweg.rpc.tls.ca", file), ("thalweg.rpc.tls.cert", file), ("thalweg.rpc.tls.key", file)];
    let mut pairs = all.to_vec();
    pairs.push(("thalweg.rpc.listen", "h:1"));
    let ClusterShape::Alone { rpc: Some(rpc) } = config(&pairs).unwrap().cluster else { panic!() };
    assert!(rpc.tls.is_some());
    assert_eq!(error(&all[..2]).option, "thalweg.rpc.tls.key");
    pairs[1].1 = "/no/such.pem";
    assert!(error(&pairs).problem.contains("/no/such.pem cannot be read"));

    let https = [
        ("listeners", "https://:8443"),
        ("listeners.https.ssl.keystore.location", file),
        ("listeners.https.ssl.keystore.type", "PEM"),
        ("ssl.client.auth", "required"),
        ("ssl.truststore.location", file),
        ("ssl.truststore.type", "pem"),
    ];
    let rest = config(&https).unwrap().rest;
    assert_eq!(rest.tls.unwrap().client_auth, ClientAuth::Required);
    assert_eq!(rest.advertised.scheme, Scheme::Https);
    assert_eq!(error(&https[..1]).option, "listeners.https.ssl.keystore.location");
    let e = error(&https[..2]);
    assert!(e.problem.contains("Java key stores") && e.advice.contains("openssl"), "{e}");
    assert_eq!(error(&https[..4]).option, "listeners.https.ssl.truststore.location");
    assert!(config(&https[1..]).unwrap().rest.tls.is_none());
}

#[test]
fn rest_options() {
    let c = config(&[("rest.host.name", "h"), ("rest.port", "18083")]).unwrap();
    assert_eq!(c.worker_id(), "h:18083");
    let c = config(&[("rest.port", "1"), ("listeners", "http://a:2,https://b:3")]);
    assert!(c.is_err(), "https needs a key");
    let c = config(&[
        ("rest.port", "1"),
        ("listeners", "http://a:2"),
        ("rest.advertised.host.name", "x"),
        ("rest.advertised.port", "9"),
        ("admin.listeners", ""),
        ("response.http.headers.config", "add X-A: b, \"x\", setDate D: 12"),
    ]);
    assert_eq!(c.unwrap_err().0[0].option, "response.http.headers.config");
    let c = config(&[
        ("rest.port", "1"),
        ("listeners", "http://a:2"),
        ("rest.advertised.host.name", "x"),
        ("rest.advertised.port", "9"),
        ("admin.listeners", ""),
        ("response.http.headers.config", "add X-A: b:c, setDate D: 12"),
    ])
    .unwrap();
    assert_eq!(c.worker_id(), "x:9");
    assert_eq!(c.rest.admin, AdminListeners::Off);
    assert!(c.notes.iter().any(|n| n.contains("rest.port have no effect")));
    assert_eq!(c.rest.response_headers[0].value, "b:c");
    assert_eq!(c.rest.response_headers[1].action, HeaderAction::SetDate);
    let c = config(&[("admin.listeners", "http://localhost:9")]).unwrap();
    assert_eq!(c.rest.admin, AdminListeners::Own(vec!["http://localhost:9".parse().unwrap()]));
    assert_eq!(error(&[("rest.advertised.listener", "https")]).option, "rest.advertised.listener");
    assert_eq!(error(&[("listeners", "")]).option, "listeners");
    // A login that would be silently missing is an error; an empty option asks for nothing.
    let e = error(&[("rest.extension.classes", "x.BasicAuth")]);
    assert!(e.problem.contains("rest.auth.basic.file"), "{e}");
    assert!(config(&[("rest.extension.classes", "")]).is_ok());
    assert_eq!(error(&[("rest.auth.basic.file", "/no/such")]).option, "rest.auth.basic.file");
}

#[test]
fn times_and_brokers_must_fit() {
    assert_eq!(error(&[("heartbeat.interval.ms", "1600")]).option, "heartbeat.interval.ms");
    assert!(config(&[("heartbeat.interval.ms", "3000"), ("session.timeout.ms", "10000")]).is_ok());
    assert_eq!(error(&[("thalweg.offset.commit.ms", "20000")]).option, "thalweg.offset.commit.ms");
    assert_eq!(error(&[("bootstrap.servers", "")]).option, "bootstrap.servers");
    assert!(error(&[("bootstrap.servers", "a:1, b")]).problem.contains("'b' is no address"));
    assert!(config(&[("bootstrap.servers", "PLAINTEXT://a:1,[::1]:2")]).is_ok());
}

#[test]
fn run_06_references_of_the_worker_are_resolved_and_not_shown() {
    let environment = env(&[("SECRET", "s3cret"), ("CONNECT_CONFIG_PROVIDERS", "env")]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("w.properties");
    let text = "config.providers.env.class=EnvVarConfigProvider\nproducer.ssl.key.password=${env:SECRET}\nadmin.x=${env:NOPE}\n";
    std::fs::write(&file, text).unwrap();
    let c = WorkerConfig::load(Some(&file), &environment).unwrap();
    assert_eq!(c.properties.get("producer.ssl.key.password"), Some("s3cret"));
    assert!(c.notes.iter().any(|n| n.contains("${env:NOPE} in option 'admin.x' is not resolved")));
    assert!(!format!("{c:?}").contains("s3cret"));

    std::fs::write(&file, format!("{text}session.timeout.ms=${{env:SECRET}}\nlisteners=${{env:SECRET}}\n")).unwrap();
    let e = WorkerConfig::load(Some(&file), &environment).unwrap_err().to_string();
    assert!(e.contains("${env:SECRET}") && !e.contains("s3cret"), "{e}");

    let e = error(&[("config.providers", "vault")]);
    assert_eq!(e.option, "config.providers.vault.class");
}
