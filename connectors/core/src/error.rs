//! The one error type of the data path, and what follows from an error.
//!
//! `kind` says what failed, `message` what happened to which object; [`Error::policy`] maps kind and
//! phase to a reaction, [`Error::advice`] to the operator's next step. Nobody branches on text.
//! [`Error::trace`] is the text that a FAILED state shows.

use std::borrow::Cow;
use std::fmt;

use thalweg_config::Validation;

/// Longest [`Error::trace`] in bytes: a status is replicated, so it must stay small.
pub const TRACE_LIMIT: usize = 16 * 1024;
/// What one line of a trace may take, so that a long message never pushes the advice out.
const LINE_LIMIT: usize = TRACE_LIMIT / 4;

/// What failed. Closed: a new cause needs a policy and an advice text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Source or broker not reachable, or the connection broke.
    Connect,
    Auth,
    Permission,
    Tls,
    Timeout,
    /// The source no longer holds the position; the message names it and what was offered.
    PositionLost,
    SchemaChanged,
    ValueInvalid,
    MessageTooLarge,
    TopicMissing,
    BrokerUnavailable,
    /// The broker has no transactions for us (too old, or no right on the transactional id).
    TransactionsRefused,
    /// Another owner took over, or the lease ran out.
    Fenced,
    QuorumLost,
    Storage,
    Codec,
    Config,
    /// The source refused something for good that is not a configuration error.
    SourceRefused,
    /// The source hiccuped (election, cursor lost); opening again is expected to work.
    SourceBusy,
    Internal,
}

/// Where the error was met; the same kind can mean different things.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Before the first record of a generation.
    Start,
    Snapshot,
    Stream,
    Convert,
    Deliver,
    Commit,
}

/// Reaction to an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Build the generation anew after a backoff.
    Retry,
    /// A person has to change something; the task is FAILED until restarted.
    NeedsUser,
    /// A defect or damage; FAILED as well, worded as such.
    Fatal,
}

#[derive(Debug, Clone)]
pub struct Error {
    pub kind: ErrorKind,
    pub phase: Phase,
    /// What happened, to which object. A record is named by its coordinates: topic, partition, offset,
    /// and where the offset covers many (a snapshot) by its key, cut to a few hundred characters,
    /// because nobody could find it otherwise. No other values, no secrets.
    pub message: String,
    /// Next step for the operator, if it is more precise than the kind's.
    pub advice: Option<String>,
    /// Messages of the causes, outermost first.
    pub causes: Vec<String>,
}

impl Error {
    pub fn new(kind: ErrorKind, phase: Phase, message: impl Into<String>) -> Self {
        Self { kind, phase, message: message.into(), advice: None, causes: Vec::new() }
    }
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Config, Phase::Start, message)
    }
    /// All messages of a failed check as one error; `None` if the configuration is valid.
    pub fn invalid_config(validation: &Validation) -> Option<Self> {
        let mut messages = validation.messages();
        match messages.len() {
            0 => None,
            1 => Some(Self::config(messages.remove(0))),
            n => Some(Self::config(format!("the configuration has {n} errors: {}", messages.join("; ")))),
        }
    }
    /// The panic of something that runs beside the rest, as an error.
    pub fn of_panic(payload: &(dyn std::any::Any + Send), who: &str, phase: Phase) -> Self {
        let text = payload.downcast_ref::<&'static str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
        Self::new(ErrorKind::Internal, phase, format!("{who} panicked: {text}"))
    }
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
    pub fn because(mut self, cause: &dyn std::error::Error) -> Self {
        let mut next = Some(cause);
        while let Some(e) = next {
            self.causes.push(e.to_string());
            next = e.source();
        }
        self
    }
}

impl Error {
    /// What follows from this error: the only place where kind and phase become a reaction.
    pub fn policy(&self) -> Policy {
        use ErrorKind as K;
        match (self.kind, self.phase) {
            (K::Connect | K::Timeout | K::BrokerUnavailable | K::QuorumLost | K::SourceBusy | K::Fenced, _) => {
                Policy::Retry
            }
            // The store behind a commit may be moving to another leader; anywhere else it is damage.
            (K::Storage, Phase::Commit) => Policy::Retry,
            // A stored position that cannot be read is edited or reset by a person.
            (K::Codec, Phase::Start) => Policy::NeedsUser,
            (
                K::Auth
                | K::Permission
                | K::Tls
                | K::PositionLost
                | K::SchemaChanged
                | K::ValueInvalid
                | K::MessageTooLarge
                | K::TopicMissing
                | K::TransactionsRefused
                | K::Config
                | K::SourceRefused,
                _,
            ) => Policy::NeedsUser,
            (K::Storage | K::Codec | K::Internal, _) => Policy::Fatal,
        }
    }

