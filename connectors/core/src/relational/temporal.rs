//! Dates, times and timestamps as values of messages, in the seven ways of `time.precision.mode`.
//!
//! Timestamps without a zone count as if they were UTC. What a representation has no room for is cut off, never
//! rounded; what it cannot hold at all is a fault, never another number.

use std::sync::{Arc, LazyLock};

use super::modes::TimePrecision;
use super::moment::{Date, TimeOfDay, Timestamp, ZonedTimestamp};
use crate::record::{Field, Schema, Type, Value};

/// A representation of a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Connect's own type: milliseconds, or days.
    Connect,
    Millis,
    Micros,
    Nanos,
    Iso,
    Structured,
}

impl Unit {
    /// For times of day with so many digits of a fraction.
    pub(super) const fn of_time(mode: TimePrecision, fraction: u8) -> Self {
        match mode {
            TimePrecision::Adaptive => Self::adaptive(fraction),
            TimePrecision::AdaptiveTimeMicroseconds | TimePrecision::Microseconds => Self::Micros,
            TimePrecision::Connect => Self::Connect,
            TimePrecision::IsoString => Self::Iso,
            TimePrecision::Nanoseconds => Self::Nanos,
            TimePrecision::Structured => Self::Structured,
        }
    }

    /// For timestamps with so many digits of a fraction.
    pub(super) const fn of_timestamp(mode: TimePrecision, fraction: u8) -> Self {
        match mode {
            TimePrecision::AdaptiveTimeMicroseconds => Self::adaptive(fraction),
            other => Self::of_time(other, fraction),
        }
    }

    const fn adaptive(fraction: u8) -> Self {
        match fraction {
            0..=3 => Self::Millis,
            4..=6 => Self::Micros,
            _ => Self::Nanos,
        }
    }
}

fn debezium(ty: Type, name: &str) -> Schema {
    Schema::new(ty).named(format!("io.debezium.time.{name}")).versioned(1)
}

fn connect(ty: Type, name: &str) -> Schema {
    Schema::new(ty).named(format!("org.apache.kafka.connect.data.{name}")).versioned(1)
}

pub(super) fn date_schema(mode: TimePrecision) -> Schema {
    match mode {
        TimePrecision::Connect => connect(Type::Int32, "Date"),
        TimePrecision::IsoString => debezium(Type::String, "IsoDate"),
        TimePrecision::Structured => structured("StructuredDate", &DATE_PARTS),
        _ => debezium(Type::Int32, "Date"),
    }
}

pub(super) fn time_schema(unit: Unit) -> Schema {
    match unit {
        Unit::Connect => connect(Type::Int32, "Time"),
        Unit::Millis => debezium(Type::Int32, "Time"),
        Unit::Micros => debezium(Type::Int64, "MicroTime"),
        Unit::Nanos => debezium(Type::Int64, "NanoTime"),
        Unit::Iso => debezium(Type::String, "IsoTime"),
        Unit::Structured => structured("StructuredTime", &TIME_PARTS),
    }
}

pub(super) fn timestamp_schema(unit: Unit) -> Schema {
    match unit {
        Unit::Connect => connect(Type::Int64, "Timestamp"),
        Unit::Millis => debezium(Type::Int64, "Timestamp"),
        Unit::Micros => debezium(Type::Int64, "MicroTimestamp"),
        Unit::Nanos => debezium(Type::Int64, "NanoTimestamp"),
        Unit::Iso => debezium(Type::String, "IsoTimestamp"),
        Unit::Structured => structured("StructuredTimestamp", &TIMESTAMP_PARTS),
    }
}

pub(super) fn zoned_schema(mode: TimePrecision) -> Schema {
    match mode {
        TimePrecision::Structured => structured("StructuredZonedTimestamp", &ZONED_PARTS),
        _ => debezium(Type::String, "ZonedTimestamp"),
    }
}

pub(super) fn date_value(mode: TimePrecision, date: Date) -> Value {
    match mode {
        TimePrecision::IsoString => Value::text(format!("{date}Z")),
        TimePrecision::Structured => {
            let mut parts = date_parts(date);
            parts.push(Value::Null);
            Value::Struct(parts)
        }
        _ => Value::Int32(date.0),
    }
}

/// `fraction`: the digits that the column has.
pub(super) fn time_value(unit: Unit, time: TimeOfDay, fraction: u8) -> Value {
    // A day has less nanoseconds than 64 bits hold, and less milliseconds than 32.
    match unit {
        Unit::Connect | Unit::Millis => Value::Int32((time.nanos() / 1_000_000) as i32),
        Unit::Micros => Value::Int64((time.nanos() / 1_000) as i64),
        Unit::Nanos => Value::Int64(time.nanos() as i64),
        Unit::Iso => Value::text(format!("{time}Z")),
        Unit::Structured => {
            let mut parts = time_parts(time);
            parts.extend(last_parts(fraction));
            Value::Struct(parts)
        }
    }
}

