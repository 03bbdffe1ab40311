//! Headers that the configuration adds to answers: those of `response.http.headers.config`, and what
//! browsers of other origins need (`access.control.allow.*`).

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, Method, Response};
use axum::middleware::Next;
use thalweg_config::node::{HeaderAction, ResponseHeader};
use thiserror::Error;
use tower_http::cors::{AllowOrigin, CorsLayer};

#[derive(Debug, Error)]
#[error("{option}: '{value}' cannot be sent in a header; correct it or remove it")]
pub struct HeaderError {
    option: &'static str,
    value: String,
}

/// A header that is written into every answer.
#[derive(Debug, Clone)]
pub(super) struct Written {
    replaces: bool,
    name: HeaderName,
    value: HeaderValue,
}

pub(super) fn written(headers: &[ResponseHeader]) -> Result<Arc<[Written]>, HeaderError> {
    headers.iter().map(write).collect()
}

fn write(header: &ResponseHeader) -> Result<Written, HeaderError> {
    let error = |value: &str| HeaderError { option: "response.http.headers.config", value: value.to_owned() };
    let value = match header.action {
        HeaderAction::Set | HeaderAction::Add => header.value.clone(),
        HeaderAction::SetDate | HeaderAction::AddDate => {
            date(header.value.parse().unwrap_or_default()).ok_or_else(|| error(&header.value))?
        }
    };
    Ok(Written {
        replaces: matches!(header.action, HeaderAction::Set | HeaderAction::SetDate),
        name: header.name.parse().map_err(|_| error(&header.name))?,
        value: HeaderValue::from_str(&value).map_err(|_| error(&value))?,
    })
}

/// As HTTP writes dates, which have years from 1970 to 9999.
fn date(millis: u64) -> Option<String> {
    const END: u64 = 253_402_300_800;
    let seconds = millis / 1_000;
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).filter(|_| seconds < END)?;
    Some(httpdate::fmt_http_date(time))
}

pub(super) async fn add(State(headers): State<Arc<[Written]>>, request: Request, next: Next) -> Response<Body> {
    let mut response = next.run(request).await;
    for header in headers.iter() {
        if header.replaces {
            response.headers_mut().insert(header.name.clone(), header.value.clone());
        } else {
            response.headers_mut().append(header.name.clone(), header.value.clone());
        }
    }
    response
}

/// Kafka Connect's rules: without methods GET, POST and HEAD, one header beside the simple ones, no
/// credentials; `*` lets everybody in.
pub(super) fn cors(origins: &str, methods: &str) -> Result<Option<CorsLayer>, HeaderError> {
    const ORIGIN: &str = "access.control.allow.origin";
    const METHODS: &str = "access.control.allow.methods";
    let list = |text: &str| -> Vec<String> {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let origins = list(origins);
    if origins.is_empty() {
        return Ok(None);
    }
    let parsed = origins
        .iter()
        .filter(|o| *o != "*")
        .map(|origin| HeaderValue::from_str(origin).map_err(|_| HeaderError { option: ORIGIN, value: origin.clone() }));
    let parsed = parsed.collect::<Result<Vec<_>, _>>()?;
    let allowed = match parsed.len() == origins.len() {
        true => AllowOrigin::list(parsed),
        false => AllowOrigin::mirror_request(),
    };
    let mut verbs = Vec::new();
    for method in list(methods) {
        let verb = method.parse::<Method>().map_err(|_| HeaderError { option: METHODS, value: method })?;
        verbs.push(verb);
    }
    if verbs.is_empty() {
        verbs = vec![Method::GET, Method::POST, Method::HEAD];
    }
    let layer = CorsLayer::new().allow_origin(allowed).allow_methods(verbs).allow_headers([CONTENT_TYPE]);
    Ok(Some(layer.max_age(Duration::from_secs(60))))
}
