//! SQL Server's types: how their columns are described, what messages have for them, and values from the wire.
//!
//! A column is described as Microsoft's JDBC driver does it, because records about structures carry its numbers
//! and lengths. `sql_variant` and `vector` have nothing that stands for them: such columns are left out.

use bytes::Bytes;
use thalweg_core::envelope::SourceTime;
use thalweg_core::record::Text;
use thalweg_core::relational::cell::{Cell, Decimal};
use thalweg_core::relational::column::{Column, ColumnDefault, jdbc};
use thalweg_core::relational::moment::{Date, TimeOfDay, Timestamp, ZonedTimestamp};
use thalweg_core::relational::schema_builder::ColumnTypes;
use thalweg_core::relational::value_type::{TextKind, ValueType};
use tiberius::ColumnData;

use crate::literal::Defaults;

/// `microsoft.sql.Types`: types that JDBC has no number for.
const DATETIMEOFFSET: i32 = -155;
const SQL_VARIANT: i32 = -156;

/// What a large value can have: bytes, or characters of two bytes.
const MAX_BYTES: i32 = 2_147_483_647;
const MAX_UNITS: i32 = 1_073_741_823;

/// A column as the catalogue has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    pub name: String,
    /// `column_id`: rises, with gaps.
    pub id: i32,
    /// The type's name as the column has it: an alias type's own.
    pub declared: String,
    /// The system's type.
    pub base: String,
    /// Bytes; -1: no limit.
    pub max_length: i32,
    pub precision: u8,
    pub scale: u8,
    pub nullable: bool,
    pub identity: bool,
    pub computed: bool,
    /// Text of the default's definition.
    pub default: Option<String>,
}

impl Described {
    /// The column at this position of its table, from one.
    pub fn column(&self, position: i32) -> Column {
        let (number, length, scale) = self.jdbc();
        let mut name = self.declared.clone();
        if self.identity {
            let empty = if matches!(number, jdbc::DECIMAL | jdbc::NUMERIC) { "()" } else { "" };
            name = format!("{name}{empty} identity");
        }
        let mut column = Column::new(&self.name, position, number, &name);
        (column.length, column.scale) = (Some(length), scale);
        column.optional = self.nullable || self.computed;
        if let Some(definition) = &self.default {
            column.default = ColumnDefault::Expression(definition.as_str().into());
        }
        column
    }

    /// Number, length and scale.
    fn jdbc(&self) -> (i32, i32, Option<i32>) {
        let scale = i32::from(self.scale);
        let is_max = self.max_length < 0;
        let (bytes, units) = if is_max { (MAX_BYTES, MAX_UNITS) } else { (self.max_length, self.max_length / 2) };
        // So many characters, and with a fraction a point and its digits.
        let display = |whole: i32| if scale == 0 { whole } else { whole + 1 + scale };
        match self.base.as_str() {
            "bit" => (jdbc::BIT, 1, Some(0)),
            "tinyint" => (jdbc::TINYINT, 3, Some(0)),
            "smallint" => (jdbc::SMALLINT, 5, Some(0)),
            "int" => (jdbc::INTEGER, 10, Some(0)),
            "bigint" => (jdbc::BIGINT, 19, Some(0)),
            "real" => (jdbc::REAL, 24, None),
            "float" => (jdbc::DOUBLE, 53, None),
            "decimal" => (jdbc::DECIMAL, self.precision.into(), Some(scale)),
            "numeric" => (jdbc::NUMERIC, self.precision.into(), Some(scale)),
            "money" => (jdbc::DECIMAL, 19, Some(4)),
            "smallmoney" => (jdbc::DECIMAL, 10, Some(4)),
            "char" => (jdbc::CHAR, bytes, None),
            "varchar" => (jdbc::VARCHAR, bytes, None),
            "text" => (jdbc::LONGVARCHAR, MAX_BYTES, None),
            "nchar" => (jdbc::NCHAR, units, None),
            "nvarchar" => (jdbc::NVARCHAR, units, None),
            "ntext" => (jdbc::LONGNVARCHAR, MAX_UNITS, None),
            "sysname" => (jdbc::NVARCHAR, units, None),
            "xml" => (jdbc::LONGNVARCHAR, 0, None),
            "json" => (jdbc::VARCHAR, MAX_BYTES, None),
            "binary" => (jdbc::BINARY, bytes, None),
            "varbinary" => (jdbc::VARBINARY, bytes, None),
            "image" => (jdbc::LONGVARBINARY, MAX_BYTES, None),
            "timestamp" | "rowversion" => (jdbc::BINARY, 8, None),
            "uniqueidentifier" => (jdbc::CHAR, 36, None),
            "date" => (jdbc::DATE, 10, Some(0)),
            "time" => (jdbc::TIME, display(8), Some(scale)),
            "datetime" => (jdbc::TIMESTAMP, 23, Some(3)),
            "smalldatetime" => (jdbc::TIMESTAMP, 16, Some(0)),
            "datetime2" => (jdbc::TIMESTAMP, display(19), Some(scale)),
            "datetimeoffset" => (DATETIMEOFFSET, display(26), Some(scale)),
            "sql_variant" => (SQL_VARIANT, 0, None),
            "vector" => (jdbc::OTHER, bytes, None),
            // CLR types: hierarchyid, geometry, geography and those that users make.
            _ => (jdbc::VARBINARY, bytes, None),
        }
    }