    pub fn is_retriable(&self) -> bool {
        self.policy() == Policy::Retry
    }

    /// What the operator does next.
    pub fn advice(&self) -> Cow<'_, str> {
        use ErrorKind as K;
        if let Some(advice) = &self.advice {
            return Cow::Borrowed(advice);
        }
        Cow::Borrowed(match (self.kind, self.phase) {
            (K::Connect, Phase::Deliver) => {
                "check bootstrap.servers and that the brokers can be reached from this node"
            }
            (K::Connect, _) => {
                "check host, port and network between this node and the source; the task retries by itself"
            }
            (K::Auth, Phase::Deliver) => {
                "check the Kafka user and password (producer.* and producer.override.*), then restart the task"
            }
            (K::Auth, _) => {
                "check user, password and authentication database in the connector configuration, then restart the task"
            }
            (K::Permission, Phase::Deliver) => "grant the Kafka user the named right, then restart the task",
            (K::Permission, _) => "grant the named right to the connector's user at the source, then restart the task",
            (K::Tls, _) => "check certificate, trust store and host name of the TLS settings, then restart the task",
            (K::Timeout, _) => {
                "nothing to do if it passes; if it repeats, look at the load and the network of the other side"
            }
            (K::PositionLost, _) => {
                "reset the offsets of the stopped connector or set snapshot.mode=when_needed to take a new snapshot; changes between the lost position and now are only seen as their result"
            }
            (K::SchemaChanged, _) => "refresh the captured schema as the message says, then restart the task",
            (K::ValueInvalid, Phase::Convert) => {
                "correct the value or the converter, or set errors.tolerance=all to leave such records out"
            }
            (K::ValueInvalid, _) => {
                "correct the value at the source, or set event.processing.failure.handling.mode to warn or skip"
            }
            (K::MessageTooLarge, _) => {
                "raise producer.override.max.request.size and max.message.bytes of the topic, or exclude the large field, then restart the task"
            }
            (K::TopicMissing, _) => {
                "create the topic, or allow topic creation (topic.creation.* or the broker's auto.create.topics.enable), then restart the task"
            }
            (K::BrokerUnavailable, _) => "check the state of the Kafka brokers; the task retries by itself",
            (K::TransactionsRefused, _) => {
                "allow the transactional id (Kafka ACL on TransactionalId) or set thalweg.delivery=plain, then restart the task"
            }
            (K::Fenced, _) => "nothing to do: another node runs this task now",
            (K::QuorumLost, _) => "bring a majority of the nodes back; the task retries by itself",
            (K::Storage, _) => "check the disk under node.data.dir of this node",
            (K::Codec, Phase::Start) => {
                "correct or reset the stored offset over the offsets REST call of the stopped connector, then start it again"
            }
            (K::Codec, _) => {
                "data could not be decoded: check that all nodes run the same version, and report it as a defect"
            }
            (K::Config, _) => "correct the named property of the connector configuration",
            (K::SourceRefused, _) => {
                "the source refuses this for good: do what its message says, then restart the task"
            }
            (K::SourceBusy, _) => "nothing to do: the task retries by itself",
            (K::Internal, _) => "this is a defect: keep the log of this node, report it, and restart the task",
        })
    }

    /// The exception class a Kafka Connect user would expect for this kind; tools match on it.
    pub fn java_class(&self) -> &'static str {
        use ErrorKind as K;
        match self.kind {
            K::Config => "org.apache.kafka.common.config.ConfigException",
            K::ValueInvalid | K::SchemaChanged => "org.apache.kafka.connect.errors.DataException",
            K::MessageTooLarge => "org.apache.kafka.common.errors.RecordTooLargeException",
            K::PositionLost | K::SourceRefused => "io.debezium.DebeziumException",
            K::Connect | K::Timeout | K::BrokerUnavailable | K::QuorumLost | K::SourceBusy | K::Fenced => {
                "org.apache.kafka.connect.errors.RetriableException"
            }
            _ => "org.apache.kafka.connect.errors.ConnectException",
        }
    }

    /// Text for the `trace` of a FAILED state: exception-like first line, advice, causes. At most
    /// [`TRACE_LIMIT`] bytes; what is cut is marked.
    pub fn trace(&self) -> String {
        let mut trace = String::new();
        push_line(&mut trace, &[self.java_class(), ": ", &self.message]);
        push_line(&mut trace, &["advice: ", &self.advice()]);
        for (at, cause) in self.causes.iter().enumerate() {
            if trace.len() + LINE_LIMIT > TRACE_LIMIT {
                push_line(&mut trace, &["... ", itoa::Buffer::new().format(self.causes.len() - at), " more causes"]);
                break;
            }
            push_line(&mut trace, &["Caused by: ", cause]);
        }
        trace.truncate(trace.trim_end().len());
        trace
    }
}

