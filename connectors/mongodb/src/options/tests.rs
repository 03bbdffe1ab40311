#![allow(clippy::unwrap_used)]
use std::time::Duration;

use thalweg_config::Properties;
use thalweg_core::event_failure::FailureMode;
use thalweg_core::snapshot::Strategy;

use super::*;
use crate::filter::NameList;

const URI: &str = "mongodb://127.0.0.1:27017/?replicaSet=rs0";

fn properties(more: &[(&str, &str)]) -> Properties {
    let base = [("mongodb.connection.string", URI), ("topic.prefix", "shop"), ("database.include.list", "inv")];
    base.iter().chain(more).map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

/// `name: message` without the standard prefix.
fn errors(more: &[(&str, &str)]) -> Vec<String> {
    let validation = validate(&properties(more));
    let rows = validation.options.iter().flat_map(|o| o.errors.iter().map(move |e| (o.name.clone(), e.clone())));
    rows.map(|(name, text)| {
        let prefix = format!("The '{name}' value is invalid: ");
        format!("{name}: {}", text.strip_prefix(&prefix).unwrap_or(&text))
    })
    .collect()
}

fn config(more: &[(&str, &str)]) -> MongoConfig {
    MongoConfig::parse(&properties(more)).unwrap()
}

#[test]
fn published_options_keep_their_order() {
    let names = |group: &str| {
        let orders = TABLE.orders();
        let rows = TABLE.options.iter().zip(orders).filter(|(o, _)| o.group == group && o.published);
        rows.map(|(o, order)| (o.name, order)).collect::<Vec<_>>()
    };
    let connector = names("Connector");
    assert_eq!(
        connector[12..16],
        [
            ("snapshot.max.threads.multiplier", 13),
            ("legacy.snapshot.max.threads", 14),
            ("internal.legacy.snapshot.max.threads", 14),
            ("snapshot.mode.custom.name", 15),
        ]
    );
    assert_eq!(connector[43], ("schema.name.adjustment.mode", 43));
    assert_eq!(names("MongoDB")[13], ("cursor.max.await.time.ms", 14));
    assert_eq!(names("Events")[20], ("sourceinfo.struct.maker", 21));
}

#[test]
fn names_are_unique_and_defaults_valid() {
    let mut names: Vec<_> = TABLE.options.iter().flat_map(|o| o.aliases.iter().chain([&o.name])).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|w| w[0] != w[1]), "a name occurs twice");
    assert_eq!(errors(&[]), Vec::<String>::new());
    assert_eq!(validate(&properties(&[])).warnings, Vec::<String>::new());
}

const NO_CLUSTER_TIME: &str =
    "-1 or a cluster time is expected: seconds since 1970, times 4294967296, plus the increment";

#[test]
fn missing_and_malformed_values() {
    let nothing = TABLE.validate(&Properties::new()).messages();
    assert_eq!(
        nothing,
        [
            "The 'topic.prefix' value is invalid: A value is required",
            "The 'mongodb.connection.string' value is invalid: Missing connection string",
        ]
    );
    for (name, value, text) in [
        ("mongodb.connection.string", "http://x", "Invalid connection string"),
        ("mongodb.connection.string", "", "Invalid connection string"),
        (
            "topic.prefix",
            "a b",
            "a b has invalid format (only the underscore, hyphen, dot and alphanumeric characters are allowed)",
        ),
        (
            "snapshot.mode",
            "nope",
            "Value must be one of always, initial_only, configuration_based, when_needed, initial, custom, no_data",
        ),
        (
            "capture.mode",
            "x",
            "Value must be one of change_streams, change_streams_update_full, change_streams_with_pre_image, change_streams_update_full_with_pre_image",
        ),
        ("event.processing.failure.handling.mode", "x", "Value must be one of warn, fail, ignore, skip"),
        (
            "collection.include.list",
            "a.(",
            "A comma-separated list of valid regular expressions is expected, but Unclosed group near index 3\na.(",
        ),
        (
            "snapshot.include.collection.list",
            "(",
            "A comma-separated list of valid regular expressions is expected, but Unclosed group near index 1\n(",
        ),
        ("max.queue.size", "10", "Must be larger than the maximum batch size"),
        ("tombstones.on.delete", "maybe", "Either 'true' or 'false' is expected"),
        ("heartbeat.interval.ms", "-5", "An non-negative integer is expected"),
        ("snapshot.max.threads", "0", "A positive, non-zero integer value is expected"),
        ("mongodb.connection.mode", "x", "Value must be one of replica_set, sharded"),
        (
            "mongodb.authentication.class",
            "x",
            "not supported, put the credentials/authMechanism into mongodb.connection.string",
        ),
        ("mongodb.connection.string.shard.params", "a", "key=value(&key=value)* is expected"),
        ("capture.scope", "y", "Value must be one of deployment, database, collection"),
        ("schema.name.adjustment.mode", "zzz", "Value must be one of none, avro_unicode, avro"),
        ("skipped.operations", "c,x", "Invalid operation 'x': c, u, d, t, r or none is expected"),
        ("skipped.operations", "none,c", "'none' cannot be combined with other operations"),
        ("cursor.pipeline", "[{]", "Change stream pipeline JSON is invalid: a field name is expected at offset 2"),
        (
            "topic.delimiter",
            "#",
            "# has invalid format (only the underscore, hyphen, dot and alphanumeric characters are allowed)",
        ),
        ("snapshot.delay.ms", "-1", "A non-negative long value is expected"),
        ("executor.shutdown.timeout.ms", "0", "A positive, non-zero long value is expected"),
        ("poll.dispatch.interval.ms", "-1", "A non-negative long value is expected"),
        ("poll.interval.ms", "0", "A positive, non-zero integer value is expected"),
        ("capture.start.op.time", "abc", "A long value is expected"),
        ("capture.start.op.time", "0", NO_CLUSTER_TIME),
        ("capture.start.op.time", "-2", NO_CLUSTER_TIME),
        // Seconds alone.
        ("capture.start.op.time", "1795976186", NO_CLUSTER_TIME),
        ("json.serialization.mode", "x", "Value must be one of legacy, strict, extended, relaxed"),
    ] {
        let found = errors(&[(name, value)]);
        assert_eq!(found.first().map(String::as_str), Some(format!("{name}: {text}").as_str()), "{found:?}");
    }
}

