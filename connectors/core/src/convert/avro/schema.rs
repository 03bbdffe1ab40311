//! Avro schemas, as text, of Connect schemas.
//!
//! Member order: type, name, namespace, then items | values | fields, then scale and precision of a
//! decimal, the `connect.*` properties (doc, version, parameters, default, name, type), logicalType. A
//! full name is defined where it is met first; later it is only named, and must mean the same.
//!
//! It does not keep what it made: a schema is registered once.

use std::collections::{HashMap, HashSet};

use super::super::escape::json_string;
use super::super::fault::{Fault, Outcome, kind_name};
use super::super::logical::{Logical, decimal_scale};
use super::super::number::{ExponentSign, java_double, java_float};
use super::names::{FullName, field_name};
use super::{default_of, has_text_keys};
use crate::record::{Field, Schema, Type, Value};

/// Parameter of a decimal's schema.
const PRECISION: &str = "connect.decimal.precision";
const DEFAULT_PRECISION: i32 = 64;

/// What the converter's options say about schemas.
#[derive(Debug, Clone, Copy)]
pub(super) struct SchemaOptions {
    /// `connect.meta.data`.
    pub(super) meta: bool,
    /// `scrub.invalid.names`.
    pub(super) scrub: bool,
}

/// A schema as it is registered.
#[derive(Debug)]
pub(super) struct AvroSchema {
    pub(super) text: String,
    /// Of the outermost record; `None` if it is none.
    pub(super) record: Option<String>,
}

pub(super) fn avro_schema(schema: &Schema, options: SchemaOptions) -> Outcome<AvroSchema> {
    let mut writer = Writer { out: Vec::new(), options, defined: HashMap::new(), unnamed: 0, entries: Vec::new() };
    let record = match (&schema.ty, &schema.name) {
        (Type::Struct(_), Some(name)) => Some(FullName::of(name, options.scrub)?.full()),
        (Type::Struct(_), None) => Some(FullName::own(unnamed(1)).full()),
        _ => None,
    };
    writer.schema(schema, "")?;
    // Every part is written from str or ASCII.
    Ok(AvroSchema { text: String::from_utf8(writer.out).unwrap_or_default(), record })
}

fn unnamed(number: usize) -> String {
    numbered("ConnectDefault", number)
}

/// The first has no number.
fn numbered(stem: &str, number: usize) -> String {
    if number == 1 { stem.to_owned() } else { format!("{stem}{number}") }
}

struct Writer<'a> {
    out: Vec<u8>,
    options: SchemaOptions,
    /// Where each full name was defined.
    defined: HashMap<String, &'a Schema>,
    /// Structs without a name so far.
    unnamed: usize,
    /// Maps without a name whose entries are records.
    entries: Vec<&'a Schema>,
}

impl<'a> Writer<'a> {
    /// `space` is the namespace around it.
    fn schema(&mut self, schema: &'a Schema, space: &str) -> Outcome {
        match (schema.optional, default_of(schema)) {
            (false, _) => self.base(schema, space),
            // A default has to fit the first branch.
            (true, Some(_)) => {
                self.put("[");
                self.base(schema, space)?;
                self.put(",\"null\"]");
                Ok(())
            }
            (true, None) => {
                self.put("[\"null\",");
                self.base(schema, space)?;
                self.put("]");
                Ok(())
            }
        }
    }

    fn base(&mut self, schema: &'a Schema, space: &str) -> Outcome {
        match &schema.ty {
            Type::Struct(fields) => return self.record(schema, fields, space),
            Type::Array(items) => {
                self.put("{\"type\":\"array\",\"items\":");
                self.schema(items, space)?;
            }
            Type::Map(keys, values) if has_text_keys(keys) => {
                self.put("{\"type\":\"map\",\"values\":");
                self.schema(values, space)?;
            }
            Type::Map(keys, values) => {
                self.put("{\"type\":\"array\",\"items\":");
                self.entry(schema, keys, values, space)?;
            }
            simple => {
                let name = primitive(simple);
                let start = self.out.len();
                self.put("{\"type\":");
                self.text(name);
                let bare = self.out.len();
                let logical = self.decimal(schema)?;
                self.properties(schema)?;
                if let Some(logical) = logical {
                    self.member("logicalType");
                    self.text(logical);
                }
                if self.out.len() == bare {
                    self.out.truncate(start);
                    self.text(name);
                } else {
                    self.put("}");
                }
                return Ok(());
            }
        }
        self.properties(schema)?;
        self.put("}");
        Ok(())
    }

