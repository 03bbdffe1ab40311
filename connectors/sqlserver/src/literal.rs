//! Defaults of columns: constants out of the text that the catalogue has for them.
//!
//! The server keeps a definition as it was written, with parentheses around it: `((5))`, `(N'it''s')`,
//! `(getdate())`. Constants become values; whatever has to be evaluated is no default for messages. Dates and
//! times are read in the forms that mean the same in every language ("Date and time styles"); other forms
//! depend on the session that wrote them.

use std::collections::HashSet;

use bytes::Bytes;
use parking_lot::Mutex;
use thalweg_core::relational::cell::{Cell, Decimal};
use thalweg_core::relational::column::{Column, jdbc};
use thalweg_core::relational::moment::{Date, TimeOfDay, Timestamp, ZonedTimestamp};
use thalweg_core::relational::value_type::ValueType;

use crate::types::value_type;

/// A constant, before it is of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Literal {
    Null,
    /// Digits with sign, point and exponent.
    Number(String),
    Text(String),
    Bytes(Vec<u8>),
}

/// Reads defaults, and tells of each that is none once.
#[derive(Debug, Default)]
pub struct Defaults {
    told: Mutex<HashSet<(String, String)>>,
}

impl Defaults {
    /// `None`: there is no default, or none that is a constant.
    pub fn of(&self, column: &Column) -> Option<Cell> {
        let definition = column.default.expression()?;
        let told = match parse(definition, column) {
            Ok(cell) => return cell,
            Err(text) => text,
        };
        let mut known = self.told.lock();
        if known.insert((column.name.to_string(), definition.to_string())) {
            tracing::warn!(column = %column.name, "{told}");
        }
        None
    }
}

/// The default of a column; `None`: it is null.
///
/// # Errors
/// Why there is none, for the log.
pub fn parse(definition: &str, column: &Column) -> Result<Option<Cell>, String> {
    // `xml` is a text for messages, but has no constants.
    let ty = value_type(column).filter(|_| !column.type_name.eq_ignore_ascii_case("xml"));
    let Some(ty) = ty else { return Err(format!("Mapper for type '{}' not found.", column.type_name)) };
    let fault = || {
        let (definition, name) = (shortened(definition), &column.type_name);
        format!(
            "Cannot parse column default value '{definition}' to type '{name}'. Expression evaluation is not supported."
        )
    };
    match literal(definition).ok_or_else(fault)? {
        Literal::Null => Ok(None),
        literal => typed(literal, ty, column).map(Some).ok_or_else(fault),
    }
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= 200 { text.to_owned() } else { text.chars().take(200).chain("...".chars()).collect() }
}

/// `None`: it is no constant.
fn literal(definition: &str) -> Option<Literal> {
    let text = bare(definition);
    if text.eq_ignore_ascii_case("null") {
        return Some(Literal::Null);
    }
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return hex(digits).map(Literal::Bytes);
    }
    let quoted = text.strip_prefix(['N', 'n']).filter(|rest| rest.starts_with('\'')).unwrap_or(text);
    if quoted.starts_with('\'') {
        return unquoted(quoted).map(Literal::Text);
    }
    number(text).map(Literal::Number)
}

/// Without the parentheses around the whole.
fn bare(definition: &str) -> &str {
    let mut text = definition.trim();
    while let Some(inner) = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'))
        && is_balanced(inner)
    {
        text = inner.trim();
    }
    text
}

/// Whether parentheses outside of quotes are closed where they are opened: those of `(1)+(2)` around the whole
/// would not be.
fn is_balanced(text: &str) -> bool {
    let (mut depth, mut quoted) = (0_usize, false);
    for c in text.chars() {
        match c {
            '\'' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return false,
            },
            _ => {}
        }
    }
    depth == 0 && !quoted
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    let odd = !digits.len().is_multiple_of(2);
    // The server takes an odd number of digits as if a zero stood in front.
    let digits: Vec<u8> = odd.then_some(b'0').into_iter().chain(digits.bytes()).collect();
    let value = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    digits.chunks(2).map(|pair| Some(value(pair[0])? << 4 | value(pair[1])?)).collect()
}

/// The text between quotes, if those are all of it.
fn unquoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c == '\'' && chars.next() != Some('\'') {
            return None;
        }
        out.push(c);
    }
    Some(out)
}

/// A number, which may have a sign of its own and, as money, a sign of currency.
fn number(text: &str) -> Option<String> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", bare(rest)),
        None => ("", bare(text.strip_prefix('+').unwrap_or(text))),
    };
    let rest = rest.strip_prefix('$').unwrap_or(rest);
    let begins = rest.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let digits = rest.bytes().all(|c| c.is_ascii_digit() || b".eE+-".contains(&c));
    (begins && digits).then(|| format!("{sign}{rest}"))
}

