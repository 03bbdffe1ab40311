//! One thin function per route.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use thalweg_config::parse::json::{config_map, config_patch, create_request};

use super::body::{Query, Segments, Text, flag, parameter};
use super::reply::Answer;
use crate::api::{Api, ApiError, Restarted, Taken};
use crate::raft::NodeId;
use crate::raft::command::TargetState;

type Ctx = State<Arc<Api>>;
type Done = Result<Answer, ApiError>;
/// Name of a connector, plugin or logger.
type Name = Segments<String>;

/// A read of configurations and states: up to date if a majority answers, and marked if not. A node
/// that has not caught up since its start does not answer from what it has.
async fn read(api: &Api, answer: impl AsyncFnOnce(&Api) -> Done) -> Response {
    let fresh = match api.fresh().await {
        Ok(fresh) => fresh,
        Err(starting) => return starting.into_response(),
    };
    let mut response = answer(api).await.into_response();
    if !fresh {
        let lost = axum::http::HeaderValue::from_static("lost");
        response.headers_mut().insert("X-Cluster-Quorum", lost);
    }
    response
}

fn bad_body(error: &impl std::fmt::Display) -> ApiError {
    ApiError::bad_request(error.to_string())
}

pub(super) async fn root(State(api): Ctx) -> Answer {
    Answer::ok(api.server_info())
}

pub(super) async fn health(State(api): Ctx) -> Answer {
    let (status, body) = api.health().await;
    Answer::Json(status, body)
}

/// The process turns: answering is the proof.
pub(super) async fn live() -> Answer {
    Answer::ok(json!({"status": "live"}))
}

pub(super) async fn ready(State(api): Ctx) -> Answer {
    match api.ready() {
        Ok(()) => Answer::ok(json!({"status": "ready"})),
        Err(why) => Answer::Json(503, json!({"status": "not ready", "message": why})),
    }
}

pub(super) async fn metrics(State(api): Ctx) -> Answer {
    Answer::Text(api.metrics())
}

pub(super) async fn list(State(api): Ctx, query: Query) -> Response {
    let expand: Vec<String> = query.iter().filter(|(n, _)| n == "expand").map(|(_, v)| v.clone()).collect();
    read(&api, async |api| api.list(&expand).await.map(Answer::ok)).await
}

pub(super) async fn create(State(api): Ctx, body: Text) -> Done {
    let request = create_request(&body.0).map_err(|e| bad_body(&e))?;
    let name = request.name.unwrap_or_default();
    let info = api.create(&name, request.config, request.initial_state.as_deref()).await?;
    Ok(Answer::Created(location(&name), info))
}

pub(super) async fn connector(State(api): Ctx, Segments(name): Name) -> Response {
    read(&api, async |api| api.connector(&name).map(Answer::ok)).await
}

pub(super) async fn delete(State(api): Ctx, Segments(name): Name) -> Done {
    api.delete(&name).await?;
    Ok(Answer::Empty(204))
}

pub(super) async fn config(State(api): Ctx, Segments(name): Name) -> Response {
    read(&api, async |api| api.config(&name).map(Answer::ok)).await
}

pub(super) async fn put_config(State(api): Ctx, Segments(name): Name, body: Text) -> Done {
    let config = config_map(&body.0).map_err(|e| bad_body(&e))?;
    let written = api.put_config(&name, config).await?;
    Ok(if written.created { Answer::Created(location(&name), written.info) } else { Answer::ok(written.info) })
}

pub(super) async fn patch_config(State(api): Ctx, Segments(name): Name, body: Text) -> Done {
    let patch = config_patch(&body.0).map_err(|e| bad_body(&e))?;
    api.patch_config(&name, patch).await.map(Answer::ok)
}

pub(super) async fn status(State(api): Ctx, Segments(name): Name) -> Response {
    read(&api, async |api| api.status(&name).await.map(Answer::ok)).await
}

pub(super) async fn restart(State(api): Ctx, Segments(name): Name, query: Query) -> Done {
    let restarted = api.restart(&name, flag(&query, "includeTasks", false), flag(&query, "onlyFailed", false)).await?;
    Ok(match restarted {
        Restarted::Quietly => Answer::Empty(204),
        Restarted::Shown(status) => Answer::Json(202, status),
    })
}

pub(super) async fn pause(State(api): Ctx, Segments(name): Name) -> Done {
    api.set_target(&name, TargetState::Paused).await?;
    Ok(Answer::Empty(202))
}

pub(super) async fn resume(State(api): Ctx, Segments(name): Name) -> Done {
    api.set_target(&name, TargetState::Started).await?;
    Ok(Answer::Empty(202))
}

