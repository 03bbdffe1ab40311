//! Transaction metadata as consumers and operators see it: the scenario that was recorded from Debezium,
//! message by message, and the stored position inside of a transaction.

use std::time::Duration;

use anyhow::{Context, Result};
use bson::{Document, doc};
use mongodb::{ClientSession, Database};
use serde_json::{Value, json};
use thalweg_tests::{Cluster, Received, Topic, until};

use crate::shared::{connector, kafka, mongo, unique, with};

const SOON: Duration = Duration::from_secs(30);

const KEY_SCHEMA: &str = r#"{"type":"struct","fields":[{"type":"string","optional":false,"field":"id"}],"optional":false,"name":"io.debezium.connector.common.TransactionMetadataKey","version":1}"#;

const VALUE_SCHEMA: &str = concat!(
    r#"{"type":"struct","fields":[{"type":"string","optional":false,"field":"status"},"#,
    r#"{"type":"string","optional":false,"field":"id"},{"type":"int64","optional":true,"field":"event_count"},"#,
    r#"{"type":"array","items":{"type":"struct","fields":[{"type":"string","optional":false,"field":"data_collection"},"#,
    r#"{"type":"int64","optional":false,"field":"event_count"}],"optional":true,"name":"event.collection","version":1},"#,
    r#""optional":true,"field":"data_collections"},{"type":"int64","optional":false,"field":"ts_ms"}],"#,
    r#""optional":false,"name":"io.debezium.connector.common.TransactionMetadataValue","version":1}"#
);

const BLOCK_SCHEMA: &str = concat!(
    r#"{"type":"struct","fields":[{"type":"string","optional":false,"field":"id"},"#,
    r#"{"type":"int64","optional":false,"field":"total_order"},"#,
    r#"{"type":"int64","optional":false,"field":"data_collection_order"}],"#,
    r#""optional":true,"name":"event.block","version":1,"field":"transaction"}],"optional":false,"name":""#
);

async fn insert(db: &Database, session: &mut ClientSession, collection: &str, id: i32) -> Result<()> {
    db.collection::<Document>(collection).insert_one(doc! {"_id": id}).session(session).await?;
    Ok(())
}

/// The writes of the recording. It waits for the end of the snapshot only.
async fn write(db: &Database, session: &mut ClientSession) -> Result<()> {
    let c1 = db.collection::<Document>("c1");
    session.start_transaction().await?;
    insert(db, session, "c1", 2).await?;
    insert(db, session, "c2", 2).await?;
    c1.update_one(doc! {"_id": 2}, doc! {"$set": {"a": 1}}).session(&mut *session).await?;
    c1.delete_one(doc! {"_id": 1}).session(&mut *session).await?;
    session.commit_transaction().await?;
    c1.insert_one(doc! {"_id": 10}).await?;
    session.start_transaction().await?;
    insert(db, session, "c1", 3).await?;
    session.abort_transaction().await?;
    session.start_transaction().await?;
    insert(db, session, "c2", 3).await?;
    session.commit_transaction().await?;
    session.start_transaction().await?;
    insert(db, session, "c2", 4).await?;
    insert(db, session, "c2", 5).await?;
    session.commit_transaction().await?;
    c1.insert_one(doc! {"_id": 11}).await?;
    Ok(())
}

/// A text as it stands inside of a JSON text.
fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// `transaction` of an envelope, as text; the id comes from the source block, as does that of the markers.
fn block(message: &Received, total: i64, order: i64) -> Result<(String, String, Value)> {
    let source = &message.payload()["source"];
    let id = format!("{}:{}", source["lsid"].as_str().context("lsid")?, source["txnNumber"]);
    let text = format!(
        r#""transaction":{{"id":"{}","total_order":{total},"data_collection_order":{order}}}}}}}"#,
        escaped(&id)
    );
    Ok((text, id, source["ts_ms"].clone()))
}

