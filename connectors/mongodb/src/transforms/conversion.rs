//! A document as a struct, with the schema that follows from its values.
//!
//! Types are Debezium's: every field is optional, object ids and decimals are texts, dates and timestamps
//! Connect's Timestamp. The documents in an array share one schema with the fields of all. Values that
//! Connect has no type for are refused; `undefined` is left out.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use bson::oid::ObjectId;
use bytes::Bytes;
use thalweg_core::Error;
use thalweg_core::naming::NameAdjustment;
use thalweg_core::record::{Field, Schema, Type, Value};
use thalweg_core::transform::invalid;

use super::document::{all, elements, is_empty, unreadable, utf8};
use crate::extended_json::decimal_text;
use crate::raw::{self, Element, Elements, Malformed, kind};

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

const SHORT: Malformed = Malformed("a value is too short");

const REGEX: &str = "io.debezium.mongodb.regex";

/// What an unnamed struct is called in the names of those inside of it.
const NO_NAME: &str = "null";

fn text(bytes: &[u8]) -> Value {
    Value::text(utf8(bytes).into_owned())
}

macro_rules! leaf {
    ($schema:expr) => {{
        static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new($schema.optional()));
        Some(&*SCHEMA)
    }};
}

/// The schema of a value without parts, by its type.
fn leaf(kind: u8) -> Option<&'static Arc<Schema>> {
    match kind {
        kind::NULL | kind::STRING | kind::CODE | kind::OBJECT_ID | kind::DECIMAL128 => leaf!(Schema::string()),
        kind::DOUBLE => leaf!(Schema::new(Type::Float64)),
        kind::INT32 => leaf!(Schema::int32()),
        kind::INT64 => leaf!(Schema::int64()),
        kind::BOOLEAN => leaf!(Schema::boolean()),
        kind::BINARY => leaf!(Schema::bytes()),
        kind::DATE | kind::TIMESTAMP => {
            leaf!(Schema::int64().named("org.apache.kafka.connect.data.Timestamp").versioned(1))
        }
        kind::REGEX => {
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
    pub(super) fn fields(&self, document: &[u8], name: Option<&str>) -> Result<Vec<Field>, Error> {
        let name = name.unwrap_or(NO_NAME);
        let mut fields = Vec::new();
        for element in elements(document)? {
            let element = element.map_err(unreadable)?;
            fields.extend(self.field(element.name, &[element], name)?);
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
    fn field(&self, name: &[u8], values: &[Element<'_>], parent: &str) -> Result<Option<Field>, Error> {
        let name = utf8(name);
        let name = self.names.field_name(&name);
        let schema = self.schema(values, &format!("{parent}.{name}"), &name, false)?;
        Ok(schema.map(|schema| Field { name: name.as_ref().into(), schema }))
    }

    /// One schema for all `values` of a field called `key`; structs are called `name`.
    fn schema(
        &self,
        values: &[Element<'_>],
        name: &str,
        key: &str,
        in_array: bool,
    ) -> Result<Option<Arc<Schema>>, Error> {
        let mut defined = values.iter().filter(|value| value.kind != kind::UNDEFINED);
        let Some(first) = defined.next() else { return Ok(None) };
        match first.kind {
            kind::DOCUMENT => self.structure(&all_of(values, kind::DOCUMENT, key)?, name, in_array).map(Some),
            kind::ARRAY => self.array(&all_of(values, kind::ARRAY, key)?, name, key).map(Some),
            kind::CODE_WITH_SCOPE if values.len() == 1 => {
                let (_, scope) = raw::code_with_scope(first.value).map_err(unreadable)?;
                let scope = self.structure(&[scope], &format!("{name}.scope"), false)?;
                let fields = [("code", Arc::new(Schema::string().optional())), ("scope", scope)];
                Ok(Some(Arc::new(Schema::record(fields).optional().named(name))))
            }
            first => {
                let schema = leaf(first).ok_or_else(|| invalid(format!("{key} is not a valid field name")))?;
                if defined.any(|value| leaf(value.kind) != Some(schema)) {
                    return Err(mixed(key));
                }
                Ok(Some(schema.clone()))
            }
        }
    }

    /// Whether fields that were made for another document of the same name are those of this one. A "no"
    /// proves nothing: whoever has to know makes them.
    pub(super) fn fits(&self, document: &[u8], fields: &[Field]) -> bool {
        self.names == NameAdjustment::None && self.fits_document(document, fields).unwrap_or(false)
    }

    fn fits_document(&self, document: &[u8], fields: &[Field]) -> Result<bool, Malformed> {
        let mut fields = fields.iter();
        for element in Elements::of(document)? {
            let element = element?;
            let Some(field) = fields.next() else { return Ok(false) };
            if field.name.as_bytes() != element.name || !self.fits_value(&element, &field.schema)? {
                return Ok(false);
            }
        }
        Ok(fields.next().is_none())
    }

    fn fits_value(&self, element: &Element<'_>, schema: &Arc<Schema>) -> Result<bool, Malformed> {
        let is_leaf = |kind: u8, schema: &Arc<Schema>| leaf(kind).is_some_and(|leaf| Arc::ptr_eq(leaf, schema));
        match (element.kind, &schema.ty) {
            // That of a regular expression is no document's.
            (kind::DOCUMENT, Type::Struct(fields)) if schema.name.as_deref() != Some(REGEX) => {
                Ok(!is_empty(element.value) && self.fits_document(element.value, fields)?)
            }
            (kind::ARRAY, Type::Array(item)) if is_empty(element.value) => Ok(is_leaf(kind::NULL, item)),
            // Elements that have the same fields share them. Whether those of inner arrays do is not looked at.
            (kind::ARRAY, Type::Array(item)) if self.arrays == ArrayEncoding::Array => {
                for element in Elements::of(element.value)? {
                    let element = element?;
                    if element.kind == kind::ARRAY || !self.fits_value(&element, item)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (kind, _) => Ok(is_leaf(kind, schema)),
        }
    }

    fn structure(&self, documents: &[&[u8]], name: &str, in_array: bool) -> Result<Arc<Schema>, Error> {
        if documents.iter().all(|document| is_empty(document)) {
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
    fn shared_fields(&self, documents: &[&[u8]], name: &str, are_elements: bool) -> Result<Vec<Field>, Error> {
        let mut places: HashMap<&[u8], usize> = HashMap::new();
        let mut parts: Vec<Vec<Element<'_>>> = Vec::new();
        for document in documents {
            for element in elements(document)? {
                let element = element.map_err(unreadable)?;
                let place = *places.entry(element.name).or_insert(parts.len());
                match parts.get_mut(place) {
                    Some(values) => values.push(element),
                    None => parts.push(vec![element]),
                }
            }
        }
        let last = documents.last().map_or(Ok(Vec::new()), |last| all(last))?;
        if !are_elements && last.len() == parts.len() {
            let mut ordered = Vec::with_capacity(parts.len());
            for element in last {
                let place = places.get(element.name).and_then(|place| parts.get_mut(*place));
                ordered.extend(place.map(std::mem::take));
            }
            parts = ordered;
        }
        let mut fields = Vec::with_capacity(parts.len());
        for values in parts {
            let Some(first) = values.first() else { continue };
            fields.extend(self.field(first.name, &values, name)?);
        }
        self.check(&fields)?;
        Ok(fields)
    }

    fn array(&self, arrays: &[&[u8]], name: &str, key: &str) -> Result<Arc<Schema>, Error> {
        let arrays = arrays.iter().map(|array| all(array)).collect::<Result<Vec<_>, _>>()?;
        if self.arrays == ArrayEncoding::Document {
            let mut fields = Vec::new();
            for at in 0..arrays.iter().map(Vec::len).max().unwrap_or(0) {
                let values: Vec<Element<'_>> = arrays.iter().filter_map(|array| array.get(at).copied()).collect();
                let element = element_name(at);
                let schema = self.schema(&values, &format!("{name}.{element}"), key, false)?;
                fields.extend(schema.map(|schema| Field { name: element.into(), schema }));
            }
            return Ok(Arc::new(Schema::new(Type::Struct(fields)).optional().named(name)));
        }
        let elements = arrays.concat();
        if elements.iter().any(|element| element.kind == kind::UNDEFINED) {
            return Err(invalid(format!("{key} is not a valid field name")));
        }
        // The structs of inner arrays have no name.
        let name = if elements.iter().any(|element| element.kind == kind::ARRAY) { NO_NAME } else { name };
        let element = self.schema(&elements, name, key, true)?.or_else(|| leaf(kind::NULL).cloned());
        let element = element.ok_or_else(|| mixed(key))?;
        Ok(Arc::new(Schema::array(element).optional()))
    }

    /// The values of a document for a schema whose fields begin with those of [`Conversion::fields`].
    pub(super) fn values(&self, document: &[u8], fields: &[Field]) -> Result<Vec<Value>, Error> {
        let mut values = vec![Value::Null; fields.len()];
        let mut next = 0;
        for element in elements(document)? {
            let element = element.map_err(unreadable)?;
            let at = match fields.get(next) {
                Some(field) if self.is_named(field, element.name) => Some(next),
                _ => fields.iter().position(|field| self.is_named(field, element.name)),
            };
            if let Some(at) = at {
                values[at] = self.value(&element, &fields[at].schema)?;
                next = at + 1;
            }
        }
        Ok(values)
    }

    fn is_named(&self, field: &Field, name: &[u8]) -> bool {
        match self.names {
            NameAdjustment::None => field.name.as_bytes() == name,
            names => *field.name == *names.field_name(&utf8(name)),
        }
    }

    fn value(&self, element: &Element<'_>, schema: &Schema) -> Result<Value, Error> {
        let value = element.value;
        let number = || raw::int64(value).ok_or(unreadable(SHORT));
        Ok(match (element.kind, &schema.ty) {
            (kind::STRING | kind::CODE, _) => text(raw::string(value).map_err(unreadable)?),
            (kind::OBJECT_ID, _) => {
                Value::text(ObjectId::from_bytes(*value.first_chunk().ok_or(unreadable(SHORT))?).to_hex())
            }
            (kind::DECIMAL128, _) => Value::text(decimal_text(value.first_chunk().ok_or(unreadable(SHORT))?)),
            (kind::DOUBLE, _) => Value::Float64(f64::from_bits(number()?.cast_unsigned())),
            (kind::INT32, _) => Value::Int32(raw::int32(value).ok_or(unreadable(SHORT))?),
            (kind::INT64 | kind::DATE, _) => Value::Int64(number()?),
            (kind::BOOLEAN, _) => Value::Bool(value != [0]),
            (kind::BINARY, _) => Value::Bytes(Bytes::copy_from_slice(raw::binary(value).map_err(unreadable)?.1)),
            (kind::TIMESTAMP, _) => {
                let (seconds, _) = raw::timestamp(value).ok_or(unreadable(SHORT))?;
                Value::Int64(i64::from(seconds) * 1_000)
            }
            (kind::REGEX, _) => {
                let (pattern, options) = raw::regex(value).map_err(unreadable)?;
                Value::Struct(vec![text(pattern), text(options)])
            }
            (kind::CODE_WITH_SCOPE, Type::Struct(fields)) => {
                let (code, scope) = raw::code_with_scope(value).map_err(unreadable)?;
                let scope = match fields.get(1).map(|field| &field.schema.ty) {
                    Some(Type::Struct(fields)) => Value::Struct(self.values(scope, fields)?),
                    _ => Value::Null,
                };
                Value::Struct(vec![text(code), scope])
            }
            (kind::DOCUMENT, Type::Struct(fields)) => Value::Struct(self.values(value, fields)?),
            // Avro has no array without a type for its elements.
            (kind::ARRAY, _) if is_empty(value) && self.names != NameAdjustment::None => Value::Null,
            (kind::ARRAY, Type::Array(item)) => {
                let values = elements(value)?.map(|element| self.value(&element.map_err(unreadable)?, item));
                Value::Array(values.collect::<Result<_, _>>()?)
            }
            (kind::ARRAY, Type::Struct(fields)) => {
                let array = all(value)?;
                let element = |field: &Field| {
                    let at = field.name.strip_prefix('_').and_then(|at| at.parse::<usize>().ok());
                    let element = at.and_then(|at| array.get(at));
                    element.map_or(Ok(Value::Null), |element| self.value(element, &field.schema))
                };
                Value::Struct(fields.iter().map(element).collect::<Result<_, _>>()?)
            }
            _ => Value::Null,
        })
    }
}

/// The bytes of `values`, which must all be of this type.
fn all_of<'a>(values: &[Element<'a>], kind: u8, key: &str) -> Result<Vec<&'a [u8]>, Error> {
    values.iter().map(|value| if value.kind == kind { Ok(value.value) } else { Err(mixed(key)) }).collect()
}

fn element_name(at: usize) -> String {
    format!("_{at}")
}

#[cfg(test)]
#[path = "conversion_tests.rs"]
mod tests;
