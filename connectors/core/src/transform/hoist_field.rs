//! `HoistField`: the whole key or value becomes the one field of a struct, or of a map.

use std::sync::Arc;

use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::cache::SchemaCache;
use super::options::{option, table};
use super::side::Side;
use super::{Fate, Made, Transform};
use crate::error::Result;
use crate::record::{Field, Record, Schema, Text, Type, Value};

pub(super) static OPTIONS: OptionTable = table(
    "HoistField",
    &[option("field", OptionKind::String, Importance::Medium, "Name of the field.").required()],
    &[],
);

pub(super) struct HoistField {
    side: Side,
    field: Arc<str>,
    wrapped: SchemaCache<Arc<Schema>>,
}

impl HoistField {
    pub(super) fn make(side: Side, settings: &Settings) -> Made {
        Ok(Box::new(Self { side, field: settings.text_or_empty("field").into(), wrapped: SchemaCache::default() }))
    }
}

impl Transform for HoistField {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        let datum = self.side.of_mut(record);
        let value = std::mem::take(&mut datum.value);
        let name = &self.field;
        datum.value = match &mut datum.schema {
            None => Value::Map(vec![(Value::String(Text::Shared(name.clone())), value)]),
            Some(schema) => {
                *schema = self.wrapped.get(schema, |schema| {
                    let field = Field { name: name.clone(), schema: schema.clone() };
                    Ok(Arc::new(Schema::new(Type::Struct(vec![field]))))
                })?;
                Value::Struct(vec![value])
            }
        };
        Ok(Fate::Keep)
    }
}

#[cfg(test)]
#[path = "tests/hoist_field.rs"]
mod tests;
