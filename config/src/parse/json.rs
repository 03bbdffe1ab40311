//! JSON as the REST interface takes it: an object of scalars, and objects around it.
//!
//! A reader of its own, because a configuration needs what a general one drops: the text of a number
//! (`1.50`), keys that occur twice, and the place of each key. Scalars become their text. Nothing is
//! recursive, so deep nesting costs nothing.

use std::collections::{BTreeMap, HashMap};

use super::{ParseError, Problem, Reading, Seen};
use crate::properties::Properties;

/// Message for a null where a value is expected, as Kafka Connect has it.
pub const NULL_VALUE: &str = "Null value can not be supplied as the configuration value.";

/// A `POST /connectors` body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateRequest {
    /// Trimmed; `None` when absent or null.
    pub name: Option<String>,
    pub config: Reading,
    pub initial_state: Option<String>,
}

/// Reads a flat object: `PUT .../config`, `config/validate`.
///
/// # Errors
/// Text that is no JSON object, with its place. Values that are null or nested are
/// [`Reading::problems`].
pub fn config_map(text: &str) -> Result<Reading, ParseError> {
    let mut reader = Reader::new(text);
    let reading = reader.flat_object()?;
    reader.end()?;
    Ok(reading)
}

/// Reads a `PATCH .../config` body: as [`config_map`], but null (`None`) takes a key away.
///
/// # Errors
/// As [`config_map`]; nested values too.
pub fn config_patch(text: &str) -> Result<BTreeMap<String, Option<String>>, ParseError> {
    let mut reader = Reader::new(text);
    let mut patch = BTreeMap::new();
    reader.members(|reader, key, line, column| {
        match reader.value()? {
            Value::Scalar(text) => patch.insert(key, Some(text)),
            Value::Null => patch.insert(key, None),
            Value::Nested(kind) => {
                return Err(ParseError::Place { line, column, text: format!("'{key}': {}", nested(kind)) });
            }
        };
        Ok(())
    })?;
    reader.end()?;
    Ok(patch)
}

/// Reads a `POST /connectors` body.
///
/// # Errors
/// Text that is no such body, with its place: other members than `name`, `config` and
/// `initial_state`, a `config` that is absent or no object.
pub fn create_request(text: &str) -> Result<CreateRequest, ParseError> {
    let mut reader = Reader::new(text);
    let mut request = CreateRequest::default();
    let mut config = None;
    reader.members(|reader, key, line, column| {
        let wrong = |text: String| ParseError::Place { line, column, text };
        match key.as_str() {
            "name" => request.name = text_or_null(reader, "name")?.map(|name| name.trim().to_owned()),
            "initial_state" => request.initial_state = text_or_null(reader, "initial_state")?,
            "config" if reader.peek() == Some('{') => config = Some(reader.flat_object()?),
            "config" => return Err(wrong("'config' must be an object with the connector's options".to_owned())),
            other => {
                return Err(wrong(format!("unknown member '{other}'; known are name, config and initial_state")));
            }
        }
        Ok(())
    })?;
    reader.end()?;
    let missing = || ParseError::Whole("the request has no member 'config' with the connector's options".to_owned());
    request.config = config.ok_or_else(missing)?;
    Ok(request)
}

fn text_or_null(reader: &mut Reader<'_>, key: &str) -> Result<Option<String>, ParseError> {
    let (line, column) = reader.place();
    match reader.value()? {
        Value::Scalar(text) => Ok(Some(text)),
        Value::Null => Ok(None),
        Value::Nested(kind) => Err(ParseError::Place { line, column, text: format!("'{key}': {}", nested(kind)) }),
    }
}

fn nested(kind: &str) -> String {
    format!("{kind} can not be supplied as the configuration value; write it as text")
}

enum Value {
    Scalar(String),
    Null,
    /// Skipped; `An array` or `An object`.
    Nested(&'static str),
}

/// A cursor over the text.
pub(super) struct Reader<'a> {
    text: &'a str,
    at: usize,
    mark: Mark,
}

