//! `PartitionRouting`: the partition follows from fields of the change event, not from the key.
//!
//! The hash is the sum of the values' hash codes as Java computes them, so that a change keeps the
//! partition that it had before.

use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::change_event::{field, is_change_event, operation};
use super::decimal;
use super::fault::invalid;
use super::object;
use super::options::{not_empty_list, option, table};
use super::{Fate, Made, Transform};
use crate::convert::fault::kind_name;
use crate::error::Result;
use crate::record::{Record, Schema, Value};

pub(super) static OPTIONS: OptionTable = table(
    "PartitionRouting",
    &[
        option(
            "partition.payload.fields",
            OptionKind::List,
            Importance::High,
            "Fields of the change event from which the partition follows: after.x, before.x, source.x, or change.x for the row after the change and, of a delete, before it.",
        )
        .required()
        .check(not_empty_list)
        .aliases(&["partition.payload.field"]),
        option("partition.topic.num", OptionKind::Int, Importance::High, "Partitions of the topic.")
            .required()
            .at_least(1),
        option("partition.hash.function", OptionKind::String, Importance::Low, "How values are hashed.")
            .default("java")
            .one_of(&["java"]),
    ],
    &[|settings| {
        let empty = |path: &&String| path.split('.').any(|name| name.trim().is_empty());
        let wrong = settings.list("partition.payload.fields").iter().filter(empty);
        wrong.map(|path| ("partition.payload.fields", format!("'{path}' has a level without a name"))).collect()
    }],
);

pub(super) struct PartitionRouting {
    paths: Vec<Vec<Box<str>>>,
    partitions: u32,
}

impl PartitionRouting {
    pub(super) fn make(settings: &Settings) -> Made {
        let path = |text: &String| text.split('.').map(|name| name.trim().into()).collect();
        let paths = settings.list("partition.payload.fields").iter().map(path).collect();
        let partitions = u32::try_from(settings.int("partition.topic.num")).unwrap_or(1).max(1);
        Ok(Box::new(Self { paths, partitions }))
    }
}

/// The value at the path, a default in place of a null; `None` if there is none.
fn find<'a>(schema: &'a Schema, values: &'a [Value], path: &[Box<str>], row: &str) -> Option<(&'a Schema, &'a Value)> {
    let (name, rest) = path.split_first()?;
    // By itself `change` is a name like any other.
    let name = if &**name == "change" && !rest.is_empty() { row } else { name };
    let (schema, value) = field(schema, values, name)?;
    let value = schema.default.as_ref().filter(|_| value.is_null()).unwrap_or(value);
    match (rest, value) {
        (_, Value::Null) => None,
        ([], value) => Some((schema, value)),
        (rest, Value::Struct(values)) => find(schema, values, rest, row),
        _ => None,
    }
}

/// `hashCode` of what Java holds for this value.
fn hash(schema: &Schema, value: &Value) -> Option<i32> {
    let long = |n: i64| (n ^ (n as u64 >> 32) as i64) as i32;
    let of_bytes = |bytes: &[u8]| {
        bytes.iter().rev().fold(1i32, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(*byte as i8)))
    };
    match (schema.name.as_deref(), value) {
        (Some("org.apache.kafka.connect.data.Decimal"), Value::Bytes(bytes)) => {
            let scale = schema.parameters.iter().find(|(name, _)| &**name == "scale")?.1.parse::<i32>().ok()?;
            Some(of_integer(decimal::number_of(bytes)?).wrapping_mul(31).wrapping_add(scale))
        }
        (Some("org.apache.kafka.connect.data.Date"), Value::Int32(days)) => Some(long(i64::from(*days) * 86_400_000)),
        (Some("org.apache.kafka.connect.data.Time"), Value::Int32(millis)) => Some(long(i64::from(*millis))),
        (_, Value::Bool(flag)) => Some(if *flag { 1231 } else { 1237 }),
        (_, Value::Int8(n)) => Some(i32::from(*n)),
        (_, Value::Int16(n)) => Some(i32::from(*n)),
        (_, Value::Int32(n)) => Some(*n),
        (_, Value::Int64(n)) => Some(long(*n)),
        (_, Value::Float32(n)) => Some(if n.is_nan() { 0x7fc0_0000 } else { n.to_bits() as i32 }),
        (_, Value::Float64(n)) => Some(long(if n.is_nan() { 0x7ff8_0000_0000_0000 } else { n.to_bits() as i64 })),
        (_, Value::String(text)) => {
            let units = text.as_str();
            Some(units.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit))))
        }
        (_, Value::Bytes(bytes)) => Some(of_bytes(bytes)),
        _ => None,
    }
}

/// `BigInteger.hashCode`: over the magnitude's 32-bit words, most significant first.
fn of_integer(number: i128) -> i32 {
    let magnitude = number.unsigned_abs();
    let words = [96, 64, 32, 0].map(|shift| (magnitude >> shift) as u32);
    let used = words.iter().skip_while(|word| **word == 0);
    let hash = used.fold(0i32, |hash, word| hash.wrapping_mul(31).wrapping_add(*word as i32));
    if number < 0 { hash.wrapping_neg() } else { hash }
}

