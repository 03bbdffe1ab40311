//! Types of columns, variables and parameters.

/// Length of a variable-length type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Length {
    /// Bytes of `char`, `varchar`, `binary`, `varbinary`; UTF-16 units of `nchar`, `nvarchar`.
    Limited(u16),
    Max,
}

/// A type as T-SQL names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SqlType {
    Bit,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Real,
    Float,
    Decimal {
        precision: u8,
        scale: u8,
    },
    Numeric {
        precision: u8,
        scale: u8,
    },
    SmallMoney,
    Money,
    Date,
    /// Scale: digits of the fraction of a second, 0 to 7; here and in the two below.
    Time {
        scale: u8,
    },
    DateTime2 {
        scale: u8,
    },
    DateTimeOffset {
        scale: u8,
    },
    SmallDateTime,
    DateTime,
    UniqueIdentifier,
    Char(u16),
    VarChar(Length),
    NChar(u16),
    NVarChar(Length),
    Binary(u16),
    VarBinary(Length),
    Text,
    NText,
    Image,
    Xml,
    SqlVariant,
    /// `rowversion`, also called `timestamp`: eight bytes that the server sets.
    RowVersion,
    /// A CLR type (`hierarchyid`, `geometry`, `geography`) by its name; its value is its bytes.
    Clr(&'static str),
}
