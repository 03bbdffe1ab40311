//! What T-SQL says of a type: its names, its numbers in `sys.types`, its precedence.
//!
//! Follows "Data types (Transact-SQL)", "Data type precedence" and "sys.types".

use crate::engine::fault::SqlError;
use crate::types::{Length, SqlType};

/// How two types of a family become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Integer,
    Decimal,
    Money,
    Float,
    Temporal,
    Text,
    Bytes,
    Uuid,
    Variant,
    Other,
}

/// A row of `sys.types`: system name, `system_type_id`, `user_type_id`, precedence.
pub(crate) const SYSTEM_TYPES: &[(&str, u8, i32)] = &[
    ("image", 34, 34),
    ("text", 35, 35),
    ("uniqueidentifier", 36, 36),
    ("date", 40, 40),
    ("time", 41, 41),
    ("datetime2", 42, 42),
    ("datetimeoffset", 43, 43),
    ("tinyint", 48, 48),
    ("smallint", 52, 52),
    ("int", 56, 56),
    ("smalldatetime", 58, 58),
    ("real", 59, 59),
    ("money", 60, 60),
    ("datetime", 61, 61),
    ("float", 62, 62),
    ("sql_variant", 98, 98),
    ("ntext", 99, 99),
    ("bit", 104, 104),
    ("decimal", 106, 106),
    ("numeric", 108, 108),
    ("smallmoney", 122, 122),
    ("bigint", 127, 127),
    ("hierarchyid", 240, 128),
    ("geometry", 240, 129),
    ("geography", 240, 130),
    ("varbinary", 165, 165),
    ("varchar", 167, 167),
    ("binary", 173, 173),
    ("char", 175, 175),
    ("timestamp", 189, 189),
    ("sysname", 231, 256),
    ("nvarchar", 231, 231),
    ("nchar", 239, 239),
    ("xml", 241, 241),
];

/// `sysname`.
pub(crate) const SYSNAME: SqlType = SqlType::NVarChar(Length::Limited(128));

pub(crate) fn nvarchar(n: usize) -> SqlType {
    SqlType::NVarChar(limited(n, 4000))
}

pub(crate) fn varchar(n: usize) -> SqlType {
    SqlType::VarChar(limited(n, 8000))
}

pub(crate) fn varbinary(n: usize) -> SqlType {
    SqlType::VarBinary(limited(n, 8000))
}

fn limited(n: usize, most: u16) -> Length {
    match u16::try_from(n) {
        Ok(n) if n <= most => Length::Limited(n.max(1)),
        _ => Length::Max,
    }
}

