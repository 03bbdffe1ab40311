//! Dates, times of day and timestamps without a zone, and timestamps with an offset, to the nanosecond.
//!
//! The calendar is the proleptic Gregorian one. Texts are those of ISO 8601 as Java writes them: seconds
//! always, and as many digits of a fraction as are needed.

use std::fmt;

use crate::convert::calendar::{civil, days_of};

pub const NANOS_PER_DAY: u64 = 86_400_000_000_000;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Days since 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date(pub i32);

impl Date {
    /// `None`: there is no such day, or it is out of range.
    pub fn new(year: i32, month: u8, day: u8) -> Option<Self> {
        let days = days_of(year.into(), month.into(), day.into());
        let date = Self(i32::try_from(days).ok()?);
        (date.parts() == (year.into(), month, day)).then_some(date)
    }

    /// Year, month and day of the month.
    pub fn parts(self) -> (i64, u8, u8) {
        let (year, month, day) = civil(self.0.into());
        // Both are far below the limits.
        (year, month as u8, day as u8)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.parts();
        match year {
            10_000.. => write!(f, "+{year}-{month:02}-{day:02}"),
            0..10_000 => write!(f, "{year:04}-{month:02}-{day:02}"),
            _ => write!(f, "-{:04}-{month:02}-{day:02}", year.unsigned_abs()),
        }
    }
}

/// Nanoseconds since midnight, less than a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeOfDay(u64);

impl TimeOfDay {
    pub const MIDNIGHT: Self = Self(0);

    /// `None`: a day or more.
    pub const fn from_nanos(nanos: u64) -> Option<Self> {
        if nanos < NANOS_PER_DAY { Some(Self(nanos)) } else { None }
    }
    pub const fn nanos(self) -> u64 {
        self.0
    }
    /// Hour, minute, second, nanosecond.
    pub const fn parts(self) -> (u8, u8, u8, u32) {
        let seconds = self.0 / NANOS_PER_SECOND;
        let nanos = (self.0 % NANOS_PER_SECOND) as u32;
        ((seconds / 3_600) as u8, (seconds / 60 % 60) as u8, (seconds % 60) as u8, nanos)
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hour, minute, second, nanos) = self.parts();
        write!(f, "{hour:02}:{minute:02}:{second:02}")?;
        if nanos == 0 {
            return Ok(());
        }
        let digits = format!("{nanos:09}");
        write!(f, ".{}", digits.trim_end_matches('0'))
    }
}

/// A date and a time of day, without a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    pub date: Date,
    pub time: TimeOfDay,
}

impl Timestamp {
    pub const EPOCH: Self = Self { date: Date(0), time: TimeOfDay::MIDNIGHT };

    /// Nanoseconds since the epoch, if the zone were UTC.
    pub fn nanos(self) -> i128 {
        i128::from(self.date.0) * i128::from(NANOS_PER_DAY) + i128::from(self.time.0)
    }
    /// The same in milliseconds; what is finer is cut off.
    pub fn millis(self) -> i64 {
        i64::from(self.date.0) * 86_400_000 + (self.time.0 / 1_000_000) as i64
    }
    /// The same in microseconds; what is finer is cut off. `None`: 64 bits do not hold it, as beyond the years
    /// -290308 and 294247.
    pub fn micros(self) -> Option<i64> {
        i64::try_from(self.nanos().div_euclid(1_000)).ok()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}T{}", self.date, self.time)
    }
}

/// A timestamp as clocks show it where they are so many seconds ahead of UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZonedTimestamp {
    pub local: Timestamp,
    pub offset_seconds: i32,
}

