//! Reads the JSON dialects in which people write MongoDB queries: Extended JSON v1 and v2, plus
//! unquoted keys, single quotes, `/regex/i` and the shell's constructors (`ObjectId("…")`).
//!
//! Used for `cursor.pipeline` and snapshot filters, and by the transforms for the documents in change
//! events. It is bounded in depth, and every fault is an error with the place where it was met.
//! Duplicate keys: the last value wins. It does not read what the server sends.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Decimal128, Document, JavaScriptCodeWithScope, Regex, Timestamp, Uuid};

/// The server refuses queries nested deeper than 100 levels.
const MAX_DEPTH: usize = 100;

/// What is wrong, and the byte offset at which reading stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at offset {offset}")]
pub struct JsonError {
    pub what: String,
    pub offset: usize,
}

/// A single document, e.g. a query filter.
pub fn parse_document(text: &str) -> Result<Document, JsonError> {
    match parse_value(text)? {
        Bson::Document(document) => Ok(document),
        _ => Err(JsonError { what: "a document in braces is expected".into(), offset: 0 }),
    }
}

/// An array of documents, e.g. the stages of an aggregation pipeline.
pub fn parse_documents(text: &str) -> Result<Vec<Document>, JsonError> {
    let Bson::Array(values) = parse_value(text)? else {
        return Err(JsonError { what: "an array of documents in brackets is expected".into(), offset: 0 });
    };
    values
        .into_iter()
        .enumerate()
        .map(|(i, value)| match value {
            Bson::Document(document) => Ok(document),
            _ => Err(JsonError { what: format!("element {i} of the array is not a document"), offset: 0 }),
        })
        .collect()
}

fn parse_value(text: &str) -> Result<Bson, JsonError> {
    parse(text, MAX_DEPTH)
}

/// Any value, nested no deeper than `depth` levels.
pub fn parse(text: &str, depth: usize) -> Result<Bson, JsonError> {
    let mut reader = Reader { text, at: 0, depth: 0, limit: depth };
    let value = reader.value()?;
    reader.blanks();
    if reader.at < text.len() {
        return Err(reader.fault("unexpected text after the value"));
    }
    Ok(value)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// Deepest level.
    limit: usize,
}

impl<'a> Reader<'a> {
    fn fault(&self, what: impl fmt::Display) -> JsonError {
        self.fault_at(what, self.at)
    }

