//! Documents and change events as a server might send them, damaged or not.
//!
//! Promised: no panic. What is refused is refused by every writer, and leaves the output as it was. What is
//! written is UTF-8 and JSON (strict mode writes numbers that JSON does not have as bare words), of at most
//! [`GROWTH`] bytes for each byte of BSON; the escaped form is the plain one inside of a JSON string; the
//! spacing does not change what a text says. Records of events have keys and values that the JSON converter
//! writes, and a position that can be decoded.
//!
//! The first byte says how the others are read: as BSON, as a value of some kind, as a program that writes a
//! document (`program`) or an event, or as a row of documents of a stream.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde_json::Value as Json;
use thalweg_config::Properties;
use thalweg_core::convert::{Converter, JsonConverter, Written};
use thalweg_core::envelope::SourceTime;
use thalweg_core::record::{Record, RenderText, TextForm};
use thalweg_mongodb::event::Decoder;
use thalweg_mongodb::extended_json::{self, Document, Writer};
use thalweg_mongodb::filter::NamespaceFilter;
use thalweg_mongodb::namespace::Namespace;
use thalweg_mongodb::options::MongoConfig;
use thalweg_mongodb::position::MongoPosition;
use thalweg_mongodb::split::Fragments;
use thalweg_mongodb::{key, raw};

use super::program::{Program, closed, push, string};

const WRITERS: [Writer; 4] = [Writer::Strict, Writer::Relaxed, Writer::Canonical, Writer::RelaxedSpaced];

/// The shortest value with the longest text: an empty regular expression in an array.
const GROWTH: usize = 24;

/// One input.
pub fn run(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    match choice {
        0 => document(Bytes::copy_from_slice(rest)),
        1 => value(rest),
        2 => document(Program(rest).document(0).into()),
        3 => events(Program(rest).byte(), |stream| stream.0.split(|b| *b == 0xFE).map(<[u8]>::to_vec).collect(), rest),
        _ => events(choice, |stream| vec![event(stream), event(stream)], rest),
    }
}

fn document(bytes: Bytes) {
    let good = raw::check(&bytes).is_ok();
    let mut texts = Vec::new();
    for writer in WRITERS {
        let made = Document::new(bytes.clone(), writer);
        assert_eq!(made.is_ok(), good);
        let Ok(made) = made else { continue };
        let (mut plain, mut escaped) = (Vec::new(), Vec::new());
        made.render(TextForm::Plain, &mut plain);
        made.render(TextForm::JsonEscaped, &mut escaped);
        let mut again = b"x".to_vec();
        let written = extended_json::write_value(writer, TextForm::Plain, raw::kind::DOCUMENT, &bytes, &mut again);
        if written.is_ok() {
            assert_eq!(&again[1..], plain, "{writer:?}");
        } else {
            assert_eq!(again, b"x");
        }
        look(writer, bytes.len(), &plain, &escaped);
        texts.push(plain);
    }
    if let [_, relaxed, _, spaced] = texts.as_slice()
        && let Ok(relaxed) = serde_json::from_slice::<Json>(relaxed)
    {
        assert_eq!(serde_json::from_slice::<Json>(spaced).ok(), Some(relaxed));
    }
    if let Ok(id) = key::id_of(&bytes) {
        let _ = key::key_text(&id, &mut Vec::new());
    }
}

fn value(rest: &[u8]) {
    let Some((&kind, bytes)) = rest.split_first() else { return };
    for writer in WRITERS {
        let (mut plain, mut escaped) = (Vec::new(), Vec::new());
        let written = extended_json::write_value(writer, TextForm::Plain, kind, bytes, &mut plain);
        assert_eq!(extended_json::write_value(writer, TextForm::JsonEscaped, kind, bytes, &mut escaped), written);
        match written {
            Ok(()) => look(writer, bytes.len() + 1, &plain, &escaped),
            Err(_) => assert!(plain.is_empty() && escaped.is_empty()),
        }
    }
    if let Some(decimal) = bytes.first_chunk() {
        assert!(!extended_json::decimal_text(decimal).is_empty());
    }
    let mut repaired = String::new();
    extended_json::push_lossy(bytes, &mut repaired);
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert_eq!(repaired, text);
    }
}

fn look(writer: Writer, size: usize, plain: &[u8], escaped: &[u8]) {
    assert!(escaped.len() <= GROWTH * (size + 4), "{} bytes became {}", size, escaped.len());
    let text = std::str::from_utf8(plain).expect("UTF-8");
    let quoted = [b"\"", escaped, b"\""].concat();
    assert_eq!(serde_json::from_slice::<String>(&quoted).expect("the inside of a JSON string"), text);
    let bare_words = writer == Writer::Strict && (text.contains("NaN") || text.contains("Infinity"));
    if !bare_words {
        // Reads without recursion, so depth does not matter.
        serde_json::from_str::<IgnoredAny>(text).expect("JSON");
    }
}

