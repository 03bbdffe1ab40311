//! Where a document stands among the others of its collection: its `_id`, as a document of that alone.
//!
//! Places are compared by the server, which orders values of every type; here they are only equal or not.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bson::spec::BinarySubtype;
use bson::{Document, RawBinaryRef, RawBsonRef, RawDocument, RawDocumentBuf};
use bytes::Bytes;
use thalweg_core::record::TextForm;
use thalweg_core::snapshot::KeyText;

use crate::extended_json::{self, Writer};
use crate::key::id_of;

/// `{_id: …}` of a document.
pub(crate) fn place(document: &RawDocument) -> Option<Bytes> {
    let id = document.get("_id").ok()??;
    let mut place = RawDocumentBuf::new();
    place.append(bson::cstr!("_id"), id);
    Some(Bytes::from(place.into_bytes()))
}

/// The same of a document as bytes.
pub(crate) fn place_of(document: &[u8]) -> Option<Bytes> {
    place(RawDocument::from_bytes(document).ok()?)
}

/// As a bound of the index on `_id`. Errors: text that is not UTF-8.
pub(crate) fn bound(place: &Bytes) -> bson::error::Result<Document> {
    RawDocument::from_bytes(place).and_then(Document::try_from)
}

/// What a change of the document has as its key: type and bytes of the `_id`.
pub(crate) fn key(document: &[u8]) -> Option<Bytes> {
    let id = id_of(document).ok()?;
    let mut key = Vec::with_capacity(id.value.len() + 1);
    key.push(id.kind);
    key.extend_from_slice(id.value);
    Some(key.into())
}

/// The text of a place (a document with an `_id` only): BSON, because there are many types of `_id`.
pub struct PlaceText;

const PREFIX: &str = "bson:";

impl KeyText for PlaceText {
    fn write(&self, place: &Bytes) -> String {
        format!("{PREFIX}{}", STANDARD.encode(place))
    }

    fn read(&self, text: &str) -> Option<Bytes> {
        let place = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
        RawDocument::from_bytes(&place).ok()?.get("_id").ok()??;
        Some(place.into())
    }

    /// As Java prints the value: texts, object ids, UUIDs and decimals bare, all others as relaxed extended
    /// JSON, which is the same for numbers.
    fn shown(&self, place: &Bytes) -> String {
        let id = RawDocument::from_bytes(place).ok().and_then(|place| place.get("_id").ok().flatten());
        match id {
            Some(RawBsonRef::String(text)) => return text.to_owned(),
            Some(RawBsonRef::ObjectId(id)) => return id.to_hex(),
            Some(RawBsonRef::Decimal128(number)) => return extended_json::decimal_text(&number.bytes()),
            Some(RawBsonRef::Binary(RawBinaryRef { subtype: BinarySubtype::Uuid, bytes })) => {
                if let Ok(uuid) = uuid::Uuid::from_slice(bytes) {
                    return uuid.to_string();
                }
            }
            _ => {}
        }
        let mut text = Vec::new();
        let Ok(id) = id_of(place) else { return String::new() };
        if extended_json::write_value(Writer::Relaxed, TextForm::Plain, id.kind, id.value, &mut text).is_err() {
            return String::new();
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bson::rawdoc;

    use super::*;

    #[test]
    fn places_have_texts() {
        let place = place(&rawdoc! {"_id": 7_i64, "x": 1}).unwrap();
        assert_eq!(place, Bytes::from(rawdoc! {"_id": 7_i64}.into_bytes()));
        let text = PlaceText.write(&place);
        assert!(text.starts_with("bson:"));
        assert_eq!(PlaceText.read(&text), Some(place.clone()));
        assert_eq!(PlaceText.shown(&place), "7");
        let shown = |document: RawDocumentBuf| PlaceText.shown(&super::place(&document).unwrap());
        let uuid = bson::Binary { subtype: BinarySubtype::Uuid, bytes: (0..16).collect() };
        assert_eq!(shown(rawdoc! {"_id": "k1"}), "k1");
        assert_eq!(shown(rawdoc! {"_id": bson::oid::ObjectId::from_bytes([10; 12])}), "0a".repeat(12));
        assert_eq!(shown(rawdoc! {"_id": uuid}), "00010203-0405-0607-0809-0a0b0c0d0e0f");
        assert_eq!(shown(rawdoc! {"_id": "1.50".parse::<bson::Decimal128>().unwrap()}), "1.50");
        assert_eq!(shown(rawdoc! {"_id": {"a": 1}}), r#"{"a": 1}"#);
        for odd in ["aced0005", "bson:", "bson:!!", "bson:BQAAAAA="] {
            assert_eq!(PlaceText.read(odd), None, "{odd}");
        }
    }

    #[test]
    fn keys_tell_types_apart() {
        let of = |document: RawDocumentBuf| key(document.as_bytes()).unwrap();
        assert_eq!(of(rawdoc! {"_id": 7, "x": 1}), of(rawdoc! {"_id": 7}));
        assert_ne!(of(rawdoc! {"_id": 7}), of(rawdoc! {"_id": 7_i64}));
    }
}
