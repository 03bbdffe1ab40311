//! `TimestampConverter`: points in time between Connect's logical types, numbers and texts, in UTC.
//!
//! It knows a time by the schema (Date, Time, Timestamp, an int64, a string); Debezium's own time types
//! are int64 to it, in the unit that `unix.precision` says.

use std::sync::Arc;

use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::cache::SchemaCache;
use super::date_format::DateFormat;
use super::fault::{in_field, invalid};
use super::object;
use super::options::{FIELD_SYNTAX, REPLACE_NULL, option, table};
use super::path::FieldPath;
use super::schemas;
use super::side::Side;
use super::{Fate, Made, Transform, broken};
use crate::convert::calendar::MILLIS_PER_DAY;
use crate::convert::fault::{kind_name, type_name};
use crate::convert::logical::Logical;
use crate::error::Result;
use crate::record::{Field, Record, Schema, Type, Value};

const PURPOSE: &str = "converting timestamp formats";

pub(super) static OPTIONS: OptionTable = table(
    "TimestampConverter",
    &[
        option(
            "field",
            OptionKind::String,
            Importance::High,
            "The field with the time. Empty: the whole key or value is the time.",
        )
        .default(""),
        option("target.type", OptionKind::String, Importance::High, "What the time becomes.")
            .required()
            .one_of(&["string", "unix", "Date", "Time", "Timestamp"])
            .exact(),
        option(
            "format",
            OptionKind::String,
            Importance::Medium,
            "Pattern of a text, as of Java's SimpleDateFormat: of the new one for target.type=string, else of the present one.",
        )
        .default(""),
        option("unix.precision", OptionKind::String, Importance::Low, "Unit of a time that is a number.")
            .default("milliseconds")
            .one_of(&["nanoseconds", "microseconds", "milliseconds", "seconds"])
            .exact(),
        FIELD_SYNTAX,
        REPLACE_NULL,
    ],
    &[FieldPath::check, |settings| {
        let missing = settings.text_or_empty("target.type") == "string" && settings.text_or_empty("format").trim().is_empty();
        let text = if missing {
            Some("TimestampConverter requires format option to be specified when using string timestamps".to_owned())
        } else {
            DateFormat::new(settings.text_or_empty("format")).err().map(|why| {
                format!("TimestampConverter requires a SimpleDateFormat-compatible pattern for string timestamps: {why}")
            })
        };
        text.map(|text| ("format", text)).into_iter().collect()
    }],
);

/// How a time is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Unix,
    Date,
    Time,
    Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

impl Kind {
    fn of_schema(schema: &Schema) -> Result<Self> {
        Ok(match (Logical::of(schema), &schema.ty) {
            (Some(Logical::Date), _) => Self::Date,
            (Some(Logical::Time), _) => Self::Time,
            (Some(Logical::Timestamp), _) => Self::Timestamp,
            (None, Type::String) => Self::Text,
            (None, Type::Int64) => Self::Unix,
            (_, ty) => {
                let name = schema.name.as_deref().unwrap_or("without a name");
                let text =
                    format!("Schema {} ({name}) does not correspond to a known timestamp type format", type_name(ty));
                return Err(invalid(text));
            }
        })
    }

    fn of_value(value: &Value) -> Result<Self> {
        match value {
            Value::String(_) => Ok(Self::Text),
            Value::Int64(_) => Ok(Self::Unix),
            other => Err(invalid(format!("TimestampConverter does not support {} as timestamps", kind_name(other)))),
        }
    }

    fn schema(self, optional: bool) -> Arc<Schema> {
        match self {
            Self::Text => schemas::string(optional),
            Self::Unix => schemas::int64(optional),
            Self::Date => schemas::date(optional),
            Self::Time => schemas::time(optional),
            Self::Timestamp => schemas::timestamp(optional),
        }
    }
}

impl Unit {
    fn to_millis(self, number: i64) -> i64 {
        match self {
            Self::Seconds => number.saturating_mul(1_000),
            Self::Milliseconds => number,
            Self::Microseconds => number / 1_000,
            Self::Nanoseconds => number / 1_000_000,
        }
    }

