#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;

use bytes::Bytes;

use crate::record::{Datum, Record, Schema, Value};
use crate::transform::Chain;
use crate::transform::support::*;

const CLASS: &str = "io.debezium.transforms.outbox.EventRouter";

fn event(op: &'static str, payload: Value, more: Vec<(&str, Schema, Value)>) -> Record {
    let text = || Schema::string().optional();
    let mut fields = vec![
        ("id", Schema::string(), Value::text("e1")),
        ("aggregatetype", Schema::string(), Value::text("Order")),
        ("aggregateid", Schema::string(), Value::text("o1")),
        ("type", Schema::string(), Value::text("Created")),
        ("payload", text(), payload),
    ];
    fields.extend(more);
    let (schemas, values): (Vec<_>, Vec<_>) = fields.into_iter().map(|(n, s, v)| ((n, s), v)).unzip();
    let row = Arc::new(Schema::record(schemas).optional().named("s.outbox.Value"));
    let envelope = Schema::record([
        ("before", row.clone()),
        ("after", row),
        ("op", Arc::new(Schema::string())),
        ("ts_ms", Arc::new(Schema::int64().optional())),
    ]);
    let values = vec![Value::Null, Value::Struct(values), Value::text(op), Value::Int64(77)];
    record(Datum::new(Arc::new(envelope.named("s.outbox.Envelope")), Value::Struct(values)))
}

