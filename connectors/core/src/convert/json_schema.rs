//! Schemas as the JSON converter writes them, made once per schema and kept in it.
//!
//! Member order: type, then items | keys, values | fields, then optional, name, version, doc,
//! parameters, default, and field as the last one inside a struct.

use super::escape::json_string;
use super::fault::Outcome;
use super::json::{DecimalFormat, Payload};
use crate::record::{Schema, Type};

/// The schema's JSON text (an object).
pub(super) fn schema_json(schema: &Schema, decimals: DecimalFormat) -> Outcome<&str> {
    let cell = match decimals {
        DecimalFormat::Base64 => &schema.rendered.base64,
        DecimalFormat::Numeric => &schema.rendered.numeric,
    };
    if let Some(text) = cell.get() {
        return Ok(text);
    }
    let mut out = Vec::new();
    render(schema, decimals, &mut out)?;
    // Every part is written from str or ASCII.
    let text = String::from_utf8(out).unwrap_or_default().into_boxed_str();
    Ok(cell.get_or_init(|| text))
}

/// Text before each field's value in a payload: `{"first":`, then `,"next":`.
pub(super) fn members(schema: &Schema) -> &[Box<str>] {
    schema.rendered.members.get_or_init(|| {
        let member = |(at, name): (usize, &str)| {
            let mut out = vec![if at == 0 { b'{' } else { b',' }];
            json_string(name, &mut out);
            out.push(b':');
            String::from_utf8(out).unwrap_or_default().into_boxed_str()
        };
        schema.fields().iter().map(|field| &*field.name).enumerate().map(member).collect()
    })
}

fn type_text(ty: &Type) -> &'static str {
    match ty {
        Type::Int8 => "int8",
        Type::Int16 => "int16",
        Type::Int32 => "int32",
        Type::Int64 => "int64",
        Type::Float32 => "float",
        Type::Float64 => "double",
        Type::Boolean => "boolean",
        Type::String => "string",
        Type::Bytes => "bytes",
        Type::Array(_) => "array",
        Type::Map(..) => "map",
        Type::Struct(_) => "struct",
    }
}

fn render(schema: &Schema, decimals: DecimalFormat, out: &mut Vec<u8>) -> Outcome {
    put(out, "{\"type\":\"");
    put(out, type_text(&schema.ty));
    out.push(b'"');
    match &schema.ty {
        Type::Array(items) => {
            put(out, ",\"items\":");
            put(out, schema_json(items, decimals)?);
        }
        Type::Map(keys, values) => {
            put(out, ",\"keys\":");
            put(out, schema_json(keys, decimals)?);
            put(out, ",\"values\":");
            put(out, schema_json(values, decimals)?);
        }
        Type::Struct(fields) => {
            put(out, ",\"fields\":[");
            for (at, field) in fields.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                let text = schema_json(&field.schema, decimals).map_err(|fault| fault.inside(&*field.name))?;
                // The object stays open for one more member.
                put(out, text.strip_suffix('}').unwrap_or(text));
                put(out, ",\"field\":");
                json_string(&field.name, out);
                out.push(b'}');
            }
            out.push(b']');
        }
        _ => {}
    }
    put(out, if schema.optional { ",\"optional\":true" } else { ",\"optional\":false" });
    if let Some(name) = &schema.name {
        put(out, ",\"name\":");
        json_string(name, out);
    }
    if let Some(version) = schema.version {
        put(out, ",\"version\":");
        put(out, itoa::Buffer::new().format(version));
    }
    if let Some(doc) = &schema.doc {
        put(out, ",\"doc\":");
        json_string(doc, out);
    }
    if !schema.parameters.is_empty() {
        for (at, (key, value)) in schema.parameters.iter().enumerate() {
            put(out, if at == 0 { ",\"parameters\":{" } else { "," });
            json_string(key, out);
            out.push(b':');
            json_string(value, out);
        }
        out.push(b'}');
    }
    if let Some(default) = schema.default.as_ref().filter(|value| !value.is_null()) {
        put(out, ",\"default\":");
        Payload { out, decimals, default_for_null: true }.value(schema, default)?;
    }
    out.push(b'}');
    Ok(())
}

fn put(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}
