#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;

use crate::record::{Datum, Record, Schema, Value};
use crate::transform::support::*;

const CLASS: &str = "org.apache.kafka.connect.transforms.InsertField$Value";
const ALL: &[(&str, &str)] = &[
    ("topic.field", "topic!"),
    ("partition.field", "part"),
    ("timestamp.field", "at?"),
    ("static.field", "site"),
    ("static.value", "eu"),
];

fn at(value: Datum) -> Record {
    Record { timestamp: Some(7), partition: Some(3), ..record(value) }
}

#[test]
fn with_a_schema() {
    let mut chain = chain(CLASS, ALL);
    let row = || held(vec![("a", Schema::string(), untouched())]);
    let out = run(&mut chain, at(row())).unwrap().unwrap().value;
    let schema = out.schema.unwrap();
    let names: Vec<_> = schema.fields().iter().map(|f| (&*f.name, f.schema.optional)).collect();
    assert_eq!(names, [("a", false), ("topic", false), ("part", true), ("at", true), ("site", true)]);
    assert_eq!(schema.fields()[3].schema.name.as_deref(), Some("org.apache.kafka.connect.data.Timestamp"));
    let Value::Struct(values) = out.value else { panic!() };
    assert_eq!(values[1..], [Value::text("top"), Value::Int32(3), Value::Int64(7), Value::text("eu")]);
    let plain = run(&mut chain, record(row())).unwrap().unwrap().value;
    assert!(Arc::ptr_eq(&schema, plain.schema.as_ref().unwrap()));
    let Value::Struct(values) = plain.value else { panic!() };
    assert_eq!(values[2..4], [Value::Null, Value::Null]);
}

#[test]
fn without_a_schema() {
    let mut chain = chain(CLASS, ALL);
    let out = run(&mut chain, at(free(vec![("site", Value::Null)]))).unwrap().unwrap().value;
    assert_eq!(json(&out), r#"{"site":"eu","topic":"top","part":3,"at":7}"#);
    assert_eq!(json(&value(&mut chain, free(vec![]))), r#"{"topic":"top","site":"eu"}"#);
}

#[test]
fn nulls_pass_and_keys_of_tombstones_grow() {
    let mut values = chain(CLASS, ALL);
    assert!(value(&mut values, Datum::none()).is_none());
    let mut keys = chain("InsertField$Key", &[("static.field", "f"), ("static.value", "v")]);
    let tombstone = Record { key: free(vec![("id", Value::Int32(1))]), ..record(Datum::none()) };
    let out = run(&mut keys, tombstone).unwrap().unwrap();
    assert_eq!(json(&out.key), r#"{"id":1,"f":"v"}"#);
    assert!(out.value.is_none());
    assert_eq!(json(&run(&mut keys, heartbeat()).unwrap().unwrap().key), r#"{"serverName":"s","f":"v"}"#);
}

#[test]
fn what_is_refused() {
    let mut chain = chain(CLASS, ALL);
    let twice = held(vec![("site", Schema::string(), Value::text("hidden"))]);
    assert!(refusal(&mut chain, twice).ends_with("duplication site"));
    let text = Datum { schema: None, value: Value::text("hidden") };
    assert!(refusal(&mut chain, text).contains("[field insertion], found: string"));
}
