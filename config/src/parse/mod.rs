//! Reading configurations as users write them: Java properties and JSON.
//!
//! Invariant: what is read is what stands there; nothing is resolved, renamed or checked yet.
//! Messages name keys and places, never values.

pub mod file;
pub mod json;
pub mod properties;

use crate::properties::Properties;
use crate::validate::Validation;

/// A configuration that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    pub properties: Properties,
    /// Keys that occur twice (the last one counts).
    pub warnings: Vec<String>,
    /// Values that are no values (null, a list); they are not in `properties`.
    pub problems: Vec<Problem>,
}

/// A key whose value cannot be a configuration value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub key: String,
    pub line: usize,
    pub column: usize,
    pub text: String,
}

/// Text that cannot be read. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("line {line}: {text}")]
    Line { line: usize, text: String },
    #[error("line {line}, column {column}: {text}")]
    Place { line: usize, column: usize, text: String },
    #[error("{0}")]
    Whole(String),
}

impl Reading {
    /// # Errors
    /// All [`Reading::problems`] in one message.
    pub fn checked(self) -> Result<Self, ParseError> {
        if self.problems.is_empty() {
            return Ok(self);
        }
        let lines: Vec<String> = self
            .problems
            .iter()
            .map(|p| format!("line {}, column {}: '{}': {}", p.line, p.column, p.key, p.text))
            .collect();
        Err(ParseError::Whole(lines.join("\n")))
    }

    /// Attaches the problems to the options that they are about, so that a user gets them together
    /// with everything else that is wrong.
    pub fn report(&self, validation: &mut Validation) {
        for problem in &self.problems {
            validation.error(&problem.key, problem.text.clone());
        }
    }

    /// The problems as messages that stand for themselves.
    pub fn messages(&self) -> impl Iterator<Item = String> {
        self.problems.iter().map(|problem| format!("'{}': {}", problem.key, problem.text))
    }
}

/// Remembers where keys were seen, to warn about the ones that occur twice.
#[derive(Default)]
struct Seen(std::collections::BTreeMap<String, usize>);

impl Seen {
    fn warn(&mut self, key: &str, line: usize, warnings: &mut Vec<String>) {
        if let Some(first) = self.0.insert(key.to_owned(), line) {
            warnings.push(format!("'{key}' is set in line {first} and again in line {line}; the last one counts"));
        }
    }
}