#[test]
fn strategies_for_the_names_of_topics() {
    let strategy = |name: &str| format!("io.debezium.schema.{name}TopicNamingStrategy");
    let topic = |more: &[(&str, &str)]| {
        let naming = thalweg_core::naming::TopicNaming::new(config(more).naming);
        naming.collection(&["d", "a_1"]).topic.to_string()
    };
    let unicode = strategy("DefaultUnicode");
    assert!(topic(&[("topic.naming.strategy", &unicode)]).ends_with(".d.a_u005f1"));
    for regex in [strategy("DefaultRegex"), strategy("SchemaRegex")] {
        let class = ("topic.naming.strategy", regex.as_str());
        assert_eq!(topic(&[class, ("topic.regex", r".*\.(\w+)_\d"), ("topic.replacement", "all.$1")]), "all.a");
        assert_eq!(errors(&[class]), ["topic.regex: A value is required"]);
        assert_eq!(
            errors(&[class, ("topic.regex", "a")]),
            ["topic.replacement: topic.replacement must be non-empty if topic.regex is set."]
        );
    }
    let odd = errors(&[("topic.naming.strategy", "my.Strategy")]);
    assert!(odd[0].contains("my.Strategy is not supported; write one of"), "{odd:?}");
}

#[test]
fn cfg_05_queue_and_batch_limits() {
    assert_eq!(
        errors(&[("max.queue.size", "0")]),
        [
            "max.queue.size: A positive queue size is required",
            "max.queue.size: Must be larger than the maximum batch size",
        ]
    );
    assert_eq!(
        errors(&[("max.queue.size", "100"), ("max.batch.size", "200")]),
        ["max.queue.size: Must be larger than the maximum batch size",]
    );
}

#[test]
fn cfg_02_include_and_exclude_list_exclude_each_other() {
    assert_eq!(
        errors(&[("database.exclude.list", "b")]),
        ["database.exclude.list: \"database.include.list\" is already specified",]
    );
    assert_eq!(
        errors(&[("collection.include.list", "a.b"), ("collection.exclude.list", "b.c")]),
        ["collection.exclude.list: \"collection.include.list\" is already specified",]
    );
    assert_eq!(errors(&[("database.exclude.list", " , ")]), Vec::<String>::new());
}

