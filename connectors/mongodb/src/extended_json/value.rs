//! One BSON value after the other, as text.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use thalweg_core::convert::number::{ExponentSign, java_double};
use thalweg_core::record::TextForm;

use super::Writer;
use super::form::{Escaped, Form, Plain, put};
use super::string::{name, quoted};
use super::{date, decimal};
use crate::raw::{self, Element, Elements, MAX_DEPTH, Malformed, kind};

/// A dialect and its spacing, known at compile time.
trait Dialect {
    /// Extended JSON version 1.
    const STRICT: bool = false;
    /// Numbers carry their types.
    const CANONICAL: bool = false;
    const SPACED: bool = false;
}

struct Strict;
struct Relaxed;
struct Canonical;
struct RelaxedSpaced;

impl Dialect for Strict {
    const STRICT: bool = true;
}
impl Dialect for Relaxed {}
impl Dialect for Canonical {
    const CANONICAL: bool = true;
}
impl Dialect for RelaxedSpaced {
    const SPACED: bool = true;
}

/// `unique`: no document inside has two fields of one name. After an error `out` holds a part.
pub(super) fn write(
    writer: Writer,
    form: TextForm,
    kind: u8,
    bytes: &[u8],
    unique: bool,
    out: &mut Vec<u8>,
) -> Result<(), Malformed> {
    match (writer, form) {
        (Writer::Strict, TextForm::Plain) => value::<Strict, Plain>(kind, bytes, unique, 0, out),
        (Writer::Strict, TextForm::JsonEscaped) => value::<Strict, Escaped>(kind, bytes, unique, 0, out),
        (Writer::Relaxed, TextForm::Plain) => value::<Relaxed, Plain>(kind, bytes, unique, 0, out),
        (Writer::Relaxed, TextForm::JsonEscaped) => value::<Relaxed, Escaped>(kind, bytes, unique, 0, out),
        (Writer::Canonical, TextForm::Plain) => value::<Canonical, Plain>(kind, bytes, unique, 0, out),
        (Writer::Canonical, TextForm::JsonEscaped) => value::<Canonical, Escaped>(kind, bytes, unique, 0, out),
        (Writer::RelaxedSpaced, TextForm::Plain) => value::<RelaxedSpaced, Plain>(kind, bytes, unique, 0, out),
        (Writer::RelaxedSpaced, TextForm::JsonEscaped) => value::<RelaxedSpaced, Escaped>(kind, bytes, unique, 0, out),
    }
}

fn separator<D: Dialect>(out: &mut Vec<u8>) {
    out.extend_from_slice(if D::SPACED { b", " } else { b"," });
}

fn document<D: Dialect, F: Form>(bytes: &[u8], unique: bool, depth: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
    out.push(b'{');
    let elements = Elements::of(bytes)?;
    if unique {
        for (i, element) in elements.enumerate() {
            field::<D, F>(i, &element?, unique, depth, out)?;
        }
    } else {
        for (i, element) in last_of_each_name(elements)?.iter().enumerate() {
            field::<D, F>(i, element, unique, depth, out)?;
        }
    }
    out.push(b'}');
    Ok(())
}

fn field<D: Dialect, F: Form>(
    index: usize,
    element: &Element<'_>,
    unique: bool,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), Malformed> {
    if index > 0 {
        separator::<D>(out);
    }
    name::<F>(element.name, out);
    value::<D, F>(element.kind, element.value, unique, depth, out)
}

/// The last value of each name, at the place of the first.
fn last_of_each_name<'a>(elements: Elements<'a>) -> Result<Vec<Element<'a>>, Malformed> {
    let mut places: HashMap<&[u8], usize> = HashMap::new();
    let mut kept: Vec<Element<'a>> = Vec::new();
    for element in elements {
        let element = element?;
        let place = *places.entry(element.name).or_insert(kept.len());
        match kept.get_mut(place) {
            Some(earlier) => *earlier = element,
            None => kept.push(element),
        }
    }
    Ok(kept)
}

