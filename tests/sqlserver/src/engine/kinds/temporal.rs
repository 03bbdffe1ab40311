//! Dates and times: days since 0001-01-01 and ticks of 100 ns, their texts and parts.
//!
//! Formats follow "CAST and CONVERT (Transact-SQL)", date and time styles. Literals are read as with
//! `SET LANGUAGE us_english` and `SET DATEFORMAT mdy`.

use crate::types::SqlType;
use crate::value::{SqlValue, Ticks};

pub(crate) const SECOND: u64 = 10_000_000;
pub(crate) const DAY: u64 = 86_400 * SECOND;
/// 1900-01-01, day 0 of `datetime`.
pub(crate) const DAY_1900: i32 = 693_595;
/// 1970-01-01.
pub(crate) const DAY_1970: i32 = 719_162;
/// 9999-12-31.
pub(crate) const LAST_DAY: i32 = 3_652_058;

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A point in time as its parts; what is not given is zero, or 1900-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) days: i32,
    pub(crate) ticks: Ticks,
    /// Minutes east of UTC; days and ticks are local.
    pub(crate) offset: Option<i16>,
}

pub(crate) fn days_of(year: i32, month: u32, day: u32) -> Option<i32> {
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || day == 0 || day > month_length(year, month) {
        return None;
    }
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y - era * 400;
    let m = (month as i32 + 9) % 12;
    let day_of_year = (153 * m + 2) / 5 + day as i32 - 1;
    Some(era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 306)
}

pub(crate) fn month_length(year: i32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Year, month, day.
pub(crate) fn civil(days: i32) -> (i32, u32, u32) {
    let z = days + 306;
    let era = z.div_euclid(146_097);
    let day_of_era = z - era * 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let m = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * m + 2) / 5 + 1) as u32;
    let month = if m < 10 { m + 3 } else { m - 9 } as u32;
    (year_of_era + era * 400 + i32::from(month <= 2), month, day)
}

/// Ticks rounded to so many digits of a second; may be a whole day.
pub(crate) fn round(ticks: Ticks, digits: u8) -> Ticks {
    let unit = 10_u64.pow(u32::from(7 - digits.min(7)));
    (ticks + unit / 2) / unit * unit
}

/// Rounded to 1/300 s and from there to the milliseconds that are shown: .000, .003, .007.
pub(crate) fn round_to_datetime(ticks: Ticks) -> Ticks {
    let units = (ticks * 300 + SECOND / 2) / SECOND;
    (units * 10 + 1) / 3 * 10_000
}

/// A day further if the ticks are beyond midnight.
pub(crate) fn carry(days: i32, ticks: Ticks) -> (i32, Ticks) {
    (days + (ticks / DAY) as i32, ticks % DAY)
}

/// Days and ticks moved by minutes.
pub(crate) fn shift(days: i32, ticks: Ticks, minutes: i64) -> (i32, Ticks) {
    let all = i128::from(days) * i128::from(DAY) + i128::from(ticks) + i128::from(minutes) * 60 * i128::from(SECOND);
    (all.div_euclid(i128::from(DAY)) as i32, all.rem_euclid(i128::from(DAY)) as u64)
}

impl Moment {
    /// Of a temporal value; others: `None`.
    pub(crate) fn of(value: &SqlValue) -> Option<Self> {
        Some(match *value {
            SqlValue::Date(days) => Self { days, ticks: 0, offset: None },
            SqlValue::Time(ticks) => Self { days: DAY_1900, ticks, offset: None },
            SqlValue::DateTime { days, ticks } => Self { days, ticks, offset: None },
            SqlValue::DateTimeOffset { days, ticks, offset } => {
                let (days, ticks) = shift(days, ticks, offset.into());
                Self { days, ticks, offset: Some(offset) }
            }
            _ => return None,
        })
    }

