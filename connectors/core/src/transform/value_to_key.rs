//! `ValueToKey`: the key becomes a struct, or a map, of fields of the value.

use std::sync::Arc;

use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::cache::SchemaCache;
use super::fault::missing;
use super::object;
use super::options::{REPLACE_NULL, option, some_distinct_items, table};
use super::{Fate, Made, Transform};
use crate::error::Result;
use crate::record::{Datum, Field, Record, Schema, Text, Type, Value};

const PURPOSE: &str = "copying fields from value to key";

pub(super) static OPTIONS: OptionTable = table(
    "ValueToKey",
    &[
        option("fields", OptionKind::List, Importance::High, "Fields of the value that make the key, in order.")
            .required()
            .check(some_distinct_items)
            .whole_texts(),
        REPLACE_NULL,
    ],
    &[],
);

pub(super) struct ValueToKey {
    fields: Vec<Arc<str>>,
    replace_null: bool,
    plans: SchemaCache<Arc<Plan>>,
}

struct Plan {
    schema: Arc<Schema>,
    /// Places of the fields in the value.
    places: Vec<usize>,
}

impl ValueToKey {
    pub(super) fn make(settings: &Settings) -> Made {
        Ok(Box::new(Self {
            fields: settings.list("fields").iter().map(|name| name.as_str().into()).collect(),
            replace_null: settings.bool("replace.null.with.default"),
            plans: SchemaCache::default(),
        }))
    }
}

fn plan(schema: &Schema, names: &[Arc<str>]) -> Result<Arc<Plan>> {
    let mut fields = Vec::with_capacity(names.len());
    let mut places = Vec::with_capacity(names.len());
    for name in names {
        let at = schema.field_index(name).ok_or_else(|| missing(name))?;
        fields.push(Field { name: name.clone(), schema: schema.fields()[at].schema.clone() });
        places.push(at);
    }
    object::distinct(fields.iter().map(|f| &*f.name))?;
    Ok(Arc::new(Plan { schema: Arc::new(Schema::new(Type::Struct(fields))), places }))
}

impl Transform for ValueToKey {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        let Some(schema) = &record.value.schema else {
            let pairs = object::map(&mut record.value.value, PURPOSE)?;
            let entry = |name: &Arc<str>| {
                let value = object::find(pairs, name).cloned().unwrap_or(Value::Null);
                (Value::String(Text::Shared(name.clone())), value)
            };
            record.key = Datum { schema: None, value: Value::Map(self.fields.iter().map(entry).collect()) };
            return Ok(Fate::Keep);
        };
        let values = object::fields(schema, &mut record.value.value, PURPOSE)?;
        let names = &self.fields;
        let plan = self.plans.get(schema, |schema| plan(schema, names))?;
        let mut key: Vec<Value> = plan.places.iter().map(|at| values[*at].clone()).collect();
        object::fill_all(&plan.schema, &mut key, self.replace_null);
        record.key = Datum::new(plan.schema.clone(), Value::Struct(key));
        Ok(Fate::Keep)
    }
}

#[cfg(test)]
#[path = "tests/value_to_key.rs"]
mod tests;
