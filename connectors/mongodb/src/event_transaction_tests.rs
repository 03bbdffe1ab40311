//! Events inside and outside of transactions.

use super::*;

const ON: (&str, &str) = ("provide.transaction.metadata", "true");
const LSID: &str = r#"{"id": {"$binary": "AQEBAQEBAQEBAQEBAQEBAQ==","$type": "04"}}"#;

/// The same event as part of a transaction of one session.
fn inside(number: i64, mut event: Document) -> Document {
    event.insert("lsid", doc! {"id": Binary { subtype: BinarySubtype::Uuid, bytes: vec![1; 16] }});
    event.insert("txnNumber", number);
    event
}

fn insert(collection: &str, ord: u32) -> Document {
    let mut event = event("insert", ord, NOW + i64::from(ord), 1, doc! {"fullDocument": {"_id": 1}});
    event.insert("ns", doc! {"db": "d", "coll": collection});
    event
}

/// What a consumer sees of transactions: markers by status and counts, changes by their place.
fn seen(records: &[Record]) -> Vec<String> {
    let told = |record: &Record| {
        let value: serde_json::Value = match payload(record).1 {
            Some(text) => serde_json::from_str(&text).unwrap(),
            None => return "tombstone".to_owned(),
        };
        match value["status"].as_str() {
            Some(status) => {
                let id = value["id"].as_str().unwrap().strip_prefix(LSID).unwrap().to_owned();
                format!("{status}{id} {} {} {}", value["event_count"], value["data_collections"], value["ts_ms"])
            }
            None => {
                let (of, block) = (value["source"]["collection"].as_str().unwrap(), &value["transaction"]);
                format!("{of} {} {}", block["total_order"], block["data_collection_order"])
            }
        }
    };
    records.iter().map(told).collect()
}

fn offset(position: &Position) -> thalweg_core::position::OffsetMap {
    MongoPosition::decode(position).unwrap().to_offset()
}

/// The open transaction that a record's position holds, with the place in the stream.
fn kept(record: &Record) -> String {
    let offset = offset(&record.position);
    let count =
        |name: &str| offset.get(&format!("transaction_data_collection_order_d.{name}")).map(ToString::to_string);
    let id = offset.get("transaction_id").map_or("-", |id| id.as_str().unwrap().strip_prefix(LSID).unwrap());
    let counts: Vec<String> = ["c1", "c2"].iter().filter_map(|name| count(name)).collect();
    format!("{} {id} {}", offset["ord"], counts.join(","))
}

fn started(more: &[(&str, &str)]) -> Decoder {
    let mut decoder = decoder(more);
    decoder.stream_from(MongoPosition::at(Timestamp { time: 1, increment: 1 }).encode());
    decoder
}

fn transactions() -> Vec<Document> {
    vec![
        inside(1, insert("c1", 2)),
        inside(1, insert("c2", 3)),
        inside(1, event("delete", 4, NOW, 1, doc! {})),
        inside(2, event("delete", 5, NOW + 5, 2, doc! {})),
        insert("c2", 6),
        insert("c1", 7),
    ]
}

#[test]
fn mgo_19_markers_and_places_of_changes() {
    let out = records(&mut started(&[ON]), &transactions());
    let (first, second, third) = (NOW + 2, NOW + 5, NOW + 6);
    let counts = r#"[{"data_collection":"d.c1","event_count":2},{"data_collection":"d.c2","event_count":1}]"#;
    let one = r#"[{"data_collection":"d.c1","event_count":1}]"#;
    assert_eq!(
        seen(&out),
        [
            &format!("BEGIN:1 null null {first}"),
            "c1 1 1",
            "c2 2 1",
            "c1 3 2",
            "tombstone",
            &format!("END:1 3 {counts} {second}"),
            &format!("BEGIN:2 null null {second}"),
            "c1 1 1",
            "tombstone",
            &format!("END:2 1 {one} {third}"),
            "c2 null null",
            "c1 null null",
        ]
    );
    let markers: Vec<&Record> = out.iter().filter(|r| &*r.topic == "p.transaction").collect();
    assert!(markers.len() == 4 && markers.iter().all(|r| r.headers.is_empty() && r.partition.is_none()));
}

