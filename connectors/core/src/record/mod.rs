//! The data model that every connector fills and every transform and converter reads:
//! Kafka Connect's schemas and values, and the record that carries them.
//!
//! Invariant: a struct value has exactly one entry per field of its schema, in schema order.

mod header;
#[allow(clippy::module_inception)]
mod record;
mod schema;
mod text;
mod value;

pub use header::{Header, Headers};
pub use record::{Datum, Record};
pub use schema::{Field, Schema, Type};
pub use text::{RenderText, Text, TextForm};
pub use value::Value;
