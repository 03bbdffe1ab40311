//! Transforms: where a record may be changed or dropped between source and converter, as
//! `transforms` and `predicates` of the connector say.
//!
//! `chain` runs them in order; `configuration` reads and checks their options; `classes` lists what
//! there is. Each class has a file of its own, and so have the pieces that several share: access to
//! fields (`object`, `path`), what is kept from record to record (`cache`, `topics`, `header_list`),
//! Java's texts (`java_regex`, `date_format`, `literal`, `decimal`).
//!
//! Invariants: a transform never changes a position; an error leaves nothing in the output, names field
//! and class, and never shows a value; one old schema always gives the same new one, so that converters
//! find their caches. An empty [`Chain`] is what the encoder asks for with [`Chain::is_empty`] and then
//! passes by.
//!
//! It does not: send, convert to bytes, or tolerate errors (see `tolerance`).

mod cache;
mod cast;
mod cast_value;
mod chain;
mod classes;
mod configuration;
mod date_format;
mod decimal;
mod drop_headers;
mod extract_field;
mod fault;
mod filter;
mod flatten;
mod header_from;
mod header_list;
mod hoist_field;
mod insert_field;
mod insert_header;
mod java_regex;
mod literal;
mod mask_field;
mod object;
mod options;
mod path;
mod predicate;
mod regex_router;
mod replace_field;
mod schema_metadata;
mod schemas;
mod side;
mod timestamp_converter;
mod timestamp_router;
mod topics;
mod value_to_key;

#[cfg(test)]
#[path = "tests/support.rs"]
mod support;

pub use chain::{Chain, ChainError};
pub use classes::{PREDICATES, PredicateClass, TRANSFORMS, TransformClass, predicate_called, transform_called};
pub use configuration::validate;

use crate::error::{Error, Result};
use crate::record::Record;

/// What becomes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Keep,
    /// Its position counts as delivered.
    Drop,
}

/// Changes records. Owned by one encoder.
pub trait Transform: Send {
    /// Changes the record, except for its position. After an error the record is not used any more.
    fn apply(&mut self, record: &mut Record) -> Result<Fate>;
}

type Made = Result<Box<dyn Transform>>;

/// A configuration that the check of the options should have refused.
fn broken(text: String) -> Error {
    Error::config(text)
}
