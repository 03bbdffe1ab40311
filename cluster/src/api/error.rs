//! A refusal as REST shows it: a status and one message.

use std::fmt;

use crate::raft::Refusal;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// HTTP status, also `error_code` of the body.
    pub status: u16,
    pub message: String,
}

impl ApiError {
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(404, message)
    }
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(409, message)
    }
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(500, message)
    }
    pub fn no_connector(name: &str) -> Self {
        Self::not_found(format!("Connector {name} not found"))
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let status = match &refusal {
            Refusal::UnknownConnector(_) | Refusal::UnknownTask(..) | Refusal::UnknownNode(_) => 404,
            Refusal::AlreadyExists(_)
            | Refusal::StaleRevision { .. }
            | Refusal::StaleEpoch(_)
            | Refusal::StaleIncarnation { .. }
            | Refusal::NotFree(_)
            | Refusal::NodeNotAlive(_)
            | Refusal::NodeInUse(_)
            | Refusal::NodeIdInUse { .. }
            | Refusal::Conflict(_)
            | Refusal::FeatureLevel { .. } => 409,
            Refusal::NotStopped(_) | Refusal::NotStarted(_) | Refusal::Invalid(_) => 400,
            Refusal::TooLarge { .. } => 413,
        };
        Self::new(status, refusal.to_string())
    }
}
