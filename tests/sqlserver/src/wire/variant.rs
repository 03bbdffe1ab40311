//! Values of `sql_variant`: each with its own type.
//!
//! [MS-TDS] "sql_variant Values": number of the type, count of bytes that describe it, those bytes, the value.

use super::bytes::{Malformed, Reader, Write};
use super::collation::{self, Charset};
use super::scalar::{self, Unfit};
use super::type_info::{fixed, token};
use crate::types::{Length, SqlType};
use crate::value::SqlValue;

/// Appends a value with its type. It is not NULL: a NULL has no type.
pub(crate) fn put(kind: &SqlType, value: &SqlValue, out: &mut Vec<u8>) -> Result<(), Unfit> {
    if let Some((number, _)) = fixed(kind) {
        out.put(&[number, 0]);
        return scalar::put(kind, value, out);
    }
    let text = |number, bytes: u16, out: &mut Vec<u8>| {
        out.put(&[number, 7]);
        out.put(&collation::SERVER);
        out.put_u16(bytes);
    };
    match kind {
        SqlType::UniqueIdentifier => out.put(&[token::GUID, 0]),
        SqlType::Date => out.put(&[token::DATE, 0]),
        SqlType::Time { scale } => out.put(&[token::TIME, 1, *scale]),
        SqlType::DateTime2 { scale } => out.put(&[token::DATETIME2, 1, *scale]),
        SqlType::DateTimeOffset { scale } => out.put(&[token::DATETIMEOFFSET, 1, *scale]),
        SqlType::Decimal { precision, scale } => out.put(&[token::DECIMAL_N, 2, *precision, *scale]),
        SqlType::Numeric { precision, scale } => out.put(&[token::NUMERIC_N, 2, *precision, *scale]),
        SqlType::Char(bytes) => text(token::CHAR, *bytes, out),
        SqlType::VarChar(Length::Limited(bytes)) => text(token::VARCHAR, *bytes, out),
        SqlType::NChar(units) => text(token::NCHAR, units.saturating_mul(2), out),
        SqlType::NVarChar(Length::Limited(units)) => text(token::NVARCHAR, units.saturating_mul(2), out),
        SqlType::Binary(bytes) => {
            out.put(&[token::BINARY, 2]);
            out.put_u16(*bytes);
        }
        SqlType::VarBinary(Length::Limited(bytes)) => {
            out.put(&[token::VARBINARY, 2]);
            out.put_u16(*bytes);
        }
        _ => return Err(Unfit::new("has a type that sql_variant cannot hold")),
    }
    scalar::put(kind, value, out)
}

/// The value with its type that takes everything that is left.
pub(crate) fn read(reader: &mut Reader<'_>) -> Result<SqlValue, Malformed> {
    let (number, count) = (reader.u8()?, reader.u8()?);
    let mut description = Reader::new(reader.take(count.into())?);
    let mut charset = Charset::Windows1252;
    let mut text = |description: &mut Reader<'_>| {
        charset = Charset::of(description.array()?);
        description.u16()
    };
    let kind = match number {
        token::BIT => SqlType::Bit,
        token::INT1 => SqlType::TinyInt,
        token::INT2 => SqlType::SmallInt,
        token::INT4 => SqlType::Int,
        token::INT8 => SqlType::BigInt,
        token::FLOAT4 => SqlType::Real,
        token::FLOAT8 => SqlType::Float,
        token::MONEY4 => SqlType::SmallMoney,
        token::MONEY => SqlType::Money,
        token::DATETIME4 => SqlType::SmallDateTime,
        token::DATETIME => SqlType::DateTime,
        token::GUID => SqlType::UniqueIdentifier,
        token::DATE => SqlType::Date,
        token::TIME => SqlType::Time { scale: scale(&mut description)? },
        token::DATETIME2 => SqlType::DateTime2 { scale: scale(&mut description)? },
        token::DATETIMEOFFSET => SqlType::DateTimeOffset { scale: scale(&mut description)? },
        token::DECIMAL_N => SqlType::Decimal { precision: description.u8()?, scale: description.u8()? },
        token::NUMERIC_N => SqlType::Numeric { precision: description.u8()?, scale: description.u8()? },
        token::CHAR => SqlType::Char(text(&mut description)?),
        token::VARCHAR => SqlType::VarChar(Length::Limited(text(&mut description)?)),
        token::NCHAR => SqlType::NChar(text(&mut description)? / 2),
        token::NVARCHAR => SqlType::NVarChar(Length::Limited(text(&mut description)? / 2)),
        token::BINARY => SqlType::Binary(description.u16()?),
        token::VARBINARY => SqlType::VarBinary(Length::Limited(description.u16()?)),
        other => {
            return Err(Malformed::stream(format!("A sql_variant holds a value of the unknown type 0x{other:02X}.")));
        }
    };
    let value = scalar::read(&kind, reader.take_rest(), charset)?;
    Ok(SqlValue::Variant(Box::new((kind, value))))
}

/// Digits of a second's fraction.
pub(crate) fn scale(reader: &mut Reader<'_>) -> Result<u8, Malformed> {
    match reader.u8()? {
        scale @ 0..=7 => Ok(scale),
        scale => Err(Malformed::stream(format!("A time has a scale of {scale}; the largest is 7."))),
    }
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
    fn a_variant_describes_its_type() {
        assert_eq!(bytes(&SqlType::Int, &SqlValue::Int(7)), [0x38, 0, 7, 0, 0, 0]);
        let decimal = SqlType::Decimal { precision: 5, scale: 2 };
        assert_eq!(
            bytes(&decimal, &SqlValue::Decimal { units: -12345, scale: 2 }),
            [0x6a, 2, 5, 2, 0, 0x39, 0x30, 0, 0]
        );
        let text = SqlType::NVarChar(Length::Limited(10));
        assert_eq!(bytes(&text, &SqlValue::Text("a".into())), [0xe7, 7, 0x09, 0x04, 0xd0, 0x00, 0x34, 20, 0, b'a', 0]);
        assert!(put(&SqlType::Xml, &SqlValue::Text("<a/>".into()), &mut Vec::new()).is_err());
    }

    #[test]
    fn a_variant_without_a_known_type_is_refused() {
        assert!(read(&mut Reader::new(&[0x62, 0, 1])).unwrap_err().text.contains("0x62"));
        assert!(read(&mut Reader::new(&[token::TIME, 1, 8, 0, 0, 0])).is_err());
        assert!(read(&mut Reader::new(&[])).is_err());
    }
}
