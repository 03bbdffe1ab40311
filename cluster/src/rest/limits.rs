//! What holds for every request: JSON in and out, a time limit, `OPTIONS` among the methods of a path.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ACCEPT, ALLOW, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};
use axum::middleware::Next;

use super::reply::{error_response, http_error};

/// Kafka Connect's limit for a request.
const TIME_LIMIT: Duration = Duration::from_secs(90);

pub(super) async fn in_time(request: Request, next: Next) -> Response<Body> {
    let what = format!("{} {}", request.method(), request.uri().path());
    match tokio::time::timeout(TIME_LIMIT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            tracing::warn!(request = what, "request timed out");
            error_response(500, &format!("Request timed out. The worker is still busy with {what}"))
        }
    }
}

/// 415 for a body that is not JSON, then 406 for a client that takes no JSON. Only for methods that a path
/// has.
pub(super) async fn negotiate(request: Request, next: Next) -> Response<Body> {
    if has_body(request.headers()) && !is_json(request.headers()) {
        return http_error(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    if !accepts_json(request.headers()) {
        return http_error(StatusCode::NOT_ACCEPTABLE);
    }
    next.run(request).await
}

/// `OPTIONS` is answered for every path, so it belongs to the methods that the router names there.
pub(super) async fn allow_options(request: Request, next: Next) -> Response<Body> {
    let mut response = next.run(request).await;
    let allowed = response.headers().get(ALLOW).and_then(|methods| methods.to_str().ok());
    if let Some(all) = allowed.and_then(|methods| HeaderValue::from_str(&format!("{methods},OPTIONS")).ok()) {
        response.headers_mut().insert(ALLOW, all);
    }
    response
}

fn has_body(headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING) || headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0")
}

fn is_json(headers: &HeaderMap) -> bool {
    match headers.get(CONTENT_TYPE).map(HeaderValue::to_str) {
        Some(Ok(kind)) => media_type(kind).eq_ignore_ascii_case("application/json"),
        Some(Err(_)) => false,
        None => true,
    }
}

fn accepts_json(headers: &HeaderMap) -> bool {
    let mut given = headers.get_all(ACCEPT).iter().filter_map(|v| v.to_str().ok()).peekable();
    if given.peek().is_none() {
        return true;
    }
    given.flat_map(|list| list.split(',')).any(|one| {
        matches!(media_type(one).to_ascii_lowercase().as_str(), "*/*" | "application/*" | "application/json")
    })
}

fn media_type(text: &str) -> &str {
    text.split(';').next().unwrap_or_default().trim()
}
