//! Hides in the body of a REST answer what differs between any two runs, and puts lists in order whose
//! order means nothing.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::recording::Class;

/// By name, at any depth.
fn general(name: &str) -> Option<Class> {
    Some(match name {
        "worker_id" | "commit" | "kafka_cluster_id" | "trace" | "documentation" => Class::Text,
        "resume_token" | "lsid" | "transaction_id" => Class::Text,
        "last_modified" | "sec" | "ord" | "txnNumber" => Class::Int,
        _ => return None,
    })
}

/// `masks`: those of the call, by name.
pub(super) fn masked(body: &Value, masks: &BTreeMap<String, Class>) -> Value {
    match body {
        Value::Object(members) => {
            let versions = is_version_property(members);
            let hidden = members.iter().map(|(name, value)| {
                let value = masked(value, masks);
                let class = masks.get(name).copied().or_else(|| general(name));
                let value = match value {
                    // Names the product.
                    Value::String(_) | Value::Array(_) if name == "version" => "<version>".into(),
                    Value::String(_) | Value::Array(_) if versions && names_version(name) => "<version>".into(),
                    value => hidden(value, class),
                };
                (name.clone(), value)
            });
            Value::Object(hidden.collect())
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| masked(item, masks)).collect();
            if items.iter().all(|item| item.get("definition").is_some()) {
                items.sort_by_key(|item| item["definition"]["name"].to_string());
            } else if items.iter().all(Value::is_string) {
                items.sort_by_key(Value::to_string);
            }
            Value::Array(items)
        }
        other => other.clone(),
    }
}

/// A property that tells or chooses the version of a plugin.
fn is_version_property(members: &Map<String, Value>) -> bool {
    let definition = members.get("definition").and_then(Value::as_object).unwrap_or(members);
    definition.get("name").and_then(Value::as_str).is_some_and(|name| name.ends_with("plugin.version"))
}

fn names_version(member: &str) -> bool {
    ["default_value", "value", "recommended_values"].contains(&member)
}

fn hidden(value: Value, class: Option<Class>) -> Value {
    match (&value, class) {
        // Which plugins happen to be installed.
        (Value::Array(items), _) if items.iter().any(|item| item.as_str().is_some_and(is_class)) => {
            vec!["<classes>"].into()
        }
        (Value::Number(number), Some(Class::Int)) if number.as_i64().is_some_and(|n| n > 0) => 1.into(),
        (Value::String(_), Some(Class::Text)) => "<text>".into(),
        _ => value,
    }
}

/// Whether a text is the full name of a Java class.
fn is_class(text: &str) -> bool {
    let Some((packages, class)) = text.rsplit_once('.') else { return false };
    let lower = |part: &str| !part.is_empty() && part.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    class.starts_with(|c: char| c.is_ascii_uppercase())
        && class.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$'))
        && packages.split('.').all(lower)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_a_run_are_hidden_and_sets_put_in_order() {
        let body = json!({
            "worker_id": "h:1", "version": null, "offset": {"sec": 17, "ord": -1, "resume_token": "x"},
            "classes": ["a.b.C", "other"], "names": ["b", "a"], "extra": "x",
            "configs": [{"definition": {"name": "b"}}, {"definition": {"name": "a.plugin.version"}, "value": "1"}],
        });
        let masks = BTreeMap::from([("extra".to_owned(), Class::Text)]);
        assert_eq!(
            masked(&body, &masks),
            json!({
                "worker_id": "<text>", "version": null, "offset": {"sec": 1, "ord": -1, "resume_token": "<text>"},
                "classes": ["<classes>"], "names": ["a", "b"], "extra": "<text>",
                "configs": [
                    {"definition": {"name": "a.plugin.version"}, "value": "<version>"}, {"definition": {"name": "b"}}
                ],
            })
        );
    }

    #[test]
    fn class_names_are_told_from_other_texts() {
        assert!(is_class("org.apache.kafka.X") && is_class("io.d1.Y$Z"));
        assert!(!is_class("topic.prefix") && !is_class("X") && !is_class("A.B") && !is_class("a.B c"));
    }
}
