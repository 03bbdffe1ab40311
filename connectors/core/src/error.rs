//! The one error type of the data path, and what follows from an error.
//!
//! `kind` says what failed, `message` what happened to which object; [`Error::policy`] maps kind and
//! phase to a reaction, [`Error::advice`] to the operator's next step. Nobody branches on text.

use std::fmt;

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
    /// What happened, to which object. No row values, no secrets.
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
