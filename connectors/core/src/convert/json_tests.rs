#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::envelope;
use crate::record::{Datum, RenderText};

fn converter(schemas: bool) -> JsonConverter {
    JsonConverter { schemas, ..JsonConverter::with_schemas() }
}

fn json(schemas: bool, schema: Schema, value: Value) -> String {
    text(&mut converter(schemas), &Datum::new(Arc::new(schema), value)).unwrap()
}

fn text(converter: &mut JsonConverter, datum: &Datum) -> Option<String> {
    let mut out = b"kept".to_vec();
    let written = converter.convert_datum(&"t".into(), datum, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap().strip_prefix("kept").unwrap().to_owned();
    match written {
        Written::Null => {
            assert!(text.is_empty());
            None
        }
        Written::Bytes => Some(text),
        Written::Waiting => panic!("it waits"),
    }
}

fn error(schema: Schema, value: Value) -> String {
    let mut out = b"kept".to_vec();
    let error = converter(true).convert(&"t".into(), Some(&Arc::new(schema)), &value, &mut out).unwrap_err();
    assert_eq!(out, b"kept", "a failure leaves the buffer as it was");
    error.message
}

/// CNV-01: which of schema and value being null gives a Kafka null, with and without schemas.
#[test]
fn cnv_01_tombstones_and_nulls() {
    let optional = || Datum::new(Arc::new(Schema::string().optional()), Value::Null);
    let free = Datum { schema: None, value: Value::text("x") };
    for schemas in [true, false] {
        assert_eq!(text(&mut converter(schemas), &Datum::none()), None);
    }
    assert_eq!(
        text(&mut converter(true), &optional()).unwrap(),
        r#"{"schema":{"type":"string","optional":true},"payload":null}"#
    );
    assert_eq!(text(&mut converter(false), &optional()).unwrap(), "null");
    assert_eq!(text(&mut converter(true), &free).unwrap(), r#"{"schema":null,"payload":"x"}"#);
    assert_eq!(text(&mut converter(false), &free).unwrap(), r#""x""#);
    assert_eq!(
        error(Schema::string(), Value::Null),
        "Conversion error: null value for field that is required and has no default value"
    );
}

#[test]
fn schema_of_every_type() {
    for (schema, expected) in [
        (Schema::boolean(), r#"{"type":"boolean","optional":false}"#),
        (Schema::new(Type::Int8), r#"{"type":"int8","optional":false}"#),
        (Schema::new(Type::Int16), r#"{"type":"int16","optional":false}"#),
        (Schema::int32().optional(), r#"{"type":"int32","optional":true}"#),
        (Schema::int64(), r#"{"type":"int64","optional":false}"#),
        (Schema::new(Type::Float32), r#"{"type":"float","optional":false}"#),
        (Schema::new(Type::Float64), r#"{"type":"double","optional":false}"#),
        (Schema::string(), r#"{"type":"string","optional":false}"#),
        (Schema::bytes(), r#"{"type":"bytes","optional":false}"#),
        (
            Schema::array(Schema::string().optional()).optional(),
            r#"{"type":"array","items":{"type":"string","optional":true},"optional":true}"#,
        ),
        (
            Schema::map(Schema::string(), Schema::int64().optional()),
            r#"{"type":"map","keys":{"type":"string","optional":false},"values":{"type":"int64","optional":true},"optional":false}"#,
        ),
        (
            Schema::int64()
                .named("io.debezium.time.NanoTimestamp")
                .versioned(1)
                .documented("when \"made\"")
                .parameter("b", "2")
                .parameter("a", "é\n")
                .defaulting(Value::Int64(0)),
            "{\"type\":\"int64\",\"optional\":false,\"name\":\"io.debezium.time.NanoTimestamp\",\"version\":1,\
             \"doc\":\"when \\\"made\\\"\",\"parameters\":{\"b\":\"2\",\"a\":\"é\\n\"},\"default\":0}",
        ),
        (Schema::record::<&str, Schema>([]), r#"{"type":"struct","fields":[],"optional":false}"#),
    ] {
        assert_eq!(schema_json(&schema, DecimalFormat::Base64).unwrap(), expected);
        assert_eq!(schema_json(&schema, DecimalFormat::Base64).unwrap(), expected, "from the cache");
        assert!(serde_json::from_str::<serde_json::Value>(expected).is_ok());
    }
}

fn product() -> Schema {
    Schema::record([
        ("id", Schema::int32()),
        ("name", Schema::string().optional()),
        (
            "price",
            Schema::bytes()
                .optional()
                .named("org.apache.kafka.connect.data.Decimal")
                .versioned(1)
                .parameter("scale", "2")
                .parameter("connect.decimal.precision", "10"),
        ),
        ("created", Schema::int64().named("io.debezium.time.NanoTimestamp").versioned(1).defaulting(Value::Int64(0))),
        ("tags", Schema::array(Schema::string().optional()).optional()),
        ("counts", Schema::map(Schema::string(), Schema::int64().optional()).optional()),
    ])
    .named("inventory.dbo.products.Value")
}

fn product_value() -> Value {
    Value::Struct(vec![
        Value::Int32(1),
        Value::Null,
        Value::Bytes(Bytes::from_static(&[100])),
        Value::Int64(1_700_000_000_000_000_000),
        Value::Array(vec![Value::text("a")]),
        Value::Map(vec![(Value::text("x"), Value::Int64(1))]),
    ])
}

#[test]
fn a_whole_row() {
    assert_eq!(
        json(true, product(), product_value()),
        concat!(
            r#"{"schema":{"type":"struct","fields":["#,
            r#"{"type":"int32","optional":false,"field":"id"},"#,
            r#"{"type":"string","optional":true,"field":"name"},"#,
            r#"{"type":"bytes","optional":true,"name":"org.apache.kafka.connect.data.Decimal","version":1,"parameters":{"scale":"2","connect.decimal.precision":"10"},"field":"price"},"#,
            r#"{"type":"int64","optional":false,"name":"io.debezium.time.NanoTimestamp","version":1,"default":0,"field":"created"},"#,
            r#"{"type":"array","items":{"type":"string","optional":true},"optional":true,"field":"tags"},"#,
            r#"{"type":"map","keys":{"type":"string","optional":false},"values":{"type":"int64","optional":true},"optional":true,"field":"counts"}],"#,
            r#""optional":false,"name":"inventory.dbo.products.Value"},"#,
            r#""payload":{"id":1,"name":null,"price":"ZA==","created":1700000000000000000,"tags":["a"],"counts":{"x":1}}}"#,
        )
    );
}

/// CNV-02, as far as the converter goes.
#[test]
fn cnv_02_decimal_formats() {
    let schema = || {
        Schema::bytes()
            .named("org.apache.kafka.connect.data.Decimal")
            .versioned(1)
            .parameter("scale", "4")
            .defaulting(Value::Bytes(Bytes::from_static(&[0])))
    };
    let value = Datum::new(Arc::new(schema()), Value::Bytes(Bytes::from_static(&[0x9C])));
    assert_eq!(
        text(&mut converter(true), &value).unwrap(),
        r#"{"schema":{"type":"bytes","optional":false,"name":"org.apache.kafka.connect.data.Decimal","version":1,"parameters":{"scale":"4"},"default":"AA=="},"payload":"nA=="}"#
    );
    let mut numeric = JsonConverter { decimals: DecimalFormat::Numeric, ..converter(true) };
    assert_eq!(
        text(&mut numeric, &value).unwrap(),
        r#"{"schema":{"type":"bytes","optional":false,"name":"org.apache.kafka.connect.data.Decimal","version":1,"parameters":{"scale":"4"},"default":0.0000},"payload":-0.0100}"#
    );
    let no_scale = Schema::bytes().named("org.apache.kafka.connect.data.Decimal");
    let refused = numeric.convert(
        &"t".into(),
        Some(&Arc::new(no_scale)),
        &Value::Bytes(Bytes::from_static(&[1])),
        &mut Vec::new(),
    );
    assert!(refused.unwrap_err().message.contains("no parameter scale"));
}

#[test]
fn payloads() {
    let free = |value| text(&mut converter(false), &Datum { schema: None, value }).unwrap();
    for (schema, value, expected) in [
        (Schema::boolean(), Value::Bool(true), "true"),
        (Schema::new(Type::Int8), Value::Int8(-128), "-128"),
        (Schema::new(Type::Int16), Value::Int16(300), "300"),
        (Schema::int64(), Value::Int64(i64::MIN), "-9223372036854775808"),
        (Schema::new(Type::Float32), Value::Float32(0.1), "0.1"),
        (Schema::new(Type::Float64), Value::Float64(1e10), "1.0E10"),
        (Schema::new(Type::Float64), Value::Float64(100.0), "100.0"),
        (Schema::new(Type::Float64), Value::Float64(f64::NAN), "\"NaN\""),
        (Schema::new(Type::Float32), Value::Float32(f32::NEG_INFINITY), "\"-Infinity\""),
        (Schema::string(), Value::text("a\"\\/\u{1}\n"), "\"a\\\"\\\\/\\u0001\\n\""),
        (Schema::bytes(), Value::Bytes(Bytes::from_static(&[0xFB, 0xFF, 0x10, 0])), "\"+/8QAA==\""),
        (Schema::bytes(), Value::Bytes(Bytes::new()), "\"\""),
        (Schema::array(Schema::int32()), Value::Array(vec![]), "[]"),
        (Schema::map(Schema::string(), Schema::int32()), Value::Map(vec![]), "{}"),
        (Schema::map(Schema::int32(), Schema::int32()), Value::Map(vec![]), "[]"),
        (
            Schema::map(Schema::int32(), Schema::string()),
            Value::Map(vec![(Value::Int32(1), Value::text("a")), (Value::Int32(2), Value::text("b"))]),
            r#"[[1,"a"],[2,"b"]]"#,
        ),
        (Schema::record::<&str, Schema>([]), Value::Struct(vec![]), "{}"),
    ] {
        assert_eq!(json(false, schema, value.clone()), expected);
        if !matches!(value, Value::Map(_) | Value::Struct(_)) {
            assert_eq!(free(value), expected);
        }
    }
    assert_eq!(free(Value::Array(vec![Value::Null, Value::Int8(1)])), "[null,1]");
    assert_eq!(free(Value::Map(vec![(Value::text("a"), Value::Null)])), r#"{"a":null}"#);
    assert_eq!(
        free(Value::Map(vec![(Value::Int8(1), Value::text("x")), (Value::text("b"), Value::Null)])),
        r#"[[1,"x"],["b",null]]"#
    );
    assert_eq!(free(Value::Map(vec![])), "{}");
}

#[test]
fn defaults_in_place_of_nulls() {
    let schema = Arc::new(
        Schema::record([
            ("a", Schema::string().optional().defaulting(Value::text("d"))),
            ("b", Schema::int32().defaulting(Value::Int32(5))),
        ])
        .optional(),
    );
    let nulls = Datum::new(schema.clone(), Value::Struct(vec![Value::Null, Value::Null]));
    assert_eq!(text(&mut converter(false), &nulls).unwrap(), r#"{"a":"d","b":5}"#);
    let mut as_they_are = JsonConverter { default_for_null: false, ..converter(false) };
    let refused = as_they_are.convert_datum(&"t".into(), &nulls, &mut Vec::new()).unwrap_err();
    assert!(refused.message.ends_with("no default value (field b)"), "{}", refused.message);
    let one = Datum::new(schema, Value::Struct(vec![Value::Null, Value::Int32(1)]));
    assert_eq!(text(&mut as_they_are, &one).unwrap(), r#"{"a":null,"b":1}"#);
}

#[test]
fn errors_name_the_field_and_never_the_value() {
    let inner = Schema::array(Schema::record([("n", Schema::int64())]));
    let schema = Schema::record([("list", inner)]).named("s");
    let value = Value::Struct(vec![Value::Array(vec![
        Value::Struct(vec![Value::Int64(1)]),
        Value::Struct(vec![Value::text("secret")]),
    ])]);
    assert_eq!(error(schema, value), "Invalid type for INT64: string (field list.[1].n)");
    assert_eq!(
        error(product(), Value::Struct(vec![Value::Int32(1)])),
        "Mismatching schema: inventory.dbo.products.Value has 6 fields, the value 1"
    );
    assert_eq!(error(Schema::int32(), Value::Int64(1)), "Invalid type for INT32: 64-bit integer");
    let mut out = Vec::new();
    assert!(converter(false).convert(&"t".into(), None, &Value::Struct(vec![]), &mut out).is_err());
}

#[derive(Debug)]
struct Document;

impl RenderText for Document {
    fn render(&self, form: TextForm, out: &mut Vec<u8>) {
        match form {
            TextForm::Plain => out.extend_from_slice(br#"{"_id": 1}"#),
            TextForm::JsonEscaped => out.extend_from_slice(br#"{\"_id\": 1}"#),
        }
    }
}

/// A MongoDB change as Debezium 3.6.1 writes it with schemas (names and times replaced).
#[test]
fn a_change_event_as_recorded() {
    let json_text = envelope::json_text;
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
    let source = envelope::source_schema(
        "io.debezium.connector.mongo.Source",
        [
            ("collection", Schema::string()),
            ("ord", Schema::int32()),
            ("lsid", Schema::string().optional()),
            ("txnNumber", Schema::int64().optional()),
            ("wallTime", Schema::int64().optional()),
        ],
    );
    let schema = Schema::record([
        ("before", json_text()),
        ("after", json_text()),
        ("updateDescription", Arc::new(update)),
        ("source", Arc::new(source)),
        ("op", Arc::new(Schema::string().optional())),
        ("ts_ms", Arc::new(Schema::int64().optional())),
        ("transaction", envelope::transaction_block()),
    ])
    .named("p.d.c1.Envelope");
    let common = envelope::SourceCommon {
        version: Text::Static("3.6.1.Final"),
        connector: "mongodb",
        name: Text::Static("p"),
        time: envelope::SourceTime::from_millis(1_795_976_186_235),
        snapshot: envelope::SnapshotMarker::False,
        db: Text::Static("d"),
        sequence: None,
    };
    let mut source = common.values(5);
    source.extend([Value::text("c1"), Value::Int32(1), Value::Null, Value::Null, Value::Int64(1_795_976_186_235)]);
    let value = Value::Struct(vec![
        Value::Null,
        Value::String(Text::Lazy(Arc::new(Document))),
        Value::Null,
        Value::Struct(source),
        Value::text("c"),
        Value::Int64(1_795_976_186_271),
        Value::Null,
    ]);
    let expected = concat!(
        r#"{"schema":{"type":"struct","fields":[{"type":"string","optional":true,"name":"io.debezium.data.Json","version":1,"field":"before"},{"type":"string","optional":true,"name":"io.debezium.data.Json","version":1,"field":"after"},{"type":"struct","fields":[{"type":"array","items":{"type":"string","optional":false},"optional":true,"field":"removedFields"},{"type":"string","optional":true,"name":"io.debezium.data.Json","version":1,"field":"updatedFields"},{"type":"array","items":{"type":"struct","fields":[{"type":"string","optional":false,"field":"field"},{"type":"int32","optional":false,"field":"size"}],"optional":false,"name":"io.debezium.connector.mongodb.changestream.truncatedarray","version":1},"optional":true,"field":"truncatedArrays"}],"optional":true,"name":"io.debezium.connector.mongodb.changestream.updatedescription","version":1,"field":"updateDescription"},{"type":"struct","fields":[{"type":"string","optional":false,"field":"version"},{"type":"string","optional":false,"field":"connector"},{"type":"string","optional":false,"field":"name"},{"type":"int64","optional":false,"field":"ts_ms"},{"type":"string","optional":true,"name":"io.debezium.data.Enum","version":1,"parameters":{"allowed":"true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"},"default":"false","field":"snapshot"},{"type":"string","optional":false,"field":"db"},{"type":"string","optional":true,"field":"sequence"},{"type":"int64","optional":true,"field":"ts_us"},{"type":"int64","optional":true,"field":"ts_ns"},{"type":"string","optional":false,"field":"collection"},{"type":"int32","optional":false,"field":"ord"},{"type":"string","optional":true,"field":"lsid"},{"type":"int64","optional":true,"field":"txnNumber"},{"type":"int64","optional":true,"field":"wallTime"}],"optional":false,"name":"io.debezium.connector.mongo.Source","version":1,"field":"source"},{"type":"string","optional":true,"field":"op"},{"type":"int64","optional":true,"field":"ts_ms"},{"type":"struct","fields":[{"type":"string","optional":false,"field":"id"},{"type":"int64","optional":false,"field":"total_order"},{"type":"int64","optional":false,"field":"data_collection_order"}],"optional":true,"name":"event.block","version":1,"field":"transaction"}],"optional":false,"name":"p.d.c1.Envelope"},"#,
        r#""payload":{"before":null,"after":"{\"_id\": 1}","updateDescription":null,"source":{"version":"3.6.1.Final","connector":"mongodb","name":"p","ts_ms":1795976186235,"snapshot":"false","db":"d","sequence":null,"ts_us":1795976186235000,"ts_ns":1795976186235000000,"collection":"c1","ord":1,"lsid":null,"txnNumber":null,"wallTime":1795976186235},"op":"c","ts_ms":1795976186271,"transaction":null}}"#,
    );
    assert_eq!(json(true, schema, value), expected);
}

/// Arbitrary schemas with a value of each.
fn typed() -> impl Strategy<Value = (Schema, Value)> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(|b| (Schema::boolean(), Value::Bool(b))),
        any::<i64>().prop_map(|n| (Schema::int64(), Value::Int64(n))),
        // Doubles that a JSON reader without exact rounding reads exactly; `number` tests the others.
        prop_oneof![
            Just(f64::NAN),
            Just(f64::INFINITY),
            (-1_000_000_000..1_000_000_000i32).prop_map(|n| f64::from(n) / 8.0)
        ]
        .prop_map(|n| (Schema::new(Type::Float64), Value::Float64(n))),
        "(?s).{0,20}".prop_map(|s| (Schema::string(), Value::text(s))),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(|b| (Schema::bytes(), Value::Bytes(b.into()))),
        Just((Schema::string().optional(), Value::Null)),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(("(?s).{0,8}", inner.clone()), 0..5).prop_map(|fields| {
                let mut names = std::collections::HashSet::new();
                let (schemas, values): (Vec<_>, Vec<_>) = fields
                    .into_iter()
                    .filter(|(name, _)| names.insert(name.clone()))
                    .map(|(name, (schema, value))| ((name, schema), value))
                    .unzip();
                (Schema::record(schemas), Value::Struct(values))
            }),
            inner.prop_map(|(schema, value)| (Schema::array(schema), Value::Array(vec![value.clone(), value]))),
        ]
    })
}

/// What a JSON reader should see.
fn expected(schema: &Schema, value: &Value) -> serde_json::Value {
    use serde_json::Value as Json;
    match (value, &schema.ty) {
        (Value::Null, _) => Json::Null,
        (Value::Bool(b), _) => Json::Bool(*b),
        (Value::Int64(n), _) => Json::from(*n),
        (Value::Float64(n), _) => serde_json::Number::from_f64(*n).map_or_else(
            || {
                Json::from(match *n {
                    n if n.is_nan() => "NaN",
                    n if n > 0.0 => "Infinity",
                    _ => "-Infinity",
                })
            },
            Json::Number,
        ),
        (Value::String(text), _) => Json::from(text.as_str().into_owned()),
        (Value::Bytes(bytes), _) => Json::from(STANDARD.encode(bytes)),
        (Value::Array(values), Type::Array(items)) => values.iter().map(|v| expected(items, v)).collect(),
        (Value::Struct(values), Type::Struct(fields)) => {
            Json::Object(fields.iter().zip(values).map(|(f, v)| (f.name.to_string(), expected(&f.schema, v))).collect())
        }
        other => panic!("{other:?}"),
    }
}

proptest! {
    /// Whatever is written, a JSON reader finds the value again, in member order.
    #[test]
    fn reads_back((schema, value) in typed()) {
        let expected = expected(&schema, &value);
        let plain = json(false, schema.clone(), value.clone());
        prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&plain).unwrap().to_string(), expected.to_string());
        let wrapped = json(true, schema, value);
        let wrapped: serde_json::Value = serde_json::from_str(&wrapped).unwrap();
        prop_assert_eq!(wrapped["payload"].to_string(), expected.to_string());
        prop_assert_eq!(wrapped.as_object().unwrap().keys().collect::<Vec<_>>(), ["schema", "payload"]);
    }
}
