#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;

use crate::record::{Datum, Schema, Value};
use crate::transform::support::*;

const CLASS: &str = "org.apache.kafka.connect.transforms.SetSchemaMetadata$Value";

#[test]
fn name_and_version_change_and_the_rest_stays() {
    let mut both = chain(CLASS, &[("schema.name", "my.Schema"), ("schema.version", "7")]);
    let row = || held(vec![("a", Schema::string(), untouched())]);
    let out = value(&mut both, row());
    let schema = out.schema.unwrap();
    assert_eq!((schema.name.as_deref(), schema.version), (Some("my.Schema"), Some(7)));
    assert_eq!(schema.ty, row().schema.unwrap().ty);
    assert!(Arc::ptr_eq(&schema, value(&mut both, row()).schema.as_ref().unwrap()));
    let mut version = chain(CLASS, &[("schema.version", "9")]);
    let text = Datum::new(Arc::new(Schema::string().optional().named("n").documented("d")), Value::Null);
    let out = value(&mut version, text).schema.unwrap();
    assert_eq!(*out, Schema::string().optional().named("n").documented("d").versioned(9));
}

#[test]
fn tombstones_pass_and_a_value_needs_a_schema() {
    let mut chain = chain(CLASS, &[("schema.name", "n")]);
    assert!(value(&mut chain, Datum::none()).is_none());
    assert!(run(&mut chain, heartbeat()).unwrap().is_some());
    assert!(refusal(&mut chain, free(vec![])).ends_with("Schema required for [updating schema metadata]"));
}
