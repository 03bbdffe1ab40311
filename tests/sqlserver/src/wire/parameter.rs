//! Types and values of a procedure call's parameters.
//!
//! [MS-TDS] "RPC Request", "TYPE_INFO" and "TYPE_VARBYTE".

use super::bytes::{Malformed, Reader};
use super::collation::Charset;
use super::type_info::{self, MAX, fixed, token};
use super::variant::scale;
use super::{plp, scalar};
use crate::types::{Length, SqlType};
use crate::value::SqlValue;

/// What stands before a parameter's value.
enum Before {
    /// Nothing; so many bytes follow.
    Nothing(usize),
    Byte,
    Short,
    /// Length in four bytes, 0xFFFFFFFF is NULL: a text has no pointer here.
    Long,
    /// Length in four bytes, 0 is NULL.
    Variant,
    Chunks,
    /// There is no value: the type is that of NULL.
    Null,
}

/// Reads a type and a value of it.
pub(crate) fn read(reader: &mut Reader<'_>) -> Result<(SqlType, SqlValue), Malformed> {
    let mut charset = Charset::Windows1252;
    let number = reader.u8()?;
    let (kind, before) = match number {
        token::NULL => (SqlType::Int, Before::Null),
        token::BIT => whole(SqlType::Bit),
        token::INT1 => whole(SqlType::TinyInt),
        token::INT2 => whole(SqlType::SmallInt),
        token::INT4 => whole(SqlType::Int),
        token::INT8 => whole(SqlType::BigInt),
        token::FLOAT4 => whole(SqlType::Real),
        token::FLOAT8 => whole(SqlType::Float),
        token::MONEY4 => whole(SqlType::SmallMoney),
        token::MONEY => whole(SqlType::Money),
        token::DATETIME4 => whole(SqlType::SmallDateTime),
        token::DATETIME => whole(SqlType::DateTime),
        token::BIT_N => (of_length(number, reader, &[(1, SqlType::Bit)])?, Before::Byte),
        token::INT_N => {
            let kinds = [(1, SqlType::TinyInt), (2, SqlType::SmallInt), (4, SqlType::Int), (8, SqlType::BigInt)];
            (of_length(number, reader, &kinds)?, Before::Byte)
        }
        token::FLOAT_N => (of_length(number, reader, &[(4, SqlType::Real), (8, SqlType::Float)])?, Before::Byte),
        token::MONEY_N => (of_length(number, reader, &[(4, SqlType::SmallMoney), (8, SqlType::Money)])?, Before::Byte),
        token::DATETIME_N => {
            (of_length(number, reader, &[(4, SqlType::SmallDateTime), (8, SqlType::DateTime)])?, Before::Byte)
        }
        token::GUID => (of_length(number, reader, &[(16, SqlType::UniqueIdentifier)])?, Before::Byte),
        token::DECIMAL_N => {
            let (precision, scale) = precision_and_scale(reader)?;
            (SqlType::Decimal { precision, scale }, Before::Byte)
        }
        token::NUMERIC_N => {
            let (precision, scale) = precision_and_scale(reader)?;
            (SqlType::Numeric { precision, scale }, Before::Byte)
        }
        token::DATE => (SqlType::Date, Before::Byte),
        token::TIME => (SqlType::Time { scale: scale(reader)? }, Before::Byte),
        token::DATETIME2 => (SqlType::DateTime2 { scale: scale(reader)? }, Before::Byte),
        token::DATETIMEOFFSET => (SqlType::DateTimeOffset { scale: scale(reader)? }, Before::Byte),
        token::CHAR => {
            let bytes = reader.u16()?;
            charset = Charset::of(reader.array()?);
            (SqlType::Char(bytes), Before::Short)
        }
        token::VARCHAR => {
            let bytes = reader.u16()?;
            charset = Charset::of(reader.array()?);
            let (length, before) = limited(bytes, 1);
            (SqlType::VarChar(length), before)
        }
        token::NCHAR => {
            let bytes = reader.u16()?;
            reader.take(5)?;
            (SqlType::NChar(bytes / 2), Before::Short)
        }
        token::NVARCHAR => {
            let bytes = reader.u16()?;
            reader.take(5)?;
            let (length, before) = limited(bytes, 2);
            (SqlType::NVarChar(length), before)
        }
        token::BINARY => (SqlType::Binary(reader.u16()?), Before::Short),
        token::VARBINARY => {
            let (length, before) = limited(reader.u16()?, 1);
            (SqlType::VarBinary(length), before)
        }
        token::TEXT => {
            reader.take(4)?;
            charset = Charset::of(reader.array()?);
            (SqlType::Text, Before::Long)
        }
        token::NTEXT => {
            reader.take(9)?;
            (SqlType::NText, Before::Long)
        }
        token::IMAGE => {
            reader.take(4)?;
            (SqlType::Image, Before::Long)
        }
        token::XML => {
            // The schema collection that the client may name is no matter of the value's.
            if reader.u8()? != 0 {
                reader.short_text()?;
                reader.short_text()?;
                reader.text()?;
            }
            (SqlType::Xml, Before::Chunks)
        }
        token::UDT => {
            reader.short_text()?;
            reader.short_text()?;
            let name = reader.short_text()?;
            let kind = type_info::clr(&name)
                .ok_or_else(|| Malformed { number: 243, text: format!("Type {name} is not a defined system type.") })?;
            (kind, Before::Chunks)
        }
        token::VARIANT => {
            reader.take(4)?;
            (SqlType::SqlVariant, Before::Variant)
        }
        token::TABLE => {
            let text = "Table-valued parameters are not supported by this server: send the rows one by one.";
            return Err(Malformed { number: 8009, text: text.into() });
        }
        other => return Err(Malformed { number: 8009, text: format!("Data type 0x{other:02X} is unknown.") }),
    };
    let value = match value_bytes(reader, before)? {
        Some(bytes) => scalar::read(&kind, &bytes, charset)?,
        None => SqlValue::Null,
    };
    Ok((kind, value))
}

