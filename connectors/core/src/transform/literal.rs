//! A value that is written as text in a configuration, with the type that its form suggests.
//!
//! Numbers take the narrowest type that holds them. What only looks like a list or a map is text.

use std::sync::Arc;

use super::date_format::DateFormat;
use super::{decimal, schemas};
use crate::convert::calendar::MILLIS_PER_DAY;
use crate::record::{Datum, Schema, Value};

/// Levels of lists and maps; what is deeper is text.
const DEEPEST: usize = 32;

/// The value that `text` states.
pub(super) fn literal(text: &str) -> Datum {
    if text == "null" {
        return Datum::none();
    }
    let trimmed = text.trim();
    if let Some(scalar) = scalar(trimmed) {
        return scalar;
    }
    if trimmed.starts_with(['[', '{', '"']) {
        let mut reader = Reader { rest: trimmed };
        if let Some(datum) = reader.element(0)
            && reader.rest.is_empty()
        {
            return datum;
        }
    }
    string(text)
}

fn string(text: &str) -> Datum {
    Datum::new(schemas::string(false), Value::text(text.to_owned()))
}

/// `None`: it is text, or something with parts.
fn scalar(text: &str) -> Option<Datum> {
    match text {
        "true" | "false" => return Some(Datum::new(Arc::new(Schema::boolean()), Value::Bool(text == "true"))),
        _ => {}
    }
    number(text).or_else(|| time(text))
}

fn number(text: &str) -> Option<Datum> {
    let (digits, scale) = decimal::parse(text)?;
    let primitive = |ty, value| Some(Datum::new(Arc::new(Schema::new(ty)), value));
    use crate::record::Type;
    if let Some(whole) = decimal::rescale(digits, scale, 0) {
        return match whole {
            n if i8::try_from(n).is_ok() => primitive(Type::Int8, Value::Int8(n as i8)),
            n if i16::try_from(n).is_ok() => primitive(Type::Int16, Value::Int16(n as i16)),
            n if i32::try_from(n).is_ok() => primitive(Type::Int32, Value::Int32(n as i32)),
            n if i64::try_from(n).is_ok() => primitive(Type::Int64, Value::Int64(n as i64)),
            n => {
                let schema = Schema::bytes().named("org.apache.kafka.connect.data.Decimal").versioned(1);
                Some(Datum::new(Arc::new(schema.parameter("scale", "0")), Value::Bytes(decimal::bytes_of(n))))
            }
        };
    }
    let double: f64 = text.parse().ok()?;
    let float: f32 = text.parse().ok()?;
    // The narrow type only where it shows the same number.
    if float.is_finite() && float.to_string().parse() == Ok(double) {
        return primitive(Type::Float32, Value::Float32(float));
    }
    if double.is_finite() { primitive(Type::Float64, Value::Float64(double)) } else { None }
}

