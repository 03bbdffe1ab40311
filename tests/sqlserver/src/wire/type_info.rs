//! Types as the server announces them, and how lengths and NULL of their values are written.
//!
//! [MS-TDS] "Data Types" and "TYPE_INFO". A column that cannot be NULL has the fixed-length form of its
//! type, where there is one.

use super::bytes::Write;
use super::collation;
use super::decimal;
use crate::types::{Length, SqlType};

/// Numbers of the types.
pub(crate) mod token {
    pub(crate) const NULL: u8 = 0x1f;
    pub(crate) const INT1: u8 = 0x30;
    pub(crate) const BIT: u8 = 0x32;
    pub(crate) const INT2: u8 = 0x34;
    pub(crate) const INT4: u8 = 0x38;
    pub(crate) const DATETIME4: u8 = 0x3a;
    pub(crate) const FLOAT4: u8 = 0x3b;
    pub(crate) const MONEY: u8 = 0x3c;
    pub(crate) const DATETIME: u8 = 0x3d;
    pub(crate) const FLOAT8: u8 = 0x3e;
    pub(crate) const MONEY4: u8 = 0x7a;
    pub(crate) const INT8: u8 = 0x7f;
    pub(crate) const GUID: u8 = 0x24;
    pub(crate) const INT_N: u8 = 0x26;
    pub(crate) const BIT_N: u8 = 0x68;
    pub(crate) const DECIMAL_N: u8 = 0x6a;
    pub(crate) const NUMERIC_N: u8 = 0x6c;
    pub(crate) const FLOAT_N: u8 = 0x6d;
    pub(crate) const MONEY_N: u8 = 0x6e;
    pub(crate) const DATETIME_N: u8 = 0x6f;
    pub(crate) const DATE: u8 = 0x28;
    pub(crate) const TIME: u8 = 0x29;
    pub(crate) const DATETIME2: u8 = 0x2a;
    pub(crate) const DATETIMEOFFSET: u8 = 0x2b;
    pub(crate) const VARBINARY: u8 = 0xa5;
    pub(crate) const VARCHAR: u8 = 0xa7;
    pub(crate) const BINARY: u8 = 0xad;
    pub(crate) const CHAR: u8 = 0xaf;
    pub(crate) const NVARCHAR: u8 = 0xe7;
    pub(crate) const NCHAR: u8 = 0xef;
    pub(crate) const XML: u8 = 0xf1;
    pub(crate) const UDT: u8 = 0xf0;
    pub(crate) const TABLE: u8 = 0xf3;
    pub(crate) const TEXT: u8 = 0x23;
    pub(crate) const IMAGE: u8 = 0x22;
    pub(crate) const NTEXT: u8 = 0x63;
    pub(crate) const VARIANT: u8 = 0x62;
}

/// Length of a type without a limit.
pub(crate) const MAX: u16 = 0xffff;
const USER_TYPE_ROWVERSION: u32 = 0x50;
/// Bytes of a `text` and an `image`; of an `ntext` it is one less.
const LONG: u32 = 0x7fff_ffff;
/// Bytes of a `sql_variant` with the description of its type.
const VARIANT: u32 = 8009;

/// What stands before a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefix {
    /// Nothing: every value has this many bytes, none is NULL.
    Fixed(usize),
    /// Length in a byte, 0 is NULL.
    Byte,
    /// Length in two bytes, 0xFFFF is NULL.
    Short,
    /// Text pointer, time stamp and length; a text pointer without bytes is NULL.
    TextPointer,
    /// Length in four bytes, 0 is NULL.
    Variant,
    /// Chunks; `announced`: after the length.
    Chunks { announced: bool },
}

/// The fixed-length form of a type: its number, and bytes of its values.
pub(crate) fn fixed(kind: &SqlType) -> Option<(u8, usize)> {
    Some(match kind {
        SqlType::Bit => (token::BIT, 1),
        SqlType::TinyInt => (token::INT1, 1),
        SqlType::SmallInt => (token::INT2, 2),
        SqlType::Int => (token::INT4, 4),
        SqlType::BigInt => (token::INT8, 8),
        SqlType::Real => (token::FLOAT4, 4),
        SqlType::Float => (token::FLOAT8, 8),
        SqlType::SmallMoney => (token::MONEY4, 4),
        SqlType::Money => (token::MONEY, 8),
        SqlType::SmallDateTime => (token::DATETIME4, 4),
        SqlType::DateTime => (token::DATETIME, 8),
        _ => return None,
    })
}

