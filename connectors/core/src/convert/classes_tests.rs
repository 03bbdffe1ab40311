#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use super::*;
use crate::convert::{Converters, Written};
use crate::record::{Datum, Schema, Value};

const JSON: &str = "org.apache.kafka.connect.json.JsonConverter";

fn written(converter: &mut dyn Converter, datum: &Datum) -> Option<String> {
    let mut out = Vec::new();
    match converter.convert_datum(&"t".into(), datum, &mut out).unwrap() {
        Written::Null | Written::Waiting => None,
        Written::Bytes => Some(String::from_utf8(out).unwrap()),
    }
}

fn seven() -> Datum {
    Datum::new(Arc::new(Schema::int32()), Value::Int32(7))
}

#[test]
fn a_connector_without_converters_takes_the_workers_with_their_options() {
    let worker = Properties::from([
        ("key.converter", "JsonConverter"),
        ("key.converter.schemas.enable", "false"),
        ("value.converter", JSON),
    ]);
    let mut converters = Converters::from_config(&Properties::new(), &worker).unwrap();
    assert_eq!(written(&mut *converters.key, &seven()).unwrap(), "7");
    assert_eq!(
        written(&mut *converters.value, &seven()).unwrap(),
        r#"{"schema":{"type":"int32","optional":false},"payload":7}"#
    );
    assert_eq!(converters.headers.class(), "org.apache.kafka.connect.storage.SimpleHeaderConverter");
}