fn typed(literal: Literal, ty: ValueType, column: &Column) -> Option<Cell> {
    Some(match (ty, literal) {
        (ValueType::Boolean, Literal::Text(text)) if text.trim().eq_ignore_ascii_case("true") => Cell::Bool(true),
        (ValueType::Boolean, Literal::Text(text)) if text.trim().eq_ignore_ascii_case("false") => Cell::Bool(false),
        (ValueType::Boolean, Literal::Number(text) | Literal::Text(text)) => Cell::Bool(decimal(&text)?.unscaled != 0),
        (ValueType::Int16, Literal::Number(text) | Literal::Text(text)) => {
            // tinyint has no sign, but one digit less.
            let range =
                if column.jdbc_type == jdbc::TINYINT { 0..=255 } else { i64::from(i16::MIN)..=i64::from(i16::MAX) };
            Cell::Int(whole(&text).filter(|n| range.contains(n))?)
        }
        (ValueType::Int32, Literal::Number(text) | Literal::Text(text)) => {
            Cell::Int(whole(&text).filter(|n| i32::try_from(*n).is_ok())?)
        }
        (ValueType::Int64, Literal::Number(text) | Literal::Text(text)) => Cell::Int(whole(&text)?),
        (ValueType::Float32, Literal::Number(text) | Literal::Text(text)) => {
            Cell::Float32(text.trim().parse().ok().filter(|n: &f32| n.is_finite())?)
        }
        (ValueType::Float64, Literal::Number(text) | Literal::Text(text)) => {
            Cell::Float64(text.trim().parse().ok().filter(|n: &f64| n.is_finite())?)
        }
        (ValueType::Decimal { scale, .. }, Literal::Number(text) | Literal::Text(text)) => {
            Cell::Decimal(rounded(decimal(&text)?, scale)?)
        }
        (ValueType::Text(_), Literal::Text(text)) => Cell::text(text),
        // A whole number is stored as its digits; of others the form depends on their type.
        (ValueType::Text(_), Literal::Number(text)) if text.bytes().all(|c| c.is_ascii_digit() || c == b'-') => {
            Cell::text(text)
        }
        (ValueType::Bytes, Literal::Bytes(bytes)) => Cell::Bytes(Bytes::from(bytes)),
        (ValueType::Date, Literal::Text(text)) => Cell::Date(moment(&text)?.local.date),
        (ValueType::Time { fraction }, Literal::Text(text)) => Cell::Time(cut(moment(&text)?.local, fraction)?.time),
        (ValueType::Timestamp { .. }, Literal::Text(text)) if is(column, "smalldatetime") => {
            Cell::Timestamp(to_minute(moment(&text)?.local)?)
        }
        (ValueType::Timestamp { .. }, Literal::Text(text)) if is(column, "datetime") => {
            Cell::Timestamp(to_tick(moment(&text)?.local)?)
        }
        (ValueType::Timestamp { fraction }, Literal::Text(text)) => {
            Cell::Timestamp(cut(moment(&text)?.local, fraction)?)
        }
        (ValueType::ZonedTimestamp { fraction }, Literal::Text(text)) => {
            let moment = moment(&text)?;
            Cell::ZonedTimestamp(ZonedTimestamp { local: cut(moment.local, fraction)?, ..moment })
        }
        _ => return None,
    })
}

fn is(column: &Column, type_name: &str) -> bool {
    column.type_name.eq_ignore_ascii_case(type_name)
}

fn decimal(text: &str) -> Option<Decimal> {
    Decimal::parse(text.trim())
}

/// The whole part, as the server converts to integers.
fn whole(text: &str) -> Option<i64> {
    let Decimal { unscaled, scale } = decimal(text)?;
    let power = 10_i128.checked_pow(scale.unsigned_abs().into());
    let whole = if scale >= 0 { power.map_or(0, |power| unscaled / power) } else { unscaled.checked_mul(power?)? };
    i64::try_from(whole).ok()
}

/// With so many digits behind the point, the last one rounded as the server does it.
fn rounded(number: Decimal, scale: i16) -> Option<Decimal> {
    let digits = i32::from(number.scale) - i32::from(scale);
    let power = 10_i128.checked_pow(digits.unsigned_abs())?;
    let unscaled = if digits <= 0 {
        number.unscaled.checked_mul(power)?
    } else {
        let (quotient, rest) = (number.unscaled / power, number.unscaled % power);
        quotient + if rest.abs() >= power - rest.abs() { number.unscaled.signum() } else { 0 }
    };
    Some(Decimal::new(unscaled, scale))
}

