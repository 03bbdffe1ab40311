//! Dates and times of Connect's logical types as text, always in UTC.
//!
//! It does not read text, and knows no time zone. Patterns that a user gives are read elsewhere
//! (`transform`).

use std::io::Write;

pub(crate) const MILLIS_PER_DAY: i64 = 86_400_000;
const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Year, month (1..=12), day of a day count from 1970-01-01; proleptic Gregorian.
pub(crate) fn civil(days: i64) -> (i64, usize, i64) {
    // Count from 0000-03-01, so that the leap day is the last of its year.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month as usize, day)
}

/// Day count from 1970-01-01 of a date; the other way round than [`civil`].
pub(crate) fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = (month + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Hour, minute, second, millisecond.
pub(crate) fn clock(millis_of_day: i64) -> (i64, i64, i64, i64) {
    let seconds = millis_of_day / 1_000;
    (seconds / 3_600, seconds / 60 % 60, seconds % 60, millis_of_day % 1_000)
}

/// `yyyy-MM-dd`.
pub(crate) fn date(days: i64, out: &mut Vec<u8>) {
    let (year, month, day) = civil(days);
    // Writing into a Vec cannot fail.
    let _ = write!(out, "{year:04}-{month:02}-{day:02}");
}

/// `HH:mm:ss.SSSZ`.
pub(crate) fn time(millis: i64, out: &mut Vec<u8>) {
    let (hour, minute, second, milli) = clock(millis.rem_euclid(MILLIS_PER_DAY));
    let _ = write!(out, "{hour:02}:{minute:02}:{second:02}.{milli:03}Z");
}

/// `yyyy-MM-ddTHH:mm:ss.SSSZ`.
pub(crate) fn timestamp(millis: i64, out: &mut Vec<u8>) {
    date(millis.div_euclid(MILLIS_PER_DAY), out);
    out.push(b'T');
    time(millis, out);
}

/// The form that Connect gives to a date, time or timestamp in a header. It follows from the number alone:
/// before the second of January 1970 a time of day, at midnight a date, else both.
pub(crate) fn header_date(millis: i64, out: &mut Vec<u8>) {
    if millis < MILLIS_PER_DAY {
        time(millis, out);
    } else if millis % MILLIS_PER_DAY == 0 {
        date(millis / MILLIS_PER_DAY, out);
    } else {
        timestamp(millis, out);
    }
}

/// `Thu Jan 01 00:00:00 UTC 1970`, as `java.util.Date.toString` writes it.
pub(crate) fn java_date(millis: i64, out: &mut Vec<u8>) {
    let days = millis.div_euclid(MILLIS_PER_DAY);
    let (year, month, day) = civil(days);
    let (hour, minute, second, _) = clock(millis.rem_euclid(MILLIS_PER_DAY));
    let weekday = WEEKDAYS[(days + 4).rem_euclid(7) as usize];
    let month = MONTHS[month - 1];
    let _ = write!(out, "{weekday} {month} {day:02} {hour:02}:{minute:02}:{second:02} UTC {year}");
}

/// [`java_date`] of a whole day.
pub(crate) fn java_day(days: i64, out: &mut Vec<u8>) {
    java_date(days * MILLIS_PER_DAY, out);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn text(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn known_days() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (19_675, "2023-11-14"),
            (2_932_896, "9999-12-31"),
            (-719_162, "0001-01-01"),
        ] {
            assert_eq!(text(|out| date(days, out)), expected);
        }
    }

    #[test]
    fn known_instants() {
        assert_eq!(text(|out| timestamp(1_700_000_000_123, out)), "2023-11-14T22:13:20.123Z");
        assert_eq!(text(|out| timestamp(-1, out)), "1969-12-31T23:59:59.999Z");
        assert_eq!(text(|out| time(86_399_999, out)), "23:59:59.999Z");
        assert_eq!(text(|out| java_date(0, out)), "Thu Jan 01 00:00:00 UTC 1970");
        assert_eq!(text(|out| java_date(1_700_000_000_123, out)), "Tue Nov 14 22:13:20 UTC 2023");
        assert_eq!(text(|out| java_day(-1, out)), "Wed Dec 31 00:00:00 UTC 1969");
    }

    #[test]
    fn the_number_chooses_the_form_in_a_header() {
        for (millis, expected) in [
            (0, "00:00:00.000Z"),
            (-1, "23:59:59.999Z"),
            (-86_400_000, "00:00:00.000Z"),
            (86_399_999, "23:59:59.999Z"),
            (86_400_000, "1970-01-02"),
            (1_704_067_200_000, "2024-01-01"),
            (1_704_067_200_001, "2024-01-01T00:00:00.001Z"),
        ] {
            assert_eq!(text(|out| header_date(millis, out)), expected);
        }
    }

    #[test]
    fn consecutive_days_are_consecutive_dates() {
        let mut last = civil(-800_000);
        for days in -799_999..800_000 {
            let next = civil(days);
            assert_eq!(days_of(next.0, next.1 as i64, next.2), days);
            let same_month = next == (last.0, last.1, last.2 + 1);
            let next_month = next == (last.0, last.1 + 1, 1) && last.2 >= 28;
            let next_year = next == (last.0 + 1, 1, 1) && (last.1, last.2) == (12, 31);
            assert!(same_month || next_month || next_year, "{last:?} {next:?}");
            last = next;
        }
    }
}
