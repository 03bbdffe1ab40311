//! A value while an expression is evaluated. It borrows from the record where it can.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::record::{Headers, Schema, Value};

#[derive(Debug, Clone)]
pub(in crate::transform) enum Item<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(Cow<'a, str>),
    List(Vec<Item<'a>>),
    /// A struct, map, array or bytes of the record, with its schema.
    Part(Option<&'a Schema>, &'a Value),
    Schema(&'a Schema),
    Headers(&'a Headers),
}

impl<'a> Item<'a> {
    pub(super) fn of(schema: Option<&'a Schema>, value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Int8(n) => Self::Int(i64::from(*n)),
            Value::Int16(n) => Self::Int(i64::from(*n)),
            Value::Int32(n) => Self::Int(i64::from(*n)),
            Value::Int64(n) => Self::Int(*n),
            Value::Float32(n) => Self::Double(f64::from(*n)),
            Value::Float64(n) => Self::Double(*n),
            Value::String(text) => Self::Text(text.as_str()),
            Value::Bytes(_) | Value::Array(_) | Value::Map(_) | Value::Struct(_) => Self::Part(schema, value),
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::Double(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) | Self::Part(_, Value::Array(_)) => "a list",
            Self::Part(_, Value::Bytes(_)) => "bytes",
            Self::Part(_, Value::Map(_)) => "a map",
            Self::Part(..) => "a struct",
            Self::Schema(_) => "a schema",
            Self::Headers(_) => "headers",
        }
    }

    /// Values of different kinds are not equal; numbers are compared as numbers.
    pub(super) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Part(_, a), Self::Part(_, b)) => a == b,
            (Self::List(a), Self::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.equals(b)),
            (Self::Int(_) | Self::Double(_), Self::Int(_) | Self::Double(_)) => {
                self.compare(other) == Some(Ordering::Equal)
            }
            _ => false,
        }
    }

    /// Order of two numbers, two texts or two booleans; `None` if there is none.
    pub(super) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(b),
            (Self::Int(a), Self::Double(b)) => (*a as f64).partial_cmp(b),
            (Self::Double(a), Self::Int(b)) => a.partial_cmp(&(*b as f64)),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }
}
