#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use crate::record::Datum;
use crate::transform::support::*;

const CLASS: &str = "io.debezium.transforms.ToLogicalTopicRouter";
const FORMER: &str = "io.debezium.transforms.ByLogicalTableRouter";
const SHARDS: [(&str, &str); 2] = [("topic.regex", r"(.*)_shard\d"), ("topic.replacement", "$1-all")];

fn of_shard(record: Record) -> Record {
    Record { topic: "s.t_shard1".into(), ..record }
}

fn routed(class: &str, options: &[(&str, &str)], record: Record) -> Record {
    run(&mut chain(class, &[&SHARDS, options].concat()), record).unwrap().unwrap()
}

fn name(schema: &Option<Arc<Schema>>) -> &str {
    schema.as_ref().unwrap().name.as_deref().unwrap()
}

#[test]
fn topic_key_and_schemas() {
    let record = routed(CLASS, &[], of_shard(change('u')));
    assert_eq!(&*record.topic, "s.t-all");
    assert_eq!(json(&record.key), r#"{"id":1,"__dbz__sourceIdentifier":"s.t_shard1"}"#);
    assert_eq!((name(&record.key.schema), name(&record.value.schema)), ("s.t-all.Key", "s.t-all.Envelope"));
    let envelope = record.value.schema.as_ref().unwrap();
    let (before, after) = (&envelope.fields()[0].schema, &envelope.fields()[1].schema);
    assert!(Arc::ptr_eq(before, after) && before.optional);
    assert_eq!((before.name.as_deref(), envelope.version), (Some("s.t-all.Value"), Some(2)));
    assert_eq!(record.value.value, change('u').value.value);
    let former = routed(FORMER, &[("schema.name.adjustment.mode", "avro")], of_shard(change('c')));
    assert_eq!(json(&former.key), r#"{"id":1,"__dbz__physicalTableIdentifier":"s.t_shard1"}"#);
    assert_eq!(name(&former.value.schema), "s.t_all.Envelope");
}

#[test]
fn tombstones_and_other_records_are_routed_by_topic_and_key() {
    let mut chain = chain(CLASS, &SHARDS);
    let tombstone = Record { key: change('d').key, ..of_shard(record(Datum::none())) };
    let of = |chain: &mut crate::transform::Chain, record| run(chain, record).unwrap().unwrap();
    let (event, tombstone) = (of(&mut chain, of_shard(change('d'))), of(&mut chain, tombstone));
    assert!(tombstone.value.is_none() && event.topic == tombstone.topic && event.key.value == tombstone.key.value);
    let beat = of(&mut chain, of_shard(heartbeat()));
    assert_eq!((&*beat.topic, beat.value), ("s.t-all", heartbeat().value));
    assert_eq!(&*of(&mut chain, heartbeat()).topic, "top");
    let keyless = of(&mut chain, of_shard(record(Datum::none())));
    assert!(keyless.key.is_none());
    let key = change('d').key;
    let mut schema =
        || of(&mut chain, Record { key: key.clone(), ..of_shard(record(Datum::none())) }).key.schema.unwrap();
    assert!(Arc::ptr_eq(&schema(), &schema()));
    assert!(refused(&mut chain, Record { key: free(vec![]), ..of_shard(change('c')) }).contains("Struct"));
}

#[test]
fn the_further_field() {
    let shard = [("key.field.regex", r"s\.t_(shard\d)"), ("key.field.replacement", "$1")];
    assert_eq!(
        json(&routed(CLASS, &shard, of_shard(change('c'))).key),
        r#"{"id":1,"__dbz__sourceIdentifier":"shard1"}"#
    );
    let other = [("key.field.regex", "x"), ("key.field.replacement", "y"), ("key.field.name", "from")];
    assert_eq!(json(&routed(CLASS, &other, of_shard(change('c'))).key), r#"{"id":1,"from":"s.t_shard1"}"#);
    let none = routed(CLASS, &[("key.enforce.uniqueness", "false")], of_shard(change('c')));
    assert_eq!(json(&none.key), r#"{"id":1}"#);
    let clash = &[&SHARDS[..], &[("key.field.name", "id")]].concat();
    assert!(refused(&mut chain(CLASS, clash), of_shard(change('c'))).contains("duplication id"));
}

/// As recorded, the original fails here: it takes texts for structs.
#[test]
fn documents_in_the_event_stay_texts() {
    let text = || Schema::string().optional().named("io.debezium.data.Json");
    let schema = Schema::record([("before", text()), ("after", text()), ("op", Schema::string())]);
    let values = Value::Struct(vec![Value::Null, untouched(), Value::text("c")]);
    let event = record(Datum::new(Arc::new(schema.named("p.d.c1.Envelope")), values));
    let options = [("topic.regex", "t(.*)"), ("topic.replacement", "all")];
    let routed = run(&mut chain(FORMER, &options), event).unwrap().unwrap();
    let schema = routed.value.schema.unwrap();
    assert_eq!((&*routed.topic, schema.name.as_deref()), ("all", Some("all.Envelope")));
    assert_eq!(schema.fields()[1].schema.name.as_deref(), Some("io.debezium.data.Json"));
}

#[test]
fn an_empty_name_is_no_topic() {
    let group = [("topic.regex", "top(x?)"), ("topic.replacement", "$1")];
    let stays = run(&mut chain(CLASS, &group), change('c')).unwrap().unwrap();
    assert_eq!((&*stays.topic, stays.key), ("top", change('c').key));
}

#[test]
fn wrong_options() {
    let of = |options: &[(&str, &str)]| faults(CLASS, &[&SHARDS, options].concat()).join("\n");
    assert!(of(&[("key.field.regex", "a")]).contains("key.field.replacement: must be non-empty"));
    assert!(of(&[("key.field.replacement", "a")]).contains("key.field.regex: must be set"));
    assert!(of(&[("key.field.regex", "("), ("key.field.replacement", "a")]).contains("Unclosed group"));
    assert!(of(&[("key.field.regex", "a"), ("key.field.replacement", "$1")]).contains("no group 1"));
    assert!(of(&[("schema.name.adjustment.mode", "x")]).contains("schema.name.adjustment.mode"));
    assert!(faults(CLASS, &[("topic.regex", "a")])[0].contains("topic.replacement"));
    assert!(faults(FORMER, &[("topic.regex", "a"), ("topic.replacement", "$2")])[0].contains("no group 2"));
}
