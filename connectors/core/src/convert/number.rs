//! Numbers as Java prints them.
//!
//! Floating point follows `Double.toString` and `Float.toString` of JDK 19 and later: the shortest
//! digits that read back to the same value (two digits where one would do and two are nearer),
//! plain from 10^-3 up to 10^7, scientific elsewhere, always with a fraction digit. Decimals follow
//! `BigDecimal.toString`.

use std::fmt::Write;

/// How a positive exponent is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExponentSign {
    /// `1.0E10`: Java, hence Kafka Connect's JSON.
    Bare,
    /// `1.0E+10`: MongoDB's extended JSON.
    Plus,
}

/// `NaN`, `Infinity` and `-Infinity` are written as these words, without quotes.
pub fn java_double(value: f64, sign: ExponentSign, out: &mut Vec<u8>) {
    let size = value.abs();
    let mut buffer = ryu::Buffer::new();
    if value == 0.0 || (1e-3..1e7).contains(&size) {
        // Here both write the same.
        out.extend_from_slice(buffer.format_finite(value).as_bytes());
    } else if !value.is_finite() {
        not_finite(value, out);
    } else if size < f64::MIN_POSITIVE {
        subnormal(buffer.format_finite(value), value, sign, out);
    } else {
        scientific(buffer.format_finite(value), sign, out);
    }
}

/// See [`java_double`].
pub fn java_float(value: f32, sign: ExponentSign, out: &mut Vec<u8>) {
    let size = value.abs();
    let mut buffer = ryu::Buffer::new();
    if value == 0.0 || (1e-3..1e7).contains(&size) {
        out.extend_from_slice(buffer.format_finite(value).as_bytes());
    } else if !value.is_finite() {
        not_finite(f64::from(value), out);
    } else if size < f32::MIN_POSITIVE {
        subnormal(buffer.format_finite(value), f64::from(value), sign, out);
    } else {
        scientific(buffer.format_finite(value), sign, out);
    }
}

fn not_finite(value: f64, out: &mut Vec<u8>) {
    out.extend_from_slice(match value {
        v if v.is_nan() => b"NaN",
        v if v > 0.0 => b"Infinity",
        _ => b"-Infinity",
    });
}

/// Below the normal range one digit may stand for a wide interval; Java then prints the nearest
/// number of two digits (`4.9E-324`, not `5.0E-324`).
fn subnormal(shortest: &str, value: f64, sign: ExponentSign, out: &mut Vec<u8>) {
    if shortest.contains('.') {
        return scientific(shortest, sign, out);
    }
    let mut two_digits = String::new();
    // Writing into a String cannot fail.
    let _ = write!(two_digits, "{value:.1e}");
    scientific(&two_digits, sign, out);
}

/// Lays out the digits of `text` (`-1250000000.0`, `0.00012`, `1e-7`, `1.25e300`) with an exponent.
fn scientific(text: &str, sign: ExponentSign, out: &mut Vec<u8>) {
    let (text, negative) = text.strip_prefix('-').map_or((text, false), |rest| (rest, true));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if negative {
        out.push(b'-');
    }
    let leading = whole.bytes().chain(fraction.bytes()).take_while(|d| *d == b'0').count();
    let mut digits = whole.bytes().chain(fraction.bytes()).skip(leading);
    out.push(digits.next().unwrap_or(b'0'));
    out.push(b'.');
    let fraction_start = out.len();
    out.extend(digits);
    while out.len() > fraction_start + 1 && out.last() == Some(&b'0') {
        out.pop();
    }
    if out.len() == fraction_start {
        out.push(b'0');
    }
    let shift = whole.len() as i32 - leading as i32 - 1;
    push_exponent(exponent.parse().unwrap_or(0) + shift, sign, out);
}

fn push_exponent(exponent: i32, sign: ExponentSign, out: &mut Vec<u8>) {
    out.push(b'E');
    if exponent >= 0 && sign == ExponentSign::Plus {
        out.push(b'+');
    }
    out.extend_from_slice(itoa::Buffer::new().format(exponent).as_bytes());
}

/// Largest decimal taken, in bytes: far beyond any database type, small enough for the quadratic
/// change of base.
const DECIMAL_LIMIT: usize = 2 * 1024;

