#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use bytes::Bytes;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::convert::{Converter, DecimalFormat, JsonConverter};

fn text(datum: &Datum) -> String {
    let mut converter = JsonConverter { schemas: false, decimals: DecimalFormat::Base64, default_for_null: true };
    let mut out = Vec::new();
    converter.convert_datum(&"t".into(), datum, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn arc(text: &str) -> Arc<str> {
    text.into()
}

/// A position that is nothing but the state.
fn place(state: Option<&[u8]>) -> Position {
    Position::new(Bytes::copy_from_slice(state.unwrap_or_default()))
}

/// A change of `collection` in transaction `id` ("" is none): its block.
fn change(monitor: &mut TransactionMonitor, id: &str, collection: &str, ts_ms: i64, out: &mut Vec<Record>) -> Value {
    let id = Some(arc(id)).filter(|id| !id.is_empty());
    monitor.enter(id.as_ref(), ts_ms, place, out);
    monitor.count(&arc(collection))
}

fn block(id: &str, total: i64, order: i64) -> Value {
    Value::Struct(vec![Value::text(arc(id)), Value::Int64(total), Value::Int64(order)])
}

fn values(records: &[Record]) -> Vec<String> {
    records.iter().map(|r| text(&r.value)).collect()
}

#[test]
fn begin_and_end_stand_where_the_id_changes() {
    let mut monitor = TransactionMonitor::new(arc("p.transaction"));
    let mut out = Vec::new();
    assert_eq!(change(&mut monitor, "", "d.a", 1, &mut out), Value::Null);
    assert!(out.is_empty());
    assert_eq!(change(&mut monitor, "x:1", "d.a", 2, &mut out), block("x:1", 1, 1));
    assert_eq!(change(&mut monitor, "x:1", "d.b", 3, &mut out), block("x:1", 2, 1));
    assert_eq!(change(&mut monitor, "x:1", "d.a", 4, &mut out), block("x:1", 3, 2));
    assert_eq!(values(&out), [r#"{"status":"BEGIN","id":"x:1","event_count":null,"data_collections":null,"ts_ms":2}"#]);
    let begin = &out[0];
    assert_eq!((&*begin.topic, begin.partition, begin.headers.len()), ("p.transaction", None, 0));
    assert_eq!(text(&begin.key), r#"{"id":"x:1"}"#);
    out.clear();
    // Another one follows at once; then none, and the end is told once.
    assert_eq!(change(&mut monitor, "x:2", "d.b", 5, &mut out), block("x:2", 1, 1));
    assert_eq!(change(&mut monitor, "", "d.a", 6, &mut out), Value::Null);
    assert_eq!(change(&mut monitor, "", "d.a", 7, &mut out), Value::Null);
    assert_eq!(
        values(&out),
        [
            r#"{"status":"END","id":"x:1","event_count":3,"data_collections":[{"data_collection":"d.a","event_count":2},{"data_collection":"d.b","event_count":1}],"ts_ms":5}"#,
            r#"{"status":"BEGIN","id":"x:2","event_count":null,"data_collections":null,"ts_ms":5}"#,
            r#"{"status":"END","id":"x:2","event_count":1,"data_collections":[{"data_collection":"d.b","event_count":1}],"ts_ms":6}"#,
        ]
    );
}

#[test]
fn markers_are_stored_without_the_change_that_they_stand_before() {
    let mut monitor = TransactionMonitor::new(arc("t"));
    let mut out = Vec::new();
    change(&mut monitor, "x:1", "d.a", 1, &mut out);
    change(&mut monitor, "x:2", "d.a", 2, &mut out);
    let states: Vec<_> = out.iter().map(|r| OpenTransaction::from_bytes(&r.position.place)).collect();
    let begun = |id: &str| Some(OpenTransaction::begin(arc(id)));
    assert_eq!(states, [begun("x:1"), None, begun("x:2")]);
    assert_eq!(monitor.open().map(|open| open.total), Some(1));
}

#[test]
fn the_state_in_an_offset_has_debeziums_form() {
    let mut monitor = TransactionMonitor::new(arc("t"));
    let mut out = Vec::new();
    for collection in ["d.a", "d.b.c", "d.a"] {
        change(&mut monitor, "x:1", collection, 1, &mut out);
    }
    let mut offset = OffsetMap::new();
    monitor.open().unwrap().add_to_offset(&mut offset);
    let expected = json!({
        "transaction_id": "x:1", "transaction_data_collection_order_d.a": 2,
        "transaction_data_collection_order_d.b.c": 1,
    });
    assert_eq!(Json::Object(offset.clone()).to_string(), expected.to_string());
    assert!(offset.keys().all(|name| OpenTransaction::is_member(name)) && !OpenTransaction::is_member("txnNumber"));
    assert_eq!(OpenTransaction::from_offset(&offset).unwrap().as_ref(), monitor.open());
}

#[test]
fn offsets_of_others_are_read_or_say_what_is_wrong() {
    let read = |offset: Json| OpenTransaction::from_offset(offset.as_object().unwrap());
    assert_eq!(read(json!({"sec": 1})), Ok(None));
    assert_eq!(read(json!({"transaction_id": null, "transaction_data_collection_order_d.a": 5})), Ok(None));
    let texts = json!({"transaction_id": "x", "transaction_data_collection_order_d.a": "5", "other": true});
    let open = read(texts).unwrap().unwrap();
    assert_eq!((&*open.id, open.total, open.collections.len()), ("x", 5, 1));
    for (bad, text) in [
        (
            json!({"transaction_id": 5}),
            "Source offset 'transaction_id' parameter value 5 could not be converted to a text",
        ),
        (
            json!({"transaction_id": "x", "transaction_data_collection_order_d.a": -1}),
            "Source offset 'transaction_data_collection_order_d.a' parameter value -1 could not be converted to a number of \
             changes",
        ),
        (
            json!({"transaction_id": "x", "transaction_data_collection_order_d.a": [1]}),
            "Source offset 'transaction_data_collection_order_d.a' parameter value [1] could not be converted to a number \
             of changes",
        ),
    ] {
        assert_eq!(read(bad).unwrap_err(), text);
    }
}

#[test]
fn a_large_transaction_has_a_small_state() {
    let mut monitor = TransactionMonitor::new(arc("t"));
    let collections: Vec<Arc<str>> = (0..10).map(|n| arc(&format!("shop.collection{n}"))).collect();
    let mut out = Vec::new();
    monitor.enter(Some(&arc("x:1")), 1, place, &mut out);
    for n in 0..100_000 {
        monitor.count(&collections[n % collections.len()]);
    }
    let open = monitor.open().unwrap();
    assert_eq!((open.total, open.collections[9].count), (100_000, 10_000));
    assert!(open.as_bytes().len() < 400, "{}", open.as_bytes().len());
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = OpenTransaction::from_bytes(&bytes);
    }

    /// Stopped behind any record and started again: the same records follow, with the same counters.
    #[test]
    fn a_restart_anywhere_changes_nothing(
        changes in prop::collection::vec((0_u8..4, 0_u8..3), 1..30), through_offset in any::<bool>(),
    ) {
        // Records in order with the state stored behind each, and how many changes are done then.
        type Told = Vec<(String, Position, usize)>;
        let run = |monitor: &mut TransactionMonitor, from: usize| {
            let mut told = Told::new();
            for (at, (id, collection)) in changes.iter().enumerate().skip(from) {
                let id = if *id == 0 { String::new() } else { format!("x:{id}") };
                let mut out = Vec::new();
                let block = change(monitor, &id, &format!("d.c{collection}"), at as i64, &mut out);
                told.extend(out.into_iter().map(|r| (text(&r.value), r.position, at)));
                told.push((format!("{at} {block:?}"), place(monitor.state()), at + 1));
            }
            told
        };
        let all = run(&mut TransactionMonitor::new(arc("t")), 0);
        for (delivered, (_, position, done)) in all.iter().enumerate() {
            let mut open = OpenTransaction::from_bytes(&position.place);
            if through_offset && let Some(state) = open {
                let mut offset = OffsetMap::new();
                state.add_to_offset(&mut offset);
                open = OpenTransaction::from_offset(&offset).unwrap();
            }
            let mut monitor = TransactionMonitor::new(arc("t"));
            monitor.resume(open);
            prop_assert_eq!(run(&mut monitor, *done), all[delivered + 1..].to_vec());
        }
    }
}
