//! Why a record cannot be transformed. A message names the field and the kind of what was found; it
//! never shows a value. The chain adds which transform it was.

use std::fmt;

use crate::convert::fault::kind_name;
use crate::error::{Error, ErrorKind, Phase};
use crate::record::Value;

/// A record that a transform cannot use.
pub fn invalid(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::ValueInvalid, Phase::Convert, text)
}

pub(super) fn not_a_map(value: &Value, purpose: &str) -> Error {
    invalid(format!("Only Map objects supported in absence of schema for [{purpose}], found: {}", kind_name(value)))
}

pub(super) fn not_a_struct(value: &Value, purpose: &str) -> Error {
    invalid(format!("Only Struct objects supported for [{purpose}], found: {}", kind_name(value)))
}

pub(super) fn missing(field: &str) -> Error {
    invalid(format!("Field does not exist: {field}"))
}

/// The same error with the field in which it happened.
pub(super) fn in_field(field: &(impl fmt::Display + ?Sized)) -> impl FnOnce(Error) -> Error {
    move |mut error| {
        error.message = format!("{} (field {field})", error.message);
        error
    }
}
