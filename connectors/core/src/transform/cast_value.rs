//! One value as another primitive type, by Java's rules for numbers: a narrower integer keeps the low
//! bits, a float becomes the nearest integer towards zero within 32 or 64 bits.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::decimal;
use super::fault::invalid;
use crate::convert::calendar;
use crate::convert::fault::kind_name;
use crate::convert::logical::{Logical, decimal_scale};
use crate::convert::number::{self, ExponentSign, java_double, java_float};
use crate::error::{Error, Result};
use crate::record::{Schema, Text, Type, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Int8,
    Int16,
    Int32,
    Int64,
    Float32,
    Float64,
    Boolean,
    String,
}

impl Target {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "int8" => Self::Int8,
            "int16" => Self::Int16,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "float32" => Self::Float32,
            "float64" => Self::Float64,
            "boolean" => Self::Boolean,
            "string" => Self::String,
            _ => return None,
        })
    }

    pub(super) fn ty(self) -> Type {
        match self {
            Self::Int8 => Type::Int8,
            Self::Int16 => Type::Int16,
            Self::Int32 => Type::Int32,
            Self::Int64 => Type::Int64,
            Self::Float32 => Type::Float32,
            Self::Float64 => Type::Float64,
            Self::Boolean => Type::Boolean,
            Self::String => Type::String,
        }
    }

    fn name(self) -> &'static str {
        crate::convert::fault::type_name(&self.ty())
    }
}

/// A number of either kind, before it is narrowed.
enum Number {
    Whole(i64),
    Float(f64),
}

/// `value` as `target`; a null stays null.
pub(super) fn cast(schema: Option<&Schema>, value: Value, target: Target) -> Result<Value> {
    let value = match (value, target) {
        (Value::Null, _) => return Ok(Value::Null),
        // As it is: a text that is rendered on demand is not rendered for this.
        (value @ Value::String(_), Target::String) => return Ok(value),
        (value, _) => value,
    };
    let no_number = || invalid(format!("a {} is no {}", kind_name(&value), target.name()));
    if target == Target::String {
        return text(schema, &value).map(Value::text);
    }
    let number = match &value {
        Value::Bool(flag) if target == Target::Boolean => return Ok(Value::Bool(*flag)),
        Value::String(text) => return from_text(&text.as_str(), target).ok_or_else(no_number),
        Value::Bool(flag) => Number::Whole(i64::from(*flag)),
        Value::Int8(n) => Number::Whole(i64::from(*n)),
        Value::Int16(n) => Number::Whole(i64::from(*n)),
        Value::Int32(n) => Number::Whole(i64::from(*n)),
        Value::Int64(n) => Number::Whole(*n),
        Value::Float32(n) => Number::Float(f64::from(*n)),
        Value::Float64(n) => Number::Float(*n),
        Value::Bytes(bytes) if schema.and_then(Logical::of) == Some(Logical::Decimal) => {
            from_decimal(schema, bytes, target)?
        }
        other => return Err(unsupported(other)),
    };
    Ok(match (target, number) {
        (Target::Int8, Number::Whole(n)) => Value::Int8(n as i8),
        (Target::Int16, Number::Whole(n)) => Value::Int16(n as i16),
        (Target::Int32, Number::Whole(n)) => Value::Int32(n as i32),
        (Target::Int64, Number::Whole(n)) => Value::Int64(n),
        (Target::Float32, Number::Whole(n)) => Value::Float32(n as f32),
        (Target::Float64, Number::Whole(n)) => Value::Float64(n as f64),
        (Target::Boolean, Number::Whole(n)) => Value::Bool(n != 0),
        (Target::Int8, Number::Float(n)) => Value::Int8(n as i32 as i8),
        (Target::Int16, Number::Float(n)) => Value::Int16(n as i32 as i16),
        (Target::Int32, Number::Float(n)) => Value::Int32(n as i32),
        (Target::Int64, Number::Float(n)) => Value::Int64(n as i64),
        (Target::Float32, Number::Float(n)) => Value::Float32(n as f32),
        (Target::Float64, Number::Float(n)) => Value::Float64(n),
        (Target::Boolean, Number::Float(n)) => Value::Bool(n as i64 != 0),
        (Target::String, _) => return Err(unsupported(&value)),
    })
}

