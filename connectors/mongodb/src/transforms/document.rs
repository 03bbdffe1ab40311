//! A document as a struct, with the schema that follows from its values.
//!
//! Types are Debezium's: every field is optional, object ids and decimals are texts, dates and timestamps
//! Connect's Timestamp. The documents in an array share one schema with the fields of all. Values that
//! Connect has no type for are refused; `undefined` is left out.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use bson::{Bson, Document};
use thalweg_core::Error;
use thalweg_core::naming::NameAdjustment;
use thalweg_core::record::{Field, Schema, Type, Value};
use thalweg_core::transform::invalid;

use crate::extended_json::decimal_text;
use crate::lenient_json;
use crate::raw::MAX_DEPTH;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArrayEncoding {
    Array,
    /// A struct with fields `_0`, `_1`, …
    Document,
}

/// How documents become structs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conversion {
    pub(super) arrays: ArrayEncoding,
    /// For the names of fields, and for each part of the names of their schemas.
    pub(super) names: NameAdjustment,
}

const REGEX: &str = "io.debezium.mongodb.regex";

/// What an unnamed struct is called in the names of those inside of it.
const NO_NAME: &str = "null";

/// A value from its text; `what` names it in an error, which shows no values.
pub(super) fn parsed(text: &str, what: &str) -> Result<Bson, Error> {
    lenient_json::parse(text, MAX_DEPTH)
        .map_err(|error| invalid(format!("{what} cannot be read as extended JSON, at offset {}", error.offset)))
}

pub(super) fn parsed_document(text: &str, what: &str) -> Result<Document, Error> {
    match parsed(text, what)? {
        Bson::Document(document) => Ok(document),
        _ => Err(invalid(format!("{what} is not a document"))),
    }
}

macro_rules! leaf {
    ($schema:expr) => {{
        static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new($schema.optional()));
        Some(SCHEMA.clone())
    }};
}

/// The schema of a value without parts.
fn leaf(value: &Bson) -> Option<Arc<Schema>> {
    match value {
        Bson::Null | Bson::String(_) | Bson::JavaScriptCode(_) | Bson::ObjectId(_) | Bson::Decimal128(_) => {
            leaf!(Schema::string())
        }
        Bson::Double(_) => leaf!(Schema::new(Type::Float64)),
        Bson::Int32(_) => leaf!(Schema::int32()),
        Bson::Int64(_) => leaf!(Schema::int64()),
        Bson::Boolean(_) => leaf!(Schema::boolean()),
        Bson::Binary(_) => leaf!(Schema::bytes()),
        Bson::DateTime(_) | Bson::Timestamp(_) => {
            leaf!(Schema::int64().named("org.apache.kafka.connect.data.Timestamp").versioned(1))
        }
        Bson::RegularExpression(_) => {
            leaf!(Schema::record(["regex", "options"].map(|name| (name, Schema::string().optional()))).named(REGEX))
        }
        _ => None,
    }
}

fn mixed(name: &str) -> Error {
    invalid(format!("Array elements with different Bson types are not supported: {name}"))
        .advise("set array.encoding=document, or leave the field out with field.exclude.list")
}

