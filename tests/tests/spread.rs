//! A snapshot that the tasks of three nodes share, over the loss of one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result};
use bson::{Document, doc};
use serde_json::Value;
use thalweg_tests::{Cluster, Received, Topic};

use crate::shared::{connector, kafka, mongo, unique, with};

const SOON: Duration = Duration::from_secs(60);
const ROWS: i32 = 24_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_spread_over_nodes_and_survives_the_loss_of_one() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let mut cluster = Cluster::start(3, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("spread"), unique("db"));
    let rows = set.client().await?.database(&database).collection::<Document>("rows");
    rows.insert_many((0..ROWS).map(|i| doc! {"_id": i, "n": 0})).await?;
    let options = [("thalweg.snapshot.spread", "true"), ("tasks.max", "3"), ("snapshot.fetch.size", "200")];
    let rest = cluster.rest()?;
    rest.create(&name, with(connector(set, &name, &database), &options)).await?;
    rest.awaits(&name, 3, "RUNNING").await?;
    let mut owners = Vec::new();
    for task in 0..3 {
        owners.push(cluster.owner(&name, task).await?);
    }
    assert_eq!(owners.iter().collect::<BTreeSet<_>>().len(), 3, "one task on each node");

    let topic = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.rows"))?;
    let mut seen: BTreeMap<String, Value> = BTreeMap::new();
    let (mut reads, mut changes) = (0, 0);
    let mut apply = |record: Received, reads: &mut i32, changes: &mut i32| {
        let value = record.value_json();
        *(if value["op"] == "r" { reads } else { changes }) += 1;
        let after = serde_json::from_str(value["after"].as_str().unwrap_or("null")).unwrap_or(Value::Null);
        seen.insert(record.key.unwrap_or_default(), after);
        seen.len()
    };
    topic
        .until(SOON, |record| {
            apply(record, &mut reads, &mut changes);
            reads >= 2_000
        })
        .await?;
    // Not the first one, which has the plan.
    cluster.nodes[owners[1]].kill()?;
    for i in (0..ROWS).step_by(97) {
        rows.update_one(doc! {"_id": i}, doc! {"$set": {"n": 1}}).await?;
    }
    rows.insert_one(doc! {"_id": ROWS, "n": 2}).await?;
    topic
        .until(SOON, |record| {
            // The insert is the last change.
            let all = apply(record, &mut reads, &mut changes);
            all == ROWS as usize + 1 && changes > ROWS / 97
        })
        .await?;
    assert!(reads < ROWS + 6_000, "what was not committed is repeated, not all: {reads} rows read");
    for (key, row) in &seen {
        let id = row["_id"].as_i64().context(key.clone())?;
        let n = if id == i64::from(ROWS) { 2 } else { i64::from(id % 97 == 0) };
        assert_eq!(row["n"], n, "{key}");
    }
    Ok(())
}
