//! `SetSchemaMetadata`: another name or version of the schema.

use std::sync::Arc;

use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::cache::SchemaCache;
use super::fault::invalid;
use super::object;
use super::options::{REPLACE_NULL, option, table};
use super::side::Side;
use super::{Fate, Made, Transform};
use crate::error::Result;
use crate::record::{Record, Schema, Value};

pub(super) static OPTIONS: OptionTable = table(
    "SetSchemaMetadata",
    &[
        option("schema.name", OptionKind::String, Importance::High, "New name of the schema. Unset: as it is."),
        option("schema.version", OptionKind::Int, Importance::High, "New version of the schema. Unset: as it is."),
        REPLACE_NULL,
    ],
    &[|settings| {
        let any = settings.is_set("schema.name") || settings.is_set("schema.version");
        let text = || ("schema.name", "Neither schema name nor version configured".to_owned());
        (!any).then(text).into_iter().collect()
    }],
);

pub(super) struct SetSchemaMetadata {
    side: Side,
    name: Option<Arc<str>>,
    version: Option<i32>,
    replace_null: bool,
    changed: SchemaCache<Arc<Schema>>,
}

impl SetSchemaMetadata {
    pub(super) fn make(side: Side, settings: &Settings) -> Made {
        Ok(Box::new(Self {
            side,
            name: settings.text("schema.name").map(Arc::from),
            version: settings.opt_int("schema.version").and_then(|n| i32::try_from(n).ok()),
            replace_null: settings.bool("replace.null.with.default"),
            changed: SchemaCache::default(),
        }))
    }
}

impl Transform for SetSchemaMetadata {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        let datum = self.side.of_mut(record);
        if datum.is_none() {
            return Ok(Fate::Keep);
        }
        let Some(schema) = &mut datum.schema else {
            return Err(invalid("Schema required for [updating schema metadata]"));
        };
        if let Value::Struct(values) = &mut datum.value {
            object::fill_all(schema, values, self.replace_null);
        }
        let (name, version) = (&self.name, self.version);
        *schema = self.changed.get(schema, |schema| {
            let mut new = Schema::clone(schema);
            new.name = name.clone().or(new.name);
            new.version = version.or(new.version);
            Ok(Arc::new(new))
        })?;
        Ok(Fate::Keep)
    }
}

#[cfg(test)]
#[path = "tests/schema_metadata.rs"]
mod tests;
