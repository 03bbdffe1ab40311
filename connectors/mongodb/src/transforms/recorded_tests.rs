//! What Debezium made of the writes of a scenario, and what the decoder and these transforms make of them.
//!
//! The files are recordings of Debezium 3.6.1: configuration, writes, messages. The writes are played
//! against documents in memory here; the events that MongoDB would send for them go the usual way.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Arc;

use bson::{Bson, DateTime, Document, RawDocumentBuf, Timestamp, doc};
use bytes::Bytes;
use serde_json::Value as Json;
use thalweg_config::Properties;
use thalweg_core::convert::{Converters, Written};
use thalweg_core::envelope::SourceTime;
use thalweg_core::record::Record;
use thalweg_core::transform::{Chain, Fate, TransformClasses};

use crate::event::Decoder;
use crate::filter::NamespaceFilter;
use crate::lenient_json::parse_document;
use crate::namespace::Namespace;
use crate::options::MongoConfig;

const PREFIX: &str = "p-1";
const DB: &str = "db_1";

/// Topic, key, value, headers without the one that differs between runs.
type Message = (String, Option<String>, Option<String>, Vec<(String, Option<String>)>);

struct Scenario {
    decoder: Decoder,
    collections: BTreeMap<String, Vec<Document>>,
    records: Vec<Record>,
    events: u32,
}

fn substituted(text: &str) -> String {
    text.replace("${prefix}", PREFIX).replace("${db}", DB).replace("${uri}", "mongodb://h/?replicaSet=rs0")
}

fn document(json: &Json) -> Document {
    parse_document(&json.to_string()).unwrap()
}

fn bytes(document: &Document) -> Bytes {
    RawDocumentBuf::try_from(document).unwrap().into_bytes().into()
}

/// Sets or removes the value at a path with dots.
fn put(document: &mut Document, path: &str, value: Option<Bson>) {
    match (path.split_once('.'), value) {
        (Some((name, rest)), value) => put(document.get_document_mut(name).unwrap(), rest, value),
        (None, Some(value)) => drop(document.insert(path, value)),
        (None, None) => drop(document.remove(path)),
    }
}

impl Scenario {
    fn event(&mut self, operation: &str, collection: &str, id: &Bson, more: Document) {
        self.events += 1;
        let mut event = doc! {
            "_id": {"_data": format!("826B0C6BFA{:08X}2B022C0100296E5A1004", self.events)},
            "operationType": operation,
            "clusterTime": Timestamp { time: 1_795_976_186, increment: self.events },
            "wallTime": DateTime::from_millis(1_795_976_186_000),
            "ns": {"db": DB, "coll": collection},
            "documentKey": {"_id": id},
        };
        event.extend(more);
        self.decoder.change(&bytes(&event), 1_795_976_186_500, &mut self.records).unwrap();
    }

    fn matching(&self, collection: &str, filter: &Document) -> usize {
        let documents = &self.collections[collection];
        documents.iter().position(|d| filter.iter().all(|(name, value)| d.get(name) == Some(value))).unwrap()
    }

    fn insert(&mut self, collection: &str, json: &Json) {
        let document = document(json);
        let id = document.get("_id").unwrap().clone();
        self.event("insert", collection, &id, doc! {"fullDocument": document.clone()});
        self.collections.entry(collection.to_owned()).or_default().push(document);
    }

    fn step(&mut self, step: &Json) {
        let name = |key: &str| step[key].as_str().map(str::to_owned);
        if let Some(collection) = name("insert") {
            for document in step["docs"].as_array().unwrap() {
                self.insert(&collection, document);
            }
        } else if let Some(collection) = name("update") {
            let at = self.matching(&collection, &document(&step["filter"]));
            let change = document(&step["change"]);
            let mut changed = self.collections[&collection][at].clone();
            let (mut updated, mut removed) = (Document::new(), Vec::new());
            for (path, value) in change.get_document("$set").into_iter().flatten() {
                put(&mut changed, path, Some(value.clone()));
                updated.insert(path, value.clone());
            }
            for path in change.get_document("$unset").into_iter().flat_map(|unset| unset.keys()) {
                put(&mut changed, path, None);
                removed.push(path.clone());
            }
            let id = changed.get("_id").unwrap().clone();
            let description = doc! {"updatedFields": updated, "removedFields": removed, "truncatedArrays": []};
            let more = doc! {"fullDocument": changed.clone(), "updateDescription": description};
            self.event("update", &collection, &id, more);
            self.collections.get_mut(&collection).unwrap()[at] = changed;
        } else if let Some(collection) = name("replace") {
            let at = self.matching(&collection, &document(&step["filter"]));
            let id = self.collections[&collection][at].get("_id").unwrap().clone();
            let mut replaced = doc! {"_id": id.clone()};
            replaced.extend(document(&step["doc"]));
            self.event("replace", &collection, &id, doc! {"fullDocument": replaced.clone()});
            self.collections.get_mut(&collection).unwrap()[at] = replaced;
        } else if let Some(collection) = name("delete") {
            let at = self.matching(&collection, &document(&step["filter"]));
            let deleted = self.collections.get_mut(&collection).unwrap().remove(at);
            self.event("delete", &collection, deleted.get("_id").unwrap(), doc! {});
        } else {
            assert!(["wait", "sleep", "state"].iter().any(|known| step.get(known).is_some()), "unknown step {step}");
        }
    }

