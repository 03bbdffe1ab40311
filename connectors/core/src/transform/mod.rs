//! Transforms: where a record may be changed or dropped between source and converter, as
//! `transforms` and `predicates` of the connector say.
//!
//! `chain` runs them in order; `configuration` reads and checks their options; `classes` lists what
//! there is. Each class has a file of its own, and so have the pieces that several share: access to
//! fields (`object`, `path`), what is kept from record to record (`cache`, `topics`, `header_list`),
//! Java's texts (`java_regex`, `date_format`, `literal`, `decimal`), what Debezium's have in common
//! (`change_event`, `added_fields`, `delete_handling`, `dropped_fields`, `conditional`). Connectors bring
//! further classes and use the public ones of these.
//!
//! Invariants: a transform never changes a position; an error names field and class, never shows a value
//! and never passes by itself; one old schema always gives the same new one, so that converters
//! find their caches. An empty [`Chain`] is what the encoder asks for with [`Chain::is_empty`] and then
//! passes by.
//!
//! It does not: send, convert to bytes, or tolerate errors (see `tolerance`).

mod added_fields;
mod cache;
mod cast;
mod cast_value;
mod chain;
pub mod change_event;
mod changed_fields;
mod classes;
mod condition_filter;
mod conditional;
mod configuration;
mod content_router;
mod date_format;
pub(crate) mod decimal;
mod delete_handling;
mod drop_headers;
mod dropped_fields;
mod expression;
mod extract_field;
mod extract_new_record_state;
mod fault;
mod filter;
mod flatten;
mod header_from;
mod header_list;
mod header_to_value;
mod hoist_field;
mod insert_field;
mod insert_header;
pub(crate) mod java_regex;
mod literal;
mod logical_topic_router;
mod mask_field;
mod object;
pub mod options;
pub mod outbox;
mod partition_routing;
mod path;
mod predicate;
mod regex_router;
mod replace_field;
mod schema_change_filter;
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

pub use added_fields::{Added, AddedFields, Found};
pub use cache::{SchemaCache, SchemaPool};
pub use chain::{Chain, ChainError};
pub use classes::{PREDICATES, PredicateClass, TRANSFORMS, TransformClass, TransformClasses, predicate_called};
pub use configuration::validate;
pub use delete_handling::{DELETE_MODE, DeleteHandling, OLD_DELETE_MODE, OLD_DROP_TOMBSTONES};
pub use fault::invalid;
pub use flatten::flatten_value;
pub use header_list::LongerLists;

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
    /// Changes the record, except for its position. After an error, which never passes by itself, the
    /// record is not used any more.
    fn apply(&mut self, record: &mut Record) -> Result<Fate>;
}

/// What a class makes of its options.
pub type Made = Result<Box<dyn Transform>>;

/// A configuration that the check of the options should have refused.
fn broken(text: String) -> Error {
    Error::config(text)
}
