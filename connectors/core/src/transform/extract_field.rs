//! `ExtractField`: one field takes the place of the whole key or value.

use std::sync::Arc;

use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::cache::SchemaCache;
use super::fault::{invalid, not_a_struct};
use super::object;
use super::options::{FIELD_SYNTAX, REPLACE_NULL, option, table};
use super::path::FieldPath;
use super::side::Side;
use super::{Fate, Made, Transform, broken};
use crate::error::Result;
use crate::record::{Record, Schema, Type, Value};

const PURPOSE: &str = "field extraction";
const NESTED: &str = "nested field access";

pub(super) static OPTIONS: OptionTable = table(
    "ExtractField",
    &[
        option("field", OptionKind::String, Importance::Medium, "The field that stays.").required(),
        FIELD_SYNTAX,
        REPLACE_NULL,
    ],
    &[FieldPath::check],
);

pub(super) struct ExtractField {
    side: Side,
    path: FieldPath,
    replace_null: bool,
    found: SchemaCache<Arc<Found>>,
}

struct Found {
    /// Place and schema on each level, outermost first.
    steps: Vec<(usize, Arc<Schema>)>,
    schema: Arc<Schema>,
}

impl ExtractField {
    pub(super) fn make(side: Side, settings: &Settings) -> Made {
        let path = FieldPath::from_settings(settings).map_err(broken)?;
        let replace_null = settings.bool("replace.null.with.default");
        Ok(Box::new(Self { side, path, replace_null, found: SchemaCache::default() }))
    }
}

fn find(schema: &Arc<Schema>, path: &FieldPath) -> Result<Arc<Found>> {
    let mut steps = Vec::with_capacity(path.steps().len());
    let mut here = schema.clone();
    for name in path.steps() {
        let at = here.field_index(name).ok_or_else(|| invalid(format!("Unknown field: {path}")))?;
        here = here.fields()[at].schema.clone();
        steps.push((at, here.clone()));
    }
    Ok(Arc::new(Found { steps, schema: here }))
}

/// The value at the path; null if something on the way is null or is not there.
///
/// # Errors
/// Something on the way is neither a map nor null.
fn take_from_map(mut value: Value, path: &FieldPath) -> Result<Value> {
    for (level, name) in path.steps().iter().enumerate() {
        if value.is_null() {
            break;
        }
        let pairs = object::map(&mut value, if level == 0 { PURPOSE } else { NESTED })?;
        value = object::find_mut(pairs, name).map_or(Value::Null, std::mem::take);
    }
    Ok(value)
}

impl Transform for ExtractField {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        let datum = self.side.of_mut(record);
        let Some(schema) = &mut datum.schema else {
            datum.value = take_from_map(std::mem::take(&mut datum.value), &self.path)?;
            return Ok(Fate::Keep);
        };
        if !matches!(schema.ty, Type::Struct(_)) {
            return Err(not_a_struct(&datum.value, PURPOSE));
        }
        let path = &self.path;
        let found = self.found.get(schema, |schema| find(schema, path))?;
        let mut value = std::mem::take(&mut datum.value);
        let mut level = schema.clone();
        for (at, inner) in &found.steps {
            if value.is_null() {
                break;
            }
            let values = object::fields(&level, &mut value, PURPOSE)?;
            let mut taken = std::mem::take(&mut values[*at]);
            if self.replace_null {
                object::fill(inner, &mut taken);
            }
            value = taken;
            level.clone_from(inner);
        }
        datum.value = value;
        schema.clone_from(&found.schema);
        Ok(Fate::Keep)
    }
}

#[cfg(test)]
#[path = "tests/extract_field.rs"]
mod tests;
