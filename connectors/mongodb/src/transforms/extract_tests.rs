#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use bytes::Bytes;
use thalweg_config::Properties;
use thalweg_core::convert::{Converter, JsonConverter};
use thalweg_core::envelope::{json_text, transaction_block};
use thalweg_core::position::Position;
use thalweg_core::record::Headers;
use thalweg_core::transform::{Chain, TransformClasses, validate};

use super::*;
use crate::transforms::{CLASSES, support};

const CLASS: &str = "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState";

fn chain(options: &[(&str, &str)]) -> Chain {
    support::chain(CLASS, options)
}

/// What a change event has.
#[derive(Default, Clone, Copy)]
struct Event<'a> {
    op: &'a str,
    id: &'a str,
    before: Option<&'a str>,
    after: Option<&'a str>,
    /// Fields that an update has set, and those that it has removed.
    update: Option<(&'a str, &'a [&'a str])>,
}

fn text(text: Option<&str>) -> Value {
    text.map_or(Value::Null, |text| Value::text(text.to_owned()))
}

fn key(id: &str) -> Datum {
    let schema = Schema::record([("id", Schema::string())]).named("p.d.c.Key");
    Datum::new(Arc::new(schema), Value::Struct(vec![text(Some(id))]))
}

fn record(event: Event<'_>) -> Record {
    let update = Schema::record([
        ("removedFields", Arc::new(Schema::array(Schema::string()).optional())),
        ("updatedFields", json_text()),
    ]);
    let source = Schema::record([("ts_ms", Schema::int64()), ("collection", Schema::string())]);
    let envelope = Schema::record([
        ("before", json_text()),
        ("after", json_text()),
        ("updateDescription", Arc::new(update.optional())),
        ("source", Arc::new(source)),
        ("op", Arc::new(Schema::string().optional())),
        ("transaction", transaction_block()),
    ]);
    let update = event.update.map_or(Value::Null, |(updated, removed)| {
        let removed = removed.iter().map(|name| text(Some(name))).collect();
        Value::Struct(vec![Value::Array(removed), text(Some(updated))])
    });
    let source = Value::Struct(vec![Value::Int64(4), Value::text("c")]);
    let values = vec![text(event.before), text(event.after), update, source, text(Some(event.op)), Value::Null];
    Record {
        topic: "p.d.c".into(),
        partition: Some(2),
        key: key(event.id),
        value: Datum::new(Arc::new(envelope.named("p.d.c.Envelope")), Value::Struct(values)),
        headers: Headers::default(),
        timestamp: Some(9),
        position: Position::new(Bytes::from_static(b"p")),
    }
}

fn json(datum: &Datum) -> String {
    let mut converter = JsonConverter { schemas: false, default_for_null: false, ..JsonConverter::with_schemas() };
    let mut out = Vec::new();
    converter.convert_datum(&"t".into(), datum, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn run(chain: &mut Chain, mut record: Record) -> Option<Record> {
    (chain.apply(&mut record).unwrap() == Fate::Keep).then_some(record)
}

/// The value, or what became of it.
fn shown(options: &[(&str, &str)], record: Record) -> String {
    match run(&mut chain(options), record) {
        None => "dropped".to_owned(),
        Some(record) if record.value.is_none() => "null".to_owned(),
        Some(record) => json(&record.value),
    }
}

fn refused(options: &[(&str, &str)], mut record: Record) -> String {
    let failed = chain(options).apply(&mut record).unwrap_err();
    assert_eq!(failed.class, CLASS);
    failed.error.message
}

const INSERT: Event<'_> =
    Event { op: "c", id: "5", before: None, after: Some(r#"{"_id": 5,"a": {"b": 1}}"#), update: None };
const DELETE: Event<'_> = Event { op: "d", id: "5", before: None, after: None, update: None };
const UPDATE: Event<'_> = Event {
    op: "u",
    id: "5",
    before: None,
    after: None,
    update: Some((r#"{"a.b": 7, "n": 3000000000, "gone": 1}"#, &["gone", "other"])),
};

fn tombstone() -> Record {
    Record { value: Datum::none(), ..record(DELETE) }
}

#[test]
fn each_mode() {
    let imaged = Event { before: Some(r#"{"_id": 5,"old": true}"#), ..DELETE };
    let (plain, marked) = (r#"{"_id":5,"a":{"b":1}}"#, r#"{"_id":5,"a":{"b":1},"__deleted":false}"#);
    let was = r#"{"_id":5,"old":true,"__deleted":true}"#;
    for (mode, expected) in [
        ("drop", [plain, "dropped", "dropped", "dropped"]),
        ("tombstone", [plain, "null", "null", "dropped"]),
        ("rewrite", [marked, r#"{"__deleted":true}"#, was, "dropped"]),
        ("rewrite-with-tombstone", [marked, r#"{"__deleted":true}"#, was, "null"]),
        ("delete-to-tombstone", [plain, "null", "null", "dropped"]),
    ] {
        let options = [("delete.tombstone.handling.mode", mode)];
        let found = [record(INSERT), record(DELETE), record(imaged), tombstone()].map(|event| shown(&options, event));
        assert_eq!(found, expected, "{mode}");
    }
    let with_id =
        [("delete.tombstone.handling.mode", "rewrite"), ("delete.tombstone.handling.mode.rewrite-with-id", "true")];
    assert_eq!(shown(&with_id, record(DELETE)), r#"{"_id":5,"__deleted":true}"#);
    assert_eq!(shown(&with_id, record(imaged)), was);
    assert_eq!(shown(&[("drop.tombstones", "false"), ("delete.handling.mode", "rewrite")], tombstone()), "null");
}

#[test]
fn what_stays() {
    let record = run(&mut chain(&[]), record(INSERT)).unwrap();
    assert_eq!((&*record.topic, record.partition, record.timestamp), ("p.d.c", Some(2), Some(9)));
    let schema = record.value.schema.unwrap();
    assert_eq!((schema.name.as_deref(), schema.version, schema.optional), (Some("p.d.c"), None, false));
}

#[test]
fn equal_documents_have_one_schema() {
    let mut chain = chain(&[]);
    let other = Event { id: "6", after: Some(r#"{"_id": 6,"a": {"b": 2}}"#), ..INSERT };
    let first = run(&mut chain, record(INSERT)).unwrap();
    let second = run(&mut chain, record(other)).unwrap();
    assert!(Arc::ptr_eq(&first.value.schema.unwrap(), &second.value.schema.unwrap()));
    assert!(Arc::ptr_eq(&first.key.schema.unwrap(), &second.key.schema.unwrap()));
}

#[test]
fn keys_have_their_types() {
    let mut chain = chain(&[]);
    for (id, expected) in [
        ("5", r#"{"id":5}"#),
        ("2147483648", r#"{"id":2147483648}"#),
        ("5.0", r#"{"id":5.0}"#),
        (r#""x""#, r#"{"id":"x"}"#),
        (r#"{"$oid": "5f0c9a1e2b3c4d5e6f708192"}"#, r#"{"id":"5f0c9a1e2b3c4d5e6f708192"}"#),
        (r#"{"$date": "1970-01-01T00:00:00.005Z"}"#, r#"{"id":5}"#),
        (r#"{"a": 1,"b": "x"}"#, r#"{"id":{"a":1,"b":"x"}}"#),
        ("true", r#"{"id":true}"#),
        ("null", r#"{"id":null}"#),
    ] {
        let record = run(&mut chain, record(Event { id, ..INSERT })).unwrap();
        assert_eq!(json(&record.key), expected);
        assert_eq!(record.key.schema.unwrap().name, None);
    }
    let record = run(&mut chain, record(Event { id: r#"{"a": 1}"#, ..INSERT })).unwrap();
    assert_eq!(record.key.schema.unwrap().fields()[0].schema.name.as_deref(), Some("null.id"));
}

#[test]
fn an_update_without_its_document_says_what_it_has_set() {
    assert_eq!(shown(&[], record(UPDATE)), r#"{"a.b":7,"n":3000000000,"_id":5}"#);
    let flat = [("flatten.struct", "true"), ("flatten.struct.delimiter", "/")];
    assert_eq!(shown(&flat, record(UPDATE)), r#"{"a/b":7,"n":3000000000,"_id":5}"#);
    assert_eq!(shown(&[("field.name.adjustment.mode", "avro")], record(UPDATE)), r#"{"a_b":7,"n":3000000000,"_id":5}"#);
    let unset = Event { update: Some(("{}", &["a"])), ..UPDATE };
    assert_eq!(shown(&[], record(unset)), r#"{"_id":5}"#);
    let whole = Event { after: INSERT.after, ..UPDATE };
    assert_eq!(shown(&[("delete.tombstone.handling.mode", "drop")], record(whole)), r#"{"_id":5,"a":{"b":1}}"#);
}

#[test]
fn fields_and_headers_go_along() {
    let options = [
        ("add.fields", "op,source.ts_ms:at,collection,updateDescription.updatedFields,transaction.id"),
        ("add.headers", "op,source.ts_ms,nowhere"),
    ];
    let mut one = chain(&options);
    let found = run(&mut one, record(INSERT)).unwrap();
    assert_eq!(
        json(&found.value),
        r#"{"_id":5,"a":{"b":1},"__op":"c","__at":4,"__collection":"c","__updateDescription_updatedFields":null,"__transaction_id":null}"#
    );
    let headers: Vec<_> = found.headers.iter().map(|h| (&*h.name, &h.value)).collect();
    assert_eq!(headers, [("__op", &Value::text("c")), ("__source_ts_ms", &Value::Int64(4))]);
    let again = run(&mut one, record(INSERT)).unwrap();
    assert!(Arc::ptr_eq(&found.value.schema.unwrap(), &again.value.schema.unwrap()));

    assert_eq!(shown(&options, record(DELETE)), "null");
    let tombstones = ("delete.tombstone.handling.mode", "rewrite-with-tombstone");
    let last = run(&mut chain(&[tombstones, options[1]]), tombstone()).unwrap();
    assert_eq!(last.headers.iter().map(|h| (&*h.name, &h.value)).collect::<Vec<_>>(), [("__op", &Value::text("d"))]);
    assert_eq!(json(&last.key), r#"{"id":5}"#);
    assert!(refused(&[("add.fields", "nowhere")], record(INSERT)).ends_with("__nowhere is not a valid field name"));
    let clash = [("add.fields", "op:a"), ("add.fields.prefix", "")];
    assert!(refused(&clash, record(INSERT)).ends_with("name duplication a"));
    let old = run(&mut chain(&[("operation.header", "true"), ("add.source.fields", "ts_ms")]), record(INSERT)).unwrap();
    assert_eq!((&*old.headers[0].name, json(&old.value).ends_with(r#""__ts_ms":4}"#)), ("__debezium-operation", true));
}

#[test]
fn other_records_pass() {
    let keys = [
        Datum::none(),
        Datum::new(Arc::new(Schema::record([("serverName", Schema::string())])), Value::Struct(vec![text(Some("s"))])),
    ];
    let beat = Datum::new(Arc::new(Schema::record([("ts_ms", Schema::int64())])), Value::Struct(vec![Value::Int64(5)]));
    let free = Datum { schema: None, value: Value::Map(Vec::new()) };
    let mut chain = chain(&[("delete.tombstone.handling.mode", "drop")]);
    for key in keys {
        for value in [beat.clone(), free.clone(), Datum::none(), record(INSERT).value] {
            let passed = run(&mut chain, Record { key: key.clone(), value: value.clone(), ..record(INSERT) }).unwrap();
            assert_eq!((passed.key, passed.value), (key.clone(), value));
        }
    }
    let passed = run(&mut chain, Record { value: beat.clone(), ..record(INSERT) }).unwrap();
    assert_eq!((json(&passed.key).as_str(), passed.value), (r#"{"id":"5"}"#, beat));
    let twice = Properties::from([("transforms", "a,b"), ("transforms.a.type", CLASS), ("transforms.b.type", CLASS)]);
    let mut twice = Chain::from_config(&twice, &TransformClasses::default().with(CLASSES)).unwrap();
    assert_eq!(json(&run(&mut twice, record(INSERT)).unwrap().value), r#"{"_id":5,"a":{"b":1}}"#);
}

#[test]
fn documents_that_cannot_be_used() {
    let damaged = Event { after: Some(r#"{"_id": secret"#), ..INSERT };
    let message = refused(&[], record(damaged));
    assert!(message.contains("the field after cannot be read") && !message.contains("secret"), "{message}");
    assert!(refused(&[], record(Event { id: "{", ..INSERT })).contains("the id of the key cannot be read"));
    assert!(refused(&[], record(Event { after: Some("[1]"), ..INSERT })).contains("is not a document"));
    let min_key = Event { after: Some(r#"{"_id": 5,"k": {"$minKey": 1}}"#), ..INSERT };
    assert!(refused(&[], record(min_key)).ends_with("k is not a valid field name"));
}

#[test]
fn options_are_checked_at_their_properties() {
    let known = TransformClasses::default().with(CLASSES);
    let of = |name, value| validate(&support::configuration(CLASS, &[(name, value)]), &known);
    for (name, value) in [
        ("array.encoding", "x"),
        ("flatten.struct", "x"),
        ("delete.tombstone.handling.mode", "x"),
        ("field.name.adjustment.mode", "x"),
        ("add.fields", "a:b:c"),
        ("add.headers", "a."),
    ] {
        let messages = of(name, value).messages();
        assert!(messages.len() == 1 && messages[0].contains(&format!("transforms.t.{name}")), "{messages:?}");
    }
    for (name, value) in [
        ("operation.header", "true"),
        ("drop.tombstones", "true"),
        ("delete.handling.mode", "none"),
        ("add.source.fields", "a"),
        ("sanitize.field.names", "true"),
        ("route.by.field", "a"),
    ] {
        let validation = of(name, value);
        assert_eq!((validation.messages().len(), validation.warnings.len()), (0, 1), "{:?}", validation.warnings);
    }
    assert_eq!(shown(&[("sanitize.field.names", "true")], record(UPDATE)), r#"{"a_b":7,"n":3000000000,"_id":5}"#);
    assert!(CLASSES.is_sorted_by_key(|c| c.class));
    assert!(CLASSES.iter().all(|c| c.options.options.iter().all(|option| option.doc.ends_with('.'))));
    assert_eq!(known.called("MongoEventRouter").unwrap().class, CLASSES[1].class);
}

/// What looks like a reference is a document like others.
#[test]
fn t_32_references_keep_their_fields() {
    let after = r#"{"_id": 5,"d": {"$ref": "c2","$id": 4,"$db": "b2"}}"#;
    let inserted = record(Event { after: Some(after), ..INSERT });
    assert_eq!(shown(&[], inserted), r#"{"_id":5,"d":{"$ref":"c2","$id":4,"$db":"b2"}}"#);
}
