//! BSON as it lies in memory: where elements begin and end.
//!
//! Works on bytes that came from outside: every length is checked, nesting is bounded, nothing
//! panics and nothing is copied. Names and strings are bytes here; they may be invalid UTF-8.

use std::collections::HashSet;

/// Levels of nesting that are followed: a change event around a stored document, which has up to 180.
pub const MAX_DEPTH: usize = 220;

/// Type bytes of the BSON specification.
pub mod kind {
    pub const DOUBLE: u8 = 0x01;
    pub const STRING: u8 = 0x02;
    pub const DOCUMENT: u8 = 0x03;
    pub const ARRAY: u8 = 0x04;
    pub const BINARY: u8 = 0x05;
    pub const UNDEFINED: u8 = 0x06;
    pub const OBJECT_ID: u8 = 0x07;
    pub const BOOLEAN: u8 = 0x08;
    pub const DATE: u8 = 0x09;
    pub const NULL: u8 = 0x0A;
    pub const REGEX: u8 = 0x0B;
    pub const DB_POINTER: u8 = 0x0C;
    pub const CODE: u8 = 0x0D;
    pub const SYMBOL: u8 = 0x0E;
    pub const CODE_WITH_SCOPE: u8 = 0x0F;
    pub const INT32: u8 = 0x10;
    pub const TIMESTAMP: u8 = 0x11;
    pub const INT64: u8 = 0x12;
    pub const DECIMAL128: u8 = 0x13;
    pub const MIN_KEY: u8 = 0xFF;
    pub const MAX_KEY: u8 = 0x7F;
}

/// Bytes that are not BSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed BSON: {0}")]
pub struct Malformed(pub &'static str);

/// A named value; `value` is exactly the value's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element<'a> {
    pub kind: u8,
    pub name: &'a [u8],
    pub value: &'a [u8],
}

/// Iterator over the elements of a document or array. After an error it ends.
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Elements<'a> {
    /// `document` is one document from its length prefix to its closing zero.
    pub fn of(document: &'a [u8]) -> Result<Self, Malformed> {
        if document.len() < 5 || length(document)? != document.len() {
            return Err(Malformed("a document's length differs from its size"));
        }
        match document.split_last() {
            Some((0, body)) => Ok(Self { rest: &body[4..] }),
            _ => Err(Malformed("a document is not closed")),
        }
    }

    #[inline]
    fn read(&mut self) -> Result<Option<Element<'a>>, Malformed> {
        let Some((&kind, rest)) = self.rest.split_first() else { return Ok(None) };
        let name = c_string(rest)?;
        let rest = &rest[name.len() + 1..];
        let length = value_length(kind, rest)?;
        let (value, rest) = rest.split_at_checked(length).ok_or(Malformed("a value ends behind its document"))?;
        self.rest = rest;
        Ok(Some(Element { kind, name, value }))
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Element<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let element = self.read();
        if element.is_err() {
            self.rest = &[];
        }
        element.transpose()
    }
}

/// A length prefix: a non-negative int32.
fn length(bytes: &[u8]) -> Result<usize, Malformed> {
    int32(bytes).and_then(|n| usize::try_from(n).ok()).ok_or(Malformed("a length is missing or negative"))
}

/// Bytes up to the next zero.
#[inline]
pub fn c_string(bytes: &[u8]) -> Result<&[u8], Malformed> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    // Names are short: most end within the first eight bytes.
    if let Some(word) = bytes.first_chunk().map(|b| u64::from_le_bytes(*b)) {
        let zero = word.wrapping_sub(ONES) & !word & HIGHS;
        if zero != 0 {
            return Ok(&bytes[..(zero.trailing_zeros() / 8) as usize]);
        }
    }
    memchr::memchr(0, bytes).map(|end| &bytes[..end]).ok_or(Malformed("a name is not closed"))
}

/// Size of a value of this kind at the start of `bytes`; the bytes may be fewer.
#[inline]
pub fn value_length(kind: u8, bytes: &[u8]) -> Result<usize, Malformed> {
    Ok(match kind {
        kind::UNDEFINED | kind::NULL | kind::MIN_KEY | kind::MAX_KEY => 0,
        kind::BOOLEAN => 1,
        kind::INT32 => 4,
        kind::DOUBLE | kind::DATE | kind::TIMESTAMP | kind::INT64 => 8,
        kind::OBJECT_ID => 12,
        kind::DECIMAL128 => 16,
        kind::STRING | kind::CODE | kind::SYMBOL => length(bytes)? + 4,
        kind::DB_POINTER => length(bytes)? + 4 + 12,
        kind::BINARY => length(bytes)? + 5,
        kind::DOCUMENT | kind::ARRAY | kind::CODE_WITH_SCOPE => length(bytes)?,
        kind::REGEX => {
            let (pattern, options) = regex(bytes)?;
            pattern.len() + options.len() + 2
        }
        _ => return Err(Malformed("unknown type of a value")),
    })
}

