//! The second message format, from MongoDB to a consumer of Kafka.

use std::time::Duration;

use anyhow::Result;
use bson::{Document, doc};
use serde_json::{Value, json};
use thalweg_tests::{Cluster, Received, Topic, until};

use crate::shared::{connector, kafka, mongo, unique, with};

const SOON: Duration = Duration::from_secs(30);

/// A connector of this format that names no converters.
fn repstance(mut config: Value, more: &[(&str, &str)]) -> Value {
    if let Some(members) = config.as_object_mut() {
        members.retain(|option, _| !option.starts_with("key.converter") && !option.starts_with("value.converter"));
    }
    with(with(config, &[("thalweg.format", "repstance")]), more)
}

/// `(source.lsn, source.seq)`; none for a tombstone.
fn pair(message: &Received) -> Option<(String, String)> {
    let source = message.value_json()["source"].take();
    let text = |member: &str| source[member].as_str().map(str::to_owned);
    Some((text("lsn")?, text("seq")?))
}

/// The value without what differs from run to run, after a look at it.
fn plain(message: &Received, database: &str) -> Value {
    let mut value = message.value_json();
    let Some(members) = value.as_object() else { return value };
    assert_eq!(members.keys().collect::<Vec<_>>(), ["before", "after", "source", "op", "ts_ms"]);
    let source = &members["source"];
    assert_eq!(message.headers[0], ("lsn".to_owned(), source["lsn"].as_str().map(str::to_owned)));
    let names: Vec<&String> = source.as_object().into_iter().flat_map(|source| source.keys()).take(8).collect();
    assert_eq!(names, ["lsn", "seq", "snapshot", "ts_ms", "connector", "db", "schema", "table"]);
    let place = ["connector", "db", "schema", "table"].map(|member| &source[member]);
    assert_eq!(place, ["mongodb", database, database, "c"]);
    assert!(source["ts_ms"].as_i64() > Some(1_600_000_000_000) && members["ts_ms"].is_i64());
    if let Some(source) = value["source"].as_object_mut() {
        source.retain(|member, _| ["snapshot", "truncated", "truncatedArrays"].contains(&member.as_str()));
    }
    if let Some(members) = value.as_object_mut() {
        members.remove("ts_ms");
    }
    value
}

