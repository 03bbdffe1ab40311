#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use bytes::Bytes;

use super::*;
use crate::record::{Header, Headers, Text, Type};

fn bytes(converter: &mut dyn Converter, schema: Option<Schema>, value: Value) -> Result<Option<Vec<u8>>> {
    let mut out = vec![b'!'];
    let schema = schema.map(Arc::new);
    let written = converter.convert(&"t".into(), schema.as_ref(), &value, &mut out);
    assert_eq!(out.remove(0), b'!');
    match written {
        Ok(Written::Bytes) => Ok(Some(out)),
        Ok(Written::Waiting) => panic!("it waits"),
        Ok(Written::Null) => {
            assert!(out.is_empty());
            Ok(None)
        }
        Err(error) => {
            assert!(out.is_empty());
            Err(error)
        }
    }
}

fn text(converter: &mut dyn Converter, schema: Option<Schema>, value: Value) -> String {
    String::from_utf8(bytes(converter, schema, value).unwrap().unwrap()).unwrap()
}

fn nested() -> (Schema, Value) {
    let inner = Schema::record([("x", Schema::int32().optional()), ("t", Schema::string().optional())]);
    let schema = Schema::record([
        ("id", Schema::int32().optional()),
        ("none", Schema::string().optional()),
        ("inner", inner),
        ("list", Schema::array(Schema::string().optional())),
        ("map", Schema::map(Schema::string(), Schema::int64().optional())),
    ]);
    let value = Value::Struct(vec![
        Value::Int32(1),
        Value::Null,
        Value::Struct(vec![Value::Null, Value::text("a\"b")]),
        Value::Array(vec![Value::text("p"), Value::Null]),
        Value::Map(vec![(Value::text("k"), Value::Int64(2)), (Value::text("l"), Value::Null)]),
    ]);
    (schema, value)
}

fn logical(ty: Type, name: &str) -> Schema {
    Schema::new(ty).named(format!("org.apache.kafka.connect.data.{name}")).versioned(1)
}

#[test]
fn string_converter_writes_java_text() {
    let mut converter = StringConverter;
    let (schema, value) = nested();
    assert_eq!(
        text(&mut converter, Some(schema), value),
        r#"Struct{id=1,inner=Struct{t=a"b},list=[p, null],map={k=2, l=null}}"#
    );
    assert_eq!(text(&mut converter, Some(Schema::string()), Value::text("raw \"é\"")), "raw \"é\"");
    assert_eq!(text(&mut converter, None, Value::Float64(1e10)), "1.0E10");
    assert_eq!(text(&mut converter, None, Value::Bool(false)), "false");
    assert_eq!(text(&mut converter, None, Value::Bytes(Bytes::from_static(&[1]))), "AQ==");
    let decimal = logical(Type::Bytes, "Decimal").parameter("scale", "2");
    assert_eq!(text(&mut converter, Some(decimal), Value::Bytes(Bytes::from_static(&[100]))), "1.00");
    assert_eq!(
        text(&mut converter, Some(logical(Type::Int64, "Timestamp")), Value::Int64(1_700_000_000_123)),
        "Tue Nov 14 22:13:20 UTC 2023"
    );
    assert_eq!(bytes(&mut converter, Some(Schema::string().optional()), Value::Null).unwrap(), None);
    assert!(bytes(&mut converter, None, Value::Struct(vec![])).is_err());
}