pub(super) async fn stop(State(api): Ctx, Segments(name): Name) -> Done {
    api.set_target(&name, TargetState::Stopped).await?;
    Ok(Answer::Empty(204))
}

pub(super) async fn tasks(State(api): Ctx, Segments(name): Name) -> Response {
    read(&api, async |api| api.tasks(&name).map(Answer::ok)).await
}

pub(super) async fn tasks_config(State(api): Ctx, Segments(name): Name) -> Response {
    read(&api, async |api| api.tasks_config(&name).map(Answer::ok)).await
}

pub(super) async fn task_status(State(api): Ctx, Segments((name, task)): Segments<(String, u32)>) -> Response {
    read(&api, async |api| api.task_status(&name, task).await.map(Answer::ok)).await
}

pub(super) async fn restart_task(State(api): Ctx, Segments((name, task)): Segments<(String, u32)>) -> Done {
    api.restart_task(&name, task).await?;
    Ok(Answer::Empty(204))
}

pub(super) async fn topics(State(api): Ctx, Segments(name): Name) -> Response {
    read(&api, async |api| api.topics(&name).map(Answer::ok)).await
}

pub(super) async fn reset_topics(State(api): Ctx, Segments(name): Name) -> Done {
    api.reset_topics(&name).await?;
    Ok(Answer::Empty(202))
}

pub(super) async fn offsets(State(api): Ctx, Segments(name): Name) -> Response {
    read(&api, async |api| api.offsets(&name).map(Answer::ok)).await
}

pub(super) async fn alter_offsets(State(api): Ctx, Segments(name): Name, body: Text) -> Done {
    api.alter_offsets(&name, &body.json()?).await.map(Answer::ok)
}

pub(super) async fn reset_offsets(State(api): Ctx, Segments(name): Name) -> Done {
    api.reset_offsets(&name).await.map(Answer::ok)
}

pub(super) async fn signals(State(api): Ctx, Segments(name): Name) -> Response {
    read(&api, async |api| api.signals(&name).map(Answer::ok)).await
}

pub(super) async fn put_signal(State(api): Ctx, Segments(name): Name, body: Text) -> Done {
    Ok(match api.put_signal(&name, &body.json()?).await? {
        Taken::Added(signal) => Answer::Json(202, signal),
        Taken::Known(signal) => Answer::ok(signal),
    })
}

pub(super) async fn plugins(State(api): Ctx, query: Query) -> Answer {
    Answer::ok(api.plugins(flag(&query, "connectorsOnly", true)))
}

pub(super) async fn plugin_config(State(api): Ctx, Segments(plugin): Name) -> Done {
    api.plugin_config(&plugin).map(Answer::ok)
}

pub(super) async fn validate(State(api): Ctx, Segments(plugin): Name, body: Text) -> Done {
    let reading = config_map(&body.0).map_err(|e| bad_body(&e))?;
    api.validate(&plugin, reading).await.map(Answer::ok)
}

pub(super) async fn loggers(State(api): Ctx) -> Answer {
    Answer::ok(api.loggers())
}

pub(super) async fn logger(State(api): Ctx, Segments(name): Name) -> Done {
    api.logger(&name).map(Answer::ok)
}

pub(super) async fn set_logger(State(api): Ctx, Segments(name): Name, query: Query, body: Text) -> Done {
    let changed = api.set_logger(&name, &body.json()?, parameter(&query, "scope")).await?;
    Ok(changed.map_or(Answer::Empty(204), Answer::ok))
}

pub(super) async fn cluster(State(api): Ctx) -> Answer {
    Answer::ok(api.cluster())
}

pub(super) async fn assignments(State(api): Ctx) -> Answer {
    Answer::ok(api.assignments())
}

pub(super) async fn rebalance(State(api): Ctx) -> Done {
    api.rebalance()?;
    Ok(Answer::Empty(202))
}

pub(super) async fn remove_node(State(api): Ctx, Segments(node): Segments<NodeId>) -> Done {
    api.remove_node(node).await?;
    Ok(Answer::Empty(204))
}

pub(super) async fn drain(State(api): Ctx, Segments(node): Segments<NodeId>, query: Query) -> Done {
    api.drain(node, parameter(&query, "mode")).await?;
    Ok(Answer::Empty(202))
}

pub(super) async fn undrain(State(api): Ctx, Segments(node): Segments<NodeId>) -> Done {
    api.undrain(node).await?;
    Ok(Answer::Empty(202))
}

/// Path of a connector; its name percent-encoded where needed.
fn location(name: &str) -> String {
    let mut path = "/connectors/".to_owned();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
    }
    path
}
