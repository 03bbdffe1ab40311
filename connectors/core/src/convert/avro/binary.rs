//! Values in Avro's binary form, straight into the message.
//!
//! Follows the Connect schema; `schema` describes the same. On a fault what was appended is the
//! caller's to cut off.

use super::super::fault::{Fault, Outcome};
use super::{default_of, has_text_keys};
use crate::record::{Schema, Text, TextForm, Type, Value};

/// Writes values of schemas.
pub(super) struct Writer<'a> {
    pub(super) out: &'a mut Vec<u8>,
    /// `ignore.default.for.nullables`: a null stays one where it may be one.
    pub(super) keep_nulls: bool,
}

/// What a value is written as: itself, its schema's default in place of a null, or `None` for a null.
pub(super) fn effective<'a>(schema: &'a Schema, value: &'a Value, keep_nulls: bool) -> Outcome<Option<&'a Value>> {
    if !value.is_null() {
        return Ok(Some(value));
    }
    match default_of(schema) {
        Some(_) if keep_nulls && schema.optional => Ok(None),
        Some(default) => Ok(Some(default)),
        None if schema.optional => Ok(None),
        None => Err(Fault::null()),
    }
}

impl Writer<'_> {
    pub(super) fn value(&mut self, schema: &Schema, value: &Value) -> Outcome {
        let value = effective(schema, value, self.keep_nulls)?;
        if schema.optional {
            // A union whose first branch is the null, or the value if that has a default.
            let null = i64::from(default_of(schema).is_some());
            self.long(if value.is_none() { null } else { 1 - null });
        }
        match value {
            Some(value) => self.base(schema, value),
            None => Ok(()),
        }
    }

    fn base(&mut self, schema: &Schema, value: &Value) -> Outcome {
        match (&schema.ty, value) {
            (Type::Int8, Value::Int8(n)) => self.long((*n).into()),
            (Type::Int16, Value::Int16(n)) => self.long((*n).into()),
            (Type::Int32, Value::Int32(n)) => self.long((*n).into()),
            (Type::Int64, Value::Int64(n)) => self.long(*n),
            (Type::Float32, Value::Float32(n)) => self.out.extend_from_slice(&n.to_le_bytes()),
            (Type::Float64, Value::Float64(n)) => self.out.extend_from_slice(&n.to_le_bytes()),
            (Type::Boolean, Value::Bool(b)) => self.out.push(u8::from(*b)),
            (Type::String, Value::String(text)) => self.text(text),
            (Type::Bytes, Value::Bytes(bytes)) => self.bytes(bytes),
            (Type::Array(items), Value::Array(values)) => {
                self.count(values.len());
                for value in values {
                    self.value(items, value)?;
                }
                self.end(values.len());
            }
            // Either as Avro's map or as an array of records: the bytes are the same.
            (Type::Map(keys, values), Value::Map(pairs)) => {
                self.count(pairs.len());
                for (key, value) in pairs {
                    if has_text_keys(keys) && key.is_null() {
                        return Err(Fault::null().inside("key"));
                    }
                    self.value(keys, key).map_err(|fault| fault.inside("key"))?;
                    self.value(values, value).map_err(|fault| fault.inside("value"))?;
                }
                self.end(pairs.len());
            }
            (Type::Struct(fields), Value::Struct(values)) => {
                if fields.len() != values.len() {
                    return Err(Fault::field_count(schema, values.len()));
                }
                for (field, value) in fields.iter().zip(values) {
                    self.value(&field.schema, value).map_err(|fault| fault.inside(&*field.name))?;
                }
            }
            _ => return Err(Fault::mismatch(schema, value)),
        }
        Ok(())
    }

    fn text(&mut self, text: &Text) {
        match text {
            Text::Static(text) => self.bytes(text.as_bytes()),
            Text::Shared(text) => self.bytes(text.as_bytes()),
            Text::Owned(text) => self.bytes(text.as_bytes()),
            // Its length is known only behind it, and belongs before it.
            Text::Lazy(document) => {
                let start = self.out.len();
                document.render(TextForm::Plain, self.out);
                let end = self.out.len();
                self.count(end - start);
                let prefix = self.out.len() - end;
                if let Some(part) = self.out.get_mut(start..) {
                    part.rotate_right(prefix);
                }
            }
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.out.extend_from_slice(bytes);
    }

    fn count(&mut self, count: usize) {
        // What lies in memory has fewer than 2^63 parts.
        self.long(count as i64);
    }

    /// Behind the only block of items; none at all is just the end.
    fn end(&mut self, items: usize) {
        if items > 0 {
            self.out.push(0);
        }
    }

    /// Seven bits a byte, the lowest first, the sign in the lowest bit.
    fn long(&mut self, n: i64) {
        let mut rest = ((n << 1) ^ (n >> 63)) as u64;
        while rest >= 0x80 {
            self.out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.out.push(rest as u8);
    }
}

#[cfg(test)]
#[path = "binary_tests.rs"]
mod tests;