    /// What was there before is a snapshot.
    fn snapshot(&mut self, steps: &Json) {
        for step in steps.as_array().unwrap() {
            let collection = step["insert"].as_str().unwrap();
            for json in step["docs"].as_array().unwrap() {
                let document = document(json);
                let namespace = Namespace::new(DB.to_owned(), collection.to_owned());
                let now = SourceTime::from_millis(1_795_976_185_000);
                self.records.extend(self.decoder.read(&namespace, &bytes(&document), now).unwrap());
                self.collections.entry(collection.to_owned()).or_default().push(document);
            }
        }
    }
}

/// A message of each record that passes, up to the first that fails, unless errors are tolerated.
fn messages(config: &Properties, records: Vec<Record>) -> (Vec<Message>, Vec<String>) {
    let classes = TransformClasses::default().with(super::CLASSES);
    let mut chain = Chain::from_config(config, &classes).unwrap();
    let mut converters = Converters::from_config(config, &Properties::new()).unwrap();
    let tolerated = config.get("errors.tolerance") == Some("all");
    let (mut messages, mut errors) = (Vec::new(), Vec::new());
    for mut record in records {
        match chain.apply(&mut record) {
            Ok(Fate::Keep) => {}
            Ok(Fate::Drop) => continue,
            Err(failed) => {
                errors.push(failed.error.message);
                if tolerated {
                    continue;
                }
                break;
            }
        }
        let text = |bytes: Option<Vec<u8>>| bytes.map(|bytes| String::from_utf8(bytes).unwrap());
        let part = |converter: &mut dyn thalweg_core::convert::Converter, datum: &thalweg_core::record::Datum| {
            let mut out = Vec::new();
            let written = converter.convert_datum(&record.topic, datum, &mut out).unwrap();
            text((written == Written::Bytes).then_some(out))
        };
        let key = part(&mut *converters.key, &record.key);
        let value = part(&mut *converters.value, &record.value);
        let headers = converters.headers.encode(&record.topic, &record.headers).unwrap().iter();
        let headers = headers.map(|(name, value)| (name.to_string(), text(value.clone().map(|v| v.to_vec()))));
        messages.push((record.topic.to_string(), key, value, headers.filter(is_lasting).collect()));
    }
    (messages, errors)
}

fn is_lasting(header: &(String, Option<String>)) -> bool {
    header.0 != "__debezium.context.runId"
}

/// Plays a recording and compares. Gives what was refused.
fn replayed(recording: &str) -> Vec<String> {
    let json: Json = serde_json::from_str(recording).unwrap();
    let scenario = &json["scenario"];
    let connector = scenario["connector"].as_object().unwrap();
    let config: Properties =
        connector.iter().map(|(name, value)| (name.clone(), substituted(value.as_str().unwrap()))).collect();
    let mongo = MongoConfig::parse(&config).unwrap();
    let filter = Arc::new(NamespaceFilter::new(&mongo.filters).unwrap());
    let decoder = Decoder::new(&mongo, filter, 0, "run", None);
    let mut play = Scenario { decoder, collections: BTreeMap::new(), records: Vec::new(), events: 0 };
    play.snapshot(&scenario["setup"]);
    for step in scenario["steps"].as_array().unwrap() {
        play.step(step);
    }
    let (found, errors) = messages(&config, play.records);

    let mut expected: Vec<Message> = Vec::new();
    for (topic, recorded) in json["recorded"]["topics"].as_object().unwrap() {
        for message in recorded.as_array().unwrap() {
            let text = |json: &Json| json.as_str().map(substituted);
            let headers = message["headers"].as_array().unwrap().iter();
            let headers = headers.map(|pair| (text(&pair[0]).unwrap(), text(&pair[1])));
            let headers = headers.filter(is_lasting).collect();
            expected.push((substituted(topic), text(&message["key"]), text(&message["value"]), headers));
        }
    }
    for (_, _, _, headers) in &expected {
        assert!(headers.len() >= 2);
    }
    // Order counts within a topic only.
    let by_topic = |mut messages: Vec<Message>| {
        messages.sort_by(|a, b| a.0.cmp(&b.0));
        messages
    };
    let (found, expected) = (by_topic(found), by_topic(expected));
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
    errors
}

macro_rules! recordings {
    ($($test:ident: $file:literal;)*) => {$(
        #[test]
        fn $test() {
            assert_eq!(replayed(include_str!(concat!("../../tests/recordings/", $file, ".json"))), [""; 0]);
        }
    )*};
}

recordings! {
    documents_with_their_schemas: "smt-extract-default";
    deletes_dropped_and_operations_as_headers: "smt-extract-drop";
    documents_flattened_with_arrays_as_structs: "smt-extract-flatten";
    outbox: "smt-outbox";
    fields_changed_by_transforms_behind: "smt-stock-fields";
    structs_changed_by_transforms_behind: "smt-stock-structs";
    times_and_masks: "smt-timestamps";
}

#[test]
fn an_array_of_several_types_stops_the_task() {
    let errors = replayed(include_str!("../../tests/recordings/smt-extract-mixed-array.json"));
    assert!(errors[0].ends_with("Array elements with different Bson types are not supported: m"), "{errors:?}");
}

#[test]
fn an_array_of_several_types_is_left_out_if_errors_are_tolerated() {
    let errors = replayed(include_str!("../../tests/recordings/smt-errors-tolerated.json"));
    assert_eq!(errors.len(), 1);
}
