//! Dates and times by a pattern in the language of Java's `SimpleDateFormat`, in UTC and English.
//!
//! Known letters: `y M d D H h K k m s S a E Z X z`, texts between quotes. Any other letter is an error
//! of the pattern. What follows the part of a text that the pattern describes is not looked at, as in
//! Java; a number out of its range (month 13) is an error, where Java would go on counting.
//!
//! It knows no time zones but UTC and offsets.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::convert::calendar::{MILLIS_PER_DAY, civil, clock, days_of};

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
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
/// Letters that a short name of a day or a month has.
const SHORT: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(Box<str>),
    /// A pattern letter and how often it stands there.
    Field(u8, usize),
}

#[derive(Debug, Clone)]
pub(super) struct DateFormat {
    pieces: Vec<Piece>,
    /// First year that two digits can mean; the hundredth behind it is the last.
    century: i64,
}

/// Fields of a text, as far as they were there.
#[derive(Default)]
struct Parts {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: Option<i64>,
    half_day_hour: Option<i64>,
    afternoon: bool,
    minute: i64,
    second: i64,
    milli: i64,
    offset_minutes: i64,
}

impl DateFormat {
    /// # Errors
    /// Why the pattern cannot be used.
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64;
        Ok(Self { pieces: pieces(pattern)?, century: civil(now.div_euclid(MILLIS_PER_DAY)).0 - 80 })
    }

    /// Milliseconds since the epoch as text.
    pub(super) fn write(&self, millis: i64) -> String {
        let mut out = Vec::new();
        self.push(millis, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Appends milliseconds since the epoch as text.
    pub(super) fn push(&self, millis: i64, out: &mut Vec<u8>) {
        let days = millis.div_euclid(MILLIS_PER_DAY);
        let (year, month, day) = civil(days);
        let (hour, minute, second, milli) = clock(millis.rem_euclid(MILLIS_PER_DAY));
        for piece in &self.pieces {
            let (letter, count) = match piece {
                Piece::Text(text) => {
                    out.extend_from_slice(text.as_bytes());
                    continue;
                }
                Piece::Field(letter, count) => (*letter, *count),
            };
            let number = match letter {
                b'y' if count == 2 => year.rem_euclid(100),
                b'y' => year,
                b'M' if count > 2 => {
                    push_name(MONTHS[month - 1], count, out);
                    continue;
                }
                b'M' => month as i64,
                b'd' => day,
                b'D' => days - days_of(year, 1, 1) + 1,
                b'H' => hour,
                b'k' => {
                    if hour == 0 {
                        24
                    } else {
                        hour
                    }
                }
                b'K' => hour % 12,
                b'h' => {
                    if hour % 12 == 0 {
                        12
                    } else {
                        hour % 12
                    }
                }
                b'm' => minute,
                b's' => second,
                b'S' => milli,
                b'a' => {
                    out.extend_from_slice(if hour < 12 { b"AM" } else { b"PM" });
                    continue;
                }
                b'E' => {
                    push_name(WEEKDAYS[(days + 4).rem_euclid(7) as usize], count, out);
                    continue;
                }
                b'Z' => {
                    out.extend_from_slice(b"+0000");
                    continue;
                }
                b'X' => {
                    out.push(b'Z');
                    continue;
                }
                _ => {
                    out.extend_from_slice(if count < 4 { b"UTC".as_slice() } else { b"Coordinated Universal Time" });
                    continue;
                }
            };
            // Writing into a Vec cannot fail.
            let _ = write!(out, "{number:0count$}");
        }
    }

    /// The instant that `text` states, in milliseconds since the epoch; `None` if it does not fit the
    /// pattern. What it does not state is taken from the first instant of 1970.
    pub(super) fn read(&self, text: &str) -> Option<i64> {
        let mut parts = Parts::default();
        let mut rest = text;
        for (at, piece) in self.pieces.iter().enumerate() {
            match piece {
                Piece::Text(expected) => rest = rest.strip_prefix(&**expected)?,
                Piece::Field(letter, count) => {
                    let next = self.pieces.get(at + 1);
                    let abuts = matches!(next, Some(Piece::Field(next, n)) if is_number(*next, *n));
                    rest = self.read_field(*letter, *count, abuts, rest.trim_start_matches([' ', '\t']), &mut parts)?;
                }
            }
        }
        parts.instant()
    }

    /// Reads one field; gives what follows it.
    fn read_field<'a>(
        &self,
        letter: u8,
        count: usize,
        abuts: bool,
        text: &'a str,
        parts: &mut Parts,
    ) -> Option<&'a str> {
        match letter {
            b'M' if count > 2 => {
                let (month, rest) = read_name(&MONTHS, text)?;
                parts.month = Some(month as i64 + 1);
                return Some(rest);
            }
            b'E' => return read_name(&WEEKDAYS, text).map(|(_, rest)| rest),
            b'a' => {
                let half = text.get(..2)?;
                parts.afternoon = half.eq_ignore_ascii_case("PM");
                return (parts.afternoon || half.eq_ignore_ascii_case("AM")).then(|| &text[2..]);
            }
            b'Z' | b'X' | b'z' => {
                let (offset, rest) = read_zone(text)?;
                parts.offset_minutes = offset;
                return Some(rest);
            }
            _ => {}
        }
        let (number, digits, rest) = read_number(text, if abuts { Some(count) } else { None })?;
        let within = |min: i64, max: i64| (min..=max).contains(&number).then_some(number);
        match letter {
            b'y' if count <= 2 && digits == 2 => {
                let year = self.century - self.century.rem_euclid(100) + number;
                parts.year = Some(if year < self.century { year + 100 } else { year });
            }
            b'y' => parts.year = Some(within(0, 999_999)?),
            b'M' => parts.month = Some(within(1, 12)?),
            b'd' => parts.day = Some(within(1, 31)?),
            b'D' => parts.day_of_year = Some(within(1, 366)?),
            b'H' => parts.hour = Some(within(0, 23)?),
            b'k' => parts.hour = Some(within(1, 24)? % 24),
            b'K' => parts.half_day_hour = Some(within(0, 11)?),
            b'h' => parts.half_day_hour = Some(within(1, 12)? % 12),
            b'm' => parts.minute = within(0, 59)?,
            b's' => parts.second = within(0, 59)?,
            _ => parts.milli = within(0, 999)?,
        }
        Some(rest)
    }
}