/// `user type` of a column's description.
pub(crate) fn user_type(kind: &SqlType) -> u32 {
    if *kind == SqlType::RowVersion { USER_TYPE_ROWVERSION } else { 0 }
}

/// How values of the type are written.
pub(crate) fn prefix(kind: &SqlType, nullable: bool) -> Prefix {
    if !nullable && let Some((_, bytes)) = fixed(kind) {
        return Prefix::Fixed(bytes);
    }
    match kind {
        SqlType::Char(_)
        | SqlType::NChar(_)
        | SqlType::Binary(_)
        | SqlType::RowVersion
        | SqlType::VarChar(Length::Limited(_))
        | SqlType::NVarChar(Length::Limited(_))
        | SqlType::VarBinary(Length::Limited(_)) => Prefix::Short,
        SqlType::VarChar(Length::Max) | SqlType::NVarChar(Length::Max) | SqlType::VarBinary(Length::Max) => {
            Prefix::Chunks { announced: true }
        }
        SqlType::Xml | SqlType::Clr(_) => Prefix::Chunks { announced: false },
        SqlType::Text | SqlType::NText | SqlType::Image => Prefix::TextPointer,
        SqlType::SqlVariant => Prefix::Variant,
        _ => Prefix::Byte,
    }
}

/// Appends the type as columns and output parameters announce it.
pub(crate) fn put(kind: &SqlType, nullable: bool, out: &mut Vec<u8>) {
    if let Some((number, bytes)) = fixed(kind) {
        if !nullable {
            return out.push(number);
        }
        let family = match number {
            token::BIT => token::BIT_N,
            token::FLOAT4 | token::FLOAT8 => token::FLOAT_N,
            token::MONEY4 | token::MONEY => token::MONEY_N,
            token::DATETIME4 | token::DATETIME => token::DATETIME_N,
            _ => token::INT_N,
        };
        // 1 to 8.
        return out.put(&[family, bytes as u8]);
    }
    match kind {
        SqlType::Decimal { precision, scale } => {
            out.put(&[token::DECIMAL_N, decimal::size(*precision), *precision, *scale]);
        }
        SqlType::Numeric { precision, scale } => {
            out.put(&[token::NUMERIC_N, decimal::size(*precision), *precision, *scale]);
        }
        SqlType::Date => out.push(token::DATE),
        SqlType::Time { scale } => out.put(&[token::TIME, *scale]),
        SqlType::DateTime2 { scale } => out.put(&[token::DATETIME2, *scale]),
        SqlType::DateTimeOffset { scale } => out.put(&[token::DATETIMEOFFSET, *scale]),
        SqlType::UniqueIdentifier => out.put(&[token::GUID, 16]),
        SqlType::Char(bytes) => put_text(token::CHAR, *bytes, out),
        SqlType::VarChar(length) => put_text(token::VARCHAR, limit(*length, 1), out),
        SqlType::NChar(units) => put_text(token::NCHAR, limit(Length::Limited(*units), 2), out),
        SqlType::NVarChar(length) => put_text(token::NVARCHAR, limit(*length, 2), out),
        SqlType::Binary(bytes) => put_binary(token::BINARY, *bytes, out),
        SqlType::VarBinary(length) => put_binary(token::VARBINARY, limit(*length, 1), out),
        SqlType::RowVersion => put_binary(token::BINARY, 8, out),
        SqlType::Text => put_long(token::TEXT, LONG, out),
        SqlType::NText => put_long(token::NTEXT, LONG - 1, out),
        SqlType::Image => {
            out.push(token::IMAGE);
            out.put_u32(LONG);
        }
        // No schema collection.
        SqlType::Xml => out.put(&[token::XML, 0]),
        SqlType::SqlVariant => {
            out.push(token::VARIANT);
            out.put_u32(VARIANT);
        }
        SqlType::Clr(name) => put_clr(name, out),
        // Those of fixed length are above.
        _ => {}
    }
}