    fn of_millis(self, millis: i64) -> i64 {
        match self {
            Self::Seconds => millis / 1_000,
            Self::Milliseconds => millis,
            Self::Microseconds => millis.saturating_mul(1_000),
            Self::Nanoseconds => millis.saturating_mul(1_000_000),
        }
    }
}

struct Conversion {
    target: Kind,
    unit: Unit,
    /// Absent if no format is given: then a text cannot be read.
    format: Option<DateFormat>,
}

impl Conversion {
    fn convert(&self, value: &Value, kind: impl FnOnce() -> Result<Kind>) -> Result<Value> {
        if value.is_null() {
            return Ok(Value::Null);
        }
        let kind = kind()?;
        let millis = self.millis(value, kind)?;
        let number =
            |n: i64| i32::try_from(n).map(Value::Int32).map_err(|_| invalid("the time is too far away for a Date"));
        match (self.target, &self.format) {
            (Kind::Text, Some(format)) => Ok(Value::text(format.write(millis))),
            (Kind::Text, None) => Err(invalid("there is no format for a text")),
            (Kind::Unix, _) => Ok(Value::Int64(self.unit.of_millis(millis))),
            (Kind::Date, _) => number(millis.div_euclid(MILLIS_PER_DAY)),
            (Kind::Time, _) => number(millis.rem_euclid(MILLIS_PER_DAY)),
            (Kind::Timestamp, _) => Ok(Value::Int64(millis)),
        }
    }

    fn millis(&self, value: &Value, kind: Kind) -> Result<i64> {
        match (kind, value) {
            (Kind::Text, Value::String(text)) => {
                let Some(format) = &self.format else {
                    return Err(invalid("there is no format for the text"));
                };
                format.read(&text.as_str()).ok_or_else(|| invalid("the text does not fit the format of timestamps"))
            }
            (Kind::Unix, Value::Int64(number)) => Ok(self.unit.to_millis(*number)),
            (Kind::Date, Value::Int32(days)) => Ok(i64::from(*days) * MILLIS_PER_DAY),
            (Kind::Time, Value::Int32(millis)) => Ok(i64::from(*millis)),
            (Kind::Timestamp, Value::Int64(millis)) => Ok(*millis),
            (_, other) => {
                Err(invalid(format!("TimestampConverter does not support {} as timestamps", kind_name(other))))
            }
        }
    }
}

pub(super) struct TimestampConverter {
    side: Side,
    /// `None`: the whole key or value.
    path: Option<FieldPath>,
    conversion: Conversion,
    replace_null: bool,
    plans: SchemaCache<Arc<Plan>>,
}

struct Plan {
    schema: Arc<Schema>,
    /// Place of the field on each level; empty if there is no such field.
    places: Vec<usize>,
    kind: Kind,
}

impl TimestampConverter {
    pub(super) fn make(side: Side, settings: &Settings) -> Made {
        let format = settings.text_or_empty("format");
        let has_field = !settings.text_or_empty("field").is_empty();
        let conversion = Conversion {
            target: match settings.text_or_empty("target.type") {
                "string" => Kind::Text,
                "unix" => Kind::Unix,
                "Date" => Kind::Date,
                "Time" => Kind::Time,
                _ => Kind::Timestamp,
            },
            unit: match settings.text_or_empty("unix.precision") {
                "seconds" => Unit::Seconds,
                "microseconds" => Unit::Microseconds,
                "nanoseconds" => Unit::Nanoseconds,
                _ => Unit::Milliseconds,
            },
            format: (!format.trim().is_empty()).then(|| DateFormat::new(format)).transpose().map_err(broken)?,
        };
        Ok(Box::new(Self {
            side,
            path: has_field.then(|| FieldPath::from_settings(settings)).transpose().map_err(broken)?,
            conversion,
            replace_null: settings.bool("replace.null.with.default"),
            plans: SchemaCache::default(),
        }))
    }
}

