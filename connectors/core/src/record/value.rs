//! A value of a [`Schema`](super::Schema), or a free one when there is no schema.

use bytes::Bytes;

use super::text::Text;

#[derive(Debug, Clone, Default, PartialEq)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    Int8(i8),
    Int16(i16),
    Int32(i32),
    Int64(i64),
    Float32(f32),
    Float64(f64),
    String(Text),
    Bytes(Bytes),
    Array(Vec<Value>),
    /// Pairs in order.
    Map(Vec<(Value, Value)>),
    /// One entry per field of the schema, in schema order.
    Struct(Vec<Value>),
}

impl Value {
    pub fn text(text: impl Into<Text>) -> Self {
        Self::String(text.into())
    }
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
    /// `Null` for `None`.
    pub fn or_null<T>(value: Option<T>, wrap: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Null, wrap)
    }
}
