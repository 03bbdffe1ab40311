//! Definitions of defaults as SQL Server's catalogue has them.
//!
//! Promised: no panic, and no time or memory without a bound, whatever a definition holds. A constant in further
//! parentheses is the same constant.
//!
//! The first byte says of which type the column is.

use thalweg_core::relational::column::{Column, jdbc};
use thalweg_sqlserver::literal::parse;

const TYPES: [(i32, &str); 18] = [
    (jdbc::BIT, "bit"),
    (jdbc::TINYINT, "tinyint"),
    (jdbc::SMALLINT, "smallint"),
    (jdbc::INTEGER, "int"),
    (jdbc::BIGINT, "bigint"),
    (jdbc::REAL, "real"),
    (jdbc::DOUBLE, "float"),
    (jdbc::DECIMAL, "decimal"),
    (jdbc::DECIMAL, "money"),
    (jdbc::NVARCHAR, "nvarchar"),
    (jdbc::VARBINARY, "varbinary"),
    (jdbc::CHAR, "uniqueidentifier"),
    (jdbc::DATE, "date"),
    (jdbc::TIME, "time"),
    (jdbc::TIMESTAMP, "datetime"),
    (jdbc::TIMESTAMP, "datetime2"),
    (-155, "datetimeoffset"),
    (jdbc::LONGNVARCHAR, "xml"),
];

/// One input.
pub fn run(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    let Ok(definition) = std::str::from_utf8(rest) else { return };
    let (number, name) = TYPES[usize::from(choice) % TYPES.len()];
    let column = Column::new("c", 1, number, name).sized(18).scaled(4);
    let Ok(value) = parse(definition, &column) else { return };
    assert_eq!(parse(&format!("(({definition}))"), &column).as_ref(), Ok(&value), "{name} {definition}");
}
