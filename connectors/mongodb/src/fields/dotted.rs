//! How a dotted name of an update lies to the path of a rule.
//!
//! Servers name elements of arrays by their numbers (`list.0.k`), rules do not (`list.k`). A number may
//! also be the name of a field, so a name is compared as it stands first, and without its numbers if
//! that does not fit. Two numbers in a row lead through an array inside of an array, where rules do not
//! reach. The first part is a field of the document, whatever it looks like.

use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Relation {
    /// The field of the rule, or an element of it if that is an array. `last`: where in the name the
    /// last part of the path stands.
    Same { last: Range<usize> },
    /// Something inside of the rule's field.
    Inner { last: Range<usize> },
    /// The path goes on inside of this field, with its part `depth`. `element`: it is one of an array.
    Outer { depth: usize, element: bool },
}

impl Relation {
    pub(super) fn is_inner(&self) -> bool {
        matches!(self, Self::Inner { .. })
    }

    /// The name `key` with the last part of the path renamed; `None` if it does not reach that far.
    pub(super) fn renamed(&self, key: &[u8], name: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Same { last } | Self::Inner { last } => Some([&key[..last.start], name, &key[last.end..]].concat()),
            Self::Outer { .. } => None,
        }
    }
}

/// `path` has at least one part. `None`: the two have nothing to do with each other.
pub(super) fn relation(key: &[u8], path: &[Box<[u8]>]) -> Option<Relation> {
    compare(key, path, false).or_else(|| compare(key, path, true))
}

fn is_number(part: &[u8]) -> bool {
    !part.is_empty() && part.iter().all(u8::is_ascii_digit)
}

fn compare(key: &[u8], path: &[Box<[u8]>], skip_numbers: bool) -> Option<Relation> {
    let mut matched = 0;
    let mut last = 0..0;
    let mut skipped = false;
    // Parts behind the path, and whether they are no more than one number.
    let (mut inner, mut element) = (false, false);
    let mut start = 0;
    for part in key.split(|byte| *byte == b'.') {
        let place = start..start + part.len();
        start = place.end + 1;
        if matched == path.len() {
            inner = inner || element || !is_number(part) || is_number(&key[last.clone()]);
            element = true;
        } else if skip_numbers && matched > 0 && is_number(part) {
            if skipped {
                return None;
            }
            skipped = true;
        } else if *part == *path[matched] {
            (matched, last, skipped) = (matched + 1, place, false);
        } else {
            return None;
        }
    }
    Some(match (matched == path.len(), inner) {
        (true, false) => Relation::Same { last },
        (true, true) => Relation::Inner { last },
        (false, _) => Relation::Outer { depth: matched, element: skipped },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(key: &str, path: &str) -> Option<Relation> {
        let path: Vec<Box<[u8]>> = path.split('.').map(|part| part.as_bytes().into()).collect();
        relation(key.as_bytes(), &path)
    }

    fn renamed(key: &str, path: &str) -> Option<String> {
        of(key, path)?.renamed(key.as_bytes(), b"new").map(|name| String::from_utf8_lossy(&name).into_owned())
    }

    #[test]
    fn fields_elements_and_parents() {
        for key in ["a.b", "a.0.b", "a.b.0", "a.12.b.7"] {
            assert!(matches!(of(key, "a.b"), Some(Relation::Same { .. })), "{key}");
        }
        for key in ["a.b.c", "a.0.b.c", "a.b.0.c", "a.b.0.0"] {
            assert!(matches!(of(key, "a.b"), Some(Relation::Inner { .. })), "{key}");
        }
        assert_eq!(of("a", "a.b"), Some(Relation::Outer { depth: 1, element: false }));
        assert_eq!(of("a.0", "a.b"), Some(Relation::Outer { depth: 1, element: true }));
        assert_eq!(of("a.0.b", "a.b.c"), Some(Relation::Outer { depth: 2, element: false }));
        for key in ["ab", "b", "a.bc", "a.c", "a.0.0.b", "a.0.0", "0.a.b", "0", "", "b.a", "a..b"] {
            assert_eq!(of(key, "a.b"), None, "{key}");
        }
    }

    #[test]
    fn a_number_may_be_the_name_of_a_field() {
        assert!(matches!(of("year.2024", "year.2024"), Some(Relation::Same { .. })));
        assert!(matches!(of("year.2024.x", "year.2024"), Some(Relation::Inner { .. })));
        assert_eq!(of("year.2024", "year.2024.x"), Some(Relation::Outer { depth: 2, element: false }));
        assert_eq!(of("year.2023.x", "year.2024"), None);
        assert!(matches!(of("7.a", "7.a"), Some(Relation::Same { .. })));
    }

    #[test]
    fn the_last_part_of_the_path_is_renamed() {
        for (key, new) in [
            ("a.b", "a.new"),
            ("a.0.b", "a.0.new"),
            ("a.b.x", "a.new.x"),
            ("a.3.b.0.x", "a.3.new.0.x"),
            ("a.b.b", "a.new.b"),
        ] {
            assert_eq!(renamed(key, "a.b").as_deref(), Some(new));
        }
        assert_eq!(renamed("a", "a.b"), None);
        assert_eq!(renamed("a", "a").as_deref(), Some("new"));
    }
}