    /// As a value of a temporal type, rounded to what it holds. `None`: outside its range.
    pub(crate) fn into_value(self, kind: &SqlType) -> Option<SqlValue> {
        let (days, ticks) = match kind {
            SqlType::Date | SqlType::Time { .. } => (self.days, self.ticks),
            SqlType::DateTime => carry(self.days, round_to_datetime(self.ticks)),
            SqlType::SmallDateTime => {
                // 29.998 seconds and less go down, "smalldatetime (Transact-SQL)".
                let seconds = (self.ticks + SECOND / 1000) / SECOND;
                carry(self.days, (seconds + 30) / 60 * 60 * SECOND)
            }
            _ => carry(self.days, round(self.ticks, kind.fraction())),
        };
        if !(0..=LAST_DAY).contains(&days) {
            return None;
        }
        Some(match kind {
            SqlType::Date => SqlValue::Date(days),
            // A time that rounds up to midnight stays on its day: 00:00.
            SqlType::Time { scale } => SqlValue::Time(round(ticks, *scale) % DAY),
            SqlType::DateTime if days < 639_905 => return None,
            SqlType::SmallDateTime if !(DAY_1900..DAY_1900 + 65_536).contains(&days) => return None,
            SqlType::DateTimeOffset { .. } => {
                let offset = self.offset.unwrap_or(0);
                let (days, ticks) = shift(days, ticks, -i64::from(offset));
                if !(0..=LAST_DAY).contains(&days) {
                    return None;
                }
                SqlValue::DateTimeOffset { days, ticks, offset }
            }
            _ => SqlValue::DateTime { days, ticks },
        })
    }
}

/// Reads the literals that the server takes: ISO 8601, `yyyymmdd`, `m/d/y`, `Mon d yyyy`, times with AM
/// and PM, offsets. `None`: no date or time.
pub(crate) fn parse(text: &str) -> Option<Moment> {
    let text = text.trim();
    let mut moment = Moment { days: DAY_1900, ticks: 0, offset: None };
    if text.is_empty() {
        return Some(moment);
    }
    let (text, offset) = split_offset(text)?;
    moment.offset = offset;
    let joined = match text.find('T') {
        Some(at) if text[..at].ends_with(|c: char| c.is_ascii_digit()) => text.replacen('T', " ", 1),
        _ => text.to_owned(),
    };
    let (date, time) = match joined.find(':') {
        None => (joined.trim(), ""),
        Some(colon) => match joined[..colon].trim_end().rfind(' ') {
            Some(blank) => (joined[..blank].trim(), joined[blank..].trim()),
            None => ("", joined.trim()),
        },
    };
    if !date.is_empty() {
        moment.days = parse_date(date)?;
    }
    if !time.is_empty() {
        moment.ticks = parse_time(time)?;
    }
    Some(moment)
}

fn split_offset(text: &str) -> Option<(&str, Option<i16>)> {
    if let Some(rest) = text.strip_suffix('Z') {
        return Some((rest.trim_end(), Some(0)));
    }
    let Some(colon) = text.rfind(':') else { return Some((text, None)) };
    let Some(sign) = text[..colon].rfind(['+', '-']) else { return Some((text, None)) };
    if !text[..sign].contains(':') {
        return Some((text, None));
    }
    let hours: i16 = text[sign + 1..colon].trim().parse().ok()?;
    let minutes: i16 = text[colon + 1..].trim().parse().ok()?;
    if hours > 14 || minutes > 59 || hours * 60 + minutes > 840 {
        return None;
    }
    let offset = hours * 60 + minutes;
    Some((text[..sign].trim_end(), Some(if text.as_bytes()[sign] == b'-' { -offset } else { offset })))
}

fn parse_date(text: &str) -> Option<i32> {
    if text.chars().all(|c| c.is_ascii_digit()) {
        return match text.len() {
            8 => days_of(text[..4].parse().ok()?, text[4..6].parse().ok()?, text[6..].parse().ok()?),
            6 => days_of(century(text[..2].parse().ok()?), text[2..4].parse().ok()?, text[4..].parse().ok()?),
            4 => days_of(text.parse().ok()?, 1, 1),
            _ => None,
        };
    }
    let parts: Vec<&str> = text.split(['-', '/', '.', ' ', ',']).filter(|p| !p.is_empty()).collect();
    let [a, b, c] = parts[..] else { return None };
    if let Some(month) = month_named(a) {
        return days_of(year(c)?, month, b.parse().ok()?);
    }
    if let Some(month) = month_named(b) {
        return days_of(year(c)?, month, a.parse().ok()?);
    }
    if a.len() == 4 {
        return days_of(a.parse().ok()?, b.parse().ok()?, c.parse().ok()?);
    }
    days_of(year(c)?, a.parse().ok()?, b.parse().ok()?)
}

fn month_named(text: &str) -> Option<u32> {
    let start = text.get(..3)?;
    MONTHS.iter().position(|m| m.eq_ignore_ascii_case(start)).map(|i| i as u32 + 1)
}

fn year(text: &str) -> Option<i32> {
    let year: i32 = text.parse().ok()?;
    Some(if text.len() <= 2 { century(year) } else { year })
}

/// Two digits: up to 49 they are of this century ("two digit year cutoff").
fn century(year: i32) -> i32 {
    if year < 50 { 2000 + year } else { 1900 + year }
}

