//! Memory of the node under what could fill it: very large documents, very long transactions.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use mongodb::bson::{Document, doc};
use serde_json::json;

use crate::arrivals::Arrivals;
use crate::lab::{LARGEST_MESSAGE, Lab, LabOptions};
use crate::load::{USUAL_BYTES, document};
use crate::measure::{Results, memory_mib, reset_peak, rounded};
use crate::throughput::{catch_up, copy, position};

const LARGE_TARGET_MIB: f64 = 400.0;
/// What a peak may differ from the one before without being growth.
const STEADY: f64 = 1.1;
const LARGE_DEADLINE: Duration = Duration::from_secs(900);
const INSERTED_AT_ONCE: usize = 10_000;

/// Documents of many megabytes in a row: as a backlog, then as a snapshot. Their text repeats itself,
/// or they would fill the disk of any machine; what the node holds of them has its full size.
pub async fn large(options: &LabOptions, documents: usize, bytes: usize, results: &mut Results) -> Result<()> {
    let mut lab = Lab::start(options, 1).await?;
    let most = LARGEST_MESSAGE.to_string();
    let limits = [("producer.override.max.request.size", most.as_str())];
    let collection = lab.set.client().await?.database("large").collection::<Document>("c");
    let topics = ["drain", "copy"].map(|name| format!("{name}.large.c"));
    lab.make_topics(&topics).await?;
    let mut more = vec![("snapshot.mode", "no_data")];
    more.extend(limits);
    position(&lab, "drain", lab.connector("drain", "large", &more)).await?;
    let mut page = doc! {"_id": 0_i64, "pages": pages(bytes)};
    for id in 0..documents {
        page.insert("_id", id as i64);
        collection.insert_one(&page).await?;
    }
    for (work, topic) in ["drain", "snapshot"].into_iter().zip(topics) {
        let process = lab.process()?;
        let before = memory_mib(process, "VmRSS")?;
        reset_peak(process)?;
        let arrivals = Arrivals::from_here(lab.broker.bootstrap(), vec![topic]).await?.patient(LARGE_DEADLINE);
        let run = if work == "drain" {
            catch_up(&mut lab, "drain", (documents, documents), arrivals).await?
        } else {
            let mut more = vec![("snapshot.mode", "initial_only")];
            more.extend(limits);
            let config = lab.connector("copy", "large", &more);
            copy(&mut lab, "copy", config, documents, arrivals).await?
        };
        let peak = memory_mib(process, "VmHWM")?;
        results.add(json!({
            "bench": "large",
            "work": work,
            "delivery": options.delivery,
            "compression": options.compression,
            "events": documents,
            "bytes": bytes,
            "mb_per_s": rounded(run.rate() * bytes as f64 / 1e6),
            "before_mib": before,
            "peak_mib": peak,
            "after_mib": memory_mib(process, "VmRSS")?,
            "target": format!("peak_mib < {LARGE_TARGET_MIB}"),
            "met": peak < LARGE_TARGET_MIB,
        }))?;
    }
    Ok(())
}

fn pages(bytes: usize) -> Vec<String> {
    let text = "a page of a document that has very many of them, \"quoted\" here and there; ".repeat(13);
    (0..bytes / (text.len() + 20)).map(|n| format!("page {n:06} {text}")).collect()
}

/// Transactions of many operations one after the other, behind as many single inserts.
pub async fn transactions(options: &LabOptions, operations: usize, times: usize, results: &mut Results) -> Result<()> {
    let mut lab = Lab::start(options, 1).await?;
    let client = lab.set.client().await?;
    let collection = client.database("tx").collection::<Document>("c");
    collection.insert_one(doc! {"_id": -1_i64}).await?;
    let topics = vec!["tx.tx.c".to_owned()];
    lab.make_topics(&topics).await?;
    let rest = lab.cluster.rest()?;
    rest.create("tx", lab.connector("tx", "tx", &[("snapshot.mode", "no_data")])).await?;
    rest.awaits("tx", 1, "RUNNING").await?;
    rest.awaits_offset("tx").await?;
    let process = lab.process()?;
    let mut peaks = Vec::new();
    for time in 0..=times {
        let what = if time == 0 { "single" } else { "transaction" };
        reset_peak(process)?;
        let before = memory_mib(process, "VmRSS")?;
        let arrivals = Arrivals::from_here(lab.broker.bootstrap(), topics.clone()).await?;
        let mut session = client.start_session().await?;
        if time > 0 {
            session.start_transaction().await?;
        }
        let mut next = time * operations;
        while next < (time + 1) * operations {
            let until = (next + INSERTED_AT_ONCE).min((time + 1) * operations);
            let documents: Vec<Document> = (next..until).map(|id| document(id, USUAL_BYTES)).collect();
            collection.insert_many(documents).session(&mut session).await?;
            next = until;
        }
        let start = Instant::now();
        if time > 0 {
            session.commit_transaction().await?;
        }
        lab.wait("tx", arrivals, operations).await?;
        let took = start.elapsed();
        let peak = memory_mib(process, "VmHWM")?;
        if time > 0 {
            peaks.push(peak);
        }
        results.add(json!({
            "bench": "transactions",
            "delivery": options.delivery,
            "operations": operations,
            "what": what,
            "time": time,
            "to_last_message_ms": took.as_millis() as u64,
            "before_mib": before,
            "peak_mib": peak,
            "after_mib": memory_mib(process, "VmRSS")?,
        }))?;
    }
    let Some((first, later)) = peaks.split_first() else { bail!("no transactions") };
    let highest = later.iter().copied().fold(0.0, f64::max);
    results.add(json!({
        "bench": "transactions",
        "delivery": options.delivery,
        "operations": operations,
        "times": times,
        "first_peak_mib": first,
        "later_peak_mib": highest,
        "target": format!("later_peak_mib <= {STEADY} * first_peak_mib"),
        "met": highest <= first * STEADY,
    }))
}
