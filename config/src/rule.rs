//! List syntax and checks that connectors share.
//!
//! A list is separated by commas; `\,` is a comma inside an item; items are trimmed and empty ones
//! dropped. Filters are lists of regular expressions that must match a whole name, whatever its
//! case, in Java's syntax as far as `fancy-regex` knows it (look-around, back-references).
//!
//! It does not know which names a list is matched against.

use std::fmt;

use fancy_regex::{Regex, RegexBuilder};

/// Items of a list, with `\,` still in them.
pub fn split_list(text: &str) -> Vec<String> {
    let mut items = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                items.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&text[start..]);
    items.into_iter().map(str::trim).filter(|i| !i.is_empty()).map(str::to_owned).collect()
}

/// Items of a list of plain texts: `\,` has become a comma.
pub fn split_plain_list(text: &str) -> Vec<String> {
    split_list(text).into_iter().map(|item| item.replace("\\,", ",")).collect()
}

/// A list of regular expressions, compiled.
#[derive(Clone, Default)]
pub struct RegexList {
    items: Vec<Item>,
}

#[derive(Clone)]
struct Item {
    text: String,
    whole: Regex,
}

impl RegexList {
    /// # Errors
    /// The first item that is no regular expression.
    pub fn parse(text: &str) -> Result<Self, RegexListError> {
        Self::new(&split_list(text))
    }

    /// # Errors
    /// As [`RegexList::parse`].
    pub fn new(items: &[String]) -> Result<Self, RegexListError> {
        let items = items.iter().map(|i| Item::new(i)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { items })
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Texts of the items, as given.
    pub fn items(&self) -> impl Iterator<Item = &str> {
        self.items.iter().map(|i| i.text.as_str())
    }

    /// Whether an item matches the whole of `name`, ignoring case. An empty list matches nothing.
    ///
    /// # Errors
    /// An expression that needs too many steps for this name; expressions without look-around and
    /// back-references never do.
    pub fn matches(&self, name: &str) -> Result<bool, RegexListError> {
        for item in &self.items {
            match item.whole.is_match(name) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) => {
                    let text = format!("'{}' cannot be decided for '{name}': {error}", item.text);
                    return Err(RegexListError { item: item.text.clone(), text });
                }
            }
        }
        Ok(false)
    }
}

impl fmt::Debug for RegexList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.items()).finish()
    }
}

impl Item {
    fn new(text: &str) -> Result<Self, RegexListError> {
        let pattern = java_pattern(text);
        // The item by itself first: `a)(b` is only balanced inside of the group below.
        let whole = RegexBuilder::new(&pattern)
            .case_insensitive(true)
            .build()
            .and_then(|_| RegexBuilder::new(&format!(r"\A(?:{pattern})\z")).case_insensitive(true).build())
            .map_err(|error| RegexListError::new(text, &error))?;
        Ok(Self { text: text.to_owned(), whole })
    }
}

/// What Java's classes of characters hold: ASCII only, unlike those of the engine.
fn ascii_class(letter: char) -> Option<&'static str> {
    Some(match letter {
        'w' => "[a-zA-Z0-9_]",
        'W' => "[^a-zA-Z0-9_]",
        'd' => "[0-9]",
        'D' => "[^0-9]",
        's' => r"[\x20\t\n\x0B\x0C\r]",
        'S' => r"[^\x20\t\n\x0B\x0C\r]",
        _ => return None,
    })
}

/// A Java expression in the engine's syntax: `\Q...\E` is written with single escapes, `\w` and the like as
/// the characters that they stand for.
pub fn java_pattern(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        if let Some(class) = chars.peek().and_then(|c| ascii_class(*c)) {
            chars.next();
            out.push_str(class);
            continue;
        }
        if chars.next_if_eq(&'Q').is_none() {
            // `\<` and `\>` are the characters in Java, but word boundaries to the engine.
            if chars.peek().is_none_or(|c| !matches!(c, '<' | '>')) {
                out.push('\\');
            }
            out.extend(chars.next());
            continue;
        }
        while let Some(quoted) = chars.next() {
            if quoted == '\\' && chars.next_if_eq(&'E').is_some() {
                break;
            }
            if quoted.is_ascii_punctuation() && !matches!(quoted, '<' | '>') {
                out.push('\\');
            }
            out.push(quoted);
        }
    }
    out
}

/// An item that is no regular expression, or that could not be decided for a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("A comma-separated list of valid regular expressions is expected, but {text}")]
pub struct RegexListError {
    pub item: String,
    text: String,
}

impl RegexListError {
    fn new(item: &str, error: &fancy_regex::Error) -> Self {
        let text = regex_fault(item, error);
        Self { item: item.to_owned(), text }
    }
}

