//! Stored positions and active topics of a connector.

use std::time::Duration;

use serde_json::{Map, Value, json};
use thalweg_config::Properties;
use thalweg_core::position::{OffsetMap, SourcePartition, is_shown};
use thalweg_core::source::Connector;

use super::{Api, ApiError, ApiResult};
use crate::raft::command::{OffsetChange, PartitionText, TargetState};
use crate::raft::{CommandV1, Refusal};

/// Longer than a task takes to end in good order.
const RELEASE: Duration = Duration::from_secs(10);

/// The answer that Kafka Connect gives for every connector of Debezium, word for word: they leave their
/// offsets to the framework.
fn confirmed(done: &str) -> Value {
    json!({"message": format!(
        "The Connect framework-managed offsets for this connector have been {done} successfully. However, if this \
         connector manages offsets externally, they will need to be manually {done} in the system that the connector \
         uses."
    )})
}

impl Api {
    /// `GET /connectors/{name}/offsets`.
    pub fn offsets(&self, name: &str) -> ApiResult {
        let state = self.view.read();
        if !state.connectors.contains_key(name) {
            return Err(ApiError::no_connector(name));
        }
        let rows = state.offsets.get(name).into_iter().flat_map(|o| o.rows.values());
        let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|_| json!(text));
        let offsets: Vec<Value> = rows
            .map(|row| (parse(&row.partition), parse(&row.offset)))
            .filter(|(_, offset)| offset.as_object().is_none_or(is_shown))
            .map(|(partition, offset)| json!({"partition": partition, "offset": offset}))
            .collect();
        Ok(json!({"offsets": offsets}))
    }

    /// `PATCH /connectors/{name}/offsets`.
    pub async fn alter_offsets(&self, name: &str, body: &Value) -> ApiResult {
        only_members(body, &["offsets"])?;
        let rows = match body.get("offsets").and_then(Value::as_array) {
            Some(rows) if !rows.is_empty() => rows,
            _ => {
                return Err(ApiError::bad_request(
                    "Partitions / offsets need to be provided for an alter offsets request",
                ));
            }
        };
        let revision = self.require_stopped(name).await?;
        let raw = self.with(name, |c| c.config.clone())?;
        let connector = self.registry.connector_of(&raw).cloned().map_err(|e| ApiError::internal(e.message))?;
        let config = self.resolved(raw).await?;
        let change = |row| offset_change(&*connector, &config, row);
        let changes = rows.iter().map(change).collect::<ApiResult<Vec<_>>>()?;
        let change = OffsetChange::Set(changes);
        self.propose(CommandV1::AlterOffsets { name: name.into(), expect_revision: Some(revision), change }).await?;
        Ok(confirmed("altered"))
    }

    /// `DELETE /connectors/{name}/offsets`.
    pub async fn reset_offsets(&self, name: &str) -> ApiResult {
        self.require_stopped(name).await?;
        let change = OffsetChange::RemoveAll;
        self.propose(CommandV1::AlterOffsets { name: name.into(), expect_revision: None, change }).await?;
        Ok(confirmed("reset"))
    }

    /// `GET /connectors/{name}/topics`.
    pub fn topics(&self, name: &str) -> ApiResult {
        if !self.topic_tracking {
            return Err(ApiError::new(403, "Topic tracking is disabled."));
        }
        let state = self.view.read();
        let topics: Vec<&str> = state.topics.get(name).into_iter().flatten().map(|t| &**t).collect();
        let mut answer = Map::new();
        answer.insert(name.to_owned(), json!({"topics": topics}));
        Ok(Value::Object(answer))
    }

    /// `PUT /connectors/{name}/topics/reset`.
    pub async fn reset_topics(&self, name: &str) -> ApiResult<()> {
        if !self.topic_tracking {
            return Err(ApiError::new(403, "Topic tracking is disabled."));
        }
        if !self.topic_reset {
            return Err(ApiError::new(403, "Topic tracking reset is disabled."));
        }
        match self.propose(CommandV1::ResetTopics { name: name.into() }).await {
            // Nothing to forget.
            Err(e) if e.status == 404 => Ok(()),
            done => done.map(|_| ()),
        }
    }

    /// Early answer for what the state machine would refuse; gives the revision of the offsets.
    async fn require_stopped(&self, name: &str) -> ApiResult<u64> {
        self.confirmed().await?;
        // If not in time, the refusal says what is missing.
        let _ = tokio::time::timeout(RELEASE, self.released(name)).await;
        let state = self.view.read();
        let connector = state.connectors.get(name).ok_or_else(|| ApiError::no_connector(name))?;
        let held = state.task_placements(&name.into()).any(|(_, p)| p.is_held());
        if connector.target != TargetState::Stopped || held {
            return Err(Refusal::NotStopped(name.into()).into());
        }
        Ok(state.offsets.get(name).map_or(0, |o| o.revision))
    }

    /// Until no task of a stopped connector is held. Its status shows no task as soon as it is to stop, so a
    /// client that waited for that may ask while the last task is still ending.
    async fn released(&self, name: &str) {
        let mut changes = self.view.changes();
        let ending = || {
            let state = self.view.read();
            let is_to_stop = state.connectors.get(name).is_some_and(|c| c.target == TargetState::Stopped);
            is_to_stop && state.task_placements(&name.into()).any(|(_, p)| p.is_held())
        };
        while ending() && changes.changed().await.is_ok() {}
    }

    /// A configuration as its tasks have it. Files that references name are read aside: they may be slow.
    pub(super) async fn resolved(&self, raw: Properties) -> ApiResult<Properties> {
        let providers = self.registry.providers().clone();
        let resolving = tokio::task::spawn_blocking(move || providers.resolve(&raw).properties);
        resolving.await.map_err(|e| ApiError::internal(format!("Reading the configuration broke off: {e}")))
    }
}

