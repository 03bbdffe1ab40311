//! `org.apache.kafka.connect.json.JsonConverter`: byte for byte what Kafka Connect writes.
//!
//! Schema text is spliced from a copy kept in the schema, the payload is written straight into the
//! message buffer; there is no tree in between. Two differences from text that a JDK before 19 wrote:
//! some doubles have one digit less. Duplicate keys of a map are all written.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use thalweg_config::Settings;

use super::escape::json_string;
use super::fault::{Fault, Outcome};
use super::json_schema::{members, schema_json};
use super::logical::{Logical, decimal_scale};
use super::number::{ExponentSign, decimal, java_double, java_float};
use super::{Converter, Written};
use crate::error::Result;
use crate::record::{Schema, Text, TextForm, Type, Value};

/// `decimal.format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecimalFormat {
    Base64,
    Numeric,
}

#[derive(Debug)]
pub struct JsonConverter {
    /// `schemas.enable`: wrap the payload together with its schema.
    pub schemas: bool,
    pub decimals: DecimalFormat,
    /// `replace.null.with.default`.
    pub default_for_null: bool,
}

impl JsonConverter {
    /// With Kafka Connect's defaults.
    pub const fn with_schemas() -> Self {
        Self { schemas: true, decimals: DecimalFormat::Base64, default_for_null: true }
    }

    pub(super) fn from_settings(settings: &Settings) -> Self {
        Self {
            schemas: settings.bool("schemas.enable"),
            decimals: if settings.text_or_empty("decimal.format") == "NUMERIC" {
                DecimalFormat::Numeric
            } else {
                DecimalFormat::Base64
            },
            default_for_null: settings.bool("replace.null.with.default"),
        }
    }

    fn write(&self, schema: Option<&Arc<Schema>>, value: &Value, out: &mut Vec<u8>) -> Outcome {
        if self.schemas {
            out.extend_from_slice(b"{\"schema\":");
            out.extend_from_slice(match schema {
                Some(schema) => schema_json(schema, self.decimals)?.as_bytes(),
                None => b"null",
            });
            out.extend_from_slice(b",\"payload\":");
        }
        let mut payload = Payload { out, decimals: self.decimals, default_for_null: self.default_for_null };
        match schema {
            Some(schema) => payload.value(schema, value)?,
            None => payload.free(value)?,
        }
        if self.schemas {
            out.push(b'}');
        }
        Ok(())
    }
}

impl Converter for JsonConverter {
    fn class(&self) -> &'static str {
        "org.apache.kafka.connect.json.JsonConverter"
    }

    /// Only a null without a schema is a Kafka null; an optional schema with a null is JSON `null`,
    /// wrapped or not.
    fn convert(
        &mut self,
        _topic: &Arc<str>,
        schema: Option<&Arc<Schema>>,
        value: &Value,
        out: &mut Vec<u8>,
    ) -> Result<Written> {
        if schema.is_none() && value.is_null() {
            return Ok(Written::Null);
        }
        let start = out.len();
        match self.write(schema, value, out) {
            Ok(()) => Ok(Written::Bytes),
            Err(fault) => {
                out.truncate(start);
                Err(fault.to_error())
            }
        }
    }
}

/// Writes values as JSON.
pub(super) struct Payload<'a> {
    pub(super) out: &'a mut Vec<u8>,
    pub(super) decimals: DecimalFormat,
    pub(super) default_for_null: bool,
}