/// A Connect Decimal (big-endian two's complement of the unscaled value) as `BigDecimal.toString`
/// writes it: all digits of the scale, an exponent only below 10^-6 or for a negative scale.
pub fn decimal(unscaled: &[u8], scale: i32, out: &mut Vec<u8>) -> Result<(), String> {
    if unscaled.is_empty() || unscaled.len() > DECIMAL_LIMIT {
        return Err(format!("a decimal of {} bytes cannot be written as a number", unscaled.len()));
    }
    if unscaled[0] & 0x80 != 0 {
        out.push(b'-');
    }
    let digits = magnitude_digits(unscaled);
    let adjusted = digits.len() as i64 - 1 - i64::from(scale);
    if scale >= 0 && adjusted >= -6 {
        let scale = scale as usize;
        let whole = digits.len().saturating_sub(scale);
        if whole == 0 {
            out.push(b'0');
        }
        out.extend_from_slice(&digits[..whole]);
        if scale > 0 {
            out.push(b'.');
            out.resize(out.len() + scale.saturating_sub(digits.len()), b'0');
            out.extend_from_slice(&digits[whole..]);
        }
        return Ok(());
    }
    out.push(digits[0]);
    if digits.len() > 1 {
        out.push(b'.');
        out.extend_from_slice(&digits[1..]);
    }
    if adjusted != 0 {
        out.push(b'E');
        if adjusted > 0 {
            out.push(b'+');
        }
        out.extend_from_slice(itoa::Buffer::new().format(adjusted).as_bytes());
    }
    Ok(())
}

