//! What a user can see: stored offsets while the run goes on, and the topics at its end.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine;
use parking_lot::Mutex;
use serde_json::Value;
use thalweg_services::{Rest, Topic};
use tokio_util::sync::CancellationToken;

use crate::history::History;
use crate::lab::{CONNECTORS, Lab};

/// Cluster time inside a stored resume token: seconds, increment.
pub type ClusterTime = (u32, u32);

/// A stored offset as one node showed it. `run` changes when the node was restarted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenOffset {
    pub time: u64,
    pub node: u64,
    pub run: u64,
    pub connector: usize,
    pub at: ClusterTime,
}

/// A message of a topic, reduced to what the checkers need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenMessage {
    pub offset: i64,
    /// Append time, milliseconds since the epoch.
    pub appended: i64,
    pub key: i64,
    pub event: SeenEvent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenEvent {
    /// Create, update or snapshot read with this version.
    Version(i64),
    Delete,
    Tombstone,
}

/// Polls `offsets` of every connector on one node until told to stop.
pub async fn watch_offsets(
    node: u64,
    rest: Rest,
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
        for connector in 0..CONNECTORS {
            let path = format!("/connectors/{}/offsets", Lab::connector(connector));
            match tokio::time::timeout(Duration::from_secs(2), rest.get(&path)).await {
                Ok(Ok((200, body))) => {
                    if !up {
                        run += 1;
                        up = true;
                    }
                    if let Some(at) = cluster_time(&body) {
                        seen.lock().push(SeenOffset { time: history.now(), node, run, connector, at });
                    }
                }
                _ => up = false,
            }
        }
    }
}

/// Time of the resume token in an answer of `GET /connectors/{c}/offsets`.
pub fn cluster_time(body: &Value) -> Option<ClusterTime> {
    let token = body["offsets"][0]["offset"]["resume_token"].as_str()?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(token).ok()?;
    let document = bson::Document::from_reader(bytes.as_slice()).ok()?;
    let hex = document.get_str("_data").ok()?;
    let number = |from: usize| u32::from_str_radix(hex.get(from..from + 8)?, 16).ok();
    // One byte type tag, then seconds and increment.
    Some((number(2)?, number(10)?))
}

/// Reads a connector's topic from the beginning to the last message that is there now.
pub async fn read_topic(bootstrap: &str, connector: usize, until_key: i64) -> Result<Vec<SeenMessage>> {
    let topic = Topic::read(bootstrap, &Lab::topic(connector))?;
    let mut messages = Vec::new();
    let mut fault = None;
    topic
        .until(Duration::from_secs(120), |message| match reduce(&message) {
            Ok(seen) => {
                let last = seen.key == until_key;
                messages.push(seen);
                last
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
                Some(d) => SeenEvent::Version(number(&d["v"]).with_context(|| format!("no version in {d}"))?),
            }
        }
    };
    Ok(SeenMessage { offset: message.offset, appended: message.timestamp, key, event })
}

/// A number in either extended JSON form.
fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value["$numberLong"].as_str()?.parse().ok())
}
