//! BSON bytes to MongoDB's extended JSON text, straight into a message buffer.
//!
//! Four writers produce byte for byte what Debezium's do: strict (version 1), relaxed and canonical
//! (version 2), each compact, and relaxed with blanks behind commas. Every writer exists in two forms:
//! plain, and escaped as the inside of a JSON string, so that a document goes into a JSON message
//! without being written twice. Nothing is decoded into a tree; texts that are not UTF-8 are repaired
//! as Java repairs them; of fields with the same name the last value stands at the first place.
//!
//! It never panics on damaged bytes, and it does not filter or rename fields.

mod category;
mod date;
mod decimal;
mod form;
mod same;
mod string;
mod value;

use std::fmt;

use bytes::Bytes;
use thalweg_core::record::{RenderText, TextForm};

use crate::raw::{self, Malformed, kind};

/// Which extended JSON the texts of an event are written in (`json.serialization.mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JsonMode {
    /// `before` and `after` strict, `updatedFields` relaxed with blanks.
    #[default]
    Legacy,
    Strict,
    Extended,
    Relaxed,
}

impl JsonMode {
    /// Canonical option text; anything else is the default.
    pub fn parse(text: &str) -> Self {
        match text {
            "strict" => Self::Strict,
            "extended" => Self::Extended,
            "relaxed" => Self::Relaxed,
            _ => Self::Legacy,
        }
    }

    /// Writer of `before` and `after`.
    pub fn documents(self) -> Writer {
        match self {
            Self::Legacy | Self::Strict => Writer::Strict,
            Self::Extended => Writer::Canonical,
            Self::Relaxed => Writer::Relaxed,
        }
    }

    /// Writer of `updatedFields`.
    pub fn updates(self) -> Writer {
        match self {
            Self::Legacy => Writer::RelaxedSpaced,
            Self::Strict => Writer::Strict,
            Self::Extended => Writer::Canonical,
            Self::Relaxed => Writer::Relaxed,
        }
    }
}

/// Dialect and spacing of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// Extended JSON version 1, as MongoDB's Java driver writes it.
    Strict,
    Relaxed,
    /// Every number with its type.
    Canonical,
    /// Relaxed, with a blank behind every comma.
    RelaxedSpaced,
}

/// A document as extended JSON text that is written when somebody needs it.
///
/// Holds a checked document, so writing cannot fail.
pub struct Document {
    bytes: Bytes,
    writer: Writer,
    unique: bool,
}

impl Document {
    /// Errors: the bytes are not one BSON document.
    pub fn new(bytes: Bytes, writer: Writer) -> Result<Self, Malformed> {
        let unique = raw::check(&bytes)?;
        Ok(Self { bytes, writer, unique })
    }

    /// The BSON, if whoever reads the text as extended JSON gets what is in it: with the same types, the
    /// same text and the same order. `None` proves nothing.
    pub fn as_read(&self) -> Option<&[u8]> {
        (self.unique && same::document(self.writer, &self.bytes)).then_some(&*self.bytes)
    }
}

impl RenderText for Document {
    fn render(&self, form: TextForm, out: &mut Vec<u8>) {
        let written = value::write(self.writer, form, kind::DOCUMENT, &self.bytes, self.unique, out);
        debug_assert!(written.is_ok(), "a checked document cannot fail");
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Document({} bytes, {:?})", self.bytes.len(), self.writer)
    }
}

/// Appends one value of any type. Errors: the bytes are not such a value; then `out` is unchanged.
pub fn write_value(writer: Writer, form: TextForm, kind: u8, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let unique = raw::check_value(kind, bytes)?;
    let start = out.len();
    value::write(writer, form, kind, bytes, unique, out).inspect_err(|_| out.truncate(start))
}

/// Text of a decimal, from its 16 bytes.
pub fn decimal_text(bytes: &[u8; 16]) -> String {
    let mut out = Vec::new();
    decimal::push(bytes, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Appends raw bytes that should be UTF-8 the way Java decodes them: what is malformed becomes U+FFFD.
pub fn push_lossy(bytes: &[u8], out: &mut String) {
    string::lossy(bytes, out);
}

#[cfg(test)]
mod tests;
