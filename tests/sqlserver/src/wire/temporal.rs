//! Bytes of dates and times.
//!
//! [MS-TDS] "Date/Times". What a type cannot hold is rounded, half up, as a conversion to it does.

use super::bytes::{Malformed, Reader};
use super::scalar::Unfit;
use crate::value::{SqlValue, Ticks};

const TICKS_PER_DAY: u64 = 864_000_000_000;
const LAST_DAY: i32 = 3_652_058;
/// 1900-01-01, the day 0 of `datetime` and `smalldatetime`, counted from 0001-01-01.
const DAY_1900: i32 = 693_595;
/// 1753-01-01, the first day of `datetime`.
const DAY_1753: i32 = 639_905;
/// `datetime` counts three-hundredths of a second.
const UNITS_PER_DAY: u64 = 300 * 86_400;
const TICKS_PER_MINUTE: u64 = 600_000_000;
const MINUTES_PER_DAY: u64 = 1_440;
/// From 29.999 seconds on, `smalldatetime` rounds up to the next minute.
const TICKS_ROUNDED_UP: u64 = 300_010_000;

/// Bytes of a time of day with so many digits of its second.
pub(crate) fn time_bytes(scale: u8) -> usize {
    match scale {
        0..=2 => 3,
        3..=4 => 4,
        _ => 5,
    }
}

fn ticks_per_unit(scale: u8) -> u64 {
    10_u64.pow(u32::from(7_u8.saturating_sub(scale)))
}

fn in_range(days: i32) -> Result<i32, Unfit> {
    if (0..=LAST_DAY).contains(&days) { Ok(days) } else { Err(Unfit::new("is not between the years 1 and 9999")) }
}

fn checked(ticks: Ticks) -> Result<Ticks, Unfit> {
    if ticks < TICKS_PER_DAY { Ok(ticks) } else { Err(Unfit::new("has more ticks than a day")) }
}

pub(crate) fn put_date(days: i32, out: &mut Vec<u8>) -> Result<(), Unfit> {
    out.extend_from_slice(&in_range(days)?.to_le_bytes()[..3]);
    Ok(())
}

/// Units of 10^-scale seconds; says whether rounding led into the next day.
fn put_rounded(ticks: Ticks, scale: u8, out: &mut Vec<u8>) -> Result<bool, Unfit> {
    let per_unit = ticks_per_unit(scale);
    let units = (checked(ticks)? + per_unit / 2) / per_unit;
    let next_day = units == TICKS_PER_DAY / per_unit;
    let units = if next_day { 0 } else { units };
    out.extend_from_slice(&units.to_le_bytes()[..time_bytes(scale)]);
    Ok(next_day)
}

pub(crate) fn put_time(ticks: Ticks, scale: u8, out: &mut Vec<u8>) -> Result<(), Unfit> {
    put_rounded(ticks, scale, out)?;
    Ok(())
}

pub(crate) fn put_datetime2(days: i32, ticks: Ticks, scale: u8, out: &mut Vec<u8>) -> Result<(), Unfit> {
    let next_day = put_rounded(ticks, scale, out)?;
    put_date(days.saturating_add(next_day.into()), out)
}

pub(crate) fn put_datetimeoffset(
    days: i32,
    ticks: Ticks,
    offset: i16,
    scale: u8,
    out: &mut Vec<u8>,
) -> Result<(), Unfit> {
    if !(-840..=840).contains(&offset) {
        return Err(Unfit::new("has an offset of more than 14 hours"));
    }
    put_datetime2(days, ticks, scale, out)?;
    out.extend_from_slice(&offset.to_le_bytes());
    Ok(())
}

pub(crate) fn put_datetime(days: i32, ticks: Ticks, out: &mut Vec<u8>) -> Result<(), Unfit> {
    if !(DAY_1753..=LAST_DAY).contains(&days) {
        return Err(Unfit::new("is not between the years 1753 and 9999"));
    }
    // A unit is 100,000/3 ticks.
    let units = (checked(ticks)? * 3 + 50_000) / 100_000;
    let (days, units) = if units == UNITS_PER_DAY { (days + 1, 0) } else { (days, units) };
    out.extend_from_slice(&(days - DAY_1900).to_le_bytes());
    out.extend_from_slice(&units.to_le_bytes()[..4]);
    Ok(())
}

pub(crate) fn put_smalldatetime(days: i32, ticks: Ticks, out: &mut Vec<u8>) -> Result<(), Unfit> {
    let minutes = (checked(ticks)? + TICKS_ROUNDED_UP) / TICKS_PER_MINUTE;
    let (days, minutes) = if minutes == MINUTES_PER_DAY { (days.saturating_add(1), 0) } else { (days, minutes) };
    let days = days
        .checked_sub(DAY_1900)
        .and_then(|d| u16::try_from(d).ok())
        .ok_or_else(|| Unfit::new("is not between 1900-01-01 and 2079-06-06"))?;
    out.extend_from_slice(&days.to_le_bytes());
    out.extend_from_slice(&minutes.to_le_bytes()[..2]);
    Ok(())
}

