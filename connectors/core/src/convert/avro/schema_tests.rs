#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use bytes::Bytes;

use super::*;
use crate::envelope::{json_text, source_schema, transaction_block};

const OPTIONS: SchemaOptions = SchemaOptions { meta: true, scrub: false };

/// The text, which any Avro library must accept.
fn text_of(schema: &Schema) -> String {
    let text = avro_schema(schema, OPTIONS).unwrap().text;
    apache_avro::Schema::parse_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    text
}

fn refusal(schema: &Schema) -> String {
    avro_schema(schema, OPTIONS).unwrap_err().to_error().message
}

fn logical(ty: Type, name: &str) -> Schema {
    Schema::new(ty).named(format!("org.apache.kafka.connect.data.{name}")).versioned(1)
}

#[test]
fn primitives() {
    for (ty, text) in [
        (Type::Int32, "\"int\""),
        (Type::Int64, "\"long\""),
        (Type::Float32, "\"float\""),
        (Type::Float64, "\"double\""),
        (Type::Boolean, "\"boolean\""),
        (Type::String, "\"string\""),
        (Type::Bytes, "\"bytes\""),
        (Type::Int8, r#"{"type":"int","connect.type":"int8"}"#),
        (Type::Int16, r#"{"type":"int","connect.type":"int16"}"#),
    ] {
        assert_eq!(text_of(&Schema::new(ty)), text);
    }
    assert_eq!(text_of(&Schema::string().optional()), r#"["null","string"]"#);
    assert_eq!(
        text_of(&Schema::int32().optional().defaulting(Value::Int32(5))),
        r#"[{"type":"int","connect.default":5},"null"]"#
    );
}

#[test]
fn optional_and_default_fields() {
    let schema = Schema::record([
        ("a", Schema::int32().optional()),
        ("b", Schema::string().optional().defaulting(Value::text("x"))),
        ("c", Schema::bytes().defaulting(Value::Bytes(Bytes::from_static(&[0, 0x41, 0xFF])))),
        ("d", Schema::new(Type::Int16).defaulting(Value::Int16(-1))),
        ("e", Schema::array(Schema::string().optional())),
        ("f", Schema::new(Type::Float64).defaulting(Value::Float64(0.5))),
    ]);
    assert_eq!(
        text_of(&schema.named("s.t.Row").versioned(2).documented("d")),
        concat!(
            r#"{"type":"record","name":"Row","namespace":"s.t","fields":["#,
            r#"{"name":"a","type":["null","int"],"default":null},"#,
            r#"{"name":"b","type":[{"type":"string","connect.default":"x"},"null"],"default":"x"},"#,
            r#"{"name":"c","type":{"type":"bytes","connect.default":"\u0000Aÿ"},"default":"\u0000Aÿ"},"#,
            r#"{"name":"d","type":{"type":"int","connect.default":-1,"connect.type":"int16"},"default":-1},"#,
            r#"{"name":"e","type":{"type":"array","items":["null","string"]}},"#,
            r#"{"name":"f","type":{"type":"double","connect.default":0.5},"default":0.5}"#,
            r#"],"connect.doc":"d","connect.version":2,"connect.name":"s.t.Row"}"#
        )
    );
}

#[test]
fn logical_types() {
    let decimal = |scale: &str| logical(Type::Bytes, "Decimal").parameter("scale", scale);
    assert_eq!(
        text_of(&decimal("2")),
        concat!(
            r#"{"type":"bytes","scale":2,"precision":64,"connect.version":1,"connect.parameters":{"scale":"2"},"#,
            r#""connect.name":"org.apache.kafka.connect.data.Decimal","logicalType":"decimal"}"#
        )
    );
    let given = text_of(&decimal("2").parameter("connect.decimal.precision", "9"));
    assert!(given.contains(r#""precision":9"#) && given.contains(r#""connect.decimal.precision":"9""#));
    for odd in [decimal("-1"), decimal("65")] {
        let text = text_of(&odd);
        assert!(!text.contains("logicalType") && !text.contains("precision"), "{text}");
    }
    assert!(refusal(&logical(Type::Bytes, "Decimal")).contains("no parameter scale"));
    for (ty, name, avro) in [
        (Type::Int32, "Date", "date"),
        (Type::Int32, "Time", "time-millis"),
        (Type::Int64, "Timestamp", "timestamp-millis"),
    ] {
        assert!(text_of(&logical(ty, name)).ends_with(&format!(r#","logicalType":"{avro}"}}"#)));
    }
    let micro = Schema::int64().optional().named("io.debezium.time.MicroTimestamp").versioned(1);
    assert_eq!(
        text_of(&Schema::record([("ts", micro)]).named("R")),
        concat!(
            r#"{"type":"record","name":"R","fields":[{"name":"ts","type":["null",{"type":"long","#,
            r#""connect.version":1,"connect.name":"io.debezium.time.MicroTimestamp"}],"default":null}],"#,
            r#""connect.name":"R"}"#
        )
    );
}

#[test]
fn maps_with_other_keys_are_arrays_of_entries() {
    assert_eq!(text_of(&Schema::map(Schema::string(), Schema::int64())), r#"{"type":"map","values":"long"}"#);
    let entries = |values: Schema| Schema::map(Schema::int32(), values);
    assert_eq!(
        text_of(&entries(Schema::string())),
        concat!(
            r#"{"type":"array","items":{"type":"record","name":"MapEntry","namespace":"io.confluent.connect.avro","#,
            r#""fields":[{"name":"key","type":"int"},{"name":"value","type":"string"}]}}"#
        )
    );
    let several = Schema::record([
        ("a", entries(Schema::string())),
        ("b", entries(Schema::int64())),
        ("c", entries(Schema::string())),
    ]);
    let text = text_of(&several.named("x.R"));
    assert!(text.contains(r#""name":"MapEntry2""#), "{text}");
    assert!(text.contains(r#"{"name":"c","type":{"type":"array","items":"io.confluent.connect.avro.MapEntry"}}"#));
    let named = text_of(&entries(Schema::string()).named("x.M"));
    assert!(named.contains(r#""connect.internal.type":"MapEntry""#) && named.ends_with(r#""connect.name":"x.M"}"#));
}

#[test]
fn structs_without_a_name_are_numbered() {
    let inner = Schema::record([("x", Schema::int32())]);
    let outer = Schema::record([("a", inner.clone()), ("b", inner)]);
    assert_eq!(
        text_of(&outer),
        concat!(
            r#"{"type":"record","name":"ConnectDefault","namespace":"io.confluent.connect.avro","fields":["#,
            r#"{"name":"a","type":{"type":"record","name":"ConnectDefault2","fields":[{"name":"x","type":"int"}]}},"#,
            r#"{"name":"b","type":{"type":"record","name":"ConnectDefault3","fields":[{"name":"x","type":"int"}]}}]}"#
        )
    );
    assert_eq!(
        avro_schema(&Schema::record([("a", Schema::int32())]), OPTIONS).unwrap().record.unwrap(),
        "io.confluent.connect.avro.ConnectDefault"
    );
}

#[test]
fn a_name_is_defined_once_and_then_only_named() {
    let row = |name: &str| Schema::record([("id", Schema::int32())]).named(name.to_owned()).optional();
    let envelope = Schema::record([("before", row("srv.db.c.Value")), ("after", row("srv.db.c.Value"))]);
    let text = text_of(&envelope.named("srv.db.c.Envelope"));
    assert!(text.contains(r#"{"name":"after","type":["null","Value"],"default":null}"#), "{text}");
    let other = Schema::record([("before", row("a.Value")), ("after", row("a.Value"))]).named("b.Envelope");
    assert!(text_of(&other).contains(r#"{"name":"after","type":["null","a.Value"],"default":null}"#));

    let changed = Schema::record([("id", Schema::int64())]).named("a.Value");
    let clash = Schema::record([("before", row("a.Value")), ("after", changed)]).named("a.Envelope");
    let message = refusal(&clash);
    assert!(message.contains("two different structs have the name a.Value") && message.ends_with("(field after)"));
}

#[test]
fn invalid_names_are_refused_or_scrubbed() {
    let bad = Schema::record([("my-field", Schema::int32())]).named("my-srv.Value");
    assert!(refusal(&bad).contains("schema.name.adjustment.mode=avro"));
    let scrubbed = avro_schema(&bad, SchemaOptions { meta: false, scrub: true }).unwrap();
    assert_eq!(
        scrubbed.text,
        r#"{"type":"record","name":"Value","namespace":"my_srv","fields":[{"name":"my_field","type":"int"}]}"#
    );
    assert_eq!(scrubbed.record.unwrap(), "my_srv.Value");
    let twice = Schema::record([("a-b", Schema::int32()), ("a_b", Schema::int32())]).named("R");
    let error = avro_schema(&twice, SchemaOptions { meta: true, scrub: true }).unwrap_err().to_error();
    assert!(error.message.contains("two fields"), "{}", error.message);
    let field = Schema::record([("a.b", Schema::int32())]).named("R");
    assert!(refusal(&field).contains("field.name.adjustment.mode=avro"));
}

#[test]
fn defaults_that_json_or_avro_cannot_say_are_refused() {
    assert!(refusal(&Schema::new(Type::Float64).defaulting(Value::Float64(f64::NAN))).contains("no finite number"));
    let set = Schema::array(Schema::int32().optional()).defaulting(Value::Array(vec![Value::Int32(1)]));
    assert!(refusal(&set).contains("optional part"));
    assert!(refusal(&Schema::int32().defaulting(Value::text("x"))).contains("does not fit"));
    let fine = Schema::array(Schema::int32().optional()).defaulting(Value::Array(vec![Value::Null]));
    assert_eq!(text_of(&fine), r#"{"type":"array","items":["null","int"],"connect.default":[null]}"#);
}

#[test]
fn the_envelope_of_mongodb() {
    let truncated = Schema::record([("field", Schema::string()), ("size", Schema::int32())])
        .named("io.debezium.connector.mongodb.changestream.truncatedarray")
        .versioned(1);
    let update = Schema::record([
        ("removedFields", Arc::new(Schema::array(Schema::string()).optional())),
        ("updatedFields", json_text()),
        ("truncatedArrays", Arc::new(Schema::array(truncated).optional())),
    ])
    .named("io.debezium.connector.mongodb.changestream.updatedescription")
    .versioned(1)
    .optional();
    let source = source_schema("io.debezium.connector.mongo.Source", [("collection", Schema::string())]);
    let envelope = Schema::record([
        ("before", json_text()),
        ("after", json_text()),
        ("updateDescription", Arc::new(update)),
        ("source", Arc::new(source)),
        ("op", Arc::new(Schema::string().optional())),
        ("transaction", transaction_block()),
    ]);
    let text = text_of(&envelope.named("shop.inv.c.Envelope").versioned(1));
    let json =
        r#"["null",{"type":"string","connect.version":1,"connect.name":"io.debezium.data.Json"}],"default":null}"#;
    assert!(text.starts_with(&format!(
        r#"{{"type":"record","name":"Envelope","namespace":"shop.inv.c","fields":[{{"name":"before","type":{json},{{"name":"after","type":{json},{{"name":"updateDescription","type":["null",{{"type":"record","name":"updatedescription","namespace":"io.debezium.connector.mongodb.changestream","fields":["#
    )), "{text}");
    for part in [
        r#"{"name":"truncatedArrays","type":["null",{"type":"array","items":{"type":"record","name":"truncatedarray","fields":["#,
        r#"{"name":"snapshot","type":[{"type":"string","connect.version":1,"connect.parameters":{"allowed":"true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"},"connect.default":"false","connect.name":"io.debezium.data.Enum"},"null"],"default":"false"}"#,
        r#"{"name":"transaction","type":["null",{"type":"record","name":"block","namespace":"event","fields":["#,
        r#""connect.version":1,"connect.name":"shop.inv.c.Envelope"}"#,
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}