    /// Whether change tables hold null for a value that an update did not touch.
    pub fn is_large(&self) -> bool {
        let large = ["text", "ntext", "image", "xml", "json", "geometry", "geography", "hierarchyid"];
        self.max_length < 0 || large.contains(&self.base.as_str())
    }

    /// The expression that reads the column; `name` is quoted. Money comes as a double otherwise.
    pub fn selected(&self, name: &str) -> String {
        match self.base.as_str() {
            "money" => format!("CAST({name} AS decimal(19,4))"),
            "smallmoney" => format!("CAST({name} AS decimal(10,4))"),
            _ => name.to_owned(),
        }
    }
}

/// The types of all columns, for the schemas of tables.
#[derive(Debug, Default)]
pub struct SqlServerTypes {
    defaults: Defaults,
}

impl ColumnTypes for SqlServerTypes {
    fn value_type(&self, column: &Column) -> Option<ValueType> {
        value_type(column)
    }

    fn default_value(&self, column: &Column) -> Option<Cell> {
        self.defaults.of(column)
    }
}

/// By the number of the type, which structures in old histories have too.
pub fn value_type(column: &Column) -> Option<ValueType> {
    let fraction = |digits: i32| u8::try_from(column.scale.unwrap_or(digits).clamp(0, 9)).unwrap_or(0);
    Some(match column.jdbc_type {
        jdbc::BIT | jdbc::BOOLEAN => ValueType::Boolean,
        jdbc::TINYINT | jdbc::SMALLINT => ValueType::Int16,
        jdbc::INTEGER => ValueType::Int32,
        jdbc::BIGINT => ValueType::Int64,
        jdbc::REAL => ValueType::Float32,
        jdbc::DOUBLE | jdbc::FLOAT => ValueType::Float64,
        jdbc::DECIMAL | jdbc::NUMERIC => ValueType::Decimal {
            precision: column.length.and_then(|length| u16::try_from(length).ok()).unwrap_or(18),
            scale: column.scale.and_then(|scale| i16::try_from(scale).ok()).unwrap_or(0),
        },
        jdbc::CHAR
        | jdbc::VARCHAR
        | jdbc::LONGVARCHAR
        | jdbc::NCHAR
        | jdbc::NVARCHAR
        | jdbc::LONGNVARCHAR
        | jdbc::SQLXML => ValueType::Text(TextKind::Plain),
        jdbc::BINARY | jdbc::VARBINARY | jdbc::LONGVARBINARY => ValueType::Bytes,
        jdbc::DATE => ValueType::Date,
        jdbc::TIME => ValueType::Time { fraction: fraction(7) },
        jdbc::TIMESTAMP => ValueType::Timestamp { fraction: fraction(7) },
        DATETIMEOFFSET => ValueType::ZonedTimestamp { fraction: fraction(7) },
        _ => return None,
    })
}

/// 1970-01-01, in days since 0001-01-01 and since 1900-01-01.
const EPOCH_FROM_YEAR_1: i64 = 719_162;
const EPOCH_FROM_1900: i64 = 25_567;

