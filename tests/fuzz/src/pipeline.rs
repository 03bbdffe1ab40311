//! The user's stages and filters, and the pipeline that is built from them and from the lists of names.
//!
//! Promised: no panic. What is read as a document can be sent as BSON, and its canonical extended JSON reads
//! back to it. A configuration that is accepted has a pipeline that can be sent, with the user's stages in
//! it; what its lists say of a name is an answer or an error, within bounded time.
//!
//! The first line holds, separated by `|`: a letter for each switch, then the lists of [`LISTS`]. The rest is
//! a pipeline or a document.

use std::sync::OnceLock;

use bson::{Bson, Document};
use thalweg_config::Properties;
use thalweg_config::rule::{split_list, split_plain_list};
use thalweg_core::record::TextForm;
use thalweg_mongodb::extended_json::{self, Writer};
use thalweg_mongodb::fields::FieldSelector;
use thalweg_mongodb::filter::{FilterLists, MatchMode, NameList, NamespaceFilter, SnapshotSelection};
use thalweg_mongodb::lenient_json::{self, parse_document, parse_documents};
use thalweg_mongodb::namespace::Namespace;
use thalweg_mongodb::options::{MongoConfig, Oversize, PipelineOrder};
use thalweg_mongodb::pipeline;
use thalweg_mongodb::raw::kind;

/// One input.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (head, body) = text.split_once('\n').unwrap_or(("", text));
    if let Ok(document) = parse_document(body) {
        sound(&document);
    }
    if let Ok(documents) = parse_documents(body) {
        documents.iter().for_each(sound);
    }
    let _ = lenient_json::parse(body, 3);
    build(head, body);
}

fn sound(document: &Document) {
    let text = canonical(document);
    // The canonical form of some values is nested.
    let again = match lenient_json::parse(&text, 110).expect("its own text") {
        Bson::Document(again) => again,
        other => panic!("{other:?}"),
    };
    // Not compared as documents: NaN is not itself.
    assert_eq!(canonical(&again), text);
}

fn canonical(document: &Document) -> String {
    let bytes = bson::serialize_to_vec(document).expect("BSON");
    let mut text = Vec::new();
    extended_json::write_value(Writer::Canonical, TextForm::Plain, kind::DOCUMENT, &bytes, &mut text).expect("text");
    String::from_utf8(text).expect("UTF-8")
}

/// The parts of the first line behind the switches.
const LISTS: [&str; 7] = [
    "database.include.list",
    "collection.include.list",
    "signal.data.collection",
    "field.exclude.list",
    "field.renames",
    "snapshot.include.collection.list",
    "skipped.operations",
];

fn build(head: &str, body: &str) {
    let (switches, lists) = head.split_once('|').unwrap_or((head, ""));
    let lists: Vec<&str> = lists.split('|').collect();
    // The check of all options takes a millisecond, so not every input goes through it.
    let is_checked = body.len().is_multiple_of(16);
    let config = if is_checked { checked(switches, &lists, body) } else { assembled(switches, &lists, body) };
    let Some(config) = config else { return };
    let stages = pipeline::stages(&config);
    for stage in &stages {
        bson::serialize_to_vec(stage).expect("a stage that can be sent");
    }
    assert!(stages.len() >= config.cursor.pipeline.len());
    if config.cursor.oversize == Oversize::Split {
        assert!(stages.last().is_some_and(|s| s.contains_key("$changeStreamSplitLargeEvent")));
    }
    let compiled = (NamespaceFilter::new(&config.filters), SnapshotSelection::new(&config.snapshot.include));
    let (Ok(filter), Ok(selection)) = compiled else {
        assert!(!is_checked, "lists that were checked");
        return;
    };
    for name in ["shop.orders", "a.b.c", "admin.x", "ops.signals", "\u{e9}.\u{1f600}"] {
        let Some(namespace) = Namespace::parse(name) else { continue };
        let captured = filter.captures(&namespace);
        if filter.is_signals(&namespace) {
            assert!(matches!(captured, Ok(true)));
        }
        let _ = selection.selects(&namespace);
        if let Some(rules) = config.events.fields.rules(&namespace) {
            let _ = rules.told("a.0.b".to_owned());
            let document = bson::rawdoc! {"_id": 1, "a": [{"b": 1}], "c": {}}.into_bytes();
            if let Ok(Some(rewritten)) = rules.document(&document) {
                thalweg_mongodb::raw::check(&rewritten).expect("a document");
            }
        }
    }
}

/// As a user brings it.
fn checked(switches: &str, lists: &[&str], body: &str) -> Option<MongoConfig> {
    let on = |switch: char| switches.contains(switch);
    let mut properties = Properties::from([
        ("mongodb.connection.string", "mongodb://h/?replicaSet=rs0"),
        ("topic.prefix", "shop"),
        ("cursor.pipeline", body),
    ]);
    for (option, value) in LISTS.into_iter().zip(lists).filter(|(_, value)| !value.is_empty()) {
        let option = if on('x') { option.replace(".include.list", ".exclude.list") } else { option.to_owned() };
        properties.set(option, *value);
    }
    for (switch, option, value) in [
        ('l', "filters.match.mode", "literal"),
        ('u', "cursor.pipeline.order", "user_first"),
        ('o', "cursor.pipeline.order", "user_only"),
        ('s', "cursor.oversize.handling.mode", "split"),
    ] {
        if on(switch) {
            properties.set(option, value);
        }
    }
    MongoConfig::parse(&properties).ok()
}

/// The same from its parts, if each is good.
fn assembled(switches: &str, lists: &[&str], body: &str) -> Option<MongoConfig> {
    static BASE: OnceLock<MongoConfig> = OnceLock::new();
    let mut config = BASE.get_or_init(|| checked("", &[], "").expect("a good configuration")).clone();
    let on = |switch: char| switches.contains(switch);
    let list = |at: usize| lists.get(at).copied().unwrap_or("");
    let names = |at: usize| match split_plain_list(list(at)) {
        names if names.is_empty() => NameList::All,
        names if on('x') => NameList::Exclude(names),
        names => NameList::Include(names),
    };
    config.filters = FilterLists {
        mode: if on('l') { MatchMode::Literal } else { MatchMode::Regex },
        databases: names(0),
        collections: names(1),
        signals: Namespace::parse(list(2)),
    };
    config.events.fields = FieldSelector::parse(list(3), list(4)).ok()?;
    config.snapshot.include = split_list(list(5));
    config.events.skipped.create = on('c');
    config.events.skipped.delete = on('d');
    config.cursor.pipeline = if body.trim().is_empty() { Vec::new() } else { parse_documents(body).ok()? };
    config.cursor.order = match (on('u'), on('o')) {
        (true, _) => PipelineOrder::UserFirst,
        (_, true) => PipelineOrder::UserOnly,
        _ => PipelineOrder::InternalFirst,
    };
    config.cursor.oversize = if on('s') { Oversize::Split } else { Oversize::Fail };
    Some(config)
}
