#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;

use crate::record::{Datum, Schema, Value};
use crate::transform::support::*;

const CLASS: &str = "org.apache.kafka.connect.transforms.HoistField$Value";

#[test]
fn wraps_whatever_there_is() {
    let mut chain = chain(CLASS, &[("field", "doc")]);
    let text = || Datum::new(Arc::new(Schema::string()), Value::text("x"));
    let out = value(&mut chain, text());
    assert_eq!(json(&out), r#"{"doc":"x"}"#);
    assert!(Arc::ptr_eq(out.schema.as_ref().unwrap(), value(&mut chain, text()).schema.as_ref().unwrap()));
    let lazy = Datum::new(Arc::new(Schema::string()), untouched());
    assert!(matches!(value(&mut chain, lazy).value, Value::Struct(_)));
    assert_eq!(json(&value(&mut chain, free(vec![]))), r#"{"doc":{}}"#);
    assert_eq!(json(&value(&mut chain, Datum::none())), r#"{"doc":null}"#);
    assert_eq!(json(&run(&mut chain, heartbeat()).unwrap().unwrap().value), r#"{"doc":{"ts_ms":5}}"#);
}
