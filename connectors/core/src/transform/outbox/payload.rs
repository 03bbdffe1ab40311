//! JSON text of a payload as a struct, with the schema that follows from it.
//!
//! Whole numbers have the narrowest of int32 and int64, others are doubles. Empty arrays, and nulls
//! unless they are asked for, have no type and are left out. The elements of an array must be of one
//! type; objects in an array share the fields of all.

use std::sync::Arc;

use serde_json::Value as Json;

use crate::naming::NameAdjustment;
use crate::record::{Datum, Field, Schema, Type, Value};
use crate::transform::cache::SchemaPool;
use crate::transform::schemas;

pub(super) struct Payload {
    pub(super) nulls_as_bytes: bool,
    pub(super) names: NameAdjustment,
    pub(super) pool: SchemaPool,
}

impl Payload {
    /// The object or array in `text`; its structs are named after `name`.
    ///
    /// # Errors
    /// Why it cannot be taken apart; no values of it.
    pub(super) fn expand(&mut self, text: &str, name: &str) -> Result<Datum, String> {
        if !text.starts_with(['{', '[']) {
            return Err("the payload is neither a JSON object nor a JSON array".to_owned());
        }
        let json: Json = serde_json::from_str(text).map_err(|_| "the payload is not valid JSON".to_owned())?;
        let schema = self.schema(&[&json], Some(name))?.ok_or("an empty array has no type")?;
        let value = self.value(&json, &schema);
        Ok(Datum::new(self.pool.shared(Schema::clone(&schema)), value))
    }

    /// One schema for all of `nodes`; `None` if they have no type.
    fn schema(&self, nodes: &[&Json], name: Option<&str>) -> Result<Option<Arc<Schema>>, String> {
        let typed: Vec<&Json> = nodes.iter().copied().filter(|node| !node.is_null()).collect();
        let Some(first) = typed.first() else {
            return Ok((self.nulls_as_bytes && !nodes.is_empty()).then(|| schemas::bytes(true)));
        };
        match first {
            Json::Object(_) => self.object(&typed, name).map(Some),
            Json::Array(_) => {
                let mut items = Vec::new();
                for node in &typed {
                    items.extend(node.as_array().ok_or_else(mixed)?);
                }
                if items.is_empty() {
                    return Ok(None);
                }
                let item = self.schema(&items, name)?.ok_or("the elements of an array have no type")?;
                Ok(Some(Arc::new(Schema::array(item).optional())))
            }
            scalar => {
                let schema = scalar_schema(scalar);
                if typed.iter().any(|node| node.is_object() || node.is_array() || scalar_schema(node) != schema) {
                    return Err(mixed());
                }
                Ok(Some(schema))
            }
        }
    }

    fn object(&self, nodes: &[&Json], name: Option<&str>) -> Result<Arc<Schema>, String> {
        let mut parts: Vec<(&str, Vec<&Json>)> = Vec::new();
        for node in nodes {
            for (key, value) in node.as_object().ok_or_else(mixed)? {
                match parts.iter_mut().find(|(known, _)| known == key) {
                    Some((_, values)) => values.push(value),
                    None => parts.push((key, vec![value])),
                }
            }
        }
        let mut fields: Vec<Field> = Vec::with_capacity(parts.len());
        for (key, values) in parts {
            let field = self.names.field_name(key);
            let inner = name.map_or_else(|| field.to_string(), |name| format!("{name}.{field}"));
            if let Some(schema) = self.schema(&values, Some(&inner))?
                && !fields.iter().any(|known| *known.name == *field)
            {
                fields.push(Field { name: field.as_ref().into(), schema });
            }
        }
        let mut schema = Schema::new(Type::Struct(fields)).optional();
        schema.name = name.map(Arc::from);
        Ok(Arc::new(schema))
    }

    fn value(&self, node: &Json, schema: &Schema) -> Value {
        match (node, &schema.ty) {
            (Json::Bool(flag), _) => Value::Bool(*flag),
            (Json::String(text), _) => Value::text(text.clone()),
            (Json::Number(number), Type::Int32) => number.as_i64().map_or(Value::Null, |n| Value::Int32(n as i32)),
            (Json::Number(number), Type::Int64) => Value::or_null(number.as_i64(), Value::Int64),
            (Json::Number(number), _) => Value::or_null(number.as_f64(), Value::Float64),
            (Json::Array(items), Type::Array(item)) => {
                Value::Array(items.iter().map(|node| self.value(node, item)).collect())
            }
            (Json::Object(object), Type::Struct(fields)) => {
                let mut values = vec![Value::Null; fields.len()];
                let mut filled = vec![false; fields.len()];
                for (key, node) in object {
                    let name = self.names.field_name(key);
                    if let Some(at) = schema.field_index(&name)
                        && !std::mem::replace(&mut filled[at], true)
                    {
                        values[at] = self.value(node, &fields[at].schema);
                    }
                }
                Value::Struct(values)
            }
            _ => Value::Null,
        }
    }
}

