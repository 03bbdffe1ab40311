#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use thalweg_config::Properties;

use super::super::fake_registry::{Answer, FakeRegistry};
use super::*;
use crate::convert::Converters;
use crate::error::Policy;
use crate::record::Datum;

/// The value converter of a connector with these options.
fn converter(url: &str, more: &[(&str, &str)]) -> Box<dyn Converter> {
    let mut config = Properties::from([("key.converter", "String"), ("value.converter", "AvroConverter")]);
    config.set("value.converter.schema.registry.url", url);
    for (key, value) in more {
        config.set(format!("value.converter.{key}"), *value);
    }
    Converters::from_config(&config, &Properties::new()).unwrap().value
}

fn row(schema: &Arc<Schema>) -> Datum {
    Datum::new(schema.clone(), Value::Struct(vec![Value::Int32(1)]))
}

fn schema() -> Arc<Schema> {
    Arc::new(Schema::record([("id", Schema::int32())]).named("srv.Value"))
}

const TEXT: &str = r#"{"type":"record","name":"Value","namespace":"srv","fields":[{"name":"id","type":"int"}],"connect.name":"srv.Value"}"#;

/// As the encoder does it.
async fn converted(converter: &mut dyn Converter, topic: &str, datum: &Datum) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    if converter.convert_datum(&topic.into(), datum, &mut out)? == Written::Waiting {
        assert!(out.is_empty());
        converter.prepare().await?;
        assert_eq!(converter.convert_datum(&topic.into(), datum, &mut out)?, Written::Bytes);
    }
    Ok(out)
}

#[tokio::test]
async fn a_schema_is_registered_once() {
    let registry = FakeRegistry::replying(200, r#"{"id":258}"#).await;
    let mut converter = converter(&registry.url(), &[]);
    let schema = schema();
    for _ in 0..3 {
        assert_eq!(converted(&mut *converter, "t", &row(&schema)).await.unwrap(), [0, 0, 0, 1, 2, 2]);
    }
    // Equal, but another one.
    converted(&mut *converter, "t", &row(&self::schema())).await.unwrap();
    converted(&mut *converter, "t", &row(&schema)).await.unwrap();
    let asked = registry.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].line, "POST /subjects/t-value/versions");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&asked[0].body).unwrap(), serde_json::json!({"schema": TEXT}));
    assert_eq!(asked[0].authorization, None);
    converted(&mut *converter, "other/topic", &row(&schema)).await.unwrap();
    assert_eq!(registry.asked()[1].line, "POST /subjects/other%2Ftopic-value/versions");
}

#[tokio::test]
async fn nulls_are_kafka_nulls_and_values_need_a_schema() {
    let mut converter = converter("http://127.0.0.1:1", &[]);
    let mut out = Vec::new();
    let topic: Arc<str> = "t".into();
    assert_eq!(converter.convert_datum(&topic, &Datum::none(), &mut out).unwrap(), Written::Null);
    let optional = Datum::new(Arc::new(Schema::string().optional()), Value::Null);
    assert_eq!(converter.convert_datum(&topic, &optional, &mut out).unwrap(), Written::Null);
    let required = Datum::new(Arc::new(Schema::string()), Value::Null);
    assert!(converter.convert_datum(&topic, &required, &mut out).is_err());
    let free = converter.convert(&topic, None, &Value::Int32(1), &mut out).unwrap_err();
    assert!(free.message.contains("needs a schema"));
    assert!(out.is_empty());
}

