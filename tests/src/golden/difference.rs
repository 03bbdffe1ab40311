//! One place in which what came out is not what was recorded.

use std::fmt::{self, Display, Formatter};

use super::text::{Node, Shape, read};

/// Longest part of a value that is shown.
const SHOWN: usize = 200;
/// Most differences of one text that are told.
const MOST: usize = 12;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Topic and number of the message and its part, or number of the call and its part.
    pub place: String,
    /// Inside the JSON of that part: `.name` and `[index]`; empty if it is about the whole.
    pub path: String,
    pub expected: String,
    pub got: String,
}

impl Difference {
    pub(super) fn new(place: impl Into<String>, expected: impl Display, got: impl Display) -> Self {
        Self { place: place.into(), path: String::new(), expected: expected.to_string(), got: got.to_string() }
    }

    /// What differs between two texts, which are not equal.
    pub(super) fn between(place: &str, expected: &str, got: &str) -> Vec<Self> {
        let mut found = Found { place, texts: (expected, got), all: Vec::new() };
        if let (Some(left), Some(right)) = (read(expected), read(got)) {
            found.walk(&left, &right, String::new());
            if found.all.is_empty() {
                found.add(" (same content, other order or spacing)".into(), Some(expected), Some(got));
            }
        } else {
            found.add(String::new(), Some(expected), Some(got));
        }
        found.all
    }
}

impl Display for Difference {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { place, path, expected, got } = self;
        let at = first_difference(expected, got);
        write!(f, "{place}{path}: expected {}, got {}", around(expected, at), around(got, at))
    }
}

struct Found<'a> {
    place: &'a str,
    texts: (&'a str, &'a str),
    all: Vec<Difference>,
}

impl Found<'_> {
    fn add(&mut self, path: String, expected: Option<&str>, got: Option<&str>) {
        if self.all.len() < MOST {
            let told = |text: Option<&str>| text.unwrap_or("(absent)").to_owned();
            let (expected, got) = (told(expected), told(got));
            self.all.push(Difference { place: self.place.to_owned(), path, expected, got });
        }
    }

    fn walk(&mut self, left: &Node, right: &Node, path: String) {
        let (expected, got) = self.texts;
        match (&left.shape, &right.shape) {
            (Shape::Object(one), Shape::Object(other)) => {
                for (name, node) in one {
                    let path = format!("{path}.{name}");
                    match right.member(name) {
                        Some(there) => self.walk(node, there, path),
                        None => self.add(path, Some(node.of(expected)), None),
                    }
                }
                for (name, node) in other.iter().filter(|(name, _)| left.member(name).is_none()) {
                    self.add(format!("{path}.{name}"), None, Some(node.of(got)));
                }
            }
            (Shape::Array(one), Shape::Array(other)) => {
                for (index, (left, right)) in one.iter().zip(other).enumerate() {
                    self.walk(left, right, format!("{path}[{index}]"));
                }
                if one.len() != other.len() {
                    let lengths = (one.len().to_string(), other.len().to_string());
                    self.add(format!("{path}.length"), Some(&lengths.0), Some(&lengths.1));
                }
            }
            _ if left.of(expected) == right.of(got) => {}
            _ => self.add(path, Some(left.of(expected)), Some(right.of(got))),
        }
    }
}

/// Number of the character at which two texts part.
fn first_difference(left: &str, right: &str) -> usize {
    left.chars().zip(right.chars()).take_while(|(a, b)| a == b).count()
}

/// The text, or what is around a character of a long one.
fn around(text: &str, at: usize) -> String {
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    let from = at.saturating_sub(SHOWN / 4);
    let part: String = text.chars().skip(from).take(SHOWN).collect();
    format!("(at {from}) …{part}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(expected: &str, got: &str) -> Vec<String> {
        Difference::between("x ", expected, got).iter().map(Difference::to_string).collect()
    }

    #[test]
    fn a_difference_is_told_with_its_path() {
        assert_eq!(
            told(r#"{"a":{"b":[1,2]},"c":1}"#, r#"{"a":{"b":[1,2.0,3]},"d":1}"#),
            [
                "x .a.b[1]: expected 2, got 2.0",
                "x .a.b.length: expected 2, got 3",
                "x .c: expected 1, got (absent)",
                "x .d: expected (absent), got 1"
            ]
        );
    }

    #[test]
    fn order_and_spacing_count() {
        for (one, other) in [(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#), (r#"{"a":1}"#, r#"{"a": 1}"#)] {
            assert!(told(one, other)[0].starts_with("x  (same content"), "{one}");
        }
    }

    #[test]
    fn a_long_text_is_shown_where_it_differs() {
        let long = "x".repeat(5000);
        let told = told(&format!("{long}a"), &format!("{long}b"));
        assert!(told[0].contains("xxa…") && told[0].len() < 1000, "{told:?}");
    }
}