#[tokio::test(flavor = "multi_thread")]
async fn cnv_07_messages_of_the_format_repstance_and_their_repeats() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("repstance"), unique("db"));
    let client = set.client().await?;
    let db = client.database(&database);
    db.run_command(doc! {"create": "c", "changeStreamPreAndPostImages": {"enabled": true}}).await?;
    let collection = db.collection::<Document>("c");
    let long = 5_000_000_000_i64;
    collection
        .insert_one(doc! {"_id": long, "name": "Ann \"A\"", "at": {"d": 1.5, "l": [1, bson::Bson::Null]}})
        .await?;
    let rest = cluster.rest()?;
    let options = [
        ("capture.mode", "change_streams_update_full_with_pre_image"),
        // Without it `after` is what the server finds when it is asked, which is not the same again.
        ("capture.mode.full.update.type", "post_image"),
        ("thalweg.repstance.max.message.bytes", "20000"),
    ];
    rest.create(&name, repstance(connector(set, &name, &database), &options)).await?;
    let topic = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.c"))?;
    let loaded = topic.take(1, SOON).await?.remove(0);
    let ann = json!({"_id": long, "name": "Ann \"A\"", "at": {"d": 1.5, "l": [1, null]}});
    assert_eq!(loaded.key.as_deref(), Some(r#"{"_id":5000000000}"#), "as in the row");
    let row = json!({"before": null, "after": ann, "source": {"snapshot": "true"}, "op": "r"});
    assert_eq!(plain(&loaded, &database), row);
    rest.awaits(&name, 1, "RUNNING").await?;
    let path = format!("/connectors/{name}");
    let start = until("the snapshot is over", SOON, || async {
        let offsets = rest.get(&format!("{path}/offsets")).await?.1;
        let offset = &offsets["offsets"][0]["offset"];
        Ok((offset.is_object() && offset.get("initsync").is_none()).then_some(offsets))
    })
    .await?;

    let this = doc! {"_id": long};
    collection.update_one(this.clone(), doc! {"$set": {"name": "Bob"}, "$unset": {"at": ""}}).await?;
    let mut session = client.start_session().await?;
    session.start_transaction().await?;
    collection.insert_one(doc! {"_id": "a"}).session(&mut session).await?;
    collection.insert_one(doc! {"_id": "b"}).session(&mut session).await?;
    session.commit_transaction().await?;
    let big = doc! {"_id": "big", "text": "x".repeat(400_000), "in": {"bytes": bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![0; 300_000] }}, "s": "short"};
    collection.insert_one(big).await?;
    collection.delete_one(this).await?;
    let changes = topic.take(6, SOON).await?;
    let keys: Vec<_> = changes.iter().map(|m| m.key.clone().unwrap()).collect();
    let ann_key = r#"{"_id":5000000000}"#;
    assert_eq!(keys, [ann_key, r#"{"_id":"a"}"#, r#"{"_id":"b"}"#, r#"{"_id":"big"}"#, ann_key, ann_key]);
    let bob = json!({"_id": long, "name": "Bob"});
    let told = |before: Value, after: Value, op: &str| json!({"before": before, "after": after, "source": {"snapshot": "false"}, "op": op});
    assert_eq!(plain(&changes[0], &database), told(ann, bob.clone(), "u"));
    assert_eq!(plain(&changes[1], &database), told(Value::Null, json!({"_id": "a"}), "c"));
    assert_eq!(plain(&changes[4], &database), told(bob, Value::Null, "d"));
    assert_eq!((changes[5].value.as_deref(), &changes[5].headers), (None, &changes[4].headers), "a tombstone");
    // One transaction, told apart in their order.
    let [a, b] = [1, 2].map(|at| pair(&changes[at]).unwrap());
    assert!(a.0 == b.0 && a.1 < b.1, "{a:?} {b:?}");
    let cut = plain(&changes[3], &database);
    assert_eq!((&cut["source"]["truncated"], &cut["after"]["s"]), (&json!(["in.bytes", "text"]), &json!("short")));
    let size = changes[3].key.as_deref().unwrap().len() + changes[3].value.as_deref().unwrap().len();
    assert!((19_900..=20_000).contains(&size), "{size}");

    // Read again from the end of the snapshot.
    rest.put(&format!("{path}/stop"), None).await?;
    until("the offsets can be altered", SOON, || async {
        let (status, answer) = rest.call(reqwest::Method::PATCH, &format!("{path}/offsets"), Some(&start)).await?;
        if status != 200 {
            anyhow::bail!("{status} {answer}");
        }
        Ok(Some(()))
    })
    .await?;
    rest.put(&format!("{path}/resume"), None).await?;
    let again = topic.take(6, SOON).await?;
    for (first, second) in changes.iter().zip(&again) {
        // The headers behind the lsn name the run.
        assert_eq!((&first.key, &first.headers[0]), (&second.key, &second.headers[0]));
        assert_eq!(plain(first, &database), plain(second, &database));
        assert_eq!((pair(first), pair(first).is_some()), (pair(second), first.value.is_some()));
    }
    Ok(())
}

/// Transforms see the messages of the format, and what cannot work is refused when the connector is made.
#[tokio::test(flavor = "multi_thread")]
async fn transforms_and_converters_of_the_format_repstance() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let rest = cluster.rest()?;
    let (name, database) = (unique("shaped"), unique("db"));
    let avro = [
        ("value.converter", "io.confluent.connect.avro.AvroConverter"),
        ("value.converter.schema.registry.url", "http://127.0.0.1:1"),
    ];
    let schemas = [("key.converter", "org.apache.kafka.connect.json.JsonConverter")];
    for (more, part) in [(&avro[..], "thalweg.format=debezium"), (&schemas[..], "key.converter.schemas.enable")] {
        let config = repstance(connector(set, &name, &database), more);
        let (status, body) = rest.post("/connectors", Some(&json!({"name": name, "config": config}))).await?;
        assert!(status == 400 && body["message"].as_str().is_some_and(|m| m.contains(part)), "{status} {body}");
    }
    let collection = set.client().await?.database(&database).collection::<Document>("c");
    collection.insert_one(doc! {"_id": 1, "v": "x"}).await?;
    let options = [
        ("thalweg.repstance.key.include.table", "true"),
        ("transforms", "after"),
        ("transforms.after.type", "org.apache.kafka.connect.transforms.ExtractField$Value"),
        ("transforms.after.field", "after"),
    ];
    rest.create(&name, repstance(connector(set, &name, &database), &options)).await?;
    let topic = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.c"))?;
    let message = topic.take(1, SOON).await?.remove(0);
    assert_eq!(message.value.as_deref(), Some(r#"{"_id":1,"v":"x"}"#));
    assert_eq!(message.key, Some(format!(r#"{{"__table":"{database}.c","_id":1}}"#)));
    Ok(())
}