fn mixed() -> String {
    "an array in the payload has elements of several types".to_owned()
}

fn scalar_schema(node: &Json) -> Arc<Schema> {
    match node {
        Json::Bool(_) => schemas::boolean(true),
        Json::Number(number) => match number.as_i64() {
            Some(n) if i32::try_from(n).is_ok() => schemas::int32(true),
            Some(_) => schemas::int64(true),
            None => schemas::float64(true),
        },
        _ => schemas::string(true),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use proptest::prelude::*;

    use super::*;
    use crate::convert::{Converter, JsonConverter};

    fn payload(nulls_as_bytes: bool, names: NameAdjustment) -> Payload {
        Payload { nulls_as_bytes, names, pool: SchemaPool::default() }
    }

    fn shown(datum: &Datum) -> String {
        let mut out = Vec::new();
        JsonConverter::with_schemas().convert_datum(&"t".into(), datum, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn types_follow_from_the_values() {
        let mut payload = payload(false, NameAdjustment::None);
        let text = r#"{"i":1,"l":3000000000,"d":1.5,"s":"x","b":true,"n":null,"e":[],"a":[1,null],"o":{"x":{}}}"#;
        let datum = payload.expand(text, "payload").unwrap();
        assert_eq!(
            shown(&datum),
            concat!(
                r#"{"schema":{"type":"struct","fields":[{"type":"int32","optional":true,"field":"i"},"#,
                r#"{"type":"int64","optional":true,"field":"l"},{"type":"double","optional":true,"field":"d"},"#,
                r#"{"type":"string","optional":true,"field":"s"},{"type":"boolean","optional":true,"field":"b"},"#,
                r#"{"type":"array","items":{"type":"int32","optional":true},"optional":true,"field":"a"},"#,
                r#"{"type":"struct","fields":[{"type":"struct","fields":[],"optional":true,"name":"payload.o.x","field":"x"}],"#,
                r#""optional":true,"name":"payload.o","field":"o"}],"optional":true,"name":"payload"},"#,
                r#""payload":{"i":1,"l":3000000000,"d":1.5,"s":"x","b":true,"a":[1,null],"o":{"x":{}}}}"#
            )
        );
        let again = payload.expand(text, "payload").unwrap().schema.unwrap();
        assert!(Arc::ptr_eq(datum.schema.as_ref().unwrap(), &again));
    }

    #[test]
    fn objects_in_an_array_share_their_fields() {
        let mut payload = payload(true, NameAdjustment::Avro);
        let datum = payload.expand(r#"[{"a-b":1},{"c":[{"d":null}],"a-b":null},{}]"#, "p").unwrap();
        assert!(
            shown(&datum)
                .ends_with(r#""payload":[{"a_b":1,"c":null},{"a_b":null,"c":[{"d":null}]},{"a_b":null,"c":null}]}"#)
        );
        assert!(shown(&datum).contains(r#"{"type":"bytes","optional":true,"field":"d"}"#));
    }

    #[test]
    fn what_cannot_be_taken_apart() {
        let mut payload = payload(false, NameAdjustment::None);
        for (text, why) in [
            ("text", "neither"),
            ("", "neither"),
            ("{", "not valid"),
            ("[]", "no type"),
            (r#"{"a":[1,"x"]}"#, "several types"),
            (r#"{"a":[1,3000000000]}"#, "several types"),
            (r#"{"a":[{},[]]}"#, "several types"),
        ] {
            assert!(payload.expand(text, "p").unwrap_err().contains(why), "{text}");
        }
    }

    fn json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::Bool),
            any::<i64>().prop_map(Json::from),
            "[a-c]{0,3}".prop_map(Json::String),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
                proptest::collection::btree_map("[a-c]{1,2}", inner, 0..4).prop_map(|m| m.into_iter().collect()),
            ]
        })
    }

    proptest! {
        /// Whatever is taken apart can be converted.
        #[test]
        fn values_fit_their_schemas(json in json()) {
            let mut payload = payload(true, NameAdjustment::None);
            if let Ok(datum) = payload.expand(&json.to_string(), "p") {
                shown(&datum);
            }
        }
    }
}
