//! A change as a connector made it: fields of Debezium's envelope, by name.

use std::sync::Arc;

use super::{Members, name, odd, row};
use crate::error::Result;
use crate::record::{Datum, Record, Schema, Type, Value};

/// Old key of a row, on the create that follows a change of its key.
pub(super) const OLD_KEY: &str = "__debezium.oldkey";
/// New key of a row, on the delete that comes before.
pub(super) const NEW_KEY: &str = "__debezium.newkey";

/// A struct with the fields of its schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    schema: &'a Schema,
    values: &'a [Value],
}

impl<'a> Fields<'a> {
    pub(super) fn of(schema: &'a Schema, value: &'a Value) -> Option<Self> {
        match value {
            Value::Struct(values) if values.len() == schema.fields().len() => Some(Self { schema, values }),
            _ => None,
        }
    }
    /// The field, unless it is null.
    pub(super) fn get(&self, field: &str) -> Option<(&'a Arc<Schema>, &'a Value)> {
        let at = self.schema.field_index(field)?;
        let value = self.values.get(at).filter(|value| !value.is_null())?;
        Some((&self.schema.fields()[at].schema, value))
    }
    pub(super) fn text(&self, field: &str) -> Option<String> {
        match self.get(field)?.1 {
            Value::String(text) => Some(text.as_str().into_owned()),
            _ => None,
        }
    }
    pub(super) fn record(&self, field: &str) -> Option<Self> {
        let (schema, value) = self.get(field)?;
        Self::of(schema, value)
    }
    pub(super) fn each(&self) -> impl Iterator<Item = (&'a Arc<str>, &'a Schema, &'a Value)> {
        self.schema.fields().iter().zip(self.values).map(|(field, value)| (&field.name, &*field.schema, value))
    }
    pub(super) fn value(&self, field: &str) -> Value {
        self.get(field).map_or(Value::Null, |(_, value)| value.clone())
    }
}

/// A change of a row or a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Envelope<'a> {
    pub(super) fields: Fields<'a>,
    pub(super) source: Fields<'a>,
    /// Rows are documents: JSON text, as MongoDB's.
    pub(super) documents: bool,
}

impl<'a> Envelope<'a> {
    /// `None` if the record is no change.
    pub(super) fn of(record: &'a Record) -> Option<Self> {
        let schema = record.value.schema.as_ref()?;
        if !schema.name.as_deref()?.ends_with(".Envelope") {
            return None;
        }
        let fields = Fields::of(schema, &record.value.value)?;
        let source = fields.record("source")?;
        let after = schema.field_index("after").map(|at| &schema.fields()[at].schema.ty);
        Some(Self { fields, source, documents: matches!(after, Some(Type::String)) })
    }

    pub(super) fn op(&self) -> String {
        self.fields.text("op").unwrap_or_default()
    }

    /// `before` or `after` as a JSON object; null if the change has none.
    pub(super) fn image(&self, side: &str, placeholder: &str) -> Result<Value> {
        match self.fields.get(side) {
            None => Ok(Value::Null),
            Some((schema, value)) => row::image(schema, value, placeholder),
        }
    }

    /// Columns of the key; `None` for a table without one.
    pub(super) fn key(&self, key: &Datum) -> Result<Option<Members>> {
        let Some(schema) = &key.schema else { return Ok(None) };
        let Some(fields) = Fields::of(schema, &key.value) else {
            return odd("thalweg.format=repstance: the key of a change is no struct of columns");
        };
        if self.documents {
            let Some(id) = fields.text("id") else {
                return odd("thalweg.format=repstance: the key of a document has no text 'id'");
            };
            return Ok(Some(vec![(name("_id"), row::document(&id)?)]));
        }
        row::columns(&fields, None).map(Some)
    }

    /// What an update without a whole document tells: the key, the fields that changed under the names
    /// that the server gives them (a dot leads into a nested document), and null for those removed.
    pub(super) fn described(&self, key: &Members) -> Result<Option<Value>> {
        let Some(update) = self.fields.record("updateDescription") else { return Ok(None) };
        let mut members = key.clone();
        if let Some(text) = update.text("updatedFields")
            && let Value::Map(updated) = row::document(&text)?
        {
            members.extend(updated.into_iter().filter(|(field, _)| !key.iter().any(|(k, _)| k == field)));
        }
        if let Some((_, Value::Array(removed))) = update.get("removedFields") {
            members.extend(removed.iter().map(|field| (field.clone(), Value::Null)));
        }
        Ok(Some(Value::Map(members)))
    }

    /// Arrays that an update shortened, with their new sizes.
    pub(super) fn truncated_arrays(&self) -> Option<Value> {
        let (schema, value) = self.fields.record("updateDescription")?.get("truncatedArrays")?;
        row::free(schema, value).ok()
    }

    /// `schema.table`, or `database.collection`.
    pub(super) fn table(&self) -> String {
        let (schema, table) = place(&self.source);
        format!("{schema}.{table}")
    }
}

/// Schema and table of a source block. A database of documents takes the place of a schema.
pub(super) fn place(source: &Fields<'_>) -> (String, String) {
    let table = source.text("table").or_else(|| source.text("collection")).unwrap_or_default();
    let schema = source.text("schema").or_else(|| source.text("db")).unwrap_or_default();
    (schema, table)
}

/// The key in a header of a change of key.
pub(super) fn header_key(record: &Record, header: &str) -> Option<Datum> {
    let header = record.headers.iter().find(|h| &*h.name == header)?;
    Some(Datum { schema: header.schema.clone(), value: header.value.clone() })
}
