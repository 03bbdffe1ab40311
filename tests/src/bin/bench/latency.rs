//! Delay from just before a write to the append of its message, at steady rates; for a node and for
//! the barest pipe on the same services.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use mongodb::bson::{Document, doc};
use mongodb::options::ClientOptions;
use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, BaseRecord};
use serde_json::json;
use thalweg_tests::Topic;
use tokio::sync::{Mutex, oneshot};
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, LabOptions};
use crate::measure::{Results, now_ms, quantile};

/// Writers at a time; a rate needs enough of them.
const WRITERS: usize = 16;

pub async fn run(options: &LabOptions, rates: &[u32], seconds: u64, results: &mut Results) -> Result<()> {
    let low = LabOptions {
        delivery: options.delivery.clone(),
        compression: "none".to_owned(),
        settings: options.settings.clone(),
    };
    let lab = Lab::start(&low, 1).await?;
    let client = lab.set.client().await?;
    client.database("lat").collection::<Document>("c").insert_one(doc! {"_id": -1_i64}).await?;
    let rest = lab.cluster.rest()?;
    rest.create("lat", lab.connector("lat", "lat", &[("producer.override.linger.ms", "0")])).await?;
    rest.awaits("lat", 1, "RUNNING").await?;
    lab.arrived("lat.lat.c", 1).await?;
    let stop = CancellationToken::new();
    let (reads, reading) = oneshot::channel();
    let bare = tokio::spawn(bare_pipe(lab.set.uri(), lab.broker.bootstrap(), reads, stop.clone()));
    if reading.await.is_err() {
        // It ended before it read; why is its result.
        return bare.await?;
    }
    let mut next = 0;
    for rate in rates {
        let (sent, achieved) = write(&lab, next, *rate, seconds).await?;
        next += sent.len() as i64;
        for (who, topic) in [("thalweg", "lat.lat.c"), ("ceiling", "bare")] {
            let delays = delays(&lab, topic, &sent).await?;
            results.add(json!({
                "bench": "latency",
                "of": who,
                "delivery": options.delivery,
                "rate": rate,
                "achieved_per_s": achieved.round(),
                "p50_ms": quantile(&delays, 0.5),
                "p95_ms": quantile(&delays, 0.95),
                "p99_ms": quantile(&delays, 0.99),
                "max_ms": quantile(&delays, 1.0),
            }))?;
        }
    }
    stop.cancel();
    bare.await??;
    Ok(())
}

/// Inserts at a steady rate; wall clock just before each write, by id, and the rate reached.
async fn write(lab: &Lab, first: i64, rate: u32, seconds: u64) -> Result<(HashMap<i64, i64>, f64)> {
    let mut options = ClientOptions::parse(lab.set.uri()).await?;
    options.max_pool_size = Some(WRITERS as u32 * 2);
    let collection = mongodb::Client::with_options(options)?.database("lat").collection::<Document>("c");
    let total = i64::from(rate) * seconds as i64;
    let sent = Arc::new(Mutex::new(HashMap::new()));
    let start = Instant::now();
    let writers = (0..WRITERS as i64).map(|writer| {
        let (collection, sent) = (collection.clone(), sent.clone());
        tokio::spawn(async move {
            let mut mine = Vec::new();
            for n in (writer..total).step_by(WRITERS) {
                let due = start + Duration::from_secs_f64(n as f64 / f64::from(rate));
                tokio::time::sleep_until(due.into()).await;
                mine.push((first + n, now_ms()));
                collection.insert_one(doc! {"_id": first + n, "text": "x".repeat(200)}).await?;
            }
            sent.lock().await.extend(mine);
            Ok::<_, anyhow::Error>(())
        })
    });
    for writer in futures::future::join_all(writers).await {
        writer??;
    }
    let achieved = total as f64 / start.elapsed().as_secs_f64();
    Ok((Arc::into_inner(sent).context("writers hold on")?.into_inner(), achieved))
}

async fn delays(lab: &Lab, topic: &str, sent: &HashMap<i64, i64>) -> Result<Vec<f64>> {
    let reader = Topic::with_isolation(&lab.broker.bootstrap(), topic, "read_uncommitted")?;
    let mut delays = Vec::with_capacity(sent.len());
    reader
        .until(Duration::from_secs(60), |message| {
            let key = message.key_json();
            let id = key["id"].as_str().and_then(|k| k.parse().ok()).or_else(|| key.as_i64());
            if let Some(written) = id.and_then(|id: i64| sent.get(&id)) {
                delays.push((message.timestamp - written) as f64);
            }
            delays.len() == sent.len()
        })
        .await?;
    delays.sort_by(f64::total_cmp);
    Ok(delays)
}

/// A change stream with nothing between it and an idempotent producer.
async fn bare_pipe(uri: String, bootstrap: String, reads: oneshot::Sender<()>, stop: CancellationToken) -> Result<()> {
    let client = mongodb::Client::with_uri_str(uri).await?;
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("enable.idempotence", "true")
        .set("linger.ms", "0")
        .create()?;
    let mut stream = client.database("lat").watch().await?;
    let _ = reads.send(());
    loop {
        let event = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            event = stream.next_if_any() => event?,
        };
        if let Some(event) = event {
            let id = event.document_key.as_ref().and_then(|k| k.get_i64("_id").ok()).unwrap_or(-1).to_string();
            let payload = event.full_document.as_ref().map(ToString::to_string).unwrap_or_default();
            producer.send(BaseRecord::to("bare").key(&id).payload(&payload)).map_err(|(e, _)| e)?;
        }
        producer.poll(Duration::ZERO);
    }
}
