//! A column of a table, as a database describes it.
//!
//! Types are told three times: by the number that JDBC has for them ([`jdbc`]), by the database's own number
//! where it has one, and by name. Which values a column can hold is decided by the connector.

use std::sync::Arc;

/// Numbers of types, as `java.sql.Types` has them. Records about structures carry them.
pub mod jdbc {
    pub const LONGNVARCHAR: i32 = -16;
    pub const NCHAR: i32 = -15;
    pub const NVARCHAR: i32 = -9;
    pub const BIT: i32 = -7;
    pub const TINYINT: i32 = -6;
    pub const BIGINT: i32 = -5;
    pub const LONGVARBINARY: i32 = -4;
    pub const VARBINARY: i32 = -3;
    pub const BINARY: i32 = -2;
    pub const LONGVARCHAR: i32 = -1;
    pub const CHAR: i32 = 1;
    pub const NUMERIC: i32 = 2;
    pub const DECIMAL: i32 = 3;
    pub const INTEGER: i32 = 4;
    pub const SMALLINT: i32 = 5;
    pub const FLOAT: i32 = 6;
    pub const REAL: i32 = 7;
    pub const DOUBLE: i32 = 8;
    pub const VARCHAR: i32 = 12;
    pub const BOOLEAN: i32 = 16;
    pub const DATALINK: i32 = 70;
    pub const DATE: i32 = 91;
    pub const TIME: i32 = 92;
    pub const TIMESTAMP: i32 = 93;
    pub const OTHER: i32 = 1111;
    pub const BLOB: i32 = 2004;
    pub const CLOB: i32 = 2005;
    pub const SQLXML: i32 = 2009;
    pub const NCLOB: i32 = 2011;
    pub const TIMESTAMP_WITH_TIMEZONE: i32 = 2014;
}

/// What a column holds if a row does not say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ColumnDefault {
    #[default]
    None,
    /// Null, and explicitly so.
    Null,
    /// The text of the definition, as the database stores it.
    Expression(Arc<str>),
}

impl ColumnDefault {
    pub fn expression(&self) -> Option<&Arc<str>> {
        match self {
            Self::Expression(text) => Some(text),
            Self::None | Self::Null => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: Arc<str>,
    /// See [`jdbc`].
    pub jdbc_type: i32,
    /// The database's own number of the type.
    pub native_type: Option<i32>,
    pub type_name: Arc<str>,
    pub type_expression: Option<Arc<str>>,
    pub charset_name: Option<Arc<str>>,
    /// Characters, bytes or digits, depending on the type.
    pub length: Option<i32>,
    /// Digits behind the point.
    pub scale: Option<i32>,
    /// From one.
    pub position: i32,
    /// Whether it may be null.
    pub optional: bool,
    pub auto_incremented: bool,
    pub generated: bool,
    pub comment: Option<Arc<str>>,
    pub default: ColumnDefault,
    /// Texts of an enumeration.
    pub enum_values: Option<Vec<String>>,
}

impl Column {
    /// A column that must not be null, and of which nothing else is known.
    pub fn new(name: &str, position: i32, jdbc_type: i32, type_name: &str) -> Self {
        Self {
            name: name.into(),
            jdbc_type,
            native_type: None,
            type_name: type_name.into(),
            type_expression: Some(type_name.into()),
            charset_name: None,
            length: None,
            scale: None,
            position,
            optional: false,
            auto_incremented: false,
            generated: false,
            comment: None,
            default: ColumnDefault::None,
            enum_values: None,
        }
    }
    pub fn nullable(mut self) -> Self {
        self.optional = true;
        self
    }
    pub fn sized(mut self, length: i32) -> Self {
        self.length = Some(length);
        self
    }
    pub fn scaled(mut self, scale: i32) -> Self {
        self.scale = Some(scale);
        self
    }

    /// Whether it holds characters: only such columns are masked.
    pub fn is_text(&self) -> bool {
        matches!(
            self.jdbc_type,
            jdbc::CHAR
                | jdbc::VARCHAR
                | jdbc::LONGVARCHAR
                | jdbc::CLOB
                | jdbc::NCHAR
                | jdbc::NVARCHAR
                | jdbc::LONGNVARCHAR
                | jdbc::NCLOB
                | jdbc::DATALINK
        )
    }
}
