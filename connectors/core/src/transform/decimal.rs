//! Decimals as Connect holds them (big-endian two's complement of the unscaled number), made from and
//! turned into other numbers. 38 digits are enough for every database's numbers; more are an error.

use bytes::Bytes;

/// Digits of `text` (`-12.50`, `1e3`) times ten to the power of `scale`; `None` if it is no number or
/// needs more digits than the scale and 128 bits have.
pub(super) fn unscaled(text: &str, scale: i32) -> Option<Bytes> {
    let (number, own_scale) = parse(text)?;
    Some(bytes_of(rescale(number, own_scale, scale)?))
}

/// `text` as an integer and the count of its digits behind the point.
pub(crate) fn parse(text: &str) -> Option<(i128, i32)> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (sign, digits) = match mantissa.as_bytes().first()? {
        b'-' => (-1, &mantissa[1..]),
        b'+' => (1, &mantissa[1..]),
        _ => (1, mantissa),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.len() + fraction.len() == 0 {
        return None;
    }
    let mut number = 0i128;
    for digit in whole.bytes().chain(fraction.bytes()) {
        let digit = digit.is_ascii_digit().then(|| i128::from(digit - b'0'))?;
        number = number.checked_mul(10)?.checked_add(digit)?;
    }
    let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    Some((sign * number, scale))
}

/// The same number with another count of digits behind the point, if none is lost.
pub(crate) fn rescale(number: i128, from: i32, to: i32) -> Option<i128> {
    if number == 0 {
        return Some(0);
    }
    let digits = to.checked_sub(from)?;
    let power = 10i128.checked_pow(digits.unsigned_abs())?;
    if digits >= 0 {
        return number.checked_mul(power);
    }
    (number % power == 0).then(|| number / power)
}

/// The whole part, towards zero.
pub(super) fn whole(number: i128, scale: i32) -> Option<i128> {
    let power = 10i128.checked_pow(scale.unsigned_abs());
    if scale >= 0 { Some(power.map_or(0, |power| number / power)) } else { number.checked_mul(power?) }
}

/// The low 64 bits of the whole part, as Java's `BigDecimal.longValue` gives them.
pub(super) fn low_bits(number: i128, scale: i32) -> i64 {
    match whole(number, scale) {
        Some(whole) => whole as i64,
        // More than 128 bits: multiplication keeps the low ones right.
        None => number.wrapping_mul(10i128.wrapping_pow(scale.unsigned_abs())) as i64,
    }
}

/// The nearest double to a number in digits; `NaN` and the like are none.
pub(super) fn double(text: &str) -> Option<f64> {
    let digits = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    if digits { text.parse().ok() } else { None }
}

pub(super) fn number_of(bytes: &[u8]) -> Option<i128> {
    let first = bytes.first()?;
    let sign = if first & 0x80 == 0 { 0 } else { 0xFF };
    let surplus = bytes.len().saturating_sub(16);
    if bytes[..surplus].iter().any(|b| *b != sign) {
        return None;
    }
    let mut wide = [sign; 16];
    let tail = &bytes[surplus..];
    if surplus > 0 && (tail[0] ^ sign) & 0x80 != 0 {
        return None;
    }
    wide[16 - tail.len()..].copy_from_slice(tail);
    Some(i128::from_be_bytes(wide))
}

/// As few bytes as hold the number, as Java writes them.
pub(crate) fn bytes_of(number: i128) -> Bytes {
    let wide = number.to_be_bytes();
    let sign = if number < 0 { 0xFF } else { 0 };
    let mut start = 0;
    while start < 15 && wide[start] == sign && (wide[start + 1] ^ sign) & 0x80 == 0 {
        start += 1;
    }
    Bytes::copy_from_slice(&wide[start..])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts() {
        assert_eq!(unscaled("12.5", 2).unwrap().as_ref(), 1250i16.to_be_bytes());
        assert_eq!(unscaled("-1", 0).unwrap().as_ref(), [0xFF]);
        assert_eq!(unscaled("128", 0).unwrap().as_ref(), [0, 128]);
        assert_eq!(unscaled("1e2", 0).unwrap().as_ref(), [100]);
        assert_eq!(unscaled("1.50", 1).unwrap().as_ref(), [15]);
        for wrong in ["", "-", ".", "x", "1.55", "1e", &"9".repeat(50)] {
            assert_eq!(unscaled(wrong, 1), None, "{wrong}");
        }
        assert_eq!((low_bits(-1999, 2), low_bits(1 << 64, 0), low_bits(1, -64), low_bits(3, 90)), (-19, 0, 0, 0));
        assert_eq!(low_bits(1, -40), 10i64.wrapping_pow(40));
        assert_eq!(
            (double("1.5e3"), double("-.5"), double("nan"), double("+inf")),
            (Some(1500.0), Some(-0.5), None, None)
        );
        assert_eq!((whole(-1999, 2), whole(5, -2), whole(5, 90)), (Some(-19), Some(500), Some(0)));
    }

    proptest! {
        #[test]
        fn bytes_and_back(number in any::<i128>(), narrow in any::<i16>()) {
            prop_assert_eq!(number_of(&bytes_of(number)), Some(number));
            let narrow = i128::from(narrow);
            prop_assert!(bytes_of(narrow).len() <= 2);
            prop_assert_eq!(number_of(&bytes_of(narrow)), Some(narrow));
            prop_assert_eq!(parse(&narrow.to_string()), Some((narrow, 0)));
        }
    }
}
