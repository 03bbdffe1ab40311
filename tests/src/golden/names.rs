//! Names that no other run uses. Recordings hold placeholders in their stead.

use serde_json::{Map, Value};

/// Placeholder and name.
#[derive(Debug, Clone)]
pub(super) struct Names(Vec<(&'static str, String)>);

impl Names {
    /// `uri` and `bootstrap` are where the run finds MongoDB and Kafka.
    pub(super) fn new(uri: &str, bootstrap: &str) -> Self {
        // Long enough to appear in no text by accident, and of one length: sizes are part of messages.
        let run = format!("{:08x}", fastrand::u32(..));
        Self(vec![
            ("${prefix}", format!("p{run}")),
            ("${db}", format!("da{run}")),
            ("${db2}", format!("db{run}")),
            ("${name}", format!("c{run}")),
            ("${other}", format!("o{run}")),
            ("${uri}", uri.to_owned()),
            ("${bootstrap}", bootstrap.to_owned()),
        ])
    }

    /// The text with names for placeholders.
    pub(super) fn fill(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (placeholder, name)| text.replace(placeholder, name))
    }

    /// The text with placeholders for names.
    pub(super) fn blank(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (placeholder, name)| text.replace(name, placeholder))
    }

    pub(super) fn fill_all(&self, value: &Value) -> Value {
        texts(value, &|text| self.fill(text))
    }

    pub(super) fn blank_all(&self, value: &Value) -> Value {
        texts(value, &|text| self.blank(text))
    }

    pub(super) fn fill_members(&self, members: &Map<String, Value>) -> Map<String, Value> {
        members.iter().map(|(name, value)| (self.fill(name), self.fill_all(value))).collect()
    }
}

/// The value with every text in it changed, names of members included.
pub(super) fn texts(value: &Value, change: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(text)),
        Value::Array(items) => items.iter().map(|item| texts(item, change)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (change(name), texts(value, change))).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_come_and_go() {
        let names = Names::new("mongodb://h", "h:1");
        let value = json!({"${prefix}.x": ["${uri}", 1]});
        let filled = names.fill_all(&value);
        assert_eq!(filled[names.fill("${prefix}.x")][0], "mongodb://h");
        assert_eq!(names.blank_all(&filled), value);
    }
}
