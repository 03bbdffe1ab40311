//! Start-up times, and what an idle node costs.

use std::time::{Duration, Instant};

use anyhow::Result;
use mongodb::bson::{Document, doc};
use serde_json::json;
use thalweg_tests::until;

use crate::lab::{Lab, LabOptions};
use crate::measure::{Results, cpu_seconds, memory_mib, now_ms, rounded, threads};

const WATCHED: Duration = Duration::from_secs(30);

pub async fn run(options: &LabOptions, rounds: usize, results: &mut Results) -> Result<()> {
    let mut lab = Lab::start(options, 1).await?;
    let client = lab.set.client().await?;
    for round in 0..rounds {
        let (name, database) = (format!("start{round}"), format!("s{round}"));
        client.database(&database).collection::<Document>("c").insert_one(doc! {"_id": 1_i64}).await?;
        let posted = now_ms();
        lab.cluster.rest()?.create(&name, lab.connector(&name, &database, &[])).await?;
        let (first, _) = lab.arrived(&format!("{name}.{database}.c"), 1).await?;
        lab.cluster.nodes[0].stop().await?;
        let start = Instant::now();
        lab.cluster.nodes[0].start()?;
        let rest = lab.cluster.nodes[0].rest();
        until("REST answers", Duration::from_secs(10), || async { Ok(rest.get("/").await.ok()) }).await?;
        let to_rest = start.elapsed();
        until("the node is ready", Duration::from_secs(10), || async {
            Ok((rest.get("/health/ready").await?.0 == 200).then_some(()))
        })
        .await?;
        results.add(json!({
            "bench": "startup",
            "delivery": options.delivery,
            "round": round,
            "start_to_rest_ms": to_rest.as_millis() as u64,
            "start_to_ready_ms": start.elapsed().as_millis() as u64,
            "created_to_first_message_ms": first - posted,
        }))?;
    }
    Ok(())
}

pub async fn idle(options: &LabOptions, counts: &[usize], results: &mut Results) -> Result<()> {
    let mut lab = Lab::start(options, 1).await?;
    let client = lab.set.client().await?;
    client.database("idle").collection::<Document>("c").insert_one(doc! {"_id": 1_i64}).await?;
    let mut running = 0;
    for count in counts {
        let rest = lab.cluster.rest()?;
        while running < *count {
            let name = format!("idle{running}");
            rest.create(&name, lab.connector(&name, "idle", &[])).await?;
            rest.awaits(&name, 1, "RUNNING").await?;
            lab.arrived(&format!("{name}.idle.c"), 1).await?;
            running += 1;
        }
        let process = lab.process()?;
        let cpu = cpu_seconds(process)?;
        // The measured quantity is what happens in this time.
        tokio::time::sleep(WATCHED).await;
        let cpu = cpu_seconds(process)? - cpu;
        results.add(json!({
            "bench": "idle",
            "delivery": options.delivery,
            "connectors": count,
            "rss_mib": memory_mib(process, "VmRSS")?,
            "cpu_percent": rounded(cpu / WATCHED.as_secs_f64() * 100.0),
            "threads": threads(process),
        }))?;
    }
    Ok(())
}