#[test]
fn a_converter_named_by_the_connector_discards_the_workers_options() {
    let worker = Properties::from([
        ("key.converter", JSON),
        ("key.converter.schemas.enable", "false"),
        ("value.converter", JSON),
        ("value.converter.schemas.enable", "false"),
    ]);
    let connector = Properties::from([("key.converter", "Json"), ("value.converter.schemas.enable", "true")]);
    let mut converters = Converters::from_config(&connector, &worker).unwrap();
    assert!(written(&mut *converters.key, &seven()).unwrap().starts_with(r#"{"schema":"#));
    assert_eq!(written(&mut *converters.value, &seven()).unwrap(), "7", "options without a class do not count");
}

#[test]
fn unknown_and_unsupported_classes_are_refused_with_what_is_there() {
    let worker = Properties::from([("key.converter", JSON), ("value.converter", JSON)]);
    let error = |pairs: [(&str, &str); 1]| Converters::from_config(&Properties::from(pairs), &worker).err().unwrap();

    let unknown = error([("value.converter", "com.example.MyConverter")]);
    assert!(unknown.message.starts_with(
        "Invalid value com.example.MyConverter for configuration value.converter: \
         Class com.example.MyConverter could not be found; supported are org.apache.kafka.connect.json.JsonConverter, "
    ));
    assert!(!unknown.message.contains("SimpleHeaderConverter"));
    for class in ["io.apicurio.registry.utils.converter.AvroConverter", "io.apicurio.registry.avro.AvroConverter"] {
        let apicurio = error([("key.converter", class)]);
        assert!(
            apicurio.message.contains("use io.confluent.connect.avro.AvroConverter")
                && apicurio.message.contains("key.converter.schema.registry.url"),
            "{}",
            apicurio.message
        );
    }
    let avro = error([("header.converter", "io.confluent.connect.avro.AvroConverter")]);
    assert!(avro.message.contains("could not be found"), "headers are not written in Avro");
    let header = error([("value.converter", "SimpleHeaderConverter")]);
    assert!(header.message.contains("could not be found"));
    let missing = Converters::from_config(&Properties::new(), &Properties::new()).err().unwrap();
    assert_eq!(missing.message, "neither the connector nor the node names a key.converter");
}

#[test]
fn options_are_checked_under_their_prefix() {
    let worker = Properties::from([("key.converter", JSON), ("value.converter", JSON)]);
    let connector = Properties::from([
        ("value.converter", JSON),
        ("value.converter.decimal.format", "hex"),
        ("value.converter.schemas.enable", "yes"),
    ]);
    let validation = Role::Value.validate(&connector, &worker).unwrap();
    assert_eq!(validation.error_count(), 2);
    assert!(validation.option("value.converter.decimal.format").is_some_and(|row| !row.errors.is_empty()));
    assert!(Converters::from_config(&connector, &worker).is_err());
    let latin = Properties::from([("key.converter", "String"), ("key.converter.converter.encoding", "ISO-8859-1")]);
    assert!(Converters::from_config(&latin, &worker).is_err());
    let utf8 = Properties::from([("key.converter", "String"), ("key.converter.encoding", "utf-8")]);
    assert!(Converters::from_config(&utf8, &worker).is_ok());
}

#[test]
fn options_are_published_as_kafka_connect_publishes_them() {
    let worker = Properties::from([("key.converter", JSON), ("value.converter", JSON)]);
    let connector = Properties::from([("key.converter", JSON), ("value.converter", "String")]);
    let published = |role: Role| -> Vec<String> {
        let validation = role.validate(&connector, &worker).unwrap();
        let rows = validation.options.iter().filter(|row| row.def.published);
        rows.map(|row| {
            format!(
                "{} {} {} {} {} {} {} {} {}",
                row.name,
                row.value.as_deref().unwrap_or("-"),
                row.def.kind.name(),
                row.def.required,
                row.default.as_deref().unwrap_or("-"),
                row.def.importance.name(),
                row.def.group,
                row.order,
                row.def.display_name
            )
        })
        .collect()
    };
    assert_eq!(
        published(Role::Key),
        [
            "key.converter.converter.type key STRING true - LOW  -1 converter.type",
            "key.converter.schemas.enable true BOOLEAN false true HIGH Schemas 0 Enable Schemas",
            "key.converter.schemas.cache.size 1000 INT false 1000 HIGH Schemas 1 Schema Cache Size",
            "key.converter.schema.content - STRING false - HIGH Schemas 2 Schema Content",
            "key.converter.decimal.format BASE64 STRING false BASE64 LOW Serialization 0 Decimal Format",
            "key.converter.replace.null.with.default true BOOLEAN false true LOW Serialization 1 Replace null with default",
        ]
    );
    assert_eq!(
        published(Role::Value),
        [
            "value.converter.converter.type value STRING true - LOW  -1 converter.type",
            "value.converter.converter.encoding UTF-8 STRING false UTF-8 HIGH  -1 Encoding",
        ]
    );
    assert_eq!(published(Role::Header), [""; 0]);
}

#[test]
fn decimal_format_is_case_insensitive() {
    let worker = Properties::from([
        ("key.converter", JSON),
        ("value.converter", JSON),
        ("value.converter.schemas.enable", "false"),
        ("value.converter.decimal.format", "numeric"),
    ]);
    let mut converters = Converters::from_config(&Properties::new(), &worker).unwrap();
    let price = Schema::bytes().named("org.apache.kafka.connect.data.Decimal").versioned(1).parameter("scale", "2");
    let datum = Datum::new(Arc::new(price), Value::Bytes(vec![100].into()));
    assert_eq!(written(&mut *converters.value, &datum).unwrap(), "1.00");
}

#[test]
fn every_class_can_be_made_under_each_of_its_names() {
    let worker = Properties::from([("key.converter", JSON), ("value.converter", JSON)]);
    for class in CLASSES {
        for name in class.aliases.iter().chain([&class.class]) {
            let role = if class.place == Place::KeysAndValues { Role::Value } else { Role::Header };
            let mut connector = Properties::from([(role.property(), *name)]);
            if class.class.ends_with("AvroConverter") {
                connector.set("value.converter.schema.registry.url", "http://registry:8081");
            }
            let converter = role.make(&connector, &worker).unwrap();
            assert_eq!(converter.class(), class.class);
        }
    }
}
