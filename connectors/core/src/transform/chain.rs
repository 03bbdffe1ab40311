//! The transforms of a connector in their order, each with the predicate that it asks.

use thalweg_config::Properties;

use super::predicate::Predicate;
use super::{Fate, Transform, TransformClasses, configuration};
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
    pub fn from_config(config: &Properties, classes: &TransformClasses) -> Result<Self> {
        configuration::chain(config, classes)
    }

    /// Nothing to do: the encoder takes the record as it is.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Runs the record through. Its position stays; after an error, which names the class that failed,
    /// the rest of it is not used any more.
    pub fn apply(&mut self, record: &mut Record) -> Result<Fate, ChainError> {
        for step in &mut self.steps {
            if let Some(condition) = &mut step.condition {
                let holds = condition.predicate.holds(record);
                let holds = holds.map_err(|error| ChainError::new(&step.name, condition.class, error))?;
                if holds == condition.negate {
                    continue;
                }
            }
            match step.transform.apply(record) {
                Ok(Fate::Keep) => {}
                Ok(Fate::Drop) => return Ok(Fate::Drop),
                Err(error) => return Err(ChainError::new(&step.name, step.class, error)),
            }
        }
        Ok(Fate::Keep)
    }
}

/// A transform, or its predicate, that failed. It would fail again: there is no error that passes.
#[derive(Debug)]
pub struct ChainError {
    pub class: &'static str,
    pub error: Error,
}

impl ChainError {
    fn new(name: &str, class: &'static str, mut error: Error) -> Self {
        debug_assert!(!error.is_retriable(), "a transform asks nobody");
        error.message = format!("transform '{name}' ({class}): {}", error.message);
        Self { class, error }
    }
}

#[cfg(test)]
#[path = "tests/chain.rs"]
mod tests;
