//! What is wrong with a worker's configuration: which option, where it was set, what to do.

use std::fmt;

/// One wrong option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerError {
    /// Empty for an error about the file itself.
    pub option: String,
    /// Where it was set: a file, an environment variable, or nowhere.
    pub origin: String,
    pub problem: String,
    /// The next step.
    pub advice: String,
}

impl fmt::Display for WorkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.option.is_empty() {
            write!(f, "{} ", self.option)?;
        }
        write!(f, "({}): {}; {}", self.origin, self.problem, self.advice)
    }
}

/// Everything that is wrong, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerErrors(pub Vec<WorkerError>);

impl fmt::Display for WorkerErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the configuration of this node has {} error(s)", self.0.len())?;
        for error in &self.0 {
            write!(f, "\n  {error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for WorkerErrors {}