#[test]
fn settings_that_need_another_one() {
    let one = |more: &[(&str, &str)]| errors(more).remove(0);
    assert_eq!(
        one(&[("capture.scope", "database")]),
        "capture.target: A value is required when capture.scope is database"
    );
    assert_eq!(
        one(&[("capture.scope", "collection"), ("capture.target", "inv")]),
        "capture.target: <databaseName>.<collectionName> is expected when capture.scope is collection"
    );
    assert!(
        one(&[("cursor.oversize.handling.mode", "skip")]).starts_with("cursor.oversize.skip.threshold: A positive")
    );
    assert!(one(&[("mongodb.password", "x")]).starts_with("mongodb.user: A user name is required"));
    assert!(
        one(&[("connect.backoff.max.delay.ms", "1")]).starts_with("connect.backoff.max.delay.ms: Must not be less")
    );
    assert!(one(&[("snapshot.mode", "custom")]).contains("snapshot.mode.custom.name cannot be empty when"));
    let foreign = [("snapshot.mode", "custom"), ("snapshot.mode.custom.name", "com.acme.Own")];
    assert!(one(&foreign).contains("custom snapshotters are not supported"));
    let literal = ("filters.match.mode", "literal");
    assert_eq!(
        one(&[literal, ("database.include.list", "a,,b")]),
        "database.include.list: database.include.list contains empty values"
    );
    assert_eq!(errors(&[literal, ("database.include.list", "a,b,")]), Vec::<String>::new());
    assert_eq!(
        errors(&[("field.exclude.list", "a.b.c, a"), ("field.renames", "x,y")]).len(),
        3,
        "a message for each entry that is none"
    );
    let overrides = "snapshot.collection.filter.overrides";
    assert!(one(&[(overrides, "inv")]).contains("'inv' is not <databaseName>.<collectionName>"));
    assert!(
        one(&[(overrides, "inv.a"), ("snapshot.collection.filter.overrides.inv.a", "{")])
            .contains("snapshot.collection.filter.overrides.inv.a is not a query filter")
    );
}

#[test]
fn signals_and_notifications() {
    let config = config(&[
        ("signal.data.collection", "ops.signals"),
        ("signal.enabled.channels", "source, kafka,file,REST"),
        ("incremental.snapshot.watermarking.strategy", "insert_delete"),
        ("incremental.snapshot.chunk.size", "10"),
        ("signal.emit.failure.max.retries", "3"),
    ]);
    assert_eq!(config.filters.signals, Namespace::parse("ops.signals"));
    let channels = &config.signals.channels;
    let kafka = channels.kafka.as_ref().unwrap();
    assert_eq!((&*kafka.topic, &*kafka.key, &*kafka.group), ("shop-signal", "shop", "kafka-signal"));
    assert_eq!((channels.source, channels.file.as_deref(), channels.rest), (true, Some("file-signals.txt"), true));
    assert_eq!(channels.poll_interval, Duration::from_secs(5));
    assert_eq!((config.snapshot.chunk_size, config.snapshot.watermarks), (10, Strategy::InsertDelete));
    assert_eq!((config.signals.retries, config.signals.pause), (3, Duration::from_secs(10)));

    for (name, value, error) in [
        ("signal.data.collection", "signals", "exactly one collection"),
        ("signal.data.collection", "a.b,a.c", "exactly one collection"),
        ("signal.enabled.channels", "post", "Value must be one of source, kafka, file, rest, jmx, but is post"),
        ("notification.enabled.channels", "mail", "Value must be one of sink, log, jmx, but is mail"),
        ("incremental.snapshot.chunk.size", "0", "incremental.snapshot.chunk.size"),
        ("signal.poll.interval.ms", "0", "signal.poll.interval.ms"),
    ] {
        let found = errors(&[(name, value)]);
        assert!(found.iter().any(|text| text.contains(error)), "{name}={value}: {found:?}");
    }
    let warned = validate(&properties(&[
        ("signal.enabled.channels", "source,jmx"),
        ("notification.enabled.channels", "log,jmx"),
    ]));
    for warning in [
        "'signal.enabled.channels' names jmx, which is not there: no signals come that way",
        "'notification.enabled.channels' names jmx, which is not there: nothing is told that way",
    ] {
        assert!(warned.warnings.iter().any(|w| w == warning), "{:?}", warned.warnings);
    }
    assert!(errors(&[("notification.enabled.channels", "sink")])
        .contains(&"notification.sink.topic.name: Notification topic name must be provided when kafka notification channel is enabled".to_owned()));
}

#[test]
fn post_processors_are_refused_with_advice() {
    let found = errors(&[("post.processors", "reselector")]);
    assert!(found.len() == 1 && found[0].contains("capture.mode"), "{found:?}");
    assert_eq!(errors(&[("post.processors", "")]), Vec::<String>::new());
}

#[test]
fn transaction_metadata_by_the_built_in_factory_only() {
    let config = config(&[("provide.transaction.metadata", "true"), ("topic.transaction", "tx")]);
    assert!(config.events.transactions);
    assert_eq!(config.naming.transaction, "tx");
    let built_in = "io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory";
    assert_eq!(errors(&[("transaction.metadata.factory", built_in)]), Vec::<String>::new());
    let found = errors(&[("transaction.metadata.factory", "com.example.Factory")]);
    assert!(found[0].contains("com.example.Factory is not supported; remove the property"), "{found:?}");
}

