//! `MaskField`: hides the contents of fields behind a zero value, or behind a given one.
//!
//! The schema stays. Nothing but a field's own kind of value can take its place, so structs and bytes
//! cannot be masked.

use std::sync::Arc;

use bytes::Bytes;
use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::cache::SchemaCache;
use super::decimal;
use super::fault::{in_field, invalid};
use super::object;
use super::options::{REPLACE_NULL, not_empty, option, some_distinct_items, table};
use super::side::Side;
use super::{Fate, Made, Transform};
use crate::convert::fault::kind_name;
use crate::convert::logical::{Logical, decimal_scale};
use crate::error::Result;
use crate::record::{Record, Schema, Text, Value};

const PURPOSE: &str = "mask fields";

pub(super) static OPTIONS: OptionTable = table(
    "MaskField",
    &[
        option("fields", OptionKind::List, Importance::High, "Fields to mask.")
            .required()
            .check(some_distinct_items)
            .whole_texts(),
        option(
            "replacement",
            OptionKind::String,
            Importance::Low,
            "Text or number that takes the place of the contents. Unset: the zero of the field's type.",
        )
        .check(not_empty),
        REPLACE_NULL,
    ],
    &[],
);

pub(super) struct MaskField {
    side: Side,
    fields: Vec<Arc<str>>,
    replacement: Option<Arc<str>>,
    replace_null: bool,
    /// Places of the fields that a schema has.
    places: SchemaCache<Arc<[usize]>>,
}

impl MaskField {
    pub(super) fn make(side: Side, settings: &Settings) -> Made {
        Ok(Box::new(Self {
            side,
            fields: settings.list("fields").iter().map(|name| name.as_str().into()).collect(),
            replacement: settings.text("replacement").map(Arc::from),
            replace_null: settings.bool("replace.null.with.default"),
            places: SchemaCache::default(),
        }))
    }
}

fn zero(schema: Option<&Schema>, value: &Value) -> Result<Value> {
    Ok(match value {
        Value::Null => Value::Null,
        Value::Bool(_) => Value::Bool(false),
        Value::Int8(_) => Value::Int8(0),
        Value::Int16(_) => Value::Int16(0),
        Value::Int32(_) => Value::Int32(0),
        Value::Int64(_) => Value::Int64(0),
        Value::Float32(_) => Value::Float32(0.0),
        Value::Float64(_) => Value::Float64(0.0),
        Value::String(_) => Value::text(""),
        Value::Bytes(_) if schema.and_then(Logical::of) == Some(Logical::Decimal) => {
            Value::Bytes(Bytes::from_static(&[0]))
        }
        Value::Array(_) => Value::Array(Vec::new()),
        Value::Map(_) => Value::Map(Vec::new()),
        Value::Bytes(_) | Value::Struct(_) => {
            return Err(invalid(format!("Cannot mask value of type: {}", kind_name(value))));
        }
    })
}

fn replaced(schema: Option<&Schema>, value: &Value, text: &Arc<str>) -> Result<Value> {
    let logical = schema.and_then(Logical::of);
    let long = || decimal::parse(text).map(|(number, scale)| decimal::low_bits(number, scale));
    let masked = match (logical, value) {
        (_, Value::Null) => Some(Value::Null),
        (Some(Logical::Decimal), Value::Bytes(_)) => {
            let scale = schema.map_or(Ok(0), decimal_scale).map_err(invalid)?;
            decimal::unscaled(text, scale).map(Value::Bytes)
        }
        // As Connect reads it: any decimal, of which an integer keeps the low bits of the whole part.
        (None, Value::Int8(_)) => long().map(|n| Value::Int8(n as i8)),
        (None, Value::Int16(_)) => long().map(|n| Value::Int16(n as i16)),
        (None, Value::Int32(_)) => long().map(|n| Value::Int32(n as i32)),
        (None, Value::Int64(_)) => long().map(Value::Int64),
        (None, Value::Float32(_)) => decimal::double(text).map(|n| Value::Float32(n as f32)),
        (None, Value::Float64(_)) => decimal::double(text).map(Value::Float64),
        (None, Value::String(_)) => Some(Value::String(Text::Shared(text.clone()))),
        (_, other) => {
            let kind = kind_name(other);
            return Err(invalid(format!("Cannot mask value of type {kind} with a custom replacement")));
        }
    };
    masked.ok_or_else(|| invalid(format!("Unable to convert {text} to {}", kind_name(value))))
}

impl Transform for MaskField {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        let replacement = self.replacement.as_ref();
        let mask = |name: &str, schema: Option<&Schema>, value: &mut Value| -> Result<()> {
            let masked = match replacement {
                Some(text) => replaced(schema, value, text),
                None => zero(schema, value),
            };
            *value = masked.map_err(in_field(name))?;
            Ok(())
        };
        let datum = self.side.of_mut(record);
        let Some(schema) = &datum.schema else {
            let pairs = object::map(&mut datum.value, PURPOSE)?;
            for name in &self.fields {
                match object::find_mut(pairs, name) {
                    Some(value) => mask(name, None, value)?,
                    None => object::put(pairs, name, Value::Null),
                }
            }
            return Ok(Fate::Keep);
        };
        let values = object::fields(schema, &mut datum.value, PURPOSE)?;
        let names = &self.fields;
        let places =
            self.places.get(schema, |schema| Ok(names.iter().filter_map(|name| schema.field_index(name)).collect()))?;
        object::fill_all(schema, values, self.replace_null);
        for at in places.iter() {
            let field = &schema.fields()[*at];
            mask(&field.name, Some(&field.schema), &mut values[*at])?;
        }
        Ok(Fate::Keep)
    }
}

#[cfg(test)]
#[path = "tests/mask_field.rs"]
mod tests;
