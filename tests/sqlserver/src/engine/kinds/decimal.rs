//! Decimal numbers: units of 10^-scale, at most 38 digits.
//!
//! Precision and scale of results follow "Precision, scale, and length (Transact-SQL)".

use crate::engine::fault::SqlError;
use crate::types::SqlType;

pub(crate) fn power(n: u8) -> i128 {
    10_i128.pow(u32::from(n.min(38)))
}

/// The same number at another scale; half goes away from zero. `None`: more digits than 38.
pub(crate) fn rescale(units: i128, from: u8, to: u8) -> Option<i128> {
    if to >= from {
        units.checked_mul(power(to - from))
    } else {
        let by = power(from - to);
        let (whole, rest) = (units / by, units % by);
        let away = i128::from(rest.unsigned_abs() * 2 >= by.unsigned_abs()) * units.signum();
        Some(whole + away)
    }
}

pub(crate) fn fits(units: i128, precision: u8) -> bool {
    units.unsigned_abs() < 10_u128.pow(u32::from(precision.min(38)))
}

/// As the server prints it.
pub(crate) fn format(units: i128, scale: u8) -> String {
    let digits = units.unsigned_abs().to_string();
    let scale = usize::from(scale);
    let sign = if units < 0 { "-" } else { "" };
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

/// `12`, `-1.50`, `+.5`, `3.`; surrounding blanks are skipped. The result is units and scale.
pub(crate) fn parse(text: &str) -> Option<(i128, u8)> {
    let text = text.trim();
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.len() > 38 {
        return None;
    }
    let mut units: i128 = 0;
    for c in whole.chars().chain(fraction.chars()) {
        units = units.checked_mul(10)?.checked_add(i128::from(c.to_digit(10)?))?;
    }
    fits(units, 38).then(|| (if negative { -units } else { units }, fraction.len() as u8))
}

/// Result type of an operator over two decimals.
pub(crate) fn result(operator: char, left: (u8, u8), right: (u8, u8)) -> SqlType {
    let ((p1, s1), (p2, s2)) = (left, right);
    let (p1, s1, p2, s2) = (i16::from(p1), i16::from(s1), i16::from(p2), i16::from(s2));
    let (precision, scale) = match operator {
        '*' => (p1 + p2 + 1, s1 + s2),
        '/' => {
            let scale = 6.max(s1 + p2 + 1);
            (p1 - s1 + s2 + scale, scale)
        }
        '%' => {
            let scale = s1.max(s2);
            ((p1 - s1).min(p2 - s2) + scale, scale)
        }
        _ => {
            let scale = s1.max(s2);
            ((p1 - s1).max(p2 - s2) + 1 + scale, scale)
        }
    };
    let (precision, scale) = if precision <= 38 {
        (precision, scale)
    } else if matches!(operator, '*' | '/') {
        let integral = precision - scale;
        let scale = if integral < 32 {
            scale.min(38 - integral)
        } else if scale > 6 {
            6.max(38 - integral)
        } else {
            scale
        };
        (38, scale)
    } else {
        (38, scale.min(38 - (precision - scale).min(38)))
    };
    SqlType::Numeric { precision: precision as u8, scale: scale as u8 }
}

/// `left / right`, both as units and scale, at the scale of the result; digits beyond it are cut.
pub(crate) fn divide(left: (i128, u8), right: (i128, u8), scale: u8) -> Result<i128, SqlError> {
    if right.0 == 0 {
        return Err(SqlError::divide_by_zero());
    }
    let negative = (left.0 < 0) != (right.0 < 0);
    let (numerator, divisor) = (left.0.unsigned_abs(), right.0.unsigned_abs());
    // numerator / 10^s1 / (divisor / 10^s2) * 10^scale, digit by digit.
    let digits = i16::from(scale) + i16::from(right.1) - i16::from(left.1);
    let (mut quotient, mut rest) = (numerator / divisor, numerator % divisor);
    let too_big = || SqlError::overflow("numeric");
    if digits < 0 {
        quotient /= 10_u128.checked_pow(digits.unsigned_abs().into()).ok_or_else(too_big)?;
    }
    for _ in 0..digits.max(0) {
        rest = rest.checked_mul(10).ok_or_else(too_big)?;
        quotient = quotient.checked_mul(10).and_then(|q| q.checked_add(rest / divisor)).ok_or_else(too_big)?;
        rest %= divisor;
    }
    let quotient = i128::try_from(quotient).map_err(|_| too_big())?;
    Ok(if negative { -quotient } else { quotient })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_units_are_the_same_number() {
        for (text, units, scale) in [("6.3230", 63_230, 4), ("-0.05", -5, 2), ("0", 0, 0), ("3.", 3, 0), ("+.5", 5, 1)]
        {
            assert_eq!(parse(text), Some((units, scale)), "{text}");
        }
        assert_eq!(format(-5, 2), "-0.05");
        assert_eq!(parse("1e3"), None);
    }

    #[test]
    fn half_goes_away_from_zero() {
        assert_eq!(rescale(-15, 1, 0), Some(-2));
        assert_eq!(rescale(14, 1, 0), Some(1));
    }

    #[test]
    fn division_has_the_documented_scale() {
        // numeric(3,1) / numeric(2,0): scale max(6, 1 + 2 + 1).
        assert_eq!(result('/', (3, 1), (2, 0)), SqlType::Numeric { precision: 8, scale: 6 });
        assert_eq!(divide((10, 0), (3, 0), 6).unwrap(), 3_333_333);
        assert_eq!(divide((1, 0), (0, 2), 6).unwrap_err().number, 8134);
    }
}
