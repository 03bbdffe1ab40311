//! How something that runs can end: a closed vocabulary that supervisors branch on, never text.
//!
//! An [`Exit`] keeps the first fault, because later ones are only its victims.

use thalweg_core::{Error, ErrorKind, Phase, Policy};
use tokio::task::JoinError;

/// Why a generation, a task or a connector object ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitKind {
    /// The source has nothing more to give (a snapshot without a stream); everything is committed.
    Finished,
    /// Asked to; what was read is delivered and committed as far as the time allowed.
    Stopped,
    /// Somebody else owns the unit, or nobody knows: nothing may be sent or reported any more.
    Fenced,
    /// Expected to work when tried again.
    Retriable,
    /// A person has to change something first.
    NeedsUser,
    /// A defect or damage.
    Fatal,
    /// Code of ours, a connector's or a transform's panicked.
    Panicked,
}

#[derive(Debug, Clone)]
pub(crate) struct Exit {
    pub kind: ExitKind,
    /// The cause; always there for `Retriable`, `NeedsUser`, `Fatal` and `Panicked`.
    pub error: Option<Error>,
    /// Messages handed to the producer that the broker had not acknowledged at the end.
    pub unacknowledged: u64,
}

impl Exit {
    pub(crate) fn finished() -> Self {
        Self { kind: ExitKind::Finished, error: None, unacknowledged: 0 }
    }
    pub(crate) fn stopped() -> Self {
        Self { kind: ExitKind::Stopped, error: None, unacknowledged: 0 }
    }
    /// The reaction is the error's own policy; `Fenced` is silent whatever the phase.
    pub(crate) fn failed(error: Error) -> Self {
        let kind = match (error.kind, error.policy()) {
            (ErrorKind::Fenced, _) => ExitKind::Fenced,
            (_, Policy::Retry) => ExitKind::Retriable,
            (_, Policy::NeedsUser) => ExitKind::NeedsUser,
            (_, Policy::Fatal) => ExitKind::Fatal,
        };
        Self { kind, error: Some(error), unacknowledged: 0 }
    }
    /// From a join handle that did not return a value. `who` names the part, e.g. `reader of {...}`.
    pub(crate) fn from_join(error: JoinError, who: &str, phase: Phase) -> Self {
        match error.try_into_panic() {
            Ok(payload) => Self::panicked(panic_text(payload.as_ref()), who, phase),
            Err(_) => Self::stopped(),
        }
    }
    pub(crate) fn panicked(text: &str, who: &str, phase: Phase) -> Self {
        let error = Error::new(ErrorKind::Internal, phase, format!("The {who} panicked: {text}"))
            .advise("This is a defect of Thalweg; report it with the log of this node.");
        Self { kind: ExitKind::Panicked, error: Some(error), unacknowledged: 0 }
    }
    /// The same cause, not tried again any more.
    pub(crate) fn given_up(mut self, failures: u32) -> Self {
        self.kind = if self.kind == ExitKind::Panicked { ExitKind::Fatal } else { ExitKind::NeedsUser };
        if let Some(error) = &mut self.error {
            error.causes.push(format!("given up after {failures} failures in a row"));
        }
        self
    }
    /// Why nobody tries again, for a state that has to say so.
    pub(crate) fn into_error(self) -> Error {
        self.error
            .unwrap_or_else(|| Error::new(ErrorKind::Internal, Phase::Stream, "ended without a reason being known"))
    }
}

fn panic_text(payload: &(dyn std::any::Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "no message"
    }
}
