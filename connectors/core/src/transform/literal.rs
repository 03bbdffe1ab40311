//! A value that is written as text in a configuration, with the type that its form suggests.
//!
//! Read as Kafka Connect's `Values.parseString` reads it. Delimiters (`: , { } [ ] "`) cut the text into
//! tokens, and the first value counts: `10:30` is the number 10. A list or map that is none, down to an
//! unquoted word in it, leaves the whole text as it is. Numbers take the narrowest type that shows them,
//! in a list the one type that holds all.

use std::sync::Arc;

use super::date_format::DateFormat;
use super::{decimal, schemas};
use crate::convert::calendar::MILLIS_PER_DAY;
use crate::convert::logical::Logical;
use crate::record::{Datum, Schema, Type, Value};

/// Levels of lists and maps; what is deeper is text.
const DEEPEST: usize = 32;

/// Exponents beyond this are text: nobody means such a number.
const LARGEST_SCALE: u32 = 6_144;

/// The value that `text` states.
pub(super) fn literal(text: &str) -> Datum {
    match trimmed(text) {
        "null" => return Datum::none(),
        "true" => return boolean(true),
        "false" => return boolean(false),
        _ => {}
    }
    let mut tokens = Tokens { text, end: 0, seen: None };
    let found = if tokens.take("[") {
        tokens.list(0)
    } else if tokens.take("{") {
        tokens.map(0)
    } else {
        let token = tokens.next();
        tokens.scalar(trimmed(token))
    };
    found.unwrap_or_else(|| string(text))
}

/// Blanks to Java: everything up to the space.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c| c <= ' ')
}

fn string(text: &str) -> Datum {
    Datum::new(schemas::string(false), Value::text(text.to_owned()))
}

fn boolean(flag: bool) -> Datum {
    Datum::new(Arc::new(Schema::boolean()), Value::Bool(flag))
}

fn primitive(ty: Type, value: Value) -> Option<Datum> {
    Some(Datum::new(Arc::new(Schema::new(ty)), value))
}

fn number(text: &str) -> Option<Datum> {
    let double = decimal::double(text)?;
    let parsed = decimal::parse(text);
    let whole = parsed.and_then(|(digits, scale)| decimal::rescale(digits, scale, 0));
    if let Some(whole) = whole.and_then(|whole| i64::try_from(whole).ok()) {
        return match whole {
            n if i8::try_from(n).is_ok() => primitive(Type::Int8, Value::Int8(n as i8)),
            n if i16::try_from(n).is_ok() => primitive(Type::Int16, Value::Int16(n as i16)),
            n if i32::try_from(n).is_ok() => primitive(Type::Int32, Value::Int32(n as i32)),
            n => primitive(Type::Int64, Value::Int64(n)),
        };
    }
    let scale = parsed.map(|(_, scale)| scale);
    if scale != Some(0) && text.contains(['.', 'e', 'E']) {
        let float = text.parse::<f32>().ok()?;
        // The narrow type only where it shows the same number.
        if float.is_finite() && float.to_string().parse() == Ok(double) {
            return primitive(Type::Float32, Value::Float32(float));
        }
        if double.is_finite() {
            return primitive(Type::Float64, Value::Float64(double));
        }
    }
    let (digits, scale) = parsed.filter(|(_, scale)| scale.unsigned_abs() <= LARGEST_SCALE)?;
    let schema = Schema::bytes().named("org.apache.kafka.connect.data.Decimal").versioned(1);
    let schema = schema.parameter("scale", scale.to_string());
    Some(Datum::new(Arc::new(schema), Value::Bytes(decimal::bytes_of(digits))))
}

/// Dates and times in the three forms that Connect writes; the length of the text says which.
fn temporal(text: &str) -> Option<Datum> {
    let text = text.replace("\\:", ":");
    let read = |pattern: &str| DateFormat::new(pattern).ok()?.read(&text);
    match text.len() {
        10 => {
            let days = i32::try_from(read("yyyy-MM-dd")? / MILLIS_PER_DAY).ok()?;
            Some(Datum::new(schemas::date(false), Value::Int32(days)))
        }
        13 => {
            let millis = i32::try_from(read("HH:mm:ss.SSS'Z'")?).ok()?;
            Some(Datum::new(schemas::time(false), Value::Int32(millis)))
        }
        24 => {
            let millis = read("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")?;
            Some(Datum::new(schemas::timestamp(false), Value::Int64(millis)))
        }
        _ => None,
    }
}