/// Dates and times in the three forms that Connect writes.
fn time(text: &str) -> Option<Datum> {
    let read = |pattern: &str| {
        let format = DateFormat::new(pattern).ok()?;
        format.read(text).filter(|millis| format.write(*millis) == text)
    };
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if let Some(millis) = read("yyyy-MM-dd") {
        let days = i32::try_from(millis / MILLIS_PER_DAY).ok()?;
        return Some(Datum::new(schemas::date(false), Value::Int32(days)));
    }
    if let Some(millis) = read("HH:mm:ss.SSS'Z'") {
        return Some(Datum::new(schemas::time(false), Value::Int32(i32::try_from(millis).ok()?)));
    }
    let millis = read("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")?;
    Some(Datum::new(schemas::timestamp(false), Value::Int64(millis)))
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn took(&mut self, mark: char) -> bool {
        match self.rest.trim_start().strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn element(&mut self, depth: usize) -> Option<Datum> {
        if depth > DEEPEST {
            return None;
        }
        if self.took('[') {
            let mut items = Vec::new();
            while !self.took(']') {
                if !items.is_empty() && !self.took(',') {
                    return None;
                }
                items.push(self.element(depth + 1)?);
            }
            let schema = common(&items).map(|items| Arc::new(Schema::array(items)));
            return Some(Datum { schema, value: Value::Array(items.into_iter().map(|item| item.value).collect()) });
        }
        if self.took('{') {
            let (mut keys, mut values) = (Vec::new(), Vec::new());
            while !self.took('}') {
                if !keys.is_empty() && !self.took(',') {
                    return None;
                }
                keys.push(self.element(depth + 1)?);
                if !self.took(':') {
                    return None;
                }
                values.push(self.element(depth + 1)?);
            }
            let schema = common(&keys).zip(common(&values)).map(|(keys, values)| Arc::new(Schema::map(keys, values)));
            let pairs = keys.into_iter().zip(values).map(|(key, value)| (key.value, value.value)).collect();
            return Some(Datum { schema, value: Value::Map(pairs) });
        }
        if let Some(quoted) = self.rest.strip_prefix('"') {
            let (text, rest) = unquoted(quoted)?;
            self.rest = rest.trim_start();
            return Some(string(&text));
        }
        let end = self.rest.find([',', ':', ']', '}', '[', '{', '"']).unwrap_or(self.rest.len());
        let token = self.rest[..end].trim();
        self.rest = &self.rest[end..];
        match token {
            "" => None,
            "null" => Some(Datum::none()),
            token => Some(scalar(token).unwrap_or_else(|| string(token))),
        }
    }
}

/// The one schema of all, nulls apart.
fn common(items: &[Datum]) -> Option<Arc<Schema>> {
    let mut schemas = items.iter().filter(|item| !item.is_none()).map(|item| item.schema.as_ref());
    let first = schemas.next()??;
    if !schemas.all(|schema| schema == Some(first)) {
        return None;
    }
    if items.iter().any(Datum::is_none) {
        return Some(Arc::new(Schema::clone(first).optional()));
    }
    Some(first.clone())
}

/// The text up to the closing quote, and what follows it.
fn unquoted(quoted: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => text.push(chars.next()?.1),
            '"' => return Some((text, &quoted[at + 1..])),
            c => text.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use proptest::prelude::*;

    use super::*;
    use crate::convert::{Converter, SimpleHeaderConverter, Written};

    fn shown(text: &str) -> String {
        let datum = literal(text);
        let mut out = Vec::new();
        match SimpleHeaderConverter.convert_datum(&"t".into(), &datum, &mut out).unwrap() {
            Written::Null => "(null)".to_owned(),
            Written::Bytes => String::from_utf8(out).unwrap(),
            Written::Waiting => unreachable!("it asks nobody"),
        }
    }

    #[test]
    fn numbers_have_the_narrowest_type() {
        for (text, value) in [
            ("7", Value::Int8(7)),
            ("-129", Value::Int16(-129)),
            ("40000", Value::Int32(40_000)),
            ("3000000000", Value::Int64(3_000_000_000)),
            ("2.5", Value::Float32(2.5)),
            ("1.23456789012", Value::Float64(1.234_567_890_12)),
            ("true", Value::Bool(true)),
            ("null", Value::Null),
            ("True", Value::text("True")),
            ("1.2.3", Value::text("1.2.3")),
            ("", Value::text("")),
            (" a ", Value::text(" a ")),
        ] {
            assert_eq!(literal(text).value, value, "{text}");
        }
        let big = literal("9223372036854775808");
        assert_eq!(big.schema.unwrap().name.as_deref(), Some("org.apache.kafka.connect.data.Decimal"));
    }

    #[test]
    fn shown_as_written() {
        for text in [
            "2023-11-14",
            "22:13:20.123Z",
            "2023-11-14T22:13:20.123Z",
            "[1,2]",
            "[]",
            r#"["a","b"]"#,
            r#"{"a":1,"b":[2]}"#,
            "[not a list",
            "2023-11-14 10:00",
            "9223372036854775808",
        ] {
            assert_eq!(shown(text), text);
        }
        assert_eq!(shown("[ 1 , null ]"), "[1,null]");
        assert_eq!(shown(r#""quoted""#), "quoted");
        assert_eq!(
            literal("[1,null]").schema.unwrap().ty,
            Schema::array(Schema::new(crate::record::Type::Int8).optional()).ty
        );
        assert_eq!(literal(r#"[1,"a"]"#).schema, None);
    }

    proptest! {
        #[test]
        fn any_text_is_a_value(text in "[\\[\\]{}:,\"\\\\a0-9. -]{0,16}") {
            let _ = shown(&text);
        }
    }
}
