//! Rows and documents as JSON objects without schemas.
//!
//! Types keep the form that the connector's options give them; a decimal, whose bytes mean nothing
//! without a schema, becomes a text with all its digits. A column that the change does not have (the
//! connector says so with its placeholder) is left out: it is not null.

use super::envelope::Fields;
use super::{Members, json_tree, name, odd};
use crate::convert::logical::{Logical, decimal_scale};
use crate::convert::number::decimal;
use crate::error::Result;
use crate::record::{Schema, Type, Value};

const VARIABLE_DECIMAL: &str = "io.debezium.data.VariableScaleDecimal";

/// A row, or a document as text.
pub(super) fn image(schema: &Schema, value: &Value, placeholder: &str) -> Result<Value> {
    match (&schema.ty, value) {
        (Type::String, Value::String(text)) => document(&text.as_str()),
        (Type::Struct(_), _) => match Fields::of(schema, value) {
            Some(fields) => columns(&fields, Some(placeholder)).map(Value::Map),
            None => odd("thalweg.format=repstance: a row does not have the fields of its schema"),
        },
        _ => odd("thalweg.format=repstance: a row is neither a struct nor a JSON text"),
    }
}

/// A JSON text as a value.
pub(super) fn document(text: &str) -> Result<Value> {
    match json_tree::parse(text) {
        Ok(value) => Ok(value),
        Err(fault) => odd(format!("thalweg.format=repstance: a document cannot be read as JSON: {fault}")),
    }
}

/// Every column with its name.
pub(super) fn columns(fields: &Fields<'_>, placeholder: Option<&str>) -> Result<Members> {
    let mut members = Members::new();
    for (column, schema, value) in fields.each() {
        if placeholder.is_some_and(|text| is_placeholder(value, text)) {
            continue;
        }
        members.push((name(column.clone()), free(schema, value)?));
    }
    Ok(members)
}

fn is_placeholder(value: &Value, placeholder: &str) -> bool {
    match value {
        Value::String(text) => text.as_str() == placeholder,
        Value::Bytes(bytes) => bytes == placeholder.as_bytes(),
        _ => false,
    }
}

/// The same value without its schema.
pub(super) fn free(schema: &Schema, value: &Value) -> Result<Value> {
    Ok(match (&schema.ty, value) {
        (Type::Bytes, Value::Bytes(bytes)) if Logical::of(schema) == Some(Logical::Decimal) => {
            decimal_text(bytes, decimal_scale(schema))?
        }
        (Type::Struct(_), Value::Struct(_)) => {
            let Some(fields) = Fields::of(schema, value) else {
                return odd("thalweg.format=repstance: a struct does not have the fields of its schema");
            };
            match (fields.get("scale"), fields.get("value")) {
                (Some((_, Value::Int32(scale))), Some((_, Value::Bytes(bytes))))
                    if schema.name.as_deref() == Some(VARIABLE_DECIMAL) =>
                {
                    decimal_text(bytes, Ok(*scale))?
                }
                _ => Value::Map(columns(&fields, None)?),
            }
        }
        (Type::Array(items), Value::Array(values)) => {
            Value::Array(values.iter().map(|value| free(items, value)).collect::<Result<_>>()?)
        }
        (Type::Map(keys, values), Value::Map(pairs)) => {
            let pair = |(key, value): &(Value, Value)| Ok((free(keys, key)?, free(values, value)?));
            Value::Map(pairs.iter().map(pair).collect::<Result<_>>()?)
        }
        _ => value.clone(),
    })
}

fn decimal_text(unscaled: &[u8], scale: Result<i32, String>) -> Result<Value> {
    let mut digits = Vec::new();
    match scale.and_then(|scale| decimal(unscaled, scale, &mut digits)) {
        Ok(()) => Ok(Value::text(String::from_utf8_lossy(&digits).into_owned())),
        Err(fault) => odd(format!("thalweg.format=repstance: {fault}")),
    }
}
