//! How SQLite keeps a value.
//!
//! Within a type, SQLite's comparison of the kept forms is SQL Server's comparison of the values:
//! - integers, `bit`, money (ten-thousandths), dates (days) and times (ticks) are integers; `datetime`,
//!   `datetime2` and `smalldatetime` are ticks since 0001-01-01;
//! - decimals are 16 bytes, big-endian with the sign bit turned, at the scale of their type;
//! - `uniqueidentifier` has its bytes in the order in which the server compares them;
//! - `datetimeoffset` is its UTC ticks (8 bytes) and then its offset (2 bytes); two values of one instant
//!   and different offsets are equal to the server, so comparisons take the first 8 bytes;
//! - texts are texts under a collation, bytes are bytes;
//! - `sql_variant` is its type's text, a zero byte and the value's text form: it can be kept and read, but
//!   not compared.

use rusqlite::types::{Value, ValueRef};

use super::decimal;
use super::kind::Family;
use super::temporal::DAY;
use crate::types::SqlType;
use crate::value::SqlValue;

const SIGN: i128 = i128::MIN;
/// Order of comparison of the bytes of a `uniqueidentifier` as it is written.
const UUID_ORDER: [usize; 16] = [10, 11, 12, 13, 14, 15, 8, 9, 6, 7, 4, 5, 0, 1, 2, 3];

pub(crate) fn encode(value: &SqlValue, kind: &SqlType) -> Value {
    match value {
        SqlValue::Null => Value::Null,
        SqlValue::Bit(b) => Value::Integer(i64::from(*b)),
        SqlValue::Int(n) => Value::Integer(*n),
        SqlValue::Real(f) => Value::Real(f64::from(*f)),
        SqlValue::Float(f) => Value::Real(*f),
        SqlValue::Decimal { units, scale } => {
            let units = decimal::rescale(*units, *scale, kind.digits().1).unwrap_or(*units);
            Value::Blob((units ^ SIGN).to_be_bytes().to_vec())
        }
        SqlValue::Money(n) => Value::Integer(*n),
        SqlValue::Date(days) => Value::Integer((*days).into()),
        SqlValue::Time(ticks) => Value::Integer(*ticks as i64),
        SqlValue::DateTime { days, ticks } => Value::Integer(instant(*days, *ticks)),
        SqlValue::DateTimeOffset { days, ticks, offset } => {
            let mut bytes = instant(*days, *ticks).to_be_bytes().to_vec();
            bytes.extend_from_slice(&offset.to_be_bytes());
            Value::Blob(bytes)
        }
        SqlValue::Uuid(bytes) => Value::Blob(UUID_ORDER.iter().map(|i| bytes[*i]).collect()),
        SqlValue::Text(text) => Value::Text(text.clone()),
        SqlValue::Bytes(bytes) => Value::Blob(bytes.clone()),
        SqlValue::Variant(inner) => {
            let (kind, value) = &**inner;
            let mut bytes = kind.text().into_bytes();
            bytes.push(0);
            match encode(value, kind) {
                Value::Null => return Value::Null,
                Value::Integer(n) => bytes.extend_from_slice(&n.to_be_bytes()),
                Value::Real(f) => bytes.extend_from_slice(&f.to_be_bytes()),
                Value::Text(text) => bytes.extend_from_slice(text.as_bytes()),
                Value::Blob(blob) => bytes.extend_from_slice(&blob),
            }
            Value::Blob(bytes)
        }
    }
}

fn instant(days: i32, ticks: u64) -> i64 {
    i64::from(days) * DAY as i64 + ticks as i64
}

fn days_and_ticks(instant: i64) -> (i32, u64) {
    (instant.div_euclid(DAY as i64) as i32, instant.rem_euclid(DAY as i64) as u64)
}