fn parse_time(text: &str) -> Option<Ticks> {
    let upper = text.to_uppercase();
    let (clock, half) = match (upper.strip_suffix("AM"), upper.strip_suffix("PM")) {
        (Some(clock), _) => (clock.trim(), Some(0)),
        (_, Some(clock)) => (clock.trim(), Some(12)),
        _ => (upper.trim(), None),
    };
    let mut parts = clock.split(':');
    let mut hours: u64 = parts.next()?.trim().parse().ok()?;
    let minutes: u64 = parts.next().unwrap_or("0").parse().ok()?;
    let (seconds, fraction) = match parts.next() {
        None => (0, 0),
        Some(text) => {
            let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
            if fraction.len() > 9 || !fraction.chars().all(|c| c.is_ascii_digit()) {
                return None;
            }
            let nanos: u64 = format!("{fraction:0<9}").parse().ok()?;
            (seconds.parse::<u64>().ok()?, (nanos + 50) / 100)
        }
    };
    if let Some(half) = half {
        if hours == 0 || hours > 12 {
            return None;
        }
        hours = hours % 12 + half;
    }
    (parts.next().is_none() && hours < 24 && minutes < 60 && seconds < 60)
        .then_some((hours * 3600 + minutes * 60 + seconds) * SECOND + fraction)
}

/// Text of a temporal value of type `kind` in a style of `CONVERT`; `None`: no such style.
pub(crate) fn format(value: &SqlValue, kind: &SqlType, style: i64) -> Option<String> {
    let moment = Moment::of(value)?;
    let (y, m, d) = civil(moment.days);
    let dated = !matches!(kind, SqlType::Time { .. });
    let timed = !matches!(kind, SqlType::Date);
    let fraction = |mark: char| fraction_text(moment.ticks, kind.fraction(), mark);
    let clock = clock_text(moment.ticks);
    let milliseconds = |mark: char| fraction_text(moment.ticks, kind.fraction().min(3), mark);
    let join = |date: String, time: String| match (dated, timed) {
        (true, true) => format!("{date} {time}"),
        (true, false) => date,
        _ => time,
    };
    let iso_date = format!("{y:04}-{m:02}-{d:02}");
    let offset = moment.offset.map(offset_text);
    let with_offset = |text: String| offset.as_ref().map_or(text.clone(), |o| format!("{text} {o}"));
    // The default of the older types is style 0, of the others the ISO form with all digits.
    let default = match kind {
        SqlType::DateTime | SqlType::SmallDateTime => 0,
        _ => 121,
    };
    let style = if style == -1 { default } else { style };
    Some(match style {
        0 | 100 | 9 | 109 | 130 => {
            let hour = moment.ticks / (3600 * SECOND);
            let minute = moment.ticks / (60 * SECOND) % 60;
            let twelve = if hour.is_multiple_of(12) { 12 } else { hour % 12 };
            let half = if hour < 12 { "AM" } else { "PM" };
            let time = if matches!(style, 0 | 100) {
                format!("{twelve:>2}:{minute:02}{half}")
            } else {
                format!("{twelve:>2}:{}{}{half}", &clock[3..], fraction(':'))
            };
            join(format!("{} {d:>2} {y:04}", MONTHS[m as usize - 1]), time)
        }
        1 => format!("{m:02}/{d:02}/{:02}", y % 100),
        101 => format!("{m:02}/{d:02}/{y:04}"),
        2 => format!("{:02}.{m:02}.{d:02}", y % 100),
        102 => format!("{y:04}.{m:02}.{d:02}"),
        3 => format!("{d:02}/{m:02}/{:02}", y % 100),
        103 => format!("{d:02}/{m:02}/{y:04}"),
        4 => format!("{d:02}.{m:02}.{:02}", y % 100),
        104 => format!("{d:02}.{m:02}.{y:04}"),
        5 => format!("{d:02}-{m:02}-{:02}", y % 100),
        105 => format!("{d:02}-{m:02}-{y:04}"),
        106 => format!("{d:02} {} {y:04}", MONTHS[m as usize - 1]),
        107 => format!("{} {d:02}, {y:04}", MONTHS[m as usize - 1]),
        8 | 24 | 108 => clock,
        10 => format!("{m:02}-{d:02}-{:02}", y % 100),
        110 => format!("{m:02}-{d:02}-{y:04}"),
        11 => format!("{:02}/{m:02}/{d:02}", y % 100),
        111 => format!("{y:04}/{m:02}/{d:02}"),
        12 => format!("{:02}{m:02}{d:02}", y % 100),
        112 => format!("{y:04}{m:02}{d:02}"),
        13 | 113 => join(format!("{d:02} {} {y:04}", MONTHS[m as usize - 1]), format!("{clock}{}", fraction(':'))),
        14 | 114 => format!("{clock}{}", milliseconds(':')),
        20 | 120 => with_offset(join(iso_date, clock)),
        21 | 25 | 121 => with_offset(join(iso_date, format!("{clock}{}", fraction('.')))),
        23 => iso_date,
        126 | 127 => {
            let time = format!(
                "{clock}{}",
                if moment.ticks.is_multiple_of(SECOND) && *kind == SqlType::DateTime {
                    String::new()
                } else {
                    fraction('.')
                }
            );
            let text = match (dated, timed) {
                (true, true) => format!("{iso_date}T{time}"),
                (true, false) => iso_date,
                _ => time,
            };
            match (moment.offset, style) {
                (Some(_), 127) => {
                    return Moment::of(&at_utc(value)?)
                        .and_then(|_| format(&at_utc(value)?, kind, 126))
                        .map(|t| t.replace("+00:00", "Z"));
                }
                (Some(o), _) => format!("{text}{}", offset_text(o)),
                (None, 127) if timed && dated => format!("{text}Z"),
                _ => text,
            }
        }
        _ => return None,
    })
}

