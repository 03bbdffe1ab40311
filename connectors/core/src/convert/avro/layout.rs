//! Whether values written with one Avro schema are the same bytes under another.
//!
//! That is so if both have the same types, names and order of fields; defaults, documentation and
//! properties do not matter. It does not resolve schemas that differ, as a reader does.

use serde_json::Value;

const PRIMITIVES: [&str; 8] = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"];

/// Deeper ones are not compared.
const DEPTH: usize = 64;

/// # Errors
/// A text that is no schema; says why.
pub(super) fn is_same_layout(one: &str, other: &str) -> Result<bool, String> {
    Ok(canonical(one)? == canonical(other)?)
}

fn canonical(text: &str) -> Result<String, String> {
    // A primitive may stand without quotes around it.
    let schema = match serde_json::from_str(text) {
        Ok(schema) => schema,
        Err(_) if PRIMITIVES.contains(&text.trim()) => Value::String(text.trim().to_owned()),
        Err(error) => return Err(format!("it is not JSON: {error}")),
    };
    let mut out = String::new();
    write(&schema, "", DEPTH, &mut out)?;
    Ok(out)
}

fn write(schema: &Value, space: &str, depth: usize, out: &mut String) -> Result<(), String> {
    if depth == 0 {
        return Err("it is nested too deeply".to_owned());
    }
    match schema {
        Value::String(name) if PRIMITIVES.contains(&&**name) => out.push_str(name),
        Value::String(name) => out.push_str(&full(name, None, space)),
        Value::Array(branches) => {
            out.push('[');
            for branch in branches {
                write(branch, space, depth - 1, out)?;
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(members) => {
            let text = |key: &str| members.get(key).and_then(Value::as_str);
            let part = |key: &str| members.get(key).ok_or_else(|| format!("a type without {key}"));
            match text("type") {
                Some("array") => {
                    out.push_str("array(");
                    write(part("items")?, space, depth - 1, out)?;
                    out.push(')');
                }
                Some("map") => {
                    out.push_str("map(");
                    write(part("values")?, space, depth - 1, out)?;
                    out.push(')');
                }
                Some(kind @ ("record" | "error" | "enum" | "fixed")) => {
                    let name = full(text("name").ok_or("a record without a name")?, text("namespace"), space);
                    let inner = name.rsplit_once('.').map_or("", |(space, _)| space).to_owned();
                    out.push_str(&format!("{kind} {name}("));
                    for key in ["size", "symbols"] {
                        if let Some(value) = members.get(key) {
                            out.push_str(&value.to_string());
                        }
                    }
                    for field in members.get("fields").and_then(Value::as_array).into_iter().flatten() {
                        out.push_str(field.get("name").and_then(Value::as_str).ok_or("a field without a name")?);
                        out.push(' ');
                        write(field.get("type").ok_or("a field without a type")?, &inner, depth - 1, out)?;
                        out.push(',');
                    }
                    out.push(')');
                }
                _ => write(part("type")?, space, depth - 1, out)?,
            }
        }
        _ => return Err("it is no Avro schema".to_owned()),
    }
    Ok(())
}

fn full(name: &str, namespace: Option<&str>, space: &str) -> String {
    match namespace.unwrap_or(space) {
        _ if name.contains('.') => name.to_owned(),
        "" => name.to_owned(),
        space => format!("{space}.{name}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_what_decides_about_bytes_counts() {
        let one = r#"{"type":"record","name":"V","namespace":"a.b","fields":[
            {"name":"x","type":["null","int"],"default":null},{"name":"y","type":{"type":"string","connect.name":"z"}},
            {"name":"m","type":{"type":"map","values":"bytes"}},{"name":"v","type":["null","V"]}],"connect.name":"a.b.V"}"#;
        let other = r#"{"name":"a.b.V","type":"record","doc":"other","fields":[
            {"type":["null",{"type":"int"}],"name":"x"},{"name":"y","type":"string"},
            {"name":"m","type":{"type":"map","values":"bytes"}},{"name":"v","type":["null","a.b.V"]}]}"#;
        assert!(is_same_layout(one, other).unwrap());
        for (from, to) in
            [(r#""x""#, r#""q""#), (r#"["null",{"type":"int"}]"#, r#"[{"type":"int"},"null"]"#), ("bytes", "string")]
        {
            assert!(!is_same_layout(one, &other.replace(from, to)).unwrap(), "{from}");
        }
        assert!(is_same_layout("\"string\"", r#"{"type":"string","connect.version":1}"#).unwrap());
        assert!(is_same_layout("string", "\"string\"").unwrap());
    }

    #[test]
    fn what_is_no_schema_is_an_error() {
        for bad in ["", "{", "7", r#"{"type":"record"}"#, r#"{"type":"array"}"#, &"[".repeat(200)] {
            assert!(is_same_layout("\"string\"", bad).is_err(), "{bad}");
        }
        let deep = format!("{}\"int\"{}", "[".repeat(100), "]".repeat(100));
        assert!(is_same_layout(&deep, "\"int\"").is_err());
    }
}