/// Why `item` is no expression: the commonest mistakes in the words that Java has for them, the others
/// in the engine's.
pub fn regex_fault(item: &str, error: &fancy_regex::Error) -> String {
    let length = item.chars().count();
    if let Some(fault) = misplaced(item) {
        return fault;
    }
    match error {
        fancy_regex::Error::ParseError(_, fancy_regex::ParseError::UnclosedOpenParen) => {
            near("Unclosed group", Some(length), item)
        }
        fancy_regex::Error::ParseError(_, fancy_regex::ParseError::InvalidClass) => {
            near("Unclosed character class", length.checked_sub(1), item)
        }
        other => format!("'{item}' is none: {other}"),
    }
}

/// A text of Java's about a place in an expression, and the mark below it.
fn near(what: &str, index: Option<usize>, item: &str) -> String {
    let Some(index) = index else { return format!("{what}\n{item}") };
    let mark = if index < item.chars().count() { format!("\n{}^", " ".repeat(index)) } else { String::new() };
    format!("{what} near index {index}\n{item}{mark}")
}

/// A sign for repetition that has nothing to repeat, or a parenthesis that closes nothing: the first one.
fn misplaced(item: &str) -> Option<String> {
    let mut chars = item.chars().enumerate().peekable();
    let (mut open, mut in_class, mut repeatable) = (0_usize, 0_usize, false);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                if chars.next_if(|(_, c)| *c == 'Q').is_some() {
                    let mut before = ' ';
                    for (_, c) in chars.by_ref() {
                        if before == '\\' && c == 'E' {
                            break;
                        }
                        before = c;
                    }
                } else {
                    chars.next();
                }
                repeatable = true;
            }
            '[' => in_class += 1,
            ']' if in_class > 0 => {
                in_class -= 1;
                repeatable = true;
            }
            _ if in_class > 0 => {}
            '(' => {
                open += 1;
                repeatable = false;
                // What a group begins with is no repetition.
                chars.next_if(|(_, c)| *c == '?');
            }
            ')' if open == 0 => return Some(near("Unmatched closing ')'", at.checked_sub(1), item)),
            ')' => {
                open -= 1;
                repeatable = true;
            }
            '|' => repeatable = false,
            '*' | '+' | '?' if repeatable => {
                // Lazy or possessive.
                chars.next_if(|(_, c)| matches!(c, '?' | '+'));
                repeatable = false;
            }
            '*' | '+' | '?' => return Some(near(&format!("Dangling meta character '{c}'"), Some(at), item)),
            _ => repeatable = true,
        }
    }
    None
}

/// Check for the options that Debezium declares as boolean and checks for it once more: a wrong value
/// has two equal messages, and counts twice.
///
/// # Errors
/// The text for the message, if it is neither `true` nor `false`.
pub fn boolean(text: &str) -> Result<(), String> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
        return Ok(());
    }
    Err("Either 'true' or 'false' is expected".to_owned())
}

/// Check for a regular expression.
///
/// # Errors
/// The text for the message, with what is wrong with it.
pub fn regex(text: &str) -> Result<(), String> {
    Regex::new(text).map(drop).map_err(|e| format!("A regular expression is expected, but {e}"))
}

