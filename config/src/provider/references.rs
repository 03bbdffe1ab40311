//! The way back: resolved values become references again.
//!
//! Used on task configurations before they are stored, and on everything that is shown. It does not
//! find a value that was changed on its way (a percent-encoded password).

use std::collections::BTreeMap;

use crate::properties::Properties;
use crate::secret::{HIDDEN, Secret};
use crate::validate::Validation;

/// A shorter value is too common a text to be looked for inside others.
const SHORTEST: usize = 4;

/// What was resolved in one configuration.
#[derive(Debug, Clone, Default)]
pub struct References {
    /// `(${...}, value)`, longest value first, so that no part of a longer one is taken.
    values: Vec<(String, Secret)>,
    /// Options with references: raw and resolved text.
    options: BTreeMap<String, (String, Secret)>,
}

impl References {
    pub fn is_empty(&self) -> bool {
        self.options.is_empty()
    }

    pub(super) fn add(&mut self, reference: &str, value: &str) {
        if self.values.iter().any(|(known, _)| known == reference) {
            return;
        }
        let at = self.values.partition_point(|(_, other)| other.reveal().len() >= value.len());
        self.values.insert(at, (reference.to_owned(), Secret::new(value)));
    }

    pub(super) fn add_option(&mut self, key: &str, raw: &str, resolved: &str) {
        self.options.insert(key.to_owned(), (raw.to_owned(), Secret::new(resolved)));
    }

    /// `derived` (a task's configuration, made from `raw` after it was resolved) with references
    /// where resolved values are: an option that is as it was gets its raw text, any other value has
    /// the references in place of the values of at least four characters that it contains.
    pub fn hide(&self, raw: &Properties, derived: &Properties) -> Properties {
        if self.is_empty() {
            return derived.clone();
        }
        derived
            .iter()
            .map(|(key, value)| {
                let text = match self.options.get(key) {
                    Some((raw, resolved)) if resolved.reveal() == value => raw.clone(),
                    _ if raw.get(key) == Some(value) => value.to_owned(),
                    _ => self.hide_in(value),
                };
                (key.to_owned(), text)
            })
            .collect()
    }

    /// `text` (a message, a trace) with references in place of values.
    pub fn hide_in(&self, text: &str) -> String {
        // One pass, so that nothing is looked for inside of a reference that was just put in.
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        'next: while let Some(c) = rest.chars().next() {
            for (reference, value) in &self.values {
                if value.reveal().len() < SHORTEST {
                    break;
                }
                if let Some(after) = rest.strip_prefix(value.reveal()) {
                    out.push_str(reference);
                    rest = after;
                    continue 'next;
                }
            }
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
        out
    }

    /// Hides resolved values in what a check says and shows.
    pub fn hide_validation(&self, validation: &mut Validation) {
        if self.is_empty() {
            return;
        }
        for row in &mut validation.options {
            for error in &mut row.errors {
                *error = self.hide_in(error);
            }
            match (self.options.get(&row.name), &mut row.value) {
                (Some((raw, _)), Some(value)) if value != HIDDEN => value.clone_from(raw),
                (None, Some(value)) => *value = self.hide_in(value),
                _ => {}
            }
        }
        for warning in &mut validation.warnings {
            *warning = self.hide_in(warning);
        }
    }
}
