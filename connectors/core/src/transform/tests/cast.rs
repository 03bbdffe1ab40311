#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;

use crate::record::{Datum, Schema, Type, Value};
use crate::transform::support::*;

const CLASS: &str = "org.apache.kafka.connect.transforms.Cast$Value";

/// A value without a schema as another type.
fn whole(given: Value, target: &str) -> Value {
    value(&mut chain(CLASS, &[("spec", target)]), Datum { schema: None, value: given }).value
}

#[test]
fn numbers_as_java_narrows_them() {
    for (given, target, expected) in [
        (Value::Int32(300), "int8", Value::Int8(44)),
        (Value::Int64(-1), "int16", Value::Int16(-1)),
        (Value::Int64(1 << 40), "int32", Value::Int32(0)),
        (Value::Float64(1e20), "int64", Value::Int64(i64::MAX)),
        (Value::Float64(1e20), "int8", Value::Int8(-1)),
        (Value::Float64(-2.9), "int32", Value::Int32(-2)),
        (Value::Float64(f64::NAN), "int32", Value::Int32(0)),
        (Value::Int64(3), "float32", Value::Float32(3.0)),
        (Value::Float32(0.5), "float64", Value::Float64(0.5)),
        (Value::Int32(2), "boolean", Value::Bool(true)),
        (Value::Float64(0.5), "boolean", Value::Bool(false)),
        (Value::Bool(true), "int64", Value::Int64(1)),
        (Value::text("-12"), "int8", Value::Int8(-12)),
        (Value::text("+12"), "int64", Value::Int64(12)),
        (Value::text(" 1.5f "), "float64", Value::Float64(1.5)),
        (Value::text("TRUE"), "boolean", Value::Bool(true)),
        (Value::text("yes"), "boolean", Value::Bool(false)),
        (Value::Int8(7), "STRING", Value::text("7")),
        (Value::Float64(1e10), "string", Value::text("1.0E10")),
        (Value::Bool(false), "string", Value::text("false")),
        (Value::Bytes(Bytes::from_static(&[1, 2])), "string", Value::text("AQI=")),
        (Value::Null, "int8", Value::Null),
    ] {
        assert_eq!(whole(given.clone(), target), expected, "{given:?} {target}");
    }
    assert!(matches!(whole(untouched(), "string"), Value::String(_)));
}

fn logical(name: &str, base: Schema) -> Schema {
    base.named(format!("org.apache.kafka.connect.data.{name}")).versioned(1)
}

#[test]
fn fields_with_a_schema() {
    let decimal = logical("Decimal", Schema::bytes()).parameter("scale", "2");
    let row = || {
        held(vec![
            ("id", Schema::int64().optional().defaulting(Value::Int64(9)), Value::Null),
            ("at", logical("Timestamp", Schema::int64()), Value::Int64(0)),
            ("day", logical("Date", Schema::int32()), Value::Int32(1)),
            ("sum", decimal.clone(), Value::Bytes(Bytes::copy_from_slice(&1999i16.to_be_bytes()))),
            ("kept", Schema::string(), untouched()),
        ])
    };
    let mut chain_of = chain(CLASS, &[("spec", "id:string, at:string,day:int64,sum:int32,absent:int8")]);
    let out = value(&mut chain_of, row());
    let Value::Struct(values) = &out.value else { panic!() };
    let expected = [Value::text("9"), Value::text("1970-01-01T00:00:00.000Z"), Value::Int64(1), Value::Int32(19)];
    assert_eq!(values[..4], expected);
    let schema = out.schema.unwrap();
    assert_eq!(*schema.fields()[0].schema, Schema::string().optional().defaulting(Value::text("9")));
    assert_eq!(*schema.fields()[1].schema, Schema::string());
    assert_eq!((schema.name.as_deref(), schema.version), (Some("row"), Some(2)));
    assert!(Arc::ptr_eq(&schema, value(&mut chain_of, row()).schema.as_ref().unwrap()));
    let mut floats = chain(CLASS, &[("spec", "sum:float64"), ("replace.null.with.default", "false")]);
    let Value::Struct(values) = value(&mut floats, row()).value else { panic!() };
    assert_eq!((&values[0], &values[3]), (&Value::Null, &Value::Float64(19.99)));
}

#[test]
fn a_whole_logical_value_loses_its_name() {
    let mut chain = chain(CLASS, &[("spec", "string")]);
    let day = Datum::new(Arc::new(logical("Date", Schema::int32()).optional()), Value::Int32(0));
    assert_eq!(value(&mut chain, day), Datum::new(Arc::new(Schema::string().optional()), Value::text("1970-01-01")));
    let named = Datum::new(Arc::new(Schema::int32().named("n")), Value::Int32(0));
    assert_eq!(value(&mut chain, named).schema.unwrap().name.as_deref(), Some("n"));
}

#[test]
fn fields_without_a_schema() {
    let mut chain = chain(CLASS, &[("spec", "a:int8,b:string")]);
    let pairs = vec![("a", Value::text("3")), ("b", Value::Null), ("c", Value::Int32(1))];
    assert_eq!(json(&value(&mut chain, free(pairs))), r#"{"a":3,"b":null,"c":1}"#);
    assert_eq!(json(&value(&mut chain, free(vec![("b", Value::Int32(1))]))), r#"{"b":"1","a":null}"#);
    assert!(value(&mut chain, Datum::none()).is_none());
    assert_eq!(json(&run(&mut chain, heartbeat()).unwrap().unwrap().value), r#"{"ts_ms":5}"#);
}

#[test]
fn what_is_refused() {
    let mut chain_of = chain(CLASS, &[("spec", "a:int8")]);
    let refusal_of = |chain: &mut _, value| refusal(chain, free(vec![("a", value)]));
    assert!(refusal_of(&mut chain_of, Value::text("hidden")).ends_with("a string is no INT8 (field a)"));
    assert!(!refusal_of(&mut chain_of, Value::text("300")).contains("300"));
    assert!(refusal_of(&mut chain_of, Value::Array(vec![])).contains("casting from array (field a)"));
    assert!(refusal_of(&mut chain_of, Value::Bytes(Bytes::from_static(b"1"))).contains("casting from bytes"));
    let row = held(vec![("a", Schema::array(Schema::string()), Value::Array(vec![]))]);
    assert!(refusal(&mut chain_of, row).ends_with("(field a)"));
    let text = Datum::new(Arc::new(Schema::string()), Value::text("hidden"));
    assert!(refusal(&mut chain_of, text).ends_with("[cast types], found: string"));
    let mut floats = chain(CLASS, &[("spec", "a:float32")]);
    assert!(refusal_of(&mut floats, Value::text("inf")).contains("FLOAT32"));
}

proptest! {
    #[test]
    fn integers_go_to_text_and_back(n in any::<i64>()) {
        prop_assert_eq!(whole(whole(Value::Int64(n), "string"), "int64"), Value::Int64(n));
        prop_assert_eq!(whole(Value::Int64(n), "int16"), Value::Int16(n as i16));
    }

    #[test]
    fn any_text_casts_or_is_refused(text in "\\PC{0,12}", target in 0..7usize) {
        let target = ["int8", "int16", "int32", "int64", "float32", "float64", "boolean"][target];
        let mut chain = chain(CLASS, &[("spec", target)]);
        let schema = Arc::new(Schema::new(Type::String));
        let _ = run(&mut chain, record(Datum::new(schema, Value::text(text))));
    }
}
