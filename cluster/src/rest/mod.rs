//! Kafka Connect's REST interface, and ours beside it, over [`Api`]: routing, reading of requests,
//! writing of answers. Nothing is decided here.
//!
//! Invariants: every answer with a body is JSON, errors have Connect's error body; a request has a
//! size and a time limit; a connection that sends nothing does not hold up the end of the server.

mod body;
mod handlers;
mod headers;
mod limits;
mod login;
mod path;
mod reply;
mod server;
mod tls;

pub use reply::Answer;
pub use server::{BindError, Listener, Server};
pub use tls::acceptor;

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{MethodRouter, delete, get, post, put};
use thalweg_config::node::{AdminListeners, Listener as Address, RestConfig};
use thiserror::Error;

use crate::api::Api;

/// An option of the interface that cannot be honoured as it is written.
#[derive(Debug, Error)]
pub enum DoorError {
    #[error(transparent)]
    Login(#[from] login::LoginError),
    #[error(transparent)]
    Header(#[from] headers::HeaderError),
}

/// What is served where.
pub struct Doors {
    users: Option<Arc<login::Users>>,
    cors: Option<tower_http::cors::CorsLayer>,
    headers: Arc<[headers::Written]>,
    admin: AdminListeners,
    listeners: Vec<Address>,
}

impl Doors {
    /// Reads the files that the configuration names.
    pub fn new(config: &RestConfig) -> Result<Self, DoorError> {
        Ok(Self {
            users: config.basic_auth_file.as_deref().map(login::Users::read).transpose()?,
            cors: headers::cors(&config.allow_origin, &config.allow_methods)?,
            headers: headers::written(&config.response_headers)?,
            admin: config.admin.clone(),
            listeners: config.listeners.clone(),
        })
    }

    /// Every address to listen at, once.
    pub fn addresses(&self) -> Vec<Address> {
        let mut addresses = self.listeners.clone();
        if let AdminListeners::Own(own) = &self.admin {
            addresses.extend(own.iter().filter(|l| !self.listeners.contains(l)).cloned());
        }
        addresses
    }

    /// Routes of one address.
    pub fn router(&self, address: &Address, api: Arc<Api>) -> Router {
        let admin_here = match &self.admin {
            AdminListeners::Same => true,
            AdminListeners::Off => false,
            AdminListeners::Own(own) => own.contains(address),
        };
        let mut routes = Router::new();
        if self.listeners.contains(address) {
            routes = routes.merge(everything_else());
        }
        if admin_here {
            routes = routes.merge(admin());
        }
        routes = routes.fallback(reply::not_found).method_not_allowed_fallback(reply::method_not_allowed);
        if let Some(users) = &self.users {
            routes = routes.layer(from_fn_with_state(users.clone(), login::ask));
        }
        // Outside the login: a browser asks without one what it may do.
        if let Some(cors) = &self.cors {
            routes = routes.layer(cors.clone());
        }
        routes = routes
            .layer(from_fn(limits::in_time))
            .layer(tower_http::catch_panic::CatchPanicLayer::custom(reply::panicked));
        if !self.headers.is_empty() {
            routes = routes.layer(from_fn_with_state(self.headers.clone(), headers::add));
        }
        // What is changed in front of the routing, or in what the router itself says, has to stand around it.
        let routes: Router = routes.with_state(api);
        Router::new()
            .fallback_service(routes)
            .layer(from_fn(limits::allow_options))
            .layer(tower::util::MapRequestLayer::new(path::without_last_slash))
    }
}

/// Routes that take and give JSON. What a request and its answer are made of is looked at once path and
/// method are known: 404, 405, 415, 406 in this order, as JAX-RS has it.
fn json(routes: impl IntoIterator<Item = (&'static str, MethodRouter<Arc<Api>>)>) -> Router<Arc<Api>> {
    routes.into_iter().fold(Router::new(), |router, (path, methods)| {
        router.route(path, methods.route_layer(from_fn(limits::negotiate)))
    })
}

fn admin() -> Router<Arc<Api>> {
    use handlers as h;
    json([("/admin/loggers", get(h::loggers)), ("/admin/loggers/{logger}", get(h::logger).put(h::set_logger))])
}

fn everything_else() -> Router<Arc<Api>> {
    use handlers as h;
    let routes = json([
        ("/", get(h::root)),
        ("/health", get(h::health)),
        ("/health/live", get(h::live)),
        ("/live", get(h::live)),
        ("/health/ready", get(h::ready)),
        ("/ready", get(h::ready)),
        ("/connectors", get(h::list).post(h::create)),
        ("/connectors/{name}", get(h::connector).delete(h::delete)),
        ("/connectors/{name}/config", get(h::config).put(h::put_config).patch(h::patch_config)),
        ("/connectors/{name}/status", get(h::status)),
        ("/connectors/{name}/restart", post(h::restart)),
        ("/connectors/{name}/pause", put(h::pause)),
        ("/connectors/{name}/resume", put(h::resume)),
        ("/connectors/{name}/stop", put(h::stop)),
        ("/connectors/{name}/tasks", get(h::tasks)),
        ("/connectors/{name}/tasks-config", get(h::tasks_config)),
        ("/connectors/{name}/tasks/{task}/status", get(h::task_status)),
        ("/connectors/{name}/tasks/{task}/restart", post(h::restart_task)),
        ("/connectors/{name}/topics", get(h::topics)),
        ("/connectors/{name}/topics/reset", put(h::reset_topics)),
        ("/connectors/{name}/offsets", get(h::offsets).patch(h::alter_offsets).delete(h::reset_offsets)),
        ("/connectors/{name}/signals", get(h::signals).post(h::put_signal)),
        ("/connector-plugins", get(h::plugins)),
        ("/connector-plugins/{plugin}/config", get(h::plugin_config)),
        ("/connector-plugins/{plugin}/config/validate", put(h::validate)),
        ("/cluster", get(h::cluster)),
        ("/cluster/assignments", get(h::assignments)),
        ("/cluster/rebalance", post(h::rebalance)),
        ("/cluster/nodes/{node}", delete(h::remove_node)),
        ("/cluster/nodes/{node}/drain", post(h::drain)),
        ("/cluster/nodes/{node}/undrain", post(h::undrain)),
    ]);
    routes.route("/metrics", get(h::metrics))
}

#[cfg(test)]
mod tests;