impl Payload<'_> {
    /// A value of a schema.
    pub(super) fn value(&mut self, schema: &Schema, value: &Value) -> Outcome {
        match (&schema.ty, value) {
            (_, Value::Null) => return self.null(schema),
            (Type::Struct(_), Value::Struct(values)) => return self.record(schema, values),
            (Type::Bytes, Value::Bytes(bytes)) => {
                if self.decimals == DecimalFormat::Numeric && Logical::of(schema) == Some(Logical::Decimal) {
                    return decimal_scale(schema).and_then(|s| decimal(bytes, s, self.out)).map_err(Fault::new);
                }
                self.bytes(bytes);
            }
            (Type::Array(items), Value::Array(values)) => {
                for (at, value) in values.iter().enumerate() {
                    self.out.push(if at == 0 { b'[' } else { b',' });
                    self.value(items, value).map_err(|fault| fault.inside(format!("[{at}]")))?;
                }
                self.close(values.is_empty(), b"[]", b']');
            }
            (Type::Map(keys, values), Value::Map(pairs)) if keys.ty == Type::String => {
                for (at, (key, value)) in pairs.iter().enumerate() {
                    self.out.push(if at == 0 { b'{' } else { b',' });
                    let Value::String(key) = key else { return Err(Fault::mismatch(keys, key).inside("key")) };
                    self.text(key);
                    self.out.push(b':');
                    self.value(values, value).map_err(|fault| fault.inside("value"))?;
                }
                self.close(pairs.is_empty(), b"{}", b'}');
            }
            (Type::Map(keys, values), Value::Map(pairs)) => {
                for (at, (key, value)) in pairs.iter().enumerate() {
                    self.out.extend_from_slice(if at == 0 { b"[[" } else { b",[" });
                    self.value(keys, key).map_err(|fault| fault.inside("key"))?;
                    self.out.push(b',');
                    self.value(values, value).map_err(|fault| fault.inside("value"))?;
                    self.out.push(b']');
                }
                self.close(pairs.is_empty(), b"[]", b']');
            }
            (Type::Int8, Value::Int8(_))
            | (Type::Int16, Value::Int16(_))
            | (Type::Int32, Value::Int32(_))
            | (Type::Int64, Value::Int64(_))
            | (Type::Float32, Value::Float32(_))
            | (Type::Float64, Value::Float64(_))
            | (Type::Boolean, Value::Bool(_))
            | (Type::String, Value::String(_)) => self.scalar(value),
            _ => return Err(Fault::mismatch(schema, value)),
        }
        Ok(())
    }

    fn null(&mut self, schema: &Schema) -> Outcome {
        if self.default_for_null
            && let Some(default) = schema.default.as_ref().filter(|value| !value.is_null())
        {
            return self.value(schema, default);
        }
        if !schema.optional {
            return Err(Fault::null());
        }
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    /// Every field in schema order, nulls included.
    fn record(&mut self, schema: &Schema, values: &[Value]) -> Outcome {
        let fields = schema.fields();
        if fields.len() != values.len() {
            return Err(Fault::field_count(schema, values.len()));
        }
        for ((field, member), value) in fields.iter().zip(members(schema)).zip(values) {
            self.out.extend_from_slice(member.as_bytes());
            self.value(&field.schema, value).map_err(|fault| fault.inside(&*field.name))?;
        }
        self.close(fields.is_empty(), b"{}", b'}');
        Ok(())
    }

    /// A value without a schema, by its own type.
    fn free(&mut self, value: &Value) -> Outcome {
        match value {
            Value::Null => self.out.extend_from_slice(b"null"),
            Value::Bytes(bytes) => self.bytes(bytes),
            Value::Array(values) => {
                for (at, value) in values.iter().enumerate() {
                    self.out.push(if at == 0 { b'[' } else { b',' });
                    self.free(value)?;
                }
                self.close(values.is_empty(), b"[]", b']');
            }
            // An object if every key is a string, else pairs.
            Value::Map(pairs) if pairs.iter().all(|(key, _)| matches!(key, Value::String(_))) => {
                for (at, (key, value)) in pairs.iter().enumerate() {
                    self.out.push(if at == 0 { b'{' } else { b',' });
                    self.free(key)?;
                    self.out.push(b':');
                    self.free(value)?;
                }
                self.close(pairs.is_empty(), b"{}", b'}');
            }
            Value::Map(pairs) => {
                for (at, (key, value)) in pairs.iter().enumerate() {
                    self.out.extend_from_slice(if at == 0 { b"[[" } else { b",[" });
                    self.free(key)?;
                    self.out.push(b',');
                    self.free(value)?;
                    self.out.push(b']');
                }
                self.out.push(b']');
            }
            Value::Struct(_) => return Err(Fault::new("a struct without a schema has no field names")),
            scalar => self.scalar(scalar),
        }
        Ok(())
    }

    fn scalar(&mut self, value: &Value) {
        match value {
            Value::Bool(true) => self.out.extend_from_slice(b"true"),
            Value::Bool(false) => self.out.extend_from_slice(b"false"),
            Value::Int8(n) => self.integer(*n),
            Value::Int16(n) => self.integer(*n),
            Value::Int32(n) => self.integer(*n),
            Value::Int64(n) => self.integer(*n),
            Value::Float32(n) if n.is_finite() => java_float(*n, ExponentSign::Bare, self.out),
            Value::Float64(n) if n.is_finite() => java_double(*n, ExponentSign::Bare, self.out),
            // JSON has no such numbers: they become strings.
            Value::Float32(n) => self.word(f64::from(*n)),
            Value::Float64(n) => self.word(*n),
            Value::String(text) => self.text(text),
            _ => {}
        }
    }

    fn integer(&mut self, n: impl itoa::Integer) {
        self.out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
    }

    fn word(&mut self, n: f64) {
        self.out.push(b'"');
        java_double(n, ExponentSign::Bare, self.out);
        self.out.push(b'"');
    }

    fn text(&mut self, text: &Text) {
        match text {
            Text::Static(text) => json_string(text, self.out),
            Text::Shared(text) => json_string(text, self.out),
            Text::Owned(text) => json_string(text, self.out),
            Text::Lazy(document) => {
                self.out.push(b'"');
                document.render(TextForm::JsonEscaped, self.out);
                self.out.push(b'"');
            }
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.out.push(b'"');
        push_base64(bytes, self.out);
        self.out.push(b'"');
    }

    fn close(&mut self, empty: bool, both: &[u8], end: u8) {
        if empty {
            self.out.extend_from_slice(both);
        } else {
            self.out.push(end);
        }
    }
}

/// Standard alphabet with padding, no line breaks.
pub(super) fn push_base64(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    // Base64 of what fits in memory fits in usize on 64-bit machines.
    let length = base64::encoded_len(bytes.len(), true).unwrap_or(0);
    out.resize(start + length, 0);
    let written = STANDARD.encode_slice(bytes, &mut out[start..]).unwrap_or(0);
    out.truncate(start + written);
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
