//! Snapshot and drain: events a second, events a CPU second, memory, beside the ceiling.

use anyhow::{Context, Result};
use mongodb::bson::{Document, doc};
use serde_json::{Value, json};

use crate::arrivals::Arrivals;
use crate::ceiling::{Reading, pipe};
use crate::lab::{Lab, LabOptions};
use crate::load::{Backlog, Shape, USUAL_BYTES, fill};
use crate::measure::{Results, cpu_seconds, memory_mib, now_ms, rounded};

/// What is aimed at with documents of the usual size: events a CPU second, and the part of the ceiling.
type Aim = (f64, f64);
const SNAPSHOT_AIM: Aim = (140_000.0, 0.6);
const DRAIN_AIM: Aim = (105_000.0, 0.85);

/// One piece of work that was done.
pub struct Run {
    pub events: usize,
    pub start: i64,
    pub first: i64,
    pub last: i64,
    pub cpu: f64,
}

impl Run {
    pub fn rate(&self) -> f64 {
        self.events as f64 / ((self.last - self.start).max(1) as f64 / 1e3)
    }

    pub fn per_cpu_second(&self) -> f64 {
        self.events as f64 / self.cpu.max(0.01)
    }

    pub fn line(&self, what: &str, options: &LabOptions, shape: Shape, round: usize, process: u32) -> Result<Value> {
        Ok(json!({
            "bench": what,
            "delivery": options.delivery,
            "compression": options.compression,
            "bytes": shape.bytes,
            "collections": shape.collections,
            "round": round,
            "events": self.events,
            "events_per_s": self.rate().round(),
            "first_message_ms": self.first - self.start,
            "events_per_cpu_s": self.per_cpu_second().round(),
            "cpu_s": rounded(self.cpu),
            "peak_mib": memory_mib(process, "VmHWM")?,
        }))
    }
}

/// From the creation of a connector to the last of its messages; it is deleted again.
pub async fn copy(lab: &mut Lab, name: &str, config: Value, events: usize, arrivals: Arrivals) -> Result<Run> {
    let rest = lab.cluster.rest()?;
    measured(lab, name, (events, events), arrivals, rest.create(name, config)).await
}

/// Makes a connector that stands at the present end of the change stream, and stops it.
pub async fn position(lab: &Lab, name: &str, config: Value) -> Result<()> {
    let rest = lab.cluster.rest()?;
    rest.create(name, config).await?;
    rest.awaits(name, 1, "RUNNING").await?;
    rest.awaits_offset(name).await?;
    rest.put(&format!("/connectors/{name}/stop"), None).await?;
    rest.awaits(name, 0, "STOPPED").await?;
    Ok(())
}

/// From the resumption of a positioned connector to the last of its messages; it is deleted again.
pub async fn catch_up(
    lab: &mut Lab,
    name: &str,
    (events, messages): (usize, usize),
    arrivals: Arrivals,
) -> Result<Run> {
    let rest = lab.cluster.rest()?;
    let path = format!("/connectors/{name}/resume");
    measured(lab, name, (events, messages), arrivals, async { rest.put(&path, None).await.map(drop) }).await
}

/// From what `begins` it to the last message of a connector, which is deleted then.
async fn measured(
    lab: &mut Lab,
    name: &str,
    (events, messages): (usize, usize),
    arrivals: Arrivals,
    begins: impl Future<Output = Result<()>>,
) -> Result<Run> {
    let process = lab.process()?;
    let (cpu, start) = (cpu_seconds(process)?, now_ms());
    begins.await?;
    let (first, last) = lab.wait(name, arrivals, messages).await?;
    let cpu = cpu_seconds(process)? - cpu;
    lab.cluster.rest()?.delete(&format!("/connectors/{name}")).await?;
    Ok(Run { events, start, first, last, cpu })
}

pub async fn snapshot(
    options: &LabOptions,
    shape: Shape,
    documents: usize,
    rounds: usize,
    results: &mut Results,
) -> Result<()> {
    let mut lab = Lab::start(options, 1).await?;
    let database = shape.database();
    fill(&lab, &database, shape, documents).await?;
    for round in 0..rounds {
        let ceiling =
            pipe(&lab, &database, &format!("ceiling{round}"), documents, Reading::Scan, &options.compression).await?;
        let name = format!("snapshot{round}");
        let config = lab.connector(&name, &database, &[("snapshot.mode", "initial_only")]);
        let arrivals = Arrivals::of_new(lab.broker.bootstrap(), &format!("{name}.{database}.c"));
        let run = copy(&mut lab, &name, config, documents, arrivals).await?;
        let line = run.line("snapshot", options, shape, round, lab.process()?)?;
        results.add(beside(line, &run, ceiling, aim(options, shape, SNAPSHOT_AIM)))?;
    }
    Ok(())
}

pub async fn drain(
    options: &LabOptions,
    shape: Shape,
    changes: usize,
    rounds: usize,
    results: &mut Results,
) -> Result<()> {
    let mut lab = Lab::start(options, 1).await?;
    for round in 0..rounds {
        let (name, database) = (format!("drain{round}"), format!("load{round}"));
        let client = lab.set.client().await?;
        client.database(&database).collection::<Document>("c").insert_one(doc! {"_id": -1_i64}).await?;
        position(&lab, &name, lab.connector(&name, &database, &[])).await?;
        let topic = format!("{name}.{database}.c");
        lab.arrived(&topic, 1).await?;
        let arrivals = Arrivals::from_here(lab.broker.bootstrap(), vec![topic]).await?;
        let token = client.database(&database).watch().await?.resume_token().context("no token")?;
        let token: Document = mongodb::bson::serialize_to_document(&token)?;
        let (events, messages) = Backlog::default().write(&lab, &database, shape, changes).await?;
        let ceiling =
            pipe(&lab, &database, &format!("ceiling{round}"), events, Reading::Stream(token), &options.compression)
                .await?;
        let run = catch_up(&mut lab, &name, (events, messages), arrivals).await?;
        let line = run.line("drain", options, shape, round, lab.process()?)?;
        results.add(beside(line, &run, ceiling, aim(options, shape, DRAIN_AIM)))?;
    }
    Ok(())
}

/// There is an aim only for what the reference was measured with.
fn aim(options: &LabOptions, shape: Shape, aim: Aim) -> Option<Aim> {
    (shape == Shape::of(USUAL_BYTES) && options.settings.is_empty()).then_some(aim)
}

fn beside(mut line: Value, run: &Run, ceiling: f64, aim: Option<Aim>) -> Value {
    let of_ceiling = run.rate() / ceiling;
    line["ceiling_per_s"] = json!(ceiling.round());
    line["of_ceiling"] = json!(rounded(of_ceiling));
    if let Some((per_cpu_second, part)) = aim {
        line["target"] = json!(format!("events_per_cpu_s >= {per_cpu_second}, of_ceiling >= {part}"));
        line["met"] = json!(run.per_cpu_second() >= per_cpu_second && of_ceiling >= part);
    }
    line
}
