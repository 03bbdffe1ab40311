//! `ExtractNewRecordState`: a change event becomes the row as it is after the change.
//!
//! The fields of the row come first, then `__deleted` if deletes are rewritten, then what `add.fields`
//! asks for. Truncations are dropped. A delete without the row as it was is rewritten to the fields of
//! its key.

use std::sync::Arc;

use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::added_fields::{Added, AddedFields, Found};
use super::cache::SchemaCache;
use super::change_event::{is_change_event, operation};
use super::delete_handling::{DELETE_MODE, DeleteHandling, OLD_DELETE_MODE, OLD_DROP_TOMBSTONES};
use super::dropped_fields::DroppedFields;
use super::fault::{invalid, missing};
use super::header_list::LongerLists;
use super::options::{ADD_FIELDS, ADD_FIELDS_PREFIX, ADD_HEADERS, ADD_HEADERS_PREFIX, REPLACE_NULL, option, table};
use super::options::{OLD_OPERATION_HEADER, OLD_SOURCE_FIELDS};
use super::{Fate, Made, Transform, broken, object, schemas};
use crate::error::Result;
use crate::record::{Datum, Field, Header, Record, Schema, Text, Type, Value};

const PURPOSE: &str = "extracting the row of a change event";
const DELETED: &str = "__deleted";

pub(super) static OPTIONS: OptionTable = table(
    "ExtractNewRecordState",
    &[
        DELETE_MODE,
        ADD_FIELDS,
        ADD_FIELDS_PREFIX,
        ADD_HEADERS,
        ADD_HEADERS_PREFIX,
        option(
            "route.by.field",
            OptionKind::String,
            Importance::Low,
            "Field of the row whose value becomes the topic. Unset, or without a value in a row: the topic stays.",
        )
        .default(""),
        option(
            "drop.fields.header.name",
            OptionKind::String,
            Importance::Low,
            "Header with a list of fields that are left out of the row.",
        ),
        option(
            "drop.fields.from.key",
            OptionKind::Boolean,
            Importance::Low,
            "Whether the fields that the header names are left out of the key as well.",
        )
        .default("false"),
        option(
            "drop.fields.keep.schema.compatible",
            OptionKind::Boolean,
            Importance::Low,
            "Whether only optional fields are left out.",
        )
        .default("true"),
        REPLACE_NULL,
        OLD_DROP_TOMBSTONES,
        OLD_DELETE_MODE,
        OLD_OPERATION_HEADER,
        OLD_SOURCE_FIELDS,
    ],
    &[AddedFields::check],
);

pub(super) struct ExtractNewRecordState {
    deletes: DeleteHandling,
    fields: AddedFields,
    headers: AddedFields,
    lists: LongerLists,
    route_by: Option<Box<str>>,
    dropped: Option<DroppedFields>,
    replace_null: bool,
    plans: SchemaCache<Option<Arc<Plan>>>,
    /// Of rows that are only known by their keys: by the schema of the key.
    keys: SchemaCache<Arc<Schema>>,
}

struct Plan {
    before: usize,
    after: usize,
    /// The row as the event has it.
    row: Arc<Schema>,
    /// The row with the fields that are added.
    grown: Arc<Schema>,
}

impl ExtractNewRecordState {
    pub(super) fn make(settings: &Settings) -> Made {
        let header = settings.text_or_empty("drop.fields.header.name").trim();
        let dropped = || {
            let (key, compatible) = ("drop.fields.from.key", "drop.fields.keep.schema.compatible");
            DroppedFields::new(header, settings.bool(key), settings.bool(compatible))
        };
        let route_by = settings.text_or_empty("route.by.field").trim();
        Ok(Box::new(Self {
            deletes: DeleteHandling::from_settings(settings),
            fields: AddedFields::fields(settings).map_err(broken)?,
            headers: AddedFields::headers(settings).map_err(broken)?,
            lists: LongerLists::default(),
            route_by: (!route_by.is_empty()).then(|| route_by.into()),
            dropped: (!header.is_empty()).then(dropped),
            replace_null: settings.bool("replace.null.with.default"),
            plans: SchemaCache::default(),
            keys: SchemaCache::default(),
        }))
    }
}

fn plan(schema: &Schema, rewrites: bool, added: &[Found]) -> Result<Option<Arc<Plan>>> {
    let (Some(before), Some(after)) = (schema.field_index("before"), schema.field_index("after")) else {
        return Ok(None);
    };
    let row = schema.fields()[after].schema.clone();
    if !matches!(row.ty, Type::Struct(_)) {
        return Err(invalid(format!(
            "Only Struct objects supported for [{PURPOSE}], found: {}; documents need a transform of their connector",
            crate::convert::fault::type_name(&row.ty)
        )));
    }
    let grown = grown(&row, row.fields().iter().cloned(), rewrites, added)?;
    Ok(Some(Arc::new(Plan { before, after, row, grown })))
}