impl Conversion {
    /// A name as that of a schema.
    pub(super) fn schema_name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        if self.names == NameAdjustment::None {
            return Cow::Borrowed(name);
        }
        let parts: Vec<Cow<'_, str>> = name.split('.').map(|part| self.names.field_name(part)).collect();
        Cow::Owned(parts.join("."))
    }

    /// The fields of a document's struct, which is called `name`.
    pub(super) fn fields(&self, document: &Document, name: Option<&str>) -> Result<Vec<Field>, Error> {
        let name = name.unwrap_or(NO_NAME);
        let mut fields = Vec::with_capacity(document.len());
        for (key, value) in document {
            fields.extend(self.field(key, &[value], name, false)?);
        }
        self.check(&fields)?;
        Ok(fields)
    }

    /// Only adjusted names can be equal.
    fn check(&self, fields: &[Field]) -> Result<(), Error> {
        let mut seen = HashSet::new();
        if self.names == NameAdjustment::None {
            return Ok(());
        }
        match fields.iter().find(|field| !seen.insert(&*field.name)) {
            None => Ok(()),
            Some(field) => {
                Err(invalid(format!("Cannot create field because of field name duplication {}", field.name)))
            }
        }
    }

    /// The field of one name in several documents; none if it is undefined in all.
    fn field(&self, key: &str, values: &[&Bson], parent: &str, in_array: bool) -> Result<Option<Field>, Error> {
        let key = self.names.field_name(key);
        let schema = self.schema(values, &format!("{parent}.{key}"), &key, in_array)?;
        Ok(schema.map(|schema| Field { name: key.as_ref().into(), schema }))
    }

    /// One schema for all `values` of a field called `key`; structs are called `name`.
    fn schema(&self, values: &[&Bson], name: &str, key: &str, in_array: bool) -> Result<Option<Arc<Schema>>, Error> {
        let mut defined = values.iter().copied().filter(|value| !matches!(value, Bson::Undefined));
        let Some(first) = defined.next() else { return Ok(None) };
        match first {
            Bson::Document(document) if values.len() == 1 => self.structure(&[document], name, in_array).map(Some),
            Bson::Document(_) => {
                let documents = values.iter().map(|value| value.as_document().ok_or_else(|| mixed(key)));
                self.structure(&documents.collect::<Result<Vec<_>, _>>()?, name, in_array).map(Some)
            }
            Bson::Array(_) => {
                let arrays = values.iter().map(|value| value.as_array().ok_or_else(|| mixed(key)));
                self.array(&arrays.collect::<Result<Vec<_>, _>>()?, name, key).map(Some)
            }
            Bson::JavaScriptCodeWithScope(code) if values.len() == 1 => {
                let scope = self.structure(&[&code.scope], &format!("{name}.scope"), false)?;
                let fields = [("code", Arc::new(Schema::string().optional())), ("scope", scope)];
                Ok(Some(Arc::new(Schema::record(fields).optional().named(name))))
            }
            first => {
                let schema = leaf(first).ok_or_else(|| invalid(format!("{key} is not a valid field name")))?;
                if defined.any(|value| leaf(value).as_ref() != Some(&schema)) {
                    return Err(mixed(key));
                }
                Ok(Some(schema))
            }
        }
    }

    /// Whether fields that were made for another document of the same name are those of this one. A "no"
    /// proves nothing: whoever has to know makes them.
    pub(super) fn fits(&self, document: &Document, fields: &[Field]) -> bool {
        self.names == NameAdjustment::None
            && document.len() == fields.len()
            && document
                .iter()
                .zip(fields)
                .all(|((key, value), f)| **key == *f.name && self.fits_value(value, &f.schema))
    }

    fn fits_value(&self, value: &Bson, schema: &Arc<Schema>) -> bool {
        let is_leaf = |value| leaf(value).is_some_and(|leaf| Arc::ptr_eq(&leaf, schema));
        match (value, &schema.ty) {
            // That of a regular expression is no document's.
            (Bson::Document(document), Type::Struct(fields)) => {
                !document.is_empty() && schema.name.as_deref() != Some(REGEX) && self.fits(document, fields)
            }
            (Bson::Array(array), Type::Array(element)) if self.arrays == ArrayEncoding::Array => {
                let fits = |value| leaf(value).is_some_and(|leaf| Arc::ptr_eq(&leaf, element));
                if array.is_empty() { fits(&Bson::Null) } else { array.iter().all(fits) }
            }
            (value, _) => is_leaf(value),
        }
    }

    fn structure(&self, documents: &[&Document], name: &str, in_array: bool) -> Result<Arc<Schema>, Error> {
        if documents.iter().all(|document| document.is_empty()) {
            static EMPTY: LazyLock<Arc<Schema>> =
                LazyLock::new(|| Arc::new(Schema::new(Type::Struct(Vec::new())).optional()));
            return Ok(EMPTY.clone());
        }
        let fields = match documents {
            [document] => self.fields(document, Some(name))?,
            documents => self.shared_fields(documents, name, in_array)?,
        };
        let mut schema = Schema::new(Type::Struct(fields)).optional();
        schema.name = (name != NO_NAME).then(|| name.into());
        Ok(Arc::new(schema))
    }

    /// The fields of all documents, in the order in which they come first. Below the elements themselves
    /// the order is that of the last document, if that has them all.
    fn shared_fields(&self, documents: &[&Document], name: &str, elements: bool) -> Result<Vec<Field>, Error> {
        let mut places: std::collections::HashMap<&str, usize> = std::collections::HashMap::new();
        let mut parts: Vec<(&str, Vec<&Bson>)> = Vec::new();
        for (key, value) in documents.iter().flat_map(|document| document.iter()) {
            let place = *places.entry(key).or_insert(parts.len());
            match parts.get_mut(place) {
                Some((_, values)) => values.push(value),
                None => parts.push((key, vec![value])),
            }
        }
        if let Some(last) = documents.last()
            && !elements
            && last.len() == parts.len()
        {
            let mut ordered = Vec::with_capacity(parts.len());
            for key in last.keys() {
                let place = places.get(key.as_str()).and_then(|place| parts.get_mut(*place));
                ordered.extend(place.map(std::mem::take));
            }
            parts = ordered;
        }
        let mut fields = Vec::with_capacity(parts.len());
        for (key, values) in parts {
            fields.extend(self.field(key, &values, name, false)?);
        }
        self.check(&fields)?;
        Ok(fields)
    }

    fn array(&self, arrays: &[&Vec<Bson>], name: &str, key: &str) -> Result<Arc<Schema>, Error> {
        if self.arrays == ArrayEncoding::Document {
            let mut fields = Vec::new();
            for at in 0..arrays.iter().map(|array| array.len()).max().unwrap_or(0) {
                let values: Vec<&Bson> = arrays.iter().filter_map(|array| array.get(at)).collect();
                let element = element_name(at);
                let schema = self.schema(&values, &format!("{name}.{element}"), key, false)?;
                fields.extend(schema.map(|schema| Field { name: element.into(), schema }));
            }
            return Ok(Arc::new(Schema::new(Type::Struct(fields)).optional().named(name)));
        }
        let elements: Vec<&Bson> = arrays.iter().flat_map(|array| array.iter()).collect();
        if elements.iter().any(|element| matches!(element, Bson::Undefined)) {
            return Err(invalid(format!("{key} is not a valid field name")));
        }
        // The structs of inner arrays have no name.
        let name = if elements.iter().any(|element| matches!(element, Bson::Array(_))) { NO_NAME } else { name };
        let element = self.schema(&elements, name, key, true)?.or_else(|| leaf(&Bson::Null));
        let element = element.ok_or_else(|| mixed(key))?;
        Ok(Arc::new(Schema::array(element).optional()))
    }

    /// The values of a document for a schema whose fields begin with those of [`Conversion::fields`].
    pub(super) fn values(&self, document: Document, fields: &[Field]) -> Vec<Value> {
        let mut values = vec![Value::Null; fields.len()];
        let mut next = 0;
        for (key, value) in document {
            let name = self.names.field_name(&key);
            let is_next = fields.get(next).is_some_and(|field| *field.name == *name);
            let at = if is_next { Some(next) } else { fields.iter().position(|field| *field.name == *name) };
            if let Some(at) = at {
                values[at] = self.value(value, &fields[at].schema);
                next = at + 1;
            }
        }
        values
    }

    pub(super) fn value(&self, value: Bson, schema: &Schema) -> Value {
        match (value, &schema.ty) {
            (Bson::String(text) | Bson::JavaScriptCode(text), _) => Value::text(text),
            (Bson::ObjectId(id), _) => Value::text(id.to_hex()),
            (Bson::Decimal128(decimal), _) => Value::text(decimal_text(&decimal.bytes())),
            (Bson::Double(number), _) => Value::Float64(number),
            (Bson::Int32(number), _) => Value::Int32(number),
            (Bson::Int64(number), _) => Value::Int64(number),
            (Bson::Boolean(flag), _) => Value::Bool(flag),
            (Bson::Binary(binary), _) => Value::Bytes(binary.bytes.into()),
            (Bson::DateTime(date), _) => Value::Int64(date.timestamp_millis()),
            (Bson::Timestamp(time), _) => Value::Int64(i64::from(time.time) * 1_000),
            (Bson::RegularExpression(regex), _) => {
                let text = |text: &dyn std::fmt::Display| Value::text(text.to_string());
                Value::Struct(vec![text(&regex.pattern), text(&regex.options)])
            }
            (Bson::JavaScriptCodeWithScope(code), Type::Struct(fields)) => {
                let scope = fields.get(1).map_or(Value::Null, |f| self.value(Bson::Document(code.scope), &f.schema));
                Value::Struct(vec![Value::text(code.code), scope])
            }
            (Bson::Document(document), Type::Struct(fields)) => Value::Struct(self.values(document, fields)),
            // Avro has no array without a type for its elements.
            (Bson::Array(array), _) if array.is_empty() && self.names != NameAdjustment::None => Value::Null,
            (Bson::Array(array), Type::Array(item)) => {
                Value::Array(array.into_iter().map(|value| self.value(value, item)).collect())
            }
            (Bson::Array(array), Type::Struct(fields)) => {
                let mut array: Vec<Option<Bson>> = array.into_iter().map(Some).collect();
                let element = |field: &Field| {
                    let at = field.name.strip_prefix('_').and_then(|at| at.parse::<usize>().ok());
                    let value = at.and_then(|at| array.get_mut(at)).and_then(Option::take);
                    value.map_or(Value::Null, |value| self.value(value, &field.schema))
                };
                Value::Struct(fields.iter().map(element).collect())
            }
            _ => Value::Null,
        }
    }
}

fn element_name(at: usize) -> String {
    format!("_{at}")
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
