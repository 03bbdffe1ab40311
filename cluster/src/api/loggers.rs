//! Log levels at run time: of this node, or of every node through the log.

use serde_json::{Map, Value, json};

use super::{Api, ApiError, ApiResult};
use crate::logging::{ROOT, canonical, level_name, parse_level};
use crate::raft::CommandV1;

impl Api {
    /// `GET /admin/loggers`.
    pub fn loggers(&self) -> Value {
        let all = self.face.loggers().explicit();
        Value::Object(all.into_iter().map(|(name, entry)| (name, entry.to_json())).collect::<Map<_, _>>())
    }

    /// `GET /admin/loggers/{logger}`.
    pub fn logger(&self, name: &str) -> ApiResult {
        match self.face.loggers().effective(name) {
            Some(entry) => Ok(entry.to_json()),
            None => Err(ApiError::not_found(format!("Logger {name} not found."))),
        }
    }

    /// `PUT /admin/loggers/{logger}`: names of the loggers that changed, or nothing with
    /// `scope=cluster`.
    pub async fn set_logger(&self, name: &str, body: &Value, scope: Option<&str>) -> ApiResult<Option<Value>> {
        let name = canonical(name);
        // As everywhere in this interface, other scalars are taken as their text.
        let level = match body.get("level") {
            Some(Value::String(level)) => level.clone(),
            Some(scalar @ (Value::Number(_) | Value::Bool(_))) => scalar.to_string(),
            _ => return Err(ApiError::bad_request("Desired 'level' parameter was not specified in request.")),
        };
        let Some(parsed) = parse_level(&level) else {
            return Err(ApiError::not_found(format!("invalid log level '{level}'.")));
        };
        match scope.map(str::to_ascii_lowercase).as_deref() {
            Some("cluster") => {
                let now_ms = crate::wall_clock_ms();
                let command = CommandV1::SetLogger { logger: name.to_owned(), level: Some(parsed), now_ms };
                self.propose(command).await?;
                Ok(None)
            }
            scope => {
                if let Some(other) = scope.filter(|s| *s != "worker") {
                    tracing::warn!(scope = other, "unknown scope of a log level is taken as worker");
                }
                let changed = self.face.loggers().set(name, parsed, crate::wall_clock_ms());
                tracing::info!(logger = name, level = level_name(parsed), root = name == ROOT, "log level changed");
                Ok(Some(json!(changed)))
            }
        }
    }
}