#[tokio::test(flavor = "multi_thread")]
async fn transaction_metadata_as_recorded() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("txn"), unique("db"));
    let client = set.client().await?;
    let db = client.database(&database);
    db.collection::<Document>("c1").insert_one(doc! {"_id": 1, "a": 1}).await?;
    db.collection::<Document>("c2").insert_one(doc! {"_id": 1}).await?;
    let rest = cluster.rest()?;
    let options = [
        ("key.converter.schemas.enable", "true"),
        ("value.converter.schemas.enable", "true"),
        ("provide.transaction.metadata", "true"),
    ];
    rest.create(&name, with(connector(set, &name, &database), &options)).await?;
    let read = |suffix: &str| Topic::read(&broker.bootstrap(), &format!("{name}.{suffix}"));
    let [first, second, markers] =
        [read(&format!("{database}.c1"))?, read(&format!("{database}.c2"))?, read("transaction")?];
    first.take(1, SOON).await?;
    second.take(1, SOON).await?;
    let mut session = client.start_session().await?;
    write(&db, &mut session).await?;

    let (c1, c2, told) = (first.take(6, SOON).await?, second.take(4, SOON).await?, markers.take(6, SOON).await?);
    let ids = |all: &[Received]| all.iter().map(|m| m.key_json()["payload"]["id"].clone()).collect::<Vec<_>>();
    assert_eq!(
        (ids(&c1), ids(&c2)),
        (
            vec!["2".into(), "2".into(), "1".into(), "1".into(), "10".into(), "11".into()],
            vec!["2".into(), "3".into(), "4".into(), "5".into()]
        )
    );
    let inside = [
        (&c1[0], 1, 1),
        (&c2[0], 2, 1),
        (&c1[1], 3, 2),
        (&c1[2], 4, 3),
        (&c2[1], 1, 1),
        (&c2[2], 1, 1),
        (&c2[3], 2, 2),
    ];
    let mut transactions = Vec::new();
    for (message, total, order) in inside {
        let (block, id, at) = block(message, total, order)?;
        let value = message.value.as_deref().context("a value")?;
        assert!(value.ends_with(&block), "{block} in {value}");
        assert!(value.contains(&format!("{BLOCK_SCHEMA}{}.Envelope", message.topic)), "{value}");
        if total == 1 {
            transactions.push((id, at));
        }
    }
    assert_eq!(c1[3].value, None);
    for message in [&c1[4], &c1[5]] {
        assert!(message.value.as_deref().context("a value")?.ends_with(r#""transaction":null}}"#));
    }

    let after = |message: &Received| message.payload()["source"]["ts_ms"].clone();
    let counts = |of: &[(&str, i64)]| {
        let each = of.iter().map(|(c, n)| format!(r#"{{"data_collection":"{database}.{c}","event_count":{n}}}"#));
        format!("[{}]", each.collect::<Vec<_>>().join(","))
    };
    let marker = |status: &str, id: &str, total: &str, counts: &str, at: &Value| {
        let key = format!(r#"{{"schema":{KEY_SCHEMA},"payload":{{"id":"{}"}}}}"#, escaped(id));
        let value = format!(
            r#"{{"schema":{VALUE_SCHEMA},"payload":{{"status":"{status}","id":"{}","event_count":{total},"data_collections":{counts},"ts_ms":{at}}}}}"#,
            escaped(id)
        );
        (Some(key), Some(value))
    };
    let [(one, at_one), (two, at_two), (three, at_three)] = transactions.as_slice() else { panic!("{transactions:?}") };
    let expected = [
        marker("BEGIN", one, "null", "null", at_one),
        marker("END", one, "4", &counts(&[("c1", 3), ("c2", 1)]), &after(&c1[4])),
        marker("BEGIN", two, "null", "null", at_two),
        marker("END", two, "1", &counts(&[("c2", 1)]), at_three),
        marker("BEGIN", three, "null", "null", at_three),
        marker("END", three, "2", &counts(&[("c2", 2)]), &after(&c1[5])),
    ];
    for (message, expected) in told.iter().zip(expected) {
        assert_eq!((message.key.clone(), message.value.clone()), expected);
        assert_eq!((message.partition, message.headers.len()), (0, 0));
    }

    // A transaction that is open in the stored position, and none behind the next change.
    let path = format!("/connectors/{name}/offsets");
    let stored = async |members: &[&str]| {
        until(&format!("the offset has {members:?}"), SOON, || async {
            let row = rest.get(&path).await?.1["offsets"][0].clone();
            let offset = row["offset"].as_object().cloned().unwrap_or_default();
            Ok(offset.keys().eq(members.iter().copied()).then_some(row))
        })
        .await
    };
    let plain = ["sec", "ord", "resume_token"];
    assert_eq!(stored(&plain).await?["partition"], json!({"server_id": name}));
    session.start_transaction().await?;
    for (collection, id) in [("c1", 20), ("c1", 21), ("c2", 20)] {
        insert(&db, &mut session, collection, id).await?;
    }
    session.commit_transaction().await?;
    let counters = ["c1", "c2"].map(|c| format!("transaction_data_collection_order_{database}.{c}"));
    let open = [&plain[..], &["lsid", "txnNumber", "transaction_id", &counters[0], &counters[1]]].concat();
    let row = stored(&open).await?;
    assert_eq!((&row["offset"][&counters[0]], &row["offset"][&counters[1]]), (&json!(2), &json!(1)));
    let (lsid, number) = (row["offset"]["lsid"].as_str().context("lsid")?, &row["offset"]["txnNumber"]);
    assert_eq!(row["offset"]["transaction_id"], format!("{lsid}:{number}"));

    // Stopped there and started again: the end has all counts, and no second begin stands before it.
    assert_eq!(rest.put(&format!("/connectors/{name}/stop"), None).await?.0, 204);
    until("no task runs any more", SOON, || async {
        let status = rest.get(&format!("/connectors/{name}/status")).await?.1;
        Ok((status["connector"]["state"] == "STOPPED" && status["tasks"] == json!([])).then_some(()))
    })
    .await?;
    db.collection::<Document>("c1").insert_one(doc! {"_id": 30}).await?;
    assert_eq!(rest.put(&format!("/connectors/{name}/resume"), None).await?.0, 202);
    let rest_of_markers = markers.take(2, SOON).await?;
    let statuses: Vec<_> = rest_of_markers.iter().map(|m| m.payload()).collect();
    assert_eq!((&statuses[0]["status"], &statuses[1]["status"]), (&json!("BEGIN"), &json!("END")));
    assert_eq!((&statuses[1]["id"], &statuses[1]["event_count"]), (&statuses[0]["id"], &json!(3)));
    let collection = |c: &str, n: i64| json!({"data_collection": format!("{database}.{c}"), "event_count": n});
    assert_eq!(statuses[1]["data_collections"], json!([collection("c1", 2), collection("c2", 1)]));
    stored(&plain).await?;
    Ok(())
}
