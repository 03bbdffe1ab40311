//! What holds for every request: JSON in and out, a time limit, `OPTIONS`.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use axum::middleware::Next;

use super::reply::{error_response, http_error, json_response};

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

/// 415 for a body that is not JSON, 406 for a client that takes no JSON.
pub(super) async fn negotiate(request: Request, next: Next) -> Response<Body> {
    if request.method() == Method::OPTIONS {
        let mut response = json_response(200, &serde_json::Value::Null);
        *response.body_mut() = Body::empty();
        response.headers_mut().insert("Allow", HeaderValue::from_static("GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS"));
        return response;
    }
    let text = request.uri().path() == "/metrics";
    if !text && !accepts_json(request.headers()) {
        return http_error(StatusCode::NOT_ACCEPTABLE);
    }
    if has_body(request.headers()) && !is_json(request.headers()) {
        return http_error(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    next.run(request).await
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