fn array<D: Dialect, F: Form>(bytes: &[u8], unique: bool, depth: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
    out.push(b'[');
    for (i, element) in Elements::of(bytes)?.enumerate() {
        let element = element?;
        if i > 0 {
            separator::<D>(out);
        }
        value::<D, F>(element.kind, element.value, unique, depth, out)?;
    }
    out.push(b']');
    Ok(())
}

const SHORT: Malformed = Malformed("a value is too short");

fn value<D: Dialect, F: Form>(
    kind: u8,
    bytes: &[u8],
    unique: bool,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), Malformed> {
    if depth > MAX_DEPTH {
        return Err(Malformed("documents are nested too deeply"));
    }
    match kind {
        kind::STRING => quoted::<F>(raw::string(bytes)?, out),
        kind::INT32 => int32::<D, F>(raw::int32(bytes).ok_or(SHORT)?, out),
        kind::INT64 => int64::<D, F>(raw::int64(bytes).ok_or(SHORT)?, out),
        kind::DOUBLE => double::<D, F>(f64::from_bits(raw::int64(bytes).ok_or(SHORT)? as u64), out),
        kind::OBJECT_ID => object_id::<F>(bytes, out),
        kind::BOOLEAN => out.extend_from_slice(if bytes == [0] { b"false" } else { b"true" }),
        kind::DATE => date::<D, F>(raw::int64(bytes).ok_or(SHORT)?, out),
        kind::NULL => out.extend_from_slice(b"null"),
        kind::DOCUMENT => return document::<D, F>(bytes, unique, depth + 1, out),
        kind::ARRAY => return array::<D, F>(bytes, unique, depth + 1, out),
        kind::BINARY => return binary::<D, F>(bytes, out),
        kind::DECIMAL128 => {
            put!(F, out, "{\"$numberDecimal\": \"");
            decimal::push(bytes.first_chunk().ok_or(SHORT)?, out);
            put!(F, out, "\"}");
        }
        kind::TIMESTAMP => {
            let (time, increment) = raw::timestamp(bytes).ok_or(SHORT)?;
            put!(F, out, "{\"$timestamp\": {\"t\": ");
            out.extend_from_slice(itoa::Buffer::new().format(time).as_bytes());
            separator::<D>(out);
            put!(F, out, "\"i\": ");
            out.extend_from_slice(itoa::Buffer::new().format(increment).as_bytes());
            put!(F, out, "}}");
        }
        kind::REGEX => return regex::<D, F>(bytes, out),
        kind::SYMBOL => {
            put!(F, out, "{\"$symbol\": ");
            quoted::<F>(raw::string(bytes)?, out);
            out.push(b'}');
        }
        kind::CODE => {
            put!(F, out, "{\"$code\": ");
            quoted::<F>(raw::string(bytes)?, out);
            out.push(b'}');
        }
        kind::CODE_WITH_SCOPE => {
            let (code, scope) = raw::code_with_scope(bytes)?;
            put!(F, out, "{\"$code\": ");
            quoted::<F>(code, out);
            separator::<D>(out);
            put!(F, out, "\"$scope\": ");
            document::<D, F>(scope, unique, depth + 1, out)?;
            out.push(b'}');
        }
        kind::DB_POINTER => return db_pointer::<D, F>(bytes, out),
        kind::MIN_KEY => put!(F, out, "{\"$minKey\": 1}"),
        kind::MAX_KEY => put!(F, out, "{\"$maxKey\": 1}"),
        kind::UNDEFINED => put!(F, out, "{\"$undefined\": true}"),
        _ => return Err(Malformed("unknown type of a value")),
    }
    Ok(())
}

fn int32<D: Dialect, F: Form>(number: i32, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(number).as_bytes();
    if D::CANONICAL {
        put!(F, out, "{\"$numberInt\": \"");
        out.extend_from_slice(digits);
        put!(F, out, "\"}");
    } else {
        out.extend_from_slice(digits);
    }
}

