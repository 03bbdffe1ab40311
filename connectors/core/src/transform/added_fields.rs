//! Fields of a change event that go along when the rest of it is taken off (`add.fields`,
//! `add.headers`): `[struct.]name[:alias]`.
//!
//! A name without a struct is looked for where Debezium has it: operation and times in the event
//! itself, what says something about the transaction in `transaction`, everything else in `source`. What
//! is not there may be a field of the event itself, as other transforms add them. A null stays null,
//! whatever default the schema has.

use std::sync::Arc;

use thalweg_config::Settings;

use super::cache::SchemaCache;
use super::schemas;
use crate::error::Result;
use crate::record::{Field, Header, Schema, Value};

#[derive(Debug, PartialEq, Eq)]
struct Reference {
    within: Option<Box<str>>,
    name: Box<str>,
    to: Arc<str>,
}

/// Where a field is: inside of a struct of the event, or in the event itself.
#[derive(Debug)]
struct Place {
    outer: Option<usize>,
    at: usize,
    schema: Arc<Schema>,
}

/// A field that was found, under its new name.
#[derive(Debug, Clone)]
pub struct Added {
    pub name: Arc<str>,
    /// Optional, without default.
    pub schema: Arc<Schema>,
    pub value: Value,
}

/// A field that the event has, or the new name of one that it does not have.
pub type Found = Result<Added, Arc<str>>;

impl Added {
    pub fn field(&self) -> Field {
        Field { name: self.name.clone(), schema: self.schema.clone() }
    }

    /// Whether its field is this one.
    pub fn is_of(&self, field: &Field) -> bool {
        self.name == field.name && (Arc::ptr_eq(&self.schema, &field.schema) || self.schema == field.schema)
    }

    pub fn into_header(self) -> Header {
        Header { name: self.name, schema: Some(self.schema), value: self.value }
    }
}

/// Header of `operation.header`.
const OPERATION_HEADER: &str = "__debezium-operation";

#[derive(Default)]
pub struct AddedFields {
    references: Vec<Reference>,
    places: SchemaCache<Arc<[Option<Place>]>>,
}

fn usual_struct(name: &str) -> Option<Box<str>> {
    match name {
        "id" | "total_order" | "data_collection_order" => Some("transaction".into()),
        "op" | "ts_ms" | "ts_us" | "ts_ns" => None,
        "updateDescription" => Some("updateDescription".into()),
        _ => Some("source".into()),
    }
}

fn reference(text: &str, prefix: &str) -> Result<Reference, String> {
    let wrong = || format!("Unexpected field name: {text}");
    let (path, alias) = match text.split_once(':') {
        Some((path, alias)) => (path.trim(), Some(alias.trim())),
        None => (text.trim(), None),
    };
    if path.is_empty() || alias.is_some_and(|alias| alias.is_empty() || alias.contains(':')) {
        return Err(wrong());
    }
    let (within, name) = match path.split_once('.') {
        Some((within, name)) if within.is_empty() || name.is_empty() || name.contains('.') => return Err(wrong()),
        Some((within, name)) => (Some(within.into()), name),
        None => (usual_struct(path), path),
    };
    let to = alias.map_or_else(|| path.replace('.', "_"), str::to_owned);
    Ok(Reference { within, name: name.into(), to: format!("{prefix}{to}").into() })
}

impl AddedFields {
    /// # Errors
    /// The text for the option's message.
    pub fn new(list: &[String], prefix: &str) -> Result<Self, String> {
        let references = list.iter().map(|text| reference(text, prefix)).collect::<Result<_, _>>()?;
        Ok(Self { references, places: SchemaCache::default() })
    }

    /// From `add.fields` and its prefix, or from the older `add.source.fields`.
    ///
    /// # Errors
    /// The text for the option's message.
    pub fn fields(settings: &Settings) -> Result<Self, String> {
        let mut added = Self::new(settings.list("add.fields"), settings.text_or_empty("add.fields.prefix"))?;
        if !settings.is_given("add.fields") {
            added.references.extend(settings.list("add.source.fields").iter().map(|name| Reference {
                within: Some("source".into()),
                name: name.as_str().into(),
                to: format!("__{name}").into(),
            }));
        }
        Ok(added)
    }

    /// From `add.headers` and its prefix, or from the older `operation.header`.
    ///
    /// # Errors
    /// The text for the option's message.
    pub fn headers(settings: &Settings) -> Result<Self, String> {
        let mut added = Self::new(settings.list("add.headers"), settings.text_or_empty("add.headers.prefix"))?;
        if !settings.is_given("add.headers") && settings.bool("operation.header") {
            added.references.push(Reference { within: None, name: "op".into(), to: OPERATION_HEADER.into() });
        }
        Ok(added)
    }

