#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;

use bytes::Bytes;
use thalweg_core::convert::{Converter, JsonConverter};
use thalweg_core::envelope::json_text;
use thalweg_core::position::Position;
use thalweg_core::record::Headers;
use thalweg_core::transform::{Chain, TransformClasses, validate};

use super::*;
use crate::transforms::{CLASSES, support};

const CLASS: &str = "io.debezium.connector.mongodb.transforms.outbox.MongoEventRouter";

fn chain(options: &[(&str, &str)]) -> Chain {
    support::chain(CLASS, options)
}

fn event(op: &'static str, after: &str) -> Record {
    let envelope = Schema::record([
        ("after", json_text()),
        ("op", Arc::new(Schema::string().optional())),
        ("ts_ms", Arc::new(Schema::int64().optional())),
    ]);
    let after = if after.is_empty() { Value::Null } else { Value::text(after.to_owned()) };
    let values = vec![after, Value::text(op), Value::Int64(77)];
    Record {
        topic: "p.d.outbox".into(),
        partition: None,
        key: Datum::none(),
        value: Datum::new(Arc::new(envelope.named("p.d.outbox.Envelope")), Value::Struct(values)),
        headers: Headers::default(),
        timestamp: None,
        position: Position::new(Bytes::from_static(b"p")),
    }
}

const ROW: &str = r#"{"_id": {"$oid": "5f0c9a1e2b3c4d5e6f708192"},"aggregateid": "o1","aggregatetype": "Order","type": "Created","payload": {"n": 1},"at": {"$numberLong": "123"}}"#;

fn json(datum: &Datum) -> String {
    let mut converter = JsonConverter { schemas: false, default_for_null: false, ..JsonConverter::with_schemas() };
    let mut out = Vec::new();
    converter.convert_datum(&"t".into(), datum, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn run(options: &[(&str, &str)], mut record: Record) -> Option<Record> {
    (chain(options).apply(&mut record).unwrap() == Fate::Keep).then_some(record)
}

fn refused(options: &[(&str, &str)], mut record: Record) -> String {
    chain(options).apply(&mut record).unwrap_err().error.message
}

#[test]
fn the_message_of_a_document() {
    let message = run(&[], event("c", ROW)).unwrap();
    assert_eq!(
        (&*message.topic, message.timestamp, json(&message.key).as_str()),
        ("outbox.event.Order", Some(77), r#""o1""#)
    );
    assert_eq!(message.value.value, Value::text("{\n  \"n\": {\n    \"$numberInt\": \"1\"\n  }\n}"));
    assert_eq!(
        (&*message.headers[0].name, &message.headers[0].value),
        ("id", &Value::text("5f0c9a1e2b3c4d5e6f708192"))
    );
    let timed =
        run(&[("collection.field.event.timestamp", "at"), ("collection.field.event.key", "type")], event("r", ROW))
            .unwrap();
    assert_eq!((timed.timestamp, json(&timed.key).as_str()), (Some(123), r#""Created""#));
    let dated = ROW.replace(r#"{"$numberLong": "123"}"#, r#"{"$date": 5}"#);
    assert_eq!(run(&[("collection.field.event.timestamp", "at")], event("c", &dated)).unwrap().timestamp, Some(5));
}

#[test]
fn a_payload_may_become_a_struct_or_stand_beside_others() {
    let expand = ("collection.expand.json.payload", "true");
    let message = run(&[expand], event("c", ROW)).unwrap();
    assert_eq!(json(&message.value), r#"{"n":1}"#);
    assert_eq!(message.value.schema.unwrap().name.as_deref(), Some("io.debezium.data.Json.payload"));
    let text = ROW.replace(r#"{"n": 1}"#, r#""{\"n\":1}""#);
    assert_eq!(json(&run(&[expand], event("c", &text)).unwrap().value), r#"{"n":1}"#);
    let placement = ("collection.fields.additional.placement", "type:envelope:eventType,aggregateid:header");
    let message = run(&[expand, placement], event("c", ROW)).unwrap();
    assert_eq!(json(&message.value), r#"{"payload":{"n":1},"eventType":"Created"}"#);
    assert_eq!(message.value.schema.unwrap().name.as_deref(), Some("io.debezium.data.Order.Json"));
    assert_eq!(&*message.headers[1].name, "aggregateid");
}

#[test]
fn what_is_no_insert() {
    assert!(run(&[], event("d", "")).is_none());
    assert!(run(&[], event("u", "")).is_none());
    assert!(run(&[], Record { value: Datum::none(), ..event("d", "") }).is_none());
    for name in ["collection.op.invalid.behavior", "table.op.invalid.behavior"] {
        assert!(refused(&[(name, "fatal")], event("u", ROW)).contains("only have inserts"));
    }
    let beat = Datum::new(Arc::new(Schema::record([("ts_ms", Schema::int64())])), Value::Struct(vec![Value::Int64(5)]));
    assert_eq!(run(&[], Record { value: beat.clone(), ..event("c", "") }).unwrap().value, beat);
}

#[test]
fn documents_and_options_that_are_wrong() {
    assert!(refused(&[], event("c", "")).contains("no document in its field after"));
    assert!(refused(&[], event("c", "{")).contains("cannot be read"));
    assert!(refused(&[], event("c", r#"{"_id": 1}"#)).contains("Unable to find"));
    assert!(
        refused(&[("collection.field.event.timestamp", "type")], event("c", ROW))
            .contains("neither a date nor a number")
    );
    let keyless = ROW.replace("\"aggregateid\"", "\"other\"");
    assert!(run(&[], event("c", &keyless)).unwrap().key.is_none());
    let known = TransformClasses::default().with(CLASSES);
    let wrong = support::configuration(
        CLASS,
        &[("collection.fields.additional.placement", "a:x"), ("collection.op.invalid.behavior", "x")],
    );
    assert_eq!(validate(&wrong, &known).messages().len(), 2);
}