fn whole(kind: SqlType) -> (SqlType, Before) {
    let bytes = fixed(&kind).map_or(0, |(_, bytes)| bytes);
    (kind, Before::Nothing(bytes))
}

/// A type of a family, by the length that comes next.
fn of_length(family: u8, reader: &mut Reader<'_>, kinds: &[(u8, SqlType)]) -> Result<SqlType, Malformed> {
    let length = reader.u8()?;
    let kind = kinds.iter().find(|(of, _)| *of == length).map(|(_, kind)| kind.clone());
    kind.ok_or_else(|| Malformed {
        number: 8016,
        text: format!("Data type 0x{family:02X} has an invalid data length or metadata length, {length}."),
    })
}

fn precision_and_scale(reader: &mut Reader<'_>) -> Result<(u8, u8), Malformed> {
    let [_, precision, scale] = reader.array()?;
    if !(1..=38).contains(&precision) || scale > precision {
        let text = format!("The supplied numeric type has the invalid precision {precision} and scale {scale}.");
        return Err(Malformed { number: 8023, text });
    }
    Ok((precision, scale))
}

/// A length in units of so many bytes.
fn limited(bytes: u16, unit: u16) -> (Length, Before) {
    match bytes {
        MAX => (Length::Max, Before::Chunks),
        // An empty type, as some clients announce for empty values, holds one unit.
        bytes => (Length::Limited((bytes / unit).max(1)), Before::Short),
    }
}

