//! Bodies of the REST answers about options: `PUT .../config/validate` and `GET .../config`.
//!
//! Member order and spelling are Kafka Connect's. Options of a connector are published without
//! their values and as not required, as Debezium does; so is none of their secrets ever shown.

use serde_json::{Value, json};

use crate::option::{OptionDef, OptionTable, Wording};
use crate::validate::{ValidatedOption, Validation};

/// The answer of `config/validate`; `name` is the text of `connector.class`.
pub fn validate_reply(validation: &Validation, name: &str) -> Value {
    // Something unpublished is shown if it is wrong, so that no counted error is out of sight.
    let rows: Vec<&ValidatedOption> =
        validation.options.iter().filter(|row| row.def.published || !row.errors.is_empty()).collect();
    let mut groups: Vec<&str> = Vec::new();
    for row in &rows {
        if !row.group.is_empty() && !groups.contains(&&*row.group) {
            groups.push(&row.group);
        }
    }
    let configs: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "definition": row.is_defined.then(|| {
                    let place = Place { group: &row.group, order: row.order, display_name: &row.display_name };
                    definition(&row.def, &row.name, row.default.as_deref(), &place)
                }),
                "value": {
                    "name": row.name,
                    "value": match row.def.wording {
                        Wording::Connector => None,
                        Wording::Framework => row.value.as_deref(),
                    },
                    "recommended_values": row.recommended,
                    "errors": row.errors,
                    "visible": row.visible,
                },
            })
        })
        .collect();
    json!({ "name": name, "error_count": validation.error_count(), "groups": groups, "configs": configs })
}

/// The answer of `GET /connector-plugins/{plugin}/config`: the published options of `tables`, in
/// order. `defaults` are those that only the caller knows (`connector.plugin.version`).
pub fn config_keys(tables: &[&OptionTable], defaults: &[(&str, &str)]) -> Value {
    let mut keys: Vec<Value> = Vec::new();
    for table in tables {
        for (def, order) in table.options.iter().zip(table.orders()).filter(|(def, _)| def.published) {
            let known = defaults.iter().find(|(name, _)| *name == def.name).map(|(_, text)| *text);
            let place = Place { group: def.group, order, display_name: def.display_name };
            keys.push(definition(def, def.name, known.or(def.default), &place));
        }
    }
    Value::Array(keys)
}

/// Where a form shows an option, and how it is called there.
struct Place<'a> {
    group: &'a str,
    order: i32,
    display_name: &'a str,
}

fn definition(def: &OptionDef, name: &str, default: Option<&str>, place: &Place<'_>) -> Value {
    json!({
        "name": name,
        "type": def.kind.name(),
        "required": def.required && def.wording == Wording::Framework,
        "default_value": default,
        "importance": def.importance.name(),
        "documentation": def.doc,
        "group": none_if_empty(place.group),
        "order_in_group": place.order,
        "width": def.width.name(),
        "display_name": none_if_empty(place.display_name),
        "dependents": def.dependents,
    })
}

fn none_if_empty(text: &str) -> Option<&str> {
    Some(text).filter(|t| !t.is_empty())
}
