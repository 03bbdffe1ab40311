//! "SQL_VARIANT_PROPERTY (Transact-SQL)".

use super::Call;
use crate::engine::catalogue::DEFAULT_COLLATION;
use crate::engine::fault::SqlError;
use crate::engine::kinds::kind::SYSNAME;
use crate::types::SqlType;
use crate::value::SqlValue;

/// Of a `sql_variant`, or of any other value. NULL: an unknown property, one that the type does not have, and `TotalBytes`,
/// which is not modelled.
pub(crate) fn property(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let (kind, is_null) = match &arguments[0] {
        SqlValue::Variant(inner) => (&inner.0, false),
        other => (call.kind(0), *other == SqlValue::Null),
    };
    let SqlValue::Text(property) = &arguments[1] else { return Ok(SqlValue::Null) };
    if is_null {
        return Ok(SqlValue::Null);
    }
    let (length, precision, scale) = kind.sizes();
    let number = |n: i64| SqlValue::Variant(Box::new((SqlType::Int, SqlValue::Int(n))));
    let named = |text: &str| SqlValue::Variant(Box::new((SYSNAME, SqlValue::Text(text.to_owned()))));
    Ok(match property.trim().to_lowercase().as_str() {
        "basetype" => named(kind.name()),
        "precision" => number(precision.into()),
        "scale" => number(scale.into()),
        "maxlength" => number(length.into()),
        "collation" if kind.is_text() => named(DEFAULT_COLLATION),
        _ => SqlValue::Null,
    })
}
