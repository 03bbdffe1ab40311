#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;

use super::*;
use crate::error::ErrorKind;
use crate::record::{Datum, Header, Record, Schema, Value};
use crate::transform::support::{free, heartbeat, record, run};

fn chain(pairs: &[(&str, &str)]) -> Chain {
    let config = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Chain::from_config(&config, &TransformClasses::default()).unwrap()
}

fn topic(chain: &mut Chain, record: Record) -> Option<String> {
    run(chain, record).unwrap().map(|r| r.topic.to_string())
}

const ROUTER: &str = "org.apache.kafka.connect.transforms.RegexRouter";

#[test]
fn steps_run_in_order() {
    let mut chain = chain(&[
        ("transforms", "a, b"),
        ("transforms.a.type", ROUTER),
        ("transforms.a.regex", "(.*)"),
        ("transforms.a.replacement", "$1-a"),
        ("transforms.b.type", "RegexRouter"),
        ("transforms.b.regex", "(.*)-a"),
        ("transforms.b.replacement", "b-$1"),
    ]);
    assert_eq!(topic(&mut chain, record(Datum::none())).as_deref(), Some("b-top"));
    assert_eq!(topic(&mut chain, heartbeat()).as_deref(), Some("b-top"));
    let mut routed = || run(&mut chain, record(Datum::none())).unwrap().unwrap().topic;
    assert!(Arc::ptr_eq(&routed(), &routed()), "one text for all records of a topic");
}

#[test]
fn an_empty_chain_changes_nothing() {
    let mut chain = chain(&[("transforms", " , "), ("transforms.old.type", "no.such.Class")]);
    assert!(chain.is_empty());
    assert_eq!(topic(&mut chain, record(Datum::none())).as_deref(), Some("top"));
}

#[test]
fn a_router_leaves_other_topics_alone() {
    let mut chain = chain(&[
        ("transforms", "r"),
        ("transforms.r.type", ROUTER),
        ("transforms.r.regex", r"([^.]*)\.([^.]*)\.(.*)"),
        ("transforms.r.replacement", "$1_routed_$3"),
    ]);
    assert_eq!(topic(&mut chain, record(Datum::none())).as_deref(), Some("top"));
    let routed = Record { topic: "p.db.c1".into(), ..record(Datum::none()) };
    assert_eq!(topic(&mut chain, routed).as_deref(), Some("p_routed_c1"));
}

fn filter(predicate: &[(&str, &str)], negate: &str) -> Chain {
    let mut pairs = vec![
        ("transforms", "f"),
        ("transforms.f.type", "org.apache.kafka.connect.transforms.Filter"),
        ("transforms.f.predicate", "p"),
        ("transforms.f.negate", negate),
        ("predicates", "p"),
    ];
    pairs.extend_from_slice(predicate);
    chain(&pairs)
}

#[test]
fn predicates_choose_the_records() {
    let tombstone = || record(Datum::none());
    let change = || record(free(vec![("a", Value::Int32(1))]));
    let is_tombstone = [("predicates.p.type", "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone")];
    let mut drop_tombstones = filter(&is_tombstone, "false");
    assert!(topic(&mut drop_tombstones, tombstone()).is_none());
    assert!(topic(&mut drop_tombstones, change()).is_some());
    assert!(topic(&mut drop_tombstones, heartbeat()).is_some());
    let null_of_a_schema = record(Datum::new(Arc::new(Schema::string().optional()), Value::Null));
    assert!(topic(&mut drop_tombstones, null_of_a_schema).is_none());
    let mut keep_tombstones = filter(&is_tombstone, "true");
    assert!(topic(&mut keep_tombstones, tombstone()).is_some());
    assert!(topic(&mut keep_tombstones, change()).is_none());

    let mut by_topic = filter(&[("predicates.p.type", "TopicNameMatches"), ("predicates.p.pattern", "t.p")], "false");
    assert!(topic(&mut by_topic, change()).is_none());
    assert!(topic(&mut by_topic, Record { topic: "xtop".into(), ..change() }).is_some());

    let mut by_header = filter(&[("predicates.p.type", "HasHeaderKey"), ("predicates.p.name", "h")], "false");
    assert!(topic(&mut by_header, change()).is_some());
    let header = Header { name: "h".into(), schema: None, value: Value::Null };
    assert!(topic(&mut by_header, Record { headers: Arc::new(vec![header]), ..change() }).is_none());
}

#[test]
fn an_error_names_transform_and_class() {
    let mut chain = chain(&[
        ("transforms", "first,mask"),
        ("transforms.first.type", "HoistField$Value"),
        ("transforms.first.field", "secret"),
        ("transforms.mask.type", "MaskField$Value"),
        ("transforms.mask.fields", "secret"),
        ("transforms.mask.replacement", "x"),
    ]);
    let value = free(vec![("inner", Value::text("hidden"))]);
    let failed = run(&mut chain, record(value.clone())).unwrap_err();
    assert_eq!((failed.error.kind, failed.error.is_retriable()), (ErrorKind::ValueInvalid, false));
    assert_eq!(failed.class, "org.apache.kafka.connect.transforms.MaskField$Value");
    let message = failed.error.message;
    assert!(
        message.starts_with("transform 'mask' (org.apache.kafka.connect.transforms.MaskField$Value): "),
        "{message}"
    );
    assert!(message.ends_with("(field secret)") && !message.contains("hidden"), "{message}");
    assert!(run(&mut chain, record(value)).is_err());
}
