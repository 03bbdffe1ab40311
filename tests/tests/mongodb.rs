//! What only the whole shows about the MongoDB connector: offsets that were made elsewhere, keys as
//! bytes in Kafka, and what an operator is told when a change cannot be read.

use std::time::Duration;

use anyhow::Result;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Document, doc};
use reqwest::Method;
use serde_json::{Value, json};
use thalweg_tests::{Cluster, Received, ReplicaSet, Topic, until};

use crate::shared::{connector, kafka, mongo, unique, with};

const SOON: Duration = Duration::from_secs(30);

/// The operation time of the server as an offset of the oldest form.
async fn now(set: &ReplicaSet) -> Result<Value> {
    let hello = set.client().await?.database("admin").run_command(doc! {"hello": 1}).await?;
    let time = hello.get_timestamp("operationTime")?;
    Ok(json!({"sec": time.time, "ord": time.increment + 1}))
}

/// An offset under the name of the replica set, as releases up to 2.5 stored it.
#[tokio::test(flavor = "multi_thread")]
async fn mgo_27_a_migrated_offset_is_where_the_task_goes_on() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("migrated"), unique("db"));
    let collection = set.client().await?.database(&database).collection::<Document>("c");
    collection.insert_one(doc! {"_id": "old"}).await?;
    let offset = now(set).await?;
    collection.insert_one(doc! {"_id": "new"}).await?;
    let rest = cluster.rest()?;
    let body = json!({"name": name, "config": connector(set, &name, &database), "initial_state": "STOPPED"});
    assert_eq!(rest.post("/connectors", Some(&body)).await?.0, 201);
    let partition = json!({"server_id": name, "rs": "rs0"});
    let body = json!({"offsets": [{"partition": partition, "offset": offset}]});
    let path = format!("/connectors/{name}");
    until("offsets can be altered", SOON, || async {
        let (status, answer) = rest.call(Method::PATCH, &format!("{path}/offsets"), Some(&body)).await?;
        if status != 200 {
            anyhow::bail!("{status} {answer}");
        }
        Ok(Some(()))
    })
    .await?;
    rest.put(&format!("{path}/resume"), None).await?;
    let topic = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.c"))?;
    let message = topic.take(1, SOON).await?.remove(0);
    assert_eq!(message.payload()["op"], "c", "a change behind the offset, no snapshot");
    assert_eq!(message.key_json()["id"], r#""new""#);
    rest.awaits(&name, 1, "RUNNING").await?;
    until("the position is stored under the present name", SOON, || async {
        let offsets = rest.get(&format!("{path}/offsets")).await?.1["offsets"].take();
        let own = json!({"server_id": name});
        Ok(offsets.as_array().is_some_and(|all| all.iter().any(|o| o["partition"] == own)).then_some(()))
    })
    .await
}

