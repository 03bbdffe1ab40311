//! Dates of the years 1970 to 9999 as ISO 8601 text in UTC, without a calendar library.

/// Whether a date in ms since the epoch has a text form; others stay numbers.
pub(super) fn has_text(millis: i64) -> bool {
    (0..=253_402_300_799_999).contains(&millis)
}

/// Appends `2026-07-03T17:59:45.729Z`; the fraction only if it is not zero, without zeros at its end.
/// `millis` must be in the range of [`has_text`].
pub(super) fn push(millis: i64, out: &mut Vec<u8>) {
    let (days, time) = (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000));
    let (year, month, day) = civil(days);
    let mut text = *b"0000-00-00T00:00:00";
    put(&mut text[0..4], year);
    put(&mut text[5..7], month);
    put(&mut text[8..10], day);
    put(&mut text[11..13], time / 3_600_000);
    put(&mut text[14..16], time / 60_000 % 60);
    put(&mut text[17..19], time / 1000 % 60);
    out.extend_from_slice(&text);
    let fraction = time % 1000;
    if fraction > 0 {
        let mut digits = *b".000";
        put(&mut digits[1..], fraction);
        let end = digits.iter().rposition(|d| *d != b'0').unwrap_or(0) + 1;
        out.extend_from_slice(&digits[..end]);
    }
    out.push(b'Z');
}

fn put(digits: &mut [u8], mut number: i64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Year, month and day of a day number counted from 1970-01-01; the calendar repeats every 400 years,
/// counted from a first of March so that leap days come last.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn text(millis: i64) -> String {
        let mut out = Vec::new();
        push(millis, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn fractions_lose_their_zeros() {
        for (millis, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_783_101_585_729, "2026-07-03T17:59:45.729Z"),
            (1_783_101_585_700, "2026-07-03T17:59:45.7Z"),
            (1_783_101_585_120, "2026-07-03T17:59:45.12Z"),
            (1_783_101_585_005, "2026-07-03T17:59:45.005Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(text(millis), expected);
        }
        assert!(!has_text(-1) && !has_text(253_402_300_800_000));
    }

    proptest! {
        #[test]
        fn agrees_with_the_driver(millis in 0..=253_402_300_799_999_i64) {
            let theirs = bson::DateTime::parse_rfc3339_str(text(millis)).unwrap();
            prop_assert_eq!(theirs.timestamp_millis(), millis);
        }
    }
}