impl SqlType {
    /// Name in `sys.types`.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Bit => "bit",
            Self::TinyInt => "tinyint",
            Self::SmallInt => "smallint",
            Self::Int => "int",
            Self::BigInt => "bigint",
            Self::Real => "real",
            Self::Float => "float",
            Self::Decimal { .. } => "decimal",
            Self::Numeric { .. } => "numeric",
            Self::SmallMoney => "smallmoney",
            Self::Money => "money",
            Self::Date => "date",
            Self::Time { .. } => "time",
            Self::DateTime2 { .. } => "datetime2",
            Self::DateTimeOffset { .. } => "datetimeoffset",
            Self::SmallDateTime => "smalldatetime",
            Self::DateTime => "datetime",
            Self::UniqueIdentifier => "uniqueidentifier",
            Self::Char(_) => "char",
            Self::VarChar(_) => "varchar",
            Self::NChar(_) => "nchar",
            Self::NVarChar(_) => "nvarchar",
            Self::Binary(_) => "binary",
            Self::VarBinary(_) => "varbinary",
            Self::Text => "text",
            Self::NText => "ntext",
            Self::Image => "image",
            Self::Xml => "xml",
            Self::SqlVariant => "sql_variant",
            Self::RowVersion => "timestamp",
            Self::Clr(name) => name,
        }
    }

    /// With length, precision and scale, as T-SQL writes it.
    pub(crate) fn text(&self) -> String {
        let name = self.name();
        match self {
            Self::Decimal { precision, scale } | Self::Numeric { precision, scale } => {
                format!("{name}({precision},{scale})")
            }
            Self::Time { scale } | Self::DateTime2 { scale } | Self::DateTimeOffset { scale } => {
                format!("{name}({scale})")
            }
            Self::Char(n) | Self::NChar(n) | Self::Binary(n) => format!("{name}({n})"),
            Self::VarChar(n) | Self::NVarChar(n) | Self::VarBinary(n) => match n {
                Length::Limited(n) => format!("{name}({n})"),
                Length::Max => format!("{name}(max)"),
            },
            _ => name.to_owned(),
        }
    }

    /// From its name and the numbers in parentheses; `max` is `None`. A name that is no system type: `None`.
    /// Errors: sizes that the type does not take (2716, 1001, 2750, 131).
    pub(crate) fn parse(name: &str, sizes: &[Option<u32>]) -> Result<Option<Self>, SqlError> {
        let lower = name.to_lowercase();
        let lower = lower.as_str();
        let size = |default: u16, most: u16| -> Result<u16, SqlError> {
            match sizes.first() {
                None => Ok(default),
                Some(Some(n)) if *n >= 1 && *n <= u32::from(most) => Ok(*n as u16),
                Some(Some(0)) => Err(SqlError::new(1001, "Line 1: Length or precision specification 0 is invalid.").class(15)),
                Some(Some(n)) => Err(SqlError::new(
                    131,
                    format!("The size ({n}) given to the type '{lower}' exceeds the maximum allowed for any data type ({most})."),
                )
                .class(15)),
                Some(None) => Err(SqlError::near("max")),
            }
        };
        let length = |most: u16| -> Result<Length, SqlError> {
            match sizes.first() {
                Some(None) => Ok(Length::Max),
                _ => size(1, most).map(Length::Limited),
            }
        };
        let fraction = || -> Result<u8, SqlError> {
            match sizes.first() {
                None => Ok(7),
                Some(Some(n)) if *n <= 7 => Ok(*n as u8),
                _ => Err(SqlError::new(1002, "Line 1: Specified scale is invalid.").class(15)),
            }
        };
        let decimal = || -> Result<(u8, u8), SqlError> {
            let precision = sizes.first().copied().flatten().unwrap_or(18);
            let scale = sizes.get(1).copied().flatten().unwrap_or(0);
            if precision == 0 || precision > 38 {
                return Err(SqlError::new(
                    2750,
                    format!(
                        "Column or parameter #1: Specified column precision {precision} is greater than the maximum precision of 38."
                    ),
                ));
            }
            if scale > precision {
                return Err(SqlError::new(192, "The scale must be less than or equal to the precision.").class(15));
            }
            Ok((precision as u8, scale as u8))
        };
        Ok(Some(match lower {
            "bit" => Self::Bit,
            "tinyint" => Self::TinyInt,
            "smallint" => Self::SmallInt,
            "int" | "integer" => Self::Int,
            "bigint" => Self::BigInt,
            "real" => Self::Real,
            "float" | "double precision" => match sizes.first() {
                Some(Some(n)) if *n <= 24 => Self::Real,
                _ => Self::Float,
            },
            "decimal" | "dec" => decimal().map(|(precision, scale)| Self::Decimal { precision, scale })?,
            "numeric" => decimal().map(|(precision, scale)| Self::Numeric { precision, scale })?,
            "smallmoney" => Self::SmallMoney,
            "money" => Self::Money,
            "date" => Self::Date,
            "time" => Self::Time { scale: fraction()? },
            "datetime2" => Self::DateTime2 { scale: fraction()? },
            "datetimeoffset" => Self::DateTimeOffset { scale: fraction()? },
            "smalldatetime" => Self::SmallDateTime,
            "datetime" => Self::DateTime,
            "uniqueidentifier" => Self::UniqueIdentifier,
            "char" | "character" => Self::Char(size(1, 8000)?),
            "varchar" | "char varying" | "character varying" => Self::VarChar(length(8000)?),
            "nchar" | "national character" | "national char" => Self::NChar(size(1, 4000)?),
            "nvarchar" | "national char varying" | "national character varying" => Self::NVarChar(length(4000)?),
            "binary" => Self::Binary(size(1, 8000)?),
            "varbinary" | "binary varying" => Self::VarBinary(length(8000)?),
            "text" => Self::Text,
            "ntext" => Self::NText,
            "image" => Self::Image,
            "xml" => Self::Xml,
            "sql_variant" => Self::SqlVariant,
            "rowversion" | "timestamp" => Self::RowVersion,
            "sysname" => SYSNAME,
            "hierarchyid" => Self::Clr("hierarchyid"),
            "geometry" => Self::Clr("geometry"),
            "geography" => Self::Clr("geography"),
            _ => return Ok(None),
        }))
    }

    pub(crate) fn family(&self) -> Family {
        match self {
            Self::Bit | Self::TinyInt | Self::SmallInt | Self::Int | Self::BigInt => Family::Integer,
            Self::Decimal { .. } | Self::Numeric { .. } => Family::Decimal,
            Self::Money | Self::SmallMoney => Family::Money,
            Self::Real | Self::Float => Family::Float,
            Self::Date
            | Self::Time { .. }
            | Self::DateTime2 { .. }
            | Self::DateTimeOffset { .. }
            | Self::SmallDateTime
            | Self::DateTime => Family::Temporal,
            Self::Char(_) | Self::VarChar(_) | Self::NChar(_) | Self::NVarChar(_) | Self::Text | Self::NText => {
                Family::Text
            }
            Self::Binary(_) | Self::VarBinary(_) | Self::Image | Self::RowVersion => Family::Bytes,
            Self::UniqueIdentifier => Family::Uuid,
            Self::SqlVariant => Family::Variant,
            Self::Xml | Self::Clr(_) => Family::Other,
        }
    }

    /// Higher wins; "Data type precedence (Transact-SQL)" counts from the other end.
    pub(crate) fn precedence(&self) -> u8 {
        match self {
            Self::Clr(_) => 30,
            Self::SqlVariant => 29,
            Self::Xml => 28,
            Self::DateTimeOffset { .. } => 27,
            Self::DateTime2 { .. } => 26,
            Self::DateTime => 25,
            Self::SmallDateTime => 24,
            Self::Date => 23,
            Self::Time { .. } => 22,
            Self::Float => 21,
            Self::Real => 20,
            Self::Decimal { .. } => 19,
            Self::Numeric { .. } => 18,
            Self::Money => 17,
            Self::SmallMoney => 16,
            Self::BigInt => 15,
            Self::Int => 14,
            Self::SmallInt => 13,
            Self::TinyInt => 12,
            Self::Bit => 11,
            Self::NText => 10,
            Self::Text => 9,
            Self::Image => 8,
            Self::RowVersion => 7,
            Self::UniqueIdentifier => 6,
            Self::NVarChar(_) => 5,
            Self::NChar(_) => 4,
            Self::VarChar(_) => 3,
            Self::Char(_) => 2,
            Self::VarBinary(_) => 1,
            Self::Binary(_) => 0,
        }
    }

    /// The type of `UNION`, `CASE`, `COALESCE` and comparisons over both.
    pub(crate) fn common(&self, other: &Self) -> Self {
        let (high, low) = if self.precedence() >= other.precedence() { (self, other) } else { (other, self) };
        match (high.family(), low.family()) {
            (Family::Decimal, Family::Decimal | Family::Integer | Family::Money) => {
                let (p1, s1) = high.digits();
                let (p2, s2) = low.digits();
                let scale = s1.max(s2);
                let precision = ((p1 - s1).max(p2 - s2) + scale).min(38);
                high.with_digits(precision, scale)
            }
            (Family::Text, Family::Text) | (Family::Bytes, Family::Bytes) => high.longer(low),
            (Family::Temporal, Family::Temporal) => match (high, low) {
                (Self::DateTimeOffset { scale }, low) => Self::DateTimeOffset { scale: (*scale).max(low.fraction()) },
                (Self::DateTime2 { scale }, low) => Self::DateTime2 { scale: (*scale).max(low.fraction()) },
                (Self::Time { scale }, low) => Self::Time { scale: (*scale).max(low.fraction()) },
                _ => high.clone(),
            },
            _ => high.clone(),
        }
    }

    /// Digits of a second's fraction that the type holds.
    pub(crate) fn fraction(&self) -> u8 {
        match self {
            Self::Time { scale } | Self::DateTime2 { scale } | Self::DateTimeOffset { scale } => *scale,
            Self::DateTime => 3,
            _ => 0,
        }
    }

    fn longer(&self, other: &Self) -> Self {
        let longest = match (self.length(), other.length()) {
            (Some(a), Some(b)) => Some(a.max(b)),
            _ => None,
        };
        match self {
            Self::NVarChar(_) => longest.map_or(Self::NVarChar(Length::Max), |n| nvarchar(n as usize)),
            Self::VarChar(_) => longest.map_or(Self::VarChar(Length::Max), |n| varchar(n as usize)),
            Self::VarBinary(_) => longest.map_or(Self::VarBinary(Length::Max), |n| varbinary(n as usize)),
            Self::NChar(n) => match other {
                Self::NChar(m) => Self::NChar(*n.max(m)),
                _ => longest.map_or(Self::NVarChar(Length::Max), |n| nvarchar(n as usize)),
            },
            Self::Char(n) => match other {
                Self::Char(m) => Self::Char(*n.max(m)),
                _ => self.clone(),
            },
            Self::Binary(n) => match other {
                Self::Binary(m) => Self::Binary(*n.max(m)),
                _ => self.clone(),
            },
            _ => self.clone(),
        }
    }

    /// Characters or bytes; `None`: no end, or a type without length.
    pub(crate) fn length(&self) -> Option<u16> {
        match self {
            Self::Char(n) | Self::NChar(n) | Self::Binary(n) => Some(*n),
            Self::VarChar(Length::Limited(n))
            | Self::NVarChar(Length::Limited(n))
            | Self::VarBinary(Length::Limited(n)) => Some(*n),
            Self::RowVersion => Some(8),
            _ => None,
        }
    }

    /// Precision and scale as a decimal that holds every value.
    pub(crate) fn digits(&self) -> (u8, u8) {
        match self {
            Self::Decimal { precision, scale } | Self::Numeric { precision, scale } => (*precision, *scale),
            Self::Bit => (1, 0),
            Self::TinyInt => (3, 0),
            Self::SmallInt => (5, 0),
            Self::Int => (10, 0),
            Self::BigInt => (19, 0),
            Self::SmallMoney => (10, 4),
            Self::Money => (19, 4),
            _ => (38, 0),
        }
    }

    fn with_digits(&self, precision: u8, scale: u8) -> Self {
        match self {
            Self::Decimal { .. } => Self::Decimal { precision, scale },
            _ => Self::Numeric { precision, scale },
        }
    }

    /// `varchar(max)`, `nvarchar(max)`, `varbinary(max)` and `xml`.
    pub(crate) fn is_max(&self) -> bool {
        matches!(
            self,
            Self::VarChar(Length::Max) | Self::NVarChar(Length::Max) | Self::VarBinary(Length::Max) | Self::Xml
        )
    }

    /// `text`, `ntext`, `image`.
    pub(crate) fn is_lob(&self) -> bool {
        matches!(self, Self::Text | Self::NText | Self::Image)
    }

    pub(crate) fn is_unicode(&self) -> bool {
        matches!(self, Self::NChar(_) | Self::NVarChar(_) | Self::NText | Self::Xml)
    }

    pub(crate) fn is_text(&self) -> bool {
        self.family() == Family::Text
    }

    /// `system_type_id` and `user_type_id` of `sys.types`.
    pub(crate) fn ids(&self) -> (u8, i32) {
        let name = self.name();
        SYSTEM_TYPES.iter().find(|t| t.0 == name).map_or((0, 0), |t| (t.1, t.2))
    }

    /// `max_length`, `precision` and `scale` of `sys.columns`.
    pub(crate) fn sizes(&self) -> (i16, u8, u8) {
        match self {
            Self::Bit => (1, 1, 0),
            Self::TinyInt => (1, 3, 0),
            Self::SmallInt => (2, 5, 0),
            Self::Int => (4, 10, 0),
            Self::BigInt => (8, 19, 0),
            Self::Real => (4, 24, 0),
            Self::Float => (8, 53, 0),
            Self::Decimal { precision, scale } | Self::Numeric { precision, scale } => {
                let bytes = match precision {
                    0..=9 => 5,
                    10..=19 => 9,
                    20..=28 => 13,
                    _ => 17,
                };
                (bytes, *precision, *scale)
            }
            Self::SmallMoney => (4, 10, 4),
            Self::Money => (8, 19, 4),
            Self::Date => (3, 10, 0),
            Self::Time { scale } => (3 + fraction_bytes(*scale), if *scale == 0 { 8 } else { 9 + scale }, *scale),
            Self::DateTime2 { scale } => {
                (6 + fraction_bytes(*scale), if *scale == 0 { 19 } else { 20 + scale }, *scale)
            }
            Self::DateTimeOffset { scale } => {
                (8 + fraction_bytes(*scale), if *scale == 0 { 26 } else { 27 + scale }, *scale)
            }
            Self::SmallDateTime => (4, 16, 0),
            Self::DateTime => (8, 23, 3),
            Self::UniqueIdentifier => (16, 0, 0),
            Self::Char(n) | Self::Binary(n) => (*n as i16, 0, 0),
            Self::NChar(n) => ((*n * 2) as i16, 0, 0),
            Self::VarChar(Length::Limited(n)) | Self::VarBinary(Length::Limited(n)) => (*n as i16, 0, 0),
            Self::NVarChar(Length::Limited(n)) => ((*n * 2) as i16, 0, 0),
            Self::VarChar(Length::Max) | Self::NVarChar(Length::Max) | Self::VarBinary(Length::Max) | Self::Xml => {
                (-1, 0, 0)
            }
            Self::Text | Self::NText | Self::Image => (16, 0, 0),
            Self::SqlVariant => (8016, 0, 0),
            Self::RowVersion => (8, 0, 0),
            Self::Clr("hierarchyid") => (892, 0, 0),
            Self::Clr(_) => (-1, 0, 0),
        }
    }
}

/// Bytes of the fraction beyond those of scale 0 to 2.
fn fraction_bytes(scale: u8) -> i16 {
    match scale {
        0..=2 => 0,
        3..=4 => 1,
        _ => 2,
    }
}
