//! What a user can see: stored offsets while the run goes on, and the topics at its end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base64::Engine;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use thalweg_services::{Rest, Topic};
use tokio_util::sync::CancellationToken;

use crate::history::History;
use crate::lab::Lab;

/// Cluster time inside a stored resume token: seconds, increment.
pub type ClusterTime = (u32, u32);

/// A stored offset as one node showed it. `run` changes when the node was restarted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeenOffset {
    pub time: u64,
    pub node: u64,
    pub run: u64,
    pub connector: usize,
    /// Replica set of the shard; empty: the whole source.
    pub partition: String,
    pub at: ClusterTime,
}

/// A task in the hands of an owner, when it was first seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeenEpoch {
    pub time: u64,
    pub connector: usize,
    pub task: u64,
    pub epoch: u64,
}

/// A message of a topic, reduced to what the checkers need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeenMessage {
    pub offset: i64,
    /// Append time, milliseconds since the epoch.
    pub appended: i64,
    pub key: i64,
    pub event: SeenEvent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SeenEvent {
    /// Create or update with this version.
    Version(i64),
    /// Read by a snapshot with this version.
    Read(i64),
    Delete,
    Tombstone,
}

/// Polls `offsets` of every connector on one node until told to stop.
pub async fn watch_offsets(
    node: u64,
    rest: Rest,
    connectors: usize,
    history: History,
    seen: Arc<Mutex<Vec<SeenOffset>>>,
    stop: CancellationToken,
) {
    let mut run = 0;
    let mut up = true;
    let mut beat = tokio::time::interval(Duration::from_millis(250));
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = beat.tick() => {}
        }
        for connector in 0..connectors {
            let path = format!("/connectors/{}/offsets", Lab::connector(connector));
            match tokio::time::timeout(Duration::from_secs(2), rest.get(&path)).await {
                Ok(Ok((200, body))) => {
                    if !up {
                        run += 1;
                        up = true;
                    }
                    for Position { partition, at, .. } in positions(&body) {
                        seen.lock().push(SeenOffset { time: history.now(), node, run, connector, partition, at });
                    }
                }
                _ => up = false,
            }
        }
    }
}

/// Notes owners of tasks as they change until told to stop.
pub async fn watch_epochs(
    rests: Vec<Rest>,
    history: History,
    seen: Arc<Mutex<Vec<SeenEpoch>>>,
    stop: CancellationToken,
) {
    let mut known = BTreeSet::new();
    let mut beat = tokio::time::interval(Duration::from_millis(100));
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = beat.tick() => {}
        }
        let Some(rows) = any(&rests, "/cluster/assignments").await else { continue };
        for row in rows.as_array().into_iter().flatten() {
            let number = row["connector"].as_str().and_then(|name| name.strip_prefix("orders")?.parse().ok());
            let (Some(connector), Some(task), Some(epoch)) = (number, row["task"].as_u64(), row["epoch"].as_u64())
            else {
                continue;
            };
            if known.insert((connector, task, epoch)) {
                seen.lock().push(SeenEpoch { time: history.now(), connector, task, epoch });
            }
        }
    }
}

/// The answer of the first node that gives one.
pub async fn any(rests: &[Rest], path: &str) -> Option<Value> {
    for rest in rests {
        if let Ok(Ok((200, body))) = tokio::time::timeout(Duration::from_secs(1), rest.get(path)).await {
            return Some(body);
        }
    }
    None
}

/// One row of an answer of `GET /connectors/{c}/offsets`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Replica set of the shard; empty: the whole source.
    pub partition: String,
    /// Time of the resume token.
    pub at: ClusterTime,
    /// An initial snapshot is not finished.
    pub copying: bool,
    /// Signal of the incremental snapshot that is under way or waits, if there is one.
    pub asked: Option<String>,
}

/// Rows with a resume token.
pub fn positions(body: &Value) -> impl Iterator<Item = Position> {
    body["offsets"].as_array().into_iter().flatten().filter_map(|row| {
        let offset = &row["offset"];
        let under_way = offset["incremental_snapshot_collections"].as_str().is_some_and(|queue| queue != "[]");
        let asked = offset["incremental_snapshot_correlation_id"].as_str().unwrap_or_default();
        Some(Position {
            partition: row["partition"]["rs"].as_str().unwrap_or_default().to_owned(),
            at: cluster_time(offset["resume_token"].as_str()?)?,
            copying: offset["initsync"] == true || offset["initsync"] == "true",
            asked: under_way.then(|| asked.to_owned()),
        })
    })
}