/// Appends the parts as one line of at most [`LINE_LIMIT`] bytes (line breaks inside included).
fn push_line(trace: &mut String, parts: &[&str]) {
    const MARK: &str = " ... (cut)";
    let mut room = LINE_LIMIT - MARK.len() - 1;
    for part in parts {
        if part.len() > room {
            trace.push_str(&part[..part.floor_char_boundary(room)]);
            trace.push_str(MARK);
            break;
        }
        trace.push_str(part);
        room -= part.len();
    }
    trace.push('\n');
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for cause in &self.causes {
            write!(f, ": {cause}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [ErrorKind; 20] = [
        ErrorKind::Connect,
        ErrorKind::Auth,
        ErrorKind::Permission,
        ErrorKind::Tls,
        ErrorKind::Timeout,
        ErrorKind::PositionLost,
        ErrorKind::SchemaChanged,
        ErrorKind::ValueInvalid,
        ErrorKind::MessageTooLarge,
        ErrorKind::TopicMissing,
        ErrorKind::BrokerUnavailable,
        ErrorKind::TransactionsRefused,
        ErrorKind::Fenced,
        ErrorKind::QuorumLost,
        ErrorKind::Storage,
        ErrorKind::Codec,
        ErrorKind::Config,
        ErrorKind::SourceRefused,
        ErrorKind::SourceBusy,
        ErrorKind::Internal,
    ];
    const PHASES: [Phase; 6] =
        [Phase::Start, Phase::Snapshot, Phase::Stream, Phase::Convert, Phase::Deliver, Phase::Commit];

    #[test]
    fn what_must_fail_is_never_retried() {
        for kind in [
            ErrorKind::PositionLost,
            ErrorKind::Config,
            ErrorKind::Auth,
            ErrorKind::Permission,
            ErrorKind::MessageTooLarge,
            ErrorKind::TransactionsRefused,
        ] {
            for phase in PHASES {
                assert_eq!(Error::new(kind, phase, "x").policy(), Policy::NeedsUser, "{kind:?} {phase:?}");
            }
        }
    }

    #[test]
    fn lost_connections_are_retried_in_every_phase() {
        for kind in [ErrorKind::Connect, ErrorKind::Timeout, ErrorKind::BrokerUnavailable, ErrorKind::SourceBusy] {
            for phase in PHASES {
                assert!(Error::new(kind, phase, "x").is_retriable(), "{kind:?} {phase:?}");
            }
        }
    }

    #[test]
    fn every_kind_has_advice_and_a_class() {
        for kind in KINDS {
            for phase in PHASES {
                let error = Error::new(kind, phase, "x");
                assert!(!error.advice().is_empty());
                let trace = error.trace();
                let first = trace.lines().next().unwrap_or_default();
                assert!(first.ends_with("Exception: x") && first.contains('.'), "{first}");
                assert!(trace.lines().nth(1).is_some_and(|l| l.starts_with("advice: ")));
            }
        }
    }

    #[test]
    fn trace_text() {
        let mut error = Error::new(ErrorKind::PositionLost, Phase::Start, "resume token of shop is gone")
            .advise("reset the offsets");
        error.causes.push("code 286".to_owned());
        assert_eq!(
            error.trace(),
            "io.debezium.DebeziumException: resume token of shop is gone\n\
             advice: reset the offsets\n\
             Caused by: code 286"
        );
    }

    #[test]
    fn trace_is_bounded_and_keeps_the_advice() {
        let mut error = Error::new(ErrorKind::Internal, Phase::Stream, "ü".repeat(40_000)).advise("do this");
        error.causes = (0..500).map(|n| format!("{n} {}", "y".repeat(200))).collect();
        let trace = error.trace();
        assert!(trace.len() <= TRACE_LIMIT, "{}", trace.len());
        assert!(trace.contains("... (cut)\nadvice: do this\nCaused by: 0 y"));
        assert!(trace.ends_with("more causes"), "{}", &trace[trace.len() - 40..]);
    }
}
