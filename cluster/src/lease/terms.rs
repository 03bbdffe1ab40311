//! Lengths of a lease on both sides.

use std::time::Duration;

use thiserror::Error;

/// Assumed error of a clock's rate, in thousandths: 1 %.
const RATE_ERROR: u32 = 10;

/// What node and leader agree on. Equal on all nodes: it comes from the same options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTerms {
    /// `session.timeout.ms`: L.
    pub length: Duration,
    /// `heartbeat.interval.ms`: H.
    pub heartbeat: Duration,
    /// What the node gives away at the end, beside the rate error: M.
    pub margin: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "session.timeout.ms = {length_ms} leaves a node {held_ms} ms per heartbeat, that is less than two of \
     heartbeat.interval.ms = {heartbeat_ms}; raise session.timeout.ms or lower heartbeat.interval.ms"
)]
pub struct TermsError {
    length_ms: u128,
    held_ms: u128,
    heartbeat_ms: u128,
}

impl LeaseTerms {
    /// With the usual margin: a node counts five sixths of the length (2.5 s of 3 s).
    pub fn new(length: Duration, heartbeat: Duration) -> Result<Self, TermsError> {
        let held = length * 5 / 6;
        let terms = Self { length, heartbeat, margin: (length * (1000 - RATE_ERROR) / 1000).saturating_sub(held) };
        if heartbeat.is_zero() || terms.held() < heartbeat * 2 {
            return Err(TermsError {
                length_ms: length.as_millis(),
                held_ms: terms.held().as_millis(),
                heartbeat_ms: heartbeat.as_millis(),
            });
        }
        Ok(terms)
    }

    /// How long a node may rely on a grant, from sending the heartbeat: `L * (1 - r) - M`.
    pub fn held(&self) -> Duration {
        (self.length * (1000 - RATE_ERROR) / 1000).saturating_sub(self.margin)
    }

    /// How long a leader has to wait after its last grant: `L * (1 + r)`.
    pub fn ended(&self) -> Duration {
        self.length * (1000 + RATE_ERROR) / 1000
    }

    /// What another node's measured time certainly was here: `T * (1 - r)`.
    pub fn certain(&self, measured: Duration) -> Duration {
        measured * (1000 - RATE_ERROR) / 1000
    }
}

impl Default for LeaseTerms {
    fn default() -> Self {
        Self {
            length: Duration::from_secs(3),
            heartbeat: Duration::from_millis(500),
            margin: Duration::from_millis(470),
        }
    }
}
