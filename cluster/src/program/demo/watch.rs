//! Who owns the task, as any node's REST interface tells.
//!
//! Asks in a task of its own: an answer that takes long after the loss of a node does not hold back
//! the events whose silence is measured.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use super::rest;
use super::stage::CONNECTOR;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) enum Change {
    Owner(u64),
    State(String),
    Progress(String),
}

/// Tells every change of the task. `nodes`: number and REST port of each.
pub(super) fn owners(nodes: Vec<(u64, u16)>) -> mpsc::Receiver<Change> {
    let (sender, changes) = mpsc::channel(8);
    tokio::spawn(async move {
        let mut owners = Owners { nodes, current: None, state: String::new() };
        let mut look = tokio::time::interval(PAUSE);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            look.tick().await;
            if let Some(change) = owners.look().await
                && sender.send(change).await.is_err()
            {
                return;
            }
        }
    });
    changes
}

struct Owners {
    nodes: Vec<(u64, u16)>,
    current: Option<u64>,
    state: String,
}

impl Owners {
    /// What has changed since the last look.
    async fn look(&mut self) -> Option<Change> {
        let status = self.status().await?;
        let task = &status["tasks"][0];
        let state = task["state"].as_str()?.to_owned();
        let port: u16 = task["worker_id"].as_str()?.rsplit(':').next()?.parse().ok()?;
        let owner = self.nodes.iter().find(|(_, p)| *p == port)?.0;
        if state != self.state {
            self.state.clone_from(&state);
            if state != "RUNNING" {
                return Some(Change::State(state));
            }
        }
        if state == "RUNNING" && self.current != Some(owner) {
            self.current = Some(owner);
            return Some(Change::Owner(owner));
        }
        let progress = task["progress"].as_object()?.values().next()?;
        Some(Change::Progress(format!(
            "{} of about {} documents, {} a second",
            progress["done"], progress["expected"], progress["rows_per_second"]
        )))
    }

    /// From the first node that answers.
    async fn status(&self) -> Option<Value> {
        for (_, port) in &self.nodes {
            if let Ok((200, status)) = rest::get(*port, &format!("/connectors/{CONNECTOR}/status")).await {
                return Some(status);
            }
        }
        None
    }
}