/// A date, a time, or both, and an offset; what is missing is 1900-01-01 or midnight in UTC.
fn moment(text: &str) -> Option<ZonedTimestamp> {
    let text = text.trim();
    let (date, time) = match text.split_once([' ', 'T']) {
        Some((date, time)) => (Some(date), Some(time.trim_start())),
        None if text.contains(':') => (None, Some(text)),
        None => (Some(text), None),
    };
    let date = date.map_or_else(|| Date::new(1900, 1, 1), date_of)?;
    let (time, offset_seconds) = match time {
        None => (TimeOfDay::MIDNIGHT, 0),
        Some(time) => {
            let (time, offset) = split_offset(time)?;
            (time_of(time.trim_end())?, offset)
        }
    };
    Some(ZonedTimestamp { local: Timestamp { date, time }, offset_seconds })
}

fn digits<T: std::str::FromStr>(text: &str, length: usize) -> Option<T> {
    (text.len() == length && text.bytes().all(|c| c.is_ascii_digit())).then(|| text.parse().ok())?
}

/// `2019-01-31` or `20190131`.
fn date_of(text: &str) -> Option<Date> {
    let (year, month, day) = if text.contains('-') {
        let mut parts = text.splitn(3, '-');
        (parts.next()?, parts.next()?, parts.next()?)
    } else {
        (text.get(..4)?, text.get(4..6)?, text.get(6..)?)
    };
    Date::new(digits(year, 4).filter(|year| *year > 0)?, digits(month, 2)?, digits(day, 2)?)
}

/// `12:34`, `12:34:56` or `12:34:56.1234567`.
fn time_of(text: &str) -> Option<TimeOfDay> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = clock.split(':');
    let mut part = |most: u64| parts.next().and_then(|part| digits::<u64>(part, 2)).filter(|n| *n <= most);
    let (hour, minute) = (part(23)?, part(59)?);
    let second = if clock.len() > 5 { part(59)? } else { 0 };
    if parts.next().is_some() || fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let nanos: u64 = digits::<u64>(fraction, fraction.len())? * 10_u64.pow(9 - u32::try_from(fraction.len()).ok()?);
    TimeOfDay::from_nanos((hour * 3_600 + minute * 60 + second) * 1_000_000_000 + nanos)
}

/// The time, and the seconds that its clock is ahead of UTC.
fn split_offset(text: &str) -> Option<(&str, i32)> {
    if let Some(time) = text.strip_suffix(['Z', 'z']) {
        return Some((time, 0));
    }
    let Some(at) = text.rfind(['+', '-']) else { return Some((text, 0)) };
    let (hours, minutes) = text[at + 1..].split_once(':')?;
    let (hours, minutes): (i32, i32) = (digits(hours, 2)?, digits(minutes, 2)?);
    let seconds = hours * 3_600 + minutes * 60;
    let sign = if text.as_bytes()[at] == b'-' { -1 } else { 1 };
    (seconds <= 14 * 3_600 && minutes < 60).then_some((&text[..at], sign * seconds))
}

/// To so many digits of a second.
fn cut(at: Timestamp, fraction: u8) -> Option<Timestamp> {
    let unit = 10_u64.checked_pow(9_u32.saturating_sub(fraction.into()))?;
    Some(Timestamp { time: TimeOfDay::from_nanos(at.time.nanos() / unit * unit)?, ..at })
}

/// `smalldatetime`: from 30 seconds on it is the next minute.
fn to_minute(at: Timestamp) -> Option<Timestamp> {
    const MINUTE: u64 = 60_000_000_000;
    let minutes = at.time.nanos() / MINUTE;
    let floor = Timestamp { time: TimeOfDay::from_nanos(minutes * MINUTE)?, ..at };
    // The server rounds 29.998 seconds down and 29.999 up.
    let up = at.time.nanos() % MINUTE >= 29_999_000_000;
    if up { crate::types::shifted(floor, 60).ok() } else { Some(floor) }
}

/// `datetime`: to three-hundredths of a second, in milliseconds.
fn to_tick(at: Timestamp) -> Option<Timestamp> {
    let ticks = (at.time.nanos() * 3 + 5_000_000) / 10_000_000;
    let nanos = (ticks * 10 + 1) / 3 * 1_000_000;
    match TimeOfDay::from_nanos(nanos) {
        Some(time) => Some(Timestamp { time, ..at }),
        None => crate::types::shifted(Timestamp { time: TimeOfDay::MIDNIGHT, ..at }, 86_400).ok(),
    }
}

#[cfg(test)]
#[path = "literal_tests.rs"]
mod tests;