/// The text of a string, code or symbol value, without length and closing zero.
pub fn string(value: &[u8]) -> Result<&[u8], Malformed> {
    let (prefix, text) = value.split_at_checked(4).ok_or(Malformed("a string is too short"))?;
    match text.split_last() {
        Some((0, text)) if length(prefix)? == text.len() + 1 => Ok(text),
        _ => Err(Malformed("a string is not closed")),
    }
}

pub fn int32(value: &[u8]) -> Option<i32> {
    value.first_chunk().map(|b| i32::from_le_bytes(*b))
}

pub fn int64(value: &[u8]) -> Option<i64> {
    value.first_chunk().map(|b| i64::from_le_bytes(*b))
}

/// Value of a timestamp: (seconds, increment).
pub fn timestamp(value: &[u8]) -> Option<(u32, u32)> {
    let (increment, rest) = value.split_first_chunk()?;
    Some((u32::from_le_bytes(*rest.first_chunk()?), u32::from_le_bytes(*increment)))
}

/// A binary value taken apart: subtype and data, of the old generic subtype without the length inside.
pub fn binary(value: &[u8]) -> Result<(u8, &[u8]), Malformed> {
    const OLD_GENERIC: u8 = 2;
    let (&subtype, data) =
        value.get(4..).and_then(<[u8]>::split_first).ok_or(Malformed("a binary value is too short"))?;
    Ok(match data.split_at_checked(4) {
        Some((inner, data)) if subtype == OLD_GENERIC && length(inner) == Ok(data.len()) => (subtype, data),
        _ => (subtype, data),
    })
}

/// The two texts of a regular expression: pattern and options.
pub fn regex(value: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let pattern = c_string(value)?;
    Ok((pattern, c_string(&value[pattern.len() + 1..])?))
}

/// A code-with-scope value taken apart: code text and scope document.
pub fn code_with_scope(value: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let rest = value.get(4..).ok_or(Malformed("code with scope is too short"))?;
    let size = value_length(kind::STRING, rest)?;
    let (code, scope) = rest.split_at_checked(size).ok_or(Malformed("code with scope is too short"))?;
    Ok((string(code)?, scope))
}

/// Follows `document` to its last element: afterwards every walk over it succeeds. Returns whether
/// all names are unique in their documents.
pub fn check(document: &[u8]) -> Result<bool, Malformed> {
    check_document(document, false, 0)
}

/// As [`check`], for a single value.
pub fn check_value(kind: u8, value: &[u8]) -> Result<bool, Malformed> {
    check_inside(kind, value, 0)
}

fn check_document(document: &[u8], is_array: bool, depth: usize) -> Result<bool, Malformed> {
    if depth == MAX_DEPTH {
        return Err(Malformed("documents are nested too deeply"));
    }
    let mut names = Names::default();
    let mut unique = true;
    for element in Elements::of(document)? {
        let element = element?;
        if !is_array {
            unique &= !names.seen(element.name, document);
        }
        unique &= check_inside(element.kind, element.value, depth)?;
    }
    Ok(unique)
}

fn check_inside(kind: u8, value: &[u8], depth: usize) -> Result<bool, Malformed> {
    match kind {
        kind::DOCUMENT => check_document(value, false, depth + 1),
        kind::ARRAY => check_document(value, true, depth + 1),
        kind::STRING | kind::CODE | kind::SYMBOL => string(value).map(|_| true),
        kind::CODE_WITH_SCOPE => check_document(code_with_scope(value)?.1, false, depth + 1),
        kind::DB_POINTER => {
            let text = value.len().checked_sub(12).ok_or(Malformed("a pointer is too short"))?;
            string(&value[..text]).map(|_| true)
        }
        _ => Ok(true),
    }
}

/// Names met in one document. A small filter answers for most names without comparing; documents
/// with many names get a set, so that none costs quadratic time.
#[derive(Default)]
struct Names<'a> {
    filter: [u64; 4],
    count: usize,
    all: Option<HashSet<&'a [u8]>>,
}

impl<'a> Names<'a> {
    fn seen(&mut self, name: &'a [u8], document: &'a [u8]) -> bool {
        self.count += 1;
        if let Some(all) = &mut self.all {
            return !all.insert(name);
        }
        if self.count > 48 {
            let before = self.before(document);
            let all = self.all.insert(before.map(|e| e.name).collect());
            return !all.insert(name);
        }
        let hash = hash(name);
        let (word, bit) = ((hash >> 62) as usize, 1 << (hash >> 56 & 63));
        let known = self.filter[word] & bit != 0;
        self.filter[word] |= bit;
        known && self.before(document).any(|e| e.name == name)
    }

