//! `StringConverter` and `SimpleHeaderConverter`: values as text for people and for header readers.
//!
//! `StringConverter` writes what Java's `toString` gives (`Struct{id=1}`, `[a, b]`, `{k=v}`), except
//! for bytes, where Java prints an object address and we write base64. It has one encoding, UTF-8.

use std::sync::Arc;

use super::calendar;
use super::fault::{Fault, Outcome};
use super::json::push_base64;
use super::logical::{Logical, decimal_scale};
use super::number::{ExponentSign, decimal, java_double, java_float};
use super::{Converter, Written};
use crate::error::{Error, Result};
use crate::record::{Schema, Text, TextForm, Type, Value};

#[derive(Debug)]
pub struct StringConverter;

impl Converter for StringConverter {
    fn class(&self) -> &'static str {
        "org.apache.kafka.connect.storage.StringConverter"
    }
    fn convert(
        &mut self,
        _topic: &Arc<str>,
        schema: Option<&Arc<Schema>>,
        value: &Value,
        out: &mut Vec<u8>,
    ) -> Result<Written> {
        whole(value, out, |out| java_text(schema.map(|s| &**s), value, out))
    }
}

#[derive(Debug)]
pub struct SimpleHeaderConverter;

impl Converter for SimpleHeaderConverter {
    fn class(&self) -> &'static str {
        "org.apache.kafka.connect.storage.SimpleHeaderConverter"
    }
    fn convert(
        &mut self,
        _topic: &Arc<str>,
        schema: Option<&Arc<Schema>>,
        value: &Value,
        out: &mut Vec<u8>,
    ) -> Result<Written> {
        whole(value, out, |out| header_text(schema.map(|s| &**s), value, false, out))
    }
}

/// Null is null; a failure leaves nothing behind.
fn whole(value: &Value, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Outcome) -> Result<Written> {
    if value.is_null() {
        return Ok(Written::Null);
    }
    let start = out.len();
    match write(out) {
        Ok(()) => Ok(Written::Bytes),
        Err(fault) => {
            out.truncate(start);
            Err::<Written, Error>(fault.to_error())
        }
    }
}

/// Schema of the items of an array, the keys and values of a map.
fn parts(schema: Option<&Schema>) -> (Option<&Schema>, Option<&Schema>) {
    match schema.map(|s| &s.ty) {
        Some(Type::Array(items)) => (None, Some(items)),
        Some(Type::Map(keys, values)) => (Some(keys), Some(values)),
        _ => (None, None),
    }
}

fn fields<'a>(
    schema: Option<&'a Schema>,
    values: &'a [Value],
) -> Outcome<impl Iterator<Item = (&'a str, &'a Schema, &'a Value)>> {
    let schema = schema.ok_or_else(|| Fault::new("a struct without a schema has no field names"))?;
    if schema.fields().len() != values.len() {
        return Err(Fault::field_count(schema, values.len()));
    }
    Ok(schema.fields().iter().zip(values).map(|(field, value)| (&*field.name, &*field.schema, value)))
}

/// Numbers, booleans and text: the same in both forms. False if it is something else.
fn plain(value: &Value, out: &mut Vec<u8>) -> bool {
    let mut digits = itoa::Buffer::new();
    let digits = match value {
        Value::Bool(true) => "true",
        Value::Bool(false) => "false",
        Value::Int8(n) => digits.format(*n),
        Value::Int16(n) => digits.format(*n),
        Value::Int32(n) => digits.format(*n),
        Value::Int64(n) => digits.format(*n),
        Value::Float32(n) => {
            java_float(*n, ExponentSign::Bare, out);
            return true;
        }
        Value::Float64(n) => {
            java_double(*n, ExponentSign::Bare, out);
            return true;
        }
        Value::String(text) => {
            push_text(text, out);
            return true;
        }
        _ => return false,
    };
    out.extend_from_slice(digits.as_bytes());
    true
}

fn push_text(text: &Text, out: &mut Vec<u8>) {
    match text {
        Text::Lazy(document) => document.render(TextForm::Plain, out),
        known => out.extend_from_slice(known.as_str().as_bytes()),
    }
}

/// Decimal of a logical type; false if schema or value are something else.
fn decimal_text(schema: Option<&Schema>, value: &Value, out: &mut Vec<u8>) -> Outcome<bool> {
    let (Some(schema), Value::Bytes(bytes)) = (schema, value) else { return Ok(false) };
    if Logical::of(schema) != Some(Logical::Decimal) {
        return Ok(false);
    }
    decimal_scale(schema).and_then(|scale| decimal(bytes, scale, out)).map_err(Fault::new)?;
    Ok(true)
}

