//! What the values of a column are, and what messages have for them.
//!
//! A connector names the type of each column; schema and value follow from it and from the modes that the user
//! chose. Schemas are required and without default here: both are the column's matter.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use bytes::Bytes;

use super::cell::{Cell, Decimal};
use super::modes::{BinaryMode, DecimalMode, ValueModes};
use super::moment::{Date, TimeOfDay, Timestamp, ZonedTimestamp};
use super::temporal::{self, Unit};
use crate::record::{Schema, Type, Value};
use crate::transform::decimal::{bytes_of, rescale};

/// What a text is, beyond its characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    Plain,
    Json,
    Xml,
    Uuid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    Boolean,
    Int16,
    Int32,
    Int64,
    Float32,
    Float64,
    /// So many digits, and so many of them behind the point.
    Decimal {
        precision: u16,
        scale: i16,
    },
    /// Each value has a scale of its own.
    VariableDecimal,
    Date,
    /// So many digits of a fraction of a second.
    Time {
        fraction: u8,
    },
    Timestamp {
        fraction: u8,
    },
    ZonedTimestamp {
        fraction: u8,
    },
    Text(TextKind),
    Bytes,
}

/// What stands for a value that the log does not hold (`unavailable.value.placeholder`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    text: Arc<str>,
    bytes: Bytes,
}

impl Placeholder {
    /// A text, or bytes as hexadecimal digits behind `hex:`.
    ///
    /// # Errors
    /// The text for the message of the option.
    pub fn new(option: &str) -> Result<Self, String> {
        let Some(digits) = option.strip_prefix("hex:") else {
            return Ok(Self { text: option.into(), bytes: Bytes::copy_from_slice(option.as_bytes()) });
        };
        let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let even = digits.len().is_multiple_of(2) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(pair).collect();
        let bytes = bytes.filter(|_| even).ok_or("pairs of hexadecimal digits are expected behind hex:")?;
        Ok(Self { text: String::from_utf8_lossy(&bytes).into(), bytes: bytes.into() })
    }

    /// Check for the option.
    ///
    /// # Errors
    /// As [`Placeholder::new`].
    pub fn check(option: &str) -> Result<(), String> {
        Self::new(option).map(drop)
    }
}

/// How the values of a column get into messages.
#[derive(Debug, Clone)]
pub struct Conversion {
    pub(super) ty: ValueType,
    modes: ValueModes,
    placeholder: Placeholder,
}

impl Conversion {
    pub const fn new(ty: ValueType, modes: ValueModes, placeholder: Placeholder) -> Self {
        Self { ty, modes, placeholder }
    }

    /// Required, and without default.
    pub fn schema(&self) -> Schema {
        let time = self.modes.time;
        match self.ty {
            ValueType::Boolean => Schema::boolean(),
            ValueType::Int16 => Schema::new(Type::Int16),
            ValueType::Int32 => Schema::int32(),
            ValueType::Int64 => Schema::int64(),
            ValueType::Float32 => Schema::new(Type::Float32),
            ValueType::Float64 => Schema::new(Type::Float64),
            ValueType::Decimal { precision, scale } => match self.modes.decimal {
                DecimalMode::Precise => Schema::bytes()
                    .named("org.apache.kafka.connect.data.Decimal")
                    .versioned(1)
                    .parameter("scale", scale.to_string())
                    .parameter("connect.decimal.precision", precision.to_string()),
                mode => loose_decimal(mode),
            },
            ValueType::VariableDecimal => match self.modes.decimal {
                DecimalMode::Precise => Schema::record([("scale", Schema::int32()), ("value", Schema::bytes())])
                    .named("io.debezium.data.VariableScaleDecimal")
                    .versioned(1),
                mode => loose_decimal(mode),
            },
            ValueType::Date => temporal::date_schema(time),
            ValueType::Time { fraction } => temporal::time_schema(Unit::of_time(time, fraction)),
            ValueType::Timestamp { fraction } => temporal::timestamp_schema(Unit::of_timestamp(time, fraction)),
            ValueType::ZonedTimestamp { .. } => temporal::zoned_schema(time),
            ValueType::Text(kind) => match kind {
                TextKind::Plain => Schema::string(),
                TextKind::Json => semantic_text("Json"),
                TextKind::Xml => semantic_text("Xml"),
                TextKind::Uuid => semantic_text("Uuid"),
            },
            ValueType::Bytes => match self.modes.binary {
                BinaryMode::Bytes => Schema::bytes(),
                BinaryMode::Base64 | BinaryMode::Base64UrlSafe | BinaryMode::Hex => Schema::string(),
            },
        }
    }

