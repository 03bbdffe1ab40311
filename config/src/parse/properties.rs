//! The format of Java property files, in UTF-8.
//!
//! `key=value`, `key:value`, `key value`; comments with `#` or `!`; `\` at the end of a line goes on
//! with the next one, whose leading blanks do not count; escapes `\t \n \r \f \uXXXX`, and any other
//! escaped character stands for itself. As in Java a comment does not go on, and a value keeps its
//! trailing blanks.

use super::{ParseError, Reading, Seen};

/// Reads the bytes of a property file.
///
/// # Errors
/// Bytes that are not UTF-8, and wrong `\u` escapes, with their line.
pub fn read(bytes: &[u8]) -> Result<Reading, ParseError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => parse(text),
        Err(error) => {
            let good = &bytes[..error.valid_up_to()];
            let line = 1 + good.iter().filter(|b| **b == b'\n').count();
            Err(ParseError::Line { line, text: "the file is not UTF-8; save it as UTF-8".to_owned() })
        }
    }
}

/// As [`read`], from text.
///
/// # Errors
/// Wrong `\u` escapes, with their line.
pub fn parse(text: &str) -> Result<Reading, ParseError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reading = Reading::default();
    let mut seen = Seen::default();
    let mut lines = Lines::new(text);
    while let Some((line, content)) = lines.next_logical() {
        let (key, value) = split(&content);
        let (key, value) = (unescape(key, line)?, unescape(value, line)?);
        seen.warn(&key, line, &mut reading.warnings);
        reading.properties.set(key, value);
    }
    Ok(reading)
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{c}')
}

/// Natural lines, joined to logical ones.
struct Lines<'a> {
    rest: Option<&'a str>,
    line: usize,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        Self { rest: Some(text), line: 0 }
    }

    /// The next natural line without its end.
    fn next_natural(&mut self) -> Option<&'a str> {
        let rest = self.rest?;
        self.line += 1;
        match rest.find(['\n', '\r']) {
            Some(end) => {
                let length = if rest[end..].starts_with("\r\n") { 2 } else { 1 };
                self.rest = Some(&rest[end + length..]);
                Some(&rest[..end])
            }
            None => {
                self.rest = None;
                Some(rest)
            }
        }
    }

    /// The next line with a key, without leading blanks, and the number of its first natural line.
    fn next_logical(&mut self) -> Option<(usize, String)> {
        loop {
            let content = self.next_natural()?.trim_start_matches(is_blank);
            if content.is_empty() || content.starts_with(['#', '!']) {
                continue;
            }
            let line = self.line;
            let mut whole = String::from(content);
            // Asked of each natural line alone: what stands before it ends with pairs of backslashes.
            let mut more = goes_on(content);
            while more {
                whole.pop();
                let Some(next) = self.next_natural().map(|next| next.trim_start_matches(is_blank)) else { break };
                whole.push_str(next);
                more = goes_on(next);
            }
            if !whole.is_empty() {
                return Some((line, whole));
            }
        }
    }
}

/// Whether an odd number of backslashes ends the line.
fn goes_on(line: &str) -> bool {
    line.bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 1
}

/// Key and value, still escaped.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '=' | ':' => return (&line[..at], line[at + 1..].trim_start_matches(is_blank)),
            c if is_blank(c) => {
                let rest = line[at..].trim_start_matches(is_blank);
                let value = match rest.strip_prefix(['=', ':']) {
                    Some(value) => value.trim_start_matches(is_blank),
                    None => rest,
                };
                return (&line[..at], value);
            }
            _ => {}
        }
    }
    (line, "")
}

