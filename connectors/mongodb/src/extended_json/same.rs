//! Which documents somebody who reads their text gets back as they are.
//!
//! Most do. The others have names that extended JSON gives a meaning to, text that is not UTF-8 and is
//! repaired, numbers whose type the relaxed dialect drops, or values it has only one of several forms for.
//! "No" is always a safe answer.

use bson::Decimal128;

use super::{Writer, decimal_text};
use crate::raw::{self, Elements, MAX_DEPTH, Malformed, kind};

/// `document` is checked and has no name twice.
pub(super) fn document(writer: Writer, document: &[u8]) -> bool {
    // Extended JSON nests deeper than the values: {"$date": {"$numberLong": "1"}}.
    inside(writer, document, false, MAX_DEPTH - 3).unwrap_or(false)
}

fn inside(writer: Writer, document: &[u8], is_array: bool, levels: usize) -> Result<bool, Malformed> {
    for (i, element) in Elements::of(document)?.enumerate() {
        let element = element?;
        let named = is_array || (is_text(element.name) && !(i == 0 && element.name.starts_with(b"$")));
        if levels == 0 || !named || !value(writer, element.kind, element.value, levels - 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok()
}

fn value(writer: Writer, kind: u8, value: &[u8], levels: usize) -> Result<bool, Malformed> {
    Ok(match kind {
        kind::STRING | kind::CODE => is_text(raw::string(value)?),
        kind::DOCUMENT => inside(writer, value, false, levels)?,
        kind::ARRAY => inside(writer, value, true, levels)?,
        kind::INT64 => match writer {
            Writer::Strict | Writer::Canonical => true,
            // Written without a type, so it is read as the smaller one.
            Writer::Relaxed | Writer::RelaxedSpaced => raw::int64(value).is_some_and(|n| i32::try_from(n).is_err()),
        },
        // There is one text for all that are none.
        kind::DOUBLE => raw::int64(value).is_some_and(|bits| {
            let number = f64::from_bits(bits.cast_unsigned());
            !number.is_nan() || number.to_bits() == f64::NAN.to_bits()
        }),
        kind::INT32 | kind::BOOLEAN | kind::NULL | kind::OBJECT_ID | kind::DATE | kind::TIMESTAMP | kind::UNDEFINED => {
            true
        }
        kind::BINARY => raw::binary(value).is_ok(),
        kind::DECIMAL128 => match value.first_chunk() {
            Some(bytes) => decimal_text(bytes).parse::<Decimal128>().is_ok_and(|number| number.bytes() == *bytes),
            None => false,
        },
        kind::REGEX => {
            let (pattern, options) = raw::regex(value)?;
            is_text(pattern) && is_text(options) && options.is_sorted()
        }
        _ => false,
    })
}
