//! The text of a record's key: the `_id` as relaxed extended JSON, whatever the form of the value.
//!
//! One document has one text in all its records. Only `_id` counts, not the shard key.

use thalweg_core::record::{Text, TextForm};

use crate::extended_json::{self, Writer};
use crate::raw::{self, Element, Elements, Malformed, kind};

/// Why a document has no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoKey {
    #[error("the event has no _id in its documentKey; a stage of cursor.pipeline may have removed it")]
    Missing,
    /// Different documents would get one key.
    #[error("the _id of the document holds text that is not UTF-8, so its key would not be its own")]
    NotUtf8,
    #[error("the _id of the document cannot be read: {0}")]
    Malformed(#[from] Malformed),
}

/// The field `_id` of a document, which MongoDB stores first.
pub fn id_of(document: &[u8]) -> Result<Element<'_>, NoKey> {
    for element in Elements::of(document)? {
        let element = element?;
        if element.name == b"_id" {
            return Ok(element);
        }
    }
    Err(NoKey::Missing)
}

/// The text for an `_id`. `buffer` is scratch space.
pub fn key_text(id: &Element<'_>, buffer: &mut Vec<u8>) -> Result<Text, NoKey> {
    buffer.clear();
    extended_json::write_value(Writer::Relaxed, TextForm::Plain, id.kind, id.value, buffer)?;
    let text = std::str::from_utf8(buffer).map_err(|_| NoKey::NotUtf8)?;
    if text.contains(char::REPLACEMENT_CHARACTER) && !is_utf8(id.kind, id.value)? {
        return Err(NoKey::NotUtf8);
    }
    Ok(Text::Owned(text.into()))
}

