//! Changes documents all the time. Each change has the next number, so that a missing or repeated
//! event shows.

use std::time::Duration;

use anyhow::Result;
use bson::{Document, doc};
use mongodb::{Client, Collection};
use tokio_util::sync::CancellationToken;

const DOCUMENTS: i64 = 5;

pub(super) async fn run(client: Client, rate: u32, stop: CancellationToken) -> Result<()> {
    let orders: Collection<Document> = client.database("shop").collection("orders");
    let mut pace = tokio::time::interval(Duration::from_secs(1) / rate);
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for seq in 1_i64.. {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            _ = pace.tick() => {}
        }
        let status = ["paid", "packed", "sent", "delivered"][(seq / DOCUMENTS % 4) as usize];
        let change = doc! {"$set": {"seq": seq, "status": status, "at": bson::DateTime::now()}};
        orders.update_one(doc! {"_id": (seq % DOCUMENTS) as i32}, change).await?;
    }
    Ok(())
}
