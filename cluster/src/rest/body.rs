//! Reading of request bodies, path segments and query parameters; what cannot be read is refused in
//! Connect's form.

use axum::body::Body;
use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::reply::http_error;
use super::server::Whole;
use crate::api::ApiError;

/// Largest request body.
const LIMIT: usize = 4 << 20;

/// A body as text, within the limit.
pub(super) struct Text(pub String);

impl<S: Send + Sync> FromRequest<S> for Text {
    type Rejection = ApiError;

    async fn from_request(request: Request<Body>, _: &S) -> Result<Self, ApiError> {
        let whole = request.extensions().get::<Whole>().cloned().unwrap_or_default();
        whole.set(false);
        let read = axum::body::to_bytes(request.into_body(), LIMIT).await;
        whole.set(true);
        let bytes = read.map_err(|error| {
            let mut cause = std::error::Error::source(&error);
            while let Some(inner) = cause {
                if inner.to_string().contains("length limit") {
                    return too_large();
                }
                cause = inner.source();
            }
            ApiError::bad_request(format!("The request's body could not be read: {error}"))
        })?;
        String::from_utf8(bytes.to_vec())
            .map(Self)
            .map_err(|_| ApiError::bad_request("The request's body is not UTF-8"))
    }
}

impl Text {
    pub(super) fn json(&self) -> Result<Value, ApiError> {
        serde_json::from_str(&self.0).map_err(|e| ApiError::bad_request(format!("The request's body is not JSON: {e}")))
    }
}

fn too_large() -> ApiError {
    ApiError::new(413, format!("The request's body is larger than {LIMIT} bytes, the limit of this interface"))
}

/// The variable segments of a path, percent-decoded. One that is no number where a number stands names
/// nothing.
pub(super) struct Segments<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Segments<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(segments)) => Ok(Self(segments)),
            Err(PathRejection::FailedToDeserializePathParams(error))
                if matches!(error.kind(), ErrorKind::InvalidUtf8InPathParam { .. }) =>
            {
                Err(ApiError::bad_request("The request's path is not UTF-8 where it is percent-decoded")
                    .into_response())
            }
            Err(_) => Err(http_error(StatusCode::NOT_FOUND)),
        }
    }
}

/// Query parameters, names may repeat.
pub(super) type Query = axum::extract::Query<Vec<(String, String)>>;

/// Value of the first parameter called `name`.
pub(super) fn parameter<'a>(query: &'a Query, name: &str) -> Option<&'a str> {
    query.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
}

/// A flag as Java reads it: everything but `true` is false.
pub(super) fn flag(query: &Query, name: &str, default: bool) -> bool {
    parameter(query, name).map_or(default, |v| v.eq_ignore_ascii_case("true"))
}