    fn record(&mut self, schema: &'a Schema, fields: &'a [Field], space: &str) -> Outcome {
        let name = match &schema.name {
            Some(name) => FullName::of(name, self.options.scrub)?,
            None => {
                self.unnamed += 1;
                FullName::own(unnamed(self.unnamed))
            }
        };
        if self.is_known(&name, schema, space)? {
            return Ok(());
        }
        self.head(&name, space);
        self.put(",\"fields\":[");
        let mut seen = HashSet::new();
        for (at, field) in fields.iter().enumerate() {
            if at > 0 {
                self.put(",");
            }
            let field_name = field_name(&field.name, self.options.scrub)?;
            self.field(&field_name, &field.schema, &name.namespace).map_err(|fault| fault.inside(&*field.name))?;
            if !seen.insert(field_name) {
                let text = "two fields of one struct have this name in Avro; exclude or rename one of them";
                return Err(Fault::new(text).inside(&*field.name));
            }
        }
        self.put("]");
        self.properties(schema)?;
        self.put("}");
        Ok(())
    }

    /// The record of an entry of a map that Avro has no map for.
    fn entry(&mut self, map: &'a Schema, keys: &'a Schema, values: &'a Schema, space: &str) -> Outcome {
        let name = match &map.name {
            Some(name) => FullName::of(name, self.options.scrub)?,
            None => {
                let same = |other: &&Schema| other.ty == map.ty;
                let number = self.entries.iter().position(same).unwrap_or(self.entries.len()) + 1;
                if number > self.entries.len() {
                    self.entries.push(map);
                }
                FullName::own(numbered("MapEntry", number))
            }
        };
        if self.is_known(&name, map, space)? {
            return Ok(());
        }
        self.head(&name, space);
        self.put(",\"fields\":[");
        self.field("key", keys, &name.namespace).map_err(|fault| fault.inside("key"))?;
        self.put(",");
        self.field("value", values, &name.namespace).map_err(|fault| fault.inside("value"))?;
        self.put("]");
        if map.name.is_some() && self.options.meta {
            self.member("connect.internal.type");
            self.text("MapEntry");
        }
        self.put("}");
        Ok(())
    }

    /// Names a record that is defined already; else takes note of it.
    fn is_known(&mut self, name: &FullName, schema: &'a Schema, space: &str) -> Outcome<bool> {
        let full = name.full();
        let Some(first) = self.defined.get(&full).copied() else {
            self.defined.insert(full, schema);
            return Ok(false);
        };
        if !is_same(first, schema) {
            return Err(Fault::new(format!(
                "two different structs have the name {full}, and Avro defines a name once; give one of them another \
                 name"
            )));
        }
        self.text(if name.namespace == space { &name.name } else { &full });
        Ok(true)
    }

    fn head(&mut self, name: &FullName, space: &str) {
        self.put("{\"type\":\"record\",\"name\":");
        self.text(&name.name);
        if name.namespace != space {
            self.member("namespace");
            self.text(&name.namespace);
        }
    }

    fn field(&mut self, name: &str, schema: &'a Schema, space: &str) -> Outcome {
        self.put("{\"name\":");
        self.text(name);
        self.member("type");
        self.schema(schema, space)?;
        if let Some(default) = default_of(schema) {
            self.member("default");
            self.value(schema, default)?;
        } else if schema.optional {
            self.put(",\"default\":null");
        }
        self.put("}");
        Ok(())
    }

