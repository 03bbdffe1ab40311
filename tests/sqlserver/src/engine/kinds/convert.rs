//! Conversion of a value from one type to another.
//!
//! Follows "CAST and CONVERT (Transact-SQL)" and the pages of the types. Texts of types without Unicode are
//! kept as they come: code pages are not modelled.

use super::as_text::{as_bytes, as_text, utf16};
use super::kind::Family;
use super::temporal::{self, DAY, DAY_1900, Moment};
use super::{decimal, text};
use crate::engine::fault::SqlError;
use crate::types::SqlType;
use crate::value::SqlValue;

/// `style`: that of `CONVERT`, −1 if none was given. Texts and bytes are cut to the length of the type.
pub(crate) fn convert(value: SqlValue, from: &SqlType, to: &SqlType, style: i64) -> Result<SqlValue, SqlError> {
    let whole = widened(value, from, to, style)?;
    Ok(cut(whole, to))
}

/// As an assignment to a column or variable does: what does not fit is `Err(None)`.
pub(crate) fn store(value: SqlValue, from: &SqlType, to: &SqlType) -> Result<SqlValue, Option<SqlError>> {
    let whole = widened(value, from, to, -1).map_err(Some)?;
    let fits = match (&whole, to.length()) {
        (SqlValue::Text(text), Some(most)) => {
            let kept = text::cut(text, most.into());
            text[kept.len()..].chars().all(|c| c == ' ')
        }
        (SqlValue::Bytes(bytes), Some(most)) => bytes.len() <= most.into(),
        _ => true,
    };
    if fits { Ok(cut(whole, to)) } else { Err(None) }
}

/// Cut or filled to the length of a type.
fn cut(value: SqlValue, to: &SqlType) -> SqlValue {
    match value {
        SqlValue::Text(mut text) => {
            if let Some(most) = to.length() {
                text.truncate(text::cut(&text, most.into()).len());
                if matches!(to, SqlType::Char(_) | SqlType::NChar(_)) {
                    let missing = usize::from(most).saturating_sub(text::units(&text));
                    text.extend(std::iter::repeat_n(' ', missing));
                }
            }
            SqlValue::Text(text)
        }
        SqlValue::Bytes(mut bytes) => {
            if let Some(most) = to.length() {
                bytes.truncate(most.into());
                if matches!(to, SqlType::Binary(_) | SqlType::RowVersion) {
                    bytes.resize(most.into(), 0);
                }
            }
            SqlValue::Bytes(bytes)
        }
        other => other,
    }
}

fn widened(value: SqlValue, from: &SqlType, to: &SqlType, style: i64) -> Result<SqlValue, SqlError> {
    if value == SqlValue::Null {
        return Ok(value);
    }
    if let SqlValue::Variant(inner) = value {
        if *to == SqlType::SqlVariant {
            return Ok(SqlValue::Variant(inner));
        }
        let (kind, value) = *inner;
        return widened(value, &kind, to, style);
    }
    match to.family() {
        Family::Integer => integer(value, from, to),
        Family::Decimal => {
            let (precision, scale) = to.digits();
            let units = units(value, from, to, scale)?;
            if !decimal::fits(units, precision) {
                return Err(SqlError::overflow(to.name()).state(8));
            }
            Ok(SqlValue::Decimal { units, scale })
        }
        Family::Money => {
            let units = units(value, from, to, 4)?;
            let most = if *to == SqlType::SmallMoney { i128::from(i32::MAX) } else { i128::from(i64::MAX) };
            if !(-most - 1..=most).contains(&units) {
                return Err(SqlError::overflow(to.name()));
            }
            Ok(SqlValue::Money(units as i64))
        }
        Family::Float => float(value, from, to),
        Family::Temporal => temporal(value, from, to),
        Family::Text => Ok(SqlValue::Text(as_text(value, from, to, style)?)),
        Family::Bytes => Ok(SqlValue::Bytes(as_bytes(value, from, to, style)?)),
        Family::Uuid => uuid(value, from, to),
        Family::Variant => match from.family() {
            Family::Other => Err(clash(from, to)),
            _ if from.is_max() || from.is_lob() => Err(clash(from, to)),
            _ => Ok(SqlValue::Variant(Box::new((from.clone(), value)))),
        },
        Family::Other => match value {
            SqlValue::Text(text) if *to == SqlType::Xml => Ok(SqlValue::Text(text)),
            SqlValue::Bytes(bytes) if *to == SqlType::Xml => Ok(SqlValue::Text(utf16(&bytes))),
            SqlValue::Bytes(bytes) => Ok(SqlValue::Bytes(bytes)),
            _ => Err(clash(from, to)),
        },
    }
}

