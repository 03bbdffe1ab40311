//! Who owns the task, as any node's REST interface tells.

use super::rest;
use super::stage::{CONNECTOR, Stage};

#[derive(Debug)]
pub(super) enum Change {
    Owner(u64),
    State(String),
    Progress(String),
}

#[derive(Default)]
pub(super) struct Owners {
    current: Option<u64>,
    state: String,
}

impl Owners {
    pub fn current(&self) -> Option<u64> {
        self.current
    }

    /// What has changed since the last look.
    pub async fn look(&mut self, stage: &Stage) -> Option<Change> {
        let (_, port) = stage.rest_ports().into_iter().next()?;
        let (_, status) = rest::get(port, &format!("/connectors/{CONNECTOR}/status")).await.ok()?;
        let task = &status["tasks"][0];
        let state = task["state"].as_str()?.to_owned();
        let port = task["worker_id"].as_str()?.rsplit(':').next()?.parse().ok()?;
        let owner = stage.node_with_rest(port)?;
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
}
