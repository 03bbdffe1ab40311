//! What a replay showed, after the differences that are meant to be are taken out.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use super::awaited::awaits;
use super::deliberate::explain;
use super::difference::Difference;
use super::recording::{Outcome, Recording};

#[derive(Debug)]
pub struct Verdict {
    pub recording: String,
    /// Differences that nothing explains.
    pub differences: Vec<Difference>,
    /// How many differences are meant to be.
    pub deliberate: usize,
    /// Rows of the list of deliberate differences that are not true.
    pub stale: Vec<String>,
    /// The replay broke off.
    pub error: Option<String>,
    /// What was waited for in vain; explains differences, is none.
    pub notes: Vec<String>,
    /// A feature without which this cannot be reproduced.
    pub awaits: Option<&'static str>,
    pub took: Duration,
}

impl Verdict {
    pub(super) fn new(recording: &Recording, got: &Outcome, differences: Vec<Difference>) -> Self {
        let explained = explain(recording, got, differences);
        Self {
            recording: recording.scenario.name.clone(),
            differences: explained.left,
            deliberate: explained.deliberate,
            stale: explained.stale,
            error: None,
            notes: Vec::new(),
            awaits: awaits(&recording.scenario.name),
            took: Duration::ZERO,
        }
    }

    pub(super) fn broken(recording: &Recording, error: &anyhow::Error) -> Self {
        Self {
            recording: recording.scenario.name.clone(),
            differences: Vec::new(),
            deliberate: 0,
            stale: Vec::new(),
            error: Some(format!("{error:#}")),
            notes: Vec::new(),
            awaits: awaits(&recording.scenario.name),
            took: Duration::ZERO,
        }
    }

    /// Whether everything is as recorded, or different on purpose.
    pub fn is_reproduced(&self) -> bool {
        self.error.is_none() && self.differences.is_empty() && self.stale.is_empty()
    }

    /// Whether that is what was to be expected.
    pub fn is_as_listed(&self) -> bool {
        self.is_reproduced() == self.awaits.is_none()
    }
}

impl Display for Verdict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let word = match (self.is_reproduced(), self.awaits) {
            (true, None) if self.deliberate == 0 => "equal",
            (true, None) => "different on purpose",
            (true, Some(_)) => "FAULT: reproduced, remove it from the list in awaited.rs",
            (false, Some(_)) => "awaited",
            (false, None) => "FAULT",
        };
        write!(f, "{} ({:.1} s): {word}", self.recording, self.took.as_secs_f64())?;
        match self.awaits {
            Some(what) if !self.is_reproduced() => return write!(f, ", {what}"),
            _ if self.is_as_listed() => return Ok(()),
            _ => {}
        }
        let lines = self.error.iter().chain(&self.notes).cloned();
        let lines = lines.chain(self.differences.iter().map(Difference::to_string));
        for line in lines.chain(self.stale.iter().map(|row| format!("not so any more: {row}"))) {
            write!(f, "\n    {line}")?;
        }
        Ok(())
    }
}