/// What one entry of a request asks for. A position is taken only for what a task will look for; a
/// partition that was left behind can always be removed.
fn offset_change(
    connector: &dyn Connector,
    config: &Properties,
    row: &Value,
) -> ApiResult<(PartitionText, Option<String>)> {
    only_members(row, &["partition", "offset"])?;
    let Some(members) = row.get("partition").and_then(Value::as_object) else {
        return Err(ApiError::bad_request("Each entry of 'offsets' needs a 'partition' that is an object"));
    };
    let partition = SourcePartition::from_map(members);
    let shown = partition.original();
    let invalid = |e| ApiError::bad_request(format!("The partition {shown} is not valid: {e}"));
    connector.codec().check_partition(members).map_err(invalid)?;
    let offset = match row.get("offset") {
        None | Some(Value::Null) => None,
        Some(Value::Object(offset)) => {
            let offset: &OffsetMap = offset;
            connector.check_owner(&partition, config).map_err(invalid)?;
            connector
                .codec()
                .from_offset(offset)
                .map_err(|e| ApiError::bad_request(format!("The offset for partition {shown} is not valid: {e}")))?;
            Some(Value::Object(offset.clone()).to_string())
        }
        Some(_) => {
            return Err(ApiError::bad_request(format!(
                "The offset for partition {shown} is neither an object nor null"
            )));
        }
    };
    let text = PartitionText { canonical: partition.canonical().to_string(), original: shown.to_string() };
    Ok((text, offset))
}

/// A misspelt member must not be taken for one that is not there: without `offset` a position is removed.
pub(super) fn only_members(value: &Value, known: &[&str]) -> ApiResult<()> {
    let mut names = value.as_object().into_iter().flat_map(Map::keys);
    match names.find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(other) => {
            Err(ApiError::bad_request(format!("Unknown member '{other}'; known here: {}", known.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{confirmed, only_members};

    #[test]
    fn members_that_nobody_knows_are_named() {
        assert_eq!(only_members(&json!({"partition": {}, "offset": null}), &["partition", "offset"]), Ok(()));
        let error = only_members(&json!({"partition": {}, "ofset": {}}), &["partition", "offset"]).err();
        let message = error.map(|e| (e.status, e.message));
        assert_eq!(message, Some((400, "Unknown member 'ofset'; known here: partition, offset".to_owned())));
    }

    #[test]
    fn a_change_of_offsets_is_confirmed_in_the_words_of_kafka_connect() {
        assert_eq!(
            confirmed("reset")["message"],
            "The Connect framework-managed offsets for this connector have been reset successfully. However, if this \
             connector manages offsets externally, they will need to be manually reset in the system that the connector uses."
        );
    }
}
