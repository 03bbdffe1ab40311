//! Status of connectors and tasks, and what their owners say beyond it.
//!
//! Connect's members are always there and alone as long as there is nothing to add; `progress`
//! appears while a task takes its snapshot, `note` while it retries, `warnings` while the
//! configuration holds something doubtful.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use thalweg_actors::port::UnitId;
use thalweg_actors::{Activity, UnitView};

use super::{Api, ApiError, ApiResult};
use crate::raft::command::ReportedState;
use crate::raft::state::{NodeState, State, Status};
use crate::raft::{NodeId, Unit};

/// Member of a status, and of what nodes add to one.
const WARNINGS: &str = "warnings";

impl Api {
    /// `GET /connectors/{name}/status`.
    pub async fn status(&self, name: &str) -> ApiResult {
        let missing = || ApiError::not_found(format!("No status found for connector {name}"));
        let (mut status, revision, config, nodes) = {
            let state = self.view.read();
            let connector = state.connectors.get(name).ok_or_else(missing)?;
            let row = state.statuses.get(&Unit::connector(name)).ok_or_else(missing)?;
            let version = self.registry.connector_of(&connector.config).ok().map(|c| c.plugin().version);
            let tasks: Vec<Value> = (0..connector.tasks.len() as u32)
                .filter_map(|id| Some(task_status(id, state.statuses.get(&Unit::task(name, id))?, version)))
                .collect();
            let status = json!({
                "name": name,
                "connector": unit_status(row, version),
                "tasks": tasks,
                "type": self.kind(connector),
            });
            (status, connector.revision, connector.config.clone(), present(&state))
        };
        let mut warnings = self.warnings_of(name, revision, &config).await.to_vec();
        let here = self.face.standing().node;
        let details = nodes.into_iter().map(async |node| {
            if node == here { Some(self.detail(name)) } else { self.face.detail_of(node, name).await }
        });
        for detail in futures::future::join_all(details).await.into_iter().flatten() {
            add_detail(&mut status, &detail, &mut warnings);
        }
        if !warnings.is_empty() {
            status[WARNINGS] = json!(warnings);
        }
        Ok(status)
    }

    /// `GET /connectors/{name}/tasks/{task}/status`.
    pub async fn task_status(&self, name: &str, task: u32) -> ApiResult {
        let status = self.status(name).await;
        let found = status.ok().and_then(|mut status| {
            let tasks = status.get_mut("tasks")?.as_array_mut()?;
            let at = tasks.iter().position(|t| t["id"] == task)?;
            Some(tasks.swap_remove(at))
        });
        found.ok_or_else(|| ApiError::not_found(format!("No status found for task {name}-{task}")))
    }

    /// What this node adds to the status of a connector: by task id, `connector`, and what it knows to be
    /// doubtful under `warnings`.
    pub fn detail(&self, name: &str) -> Value {
        let mut all = Map::new();
        let revision = self.view.read().connectors.get(name).map(|c| c.revision);
        if let Some(warnings) = revision.and_then(|revision| self.known_warnings(name, revision)) {
            all.insert(WARNINGS.to_owned(), json!(*warnings));
        }
        for unit in self.face.units().units.iter().filter(|u| u.unit.connector().as_ref() == name) {
            let detail = unit_detail(unit);
            if !detail.is_empty() {
                let id = match &unit.unit {
                    UnitId::Connector(_) => "connector".to_owned(),
                    UnitId::Task(_, task) => task.to_string(),
                };
                all.insert(id, Value::Object(detail));
            }
        }
        Value::Object(all)
    }
}

fn unit_status(row: &Status, version: Option<&str>) -> Value {
    // Only who runs it knows what runs.
    let version = version.filter(|_| row.state != ReportedState::Unassigned);
    let mut status = json!({"state": row.state.name(), "worker_id": row.worker_id, "version": version});
    if let Some(trace) = row.trace.as_deref().filter(|t| !t.is_empty()) {
        status["trace"] = json!(trace);
    }
    status
}

fn task_status(id: u32, row: &Status, version: Option<&str>) -> Value {
    let mut status = json!({"id": id});
    if let (Some(status), Value::Object(rest)) = (status.as_object_mut(), unit_status(row, version)) {
        status.extend(rest);
    }
    status
}

/// Nodes that may run something of a connector, or have taken its configuration.
fn present(state: &State) -> Vec<NodeId> {
    let is_there = |state: &NodeState| matches!(state, NodeState::Alive | NodeState::Draining(_));
    state.nodes.iter().filter(|(_, node)| is_there(&node.state)).map(|(id, _)| *id).collect()
}

fn add_detail(status: &mut Value, detail: &Value, warnings: &mut Vec<String>) {
    let Some(detail) = detail.as_object() else {
        return;
    };
    for (id, extra) in detail {
        if id == WARNINGS {
            for text in extra.as_array().into_iter().flatten().filter_map(Value::as_str) {
                if !warnings.iter().any(|known| known == text) {
                    warnings.push(text.to_owned());
                }
            }
            continue;
        }
        let target = match id.parse::<u32>() {
            Err(_) => status.get_mut("connector"),
            Ok(id) => status
                .get_mut("tasks")
                .and_then(Value::as_array_mut)
                .and_then(|tasks| tasks.iter_mut().find(|t| t["id"] == id)),
        };
        if let (Some(Value::Object(target)), Value::Object(extra)) = (target, extra) {
            target.extend(extra.clone());
        }
    }
}

fn unit_detail(unit: &UnitView) -> Map<String, Value> {
    let mut detail = Map::new();
    if let Some(note) = &unit.note {
        detail.insert("note".to_owned(), json!(note));
    }
    let mut progress = BTreeMap::new();
    let mut retrying = Vec::new();
    for partition in &unit.partitions {
        if let Some(snapshot) = partition.snapshot.as_ref().filter(|s| s.running) {
            progress.insert(
                partition.partition.original().to_string(),
                json!({
                    "done": snapshot.rows_done,
                    "expected": snapshot.rows_expected,
                    "rows_per_second": snapshot.rate.round(),
                    "seconds_left": snapshot.left.map(|l| l.as_secs()),
                    "collections_left": snapshot.tables_remaining,
                    "collections": partition.tables.iter().map(ToString::to_string).collect::<Vec<_>>(),
                }),
            );
        }
        if let Activity::Retrying { .. } = partition.activity {
            retrying.push(partition.activity.to_string());
        } else if let Some(away) = &partition.away {
            retrying.push(away.to_string());
        }
    }
    if !progress.is_empty() {
        detail.insert("progress".to_owned(), json!(progress));
    }
    if !retrying.is_empty() {
        detail.insert("retrying".to_owned(), json!(retrying));
    }
    detail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_runs_has_no_version() {
        let version = |state| {
            let row = Status { state, worker_id: "w".to_owned(), trace: None, epoch: 1, revision: 1 };
            unit_status(&row, Some("1.2"))["version"].clone()
        };
        assert_eq!(version(ReportedState::Unassigned), Value::Null);
        assert_eq!(version(ReportedState::Running), "1.2");
        assert_eq!(version(ReportedState::Failed), "1.2");
    }
}
