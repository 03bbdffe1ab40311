//! The documents that the texts of change events describe, as BSON.
//!
//! It is the BSON of the event itself as long as nobody needed its text, and else what the text says. All
//! names and texts in it are UTF-8, and no document has a name twice.

use std::borrow::Cow;

use bson::{Bson, Document, RawDocumentBuf};
use thalweg_core::Error;
use thalweg_core::record::Text;
use thalweg_core::transform::invalid;

use crate::extended_json;
use crate::lenient_json;
use crate::raw::{Element, Elements, MAX_DEPTH, Malformed, kind};

/// A value from its text; `what` names it in an error, which shows no values.
pub(super) fn parsed(text: &str, what: &str) -> Result<Bson, Error> {
    lenient_json::parse(text, MAX_DEPTH)
        .map_err(|error| invalid(format!("{what} cannot be read as extended JSON, at offset {}", error.offset)))
}

pub(super) fn parsed_document(text: &str, what: &str) -> Result<Document, Error> {
    match parsed(text, what)? {
        Bson::Document(document) => Ok(document),
        _ => Err(invalid(format!("{what} is not a document"))),
    }
}

/// The document that is described by a text of an event.
pub(super) fn described<'a>(text: &'a Text, what: &str) -> Result<Cow<'a, [u8]>, Error> {
    match text.source::<extended_json::Document>().and_then(extended_json::Document::as_read) {
        Some(document) => Ok(Cow::Borrowed(document)),
        None => encoded(&parsed_document(&text.as_str(), what)?).map(Cow::Owned),
    }
}

pub(super) fn encoded(document: &Document) -> Result<Vec<u8>, Error> {
    match RawDocumentBuf::try_from(document) {
        Ok(raw) => Ok(raw.into_bytes()),
        Err(_) => Err(invalid("the document cannot be written as BSON")),
    }
}

/// The smallest document is a length and a closing zero.
pub(super) fn is_empty(document: &[u8]) -> bool {
    document.len() <= 5
}

/// The document with this flag: in the place of the field of that name, or at the end.
pub(super) fn with_flag(document: &[u8], name: &str, flag: bool) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(document.len() + name.len() + 3);
    let push = |out: &mut Vec<u8>, kind: u8, name: &[u8], value: &[u8]| {
        out.push(kind);
        out.extend_from_slice(name);
        out.push(0);
        out.extend_from_slice(value);
    };
    let flag = [u8::from(flag)];
    let mut set = false;
    out.extend_from_slice(&[0; 4]);
    for element in elements(document)? {
        let element = element.map_err(unreadable)?;
        if element.name == name.as_bytes() {
            push(&mut out, kind::BOOLEAN, element.name, &flag);
            set = true;
        } else {
            push(&mut out, element.kind, element.name, element.value);
        }
    }
    if !set {
        push(&mut out, kind::BOOLEAN, name.as_bytes(), &flag);
    }
    out.push(0);
    let length = i32::try_from(out.len()).map_err(|_| invalid("the document is too large"))?;
    out[..4].copy_from_slice(&length.to_le_bytes());
    Ok(out)
}

pub(super) fn unreadable(malformed: Malformed) -> Error {
    invalid(format!("the document cannot be read: {malformed}"))
}

pub(super) fn elements(document: &[u8]) -> Result<Elements<'_>, Error> {
    Elements::of(document).map_err(unreadable)
}

/// All elements; those of an array have their places as names.
pub(super) fn all(document: &[u8]) -> Result<Vec<Element<'_>>, Error> {
    elements(document)?.collect::<Result<_, _>>().map_err(unreadable)
}

pub(super) fn utf8(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bson::doc;

    use super::*;

    #[test]
    fn a_flag_takes_the_place_of_its_field_or_comes_last() {
        let flagged = |document: &Document| with_flag(&encoded(document).unwrap(), "gone", true).unwrap();
        for (document, expected) in [
            (doc! {}, doc! {"gone": true}),
            (doc! {"a": 1}, doc! {"a": 1, "gone": true}),
            (doc! {"gone": "text", "a": {"gone": 1}}, doc! {"gone": true, "a": {"gone": 1}}),
        ] {
            assert_eq!(flagged(&document), encoded(&expected).unwrap());
        }
    }
}
