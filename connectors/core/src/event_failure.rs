//! What becomes of an event of which no record can be made, and of errors that the user knows to pass.

use std::fmt::Display;

use fancy_regex::Regex;
use thalweg_config::Settings;

use crate::error::{Error, ErrorKind, Phase, Policy, Result};

/// `event.processing.failure.handling.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailureMode {
    /// The task stops.
    #[default]
    Fail,
    /// The event is left out, with a line in the log.
    Warn,
    /// It is left out.
    Skip,
}

impl FailureMode {
    pub fn from_settings(s: &Settings) -> Self {
        match s.text_or_empty("event.processing.failure.handling.mode") {
            "warn" => Self::Warn,
            "skip" | "ignore" => Self::Skip,
            _ => Self::Fail,
        }
    }

    /// Takes an event `at` (its position and object, for people) for one without a record.
    ///
    /// # Errors
    /// The user wants the task to stop then.
    pub fn take(self, at: impl Display, phase: Phase, error: &(dyn std::error::Error + 'static)) -> Result<()> {
        match self {
            Self::Fail => {
                let message = format!("Error while processing event at {at}");
                return Err(Error::new(ErrorKind::ValueInvalid, phase, message).because(error));
            }
            Self::Warn => tracing::warn!(%at, %error, "an event that cannot be processed is left out"),
            Self::Skip => tracing::debug!(%at, %error, "an event that cannot be processed is left out"),
        }
        Ok(())
    }
}

/// Messages of errors that pass, by the user's word (`internal.custom.retriable.exception`).
#[derive(Debug, Clone, Default)]
pub struct Passing(Option<Regex>);

impl Passing {
    /// # Errors
    /// The option is no regular expression.
    pub fn from_settings(s: &Settings) -> Result<Self> {
        const OPTION: &str = "internal.custom.retriable.exception";
        let text = s.text(OPTION).map(str::trim).filter(|text| !text.is_empty());
        let wrong = |e: fancy_regex::Error| Error::config(format!("{OPTION} is not a regular expression")).because(&e);
        text.map(|text| Regex::new(text).map_err(wrong)).transpose().map(Self)
    }

    /// The error, which is tried again if its message or that of a cause matches.
    pub fn judge(&self, mut error: Error) -> Error {
        let Some(pattern) = self.0.as_ref().filter(|_| error.policy() != Policy::Retry) else { return error };
        let matches = |text: &str| pattern.is_match(text).unwrap_or(false);
        if matches(&error.message) || error.causes.iter().any(|cause| matches(cause)) {
            error.kind = ErrorKind::SourceBusy;
        }
        error
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_one_mode_stops() {
        let cause = Error::config("no key");
        let error = FailureMode::Fail.take("offset {}", Phase::Stream, &cause).unwrap_err();
        assert_eq!(
            (error.kind, &*error.message),
            (ErrorKind::ValueInvalid, "Error while processing event at offset {}")
        );
        assert_eq!(error.causes, ["no key"]);
        for mode in [FailureMode::Warn, FailureMode::Skip] {
            mode.take("offset {}", Phase::Stream, &cause).unwrap();
        }
    }

    #[test]
    fn an_error_passes_by_its_message_or_that_of_a_cause() {
        let passing = Passing(Some(Regex::new(".*no right.*").unwrap()));
        let plain = Error::config("there is no right to read");
        let within = Error::config("refused").because(&Error::config("no right"));
        for error in [plain, within] {
            assert!(!error.is_retriable() && passing.judge(error).is_retriable());
        }
        assert!(!passing.judge(Error::config("other")).is_retriable());
        assert!(!Passing::default().judge(Error::config("no right")).is_retriable());
    }
}
