#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;

use proptest::prelude::*;

use crate::record::{Datum, Schema, Value};
use crate::transform::support::*;
use crate::transform::{Chain, schemas};

const CLASS: &str = "org.apache.kafka.connect.transforms.TimestampConverter$Value";
const INSTANT: i64 = 1_700_000_000_123;
const FORMAT: (&str, &str) = ("format", "yyyy-MM-dd'T'HH:mm:ss.SSS");

fn converter(target: &str, more: &[(&str, &str)]) -> Chain {
    chain(CLASS, &[&[("target.type", target)], more].concat())
}

#[test]
fn every_kind_into_every_other() {
    let text = "2023-11-14T22:13:20.123";
    let day = 19_675;
    let held = [
        (schemas::timestamp(false), Value::Int64(INSTANT)),
        (schemas::int64(false), Value::Int64(INSTANT)),
        (schemas::string(false), Value::text(text)),
    ];
    for (schema, given) in held {
        let to = |target| value(&mut converter(target, &[FORMAT]), Datum::new(schema.clone(), given.clone()));
        assert_eq!(to("string"), Datum::new(schemas::string(false), Value::text(text)));
        assert_eq!(to("unix"), Datum::new(schemas::int64(false), Value::Int64(INSTANT)));
        assert_eq!(to("Timestamp"), Datum::new(schemas::timestamp(false), Value::Int64(INSTANT)));
        assert_eq!(to("Date"), Datum::new(schemas::date(false), Value::Int32(day)));
        assert_eq!(to("Time"), Datum::new(schemas::time(false), Value::Int32(80_000_123)));
    }
    let date = Datum::new(schemas::date(true), Value::Int32(-1));
    let out = value(&mut converter("string", &[FORMAT]), date);
    assert_eq!(out, Datum::new(schemas::string(true), Value::text("1969-12-31T00:00:00.000")));
    let time = Datum::new(schemas::time(false), Value::Int32(5));
    assert_eq!(value(&mut converter("unix", &[]), time).value, Value::Int64(5));
}

#[test]
fn units_of_numbers() {
    for (unit, number) in [
        ("seconds", 1_700_000_000i64),
        ("milliseconds", 1_700_000_000_000),
        ("microseconds", 1_700_000_000_000_000),
        ("nanoseconds", 1_700_000_000_000_000_000),
    ] {
        let unit = [("unix.precision", unit)];
        let out = value(&mut converter("Timestamp", &unit), Datum::new(schemas::int64(false), Value::Int64(number)));
        assert_eq!(out.value, Value::Int64(1_700_000_000_000));
        assert_eq!(value(&mut converter("unix", &unit), out).value, Value::Int64(number));
    }
}

#[test]
fn a_field_of_a_struct() {
    let row = || {
        held(vec![
            (
                "at",
                Schema::int64().named("org.apache.kafka.connect.data.Timestamp").versioned(1).optional(),
                Value::Int64(0),
            ),
            ("kept", Schema::string(), untouched()),
        ])
    };
    let mut chain = converter("string", &[FORMAT, ("field", "at")]);
    let out = value(&mut chain, row());
    let Value::Struct(values) = &out.value else { panic!() };
    assert_eq!(values[0], Value::text("1970-01-01T00:00:00.000"));
    let schema = out.schema.unwrap();
    assert_eq!(*schema.fields()[0].schema, Schema::string().optional());
    assert_eq!(schema.name.as_deref(), Some("row"));
    assert!(Arc::ptr_eq(&schema, value(&mut chain, row()).schema.as_ref().unwrap()));
    let mut null = row();
    null.value = Value::Struct(vec![Value::Null, Value::text("x")]);
    assert_eq!(json(&value(&mut chain, null)), r#"{"at":null,"kept":"x"}"#);
    let mut other = converter("string", &[FORMAT, ("field", "absent")]);
    assert!(matches!(value(&mut other, row()).value, Value::Struct(_)));
}

#[test]
fn a_field_further_down() {
    let inner = Schema::record([("at", schemas::int64(false))]).optional();
    let mut chain = converter("Timestamp", &[("field", "o.at"), ("field.syntax.version", "V2")]);
    let out = value(&mut chain, held(vec![("o", inner.clone(), Value::Struct(vec![Value::Int64(1)]))]));
    let object = out.schema.as_ref().unwrap().fields()[0].schema.clone();
    assert!(object.optional);
    assert_eq!(object.fields()[0].schema, schemas::timestamp(false));
    assert_eq!(json(&out), r#"{"o":{"at":1}}"#);
    assert_eq!(json(&value(&mut chain, held(vec![("o", inner, Value::Null)]))), r#"{"o":null}"#);
    let free_out = value(&mut chain, free(vec![("o", map(vec![("at", Value::Int64(1))]))]));
    assert_eq!(json(&free_out), r#"{"o":{"at":1}}"#);
}

#[test]
fn without_a_schema() {
    let mut chain = converter("string", &[FORMAT, ("field", "at")]);
    let out = value(&mut chain, free(vec![("at", Value::Int64(0))]));
    assert_eq!(json(&out), r#"{"at":"1970-01-01T00:00:00.000"}"#);
    assert_eq!(json(&value(&mut chain, free(vec![]))), r#"{"at":null}"#);
    let whole = Datum { schema: None, value: Value::Int64(0) };
    assert_eq!(value(&mut converter("Date", &[]), whole).value, Value::Int32(0));
}

#[test]
fn nulls_and_other_records_pass() {
    let mut field = converter("string", &[FORMAT, ("field", "at")]);
    assert!(value(&mut field, Datum::none()).is_none());
    assert_eq!(json(&run(&mut field, heartbeat()).unwrap().unwrap().value), r#"{"ts_ms":5}"#);
    let mut whole = converter("unix", &[]);
    assert!(value(&mut whole, Datum::none()).is_none());
    let null = value(&mut whole, Datum::new(schemas::timestamp(true), Value::Null));
    assert_eq!(null, Datum::new(schemas::int64(true), Value::Null));
}

#[test]
fn what_is_refused() {
    let mut text = converter("unix", &[FORMAT, ("field", "at")]);
    let message = refusal(&mut text, free(vec![("at", Value::text("hidden"))]));
    assert!(message.ends_with("the text does not fit the format of timestamps (field at)"), "{message}");
    let mut no_format = converter("unix", &[("field", "at")]);
    assert!(refusal(&mut no_format, free(vec![("at", Value::text("hidden"))])).contains("no format"));
    let wrong = held(vec![("at", Schema::boolean(), Value::Bool(true))]);
    assert!(refusal(&mut text, wrong).contains("known timestamp type format (field at)"));
    assert!(refusal(&mut text, free(vec![("at", Value::Bool(true))])).contains("boolean as timestamps"));
    let mut far = converter("Date", &[]);
    let far_away = Datum { schema: None, value: Value::Int64(i64::MAX) };
    assert!(refusal(&mut far, far_away).contains("too far away"));
}

proptest! {
    #[test]
    fn times_go_to_text_and_back(millis in -62_135_596_800_000i64..253_402_300_800_000) {
        let given = Datum::new(schemas::timestamp(false), Value::Int64(millis));
        let text = value(&mut converter("string", &[FORMAT]), given.clone());
        prop_assert_eq!(value(&mut converter("Timestamp", &[FORMAT]), text), given);
    }
}