#[tokio::test]
async fn a_fault_leaves_the_buffer_as_it_was() {
    let registry = FakeRegistry::replying(200, r#"{"id":1}"#).await;
    let mut converter = converter(&registry.url(), &[]);
    let schema = schema();
    converted(&mut *converter, "t", &row(&schema)).await.unwrap();
    let mut out = b"key".to_vec();
    let bad = Value::Struct(vec![Value::text("x")]);
    let error = converter.convert(&"t".into(), Some(&schema), &bad, &mut out).unwrap_err();
    assert_eq!((error.kind, &*out), (ErrorKind::ValueInvalid, &b"key"[..]));
}

#[tokio::test]
async fn logins_are_sent_and_never_shown() {
    for (login, options, header) in [
        ("us%40er:p%3Aw@", &[][..], "Basic dXNAZXI6cDp3"),
        (
            "",
            &[("basic.auth.credentials.source", "USER_INFO"), ("basic.auth.user.info", "u:hidden")],
            "Basic dTpoaWRkZW4=",
        ),
        ("", &[("bearer.auth.credentials.source", "STATIC_TOKEN"), ("bearer.auth.token", "hidden")], "Bearer hidden"),
    ] {
        let registry = FakeRegistry::replying(401, r#"{"error_code":40101,"message":"no"}"#).await;
        let url = registry.url().replace("http://", &format!("http://{login}"));
        let mut converter = converter(&url, options);
        let error = converted(&mut *converter, "t", &row(&schema())).await.unwrap_err();
        assert_eq!(registry.asked()[0].authorization.as_deref(), Some(header));
        assert_eq!(error.kind, ErrorKind::Auth);
        let shown = error.trace();
        assert!(shown.contains("subject t-value: HTTP 401: no") && shown.contains(&registry.url()), "{shown}");
        assert!(!shown.contains("hidden") && !shown.contains("p%3Aw"), "{shown}");
    }
}

#[tokio::test]
async fn refusals_are_errors_of_the_record_and_not_asked_for_again_at_once() {
    for (status, advice) in [(409, "compatib"), (422, "does not accept")] {
        let body = r#"{"error_code":409,"message":"incompatible"}"#;
        let registry = FakeRegistry::replying(status, body).await;
        let mut converter = converter(&registry.url(), &[]);
        let schema = schema();
        for _ in 0..3 {
            let error = converted(&mut *converter, "t", &row(&schema)).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::ValueInvalid);
            assert!(error.message.contains(&format!("HTTP {status}: incompatible")), "{}", error.message);
            assert!(error.advice().contains(advice));
        }
        assert_eq!(registry.asked().len(), 1);
        // Another topic may be accepted.
        assert!(converted(&mut *converter, "u", &row(&schema)).await.is_err());
        assert_eq!(registry.asked().len(), 2);
    }
}

#[tokio::test]
async fn a_registry_that_is_down_or_talks_nonsense_is_asked_again() {
    let good = Answer::Reply(200, r#"{"id":5}"#.to_owned());
    for bad in [
        (500, ""),
        (503, r#"{"error_code":50301,"message":"starting"}"#),
        (429, "slow down"),
        (200, "<html>hello</html>"),
        (200, "{}"),
        (200, r#"{"id":"x"}"#),
        (200, r#"{"id":-1}"#),
        (200, r#"{"id":4294967296}"#),
    ] {
        let registry = FakeRegistry::start([Answer::Reply(bad.0, bad.1.to_owned()), good.clone()]).await;
        let mut converter = converter(&registry.url(), &[]);
        let error = converted(&mut *converter, "t", &row(&schema())).await.unwrap_err();
        assert_eq!(error.policy(), Policy::Retry, "{bad:?}");
        assert!(error.message.contains(&format!("HTTP {}", bad.0)), "{}", error.message);
        assert!(error.advice().contains("retries by itself"));
        assert_eq!(converted(&mut *converter, "t", &row(&schema())).await.unwrap()[..5], [0, 0, 0, 0, 5]);
    }
}

#[tokio::test]
async fn a_slow_registry_is_left_after_the_time_limit() {
    let registry = FakeRegistry::start([Answer::Silence]).await;
    let limits = [("http.connect.timeout.ms", "50"), ("http.read.timeout.ms", "50")];
    let mut converter = converter(&registry.url(), &limits);
    let error = converted(&mut *converter, "t", &row(&schema())).await.unwrap_err();
    assert_eq!((error.kind, error.policy()), (ErrorKind::Timeout, Policy::Retry));
    assert!(error.message.contains("no answer in time"), "{}", error.message);
}

#[tokio::test]
async fn addresses_are_tried_in_turn_and_the_good_one_first() {
    let down = FakeRegistry::replying(503, "").await;
    let up = FakeRegistry::replying(200, r#"{"id":5}"#).await;
    // Nobody listens on port 1.
    let urls = format!("http://127.0.0.1:1,{},{}/", down.url(), up.url());
    let mut converter = converter(&urls, &[]);
    converted(&mut *converter, "t", &row(&schema())).await.unwrap();
    converted(&mut *converter, "u", &row(&schema())).await.unwrap();
    assert_eq!((down.asked().len(), up.asked().len()), (1, 2));
    assert_eq!(up.asked()[1].line, "POST /subjects/u-value/versions");

    let mut all_down = self::converter(&format!("http://127.0.0.1:1,{}", down.url()), &[]);
    let error = converted(&mut *all_down, "t", &row(&schema())).await.unwrap_err();
    assert!(error.message.contains("HTTP 503") && error.to_string().contains("http://127.0.0.1:1/"), "{error}");
}

#[tokio::test]
async fn an_address_with_a_path_keeps_it_and_a_wrong_one_is_named() {
    let registry = FakeRegistry::replying(404, "not here").await;
    let mut converter = converter(&format!("{}/apis/v7/", registry.url()), &[("normalize.schemas", "true")]);
    let error = converted(&mut *converter, "t", &row(&schema())).await.unwrap_err();
    assert_eq!(registry.asked()[0].line, "POST /apis/v7/subjects/t-value/versions?normalize=true");
    assert_eq!((error.kind, error.policy()), (ErrorKind::Config, Policy::NeedsUser));
    assert!(error.advice().contains("schema.registry.url"));
}

#[tokio::test]
async fn without_registration_the_schema_must_be_there() {
    let options = [("auto.register.schemas", "false")];
    let registry = FakeRegistry::replying(200, r#"{"subject":"t-value","id":9,"version":1}"#).await;
    let mut there = converter(&registry.url(), &options);
    assert_eq!(converted(&mut *there, "t", &row(&schema())).await.unwrap()[4], 9);
    assert_eq!(registry.asked()[0].line, "POST /subjects/t-value");

    let registry = FakeRegistry::replying(404, r#"{"error_code":40403,"message":"Schema not found"}"#).await;
    let mut missing = converter(&registry.url(), &options);
    let error = converted(&mut *missing, "t", &row(&schema())).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::ValueInvalid);
    assert!(error.advice().contains("register the schema"));
}

#[tokio::test]
async fn the_latest_version_is_used_if_its_layout_is_the_same() {
    let options = [("auto.register.schemas", "false"), ("use.latest.version", "true")];
    let answer =
        |schema: &str| serde_json::json!({"subject": "s", "id": 3, "version": 7, "schema": schema}).to_string();
    let same = r#"{"type":"record","name":"srv.Value","doc":"by hand","fields":[{"name":"id","type":"int"}]}"#;
    let registry = FakeRegistry::replying(200, &answer(same)).await;
    let mut good = converter(&registry.url(), &options);
    assert_eq!(converted(&mut *good, "t", &row(&schema())).await.unwrap(), [0, 0, 0, 0, 3, 2]);
    assert_eq!(registry.asked()[0].line, "GET /subjects/t-value/versions/latest");
    for other in [same.replace("int", "long"), "nonsense".to_owned()] {
        let registry = FakeRegistry::replying(200, &answer(&other)).await;
        let mut bad = converter(&registry.url(), &options);
        let error = converted(&mut *bad, "t", &row(&schema())).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::ValueInvalid);
        assert!(error.message.contains("latest version"), "{}", error.message);
    }
}

#[tokio::test]
async fn subjects_follow_the_strategy() {
    let registry = FakeRegistry::replying(200, r#"{"id":1}"#).await;
    for (strategy, subject) in [
        ("RecordNameStrategy", "srv.Value"),
        ("io.confluent.kafka.serializers.subject.TopicRecordNameStrategy", "t-srv.Value"),
    ] {
        let mut converter = converter(&registry.url(), &[("value.subject.name.strategy", strategy)]);
        converted(&mut *converter, "t", &row(&schema())).await.unwrap();
        assert_eq!(registry.asked().last().unwrap().line, format!("POST /subjects/{subject}/versions"));
    }
}

#[tokio::test]
async fn what_is_remembered_is_bounded() {
    let registry = FakeRegistry::replying(200, r#"{"id":1}"#).await;
    let mut converter = converter(&registry.url(), &[("schemas.cache.config", "2")]);
    let schema = schema();
    for topic in ["a", "b", "a", "c", "a"] {
        converted(&mut *converter, topic, &row(&schema)).await.unwrap();
    }
    let asked: Vec<_> = registry.asked().into_iter().map(|asked| asked.line).collect();
    assert_eq!(asked, ["a", "b", "c", "a"].map(|topic| format!("POST /subjects/{topic}-value/versions")));
}

#[test]
fn options_are_checked() {
    let errors = |more: &[(&str, &str)]| {
        let mut config = Properties::from([("value.converter", "Avro")]);
        for (key, value) in more {
            config.set(format!("value.converter.{key}"), *value);
        }
        Role::Value.validate(&config, &Properties::new()).unwrap().messages()
    };
    let url = ("schema.registry.url", "http://r:8081");
    assert_eq!(errors(&[url]), [""; 0]);
    assert!(errors(&[])[0].contains("\"schema.registry.url\""));
    assert_eq!(
        errors(&[url, ("enhanced.avro.schema.support", "true"), ("generalized.sum.type.support", "false")]),
        [""; 0]
    );
    for bad in [
        ("generalized.sum.type.support", "true"),
        ("schema.registry.url", "r:8081"),
        ("basic.auth.credentials.source", "USER_INFO"),
        ("basic.auth.credentials.source", "SASL_INHERIT"),
        ("bearer.auth.credentials.source", "STATIC_TOKEN"),
        ("value.subject.name.strategy", "com.example.Own"),
        ("use.schema.id", "7"),
        ("schema.registry.ssl.key.password", "x"),
        ("schema.registry.ssl.keystore.key", "x"),
    ] {
        let messages = errors(&[url, bad]);
        assert_eq!(messages.len(), 1, "{bad:?} {messages:?}");
    }
    let messages = errors(&[("schema.registry.url", "http://u:hidden@h,nonsense")]);
    assert!(!messages[0].contains("hidden"), "{messages:?}");
}

#[test]
fn stores_that_cannot_be_used_are_named() {
    let mut config = Properties::from([("key.converter", "String"), ("value.converter", "Avro")]);
    config.set("value.converter.schema.registry.url", "https://r");
    config.set("value.converter.schema.registry.ssl.truststore.location", "/nowhere/ca.pem");
    let error = Converters::from_config(&config, &Properties::new()).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Tls);
    assert!(error.message.contains("value.converter.schema.registry.ssl.truststore.location"), "{}", error.message);
    assert!(error.message.contains("/nowhere/ca.pem"));
}
