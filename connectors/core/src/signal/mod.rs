//! Signals: what a user asks of a running connector, as a row of a signal table or collection, a
//! message of a Kafka topic, a line of a file, or a request that the cluster keeps.
//!
//! A [`Signal`] is what arrived, an [`Action`] what it means. Signals of the source are found by the
//! connector in its own log and acted upon in order; those of other channels reach it through its
//! [`Inbox`], and are confirmed to their channel when a stored offset contains what followed from them
//! ([`Followed`]). Invariant: nothing in a signal ever fails a connector; what cannot be used is reported by
//! a warning that names the signal.
//!
//! It does not carry anything out.

mod action;
mod channel;
mod file;
mod inbox;
mod mark;

pub use action::{Action, Condition, SnapshotKind, SnapshotRequest, Stopped};
pub use channel::{Channels, KAFKA, KafkaSignals, REST, SignalChannel};
pub use file::FileSignals;
pub use inbox::Inbox;
pub use mark::{FOLLOWED, Followed, Mark, Received};

use serde_json::Value as Json;

/// A signal as it arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct Signal {
    /// Free text; what follows from the signal refers to it.
    pub id: String,
    /// Name of the action.
    pub kind: String,
    /// JSON text, or what already was an object; `Null` if there is none.
    pub data: Json,
}

impl Signal {
    /// From the JSON text of a message or a line: `{"id", "type", "data"}`. The id may be missing.
    ///
    /// # Errors
    /// What is wrong with the text, without repeating it.
    pub fn from_json(text: &[u8]) -> Result<Self, String> {
        let json: Json = serde_json::from_slice(text).map_err(|e| format!("it is no JSON: {e}"))?;
        let Json::Object(mut members) = json else { return Err("it is no JSON object".into()) };
        let kind = match members.remove("type") {
            Some(Json::String(kind)) => kind,
            _ => return Err("it has no text in the member 'type'".into()),
        };
        let id = match members.remove("id") {
            None | Some(Json::Null) => String::new(),
            Some(Json::String(id)) => id,
            Some(other) => other.to_string(),
        };
        Ok(Self { id, kind, data: members.remove("data").unwrap_or_default() })
    }

    /// The object in `data`, whether it came as such or as JSON text.
    pub(crate) fn object(&self) -> Result<serde_json::Map<String, Json>, String> {
        let parsed = match &self.data {
            Json::String(text) if text.trim().is_empty() => Json::Null,
            Json::String(text) => serde_json::from_str(text).map_err(|e| format!("its data is no JSON: {e}"))?,
            other => other.clone(),
        };
        match parsed {
            Json::Object(members) => Ok(members),
            Json::Null => Ok(serde_json::Map::new()),
            _ => Err("its data is no JSON object".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_is_an_object_with_a_type() {
        let signal = Signal::from_json(br#"{"id":"s","type":"log","data":{"message":"m"}}"#).unwrap();
        assert_eq!(signal, Signal { id: "s".into(), kind: "log".into(), data: json!({"message": "m"}) });
        assert_eq!(Signal::from_json(br#"{"type":"log"}"#).unwrap().id, "");
        assert_eq!(Signal::from_json(br#"{"id":7,"type":"log"}"#).unwrap().id, "7");
        for (text, error) in [
            (&b"{"[..], "it is no JSON: "),
            (b"[]", "it is no JSON object"),
            (br#"{"id":"s"}"#, "it has no text in the member 'type'"),
            (br#"{"type":1}"#, "it has no text in the member 'type'"),
        ] {
            assert!(Signal::from_json(text).unwrap_err().starts_with(error));
        }
    }

    #[test]
    fn data_may_be_an_object_or_its_text() {
        let of = |data: Json| Signal { id: String::new(), kind: String::new(), data }.object();
        assert_eq!(of(json!({"a": 1})).unwrap(), of(json!(r#"{"a":1}"#)).unwrap());
        assert!(of(Json::Null).unwrap().is_empty() && of(json!("")).unwrap().is_empty());
        assert_eq!(of(json!("[1]")).unwrap_err(), "its data is no JSON object");
        assert!(of(json!("{")).unwrap_err().starts_with("its data is no JSON: "));
    }
}