    /// The logical type, with what belongs to that of a decimal written.
    fn decimal(&mut self, schema: &Schema) -> Outcome<Option<&'static str>> {
        Ok(match (Logical::of(schema), &schema.ty) {
            (Some(Logical::Date), Type::Int32) => Some("date"),
            (Some(Logical::Time), Type::Int32) => Some("time-millis"),
            (Some(Logical::Timestamp), Type::Int64) => Some("timestamp-millis"),
            (Some(Logical::Decimal), Type::Bytes) => {
                let scale = decimal_scale(schema).map_err(Fault::new)?;
                let precision = match schema.parameters.iter().find(|(key, _)| &**key == PRECISION) {
                    None => DEFAULT_PRECISION,
                    Some((_, text)) => text.parse().map_err(|_| {
                        Fault::new(format!("the Decimal schema's parameter {PRECISION} is not a number: {text}"))
                    })?,
                };
                // Avro has no such decimals.
                if scale < 0 || scale > precision || precision < 1 {
                    return Ok(None);
                }
                self.member("scale");
                self.put(itoa::Buffer::new().format(scale));
                self.member("precision");
                self.put(itoa::Buffer::new().format(precision));
                Some("decimal")
            }
            _ => None,
        })
    }

    /// What only Connect knows.
    fn properties(&mut self, schema: &Schema) -> Outcome {
        if !self.options.meta {
            return Ok(());
        }
        if let Some(doc) = &schema.doc {
            self.member("connect.doc");
            self.text(doc);
        }
        if let Some(version) = schema.version {
            self.member("connect.version");
            self.put(itoa::Buffer::new().format(version));
        }
        if !schema.parameters.is_empty() {
            self.member("connect.parameters");
            for (at, (key, value)) in schema.parameters.iter().enumerate() {
                self.put(if at == 0 { "{" } else { "," });
                self.text(key);
                self.put(":");
                self.text(value);
            }
            self.put("}");
        }
        if let Some(default) = default_of(schema) {
            self.member("connect.default");
            self.value(schema, default)?;
        }
        if let Some(name) = &schema.name {
            self.member("connect.name");
            self.text(name);
        }
        let own = match schema.ty {
            Type::Int8 => Some("int8"),
            Type::Int16 => Some("int16"),
            _ => None,
        };
        if let Some(own) = own {
            self.member("connect.type");
            self.text(own);
        }
        Ok(())
    }

    /// A default value in JSON.
    fn value(&mut self, schema: &Schema, value: &Value) -> Outcome {
        match (&schema.ty, value) {
            (Type::Boolean, Value::Bool(b)) => self.put(if *b { "true" } else { "false" }),
            (Type::Int8, Value::Int8(n)) => self.put(itoa::Buffer::new().format(*n)),
            (Type::Int16, Value::Int16(n)) => self.put(itoa::Buffer::new().format(*n)),
            (Type::Int32, Value::Int32(n)) => self.put(itoa::Buffer::new().format(*n)),
            (Type::Int64, Value::Int64(n)) => self.put(itoa::Buffer::new().format(*n)),
            (Type::Float32, Value::Float32(n)) if n.is_finite() => java_float(*n, ExponentSign::Bare, &mut self.out),
            (Type::Float64, Value::Float64(n)) if n.is_finite() => java_double(*n, ExponentSign::Bare, &mut self.out),
            (Type::Float32, Value::Float32(_)) | (Type::Float64, Value::Float64(_)) => {
                return Err(Fault::new(
                    "the default is no finite number, and JSON, in which Avro writes it, has no other",
                ));
            }
            (Type::String, Value::String(text)) => self.text(&text.as_str()),
            // Each byte is the character of its number.
            (Type::Bytes, Value::Bytes(bytes)) => {
                let text: String = bytes.iter().copied().map(char::from).collect();
                self.text(&text);
            }
            (Type::Array(items), Value::Array(values)) => {
                self.put("[");
                for (at, value) in values.iter().enumerate() {
                    self.separator(at);
                    self.inner(items, value)?;
                }
                self.put("]");
            }
            (Type::Map(keys, values), Value::Map(pairs)) if has_text_keys(keys) => {
                self.put("{");
                for (at, (key, value)) in pairs.iter().enumerate() {
                    self.separator(at);
                    self.inner(keys, key)?;
                    self.put(":");
                    self.inner(values, value)?;
                }
                self.put("}");
            }
            (Type::Map(keys, values), Value::Map(pairs)) => {
                self.put("[");
                for (at, (key, value)) in pairs.iter().enumerate() {
                    self.separator(at);
                    self.put("{\"key\":");
                    self.inner(keys, key)?;
                    self.put(",\"value\":");
                    self.inner(values, value)?;
                    self.put("}");
                }
                self.put("]");
            }
            (Type::Struct(fields), Value::Struct(values)) if fields.len() == values.len() => {
                self.put("{");
                for (at, (field, value)) in fields.iter().zip(values).enumerate() {
                    self.separator(at);
                    let name = field_name(&field.name, self.options.scrub)?;
                    self.text(&name);
                    self.put(":");
                    self.inner(&field.schema, value).map_err(|fault| fault.inside(&*field.name))?;
                }
                self.put("}");
            }
            _ => return Err(Fault::new(format!("the default does not fit its schema: {}", kind_name(value)))),
        }
        Ok(())
    }

    /// A part of a default: of a union only the first branch can be written.
    fn inner(&mut self, schema: &Schema, value: &Value) -> Outcome {
        match (value.is_null(), schema.optional, default_of(schema)) {
            (true, true, None) => self.put("null"),
            (true, _, Some(default)) => return self.value(schema, default),
            (false, true, None) => {
                return Err(Fault::new("a default with an optional part that is set cannot be written in Avro"));
            }
            _ => return self.value(schema, value),
        }
        Ok(())
    }

    fn separator(&mut self, at: usize) {
        if at > 0 {
            self.put(",");
        }
    }

    fn member(&mut self, name: &str) {
        self.put(",\"");
        self.put(name);
        self.put("\":");
    }

    fn text(&mut self, text: &str) {
        json_string(text, &mut self.out);
    }

    fn put(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }
}

/// Equal in what a definition shows; being optional is said where it is used.
fn is_same(one: &Schema, other: &Schema) -> bool {
    std::ptr::eq(one, other)
        || (one.ty == other.ty
            && one.name == other.name
            && one.version == other.version
            && one.doc == other.doc
            && one.parameters == other.parameters
            && one.default == other.default)
}

fn primitive(ty: &Type) -> &'static str {
    match ty {
        Type::Int64 => "long",
        Type::Float32 => "float",
        Type::Float64 => "double",
        Type::Boolean => "boolean",
        Type::String => "string",
        Type::Bytes => "bytes",
        // Containers do not come here.
        _ => "int",
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
