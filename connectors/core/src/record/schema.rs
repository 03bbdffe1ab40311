//! Schemas as Kafka Connect defines them, shared by `Arc` and rendered to JSON once.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::value::Value;

/// Shape of a value. Containers hold their parts' schemas.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    Int8,
    Int16,
    Int32,
    Int64,
    Float32,
    Float64,
    Boolean,
    String,
    Bytes,
    Array(Arc<Schema>),
    /// Key schema, value schema.
    Map(Arc<Schema>, Arc<Schema>),
    Struct(Vec<Field>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub name: Arc<str>,
    pub schema: Arc<Schema>,
}

/// A schema. Equality compares every attribute; converters cache by pointer first.
#[derive(Debug)]
pub struct Schema {
    pub ty: Type,
    pub optional: bool,
    pub name: Option<Arc<str>>,
    pub version: Option<i32>,
    pub doc: Option<Arc<str>>,
    /// Insertion order is kept.
    pub parameters: Vec<(Arc<str>, Arc<str>)>,
    pub default: Option<Value>,
    pub(crate) rendered: Rendered,
}

/// What the JSON converter makes of a schema on first use. A schema must not be changed afterwards.
#[derive(Default)]
pub(crate) struct Rendered {
    /// The schema as JSON (without `field`), decimals in defaults as base64.
    pub(crate) base64: OnceLock<Box<str>>,
    /// The same with decimals in defaults as numbers.
    pub(crate) numeric: OnceLock<Box<str>>,
    /// Per field of a struct the text before its value: `{"first":`, then `,"next":`.
    pub(crate) members: OnceLock<Box<[Box<str>]>>,
}

impl Schema {
    pub fn new(ty: Type) -> Self {
        Self {
            ty,
            optional: false,
            name: None,
            version: None,
            doc: None,
            parameters: Vec::new(),
            default: None,
            rendered: Rendered::default(),
        }
    }
    pub fn int32() -> Self {
        Self::new(Type::Int32)
    }
    pub fn int64() -> Self {
        Self::new(Type::Int64)
    }
    pub fn boolean() -> Self {
        Self::new(Type::Boolean)
    }
    pub fn string() -> Self {
        Self::new(Type::String)
    }
    pub fn bytes() -> Self {
        Self::new(Type::Bytes)
    }
    pub fn array(items: impl Into<Arc<Schema>>) -> Self {
        Self::new(Type::Array(items.into()))
    }
    pub fn map(keys: impl Into<Arc<Schema>>, values: impl Into<Arc<Schema>>) -> Self {
        Self::new(Type::Map(keys.into(), values.into()))
    }
    /// A struct from `(field name, schema)` pairs in order.
    pub fn record<N: Into<Arc<str>>, S: Into<Arc<Schema>>>(fields: impl IntoIterator<Item = (N, S)>) -> Self {
        Self::new(Type::Struct(
            fields.into_iter().map(|(name, schema)| Field { name: name.into(), schema: schema.into() }).collect(),
        ))
    }
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }
    pub fn versioned(mut self, version: i32) -> Self {
        self.version = Some(version);
        self
    }
    pub fn documented(mut self, doc: impl Into<Arc<str>>) -> Self {
        self.doc = Some(doc.into());
        self
    }
    pub fn parameter(mut self, key: impl Into<Arc<str>>, value: impl Into<Arc<str>>) -> Self {
        self.parameters.push((key.into(), value.into()));
        self
    }
    pub fn defaulting(mut self, value: Value) -> Self {
        self.default = Some(value);
        self
    }
    /// Fields of a struct schema, else an empty slice.
    pub fn fields(&self) -> &[Field] {
        match &self.ty {
            Type::Struct(fields) => fields,
            _ => &[],
        }
    }
    /// Index of a field of a struct schema.
    pub fn field_index(&self, name: &str) -> Option<usize> {
        self.fields().iter().position(|f| &*f.name == name)
    }
}

impl fmt::Debug for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.ty == other.ty
            && self.optional == other.optional
            && self.name == other.name
            && self.version == other.version
            && self.doc == other.doc
            && self.parameters == other.parameters
            && self.default == other.default
    }
}

impl Clone for Schema {
    /// The copy may be changed, so it starts without a cached rendering.
    fn clone(&self) -> Self {
        Self {
            ty: self.ty.clone(),
            optional: self.optional,
            name: self.name.clone(),
            version: self.version,
            doc: self.doc.clone(),
            parameters: self.parameters.clone(),
            default: self.default.clone(),
            rendered: Rendered::default(),
        }
    }
}
