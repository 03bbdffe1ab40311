#![allow(clippy::unwrap_used)]
use bson::spec::BinarySubtype;
use bson::{Binary, DateTime, Document, RawDocumentBuf, Timestamp, doc};
use thalweg_config::Properties;
use thalweg_core::convert::{Converter, DecimalFormat, JsonConverter};

use super::*;

const NOW: i64 = 1_795_976_186_271;
const RUN: &str = "01a22885-c306-745a-80ce-80cb961a59b4";

fn config(more: &[(&str, &str)]) -> MongoConfig {
    let base = [
        ("mongodb.connection.string", "mongodb://h/?replicaSet=rs0"),
        ("topic.prefix", "p"),
        ("source.version.reported", "3.6.1.Final"),
    ];
    let properties: Properties = base.iter().chain(more).map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    MongoConfig::parse(&properties).unwrap()
}

fn decoder(more: &[(&str, &str)]) -> Decoder {
    of_shard(more, None)
}

fn of_shard(more: &[(&str, &str)], replica_set: Option<&str>) -> Decoder {
    let config = config(more);
    let filter = Arc::new(NamespaceFilter::new(&config.filters).unwrap());
    Decoder::new(&config, filter, 0, RUN, replica_set.map(Into::into))
}

fn bytes(document: &Document) -> Bytes {
    RawDocumentBuf::try_from(document).unwrap().into_bytes().into()
}

/// A change of `d.c1` at increment `ord`, with wall clock.
fn event(operation: &str, ord: u32, wall: i64, id: i32, more: Document) -> Document {
    let mut event = doc! {
        "_id": {"_data": format!("826B0C6BFA{ord:08X}2B022C0100296E5A1004")},
        "operationType": operation,
        "clusterTime": Timestamp { time: 1_795_976_186, increment: ord },
        "wallTime": DateTime::from_millis(wall),
        "ns": {"db": "d", "coll": "c1"},
        "documentKey": {"_id": id},
    };
    event.extend(more);
    event
}

fn json(converter: &mut JsonConverter, datum: &Datum) -> Option<String> {
    let mut out = Vec::new();
    if datum.is_none() {
        return None;
    }
    converter.convert(&"t".into(), datum.schema.as_ref(), &datum.value, &mut out).unwrap();
    Some(String::from_utf8(out).unwrap())
}

/// Key and value without schemas.
fn payload(record: &Record) -> (String, Option<String>) {
    let mut plain = JsonConverter { schemas: false, decimals: DecimalFormat::Base64, default_for_null: true };
    (json(&mut plain, &record.key).unwrap(), json(&mut plain, &record.value))
}

/// The records of some events.
fn records(decoder: &mut Decoder, events: &[Document]) -> Vec<Record> {
    let mut out = Vec::new();
    for event in events {
        decoder.change(&bytes(event), NOW, &mut out).unwrap();
    }
    out
}

/// The value of the only record of an event.
fn value(more: &[(&str, &str)], event: Document) -> String {
    payload(&records(&mut decoder(more), &[event])[0]).1.unwrap()
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let from = text.find(start).unwrap() + start.len();
    &text[from..from + text[from..].find(end).unwrap()]
}

const KEY: &str = r#"{"schema":{"type":"struct","fields":[{"type":"string","optional":false,"field":"id"}],"optional":false,"name":"p.d.c1.Key"},"payload":{"id":"2"}}"#;

