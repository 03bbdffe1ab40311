//! Values as they pass between engine and wire.

use crate::types::SqlType;

/// Ticks of 100 ns since midnight.
pub type Ticks = u64;

/// A value; which types it fits is said at each kind.
#[derive(Debug, Clone, PartialEq)]
pub enum SqlValue {
    Null,
    Bit(bool),
    /// `tinyint` to `bigint`.
    Int(i64),
    Real(f32),
    Float(f64),
    /// `decimal` and `numeric`: this many units of 10^-scale.
    Decimal {
        units: i128,
        scale: u8,
    },
    /// `money` and `smallmoney` in ten-thousandths.
    Money(i64),
    /// Days since 0001-01-01.
    Date(i32),
    Time(Ticks),
    /// `datetime2`, and also `datetime` and `smalldatetime`, which are rounded to what they can hold.
    DateTime {
        days: i32,
        ticks: Ticks,
    },
    /// Days and ticks are UTC, the offset is minutes east of it.
    DateTimeOffset {
        days: i32,
        ticks: Ticks,
        offset: i16,
    },
    /// As it is written: the first byte is the first two digits.
    Uuid([u8; 16]),
    /// Every type of characters, and `xml`.
    Text(String),
    /// Every type of bytes: `binary`, `varbinary`, `image`, `rowversion`, CLR types.
    Bytes(Vec<u8>),
    /// `sql_variant`: a value with its own type.
    Variant(Box<(SqlType, SqlValue)>),
}
