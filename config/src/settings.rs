//! Values of an [`OptionTable`](crate::option::OptionTable) after aliases, defaults and type checks.
//!
//! Accessors take the option's canonical name. Asking for a name that is not in the table, or with
//! the wrong type, is a programming error of the caller: it yields the type's neutral value and a
//! failing debug assertion, never a panic in production.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::secret::Secret;

/// One parsed value.
#[derive(Debug, Clone, PartialEq)]
pub enum Parsed {
    Absent,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(String),
    List(Vec<String>),
    Secret(Secret),
}

#[derive(Debug, Clone, Default)]
pub struct Settings {
    values: BTreeMap<&'static str, Parsed>,
    given: BTreeSet<&'static str>,
}

impl Settings {
    pub(crate) fn insert(&mut self, name: &'static str, value: Parsed) {
        self.values.insert(name, value);
    }

    pub(crate) fn note_given(&mut self, name: &'static str) {
        self.given.insert(name);
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.values.extend(other.values);
        self.given.extend(other.given);
    }

    pub fn get(&self, name: &str) -> &Parsed {
        let found = self.values.get(name);
        debug_assert!(found.is_some(), "option {name} is not in the table");
        found.unwrap_or(&Parsed::Absent)
    }

    /// Whether the configuration has it: a default is not given.
    pub fn is_given(&self, name: &str) -> bool {
        self.given.contains(name)
    }

    pub fn is_set(&self, name: &str) -> bool {
        !matches!(self.get(name), Parsed::Absent)
    }

    pub fn bool(&self, name: &str) -> bool {
        match self.get(name) {
            Parsed::Bool(b) => *b,
            other => {
                debug_assert!(matches!(other, Parsed::Absent), "option {name} is not a boolean");
                false
            }
        }
    }

    /// Numeric value; 0 when absent.
    pub fn int(&self, name: &str) -> i64 {
        self.opt_int(name).unwrap_or(0)
    }

    pub fn opt_int(&self, name: &str) -> Option<i64> {
        match self.get(name) {
            Parsed::Int(i) => Some(*i),
            other => {
                debug_assert!(matches!(other, Parsed::Absent), "option {name} is not a number");
                None
            }
        }
    }

    /// A DOUBLE option's value.
    pub fn double(&self, name: &str) -> Option<f64> {
        match self.get(name) {
            Parsed::Double(d) => Some(*d),
            other => {
                debug_assert!(matches!(other, Parsed::Absent), "option {name} is not a number with a fraction");
                None
            }
        }
    }

    /// A millisecond option as a `Duration`; negative values become zero.
    pub fn millis(&self, name: &str) -> Duration {
        Duration::from_millis(u64::try_from(self.int(name)).unwrap_or(0))
    }

    /// Text value. For an enumeration this is the canonical spelling of the table.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Parsed::Text(t) => Some(t),
            other => {
                debug_assert!(matches!(other, Parsed::Absent), "option {name} is not text");
                None
            }
        }
    }

    /// Text value or the empty string.
    pub fn text_or_empty(&self, name: &str) -> &str {
        self.text(name).unwrap_or("")
    }

    pub fn list(&self, name: &str) -> &[String] {
        match self.get(name) {
            Parsed::List(l) => l,
            other => {
                debug_assert!(matches!(other, Parsed::Absent), "option {name} is not a list");
                &[]
            }
        }
    }

    pub fn secret(&self, name: &str) -> Option<&Secret> {
        match self.get(name) {
            Parsed::Secret(s) => Some(s),
            other => {
                debug_assert!(matches!(other, Parsed::Absent), "option {name} is not a password");
                None
            }
        }
    }
}