    /// The elements before the current one.
    fn before(&self, document: &'a [u8]) -> impl Iterator<Item = Element<'a>> + use<'a> {
        Elements::of(document).into_iter().flatten().flatten().take(self.count - 1)
    }
}

/// Mixes length and both ends of a name into the upper bits.
fn hash(name: &[u8]) -> u64 {
    let word = |bytes: Option<&[u8; 4]>| bytes.map_or(0, |b| u64::from(u32::from_le_bytes(*b)));
    let (first, last) = match (name, name.first_chunk(), name.last_chunk()) {
        (_, Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
        ([_, _, _, _, ..], ..) => (word(name.first_chunk()), word(name.last_chunk())),
        ([first, .., last], ..) => (u64::from(*first), u64::from(*last) << 8 | u64::from(name[1])),
        (&[only], ..) => (u64::from(only), 0),
        _ => (0, 0),
    };
    (first.rotate_left(17) ^ last ^ name.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bson::{doc, rawdoc};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn elements_in_order() {
        let document = rawdoc! {"a": 1, "b": {"c": "x"}, "d": [true, 5_i64]};
        let elements: Vec<_> = Elements::of(document.as_bytes()).unwrap().map(Result::unwrap).collect();
        let shape: Vec<_> = elements.iter().map(|e| (e.kind, e.name)).collect();
        assert_eq!(shape, [(kind::INT32, b"a".as_slice()), (kind::DOCUMENT, b"b"), (kind::ARRAY, b"d")]);
        assert_eq!(int32(elements[0].value), Some(1));
        assert_eq!(check(document.as_bytes()), Ok(true));
    }

    #[test]
    fn duplicate_names_are_noticed_at_every_level_but_not_in_arrays() {
        let twice = |inner: &[u8]| {
            let mut bytes = vec![0; 4];
            for _ in 0..2 {
                bytes.extend_from_slice(b"\x03x\0");
                bytes.extend_from_slice(inner);
            }
            bytes.push(0);
            let length = (bytes.len() as i32).to_le_bytes();
            bytes[..4].copy_from_slice(&length);
            bytes
        };
        let duplicated = twice(rawdoc! {}.as_bytes());
        assert_eq!(check(&duplicated), Ok(false));
        let inside = bson::RawDocumentBuf::from_bytes(duplicated.clone()).unwrap();
        assert_eq!(check(rawdoc! {"a": [{"b": inside}]}.as_bytes()), Ok(false));
        let mut as_array = rawdoc! {"a": bson::RawDocumentBuf::from_bytes(duplicated).unwrap()}.into_bytes();
        as_array[4] = kind::ARRAY;
        assert_eq!(check(&as_array), Ok(true));
    }

    #[test]
    fn duplicates_among_many_names() {
        let mut document = bson::RawDocumentBuf::new();
        for i in 0..2000 {
            document.append(bson::raw::CString::try_from(format!("field{i}")).unwrap(), i);
        }
        assert_eq!(check(document.as_bytes()), Ok(true));
        document.append(bson::raw::CString::try_from("field7".to_owned()).unwrap(), 0);
        assert_eq!(check(document.as_bytes()), Ok(false));
    }

    #[test]
    fn nesting_is_bounded() {
        let mut document = doc! {};
        for _ in 0..MAX_DEPTH - 1 {
            document = doc! {"d": document};
        }
        let fits = bson::RawDocumentBuf::try_from(&document).unwrap();
        assert_eq!(check(fits.as_bytes()), Ok(true));
        let deeper = bson::RawDocumentBuf::try_from(&doc! {"d": document}).unwrap();
        assert_eq!(check(deeper.as_bytes()), Err(Malformed("documents are nested too deeply")));
    }

    proptest! {
        #[test]
        fn any_bytes_are_followed_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = check(&bytes);
        }

        #[test]
        fn damaged_documents_are_followed_without_panic(at in 0_usize..200, byte in any::<u8>()) {
            let code = bson::JavaScriptCodeWithScope { code: "f()".into(), scope: doc! {"s": 1} };
            let document = doc! {
                "s": "text", "d": {"a": [1, "b", 2.5]}, "r": bson::Regex { pattern: bson::raw::CString::try_from("a".to_owned()).unwrap(),
                options: bson::raw::CString::try_from("i".to_owned()).unwrap() }, "c": code, "b": bson::Binary { subtype: bson::spec::BinarySubtype::Generic,
                bytes: vec![1, 2, 3] }, "o": bson::oid::ObjectId::from_bytes([1; 12]),
            };
            let mut bytes = bson::RawDocumentBuf::try_from(&document).unwrap().into_bytes();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = check(&bytes);
        }
    }
}