    /// As the check of an option table.
    pub fn check(settings: &Settings) -> Vec<(&'static str, String)> {
        let fields = Self::fields(settings).err().map(|text| ("add.fields", text));
        let headers = Self::headers(settings).err().map(|text| ("add.headers", text));
        fields.into_iter().chain(headers).collect()
    }

    /// The headers of a tombstone, of which nothing is known but that it is a delete.
    pub fn of_tombstone(&self) -> Vec<Header> {
        let operations = self.references.iter().filter(|r| &*r.name == "op");
        let header = |r: &Reference| Header {
            name: r.to.clone(),
            schema: Some(schemas::string(false)),
            value: Value::text("d"),
        };
        operations.map(header).collect()
    }

    /// The fields of an event, in the order of the option.
    pub fn of(&mut self, schema: &Arc<Schema>, values: &[Value]) -> Result<Vec<Found>> {
        if self.references.is_empty() {
            return Ok(Vec::new());
        }
        let references = &self.references;
        let places = self.places.get(schema, |schema| Ok(references.iter().map(|r| place(schema, r)).collect()))?;
        let found = references.iter().zip(&*places).map(|(reference, place)| {
            let name = reference.to.clone();
            match place {
                Some(place) => Found::Ok(Added { name, schema: place.schema.clone(), value: value(place, values) }),
                None => Err(name),
            }
        });
        Ok(found.collect())
    }
}

fn place(schema: &Schema, reference: &Reference) -> Option<Place> {
    let inner = reference.within.as_deref().and_then(|within| {
        let outer = schema.field_index(within)?;
        let at = schema.fields()[outer].schema.field_index(&reference.name)?;
        Some((Some(outer), at, &schema.fields()[outer].schema.fields()[at].schema))
    });
    let direct = || schema.field_index(&reference.name).map(|at| (None, at, &schema.fields()[at].schema));
    let (outer, at, field) = inner.or_else(direct)?;
    let mut schema = Schema::clone(field);
    schema.optional = true;
    schema.default = None;
    Some(Place { outer, at, schema: Arc::new(schema) })
}

fn value(place: &Place, values: &[Value]) -> Value {
    let parent = match place.outer.map(|outer| values.get(outer)) {
        None => values,
        Some(Some(Value::Struct(values))) => values,
        Some(_) => return Value::Null,
    };
    parent.get(place.at).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn names_and_their_structs() {
        let parsed = |text: &str| {
            let r = reference(text, "__").unwrap();
            (r.within.unwrap_or_default().into_string(), r.name.into_string(), r.to.to_string())
        };
        let of = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
        assert_eq!(parsed("op"), of("", "op", "__op"));
        assert_eq!(parsed("ts_ms"), of("", "ts_ms", "__ts_ms"));
        assert_eq!(parsed("table"), of("source", "table", "__table"));
        assert_eq!(parsed("source.ts_ms"), of("source", "ts_ms", "__source_ts_ms"));
        assert_eq!(parsed("source.ts_ms:at"), of("source", "ts_ms", "__at"));
        assert_eq!(parsed("total_order"), of("transaction", "total_order", "__total_order"));
        assert_eq!(parsed("updateDescription.updatedFields").2, "__updateDescription_updatedFields");
        for wrong in ["a:b:c", "a.", ".a", "a.b.c", ":x", "a:"] {
            assert_eq!(reference(wrong, "").unwrap_err(), format!("Unexpected field name: {wrong}"));
        }
    }

    #[test]
    fn a_null_stays_null_and_a_missing_struct_gives_nulls() {
        let source = Schema::record([("snapshot", Schema::string().defaulting(Value::text("false")))]).optional();
        let schema = Arc::new(Schema::record([("source", source), ("extra", Schema::int32())]));
        let list = ["snapshot", "extra", "nowhere"].map(str::to_owned);
        let mut added = AddedFields::new(&list, "").unwrap();
        for source in [Value::Struct(vec![Value::Null]), Value::Null] {
            let found = added.of(&schema, &[source, Value::Int32(7)]).unwrap();
            let snapshot = found[0].as_ref().unwrap();
            assert!(snapshot.value.is_null() && snapshot.schema.optional && snapshot.schema.default.is_none());
            assert_eq!(found[1].as_ref().unwrap().value, Value::Int32(7));
            assert_eq!(&**found[2].as_ref().unwrap_err(), "nowhere");
        }
    }
}
