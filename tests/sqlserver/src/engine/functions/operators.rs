//! Arithmetic, bits, concatenation, conversion, `LIKE`.

use super::Call;
use crate::engine::fault::SqlError;
use crate::engine::kinds::convert;
use crate::engine::kinds::decimal;
use crate::engine::kinds::kind::Family;
use crate::engine::kinds::temporal::{DAY, Moment};
use crate::engine::kinds::text;
use crate::types::SqlType;
use crate::value::SqlValue;

fn arithmetic(call: &Call<'_>, arguments: &[SqlValue], operator: char) -> Result<SqlValue, SqlError> {
    let [left, right] = arguments else { return Ok(SqlValue::Null) };
    let result = call.result();
    match (left, right) {
        (SqlValue::Int(_) | SqlValue::Bit(_), SqlValue::Int(_) | SqlValue::Bit(_)) => {
            let (a, b) = (whole(left), whole(right));
            let number = match operator {
                '+' => a + b,
                '-' => a - b,
                '*' => a * b,
                _ if b == 0 => return Err(SqlError::divide_by_zero()),
                '/' => a / b,
                _ => a % b,
            };
            let number = i64::try_from(number).map_err(|_| SqlError::overflow(result.name()))?;
            convert::convert(SqlValue::Int(number), &SqlType::BigInt, result, -1)
                .map_err(|_| SqlError::overflow(result.name()))
        }
        (SqlValue::Float(a), SqlValue::Float(b)) => {
            let number = match operator {
                '+' => a + b,
                '-' => a - b,
                '*' => a * b,
                _ if *b == 0.0 => return Err(SqlError::divide_by_zero()),
                '/' => a / b,
                _ => a % b,
            };
            convert::convert(SqlValue::Float(number), &SqlType::Float, result, -1)
        }
        (SqlValue::Money(a), SqlValue::Money(b)) => {
            let (a, b) = (i128::from(*a), i128::from(*b));
            let number = match operator {
                '+' => a + b,
                '-' => a - b,
                '*' => decimal::rescale(a * b, 8, 4).unwrap_or(i128::MAX),
                _ if b == 0 => return Err(SqlError::divide_by_zero()),
                '/' => a * 10_000 / b,
                _ => a % b,
            };
            i64::try_from(number).map(SqlValue::Money).map_err(|_| SqlError::overflow(result.name()))
        }
        (SqlValue::Decimal { units: a, scale: s1 }, SqlValue::Decimal { units: b, scale: s2 }) => {
            let (precision, scale) = result.digits();
            let overflow = || SqlError::overflow("numeric").state(8);
            let units = match operator {
                '*' => a.checked_mul(*b).and_then(|u| decimal::rescale(u, s1 + s2, scale)).ok_or_else(overflow)?,
                '/' => decimal::divide((*a, *s1), (*b, *s2), scale)?,
                _ => {
                    let common = *s1.max(s2);
                    let (a, b) = decimal::rescale(*a, *s1, common)
                        .zip(decimal::rescale(*b, *s2, common))
                        .ok_or_else(overflow)?;
                    let units = match operator {
                        '+' => a.checked_add(b),
                        '-' => a.checked_sub(b),
                        _ if b == 0 => return Err(SqlError::divide_by_zero()),
                        _ => Some(a % b),
                    };
                    units.and_then(|u| decimal::rescale(u, common, scale)).ok_or_else(overflow)?
                }
            };
            if decimal::fits(units, precision) { Ok(SqlValue::Decimal { units, scale }) } else { Err(overflow()) }
        }
        // `datetime` plus a number of days; both sides are `datetime` here.
        (SqlValue::DateTime { days, ticks }, SqlValue::DateTime { days: d, ticks: t }) => {
            let base = i128::from(crate::engine::kinds::temporal::DAY_1900) * i128::from(DAY);
            let point = |days: i32, ticks: u64| i128::from(days) * i128::from(DAY) + i128::from(ticks) - base;
            let (a, b) = (point(*days, *ticks), point(*d, *t));
            let sum = base + if operator == '-' { a - b } else { a + b };
            let moment = Moment {
                days: sum.div_euclid(i128::from(DAY)) as i32,
                ticks: sum.rem_euclid(i128::from(DAY)) as u64,
                offset: None,
            };
            moment.into_value(result).ok_or_else(|| SqlError::overflow(result.name()))
        }
        _ => Err(SqlError::new(
            402,
            format!(
                "The data types {} and {} are incompatible in the operator.",
                call.kind(0).name(),
                call.kind(1).name()
            ),
        )),
    }
}

