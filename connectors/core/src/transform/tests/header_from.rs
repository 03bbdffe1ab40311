#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;

use crate::record::{Datum, Header, Headers, Record, Schema, Value};
use crate::transform::support::*;

const CLASS: &str = "org.apache.kafka.connect.transforms.HeaderFrom$Value";

fn row() -> Datum {
    held(vec![
        ("a", Schema::int32(), Value::Int32(1)),
        ("doc", Schema::string(), untouched()),
        ("b", Schema::string().optional().defaulting(Value::text("d")), Value::Null),
    ])
}

fn names(headers: &Headers) -> Vec<(&str, &Value)> {
    headers.iter().map(|h| (&*h.name, &h.value)).collect()
}

fn header(name: &str, value: Value) -> Header {
    Header { name: name.into(), schema: None, value }
}

#[test]
fn fields_are_moved_or_copied() {
    let mut moves = chain(CLASS, &[("fields", "b,a"), ("headers", "hb,ha"), ("operation", "move")]);
    let out = run(&mut moves, record(row())).unwrap().unwrap();
    assert_eq!(names(&out.headers), [("hb", &Value::text("d")), ("ha", &Value::Int32(1))]);
    assert_eq!(out.headers[1].schema.as_deref(), Some(&Schema::int32()));
    let schema = out.value.schema.unwrap();
    assert_eq!(schema.fields().len(), 1);
    let again = run(&mut moves, record(row())).unwrap().unwrap();
    assert!(Arc::ptr_eq(&schema, again.value.schema.as_ref().unwrap()));
    let mut copies = chain(CLASS, &[("fields", "a"), ("headers", "ha"), ("operation", "copy")]);
    let out = run(&mut copies, record(row())).unwrap().unwrap();
    assert_eq!(names(&out.headers), [("ha", &Value::Int32(1))]);
    assert_eq!(out.value.schema.unwrap().fields().len(), 3);
}

#[test]
fn without_a_schema() {
    let mut moves = chain(CLASS, &[("fields", "a,x"), ("headers", "h,h"), ("operation", "move")]);
    let given = free(vec![("a", Value::Int32(1)), ("b", Value::Int32(2))]);
    let before = Arc::new(vec![header("h", Value::Bool(true))]);
    let out = run(&mut moves, Record { headers: before, ..record(given) }).unwrap().unwrap();
    let expected = [("h", &Value::Bool(true)), ("h", &Value::Int32(1)), ("h", &Value::Null)];
    assert_eq!(names(&out.headers), expected);
    assert_eq!(json(&out.value), r#"{"b":2}"#);
}

#[test]
fn what_is_refused() {
    let mut chain = chain(CLASS, &[("fields", "x"), ("headers", "h"), ("operation", "copy")]);
    assert!(refusal(&mut chain, row()).ends_with("Field does not exist: x"));
    assert!(refusal(&mut chain, Datum::none()).contains("found: null"));
    assert!(refused(&mut chain, heartbeat()).ends_with("Field does not exist: x"));
}

#[test]
fn constant_headers_and_dropped_ones() {
    let mut insert = chain("InsertHeader", &[("header", "origin"), ("value.literal", "7")]);
    let shared = Arc::new(vec![header("a", Value::Null), header("b", Value::Null), header("a", Value::Null)]);
    let with = |value| Record { headers: shared.clone(), ..record(value) };
    let first = run(&mut insert, with(Datum::none())).unwrap().unwrap();
    assert_eq!(first.headers[3].value, Value::Int8(7));
    let second = run(&mut insert, with(row())).unwrap().unwrap();
    assert!(Arc::ptr_eq(&first.headers, &second.headers), "one list for records of one list");
    let mut drop = chain("org.apache.kafka.connect.transforms.DropHeaders", &[("headers", "a,z")]);
    let out = run(&mut drop, with(Datum::none())).unwrap().unwrap();
    assert_eq!(names(&out.headers), [("b", &Value::Null)]);
    assert!(run(&mut drop, heartbeat()).unwrap().unwrap().headers.is_empty());
}

#[test]
fn topics_by_time() {
    let mut router =
        chain("TimestampRouter", &[("topic.format", "${topic}.${timestamp}"), ("timestamp.format", "yyyy-MM")]);
    let at = |timestamp| Record { timestamp, ..record(Datum::none()) };
    for (millis, topic) in [(0, "top.1970-01"), (1, "top.1970-01"), (1_700_000_000_000, "top.2023-11")] {
        assert_eq!(&*run(&mut router, at(Some(millis))).unwrap().unwrap().topic, topic);
    }
    assert!(refused(&mut router, at(None)).ends_with("Timestamp missing on record"));
    let mut plain = chain("TimestampRouter", &[]);
    assert_eq!(&*run(&mut plain, at(Some(0))).unwrap().unwrap().topic, "top-19700101");
}