    fn fault_at(&self, what: impl fmt::Display, offset: usize) -> JsonError {
        JsonError { what: what.to_string(), offset }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Skips blanks; consumes `wanted` if it comes next.
    fn take(&mut self, wanted: u8) -> bool {
        self.blanks();
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, wanted: u8) -> Result<(), JsonError> {
        if self.take(wanted) { Ok(()) } else { Err(self.fault(format!("'{}' is expected", wanted as char))) }
    }

    fn value(&mut self) -> Result<Bson, JsonError> {
        self.blanks();
        match self.peek() {
            None => Err(self.fault("a value is expected, but the text ends")),
            Some(b'{') => self.nested(Self::document),
            Some(b'[') => self.nested(Self::array),
            Some(b'"' | b'\'') => Ok(Bson::String(self.string()?)),
            Some(b'/') => self.regex(),
            Some(b'-' | b'+' | b'.' | b'0'..=b'9') => self.number(),
            Some(b) if b == b'_' || b == b'$' || b.is_ascii_alphabetic() => self.word(),
            Some(_) => Err(self.fault("a value is expected")),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Bson, JsonError>) -> Result<Bson, JsonError> {
        if self.depth == self.limit {
            return Err(self.fault(format!("more than {} levels of nesting", self.limit)));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn array(&mut self) -> Result<Bson, JsonError> {
        self.expect(b'[')?;
        let mut values = Vec::new();
        if self.take(b']') {
            return Ok(Bson::Array(values));
        }
        loop {
            values.push(self.value()?);
            if self.take(b']') {
                return Ok(Bson::Array(values));
            }
            if !self.take(b',') {
                return Err(self.fault("',' or ']' is expected"));
            }
            if self.take(b']') {
                return Ok(Bson::Array(values));
            }
        }
    }

    fn document(&mut self) -> Result<Bson, JsonError> {
        let from = self.at;
        self.expect(b'{')?;
        let mut document = Document::new();
        loop {
            if self.take(b'}') {
                break;
            }
            let start = self.at;
            let key = self.key()?;
            if key.contains('\0') {
                self.at = start;
                return Err(self.fault("a field name must not contain a NUL character"));
            }
            self.expect(b':')?;
            let value = self.value()?;
            if document.is_empty() && key.starts_with('$') && self.take(b'}') {
                return extended_one(key, value).map_err(|what| self.fault_at(what, from));
            }
            document.insert(key, value);
            if !self.take(b',') {
                if self.take(b'}') {
                    break;
                }
                return Err(self.fault("',' or '}' is expected"));
            }
        }
        extended(document).map_err(|what| self.fault_at(what, from))
    }

    fn key(&mut self) -> Result<String, JsonError> {
        self.blanks();
        if matches!(self.peek(), Some(b'"' | b'\'')) {
            return self.string();
        }
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(rest.len());
        if end == 0 {
            return Err(self.fault("a field name is expected"));
        }
        self.at += end;
        Ok(rest[..end].to_owned())
    }

    fn string(&mut self) -> Result<String, JsonError> {
        let quote = self.peek().unwrap_or(b'"');
        let start = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            // Both are ASCII, so what lies before is whole characters.
            let Some(plain) = memchr::memchr2(quote, b'\\', rest.as_bytes()) else {
                self.at = start;
                return Err(self.fault("the string that starts here is not closed"));
            };
            out.push_str(&rest[..plain]);
            self.at += plain + 1;
            if rest.as_bytes()[plain] == quote {
                return Ok(out);
            }
            self.escape(&mut out)?;
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), JsonError> {
        let Some(c) = self.text[self.at..].chars().next() else { return Err(self.fault("unfinished escape")) };
        self.at += c.len_utf8();
        out.push(match c {
            '"' | '\'' | '\\' | '/' => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let first = self.unit()?;
                let code = if (0xD800..0xDC00).contains(&first) && self.text[self.at..].starts_with("\\u") {
                    self.at += 2;
                    let second = self.unit()?;
                    ((first - 0xD800) << 10).wrapping_add(second.wrapping_sub(0xDC00)).wrapping_add(0x10000)
                } else {
                    first
                };
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            _ => return Err(self.fault(format!("unknown escape '\\{c}'"))),
        });
        Ok(())
    }

    fn unit(&mut self) -> Result<u32, JsonError> {
        let unit = self.text.get(self.at..self.at + 4).and_then(|hex| u32::from_str_radix(hex, 16).ok());
        match unit {
            Some(unit) => {
                self.at += 4;
                Ok(unit)
            }
            None => Err(self.fault("four hexadecimal digits are expected")),
        }
    }

    fn number(&mut self) -> Result<Bson, JsonError> {
        let rest = &self.text[self.at..];
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))).unwrap_or(rest.len());
        let text = &rest[..end];
        let value = match text {
            "-Infinity" => Some(Bson::Double(f64::NEG_INFINITY)),
            _ if text.bytes().any(|b| b.is_ascii_alphabetic() && !matches!(b, b'e' | b'E')) => None,
            _ => integer(text).or_else(|| text.parse().ok().map(Bson::Double)),
        };
        let value = value.ok_or_else(|| self.fault(format!("'{text}' is not a number")))?;
        self.at += end;
        Ok(value)
    }

    fn regex(&mut self) -> Result<Bson, JsonError> {
        let body = self.at + 1;
        let mut escaped = false;
        let close = self.text[body..].char_indices().find(|&(_, c)| {
            let found = c == '/' && !escaped;
            escaped = c == '\\' && !escaped;
            found
        });
        let Some((length, _)) = close else { return Err(self.fault("the regular expression is not closed")) };
        let pattern = &self.text[body..body + length];
        let rest = &self.text[body + length + 1..];
        let end = rest.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(rest.len());
        let value = regex(pattern, &rest[..end]).map_err(|what| self.fault(what))?;
        self.at = body + length + 1 + end;
        Ok(value)
    }

    /// A literal or one of the shell's constructors.
    fn word(&mut self) -> Result<Bson, JsonError> {
        let start = self.at;
        let mut word = self.key()?;
        if word == "new" {
            self.blanks();
            word = self.key()?;
        }
        let literal = match word.as_str() {
            "true" => Some(Bson::Boolean(true)),
            "false" => Some(Bson::Boolean(false)),
            "null" => Some(Bson::Null),
            "undefined" => Some(Bson::Undefined),
            "NaN" => Some(Bson::Double(f64::NAN)),
            "Infinity" => Some(Bson::Double(f64::INFINITY)),
            "MinKey" => Some(Bson::MinKey),
            "MaxKey" => Some(Bson::MaxKey),
            _ => None,
        };
        if let Some(value) = literal {
            if matches!(value, Bson::MinKey | Bson::MaxKey) && self.take(b'(') {
                self.expect(b')')?;
            }
            return Ok(value);
        }
        let mut arguments = Vec::new();
        if !self.take(b'(') {
            self.at = start;
            return Err(self.fault(format!("'{word}' is not a value; text belongs in quotes")));
        }
        while !self.take(b')') {
            arguments.push(self.value()?);
            if !self.take(b',') {
                self.expect(b')')?;
                break;
            }
        }
        constructor(&word, &arguments).map_err(|what| self.fault_at(what, start))
    }
}

fn integer(text: &str) -> Option<Bson> {
    let value: i64 = text.parse().ok()?;
    Some(i32::try_from(value).map_or(Bson::Int64(value), Bson::Int32))
}

fn constructor(name: &str, arguments: &[Bson]) -> Result<Bson, String> {
    let bad = || format!("the arguments of {name}(…) are not understood");
    match (name, arguments) {
        ("ObjectId", [Bson::String(hex)]) => object_id(hex),
        ("ISODate" | "Date", [value]) => date(value).ok_or_else(bad),
        ("NumberInt", [value]) => as_i64(value).and_then(|n| i32::try_from(n).ok()).map(Bson::Int32).ok_or_else(bad),
        ("NumberLong", [value]) => as_i64(value).map(Bson::Int64).ok_or_else(bad),
        ("NumberDecimal", [value]) => decimal(&value_text(value).ok_or_else(bad)?),
        ("Timestamp", [t, i]) => match (as_u32(t), as_u32(i)) {
            (Some(time), Some(increment)) => Ok(Bson::Timestamp(Timestamp { time, increment })),
            _ => Err(bad()),
        },
        ("BinData", [subtype, Bson::String(data)]) => {
            let subtype = as_i64(subtype).and_then(|n| u8::try_from(n).ok()).ok_or_else(bad)?;
            binary(data, subtype)
        }
        ("UUID", [Bson::String(text)]) => uuid(text),
        ("RegExp", [Bson::String(pattern)]) => regex(pattern, ""),
        ("RegExp", [Bson::String(pattern), Bson::String(options)]) => regex(pattern, options),
        ("Code", [Bson::String(code)]) => Ok(Bson::JavaScriptCode(code.clone())),
        (
            "ObjectId" | "ISODate" | "Date" | "NumberInt" | "NumberLong" | "NumberDecimal" | "Timestamp" | "BinData"
            | "UUID" | "RegExp" | "Code",
            _,
        ) => Err(bad()),
        _ => Err(format!("{name}(…) is not known")),
    }
}

/// Turns `{"$oid": …}` and its like into the value it stands for; other documents stay.
fn extended(document: Document) -> Result<Bson, String> {
    let Some((first, _)) = document.iter().next() else { return Ok(Bson::Document(document)) };
    if !first.starts_with('$') {
        return Ok(Bson::Document(document));
    }
    if document.len() == 1 {
        let (name, value) = document.into_iter().next().unwrap_or_default();
        return extended_one(name, value);
    }
    let pairs: Vec<(&str, &Bson)> = document.iter().map(|(k, v)| (k.as_str(), v)).collect();
    let value = match *pairs.as_slice() {
        [("$code", Bson::String(code)), ("$scope", Bson::Document(scope))] => {
            Bson::JavaScriptCodeWithScope(JavaScriptCodeWithScope { code: code.clone(), scope: scope.clone() })
        }
        [("$regex", Bson::String(pattern)), ("$options", Bson::String(options))] => regex(pattern, options)?,
        [("$binary", Bson::String(data)), ("$type", kind)] | [("$type", kind), ("$binary", Bson::String(data))] => {
            let subtype = match kind {
                Bson::String(hex) => u8::from_str_radix(hex, 16).ok(),
                other => as_i64(other).and_then(|n| u8::try_from(n).ok()),
            };
            binary(data, subtype.ok_or("the value of $binary is not understood")?)?
        }
        _ => return Ok(Bson::Document(document)),
    };
    Ok(value)
}

/// The same for a document of one field, which most of them are.
fn extended_one(name: String, value: Bson) -> Result<Bson, String> {
    let bad = || format!("the value of {name} is not understood");
    Ok(match (name.as_str(), &value) {
        ("$oid", value) => object_id(value.as_str().ok_or_else(bad)?)?,
        ("$numberInt", v) => as_i64(v).and_then(|n| i32::try_from(n).ok()).map(Bson::Int32).ok_or_else(bad)?,
        ("$numberLong", value) => as_i64(value).map(Bson::Int64).ok_or_else(bad)?,
        ("$numberDouble", value) => double(value).ok_or_else(bad)?,
        ("$numberDecimal", value) => decimal(value.as_str().ok_or_else(bad)?)?,
        ("$date", value) => date(value).ok_or_else(bad)?,
        ("$symbol", Bson::String(text)) => Bson::Symbol(text.clone()),
        ("$code", Bson::String(code)) => Bson::JavaScriptCode(code.clone()),
        ("$minKey", _) => Bson::MinKey,
        ("$maxKey", _) => Bson::MaxKey,
        ("$undefined", _) => Bson::Undefined,
        ("$uuid", Bson::String(text)) => uuid(text)?,
        ("$timestamp", Bson::Document(parts)) => {
            match (parts.get("t").and_then(as_u32), parts.get("i").and_then(as_u32)) {
                (Some(time), Some(increment)) => Bson::Timestamp(Timestamp { time, increment }),
                _ => return Err(bad()),
            }
        }
        ("$regularExpression", Bson::Document(parts)) => {
            let pattern = parts.get_str("pattern").map_err(|_| bad())?;
            regex(pattern, parts.get_str("options").unwrap_or(""))?
        }
        ("$binary", Bson::Document(parts)) => {
            let data = parts.get_str("base64").map_err(|_| bad())?;
            let subtype = parts.get_str("subType").ok().and_then(|t| u8::from_str_radix(t, 16).ok()).ok_or_else(bad)?;
            binary(data, subtype)?
        }
        ("$dbPointer", _) => return Err("$dbPointer cannot be used here".into()),
        _ => {
            let mut document = Document::new();
            document.insert(name, value);
            Bson::Document(document)
        }
    })
}

fn value_text(value: &Bson) -> Option<String> {
    match value {
        Bson::String(text) => Some(text.clone()),
        Bson::Int32(n) => Some(n.to_string()),
        Bson::Int64(n) => Some(n.to_string()),
        Bson::Double(n) => Some(n.to_string()),
        _ => None,
    }
}

fn as_i64(value: &Bson) -> Option<i64> {
    match value {
        Bson::Int32(n) => Some(i64::from(*n)),
        Bson::Int64(n) => Some(*n),
        Bson::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn as_u32(value: &Bson) -> Option<u32> {
    as_i64(value).and_then(|n| u32::try_from(n).ok())
}

fn double(value: &Bson) -> Option<Bson> {
    match value {
        Bson::Double(n) => Some(Bson::Double(*n)),
        Bson::Int32(n) => Some(Bson::Double(f64::from(*n))),
        Bson::String(text) => match text.as_str() {
            "Infinity" => Some(Bson::Double(f64::INFINITY)),
            "-Infinity" => Some(Bson::Double(f64::NEG_INFINITY)),
            "NaN" => Some(Bson::Double(f64::NAN)),
            other => other.parse().ok().map(Bson::Double),
        },
        _ => None,
    }
}

fn decimal(text: &str) -> Result<Bson, String> {
    Decimal128::from_str(text).map(Bson::Decimal128).map_err(|_| format!("'{text}' is not a decimal number"))
}

fn date(value: &Bson) -> Option<Bson> {
    match value {
        Bson::String(text) if text.len() == 10 => parse_date(&format!("{text}T00:00:00Z")),
        Bson::String(text) => parse_date(text),
        Bson::Int32(_) | Bson::Int64(_) => as_i64(value).map(DateTime::from_millis),
        _ => None,
    }
    .map(Bson::DateTime)
}

fn parse_date(text: &str) -> Option<DateTime> {
    DateTime::parse_rfc3339_str(text).ok()
}

fn object_id(hex: &str) -> Result<Bson, String> {
    ObjectId::parse_str(hex).map(Bson::ObjectId).map_err(|_| format!("'{hex}' is not an object id"))
}

fn uuid(text: &str) -> Result<Bson, String> {
    let uuid = Uuid::parse_str(text).map_err(|_| format!("'{text}' is not a UUID"))?;
    Ok(Bson::Binary(uuid.into()))
}

fn binary(data: &str, subtype: u8) -> Result<Bson, String> {
    let bytes = BASE64.decode(data).map_err(|_| "the binary value is not Base64".to_owned())?;
    Ok(Bson::Binary(Binary { subtype: BinarySubtype::from(subtype), bytes }))
}

fn regex(pattern: &str, options: &str) -> Result<Bson, String> {
    let nul = |_| "a regular expression must not contain a NUL character".to_owned();
    Ok(Bson::RegularExpression(Regex {
        pattern: pattern.to_owned().try_into().map_err(nul)?,
        options: options.to_owned().try_into().map_err(nul)?,
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bson::doc;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pipeline_with_unquoted_keys_and_single_quotes() {
        let stages = parse_documents("[{$match:{'fullDocument.name':'Dennis'}}, ]").unwrap();
        assert_eq!(stages, vec![doc! {"$match": {"fullDocument.name": "Dennis"}}]);
        assert_eq!(parse_documents(" [ ] ").unwrap(), Vec::<Document>::new());
    }

    #[test]
    fn both_versions_of_extended_json() {
        let id = ObjectId::parse_str("596e275826f08b2730779e1f").unwrap();
        let date = DateTime::from_millis(1_704_067_200_000);
        let v1 = r#"{a: {"$oid": "596e275826f08b2730779e1f"}, b: {"$date": 1704067200000}, c: {"$numberLong": "5"},
                     d: {"$binary": "AQI=", "$type": "00"}, e: {"$regex": "^a", "$options": "i"}}"#;
        let v2 = r#"{a: {"$oid": "596e275826f08b2730779e1f"}, b: {"$date": {"$numberLong": "1704067200000"}},
                     c: {"$numberLong": "5"}, d: {"$binary": {"base64": "AQI=", "subType": "00"}},
                     e: {"$regularExpression": {"pattern": "^a", "options": "i"}}}"#;
        let expected = doc! {
            "a": id, "b": date, "c": 5_i64, "d": Binary { subtype: BinarySubtype::Generic, bytes: vec![1, 2] },
            "e": Regex { pattern: "^a".to_owned().try_into().unwrap(), options: "i".to_owned().try_into().unwrap() },
        };
        assert_eq!(parse_document(v1).unwrap(), expected);
        assert_eq!(parse_document(v2).unwrap(), expected);
        let iso = parse_document(r#"{b: {$date: "2024-01-01T00:00:00Z"}, s: ISODate("2024-01-01")}"#).unwrap();
        assert_eq!(iso, doc! {"b": date, "s": date});
    }

    #[test]
    fn query_operators_stay_documents() {
        let filter = r#"{a: {$type: "string"}, b: {$regex: "x"}, c: {$lt: 250}, $or: [{d: 1}, {d: {$exists: true}}]}"#;
        let expected = doc! {
            "a": {"$type": "string"}, "b": {"$regex": "x"}, "c": {"$lt": 250}, "$or": [{"d": 1}, {"d": {"$exists": true}}],
        };
        assert_eq!(parse_document(filter).unwrap(), expected);
    }

    #[test]
    fn numbers_take_the_smallest_type() {
        let numbers =
            "{a: 1, b: 3000000000, c: 1.0, d: -1e3, e: -Infinity, f: NumberLong(7), g: NumberDecimal('1.50')}";
        let read = parse_document(numbers).unwrap();
        assert_eq!(read.get("a"), Some(&Bson::Int32(1)));
        assert_eq!(read.get("b"), Some(&Bson::Int64(3_000_000_000)));
        assert_eq!(read.get("c"), Some(&Bson::Double(1.0)));
        assert_eq!(read.get("d"), Some(&Bson::Double(-1000.0)));
        assert_eq!(read.get("e"), Some(&Bson::Double(f64::NEG_INFINITY)));
        assert_eq!(read.get("f"), Some(&Bson::Int64(7)));
        assert_eq!(read.get("g").unwrap().to_string(), "1.50");
    }

    #[test]
    fn strings_with_escapes() {
        let read = parse_document(r#"{a: "x\"\u00e9\ud83d\ude00\n", 'b c': /a\/b/im}"#).unwrap();
        assert_eq!(read.get_str("a").unwrap(), "x\"é😀\n");
        let Some(Bson::RegularExpression(regex)) = read.get("b c") else { unreachable!("not a regular expression") };
        assert_eq!((regex.pattern.as_str(), regex.options.as_str()), ("a\\/b", "im"));
    }

    #[test]
    fn faults_say_where() {
        for (text, what) in [
            ("[{]", "a field name is expected at offset 2"),
            ("", "a value is expected, but the text ends at offset 0"),
            ("{a: b}", "'b' is not a value; text belongs in quotes at offset 4"),
            ("{a: 'b}", "the string that starts here is not closed at offset 4"),
            ("[1] x", "unexpected text after the value at offset 4"),
            ("{}", "an array of documents in brackets is expected at offset 0"),
            ("[1]", "element 0 of the array is not a document at offset 0"),
            ("[{a: 1.2.3}]", "'1.2.3' is not a number at offset 5"),
            // BSON ends names with it, so the driver could not send the document.
            ("[{a: 1, 'b\\u0000': 1}]", "a field name must not contain a NUL character at offset 8"),
        ] {
            assert_eq!(parse_documents(text).unwrap_err().to_string(), what, "{text}");
        }
        assert!(parse_document("{a: {$oid: 5}}").is_err());
        let id = parse_document(r#"{a: {"$oid": "596e275826f08b2730779e1f"}}"#).unwrap();
        assert_eq!(parse_document(r#"{a: {"$oid": "596e275826f08b2730779e1f",}}"#).unwrap(), id);
        let deep = "[".repeat(5000);
        assert!(parse_documents(&deep).unwrap_err().what.contains("100 levels"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,60}") {
            let _ = parse_document(&text);
        }

        #[test]
        fn json_alphabet_does_not_make_it_panic(text in "[\\[\\]{}:,'\"$/\\\\a-c0-9.eu \u{e9}-]{0,40}") {
            let _ = parse_documents(&text);
        }
    }
}