fn plain() -> Record {
    event("c", Value::text(r#"{"a":1}"#), vec![])
}

fn routed(options: &[(&str, &str)], event: Record) -> Record {
    run(&mut chain(CLASS, options), event).unwrap().unwrap()
}

fn headers(record: &Record) -> Vec<String> {
    let text = |h: &crate::record::Header| {
        format!("{}={}", h.name, json(&Datum { schema: h.schema.clone(), value: h.value.clone() }))
    };
    record.headers.iter().map(text).collect()
}

#[test]
fn the_message_of_a_row() {
    for op in ["c", "r"] {
        let message = routed(&[], event(op, Value::text(r#"{"a":1}"#), vec![]));
        assert_eq!((&*message.topic, message.partition, message.timestamp), ("outbox.event.Order", None, Some(77)));
        assert_eq!((json(&message.key).as_str(), json(&message.value).as_str()), (r#""o1""#, r#""{\"a\":1}""#));
        assert_eq!(headers(&message), [r#"id="e1""#]);
    }
    let binary = routed(
        &[],
        event("c", Value::text("x"), vec![("raw", Schema::bytes(), Value::Bytes(Bytes::from_static(b"\x01")))]),
    );
    assert_eq!(json(&binary.value), r#""x""#);
    let mut chain = chain(CLASS, &[]);
    let mut topic = || run(&mut chain, plain()).unwrap().unwrap().topic;
    assert!(Arc::ptr_eq(&topic(), &topic()));
}

#[test]
fn what_is_no_insert() {
    let dropped = |chain: &mut Chain, record| run(chain, record).unwrap().is_none();
    let mut one = chain(CLASS, &[]);
    for op in ["d", "u", "t"] {
        assert!(dropped(&mut one, event(op, Value::Null, vec![])), "{op}");
    }
    assert!(dropped(&mut one, record(Datum::none())));
    assert_eq!(run(&mut one, heartbeat()).unwrap().unwrap().value, heartbeat().value);
    let free = record(free(vec![("op", Value::text("c"))]));
    assert_eq!(run(&mut one, free.clone()).unwrap().unwrap().value, free.value);
    for name in ["table.op.invalid.behavior", "debezium.op.invalid.behavior"] {
        let mut fatal = chain(CLASS, &[(name, "fatal")]);
        assert!(refused(&mut fatal, event("u", Value::Null, vec![])).contains("only have inserts"));
        assert!(dropped(&mut fatal, event("d", Value::Null, vec![])));
    }
    assert!(dropped(&mut chain(CLASS, &[("table.op.invalid.behavior", "error")]), event("u", Value::Null, vec![])));
}

#[test]
fn other_names_and_topics() {
    let more = || vec![("k", Schema::int32(), Value::Int32(4)), ("r", Schema::string(), Value::text("eu-orders"))];
    let options = [
        ("table.field.event.key", "k"),
        ("table.field.event.payload", "type"),
        ("table.field.event.id", "aggregateid"),
        ("route.by.field", "r"),
        ("route.topic.regex", "eu-(.*)"),
        ("route.topic.replacement", "$1.events"),
    ];
    let message = routed(&options, event("c", Value::Null, more()));
    assert_eq!((&*message.topic, json(&message.key).as_str()), ("orders.events", "4"));
    assert_eq!((json(&message.value).as_str(), headers(&message)), (r#""Created""#, vec![r#"id="o1""#.to_owned()]));
    let unmatched = routed(&[("route.topic.regex", "x(.*)"), ("route.topic.replacement", "$1")], plain());
    assert_eq!(&*unmatched.topic, "Order");
    assert!(
        refused(&mut chain(CLASS, &[("route.topic.regex", "Order(.*)"), ("route.topic.replacement", "$1")]), plain())
            .contains("no name for a topic")
    );
}

#[test]
fn times() {
    let of = |name: &'static str, value: Value| {
        let schema = Schema::int64().optional().named(name);
        let event = event("c", Value::Null, vec![("at", schema, value)]);
        run(&mut chain(CLASS, &[("table.field.event.timestamp", "at")]), event).map(|record| record.unwrap().timestamp)
    };
    assert_eq!(of("io.debezium.time.Timestamp", Value::Int64(5)).unwrap(), Some(5));
    assert_eq!(of("io.debezium.time.MicroTimestamp", Value::Int64(5_999)).unwrap(), Some(5));
    assert_eq!(of("io.debezium.time.NanoTimestamp", Value::Int64(5_999_999)).unwrap(), Some(5));
    assert_eq!(of("io.debezium.time.Timestamp", Value::Null).unwrap(), Some(77));
    assert!(of("io.debezium.time.Date", Value::Int64(5)).unwrap_err().error.message.contains("io.debezium.time.Date"));
}

#[test]
fn further_fields() {
    let more = || {
        vec![
            ("tenant", Schema::string(), Value::text("t1")),
            ("p", Schema::int32().optional(), Value::Int32(3)),
            ("v", Schema::int32(), Value::Int32(9)),
        ]
    };
    let placement = ("table.fields.additional.placement", "type:header:eventType, tenant:envelope, p:partition");
    let options = [placement, ("table.field.event.schema.version", "v")];
    let message = routed(&options, event("c", Value::text("x"), more()));
    assert_eq!(headers(&message), [r#"id="e1""#, r#"eventType="Created""#]);
    assert_eq!((json(&message.value).as_str(), message.partition), (r#"{"payload":"x","tenant":"t1"}"#, Some(3)));
    let schema = message.value.schema.unwrap();
    assert_eq!((schema.name.as_deref(), schema.version), (Some("s.outbox.Order.Value"), Some(9)));
    let mut one = chain(CLASS, &options);
    let row = event("c", Value::text("x"), more());
    let mut schema = || run(&mut one, row.clone()).unwrap().unwrap().value.schema.unwrap();
    assert!(Arc::ptr_eq(&schema(), &schema()));

    assert!(refused(&mut chain(CLASS, &[placement]), plain()).contains("Field does not exist: tenant"));
    let without = routed(&[placement, ("table.field.additional.missing", "ignore")], plain());
    assert_eq!((json(&without.value).as_str(), without.partition), (r#"{"payload":"{\"a\":1}"}"#, None));
    let wrong = event("c", Value::Null, vec![("p", Schema::string(), Value::text("3"))]);
    let partition = [("table.fields.additional.placement", "p:partition")];
    assert!(refused(&mut chain(CLASS, &partition), wrong).contains("no number of a partition"));
}

#[test]
fn empty_payloads() {
    let on = [("route.tombstone.on.empty.payload", "true")];
    for empty in [Value::Null, Value::text(""), Value::text(" \n")] {
        assert!(routed(&on, event("c", empty.clone(), vec![])).value.is_none());
        let kept = routed(&[], event("c", empty.clone(), vec![])).value;
        assert_eq!((kept.value, kept.schema.is_some()), (empty, true));
    }
    assert!(!routed(&on, plain()).value.is_none());
}

#[test]
fn json_becomes_a_struct() {
    let on = [("table.expand.json.payload", "true")];
    let message = routed(&on, plain());
    assert_eq!(
        (json(&message.value).as_str(), message.value.schema.unwrap().name.as_deref()),
        (r#"{"a":1}"#, Some("payload"))
    );
    for text in ["text", "{", "[]"] {
        assert_eq!(routed(&on, event("c", Value::text(text), vec![])).value.value, Value::text(text));
    }
    let nulls = [
        on[0],
        ("table.json.payload.null.behavior", "optional_bytes"),
        ("table.fields.additional.placement", "type:envelope"),
    ];
    let message = routed(&nulls, event("c", Value::text(r#"{"a":null}"#), vec![]));
    assert_eq!(json(&message.value), r#"{"payload":{"a":null},"type":"Created"}"#);
}

#[test]
fn rows_and_options_that_are_wrong() {
    for (option, what) in [
        ("table.field.event.payload", "payload field gone"),
        ("table.field.event.id", "event-id field gone"),
        ("table.field.event.key", "event-key field gone"),
        ("table.field.event.timestamp", "timestamp field gone"),
        ("route.by.field", "route-by field gone"),
    ] {
        assert!(refused(&mut chain(CLASS, &[(option, "gone")]), plain()).contains(what), "{option}");
    }
    let mut no_row = plain();
    set(&mut no_row.value, "after", Value::Null);
    assert!(refused(&mut chain(CLASS, &[]), no_row).contains("Struct"));
    let of = |name, value| faults(CLASS, &[(name, value)]).join("\n");
    assert!(of("table.fields.additional.placement", "a:nowhere").contains("header, envelope, partition"));
    assert!(of("table.op.invalid.behavior", "x").contains("table.op.invalid.behavior"));
    assert!(of("route.topic.replacement", "${x}").contains("no group with name"));
    assert!(of("tracing.operation.name", "x").contains("there are no traces"));
    assert!(of("table.json.payload.empty.array.behavior", "x").contains("left out"));
}