fn java_text(schema: Option<&Schema>, value: &Value, out: &mut Vec<u8>) -> Outcome {
    if decimal_text(schema, value, out)? {
        return Ok(());
    }
    match (schema.and_then(Logical::of), value) {
        (Some(Logical::Date), Value::Int32(days)) => calendar::java_day(i64::from(*days), out),
        (Some(Logical::Time), Value::Int32(millis)) => calendar::java_date(i64::from(*millis), out),
        (Some(Logical::Timestamp), Value::Int64(millis)) => calendar::java_date(*millis, out),
        (_, Value::Null) => out.extend_from_slice(b"null"),
        (_, Value::Bytes(bytes)) => push_base64(bytes, out),
        (_, Value::Array(values)) => {
            let (_, items) = parts(schema);
            out.push(b'[');
            for (at, value) in values.iter().enumerate() {
                if at > 0 {
                    out.extend_from_slice(b", ");
                }
                java_text(items, value, out)?;
            }
            out.push(b']');
        }
        (_, Value::Map(pairs)) => {
            let (keys, values) = parts(schema);
            out.push(b'{');
            for (at, (key, value)) in pairs.iter().enumerate() {
                if at > 0 {
                    out.extend_from_slice(b", ");
                }
                java_text(keys, key, out)?;
                out.push(b'=');
                java_text(values, value, out)?;
            }
            out.push(b'}');
        }
        (_, Value::Struct(values)) => {
            out.extend_from_slice(b"Struct{");
            let known = fields(schema, values)?.filter(|(_, _, value)| !value.is_null());
            for (at, (name, schema, value)) in known.enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(name.as_bytes());
                out.push(b'=');
                java_text(Some(schema), value, out).map_err(|fault| fault.inside(name))?;
            }
            out.push(b'}');
        }
        (_, value) => {
            plain(value, out);
        }
    }
    Ok(())
}

/// `embedded`: inside an array, map or struct, where text is quoted.
fn header_text(schema: Option<&Schema>, value: &Value, embedded: bool, out: &mut Vec<u8>) -> Outcome {
    if decimal_text(schema, value, out)? {
        return Ok(());
    }
    match (schema.and_then(Logical::of), value) {
        (Some(Logical::Date), Value::Int32(days)) => {
            calendar::header_date(i64::from(*days) * calendar::MILLIS_PER_DAY, out);
        }
        (Some(Logical::Time), Value::Int32(millis)) => calendar::header_date(i64::from(*millis), out),
        (Some(Logical::Timestamp), Value::Int64(millis)) => calendar::header_date(*millis, out),
        (_, Value::Null) => match schema.and_then(|s| s.default.as_ref()).filter(|default| !default.is_null()) {
            Some(default) => header_text(schema, default, embedded, out)?,
            None => out.extend_from_slice(b"null"),
        },
        (_, Value::String(text)) if embedded => {
            out.push(b'"');
            for byte in text.as_str().bytes() {
                if matches!(byte, b'"' | b'\\') {
                    out.push(b'\\');
                }
                out.push(byte);
            }
            out.push(b'"');
        }
        (_, Value::Bytes(bytes)) => {
            let quote: &[u8] = if embedded { b"\"" } else { b"" };
            out.extend_from_slice(quote);
            push_base64(bytes, out);
            out.extend_from_slice(quote);
        }
        (_, Value::Array(values)) => {
            let (_, items) = parts(schema);
            out.push(b'[');
            for (at, value) in values.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                header_text(items, value, true, out)?;
            }
            out.push(b']');
        }
        (_, Value::Map(pairs)) => {
            let (keys, values) = parts(schema);
            out.push(b'{');
            for (at, (key, value)) in pairs.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                header_text(keys, key, true, out)?;
                out.push(b':');
                header_text(values, value, true, out)?;
            }
            out.push(b'}');
        }
        (_, Value::Struct(values)) => {
            out.push(b'{');
            for (at, (name, schema, value)) in fields(schema, values)?.enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                header_text(None, &Value::text(name.to_owned()), true, out)?;
                out.push(b':');
                header_text(Some(schema), value, true, out).map_err(|fault| fault.inside(name))?;
            }
            out.push(b'}');
        }
        (_, value) => {
            plain(value, out);
        }
    }
    Ok(())
}
