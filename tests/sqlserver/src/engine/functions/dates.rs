//! "Date and time data types and functions (Transact-SQL)".

use super::Call;
use crate::engine::fault::SqlError;
use crate::engine::kinds::convert;
use crate::engine::kinds::temporal::{self, DAY, Moment, SECOND, civil, days_of, month_length};
use crate::types::SqlType;
use crate::value::SqlValue;

/// Parts of a date, under every name that they have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Year,
    Quarter,
    Month,
    DayOfYear,
    Day,
    Week,
    Weekday,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
    Offset,
}

fn part(name: &str, function: &str) -> Result<Part, SqlError> {
    Ok(match name.to_lowercase().as_str() {
        "year" | "yy" | "yyyy" => Part::Year,
        "quarter" | "qq" | "q" => Part::Quarter,
        "month" | "mm" | "m" => Part::Month,
        "dayofyear" | "dy" | "y" => Part::DayOfYear,
        "day" | "dd" | "d" => Part::Day,
        "week" | "wk" | "ww" => Part::Week,
        "weekday" | "dw" | "w" => Part::Weekday,
        "hour" | "hh" => Part::Hour,
        "minute" | "mi" | "n" => Part::Minute,
        "second" | "ss" | "s" => Part::Second,
        "millisecond" | "ms" => Part::Millisecond,
        "microsecond" | "mcs" => Part::Microsecond,
        "nanosecond" | "ns" => Part::Nanosecond,
        "tzoffset" | "tz" => Part::Offset,
        _ => {
            return Err(SqlError::new(
                155,
                format!("'{name}' is not a recognized {} option.", function.to_lowercase()),
            )
            .class(15));
        }
    })
}

fn part_of(call: &Call<'_>, arguments: &[SqlValue]) -> Result<Part, SqlError> {
    match &arguments[0] {
        SqlValue::Text(name) => part(name, call.signature.name),
        _ => part("", call.signature.name),
    }
}

fn moment(value: &SqlValue) -> Moment {
    Moment::of(value).unwrap_or(Moment { days: temporal::DAY_1900, ticks: 0, offset: None })
}

fn overflow(kind: &SqlType) -> SqlError {
    SqlError::new(517, format!("Adding a value to a '{}' column caused an overflow.", kind.name()))
}

pub(crate) fn dateadd(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let part = part_of(call, arguments)?;
    let SqlValue::Int(number) = arguments[1] else { return Ok(SqlValue::Null) };
    let at = moment(&arguments[2]);
    let kind = call.result();
    let months = match part {
        Part::Year => Some(number.saturating_mul(12)),
        Part::Quarter => Some(number.saturating_mul(3)),
        Part::Month => Some(number),
        _ => None,
    };
    let moved = if let Some(months) = months {
        let (y, m, d) = civil(at.days);
        let month = i64::from(y) * 12 + i64::from(m) - 1 + months.clamp(-200_000, 200_000);
        let (year, month) = (month.div_euclid(12) as i32, month.rem_euclid(12) as u32 + 1);
        let days = days_of(year, month, d.min(month_length(year, month))).ok_or_else(|| overflow(kind))?;
        Moment { days, ..at }
    } else {
        let unit = match part {
            Part::Day | Part::DayOfYear | Part::Weekday => i128::from(DAY),
            Part::Week => i128::from(DAY) * 7,
            Part::Hour => i128::from(SECOND) * 3600,
            Part::Minute => i128::from(SECOND) * 60,
            Part::Second => i128::from(SECOND),
            Part::Millisecond => 10_000,
            Part::Microsecond => 10,
            _ => 0,
        };
        let ticks = if part == Part::Nanosecond { i128::from(number) / 100 } else { i128::from(number) * unit };
        let all = i128::from(at.days) * i128::from(DAY) + i128::from(at.ticks) + ticks;
        let days = i32::try_from(all.div_euclid(i128::from(DAY))).map_err(|_| overflow(kind))?;
        Moment { days, ticks: all.rem_euclid(i128::from(DAY)) as u64, offset: at.offset }
    };
    if matches!(kind, SqlType::Time { .. }) {
        return Ok(SqlValue::Time(moved.ticks));
    }
    moved.into_value(kind).ok_or_else(|| overflow(kind))
}