pub(crate) fn clash(from: &SqlType, to: &SqlType) -> SqlError {
    SqlError::new(206, format!("Operand type clash: {} is incompatible with {}", from.name(), to.name())).state(2)
}

fn failed(text: &str, from: &SqlType, to: &SqlType) -> SqlError {
    SqlError::new(
        245,
        format!("Conversion failed when converting the {} value '{text}' to data type {}.", from.name(), to.name()),
    )
}

pub(super) fn not_a_number(from: &SqlType, to: &SqlType) -> SqlError {
    SqlError::new(8114, format!("Error converting data type {} to {}.", from.name(), to.name())).state(5)
}

fn integer(value: SqlValue, from: &SqlType, to: &SqlType) -> Result<SqlValue, SqlError> {
    let number: i128 = match value {
        SqlValue::Bit(b) => b.into(),
        SqlValue::Int(n) => n.into(),
        SqlValue::Real(f) => f.into_integer(to)?,
        SqlValue::Float(f) => f.into_integer(to)?,
        SqlValue::Decimal { units, scale } => units / decimal::power(scale),
        // Money rounds, decimals are cut.
        SqlValue::Money(n) => decimal::rescale(n.into(), 4, 0).unwrap_or_default(),
        SqlValue::Text(text) => {
            let trimmed = text.trim();
            if *to == SqlType::Bit && trimmed.eq_ignore_ascii_case("true") {
                1
            } else if trimmed.is_empty() || *to == SqlType::Bit && trimmed.eq_ignore_ascii_case("false") {
                0
            } else {
                match trimmed.strip_prefix('+').unwrap_or(trimmed).parse::<i128>() {
                    Ok(n) if in_range(n, to) => n,
                    Ok(_) => {
                        let text = format!(
                            "The conversion of the {} value '{text}' overflowed an {} column.",
                            from.name(),
                            to.name()
                        );
                        return Err(SqlError::new(if *to == SqlType::Int { 248 } else { 244 }, text));
                    }
                    Err(_) => return Err(failed(&text, from, to)),
                }
            }
        }
        SqlValue::Bytes(bytes) => {
            let size = match to {
                SqlType::BigInt => 8,
                SqlType::Int => 4,
                SqlType::SmallInt => 2,
                _ => 1,
            };
            let tail = &bytes[bytes.len().saturating_sub(size)..];
            let number = tail.iter().fold(0_u64, |n, b| n << 8 | u64::from(*b));
            match to {
                SqlType::BigInt => (number as i64).into(),
                SqlType::Int => (number as i32).into(),
                SqlType::SmallInt => (number as i16).into(),
                _ => number.into(),
            }
        }
        SqlValue::DateTime { days, ticks } if matches!(from, SqlType::DateTime | SqlType::SmallDateTime) => {
            i128::from(days - DAY_1900) + i128::from(ticks * 2 >= DAY)
        }
        _ => return Err(clash(from, to)),
    };
    if *to == SqlType::Bit {
        return Ok(SqlValue::Bit(number != 0));
    }
    if !in_range(number, to) {
        return Err(match value_is_integer(from) {
            true if *to == SqlType::TinyInt || *to == SqlType::SmallInt => {
                SqlError::new(220, format!("Arithmetic overflow error for data type {}, value = {number}.", to.name()))
            }
            _ => SqlError::overflow(to.name()),
        });
    }
    Ok(SqlValue::Int(number as i64))
}

fn value_is_integer(from: &SqlType) -> bool {
    from.family() == Family::Integer
}

fn in_range(number: i128, kind: &SqlType) -> bool {
    match kind {
        SqlType::TinyInt => (0..=255).contains(&number),
        SqlType::SmallInt => i16::try_from(number).is_ok(),
        SqlType::Int => i32::try_from(number).is_ok(),
        SqlType::BigInt => i64::try_from(number).is_ok(),
        _ => true,
    }
}

trait IntoInteger {
    fn into_integer(self, to: &SqlType) -> Result<i128, SqlError>;
}

impl<F: Into<f64>> IntoInteger for F {
    fn into_integer(self, to: &SqlType) -> Result<i128, SqlError> {
        let number: f64 = self.into();
        if number.abs() < 1e19 { Ok(number.trunc() as i128) } else { Err(SqlError::overflow(to.name())) }
    }
}

