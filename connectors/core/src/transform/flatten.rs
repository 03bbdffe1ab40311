//! `Flatten`: fields of nested structs, or maps without a schema, become fields of the first level.
//!
//! Arrays stay as they are. A map that has a schema has no fixed fields and is refused.

use std::sync::Arc;

use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::cache::SchemaCache;
use super::fault::{invalid, not_a_struct};
use super::object::{self, Pairs};
use super::options::{option, table};
use super::side::Side;
use super::{Fate, Made, Transform};
use crate::error::Result;
use crate::record::{Field, Record, Schema, Type, Value};

const PURPOSE: &str = "flattening";

pub(super) static OPTIONS: OptionTable = table(
    "Flatten",
    &[option(
        "delimiter",
        OptionKind::String,
        Importance::Medium,
        "What stands between the names of the levels in the name of a field.",
    )
    .default(".")],
    &[],
);

pub(super) struct Flatten {
    side: Side,
    delimiter: Box<str>,
    flat: SchemaCache<Arc<Schema>>,
}

impl Flatten {
    pub(super) fn make(side: Side, settings: &Settings) -> Made {
        let delimiter = settings.text_or_empty("delimiter").into();
        Ok(Box::new(Self { side, delimiter, flat: SchemaCache::default() }))
    }
}

/// `Flatten$Value` with this delimiter, for a transform that flattens what it has made.
pub fn flatten_value(delimiter: &str) -> Box<dyn Transform> {
    Box::new(Flatten { side: Side::Value, delimiter: delimiter.into(), flat: SchemaCache::default() })
}

fn flat(schema: &Schema, delimiter: &str) -> Result<Arc<Schema>> {
    let mut fields = Vec::new();
    push_fields(schema, delimiter, "", schema.optional, schema.default.as_ref(), &mut fields)?;
    object::distinct(fields.iter().map(|f: &Field| &*f.name))?;
    Ok(Arc::new(object::with_basics_of(schema, Type::Struct(fields))))
}

fn push_fields(
    schema: &Schema,
    delimiter: &str,
    prefix: &str,
    optional: bool,
    default: Option<&Value>,
    out: &mut Vec<Field>,
) -> Result<()> {
    let parent = match default {
        Some(Value::Struct(values)) => values.as_slice(),
        _ => &[],
    };
    for (at, field) in schema.fields().iter().enumerate() {
        let name = format!("{prefix}{}", field.name);
        let optional = optional || field.schema.optional;
        let own = field.schema.default.as_ref();
        let default = own.or_else(|| parent.get(at).filter(|value| !value.is_null()));
        match &field.schema.ty {
            Type::Struct(_) => {
                push_fields(&field.schema, delimiter, &format!("{name}{delimiter}"), optional, default, out)?;
            }
            Type::Map(..) => {
                let text =
                    format!("Flatten transformation does not support MAP for record with schemas (for field {name})");
                return Err(invalid(text));
            }
            _ if optional == field.schema.optional && default == own => {
                out.push(Field { name: name.into(), schema: field.schema.clone() });
            }
            _ => {
                let mut schema = Schema::clone(&field.schema);
                schema.optional = optional;
                schema.default = default.cloned();
                out.push(Field { name: name.into(), schema: Arc::new(schema) });
            }
        }
    }
    Ok(())
}

/// Moves the leaves of a struct, or nulls for those of a null.
fn push_values(schema: &Schema, value: &mut Value, out: &mut Vec<Value>) -> Result<()> {
    if value.is_null() {
        for field in schema.fields() {
            match field.schema.ty {
                Type::Struct(_) => push_values(&field.schema, &mut Value::Null, out)?,
                _ => out.push(Value::Null),
            }
        }
        return Ok(());
    }
    for (field, value) in schema.fields().iter().zip(object::fields(schema, value, PURPOSE)?) {
        object::fill(&field.schema, value);
        match field.schema.ty {
            Type::Struct(_) => push_values(&field.schema, value, out)?,
            _ => out.push(std::mem::take(value)),
        }
    }
    Ok(())
}

fn push_pairs(pairs: Pairs, delimiter: &str, prefix: &str, out: &mut Pairs) -> Result<()> {
    for (key, value) in pairs {
        let Value::String(name) = &key else {
            return Err(invalid("Flatten transformation needs texts as the keys of a map without a schema"));
        };
        match value {
            Value::Map(inner) => {
                push_pairs(inner, delimiter, &format!("{prefix}{}{delimiter}", name.as_str()), out)?;
            }
            Value::Struct(_) => {
                let text = "Flatten transformation does not support a struct for record without schemas";
                return Err(invalid(format!("{text} (for field {prefix}{})", name.as_str())));
            }
            value if prefix.is_empty() => out.push((key, value)),
            value => out.push((Value::text(format!("{prefix}{}", name.as_str())), value)),
        }
    }
    Ok(())
}

impl Transform for Flatten {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        let datum = self.side.of_mut(record);
        if datum.value.is_null() {
            return Ok(Fate::Keep);
        }
        let Some(schema) = &mut datum.schema else {
            let pairs = std::mem::take(object::map(&mut datum.value, PURPOSE)?);
            let mut out = Vec::with_capacity(pairs.len());
            push_pairs(pairs, &self.delimiter, "", &mut out)?;
            datum.value = Value::Map(out);
            return Ok(Fate::Keep);
        };
        if !matches!(schema.ty, Type::Struct(_)) {
            return Err(not_a_struct(&datum.value, PURPOSE));
        }
        let delimiter = &self.delimiter;
        let new = self.flat.get(schema, |schema| flat(schema, delimiter))?;
        let mut values = Vec::with_capacity(new.fields().len());
        push_values(schema, &mut datum.value, &mut values)?;
        datum.value = Value::Struct(values);
        *schema = new;
        Ok(Fate::Keep)
    }
}

#[cfg(test)]
#[path = "tests/flatten.rs"]
mod tests;
