#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use apache_avro::from_avro_datum;
use apache_avro::types::Value as Avro;
use bytes::Bytes;
use proptest::prelude::*;

use super::super::schema::{SchemaOptions, avro_schema};
use super::*;
use crate::record::RenderText;

fn written(schema: &Schema, value: &Value) -> Outcome<Vec<u8>> {
    let mut out = Vec::new();
    Writer { out: &mut out, keep_nulls: false }.value(schema, value)?;
    Ok(out)
}

/// What a reader with the registered schema sees.
fn read(schema: &Schema, bytes: &[u8]) -> Avro {
    let text = avro_schema(schema, SchemaOptions { meta: true, scrub: false }).unwrap().text;
    let avro = apache_avro::Schema::parse_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    let mut rest = bytes;
    let value = from_avro_datum(&avro, &mut rest, None).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert!(rest.is_empty(), "{} bytes are left", rest.len());
    value
}

#[test]
fn numbers_and_texts() {
    let bytes = |schema: Schema, value| written(&schema, &value).unwrap();
    assert_eq!(bytes(Schema::int32(), Value::Int32(0)), [0]);
    assert_eq!(bytes(Schema::int32(), Value::Int32(-1)), [1]);
    assert_eq!(bytes(Schema::int32(), Value::Int32(64)), [0x80, 1]);
    assert_eq!(bytes(Schema::int64(), Value::Int64(i64::MIN)), [255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
    assert_eq!(bytes(Schema::new(Type::Int8), Value::Int8(-128)), [0xFF, 1]);
    assert_eq!(bytes(Schema::string(), Value::text("ab")), [4, b'a', b'b']);
    assert_eq!(bytes(Schema::boolean(), Value::Bool(true)), [1]);
    assert_eq!(bytes(Schema::new(Type::Float32), Value::Float32(1.0)), [0, 0, 0x80, 0x3F]);
    assert_eq!(bytes(Schema::array(Schema::int32()), Value::Array(vec![])), [0]);
    assert_eq!(bytes(Schema::array(Schema::int32()), Value::Array(vec![Value::Int32(1)])), [2, 2, 0]);
}

#[derive(Debug)]
struct Long;

impl RenderText for Long {
    fn render(&self, form: TextForm, out: &mut Vec<u8>) {
        assert_eq!(form, TextForm::Plain);
        out.extend(std::iter::repeat_n(b'x', 300));
    }
}

#[test]
fn a_text_that_is_rendered_late_has_its_length_before_it() {
    let bytes = written(&Schema::string(), &Value::String(Text::Lazy(Arc::new(Long)))).unwrap();
    assert_eq!(bytes[..2], [0xD8, 4]);
    assert_eq!(bytes.len(), 302);
    assert_eq!(read(&Schema::string(), &bytes), Avro::String("x".repeat(300)));
}

#[test]
fn nulls_and_defaults() {
    let plain = Schema::int32().optional();
    assert_eq!(written(&plain, &Value::Null).unwrap(), [0]);
    assert_eq!(written(&plain, &Value::Int32(1)).unwrap(), [2, 2]);
    let default = Schema::int32().optional().defaulting(Value::Int32(7));
    assert_eq!(written(&default, &Value::Null).unwrap(), [0, 14]);
    let mut out = Vec::new();
    Writer { out: &mut out, keep_nulls: true }.value(&default, &Value::Null).unwrap();
    assert_eq!(out, [2]);
    assert_eq!(read(&default, &out), Avro::Union(1, Box::new(Avro::Null)));
    let required = Schema::int32().defaulting(Value::Int32(7));
    assert_eq!(written(&required, &Value::Null).unwrap(), [14]);
    let error = written(&Schema::int32(), &Value::Null).unwrap_err().to_error();
    assert!(error.message.contains("null value for field that is required"));
}

#[test]
fn faults_name_the_field_and_no_value() {
    let inner = Schema::record([("n", Schema::int32())]);
    let schema = Schema::record([("list", Schema::array(inner))]);
    let value = Value::Struct(vec![Value::Array(vec![Value::Struct(vec![Value::text("secret")])])]);
    let error = written(&schema, &value).unwrap_err().to_error();
    assert_eq!(error.message, "Invalid type for INT32: string (field list.n)");
    let short = written(&schema, &Value::Struct(vec![])).unwrap_err().to_error();
    assert!(short.message.starts_with("Mismatching schema"));
    let map = Schema::map(Schema::string(), Schema::int32());
    assert!(written(&map, &Value::Map(vec![(Value::Null, Value::Int32(1))])).is_err());
}

#[test]
fn decimals_and_dates_keep_their_bytes() {
    let decimal = Schema::bytes().named("org.apache.kafka.connect.data.Decimal").parameter("scale", "2");
    let bytes = written(&decimal, &Value::Bytes(Bytes::from_static(&[0xFF, 0x38]))).unwrap();
    assert_eq!(bytes, [4, 0xFF, 0x38]);
    let Avro::Decimal(read) = read(&decimal, &bytes) else { panic!("no decimal") };
    assert_eq!(<Vec<u8>>::try_from(&read).unwrap(), [0xFF, 0x38]);
    let date = Schema::int32().named("org.apache.kafka.connect.data.Date").versioned(1);
    assert_eq!(self::read(&date, &written(&date, &Value::Int32(19_675)).unwrap()), Avro::Date(19_675));
}

/// A schema and values of it.
fn pairs() -> impl Strategy<Value = (Schema, Value)> {
    let leaf = prop_oneof![
        any::<i8>().prop_map(|n| (Schema::new(Type::Int8), Value::Int8(n))),
        any::<i16>().prop_map(|n| (Schema::new(Type::Int16), Value::Int16(n))),
        any::<i32>().prop_map(|n| (Schema::int32(), Value::Int32(n))),
        any::<i64>().prop_map(|n| (Schema::int64(), Value::Int64(n))),
        (-1e30f32..1e30).prop_map(|n| (Schema::new(Type::Float32), Value::Float32(n))),
        (-1e300f64..1e300).prop_map(|n| (Schema::new(Type::Float64), Value::Float64(n))),
        any::<bool>().prop_map(|b| (Schema::boolean(), Value::Bool(b))),
        "\\PC{0,20}".prop_map(|text| (Schema::string(), Value::text(text))),
        prop::collection::vec(any::<u8>(), 0..200).prop_map(|b| (Schema::bytes(), Value::Bytes(b.into()))),
    ];
    let leaf = (leaf, 0..5).prop_map(|((schema, value), kind)| match kind {
        0 => (schema.optional(), value),
        1 => (schema.optional(), Value::Null),
        2 => (schema.optional().defaulting(value), Value::Null),
        3 => (schema.defaulting(value.clone()), value),
        _ => (schema, value),
    });
    leaf.prop_recursive(4, 32, 5, |part| {
        prop_oneof![
            (part.clone(), 0usize..4).prop_map(|((s, v), n)| (Schema::array(s), Value::Array(vec![v; n]))),
            (part.clone(), prop::collection::btree_set("[a-z]{1,4}", 0..4)).prop_map(|((s, v), keys)| {
                let pairs = keys.into_iter().map(|key| (Value::text(key), v.clone())).collect();
                (Schema::map(Schema::string(), s), Value::Map(pairs))
            }),
            (part.clone(), part.clone()).prop_map(|((k, kv), (s, v))| {
                // Not required texts: then it would be a map.
                let keys = if has_text_keys(&k) { k.optional() } else { k };
                (Schema::map(keys, s), Value::Map(vec![(kv, v)]))
            }),
            (prop::collection::vec(part, 0..5), any::<bool>()).prop_map(|(parts, optional)| {
                let (schemas, values): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
                let schema = Schema::record(schemas.into_iter().enumerate().map(|(at, s)| (format!("f{at}"), s)));
                (if optional { schema.optional() } else { schema }, Value::Struct(values))
            }),
        ]
    })
}

/// What was read is what was written.
fn assert_same(schema: &Schema, value: &Value, avro: &Avro) {
    let meant = effective(schema, value, false).unwrap();
    let avro = match avro {
        Avro::Union(branch, inner) => {
            assert!(schema.optional);
            assert_eq!((*branch == 0) == default_of(schema).is_some(), meant.is_some(), "branch {branch}");
            inner
        }
        avro => {
            assert!(!schema.optional);
            avro
        }
    };
    let Some(value) = meant else {
        assert_eq!(*avro, Avro::Null);
        return;
    };
    match (&schema.ty, value, avro) {
        (_, Value::Bool(a), Avro::Boolean(b)) => assert_eq!(a, b),
        (_, Value::Int8(a), Avro::Int(b)) => assert_eq!(i32::from(*a), *b),
        (_, Value::Int16(a), Avro::Int(b)) => assert_eq!(i32::from(*a), *b),
        (_, Value::Int32(a), Avro::Int(b)) => assert_eq!(a, b),
        (_, Value::Int64(a), Avro::Long(b)) => assert_eq!(a, b),
        (_, Value::Float32(a), Avro::Float(b)) => assert_eq!(a, b),
        (_, Value::Float64(a), Avro::Double(b)) => assert_eq!(a, b),
        (_, Value::String(a), Avro::String(b)) => assert_eq!(a.as_str(), *b),
        (_, Value::Bytes(a), Avro::Bytes(b)) => assert_eq!(a, b),
        (Type::Array(items), Value::Array(a), Avro::Array(b)) => {
            assert_eq!(a.len(), b.len());
            a.iter().zip(b).for_each(|(a, b)| assert_same(items, a, b));
        }
        (Type::Map(_, values), Value::Map(a), Avro::Map(b)) => {
            assert_eq!(a.len(), b.len());
            for (key, value) in a {
                let Value::String(key) = key else { panic!("a key") };
                assert_same(values, value, &b[&*key.as_str()]);
            }
        }
        (Type::Map(keys, values), Value::Map(a), Avro::Array(b)) => {
            assert_eq!(a.len(), b.len());
            for ((key, value), entry) in a.iter().zip(b) {
                let Avro::Record(fields) = entry else { panic!("an entry") };
                assert_same(keys, key, &fields[0].1);
                assert_same(values, value, &fields[1].1);
            }
        }
        (Type::Struct(fields), Value::Struct(a), Avro::Record(b)) => {
            assert_eq!(a.len(), b.len());
            for ((field, a), (name, b)) in fields.iter().zip(a).zip(b) {
                assert_eq!(&*field.name, name);
                assert_same(&field.schema, a, b);
            }
        }
        (_, value, avro) => panic!("{value:?} was read as {avro:?}"),
    }
}

proptest! {
    #[test]
    fn whatever_is_written_is_read((schema, value) in pairs()) {
        let bytes = written(&schema, &value).unwrap();
        assert_same(&schema, &value, &read(&schema, &bytes));
    }
}
