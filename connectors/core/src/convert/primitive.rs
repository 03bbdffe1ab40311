//! Converters of one primitive type each: big-endian numbers, a boolean byte, bytes as they are.

use std::sync::Arc;

use super::fault::{Fault, kind_name, type_name};
use super::{Converter, Written};
use crate::error::Result;
use crate::record::{Schema, Type, Value};

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Primitive {
    Short,
    Integer,
    Long,
    Float,
    Double,
    Boolean,
    ByteArray,
}

#[derive(Debug)]
pub struct PrimitiveConverter(pub Primitive);

impl Primitive {
    const fn class(self) -> &'static str {
        match self {
            Self::Short => "org.apache.kafka.connect.converters.ShortConverter",
            Self::Integer => "org.apache.kafka.connect.converters.IntegerConverter",
            Self::Long => "org.apache.kafka.connect.converters.LongConverter",
            Self::Float => "org.apache.kafka.connect.converters.FloatConverter",
            Self::Double => "org.apache.kafka.connect.converters.DoubleConverter",
            Self::Boolean => "org.apache.kafka.connect.converters.BooleanConverter",
            Self::ByteArray => "org.apache.kafka.connect.converters.ByteArrayConverter",
        }
    }
    const fn ty(self) -> Type {
        match self {
            Self::Short => Type::Int16,
            Self::Integer => Type::Int32,
            Self::Long => Type::Int64,
            Self::Float => Type::Float32,
            Self::Double => Type::Float64,
            Self::Boolean => Type::Boolean,
            Self::ByteArray => Type::Bytes,
        }
    }
    /// The schema is checked even beside a null, as Kafka Connect does for these two.
    const fn checks_schema(self) -> bool {
        matches!(self, Self::Boolean | Self::ByteArray)
    }
}

impl Converter for PrimitiveConverter {
    fn class(&self) -> &'static str {
        self.0.class()
    }
    fn convert(
        &mut self,
        _topic: &Arc<str>,
        schema: Option<&Arc<Schema>>,
        value: &Value,
        out: &mut Vec<u8>,
    ) -> Result<Written> {
        let name = || self.0.class().rsplit('.').next().unwrap_or_default();
        if self.0.checks_schema()
            && let Some(schema) = schema
            && schema.ty != self.0.ty()
        {
            return Err(Fault::new(format!("Invalid schema type for {}: {}", name(), type_name(&schema.ty))).to_error());
        }
        match (self.0, value) {
            (_, Value::Null) => return Ok(Written::Null),
            (Primitive::Short, Value::Int16(n)) => out.extend_from_slice(&n.to_be_bytes()),
            (Primitive::Integer, Value::Int32(n)) => out.extend_from_slice(&n.to_be_bytes()),
            (Primitive::Long, Value::Int64(n)) => out.extend_from_slice(&n.to_be_bytes()),
            (Primitive::Float, Value::Float32(n)) => out.extend_from_slice(&n.to_be_bytes()),
            (Primitive::Double, Value::Float64(n)) => out.extend_from_slice(&n.to_be_bytes()),
            (Primitive::Boolean, Value::Bool(b)) => out.push(u8::from(*b)),
            (Primitive::ByteArray, Value::Bytes(bytes)) => out.extend_from_slice(bytes),
            (_, other) => {
                return Err(Fault::new(format!(
                    "{} takes {} only, found {}",
                    name(),
                    type_name(&self.0.ty()),
                    kind_name(other)
                ))
                .to_error());
            }
        }
        Ok(Written::Bytes)
    }
}
