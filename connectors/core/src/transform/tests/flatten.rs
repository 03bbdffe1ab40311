#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;

use crate::record::{Datum, Schema, Value};
use crate::transform::support::*;

const CLASS: &str = "org.apache.kafka.connect.transforms.Flatten$Value";

fn nested(value: Value) -> Datum {
    let deep = Schema::record([("z", Schema::string())]);
    let object = Schema::record([("x", Arc::new(Schema::int32())), ("y", Arc::new(deep))]).optional();
    held(vec![
        ("a", Schema::string(), untouched()),
        ("o", object, value),
        ("l", Schema::array(Schema::int32()), Value::Array(vec![Value::Int32(1)])),
    ])
}

fn object() -> Value {
    Value::Struct(vec![Value::Int32(1), Value::Struct(vec![Value::text("q")])])
}

#[test]
fn with_a_schema() {
    let mut chain = chain(CLASS, &[("delimiter", "/")]);
    let out = value(&mut chain, nested(object()));
    let schema = out.schema.unwrap();
    let fields: Vec<_> = schema.fields().iter().map(|f| (&*f.name, f.schema.optional)).collect();
    assert_eq!(fields, [("a", false), ("o/x", true), ("o/y/z", true), ("l", false)]);
    assert_eq!((schema.name.as_deref(), schema.version), (Some("row"), Some(2)));
    let Value::Struct(values) = out.value else { panic!() };
    assert_eq!(values[1..], [Value::Int32(1), Value::text("q"), Value::Array(vec![Value::Int32(1)])]);
    let out = value(&mut chain, nested(Value::Null));
    assert!(Arc::ptr_eq(&schema, out.schema.as_ref().unwrap()));
    let Value::Struct(values) = out.value else { panic!() };
    assert_eq!(values[1..3], [Value::Null, Value::Null]);
}

#[test]
fn defaults_of_parents_go_down() {
    let object = Schema::record([("x", Schema::int32())]).defaulting(Value::Struct(vec![Value::Int32(8)]));
    let mut chain = chain(CLASS, &[]);
    let out = value(&mut chain, held(vec![("o", object, Value::Struct(vec![Value::Int32(1)]))]));
    assert_eq!(out.schema.unwrap().fields()[0].schema.default, Some(Value::Int32(8)));
}

#[test]
fn without_a_schema() {
    let mut chain = chain(CLASS, &[]);
    let inner = map(vec![("x", Value::Int32(1)), ("y", map(vec![("z", Value::Null)]))]);
    let out = value(&mut chain, free(vec![("a", Value::Bool(true)), ("o", inner), ("e", map(vec![]))]));
    assert_eq!(json(&out), r#"{"a":true,"o.x":1,"o.y.z":null}"#);
}

#[test]
fn nulls_and_flat_records_pass() {
    let mut chain = chain(CLASS, &[]);
    assert!(value(&mut chain, Datum::none()).is_none());
    assert_eq!(json(&run(&mut chain, heartbeat()).unwrap().unwrap().value), r#"{"ts_ms":5}"#);
}

#[test]
fn what_is_refused() {
    let mut chain = chain(CLASS, &[]);
    let map = held(vec![("m", Schema::map(Schema::string(), Schema::string()), Value::Map(vec![]))]);
    assert!(refusal(&mut chain, map).ends_with("does not support MAP for record with schemas (for field m)"));
    let text = Datum::new(Arc::new(Schema::string()), Value::text("hidden"));
    assert!(refusal(&mut chain, text).ends_with("[flattening], found: string"));
    let inner = Schema::record([("b", Schema::int32())]);
    let twice =
        held(vec![("a.b", Schema::int32(), Value::Int32(1)), ("a", inner, Value::Struct(vec![Value::Int32(1)]))]);
    assert!(refusal(&mut chain, twice).ends_with("duplication a.b"));
}