impl Parts {
    fn instant(&self) -> Option<i64> {
        let year = self.year.unwrap_or(1970);
        let days = match (self.day_of_year, self.month, self.day) {
            (Some(day), None, None) => {
                let days = days_of(year, 1, 1) + day - 1;
                (days < days_of(year + 1, 1, 1)).then_some(days)?
            }
            (_, month, day) => {
                let (month, day) = (month.unwrap_or(1), day.unwrap_or(1));
                let days = days_of(year, month, day);
                // The 30th of February would be a day of March.
                (civil(days).1 as i64 == month).then_some(days)?
            }
        };
        let half_day = self.half_day_hour.map(|hour| hour + if self.afternoon { 12 } else { 0 });
        let hour = self.hour.or(half_day).unwrap_or(0);
        let minutes = hour * 60 + self.minute - self.offset_minutes;
        Some(days * MILLIS_PER_DAY + minutes * 60_000 + self.second * 1_000 + self.milli)
    }
}

/// Whether a field is written in digits.
fn is_number(letter: u8, count: usize) -> bool {
    match letter {
        b'M' => count <= 2,
        letter => !matches!(letter, b'a' | b'E' | b'Z' | b'X' | b'z'),
    }
}

/// Names longer than this are no date.
const LONGEST: usize = 64;

fn pieces(pattern: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' if chars.next_if_eq(&'\'').is_some() => plain.push('\''),
            '\'' => loop {
                match chars.next() {
                    Some('\'') if chars.next_if_eq(&'\'').is_some() => plain.push('\''),
                    Some('\'') => break,
                    Some(c) => plain.push(c),
                    None => return Err("Unterminated quote".to_owned()),
                }
            },
            c if c.is_ascii_alphabetic() => {
                let mut count = 1;
                while chars.next_if_eq(&c).is_some() {
                    count += 1;
                }
                match c {
                    'X' if count > 3 => return Err(format!("invalid ISO 8601 format: length={count}")),
                    'y' | 'M' | 'd' | 'D' | 'H' | 'h' | 'K' | 'k' | 'm' | 's' | 'S' | 'a' | 'E' | 'Z' | 'X' | 'z'
                        if count <= LONGEST => {}
                    c => return Err(format!("the pattern letter '{c}' is not supported here")),
                }
                if !plain.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut plain).into()));
                }
                pieces.push(Piece::Field(c as u8, count));
            }
            c => plain.push(c),
        }
    }
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain.into()));
    }
    Ok(pieces)
}

fn push_name(name: &str, count: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(if count > SHORT { name } else { &name[..SHORT] }.as_bytes());
}

/// Number, count of its digits, and what follows. With `width` no more digits than that are taken.
fn read_number(text: &str, width: Option<usize>) -> Option<(i64, usize, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count().min(width.unwrap_or(usize::MAX));
    let number = text[..digits].parse().ok()?;
    Some((number, digits, &text[digits..]))
}

/// A name, long or short, in any case.
fn read_name<'a>(names: &[&str], text: &'a str) -> Option<(usize, &'a str)> {
    let starts = |name: &str| text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    names.iter().enumerate().find_map(|(at, name)| {
        if starts(name) {
            return Some((at, &text[name.len()..]));
        }
        starts(&name[..SHORT]).then(|| (at, &text[SHORT..]))
    })
}

