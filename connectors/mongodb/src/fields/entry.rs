//! Entries of `field.exclude.list` and `field.renames` as people write them.
//!
//! `<database>.<collection>.<field>[.<nested>…]`, and behind it `:<name>` for a rename. `*` in database
//! or collection stands for any text, dots included, and `|` separates alternatives of the two together,
//! as in the regular expression that the entry is elsewhere. Names of fields are literal: those with
//! dots, blanks or other signs than `_`, `-`, `*` and `|` cannot be written.

use std::sync::Arc;

use super::rule::{Action, Rule};

/// A rule and the collections it is for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Database and collection, joined by a dot.
    pattern: Box<str>,
    pub(super) rule: Arc<Rule>,
}

impl Entry {
    /// Whether the entry is for the collection of this full name, whatever its case.
    pub(super) fn is_for(&self, name: &str) -> bool {
        self.pattern.split('|').any(|pattern| matches(pattern.as_bytes(), name.as_bytes()))
    }

    fn new(path: &str, action: Action) -> Option<Self> {
        let mut parts = path.split('.');
        let (database, collection) = (parts.next()?, parts.next()?);
        // Upstream's pattern lets blanks pass in the first part.
        let database_fits = !database.is_empty() && database.chars().all(|c| is_sign(c) || c.is_whitespace());
        let fields: Box<[Box<[u8]>]> = parts.clone().map(|part| part.as_bytes().into()).collect();
        let fits = database_fits && is_name(collection) && !fields.is_empty() && parts.all(is_name);
        fits.then(|| Self {
            pattern: format!("{database}.{collection}").into(),
            rule: Arc::new(Rule { path: fields, action }),
        })
    }
}

fn is_sign(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '*' | '-' | '|')
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_sign)
}

/// What is made of the entries of a list, without blanks around them; empty ones are none. Errors: a
/// message about each that is none.
fn entries(text: &str, make: impl Fn(&str) -> Result<Entry, String>) -> Result<Vec<Entry>, Vec<String>> {
    let (mut made, mut faults) = (Vec::new(), Vec::new());
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        match make(entry) {
            Ok(entry) => made.push(entry),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(made) } else { Err(faults) }
}

/// Errors: a message about each entry that is none.
pub(super) fn excludes(text: &str) -> Result<Vec<Entry>, Vec<String>> {
    entries(text, |entry| {
        Entry::new(entry, Action::Exclude).ok_or_else(|| {
            format!(
                "{entry} has invalid format (expecting <databaseName>.<collectionName>.<fieldName>.<nestedFieldName>)"
            )
        })
    })
}

/// Errors: as [`excludes`].
pub(super) fn renames(text: &str) -> Result<Vec<Entry>, Vec<String>> {
    entries(text, |entry| {
        let parts = entry.split_once(':').filter(|(_, name)| is_name(name));
        parts.and_then(|(path, name)| Entry::new(path, Action::Rename(name.as_bytes().into()))).ok_or_else(|| {
            format!(
                "{entry} has invalid format (expecting \
                 <databaseName>.<collectionName>.<fieldName>.<nestedFieldName>:<newNestedFieldName>)"
            )
        })
    })
}

/// Whether all of `text` fits, letters of either case being equal. Takes no more than the product of
/// both lengths: only the last star met is ever tried again.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            star = Some((p, t));
        } else if pattern.get(p).is_some_and(|c| c.eq_ignore_ascii_case(&text[t])) {
            (p, t) = (p + 1, t + 1);
        } else if let Some((behind, from)) = star {
            (p, t) = (behind, from + 1);
            star = Some((behind, from + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn fits(pattern: &str, name: &str) -> bool {
        matches(pattern.as_bytes(), name.as_bytes())
    }

    #[test]
    fn t_52_stars_stand_for_any_text() {
        for (pattern, name) in [
            ("inv.a", "inv.a"),
            ("INV.a", "inv.A"),
            ("*.a", "inv.a"),
            ("*.*", "inv.a.b.c"),
            ("inv.*", "inv."),
            ("i*v.a*b*c", "inv.aXbYbZc"),
            ("*.c1", "inv.x.c1"),
            ("**.a", "b.a"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("inv.a", "inv.ab"),
            ("inv.a", "xinv.a"),
            ("*.c1", "inv.c2"),
            ("*.c1", "inv.c11"),
            // A dot is a dot, and a dotted collection needs a star.
            ("inv.a", "invxa"),
            ("inv.a", "inv.a.b"),
            ("i*v.a*b*c", "inv.aXcYb"),
        ] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        assert!(!fits(&"*a".repeat(200), &"a".repeat(199)));
        assert!(fits(&"*a".repeat(200), &"a".repeat(5000)));
    }

    #[test]
    fn an_entry_taken_apart() {
        let made = excludes(" *.c-1.a.b-c , ,my db.c.x\n").unwrap();
        assert_eq!(made.len(), 2);
        let rule = Rule { path: [b"a".as_slice(), b"b-c"].map(Into::into).into(), action: Action::Exclude };
        assert_eq!((&*made[0].pattern, &*made[0].rule), ("*.c-1", &rule));
        assert_eq!(&*made[1].pattern, "my db.c");
        assert!(made[0].is_for("Any.C-1") && !made[0].is_for("any.c2"));
        let renamed = renames("d.c.a.b:new-name").unwrap().remove(0);
        assert_eq!(renamed.rule.action, Action::Rename(b"new-name".as_slice().into()));
        let either = excludes("a.b|c*.x").unwrap().remove(0);
        assert!(either.is_for("a.b") && either.is_for("c.d") && !either.is_for("a.c") && either.rule.path.len() == 1);
    }

    #[test]
    fn entries_that_are_none() {
        for bad in ["a", "a.b", ".b.c", "a..c", "a.b.", "a.b.c.", "a.b.c d", "a.b.$x", "a.b.ü", "a.b.c:d", "a.b c.d"] {
            assert!(excludes(bad).unwrap_err()[0].starts_with(&format!("{bad} has invalid format")), "{bad}");
        }
        for bad in ["a.b", "a.b.c", "a.b.c:", ":d", "a.b:d", "a.b.c:d:e", "a.b.c:d.e", "a.b.c:d e", "a.b.c :d"] {
            assert!(renames(bad).unwrap_err()[0].starts_with(&format!("{bad} has invalid format")), "{bad}");
        }
        let faults = excludes("a.b.c,a, b").unwrap_err();
        assert!(faults.len() == 2 && faults[0].starts_with("a has") && faults[1].starts_with("b has"), "{faults:?}");
        assert_eq!(excludes(" , "), Ok(Vec::new()));
    }
}