/// Decimal digits of the absolute value, at least one, without leading zeros.
fn magnitude_digits(unscaled: &[u8]) -> Vec<u8> {
    let negative = unscaled[0] & 0x80 != 0;
    if unscaled.len() <= 16 {
        let mut bytes = [if negative { 0xFF } else { 0 }; 16];
        bytes[16 - unscaled.len()..].copy_from_slice(unscaled);
        return itoa::Buffer::new().format(i128::from_be_bytes(bytes).unsigned_abs()).as_bytes().to_vec();
    }
    // Little-endian limbs of the magnitude.
    let mut limbs: Vec<u32> = unscaled
        .rchunks(4)
        .map(|chunk| {
            let start = if negative { u32::MAX } else { 0 };
            chunk.iter().fold(start, |limb, byte| limb << 8 | u32::from(*byte))
        })
        .collect();
    if negative {
        let mut carry = true;
        for limb in &mut limbs {
            let (sum, overflow) = (!*limb).overflowing_add(u32::from(carry));
            *limb = sum;
            carry = overflow;
        }
        if carry {
            limbs.push(1);
        }
    }
    let mut groups = Vec::new();
    while limbs.iter().any(|limb| *limb != 0) {
        let mut rest = 0u64;
        for limb in limbs.iter_mut().rev() {
            let value = rest << 32 | u64::from(*limb);
            *limb = (value / 1_000_000_000) as u32;
            rest = value % 1_000_000_000;
        }
        groups.push(rest as u32);
    }
    let mut digits = String::new();
    for (at, group) in groups.iter().rev().enumerate() {
        let _ = if at == 0 { write!(digits, "{group}") } else { write!(digits, "{group:09}") };
    }
    if digits.is_empty() {
        digits.push('0');
    }
    digits.into_bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use proptest::prelude::*;

    use super::*;

    fn double(value: f64) -> String {
        let mut out = Vec::new();
        java_double(value, ExponentSign::Bare, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn plus(value: f64) -> String {
        let mut out = Vec::new();
        java_double(value, ExponentSign::Plus, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn float(value: f32) -> String {
        let mut out = Vec::new();
        java_float(value, ExponentSign::Bare, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn decimal_text(unscaled: &[u8], scale: i32) -> String {
        let mut out = Vec::new();
        decimal(unscaled, scale, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn doubles_as_java_prints_them() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (100.0, "100.0"),
            (0.001, "0.001"),
            (0.0009999, "9.999E-4"),
            (1e-4, "1.0E-4"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (12_345_678.9, "1.23456789E7"),
            (1e10, "1.0E10"),
            (-1e10, "-1.0E10"),
            (1.2e15, "1.2E15"),
            (1e16, "1.0E16"),
            (1e23, "1.0E23"),
            (2e23, "2.0E23"),
            (1e300, "1.0E300"),
            (f64::MAX, "1.7976931348623157E308"),
            (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
            (f64::from_bits(1), "4.9E-324"),
            (f64::from_bits(2), "9.9E-324"),
            (f64::from_bits(3), "1.5E-323"),
            (f64::from_bits(4), "2.0E-323"),
            (-f64::from_bits(1), "-4.9E-324"),
            (9_007_199_254_740_993.0, "9.007199254740992E15"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(double(value), text);
        }
    }

    #[test]
    fn exponents_with_a_plus() {
        for (value, text) in [
            (1e10, "1.0E+10"),
            (1e7, "1.0E+7"),
            (9.999e-4, "9.999E-4"),
            (1e300, "1.0E+300"),
            (f64::MAX, "1.7976931348623157E+308"),
            (f64::from_bits(1), "4.9E-324"),
            (9_999_999.0, "9999999.0"),
        ] {
            assert_eq!(plus(value), text);
        }
    }

    #[test]
    fn floats_as_java_prints_them() {
        for (value, text) in [
            (0.1, "0.1"),
            (1.0, "1.0"),
            (16_777_216.0, "1.6777216E7"),
            (3.4028235e38, "3.4028235E38"),
            (f32::from_bits(1), "1.4E-45"),
            (f32::from_bits(2), "2.8E-45"),
            (f32::MIN_POSITIVE, "1.1754944E-38"),
            (1e10, "1.0E10"),
            (f32::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(float(value), text);
        }
    }

    /// CNV-02: the exact scale, minus sign, and Java's exponents.
    #[test]
    fn cnv_02_decimals_as_numbers() {
        for (unscaled, scale, text) in [
            (123_400i128, 4, "12.3400"),
            (0, 4, "0.0000"),
            (-100, 4, "-0.0100"),
            (10_000_000, 4, "1000.0000"),
            (100, 2, "1.00"),
            (-1, 0, "-1"),
            (0, 0, "0"),
            (1, 6, "0.000001"),
            (1, 7, "1E-7"),
            (123, 9, "1.23E-7"),
            (0, 7, "0E-7"),
            (5, -3, "5E+3"),
            (50, -3, "5.0E+4"),
            (-12, 1, "-1.2"),
            (i128::MIN, 0, "-170141183460469231731687303715884105728"),
        ] {
            assert_eq!(decimal_text(&unscaled.to_be_bytes(), scale), text);
        }
        assert_eq!(decimal_text(&[100], 2), "1.00");
        assert_eq!(decimal_text(&[0x80], 0), "-128");
    }

    #[test]
    fn decimals_beyond_128_bits() {
        let mut two_to_the_136 = vec![0u8; 18];
        two_to_the_136[0] = 1;
        assert_eq!(decimal_text(&two_to_the_136, 0), "87112285931760246646623899502532662132736");
        let minus_two_to_the_143 = {
            let mut bytes = vec![0u8; 18];
            bytes[0] = 0x80;
            bytes
        };
        assert_eq!(decimal_text(&minus_two_to_the_143, 0), "-11150372599265311570767859136324180752990208");
        assert_eq!(decimal_text(&[0xFF; 20], 1), "-0.1");
        assert_eq!(decimal_text(&[0; 20], 1), "0.0");
        assert!(decimal(&[], 0, &mut Vec::new()).is_err());
        assert!(decimal(&[1; 3_000], 0, &mut Vec::new()).is_err());
    }

    proptest! {
        #[test]
        fn every_double_reads_back(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let text = double(value);
            prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), bits);
            let (mantissa, _) = text.split_once('E').unwrap_or((&text, ""));
            prop_assert!(mantissa.contains('.') && !mantissa.ends_with('.'));
        }

        #[test]
        fn every_float_reads_back(bits in any::<u32>()) {
            let value = f32::from_bits(bits);
            prop_assume!(value.is_finite());
            prop_assert_eq!(float(value).parse::<f32>().unwrap().to_bits(), bits);
        }

        /// Sign extension never changes the number, whichever path it takes.
        #[test]
        fn wide_and_narrow_decimals_agree(value in any::<i128>(), scale in 0i32..30) {
            let narrow = value.to_be_bytes();
            let mut wide = vec![if value < 0 { 0xFF } else { 0 }; 7];
            wide.extend_from_slice(&narrow);
            prop_assert_eq!(decimal_text(&wide, scale), decimal_text(&narrow, scale));
        }
    }
}
