//! Access to what has named parts: structs with their schema, and maps without one.
//!
//! Parts are moved, not copied. A text that is rendered on demand stays as it is.

use std::sync::Arc;

use super::fault::{invalid, not_a_map, not_a_struct};
use crate::error::Result;
use crate::record::{Schema, Text, Type, Value};

pub(super) type Pairs = Vec<(Value, Value)>;

/// The pairs of a map without a schema.
pub(super) fn map<'a>(value: &'a mut Value, purpose: &str) -> Result<&'a mut Pairs> {
    match value {
        Value::Map(pairs) => Ok(pairs),
        other => Err(not_a_map(other, purpose)),
    }
}

/// The values of a struct, one per field of its schema.
pub(super) fn fields<'a>(schema: &Schema, value: &'a mut Value, purpose: &str) -> Result<&'a mut Vec<Value>> {
    let expected = match schema.ty {
        Type::Struct(ref fields) => fields.len(),
        _ => return Err(not_a_struct(value, purpose)),
    };
    match value {
        Value::Struct(values) if values.len() != expected => {
            let text = format!("Mismatching schema: the struct has {expected} fields, the value {}", values.len());
            Err(invalid(text))
        }
        Value::Struct(values) => Ok(values),
        other => Err(not_a_struct(other, purpose)),
    }
}

/// Whether a map's key is this name.
pub(super) fn is_named(key: &Value, name: &str) -> bool {
    matches!(key, Value::String(text) if text.as_str() == name)
}

pub(super) fn find<'a>(pairs: &'a Pairs, name: &str) -> Option<&'a Value> {
    pairs.iter().find(|(key, _)| is_named(key, name)).map(|(_, value)| value)
}

pub(super) fn find_mut<'a>(pairs: &'a mut Pairs, name: &str) -> Option<&'a mut Value> {
    pairs.iter_mut().find(|(key, _)| is_named(key, name)).map(|(_, value)| value)
}

/// Sets an entry: in its place if there is one, else behind the others.
pub(super) fn put(pairs: &mut Pairs, name: &Arc<str>, value: Value) {
    match find_mut(pairs, name) {
        Some(present) => *present = value,
        None => pairs.push((Value::String(Text::Shared(name.clone())), value)),
    }
}

/// The default of the schema in place of a null.
pub(super) fn fill(schema: &Schema, value: &mut Value) {
    if value.is_null()
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
}

/// [`fill`] for every field, if `replace.null.with.default` says so.
pub(super) fn fill_all(schema: &Schema, values: &mut [Value], wanted: bool) {
    if wanted {
        for (field, value) in schema.fields().iter().zip(values) {
            fill(&field.schema, value);
        }
    }
}

/// A schema of another shape with name, version, documentation and parameters of `source`; neither its
/// default nor whether it is optional.
pub(super) fn with_basics_of(source: &Schema, ty: Type) -> Schema {
    let mut schema = Schema::new(ty);
    schema.name.clone_from(&source.name);
    schema.version = source.version;
    schema.doc.clone_from(&source.doc);
    schema.parameters.clone_from(&source.parameters);
    schema
}

/// # Errors
/// Two fields of one name.
pub(super) fn distinct<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Result<()> {
    for (at, name) in names.clone().enumerate() {
        if names.clone().take(at).any(|earlier| earlier == name) {
            return Err(invalid(format!("Cannot create field because of field name duplication {name}")));
        }
    }
    Ok(())
}
