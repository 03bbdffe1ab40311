//! Change events as Debezium's transforms know them: values whose schema is called `….Envelope`. All
//! other records (heartbeats, transactions, schema changes, tombstones) are none.

use std::sync::Arc;

use super::fault::invalid;
use crate::error::Result;
use crate::record::{Datum, Schema, Value};

const SUFFIX: &str = ".Envelope";

/// Name of the collection's schemas: that of the envelope without its suffix.
pub fn base_name(schema: &Schema) -> Option<&str> {
    schema.name.as_deref().and_then(|name| name.strip_suffix(SUFFIX))
}

pub fn is_change_event(value: &Datum) -> bool {
    matches!(value.value, Value::Struct(_)) && value.schema.as_deref().and_then(base_name).is_some()
}

/// A field of a struct with its schema; `None` if the schema has none of this name.
pub fn field<'a>(schema: &'a Schema, values: &'a [Value], name: &str) -> Option<(&'a Arc<Schema>, &'a Value)> {
    let at = schema.field_index(name)?;
    Some((&schema.fields()[at].schema, values.get(at)?))
}

/// The letter in `op`.
///
/// # Errors
/// There is none.
pub fn operation(schema: &Schema, values: &[Value]) -> Result<char> {
    match field(schema, values, "op") {
        Some((_, Value::String(text))) => text.as_str().chars().next(),
        _ => None,
    }
    .ok_or_else(|| invalid("the change event has no operation in its field op"))
}

/// When the connector made the event, in milliseconds (`ts_ms`).
pub fn processed_ms(schema: &Schema, values: &[Value]) -> Option<i64> {
    match field(schema, values, "ts_ms") {
        Some((_, Value::Int64(ms))) => Some(*ms),
        _ => None,
    }
}