/// Whether all names and texts in a (checked) value are UTF-8.
fn is_utf8(kind: u8, value: &[u8]) -> Result<bool, Malformed> {
    let valid = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok();
    match kind {
        kind::STRING | kind::CODE | kind::SYMBOL => raw::string(value).map(valid),
        kind::DOCUMENT | kind::ARRAY => {
            for element in Elements::of(value)? {
                let element = element?;
                if !valid(element.name) || !is_utf8(element.kind, element.value)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        kind::CODE_WITH_SCOPE => {
            let (code, scope) = raw::code_with_scope(value)?;
            Ok(valid(code) && is_utf8(kind::DOCUMENT, scope)?)
        }
        _ => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bson::oid::ObjectId;
    use bson::spec::BinarySubtype;
    use bson::{Binary, Bson, DateTime, Decimal128, JavaScriptCodeWithScope, RawDocumentBuf, Timestamp, doc};

    use super::*;

    fn key(id: impl Into<Bson>) -> String {
        let document = RawDocumentBuf::try_from(&doc! {"_id": id.into(), "x": 1}).unwrap();
        key_text(&id_of(document.as_bytes()).unwrap(), &mut Vec::new()).unwrap().as_str().into_owned()
    }

    fn decimal(text: &str) -> Decimal128 {
        text.parse().unwrap()
    }

    fn binary(subtype: BinarySubtype, bytes: &[u8]) -> Binary {
        Binary { subtype, bytes: bytes.to_vec() }
    }

    const UUID: [u8; 16] =
        [0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF];

    #[test]
    fn mgo_09_t_21_t_25_keys_of_all_types() {
        for (id, text) in [
            (Bson::from(1234), "1234"),
            (2_147_483_657_i64.into(), "2147483657"),
            (9_007_199_254_740_993_i64.into(), "9007199254740993"),
            (5_i64.into(), "5"),
            (5.into(), "5"),
            (12.34.into(), "12.34"),
            (5.0.into(), "5.0"),
            (1e10.into(), "1.0E+10"),
            (f64::NAN.into(), r#"{"$numberDouble": "NaN"}"#),
            (f64::INFINITY.into(), r#"{"$numberDouble": "Infinity"}"#),
            ("1234".into(), r#""1234""#),
            ("".into(), r#""""#),
            ("a\"b".into(), r#""a\"b""#),
            ("a\u{fffd}b".into(), "\"a\u{fffd}b\""),
            (
                ObjectId::parse_str("596e275826f08b2730779e1f").unwrap().into(),
                r#"{"$oid": "596e275826f08b2730779e1f"}"#,
            ),
            (doc! {"hi": "kafka", "nums": [10.0, 100.0]}.into(), r#"{"hi": "kafka","nums": [10.0,100.0]}"#),
            (doc! {"company": 32, "dept": "home improvement"}.into(), r#"{"company": 32,"dept": "home improvement"}"#),
            (doc! {"a": 1, "b": [1.0]}.into(), r#"{"a": 1,"b": [1.0]}"#),
            (doc! {}.into(), "{}"),
            (binary(BinarySubtype::Generic, b"kafka").into(), r#"{"$binary": {"base64": "a2Fma2E=","subType": "00"}}"#),
            (
                binary(BinarySubtype::Uuid, &UUID).into(),
                r#"{"$binary": {"base64": "ABEiM0RVZneImaq7zN3u/w==","subType": "04"}}"#,
            ),
            (
                binary(BinarySubtype::UuidOld, &UUID).into(),
                r#"{"$binary": {"base64": "ABEiM0RVZneImaq7zN3u/w==","subType": "03"}}"#,
            ),
            (decimal("123.45678").into(), r#"{"$numberDecimal": "123.45678"}"#),
            (decimal("1.50").into(), r#"{"$numberDecimal": "1.50"}"#),
            (decimal("NaN").into(), r#"{"$numberDecimal": "NaN"}"#),
            (DateTime::from_millis(1_508_400_000_000).into(), r#"{"$date": "2017-10-19T08:00:00Z"}"#),
            (DateTime::from_millis(1_783_101_585_700).into(), r#"{"$date": "2026-07-03T17:59:45.7Z"}"#),
            (DateTime::from_millis(-1).into(), r#"{"$date": {"$numberLong": "-1"}}"#),
            (Timestamp { time: 5, increment: 6 }.into(), r#"{"$timestamp": {"t": 5,"i": 6}}"#),
            (true.into(), "true"),
            (Bson::Null, "null"),
            (Bson::MinKey, r#"{"$minKey": 1}"#),
            (Bson::MaxKey, r#"{"$maxKey": 1}"#),
            (Bson::JavaScriptCode("f()".into()), r#"{"$code": "f()"}"#),
            (doc! {"$ref": "c", "$id": 1, "$db": "d"}.into(), r#"{"$ref": "c","$id": 1,"$db": "d"}"#),
        ] {
            assert_eq!(key(id), text);
        }
    }

    #[test]
    fn t_22_only_the_id_of_a_composite_document_key_counts() {
        let document_key = RawDocumentBuf::try_from(&doc! {"region": "eu", "_id": 7}).unwrap();
        let id = id_of(document_key.as_bytes()).unwrap();
        assert_eq!(key_text(&id, &mut Vec::new()).unwrap().as_str(), "7");
        let without = RawDocumentBuf::try_from(&doc! {"region": "eu"}).unwrap();
        assert_eq!(id_of(without.as_bytes()), Err(NoKey::Missing));
    }

    #[test]
    fn mgo_28_an_id_that_is_not_utf8_has_no_key() {
        let not_utf8 = |kind: u8, value: &[u8]| key_text(&Element { kind, name: b"_id", value }, &mut Vec::new());
        assert_eq!(not_utf8(kind::STRING, b"\x03\0\0\0\xC3\x28\0"), Err(NoKey::NotUtf8));
        assert_eq!(not_utf8(kind::DOCUMENT, b"\x08\0\0\0\x0A\xFF\0\0"), Err(NoKey::NotUtf8));
        assert_eq!(not_utf8(kind::STRING, b"\x03\0\0"), Err(NoKey::Malformed(Malformed("a string is too short"))));
        let scope =
            Bson::JavaScriptCodeWithScope(JavaScriptCodeWithScope { code: "\u{fffd}".into(), scope: doc! {"a": "b"} });
        assert!(key(scope).contains('\u{fffd}'));
    }
}