/// As recorded, except that the text about `field.renames` names that option.
#[test]
fn entries_about_fields_have_a_form() {
    for (name, value) in [
        ("field.exclude.list", ""),
        ("field.exclude.list", "*.*.secret, inv.a.p.q-r ,\n inv.b-c.x"),
        ("field.renames", " "),
        ("field.renames", "inv.a.x:y, *.a.b.c:d-e"),
    ] {
        assert_eq!(errors(&[(name, value)]), Vec::<String>::new(), "{name}");
    }
    assert_eq!(
        errors(&[("field.exclude.list", "a")]),
        [
            "field.exclude.list: a has invalid format (expecting <databaseName>.<collectionName>.<fieldName>.<nestedFieldName>)",
        ]
    );
    assert_eq!(
        errors(&[("field.renames", "a.b")]),
        [
            "field.renames: a.b has invalid format (expecting <databaseName>.<collectionName>.<fieldName>.<nestedFieldName>:<newNestedFieldName>)",
        ]
    );
}

#[test]
fn cfg_01_names_of_earlier_releases() {
    let mut old = Properties::from([("mongodb.connection.string", URI), ("mongodb.name", "shop")]);
    let validation = validate(&old);
    assert!(validation.is_valid(), "{:?}", validation.messages());
    assert_eq!(validation.warnings.len(), 1);
    assert_eq!(&*MongoConfig::parse(&old).unwrap().topic_prefix, "shop");
    old.set("snapshot.mode", "Never");
    old.set("sanitize.field.names", "true");
    assert_eq!(MongoConfig::parse(&old).unwrap().snapshot.mode, SnapshotMode::NoData);
    assert_eq!(validate(&old).settings.text("field.name.adjustment.mode"), Some("avro"));
    old.set("collection.blacklist", "inv.a");
    assert_eq!(MongoConfig::parse(&old).unwrap().filters.collections, NameList::Exclude(vec!["inv.a".into()]));
    for name in ["mongodb.hosts", "mongodb.poll.interval.sec"] {
        let found = errors(&[(name, "x")]);
        assert!(found.len() == 1 && found[0].contains("was removed; use"), "{found:?}");
    }
}

#[test]
fn cfg_04_tolerant_parsing() {
    let parsed = config(&[
        ("snapshot.mode", " When_Needed "),
        ("capture.mode", "CHANGE_STREAMS"),
        ("tombstones.on.delete", "False"),
        ("max.batch.size", " 10 "),
        ("collection.include.list", " inv.a ,\n inv.b\\,c , "),
    ]);
    assert_eq!(parsed.snapshot.mode, SnapshotMode::WhenNeeded);
    assert_eq!(parsed.capture.full_document, FullDocument::Omitted);
    assert!(!parsed.events.tombstones);
    assert_eq!(parsed.batch_size, 10);
    assert_eq!(parsed.filters.collections, NameList::Include(vec!["inv.a".into(), "inv.b,c".into()]));
}

#[test]
fn defaults_as_typed_values() {
    let parsed = config(&[]);
    assert_eq!(parsed.connection.mode, ConnectionMode::Sharded);
    assert_eq!(parsed.connection.connect_timeout, Duration::from_secs(10));
    assert_eq!(parsed.connection.server_selection_timeout, Duration::from_secs(30));
    assert_eq!((parsed.connection.max_attempts, parsed.connection.backoff_max), (16, Duration::from_secs(120)));
    assert_eq!(parsed.capture.full_document, FullDocument::Lookup);
    assert_eq!((&parsed.capture.scope, parsed.capture.start_at), (&CaptureScope::Deployment, None));
    assert_eq!(parsed.cursor.oversize, Oversize::Fail);
    assert_eq!(parsed.snapshot.mode, SnapshotMode::Initial);
    assert_eq!(parsed.batch_size, 2048);
    assert_eq!(parsed.events.on_failure, FailureMode::Fail);
    assert_eq!(parsed.naming.heartbeat_prefix, "__debezium-heartbeat");
    assert_eq!(parsed.guardrail, None);
}