impl Transform for PartitionRouting {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        let (Some(schema), true) = (record.value.schema.clone(), is_change_event(&record.value)) else {
            return Ok(Fate::Keep);
        };
        let values = object::fields(&schema, &mut record.value.value, "choosing a partition")?;
        let row = match operation(&schema, values)? {
            't' | 'm' => return Ok(Fate::Keep),
            'd' => "before",
            _ => "after",
        };
        let mut sum = None;
        for path in &self.paths {
            if let Some((schema, value)) = find(&schema, values, path, row) {
                let hash = hash(schema, value).ok_or_else(|| {
                    let text = format!("the partition cannot follow from a {}", kind_name(value));
                    invalid(format!("{text} (field {})", path.join(".")))
                })?;
                sum = Some(sum.unwrap_or(0i32).wrapping_add(hash));
            }
        }
        if let Some(sum) = sum {
            let positive = match sum & i32::MAX {
                i32::MAX => 0,
                positive => positive,
            };
            record.partition = i32::try_from(positive as u32 % self.partitions).ok();
        }
        Ok(Fate::Keep)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::record::Datum;
    use crate::transform::support::*;

    const CLASS: &str = "io.debezium.transforms.partitions.PartitionRouting";

    fn partition(fields: &str, num: &str, event: Record) -> Option<i32> {
        let options = [("partition.payload.fields", fields), ("partition.topic.num", num)];
        run(&mut chain(CLASS, &options), event).unwrap().unwrap().partition
    }

    #[test]
    fn hash_codes_of_java() {
        let plain = Schema::string();
        let decimal = Schema::bytes().named("org.apache.kafka.connect.data.Decimal").parameter("scale", "2");
        let date = Schema::int32().named("org.apache.kafka.connect.data.Date");
        for (schema, value, expected) in [
            (&plain, Value::text("orange"), -1_008_851_410),
            (&plain, Value::text(""), 0),
            (&plain, Value::text("\u{1F600}"), 1_772_899),
            (&plain, Value::Int32(-5), -5),
            (&plain, Value::Int64(4_294_967_301), 4),
            (&plain, Value::Int64(-1), 0),
            (&plain, Value::Bool(true), 1231),
            (&plain, Value::Float64(1.5), 1_073_217_536),
            (&plain, Value::Float32(1.5), 1_069_547_520),
            (&plain, Value::Bytes(Bytes::from_static(&[1, 2])), 31 * (31 + 2) + 1),
            (&decimal, Value::Bytes(Bytes::from_static(&[5])), 5 * 31 + 2),
            (&decimal, Value::Bytes(Bytes::from_static(&[0xFB])), -5 * 31 + 2),
            (&date, Value::Int32(1), 86_400_000),
        ] {
            assert_eq!(hash(schema, &value), Some(expected), "{value:?}");
        }
        assert_eq!(hash(&plain, &Value::Array(vec![])), None);
        assert_eq!(of_integer(1 << 32), 31);
    }

    #[test]
    fn from_fields_of_the_event() {
        assert_eq!(partition("after.id", "10", change('c')), Some(1));
        assert_eq!(partition("change.id,source.ts_ms", "10", change('d')), Some(5));
        assert_eq!(partition("before.id", "10", change('c')), None);
        assert_eq!(partition("gone, after.gone ,after.id.deeper", "10", change('c')), None);
        let name = (-1_008_851_410i32 & i32::MAX) % 7;
        let mut orange = change('u');
        set(&mut orange.value, "after", Value::Struct(vec![Value::Int32(0), Value::text("orange")]));
        assert_eq!(partition("change.name", "7", orange), Some(name));
        for other in [change('t'), heartbeat(), record(Datum::none())] {
            assert_eq!(partition("op,ts_ms", "7", other), None);
        }
        // The default stands for the null, and `change` alone is no field.
        let hash = "false".encode_utf16().fold(0i32, |h, unit| h.wrapping_mul(31).wrapping_add(i32::from(unit)));
        assert_eq!(partition("source.snapshot", "7", change('c')), Some((hash & i32::MAX) % 7));
        assert_eq!(partition("change", "7", change('c')), None);
        let options = [("partition.payload.fields", "source"), ("partition.topic.num", "3")];
        assert!(refused(&mut chain(CLASS, &options), change('c')).contains("cannot follow from a struct"));
    }

    #[test]
    fn wrong_options() {
        let of = |fields, num, hash| {
            let options =
                [("partition.payload.fields", fields), ("partition.topic.num", num), ("partition.hash.function", hash)];
            faults(CLASS, &options).join("\n")
        };
        assert_eq!(of("a", "1", "java"), "");
        assert!(of("a..b", "1", "java").contains("without a name"));
        assert!(of("a", "0", "java").contains("partition.topic.num"));
        assert!(of("a", "1", "murmur").contains("partition.hash.function"));
    }

    proptest! {
        #[test]
        fn always_a_partition_of_the_topic(id in any::<i32>(), num in 1i32..2000) {
            let mut event = change('c');
            set(&mut event.value, "after", Value::Struct(vec![Value::Int32(id), Value::Null]));
            let partition = partition("after.id", &num.to_string(), event).unwrap();
            prop_assert!((0..num).contains(&partition));
            if id >= 0 && id != i32::MAX {
                prop_assert_eq!(partition, id % num);
            }
        }
    }
}