    /// The value of a cell; null for null, and for what is unavailable and no text or bytes.
    ///
    /// # Errors
    /// A cell of another type, or one that the representation cannot hold. Only a moment that is out of range is
    /// shown.
    pub fn value(&self, cell: &Cell) -> Result<Value, String> {
        let time = self.modes.time;
        Ok(match (self.ty, cell) {
            (_, Cell::Null) => Value::Null,
            (ValueType::Text(_), Cell::Unavailable) => Value::text(self.placeholder.text.clone()),
            (ValueType::Bytes, Cell::Unavailable) => self.binary(&self.placeholder.bytes),
            (_, Cell::Unavailable) => Value::Null,
            (ValueType::Boolean, Cell::Bool(value)) => Value::Bool(*value),
            (ValueType::Int16, Cell::Int(n)) => Value::Int16(i16::try_from(*n).map_err(|_| too_large(16))?),
            (ValueType::Int32, Cell::Int(n)) => Value::Int32(i32::try_from(*n).map_err(|_| too_large(32))?),
            (ValueType::Int64, Cell::Int(n)) => Value::Int64(*n),
            (ValueType::Float32, Cell::Float32(n)) => Value::Float32(*n),
            (ValueType::Float64, Cell::Float64(n)) => Value::Float64(*n),
            (ValueType::Float64, Cell::Float32(n)) => Value::Float64(f64::from(*n)),
            (ValueType::Decimal { scale, .. }, Cell::Decimal(decimal)) => self.decimal(*decimal, scale)?,
            (ValueType::Decimal { scale, .. }, Cell::Int(n)) => self.decimal(Decimal::new((*n).into(), 0), scale)?,
            (ValueType::VariableDecimal, Cell::Decimal(decimal)) => self.variable_decimal(*decimal),
            (ValueType::Date, Cell::Date(date)) => temporal::date_value(time, *date),
            (ValueType::Time { fraction }, Cell::Time(value)) => {
                temporal::time_value(Unit::of_time(time, fraction), *value, fraction)
            }
            (ValueType::Timestamp { fraction }, Cell::Timestamp(value)) => {
                temporal::timestamp_value(Unit::of_timestamp(time, fraction), *value, fraction)?
            }
            (ValueType::ZonedTimestamp { fraction }, Cell::ZonedTimestamp(value)) => {
                temporal::zoned_value(time, *value, fraction)
            }
            (ValueType::Text(_), Cell::Text(text)) => Value::String(text.clone()),
            (ValueType::Bytes, Cell::Bytes(bytes)) => self.binary(bytes),
            (ty, cell) => return Err(format!("{} came for a column of type {ty:?}", cell.kind())),
        })
    }

    /// What stands for null where there must be a value.
    pub fn zero(&self) -> Value {
        let zero = match self.ty {
            ValueType::Boolean => Cell::Bool(false),
            ValueType::Int16 | ValueType::Int32 | ValueType::Int64 => Cell::Int(0),
            ValueType::Float32 => Cell::Float32(0.0),
            ValueType::Float64 => Cell::Float64(0.0),
            ValueType::Decimal { .. } | ValueType::VariableDecimal => Cell::Decimal(Decimal::new(0, 0)),
            ValueType::Date => Cell::Date(Date(0)),
            ValueType::Time { .. } => Cell::Time(TimeOfDay::MIDNIGHT),
            ValueType::Timestamp { .. } => Cell::Timestamp(Timestamp::EPOCH),
            ValueType::ZonedTimestamp { .. } => {
                Cell::ZonedTimestamp(ZonedTimestamp { local: Timestamp::EPOCH, offset_seconds: 0 })
            }
            ValueType::Text(_) => Cell::text(""),
            ValueType::Bytes => Cell::Bytes(Bytes::new()),
        };
        // A zero is in every range.
        self.value(&zero).unwrap_or_default()
    }

    fn decimal(&self, decimal: Decimal, scale: i16) -> Result<Value, String> {
        if self.modes.decimal == DecimalMode::Double {
            return Ok(Value::Float64(decimal.nearest_double()));
        }
        let unscaled = rescale(decimal.unscaled, decimal.scale.into(), scale.into());
        let unscaled = unscaled.ok_or_else(|| format!("a number does not fit the scale {scale} of its column"))?;
        Ok(match self.modes.decimal {
            DecimalMode::Precise => Value::Bytes(bytes_of(unscaled)),
            DecimalMode::Double | DecimalMode::String => Value::text(Decimal::new(unscaled, scale).plain_text()),
        })
    }

    fn variable_decimal(&self, decimal: Decimal) -> Value {
        match self.modes.decimal {
            DecimalMode::Precise => {
                Value::Struct(vec![Value::Int32(decimal.scale.into()), Value::Bytes(bytes_of(decimal.unscaled))])
            }
            DecimalMode::Double => Value::Float64(decimal.nearest_double()),
            DecimalMode::String => Value::text(decimal.plain_text()),
        }
    }

    fn binary(&self, bytes: &Bytes) -> Value {
        match self.modes.binary {
            BinaryMode::Bytes => Value::Bytes(bytes.clone()),
            BinaryMode::Base64 => Value::text(STANDARD.encode(bytes)),
            BinaryMode::Base64UrlSafe => Value::text(URL_SAFE.encode(bytes)),
            BinaryMode::Hex => Value::text(crate::position::hex(bytes)),
        }
    }
}

fn too_large(bits: u32) -> String {
    format!("a number does not fit into {bits} bits")
}

fn loose_decimal(mode: DecimalMode) -> Schema {
    if mode == DecimalMode::Double { Schema::new(Type::Float64) } else { Schema::string() }
}

fn semantic_text(name: &str) -> Schema {
    Schema::string().named(format!("io.debezium.data.{name}")).versioned(1)
}

#[cfg(test)]
#[path = "value_type_tests.rs"]
mod tests;
