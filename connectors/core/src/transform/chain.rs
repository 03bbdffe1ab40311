//! The transforms of a connector in their order, each with the predicate that it asks.

use thalweg_config::Properties;

use super::predicate::Predicate;
use super::{Fate, Transform, configuration};
use crate::error::{Error, Result};
use crate::record::Record;

#[derive(Default)]
pub struct Chain {
    steps: Vec<Step>,
}

pub(super) struct Step {
    /// The user's name for it.
    pub(super) name: Box<str>,
    pub(super) class: &'static str,
    pub(super) transform: Box<dyn Transform>,
    pub(super) condition: Option<Condition>,
}

/// When a transform is asked at all.
pub(super) struct Condition {
    pub(super) predicate: Predicate,
    pub(super) class: &'static str,
    pub(super) negate: bool,
}

impl Chain {
    pub(super) fn new(steps: Vec<Step>) -> Self {
        Self { steps }
    }

    /// References resolved.
    pub fn from_config(config: &Properties) -> Result<Self> {
        configuration::chain(config)
    }

    /// Nothing to do: the encoder takes the record as it is.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Appends what becomes of the record, if it is not dropped. On an error, which names the class that
    /// failed, `out` is as it was.
    pub fn apply(&mut self, mut record: Record, out: &mut Vec<Record>) -> Result<(), ChainError> {
        for step in &mut self.steps {
            if let Some(condition) = &mut step.condition {
                let holds = condition.predicate.holds(&record);
                let holds = holds.map_err(|error| ChainError::new(&step.name, condition.class, error))?;
                if holds == condition.negate {
                    continue;
                }
            }
            match step.transform.apply(&mut record) {
                Ok(Fate::Keep) => {}
                Ok(Fate::Drop) => return Ok(()),
                Err(error) => return Err(ChainError::new(&step.name, step.class, error)),
            }
        }
        out.push(record);
        Ok(())
    }
}

/// A transform, or its predicate, that failed.
#[derive(Debug)]
pub struct ChainError {
    pub class: &'static str,
    pub error: Error,
}

impl ChainError {
    fn new(name: &str, class: &'static str, mut error: Error) -> Self {
        error.message = format!("transform '{name}' ({class}): {}", error.message);
        Self { class, error }
    }
}

#[cfg(test)]
#[path = "tests/chain.rs"]
mod tests;
