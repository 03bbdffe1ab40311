//! Fields that are left out or renamed: `field.exclude.list` and `field.renames`.
//!
//! `entry` reads the options; a [`FieldSelector`] holds all entries and picks the [`FieldRules`] of a
//! collection once, on its first sight. Rules work on the bytes of a document (`rewrite`) before it
//! becomes text, on the dotted names of an update (`dotted`), and on nothing else: keys stay whole.
//! Entries apply in order, excludes first, each to what the one before has left.
//!
//! A collection without an entry has no rules, and a document that no rule concerns is not copied.

mod dotted;
mod entry;
mod rewrite;
mod rule;

use std::sync::Arc;

use entry::Entry;
use rewrite::Rewrite;
use rule::{Action, Rule};

use crate::namespace::Namespace;
use crate::raw::Malformed;

/// Why the rules cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// One of the two values would be lost.
    #[error("Document already contains field : {0}; give the entry of field.renames another name")]
    Taken(String),
}

/// The entries of both options.
#[derive(Debug, Clone, Default)]
pub struct FieldSelector {
    entries: Arc<[Entry]>,
}

impl FieldSelector {
    /// From the texts of the options. Errors: as [`check_excludes`] and [`check_renames`].
    pub fn parse(excludes: &str, renames: &str) -> Result<Self, String> {
        let first = |faults: Vec<String>| faults.into_iter().next().unwrap_or_default();
        let mut entries = entry::excludes(excludes).map_err(first)?;
        entries.extend(entry::renames(renames).map_err(first)?);
        Ok(Self { entries: entries.into() })
    }

    /// The rules of a collection; `None` if no entry is for it.
    pub fn rules(&self, namespace: &Namespace) -> Option<FieldRules> {
        if self.entries.is_empty() {
            return None;
        }
        let name = namespace.to_string();
        let rules: Box<[_]> = self.entries.iter().filter(|e| e.is_for(&name)).map(|e| e.rule.clone()).collect();
        (!rules.is_empty()).then_some(FieldRules { rules })
    }
}

/// What the messages of `field.exclude.list` say about its text.
pub fn check_excludes(text: &str) -> Vec<String> {
    entry::excludes(text).err().unwrap_or_default()
}

/// What the messages of `field.renames` say about its text.
pub fn check_renames(text: &str) -> Vec<String> {
    entry::renames(text).err().unwrap_or_default()
}

/// What happens to the fields of one collection; never empty.
#[derive(Debug)]
pub struct FieldRules {
    rules: Box<[Arc<Rule>]>,
}

impl FieldRules {
    /// A stored document; `None` if it stays as it is.
    ///
    /// Errors: a new name that is taken; damaged bytes where the rules look. What they do not look at
    /// is copied unchecked.
    pub fn document(&self, document: &[u8]) -> Result<Option<Vec<u8>>, FieldError> {
        Rewrite::new(&self.rules).document(document)
    }

    /// `updatedFields`, whose names are dotted paths; otherwise as [`FieldRules::document`].
    pub fn updated(&self, fields: &[u8]) -> Result<Option<Vec<u8>>, FieldError> {
        Rewrite::new(&self.rules).updated(fields)
    }

    /// The name under which `removedFields` and `truncatedArrays` tell of a field; `None` leaves it
    /// out. A parent of an excluded field is left out, for its content is not told; a child is told.
    /// Of the renames only the first that concerns the field counts.
    pub fn told(&self, field: String) -> Option<String> {
        for rule in &self.rules {
            let Some(relation) = dotted::relation(field.as_bytes(), &rule.path) else { continue };
            match &rule.action {
                Action::Exclude if relation.is_inner() => {}
                Action::Exclude => return None,
                Action::Rename(name) => {
                    if let Some(renamed) = relation.renamed(field.as_bytes(), name) {
                        return Some(String::from_utf8_lossy(&renamed).into_owned());
                    }
                }
            }
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests;
