//! Kafka Connect's REST interface, and ours beside it, over [`Api`]: routing, reading of requests,
//! writing of answers. Nothing is decided here.
//!
//! Invariants: every answer with a body is JSON, errors have Connect's error body; a request has a
//! size and a time limit; a connection that sends nothing does not hold up the end of the server.

mod body;
mod handlers;
mod limits;
mod reply;
mod server;
mod tls;

pub use reply::Answer;
pub use server::{BindError, Listener, Server};
pub use tls::acceptor;

use std::sync::Arc;

use axum::Router;
use axum::middleware;
use axum::routing::{get, post, put};

use crate::api::Api;

/// All routes.
pub fn router(api: Arc<Api>) -> Router {
    use handlers as h;
    Router::new()
        .route("/", get(h::root))
        .route("/health", get(h::health))
        .route("/health/live", get(h::live))
        .route("/live", get(h::live))
        .route("/health/ready", get(h::ready))
        .route("/ready", get(h::ready))
        .route("/metrics", get(h::metrics))
        .route("/connectors", get(h::list).post(h::create))
        .route("/connectors/", get(h::list).post(h::create))
        .route("/connectors/{name}", get(h::connector).delete(h::delete))
        .route("/connectors/{name}/config", get(h::config).put(h::put_config).patch(h::patch_config))
        .route("/connectors/{name}/status", get(h::status))
        .route("/connectors/{name}/restart", post(h::restart))
        .route("/connectors/{name}/pause", put(h::pause))
        .route("/connectors/{name}/resume", put(h::resume))
        .route("/connectors/{name}/stop", put(h::stop))
        .route("/connectors/{name}/tasks", get(h::tasks))
        .route("/connectors/{name}/tasks-config", get(h::tasks_config))
        .route("/connectors/{name}/tasks/{task}/status", get(h::task_status))
        .route("/connectors/{name}/tasks/{task}/restart", post(h::restart_task))
        .route("/connectors/{name}/topics", get(h::topics))
        .route("/connectors/{name}/topics/reset", put(h::reset_topics))
        .route("/connectors/{name}/offsets", get(h::offsets).patch(h::alter_offsets).delete(h::reset_offsets))
        .route("/connector-plugins", get(h::plugins))
        .route("/connector-plugins/", get(h::plugins))
        .route("/connector-plugins/{plugin}/config", get(h::plugin_config))
        .route("/connector-plugins/{plugin}/config/validate", put(h::validate))
        .route("/admin/loggers", get(h::loggers))
        .route("/admin/loggers/{logger}", get(h::logger).put(h::set_logger))
        .route("/cluster", get(h::cluster))
        .route("/cluster/assignments", get(h::assignments))
        .route("/cluster/rebalance", post(h::rebalance))
        .route("/cluster/nodes/{node}", axum::routing::delete(h::remove_node))
        .route("/cluster/nodes/{node}/drain", post(h::drain))
        .route("/cluster/nodes/{node}/undrain", post(h::undrain))
        .fallback(reply::not_found)
        .method_not_allowed_fallback(reply::method_not_allowed)
        .layer(middleware::from_fn(limits::negotiate))
        .layer(middleware::from_fn(limits::in_time))
        .layer(tower_http::catch_panic::CatchPanicLayer::custom(reply::panicked))
        .with_state(api)
}