/// Time of a resume token.
fn cluster_time(token: &str) -> Option<ClusterTime> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(token).ok()?;
    let document = bson::Document::from_reader(bytes.as_slice()).ok()?;
    let hex = document.get_str("_data").ok()?;
    let number = |from: usize| u32::from_str_radix(hex.get(from..from + 8)?, 16).ok();
    // One byte type tag, then seconds and increment.
    Some((number(2)?, number(10)?))
}

/// Reads what the topic of notifications says of the end of incremental snapshots, by signal, until told
/// to stop. Keeps its thread.
pub fn watch_notices(
    bootstrap: &str,
    topic: &str,
    ends: &Mutex<BTreeMap<String, String>>,
    stop: &CancellationToken,
) -> Result<()> {
    let topic = Topic::read(bootstrap, topic)?;
    let runtime = tokio::runtime::Handle::current();
    while !stop.is_cancelled() {
        // Ends with an error when nothing has come for so long; the topic may not be there yet.
        let _ = runtime.block_on(topic.until(Duration::from_millis(250), |notice| {
            let notice = notice.value_json();
            let kind = notice["type"].as_str().unwrap_or_default();
            if notice["aggregate_type"] == "Incremental Snapshot" && matches!(kind, "COMPLETED" | "ABORTED") {
                ends.lock().insert(notice["id"].as_str().unwrap_or_default().to_owned(), kind.to_owned());
            }
            stop.is_cancelled()
        }));
    }
    Ok(())
}

/// Reads a connector's topic from the beginning until each of these keys has come.
pub async fn read_topic(bootstrap: &str, connector: usize, mut ends: BTreeSet<i64>) -> Result<Vec<SeenMessage>> {
    let topic = Topic::read(bootstrap, &Lab::topic(connector))?;
    let mut messages = Vec::new();
    let mut fault = None;
    topic
        .until(Duration::from_secs(120), |message| match reduce(&message) {
            Ok(seen) => {
                ends.remove(&seen.key);
                messages.push(seen);
                ends.is_empty()
            }
            Err(e) => {
                fault = Some(e);
                true
            }
        })
        .await?;
    match fault {
        Some(e) => Err(e),
        None => Ok(messages),
    }
}

/// A record of a topic whether it was committed or not, as it is.
#[derive(Debug, Serialize)]
pub struct RawMessage {
    pub offset: i64,
    pub appended: i64,
    pub key: Option<String>,
    pub value: Option<String>,
}

/// Reads a connector's topic, committed or not, up to this offset.
pub async fn read_uncommitted(bootstrap: &str, connector: usize, last: i64) -> Result<Vec<RawMessage>> {
    let topic = Topic::with_isolation(bootstrap, &Lab::topic(connector), "read_uncommitted")?;
    let mut messages = Vec::new();
    if last >= 0 {
        topic
            .until(Duration::from_secs(60), |m| {
                messages.push(RawMessage { offset: m.offset, appended: m.timestamp, key: m.key, value: m.value });
                m.offset >= last
            })
            .await?;
    }
    Ok(messages)
}

fn reduce(message: &thalweg_services::Received) -> Result<SeenMessage> {
    let key = message.key_json();
    let key = key["id"].as_str().and_then(|k| k.parse().ok()).with_context(|| format!("key {key} is not a number"))?;
    let event = match &message.value {
        None => SeenEvent::Tombstone,
        Some(text) => {
            let value: Value = serde_json::from_str(text).context("a value is not JSON")?;
            let inner = |field: &Value| field.as_str().and_then(|t| serde_json::from_str::<Value>(t).ok());
            let document = match value["op"].as_str() {
                Some("d") => None,
                // The document looked up may be newer than the update; its description is exact.
                Some("u") => inner(&value["updateDescription"]["updatedFields"]),
                _ => inner(&value["after"]),
            };
            match document {
                None => SeenEvent::Delete,
                Some(d) => {
                    // A description of an update does not name its document.
                    if let Some(id) = number(&d["_id"])
                        && id != key
                    {
                        bail!("the record of key {key} at offset {} is about document {id}", message.offset);
                    }
                    let version = number(&d["v"]).with_context(|| format!("no version in {d}"))?;
                    if value["op"] == "r" { SeenEvent::Read(version) } else { SeenEvent::Version(version) }
                }
            }
        }
    };
    Ok(SeenMessage { offset: message.offset, appended: message.timestamp, key, event })
}

/// A number in either extended JSON form.
fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value["$numberLong"].as_str()?.parse().ok())
}
