//! Java's regular expressions and replacement texts, as far as the engine knows them.
//!
//! Unlike in the filters of a connector, case counts. It does not keep answers; see `topics`.

use fancy_regex::{Captures, Regex};
use thalweg_config::rule::{java_pattern, regex_fault};

use super::fault::invalid;
use crate::error::{Error, Result};

#[derive(Debug)]
pub(crate) struct JavaRegex {
    text: Box<str>,
    whole: Regex,
    /// Finds inside of a text.
    part: Regex,
}

impl JavaRegex {
    /// # Errors
    /// Why it is none.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let pattern = java_pattern(text);
        // By itself first: `a)(b` is only balanced inside of the group below.
        let part = Regex::new(&pattern).map_err(|error| regex_fault(text, &error))?;
        let whole = Regex::new(&format!(r"\A(?:{pattern})\z")).map_err(|error| regex_fault(text, &error))?;
        Ok(Self { text: text.into(), whole, part })
    }

    /// Whether it matches the whole of `text`.
    ///
    /// # Errors
    /// An expression that needs too many steps for this text.
    pub(crate) fn matches(&self, text: &str) -> Result<bool> {
        self.whole.is_match(text).map_err(|error| self.undecided(text, &error))
    }

    /// `text` with the first match replaced, if the expression matches the whole of it.
    pub(crate) fn replaced(&self, text: &str, replacement: &Replacement) -> Result<Option<String>> {
        if !self.matches(text)? {
            return Ok(None);
        }
        // Java looks for the first match anew: that of `a|ab` in `ab` is `a`.
        let found = self.part.captures(text).map_err(|error| self.undecided(text, &error))?;
        let Some(found) = found else { return Ok(None) };
        let Some(all) = found.get(0) else { return Ok(None) };
        let mut out = text[..all.start()].to_owned();
        replacement.write(&found, &mut out);
        out.push_str(&text[all.end()..]);
        Ok(Some(out))
    }

    fn undecided(&self, topic: &str, error: &fancy_regex::Error) -> Error {
        invalid(format!("the expression '{}' cannot be decided for topic {topic}: {error}", self.text))
    }
}

/// A replacement text: `$1`, `${name}`, and `\` before what stands for itself.
#[derive(Debug)]
pub(crate) struct Replacement {
    pieces: Vec<Piece>,
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Group(usize),
    Named(String),
}

impl Replacement {
    /// # Errors
    /// The text for the option's message: what Java refuses when the first record comes.
    pub(crate) fn new(text: &str, regex: &JavaRegex) -> Result<Self, String> {
        let groups = regex.part.captures_len();
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' => plain.push(chars.next().ok_or("Invalid replacement: character to be escaped is missing")?),
                '$' => {
                    let piece = match chars.next() {
                        Some('{') => {
                            let name: String = chars.by_ref().take_while(|c| *c != '}').collect();
                            if !regex.part.capture_names().flatten().any(|known| known == name) {
                                return Err(format!("Invalid replacement: no group with name {{{name}}}"));
                            }
                            Piece::Named(name)
                        }
                        Some(digit) if digit.is_ascii_digit() => {
                            let mut group = digit as usize - '0' as usize;
                            if group >= groups {
                                return Err(format!("Invalid replacement: no group {group}"));
                            }
                            // As many digits as there are groups for.
                            while let Some(next) = chars.peek().and_then(|c| c.to_digit(10)) {
                                let longer = group * 10 + next as usize;
                                if longer >= groups {
                                    break;
                                }
                                group = longer;
                                chars.next();
                            }
                            Piece::Group(group)
                        }
                        _ => return Err("Invalid replacement: illegal group reference".to_owned()),
                    };
                    if !plain.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    }
                    pieces.push(piece);
                }
                c => plain.push(c),
            }
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Self { pieces })
    }

    /// A group that took no part gives nothing.
    fn write(&self, found: &Captures<'_>, out: &mut String) {
        for piece in &self.pieces {
            out.push_str(match piece {
                Piece::Text(text) => text,
                Piece::Group(at) => found.get(*at).map_or("", |m| m.as_str()),
                Piece::Named(name) => found.name(name).map_or("", |m| m.as_str()),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use proptest::prelude::*;

    use super::*;

    fn replaced(regex: &str, replacement: &str, text: &str) -> Option<String> {
        let regex = JavaRegex::new(regex).unwrap();
        let replacement = Replacement::new(replacement, &regex).unwrap();
        regex.replaced(text, &replacement).unwrap()
    }

    #[test]
    fn replacements_as_java_makes_them() {
        for (regex, replacement, text, expected) in [
            (r"([^.]*)\.([^.]*)\.(.*)", "$1_routed_$3", "p.db.c1", Some("p_routed_c1")),
            ("(.*)", "$1", "a", Some("a")),
            ("(?<base>.*)-[0-9]+", "${base}", "orders-12", Some("orders")),
            ("(a)(b)?", "$1$2", "a", Some("a")),
            ("(a)", "$10", "a", Some("a0")),
            (".*", r"\$1\\", "x", Some(r"$1\")),
            ("a|ab", "x", "ab", Some("xb")),
            ("(?!tmp_).*", "x", "tmp_a", None),
            (r"\Qa.b\E", "x", "a.b", Some("x")),
            ("A", "x", "a", None),
            ("b", "x", "abc", None),
        ] {
            assert_eq!(replaced(regex, replacement, text).as_deref(), expected, "{regex} {replacement} {text}");
        }
    }

    #[test]
    fn wrong_texts() {
        assert!(JavaRegex::new("(a").err().unwrap().starts_with("Unclosed group"));
        assert!(JavaRegex::new("a)(b").is_err());
        let regex = JavaRegex::new("(a)").unwrap();
        for wrong in ["$2", "$", "$x", "${b}", r"a\"] {
            assert!(Replacement::new(wrong, &regex).unwrap_err().starts_with("Invalid replacement"), "{wrong}");
        }
        let slow = JavaRegex::new(r"(a|a|aa)*\1b(?=c)").unwrap();
        assert!(slow.matches(&"a".repeat(60)).is_err());
    }

    proptest! {
        #[test]
        fn any_replacement_is_used_or_refused(text in "[$\\\\{}a0-9]{0,10}", topic in "[a-z.]{1,8}") {
            let regex = JavaRegex::new("(.)(.*)").unwrap();
            if let Ok(replacement) = Replacement::new(&text, &regex) {
                prop_assert!(regex.replaced(&topic, &replacement).unwrap().is_some());
            }
        }
    }
}
