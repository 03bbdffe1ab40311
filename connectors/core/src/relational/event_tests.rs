//! Records of changes, as Debezium has them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use bytes::Bytes;
use serde_json::{Value as Json, json};

use super::super::fixture::{builder, json as message, table};
use super::*;
use crate::envelope::{SnapshotMarker, SourceCommon, context_headers};

const NOW: i64 = 1_700_000_000_456_789_012;

fn position(text: &'static str) -> Position {
    Position::new(Bytes::from_static(text.as_bytes()))
}

fn maker() -> EventMaker {
    EventMaker { headers: context_headers("s1", 0, "test", "run"), tombstones: true, ..EventMaker::default() }
}

fn source() -> Value {
    let common = SourceCommon {
        version: "1".into(),
        connector: "test",
        name: "s1".into(),
        time: SourceTime::from_millis(5),
        snapshot: SnapshotMarker::False,
        db: "shop".into(),
        sequence: None,
    };
    let mut values = common.values(1);
    values.push(Value::text("item"));
    Value::Struct(values)
}

/// Records of a change of `item(id, qty)`, of which the last has the position behind.
fn records(maker: &EventMaker, options: &[(&str, &str)], key: &[&str], change: RowChange<'_>) -> Vec<Record> {
    let schema = builder(options).build(&table("item", &["id int", "qty int?"], key)).unwrap();
    let (mut out, mut counted, before) = (Vec::new(), 0, position("before"));
    let mut block = || {
        counted += 1;
        Value::Struct(vec![Value::text("tx"), Value::Int64(counted), Value::Int64(counted)])
    };
    let occasion =
        Occasion { source: source(), now: SourceTime::from_nanos(NOW), before: &before, transaction: &mut block };
    if let Some(last) = maker.records(&schema, change, occasion, &mut out).unwrap() {
        last.position = position("behind");
    }
    out
}

/// Operation, key, before, after, number in the transaction; or key and null.
fn outline(record: &Record) -> Json {
    let (key, value) = (message(&record.key, false), message(&record.value, false));
    match value {
        Json::Null => json!([key, null]),
        value => json!([value["op"], key, value["before"], value["after"], value["transaction"]["total_order"]]),
    }
}

fn outlines(records: &[Record]) -> Vec<Json> {
    records.iter().map(outline).collect()
}

fn header(record: &Record, at: usize) -> (String, Json) {
    let header = &record.headers[at];
    let datum = Datum { schema: header.schema.clone(), value: header.value.clone() };
    (header.name.to_string(), message(&datum, false))
}

const OLD: &[Cell] = &[Cell::Int(7), Cell::Int(1)];
const NEW: &[Cell] = &[Cell::Int(7), Cell::Int(2)];
const MOVED: &[Cell] = &[Cell::Int(8), Cell::Int(1)];

#[test]
fn a_whole_event() {
    let update = RowChange::Update { before: Some(OLD), after: NEW };
    let [record] = records(&maker(), &[], &["id"], update).try_into().unwrap();
    assert_eq!(
        message(&record.value, false),
        json!({
            "before": {"id": 7, "qty": 1}, "after": {"id": 7, "qty": 2},
            "source": {"version": "1", "connector": "test", "name": "s1", "ts_ms": 5, "snapshot": "false", "db": "shop",
                "sequence": null, "ts_us": 5000, "ts_ns": 5_000_000, "table": "item"},
            "transaction": {"id": "tx", "total_order": 1, "data_collection_order": 1},
            "op": "u", "ts_ms": 1_700_000_000_456_i64, "ts_us": 1_700_000_000_456_789_i64, "ts_ns": NOW,
        })
    );
    assert_eq!((&*record.topic, record.partition, record.timestamp), ("s1.shop.dbo.item", None, None));
    assert_eq!(record.headers, maker().headers);
    assert_eq!(record.position, position("behind"));
}

#[test]
fn one_event_for_most_changes() {
    for (change, expected) in [
        (RowChange::Create(NEW), json!(["c", {"id": 7}, null, {"id": 7, "qty": 2}, 1])),
        (RowChange::Read(NEW), json!(["r", {"id": 7}, null, {"id": 7, "qty": 2}, 1])),
        (RowChange::Update { before: None, after: NEW }, json!(["u", {"id": 7}, null, {"id": 7, "qty": 2}, 1])),
        (RowChange::Truncate, json!(["t", null, null, null, 1])),
    ] {
        let records = records(&maker(), &[], &["id"], change);
        assert_eq!(outlines(&records), [expected]);
        assert_eq!(records[0].position, position("behind"));
    }
    assert!(records(&maker(), &[], &["id"], RowChange::Truncate)[0].key.is_none());
}

#[test]
fn a_delete_and_its_tombstone() {
    let deleted = json!(["d", {"id": 7}, {"id": 7, "qty": 1}, null, 1]);
    let both = records(&maker(), &[], &["id"], RowChange::Delete(OLD));
    assert_eq!(outlines(&both), [deleted.clone(), json!([{"id": 7}, null])]);
    assert!(both[1].value.is_none());
    assert_eq!([&both[0].position, &both[1].position], [&position("before"), &position("behind")]);
    let quiet = EventMaker { tombstones: false, ..maker() };
    assert_eq!(outlines(&records(&quiet, &[], &["id"], RowChange::Delete(OLD))), [deleted]);
}

