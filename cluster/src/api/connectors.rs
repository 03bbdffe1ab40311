//! Creating, reading, changing and deleting connectors.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use thalweg_config::parse::Reading;

use super::{Api, ApiError, ApiResult};
use crate::raft::command::{Expect, TargetState};
use crate::raft::state::Connector;
use crate::raft::{CommandV1, Reply};

/// Answer of a write.
#[derive(Debug)]
pub struct Written {
    pub created: bool,
    pub info: Value,
}

impl Api {
    /// `POST /connectors`.
    pub async fn create(&self, name: &str, config: Reading, initial: Option<&str>) -> ApiResult<Value> {
        let target = match initial.map(str::to_ascii_uppercase).as_deref() {
            None | Some("RUNNING") => TargetState::Started,
            Some("PAUSED") => TargetState::Paused,
            Some("STOPPED") => TargetState::Stopped,
            Some(_) => {
                return Err(ApiError::bad_request(format!(
                    "initial_state {} is none of RUNNING, PAUSED, STOPPED",
                    initial.unwrap_or_default()
                )));
            }
        };
        Ok(self.write(name, config, target, Expect::Absent).await?.info)
    }

    /// `PUT /connectors/{name}/config`.
    pub async fn put_config(&self, name: &str, config: Reading) -> ApiResult<Written> {
        self.write(name, config, TargetState::Started, Expect::Any).await
    }

    /// `PATCH /connectors/{name}/config`: `None` takes a key away.
    pub async fn patch_config(&self, name: &str, patch: BTreeMap<String, Option<String>>) -> ApiResult<Value> {
        self.confirmed().await?;
        let (mut config, revision) = {
            let state = self.view.read();
            let connector = state.connectors.get(name).ok_or_else(|| ApiError::no_connector(name))?;
            (connector.config.clone(), connector.revision)
        };
        for (key, value) in patch {
            match value {
                Some(value) => config.set(key, value),
                None => {
                    config.remove(&key);
                }
            }
        }
        let config = Reading { properties: config, ..Reading::default() };
        // Whoever wrote in between is not overwritten unseen.
        Ok(self.write(name, config, TargetState::Started, Expect::Revision(revision)).await?.info)
    }

    async fn write(&self, name: &str, config: Reading, target: TargetState, expect: Expect) -> ApiResult<Written> {
        let config = named(name, config)?;
        let warnings = self.require_valid(&config).await?;
        let config = config.properties;
        let reply = self.propose(CommandV1::PutConnector { name: name.into(), config, target, expect }).await?;
        let created = match reply {
            Reply::ConnectorPut { created, revision } => {
                self.remember_warnings(name, revision, warnings);
                created
            }
            _ => false,
        };
        Ok(Written { created, info: self.connector(name)? })
    }

    /// `DELETE /connectors/{name}`. Offsets stay.
    pub async fn delete(&self, name: &str) -> ApiResult<()> {
        self.propose(CommandV1::DeleteConnector { name: name.into() }).await?;
        Ok(())
    }

    /// `GET /connectors/{name}`.
    pub fn connector(&self, name: &str) -> ApiResult {
        self.with(name, |connector| self.info(name, connector))
    }

    /// `GET /connectors/{name}/config`.
    pub fn config(&self, name: &str) -> ApiResult {
        self.with(name, |connector| json!(connector.config))
    }

    /// `GET /connectors/{name}/tasks`.
    pub fn tasks(&self, name: &str) -> ApiResult {
        self.with(name, |connector| {
            let tasks = connector.tasks.iter().enumerate();
            tasks.map(|(id, config)| json!({"id": {"connector": name, "task": id}, "config": config})).collect()
        })
    }

    /// `GET /connectors/{name}/tasks-config`.
    pub fn tasks_config(&self, name: &str) -> ApiResult {
        self.with(name, |connector| {
            let tasks = connector.tasks.iter().enumerate();
            Value::Object(tasks.map(|(id, config)| (format!("{name}-{id}"), json!(config))).collect())
        })
    }

    /// `GET /connectors` with the values of `expand`.
    pub async fn list(&self, expand: &[String]) -> ApiResult {
        let names: Vec<_> = self.view.read().connectors.keys().cloned().collect();
        if expand.is_empty() {
            return Ok(json!(names));
        }
        let mut all = Map::new();
        'names: for name in names {
            let mut one = Map::new();
            for what in expand {
                let value = match what.as_str() {
                    "status" => self.status(&name).await,
                    "info" => self.connector(&name),
                    other => {
                        tracing::info!(expand = other, "unknown value of expand ignored");
                        continue;
                    }
                };
                // A connector that went away meanwhile, or has no status yet, is left out.
                let Ok(value) = value else { continue 'names };
                one.insert(what.clone(), value);
            }
            all.insert(name.to_string(), Value::Object(one));
        }
        Ok(Value::Object(all))
    }

    pub(super) fn info(&self, name: &str, connector: &Connector) -> Value {
        let tasks: Vec<Value> = (0..connector.tasks.len()).map(|id| json!({"connector": name, "task": id})).collect();
        json!({"name": name, "config": connector.config, "tasks": tasks, "type": self.kind(connector)})
    }

    /// `source`, or `unknown` for a class that this build does not have.
    pub(super) fn kind(&self, connector: &Connector) -> &'static str {
        if self.registry.connector_of(&connector.config).is_ok() { "source" } else { "unknown" }
    }

    pub(super) fn with<T>(&self, name: &str, read: impl FnOnce(&Connector) -> T) -> ApiResult<T> {
        self.view.read().connectors.get(name).map(read).ok_or_else(|| ApiError::no_connector(name))
    }
}

/// The configuration with its name in it.
fn named(name: &str, mut config: Reading) -> ApiResult<Reading> {
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(ApiError::bad_request(
            "The connector name must not be empty and must not contain control characters; give it as 'name'",
        ));
    }
    match config.properties.get("name") {
        Some(other) if other != name => Err(ApiError::bad_request(format!(
            "Connector name configuration ({other}) doesn't match connector name in the URL ({name})"
        ))),
        _ => {
            config.properties.set("name", name);
            Ok(config)
        }
    }
}
