//! Bytes of single values, without their length and without NULL.
//!
//! [MS-TDS] "Data Types" under "TDS Data Types". What a value's type cannot hold is refused with an
//! [`Unfit`]: the session converts before it answers. Fixed-length types are filled up here.

use super::bytes::{Malformed, Reader, Write, utf16};
use super::collation::{Charset, windows_1252};
use super::{decimal, temporal};
use crate::types::{Length, SqlType};
use crate::value::SqlValue;

/// A value that its type cannot hold; the text goes behind the value's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unfit(pub(crate) &'static str);

impl Unfit {
    pub(crate) fn new(why: &'static str) -> Self {
        Self(why)
    }
}

const OTHER_KIND: Unfit = Unfit("is of another kind");
const TOO_LONG: Unfit = Unfit("is longer than its type");

/// Appends a value's bytes. Values of `sql_variant` are written by [`super::variant`].
pub(crate) fn put(kind: &SqlType, value: &SqlValue, out: &mut Vec<u8>) -> Result<(), Unfit> {
    match (kind, value) {
        (SqlType::Bit, SqlValue::Bit(bit)) => out.put(&[u8::from(*bit)]),
        (SqlType::TinyInt, SqlValue::Int(int)) => out.put(&[u8::try_from(*int).map_err(out_of_range)?]),
        (SqlType::SmallInt, SqlValue::Int(int)) => out.put(&i16::try_from(*int).map_err(out_of_range)?.to_le_bytes()),
        (SqlType::Int, SqlValue::Int(int)) => out.put(&i32::try_from(*int).map_err(out_of_range)?.to_le_bytes()),
        (SqlType::BigInt, SqlValue::Int(int)) => out.put(&int.to_le_bytes()),
        (SqlType::Real, SqlValue::Real(real)) => out.put(&real.to_le_bytes()),
        (SqlType::Float, SqlValue::Float(float)) => out.put(&float.to_le_bytes()),
        (
            SqlType::Decimal { precision, scale } | SqlType::Numeric { precision, scale },
            SqlValue::Decimal { units, scale: own },
        ) => decimal::put(decimal::rescale(*units, *own, *scale)?, *precision, out)?,
        (SqlType::SmallMoney, SqlValue::Money(money)) => {
            out.put(&i32::try_from(*money).map_err(out_of_range)?.to_le_bytes());
        }
        (SqlType::Money, SqlValue::Money(money)) => {
            // The half of higher value comes first.
            let [a, b, c, d, e, f, g, h] = money.to_le_bytes();
            out.put(&[e, f, g, h, a, b, c, d]);
        }
        (SqlType::Date, SqlValue::Date(days)) => temporal::put_date(*days, out)?,
        (SqlType::Time { scale }, SqlValue::Time(ticks)) => temporal::put_time(*ticks, *scale, out)?,
        (SqlType::DateTime2 { scale }, SqlValue::DateTime { days, ticks }) => {
            temporal::put_datetime2(*days, *ticks, *scale, out)?;
        }
        (SqlType::DateTimeOffset { scale }, SqlValue::DateTimeOffset { days, ticks, offset }) => {
            temporal::put_datetimeoffset(*days, *ticks, *offset, *scale, out)?;
        }
        (SqlType::DateTime, SqlValue::DateTime { days, ticks }) => temporal::put_datetime(*days, *ticks, out)?,
        (SqlType::SmallDateTime, SqlValue::DateTime { days, ticks }) => {
            temporal::put_smalldatetime(*days, *ticks, out)?;
        }
        (SqlType::UniqueIdentifier, SqlValue::Uuid(uuid)) => out.put(&swapped(*uuid)),
        (
            SqlType::Char(_)
            | SqlType::VarChar(_)
            | SqlType::NChar(_)
            | SqlType::NVarChar(_)
            | SqlType::Text
            | SqlType::NText
            | SqlType::Xml,
            SqlValue::Text(text),
        ) => put_text(kind, text, out)?,
        (
            SqlType::Binary(_) | SqlType::VarBinary(_) | SqlType::Image | SqlType::RowVersion | SqlType::Clr(_),
            SqlValue::Bytes(bytes),
        ) => put_bytes(kind, bytes, out)?,
        _ => return Err(OTHER_KIND),
    }
    Ok(())
}