/// The delimiters of a text and what lies between them.
struct Tokens<'a> {
    text: &'a str,
    /// Behind the last token that was read.
    end: usize,
    /// Read, but not used yet.
    seen: Option<&'a str>,
}

impl<'a> Tokens<'a> {
    fn is_at_end(&self) -> bool {
        self.seen.is_none() && self.end == self.text.len()
    }

    fn read(&mut self) -> &'a str {
        let rest = &self.text[self.end..];
        let mut escaped = false;
        let mut length = rest.len();
        for (at, c) in rest.char_indices() {
            match c {
                '\\' => escaped = !escaped,
                ':' | ',' | '{' | '}' | '[' | ']' | '"' if !escaped => {
                    length = at.max(1);
                    break;
                }
                _ => escaped = false,
            }
        }
        self.end += length;
        &rest[..length]
    }

    fn next(&mut self) -> &'a str {
        self.seen.take().unwrap_or_else(|| self.read())
    }

    /// Whether `wanted` comes next, and then behind it. Tokens of blanks alone are passed for good, also
    /// if it does not come.
    fn take(&mut self, wanted: &str) -> bool {
        if self.is_at_end() {
            return false;
        }
        let mut token = self.next();
        while trimmed(token).is_empty() && self.end < self.text.len() {
            token = self.read();
        }
        let found = trimmed(token) == wanted;
        self.seen = (!found).then_some(token);
        found
    }

    /// A value in a list or map; `None` if there is none, which makes text of the whole.
    fn element(&mut self, depth: usize) -> Option<Datum> {
        if self.take("\"") {
            return Some(self.quoted());
        }
        for (word, datum) in [("null", Datum::none()), ("true", boolean(true)), ("false", boolean(false))] {
            if self.take(word) {
                return Some(datum);
            }
        }
        if self.take("[") {
            return self.list(depth + 1);
        }
        if self.take("{") {
            return self.map(depth + 1);
        }
        let token = self.next();
        self.scalar(trimmed(token))
    }

    /// A date, a time or a number, of which `token` is the first part.
    fn scalar(&mut self, token: &str) -> Option<Datum> {
        let first = token.chars().next()?;
        if first.is_ascii_digit() {
            // A time has two colons.
            let place = self.end;
            let complete = (0..4).all(|_| {
                let more = !self.is_at_end();
                if more {
                    self.next();
                }
                more
            });
            if complete && let Some(datum) = temporal(&format!("{token}{}", &self.text[place..self.end])) {
                return Some(datum);
            }
            self.end = place;
            if let Some(datum) = temporal(token) {
                return Some(datum);
            }
        }
        if first.is_ascii_digit() || matches!(first, '+' | '-') { number(token) } else { None }
    }

    /// A text up to the closing quote. A `\` stays where it is.
    fn quoted(&mut self) -> Datum {
        let mut text = String::new();
        while !self.is_at_end() {
            if self.take("\"") {
                break;
            }
            text.push_str(self.next());
        }
        temporal(&text).unwrap_or_else(|| string(&text))
    }

    fn list(&mut self, depth: usize) -> Option<Datum> {
        if depth > DEEPEST {
            return None;
        }
        let mut items = Vec::new();
        while !self.is_at_end() {
            if self.take("]") {
                return list_of(items);
            }
            if self.take(",") {
                return None;
            }
            items.push(self.element(depth)?);
            if self.take("]") {
                return list_of(items);
            }
            if !self.take(",") {
                return None;
            }
        }
        None
    }

    /// Commas between the pairs may be left out.
    fn map(&mut self, depth: usize) -> Option<Datum> {
        if depth > DEEPEST {
            return None;
        }
        let (mut keys, mut values): (Vec<Datum>, Vec<Datum>) = (Vec::new(), Vec::new());
        while !self.is_at_end() {
            if self.take("}") {
                return map_of(keys, values);
            }
            if self.take(",") {
                return None;
            }
            let key = self.element(depth)?;
            if key.is_none() || !self.take(":") {
                return None;
            }
            let value = self.element(depth)?;
            // The last value of a key counts, in the place of the first.
            match keys.iter().position(|earlier| earlier.value == key.value) {
                Some(at) => values[at] = value,
                None => {
                    keys.push(key);
                    values.push(value);
                }
            }
            self.take(",");
        }
        None
    }
}

