//! `rest.auth.basic.file`: who may use the interface, by HTTP basic authentication.
//!
//! Invariants: comparing passwords of one length takes the same time whatever they are; they are never
//! shown; the probes of an orchestrator
//! (`/health/...`, `/live`, `/ready`) need no login, because they tell nothing but a state.
//!
//! It does not: tell users apart (whoever is known may do everything), or watch the file for changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method, Response};
use axum::middleware::Next;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq;
use thalweg_config::Secret;
use thiserror::Error;

use super::reply::error_response;

#[derive(Debug, Error)]
#[error("rest.auth.basic.file={path}: {why}; write one name=password line for each user")]
pub struct LoginError {
    path: PathBuf,
    why: String,
}

/// The users of the file.
#[derive(Debug)]
pub(super) struct Users(BTreeMap<String, Secret>);

impl Users {
    pub(super) fn read(path: &Path) -> Result<Arc<Self>, LoginError> {
        let error = |why: String| LoginError { path: path.to_owned(), why };
        let bytes = std::fs::read(path).map_err(|e| error(e.to_string()))?;
        let reading = thalweg_config::parse::properties::read(&bytes)
            .and_then(thalweg_config::parse::Reading::checked)
            .map_err(|e| error(e.to_string()))?;
        let users: BTreeMap<_, _> =
            reading.properties.iter().map(|(name, word)| (name.to_owned(), Secret::new(word))).collect();
        if users.is_empty() {
            return Err(error("it names no user".to_owned()));
        }
        if let Some((name, _)) = users.iter().find(|(name, word)| name.is_empty() || word.reveal().is_empty()) {
            return Err(error(format!("user '{name}' has no name or no password")));
        }
        Ok(Arc::new(Self(users)))
    }

    fn know(&self, authorization: &HeaderValue) -> bool {
        let Some((name, word)) = credentials(authorization) else { return false };
        let known = self.0.get(&name);
        // A name that is not known costs the same comparison.
        let expected = known.map_or("", Secret::reveal);
        bool::from(expected.as_bytes().ct_eq(word.as_bytes())) && known.is_some()
    }
}

fn credentials(authorization: &HeaderValue) -> Option<(String, String)> {
    let (scheme, encoded) = authorization.to_str().ok()?.split_once(' ')?;
    let decoded = STANDARD.decode(encoded.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let (name, word) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    Some((name.to_owned(), word.to_owned()))
}

/// 401 for whoever is not known.
pub(super) async fn ask(State(users): State<Arc<Users>>, request: Request, next: Next) -> Response<Body> {
    let path = request.uri().path();
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let probe = reads && (path.starts_with("/health") || path == "/live" || path == "/ready");
    if probe || request.headers().get(AUTHORIZATION).is_some_and(|a| users.know(a)) {
        return next.run(request).await;
    }
    let mut response = error_response(401, "User cannot access the resource: give name and password (HTTP basic)");
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"thalweg\""));
    response
}
