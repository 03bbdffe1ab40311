#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;

use bytes::Bytes;

use crate::record::{Datum, Schema, Type, Value};
use crate::transform::support::*;

const CLASS: &str = "org.apache.kafka.connect.transforms.MaskField$Value";

fn decimal() -> Schema {
    Schema::bytes().named("org.apache.kafka.connect.data.Decimal").versioned(1).parameter("scale", "2")
}

fn row() -> Datum {
    held(vec![
        ("i", Schema::int32(), Value::Int32(5)),
        ("s", Schema::string(), untouched()),
        ("d", decimal(), Value::Bytes(Bytes::from_static(&[9]))),
        ("f", Schema::new(Type::Float64).optional(), Value::Null),
        ("kept", Schema::string(), untouched()),
    ])
}

#[test]
fn zeros() {
    let mut chain = chain(CLASS, &[("fields", "i,s,d,f,absent")]);
    let given = row();
    let schema = given.schema.clone().unwrap();
    let out = value(&mut chain, given);
    assert!(Arc::ptr_eq(&schema, out.schema.as_ref().unwrap()));
    let Value::Struct(values) = out.value else { panic!() };
    assert_eq!(values[..4], [Value::Int32(0), Value::text(""), Value::Bytes(Bytes::from_static(&[0])), Value::Null]);
    let pairs = vec![("i", Value::Int64(3)), ("s", Value::Array(vec![Value::Null])), ("f", Value::Bool(true))];
    let out = value(&mut chain, free(pairs));
    assert_eq!(json(&out), r#"{"i":0,"s":[],"f":false,"d":null,"absent":null}"#);
}

#[test]
fn replacements() {
    let mut numbers = chain(CLASS, &[("fields", "i,d,f"), ("replacement", "7")]);
    let Value::Struct(values) = value(&mut numbers, row()).value else { panic!() };
    assert_eq!(values[0], Value::Int32(7));
    assert_eq!(values[2], Value::Bytes(Bytes::copy_from_slice(&700i16.to_be_bytes())));
    let mut text = chain(CLASS, &[("fields", "s"), ("replacement", "***")]);
    let Value::Struct(values) = value(&mut text, row()).value else { panic!() };
    assert_eq!(values[1], Value::text("***"));
}

#[test]
fn numbers_are_read_as_decimals() {
    let masked = |given: Value, text: &str| {
        let mut chain = chain(CLASS, &[("fields", "n"), ("replacement", text)]);
        let Value::Map(pairs) = value(&mut chain, free(vec![("n", given)])).value else { panic!() };
        pairs[0].1.clone()
    };
    for (given, text, expected) in [
        (Value::Int32(9), "1.5", Value::Int32(1)),
        (Value::Int32(9), "1e3", Value::Int32(1000)),
        (Value::Int32(9), "-1.9", Value::Int32(-1)),
        (Value::Int8(9), "300", Value::Int8(44)),
        (Value::Int16(9), "65537", Value::Int16(1)),
        (Value::Int64(9), "18446744073709551617", Value::Int64(1)),
        (Value::Float32(9.0), " 1.5 ", Value::Float32(1.5)),
        (Value::Float64(9.0), "1e3", Value::Float64(1000.0)),
    ] {
        assert_eq!(masked(given, text), expected, "{text}");
    }
    for text in ["nan", "inf", "1x"] {
        let mut chain = chain(CLASS, &[("fields", "n"), ("replacement", text)]);
        assert!(refusal(&mut chain, free(vec![("n", Value::Float64(1.0))])).contains("Unable to convert"), "{text}");
    }
}

#[test]
fn what_is_refused() {
    let mut text = chain(CLASS, &[("fields", "i"), ("replacement", "***")]);
    assert!(refusal(&mut text, row()).ends_with("Unable to convert *** to 32-bit integer (field i)"));
    assert!(refusal(&mut text, free(vec![("i", Value::Bool(true))])).contains("custom replacement (field i)"));
    let mut zero = chain(CLASS, &[("fields", "b")]);
    let bytes = free(vec![("b", Value::Bytes(Bytes::from_static(b"hidden")))]);
    assert!(refusal(&mut zero, bytes).ends_with("Cannot mask value of type: bytes (field b)"));
    assert!(refusal(&mut zero, Datum::none()).ends_with("[mask fields], found: null"));
    assert_eq!(json(&run(&mut zero, heartbeat()).unwrap().unwrap().value), r#"{"ts_ms":5}"#);
}
