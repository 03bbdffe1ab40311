#![allow(clippy::unwrap_used)]
use bson::oid::ObjectId;
use bson::raw::CString;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Decimal128, JavaScriptCodeWithScope, Regex, Timestamp, doc};
use proptest::prelude::*;

use super::*;

const WRITERS: [Writer; 4] = [Writer::Strict, Writer::Relaxed, Writer::Canonical, Writer::RelaxedSpaced];

fn bytes(document: &bson::Document) -> Bytes {
    bson::RawDocumentBuf::try_from(document).unwrap().into_bytes().into()
}

fn text_of(bytes: Bytes, writer: Writer, form: TextForm) -> String {
    let mut out = Vec::new();
    Document::new(bytes, writer).unwrap().render(form, &mut out);
    String::from_utf8(out).unwrap()
}

fn text(document: &bson::Document, writer: Writer) -> String {
    text_of(bytes(document), writer, TextForm::Plain)
}

/// A document `{v: <value>}` from a type byte and raw bytes.
fn raw_value(kind: u8, value: &[u8]) -> Bytes {
    let mut document = vec![0; 4];
    document.extend_from_slice(&[kind, b'v', 0]);
    document.extend_from_slice(value);
    document.push(0);
    let length = (document.len() as i32).to_le_bytes();
    document[..4].copy_from_slice(&length);
    document.into()
}

fn regex(pattern: &str, options: &str) -> Bson {
    Bson::RegularExpression(Regex {
        pattern: CString::try_from(pattern.to_owned()).unwrap(),
        options: CString::try_from(options.to_owned()).unwrap(),
    })
}

/// `value` in the strict, relaxed and canonical writer.
fn assert_value(value: impl Into<Bson>, strict: &str, relaxed: &str, canonical: &str) {
    let document = doc! {"v": value.into()};
    for (writer, expected) in [(Writer::Strict, strict), (Writer::Relaxed, relaxed), (Writer::Canonical, canonical)] {
        assert_eq!(text(&document, writer), format!("{{\"v\": {expected}}}"), "{writer:?}");
    }
}

fn assert_same(value: impl Into<Bson>, expected: &str) {
    assert_value(value, expected, expected, expected);
}