/// Units of 10^-scale.
fn units(value: SqlValue, from: &SqlType, to: &SqlType, scale: u8) -> Result<i128, SqlError> {
    let overflow = || SqlError::overflow(to.name()).state(8);
    let (units, at) = match value {
        SqlValue::Bit(b) => (b.into(), 0),
        SqlValue::Int(n) => (n.into(), 0),
        SqlValue::Decimal { units, scale } => (units, scale),
        SqlValue::Money(n) => (n.into(), 4),
        SqlValue::Real(f) => return from_float(f64::from(f), scale).ok_or_else(overflow),
        SqlValue::Float(f) => return from_float(f, scale).ok_or_else(overflow),
        SqlValue::Text(text) => {
            let is_money = to.family() == Family::Money;
            let plain = if is_money { text.trim().replace(['$', ','], "") } else { text.trim().to_owned() };
            match decimal::parse(&plain) {
                Some(number) => number,
                None if is_money && plain.is_empty() => (0, 0),
                None if is_money => {
                    let text = "Cannot convert a char value to money. The char value has incorrect syntax.";
                    return Err(SqlError::new(235, text));
                }
                None => return Err(not_a_number(from, &SqlType::Numeric { precision: 38, scale })),
            }
        }
        SqlValue::Bytes(_) => {
            let SqlValue::Int(n) = integer(value, from, &SqlType::BigInt)? else { return Err(clash(from, to)) };
            (n.into(), if to.family() == Family::Money { 4 } else { 0 })
        }
        _ => return Err(clash(from, to)),
    };
    decimal::rescale(units, at, scale).ok_or_else(overflow)
}

fn from_float(number: f64, scale: u8) -> Option<i128> {
    let scaled = number * 10_f64.powi(scale.into());
    (scaled.abs() < 1e38).then(|| scaled.round() as i128)
}

fn float(value: SqlValue, from: &SqlType, to: &SqlType) -> Result<SqlValue, SqlError> {
    let number = match value {
        SqlValue::Bit(b) => f64::from(u8::from(b)),
        SqlValue::Int(n) => n as f64,
        SqlValue::Real(f) => f.into(),
        SqlValue::Float(f) => f,
        SqlValue::Decimal { units, scale } => decimal::format(units, scale).parse().unwrap_or_default(),
        SqlValue::Money(n) => n as f64 / 10_000.0,
        SqlValue::Text(text) => match text.trim() {
            "" => 0.0,
            trimmed if trimmed.chars().any(|c| c.is_ascii_digit()) => {
                trimmed.parse().map_err(|_| not_a_number(from, to))?
            }
            _ => return Err(not_a_number(from, to)),
        },
        SqlValue::DateTime { days, ticks } if matches!(from, SqlType::DateTime | SqlType::SmallDateTime) => {
            f64::from(days - DAY_1900) + ticks as f64 / DAY as f64
        }
        _ => return Err(clash(from, to)),
    };
    if *to == SqlType::Real {
        let real = number as f32;
        return if real.is_finite() { Ok(SqlValue::Real(real)) } else { Err(SqlError::overflow("real")) };
    }
    if number.is_finite() { Ok(SqlValue::Float(number)) } else { Err(SqlError::overflow("float")) }
}

fn temporal(value: SqlValue, from: &SqlType, to: &SqlType) -> Result<SqlValue, SqlError> {
    let old = matches!(to, SqlType::DateTime | SqlType::SmallDateTime);
    let moment = match &value {
        SqlValue::Text(text) => temporal::parse(text).ok_or_else(|| {
            SqlError::new(241, "Conversion failed when converting date and/or time from character string.")
        })?,
        SqlValue::Bit(_)
        | SqlValue::Int(_)
        | SqlValue::Decimal { .. }
        | SqlValue::Money(_)
        | SqlValue::Real(_)
        | SqlValue::Float(_)
            if old =>
        {
            let SqlValue::Float(days) = float(value, from, &SqlType::Float)? else { return Err(clash(from, to)) };
            if days.abs() > 4e6 {
                return Err(SqlError::overflow(to.name()));
            }
            let whole = days.floor();
            Moment { days: DAY_1900 + whole as i32, ticks: ((days - whole) * DAY as f64) as u64, offset: None }
        }
        SqlValue::Date(_) if matches!(to, SqlType::Time { .. }) => return Err(clash(from, to)),
        SqlValue::Time(_) if *to == SqlType::Date => return Err(clash(from, to)),
        value => Moment::of(value).ok_or_else(|| clash(from, to))?,
    };
    moment.into_value(to).ok_or_else(|| {
        let text = if from.is_text() {
            format!(
                "The conversion of a {} data type to a {} data type resulted in an out-of-range value.",
                from.name(),
                to.name()
            )
        } else {
            format!("Adding a value to a '{}' column caused an overflow.", to.name())
        };
        SqlError::new(if from.is_text() { 242 } else { 517 }, text).state(3)
    })
}

