//! Why a value cannot be converted, with the path to it.
//!
//! The path is put together while the error travels up, so a value that converts pays nothing. No
//! value is ever part of the text.

use crate::error::{Error, ErrorKind, Phase};
use crate::record::{Schema, Type, Value};

#[derive(Debug)]
pub(super) struct Fault {
    what: String,
    /// Innermost first.
    path: Vec<String>,
}

pub(super) type Outcome<T = ()> = Result<T, Box<Fault>>;

impl Fault {
    pub(super) fn new(what: impl Into<String>) -> Box<Self> {
        Box::new(Self { what: what.into(), path: Vec::new() })
    }
    /// A null where none is allowed; the wording is Kafka Connect's.
    pub(super) fn null() -> Box<Self> {
        Self::new("Conversion error: null value for field that is required and has no default value")
    }
    pub(super) fn mismatch(schema: &Schema, value: &Value) -> Box<Self> {
        Self::new(format!("Invalid type for {}: {}", type_name(&schema.ty), kind_name(value)))
    }
    pub(super) fn field_count(schema: &Schema, values: usize) -> Box<Self> {
        Self::new(format!(
            "Mismatching schema: {} has {} fields, the value {values}",
            schema.name.as_deref().unwrap_or("the struct"),
            schema.fields().len()
        ))
    }
    pub(super) fn inside(mut self: Box<Self>, part: impl Into<String>) -> Box<Self> {
        self.path.push(part.into());
        self
    }
    pub(super) fn to_error(&self) -> Error {
        let path: Vec<&str> = self.path.iter().rev().map(String::as_str).collect();
        let message =
            if path.is_empty() { self.what.clone() } else { format!("{} (field {})", self.what, path.join(".")) };
        Error::new(ErrorKind::ValueInvalid, Phase::Convert, message)
    }
}

pub(crate) fn type_name(ty: &Type) -> &'static str {
    match ty {
        Type::Int8 => "INT8",
        Type::Int16 => "INT16",
        Type::Int32 => "INT32",
        Type::Int64 => "INT64",
        Type::Float32 => "FLOAT32",
        Type::Float64 => "FLOAT64",
        Type::Boolean => "BOOLEAN",
        Type::String => "STRING",
        Type::Bytes => "BYTES",
        Type::Array(_) => "ARRAY",
        Type::Map(..) => "MAP",
        Type::Struct(_) => "STRUCT",
    }
}

pub(crate) fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Int8(_) => "8-bit integer",
        Value::Int16(_) => "16-bit integer",
        Value::Int32(_) => "32-bit integer",
        Value::Int64(_) => "64-bit integer",
        Value::Float32(_) => "32-bit float",
        Value::Float64(_) => "64-bit float",
        Value::String(_) => "string",
        Value::Bytes(_) => "bytes",
        Value::Array(_) => "array",
        Value::Map(_) => "map",
        Value::Struct(_) => "struct",
    }
}
