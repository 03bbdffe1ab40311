//! JSON text as a value without a schema: order and repeats of names are kept, integers stay integers
//! and other numbers become the nearest double, as they were written from one.
//!
//! Reads what a connector wrote; it is strict, and says at which byte it stopped. It never shows the text.

use crate::record::{Text, Value};

/// Deeper than any document of a database: MongoDB allows 100 levels.
const DEEPEST: usize = 512;

pub(super) fn parse(text: &str) -> Result<Value, String> {
    let mut parser = Parser { text, at: 0 };
    let value = parser.value(0)?;
    parser.blanks();
    if parser.at < text.len() {
        return Err(format!("something follows it at byte {}", parser.at));
    }
    Ok(value)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > DEEPEST {
            return Err(format!("it is nested deeper than {DEEPEST} levels"));
        }
        self.blanks();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Value::String(Text::from(self.string()?))),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.stuck(),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut members = Vec::new();
        self.blanks();
        if self.took(b'}') {
            return Ok(Value::Map(members));
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return self.stuck();
            }
            let name = Value::String(Text::from(self.string()?));
            self.blanks();
            if !self.took(b':') {
                return self.stuck();
            }
            members.push((name, self.value(depth + 1)?));
            self.blanks();
            if self.took(b'}') {
                return Ok(Value::Map(members));
            }
            if !self.took(b',') {
                return self.stuck();
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut items = Vec::new();
        self.blanks();
        if self.took(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.blanks();
            if self.took(b']') {
                return Ok(Value::Array(items));
            }
            if !self.took(b',') {
                return self.stuck();
            }
        }
    }

    fn string(&mut self) -> Result<String, String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(end) = memchr::memchr2(b'"', b'\\', rest.as_bytes()) else {
                return Err("a text in it does not end".to_owned());
            };
            out.push_str(&rest[..end]);
            self.at += end + 1;
            if rest.as_bytes()[end] == b'"' {
                return Ok(out);
            }
            let escaped = self.peek();
            self.at += 1;
            out.push(match escaped {
                Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
                Some(b'n') => '\n',
                Some(b'r') => '\r',
                Some(b't') => '\t',
                Some(b'b') => '\u{8}',
                Some(b'f') => '\u{c}',
                Some(b'u') => self.character()?,
                _ => {
                    self.at -= 1;
                    return self.stuck();
                }
            });
        }
    }

    /// Behind `\u`: one unit, or a pair of them. Half a pair becomes U+FFFD.
    fn character(&mut self) -> Result<char, String> {
        let first = self.unit()?;
        if !(0xD800..0xDC00).contains(&first) {
            return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        if !self.text.as_bytes()[self.at..].starts_with(b"\\u") {
            return Ok(char::REPLACEMENT_CHARACTER);
        }
        let back = self.at;
        self.at += 2;
        let second = self.unit()?;
        if !(0xDC00..0xE000).contains(&second) {
            self.at = back;
            return Ok(char::REPLACEMENT_CHARACTER);
        }
        let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn unit(&mut self) -> Result<u32, String> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let unit = digits.and_then(|digits| {
            digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
        });
        match unit {
            Some(unit) => {
                self.at += 4;
                Ok(unit)
            }
            None => self.stuck(),
        }
    }

    fn number(&mut self) -> Result<Value, String> {
        let rest = &self.text[self.at..];
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
        let number = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        let value = if number.contains(['.', 'e', 'E']) { None } else { number.parse().ok().map(Value::Int64) };
        let value = value.or_else(|| number.parse::<f64>().ok().filter(|n| n.is_finite()).map(Value::Float64));
        match value {
            Some(value) => {
                self.at += number.len();
                Ok(value)
            }
            None => self.stuck(),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, String> {
        if !self.text[self.at..].starts_with(word) {
            return self.stuck();
        }
        self.at += word.len();
        Ok(value)
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn took(&mut self, byte: u8) -> bool {
        let is = self.peek() == Some(byte);
        self.at += usize::from(is);
        is
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn stuck<T>(&self) -> Result<T, String> {
        Err(format!("it is not JSON at byte {}", self.at))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;
    use crate::convert::{Converter, JsonConverter};
    use crate::record::Datum;

    fn written(value: Value) -> String {
        let mut converter = JsonConverter { schemas: false, ..JsonConverter::with_schemas() };
        let mut out = Vec::new();
        converter.convert_datum(&"t".into(), &Datum { schema: None, value }, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_read_is_what_is_written() {
        for (text, expected) in [
            ("{}", "{}"),
            (r#" { "b" : 1 , "a":[ true,false,null,[] ], "b":2 } "#, r#"{"b":1,"a":[true,false,null,[]],"b":2}"#),
            ("9007199254740993", "9007199254740993"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("5.0", "5.0"),
            ("1.0E+10", "1.0E10"),
            ("5e-324", "4.9E-324"),
            ("0.30000000000000004", "0.30000000000000004"),
            (r#""a\"\\\/\n\u00e4\uD83D\uDE00ß""#, "\"a\\\"\\\\/\\näß\"".replace("ä", "ä\\uD83D\\uDE00").as_str()),
            (r#""\uD83Dx""#, "\"\u{fffd}x\""),
        ] {
            assert_eq!(written(parse(text).unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_json_is_an_error_without_the_text() {
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\"}",
            "{a:1}",
            "\"a",
            "\"\\x\"",
            "\"\\u12\"",
            "tru",
            "1 2",
            "-",
            "1e999",
            "\"\\u12é\"",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert!(parse(&deep).unwrap_err().contains("nested"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in r#"[\[\]{}",:\\utfn0-9eE+.é -]{0,40}"#) {
            if let Ok(value) = parse(&text) {
                let once = written(value);
                prop_assert_eq!(written(parse(&once).unwrap()), once);
            }
        }
    }
}
