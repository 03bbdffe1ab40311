#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use proptest::prelude::*;

use super::*;
use crate::convert::{Converter, SimpleHeaderConverter, Written};

fn shown(text: &str) -> String {
    let datum = literal(text);
    let mut out = Vec::new();
    match SimpleHeaderConverter.convert_datum(&"t".into(), &datum, &mut out).unwrap() {
        Written::Null => "(null)".to_owned(),
        Written::Bytes => String::from_utf8(out).unwrap(),
        Written::Waiting => unreachable!("it asks nobody"),
    }
}

/// Literals and the header that Kafka Connect 4.3.0 makes of them (`Values.parseString` and
/// `SimpleHeaderConverter`, run for this).
const OF_CONNECT: &[(&str, &str)] = &[
    ("[a,b]", "[a,b]"),
    ("{a:1}", "{a:1}"),
    (r#""quoted""#, r#""quoted""#),
    ("[1,2.5]", "[1.0,2.5]"),
    ("10:30", "10"),
    ("1,2", "1"),
    ("5]", "5"),
    (".5", ".5"),
    ("1e25", "1.0E25"),
    ("[1,]", "[1]"),
    ("12345678901234567890123", "12345678901234567890123"),
    ("[1,null]", "[1,null]"),
    (r#"[1,"a"]"#, r#"[1,"a"]"#),
    ("[]", "[]"),
    ("{}", "{}"),
    (r#"{"a":1,}"#, r#"{"a":1}"#),
    (r#"{"a":null}"#, r#"{"a":null}"#),
    (r#"{"a":1 "b":2}"#, r#"{"a":1,"b":2}"#),
    ("[not a list", "[not a list"),
    ("2023-11-14 10:00", "2023-11-14 10:00"),
    ("2024-01-01", "2024-01-01"),
    ("2024-01-01T00:00:00.000Z", "2024-01-01"),
    ("10:20:30.123Z", "10:20:30.123Z"),
    ("[2024-01-01]", "[2024-01-01]"),
    ("[2024-01-01,1]", "[2024-01-01,1970-01-02]"),
    ("[10:20:30.123Z,1.5]", "[10:20:30.123Z,1.5]"),
    (r#"["2024-01-01"]"#, "[2024-01-01]"),
    (" 5 ", "5"),
    (" true ", "true"),
    ("[1,2] x", "[1,2]"),
    ("true}", "true}"),
    (r#"{"a":[1,2],"b":3}"#, r#"{"a":[1,2],"b":3}"#),
    ("0.0", "0"),
    ("1.0", "1"),
    ("1e-400", "0.0"),
    ("[ 1 , 2 ]", "[1,2]"),
    ("[ ]", "[]"),
    ("{ }", "{}"),
    ("+5", "5"),
    ("-x", "-x"),
    ("-", "-"),
    (r#"["a\"b"]"#, r#"["a\\\"b"]"#),
    (r#"["a\\b"]"#, r#"["a\\\\b"]"#),
    ("[300,1]", "[300,1]"),
    ("[1,true]", "[1,true]"),
    ("[[1],[300]]", "[[1],[300]]"),
    ("[null]", "[null]"),
    ("{1:null}", "{1:null}"),
    (r#"{1:"a",2:5}"#, r#"{1:"a",2:5}"#),
    ("10:20:30.123Z extra", "10"),
    ("2024-01-01x", "2024-01-01x"),
    ("2024-1-001", "2024-01-01"),
    (r#""2024-01-01""#, r#""2024-01-01""#),
    ("1e10", "10000000000"),
    ("3e9", "3000000000"),
    ("1.5e3", "1500"),
    ("1_0", "1_0"),
    ("0x10", "0x10"),
    ("5,", "5"),
    (r#"{"a":1}"#, r#"{"a":1}"#),
    (r#"{"b":{}}"#, r#"{"b":{}}"#),
    (r#"[""]"#, r#"[""]"#),
    (r#"["a", ]"#, r#"["a"]"#),
    ("[,]", "[,]"),
    ("[1 2]", "[1 2]"),
    ("  [1]", "[1]"),
    ("[1]  ", "[1]"),
    ("5:", "5"),
    (r#"10\:20\:30.123Z"#, "10:20:30.123Z"),
    ("[a", "[a"),
    (r#"["x"#, r#"["x"#),
    ("9223372036854775808", "9223372036854775808"),
    ("-9223372036854775809", "-9223372036854775809"),
    ("1e19", "1.0E19"),
    ("1e18", "1000000000000000000"),
    ("0.1", "0.1"),
    ("1E+3", "1000"),
    ("NaN", "NaN"),
    ("1f", "1f"),
    ("5d", "5d"),
    ("", ""),
    ("[3e9,1]", "[3000000000,1]"),
    ("[1,3e9,2.5]", "[1.0,3.0E9,2.5]"),
    ("{5:1,300:2}", "{5:1,300:2}"),
    (r#"{"2024-01-01":1}"#, "{2024-01-01:1}"),
    ("{true:1}", "{true:1}"),
    ("[1,2", "[1,2"),
    ("00:00:00.000Z", "00:00:00.000Z"),
    ("2024-01-01T10:00:00.000Z", "2024-01-01T10:00:00.000Z"),
    ("[1e25,1]", "[1.0E25,1.0]"),
    ("1e39", "1.0E39"),
    (r#"["a"b]"#, r#"["a"b]"#),
    ("{null:1}", "{null:1}"),
    ("[true,null,false]", "[true,null,false]"),
    ("[[],[1]]", "[[],[1]]"),
    (r#"[[1],["a"]]"#, r#"[[1],["a"]]"#),
    ("10:30:00", "10"),
    ("2024-01-01T10:30", "2024-01-01T10:30"),
    ("5 5", "5 5"),
    ("+", "+"),
    ("- 5", "- 5"),
    ("-5 ", "-5"),
    (" -5", "-5"),
    ("[1]]", "[1]"),
    (r#"{"k":1}}"#, r#"{"k":1}"#),
    ("1.", "1"),
    (".", "."),
    ("1.e2", "100"),
    (r#"[ "a" ]"#, r#"["a"]"#),
    (r#"[ "a b" , " c" ]"#, r#"["a b"," c"]"#),
    ("1-1", "1-1"),
    ("1969-12-31", "00:00:00.000Z"),
    ("1970-01-01", "00:00:00.000Z"),
    ("1969-12-31T23:59:59.999Z", "23:59:59.999Z"),
    (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
    ("[127,128.0]", "[127,128]"),
    ("2024-01-01T00:00:00.001Z", "2024-01-01T00:00:00.001Z"),
];

#[test]
fn headers_as_connect_writes_them() {
    for (text, expected) in OF_CONNECT {
        assert_eq!(shown(text), *expected, "{text}");
    }
    assert_eq!((shown("null"), shown(" null ")), ("(null)".to_owned(), "(null)".to_owned()));
    assert_eq!(shown("1e400"), "1E+400");
    assert_eq!(shown("[2.5,1e39]"), "[2.5,1.0E39]");
}

#[test]
fn numbers_have_the_narrowest_type() {
    for (text, value) in [
        ("7", Value::Int8(7)),
        ("-129", Value::Int16(-129)),
        ("40000", Value::Int32(40_000)),
        ("3000000000", Value::Int64(3_000_000_000)),
        ("2.5", Value::Float32(2.5)),
        ("1e25", Value::Float32(1e25)),
        // On purpose not the 1.2345679 of 32 bits.
        ("1.23456789012", Value::Float64(1.234_567_890_12)),
        ("true", Value::Bool(true)),
        ("null", Value::Null),
        ("True", Value::text("True")),
        ("1.2.3", Value::text("1.2.3")),
        ("", Value::text("")),
        (" a ", Value::text(" a ")),
    ] {
        assert_eq!(literal(text).value, value, "{text}");
    }
    let big = literal("9223372036854775808");
    assert_eq!(big.schema.unwrap().name.as_deref(), Some("org.apache.kafka.connect.data.Decimal"));
    assert_eq!(shown("1e1000000000"), "1e1000000000");
}

#[test]
fn lists_and_maps_have_one_type() {
    let items = |text: &str| match &literal(text).schema.unwrap().ty {
        Type::Array(items) => items.clone(),
        Type::Map(keys, _) => keys.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(*items("[1,2.5]"), Schema::new(Type::Float32));
    assert_eq!(literal("[1,2.5]").value, Value::Array(vec![Value::Float32(1.0), Value::Float32(2.5)]));
    assert_eq!(*items("[2024-01-01,1]"), *schemas::date(false));
    assert_eq!(*items("{5:1,300:2}"), Schema::new(Type::Int16));
    assert_eq!(literal(r#"[1,"a"]"#).schema, None);
    assert_eq!(literal("[1,null]").value, Value::text("[1,null]"));
}

#[test]
fn what_is_too_deep_is_text() {
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    assert_eq!(literal(&deep).value, Value::text(deep.clone()));
    assert_eq!(shown(&"[".repeat(9)), "[".repeat(9));
    assert_eq!(shown(&format!("{}1{}", "[".repeat(9), "]".repeat(9))), format!("{}1{}", "[".repeat(9), "]".repeat(9)));
}

proptest! {
    #[test]
    fn any_text_is_a_value(text in "[\\[\\]{}:,\"\\\\a0-9. eZT-]{0,24}") {
        let _ = shown(&text);
    }
}
