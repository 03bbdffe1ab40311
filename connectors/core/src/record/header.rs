//! Record headers: named values, order kept, names may repeat.

use std::sync::Arc;

use super::{Schema, Value};

#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    pub name: Arc<str>,
    pub schema: Option<Arc<Schema>>,
    pub value: Value,
}

/// Headers of a record. Most records of a task share one list, so it is shared and copied on write;
/// encoders may cache the encoded form by pointer.
pub type Headers = Arc<Vec<Header>>;