fn whole(value: &SqlValue) -> i128 {
    match value {
        SqlValue::Int(n) => (*n).into(),
        SqlValue::Bit(b) => (*b).into(),
        _ => 0,
    }
}

pub(crate) fn add(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    arithmetic(call, arguments, '+')
}

pub(crate) fn subtract(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    arithmetic(call, arguments, '-')
}

pub(crate) fn multiply(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    arithmetic(call, arguments, '*')
}

pub(crate) fn divide(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    arithmetic(call, arguments, '/')
}

pub(crate) fn modulo(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    arithmetic(call, arguments, '%')
}

pub(crate) fn negate(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    Ok(match &arguments[0] {
        SqlValue::Int(n) => {
            let number = n.checked_neg().ok_or_else(|| SqlError::overflow(call.result().name()))?;
            return convert::convert(SqlValue::Int(number), &SqlType::BigInt, call.result(), -1);
        }
        SqlValue::Bit(b) => SqlValue::Int(-i64::from(*b)),
        SqlValue::Float(f) => SqlValue::Float(-f),
        SqlValue::Real(f) => SqlValue::Real(-f),
        SqlValue::Money(n) => SqlValue::Money(n.checked_neg().ok_or_else(|| SqlError::overflow("money"))?),
        SqlValue::Decimal { units, scale } => SqlValue::Decimal { units: -units, scale: *scale },
        _ => {
            return Err(SqlError::new(
                8117,
                format!("Operand data type {} is invalid for minus operator.", call.kind(0).name()),
            ));
        }
    })
}

fn bits(arguments: &[SqlValue], operate: fn(i64, i64) -> i64) -> Result<SqlValue, SqlError> {
    let number = operate(whole(&arguments[0]) as i64, whole(&arguments[1]) as i64);
    Ok(match arguments[0] {
        SqlValue::Bit(_) => SqlValue::Bit(number != 0),
        _ => SqlValue::Int(number),
    })
}

pub(crate) fn bit_and(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    bits(arguments, |a, b| a & b)
}

pub(crate) fn bit_or(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    bits(arguments, |a, b| a | b)
}

pub(crate) fn bit_xor(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    bits(arguments, |a, b| a ^ b)
}

pub(crate) fn concatenate(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let value = match arguments {
        [SqlValue::Text(a), SqlValue::Text(b)] => SqlValue::Text(format!("{a}{b}")),
        [SqlValue::Bytes(a), SqlValue::Bytes(b)] => SqlValue::Bytes([a.as_slice(), b].concat()),
        _ => return Ok(SqlValue::Null),
    };
    convert::convert(value, call.result(), call.result(), -1)
}

/// `CAST`, `CONVERT`: value and style.
pub(crate) fn cast(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let style = match arguments.get(1) {
        Some(SqlValue::Int(style)) => *style,
        _ => -1,
    };
    convert::convert(arguments[0].clone(), call.kind(0), call.result(), style)
}

pub(crate) fn try_cast(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    cast(call, arguments).or_else(|e| if matches!(e.number, 206 | 529) { Err(e) } else { Ok(SqlValue::Null) })
}

/// A value on its way into a column; notes: table and column ("MSSQLSERVER_2628").
pub(crate) fn store(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    convert::store(arguments[0].clone(), call.kind(0), call.result()).map_err(|e| {
        e.unwrap_or_else(|| {
            if call.note(0).is_empty() {
                return SqlError::new(8152, "String or binary data would be truncated.").state(10);
            }
            let kept = convert::convert(arguments[0].clone(), call.kind(0), call.result(), -1);
            let shown = match kept {
                Ok(SqlValue::Text(text)) => text,
                _ => String::new(),
            };
            SqlError::new(
                2628,
                format!(
                    "String or binary data would be truncated in table '{}', column '{}'. Truncated value: '{shown}'.",
                    call.note(0),
                    call.note(1)
                ),
            )
        })
    })
}