fn int64<D: Dialect, F: Form>(number: i64, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(number).as_bytes();
    if D::CANONICAL || D::STRICT {
        put!(F, out, "{\"$numberLong\": \"");
        out.extend_from_slice(digits);
        put!(F, out, "\"}");
    } else {
        out.extend_from_slice(digits);
    }
}

/// Numbers that JSON does not have: bare words in version 1, text in version 2.
fn double<D: Dialect, F: Form>(number: f64, out: &mut Vec<u8>) {
    if D::CANONICAL || (!D::STRICT && !number.is_finite()) {
        put!(F, out, "{\"$numberDouble\": \"");
        java_double(number, ExponentSign::Plus, out);
        put!(F, out, "\"}");
    } else {
        java_double(number, ExponentSign::Plus, out);
    }
}

fn date<D: Dialect, F: Form>(millis: i64, out: &mut Vec<u8>) {
    if D::STRICT {
        put!(F, out, "{\"$date\": ");
        out.extend_from_slice(itoa::Buffer::new().format(millis).as_bytes());
        out.push(b'}');
    } else if D::CANONICAL || !date::has_text(millis) {
        put!(F, out, "{\"$date\": {\"$numberLong\": \"");
        out.extend_from_slice(itoa::Buffer::new().format(millis).as_bytes());
        put!(F, out, "\"}}");
    } else {
        put!(F, out, "{\"$date\": \"");
        date::push(millis, out);
        put!(F, out, "\"}");
    }
}

fn object_id<F: Form>(bytes: &[u8], out: &mut Vec<u8>) {
    put!(F, out, "{\"$oid\": \"");
    hex(bytes, b"0123456789abcdef", out);
    put!(F, out, "\"}");
}

fn hex(bytes: &[u8], digits: &[u8; 16], out: &mut Vec<u8>) {
    for byte in bytes {
        out.extend_from_slice(&[digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]);
    }
}

fn binary<D: Dialect, F: Form>(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let (subtype, data) = raw::binary(bytes)?;
    if D::STRICT {
        put!(F, out, "{\"$binary\": \"");
    } else {
        put!(F, out, "{\"$binary\": {\"base64\": \"");
    }
    let start = out.len();
    out.resize(start + data.len().div_ceil(3) * 4, 0);
    let written = BASE64.encode_slice(data, &mut out[start..]).unwrap_or(0);
    out.truncate(start + written);
    put!(F, out, "\"");
    separator::<D>(out);
    if D::STRICT {
        put!(F, out, "\"$type\": \"");
    } else {
        put!(F, out, "\"subType\": \"");
    }
    hex(&[subtype], b"0123456789ABCDEF", out);
    if D::STRICT {
        put!(F, out, "\"}");
    } else {
        put!(F, out, "\"}}");
    }
    Ok(())
}

fn regex<D: Dialect, F: Form>(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let (pattern, options) = raw::regex(bytes)?;
    if D::STRICT {
        put!(F, out, "{\"$regex\": ");
    } else {
        put!(F, out, "{\"$regularExpression\": {\"pattern\": ");
    }
    quoted::<F>(pattern, out);
    separator::<D>(out);
    if D::STRICT {
        put!(F, out, "\"$options\": ");
    } else {
        put!(F, out, "\"options\": ");
    }
    if options.is_sorted() {
        quoted::<F>(options, out);
    } else {
        let mut sorted = options.to_vec();
        sorted.sort_unstable();
        quoted::<F>(&sorted, out);
    }
    out.extend_from_slice(if D::STRICT { b"}" } else { b"}}" });
    Ok(())
}

fn db_pointer<D: Dialect, F: Form>(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let (namespace, id) = bytes.len().checked_sub(12).map(|at| bytes.split_at(at)).ok_or(SHORT)?;
    if D::CANONICAL {
        put!(F, out, "{\"$dbPointer\": ");
    }
    put!(F, out, "{\"$ref\": ");
    quoted::<F>(raw::string(namespace)?, out);
    separator::<D>(out);
    put!(F, out, "\"$id\": ");
    object_id::<F>(id, out);
    out.extend_from_slice(if D::CANONICAL { b"}}" } else { b"}" });
    Ok(())
}