const SCHEMA: &str = concat!(
    r#"{"type":"struct","fields":["#,
    r#"{"type":"string","optional":true,"name":"io.debezium.data.Json","version":1,"field":"before"},"#,
    r#"{"type":"string","optional":true,"name":"io.debezium.data.Json","version":1,"field":"after"},"#,
    r#"{"type":"struct","fields":[{"type":"array","items":{"type":"string","optional":false},"optional":true,"field":"removedFields"},"#,
    r#"{"type":"string","optional":true,"name":"io.debezium.data.Json","version":1,"field":"updatedFields"},"#,
    r#"{"type":"array","items":{"type":"struct","fields":[{"type":"string","optional":false,"field":"field"},{"type":"int32","optional":false,"field":"size"}],"#,
    r#""optional":false,"name":"io.debezium.connector.mongodb.changestream.truncatedarray","version":1},"optional":true,"field":"truncatedArrays"}],"#,
    r#""optional":true,"name":"io.debezium.connector.mongodb.changestream.updatedescription","version":1,"field":"updateDescription"},"#,
    r#"{"type":"struct","fields":[{"type":"string","optional":false,"field":"version"},{"type":"string","optional":false,"field":"connector"},"#,
    r#"{"type":"string","optional":false,"field":"name"},{"type":"int64","optional":false,"field":"ts_ms"},"#,
    r#"{"type":"string","optional":true,"name":"io.debezium.data.Enum","version":1,"parameters":{"allowed":"true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"},"default":"false","field":"snapshot"},"#,
    r#"{"type":"string","optional":false,"field":"db"},{"type":"string","optional":true,"field":"sequence"},"#,
    r#"{"type":"int64","optional":true,"field":"ts_us"},{"type":"int64","optional":true,"field":"ts_ns"},"#,
    r#"{"type":"string","optional":false,"field":"collection"},{"type":"int32","optional":false,"field":"ord"},"#,
    r#"{"type":"string","optional":true,"field":"lsid"},{"type":"int64","optional":true,"field":"txnNumber"},"#,
    r#"{"type":"int64","optional":true,"field":"wallTime"}],"optional":false,"name":"io.debezium.connector.mongo.Source","version":1,"field":"source"},"#,
    r#"{"type":"string","optional":true,"field":"op"},{"type":"int64","optional":true,"field":"ts_ms"},"#,
    r#"{"type":"struct","fields":[{"type":"string","optional":false,"field":"id"},{"type":"int64","optional":false,"field":"total_order"},"#,
    r#"{"type":"int64","optional":false,"field":"data_collection_order"}],"optional":true,"name":"event.block","version":1,"field":"transaction"}],"#,
    r#""optional":false,"name":"p.d.c1.Envelope"}"#
);