fn unsupported(value: &Value) -> Error {
    invalid(format!("Cast transformation does not support casting from {}", kind_name(value)))
}

/// The low bits of the whole part for an integer, the nearest number for a float.
fn from_decimal(schema: Option<&Schema>, bytes: &[u8], target: Target) -> Result<Number> {
    let scale = schema.map_or(Ok(0), decimal_scale).map_err(invalid)?;
    if matches!(target, Target::Float32 | Target::Float64) {
        let mut digits = Vec::new();
        number::decimal(bytes, scale, &mut digits).map_err(invalid)?;
        let parsed = std::str::from_utf8(&digits).ok().and_then(|text| text.parse().ok());
        return parsed.map(Number::Float).ok_or_else(|| invalid("a decimal is no FLOAT64"));
    }
    let whole = decimal::number_of(bytes).and_then(|number| decimal::whole(number, scale));
    whole.map(|n| Number::Whole(n as i64)).ok_or_else(|| invalid("a decimal has too many digits for an integer"))
}

fn from_text(text: &str, target: Target) -> Option<Value> {
    Some(match target {
        Target::Int8 => Value::Int8(text.parse().ok()?),
        Target::Int16 => Value::Int16(text.parse().ok()?),
        Target::Int32 => Value::Int32(text.parse().ok()?),
        Target::Int64 => Value::Int64(text.parse().ok()?),
        Target::Float32 => Value::Float32(java_float_text(text)?.parse().ok()?),
        Target::Float64 => Value::Float64(java_float_text(text)?.parse().ok()?),
        Target::Boolean => Value::Bool(text.eq_ignore_ascii_case("true")),
        Target::String => return None,
    })
}

/// The text that Java reads as a float: blanks around it and a type letter behind it do not count, and
/// the words are written in one way only.
fn java_float_text(text: &str) -> Option<&str> {
    let text = text.trim();
    let unsigned = text.trim_start_matches(['+', '-']);
    if matches!(unsigned, "NaN" | "Infinity") {
        return Some(text);
    }
    let text = text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text);
    text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E')).then_some(text)
}

fn text(schema: Option<&Schema>, value: &Value) -> Result<Text> {
    let mut out = Vec::new();
    match (schema.and_then(Logical::of), value) {
        (Some(Logical::Decimal), Value::Bytes(bytes)) => {
            let scale = schema.map_or(Ok(0), decimal_scale).map_err(invalid)?;
            number::decimal(bytes, scale, &mut out).map_err(invalid)?;
        }
        (Some(Logical::Date), Value::Int32(days)) => calendar::date(i64::from(*days), &mut out),
        (Some(Logical::Time), Value::Int32(millis)) => calendar::time(i64::from(*millis), &mut out),
        (Some(Logical::Timestamp), Value::Int64(millis)) => calendar::timestamp(*millis, &mut out),
        (_, Value::Bool(true)) => return Ok(Text::Static("true")),
        (_, Value::Bool(false)) => return Ok(Text::Static("false")),
        (_, Value::Int8(n)) => out.extend_from_slice(itoa::Buffer::new().format(*n).as_bytes()),
        (_, Value::Int16(n)) => out.extend_from_slice(itoa::Buffer::new().format(*n).as_bytes()),
        (_, Value::Int32(n)) => out.extend_from_slice(itoa::Buffer::new().format(*n).as_bytes()),
        (_, Value::Int64(n)) => out.extend_from_slice(itoa::Buffer::new().format(*n).as_bytes()),
        (_, Value::Float32(n)) => java_float(*n, ExponentSign::Bare, &mut out),
        (_, Value::Float64(n)) => java_double(*n, ExponentSign::Bare, &mut out),
        (_, Value::Bytes(bytes)) => return Ok(Text::from(STANDARD.encode(bytes))),
        (_, other) => return Err(unsupported(other)),
    }
    String::from_utf8(out).map(Text::from).map_err(|_| unsupported(value))
}
