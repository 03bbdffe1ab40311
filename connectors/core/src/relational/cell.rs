//! A value of a row, whatever database it is from.

use bytes::Bytes;

use super::moment::{Date, TimeOfDay, Timestamp, ZonedTimestamp};
use crate::record::Text;
use crate::transform::decimal::parse;

/// A number with a fixed point: `unscaled` times ten to the power of minus `scale`. Never through a double.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    pub unscaled: i128,
    pub scale: i16,
}

impl Decimal {
    pub const fn new(unscaled: i128, scale: i16) -> Self {
        Self { unscaled, scale }
    }

    /// From digits, which may have a sign, a point and an exponent. `None`: it is no number, or has more digits
    /// than 128 bits hold.
    pub fn parse(text: &str) -> Option<Self> {
        let (unscaled, scale) = parse(text)?;
        Some(Self { unscaled, scale: i16::try_from(scale).ok()? })
    }

    /// All digits of the scale, and never an exponent.
    pub fn plain_text(self) -> String {
        let sign = if self.unscaled < 0 { "-" } else { "" };
        let digits = self.unscaled.unsigned_abs().to_string();
        match usize::try_from(self.scale) {
            Ok(0) => format!("{sign}{digits}"),
            Ok(scale) => {
                let digits = format!("{digits:0>width$}", width = scale + 1);
                let (whole, fraction) = digits.split_at(digits.len() - scale);
                format!("{sign}{whole}.{fraction}")
            }
            Err(_) if self.unscaled == 0 => "0".to_owned(),
            Err(_) => format!("{sign}{digits}{}", "0".repeat(self.scale.unsigned_abs().into())),
        }
    }

    /// The nearest double; beyond the largest, infinity.
    pub fn nearest_double(self) -> f64 {
        let text = format!("{}e{}", self.unscaled, -i32::from(self.scale));
        // The text is always a number.
        text.parse().unwrap_or(f64::NAN)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Null,
    /// There is a value, but the log does not hold it.
    Unavailable,
    Bool(bool),
    Int(i64),
    Float32(f32),
    Float64(f64),
    Decimal(Decimal),
    Date(Date),
    Time(TimeOfDay),
    Timestamp(Timestamp),
    ZonedTimestamp(ZonedTimestamp),
    Text(Text),
    Bytes(Bytes),
}

impl Cell {
    pub fn text(text: impl Into<Text>) -> Self {
        Self::Text(text.into())
    }

    /// What it is, for messages: values are not told.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Unavailable => "an unavailable value",
            Self::Bool(_) => "a truth value",
            Self::Int(_) => "an integer",
            Self::Float32(_) | Self::Float64(_) => "a number with a floating point",
            Self::Decimal(_) => "a number with a fixed point",
            Self::Date(_) => "a date",
            Self::Time(_) => "a time",
            Self::Timestamp(_) => "a timestamp",
            Self::ZonedTimestamp(_) => "a timestamp with an offset",
            Self::Text(_) => "a text",
            Self::Bytes(_) => "bytes",
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn decimals_from_texts() {
        for (text, unscaled, scale) in [
            ("100.12345", 10_012_345, 5),
            ("-5", -5, 0),
            ("3147483648.", 3_147_483_648, 0),
            ("1e3", 1, -3),
            ("-.50", -50, 2),
        ] {
            assert_eq!(Decimal::parse(text), Some(Decimal::new(unscaled, scale)), "{text}");
        }
        for text in ["", "-", "1,5", "0x1", "getdate()", &"9".repeat(40), "1e-99999"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    #[test]
    fn sql_08_decimals_as_plain_text_and_doubles() {
        for (unscaled, scale, text, double) in [
            (-1780, 2, "-17.80", -17.8),
            (-123, 4, "-0.0123", -0.0123),
            (-123_400, 4, "-12.3400", -12.34),
            (-50, 4, "-0.0050", -0.005),
            (0, 4, "0.0000", 0.0),
            (0, -3, "0", 0.0),
            (5, -3, "5000", 5000.0),
            (1, 10, "0.0000000001", 1e-10),
            (10i128.pow(38) - 1, 0, "99999999999999999999999999999999999999", 1e38),
            (i128::MIN, 0, "-170141183460469231731687303715884105728", -1.7014118346046923e38),
        ] {
            let decimal = Decimal::new(unscaled, scale);
            assert_eq!(decimal.plain_text(), text);
            assert_eq!(decimal.nearest_double(), double);
        }
        assert_eq!(Decimal::new(1, i16::MIN).nearest_double(), f64::INFINITY);
        assert_eq!(Decimal::new(1, i16::MAX).nearest_double(), 0.0);
    }
}