/// A change event of which the program says what is inside.
fn event(stream: &mut Program<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    let marks = stream.byte();
    let token = stream.text();
    push(
        &mut body,
        0x03,
        b"_id",
        &closed(&{
            let mut id = Vec::new();
            push(&mut id, 0x02, b"_data", &string(&token));
            id
        }),
    );
    let operation = ["insert", "update", "replace", "delete", "drop", "invalidate"][usize::from(marks & 7) % 6];
    push(&mut body, 0x02, b"operationType", &string(operation.as_bytes()));
    let mut ns = Vec::new();
    push(&mut ns, 0x02, b"db", &string(b"shop"));
    let collection = if marks & 8 == 0 { b"orders".to_vec() } else { stream.text() };
    push(&mut ns, 0x02, b"coll", &string(&collection));
    push(&mut body, 0x03, b"ns", &closed(&ns));
    push(&mut body, 0x11, b"clusterTime", &stream.fixed::<8>());
    if marks & 16 != 0 {
        push(&mut body, 0x03, b"lsid", &stream.document(2));
        push(&mut body, 0x12, b"txnNumber", &stream.fixed::<8>());
    }
    let mut id = Vec::new();
    let kind = if marks & 32 == 0 { 0x10 } else { stream.byte() };
    push(&mut id, kind, b"_id", &stream.value(kind, 2));
    push(&mut body, 0x03, b"documentKey", &closed(&id));
    push(&mut body, 0x03, b"fullDocument", &stream.document(2));
    if marks & 64 != 0 {
        push(&mut body, 0x03, b"fullDocumentBeforeChange", &stream.document(2));
    }
    if operation == "update" {
        let mut update = Vec::new();
        push(&mut update, 0x03, b"updatedFields", &stream.document(2));
        push(&mut update, 0x04, b"removedFields", &stream.document(2));
        push(&mut update, 0x04, b"truncatedArrays", &stream.document(2));
        push(&mut body, 0x03, b"updateDescription", &closed(&update));
    }
    // Whatever else there may be, also the fields above once more.
    body.extend_from_slice(stream.document(1).get(4..).and_then(|b| b.split_last()).map_or(&[][..], |(_, b)| b));
    closed(&body)
}

/// Configurations, each with what a decoder takes from it.
fn configurations() -> &'static [(MongoConfig, Arc<NamespaceFilter>)] {
    static MADE: OnceLock<Vec<(MongoConfig, Arc<NamespaceFilter>)>> = OnceLock::new();
    MADE.get_or_init(|| {
        let base = [("mongodb.connection.string", "mongodb://h/?replicaSet=rs0"), ("topic.prefix", "shop")];
        let warn = ("event.processing.failure.handling.mode", "warn");
        let more: [&[(&str, &str)]; 4] = [
            &[warn],
            &[
                warn,
                ("field.exclude.list", "*.*.a.b,shop.orders.data"),
                ("field.renames", "shop.orders.a:z,*.*.field.a:q,*.*.id:_id2"),
                ("json.serialization.mode", "relaxed"),
                ("provide.transaction.metadata", "true"),
            ],
            &[("json.serialization.mode", "extended"), ("provide.transaction.metadata", "true")],
            &[
                warn,
                ("collection.include.list", "shop\\.o.*"),
                ("skipped.operations", "d"),
                ("json.serialization.mode", "strict"),
                ("extended.headers.enabled", "true"),
            ],
        ];
        more.iter()
            .map(|more| {
                let pairs = base.iter().chain(more.iter());
                let properties: Properties = pairs.map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
                let config = MongoConfig::parse(&properties).expect("a good configuration");
                let filter = NamespaceFilter::new(&config.filters).expect("good lists");
                (config, Arc::new(filter))
            })
            .collect()
    })
}

fn events(choice: u8, read: impl Fn(&mut Program<'_>) -> Vec<Vec<u8>>, rest: &[u8]) {
    let all = configurations();
    let (config, filter) = &all[usize::from(choice) % all.len()];
    let mut decoder = Decoder::new(config, filter.clone(), 0, "run", (choice & 64 != 0).then(|| "rs0".into()));
    let mut fragments = Fragments::default();
    let namespace = Namespace::new("shop", "orders");
    let documents = read(&mut Program(rest));
    for document in documents {
        let document = Bytes::from(document);
        // A document of a snapshot as well.
        if let Ok(Some(record)) = decoder.read(&namespace, &document, SourceTime::from_millis(7)) {
            look_at(&record);
        }
        let Ok(Some(event)) = fragments.take(document) else { continue };
        let mut records = Vec::new();
        let seen = decoder.change(&event, 5, &mut records);
        assert!(records.len() <= 4, "{} records", records.len());
        for record in &records {
            look_at(record);
        }
        if let Ok(seen) = seen
            && !seen.position.is_empty()
        {
            assert!(MongoPosition::decode(&seen.position).is_some());
        }
    }
}

fn look_at(record: &Record) {
    let mut converter = JsonConverter::with_schemas();
    converter.schemas = false;
    for datum in [&record.key, &record.value] {
        let mut out = Vec::new();
        match converter.convert_datum(&record.topic, datum, &mut out) {
            Ok(Written::Bytes) => drop(serde_json::from_slice::<IgnoredAny>(&out).expect("JSON")),
            Ok(_) => assert!(out.is_empty()),
            Err(error) => panic!("{error}"),
        }
    }
}
