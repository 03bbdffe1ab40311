//! What the client's events mean: acknowledgements, failures, complaints.
//!
//! Runs on the client's polling thread. Per record: one call of the listener; per event: one
//! addition. After the producer was stopped nothing is reported.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use thalweg_core::delivery::Acks;
use thalweg_core::{Error, ErrorKind};

use crate::errors::{self, Coordinates};
use crate::flow::Flow;
use crate::trouble::{self, Trouble};

/// What a delivery report means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reports {
    /// Each report is an acknowledgement.
    Acknowledge { tolerates_refusal: bool },
    /// Only failures count; a commit acknowledges.
    FailuresOnly,
}

/// The producer's side of the client's events.
pub(crate) struct SinkContext {
    pub(crate) name: String,
    pub(crate) flow: Arc<Flow>,
    pub(crate) acks: Arc<dyn Acks>,
    pub(crate) reports: Reports,
    /// Records have numbers, by which the broker knows those that come again.
    pub(crate) idempotent: bool,
    /// Least cost of a record.
    pub(crate) floor: u64,
    pub(crate) batch_size: u64,
    /// Data that the peer does not confirm for this long breaks the connection.
    pub(crate) unconfirmed: Duration,
    pub(crate) trouble: Trouble,
}

impl SinkContext {
    /// The broker has the record.
    pub(crate) fn delivered(&self, seq: u64) {
        if matches!(self.reports, Reports::Acknowledge { .. }) {
            self.acks.delivered(seq);
        }
    }

    /// The client reports the record as delivered, but nobody knows where it is.
    #[cold]
    pub(crate) fn unplaced(&self, at: Coordinates<'_>, seq: u64) {
        self.flow.fail(&*self.acks, seq, errors::unplaced_record(at));
    }

    /// The record will not be delivered. `fatal`: what ended the client, if it has ended.
    #[cold]
    pub(crate) fn refused(
        &self,
        fatal: Option<(RDKafkaErrorCode, String)>,
        code: RDKafkaErrorCode,
        at: Coordinates<'_>,
        seq: u64,
    ) {
        let error = self.trouble.enrich(refusal(fatal, code, at, self.batch_size));
        let tolerated = matches!(self.reports, Reports::Acknowledge { tolerates_refusal: true })
            && matches!(error.kind, ErrorKind::MessageTooLarge | ErrorKind::ValueInvalid);
        if tolerated {
            self.acks.failed(seq, error);
        } else {
            self.flow.fail(&*self.acks, seq, error);
        }
    }
}

impl ClientContext for SinkContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        trouble::log(&self.name, level, facility, text);
    }
    fn error(&self, error: KafkaError, reason: &str) {
        self.trouble.heard(&self.name, &error, reason);
    }
}

/// Error of a refused record. A client that has ended fails its other records with codes that say
/// only that; then the code that ended it counts.
pub(crate) fn refusal(
    fatal: Option<(RDKafkaErrorCode, String)>,
    code: RDKafkaErrorCode,
    at: Coordinates<'_>,
    batch_size: u64,
) -> Error {
    use RDKafkaErrorCode as Code;
    let Some((ended_by, text)) = fatal else { return errors::refused_record(code, at, batch_size) };
    let vague = matches!(
        code,
        Code::Fatal | Code::GaplessGuarantee | Code::PurgeQueue | Code::PurgeInflight | Code::State | Code::Fail
    );
    let mut error = errors::refused_record(if vague { ended_by } else { code }, at, batch_size);
    error.causes.push(text);
    error
}