fn at_utc(value: &SqlValue) -> Option<SqlValue> {
    match *value {
        SqlValue::DateTimeOffset { days, ticks, .. } => Some(SqlValue::DateTimeOffset { days, ticks, offset: 0 }),
        _ => None,
    }
}

fn clock_text(ticks: Ticks) -> String {
    let seconds = ticks / SECOND;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn fraction_text(ticks: Ticks, digits: u8, mark: char) -> String {
    if digits == 0 {
        return String::new();
    }
    let all = format!("{:07}", ticks % SECOND);
    format!("{mark}{}", &all[..usize::from(digits)])
}

fn offset_text(offset: i16) -> String {
    let sign = if offset < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", offset.abs() / 60, offset.abs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_the_same() {
        for (date, days) in [
            ((1, 1, 1), 0),
            ((1900, 1, 1), DAY_1900),
            ((1970, 1, 1), DAY_1970),
            ((9999, 12, 31), LAST_DAY),
            ((1753, 1, 1), 639_905),
        ] {
            assert_eq!(days_of(date.0, date.1, date.2), Some(days), "{date:?}");
            assert_eq!(civil(days), date);
        }
        assert_eq!(days_of(2023, 2, 29), None);
    }

    #[test]
    fn literals_are_read_and_printed() {
        let kind = SqlType::DateTime2 { scale: 7 };
        for (text, printed) in [
            ("2018-07-13T11:23:45.34", "2018-07-13 11:23:45.3400000"),
            ("20180713", "2018-07-13 00:00:00.0000000"),
            ("7/13/2018 1:05 PM", "2018-07-13 13:05:00.0000000"),
            ("Jul 13 2018 11:23AM", "2018-07-13 11:23:00.0000000"),
            ("10:11:12", "1900-01-01 10:11:12.0000000"),
        ] {
            let value = parse(text).and_then(|m| m.into_value(&kind)).unwrap();
            assert_eq!(format(&value, &kind, 121).unwrap(), printed, "{text}");
        }
        assert_eq!(parse("2018-13-01"), None);
        assert_eq!(parse("yesterday"), None);
    }

    #[test]
    fn datetime_holds_threehundredths() {
        let value = parse("2018-07-13 13:23:45.785").and_then(|m| m.into_value(&SqlType::DateTime)).unwrap();
        assert_eq!(format(&value, &SqlType::DateTime, 121).unwrap(), "2018-07-13 13:23:45.787");
        let value = parse("2018-07-13 14:23:45").and_then(|m| m.into_value(&SqlType::SmallDateTime)).unwrap();
        assert_eq!(format(&value, &SqlType::SmallDateTime, 120).unwrap(), "2018-07-13 14:24:00");
    }

    #[test]
    fn offsets_are_kept() {
        let kind = SqlType::DateTimeOffset { scale: 3 };
        let value = parse("2018-07-13 12:23:45.456 +11:00").and_then(|m| m.into_value(&kind)).unwrap();
        assert_eq!(format(&value, &kind, -1).unwrap(), "2018-07-13 12:23:45.456 +11:00");
        assert_eq!(format(&value, &kind, 127).unwrap(), "2018-07-13T01:23:45.456Z");
    }
}