/// Minutes east of UTC: `Z`, `UTC`, `GMT`, `+01`, `+0100`, `+01:00`, `GMT+01:00`.
fn read_zone(text: &str) -> Option<(i64, &str)> {
    let (named, rest) = match ["UTC", "GMT", "Z"].iter().find_map(|name| text.strip_prefix(name)) {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let sign = match rest.as_bytes().first() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return named.then_some((0, rest)),
    };
    let (hours, rest) = two_digits(&rest[1..])?;
    let colon = rest.strip_prefix(':');
    let (minutes, rest) = match (two_digits(colon.unwrap_or(rest)), colon) {
        (Some(found), _) => found,
        (None, Some(_)) => return None,
        (None, None) => (0, rest),
    };
    (hours <= 23 && minutes <= 59).then_some((sign * (hours * 60 + minutes), rest))
}

fn two_digits(text: &str) -> Option<(i64, &str)> {
    let digits = text.get(..2).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))?;
    Some((digits.parse().ok()?, &text[2..]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use proptest::prelude::*;

    use super::*;

    const INSTANT: i64 = 1_700_000_000_123;

    fn written(pattern: &str) -> String {
        DateFormat::new(pattern).unwrap().write(INSTANT)
    }

    fn read(pattern: &str, text: &str) -> Option<i64> {
        DateFormat::new(pattern).unwrap().read(text)
    }

    #[test]
    fn written_as_java_writes() {
        for (pattern, text) in [
            ("yyyy-MM-dd'T'HH:mm:ss.SSS", "2023-11-14T22:13:20.123"),
            ("yyyyMMdd", "20231114"),
            ("yy/M/d", "23/11/14"),
            ("y", "2023"),
            ("EEE, d MMM yyyy HH:mm:ss Z", "Tue, 14 Nov 2023 22:13:20 +0000"),
            ("EEEE MMMM h a", "Tuesday November 10 PM"),
            ("K k D", "10 22 318"),
            ("HH:mm:ssXXX", "22:13:20Z"),
            ("HH z", "22 UTC"),
            ("h 'o''clock' ''", "10 o'clock '"),
            ("S SSSSSS", "123 000123"),
            ("yyyyy", "02023"),
        ] {
            assert_eq!(written(pattern), text, "{pattern}");
        }
        assert_eq!(DateFormat::new("yyyy-MM-dd HH:mm:ss.SSS").unwrap().write(-1), "1969-12-31 23:59:59.999");
    }

    #[test]
    fn read_as_java_reads() {
        for (pattern, text, instant) in [
            ("yyyy-MM-dd'T'HH:mm:ss.SSS", "2023-11-14T22:13:20.123", INSTANT),
            ("yyyyMMddHHmmssSSS", "20231114221320123", INSTANT),
            ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2023-11-14T23:13:20.123+01:00", INSTANT),
            ("yyyy-MM-dd'T'HH:mm:ss.SSSX", "2023-11-14T22:13:20.123Z", INSTANT),
            ("EEE, d MMM yyyy HH:mm:ss Z", "Tue, 14 Nov 2023 22:13:20 +0000", 1_700_000_000_000),
            ("d MMMM yyyy hh:mm a z", "14 november 2023 10:13 pm GMT", 1_699_999_980_000),
            ("yyyy D", "1971 1", 365 * MILLIS_PER_DAY),
            ("HH:mm", "00:01", 60_000),
            ("yyyy-MM-dd", "1970-1-2", MILLIS_PER_DAY),
            ("yyyy-MM-dd", "1970-01-02T10:00", MILLIS_PER_DAY),
            ("yyyy-MM-dd HH", "1970-01-02   01", MILLIS_PER_DAY + 3_600_000),
            ("yy", "70", 0),
            ("yy", "1971", 365 * MILLIS_PER_DAY),
            ("yyyy k", "1970 24", 0),
        ] {
            assert_eq!(read(pattern, text), Some(instant), "{pattern} {text}");
        }
    }

    #[test]
    fn what_does_not_fit() {
        for (pattern, text) in [
            ("yyyy-MM-dd", "2023-13-01"),
            ("yyyy-MM-dd", "2023-02-29"),
            ("yyyy-MM-dd", "2023/01/01"),
            ("yyyy-MM-dd", ""),
            ("HH:mm", "24:00"),
            ("MMM", "Foo"),
            ("a", "x"),
            ("X", "+1"),
            ("X", "+01:x"),
            ("ss.SSS", "10.123456"),
            ("yyyy D", "1971 366"),
        ] {
            assert_eq!(read(pattern, text), None, "{pattern} {text}");
        }
        for pattern in ["yyyy-ww", "u", "XXXX", "'open", "G"] {
            assert!(DateFormat::new(pattern).is_err(), "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(millis in -62_135_596_800_000i64..253_402_300_800_000) {
            for pattern in ["yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "yyyyMMddHHmmssSSS", "EEEE, d MMMM yyyy hh:mm:ss.SSS a Z"] {
                let format = DateFormat::new(pattern).unwrap();
                prop_assert_eq!(format.read(&format.write(millis)), Some(millis));
            }
        }

        #[test]
        fn any_pattern_and_any_text(pattern in "[yMdHhaEZXzS :'T.-]{0,12}", text in "\\PC{0,20}") {
            if let Ok(format) = DateFormat::new(&pattern) {
                let _ = format.read(&text);
                let _ = format.write(INSTANT);
            }
        }
    }
}
