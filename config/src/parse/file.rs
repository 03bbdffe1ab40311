//! A connector's configuration in a file, for `thalweg check` and `thalweg run`: Java properties or
//! JSON, recognised by its first character; JSON either flat or with `name` and `config`, as for
//! `POST /connectors`.

use super::json::{self, Reader};
use super::{ParseError, Reading, properties};
use crate::properties::Properties;

/// A connector file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectorFile {
    /// From `name` beside `config`, or from the option `name`; `None` if neither is there.
    pub name: Option<String>,
    /// The options, with `name` among them if there is one.
    pub config: Properties,
    pub warnings: Vec<String>,
}

/// Reads a connector file.
///
/// # Errors
/// What cannot be read, with its place; values that are null or nested; two different names.
pub fn connector_file(bytes: &[u8]) -> Result<ConnectorFile, ParseError> {
    let begins = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes).trim_ascii_start();
    if !begins.starts_with(b"{") {
        return named(None, properties::read(bytes)?);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|b| **b == b'\n').count();
        ParseError::Line { line, text: "the file is not UTF-8; save it as UTF-8".to_owned() }
    })?;
    if !has_config(text)? {
        return named(None, json::config_map(text)?);
    }
    let request = json::create_request(text)?;
    let mut file = named(request.name, request.config)?;
    if let Some(state) = request.initial_state {
        file.warnings.push(format!("'initial_state' ({state}) counts only for a request over REST"));
    }
    Ok(file)
}

/// Whether a member `config` is an object.
fn has_config(text: &str) -> Result<bool, ParseError> {
    let mut reader = Reader::new(text);
    let mut found = false;
    reader.members(|reader, key, _, _| {
        found |= key == "config" && reader.peek() == Some('{');
        reader.skip_value()
    })?;
    Ok(found)
}

fn named(outer: Option<String>, reading: Reading) -> Result<ConnectorFile, ParseError> {
    let Reading { properties: mut config, warnings, .. } = reading.checked()?;
    let inner = config.get("name").map(str::to_owned);
    let name = match (outer, inner) {
        (Some(outer), Some(inner)) if outer != inner.trim() => {
            return Err(ParseError::Whole(format!(
                "the connector is called '{outer}' by \"name\" and '{inner}' by the option \"name\"; remove one of them"
            )));
        }
        (Some(outer), _) => {
            config.set("name", outer.clone());
            Some(outer)
        }
        (None, inner) => inner,
    };
    Ok(ConnectorFile { name, config, warnings })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn all_three_forms_are_recognised() {
        for text in [
            "name=x\ntasks.max=1\n",
            "\u{feff}# {\nname: x\ntasks.max 1",
            " \n{\"name\": \"x\", \"tasks.max\": 1}",
            "{\"name\": \"x\", \"config\": {\"tasks.max\": \"1\"}}",
            "\u{feff}{\"config\": {\"tasks.max\": \"1\", \"name\": \"x\"}}",
            "{\"name\": \"x\", \"config\": {\"tasks.max\": \"1\", \"name\": \"x\"}}",
        ] {
            let file = connector_file(text.as_bytes()).unwrap();
            assert_eq!(file.name.as_deref(), Some("x"), "{text}");
            assert_eq!(file.config, Properties::from([("name", "x"), ("tasks.max", "1")]), "{text}");
            assert_eq!(file.warnings, [""; 0]);
        }
        assert_eq!(connector_file(b"tasks.max=1").unwrap().name, None);
        // An option that happens to be called so.
        assert_eq!(connector_file(br#"{"config": "x"}"#).unwrap().config, Properties::from([("config", "x")]));
    }

    #[test]
    fn what_cannot_be_meant_is_an_error() {
        let two = connector_file(br#"{"name": "x", "config": {"name": "y"}}"#).unwrap_err().to_string();
        assert!(two.contains("'x'") && two.contains("'y'"), "{two}");
        assert!(connector_file(br#"{"name": "x", "config": {"a": null}}"#).unwrap_err().to_string().contains("'a'"));
        assert!(connector_file(b"{\"a\": \"\xff\"}").unwrap_err().to_string().contains("UTF-8"));
        assert!(connector_file(b"{\"a\": ").is_err());
        let state = connector_file(br#"{"name": "x", "config": {}, "initial_state": "PAUSED"}"#).unwrap();
        assert_eq!(state.warnings.len(), 1);
    }
}
