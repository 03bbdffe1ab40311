#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;

use crate::record::{Datum, Schema, Value};
use crate::transform::support::*;

const CLASS: &str = "org.apache.kafka.connect.transforms.ExtractField$Value";

fn inner() -> Schema {
    let with_default = Schema::string().optional().defaulting(Value::text("d"));
    Schema::record([("x.y", Schema::string()), ("n", with_default)]).optional()
}

fn nested(value: Value) -> Datum {
    held(vec![("a", Schema::int32(), Value::Int32(1)), ("o", inner(), value)])
}

fn object() -> Value {
    Value::Struct(vec![untouched(), Value::Null])
}

#[test]
fn with_a_schema() {
    let mut first = chain(CLASS, &[("field", "a")]);
    let out = value(&mut first, nested(object()));
    assert_eq!(out, Datum::new(Arc::new(Schema::int32()), Value::Int32(1)));
    let mut deep = chain(CLASS, &[("field", "o.`x.y`"), ("field.syntax.version", "V2")]);
    assert!(matches!(value(&mut deep, nested(object())).value, Value::String(_)));
    assert!(value(&mut deep, nested(Value::Null)).value.is_null());
    let mut filled = chain(CLASS, &[("field", "o.n"), ("field.syntax.version", "V2")]);
    assert_eq!(value(&mut filled, nested(object())).value, Value::text("d"));
    let mut plain =
        chain(CLASS, &[("field", "o.n"), ("field.syntax.version", "V2"), ("replace.null.with.default", "false")]);
    assert!(value(&mut plain, nested(object())).value.is_null());
}

#[test]
fn the_schema_is_the_field_s_own() {
    let mut chain = chain(CLASS, &[("field", "o")]);
    let row = nested(object());
    let own = row.schema.as_ref().unwrap().fields()[1].schema.clone();
    let out = value(&mut chain, row);
    assert!(Arc::ptr_eq(&own, out.schema.as_ref().unwrap()));
}

#[test]
fn without_a_schema() {
    let mut chain_a = chain(CLASS, &[("field", "a")]);
    assert_eq!(value(&mut chain_a, free(vec![("a", Value::Int32(1))])).value, Value::Int32(1));
    assert!(value(&mut chain_a, free(vec![])).value.is_null());
    let mut deep = chain(CLASS, &[("field", "o.x"), ("field.syntax.version", "V2")]);
    assert_eq!(value(&mut deep, free(vec![("o", map(vec![("x", Value::Bool(true))]))])).value, Value::Bool(true));
    assert!(value(&mut deep, free(vec![("o", Value::Null)])).value.is_null());
    assert!(value(&mut deep, free(vec![])).value.is_null());
    let refused = refusal(&mut deep, free(vec![("o", Value::Int32(1))]));
    assert!(refused.contains("in absence of schema for [nested field access]"), "{refused}");
}

#[test]
fn nulls_stay_null() {
    let mut chain = chain(CLASS, &[("field", "a")]);
    assert!(value(&mut chain, Datum::none()).is_none());
    let null = Datum { value: Value::Null, ..nested(object()) };
    let out = value(&mut chain, null);
    assert!(out.value.is_null() && out.schema.is_some());
}

#[test]
fn what_is_refused() {
    let mut chain = chain(CLASS, &[("field", "o.zzz"), ("field.syntax.version", "V2")]);
    assert!(refusal(&mut chain, nested(object())).ends_with("Unknown field: o.zzz"));
    assert!(refused(&mut chain, heartbeat()).ends_with("Unknown field: o.zzz"));
    let text = Datum::new(Arc::new(Schema::string()), Value::text("hidden"));
    assert!(refusal(&mut chain, text).ends_with("[field extraction], found: string"));
}