#[test]
fn every_position_holds_what_is_open_there() {
    let out = records(&mut started(&[ON]), &transactions());
    let all: Vec<String> = out.iter().map(kept).collect();
    assert_eq!(
        all,
        [
            // A marker stands before its change, and so does a delete whose tombstone follows.
            "1 :1 ", "2 :1 1", "3 :1 1,1", "3 :1 1,1", "4 :1 2,1", "4 - ", "4 :2 ", "4 :2 ", "5 :2 1", "5 - ", "6 - ",
            "7 - ",
        ]
    );
}

#[test]
fn reading_on_from_any_position_tells_the_same() {
    let events = transactions();
    let all = records(&mut started(&[ON]), &events);
    for (delivered, record) in all.iter().enumerate() {
        let ord = offset(&record.position)["ord"].as_i64().unwrap();
        let left: Vec<Document> = events
            .iter()
            .filter(|e| i64::from(e.get_timestamp("clusterTime").unwrap().increment) > ord)
            .cloned()
            .collect();
        let mut again = decoder(&[ON]);
        again.stream_from(record.position.clone());
        let out = records(&mut again, &left);
        // What is not done with its last record comes again, but no marker does.
        let repeats = out.len() + delivered + 1 - all.len();
        let from = delivered + 1 - repeats;
        assert!(
            repeats == 0 || (repeats == 1 && seen(&all)[delivered] == "c1 3 2") || seen(&all)[delivered] == "c1 1 1"
        );
        assert_eq!(seen(&out), seen(&all)[from..]);
        assert_eq!(out.iter().map(kept).collect::<Vec<_>>(), all[from..].iter().map(kept).collect::<Vec<_>>());
    }
}

#[test]
fn what_has_no_record_is_not_counted_and_closes_nothing() {
    let mut decoder =
        started(&[ON, ("collection.include.list", "d.c1"), ("event.processing.failure.handling.mode", "skip")]);
    let mut keyless = inside(1, insert("c1", 5));
    keyless.remove("documentKey");
    let mut drop = insert("c1", 6);
    drop.insert("operationType", "drop");
    let out = records(
        &mut decoder,
        &[
            inside(1, insert("c1", 2)),
            insert("c2", 3),
            inside(2, insert("c2", 4)),
            keyless,
            drop,
            inside(1, insert("c1", 7)),
        ],
    );
    assert_eq!(seen(&out)[1..], ["c1 1 1", "c1 2 2"]);
    assert_eq!(kept(&out[2]), "7 :1 2");
    // A position that such an event moves holds the transaction as well.
    let seen = decoder.change(&bytes(&insert("c2", 8)), NOW, &mut Vec::new()).unwrap();
    assert_eq!(offset(&seen.position)["transaction_data_collection_order_d.c1"], 2);
}

#[test]
fn without_the_option_nothing_is_told_or_kept() {
    let mut decoder = decoder(&[]);
    let open = MongoPosition::at(Timestamp { time: 1, increment: 1 }).within(None).encode();
    decoder.stream_from(open);
    let out = records(&mut decoder, &transactions());
    assert_eq!(out.len(), 8);
    assert!(out.iter().all(|r| &*r.topic != "p.transaction"));
    assert!(out.iter().all(|r| !offset(&r.position).contains_key("transaction_id")));
    assert_eq!(decoder.state_bytes(), 0);
}

#[test]
fn a_snapshot_has_no_transactions() {
    let mut decoder = started(&[ON]);
    records(&mut decoder, &transactions()[..2]);
    assert!(decoder.state_bytes() > 0);
    let begin = MongoPosition::at(Timestamp { time: 9, increment: 4 });
    decoder.snapshot_from(&begin);
    let read = decoder
        .read(&Namespace::new("d", "c1"), &bytes(&doc! {"_id": 1}), SourceTime::from_millis(5))
        .unwrap()
        .unwrap();
    assert_eq!(seen(std::slice::from_ref(&read)), ["c1 null null"]);
    assert!(!offset(&read.position).contains_key("transaction_id"));
    decoder.stream_from(begin.encode());
    assert_eq!(seen(&records(&mut decoder, &[insert("c1", 7)])), ["c1 null null"], "no end of the one before");
}

#[test]
fn the_topic_has_the_name_of_its_option() {
    let named = [ON, ("topic.transaction", "tx"), ("topic.delimiter", "-")];
    let out = records(&mut started(&named), &[inside(1, insert("c1", 2))]);
    assert_eq!((&*out[0].topic, &*out[1].topic), ("p-tx", "p-d-c1"));
}
