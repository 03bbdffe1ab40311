//! What a replay showed, after the differences that are meant to be are taken out.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

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
            took: Duration::ZERO,
        }
    }

    /// Whether everything is as recorded, or different on purpose.
    pub fn is_reproduced(&self) -> bool {
        self.error.is_none() && self.differences.is_empty() && self.stale.is_empty()
    }
}

impl Display for Verdict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let word = match (self.is_reproduced(), self.deliberate) {
            (true, 0) => "equal",
            (true, _) => "different on purpose",
            (false, _) => "FAULT",
        };
        write!(f, "{} ({:.1} s): {word}", self.recording, self.took.as_secs_f64())?;
        if self.is_reproduced() {
            return Ok(());
        }
        let lines = self.error.iter().chain(&self.notes).cloned();
        let lines = lines.chain(self.differences.iter().map(Difference::to_string));
        for line in lines.chain(self.stale.iter().map(|row| format!("not so any more: {row}"))) {
            write!(f, "\n    {line}")?;
        }
        Ok(())
    }
}
