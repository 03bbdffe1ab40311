//! Values as texts and as bytes.
//!
//! Follows "CAST and CONVERT (Transact-SQL)", date, float, money and binary styles.

use super::convert::{clash, format_uuid, hex, mixed_endian, not_a_number, to_hex};
use super::decimal;
use super::kind::Family;
use super::temporal;
use crate::engine::fault::SqlError;
use crate::types::{Length, SqlType};
use crate::value::SqlValue;

pub(super) fn as_text(value: SqlValue, from: &SqlType, to: &SqlType, style: i64) -> Result<String, SqlError> {
    let text = match &value {
        SqlValue::Text(text) => return Ok(text.clone()),
        SqlValue::Bit(b) => u8::from(*b).to_string(),
        SqlValue::Int(n) => n.to_string(),
        SqlValue::Real(f) => format_float(f64::from(*f), style),
        SqlValue::Float(f) => format_float(*f, style),
        SqlValue::Decimal { units, scale } => decimal::format(*units, *scale),
        SqlValue::Money(n) if style == 2 || style == 126 => decimal::format((*n).into(), 4),
        SqlValue::Money(n) => decimal::format(decimal::rescale((*n).into(), 4, 2).unwrap_or_default(), 2),
        SqlValue::Uuid(bytes) => format_uuid(bytes),
        SqlValue::Bytes(bytes) => {
            return Ok(match style {
                1 => format!("0x{}", to_hex(bytes)),
                2 => to_hex(bytes),
                _ if to.is_unicode() => utf16(bytes),
                _ => bytes.iter().map(|b| char::from(*b)).collect(),
            });
        }
        SqlValue::Date(_) | SqlValue::Time(_) | SqlValue::DateTime { .. } | SqlValue::DateTimeOffset { .. } => {
            return temporal::format(&value, from, style).ok_or_else(|| {
                SqlError::new(
                    281,
                    format!(
                        "{style} is not a valid style number when converting from {} to a character string.",
                        from.name()
                    ),
                )
            });
        }
        SqlValue::Null | SqlValue::Variant(_) => return Err(clash(from, to)),
    };
    if to.length().is_some_and(|most| text.len() > most.into()) {
        // Numbers are not cut: integers become an asterisk in types without Unicode, the rest is an error.
        if from.family() == Family::Integer && !to.is_unicode() {
            return Ok("*".into());
        }
        return Err(match from.family() {
            Family::Uuid => SqlError::new(8170, "Insufficient result space to convert uniqueidentifier value to char."),
            _ => SqlError::overflow(to.name()),
        });
    }
    Ok(text)
}

pub(super) fn utf16(bytes: &[u8]) -> String {
    let units = bytes.chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// Style 0 has at most six digits, style 1 eight, 2 and 3 all of them.
fn format_float(number: f64, style: i64) -> String {
    let digits = match style {
        1 => 8,
        2 => 16,
        3 => 17,
        _ => 6,
    };
    if number == 0.0 {
        return "0".into();
    }
    let scientific = format!("{number:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if matches!(style, 1..=3) || !(-5..digits as i32).contains(&exponent) {
        let mantissa = if matches!(style, 1..=3) || !mantissa.contains('.') {
            mantissa.to_owned()
        } else {
            mantissa.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:03}", exponent.abs());
    }
    let plain = format!("{number:.*}", (digits as i32 - 1 - exponent).max(0) as usize);
    if plain.contains('.') { plain.trim_end_matches('0').trim_end_matches('.').to_owned() } else { plain }
}

pub(super) fn as_bytes(value: SqlValue, from: &SqlType, to: &SqlType, style: i64) -> Result<Vec<u8>, SqlError> {
    let width = match to {
        SqlType::Binary(n) | SqlType::VarBinary(Length::Limited(n)) => Some(usize::from(*n)),
        SqlType::RowVersion => Some(8),
        _ => None,
    };
    Ok(match value {
        SqlValue::Bytes(bytes) => bytes,
        SqlValue::Text(text) if matches!(style, 1 | 2) => {
            let digits =
                if style == 1 { text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) } else { Some(&*text) };
            digits.and_then(hex).ok_or_else(|| not_a_number(from, to))?
        }
        SqlValue::Text(text) if from.is_unicode() => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        SqlValue::Text(text) => text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect(),
        SqlValue::Bit(b) => right_aligned(&[b.into()], to, width),
        SqlValue::Int(n) => {
            let size = match from {
                SqlType::BigInt => 8,
                SqlType::SmallInt => 2,
                SqlType::TinyInt => 1,
                _ => 4,
            };
            right_aligned(&n.to_be_bytes()[8 - size..], to, width)
        }
        SqlValue::Money(n) => right_aligned(&n.to_be_bytes(), to, width),
        SqlValue::Uuid(written) => (0..16).map(|at| written[mixed_endian(at)]).collect(),
        // The form on disk: precision, scale, sign, little-endian digits.
        SqlValue::Decimal { units, scale } => {
            let (precision, _) = from.digits();
            let mut bytes = vec![precision, scale, 0, u8::from(units >= 0)];
            let size = usize::from(from.sizes().0.unsigned_abs()) - 1;
            bytes.extend_from_slice(&units.unsigned_abs().to_le_bytes()[..size]);
            bytes
        }
        _ => return Err(clash(from, to)),
    })
}

/// Numbers keep their last bytes: `binary(n)` is filled in front.
fn right_aligned(bytes: &[u8], to: &SqlType, width: Option<usize>) -> Vec<u8> {
    match width {
        Some(width) if width < bytes.len() => bytes[bytes.len() - width..].to_vec(),
        Some(width) if matches!(to, SqlType::Binary(_) | SqlType::RowVersion) => {
            let mut all = vec![0; width - bytes.len()];
            all.extend_from_slice(bytes);
            all
        }
        _ => bytes.to_vec(),
    }
}