/// A value from the wire.
///
/// # Errors
/// A date or time beyond what its type can say: what came is damaged.
pub fn cell(data: ColumnData<'static>) -> Result<Cell, String> {
    let int = |value: Option<i64>| value.map_or(Cell::Null, Cell::Int);
    Ok(match data {
        ColumnData::U8(value) => int(value.map(i64::from)),
        ColumnData::I16(value) => int(value.map(i64::from)),
        ColumnData::I32(value) => int(value.map(i64::from)),
        ColumnData::I64(value) => int(value),
        ColumnData::F32(value) => value.map_or(Cell::Null, Cell::Float32),
        ColumnData::F64(value) => value.map_or(Cell::Null, Cell::Float64),
        ColumnData::Bit(value) => value.map_or(Cell::Null, Cell::Bool),
        ColumnData::Numeric(value) => {
            value.map_or(Cell::Null, |n| Cell::Decimal(Decimal::new(n.value(), n.scale().into())))
        }
        ColumnData::String(value) => value.map_or(Cell::Null, |text| Cell::Text(text.into_owned().into())),
        ColumnData::Xml(value) => value.map_or(Cell::Null, |xml| Cell::Text(xml.into_owned().into_string().into())),
        ColumnData::Guid(value) => {
            value.map_or(Cell::Null, |guid| Cell::Text(Text::from(guid.hyphenated().to_string().to_uppercase())))
        }
        ColumnData::Binary(value) => value.map_or(Cell::Null, |bytes| Cell::Bytes(Bytes::from(bytes.into_owned()))),
        ColumnData::Date(value) => value.map(date).transpose()?.map_or(Cell::Null, Cell::Date),
        ColumnData::Time(value) => value.map(time).transpose()?.map_or(Cell::Null, Cell::Time),
        ColumnData::DateTime(value) => value.map(datetime).transpose()?.map_or(Cell::Null, Cell::Timestamp),
        ColumnData::SmallDateTime(value) => value.map(smalldatetime).transpose()?.map_or(Cell::Null, Cell::Timestamp),
        ColumnData::DateTime2(value) => value.map(datetime2).transpose()?.map_or(Cell::Null, Cell::Timestamp),
        ColumnData::DateTimeOffset(value) => {
            value.map(datetimeoffset).transpose()?.map_or(Cell::Null, Cell::ZonedTimestamp)
        }
    })
}

fn day(days: i64, epoch: i64) -> Result<Date, String> {
    i32::try_from(days - epoch).map(Date).map_err(|_| "a date is out of range".to_owned())
}

fn time_of_day(nanos: u64) -> Result<TimeOfDay, String> {
    TimeOfDay::from_nanos(nanos).ok_or_else(|| "a time of day is a day or more".to_owned())
}

fn date(date: tiberius::time::Date) -> Result<Date, String> {
    day(date.days().into(), EPOCH_FROM_YEAR_1)
}

fn time(time: tiberius::time::Time) -> Result<TimeOfDay, String> {
    let unit = 10_u64.checked_pow(9_u32.saturating_sub(time.scale().into())).unwrap_or(1);
    time_of_day(time.increments().saturating_mul(unit))
}

/// Ticks are three-hundredths of a second; the server itself shows them as .000, .003 and .007.
fn datetime(value: tiberius::time::DateTime) -> Result<Timestamp, String> {
    let millis = (u64::from(value.seconds_fragments()) * 10 + 1) / 3;
    Ok(Timestamp { date: day(value.days().into(), EPOCH_FROM_1900)?, time: time_of_day(millis * 1_000_000)? })
}

/// Minutes.
fn smalldatetime(value: tiberius::time::SmallDateTime) -> Result<Timestamp, String> {
    let nanos = u64::from(value.seconds_fragments()) * 60_000_000_000;
    Ok(Timestamp { date: day(value.days().into(), EPOCH_FROM_1900)?, time: time_of_day(nanos)? })
}

fn datetime2(value: tiberius::time::DateTime2) -> Result<Timestamp, String> {
    Ok(Timestamp { date: date(value.date())?, time: time(value.time())? })
}

/// Date and time are in UTC ([MS-TDS] "Date/Times"), the offset is in minutes.
fn datetimeoffset(value: tiberius::time::DateTimeOffset) -> Result<ZonedTimestamp, String> {
    let offset_seconds = i32::from(value.offset()) * 60;
    let utc = datetime2(value.datetime2())?;
    Ok(ZonedTimestamp { local: shifted(utc, offset_seconds)?, offset_seconds })
}

/// A point in time, if it is one that 64 bits of nanoseconds can say.
pub(crate) fn instant(cell: &Cell) -> Option<SourceTime> {
    let Cell::ZonedTimestamp(at) = cell else { return None };
    let utc = at.local.nanos() - i128::from(at.offset_seconds) * 1_000_000_000;
    i64::try_from(utc).ok().map(SourceTime::from_nanos)
}

/// So many seconds later.
pub(crate) fn shifted(at: Timestamp, seconds: i32) -> Result<Timestamp, String> {
    const DAY: i128 = thalweg_core::relational::moment::NANOS_PER_DAY as i128;
    let nanos = at.nanos() + i128::from(seconds) * 1_000_000_000;
    let days = i64::try_from(nanos.div_euclid(DAY)).map_err(|_| "a date is out of range".to_owned())?;
    let rest = u64::try_from(nanos.rem_euclid(DAY)).unwrap_or(0);
    Ok(Timestamp { date: day(days, 0)?, time: time_of_day(rest)? })
}

/// A structure as tables have it: the columns that stay, numbered from one.
pub fn columns<'a>(described: impl IntoIterator<Item = &'a Described>) -> Vec<Column> {
    described.into_iter().zip(1..).map(|(column, position)| column.column(position)).collect()
}

#[cfg(test)]
#[path = "types_tests.rs"]
mod tests;