/// What does not fit its type, which only a wrong translation makes, comes out as NULL.
pub(crate) fn decode(stored: ValueRef<'_>, kind: &SqlType) -> SqlValue {
    match (stored, kind.family()) {
        (ValueRef::Integer(n), Family::Integer) if *kind == SqlType::Bit => SqlValue::Bit(n != 0),
        (ValueRef::Integer(n), Family::Integer) => SqlValue::Int(n),
        (ValueRef::Integer(n), Family::Money) => SqlValue::Money(n),
        (ValueRef::Real(f), Family::Float) if *kind == SqlType::Real => SqlValue::Real(f as f32),
        (ValueRef::Real(f), Family::Float) => SqlValue::Float(f),
        (ValueRef::Integer(n), Family::Float) => SqlValue::Float(n as f64),
        (ValueRef::Integer(n), Family::Temporal) => match kind {
            SqlType::Date => SqlValue::Date(n as i32),
            SqlType::Time { .. } => SqlValue::Time(n as u64),
            _ => {
                let (days, ticks) = days_and_ticks(n);
                SqlValue::DateTime { days, ticks }
            }
        },
        (ValueRef::Blob(bytes), Family::Temporal) => match (bytes.first_chunk::<8>(), bytes.last_chunk::<2>()) {
            (Some(utc), Some(offset)) => {
                let (days, ticks) = days_and_ticks(i64::from_be_bytes(*utc));
                SqlValue::DateTimeOffset { days, ticks, offset: i16::from_be_bytes(*offset) }
            }
            _ => SqlValue::Null,
        },
        (ValueRef::Blob(bytes), Family::Decimal) => match <[u8; 16]>::try_from(bytes) {
            Ok(bytes) => SqlValue::Decimal { units: i128::from_be_bytes(bytes) ^ SIGN, scale: kind.digits().1 },
            Err(_) => SqlValue::Null,
        },
        (ValueRef::Blob(bytes), Family::Uuid) => match <[u8; 16]>::try_from(bytes) {
            Ok(kept) => {
                let mut bytes = [0; 16];
                for (kept, at) in kept.into_iter().zip(UUID_ORDER) {
                    bytes[at] = kept;
                }
                SqlValue::Uuid(bytes)
            }
            Err(_) => SqlValue::Null,
        },
        (ValueRef::Blob(bytes), Family::Variant) => decode_variant(bytes).unwrap_or(SqlValue::Null),
        (ValueRef::Text(text), _) => SqlValue::Text(String::from_utf8_lossy(text).into_owned()),
        (ValueRef::Blob(bytes), Family::Bytes | Family::Other) => SqlValue::Bytes(bytes.to_vec()),
        _ => SqlValue::Null,
    }
}

fn decode_variant(bytes: &[u8]) -> Option<SqlValue> {
    let end = bytes.iter().position(|b| *b == 0)?;
    let (kind, rest) = (std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]);
    let (name, sizes) = kind.split_once('(').map_or((kind, ""), |(n, s)| (n, s.trim_end_matches(')')));
    let sizes: Vec<Option<u32>> = sizes.split(',').filter(|s| !s.is_empty()).map(|s| s.parse().ok()).collect();
    let kind = SqlType::parse(name, &sizes).ok()??;
    let value = match kind.family() {
        Family::Integer | Family::Money => decode(ValueRef::Integer(i64::from_be_bytes(rest.try_into().ok()?)), &kind),
        Family::Temporal if !matches!(kind, SqlType::DateTimeOffset { .. }) => {
            decode(ValueRef::Integer(i64::from_be_bytes(rest.try_into().ok()?)), &kind)
        }
        Family::Float => decode(ValueRef::Real(f64::from_be_bytes(rest.try_into().ok()?)), &kind),
        Family::Text => decode(ValueRef::Text(rest), &kind),
        _ => decode(ValueRef::Blob(rest), &kind),
    };
    Some(SqlValue::Variant(Box::new((kind, value))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept_order(kind: &SqlType, values: &[SqlValue]) {
        let stored: Vec<Value> = values.iter().map(|v| encode(v, kind)).collect();
        for (value, stored) in values.iter().zip(&stored) {
            assert_eq!(&decode(ValueRef::from(stored), kind), value);
        }
        for pair in stored.windows(2) {
            match pair {
                [Value::Blob(a), Value::Blob(b)] => assert!(a < b, "{kind:?}"),
                [Value::Integer(a), Value::Integer(b)] => assert!(a < b, "{kind:?}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn kept_forms_have_the_order_of_their_values() {
        let decimal = |units| SqlValue::Decimal { units, scale: 4 };
        kept_order(
            &SqlType::Decimal { precision: 38, scale: 4 },
            &[decimal(-power38()), decimal(-1), decimal(0), decimal(63_230)],
        );
        kept_order(
            &SqlType::DateTime2 { scale: 7 },
            &[SqlValue::DateTime { days: 0, ticks: 1 }, SqlValue::DateTime { days: 3_652_058, ticks: DAY - 1 }],
        );
        let at = |ticks, offset| SqlValue::DateTimeOffset { days: 1, ticks, offset };
        kept_order(&SqlType::DateTimeOffset { scale: 7 }, &[at(1, 840), at(2, -840)]);
    }

    fn power38() -> i128 {
        10_i128.pow(38) - 1
    }

    #[test]
    fn unique_identifiers_compare_by_their_last_group_first() {
        let mut low = [0xff; 16];
        low[10] = 0;
        let mut high = [0; 16];
        high[10] = 1;
        kept_order(&SqlType::UniqueIdentifier, &[SqlValue::Uuid(low), SqlValue::Uuid(high)]);
    }

    #[test]
    fn variants_keep_their_type() {
        let value = SqlValue::Variant(Box::new((
            SqlType::VarChar(crate::types::Length::Limited(5)),
            SqlValue::Text("abc".into()),
        )));
        let stored = encode(&value, &SqlType::SqlVariant);
        assert_eq!(decode(ValueRef::from(&stored), &SqlType::SqlVariant), value);
    }
}