fn plan(schema: &Arc<Schema>, path: Option<&FieldPath>, conversion: &Conversion) -> Result<Arc<Plan>> {
    let Some(path) = path else {
        let kind = Kind::of_schema(schema)?;
        return Ok(Arc::new(Plan { schema: conversion.target.schema(schema.optional), places: Vec::new(), kind }));
    };
    let mut places = Vec::new();
    let mut here = schema;
    for name in path.steps() {
        // Without such a field there is nothing to convert.
        let Some(at) = here.field_index(name) else {
            return Ok(Arc::new(Plan { schema: schema.clone(), places: Vec::new(), kind: Kind::Unix }));
        };
        places.push(at);
        here = &here.fields()[at].schema;
    }
    let kind = Kind::of_schema(here).map_err(in_field(path))?;
    let schema = converted(schema, &places, kind, conversion)?;
    Ok(Arc::new(Plan { schema, places, kind }))
}

/// The schema with the field at `places` of the new type, defaults included.
fn converted(schema: &Arc<Schema>, places: &[usize], kind: Kind, conversion: &Conversion) -> Result<Arc<Schema>> {
    let Some((at, inner)) = places.split_first() else {
        return Ok(conversion.target.schema(schema.optional));
    };
    let mut fields: Vec<Field> = schema.fields().to_vec();
    fields[*at].schema = converted(&fields[*at].schema, inner, kind, conversion)?;
    let mut new = object::with_basics_of(schema, Type::Struct(fields));
    new.optional = schema.optional;
    new.default.clone_from(&schema.default);
    if let Some(default) = &mut new.default {
        convert_at(default, places, kind, conversion)?;
    }
    Ok(Arc::new(new))
}

fn convert_at(value: &mut Value, places: &[usize], kind: Kind, conversion: &Conversion) -> Result<()> {
    match (places.split_first(), value) {
        (_, Value::Null) => {}
        (None, value) => *value = conversion.convert(value, || Ok(kind))?,
        (Some((at, inner)), Value::Struct(values)) if *at < values.len() => {
            convert_at(&mut values[*at], inner, kind, conversion)?;
        }
        (Some(_), other) => return Err(super::fault::not_a_struct(other, PURPOSE)),
    }
    Ok(())
}

/// Converts in a map without a schema. A field that is not there is entered as null on the first
/// level, as Kafka Connect does.
fn convert_in_map(value: &mut Value, path: &FieldPath, conversion: &Conversion) -> Result<()> {
    let Some((last, parents)) = path.steps().split_last() else { return Ok(()) };
    let mut pairs = object::map(value, PURPOSE)?;
    for name in parents {
        match object::find_mut(pairs, name) {
            Some(Value::Map(inner)) => pairs = inner,
            _ => return Ok(()),
        }
    }
    match object::find_mut(pairs, last) {
        Some(value) => *value = conversion.convert(value, || Kind::of_value(value))?,
        None => object::put(pairs, last, Value::Null),
    }
    Ok(())
}

impl Transform for TimestampConverter {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        let (conversion, path) = (&self.conversion, self.path.as_ref());
        let datum = self.side.of_mut(record);
        let Some(schema) = &mut datum.schema else {
            match path {
                _ if datum.value.is_null() => {}
                None => datum.value = conversion.convert(&datum.value, || Kind::of_value(&datum.value))?,
                Some(path) => {
                    convert_in_map(&mut datum.value, path, conversion).map_err(in_field(path))?;
                }
            }
            return Ok(Fate::Keep);
        };
        let plan = self.plans.get(schema, |schema| plan(schema, path, conversion))?;
        match path {
            None => datum.value = conversion.convert(&datum.value, || Ok(plan.kind))?,
            Some(_) if datum.value.is_null() => {}
            Some(path) => {
                let values = object::fields(schema, &mut datum.value, PURPOSE)?;
                object::fill_all(schema, values, self.replace_null);
                if !plan.places.is_empty() {
                    convert_at(&mut datum.value, &plan.places, plan.kind, conversion).map_err(in_field(path))?;
                }
            }
        }
        schema.clone_from(&plan.schema);
        Ok(Fate::Keep)
    }
}

#[cfg(test)]
#[path = "tests/timestamp_converter.rs"]
mod tests;
