#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use crate::record::Headers;
use crate::transform::support::*;

const CLASS: &str = "io.debezium.transforms.ExtractNewRecordState";

fn run_one(options: &[(&str, &str)], event: Record) -> Option<Record> {
    run(&mut chain(CLASS, options), event).unwrap()
}

/// The value without its schema, or what became of it.
fn shown(options: &[(&str, &str)], event: Record) -> String {
    match run_one(options, event) {
        None => "dropped".to_owned(),
        Some(record) if record.value.is_none() => "tombstone".to_owned(),
        Some(record) if record.value.value.is_null() => {
            format!("null of {}", record.value.schema.unwrap().name.as_deref().unwrap())
        }
        Some(record) => json(&record.value),
    }
}

fn tombstone() -> Record {
    Record { key: change('d').key, ..record(Datum::none()) }
}

#[test]
fn each_mode() {
    let rows: [(&str, [&str; 4]); 5] = [
        ("drop", [r#"{"id":1,"name":"new"}"#, r#"{"id":1,"name":"new"}"#, "dropped", "dropped"]),
        ("tombstone", [r#"{"id":1,"name":"new"}"#, r#"{"id":1,"name":"new"}"#, "null of s.t.Value", "dropped"]),
        (
            "rewrite",
            [
                r#"{"id":1,"name":"new","__deleted":"false"}"#,
                r#"{"id":1,"name":"new","__deleted":"false"}"#,
                r#"{"id":1,"name":"old","__deleted":"true"}"#,
                "dropped",
            ],
        ),
        (
            "rewrite-with-tombstone",
            [
                r#"{"id":1,"name":"new","__deleted":"false"}"#,
                r#"{"id":1,"name":"new","__deleted":"false"}"#,
                r#"{"id":1,"name":"old","__deleted":"true"}"#,
                "tombstone",
            ],
        ),
        ("delete-to-tombstone", [r#"{"id":1,"name":"new"}"#, r#"{"id":1,"name":"new"}"#, "tombstone", "dropped"]),
    ];
    for (mode, expected) in rows {
        let options = [("delete.tombstone.handling.mode", mode)];
        let found = [change('c'), change('u'), change('d'), tombstone()].map(|event| shown(&options, event));
        assert_eq!(found, expected, "{mode}");
        assert_eq!(shown(&options, change('t')), "dropped");
    }
    assert_eq!(shown(&[], change('r')), r#"{"id":1,"name":"new"}"#);
}

#[test]
fn schema_of_the_row() {
    let row = run_one(&[], change('c')).unwrap().value.schema.unwrap();
    assert_eq!((row.name.as_deref(), row.optional, row.version), (Some("s.t.Value"), false, None));
    assert_eq!(row.fields().iter().map(|f| &*f.name).collect::<Vec<_>>(), ["id", "name"]);
    let mut chain = chain(CLASS, &[]);
    let mut schema = || run(&mut chain, change('c')).unwrap().unwrap().value.schema.unwrap();
    assert!(Arc::ptr_eq(&schema(), &schema()));
}

#[test]
fn other_records_pass() {
    let mut chain = chain(CLASS, &[("delete.tombstone.handling.mode", "drop")]);
    for other in [heartbeat(), record(free(vec![("op", Value::text("d"))])), record(held(vec![]))] {
        let value = other.value.clone();
        assert_eq!(run(&mut chain, other).unwrap().unwrap().value, value);
    }
}

#[test]
fn a_delete_without_its_row_keeps_its_key() {
    let mut event = change('d');
    set(&mut event.value, "before", Value::Null);
    let options = [("delete.tombstone.handling.mode", "rewrite"), ("add.fields", "op")];
    assert_eq!(shown(&options, event.clone()), r#"{"id":1,"__deleted":"true","__op":"d"}"#);
    event.key = Datum::none();
    assert_eq!(shown(&options, event), r#"{"__deleted":"true","__op":"d"}"#);
}

#[test]
fn fields_and_headers_go_along() {
    let options = [
        ("add.fields", "op, table,source.ts_ms,ts_ms:at,before.name,nowhere,id"),
        ("add.headers", "op,source.snapshot,nowhere"),
        ("add.headers.prefix", "h."),
    ];
    let record = run_one(&options, change('u')).unwrap();
    assert_eq!(
        json(&record.value),
        r#"{"id":1,"name":"new","__op":"u","__table":"t","__source_ts_ms":4,"__at":5,"__before_name":"old","__id":null}"#
    );
    let fields = record.value.schema.as_ref().unwrap().fields();
    assert!(fields[2..].iter().all(|f| f.schema.optional && f.schema.default.is_none()));
    let names: Vec<_> = record.headers.iter().map(|h| (&*h.name, &h.value)).collect();
    assert_eq!(names, [("h.op", &Value::text("u")), ("h.source_snapshot", &Value::Null)]);

    let mode = ("delete.tombstone.handling.mode", "rewrite-with-tombstone");
    let record = run_one(&[mode, ("add.headers", "op,table")], tombstone()).unwrap();
    assert_eq!(record.headers.iter().map(|h| (&*h.name, &h.value)).collect::<Vec<_>>(), [("__op", &Value::text("d"))]);
    let clash = [("add.fields", "ts_ms:name"), ("add.fields.prefix", "")];
    assert!(refusal(&mut chain(CLASS, &clash), change('c').value).contains("name duplication name"));
}

#[test]
fn older_options() {
    let old = [("drop.tombstones", "false"), ("delete.handling.mode", "rewrite"), ("operation.header", "true")];
    let record = run_one(&[old[0], old[1], old[2], ("add.source.fields", "table")], change('d')).unwrap();
    assert_eq!(json(&record.value), r#"{"id":1,"name":"old","__deleted":"true","__table":"t"}"#);
    assert_eq!(&*record.headers[0].name, "__debezium-operation");
    let both = [old[2], ("add.headers", "table"), ("drop.tombstones", "false"), ("add.source.fields", "table")];
    let record = run_one(&[both[0], both[1], both[2], both[3], ("add.fields", "op")], change('d')).unwrap();
    assert!(record.value.is_none());
    assert_eq!(record.headers.iter().map(|h| &*h.name).collect::<Vec<_>>(), ["__table"]);
}

#[test]
fn the_row_may_name_its_topic() {
    let options = [("route.by.field", "name")];
    assert_eq!(&*run_one(&options, change('c')).unwrap().topic, "new");
    assert_eq!(&*run_one(&options, change('d')).unwrap().topic, "old");
    let mut blank = change('c');
    set(&mut blank.value, "after", Value::Struct(vec![Value::Int32(1), Value::Null]));
    assert_eq!(&*run_one(&options, blank).unwrap().topic, "top");
    assert!(refused(&mut chain(CLASS, &[("route.by.field", "gone")]), change('c')).contains("gone"));
    assert!(refused(&mut chain(CLASS, &[("route.by.field", "id")]), change('c')).contains("not a text"));
}

fn with_header(value: Value) -> Record {
    Record { headers: Headers::new(vec![Header { name: "h".into(), schema: None, value }]), ..change('u') }
}

#[test]
fn a_header_names_fields_to_drop() {
    let names = |names: &[&'static str]| Value::Array(names.iter().map(|name| Value::text(*name)).collect());
    let header = ("drop.fields.header.name", "h");
    assert_eq!(shown(&[header], with_header(names(&["id", "name"]))), r#"{"id":1}"#);
    let all = [header, ("drop.fields.keep.schema.compatible", "false"), ("drop.fields.from.key", "true")];
    let record = run_one(&all, with_header(names(&["id"]))).unwrap();
    assert_eq!((json(&record.key).as_str(), json(&record.value).as_str()), ("{}", r#"{"name":"new"}"#));
    for nothing in [with_header(Value::Null), with_header(names(&[])), change('u')] {
        assert_eq!(shown(&all, nothing), r#"{"id":1,"name":"new"}"#);
    }
    assert!(refused(&mut chain(CLASS, &[header]), with_header(Value::Int32(1))).contains("header h"));
}

#[test]
fn events_that_cannot_be_used() {
    let mut chain = chain(CLASS, &[]);
    let mut event = change('c');
    set(&mut event.value, "op", Value::Null);
    assert!(refused(&mut chain, event).contains("no operation"));
    let schema = Schema::record([
        ("before", Schema::string().optional()),
        ("after", Schema::string().optional()),
        ("op", Schema::string()),
    ]);
    let values = vec![Value::Null, untouched(), Value::text("c")];
    let documents = Datum::new(Arc::new(schema.named("a.Envelope")), Value::Struct(values));
    assert!(refusal(&mut chain, documents).contains("a transform of their connector"));
    let message = Datum::new(
        Arc::new(Schema::record([("op", Schema::string())]).named("a.Envelope")),
        Value::Struct(vec![Value::text("m")]),
    );
    assert_eq!(value(&mut chain, message.clone()), message);
    assert!(faults(CLASS, &[("delete.tombstone.handling.mode", "x")])[0].contains("rewrite-with-tombstone"));
    assert!(faults(CLASS, &[("add.fields", "a:b:c")])[0].contains("transforms.t.add.fields"));
    assert!(faults(CLASS, &[("add.headers", ".a")])[0].contains("transforms.t.add.headers"));
}
