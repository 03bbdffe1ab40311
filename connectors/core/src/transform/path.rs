//! The name of a field, or the path to it (`field.syntax.version`).
//!
//! V1: the whole text is one name. V2: dots separate levels; a name that has dots itself stands
//! between backticks, and a backtick inside of such a name behind a backslash.

use std::fmt;
use std::sync::Arc;

use thalweg_config::Settings;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldPath {
    text: Box<str>,
    /// Outermost first, at least one.
    steps: Vec<Arc<str>>,
}

impl FieldPath {
    /// # Errors
    /// The text for the option's message.
    pub(super) fn parse(text: &str, version: &str) -> Result<Self, String> {
        let steps = if version == "V2" { split(text)? } else { vec![text.into()] };
        Ok(Self { text: text.into(), steps })
    }

    /// From the options `field` and `field.syntax.version`.
    pub(super) fn from_settings(settings: &Settings) -> Result<Self, String> {
        Self::parse(settings.text_or_empty("field"), settings.text_or_empty("field.syntax.version"))
    }

    /// As the check of an option table.
    pub(super) fn check(settings: &Settings) -> Vec<(&'static str, String)> {
        Self::from_settings(settings).err().map(|text| ("field", text)).into_iter().collect()
    }

    pub(super) fn steps(&self) -> &[Arc<str>] {
        &self.steps
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn split(text: &str) -> Result<Vec<Arc<str>>, String> {
    let mut steps = Vec::new();
    let mut rest = text;
    loop {
        let (step, behind) = match rest.strip_prefix('`') {
            Some(quoted) => quoted_step(quoted).ok_or_else(|| {
                format!(
                    "Incomplete backtick pair in path: {text}; a backtick inside of a name needs a backslash before it"
                )
            })?,
            None => {
                let end = rest.find('.').unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        steps.push(step.into());
        match behind.strip_prefix('.') {
            Some(next) => rest = next,
            None => return Ok(steps),
        }
    }
}

/// The name up to the closing backtick, and what follows it: nothing or a dot.
fn quoted_step(quoted: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = quoted.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if chars.peek().is_some_and(|(_, next)| *next == '`') => {
                chars.next();
                name.push('`');
            }
            '`' => {
                let behind = &quoted[at + 1..];
                if behind.is_empty() || behind.starts_with('.') {
                    return Some((name, behind));
                }
                name.push('`');
            }
            c => name.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use proptest::prelude::*;

    use super::*;

    fn steps(text: &str, version: &str) -> Vec<String> {
        FieldPath::parse(text, version).unwrap().steps().iter().map(|s| s.to_string()).collect()
    }

    #[test]
    fn first_syntax_takes_the_text_as_it_is() {
        assert_eq!(steps("a.b", "V1"), ["a.b"]);
        assert_eq!(steps("`a", "V1"), ["`a"]);
    }

    #[test]
    fn second_syntax() {
        assert_eq!(steps("a", "V2"), ["a"]);
        assert_eq!(steps("a.b.c", "V2"), ["a", "b", "c"]);
        assert_eq!(steps("`a.b`.c", "V2"), ["a.b", "c"]);
        assert_eq!(steps("c.`a.b`", "V2"), ["c", "a.b"]);
        assert_eq!(steps(r"`a\`.b`", "V2"), ["a`.b"]);
        assert_eq!(steps("`a`b`", "V2"), ["a`b"]);
        assert_eq!(steps("a`b.c", "V2"), ["a`b", "c"]);
        assert!(FieldPath::parse("`a.b", "V2").unwrap_err().contains("Incomplete backtick pair"));
    }

    proptest! {
        #[test]
        fn any_text_is_a_path_or_an_error(text in "[a.`\\\\]{0,12}") {
            if let Ok(path) = FieldPath::parse(&text, "V2") {
                prop_assert!(!path.steps().is_empty());
            }
        }

        #[test]
        fn quoted_names_come_back(names in proptest::collection::vec("[a-z.]{1,6}", 1..5)) {
            let text = names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(".");
            prop_assert_eq!(steps(&text, "V2"), names);
        }
    }
}
