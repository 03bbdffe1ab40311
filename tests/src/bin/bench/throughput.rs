//! Snapshot and drain: events a second, events a CPU second, memory, beside the ceiling.

use std::time::Duration;

use anyhow::{Context, Result};
use mongodb::bson::{Document, doc};
use serde_json::json;

use crate::ceiling::{Reading, pipe};
use crate::lab::{Lab, LabOptions, document};
use crate::measure::{Results, cpu_seconds, memory_mib, now_ms, rounded};

const DEADLINE: Duration = Duration::from_secs(300);

pub async fn snapshot(options: &LabOptions, documents: usize, rounds: usize, results: &mut Results) -> Result<()> {
    let mut lab = Lab::start(options, 1).await?;
    lab.fill("load", 0..documents).await?;
    for round in 0..rounds {
        let ceiling =
            pipe(&lab, "load", &format!("ceiling{round}"), documents, Reading::Scan, &options.compression).await?;
        let name = format!("snapshot{round}");
        let process = lab.process()?;
        let (cpu, start) = (cpu_seconds(process)?, now_ms());
        lab.cluster.rest()?.create(&name, lab.connector(&name, "load", &[("snapshot.mode", "initial_only")])).await?;
        let (first, last) = lab.arrived(&format!("{name}.load.c"), documents, DEADLINE).await?;
        let cpu = cpu_seconds(process)? - cpu;
        report(results, "snapshot", options, round, documents, (start, first, last), cpu, ceiling, process)?;
        lab.cluster.rest()?.delete(&format!("/connectors/{name}")).await?;
    }
    Ok(())
}

pub async fn drain(options: &LabOptions, changes: usize, rounds: usize, results: &mut Results) -> Result<()> {
    let mut lab = Lab::start(options, 1).await?;
    for round in 0..rounds {
        let (name, database) = (format!("drain{round}"), format!("load{round}"));
        let client = lab.set.client().await?;
        client.database(&database).collection::<Document>("c").insert_one(doc! {"_id": -1_i64}).await?;
        let rest = lab.cluster.rest()?;
        rest.create(&name, lab.connector(&name, &database, &[])).await?;
        rest.awaits(&name, 1, "RUNNING").await?;
        let topic = format!("{name}.{database}.c");
        lab.arrived(&topic, 1, DEADLINE).await?;
        rest.put(&format!("/connectors/{name}/stop"), None).await?;
        rest.awaits(&name, 0, "STOPPED").await?;
        let token = client.database(&database).watch().await?.resume_token().context("no token")?;
        let token: Document = mongodb::bson::serialize_to_document(&token)?;
        let messages = backlog(&lab, &database, changes).await?;
        let ceiling =
            pipe(&lab, &database, &format!("ceiling{round}"), changes, Reading::Stream(token), &options.compression)
                .await?;
        let process = lab.process()?;
        let (cpu, start) = (cpu_seconds(process)?, now_ms());
        rest.put(&format!("/connectors/{name}/resume"), None).await?;
        let (_, last) = lab.arrived(&topic, messages + 1, DEADLINE).await?;
        let cpu = cpu_seconds(process)? - cpu;
        report(results, "drain", options, round, changes, (start, start, last), cpu, ceiling, process)?;
        rest.delete(&format!("/connectors/{name}")).await?;
    }
    Ok(())
}

/// 60 % inserts, 30 % updates, 10 % deletes; the number of messages that come of them.
async fn backlog(lab: &Lab, database: &str, changes: usize) -> Result<usize> {
    let collection = lab.set.client().await?.database(database).collection::<Document>("c");
    let (mut done, mut id, mut messages) = (0, 0, 0);
    while done < changes {
        let round = 1_000.min(changes - done);
        let (inserts, deletes) = (round * 6 / 10, round / 10);
        let updates = round - inserts - deletes;
        collection.insert_many((id..id + inserts).map(document)).await?;
        let touched: Vec<i64> = (id..id + updates.min(inserts)).map(|i| i as i64).collect();
        let updated =
            collection.update_many(doc! {"_id": {"$in": &touched}}, doc! {"$set": {"status": "paid"}}).await?;
        let gone: Vec<i64> = (id..id + deletes).map(|i| i as i64).collect();
        let deleted = collection.delete_many(doc! {"_id": {"$in": gone}}).await?;
        let events = inserts + updated.modified_count as usize + deleted.deleted_count as usize;
        messages += events + deleted.deleted_count as usize;
        done += events;
        id += inserts;
    }
    Ok(messages)
}

#[expect(clippy::too_many_arguments, reason = "the columns of one line")]
fn report(
    results: &mut Results,
    what: &str,
    options: &LabOptions,
    round: usize,
    events: usize,
    (start, first, last): (i64, i64, i64),
    cpu: f64,
    ceiling: f64,
    process: u32,
) -> Result<()> {
    let rate = events as f64 / ((last - start).max(1) as f64 / 1e3);
    results.add(json!({
        "bench": what,
        "delivery": options.delivery,
        "compression": options.compression,
        "round": round,
        "events": events,
        "events_per_s": rate.round(),
        "first_message_ms": first - start,
        "events_per_cpu_s": (events as f64 / cpu).round(),
        "cpu_s": rounded(cpu),
        "ceiling_per_s": ceiling.round(),
        "of_ceiling": rounded(rate / ceiling),
        "peak_mib": memory_mib(process, "VmHWM")?,
    }))
}