/// How often the boundary of the part is crossed.
pub(crate) fn datediff(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let part = part_of(call, arguments)?;
    let (from, to) = (moment(&arguments[1]), moment(&arguments[2]));
    let months = |m: Moment| {
        let (year, month, _) = civil(m.days);
        i128::from(year) * 12 + i128::from(month) - 1
    };
    let ticks = |m: Moment| {
        let (days, ticks) = temporal::shift(m.days, m.ticks, -i64::from(m.offset.unwrap_or(0)));
        i128::from(days) * i128::from(DAY) + i128::from(ticks)
    };
    let by = |unit: i128| ticks(to).div_euclid(unit) - ticks(from).div_euclid(unit);
    let second = i128::from(SECOND);
    let count = match part {
        Part::Year => months(to) / 12 - months(from) / 12,
        Part::Quarter => months(to) / 3 - months(from) / 3,
        Part::Month => months(to) - months(from),
        Part::Day | Part::DayOfYear | Part::Weekday => by(i128::from(DAY)),
        // Weeks begin with Sunday; 0001-01-01 was a Monday.
        Part::Week => i128::from((to.days + 1).div_euclid(7)) - i128::from((from.days + 1).div_euclid(7)),
        Part::Hour => by(second * 3600),
        Part::Minute => by(second * 60),
        Part::Second => by(second),
        Part::Millisecond => by(10_000),
        Part::Microsecond => by(10),
        Part::Nanosecond => by(1) * 100,
        Part::Offset => {
            return Err(SqlError::new(
                9806,
                "The datepart tzoffset is not supported by date function datediff for data type.",
            ));
        }
    };
    let big = *call.result() == SqlType::BigInt;
    match i64::try_from(count) {
        Ok(n) if big || i32::try_from(n).is_ok() => Ok(SqlValue::Int(n)),
        _ => Err(SqlError::new(
            535,
            "The datediff function resulted in an overflow. The number of dateparts separating two date/time instances is too large. Try to use datediff with a less precise datepart.",
        )),
    }
}

fn number_of(part: Part, at: Moment) -> i64 {
    let (y, m, d) = civil(at.days);
    let first = days_of(y, 1, 1).unwrap_or(at.days);
    let seconds = at.ticks / SECOND;
    match part {
        Part::Year => y.into(),
        Part::Quarter => i64::from((m - 1) / 3 + 1),
        Part::Month => m.into(),
        Part::DayOfYear => i64::from(at.days - first + 1),
        Part::Day => d.into(),
        Part::Week => i64::from((at.days + 1).div_euclid(7) - (first + 1).div_euclid(7) + 1),
        Part::Weekday => i64::from((at.days + 1).rem_euclid(7) + 1),
        Part::Hour => (seconds / 3600) as i64,
        Part::Minute => (seconds / 60 % 60) as i64,
        Part::Second => (seconds % 60) as i64,
        Part::Millisecond => (at.ticks % SECOND / 10_000) as i64,
        Part::Microsecond => (at.ticks % SECOND / 10) as i64,
        Part::Nanosecond => (at.ticks % SECOND * 100) as i64,
        Part::Offset => at.offset.unwrap_or(0).into(),
    }
}

pub(crate) fn datepart(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    Ok(SqlValue::Int(number_of(part_of(call, arguments)?, moment(&arguments[1]))))
}

pub(crate) fn datename(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
    let part = part_of(call, arguments)?;
    let number = number_of(part, moment(&arguments[1]));
    Ok(SqlValue::Text(match part {
        Part::Month => MONTHS[(number - 1) as usize % 12].to_owned(),
        Part::Weekday => DAYS[(number - 1) as usize % 7].to_owned(),
        Part::Offset => {
            format!("{}{:02}:{:02}", if number < 0 { '-' } else { '+' }, number.abs() / 60, number.abs() % 60)
        }
        _ => number.to_string(),
    }))
}

/// `YEAR`, `MONTH`, `DAY`.
pub(crate) fn year_month_day(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    Ok(SqlValue::Int(number_of(part(call.signature.name, "datepart")?, moment(&arguments[0]))))
}