/// A number in so many little-endian bytes, at most eight.
fn number(reader: &mut Reader<'_>, bytes: usize) -> Result<u64, Malformed> {
    Ok(reader.take(bytes)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

pub(crate) fn read_date(reader: &mut Reader<'_>) -> Result<i32, Malformed> {
    let days = i32::try_from(number(reader, 3)?).unwrap_or(i32::MAX);
    in_range(days).map_err(|_| Malformed::stream(format!("Day {days} is no date.")))
}

fn valid(ticks: Option<u64>) -> Result<Ticks, Malformed> {
    ticks.filter(|t| *t < TICKS_PER_DAY).ok_or_else(|| Malformed::stream("A time of day is 24 hours or more."))
}

pub(crate) fn read_time(reader: &mut Reader<'_>, scale: u8) -> Result<Ticks, Malformed> {
    valid(number(reader, time_bytes(scale))?.checked_mul(ticks_per_unit(scale)))
}

pub(crate) fn read_datetime(reader: &mut Reader<'_>) -> Result<SqlValue, Malformed> {
    let (days, units) = (i32::from_le_bytes(reader.array()?), u64::from(reader.u32()?));
    let ticks = valid(Some((units * 100_000 + 1) / 3))?;
    let days = days.checked_add(DAY_1900).filter(|d| (DAY_1753..=LAST_DAY).contains(d));
    let days = days.ok_or_else(|| Malformed::stream("A datetime is not between the years 1753 and 9999."))?;
    Ok(SqlValue::DateTime { days, ticks })
}

pub(crate) fn read_smalldatetime(reader: &mut Reader<'_>) -> Result<SqlValue, Malformed> {
    let (days, minutes) = (i32::from(reader.u16()?), u64::from(reader.u16()?));
    Ok(SqlValue::DateTime { days: days + DAY_1900, ticks: valid(Some(minutes * TICKS_PER_MINUTE))? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(put: impl FnOnce(&mut Vec<u8>) -> Result<(), Unfit>) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out).unwrap();
        out
    }

    /// 2008-02-29, the day 733,100 from 0001-01-01.
    const DAY: i32 = 733_100;
    const DAY_BYTES: [u8; 3] = [0xac, 0x2f, 0x0b];

    #[test]
    fn a_time_of_day_has_three_to_five_bytes_by_its_scale() {
        // 12:34:56.1234567
        let ticks = ((12 * 60 + 34) * 60 + 56) * 10_000_000 + 1_234_567;
        assert_eq!(bytes(|o| put_time(ticks, 0, o)), 45_296_u32.to_le_bytes()[..3]);
        assert_eq!(bytes(|o| put_time(ticks, 3, o)), 45_296_123_u32.to_le_bytes());
        assert_eq!(bytes(|o| put_time(ticks, 7, o)), 452_961_234_567_u64.to_le_bytes()[..5]);
        assert_eq!(bytes(|o| put_datetime2(DAY, ticks, 3, o))[4..], DAY_BYTES);
    }

    #[test]
    fn rounding_leads_into_the_next_day() {
        let last_tick = TICKS_PER_DAY - 1;
        assert_eq!(bytes(|o| put_time(last_tick, 3, o)), [0; 4]);
        let next_day = bytes(|o| put_datetime2(DAY, last_tick, 0, o));
        assert_eq!(next_day, [0, 0, 0, DAY_BYTES[0] + 1, DAY_BYTES[1], DAY_BYTES[2]]);
        assert_eq!(bytes(|o| put_datetime(DAY_1900, last_tick, o)), [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(|o| put_smalldatetime(DAY_1900, last_tick, o)), [1, 0, 0, 0]);
        assert!(put_datetime2(LAST_DAY, last_tick, 0, &mut Vec::new()).is_err(), "there is no year 10000");
    }

    #[test]
    fn a_datetime_is_rounded_to_three_hundredths_of_a_second() {
        // .001 s rounds to .000, .002 s to .003, which is one unit.
        assert_eq!(bytes(|o| put_datetime(DAY_1753, 10_000, o)), [0x46, 0x2e, 0xff, 0xff, 0, 0, 0, 0]);
        assert_eq!(bytes(|o| put_datetime(DAY_1900, 20_000, o))[4..], [1, 0, 0, 0]);
        assert!(put_datetime(DAY_1753 - 1, 0, &mut Vec::new()).is_err());
        // A minute and 29.998 s, then 29.999 s.
        assert_eq!(bytes(|o| put_smalldatetime(DAY_1900, 600_000_000 + 299_980_000, o)), [0, 0, 1, 0]);
        assert_eq!(bytes(|o| put_smalldatetime(DAY_1900, 600_000_000 + 299_990_000, o)), [0, 0, 2, 0]);
    }

    #[test]
    fn every_unit_of_a_datetime_comes_back() {
        for units in (0..UNITS_PER_DAY).step_by(997).chain([UNITS_PER_DAY - 1]) {
            let mut sent = vec![0; 4];
            sent.extend_from_slice(&u32::try_from(units).unwrap().to_le_bytes());
            let SqlValue::DateTime { days, ticks } = read_datetime(&mut Reader::new(&sent)).unwrap() else {
                panic!("a datetime is a datetime");
            };
            assert_eq!(bytes(|o| put_datetime(days, ticks, o)), sent);
        }
    }

    #[test]
    fn times_beyond_a_day_are_refused() {
        assert!(read_time(&mut Reader::new(&86_400_u32.to_le_bytes()[..3]), 0).is_err());
        assert!(read_time(&mut Reader::new(&[0xff; 5]), 7).is_err());
        assert!(read_date(&mut Reader::new(&[0xff; 3])).is_err());
    }
}
