#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;

use crate::record::{Datum, Schema, Value};
use crate::transform::support::*;

fn keyed(options: &[(&str, &str)]) -> crate::transform::Chain {
    chain("org.apache.kafka.connect.transforms.ValueToKey", options)
}

fn row() -> Datum {
    held(vec![
        ("a", Schema::int32(), Value::Int32(1)),
        ("doc", Schema::string(), untouched()),
        ("b", Schema::string().optional().defaulting(Value::text("d")), Value::Null),
    ])
}

#[test]
fn with_a_schema() {
    let mut chain = keyed(&[("fields", "b,a")]);
    let out = run(&mut chain, record(row())).unwrap().unwrap();
    assert_eq!(json(&out.key), r#"{"b":"d","a":1}"#);
    let schema = out.key.schema.unwrap();
    assert_eq!((schema.name.as_deref(), schema.optional), (None, false));
    let again = run(&mut chain, record(row())).unwrap().unwrap();
    assert!(Arc::ptr_eq(&schema, again.key.schema.as_ref().unwrap()));
    let mut plain = keyed(&[("fields", "b"), ("replace.null.with.default", "false")]);
    assert_eq!(json(&run(&mut plain, record(row())).unwrap().unwrap().key), r#"{"b":null}"#);
}

#[test]
fn without_a_schema() {
    let mut chain = keyed(&[("fields", "a,x")]);
    let out = run(&mut chain, record(free(vec![("a", Value::Int32(1))]))).unwrap().unwrap();
    assert_eq!(json(&out.key), r#"{"a":1,"x":null}"#);
}

#[test]
fn what_is_refused() {
    let mut chain = keyed(&[("fields", "x")]);
    assert!(refusal(&mut chain, row()).ends_with("Field does not exist: x"));
    assert!(refusal(&mut chain, Datum::none()).ends_with("[copying fields from value to key], found: null"));
    assert!(refused(&mut chain, heartbeat()).ends_with("Field does not exist: x"));
    let null = Datum::new(Arc::new(Schema::record([("x", Schema::int32())]).optional()), Value::Null);
    assert!(refusal(&mut chain, null).contains("found: null"));
}
