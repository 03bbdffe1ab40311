#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Document, JavaScriptCodeWithScope, Regex, Timestamp, bson, doc};
use proptest::prelude::*;
use thalweg_core::convert::{Converter, JsonConverter};
use thalweg_core::record::Datum;

use super::super::document::{encoded, parsed_document};
use super::*;

const ARRAYS: Conversion = Conversion { arrays: ArrayEncoding::Array, names: NameAdjustment::None };
const STRUCTS: Conversion = Conversion { arrays: ArrayEncoding::Document, names: NameAdjustment::None };

fn raw(document: &Document) -> Vec<u8> {
    encoded(document).unwrap()
}

fn converted(conversion: Conversion, document: Document) -> Result<Datum, Error> {
    let document = raw(&document);
    let schema = Schema::new(Type::Struct(conversion.fields(&document, Some("n"))?)).named("n");
    let values = conversion.values(&document, schema.fields())?;
    Ok(Datum::new(Arc::new(schema), Value::Struct(values)))
}

/// Schema and payload as the JSON converter writes them.
fn written(datum: &Datum) -> String {
    let mut out = Vec::new();
    JsonConverter::with_schemas().convert_datum(&"t".into(), datum, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn payload(conversion: Conversion, document: Document) -> String {
    let text = written(&converted(conversion, document).unwrap());
    text.split_once(r#","payload":"#).unwrap().1.strip_suffix('}').unwrap().to_owned()
}

fn schema(conversion: Conversion, document: Document) -> String {
    let text = written(&converted(conversion, document).unwrap());
    let schema = text.split_once(r#","payload":"#).unwrap().0;
    let fields = schema.strip_prefix(r#"{"schema":{"type":"struct","fields":["#).unwrap();
    fields.strip_suffix(r#"],"optional":false,"name":"n"}"#).unwrap().to_owned()
}

fn refusal(conversion: Conversion, document: Document) -> String {
    let error = converted(conversion, document).unwrap_err();
    assert_eq!(error.kind, thalweg_core::ErrorKind::ValueInvalid);
    error.message
}

#[test]
fn cnv_08_arrays_as_structs() {
    for (document, expected) in [
        (
            doc! {"items": [{"t": "P", "q": 2}, {"t": "P", "q": 2}]},
            r#"{"items":{"_0":{"t":"P","q":2},"_1":{"t":"P","q":2}}}"#,
        ),
        (
            doc! {"u": [{"a": {"s": 1}}, {"a": {}}, {"b": 2}]},
            r#"{"u":{"_0":{"a":{"s":1}},"_1":{"a":{}},"_2":{"b":2}}}"#,
        ),
        (doc! {"f": [{"bar": {"baz": "x"}}]}, r#"{"f":{"_0":{"bar":{"baz":"x"}}}}"#),
        (doc! {"m": [[], [1]]}, r#"{"m":{"_0":{},"_1":{"_0":1}}}"#),
        (doc! {"e": []}, r#"{"e":{}}"#),
        (doc! {"o": {}}, r#"{"o":{}}"#),
        (doc! {"x": [1, "two", null, {"y": [true]}]}, r#"{"x":{"_0":1,"_1":"two","_2":null,"_3":{"y":{"_0":true}}}}"#),
    ] {
        assert_eq!(payload(STRUCTS, document), expected);
    }
    let many: Vec<i32> = (0..12).collect();
    assert!(payload(STRUCTS, doc! {"a": many}).ends_with(r#""_9":9,"_10":10,"_11":11}}"#));
    assert_eq!(
        schema(STRUCTS, doc! {"f": [{"b": {}}], "e": []}),
        concat!(
            r#"{"type":"struct","fields":[{"type":"struct","fields":[{"type":"struct","fields":[],"optional":true,"field":"b"}],"#,
            r#""optional":true,"name":"n.f._0","field":"_0"}],"optional":true,"name":"n.f","field":"f"},"#,
            r#"{"type":"struct","fields":[],"optional":true,"name":"n.e","field":"e"}"#
        )
    );
}

#[test]
fn every_type() {
    let regex = Regex { pattern: "^a".to_owned().try_into().unwrap(), options: "i".to_owned().try_into().unwrap() };
    let document = doc! {
        "code": Bson::JavaScriptCode("f()".to_owned()),
        "dec": "-1.50E+3".parse::<bson::Decimal128>().unwrap(),
        "bin": Binary { subtype: BinarySubtype::UserDefined(0x80), bytes: vec![255] },
        "at": DateTime::from_millis(-1),
        "ts": Timestamp { time: 4_294_967_295, increment: 1 },
        "re": regex,
        "gone": Bson::Undefined,
        "scope": JavaScriptCodeWithScope { code: "g".to_owned(), scope: doc! {"v": 1_i64} },
        "nan": f64::NAN,
    };
    assert_eq!(
        payload(ARRAYS, document.clone()),
        r#"{"code":"f()","dec":"-1.50E+3","bin":"/w==","at":-1,"ts":4294967295000,"re":{"regex":"^a","options":"i"},"scope":{"code":"g","scope":{"v":1}},"nan":"NaN"}"#
    );
    assert!(!schema(ARRAYS, document).contains("gone"));
    for unsupported in [Bson::MinKey, Bson::MaxKey, Bson::Symbol("s".to_owned())] {
        assert_eq!(refusal(ARRAYS, doc! {"k": {"x": unsupported.clone()}}), "x is not a valid field name");
        assert_eq!(refusal(ARRAYS, doc! {"k": [unsupported]}), "k is not a valid field name");
    }
}

#[test]
fn documents_in_an_array_share_their_fields() {
    let document = doc! {"a": [{"x": 1}, {}, {"y": {"p": 1}, "x": null}]};
    assert_eq!(refusal(ARRAYS, document), "Array elements with different Bson types are not supported: x");
    let document = doc! {"a": [{"x": "1"}, {}, {"y": {"p": 1}, "x": null}, {"y": {"q": [], "p": 2}}, {"y": {}}]};
    assert_eq!(
        payload(ARRAYS, document.clone()),
        concat!(
            r#"{"a":[{"x":"1","y":null},{"x":null,"y":null},{"x":null,"y":{"p":1,"q":null}},"#,
            r#"{"x":null,"y":{"p":2,"q":[]}},{"x":null,"y":{"p":null,"q":null}}]}"#
        )
    );
    let names = schema(ARRAYS, document);
    assert!(
        names.contains(r#""name":"n.a.y","field":"y"#)
            && names.contains(r#""name":"n.a"},"optional":true,"field":"a""#)
    );
    // Inside of the elements the last document that has all fields says in which order they are.
    let order = payload(ARRAYS, doc! {"a": [{"o": {"x": 1}}, {"o": {"y": 1, "x": 2}}]});
    assert_eq!(order, r#"{"a":[{"o":{"y":null,"x":1}},{"o":{"y":1,"x":2}}]}"#);
    assert_eq!(payload(ARRAYS, doc! {"a": [{"x": 1}, {"y": 1, "x": 2}]}), r#"{"a":[{"x":1,"y":null},{"x":2,"y":1}]}"#);
}

#[test]
fn arrays() {
    assert_eq!(
        payload(ARRAYS, doc! {"a": [[], [1], [2, 3]], "b": ["x", null]}),
        r#"{"a":[[],[1],[2,3]],"b":["x",null]}"#
    );
    assert_eq!(
        schema(ARRAYS, doc! {"a": [[{"x": 1}]], "e": [], "n": [null], "o": [{}]}),
        concat!(
            r#"{"type":"array","items":{"type":"array","items":{"type":"struct","fields":[{"type":"int32","optional":true,"field":"x"}],"optional":true},"optional":true},"optional":true,"field":"a"},"#,
            r#"{"type":"array","items":{"type":"string","optional":true},"optional":true,"field":"e"},"#,
            r#"{"type":"array","items":{"type":"string","optional":true},"optional":true,"field":"n"},"#,
            r#"{"type":"array","items":{"type":"struct","fields":[],"optional":true},"optional":true,"field":"o"}"#
        )
    );
    for mixed in [doc! {"m": [1, "two"]}, doc! {"m": [1, null]}, doc! {"m": [{"a": 1}, 1]}, doc! {"m": [[1], 1]}] {
        assert_eq!(refusal(ARRAYS, mixed), "Array elements with different Bson types are not supported: m");
    }
}

#[test]
fn names_fit_for_avro() {
    let avro = Conversion { arrays: ArrayEncoding::Array, names: NameAdjustment::Avro };
    assert_eq!(avro.schema_name("p-1.d.10019_x"), "p_1.d._10019_x");
    assert_eq!(ARRAYS.schema_name("p-1.d.10019_x"), "p-1.d.10019_x");
    assert_eq!(payload(avro, doc! {"1a": {"b-c": 1}, "e": [], "d.e": 2}), r#"{"_1a":{"b_c":1},"e":null,"d_e":2}"#);
    assert!(schema(avro, doc! {"1a": {"b-c": 1}}).contains(r#""name":"n._1a","field":"_1a""#));
    assert_eq!(refusal(avro, doc! {"a-b": 1, "a_b": 2}), "Cannot create field because of field name duplication a_b");
}

#[test]
fn errors_do_not_show_values() {
    let error = parsed_document(r#"{"a": {"$oid": "secret"}}"#, "the field after").unwrap_err().message;
    assert!(error.starts_with("the field after cannot be read") && !error.contains("secret"), "{error}");
    assert_eq!(parsed_document("[1]", "the field after").unwrap_err().message, "the field after is not a document");
    let deep = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    assert!(converted(ARRAYS, parsed_document(&deep(180), "x").unwrap()).is_ok());
    assert!(parsed_document(&deep(100_000), "x").is_err());
}

fn value() -> impl Strategy<Value = Bson> {
    let leaf = prop_oneof![
        Just(Bson::Null),
        Just(Bson::Undefined),
        any::<i32>().prop_map(Bson::Int32),
        any::<i64>().prop_map(Bson::Int64),
        any::<bool>().prop_map(Bson::Boolean),
        "[a-c]{0,3}".prop_map(Bson::String),
    ];
    leaf.prop_recursive(5, 32, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Bson::Array),
            proptest::collection::vec(("[a-d]{1,2}", inner), 0..4)
                .prop_map(|pairs| Bson::Document(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever is converted can be written, and with arrays as structs nothing is refused.
    #[test]
    fn values_fit_their_schemas(value in value()) {
        let document = doc! {"v": value};
        if let Ok(datum) = converted(ARRAYS, document.clone()) {
            written(&datum);
        }
        written(&converted(STRUCTS, document).unwrap());
    }

    /// Fields that are taken instead of being made are the same.
    #[test]
    fn fields_that_fit_are_those_of_the_document(one in shape(), other in shape()) {
        for conversion in [ARRAYS, STRUCTS] {
            let (one, other) = (raw(&one), raw(&other));
            let fields = conversion.fields(&one, Some("n")).unwrap();
            if conversion.fits(&other, &fields) {
                prop_assert_eq!(conversion.fields(&other, Some("n")).unwrap(), fields);
            }
        }
    }
}

/// Documents that are often alike.
fn shape() -> impl Strategy<Value = Document> {
    let regex = Regex { pattern: "a".to_owned().try_into().unwrap(), options: "".to_owned().try_into().unwrap() };
    let leaf = prop_oneof![
        Just(Bson::Null),
        Just(Bson::Int32(1)),
        Just(Bson::String("x".to_owned())),
        Just(Bson::RegularExpression(regex)),
        Just(bson!({"regex": "a", "options": "b"})),
        Just(bson!([])),
        Just(bson!(["x"])),
        Just(bson!([1, 2])),
        Just(bson!([{"a": 1}])),
        Just(bson!([{"a": 1}, {"a": 2}])),
        Just(bson!([{"a": [], "b": {"a": [1]}}, {"a": [], "b": {"a": [2]}}])),
        Just(bson!([{"a": 1, "b": 2}, {"b": 2, "a": 1}])),
        Just(bson!([{"a": {"a": 1, "b": 1}}, {"a": {"b": 1, "a": 1}}])),
        Just(bson!([[{"a": 1}]])),
        Just(bson!([{}])),
        Just(bson!([{"a": [{"a": 1}]}])),
        Just(bson!({})),
    ];
    let inner = leaf.prop_recursive(2, 4, 2, |inner| {
        proptest::collection::vec(("[a-b]", inner), 1..3).prop_map(|pairs| Bson::Document(pairs.into_iter().collect()))
    });
    proptest::collection::vec(("[a-b]", inner), 1..3).prop_map(|pairs| pairs.into_iter().collect())
}

#[test]
fn the_usual_document_fits() {
    let document = |n: i32| {
        doc! {"_id": bson::oid::ObjectId::new(), "n": n, "o": {"a": {"b": "x"}, "t": ["x"]}, "l": [{"sku": "x", "n": n}, {"sku": "y", "n": 1}], "at": DateTime::now(), "e": [], "no": null}
    };
    let fields = ARRAYS.fields(&raw(&document(1)), Some("n")).unwrap();
    assert!(ARRAYS.fits(&raw(&document(2)), &fields));
    assert!(!ARRAYS.fits(&raw(&doc! {"_id": 1}), &fields));
}
