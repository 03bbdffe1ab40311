#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;

use crate::record::{Datum, Schema, Value};
use crate::transform::support::*;

const CLASS: &str = "org.apache.kafka.connect.transforms.ReplaceField$Value";

fn row() -> Datum {
    held(vec![
        ("a", Schema::int32(), Value::Int32(1)),
        ("b", Schema::string().optional().defaulting(Value::text("d")), Value::Null),
        ("c", Schema::string(), untouched()),
        ("e", Schema::boolean(), Value::Bool(true)),
    ])
}

#[test]
fn with_a_schema() {
    let mut chain = chain(CLASS, &[("exclude", "c"), ("renames", "a:alpha, b:beta")]);
    let out = value(&mut chain, row());
    assert_eq!(json(&out), r#"{"alpha":1,"beta":"d","e":true}"#);
    let schema = out.schema.unwrap();
    assert_eq!((schema.name.as_deref(), schema.version, schema.optional), (Some("row"), Some(2), false));
    let again = value(&mut chain, row());
    assert!(Arc::ptr_eq(&schema, again.schema.as_ref().unwrap()), "an equal schema gives the same one");
}

#[test]
fn include_exclude_and_nulls() {
    let mut both = chain(CLASS, &[("include", "b,a,e"), ("exclude", "e"), ("replace.null.with.default", "false")]);
    assert_eq!(json(&value(&mut both, row())), r#"{"a":1,"b":null}"#);
    let mut nothing = chain(CLASS, &[("include", "zzz")]);
    assert_eq!(json(&value(&mut nothing, row())), "{}");
}

#[test]
fn without_a_schema() {
    let mut chain = chain(CLASS, &[("exclude", "c"), ("renames", "a:alpha")]);
    let pairs = vec![("a", Value::Int32(1)), ("c", untouched()), ("d", untouched())];
    let Value::Map(pairs) = value(&mut chain, free(pairs)).value else { panic!() };
    assert_eq!(pairs.len(), 2);
    assert_eq!(pairs[0], (Value::text("alpha"), Value::Int32(1)));
    assert!(matches!(&pairs[1].0, Value::String(name) if name.as_str() == "d"));
}

#[test]
fn renames_are_read_as_java_splits() {
    let mut chain = chain(CLASS, &[("renames", "a:alpha:,d : x")]);
    let pairs = vec![("a", Value::Int32(1)), ("d", Value::Int32(2)), ("d ", Value::Int32(3))];
    assert_eq!(json(&value(&mut chain, free(pairs))), r#"{"alpha":1,"d":2," x":3}"#);
}

#[test]
fn nulls_and_other_records_pass() {
    let mut chain = chain(CLASS, &[("exclude", "c"), ("renames", "a:alpha")]);
    assert!(value(&mut chain, Datum::none()).is_none());
    let null = Datum::new(Arc::new(Schema::record([("a", Schema::int32())]).optional()), Value::Null);
    assert_eq!(value(&mut chain, null.clone()), null);
    assert_eq!(json(&run(&mut chain, heartbeat()).unwrap().unwrap().value), r#"{"ts_ms":5}"#);
}

#[test]
fn what_is_refused() {
    let mut chain = chain(CLASS, &[("renames", "a:e")]);
    assert!(refusal(&mut chain, row()).ends_with("Cannot create field because of field name duplication e"));
    let clash = free(vec![("a", Value::Int32(1)), ("e", Value::Int32(2))]);
    assert!(refusal(&mut chain, clash).ends_with("two fields would have the name e"));
    let text = Datum::new(Arc::new(Schema::string()), Value::text("hidden"));
    assert!(
        refusal(&mut chain, text).ends_with("Only Struct objects supported for [field replacement], found: string")
    );
    let free_text = Datum { schema: None, value: Value::text("hidden") };
    assert!(refusal(&mut chain, free_text).contains("Only Map objects supported in absence of schema"));
    let short = Datum::new(row().schema.unwrap(), Value::Struct(vec![Value::Null]));
    assert!(refusal(&mut chain_of_nothing(), short).contains("Mismatching schema"));
}

fn chain_of_nothing() -> crate::transform::Chain {
    chain(CLASS, &[])
}

#[test]
fn the_key() {
    let mut chain = chain("ReplaceField$Key", &[("renames", "serverName:server")]);
    let out = run(&mut chain, heartbeat()).unwrap().unwrap();
    assert_eq!((json(&out.key).as_str(), json(&out.value).as_str()), (r#"{"server":"s"}"#, r#"{"ts_ms":5}"#));
}

#[test]
fn older_names_of_the_options() {
    let mut chain = chain(CLASS, &[("blacklist", "c"), ("whitelist", "c,e")]);
    assert_eq!(json(&value(&mut chain, row())), r#"{"e":true}"#);
}