/// Check for names that become part of a topic name.
///
/// # Errors
/// The text for the message, if another character than `[A-Za-z0-9_.-]` occurs.
pub fn topic_name_chars(text: &str) -> Result<(), String> {
    if text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')) {
        return Ok(());
    }
    Err(format!("{text} has invalid format (only the underscore, hyphen, dot and alphanumeric characters are allowed)"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cfg_04_lists_are_read_with_tolerance() {
        assert_eq!(split_list(" a , b,,\n c ,"), ["a", "b", "c"]);
        assert_eq!(split_list(r"a\,b, c"), [r"a\,b", "c"]);
        assert_eq!(split_list(r"a\\,b"), [r"a\\", "b"]);
        assert_eq!(split_plain_list(r"a\,b, c"), ["a,b", "c"]);
        assert!(split_list("").is_empty());
        assert!(split_list(" , ").is_empty());
    }

    #[test]
    fn a_filter_matches_whole_names_in_any_case() {
        let list = RegexList::parse(r"inventory\.orders, shop[.]c\d+").unwrap();
        assert!(list.matches("Inventory.ORDERS").unwrap());
        assert!(list.matches("shop.c12").unwrap());
        assert!(!list.matches("inventory.orders2").unwrap());
        assert!(!list.matches("xinventory.orders").unwrap());
        assert!(!RegexList::default().matches("a").unwrap());
    }

    #[test]
    fn a_filter_knows_java_syntax() {
        let list = RegexList::parse(r"db\.(?!tmp_).*").unwrap();
        assert!(list.matches("db.orders").unwrap());
        assert!(!list.matches("db.tmp_orders").unwrap());
        assert!(RegexList::parse(r"(a|b)\1").unwrap().matches("bb").unwrap());
        let quoted = RegexList::parse(r"\Qa.b$\E.*").unwrap();
        assert!(quoted.matches("a.b$x").unwrap());
        assert!(!quoted.matches("aXb$x").unwrap());
        assert!(RegexList::parse(r"a\,b").unwrap().matches("a,b").unwrap());
        assert!(RegexList::parse(r"\<a\>").unwrap().matches("<a>").unwrap());
        assert!(RegexList::parse(r"a\_b\-c").unwrap().matches("a_b-c").unwrap());
        assert!(RegexList::parse("a|b").unwrap().matches("b").unwrap());
        let matches = |pattern: &str, name: &str| RegexList::parse(pattern).unwrap().matches(name).unwrap();
        for (pattern, name, expected) in [
            (r"db\.\w+", "db.Orders_1", true),
            (r"db\.\w+", "db.ümlaut", false),
            (r"db\.\W.*", "db.ümlaut", true),
            (r"db\.[\w-]+", "db.a-b", true),
            (r"db\.[^\d]+", "db.٣", true),
            (r"db\.\d", "db.٣", false),
            (r"a\sb", "a b", true),
            (r"a\Sb", "a\u{a0}b", true),
            (r"a\\w", r"a\w", true),
            (r"db\..", "db.ü", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
        assert!(!RegexList::parse("a|b").unwrap().matches("ab").unwrap());
    }

    #[test]
    fn cfg_02_a_wrong_expression_is_named() {
        let error = RegexList::parse("a.(").unwrap_err();
        assert_eq!(
            error.to_string(),
            "A comma-separated list of valid regular expressions is expected, but Unclosed group near index 3\na.("
        );
        let error = RegexList::parse("good, [a").unwrap_err();
        assert_eq!(error.item, "[a");
        for (item, text) in [
            ("[a", "Unclosed character class near index 1\n[a\n ^"),
            ("*.c1", "Dangling meta character '*' near index 0\n*.c1\n^"),
            ("db.(+)", "Dangling meta character '+' near index 4\ndb.(+)\n    ^"),
            ("a**", "Dangling meta character '*' near index 2\na**\n  ^"),
            (")", "Unmatched closing ')'\n)"),
            (r"\Q(\E[)]a)", "Unmatched closing ')' near index 8\n\\Q(\\E[)]a)\n        ^"),
        ] {
            let error = RegexList::parse(item).unwrap_err().to_string();
            assert_eq!(error.split_once(" expected, but ").unwrap().1, text);
        }
        for fine in [r"a*?b*+(?:c)?", r"(?i)x", r"[*+?)]", r"\*\)", r"\Q*)\E+"] {
            assert_eq!(misplaced(fine), None, "{fine}");
        }
        assert_eq!(RegexList::parse("a)(b").unwrap_err().item, "a)(b");
        assert_eq!(RegexList::parse(r"a\").unwrap_err().item, r"a\");
    }

    #[test]
    fn an_expression_that_explodes_is_an_error_and_no_answer() {
        let list = RegexList::parse(r"(a|a|aa)*\1b(?=c)").unwrap();
        assert!(list.matches(&"a".repeat(60)).is_err());
    }

    #[test]
    fn topic_characters() {
        assert_eq!(topic_name_chars("a_B-1.x"), Ok(()));
        assert_eq!(
            topic_name_chars("a b").unwrap_err(),
            "a b has invalid format (only the underscore, hyphen, dot and alphanumeric characters are allowed)"
        );
        assert!(topic_name_chars("é").is_err());
    }

    proptest! {
        #[test]
        fn items_join_back(items in proptest::collection::vec("[a-z0-9 .]{0,3}[a-z0-9]", 0..6)) {
            let trimmed: Vec<String> = items.iter().map(|i| i.trim().to_owned()).collect();
            prop_assert_eq!(split_list(&items.join(" , ")), trimmed);
        }

        #[test]
        fn any_text_is_split_or_compiled_without_panic(text in ".{0,40}") {
            for item in split_list(&text) {
                prop_assert!(!item.is_empty());
            }
            if let Ok(list) = RegexList::parse(&text) {
                prop_assert!(list.matches("a.b").is_ok());
            }
        }

        #[test]
        fn a_quoted_text_matches_only_itself(text in "[ -\\[\\]-~]{1,12}", other in "[a-z]{1,12}") {
            let item = Item::new(&format!("\\Q{text}\\E")).unwrap();
            prop_assert!(item.whole.is_match(&text).unwrap());
            prop_assert_eq!(item.whole.is_match(&other).unwrap(), other.eq_ignore_ascii_case(&text));
        }
    }
}
