//! Decimal128 as its canonical text: all digits of the value, an exponent where the scale is negative
//! or the number very small.

const EXPONENT_BIAS: i32 = 6176;
/// Largest coefficient: 34 digits. Encodings above it stand for zero.
const LARGEST: u128 = 10_u128.pow(34) - 1;

/// Appends the text of the 16 little-endian bytes of a decimal128.
pub(super) fn push(bytes: &[u8; 16], out: &mut Vec<u8>) {
    let bits = u128::from_le_bytes(*bytes);
    let high = (bits >> 64) as u64;
    if high >> 58 & 0x1F == 0x1F {
        out.extend_from_slice(b"NaN");
        return;
    }
    if high >> 63 == 1 {
        out.push(b'-');
    }
    if high >> 58 & 0x1F == 0x1E {
        out.extend_from_slice(b"Infinity");
        return;
    }
    let (exponent, coefficient) = if high >> 61 & 3 == 3 {
        (high >> 47 & 0x3FFF, 0)
    } else {
        let coefficient = bits & ((1 << 113) - 1);
        (high >> 49 & 0x3FFF, if coefficient > LARGEST { 0 } else { coefficient })
    };
    number(coefficient, exponent as i32 - EXPONENT_BIAS, out);
}

fn number(coefficient: u128, exponent: i32, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(coefficient).as_bytes();
    let adjusted = exponent + digits.len() as i32 - 1;
    if exponent > 0 || adjusted < -6 {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.push(b'E');
        if adjusted >= 0 {
            out.push(b'+');
        }
        out.extend_from_slice(itoa::Buffer::new().format(adjusted).as_bytes());
        return;
    }
    let fraction = exponent.unsigned_abs() as usize;
    let whole = digits.len().saturating_sub(fraction);
    if whole == 0 {
        out.push(b'0');
    }
    out.extend_from_slice(&digits[..whole]);
    if fraction > 0 {
        out.push(b'.');
        out.resize(out.len() + fraction.saturating_sub(digits.len()), b'0');
        out.extend_from_slice(&digits[whole..]);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::str::FromStr;

    use bson::Decimal128;
    use proptest::prelude::*;

    use super::*;

    fn text(bytes: &[u8; 16]) -> String {
        let mut out = Vec::new();
        push(bytes, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn canonical_texts() {
        for canonical in [
            "0",
            "-0",
            "1",
            "-1",
            "123.4500",
            "1E+3",
            "1.5E+10",
            "1E-7",
            "1.23E-8",
            "0.000001",
            "0.00",
            "0E+3",
            "0E-7",
            "NaN",
            "Infinity",
            "-Infinity",
            "9999999999999999999999999999999999",
            "9.999999999999999999999999999999999E+6144",
            "1E-6176",
            "12345678901234567.89012345678901234",
        ] {
            assert_eq!(text(&Decimal128::from_str(canonical).unwrap().bytes()), canonical);
        }
    }

    #[test]
    fn encodings_of_too_large_coefficients_are_zero() {
        let mut bytes = [0xFF; 16];
        bytes[15] = 0x31;
        assert_eq!(
            text(&bytes),
            text(&{
                let mut zero = [0; 16];
                zero[14] = 0xFE;
                zero[15] = 0x31;
                zero
            })
        );
        bytes[15] = 0x6C;
        assert!(text(&bytes).starts_with('0'));
    }

    proptest! {
        #[test]
        fn reads_back_to_the_same_bytes(coefficient in 0..=LARGEST, exponent in 0..12287_u128, negative in any::<bool>()) {
            let bits = coefficient | exponent << 113 | u128::from(negative) << 127;
            let bytes = bits.to_le_bytes();
            prop_assert_eq!(Decimal128::from_str(&text(&bytes)).unwrap().bytes(), bytes);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in any::<[u8; 16]>()) {
            prop_assert!(!text(&bytes).is_empty());
        }
    }
}