/// # Errors
/// A timestamp that 64 bits of micro- or nanoseconds do not hold.
pub(super) fn timestamp_value(unit: Unit, timestamp: Timestamp, fraction: u8) -> Result<Value, String> {
    Ok(match unit {
        Unit::Connect | Unit::Millis => Value::Int64(timestamp.millis()),
        Unit::Micros => Value::Int64(timestamp.micros().ok_or_else(|| {
            format!("{timestamp} is outside the representable range for INT64 epoch microseconds")
        })?),
        Unit::Nanos => Value::Int64(i64::try_from(timestamp.nanos()).map_err(|_| {
            format!(
                "{timestamp} is outside the representable range for INT64 epoch nanoseconds (1677-09-21 to 2262-04-11). Use 'time.precision.mode=microseconds' or 'isostring'"
            )
        })?),
        Unit::Iso => Value::text(format!("{timestamp}Z")),
        Unit::Structured => {
            let mut parts = date_parts(timestamp.date);
            parts.extend(time_parts(timestamp.time));
            parts.extend(last_parts(fraction));
            Value::Struct(parts)
        }
    })
}

pub(super) fn zoned_value(mode: TimePrecision, zoned: ZonedTimestamp, fraction: u8) -> Value {
    if mode != TimePrecision::Structured {
        return Value::text(zoned.to_string());
    }
    let mut parts = date_parts(zoned.local.date);
    parts.extend(time_parts(zoned.local.time));
    parts.push(Value::Int32(zoned.offset_seconds));
    // An offset is no zone.
    parts.push(Value::Null);
    parts.extend(last_parts(fraction));
    Value::Struct(parts)
}

type Parts<const N: usize> = [(&'static str, Type); N];

const DATE_PARTS: Parts<4> =
    [("year", Type::Int32), ("month", Type::Int8), ("day", Type::Int8), ("specialValue", Type::String)];
const TIME_PARTS: Parts<6> = [
    ("hour", Type::Int8),
    ("minute", Type::Int8),
    ("second", Type::Int8),
    ("nanos", Type::Int32),
    ("specialValue", Type::String),
    ("precision", Type::Int32),
];
const TIMESTAMP_PARTS: Parts<9> = [
    ("year", Type::Int32),
    ("month", Type::Int8),
    ("day", Type::Int8),
    ("hour", Type::Int8),
    ("minute", Type::Int8),
    ("second", Type::Int8),
    ("nanos", Type::Int32),
    ("specialValue", Type::String),
    ("precision", Type::Int32),
];
const ZONED_PARTS: Parts<11> = [
    ("year", Type::Int32),
    ("month", Type::Int8),
    ("day", Type::Int8),
    ("hour", Type::Int8),
    ("minute", Type::Int8),
    ("second", Type::Int8),
    ("nanos", Type::Int32),
    ("offsetSeconds", Type::Int32),
    ("zoneId", Type::String),
    ("specialValue", Type::String),
    ("precision", Type::Int32),
];

/// A struct of optional members.
fn structured(name: &str, parts: &[(&'static str, Type)]) -> Schema {
    let field = |(name, ty): &(&'static str, Type)| Field { name: (*name).into(), schema: optional(ty) };
    debezium(Type::Struct(parts.iter().map(field).collect()), name)
}

fn optional(ty: &Type) -> Arc<Schema> {
    static INT8: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(Schema::new(Type::Int8).optional()));
    static INT32: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(Schema::int32().optional()));
    static TEXT: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(Schema::string().optional()));
    match ty {
        Type::Int8 => INT8.clone(),
        Type::Int32 => INT32.clone(),
        _ => TEXT.clone(),
    }
}

fn date_parts(date: Date) -> Vec<Value> {
    let (year, month, day) = date.parts();
    // No date that 32 bits of days hold is in a year that they do not.
    vec![Value::Int32(year as i32), Value::Int8(month as i8), Value::Int8(day as i8)]
}

fn time_parts(time: TimeOfDay) -> Vec<Value> {
    let (hour, minute, second, nanos) = time.parts();
    vec![Value::Int8(hour as i8), Value::Int8(minute as i8), Value::Int8(second as i8), Value::Int32(nanos as i32)]
}

/// No special value (those are infinities, which other databases have), and the precision.
fn last_parts(fraction: u8) -> [Value; 2] {
    [Value::Null, Value::Int32(fraction.into())]
}

#[cfg(test)]
#[path = "temporal_tests.rs"]
mod tests;