fn list_of(items: Vec<Datum>) -> Option<Datum> {
    let Some(common) = common(&items) else {
        let values = unaligned(items)?;
        return Some(Datum { schema: None, value: Value::Array(values) });
    };
    let values = items.into_iter().map(|item| aligned(&common, item)).collect::<Option<Vec<_>>>()?;
    Some(Datum::new(Arc::new(Schema::array(common)), Value::Array(values)))
}

fn map_of(keys: Vec<Datum>, values: Vec<Datum>) -> Option<Datum> {
    let (keys, values, schema) = match (common(&keys), common(&values)) {
        (Some(key), Some(value)) => {
            let keys: Option<Vec<_>> = keys.into_iter().map(|item| aligned(&key, item)).collect();
            let values: Option<Vec<_>> = values.into_iter().map(|item| aligned(&value, item)).collect();
            (keys?, values?, Some(Arc::new(Schema::map(key, value))))
        }
        _ => (unaligned(keys)?, unaligned(values)?, None),
    };
    Some(Datum { schema, value: Value::Map(keys.into_iter().zip(values).collect()) })
}

/// Values of different types, without a schema. `None` if one means nothing without its own.
fn unaligned(items: Vec<Datum>) -> Option<Vec<Value>> {
    let lost = |item: &Datum| item.schema.as_ref().is_some_and(|schema| is_logical(schema));
    if items.iter().any(lost) { None } else { Some(items.into_iter().map(|item| item.value).collect()) }
}

fn is_logical(schema: &Schema) -> bool {
    match &schema.ty {
        Type::Array(items) => is_logical(items),
        Type::Map(keys, values) => is_logical(keys) || is_logical(values),
        _ => Logical::of(schema).is_some(),
    }
}

/// The one schema for all, nulls apart: of numbers the widest type, of equal types the last one's schema.
fn common(items: &[Datum]) -> Option<Arc<Schema>> {
    let mut common: Option<&Arc<Schema>> = None;
    for item in items.iter().filter(|item| !item.is_none()) {
        let schema = item.schema.as_ref()?;
        common = Some(match common {
            Some(earlier) => wider(earlier, schema)?,
            None => schema,
        });
    }
    common.cloned()
}

fn wider<'a>(earlier: &'a Arc<Schema>, later: &'a Arc<Schema>) -> Option<&'a Arc<Schema>> {
    match (width(earlier), width(later)) {
        (Some(a), Some(b)) => Some(if a > b { earlier } else { later }),
        _ => (std::mem::discriminant(&earlier.ty) == std::mem::discriminant(&later.ty)).then_some(later),
    }
}

/// Numbers in the order of what they hold.
fn width(schema: &Schema) -> Option<u8> {
    Some(match schema.ty {
        Type::Int8 => 1,
        Type::Int16 => 2,
        Type::Int32 => 3,
        Type::Int64 => 4,
        Type::Float32 => 5,
        Type::Float64 => 6,
        _ => return None,
    })
}

/// A value of the common schema. `None` for a null and for dates and times among others, which Connect
/// does not convert either.
fn aligned(common: &Schema, item: Datum) -> Option<Value> {
    let own = item.schema?;
    if *own == *common {
        return Some(item.value);
    }
    if is_logical(&own) {
        return None;
    }
    let whole = match &item.value {
        Value::Int8(n) => Some(i64::from(*n)),
        Value::Int16(n) => Some(i64::from(*n)),
        Value::Int32(n) => Some(i64::from(*n)),
        Value::Int64(n) => Some(*n),
        _ => None,
    };
    match (&common.ty, whole, item.value) {
        (Type::Int16, Some(n), _) => i16::try_from(n).ok().map(Value::Int16),
        (Type::Int32, Some(n), _) => i32::try_from(n).ok().map(Value::Int32),
        (Type::Int64, Some(n), _) => Some(Value::Int64(n)),
        (Type::Float32, Some(n), _) => Some(Value::Float32(n as f64 as f32)),
        (Type::Float64, Some(n), _) => Some(Value::Float64(n as f64)),
        (Type::Float64, None, Value::Float32(n)) => Some(Value::Float64(f64::from(n))),
        // Lists and maps whose parts differ stay as they are.
        (Type::Array(_) | Type::Map(..), None, value) if !is_logical(common) => Some(value),
        _ => None,
    }
}

#[cfg(test)]
#[path = "tests/literal.rs"]
mod tests;