/// The offset as text: `Z`, `+05:30`, `-01:00:30`.
fn offset_text(seconds: i32) -> String {
    if seconds == 0 {
        return "Z".to_owned();
    }
    let sign = if seconds < 0 { '-' } else { '+' };
    let all = seconds.unsigned_abs();
    let (hours, minutes, seconds) = (all / 3_600, all / 60 % 60, all % 60);
    match seconds {
        0 => format!("{sign}{hours:02}:{minutes:02}"),
        seconds => format!("{sign}{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

impl fmt::Display for ZonedTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.local, offset_text(self.offset_seconds))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn dates() {
        for ((year, month, day), days, text) in [
            ((1970, 1, 1), 0, "1970-01-01"),
            ((2018, 7, 13), 17_725, "2018-07-13"),
            ((1, 1, 1), -719_162, "0001-01-01"),
            ((9999, 12, 31), 2_932_896, "9999-12-31"),
            ((10_000, 1, 1), 2_932_897, "+10000-01-01"),
            ((-1, 1, 1), -719_893, "-0001-01-01"),
        ] {
            let date = Date::new(year, month, day).unwrap();
            assert_eq!((date.0, date.to_string().as_str()), (days, text));
        }
        for (year, month, day) in [(2023, 2, 29), (2023, 13, 1), (2023, 0, 1), (2023, 1, 0), (i32::MAX, 1, 1)] {
            assert_eq!(Date::new(year, month, day), None, "{year}-{month}-{day}");
        }
    }

    #[test]
    fn times_have_the_digits_that_they_need() {
        for (nanos, text) in [
            (0, "00:00:00"),
            (14_711_789_000_000, "04:05:11.789"),
            (NANOS_PER_DAY - 1, "23:59:59.999999999"),
            (1, "00:00:00.000000001"),
            (100, "00:00:00.0000001"),
        ] {
            assert_eq!(TimeOfDay::from_nanos(nanos).unwrap().to_string(), text);
        }
        assert_eq!(TimeOfDay::from_nanos(NANOS_PER_DAY), None);
    }

    #[test]
    fn t_54_offsets_are_kept() {
        let local = Timestamp {
            date: Date::new(2018, 7, 13).unwrap(),
            time: TimeOfDay::from_nanos(44_625_456_000_000).unwrap(),
        };
        for (offset_seconds, text) in [
            (39_600, "2018-07-13T12:23:45.456+11:00"),
            (0, "2018-07-13T12:23:45.456Z"),
            (-12_600, "2018-07-13T12:23:45.456-03:30"),
            (50_400, "2018-07-13T12:23:45.456+14:00"),
            (-1, "2018-07-13T12:23:45.456-00:00:01"),
        ] {
            assert_eq!(ZonedTimestamp { local, offset_seconds }.to_string(), text);
        }
    }

    #[test]
    fn microseconds_end_at_64_bits() {
        let at = |days, nanos| Timestamp { date: Date(days), time: TimeOfDay::from_nanos(nanos).unwrap() };
        assert_eq!(at(106_751_991, 14_454_775_807_999).micros(), Some(i64::MAX));
        assert_eq!(at(106_751_991, 14_454_775_808_000).micros(), None);
        assert_eq!(at(-106_751_992, 71_945_224_192_000).micros(), Some(i64::MIN));
        assert_eq!(at(-106_751_992, 71_945_224_191_999).micros(), None);
        assert_eq!(at(i32::MIN, 0).millis(), i64::from(i32::MIN) * 86_400_000);
    }

    #[test]
    fn sql_07_instants_before_the_epoch_are_cut_downwards() {
        let at = |year, month, day, nanos| Timestamp {
            date: Date::new(year, month, day).unwrap(),
            time: TimeOfDay::from_nanos(nanos).unwrap(),
        };
        assert_eq!(at(1899, 12, 30, 0).millis(), -2_209_161_600_000);
        assert_eq!(at(1753, 1, 1, 0).millis(), -6_847_804_800_000);
        let last = at(1969, 12, 31, NANOS_PER_DAY - 1);
        assert_eq!((last.millis(), last.micros(), last.nanos()), (-1, Some(-1), -1));
    }
}