/// Text, pattern, escape; the note is the collation.
pub(crate) fn like(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let (Some(SqlValue::Text(text)), Some(SqlValue::Text(pattern))) = (arguments.first(), arguments.get(1)) else {
        return Ok(SqlValue::Null);
    };
    let escape = match arguments.get(2) {
        Some(SqlValue::Text(escape)) => {
            let mut chars = escape.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => Some(c),
                _ => {
                    return Err(SqlError::new(
                        506,
                        format!("The invalid escape character \"{escape}\" was specified in a LIKE predicate."),
                    ));
                }
            }
        }
        _ => None,
    };
    Ok(SqlValue::Bit(text::like(text, pattern, escape, call.note(0) == text::CI)))
}

/// The instant of a `datetimeoffset`, by which it compares.
pub(crate) fn instant(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    Ok(match arguments[0] {
        SqlValue::DateTimeOffset { days, ticks, .. } => SqlValue::DateTime { days, ticks },
        _ => SqlValue::Null,
    })
}

/// `ABS`, `SIGN`, `CEILING`, `FLOOR`, `ROUND`, `POWER`, `SQRT`: the note says which.
pub(crate) fn math(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let second = match arguments.get(1) {
        Some(SqlValue::Int(n)) => *n,
        _ => 0,
    };
    let name = call.signature.name;
    let value = match &arguments[0] {
        SqlValue::Int(n) => {
            let number = match name {
                "ABS" => n.checked_abs().ok_or_else(|| SqlError::overflow(call.result().name()))?,
                "SIGN" => n.signum(),
                "POWER" => {
                    let exponent = u32::try_from(second).unwrap_or(0);
                    n.checked_pow(exponent).ok_or_else(|| SqlError::overflow(call.result().name()))?
                }
                "ROUND" if second < 0 => {
                    let by = 10_i64.checked_pow(second.unsigned_abs().min(18) as u32).unwrap_or(i64::MAX);
                    (n + n.signum() * by / 2) / by * by
                }
                _ => *n,
            };
            SqlValue::Int(number)
        }
        SqlValue::Float(f) => SqlValue::Float(match name {
            "ABS" => f.abs(),
            "SIGN" => {
                if *f == 0.0 {
                    0.0
                } else {
                    f.signum()
                }
            }
            "CEILING" => f.ceil(),
            "FLOOR" => f.floor(),
            "ROUND" => {
                let by = 10_f64.powi(second.clamp(-300, 300) as i32);
                (f * by).round() / by
            }
            "SQRT" if *f < 0.0 => return Err(SqlError::new(3623, "An invalid floating point operation occurred.")),
            "SQRT" => f.sqrt(),
            "EXP" => f.exp(),
            "LOG" if *f <= 0.0 => return Err(SqlError::new(3623, "An invalid floating point operation occurred.")),
            "LOG" => f.ln(),
            "POWER" => match arguments.get(1) {
                Some(SqlValue::Float(exponent)) => f.powf(*exponent),
                _ => f.powi(second as i32),
            },
            _ => *f,
        }),
        SqlValue::Decimal { units, scale } => {
            let by = decimal::power(*scale);
            let units = match name {
                "ABS" => units.abs(),
                "SIGN" => units.signum() * by,
                "FLOOR" => units.div_euclid(by) * by,
                "CEILING" => -(-units).div_euclid(by) * by,
                "ROUND" if second < i64::from(*scale) => {
                    let drop = (i64::from(*scale) - second).clamp(0, 38) as u8;
                    decimal::rescale(*units, drop, 0).unwrap_or(0).checked_mul(decimal::power(drop)).unwrap_or(0)
                }
                _ => *units,
            };
            SqlValue::Decimal { units, scale: *scale }
        }
        SqlValue::Money(n) => SqlValue::Money(match name {
            "ABS" => n.abs(),
            "SIGN" => n.signum() * 10_000,
            "FLOOR" => n.div_euclid(10_000) * 10_000,
            "CEILING" => -(-n).div_euclid(10_000) * 10_000,
            "ROUND" if second < 4 => {
                let drop = (4 - second).clamp(0, 18) as u8;
                (decimal::rescale((*n).into(), drop, 0).unwrap_or(0) * decimal::power(drop)) as i64
            }
            _ => *n,
        }),
        _ => {
            return Err(SqlError::new(
                8116,
                format!("Argument data type {} is invalid for argument 1 of {name} function.", call.kind(0).name()),
            ));
        }
    };
    let from = match (&value, call.kind(0).family()) {
        (SqlValue::Int(_), _) => &SqlType::BigInt,
        (_, Family::Decimal) => call.kind(0),
        _ => call.kind(0),
    };
    convert::convert(value, from, call.result(), -1)
}