/// `None`: NULL.
fn value_bytes(reader: &mut Reader<'_>, before: Before) -> Result<Option<Vec<u8>>, Malformed> {
    let count = match before {
        Before::Null => None,
        Before::Nothing(bytes) => Some(bytes),
        Before::Byte => Some(usize::from(reader.u8()?)).filter(|n| *n != 0),
        Before::Short => Some(reader.u16()?).filter(|n| *n != u16::MAX).map(usize::from),
        Before::Long => Some(reader.u32()?).filter(|n| *n != u32::MAX).map(|n| n as usize),
        Before::Variant => Some(reader.u32()?).filter(|n| *n != 0).map(|n| n as usize),
        Before::Chunks => return plp::read(reader),
    };
    count.map(|count| reader.take(count).map(<[u8]>::to_vec)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::type_info::{Prefix, prefix};
    use crate::wire::value;

    fn values() -> Vec<(SqlType, SqlValue)> {
        let text = |t: &str| SqlValue::Text(t.into());
        let bytes = |b: &[u8]| SqlValue::Bytes(b.to_vec());
        let (days, ticks) = (733_100, 452_961_230_000);
        vec![
            (SqlType::Bit, SqlValue::Bit(true)),
            (SqlType::TinyInt, SqlValue::Int(255)),
            (SqlType::SmallInt, SqlValue::Int(-32768)),
            (SqlType::Int, SqlValue::Int(i32::MIN.into())),
            (SqlType::BigInt, SqlValue::Int(i64::MAX)),
            (SqlType::Real, SqlValue::Real(-1.5)),
            (SqlType::Float, SqlValue::Float(1e300)),
            (SqlType::Decimal { precision: 9, scale: 2 }, SqlValue::Decimal { units: -999_999_999, scale: 2 }),
            (
                SqlType::Numeric { precision: 38, scale: 38 },
                SqlValue::Decimal { units: 10_i128.pow(38) - 1, scale: 38 },
            ),
            (SqlType::SmallMoney, SqlValue::Money(-2_147_483_648)),
            (SqlType::Money, SqlValue::Money(i64::MIN)),
            (SqlType::Date, SqlValue::Date(days)),
            (SqlType::Time { scale: 7 }, SqlValue::Time(ticks)),
            (SqlType::DateTime2 { scale: 3 }, SqlValue::DateTime { days, ticks }),
            (SqlType::DateTimeOffset { scale: 5 }, SqlValue::DateTimeOffset { days, ticks, offset: -330 }),
            (SqlType::SmallDateTime, SqlValue::DateTime { days, ticks: 600_000_000 }),
            (SqlType::DateTime, SqlValue::DateTime { days, ticks: 10_000_000 }),
            (SqlType::UniqueIdentifier, SqlValue::Uuid([9; 16])),
            (SqlType::Char(3), text("a€ ")),
            (SqlType::VarChar(Length::Limited(8000)), text("")),
            (SqlType::VarChar(Length::Max), text(&"é".repeat(20_000))),
            (SqlType::NChar(2), text("😀")),
            (SqlType::NVarChar(Length::Limited(4000)), text("grün 😀")),
            (SqlType::NVarChar(Length::Max), text(&"ж".repeat(20_000))),
            (SqlType::Binary(2), bytes(&[1, 2])),
            (SqlType::VarBinary(Length::Limited(10)), bytes(&[])),
            (SqlType::VarBinary(Length::Max), bytes(&[3; 20_000])),
            (SqlType::Xml, text("<a/>")),
            (
                SqlType::SqlVariant,
                SqlValue::Variant(Box::new((SqlType::DateTime2 { scale: 0 }, SqlValue::DateTime { days, ticks: 0 }))),
            ),
            (SqlType::SqlVariant, SqlValue::Variant(Box::new((SqlType::VarChar(Length::Limited(9)), text("é"))))),
        ]
    }

    /// What a client sends; only types whose description is the same in both directions.
    fn sent(kind: &SqlType, nullable: bool, given: &SqlValue) -> Vec<u8> {
        let mut out = Vec::new();
        type_info::put(kind, nullable, &mut out);
        value::put(kind, prefix(kind, nullable), given, &mut out).unwrap();
        out
    }

    #[test]
    fn every_type_that_is_sent_is_read_back() {
        for (kind, given) in values() {
            for nullable in [true, false] {
                let sent = sent(&kind, nullable, &given);
                let mut reader = Reader::new(&sent);
                assert_eq!(read(&mut reader), Ok((kind.clone(), given.clone())));
                assert!(reader.is_empty(), "{kind:?}");
            }
            let null = sent(&kind, true, &SqlValue::Null);
            assert_eq!(read(&mut Reader::new(&null)), Ok((kind, SqlValue::Null)));
        }
    }

    #[test]
    fn no_cut_of_a_parameter_is_taken_for_one() {
        for (kind, given) in values() {
            let sent = sent(&kind, true, &given);
            for end in (0..sent.len()).step_by(1 + sent.len() / 200) {
                assert!(read(&mut Reader::new(&sent[..end])).is_err(), "{kind:?} cut after {end} bytes");
            }
        }
    }

    #[test]
    fn long_texts_and_clr_types_have_forms_of_their_own() {
        let text = [&[0x23, 0, 0, 0, 0][..], &[9, 4, 0xd0, 0, 0x34], &[1, 0, 0, 0, 0xe9]].concat();
        assert_eq!(read(&mut Reader::new(&text)), Ok((SqlType::Text, SqlValue::Text("é".into()))));
        let null = [&[0x22, 0, 0, 0, 0][..], &[255; 4]].concat();
        assert_eq!(read(&mut Reader::new(&null)), Ok((SqlType::Image, SqlValue::Null)));
        let mut clr = vec![0xf0, 0, 0, 8];
        clr.extend("geometry".encode_utf16().flat_map(u16::to_le_bytes));
        clr.extend([254, 255, 255, 255, 255, 255, 255, 255, 1, 0, 0, 0, 5, 0, 0, 0, 0]);
        assert_eq!(read(&mut Reader::new(&clr)), Ok((SqlType::Clr("geometry"), SqlValue::Bytes(vec![5]))));
        assert_eq!(prefix(&SqlType::Clr("geometry"), true), Prefix::Chunks { announced: false });
    }

    #[test]
    fn what_the_server_does_not_take_is_named() {
        for (bytes, number, said) in [
            (&[0xf3_u8][..], 8009, "Table-valued parameters"),
            (&[0x01], 8009, "0x01 is unknown"),
            (&[0x26, 3], 8016, "metadata length, 3"),
            (&[0x6a, 17, 39, 0], 8023, "precision 39"),
            (&[0x29, 9], 4002, "scale of 9"),
        ] {
            let error = read(&mut Reader::new(bytes)).unwrap_err();
            assert_eq!(error.number, number);
            assert!(error.text.contains(said), "{error}");
        }
    }
}