/// The flow of insert, update, replace, unset and delete as recorded, whole messages.
#[test]
fn messages_of_every_operation_as_recorded() {
    let mut decoder = decoder(&[("database.include.list", "d")]);
    let out = records(
        &mut decoder,
        &[
            event("insert", 1, 1_795_976_186_235, 2, doc! {"fullDocument": {"_id": 2, "a": "x"}}),
            event(
                "update",
                2,
                1_795_976_186_297,
                2,
                doc! {
                    "fullDocument": {"_id": 2, "a": "y"},
                    "updateDescription": {"updatedFields": {"a": "y"}, "removedFields": [], "truncatedArrays": []},
                },
            ),
            event("replace", 3, 1_795_976_186_348, 2, doc! {"fullDocument": {"_id": 2, "b": 5}}),
            event(
                "update",
                4,
                1_795_976_186_400,
                2,
                doc! {
                    "fullDocument": {"_id": 2},
                    "updateDescription": {"updatedFields": {}, "removedFields": ["b"], "truncatedArrays": []},
                },
            ),
            event("delete", 5, 1_795_976_186_451, 2, doc! {}),
        ],
    );
    let source = |ms: i64, ord: u32| {
        format!(
            r#""source":{{"version":"3.6.1.Final","connector":"mongodb","name":"p","ts_ms":{ms},"snapshot":"false","db":"d","sequence":null,"ts_us":{ms}000,"ts_ns":{ms}000000,"collection":"c1","ord":{ord},"lsid":null,"txnNumber":null,"wallTime":{ms}}}"#
        )
    };
    let message = |images: &str, ms: i64, ord: u32, op: &str| {
        let source = source(ms, ord);
        format!(r#"{{"schema":{SCHEMA},"payload":{{{images},{source},"op":"{op}","ts_ms":{NOW},"transaction":null}}}}"#)
    };
    let expected = [
        message(
            r#""before":null,"after":"{\"_id\": 2,\"a\": \"x\"}","updateDescription":null"#,
            1_795_976_186_235,
            1,
            "c",
        ),
        message(
            r#""before":null,"after":"{\"_id\": 2,\"a\": \"y\"}","updateDescription":{"removedFields":null,"updatedFields":"{\"a\": \"y\"}","truncatedArrays":null}"#,
            1_795_976_186_297,
            2,
            "u",
        ),
        message(r#""before":null,"after":"{\"_id\": 2,\"b\": 5}","updateDescription":null"#, 1_795_976_186_348, 3, "u"),
        message(
            r#""before":null,"after":"{\"_id\": 2}","updateDescription":{"removedFields":["b"],"updatedFields":"{}","truncatedArrays":null}"#,
            1_795_976_186_400,
            4,
            "u",
        ),
        message(r#""before":null,"after":null,"updateDescription":null"#, 1_795_976_186_451, 5, "d"),
    ];
    assert_eq!(out.len(), 6);
    let mut converter = JsonConverter::with_schemas();
    for (record, expected) in out.iter().zip(&expected) {
        assert_eq!(json(&mut converter, &record.key).as_deref(), Some(KEY));
        assert_eq!(json(&mut converter, &record.value).as_ref(), Some(expected));
    }
    let tombstone = &out[5];
    assert_eq!(json(&mut converter, &tombstone.key).as_deref(), Some(KEY));
    assert!(tombstone.value.is_none());
    for record in &out {
        assert_eq!((&*record.topic, record.partition, record.timestamp), ("p.d.c1", None, None));
        let headers: Vec<_> = record.headers.iter().map(|h| &*h.name).collect();
        assert_eq!(
            headers,
            [
                "__debezium.context.connectorLogicalName",
                "__debezium.context.taskId",
                "__debezium.context.connectorName",
                "__debezium.context.runId",
            ]
        );
    }
}

#[test]
fn a_delete_is_done_with_its_tombstone() {
    let mut decoder = decoder(&[]);
    let start = MongoPosition::at(Timestamp { time: 1, increment: 1 }).encode();
    decoder.stream_from(start.clone());
    let out = records(
        &mut decoder,
        &[
            event("delete", 5, NOW, 1, doc! {}),
            event("delete", 6, NOW, 2, doc! {}),
            event("insert", 7, NOW, 3, doc! {"fullDocument": {"_id": 3}}),
        ],
    );
    let ords: Vec<_> = out.iter().map(|r| MongoPosition::decode(&r.position).unwrap().ord).collect();
    assert_eq!(out[0].position, start);
    assert_eq!(ords, [1, 5, 5, 6, 7]);
    let offset = MongoPosition::decode(&out[4].position).unwrap().to_offset();
    assert_eq!((&offset["sec"], &offset["ord"]), (&1_795_976_186.into(), &7.into()));
    assert!(offset["resume_token"].is_string());

    let mut without = self::decoder(&[("tombstones.on.delete", "false"), ("extended.headers.enabled", "false")]);
    let out = records(&mut without, &[event("delete", 5, NOW, 1, doc! {})]);
    assert_eq!((out.len(), MongoPosition::decode(&out[0].position).unwrap().ord, out[0].headers.len()), (1, 5, 0));
}

#[test]
fn mgo_02_source_time_is_the_wall_clock_if_there_is_one() {
    let with = value(&[], event("insert", 1, 1_795_976_186_235, 1, doc! {"fullDocument": {"_id": 1}}));
    assert_eq!(between(&with, "\"ts_ms\":", ","), "1795976186235");
    let mut old = event("insert", 1, 0, 1, doc! {"fullDocument": {"_id": 1}});
    old.remove("wallTime");
    let without = value(&[], old);
    assert_eq!(between(&without, "\"ts_ms\":", ","), "1795976186000");
    assert!(without.contains(r#""wallTime":null}"#));
}

#[test]
fn mgo_13_forms_of_numbers_and_dates() {
    let change = || {
        let fields = doc! {"phone": 456_i64, "at": DateTime::from_millis(1_704_067_200_000)};
        let mut full = doc! {"_id": 1};
        full.extend(fields.clone());
        event("update", 1, NOW, 1, doc! {"fullDocument": full, "updateDescription": {"updatedFields": fields}})
    };
    for (mode, after, updated) in [
        (
            "legacy",
            r#"{\"_id\": 1,\"phone\": {\"$numberLong\": \"456\"},\"at\": {\"$date\": 1704067200000}}"#,
            r#"{\"phone\": 456, \"at\": {\"$date\": \"2024-01-01T00:00:00Z\"}}"#,
        ),
        (
            "strict",
            r#"{\"_id\": 1,\"phone\": {\"$numberLong\": \"456\"},\"at\": {\"$date\": 1704067200000}}"#,
            r#"{\"phone\": {\"$numberLong\": \"456\"},\"at\": {\"$date\": 1704067200000}}"#,
        ),
        (
            "relaxed",
            r#"{\"_id\": 1,\"phone\": 456,\"at\": {\"$date\": \"2024-01-01T00:00:00Z\"}}"#,
            r#"{\"phone\": 456,\"at\": {\"$date\": \"2024-01-01T00:00:00Z\"}}"#,
        ),
        (
            "extended",
            r#"{\"_id\": {\"$numberInt\": \"1\"},\"phone\": {\"$numberLong\": \"456\"},\"at\": {\"$date\": {\"$numberLong\": \"1704067200000\"}}}"#,
            r#"{\"phone\": {\"$numberLong\": \"456\"},\"at\": {\"$date\": {\"$numberLong\": \"1704067200000\"}}}"#,
        ),
    ] {
        let value = value(&[("json.serialization.mode", mode)], change());
        assert_eq!(between(&value, "\"after\":\"", "\",\"updateDescription\""), after, "{mode}");
        assert_eq!(between(&value, "\"updatedFields\":\"", "\",\"truncatedArrays\""), updated, "{mode}");
    }
}

#[test]
fn mgo_15_images_before_the_change() {
    let images = doc! {"fullDocumentBeforeChange": {"_id": 1, "a": 1}};
    let deleted = value(&[], event("delete", 1, NOW, 1, images.clone()));
    assert!(
        deleted.starts_with(r#"{"before":"{\"_id\": 1,\"a\": 1}","after":null,"updateDescription":null,"#),
        "{deleted}"
    );
    let unknown = value(&[], event("delete", 1, NOW, 1, doc! {"fullDocumentBeforeChange": null}));
    assert!(unknown.starts_with(r#"{"before":null,"after":null,"#));
    let mut updated = images;
    updated.extend(doc! {"fullDocument": null, "updateDescription": {"updatedFields": {"a": 2}, "removedFields": []}});
    let updated = value(&[], event("update", 1, NOW, 1, updated));
    assert!(
        updated.starts_with(
            r#"{"before":"{\"_id\": 1,\"a\": 1}","after":null,"updateDescription":{"removedFields":null,"#
        )
    );
}

#[test]
fn mgo_14_a_lookup_that_found_nothing() {
    let gone = doc! {"fullDocument": null, "updateDescription": {"updatedFields": {"a": 2}, "removedFields": []}};
    let value = value(&[], event("update", 1, NOW, 1, gone));
    assert!(value.starts_with(
        r#"{"before":null,"after":null,"updateDescription":{"removedFields":null,"updatedFields":"{\"a\": 2}","#
    ));
}

#[test]
fn mgo_16_a_replacement_has_the_new_document_and_no_description() {
    let value = value(
        &[("capture.mode", "change_streams")],
        event("replace", 1, NOW, 1, doc! {"fullDocument": {"_id": 1, "x": 2}}),
    );
    assert!(value.starts_with(r#"{"before":null,"after":"{\"_id\": 1,\"x\": 2}","updateDescription":null,"#));
    assert!(value.contains(r#""op":"u""#));
}

#[test]
fn descriptions_of_updates() {
    let described = |description: Document| {
        let value = value(&[], event("update", 1, NOW, 1, doc! {"updateDescription": description}));
        between(&value, "\"updateDescription\":", ",\"source\"").to_owned()
    };
    assert_eq!(
        described(doc! {"updatedFields": {"x": 2, "arr.1": 9, "n.k": 5}, "removedFields": []}),
        r#"{"removedFields":null,"updatedFields":"{\"x\": 2, \"arr.1\": 9, \"n.k\": 5}","truncatedArrays":null}"#
    );
    assert_eq!(
        described(
            doc! {"updatedFields": {}, "removedFields": ["n.k"], "truncatedArrays": [{"field": "arr", "newSize": 2}]}
        ),
        r#"{"removedFields":["n.k"],"updatedFields":"{}","truncatedArrays":[{"field":"arr","size":2}]}"#
    );
    assert_eq!(
        described(doc! {"updatedFields": {"arr.2": null, "n": f64::NAN}, "removedFields": []}),
        r#"{"removedFields":null,"updatedFields":"{\"arr.2\": null, \"n\": {\"$numberDouble\": \"NaN\"}}","truncatedArrays":null}"#
    );
}

#[test]
fn sessions_of_transactions() {
    let id = Binary { subtype: BinarySubtype::Uuid, bytes: vec![0xC6; 16] };
    let user = Binary { subtype: BinarySubtype::Generic, bytes: vec![0; 3] };
    let more = doc! {"fullDocument": {"_id": 1}, "txnNumber": 3_i64, "lsid": {"id": id, "uid": user}};
    let mut decoder = decoder(&[]);
    let out = records(&mut decoder, &[event("insert", 1, NOW, 1, more)]);
    let value = payload(&out[0]).1.unwrap();
    assert!(value.contains(
        r#""ord":1,"lsid":"{\"id\": {\"$binary\": \"xsbGxsbGxsbGxsbGxsbGxg==\",\"$type\": \"04\"},\"uid\": {\"$binary\": \"AAAA\",\"$type\": \"00\"}}","txnNumber":3,"#
    ));
    let offset = MongoPosition::decode(&out[0].position).unwrap().to_offset();
    assert_eq!(offset["txnNumber"], 3);
    assert_eq!(
        offset["lsid"],
        r#"{"id": {"$binary": "xsbGxsbGxsbGxsbGxsbGxg==","$type": "04"},"uid": {"$binary": "AAAA","$type": "00"}}"#
    );
}

#[test]
fn shards_are_named_only_where_each_has_its_stream() {
    let mut decoder = of_shard(&[], Some("rsA"));
    let out = records(&mut decoder, &[event("insert", 1, NOW, 1, doc! {"fullDocument": {"_id": 1}})]);
    assert!(payload(&out[0]).1.unwrap().contains(r#","rs":"rsA","collection":"c1","ord":1,"#));
}

#[test]
fn mgo_17_events_that_are_no_changes_of_documents_move_the_position_only() {
    let mut decoder = decoder(&[]);
    let mut out = Vec::new();
    for (i, name) in
        ["drop", "rename", "dropDatabase", "invalidate", "createIndexes", "modify", "brandNew"].iter().enumerate()
    {
        let seen = decoder.change(&bytes(&event(name, i as u32 + 1, NOW, 1, doc! {})), NOW, &mut out).unwrap();
        assert_eq!((seen.fate, MongoPosition::decode(&seen.position).unwrap().ord), (Fate::Filtered, i as i32 + 1));
    }
    assert!(out.is_empty());
}

#[test]
fn filtered_collections_move_the_position_only() {
    let mut decoder = decoder(&[("collection.include.list", "d.other")]);
    let mut out = Vec::new();
    let seen = decoder
        .change(&bytes(&event("insert", 9, NOW - 5, 1, doc! {"fullDocument": {"_id": 1}})), NOW, &mut out)
        .unwrap();
    assert_eq!((seen.fate, seen.source_ms, out.len()), (Fate::Filtered, NOW - 5, 0));
    assert_eq!(MongoPosition::decode(&seen.position).unwrap().ord, 9);
}

#[test]
fn an_event_without_key_follows_the_failure_mode() {
    let mut keyless = event("insert", 4, NOW, 1, doc! {"fullDocument": {"_id": 1}});
    keyless.insert("documentKey", doc! {"region": "eu"});
    let keyless = bytes(&keyless);
    let error = decoder(&[]).change(&keyless, NOW, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind, thalweg_core::ErrorKind::ValueInvalid);
    assert!(
        error
            .message
            .starts_with(r#"Error while processing event at offset {"sec":1795976186,"ord":4,"resume_token":""#),
        "{}",
        error.message
    );
    assert!(error.message.ends_with("\"} of collection d.c1"), "{}", error.message);
    assert!(error.causes[0].contains("no _id"));
    for mode in ["warn", "skip", "ignore"] {
        let mut out = Vec::new();
        let mut decoder = decoder(&[("event.processing.failure.handling.mode", mode)]);
        let seen = decoder.change(&keyless, NOW, &mut out).unwrap();
        assert_eq!((seen.fate, out.len()), (Fate::Failed, 0));
        assert_eq!((decoder.take_failures(), decoder.take_failures()), (1, 0));
        assert_eq!(MongoPosition::decode(&seen.position).unwrap().ord, 4);
    }
}

#[test]
fn run_08_a_failure_names_collection_and_document() {
    // Without a token there is no record, but still a collection.
    let mut damaged = event("insert", 4, NOW, 1, doc! {});
    damaged.remove("_id");
    let error = decoder(&[]).change(&bytes(&damaged), NOW, &mut Vec::new()).unwrap_err();
    assert!(error.message.ends_with(" of collection d.c1"), "{}", error.message);

    let mut document = bytes(&doc! {"_id": {"k": "a~~b"}}).to_vec();
    let at = document.windows(2).position(|w| w == b"~~").unwrap();
    document[at..at + 2].copy_from_slice(b"\xC3\x28");
    let mut decoder = decoder(&[]);
    decoder.snapshot_from(&MongoPosition::at(Timestamp { time: 9, increment: 4 }));
    let now = SourceTime::from_millis(NOW);
    let error = decoder.read(&Namespace::new("d", "c1"), &document.into(), now).unwrap_err();
    let expected = "Error while processing event at offset {\"sec\":9,\"ord\":4} of collection d.c1, \
                    document with _id {\"k\": \"a\u{fffd}(b\"}";
    assert_eq!((error.phase, error.message.as_str()), (Phase::Snapshot, expected));
}

#[test]
fn mgo_28_an_id_that_is_not_utf8_fails_and_the_rest_goes_on() {
    let mut raw = bytes(&event("insert", 1, NOW, 1, doc! {"fullDocument": {"_id": 1, "s": "x~~y"}})).to_vec();
    let at = raw.windows(2).position(|w| w == b"~~").unwrap();
    raw[at..at + 2].copy_from_slice(b"\xC3\x28");
    let mut out = Vec::new();
    let mut decoder = decoder(&[("event.processing.failure.handling.mode", "warn")]);
    decoder.change(&raw.into(), NOW, &mut out).unwrap();
    assert!(payload(&out[0]).1.unwrap().contains("\"{\\\"_id\\\": 1,\\\"s\\\": \\\"x\u{fffd}(y\\\"}\""));

    let mut keyed = event("insert", 1, NOW, 1, doc! {"fullDocument": {"_id": 1}});
    keyed.insert("documentKey", doc! {"_id": "a~~b"});
    let mut raw = bytes(&keyed).to_vec();
    let at = raw.windows(2).position(|w| w == b"~~").unwrap();
    raw[at..at + 2].copy_from_slice(b"\xC3\x28");
    assert_eq!(decoder.change(&raw.into(), NOW, &mut out).unwrap().fate, Fate::Failed);
    records(&mut decoder, &[event("insert", 2, NOW, 2, doc! {"fullDocument": {"_id": 2}})]);
}

#[test]
fn damaged_events_are_failures_and_not_panics() {
    let good = bytes(&event("insert", 1, NOW, 1, doc! {"fullDocument": {"_id": 1, "a": [1, {"b": "c"}]}}));
    let mut tolerant = decoder(&[("event.processing.failure.handling.mode", "skip")]);
    for at in 4..good.len() {
        for byte in [0, 0x7F, 0xFF] {
            let mut damaged = good.to_vec();
            damaged[at] = byte;
            let mut out = Vec::new();
            tolerant.change(&damaged.into(), NOW, &mut out).unwrap();
            out.iter().for_each(|record| drop(payload(record)));
        }
    }
    assert!(decoder(&[]).change(&good.slice(..20), NOW, &mut Vec::new()).is_err());
}

#[test]
fn documents_of_a_snapshot() {
    let mut decoder = decoder(&[]);
    let token: Bytes = bson::rawdoc! {"_data": "826B0C5F11000000062B0229296E04"}.into_bytes().into();
    decoder.snapshot_from(&MongoPosition::behind_batch(token));
    let namespace = Namespace::new("d", "c1");
    let now = SourceTime::from_nanos(1_795_976_185_692_999_128);
    let mut record = decoder.read(&namespace, &bytes(&doc! {"_id": 1, "a": 1}), now).unwrap().unwrap();
    let offset = MongoPosition::decode(&record.position).unwrap().to_offset();
    assert_eq!(
        serde_json::Value::Object(offset).to_string(),
        r#"{"sec":-1,"ord":-1,"initsync":true,"resume_token":"LwAAAAJfZGF0YQAfAAAAODI2QjBDNUYxMTAwMDAwMDA2MkIwMjI5Mjk2RTA0AAA="}"#
    );
    let read = |record: &Record| payload(record).1.unwrap();
    assert!(read(&record).contains(r#""snapshot":"true""#));
    decoder.complete(&mut record);
    assert_eq!(
        read(&record),
        r#"{"before":null,"after":"{\"_id\": 1,\"a\": 1}","updateDescription":null,"source":{"version":"3.6.1.Final","connector":"mongodb","name":"p","ts_ms":1795976185692,"snapshot":"last","db":"d","sequence":null,"ts_us":1795976185692999,"ts_ns":1795976185692999128,"collection":"c1","ord":-1,"lsid":null,"txnNumber":null,"wallTime":null},"op":"r","ts_ms":1795976185692,"transaction":null}"#
    );
    let offset = MongoPosition::decode(&record.position).unwrap();
    assert!(!offset.is_unfinished() && offset.token.is_some());
    // A position with a time is the time of what was read.
    decoder.snapshot_from(&MongoPosition::at(Timestamp { time: 1_700_000_000, increment: 4 }));
    let timed = decoder.read(&namespace, &bytes(&doc! {"_id": 1}), now).unwrap().unwrap();
    assert!(
        read(&timed).contains(r#""ts_ms":1700000000000,"snapshot":"true","#) && read(&timed).contains(r#""ord":4,"#)
    );
}

#[test]
fn mgo_09_one_document_has_one_key_everywhere() {
    let mut decoder = decoder(&[("json.serialization.mode", "extended")]);
    let mut out = records(
        &mut decoder,
        &[
            event("insert", 1, NOW, 7, doc! {"fullDocument": {"_id": 7}}),
            event("update", 2, NOW, 7, doc! {"updateDescription": {"updatedFields": {}}}),
            event("delete", 3, NOW, 7, doc! {}),
        ],
    );
    out.extend(
        decoder.read(&Namespace::new("d", "c1"), &bytes(&doc! {"_id": 7_i64}), SourceTime::from_millis(1)).unwrap(),
    );
    for record in &out {
        assert_eq!(payload(record).0, r#"{"id":"7"}"#);
    }
    assert_eq!(out.len(), 5);
}

#[path = "event_fields_tests.rs"]
mod fields;

/// With stages of the user's own instead of the connector's, the server sends all of them.
#[test]
fn skipped_operations_are_left_out_here_as_well() {
    let full = || doc! {"fullDocument": {"_id": 1}};
    let all = [
        event("insert", 1, NOW, 1, full()),
        event("update", 2, NOW, 1, full()),
        event("replace", 3, NOW, 1, full()),
        event("delete", 4, NOW, 1, doc! {}),
    ];
    let ops = |skipped: &str| -> Vec<String> {
        let out = records(&mut decoder(&[("skipped.operations", skipped)]), &all);
        let op = |r: &Record| payload(r).1.map_or("-".to_owned(), |v| between(&v, "\"op\":\"", "\"").to_owned());
        out.iter().map(op).collect()
    };
    assert_eq!(ops("none"), ["c", "u", "u", "d", "-"]);
    assert_eq!(ops("c"), ["u", "u", "d", "-"]);
    assert_eq!(ops("u , D"), ["c"]);
    assert_eq!(ops("d,t,r"), ["c", "u", "u"]);
    let all_is_the_users = [("skipped.operations", "c"), ("cursor.pipeline.order", "user_only")];
    assert_eq!(records(&mut decoder(&all_is_the_users), &all).len(), 5);
    let mut decoder = decoder(&[("skipped.operations", "d")]);
    let seen = decoder.change(&bytes(&all[3]), NOW, &mut Vec::new()).unwrap();
    assert_eq!((seen.fate, MongoPosition::decode(&seen.position).unwrap().ord), (Fate::Filtered, 4));
}

#[path = "event_transaction_tests.rs"]
mod transactions;