#[test]
fn t_25_t_26_t_27_numbers() {
    assert_value(1, "1", "1", r#"{"$numberInt": "1"}"#);
    assert_value(1_i64, r#"{"$numberLong": "1"}"#, "1", r#"{"$numberLong": "1"}"#);
    assert_value(
        i64::MIN,
        r#"{"$numberLong": "-9223372036854775808"}"#,
        "-9223372036854775808",
        r#"{"$numberLong": "-9223372036854775808"}"#,
    );
    for (number, digits) in [
        (1.0, "1.0"),
        (1e10, "1.0E+10"),
        (1e-4, "1.0E-4"),
        (-0.0, "-0.0"),
        (9_999_999.0, "9999999.0"),
        (0.001, "0.001"),
        (1e7, "1.0E+7"),
        (9.999e-4, "9.999E-4"),
        (f64::from_bits(1), "4.9E-324"),
        (f64::MAX, "1.7976931348623157E+308"),
    ] {
        assert_value(number, digits, digits, &format!(r#"{{"$numberDouble": "{digits}"}}"#));
    }
    for (number, word) in [(f64::NAN, "NaN"), (f64::INFINITY, "Infinity"), (f64::NEG_INFINITY, "-Infinity")] {
        let wrapped = format!(r#"{{"$numberDouble": "{word}"}}"#);
        assert_value(number, word, &wrapped, &wrapped);
    }
    for digits in ["123.4500", "1E+3", "1E-7", "0.000001", "-0", "NaN", "Infinity", "-Infinity"] {
        let decimal: Decimal128 = digits.parse().unwrap();
        assert_same(decimal, &format!(r#"{{"$numberDecimal": "{digits}"}}"#));
    }
}

#[test]
fn mgo_13_dates() {
    let far = |millis: i64| format!(r#"{{"$date": {{"$numberLong": "{millis}"}}}}"#);
    for (millis, iso) in [
        (1_783_101_585_729, "2026-07-03T17:59:45.729Z"),
        (0, "1970-01-01T00:00:00Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ] {
        let date = DateTime::from_millis(millis);
        assert_value(date, &format!(r#"{{"$date": {millis}}}"#), &format!(r#"{{"$date": "{iso}"}}"#), &far(millis));
    }
    for millis in [-1, 253_402_300_800_000, i64::MIN, i64::MAX] {
        assert_value(DateTime::from_millis(millis), &format!(r#"{{"$date": {millis}}}"#), &far(millis), &far(millis));
    }
}

#[test]
fn binaries() {
    for (subtype, hex) in [
        (BinarySubtype::Generic, "00"),
        (BinarySubtype::UuidOld, "03"),
        (BinarySubtype::Uuid, "04"),
        (BinarySubtype::BinaryOld, "02"),
        (BinarySubtype::UserDefined(0xAB), "AB"),
    ] {
        let value = Binary { subtype, bytes: b"kafka".to_vec() };
        let v2 = format!(r#"{{"$binary": {{"base64": "a2Fma2E=","subType": "{hex}"}}}}"#);
        assert_value(value, &format!(r#"{{"$binary": "a2Fma2E=","$type": "{hex}"}}"#), &v2, &v2);
    }
    assert_eq!(
        text(&doc! {"v": Binary { subtype: BinarySubtype::Generic, bytes: Vec::new() }}, Writer::RelaxedSpaced),
        r#"{"v": {"$binary": {"base64": "", "subType": "00"}}}"#
    );
}

#[test]
fn t_35_other_types() {
    assert_same("a\"é😀", r#""a\"é\ud83d\ude00""#);
    assert_same(ObjectId::parse_str("596e275826f08b2730779e1f").unwrap(), r#"{"$oid": "596e275826f08b2730779e1f"}"#);
    assert_same(true, "true");
    assert_same(false, "false");
    assert_same(Bson::Null, "null");
    assert_same(Timestamp { time: u32::MAX, increment: 6 }, r#"{"$timestamp": {"t": 4294967295,"i": 6}}"#);
    assert_same(Bson::MinKey, r#"{"$minKey": 1}"#);
    assert_same(Bson::MaxKey, r#"{"$maxKey": 1}"#);
    assert_same(Bson::Undefined, r#"{"$undefined": true}"#);
    assert_same(Bson::Symbol("s".into()), r#"{"$symbol": "s"}"#);
    assert_same(Bson::JavaScriptCode("f()".into()), r#"{"$code": "f()"}"#);
    let v2 = r#"{"$regularExpression": {"pattern": "^a","options": "im"}}"#;
    assert_value(regex("^a", "mi"), r#"{"$regex": "^a","$options": "im"}"#, v2, v2);
    assert_value(
        JavaScriptCodeWithScope { code: "f()".into(), scope: doc! {"x": 1_i64} },
        r#"{"$code": "f()","$scope": {"x": {"$numberLong": "1"}}}"#,
        r#"{"$code": "f()","$scope": {"x": 1}}"#,
        r#"{"$code": "f()","$scope": {"x": {"$numberLong": "1"}}}"#,
    );
    assert_eq!(
        text(&doc! {"t": Timestamp { time: 5, increment: 6 }, "r": regex("a", "")}, Writer::RelaxedSpaced),
        r#"{"t": {"$timestamp": {"t": 5, "i": 6}}, "r": {"$regularExpression": {"pattern": "a", "options": ""}}}"#
    );
}

#[test]
fn pointers_and_references() {
    let pointer = raw_value(kind::DB_POINTER, b"\x05\0\0\0db.c\0\x59\x6e\x27\x58\x26\xf0\x8b\x27\x30\x77\x9e\x1f");
    let plain = r#"{"v": {"$ref": "db.c","$id": {"$oid": "596e275826f08b2730779e1f"}}}"#;
    assert_eq!(text_of(pointer.clone(), Writer::Strict, TextForm::Plain), plain);
    assert_eq!(text_of(pointer.clone(), Writer::Relaxed, TextForm::Plain), plain);
    assert_eq!(
        text_of(pointer, Writer::Canonical, TextForm::Plain),
        r#"{"v": {"$dbPointer": {"$ref": "db.c","$id": {"$oid": "596e275826f08b2730779e1f"}}}}"#
    );
}

#[test]
fn mgo_12_t_32_references_are_documents() {
    let document = doc! {"_id": 2, "d": {"$ref": "c2", "$id": 4, "$db": "b2"}};
    assert_eq!(text(&document, Writer::Strict), r#"{"_id": 2,"d": {"$ref": "c2","$id": 4,"$db": "b2"}}"#);
}

#[test]
fn mgo_11_t_28_names_of_the_envelope_are_data() {
    let document = doc! {"_id": 1, "op": "foo", "ns": "x", "before": {}, "after": null, "ts_ms": "no"};
    assert_eq!(
        text(&document, Writer::Strict),
        r#"{"_id": 1,"op": "foo","ns": "x","before": {},"after": null,"ts_ms": "no"}"#
    );
}

#[test]
fn separators() {
    let document = doc! {"a": 1, "b": [1, {"c": 2, "d": 3}], "e": {}, "f": [], "g": [[], [{}]]};
    assert_eq!(text(&document, Writer::Strict), r#"{"a": 1,"b": [1,{"c": 2,"d": 3}],"e": {},"f": [],"g": [[],[{}]]}"#);
    assert_eq!(
        text(&document, Writer::RelaxedSpaced),
        r#"{"a": 1, "b": [1, {"c": 2, "d": 3}], "e": {}, "f": [], "g": [[], [{}]]}"#
    );
    assert_eq!(text(&doc! {}, Writer::Canonical), "{}");
    assert_eq!(text(&doc! {"": 1, "$a.b": 2, "x\"y\t": 3}, Writer::Relaxed), r#"{"": 1,"$a.b": 2,"x\"y\t": 3}"#);
}

#[test]
fn t_31_the_last_of_duplicate_fields_stands_at_the_first_place() {
    let twice = [b"\x02dup\0\x02\0\0\x001\0".as_slice(), b"\x10m\0\x05\0\0\0", b"\x02dup\0\x02\0\0\x002\0"];
    let mut document = vec![0; 4];
    document.extend(twice.concat());
    document.push(0);
    let length = (document.len() as i32).to_le_bytes();
    document[..4].copy_from_slice(&length);
    for writer in WRITERS {
        let found = text_of(document.clone().into(), writer, TextForm::Plain);
        assert!(found.starts_with(r#"{"dup": "2","#) && found.matches("dup").count() == 1, "{found}");
    }
    let nested = raw_value(kind::DOCUMENT, &document);
    assert_eq!(text_of(nested, Writer::Strict, TextForm::Plain), r#"{"v": {"dup": "2","m": 5}}"#);
}

#[test]
fn mgo_28_malformed_names_and_values_are_repaired() {
    let document: &[u8] = b"\x14\0\0\0\x02a\xFF\0\x04\0\0\0x\xC3\x28\0\x0Ab\0\0";
    assert_eq!(
        text_of(document.to_vec().into(), Writer::Strict, TextForm::Plain),
        "{\"a\u{fffd}\": \"x\u{fffd}(\",\"b\": null}"
    );
}

#[test]
fn damaged_bytes_are_refused() {
    let good = bytes(&doc! {"a": "x", "b": [1, {"c": 2}]});
    for end in 0..good.len() {
        assert!(Document::new(good.slice(..end), Writer::Strict).is_err(), "{end}");
    }
    let mut out = b"kept".to_vec();
    assert!(write_value(Writer::Relaxed, TextForm::Plain, kind::STRING, b"\x05\0\0\0ab\0", &mut out).is_err());
    assert!(write_value(Writer::Relaxed, TextForm::Plain, kind::INT64, b"\x05\0", &mut out).is_err());
    assert_eq!(out, b"kept");
}

#[test]
fn printing_shows_no_data() {
    let document = Document::new(bytes(&doc! {"secret": "s3cret"}), Writer::Strict).unwrap();
    assert!(!format!("{document:?}").contains("s3cret"));
}

#[test]
fn documents_that_are_not_read_as_they_are() {
    let is_same = |document: Bytes, writer| Document::new(document, writer).unwrap().as_read().is_some();
    let usual = doc! {
        "_id": ObjectId::new(), "n": 1, "l": 1_i64 << 40, "d": 0.1, "s": "\u{e9}\n", "b": true, "no": null, "u": Bson::Undefined,
        "at": DateTime::now(), "in": {"a": [1, "x", {}], "$b": 1}, "re": regex("^a", "im"), "dec": "1.50".parse::<Decimal128>().unwrap(),
    };
    for writer in WRITERS {
        assert!(is_same(bytes(&usual), writer), "{writer:?}");
        for other in [doc! {"$oid": "x"}, doc! {"a": {"$b": 1}}, doc! {"a": Bson::MinKey}, doc! {"a": regex("a", "mi")}]
        {
            assert!(!is_same(bytes(&other), writer), "{writer:?}");
        }
        assert!(!is_same(raw_value(kind::STRING, b"\x02\0\0\0\xff\0"), writer));
        assert_eq!(is_same(bytes(&doc! {"a": 1_i64}), writer), matches!(writer, Writer::Strict | Writer::Canonical));
    }
}

fn any_value() -> impl Strategy<Value = Bson> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(Bson::Int32),
        any::<i64>().prop_map(Bson::Int64),
        any::<u64>().prop_map(|bits| Bson::Double(f64::from_bits(bits))),
        "(?s).{0,12}".prop_map(Bson::String),
        any::<bool>().prop_map(Bson::Boolean),
        Just(Bson::Null),
        any::<i64>().prop_map(|ms| Bson::DateTime(DateTime::from_millis(ms))),
        (0..300_000_000_000_000_i64).prop_map(|ms| Bson::DateTime(DateTime::from_millis(ms))),
        any::<[u8; 12]>().prop_map(|b| Bson::ObjectId(ObjectId::from_bytes(b))),
        any::<[u8; 16]>().prop_map(|b| Bson::Decimal128(Decimal128::from_bytes(b))),
        (any::<u32>(), any::<u32>()).prop_map(|(time, increment)| Bson::Timestamp(Timestamp { time, increment })),
        (any::<u8>(), prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(subtype, bytes)| Bson::Binary(Binary { subtype: subtype.into(), bytes })),
        ("[^\0]{0,6}", "[imsux]{0,3}").prop_map(|(p, o)| regex(&p, &o)),
        "(?s).{0,6}".prop_map(Bson::Symbol),
        "(?s).{0,6}".prop_map(Bson::JavaScriptCode),
        prop_oneof![Just(Bson::MinKey), Just(Bson::MaxKey), Just(Bson::Undefined)],
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Bson::Array),
            prop::collection::vec(("[^\0]{0,6}", inner.clone()), 0..6)
                .prop_map(|f| Bson::Document(f.into_iter().collect())),
            ("[a-z]{0,4}", prop::collection::vec(("[a-z]{1,3}", inner), 0..3)).prop_map(|(code, scope)| {
                Bson::JavaScriptCodeWithScope(JavaScriptCodeWithScope { code, scope: scope.into_iter().collect() })
            }),
        ]
    })
}

fn any_document() -> impl Strategy<Value = bson::Document> {
    prop::collection::vec(("[^\0]{0,8}", any_value()), 0..8).prop_map(|fields| fields.into_iter().collect())
}

proptest! {
    #[test]
    fn escaped_form_is_the_plain_form_escaped(document in any_document()) {
        for writer in WRITERS {
            let plain = text(&document, writer);
            let escaped = text_of(bytes(&document), writer, TextForm::JsonEscaped);
            prop_assert_eq!(serde_json::from_str::<String>(&format!("\"{escaped}\"")).unwrap(), &*plain);
            prop_assert_eq!(escaped.len(), plain.len() + plain.matches(['"', '\\']).count());
        }
    }

    #[test]
    fn version_two_is_valid_json_with_the_same_names(document in any_document()) {
        for writer in [Writer::Relaxed, Writer::Canonical, Writer::RelaxedSpaced] {
            let json: serde_json::Value = serde_json::from_str(&text(&document, writer)).unwrap();
            let names: Vec<_> = json.as_object().unwrap().keys().cloned().collect();
            prop_assert_eq!(names, document.keys().cloned().collect::<Vec<_>>());
        }
    }

    /// What is taken for the same is what the text says, type by type and in this order.
    #[test]
    fn a_document_that_is_read_as_it_is(document in any_document()) {
        for writer in WRITERS {
            let document = Document::new(bytes(&document), writer).unwrap();
            let mut out = Vec::new();
            document.render(TextForm::Plain, &mut out);
            if let Some(same) = document.as_read() {
                let read = crate::lenient_json::parse_document(std::str::from_utf8(&out).unwrap()).unwrap();
                prop_assert_eq!(&*bytes(&read), same);
            }
        }
    }

    /// Reading the canonical text back gives the same value, type by type.
    #[test]
    fn canonical_text_reads_back(document in any_document()) {
        let read = crate::lenient_json::parse_document(&text(&document, Writer::Canonical)).map_err(|e| e.to_string());
        // Documents that happen to look like extended JSON, or decimals that have no canonical form, may differ.
        if let Ok(read) = read {
            let again = text(&read, Writer::Canonical);
            prop_assert_eq!(again, text(&document, Writer::Canonical));
        }
    }

    #[test]
    fn damaged_documents_do_not_make_it_panic(document in any_document(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut damaged = bytes(&document).to_vec();
        let at = at.index(damaged.len());
        damaged[at] = byte;
        for writer in WRITERS {
            if let Ok(document) = Document::new(damaged.clone().into(), writer) {
                let mut out = Vec::new();
                document.render(TextForm::JsonEscaped, &mut out);
                prop_assert!(std::str::from_utf8(&out).is_ok());
            }
        }
    }
}
