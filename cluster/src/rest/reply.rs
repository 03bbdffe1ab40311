//! Answers: JSON bodies, empty ones, and errors in Connect's form.

use std::any::Any;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{HeaderValue, Method, Response, StatusCode};
use axum::response::IntoResponse;
use serde_json::{Value, json};

use crate::api::ApiError;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What a handler answers.
#[derive(Debug)]
pub enum Answer {
    Json(u16, Value),
    /// 201 with the path of the new object.
    Created(String, Value),
    Empty(u16),
    Text(String),
}

impl Answer {
    pub fn ok(value: Value) -> Self {
        Self::Json(200, value)
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response<Body> {
        match self {
            Self::Json(status, value) => json_response(status, &value),
            Self::Created(location, value) => {
                let mut response = json_response(201, &value);
                if let Ok(location) = HeaderValue::from_str(&location) {
                    response.headers_mut().insert(LOCATION, location);
                }
                response
            }
            Self::Empty(status) => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = code(status);
                response
            }
            Self::Text(text) => {
                let mut response = Response::new(Body::from(text));
                let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
                response.headers_mut().insert(CONTENT_TYPE, kind);
                response
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response<Body> {
        error_response(self.status, &self.message)
    }
}

pub(super) fn json_response(status: u16, value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = code(status);
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

pub(super) fn error_response(status: u16, message: &str) -> Response<Body> {
    json_response(status, &json!({"error_code": status, "message": message}))
}

/// An error of HTTP itself, worded as Connect's.
pub(super) fn http_error(status: StatusCode) -> Response<Body> {
    let reason = status.canonical_reason().unwrap_or("Error");
    error_response(status.as_u16(), &format!("HTTP {} {reason}", status.as_u16()))
}

pub(super) async fn not_found() -> Response<Body> {
    http_error(StatusCode::NOT_FOUND)
}

/// A path without a handler for the method. The router adds the methods that it has.
pub(super) async fn method_not_allowed(method: Method) -> Response<Body> {
    if method != Method::OPTIONS {
        return http_error(StatusCode::METHOD_NOT_ALLOWED);
    }
    let mut response = Response::new(Body::empty());
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// A defect in a handler fails its request only.
pub(super) fn panicked(panic: Box<dyn Any + Send>) -> Response<Body> {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no text");
    tracing::error!(panic = text, "a request handler panicked");
    error_response(500, "The request failed because of a defect in this node; its log has the details")
}

fn code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