#[test]
fn simple_header_converter_text() {
    let mut converter = SimpleHeaderConverter;
    let (schema, value) = nested();
    assert_eq!(
        text(&mut converter, Some(schema), value),
        r#"{"id":1,"none":null,"inner":{"x":null,"t":"a\"b"},"list":["p",null],"map":{"k":2,"l":null}}"#
    );
    assert_eq!(text(&mut converter, Some(Schema::string()), Value::text("a\"b\\c")), "a\"b\\c");
    assert_eq!(text(&mut converter, None, Value::Array(vec![Value::text("a\"b\\c")])), r#"["a\"b\\c"]"#);
    assert_eq!(text(&mut converter, None, Value::Bytes(Bytes::from_static(&[0xFB, 0xFF]))), "+/8=");
    assert_eq!(
        text(&mut converter, None, Value::Array(vec![Value::Bytes(Bytes::from_static(&[0xFB, 0xFF]))])),
        r#"["+/8="]"#
    );
    assert_eq!(text(&mut converter, None, Value::Int64(-7)), "-7");
    assert_eq!(text(&mut converter, None, Value::Float32(0.5)), "0.5");
    for (schema, value, expected) in [
        (logical(Type::Int32, "Date"), Value::Int32(19_675), "2023-11-14"),
        (logical(Type::Int32, "Date"), Value::Int32(0), "00:00:00.000Z"),
        (logical(Type::Int32, "Time"), Value::Int32(80_000_123), "22:13:20.123Z"),
        (logical(Type::Int64, "Timestamp"), Value::Int64(1_704_067_200_000), "2024-01-01"),
        (logical(Type::Int64, "Timestamp"), Value::Int64(1_700_000_000_123), "2023-11-14T22:13:20.123Z"),
        (logical(Type::Bytes, "Decimal").parameter("scale", "1"), Value::Bytes(Bytes::from_static(&[0xF4])), "-1.2"),
    ] {
        assert_eq!(text(&mut converter, Some(schema), value), expected);
    }
    assert_eq!(bytes(&mut converter, None, Value::Null).unwrap(), None);
}

#[test]
fn primitives_are_big_endian() {
    let convert = |kind, value| bytes(&mut PrimitiveConverter(kind), None, value);
    assert_eq!(convert(Primitive::Short, Value::Int16(258)).unwrap().unwrap(), [1, 2]);
    assert_eq!(convert(Primitive::Integer, Value::Int32(-2)).unwrap().unwrap(), [255, 255, 255, 254]);
    assert_eq!(convert(Primitive::Long, Value::Int64(1)).unwrap().unwrap(), [0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(convert(Primitive::Float, Value::Float32(1.0)).unwrap().unwrap(), [0x3F, 0x80, 0, 0]);
    assert_eq!(convert(Primitive::Double, Value::Float64(1.0)).unwrap().unwrap(), [0x3F, 0xF0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(convert(Primitive::Boolean, Value::Bool(true)).unwrap().unwrap(), [1]);
    assert_eq!(convert(Primitive::ByteArray, Value::Bytes(Bytes::from_static(b"ab"))).unwrap().unwrap(), b"ab");
    assert_eq!(convert(Primitive::Long, Value::Null).unwrap(), None);
    assert_eq!(
        convert(Primitive::Short, Value::Int32(1)).unwrap_err().message,
        "ShortConverter takes INT16 only, found 32-bit integer"
    );
}

#[test]
fn byte_array_and_boolean_check_the_schema() {
    for (kind, name) in [(Primitive::ByteArray, "ByteArrayConverter"), (Primitive::Boolean, "BooleanConverter")] {
        let error = bytes(&mut PrimitiveConverter(kind), Some(Schema::string().optional()), Value::Null).unwrap_err();
        assert_eq!(error.message, format!("Invalid schema type for {name}: STRING"));
    }
    let kept = bytes(&mut PrimitiveConverter(Primitive::ByteArray), Some(Schema::bytes().optional()), Value::Null);
    assert_eq!(kept.unwrap(), None);
}

#[test]
fn headers_are_encoded_once_per_list() {
    let topic = "t".into();
    let header = |name: &str, value| Header { name: name.into(), schema: None, value };
    let list: Headers =
        Arc::new(vec![header("a", Value::text("1")), header("a", Value::Null), header("b", Value::Int8(2))]);
    let mut encoder = HeaderEncoder::new(Box::new(SimpleHeaderConverter));
    let first = encoder.encode(&topic, &list).unwrap().clone();
    assert_eq!(*first, [("a".into(), Some(b"1".to_vec())), ("a".into(), None), ("b".into(), Some(b"2".to_vec()))]);
    assert!(Arc::ptr_eq(&first, encoder.encode(&topic, &list.clone()).unwrap()));
    assert!(encoder.encode(&topic, &Headers::default()).unwrap().is_empty());
    assert!(Arc::ptr_eq(&first, encoder.encode(&topic, &list).unwrap()));
    let other: Headers = Arc::new(vec![header("c", Value::String(Text::Static("x")))]);
    assert_eq!(encoder.encode(&topic, &other).unwrap()[0].0, "c".into());
    let bad: Headers = Arc::new(vec![header("h", Value::Struct(vec![]))]);
    assert!(encoder.encode(&topic, &bad).unwrap_err().message.starts_with("header h: "));
    assert_eq!(encoder.encode(&topic, &other).unwrap()[0].0, "c".into());
}
