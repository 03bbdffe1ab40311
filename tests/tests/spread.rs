//! A snapshot that the tasks of three nodes share, over the loss of one.

use std::collections::BTreeSet;

use anyhow::Result;
use thalweg_tests::{Cluster, Topic};

use crate::rows::Rows;
use crate::shared::{connector, kafka, mongo, unique, with};

const ROWS: i32 = 24_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_spread_over_nodes_and_survives_the_loss_of_one() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let mut cluster = Cluster::start(3, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("spread"), unique("db"));
    let mut rows = Rows::fill(set.client().await?.database(&database).collection("rows"), ROWS).await?;
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
    rows.read_until(&topic, |rows| rows.reads >= 2_000).await?;
    // Not the first one, which has the plan.
    cluster.nodes[owners[1]].kill()?;
    rows.change().await?;
    rows.read_until(&topic, Rows::are_all).await?;
    assert!(rows.reads < ROWS + 6_000, "what was not committed is repeated, not all: {} rows read", rows.reads);
    rows.check()
}
