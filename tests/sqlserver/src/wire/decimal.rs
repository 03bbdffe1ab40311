//! Bytes of `decimal` and `numeric`.
//!
//! [MS-TDS] "Decimal/Numeric": a sign, 1 for positive, then the magnitude in four to sixteen bytes.

use super::bytes::Malformed;
use super::scalar::Unfit;

/// Bytes of the sign and the magnitude of a precision from 1 to 38.
pub(crate) fn size(precision: u8) -> u8 {
    match precision {
        0..=9 => 5,
        10..=19 => 9,
        20..=28 => 13,
        _ => 17,
    }
}

/// Units of another scale; lost digits are rounded away from zero at a half, as SQL Server does.
pub(crate) fn rescale(units: i128, from: u8, to: u8) -> Result<i128, Unfit> {
    let power = |digits: u8| 10_i128.checked_pow(digits.into()).ok_or(OVERFLOW);
    if to >= from {
        return units.checked_mul(power(to - from)?).ok_or(OVERFLOW);
    }
    let divisor = power(from - to)?;
    let (whole, rest) = (units / divisor, units % divisor);
    Ok(if rest.abs() >= divisor / 2 { whole + units.signum() } else { whole })
}

const OVERFLOW: Unfit = Unfit("has more digits than the precision of its type");

pub(crate) fn put(units: i128, precision: u8, out: &mut Vec<u8>) -> Result<(), Unfit> {
    let limit = 10_u128.checked_pow(precision.into()).ok_or(OVERFLOW)?;
    if units.unsigned_abs() >= limit {
        return Err(OVERFLOW);
    }
    out.push(u8::from(units >= 0));
    out.extend_from_slice(&units.unsigned_abs().to_le_bytes()[..usize::from(size(precision)) - 1]);
    Ok(())
}

pub(crate) fn read(bytes: &[u8]) -> Result<i128, Malformed> {
    let invalid = || Malformed::stream(format!("A decimal number has {} bytes.", bytes.len()));
    let (sign, magnitude) = bytes.split_first().ok_or_else(invalid)?;
    if magnitude.is_empty() || magnitude.len() > 16 {
        return Err(invalid());
    }
    let magnitude = magnitude.iter().rev().fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    let units =
        i128::try_from(magnitude).map_err(|_| Malformed::stream("A decimal number has more than 38 digits."))?;
    Ok(if *sign == 0 { -units } else { units })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(units: i128, precision: u8) -> Vec<u8> {
        let mut out = Vec::new();
        put(units, precision, &mut out).unwrap();
        out
    }

    #[test]
    fn the_precision_says_how_many_bytes() {
        assert_eq!(bytes(-123, 9), [0, 123, 0, 0, 0]);
        assert_eq!(bytes(123, 10), [1, 123, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(1, 20).len(), 13);
        let largest = 10_i128.pow(38) - 1;
        let sent = bytes(-largest, 38);
        assert_eq!(sent.len(), 17);
        assert_eq!(read(&sent), Ok(-largest));
        assert_eq!(put(1000, 3, &mut Vec::new()), Err(OVERFLOW));
    }

    #[test]
    fn another_scale_rounds_away_from_zero() {
        assert_eq!(rescale(15, 1, 3), Ok(1500));
        assert_eq!(rescale(125, 2, 1), Ok(13));
        assert_eq!(rescale(-125, 2, 1), Ok(-13));
        assert_eq!(rescale(-124, 2, 1), Ok(-12));
        assert_eq!(rescale(10_i128.pow(37), 0, 38), Err(OVERFLOW));
    }

    #[test]
    fn a_number_beyond_38_digits_is_refused() {
        assert!(read(&[1; 1]).is_err());
        assert!(read(&[255; 17]).is_err());
        assert!(read(&[1; 18]).is_err());
    }
}