fn unescape(text: &str, line: usize) -> Result<String, ParseError> {
    if !text.contains('\\') {
        return Ok(text.to_owned());
    }
    let wrong = |text: &str| ParseError::Line { line, text: text.to_owned() };
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('t') => out.push('\t'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('f') => out.push('\u{c}'),
            Some('u') => {
                let unit =
                    code_unit(&mut chars).ok_or_else(|| wrong("\\u must be followed by four hexadecimal digits"))?;
                let c = match unit {
                    0xd800..=0xdbff => {
                        let low = chars.as_str().strip_prefix("\\u").and_then(|rest| {
                            chars = rest.chars();
                            code_unit(&mut chars)
                        });
                        low.and_then(|low| char::decode_utf16([unit, low]).next()?.ok())
                    }
                    _ => char::from_u32(u32::from(unit)),
                };
                out.push(c.ok_or_else(|| wrong("a \\u escape names one half of a surrogate pair without the other"))?);
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    Ok(out)
}

fn code_unit(chars: &mut std::str::Chars<'_>) -> Option<u16> {
    let digits = chars.as_str().get(..4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
    *chars = chars.as_str()[4..].chars();
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;
    use crate::properties::Properties;

    fn pairs(text: &str) -> Properties {
        parse(text).unwrap().properties
    }

    #[test]
    fn separators_comments_and_blanks() {
        let text = "# comment\n  ! comment \\\na=1\n b : 2\nc 3\nd\t=\t4 \n\ne\nf==5\ng=\n\u{c}h = # no comment";
        let expected = Properties::from([
            ("a", "1"),
            ("b", "2"),
            ("c", "3"),
            ("d", "4 "),
            ("e", ""),
            ("f", "=5"),
            ("g", ""),
            ("h", "# no comment"),
        ]);
        assert_eq!(pairs(text), expected);
    }

    #[test]
    fn continuation_lines() {
        assert_eq!(pairs("list=a,\\\n    b,\\\r\n\tc\nx=1"), Properties::from([("list", "a,b,c"), ("x", "1")]));
        assert_eq!(pairs("a=b\\\\\nc=d"), Properties::from([("a", "b\\"), ("c", "d")]));
        assert_eq!(pairs("a=b\\"), Properties::from([("a", "b")]));
        // A comment sign in a continued line is part of the value, as in Java.
        assert_eq!(pairs("a=b,\\\n# c"), Properties::from([("a", "b,# c")]));
        assert_eq!(pairs("\\\n\\\n"), Properties::new());
        assert_eq!(pairs("a=1\rb=2"), Properties::from([("a", "1"), ("b", "2")]));
        assert_eq!(pairs("a=x\\\\\\\n\\\\\\\n  \\y\n"), Properties::from([("a", "x\\\\y")]));
    }

    /// A provider reads files of a megabyte: the backslashes so far are not counted again for each line.
    #[test]
    fn many_lines_that_go_on() {
        let text = format!("a={}\\\n{}b", "\\".repeat(400_000), "\\\n".repeat(200_000));
        assert_eq!(pairs(&text), Properties::from([("a", format!("{}b", "\\".repeat(200_000)).as_str())]));
    }

    #[test]
    fn escapes() {
        let text = r"a\ b\=c\:d=\t\n\r\f\x\\ \u00e9\uD83D\ude00";
        assert_eq!(pairs(text), Properties::from([("a b=c:d", "\t\n\r\u{c}x\\ é😀")]));
        assert_eq!(pairs("regex=a\\\\.b"), Properties::from([("regex", "a\\.b")]));
        assert_eq!(pairs("\u{feff}é=ü"), Properties::from([("é", "ü")]));
    }

    #[test]
    fn wrong_escapes_are_errors_with_their_line() {
        for text in [r"\u12", r"\u12g4", r"\ud83d", r"\ud83dx", r"\ud83d\u0041", r"\ude00", "\\u12é"] {
            match parse(&format!("a=1\n\nb={text}")) {
                Err(ParseError::Line { line: 3, .. }) => {}
                other => panic!("{text}: {other:?}"),
            }
        }
        assert_eq!(
            read(b"a=1\nb=\xff").unwrap_err(),
            ParseError::Line { line: 2, text: "the file is not UTF-8; save it as UTF-8".to_owned() }
        );
    }

    #[test]
    fn the_last_of_two_equal_keys_counts() {
        let reading = parse("a=1\n# x\nb=2\na=3").unwrap();
        assert_eq!(reading.properties.get("a"), Some("3"));
        assert_eq!(reading.warnings, ["'a' is set in line 1 and again in line 4; the last one counts"]);
    }

    /// As Java stores a property.
    fn store(key: &str, value: &str) -> String {
        let escape = |text: &str, key: bool| {
            let mut out = String::new();
            for (at, c) in text.chars().enumerate() {
                match c {
                    ' ' if key || at == 0 => out.push_str("\\ "),
                    '\t' => out.push_str("\\t"),
                    '\n' => out.push_str("\\n"),
                    '\r' => out.push_str("\\r"),
                    '\u{c}' => out.push_str("\\f"),
                    '=' | ':' | '#' | '!' | '\\' => out.extend(['\\', c]),
                    c if (' '..='~').contains(&c) => out.push(c),
                    c => {
                        for unit in c.encode_utf16(&mut [0; 2]) {
                            out.push_str(&format!("\\u{unit:04X}"));
                        }
                    }
                }
            }
            out
        };
        format!("{}={}", escape(key, true), escape(value, false))
    }

    proptest! {
        #[test]
        fn what_java_stores_is_read_back(key in "\\PC{1,12}", value in "(\\PC|[\t\n\r ]){0,20}") {
            let reading = parse(&store(&key, &value)).unwrap();
            prop_assert_eq!(reading.properties, Properties::from([(key.as_str(), value.as_str())]));
        }

        #[test]
        fn any_text_is_read_without_panic(text in "([ab=: \\\\\n\r#!u0-9]|\\PC){0,60}") {
            let _ = parse(&text);
        }
    }
}
