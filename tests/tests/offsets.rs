//! Stored positions over REST: shown in every state, changed while the connector is stopped.

use std::time::Duration;

use anyhow::Result;
use bson::{Document, doc};
use serde_json::{Value, json};
use thalweg_tests::{Cluster, Rest, Topic, until};

use crate::shared::{connector, kafka, mongo, unique};

const SOON: Duration = Duration::from_secs(30);

async fn patch(rest: &Rest, path: &str, body: &Value) -> Result<(u16, Value)> {
    rest.call(reqwest::Method::PATCH, path, Some(body)).await
}

/// The offsets of a connector that is not stopped are shown and stay as they are.
async fn refuses_changes(rest: &Rest, path: &str, shown: &Value) -> Result<()> {
    for (status, body) in [patch(rest, path, shown).await?, rest.delete(path).await?] {
        assert_eq!(status, 400, "{body}");
        assert!(body["message"].as_str().is_some_and(|m| m.contains("STOPPED state")), "{body}");
    }
    let (status, now) = rest.get(path).await?;
    assert_eq!((status, &now["offsets"][0]["partition"]), (200, &shown["offsets"][0]["partition"]));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn run_04_offsets_are_changed_only_while_stopped_and_a_reset_starts_anew() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let cluster = Cluster::start(3, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("offsets"), unique("db"));
    let collection = set.client().await?.database(&database).collection::<Document>("c");
    collection.insert_many((1..=3).map(|id| doc! {"_id": id})).await?;
    // Asked through a node each, whichever leads.
    let [rest, second, third] = [0, 1, 2].map(|n| cluster.nodes[n].rest());
    rest.create(&name, connector(set, &name, &database)).await?;
    rest.awaits(&name, 1, "RUNNING").await?;
    let topic = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.c"))?;
    assert!(topic.take(3, SOON).await?.iter().all(|m| m.payload()["op"] == "r"));

    let (connector, path) = (format!("/connectors/{name}"), format!("/connectors/{name}/offsets"));
    let shown = until("the end of the snapshot is stored", SOON, || async {
        let offsets = rest.get(&path).await?.1;
        let row = &offsets["offsets"][0];
        Ok((row["partition"] == json!({"server_id": name}) && row["offset"].is_object()).then_some(offsets))
    })
    .await?;
    refuses_changes(&second, &path, &shown).await?;
    assert_eq!(third.put(&format!("{connector}/pause"), None).await?.0, 202);
    third.awaits(&name, 1, "PAUSED").await?;
    refuses_changes(&rest, &path, &shown).await?;

    assert_eq!(second.put(&format!("{connector}/stop"), None).await?.0, 204);
    let last = rest.get(&path).await?.1;
    let altered = until("no task runs any more", SOON, || async {
        let (status, body) = patch(&third, &path, &last).await?;
        Ok((status == 200).then_some(body))
    })
    .await?;
    assert!(altered["message"].as_str().is_some_and(|m| m.contains("altered successfully")), "{altered}");
    let wrong = json!({"offsets": [{"partition": {"wrong": "x"}, "offset": {"sec": 1}}]});
    assert_eq!(patch(&rest, &path, &wrong).await?.0, 400);
    assert_eq!(patch(&rest, &path, &json!({"offsets": []})).await?.0, 400);
    // Another connector's: refused, unless it is to be removed.
    let mut foreign =
        json!({"offsets": [{"partition": {"server_id": "other"}, "offset": last["offsets"][0]["offset"]}]});
    let (status, body) = patch(&second, &path, &foreign).await?;
    assert_eq!(status, 400, "{body}");
    assert!(body["message"].as_str().is_some_and(|m| m.contains(&format!("its topic.prefix is '{name}'"))), "{body}");
    foreign["offsets"][0]["offset"] = Value::Null;
    assert_eq!(patch(&second, &path, &foreign).await?.0, 200);
    assert_eq!(rest.get(&path).await?.1, last);
    let (status, body) = second.delete(&path).await?;
    assert!(body["message"].as_str().is_some_and(|m| m.contains("reset successfully")), "{status} {body}");
    assert_eq!(third.get(&path).await?, (200, json!({"offsets": []})));

    let nobody = "/connectors/nobody/offsets";
    let unknown = [rest.get(nobody).await?, patch(&second, nobody, &last).await?, third.delete(nobody).await?];
    assert!(unknown.iter().all(|(status, _)| *status == 404), "{unknown:?}");

    assert_eq!(rest.put(&format!("{connector}/resume"), None).await?.0, 202);
    let again = topic.take(3, SOON).await?;
    assert!(again.iter().all(|m| m.payload()["op"] == "r"), "a snapshot as of a new connector");
    Ok(())
}