/// `_id` of every type that may be one, and the key's text where it is fixed by the catalogue.
fn ids() -> Result<Vec<(Bson, Option<&'static str>)>> {
    let binary = |subtype, bytes: &[u8]| Bson::Binary(Binary { subtype, bytes: bytes.to_vec() });
    let oid = bson::oid::ObjectId::parse_str("596e275826f08b2730779e1f")?;
    let scoped = bson::JavaScriptCodeWithScope { code: "g()".into(), scope: doc! {"x": 1} };
    Ok(vec![
        (Bson::Int32(1234), Some("1234")),
        (Bson::Int64(9_007_199_254_740_993), Some("9007199254740993")),
        (Bson::Double(12.34), Some("12.34")),
        (Bson::Double(1e10), Some("1.0E+10")),
        (Bson::Double(f64::NAN), Some(r#"{"$numberDouble": "NaN"}"#)),
        ("1234".into(), Some(r#""1234""#)),
        ("a\"b".into(), Some(r#""a\"b""#)),
        ("".into(), Some(r#""""#)),
        (oid.into(), Some(r#"{"$oid": "596e275826f08b2730779e1f"}"#)),
        (doc! {"a": 1, "b": [1.0]}.into(), Some(r#"{"a": 1,"b": [1.0]}"#)),
        (Document::new().into(), Some("{}")),
        (binary(BinarySubtype::Generic, b"kaka"), Some(r#"{"$binary": {"base64": "a2FrYQ==","subType": "00"}}"#)),
        (binary(BinarySubtype::Uuid, &[7; 16]), None),
        (binary(BinarySubtype::UuidOld, &[7; 16]), None),
        (DateTime::parse_rfc3339_str("2024-01-01T00:00:00Z")?.into(), Some(r#"{"$date": "2024-01-01T00:00:00Z"}"#)),
        (DateTime::from_millis(-1).into(), Some(r#"{"$date": {"$numberLong": "-1"}}"#)),
        (Bson::Decimal128("1.50".parse()?), Some(r#"{"$numberDecimal": "1.50"}"#)),
        (Bson::Timestamp(bson::Timestamp { time: 5, increment: 6 }), Some(r#"{"$timestamp": {"t": 5,"i": 6}}"#)),
        (true.into(), Some("true")),
        (Bson::Null, Some("null")),
        (Bson::MinKey, Some(r#"{"$minKey": 1}"#)),
        (Bson::MaxKey, Some(r#"{"$maxKey": 1}"#)),
        (Bson::JavaScriptCode("f()".into()), Some(r#"{"$code": "f()"}"#)),
        (Bson::JavaScriptCodeWithScope(scoped), None),
        (Bson::Symbol("s".into()), None),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn mgo_09_keys_of_one_document_are_the_same_bytes_in_every_record() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("keys"), unique("db"));
    let collection = set.client().await?.database(&database).collection::<Document>("c");
    let ids = ids()?;
    for (id, _) in &ids {
        collection.insert_one(doc! {"_id": id, "n": 0}).await?;
    }
    cluster.rest()?.create(&name, connector(set, &name, &database)).await?;
    let topic = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.c"))?;
    let read = topic.take(ids.len(), SOON).await?;
    assert!(read.iter().all(|m| m.payload()["op"] == "r"));
    for (id, _) in &ids {
        let this = doc! {"_id": id};
        // Once for the document of the snapshot, once for one that is inserted while streaming.
        for again in [true, false] {
            let updated = collection.update_one(this.clone(), doc! {"$inc": {"n": 1}}).await?;
            assert_eq!(updated.modified_count, 1, "{id}");
            collection.delete_one(this.clone()).await?;
            if again {
                collection.insert_one(this.clone()).await?;
            }
        }
    }
    let changes = topic.take(7 * ids.len(), SOON).await?;
    for ((id, text), records) in ids.iter().zip(changes.chunks(7)) {
        let op = |m: &Received| m.payload()["op"].as_str().unwrap_or("tombstone").to_owned();
        let ops: Vec<String> = records.iter().map(op).collect();
        assert_eq!(ops, ["u", "d", "tombstone", "c", "u", "d", "tombstone"], "{id}");
        let key = records[0].key.as_deref().unwrap();
        assert!(!key.contains(char::REPLACEMENT_CHARACTER), "{key}");
        assert!(records.iter().all(|m| m.key.as_deref() == Some(key)), "{id}: {records:?}");
        assert_eq!(read.iter().filter(|m| m.key.as_deref() == Some(key)).count(), 1, "{id}: {key}");
        if let Some(text) = text {
            assert_eq!(key, json!({"id": text}).to_string(), "{id}");
        }
    }
    Ok(())
}

/// Fields that are left out and renamed, in documents read by a snapshot and in changes; a name that is
/// taken stops the task, and whoever reads the trace knows which.
#[tokio::test(flavor = "multi_thread")]
async fn mgo_23_fields_are_left_out_and_renamed_in_snapshot_and_stream() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("fields"), unique("db"));
    let db = set.client().await?.database(&database);
    let images = doc! {"create": "c", "changeStreamPreAndPostImages": {"enabled": true}};
    db.run_command(images).await?;
    let collection = db.collection::<Document>("c");
    let person = |id: i32| doc! {"_id": id, "secret": "s", "x": 1, "list": [{"secret": 1, "k": 2}, {"q-r": 3}]};
    collection.insert_one(person(1)).await?;
    db.collection::<Document>("other").insert_one(person(1)).await?;
    let fields = [
        ("field.exclude.list", &*format!("*.C.secret, {database}.c.list.secret ,{database}.c.list.q-r")),
        ("field.renames", &*format!("{database}.c.x:y,*.c.list.k:key")),
        ("capture.mode", "change_streams_update_full_with_pre_image"),
    ];
    let rest = cluster.rest()?;
    rest.create(&name, with(connector(set, &name, &database), &fields)).await?;
    let topic = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.c"))?;
    let read = topic.take(1, SOON).await?.remove(0).payload();
    let filtered = r#"{"_id": 1,"list": [{"key": 2},{}],"y": 1}"#;
    assert_eq!((&read["op"], &read["after"]), (&json!("r"), &json!(filtered)));
    let untouched = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.other"))?.take(1, SOON).await?;
    let whole = r#"{"_id": 1,"secret": "s","x": 1,"list": [{"secret": 1,"k": 2},{"q-r": 3}]}"#;
    assert_eq!(untouched[0].payload()["after"], whole);
    rest.awaits_offset(&name).await?;
    let this = doc! {"_id": 1};
    let set = doc! {"$set": {"x": 2, "secret": "t", "list.0.k": 5, "list.0.secret": 6}};
    // The document of an update is looked up: the next change has to wait, or it would be in it.
    collection.update_one(this.clone(), set).await?;
    let mut changes = topic.take(1, SOON).await?;
    collection.update_one(this.clone(), doc! {"$unset": {"x": "", "secret": ""}}).await?;
    changes.extend(topic.take(1, SOON).await?);
    collection.delete_one(this).await?;
    changes.extend(topic.take(2, SOON).await?);
    assert!(changes.iter().all(|m| m.key_json()["id"] == "1"));
    let [first, second, delete] = [0, 1, 2].map(|i| changes[i].payload());
    let updated = r#"{"_id": 1,"list": [{"key": 5},{}],"y": 2}"#;
    let without = r#"{"_id": 1,"list": [{"key": 5},{}]}"#;
    let images = |change: &Value| [change["before"].clone(), change["after"].clone()];
    assert_eq!(images(&first), [json!(filtered), json!(updated)]);
    assert_eq!(images(&second), [json!(updated), json!(without)]);
    assert_eq!(images(&delete), [json!(without), Value::Null]);
    let told = |updated: &str, removed: Value| json!({"removedFields": removed, "updatedFields": updated, "truncatedArrays": null});
    assert_eq!(first["updateDescription"], told(r#"{"y": 2, "list.0.key": 5}"#, Value::Null));
    assert_eq!(second["updateDescription"], told("{}", json!(["y"])));
    collection.insert_one(doc! {"_id": 2, "x": 1, "y": 2}).await?;
    let status = rest.awaits(&name, 1, "FAILED").await?;
    let trace = status["tasks"][0]["trace"].as_str().unwrap();
    for part in [&format!("{database}.c"), "Document already contains field : y", "field.renames"] {
        assert!(trace.contains(part), "'{part}' is not in: {trace}");
    }
    Ok(())
}

/// A change without a key: whoever reads the trace knows which collection, where in the stream, on
/// which worker.
#[tokio::test(flavor = "multi_thread")]
async fn run_08_the_trace_names_collection_and_position() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("keyless"), unique("db"));
    let collection = set.client().await?.database(&database).collection::<Document>("c");
    let keyless = [("snapshot.mode", "no_data"), ("cursor.pipeline", r#"[{"$unset": "documentKey"}]"#)];
    let rest = cluster.rest()?;
    rest.create(&name, with(connector(set, &name, &database), &keyless)).await?;
    rest.awaits(&name, 1, "RUNNING").await?;
    rest.awaits_offset(&name).await?;
    collection.insert_one(doc! {"_id": 1}).await?;
    let status = rest.awaits(&name, 1, "FAILED").await?;
    assert_eq!(status["connector"]["state"], "RUNNING");
    let task = &status["tasks"][0];
    assert!(task["worker_id"].as_str().is_some_and(|worker| !worker.is_empty()), "{status}");
    let trace = task["trace"].as_str().unwrap();
    for part in [&format!("{database}.c"), "offset {", "resume_token", "documentKey"] {
        assert!(trace.contains(part), "'{part}' is not in: {trace}");
    }
    Ok(())
}

/// What the operator must know from the beginning: nothing matches, and what the server leaves out.
#[tokio::test(flavor = "multi_thread")]
async fn cfg_02_the_log_at_the_start_names_the_lists_and_what_is_left_out() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("nothing"), unique("db"));
    let nothing = [
        ("collection.include.list", "no.such"),
        // mgo_20
        ("cursor.oversize.handling.mode", "skip"),
        ("cursor.oversize.skip.threshold", "8000000"),
    ];
    let rest = cluster.rest()?;
    rest.create(&name, with(connector(set, &name, &database), &nothing)).await?;
    rest.awaits(&name, 1, "RUNNING").await?;
    let lists = format!("database.include.list={database} collection.include.list=no.such");
    until("the log tells", SOON, || async {
        let log = cluster.nodes[0].log();
        let line = |parts: [&str; 2]| log.lines().any(|line| parts.iter().all(|part| line.contains(part)));
        let told =
            line(["no changes will be captured", &lists]) && line(["cursor.oversize.handling.mode=skip", "8000000"]);
        Ok(told.then_some(()))
    })
    .await
}

/// cnv_01: key and value each with or without their schema; a tombstone has no value at all.
#[tokio::test(flavor = "multi_thread")]
async fn cnv_01_schemas_of_key_and_value_are_separate_switches() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let rest = cluster.rest()?;
    for (key, value) in [(true, false), (false, true)] {
        let (name, database) = (unique("schemas"), unique("db"));
        let collection = set.client().await?.database(&database).collection::<Document>("c");
        collection.insert_one(doc! {"_id": 1}).await?;
        let (key_text, value_text) = (key.to_string(), value.to_string());
        let switches = [("key.converter.schemas.enable", &*key_text), ("value.converter.schemas.enable", &*value_text)];
        rest.create(&name, with(connector(set, &name, &database), &switches)).await?;
        let topic = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.c"))?;
        let read = topic.take(1, SOON).await?.remove(0);
        collection.delete_one(doc! {"_id": 1}).await?;
        let [delete, tombstone] = topic.take(2, SOON).await?.try_into().unwrap();
        let members = |json: Value| json.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        for message in [&read, &delete, &tombstone] {
            let expected: &[&str] = if key { &["schema", "payload"] } else { &["id"] };
            assert_eq!(members(message.key_json()), expected);
            assert_eq!(message.key, read.key);
        }
        for message in [&read, &delete] {
            let value_json = message.value_json();
            assert_eq!(value_json.get("schema").is_some() && value_json.get("payload").is_some(), value);
            assert_eq!(value_json.get("op").is_some(), !value);
        }
        assert_eq!(tombstone.value, None);
    }
    Ok(())
}