/// Bytes of a length in units of so many.
fn limit(length: Length, unit: u16) -> u16 {
    match length {
        Length::Limited(units) => units.saturating_mul(unit),
        Length::Max => MAX,
    }
}

fn put_text(number: u8, bytes: u16, out: &mut Vec<u8>) {
    put_binary(number, bytes, out);
    out.put(&collation::SERVER);
}

fn put_binary(number: u8, bytes: u16, out: &mut Vec<u8>) {
    out.push(number);
    out.put_u16(bytes);
}

fn put_long(number: u8, bytes: u32, out: &mut Vec<u8>) {
    out.push(number);
    out.put_u32(bytes);
    out.put(&collation::SERVER);
}

/// The CLR types that every server has: name, bytes of the largest value, class.
const CLR: [(&str, u16, &str); 3] = [
    ("hierarchyid", 892, "Microsoft.SqlServer.Types.SqlHierarchyId"),
    ("geometry", MAX, "Microsoft.SqlServer.Types.SqlGeometry"),
    ("geography", MAX, "Microsoft.SqlServer.Types.SqlGeography"),
];

fn put_clr(name: &str, out: &mut Vec<u8>) {
    let known = CLR.iter().find(|(known, ..)| *known == name);
    let (_, bytes, class) = known.copied().unwrap_or((name, MAX, ""));
    out.push(token::UDT);
    out.put_u16(bytes);
    // The database is left open: these types are in every one.
    out.put_short_text("");
    out.put_short_text("sys");
    out.put_short_text(name);
    out.put_text(&match class {
        "" => String::new(),
        class => format!(
            "{class}, Microsoft.SqlServer.Types, Version=11.0.0.0, Culture=neutral, PublicKeyToken=89845dcd8080cc91"
        ),
    });
}

/// The CLR type of a name that a client gives.
pub(crate) fn clr(name: &str) -> Option<SqlType> {
    CLR.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name)).map(|(known, ..)| SqlType::Clr(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(kind: &SqlType, nullable: bool) -> Vec<u8> {
        let mut out = Vec::new();
        put(kind, nullable, &mut out);
        out
    }

    #[test]
    fn only_columns_without_null_have_types_of_fixed_length() {
        assert_eq!(bytes(&SqlType::Int, false), [0x38]);
        assert_eq!(bytes(&SqlType::Int, true), [0x26, 4]);
        assert_eq!(bytes(&SqlType::Money, true), [0x6e, 8]);
        assert_eq!(bytes(&SqlType::SmallDateTime, true), [0x6f, 4]);
        assert_eq!(bytes(&SqlType::Real, true), [0x6d, 4]);
        assert_eq!(bytes(&SqlType::Date, false), [0x28]);
        assert_eq!(bytes(&SqlType::UniqueIdentifier, false), [0x24, 16]);
    }

    #[test]
    fn texts_have_a_collation_and_their_length_in_bytes() {
        let collation = [0x09, 0x04, 0xd0, 0x00, 0x34];
        let nvarchar = SqlType::NVarChar(Length::Limited(4000));
        assert_eq!(bytes(&nvarchar, true), [&[0xe7, 0x40, 0x1f][..], &collation].concat());
        assert_eq!(bytes(&SqlType::VarChar(Length::Max), true), [&[0xa7, 255, 255][..], &collation].concat());
        assert_eq!(bytes(&SqlType::NText, true), [&[0x63, 0xfe, 255, 255, 0x7f][..], &collation].concat());
        assert_eq!(bytes(&SqlType::RowVersion, false), [0xad, 8, 0]);
    }

    #[test]
    fn the_precision_of_a_decimal_says_its_size() {
        assert_eq!(bytes(&SqlType::Decimal { precision: 38, scale: 4 }, true), [0x6a, 17, 38, 4]);
        assert_eq!(bytes(&SqlType::Numeric { precision: 18, scale: 0 }, true), [0x6c, 9, 18, 0]);
    }
}
