//! What a Kafka client last complained about, for messages that would otherwise only say "timed out",
//! and its log lines in ours.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{DeliveryResult, ProducerContext};
use thalweg_core::{Error, ErrorKind, Phase};

use crate::errors;

/// An unreachable broker is reported this often while nothing changes.
const REPEAT: Duration = Duration::from_secs(60);
/// A complaint older than this explains nothing any more.
const FRESH: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Trouble {
    last: Mutex<Option<Complaint>>,
}

#[derive(Debug, Clone)]
struct Complaint {
    code: RDKafkaErrorCode,
    text: String,
    at: Instant,
    logged: Instant,
}

impl Trouble {
    pub(crate) fn heard(&self, client: &str, error: &KafkaError, text: &str) {
        let Some(code) = error.rdkafka_error_code() else { return };
        let now = Instant::now();
        let mut last = self.last.lock();
        // "All brokers down" follows the complaint that says why.
        if code == RDKafkaErrorCode::AllBrokersDown && last.as_ref().is_some_and(|l| l.at.elapsed() < FRESH) {
            return;
        }
        let known = last.as_ref().filter(|l| l.code == code && now.duration_since(l.logged) < REPEAT).map(|l| l.logged);
        if known.is_none() {
            tracing::warn!(client, code = ?code, reason = text, "kafka client reports trouble");
        }
        *last = Some(Complaint { code, text: text.to_owned(), at: now, logged: known.unwrap_or(now) });
    }

    /// Kind and text of the present trouble.
    fn current(&self) -> Option<(RDKafkaErrorCode, String)> {
        self.last.lock().as_ref().filter(|l| l.at.elapsed() < FRESH).map(|l| (l.code, l.text.clone()))
    }

    /// Trouble that waiting does not cure: wrong credentials or certificates.
    pub(crate) fn is_final(&self) -> bool {
        self.current().is_some_and(|(code, _)| matches!(errors::kind(code), ErrorKind::Auth | ErrorKind::Tls))
    }

    /// An error for something that did not happen in time, with the reason if one is known.
    pub(crate) fn explain(&self, phase: Phase, what: impl Into<String>) -> Error {
        match self.current() {
            Some((code, text)) => {
                let mut error = Error::new(errors::kind(code), phase, what);
                error.causes.push(text);
                error
            }
            None => Error::new(ErrorKind::BrokerUnavailable, phase, what),
        }
    }

    /// Adds the reason to an error about unreachable brokers.
    pub(crate) fn enrich(&self, mut error: Error) -> Error {
        if error.kind == ErrorKind::BrokerUnavailable
            && let Some((code, text)) = self.current()
        {
            if let kind @ (ErrorKind::Auth | ErrorKind::Tls) = errors::kind(code) {
                error.kind = kind;
            }
            error.causes.push(text);
        }
        error
    }
}

/// librdkafka's log line in ours.
pub(crate) fn log(client: &str, level: RDKafkaLogLevel, facility: &str, text: &str) {
    // Says at every start that a property we set on purpose is marked experimental.
    if facility == "CONFWARN" {
        return;
    }
    match level {
        RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical | RDKafkaLogLevel::Error => {
            tracing::error!(target: "librdkafka", client, facility, text, "client log");
        }
        // Connection errors come a second time, as events, and are reported there.
        RDKafkaLogLevel::Warning | RDKafkaLogLevel::Notice => {
            tracing::info!(target: "librdkafka", client, facility, text, "client log");
        }
        RDKafkaLogLevel::Info | RDKafkaLogLevel::Debug => {
            tracing::debug!(target: "librdkafka", client, facility, text, "client log");
        }
    }
}

/// Context of clients that do not produce records.
pub(crate) struct PlainContext {
    pub(crate) name: &'static str,
    pub(crate) trouble: Trouble,
}

impl PlainContext {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, trouble: Trouble::default() }
    }
}

impl ClientContext for PlainContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        log(self.name, level, facility, text);
    }
    fn error(&self, error: KafkaError, reason: &str) {
        self.trouble.heard(self.name, &error, reason);
    }
}

impl ConsumerContext for PlainContext {}

impl ProducerContext for PlainContext {
    type DeliveryOpaque = ();

    fn delivery(&self, _: &DeliveryResult<'_>, (): ()) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_out_is_explained_by_the_last_complaint() {
        let trouble = Trouble::default();
        assert_eq!(trouble.explain(Phase::Start, "x").kind, ErrorKind::BrokerUnavailable);
        trouble.heard("c", &KafkaError::Global(RDKafkaErrorCode::Authentication), "SASL authentication error: no");
        trouble.heard("c", &KafkaError::Global(RDKafkaErrorCode::AllBrokersDown), "1/1 brokers are down");
        assert!(trouble.is_final());
        let error = trouble.explain(Phase::Start, "x");
        assert_eq!((error.kind, error.causes.concat()), (ErrorKind::Auth, "SASL authentication error: no".to_owned()));
        let enriched = trouble.enrich(errors::coded(Phase::Deliver, "y", RDKafkaErrorCode::MessageTimedOut));
        assert_eq!(enriched.kind, ErrorKind::Auth);
        let other = trouble.enrich(errors::coded(Phase::Deliver, "y", RDKafkaErrorCode::Fenced));
        assert_eq!((other.kind, other.causes.len()), (ErrorKind::Fenced, 1));
    }
}
