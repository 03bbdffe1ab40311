//! What ODBC says of a type: numbers and sizes that the catalog procedures answer with.
//!
//! Follows "sp_columns (Transact-SQL)", "sp_datatype_info" and, for sizes, "Column size" of the ODBC
//! reference. Types of unlimited length have the length of the longest value.

use crate::types::{Length, SqlType};

/// Octets of a value of unlimited length; half of it are characters of two octets.
const LONGEST: i32 = i32::MAX;
const LONGEST_WIDE: i32 = LONGEST / 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OdbcType {
    pub(crate) number: i16,
    /// Characters, octets, or digits.
    pub(crate) precision: i32,
    /// Octets that it takes in ODBC.
    pub(crate) length: i32,
    pub(crate) scale: Option<i16>,
    pub(crate) radix: Option<i16>,
    /// `SQL_DATA_TYPE`: for dates and times the number of the family.
    pub(crate) sql_number: i16,
    pub(crate) sql_datetime: Option<i16>,
    /// Of characters and octets only.
    pub(crate) octets: Option<i32>,
    /// The type's number of old, `SS_DATA_TYPE`, of a column that is not nullable and of one that is.
    pub(crate) old: (u8, u8),
}

impl OdbcType {
    /// `version`: `@ODBCVer`; dates and times had other numbers in version 2.
    pub(crate) fn of(kind: &SqlType, version: i64) -> Self {
        let whole = |number, precision, length, old| Self::number(number, precision, length, 0, old);
        let exact = |number, precision: u8, scale: u8, old| {
            Self::number(number, precision.into(), i32::from(precision) + 2, scale.into(), old)
        };
        let approximate = |number, digits, length, old| Self {
            scale: None,
            radix: Some(2),
            ..Self::number(number, digits, length, 0, old)
        };
        let (date, moment) = if version >= 3 { (91, 93) } else { (9, 11) };
        match kind {
            SqlType::Bit => Self { scale: None, radix: None, ..whole(-7, 1, 1, (50, 50)) },
            SqlType::TinyInt => whole(-6, 3, 1, (48, 38)),
            SqlType::SmallInt => whole(5, 5, 2, (52, 38)),
            SqlType::Int => whole(4, 10, 4, (56, 38)),
            SqlType::BigInt => whole(-5, 19, 8, (63, 108)),
            SqlType::Real => approximate(7, 24, 4, (59, 109)),
            SqlType::Float => approximate(6, 53, 8, (62, 109)),
            SqlType::Decimal { precision, scale } => exact(3, *precision, *scale, (106, 106)),
            SqlType::Numeric { precision, scale } => exact(2, *precision, *scale, (108, 108)),
            SqlType::SmallMoney => exact(3, 10, 4, (122, 110)),
            SqlType::Money => exact(3, 19, 4, (60, 110)),
            SqlType::Date => Self { scale: None, ..Self::temporal(date, 10, 6, 0, Some(1)) },
            SqlType::Time { scale } => Self::temporal(-154, digits(8, *scale), 12, *scale, None),
            SqlType::DateTime2 { scale } => Self::temporal(moment, digits(19, *scale), 16, *scale, Some(3)),
            SqlType::DateTimeOffset { scale } => Self::temporal(-155, digits(26, *scale), 20, *scale, None),
            SqlType::SmallDateTime => Self { old: (58, 111), ..Self::temporal(moment, 16, 16, 0, Some(3)) },
            SqlType::DateTime => Self { old: (61, 111), ..Self::temporal(moment, 23, 16, 3, Some(3)) },
            SqlType::UniqueIdentifier => Self::plain(-11, 36, 16, (37, 37)),
            SqlType::Char(n) => Self::octets(1, (*n).into(), (*n).into(), (47, 39)),
            SqlType::VarChar(Length::Limited(n)) => Self::octets(12, (*n).into(), (*n).into(), (39, 39)),
            SqlType::VarChar(Length::Max) => Self::octets(12, LONGEST, LONGEST, (39, 39)),
            SqlType::NChar(n) => Self::octets(-8, (*n).into(), 2 * i32::from(*n), (47, 39)),
            SqlType::NVarChar(Length::Limited(n)) => Self::octets(-9, (*n).into(), 2 * i32::from(*n), (39, 39)),
            SqlType::NVarChar(Length::Max) => Self::octets(-9, LONGEST_WIDE, LONGEST - 1, (39, 39)),
            SqlType::Binary(n) => Self::octets(-2, (*n).into(), (*n).into(), (45, 37)),
            SqlType::VarBinary(Length::Limited(n)) => Self::octets(-3, (*n).into(), (*n).into(), (37, 37)),
            SqlType::VarBinary(Length::Max) => Self::octets(-3, LONGEST, LONGEST, (37, 37)),
            SqlType::Text => Self::octets(-1, LONGEST, LONGEST, (35, 35)),
            SqlType::NText => Self::octets(-10, LONGEST_WIDE, LONGEST - 1, (35, 35)),
            SqlType::Image => Self::octets(-4, LONGEST, LONGEST, (34, 34)),
            SqlType::Xml => Self::octets(-152, LONGEST_WIDE, LONGEST - 1, (0, 0)),
            SqlType::SqlVariant => Self { scale: Some(0), radix: Some(10), ..Self::plain(-150, 8000, 8000, (39, 39)) },
            SqlType::RowVersion => Self::octets(-2, 8, 8, (45, 37)),
            SqlType::Clr("hierarchyid") => Self::octets(-151, 892, 892, (23, 23)),
            SqlType::Clr(_) => Self::octets(-151, LONGEST, LONGEST, (23, 23)),
        }
    }

    fn plain(number: i16, precision: i32, length: i32, old: (u8, u8)) -> Self {
        Self {
            number,
            precision,
            length,
            scale: None,
            radix: None,
            sql_number: number,
            sql_datetime: None,
            octets: None,
            old,
        }
    }

    fn number(number: i16, precision: i32, length: i32, scale: i16, old: (u8, u8)) -> Self {
        Self { scale: Some(scale), radix: Some(10), ..Self::plain(number, precision, length, old) }
    }

    fn octets(number: i16, precision: i32, length: i32, old: (u8, u8)) -> Self {
        Self { octets: Some(length), ..Self::plain(number, precision, length, old) }
    }

    /// Types that ODBC itself knows (those with `family`) share the number 9.
    fn temporal(number: i16, precision: i32, length: i32, scale: u8, family: Option<i16>) -> Self {
        let sql_number = if family.is_some() { 9 } else { number };
        Self {
            scale: Some(scale.into()),
            sql_number,
            sql_datetime: family,
            ..Self::plain(number, precision, length, (0, 0))
        }
    }
}

/// Characters of a time's text: without a fraction, or with a point and its digits.
fn digits(whole: i32, scale: u8) -> i32 {
    if scale == 0 { whole } else { whole + 1 + i32::from(scale) }
}
