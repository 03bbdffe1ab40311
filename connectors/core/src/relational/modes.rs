//! How values of certain types are represented: a choice of the user for each.

use thalweg_config::Settings;

/// `decimal.handling.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DecimalMode {
    /// Connect's Decimal; without a fixed scale, `io.debezium.data.VariableScaleDecimal`.
    #[default]
    Precise,
    /// The nearest double.
    Double,
    /// Text without an exponent.
    String,
}

/// `time.precision.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimePrecision {
    /// Milli-, micro- or nanoseconds, as the column has them.
    #[default]
    Adaptive,
    /// The same, but times of day always in microseconds.
    AdaptiveTimeMicroseconds,
    /// Connect's types, in milliseconds.
    Connect,
    /// ISO 8601.
    IsoString,
    Microseconds,
    Nanoseconds,
    /// Structs of the parts.
    Structured,
}

/// `binary.handling.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BinaryMode {
    #[default]
    Bytes,
    Base64,
    Base64UrlSafe,
    Hex,
}

/// Values of the options, in the order in which they are listed.
pub const DECIMAL_MODES: &[&str] = &["precise", "string", "double"];
pub const TIME_PRECISIONS: &[&str] =
    &["adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds", "structured"];
pub const BINARY_MODES: &[&str] = &["bytes", "base64", "base64-url-safe", "hex"];

/// All three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ValueModes {
    pub decimal: DecimalMode,
    pub time: TimePrecision,
    pub binary: BinaryMode,
}

impl ValueModes {
    /// From the canonical texts of the options.
    pub fn from_settings(settings: &Settings) -> Self {
        Self {
            decimal: match settings.text_or_empty("decimal.handling.mode") {
                "double" => DecimalMode::Double,
                "string" => DecimalMode::String,
                _ => DecimalMode::Precise,
            },
            time: match settings.text_or_empty("time.precision.mode") {
                "adaptive_time_microseconds" => TimePrecision::AdaptiveTimeMicroseconds,
                "connect" => TimePrecision::Connect,
                "isostring" => TimePrecision::IsoString,
                "microseconds" => TimePrecision::Microseconds,
                "nanoseconds" => TimePrecision::Nanoseconds,
                "structured" => TimePrecision::Structured,
                _ => TimePrecision::Adaptive,
            },
            binary: match settings.text_or_empty("binary.handling.mode") {
                "base64" => BinaryMode::Base64,
                "base64-url-safe" => BinaryMode::Base64UrlSafe,
                "hex" => BinaryMode::Hex,
                _ => BinaryMode::Bytes,
            },
        }
    }
}
