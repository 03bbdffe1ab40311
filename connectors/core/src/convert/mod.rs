//! Records become bytes: the converters of keys, values and headers.
//!
//! `classes` chooses and configures them; `json` (with `json_schema`), `text` and `primitive` are the
//! converters; `headers` keeps the encoded form of the last header list. Shared pieces: `escape`,
//! `number`, `calendar`, `logical`, `fault`.
//!
//! Invariants: a converter appends to the buffer it is given and leaves it as it was when it fails;
//! its errors name the field and never show a value.
//!
//! It does not: choose topics or partitions, send, or tolerate errors (see `tolerance`).

pub(crate) mod calendar;
pub mod classes;
mod escape;
pub(crate) mod fault;
mod headers;
mod json;
mod json_schema;
pub(crate) mod logical;
pub mod number;
mod primitive;
mod text;

use std::sync::Arc;

pub use classes::{ConverterClass, Role};
pub use escape::{json_escape, json_string};
pub use headers::HeaderEncoder;
pub use json::{DecimalFormat, JsonConverter};
pub use primitive::{Primitive, PrimitiveConverter};
pub use text::{SimpleHeaderConverter, StringConverter};
use thalweg_config::Properties;

use crate::error::Result;
use crate::record::{Datum, Schema, Value};

/// What a conversion gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// A Kafka null; nothing was appended.
    Null,
    Bytes,
}

/// Turns a value into bytes. Owned by one encoder.
pub trait Converter: Send {
    /// Full class name, for error reports.
    fn class(&self) -> &'static str;

    /// Appends to `out`. Errors have kind `ValueInvalid` and leave `out` as it was.
    fn convert(&mut self, schema: Option<&Arc<Schema>>, value: &Value, out: &mut Vec<u8>) -> Result<Written>;

    /// See [`Converter::convert`].
    fn convert_datum(&mut self, datum: &Datum, out: &mut Vec<u8>) -> Result<Written> {
        self.convert(datum.schema.as_ref(), &datum.value, out)
    }
}

/// The three converters of a task.
pub struct Converters {
    pub key: Box<dyn Converter>,
    pub value: Box<dyn Converter>,
    pub headers: HeaderEncoder,
}

impl Converters {
    /// From the configurations of connector and worker (references resolved). A converter that the
    /// connector names takes its options from the connector only; one that it does not name comes
    /// from the worker with the worker's options.
    pub fn from_config(connector: &Properties, worker: &Properties) -> Result<Self> {
        Ok(Self {
            key: Role::Key.make(connector, worker)?,
            value: Role::Value.make(connector, worker)?,
            headers: HeaderEncoder::new(Role::Header.make(connector, worker)?),
        })
    }
}

#[cfg(test)]
#[path = "other_tests.rs"]
mod tests;
