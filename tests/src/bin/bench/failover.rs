//! The silence when an owner is killed, stopped, or falls silent as if its host were gone (it is
//! suspended: its ports still take connections and nothing answers), at 200 changes a second.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use mongodb::bson::{Document, doc};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use thalweg_tests::Topic;
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, LabOptions};
use crate::measure::{Results, now_ms, quantile, rounded};

const RATE: u32 = 200;
const CALM: Duration = Duration::from_secs(3);
/// How long a suspended owner stays away: longer than any take-over may take.
const SILENT: Duration = Duration::from_secs(8);
/// An owner that leads is replaced in both offices.
const FAULTS: [&str; 4] = ["kill", "stop", "silence", "silence-of-leader"];

pub async fn run(options: &LabOptions, times: usize, results: &mut Results) -> Result<()> {
    let mut lab = Lab::start(options, 3).await?;
    let client = lab.set.client().await?;
    let collection = client.database("fo").collection::<Document>("c");
    collection.insert_one(doc! {"_id": -1_i64, "n": 0_i64}).await?;
    lab.cluster.rest()?.create("fo", lab.connector("fo", "fo", &[])).await?;
    lab.cluster.rest()?.awaits("fo", 1, "RUNNING").await?;
    let (stop, written) = (CancellationToken::new(), Arc::new(AtomicI64::new(0)));
    let writer = tokio::spawn({
        let (stop, written) = (stop.clone(), written.clone());
        async move {
            let mut pace = tokio::time::interval(Duration::from_secs(1) / RATE);
            while !stop.is_cancelled() {
                pace.tick().await;
                let n = written.fetch_add(1, Ordering::Relaxed) + 1;
                collection.insert_one(doc! {"_id": n, "n": n}).await?;
            }
            Ok::<_, anyhow::Error>(())
        }
    });
    let mut faults = Vec::new();
    for kind in FAULTS {
        for _ in 0..times {
            // Steady load before and after each fault is part of the measurement.
            tokio::time::sleep(CALM).await;
            let mut owner = lab.cluster.owner("fo", 0).await?;
            while kind == "silence-of-leader" && owner != lab.cluster.leader().await? {
                // One of the others leads next, perhaps the owner.
                let leader = lab.cluster.leader().await?;
                lab.cluster.nodes[leader].stop().await?;
                lab.cluster.nodes[leader].start()?;
                lab.cluster.nodes[leader].ready().await?;
                // What this move leaves behind belongs to no measured fault.
                tokio::time::sleep(CALM * 2).await;
                owner = lab.cluster.owner("fo", 0).await?;
            }
            let node = &mut lab.cluster.nodes[owner];
            faults.push((kind, now_ms()));
            match kind {
                "kill" => node.kill()?,
                "stop" => node.stop().await?,
                _ => node.process()?.signal(Signal::SIGSTOP)?,
            }
            // The node stays away for a measured time.
            if kind.starts_with("silence") {
                tokio::time::sleep(SILENT).await;
                node.process()?.signal(Signal::SIGCONT)?;
            } else {
                tokio::time::sleep(CALM).await;
                node.start()?;
            }
            node.ready().await?;
        }
    }
    stop.cancel();
    writer.await??;
    let last = written.load(Ordering::Relaxed);
    let mut seen = BTreeMap::<i64, Vec<i64>>::new();
    let mut times = Vec::new();
    Topic::read(&lab.broker.bootstrap(), "fo.fo.c")?
        .until(Duration::from_secs(60), |m| {
            let n = m.key_json()["id"].as_str().and_then(|k| k.parse::<i64>().ok()).unwrap_or(-1);
            seen.entry(n).or_default().push(m.timestamp);
            times.push(m.timestamp);
            n == last
        })
        .await?;
    let lost = (1..=last).filter(|n| !seen.contains_key(n)).count();
    for kind in FAULTS {
        results.add(summary(kind, options, &faults, &times, &seen, lost)?)?;
    }
    Ok(())
}

fn summary(
    kind: &str,
    options: &LabOptions,
    faults: &[(&str, i64)],
    times: &[i64],
    seen: &BTreeMap<i64, Vec<i64>>,
    lost: usize,
) -> Result<Value> {
    let (mut gaps, mut repeats) = (Vec::new(), Vec::new());
    // What belongs to a fault ends before the next one.
    let after = if kind.starts_with("silence") { SILENT + CALM } else { CALM * 2 }.as_millis() as i64;
    for (_, at) in faults.iter().filter(|(k, _)| *k == kind) {
        let around: Vec<i64> = times.iter().copied().filter(|t| (at - 1_000..at + after).contains(t)).collect();
        let gap = around.windows(2).map(|w| w[1] - w[0]).max().context("no messages around a fault")?;
        gaps.push(gap as f64 / 1e3);
        let again = seen.values().flat_map(|v| v.iter().skip(1)).filter(|t| (*at..at + after).contains(*t)).count();
        repeats.push(again as f64);
    }
    gaps.sort_by(f64::total_cmp);
    repeats.sort_by(f64::total_cmp);
    Ok(json!({
        "bench": "failover",
        "fault": kind,
        "delivery": options.delivery,
        "times": gaps.len(),
        "gap_p50_s": rounded(quantile(&gaps, 0.5)),
        "gap_p95_s": rounded(quantile(&gaps, 0.95)),
        "gap_max_s": rounded(quantile(&gaps, 1.0)),
        "repeated_p50": quantile(&repeats, 0.5),
        "repeated_max": quantile(&repeats, 1.0),
        "lost": lost,
    }))
}
