//! Pausing, resuming, stopping and restarting. An answer means "recorded", not "reached"; only the
//! restart of the connector object alone is awaited, as in Kafka Connect, where its owner answers.

use std::time::Duration;

use serde_json::Value;

use super::{Api, ApiError, ApiResult};
use crate::raft::command::{ReportedState, RestartScope, TargetState};
use crate::raft::{CommandV1, Reply, Unit};

/// Longest wait for a connector object that restarts; the answer then comes all the same.
const RESTARTED: Duration = Duration::from_secs(10);

/// Answer of a restart.
#[derive(Debug)]
pub enum Restarted {
    /// The connector object alone.
    Quietly,
    /// The status with everything that restarts shown as RESTARTING.
    Shown(Value),
}

impl Api {
    /// `PUT /connectors/{name}/{pause,resume,stop}`.
    pub async fn set_target(&self, name: &str, target: TargetState) -> ApiResult<()> {
        let done = self.propose(CommandV1::SetTarget { name: name.into(), target }).await;
        match done {
            Err(e) if e.status == 404 => Err(ApiError::not_found(format!("Unknown connector {name}"))),
            done => done.map(|_| ()),
        }
    }

    /// `POST /connectors/{name}/restart`.
    pub async fn restart(&self, name: &str, include_tasks: bool, only_failed: bool) -> ApiResult<Restarted> {
        self.confirmed().await?;
        let planned = include_tasks || only_failed;
        // What is shown is the plan: everything as it was found, traces included.
        let before = if planned { Some(self.status(name).await) } else { None };
        let units = self.restart_scope(name, RestartScope::Connector { include_tasks, only_failed }).await?;
        let Some(before) = before else {
            let restarted = self.restarted(Unit::connector(name));
            if tokio::time::timeout(RESTARTED, restarted).await.is_err() {
                tracing::info!(connector = name, "restart answered before the connector was up again");
            }
            return Ok(Restarted::Quietly);
        };
        let missing = |_| ApiError::not_found(format!("Status for connector {name} not found"));
        let mut status = before.map_err(missing)?;
        for unit in units {
            let shown = match unit.task {
                None => status.get_mut("connector"),
                Some(task) => status
                    .get_mut("tasks")
                    .and_then(Value::as_array_mut)
                    .and_then(|tasks| tasks.iter_mut().find(|t| t["id"] == task)),
            };
            if let Some(shown) = shown.and_then(Value::as_object_mut) {
                shown.insert("state".to_owned(), "RESTARTING".into());
            }
        }
        Ok(Restarted::Shown(status))
    }

    /// `POST /connectors/{name}/tasks/{task}/restart`.
    pub async fn restart_task(&self, name: &str, task: u32) -> ApiResult<()> {
        self.confirmed().await?;
        self.restart_scope(name, RestartScope::Task(task)).await.map(|_| ())
    }

    /// Until the unit's owner has reported another state than RESTARTING, or the unit is gone.
    async fn restarted(&self, unit: Unit) {
        let mut changes = self.view.changes();
        let busy = || self.view.read().statuses.get(&unit).is_some_and(|s| s.state == ReportedState::Restarting);
        while busy() && changes.changed().await.is_ok() {}
    }

    /// To be called with what this replica shows [confirmed](Api::confirmed).
    async fn restart_scope(&self, name: &str, scope: RestartScope) -> ApiResult<Vec<Unit>> {
        if !self.view.read().connectors.contains_key(name) {
            return Err(ApiError::not_found(format!("Unknown connector: {name}")));
        }
        match self.propose(CommandV1::Restart { name: name.into(), scope }).await? {
            Reply::Restarting { units } => Ok(units),
            _ => Ok(Vec::new()),
        }
    }
}