fn out_of_range(_: std::num::TryFromIntError) -> Unfit {
    Unfit::new("is beyond the range of its type")
}

fn put_text(kind: &SqlType, text: &str, out: &mut Vec<u8>) -> Result<(), Unfit> {
    let start = out.len();
    let wide = matches!(kind, SqlType::NChar(_) | SqlType::NVarChar(_) | SqlType::NText | SqlType::Xml);
    if wide {
        out.put_utf16(text);
    } else {
        out.extend(text.chars().map(windows_1252));
    }
    let length = (out.len() - start) / if wide { 2 } else { 1 };
    match kind {
        SqlType::VarChar(Length::Limited(most)) | SqlType::NVarChar(Length::Limited(most))
            if length > usize::from(*most) =>
        {
            Err(TOO_LONG)
        }
        SqlType::Char(exact) | SqlType::NChar(exact) => {
            let missing = usize::from(*exact).checked_sub(length).ok_or(TOO_LONG)?;
            for _ in 0..missing {
                out.put(if wide { b" \0" } else { b" " });
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn put_bytes(kind: &SqlType, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Unfit> {
    let exact = match kind {
        SqlType::Binary(exact) => Some(usize::from(*exact)),
        SqlType::RowVersion => Some(8),
        SqlType::VarBinary(Length::Limited(most)) if bytes.len() > usize::from(*most) => return Err(TOO_LONG),
        _ => None,
    };
    let missing = exact.map_or(Some(0), |exact| exact.checked_sub(bytes.len())).ok_or(TOO_LONG)?;
    out.put(bytes);
    out.resize(out.len() + missing, 0);
    Ok(())
}

/// Between the bytes as they are written and their order on the wire, in both directions: the first
/// three groups are little-endian there.
fn swapped(uuid: [u8; 16]) -> [u8; 16] {
    let [a, b, c, d, e, f, g, h, rest @ ..] = uuid;
    let mut swapped = [d, c, b, a, f, e, h, g, 0, 0, 0, 0, 0, 0, 0, 0];
    swapped[8..].copy_from_slice(&rest);
    swapped
}

/// The value of a type in these bytes, all of which it takes.
pub(crate) fn read(kind: &SqlType, bytes: &[u8], charset: Charset) -> Result<SqlValue, Malformed> {
    let mut reader = Reader::new(bytes);
    let value = match kind {
        SqlType::Bit => SqlValue::Bit(reader.u8()? != 0),
        SqlType::TinyInt => SqlValue::Int(reader.u8()?.into()),
        SqlType::SmallInt => SqlValue::Int(i16::from_le_bytes(reader.array()?).into()),
        SqlType::Int => SqlValue::Int(i32::from_le_bytes(reader.array()?).into()),
        SqlType::BigInt => SqlValue::Int(i64::from_le_bytes(reader.array()?)),
        SqlType::Real => SqlValue::Real(f32::from_le_bytes(reader.array()?)),
        SqlType::Float => SqlValue::Float(f64::from_le_bytes(reader.array()?)),
        SqlType::Decimal { scale, .. } | SqlType::Numeric { scale, .. } => {
            SqlValue::Decimal { units: decimal::read(reader.take_rest())?, scale: *scale }
        }
        SqlType::SmallMoney => SqlValue::Money(i32::from_le_bytes(reader.array()?).into()),
        SqlType::Money => {
            let [e, f, g, h, a, b, c, d] = reader.array()?;
            SqlValue::Money(i64::from_le_bytes([a, b, c, d, e, f, g, h]))
        }
        SqlType::Date => SqlValue::Date(temporal::read_date(&mut reader)?),
        SqlType::Time { scale } => SqlValue::Time(temporal::read_time(&mut reader, *scale)?),
        SqlType::DateTime2 { scale } => {
            let ticks = temporal::read_time(&mut reader, *scale)?;
            SqlValue::DateTime { days: temporal::read_date(&mut reader)?, ticks }
        }
        SqlType::DateTimeOffset { scale } => {
            let ticks = temporal::read_time(&mut reader, *scale)?;
            let days = temporal::read_date(&mut reader)?;
            SqlValue::DateTimeOffset { days, ticks, offset: i16::from_le_bytes(reader.array()?) }
        }
        SqlType::DateTime => temporal::read_datetime(&mut reader)?,
        SqlType::SmallDateTime => temporal::read_smalldatetime(&mut reader)?,
        SqlType::UniqueIdentifier => SqlValue::Uuid(swapped(reader.array()?)),
        SqlType::Char(_) | SqlType::VarChar(_) | SqlType::Text => SqlValue::Text(charset.decode(reader.take_rest())),
        SqlType::NChar(_) | SqlType::NVarChar(_) | SqlType::NText => SqlValue::Text(utf16(reader.take_rest())?),
        SqlType::Xml => {
            let text = utf16(reader.take_rest())?;
            SqlValue::Text(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
        }
        SqlType::Binary(_) | SqlType::VarBinary(_) | SqlType::Image | SqlType::RowVersion | SqlType::Clr(_) => {
            SqlValue::Bytes(reader.take_rest().to_vec())
        }
        SqlType::SqlVariant => super::variant::read(&mut reader)?,
    };
    if reader.is_empty() {
        return Ok(value);
    }
    Err(Malformed::stream(format!("A value of {kind:?} has {} bytes too many.", reader.remaining())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(kind: &SqlType, value: &SqlValue) -> Vec<u8> {
        let mut out = Vec::new();
        put(kind, value, &mut out).unwrap();
        out
    }

    #[test]
    fn money_has_its_higher_half_first() {
        // 922,337,203,685,477.5807 is the largest amount.
        assert_eq!(bytes(&SqlType::Money, &SqlValue::Money(i64::MAX)), [255, 255, 255, 127, 255, 255, 255, 255]);
        assert_eq!(bytes(&SqlType::Money, &SqlValue::Money(10_000)), [0, 0, 0, 0, 0x10, 0x27, 0, 0]);
        assert_eq!(bytes(&SqlType::SmallMoney, &SqlValue::Money(-1)), [255; 4]);
    }

    #[test]
    fn the_first_groups_of_a_uuid_are_little_endian() {
        let written: [u8; 16] = std::array::from_fn(|i| i as u8);
        let sent = bytes(&SqlType::UniqueIdentifier, &SqlValue::Uuid(written));
        assert_eq!(sent, [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15]);
    }

    #[test]
    fn fixed_lengths_are_filled_up_and_no_length_is_overrun() {
        assert_eq!(bytes(&SqlType::Char(3), &SqlValue::Text("é".into())), b"\xe9  ");
        assert_eq!(bytes(&SqlType::NChar(2), &SqlValue::Text("a".into())), b"a\0 \0");
        assert_eq!(bytes(&SqlType::Binary(3), &SqlValue::Bytes(vec![1])), [1, 0, 0]);
        let too_long = SqlValue::Text("a😀".into());
        assert_eq!(put(&SqlType::NVarChar(Length::Limited(2)), &too_long, &mut Vec::new()), Err(TOO_LONG));
        assert_eq!(put(&SqlType::Char(1), &too_long, &mut Vec::new()), Err(TOO_LONG));
        assert_eq!(put(&SqlType::RowVersion, &SqlValue::Bytes(vec![0; 9]), &mut Vec::new()), Err(TOO_LONG));
        assert!(put(&SqlType::TinyInt, &SqlValue::Int(-1), &mut Vec::new()).is_err());
        assert_eq!(put(&SqlType::Int, &SqlValue::Bit(true), &mut Vec::new()), Err(OTHER_KIND));
    }

    #[test]
    fn a_value_takes_all_of_its_bytes() {
        assert!(read(&SqlType::Int, &[0; 5], Charset::Windows1252).is_err());
        assert!(read(&SqlType::Int, &[0; 3], Charset::Windows1252).is_err());
        assert_eq!(read(&SqlType::TinyInt, &[200], Charset::Windows1252), Ok(SqlValue::Int(200)));
    }
}
