//! Any value as JSON, whether it fits its schema or not: for whoever has to look at a record that no
//! converter could write.
//!
//! Fields have their names where the schema tells them, else their places; bytes are base64. It never
//! fails.

use std::sync::Arc;

use super::{Converter, JsonConverter};
use crate::record::{Datum, Schema, Type, Value};

/// Appends the value; `false` if there is none.
pub fn raw_json(datum: &Datum, out: &mut Vec<u8>) -> bool {
    if datum.is_none() {
        return false;
    }
    let mut json = JsonConverter { schemas: false, ..JsonConverter::with_schemas() };
    let value = loose(datum.schema.as_ref(), &datum.value);
    if value.is_null() {
        out.extend_from_slice(b"null");
    } else if json.convert(&"".into(), None, &value, out).is_err() {
        // There is nothing left in it that JSON cannot say.
        out.extend_from_slice(b"null");
    }
    true
}

/// The value without its schema, structs as maps.
fn loose(schema: Option<&Arc<Schema>>, value: &Value) -> Value {
    let ty = schema.map(|schema| &schema.ty);
    match value {
        Value::Struct(values) => {
            let fields = schema.map(|schema| schema.fields()).unwrap_or_default();
            let member = |(at, value): (usize, &Value)| match fields.get(at) {
                Some(field) => (Value::text(field.name.clone()), loose(Some(&field.schema), value)),
                None => (Value::text(at.to_string()), loose(None, value)),
            };
            Value::Map(values.iter().enumerate().map(member).collect())
        }
        Value::Array(values) => {
            let items = match ty {
                Some(Type::Array(items)) => Some(items),
                _ => None,
            };
            Value::Array(values.iter().map(|value| loose(items, value)).collect())
        }
        Value::Map(pairs) => {
            let (keys, values) = match ty {
                Some(Type::Map(keys, values)) => (Some(keys), Some(values)),
                _ => (None, None),
            };
            Value::Map(pairs.iter().map(|(key, value)| (loose(keys, key), loose(values, value))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn written(datum: &Datum) -> Option<String> {
        let mut out = Vec::new();
        raw_json(datum, &mut out).then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn whatever_it_is_it_is_shown() {
        let inner = Schema::record([("n", Schema::int64())]);
        let schema = Arc::new(Schema::record([("a", Schema::string()), ("list", Schema::array(inner))]));
        let list = Value::Array(vec![Value::Struct(vec![Value::Int64(1)]), Value::Bytes(vec![1, 2].into())]);
        for (datum, text) in [
            (Datum::none(), None),
            (Datum::new(schema.clone(), Value::Null), Some("null")),
            (
                Datum::new(schema.clone(), Value::Struct(vec![Value::Int32(7), list])),
                Some(r#"{"a":7,"list":[{"n":1},"AQI="]}"#),
            ),
            (
                Datum::new(schema.clone(), Value::Struct(vec![Value::Null, Value::Null, Value::Bool(true)])),
                Some(r#"{"a":null,"list":null,"2":true}"#),
            ),
            (Datum::new(schema, Value::text("x")), Some(r#""x""#)),
            (Datum { schema: None, value: Value::Struct(vec![Value::Int8(1)]) }, Some(r#"{"0":1}"#)),
            (
                Datum { schema: None, value: Value::Map(vec![(Value::Int32(1), Value::Float64(f64::NAN))]) },
                Some(r#"[[1,"NaN"]]"#),
            ),
        ] {
            assert_eq!(written(&datum).as_deref(), text);
        }
    }
}