fn uuid(value: SqlValue, from: &SqlType, to: &SqlType) -> Result<SqlValue, SqlError> {
    match value {
        SqlValue::Uuid(_) => Ok(value),
        SqlValue::Text(text) => parse_uuid(&text).map(SqlValue::Uuid).ok_or_else(|| {
            SqlError::new(8169, "Conversion failed when converting from a character string to uniqueidentifier.")
                .state(2)
        }),
        SqlValue::Bytes(mut bytes) => {
            bytes.resize(16, 0);
            let mut written = [0; 16];
            for (at, byte) in bytes.into_iter().enumerate() {
                written[mixed_endian(at)] = byte;
            }
            Ok(SqlValue::Uuid(written))
        }
        _ => Err(clash(from, to)),
    }
}

/// Where the byte of the binary form is in the written form.
pub(super) fn mixed_endian(at: usize) -> usize {
    [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15][at]
}

fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let text = text.trim();
    let text = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
    let text = text.get(..36)?;
    for (at, c) in text.char_indices() {
        if matches!(at, 8 | 13 | 18 | 23) != (c == '-') {
            return None;
        }
    }
    hex(&text.replace('-', ""))?.try_into().ok()
}

pub(crate) fn format_uuid(bytes: &[u8; 16]) -> String {
    let hex = to_hex(bytes);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02X}")).collect()
}

pub(crate) fn hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::kinds::kind::{nvarchar, varbinary, varchar};
    use crate::types::Length;

    fn text(text: &str) -> SqlValue {
        SqlValue::Text(text.into())
    }

    #[test]
    fn bad_texts_have_the_numbers_of_the_server() {
        for (value, to, number) in [
            ("abc", SqlType::Int, 245),
            ("99999999999", SqlType::Int, 248),
            ("abc", SqlType::Numeric { precision: 5, scale: 2 }, 8114),
            ("1234.5", SqlType::Numeric { precision: 5, scale: 2 }, 8115),
            ("abc", SqlType::DateTime, 241),
            ("1600-01-01", SqlType::DateTime, 242),
            ("abc", SqlType::UniqueIdentifier, 8169),
            ("x", SqlType::Money, 235),
        ] {
            assert_eq!(convert(text(value), &varchar(20), &to, -1).unwrap_err().number, number, "{value} to {to:?}");
        }
        assert_eq!(convert(SqlValue::Int(300), &SqlType::Int, &SqlType::TinyInt, -1).unwrap_err().number, 220);
        assert_eq!(convert(SqlValue::Date(1), &SqlType::Date, &SqlType::Int, -1).unwrap_err().number, 206);
    }

    #[test]
    fn values_become_what_the_documents_say() {
        let cases = [
            (SqlValue::Money(63_234), SqlType::Money, varchar(10), text("6.32")),
            (SqlValue::Int(1), SqlType::Int, SqlType::Binary(2), SqlValue::Bytes(vec![0, 1])),
            (SqlValue::Bytes(vec![1, 0]), varbinary(2), SqlType::Int, SqlValue::Int(256)),
            (SqlValue::Float(1234.5), SqlType::Float, varchar(20), text("1234.5")),
            (SqlValue::Float(1e10), SqlType::Float, varchar(20), text("1e+010")),
            (text("ab"), varchar(2), SqlType::Char(4), text("ab  ")),
            (text("abc"), nvarchar(3), SqlType::NVarChar(Length::Limited(2)), text("ab")),
            (text("true"), varchar(4), SqlType::Bit, SqlValue::Bit(true)),
            (
                SqlValue::Decimal { units: 15, scale: 1 },
                SqlType::Numeric { precision: 2, scale: 1 },
                SqlType::Int,
                SqlValue::Int(1),
            ),
        ];
        for (value, from, to, expected) in cases {
            assert_eq!(convert(value, &from, &to, -1), Ok(expected), "{from:?} to {to:?}");
        }
    }

    #[test]
    fn unique_identifiers_are_mixed_endian_in_bytes() {
        let written = "6F9619FF-8B86-D011-B42D-00C04FC964FF";
        let value = convert(text(written), &varchar(36), &SqlType::UniqueIdentifier, -1).unwrap();
        let bytes = convert(value.clone(), &SqlType::UniqueIdentifier, &SqlType::Binary(16), -1).unwrap();
        assert_eq!(bytes, SqlValue::Bytes(hex("FF19966F868B11D0B42D00C04FC964FF").unwrap()));
        assert_eq!(convert(bytes, &SqlType::Binary(16), &SqlType::UniqueIdentifier, -1).unwrap(), value);
        assert_eq!(convert(value, &SqlType::UniqueIdentifier, &varchar(36), -1).unwrap(), text(written));
    }

    #[test]
    fn an_assignment_does_not_cut() {
        assert_eq!(store(text("abc  "), &varchar(5), &varchar(3)), Ok(text("abc")));
        assert_eq!(store(text("abcd"), &varchar(5), &varchar(3)), Err(None));
    }
}
