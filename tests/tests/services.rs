//! The fixtures themselves come up and go away.

use anyhow::Result;
use bson::doc;
use thalweg_tests::{Broker, ReplicaSet};

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_set_elects_and_steps_down() -> Result<()> {
    let set = ReplicaSet::start("rs0", 3, &Default::default()).await?;
    let first = set.primary().await?;
    let second = set.step_down().await?;
    assert_ne!(first, second);
    set.client().await?.database("t").collection("c").insert_one(doc! {"_id": 1}).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_keeps_its_data_over_a_restart() -> Result<()> {
    let mut broker = Broker::start().await?;
    broker.restart().await?;
    Ok(())
}
