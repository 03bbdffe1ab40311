//! Avro with the wire format of Confluent's schema registry: a zero byte, the schema's id, the value.
//!
//! `converter` is the converter; `schema` makes Avro schemas of Connect schemas (`names` their names),
//! `binary` writes values, `subject` says under which name a schema is registered, `registry` talks to
//! the registry (`access` is how it is reached), `layout` compares two schemas, `options` are the
//! converter's options.
//!
//! Invariant: what `binary` writes can be read with what `schema` says, so both decide by the same
//! functions which branch of a union comes first and what becomes of a map.
//!
//! It does not: read Avro, or write headers.

mod access;
mod binary;
mod converter;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod fake_registry;
mod layout;
mod names;
pub(super) mod options;
mod registry;
mod schema;
mod store;
mod subject;
#[cfg(test)]
mod tls_tests;

pub use converter::AvroConverter;

use crate::record::{Schema, Type, Value};

/// A default of a schema that is a value.
fn default_of(schema: &Schema) -> Option<&Value> {
    schema.default.as_ref().filter(|value| !value.is_null())
}

/// Only required texts can be keys of an Avro map; other maps become arrays of entries.
fn has_text_keys(keys: &Schema) -> bool {
    keys.ty == Type::String && !keys.optional
}