#[test]
fn values_that_are_taken_apart() {
    let parsed = config(&[
        ("capture.scope", "collection"),
        ("capture.target", "inv.a.b"),
        ("capture.mode", "change_streams_update_full_with_pre_image"),
        ("capture.mode.full.update.type", "post_image"),
        ("cursor.pipeline", "[{$match: {operationType: 'insert'}}]"),
        ("cursor.oversize.handling.mode", "skip"),
        ("cursor.oversize.skip.threshold", "42"),
        ("skipped.operations", "c, D"),
        ("topic.heartbeat.prefix", "hb"),
        ("poll.interval.ms", "60000"),
        ("guardrail.collections.max", "5"),
        ("guardrail.collections.limit.action", "fail"),
    ]);
    assert_eq!(parsed.capture.scope, CaptureScope::Collection(Namespace::new("inv", "a.b")));
    assert_eq!((parsed.capture.full_document, parsed.capture.pre_images), (FullDocument::PostImage, true));
    assert_eq!(parsed.cursor.pipeline, [bson::doc! {"$match": {"operationType": "insert"}}]);
    assert_eq!(parsed.cursor.oversize, Oversize::Skip(42));
    assert_eq!(parsed.events.skipped, SkippedOperations { create: true, update: false, delete: true });
    assert_eq!(parsed.naming.heartbeat_prefix, "hb");
    assert_eq!(parsed.guardrail, Some(Guardrail { max: 5, fail: true }));
}

#[test]
fn mgo_25_filters_of_single_collections() {
    let given = [
        ("snapshot.collection.filter.overrides", "inv.a , inv.b"),
        ("snapshot.collection.filter.overrides.inv.a", "{dead: false}"),
    ];
    let parsed = config(&given);
    assert_eq!(parsed.snapshot.filters.get(&Namespace::new("inv", "a")), Some(&bson::doc! {"dead": false}));
    assert_eq!(parsed.snapshot.filters.len(), 1);
    let warnings = validate(&properties(&given)).warnings;
    assert_eq!(warnings, ["'snapshot.collection.filter.overrides.inv.b' is not set: snapshots read all of inv.b"]);
}

#[test]
fn mgo_29_explicit_start_point() {
    let start = 7_713_644_790_000_000_007_u64;
    let parsed = config(&[("snapshot.mode", "no_data"), ("capture.start.op.time", &start.to_string())]);
    let expected = bson::Timestamp { time: (start >> 32) as u32, increment: start as u32 };
    assert_eq!(parsed.capture.start_at, Some(expected));
    assert_eq!(config(&[]).capture.start_at, None);
}

#[test]
fn cfg_03_secrets_do_not_print() {
    let parsed = config(&[
        ("mongodb.connection.string", "mongodb://u:p%40ss@h/?replicaSet=rs0"),
        ("mongodb.user", "u"),
        ("mongodb.password", "hush"),
    ]);
    let printed = format!("{parsed:?}");
    assert!(!printed.contains("p%40ss") && !printed.contains("hush"), "{printed}");
    let shown: Vec<_> = validate(&properties(&[("mongodb.user", "u"), ("mongodb.password", "hush")])).options;
    assert!(shown.iter().all(|o| o.value.as_deref() != Some("hush") && o.value.as_deref() != Some(URI)));
}

#[test]
fn a_bad_configuration_lists_every_message() {
    let error = MongoConfig::parse(&properties(&[("snapshot.mode", "x"), ("max.batch.size", "y")])).unwrap_err();
    assert_eq!(error.message, "Error configuring an instance of MongoDbConnector; check the logs for details");
    assert_eq!(error.causes.len(), 3);
}

/// The format has documents as JSON objects whose `_id` looks like the key's, and tombstones of its own.
#[test]
fn the_format_repstance_changes_two_defaults() {
    let parsed = |more: &[(&str, &str)]| {
        let events = MongoConfig::parse(&properties(more)).unwrap().events;
        (events.json, events.tombstones)
    };
    let format = ("thalweg.format", "repstance");
    use crate::extended_json::JsonMode;
    assert_eq!(parsed(&[]), (JsonMode::Legacy, true));
    assert_eq!(parsed(&[format, ("tombstones.on.delete", "true")]), (JsonMode::Relaxed, false));
    assert_eq!(parsed(&[format, ("json.serialization.mode", "extended")]), (JsonMode::Extended, false));
}

#[test]
fn tasks_share_only_snapshots_that_go_on() {
    assert_eq!(errors(&[("thalweg.snapshot.spread", "true")]), Vec::<String>::new());
    let bare = errors(&[("thalweg.snapshot.spread", "true"), ("thalweg.snapshot.resume", "false")]);
    assert_eq!(bare.len(), 1);
    assert!(bare[0].starts_with("thalweg.snapshot.spread: ") && bare[0].contains("thalweg.snapshot.resume=true"));
}
