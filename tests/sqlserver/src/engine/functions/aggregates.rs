//! Sums of decimals, which SQLite does not have for the kept form. Other sums run on integers and floats,
//! for which SQLite's own do.

use rusqlite::Connection;
use rusqlite::functions::{Aggregate, Context, FunctionFlags, WindowAggregate};
use rusqlite::types::Value;

use crate::engine::fault::SqlError;
use crate::engine::kinds::stored;
use crate::types::SqlType;
use crate::value::SqlValue;

pub(crate) const SUM_DECIMAL: &str = "ts_sum_decimal";

/// Units of the kept form; the scale does not matter for a sum.
const ANY: SqlType = SqlType::Decimal { precision: 38, scale: 0 };

struct SumDecimal;

impl SumDecimal {
    fn add(context: &Context<'_>, sum: &mut Option<i128>, sign: i128) -> rusqlite::Result<()> {
        if let SqlValue::Decimal { units, .. } = stored::decode(context.get_raw(0), &ANY) {
            let total = sum.unwrap_or(0).checked_add(sign * units).ok_or_else(|| SqlError::overflow("numeric"))?;
            *sum = Some(total);
        }
        Ok(())
    }

    fn result(sum: Option<i128>) -> Value {
        sum.map_or(Value::Null, |units| stored::encode(&SqlValue::Decimal { units, scale: 0 }, &ANY))
    }
}

impl Aggregate<Option<i128>, Value> for SumDecimal {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<Option<i128>> {
        Ok(None)
    }

    fn step(&self, context: &mut Context<'_>, sum: &mut Option<i128>) -> rusqlite::Result<()> {
        Self::add(context, sum, 1)
    }

    fn finalize(&self, _: &mut Context<'_>, sum: Option<Option<i128>>) -> rusqlite::Result<Value> {
        Ok(Self::result(sum.flatten()))
    }
}

impl WindowAggregate<Option<i128>, Value> for SumDecimal {
    fn value(&self, sum: Option<&mut Option<i128>>) -> rusqlite::Result<Value> {
        Ok(Self::result(sum.and_then(|s| *s)))
    }

    fn inverse(&self, context: &mut Context<'_>, sum: &mut Option<i128>) -> rusqlite::Result<()> {
        Self::add(context, sum, -1)
    }
}

pub(super) fn register(db: &Connection) -> rusqlite::Result<()> {
    db.create_window_function(
        SUM_DECIMAL,
        1,
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC,
        SumDecimal,
    )
}