pub(crate) fn eomonth(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let (y, m, _) = civil(moment(&arguments[0]).days);
    let add = match arguments.get(1) {
        Some(SqlValue::Int(n)) => n.clamp(&-200_000, &200_000).to_owned(),
        _ => 0,
    };
    let month = i64::from(y) * 12 + i64::from(m) - 1 + add;
    let (year, month) = (month.div_euclid(12) as i32, month.rem_euclid(12) as u32 + 1);
    days_of(year, month, month_length(year, month)).map(SqlValue::Date).ok_or_else(|| overflow(&SqlType::Date))
}

pub(crate) fn datefromparts(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let number = |n: usize| match arguments[n] {
        SqlValue::Int(n) => n,
        _ => -1,
    };
    let date = i32::try_from(number(0)).ok().zip(u32::try_from(number(1)).ok()).zip(u32::try_from(number(2)).ok());
    date.and_then(|((y, m), d)| days_of(y, m, d)).map(SqlValue::Date).ok_or_else(|| {
        SqlError::new(289, "Cannot construct data type date, some of the arguments have values which are not valid.")
    })
}

/// The time at which the statement began, in the zone and the type that the function has.
pub(crate) fn now(call: &Call<'_>, _: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let utc = call.session.statement_time();
    let zone = call.engine.utc_offset();
    let local = !matches!(call.signature.name, "GETUTCDATE" | "SYSUTCDATETIME");
    let (days, ticks) = temporal::shift(utc.0, utc.1, if local { zone.into() } else { 0 });
    let kind = call.result();
    Moment { days, ticks, offset: Some(zone) }.into_value(kind).ok_or_else(|| overflow(kind))
}

/// Minutes from a number or from a text like `+02:00`.
fn offset(value: &SqlValue) -> Result<i16, SqlError> {
    let minutes = match value {
        SqlValue::Int(minutes) => Some(*minutes),
        SqlValue::Text(text) => {
            let (sign, rest) = match text.strip_prefix('-') {
                Some(rest) => (-1, rest),
                None => (1, text.strip_prefix('+').unwrap_or(text)),
            };
            rest.split_once(':').and_then(|(h, m)| Some(sign * (h.parse::<i64>().ok()? * 60 + m.parse::<i64>().ok()?)))
        }
        _ => None,
    };
    minutes
        .filter(|m| m.abs() <= 840)
        .map(|m| m as i16)
        .ok_or_else(|| SqlError::new(9812, "The timezone provided to builtin function is invalid."))
}

/// The local time gets this offset.
pub(crate) fn todatetimeoffset(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let at = moment(&arguments[0]);
    Moment { offset: Some(offset(&arguments[1])?), ..at }
        .into_value(call.result())
        .ok_or_else(|| overflow(call.result()))
}

/// The same instant in another zone.
pub(crate) fn switchoffset(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let to = offset(&arguments[1])?;
    Ok(match arguments[0] {
        SqlValue::DateTimeOffset { days, ticks, .. } => SqlValue::DateTimeOffset { days, ticks, offset: to },
        _ => return Err(convert::clash(call.kind(0), call.result())),
    })
}

/// `AT TIME ZONE`: only `UTC` and the server's own zone have names here.
pub(crate) fn at_time_zone(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let SqlValue::Text(zone) = &arguments[1] else { return Ok(SqlValue::Null) };
    if !zone.eq_ignore_ascii_case("utc") {
        return Err(SqlError::new(
            9820,
            format!("The time zone parameter '{zone}' provided to AT TIME ZONE clause is invalid."),
        ));
    }
    match arguments[0] {
        SqlValue::DateTimeOffset { days, ticks, .. } => Ok(SqlValue::DateTimeOffset { days, ticks, offset: 0 }),
        _ => Moment { offset: Some(0), ..moment(&arguments[0]) }
            .into_value(call.result())
            .ok_or_else(|| overflow(call.result())),
    }
}

pub(crate) fn isdate(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let is = match &arguments[0] {
        SqlValue::Text(text) => temporal::parse(text).and_then(|m| m.into_value(&SqlType::DateTime)).is_some(),
        value => Moment::of(value).is_some(),
    };
    Ok(SqlValue::Int(is.into()))
}
