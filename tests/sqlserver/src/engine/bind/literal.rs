//! Literals and their types.
//!
//! Follows "Constants (Transact-SQL)".

use sqlparser::ast::Value as Literal;

use super::typed::{Typed, quoted};
use crate::engine::fault::SqlError;
use crate::engine::kinds::kind::{nvarchar, varbinary, varchar};
use crate::engine::kinds::text;
use crate::engine::kinds::{decimal, stored};
use crate::types::SqlType;
use crate::value::SqlValue;

/// "Constants (Transact-SQL)".
pub(super) fn literal(value: &Literal) -> Result<Typed, SqlError> {
    Ok(match value {
        Literal::Null => Typed::null(),
        Literal::Number(text, _) => return number(text),
        Literal::SingleQuotedString(text) => Typed::new(quoted(text), varchar(text::units(text).max(1))).not_null(),
        Literal::NationalStringLiteral(text) => Typed::new(quoted(text), nvarchar(text::units(text).max(1))).not_null(),
        Literal::HexStringLiteral(text) => {
            let hex = if text.len() % 2 == 1 { format!("0{text}") } else { text.clone() };
            Typed::new(format!("x'{hex}'"), varbinary((hex.len() / 2).max(1))).not_null()
        }
        Literal::Placeholder(text) if text.starts_with('$') => {
            let SqlValue::Money(units) = crate::engine::kinds::convert::convert(
                SqlValue::Text(text.clone()),
                &varchar(40),
                &SqlType::Money,
                -1,
            )?
            else {
                return Err(SqlError::near(text));
            };
            Typed::new(units.to_string(), SqlType::Money).not_null()
        }
        other => return Err(SqlError::near(&other.to_string())),
    })
}

/// `int` if it fits, else `numeric`; with an exponent `float`.
pub(super) fn number(text: &str) -> Result<Typed, SqlError> {
    if text.contains(['e', 'E']) {
        let text = text.strip_suffix(['e', 'E']).unwrap_or(text);
        let number: f64 = text.parse().map_err(|_| SqlError::near(text))?;
        return Ok(Typed::new(format!("{number:?}"), SqlType::Float).not_null());
    }
    if let Ok(number) = text.parse::<i32>() {
        return Ok(Typed::new(number.to_string(), SqlType::Int).not_null());
    }
    let (units, scale) = decimal::parse(text).ok_or_else(|| {
        SqlError::new(
            1007,
            format!("The number '{text}' is out of the range for numeric representation (maximum precision 38)."),
        )
        .class(15)
    })?;
    let digits = units.unsigned_abs().to_string().len() as u8;
    let kind = SqlType::Numeric { precision: digits.max(scale).max(1), scale };
    let rusqlite::types::Value::Blob(bytes) = stored::encode(&SqlValue::Decimal { units, scale }, &kind) else {
        return Err(SqlError::near(text));
    };
    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    Ok(Typed::new(format!("x'{hex}'"), kind).not_null())
}