/// A place that was asked for: the next one is counted from it, so that asking for the place of every
/// key costs one walk over the text.
#[derive(Clone, Copy)]
struct Mark {
    at: usize,
    line: usize,
    column: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let at = Self::begin(text);
        Self { text, at, mark: Mark { at, line: 1, column: 1 } }
    }

    /// Behind the mark of the byte order, if there is one.
    fn begin(text: &str) -> usize {
        if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }
    }

    /// Line and column of the next token.
    fn place(&mut self) -> (usize, usize) {
        self.skip_blanks();
        if self.at < self.mark.at {
            // Back at the begin of something that does not end.
            self.mark = Mark { at: Self::begin(self.text), line: 1, column: 1 };
        }
        let mark = &mut self.mark;
        let between = &self.text[mark.at..self.at];
        match between.rfind('\n') {
            Some(end) => {
                mark.line += between.bytes().filter(|b| *b == b'\n').count();
                mark.column = 1 + between[end + 1..].chars().count();
            }
            None => mark.column += between.chars().count(),
        }
        mark.at = self.at;
        (mark.line, mark.column)
    }

    fn wrong<T>(&mut self, text: impl Into<String>) -> Result<T, ParseError> {
        let (line, column) = self.place();
        Err(ParseError::Place { line, column, text: text.into() })
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    /// The first character of the next token.
    pub(super) fn peek(&mut self) -> Option<char> {
        self.skip_blanks();
        self.rest().chars().next()
    }

    fn take(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    pub(super) fn end(&mut self) -> Result<(), ParseError> {
        match self.peek() {
            None => Ok(()),
            Some(c) => self.wrong(format!("'{c}' behind the end of the object")),
        }
    }

    /// The members of the object that begins here; `member` must consume the value.
    pub(super) fn members(
        &mut self,
        mut member: impl FnMut(&mut Self, String, usize, usize) -> Result<(), ParseError>,
    ) -> Result<(), ParseError> {
        match self.peek() {
            Some('{') => self.at += 1,
            Some(c) => return self.wrong(format!("an object was expected, but it begins with '{c}'")),
            None => return self.wrong("an object was expected, but there is nothing"),
        }
        if self.take('}') {
            return Ok(());
        }
        loop {
            let (line, column) = self.place();
            if self.peek() != Some('"') {
                return self.wrong("a key in double quotes was expected");
            }
            let key = self.string()?;
            if !self.take(':') {
                return self.wrong(format!("':' was expected after the key '{key}'"));
            }
            member(self, key, line, column)?;
            if self.take('}') {
                return Ok(());
            }
            if !self.take(',') {
                return self.wrong("',' or '}' was expected");
            }
        }
    }

    /// An object of scalars.
    pub(super) fn flat_object(&mut self) -> Result<Reading, ParseError> {
        let mut properties = Properties::new();
        let (mut warnings, mut problems) = (Vec::new(), Vec::new());
        let mut seen = Seen::default();
        // Where in `problems` that of a key is; a later value takes it away.
        let mut places: HashMap<String, usize> = HashMap::new();
        self.members(|reader, key, line, column| {
            seen.warn(&key, line, &mut warnings);
            if let Some(earlier) = places.remove(&key).and_then(|at| problems.get_mut(at)) {
                *earlier = None;
            }
            properties.remove(&key);
            let text = match reader.value()? {
                Value::Scalar(text) => {
                    properties.set(key, text);
                    return Ok(());
                }
                Value::Null => NULL_VALUE.to_owned(),
                Value::Nested(kind) => nested(kind),
            };
            places.insert(key.clone(), problems.len());
            problems.push(Some(Problem { key, line, column, text }));
            Ok(())
        })?;
        Ok(Reading { properties, warnings, problems: problems.into_iter().flatten().collect() })
    }

    fn value(&mut self) -> Result<Value, ParseError> {
        match self.peek() {
            Some('"') => self.string().map(Value::Scalar),
            Some('{') => self.skip_nested().map(|()| Value::Nested("An object")),
            Some('[') => self.skip_nested().map(|()| Value::Nested("An array")),
            Some('-' | '0'..='9') => self.number().map(Value::Scalar),
            Some('a'..='z') => {
                let rest = self.rest();
                let word = &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len())];
                let value = match word {
                    "true" | "false" => Value::Scalar(word.to_owned()),
                    "null" => Value::Null,
                    _ => return self.wrong("a value was expected; texts stand in double quotes"),
                };
                self.at += word.len();
                Ok(value)
            }
            Some(_) => self.wrong("a value was expected"),
            None => self.wrong("the text ends where a value was expected"),
        }
    }

    pub(super) fn skip_value(&mut self) -> Result<(), ParseError> {
        self.value().map(|_| ())
    }

    /// A number's text as it stands there.
    fn number(&mut self) -> Result<String, ParseError> {
        let rest = self.rest();
        let text =
            &rest[..rest.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E')).unwrap_or(rest.len())];
        if !is_number(text) {
            return self.wrong("this is no number; texts stand in double quotes");
        }
        self.at += text.len();
        Ok(text.to_owned())
    }

    fn string(&mut self) -> Result<String, ParseError> {
        let begin = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let Some(stop) = rest.find(|c: char| c == '"' || c == '\\' || c < ' ') else {
                self.at = begin;
                return self.wrong("this text has no closing quote");
            };
            out.push_str(&rest[..stop]);
            self.at += stop;
            match rest.as_bytes()[stop] {
                b'"' => {
                    self.at += 1;
                    return Ok(out);
                }
                b'\\' => out.push(self.escape()?),
                _ => return self.wrong("a control character must be escaped (a line break is \\n)"),
            }
        }
    }

    fn escape(&mut self) -> Result<char, ParseError> {
        let c = match self.rest().as_bytes().get(1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return self.wrong("unknown escape; a backslash is written \\\\"),
        };
        self.at += 2;
        Ok(c)
    }

    fn unicode(&mut self) -> Result<char, ParseError> {
        let unit = |rest: &str| -> Option<u16> {
            let digits = rest.strip_prefix("\\u")?.get(..4)?;
            digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
        };
        let Some(first) = unit(self.rest()) else {
            return self.wrong("\\u must be followed by four hexadecimal digits");
        };
        let (c, length) = match first {
            0xd800..=0xdbff => {
                let second = unit(&self.rest()[6..]);
                (second.and_then(|second| char::decode_utf16([first, second]).next()?.ok()), 12)
            }
            _ => (char::from_u32(u32::from(first)), 6),
        };
        match c {
            Some(c) => {
                self.at += length;
                Ok(c)
            }
            None => self.wrong("a \\u escape names one half of a surrogate pair without the other"),
        }
    }

    /// Steps over an array or object, checking no more than that strings and brackets end.
    fn skip_nested(&mut self) -> Result<(), ParseError> {
        let begin = self.at;
        let mut open: Vec<char> = Vec::new();
        loop {
            match self.peek() {
                Some('{') => open.push('}'),
                Some('[') => open.push(']'),
                Some(c @ ('}' | ']')) => {
                    if open.pop() != Some(c) {
                        return self.wrong(format!("'{c}' closes what is not open"));
                    }
                }
                Some('"') => {
                    self.string()?;
                    continue;
                }
                Some(_) => {}
                None => {
                    self.at = begin;
                    return self.wrong("this is not closed");
                }
            }
            self.at += self.peek().map_or(0, char::len_utf8);
            if open.is_empty() {
                return Ok(());
            }
        }
    }
}

fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits(whole)
        && (whole.len() == 1 || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