fn grown(row: &Schema, own: impl Iterator<Item = Field>, rewrites: bool, added: &[Found]) -> Result<Arc<Schema>> {
    let deleted = rewrites.then(|| Field { name: DELETED.into(), schema: schemas::string(true) });
    let fields: Vec<Field> = own.chain(deleted).chain(added.iter().flatten().map(Added::field)).collect();
    object::distinct(fields.iter().map(|f| &*f.name))?;
    Ok(Arc::new(object::with_basics_of(row, Type::Struct(fields))))
}

impl ExtractNewRecordState {
    /// The topic that a row asks for.
    fn route(&self, record: &mut Record, row: &Schema, values: &[Value]) -> Result<()> {
        let Some(name) = &self.route_by else { return Ok(()) };
        let at = row.field_index(name).ok_or_else(|| missing(name))?;
        match values.get(at) {
            Some(Value::String(text)) if !text.as_str().trim().is_empty() => record.topic = text.as_str().into(),
            Some(Value::Null | Value::String(_)) => {}
            _ => return Err(invalid(format!("the topic is to be made of the field {name}, which is not a text"))),
        }
        Ok(())
    }

    /// The row that was deleted, or what its key says of it.
    fn deleted_row(
        &mut self,
        plan: &Plan,
        before: Value,
        key: &Datum,
        added: &[Found],
    ) -> Result<(Arc<Schema>, Vec<Value>)> {
        if let Value::Struct(values) = before {
            return Ok((plan.grown.clone(), values));
        }
        let none = Arc::new(Schema::record::<Arc<str>, Arc<Schema>>([]));
        let (key, values) = match (&key.schema, &key.value) {
            (Some(schema), Value::Struct(values)) => (schema, values.clone()),
            _ => (&none, Vec::new()),
        };
        let row = &plan.row;
        let schema = self.keys.get(key, |key| grown(row, key.fields().iter().cloned(), true, added))?;
        Ok((schema, values))
    }
}

impl Transform for ExtractNewRecordState {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        if record.value.value.is_null() {
            if !self.deletes.keeps_tombstones() {
                return Ok(Fate::Drop);
            }
            record.headers = self.lists.longer(&record.headers, self.headers.of_tombstone());
            return Ok(Fate::Keep);
        }
        let (Some(schema), true) = (record.value.schema.clone(), is_change_event(&record.value)) else {
            return Ok(Fate::Keep);
        };
        let values = object::fields(&schema, &mut record.value.value, PURPOSE)?;
        let added = self.fields.of(&schema, values)?;
        let rewrites = self.deletes.rewrites();
        let Some(plan) = self.plans.get(&schema, |schema| plan(schema, rewrites, &added))? else {
            return Ok(Fate::Keep);
        };
        if operation(&schema, values)? == 't' {
            return Ok(Fate::Drop);
        }
        let (before, after) = (values[plan.before].clone(), std::mem::take(&mut values[plan.after]));
        let deleted = after.is_null();
        if deleted && self.deletes == DeleteHandling::Drop {
            return Ok(Fate::Drop);
        }
        let headers = self.headers.of(&schema, values)?;
        let headers: Vec<Header> = headers.into_iter().flatten().map(|a| a.into_header()).collect();
        record.headers = self.lists.longer(&record.headers, headers);
        match if deleted { &before } else { &after } {
            Value::Struct(row) => self.route(record, &plan.row, row)?,
            Value::Null => {}
            other => return Err(super::fault::not_a_struct(other, PURPOSE)),
        }
        if deleted && !rewrites {
            let schema = (self.deletes == DeleteHandling::Tombstone).then(|| plan.row.clone());
            record.value = Datum { schema, value: Value::Null };
        } else {
            let (schema, mut row) = match after {
                Value::Struct(row) => (plan.grown.clone(), row),
                _ => self.deleted_row(&plan, before, &record.key, &added)?,
            };
            if rewrites {
                if self.replace_null {
                    object::fill_all(&schema, &mut row, true);
                }
                row.push(Value::String(Text::Static(if deleted { "true" } else { "false" })));
            }
            row.extend(added.into_iter().flatten().map(|a| a.value));
            record.value = Datum::new(schema, Value::Struct(row));
        }
        if let Some(dropped) = &mut self.dropped {
            dropped.drop_from(&record.headers, &mut record.key, &mut record.value)?;
        }
        Ok(Fate::Keep)
    }
}

#[cfg(test)]
#[path = "tests/extract_new_record_state.rs"]
mod tests;
