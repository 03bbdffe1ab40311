//! Records become bytes: the converters of keys, values and headers.
//!
//! `classes` chooses and configures them; `json` (with `json_schema`), `avro`, `text` and `primitive` are
//! the converters; `raw` shows what no converter can write; `headers` keeps the encoded form of the last header list. Shared pieces: `escape`,
//! `number`, `calendar`, `logical`, `fault`.
//!
//! Invariants: a converter appends to the buffer it is given and leaves it as it was when it fails;
//! its errors name the field and never show a value.
//!
//! It does not: choose topics or partitions, send, or tolerate errors (see `tolerance`).

mod avro;
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
mod raw;
mod text;

use std::sync::Arc;

use async_trait::async_trait;
pub use avro::AvroConverter;
pub use classes::{ConverterClass, Role};
pub use escape::{json_escape, json_string};
pub use headers::HeaderEncoder;
pub use json::{DecimalFormat, JsonConverter};
pub use primitive::{Primitive, PrimitiveConverter};
pub use raw::raw_json;
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
    /// Nothing was appended: [`Converter::prepare`] has to be awaited first, then it is tried again.
    Waiting,
}

/// Turns a value into bytes. Owned by one encoder.
#[async_trait]
pub trait Converter: Send {
    /// Full class name, for error reports.
    fn class(&self) -> &'static str;

    /// Appends to `out`. Errors have kind `ValueInvalid` and leave `out` as it was. `topic` is where the
    /// record goes.
    fn convert(
        &mut self,
        topic: &Arc<str>,
        schema: Option<&Arc<Schema>>,
        value: &Value,
        out: &mut Vec<u8>,
    ) -> Result<Written>;

    /// See [`Converter::convert`].
    fn convert_datum(&mut self, topic: &Arc<str>, datum: &Datum, out: &mut Vec<u8>) -> Result<Written> {
        self.convert(topic, datum.schema.as_ref(), &datum.value, out)
    }

    /// Does what the last [`Converter::convert`] was waiting for. May be given up at any time. An error
    /// that is not of kind `ValueInvalid` has nothing to do with the record.
    async fn prepare(&mut self) -> Result<()> {
        Ok(())
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