#[test]
fn t_14_another_key_is_a_delete_and_a_create() {
    let change = RowChange::Update { before: Some(OLD), after: MOVED };
    let three = records(&maker(), &[], &["id"], change);
    let deleted = json!(["d", {"id": 7}, {"id": 7, "qty": 1}, null, 1]);
    let created = json!(["c", {"id": 8}, null, {"id": 8, "qty": 1}, 2]);
    assert_eq!(outlines(&three), [deleted.clone(), json!([{"id": 7}, null]), created.clone()]);
    let new_key = ("__debezium.newkey".to_owned(), json!({"id": 8}));
    assert_eq!([header(&three[0], 0), header(&three[1], 0)], [new_key.clone(), new_key]);
    assert_eq!(header(&three[2], 0), ("__debezium.oldkey".to_owned(), json!({"id": 7})));
    assert!(three.iter().all(|record| record.headers[1..] == maker().headers[..]));
    let places: Vec<&Position> = three.iter().map(|record| &record.position).collect();
    assert_eq!(places, [&position("before"), &position("before"), &position("behind")]);

    let quiet = EventMaker { tombstones: false, ..maker() };
    assert_eq!(outlines(&records(&quiet, &[], &["id"], change)), [deleted, created]);
}

#[test]
fn t_14_a_chosen_key_that_changes() {
    let change = RowChange::Update { before: Some(OLD), after: NEW };
    let three = records(&maker(), &[("message.key.columns", "dbo.item:qty")], &["id"], change);
    let codes: Vec<Json> = outlines(&three).iter().map(|outline| outline[0].clone()).collect();
    assert_eq!(codes, [json!("d"), json!({"qty": 1}), json!("c")]);
}

#[test]
fn sql_28_without_a_key_there_are_no_tombstones() {
    for (change, expected) in [
        (RowChange::Create(OLD), json!(["c", null, null, {"id": 7, "qty": 1}, 1])),
        (
            RowChange::Update { before: Some(OLD), after: MOVED },
            json!(["u", null, {"id": 7, "qty": 1}, {"id": 8, "qty": 1}, 1]),
        ),
        (RowChange::Delete(OLD), json!(["d", null, {"id": 7, "qty": 1}, null, 1])),
    ] {
        let records = records(&maker(), &[], &[], change);
        assert_eq!(outlines(&records), [expected]);
        assert!(records[0].key.is_none());
    }
}

#[test]
fn sql_23_updates_that_change_nothing_captured() {
    let skipping = EventMaker { skip_unchanged: true, ..maker() };
    let excluded = [("column.exclude.list", "dbo.item.qty")];
    let change = RowChange::Update { before: Some(OLD), after: NEW };
    assert!(records(&skipping, &excluded, &["id"], change).is_empty());
    assert_eq!(records(&maker(), &excluded, &["id"], change).len(), 1);
    assert_eq!(records(&skipping, &[], &["id"], change).len(), 1);
    assert_eq!(records(&skipping, &[], &["id"], RowChange::Update { before: None, after: NEW }).len(), 1);
}

#[test]
fn sql_22_skipped_operations() {
    let skipping = |items: &[&str]| {
        let items: Vec<String> = items.iter().map(|item| (*item).to_owned()).collect();
        EventMaker { skipped: SkippedOperations::new(&items), ..maker() }
    };
    let all: [(RowChange<'_>, &[&str]); 5] = [
        (RowChange::Create(OLD), &["c"]),
        (RowChange::Update { before: Some(OLD), after: NEW }, &["u"]),
        (RowChange::Delete(OLD), &["d"]),
        (RowChange::Read(OLD), &["r"]),
        (RowChange::Truncate, &["t"]),
    ];
    for (change, code) in all {
        assert!(records(&skipping(code), &[], &["id"], change).is_empty(), "{code:?}");
        assert!(!records(&skipping(&["none"]), &[], &["id"], change).is_empty(), "{code:?}");
    }
    let moved = RowChange::Update { before: Some(OLD), after: MOVED };
    let only_create = records(&skipping(&["D"]), &[], &["id"], moved);
    assert_eq!(outlines(&only_create), [json!(["c", {"id": 8}, null, {"id": 8, "qty": 1}, 1])]);
    let delete = records(&skipping(&["c"]), &[], &["id"], moved);
    assert_eq!(delete.len(), 2);
    assert_eq!(delete[1].position, position("behind"));
}

#[test]
fn a_row_that_does_not_fit_leaves_nothing_behind() {
    let schema = builder(&[]).build(&table("item", &["id int", "qty int?"], &["id"])).unwrap();
    let (mut out, before) = (Vec::new(), position("before"));
    let mut block = || panic!("nothing is counted");
    let occasion = Occasion { source: source(), now: SourceTime::now(), before: &before, transaction: &mut block };
    let change = RowChange::Update { before: Some(OLD), after: &NEW[..1] };
    assert!(maker().records(&schema, change, occasion, &mut out).is_err());
    assert!(out.is_empty());
}
