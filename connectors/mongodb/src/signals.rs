//! Signals as documents of the signal collection (`signal.data.collection`).
//!
//! A signal is an inserted document of exactly three fields: `_id`, type, and data as text or as a
//! document. The names of the last two are free.

use bson::RawDocument;
use serde_json::Value as Json;
use thalweg_core::record::TextForm;
use thalweg_core::signal::Signal;
use tracing::warn;

use crate::change::Change;
use crate::extended_json::{self, Writer};
use crate::raw::{Element, Elements, Malformed, kind};

/// The signal that an insert into the signal collection is; `None`, with a warning, if it is none.
pub(crate) fn signal_of(change: &Change<'_>) -> Option<Signal> {
    let Some(Element { kind: kind::DOCUMENT, value, .. }) = change.after else { return None };
    match parse(value) {
        Ok(signal) => Some(signal),
        Err(why) => {
            warn!(why, "a document of the signal collection is no signal and is ignored");
            None
        }
    }
}

/// The signal that an inserted document is.
///
/// # Errors
/// Why it is none.
pub fn parse(document: &[u8]) -> Result<Signal, String> {
    let unreadable = |e: Malformed| format!("it cannot be read: {e}");
    let fields: Vec<_> = Elements::of(document).map_err(unreadable)?.collect::<Result<_, _>>().map_err(unreadable)?;
    let [id, kind, data] = <[Element<'_>; 3]>::try_from(fields)
        .map_err(|fields| format!("a signal should have 3 fields (_id, type, data), this one has {}", fields.len()))?;
    let Json::String(kind) = json(&kind)? else { return Err("its type is no text".into()) };
    let id = match json(&id)? {
        Json::String(id) => id,
        Json::Object(id) if id.len() == 1 && id.contains_key("$oid") => {
            id["$oid"].as_str().unwrap_or_default().to_owned()
        }
        other => other.to_string(),
    };
    Ok(Signal { id, kind, data: json(&data)? })
}

fn json(field: &Element<'_>) -> Result<Json, String> {
    let mut text = Vec::new();
    extended_json::write_value(Writer::Relaxed, TextForm::Plain, field.kind, field.value, &mut text)
        .map_err(|e| format!("it cannot be read: {e}"))?;
    serde_json::from_slice(&text).map_err(|e| format!("it cannot be read: {e}"))
}

/// The `_id` of the document that a change of the signal collection concerns, if it is a text.
pub(crate) fn watermark(change: &Change<'_>) -> Option<String> {
    let key = RawDocument::from_bytes(change.document_key?).ok()?;
    key.get_str("_id").ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bson::oid::ObjectId;
    use bson::{Document, RawDocumentBuf, doc};
    use serde_json::json;

    use super::*;

    fn of(document: &Document) -> Result<Signal, String> {
        parse(RawDocumentBuf::try_from(document).unwrap().as_bytes())
    }

    #[test]
    fn data_is_a_text_or_a_document_and_names_are_free() {
        let text = of(&doc! {"_id": "s", "type": "log", "data": r#"{"message":"m"}"#}).unwrap();
        assert_eq!((&*text.id, &*text.kind, text.data), ("s", "log", json!(r#"{"message":"m"}"#)));
        let document = of(&doc! {"_id": 7, "t": "log", "payload": {"message": "m"}}).unwrap();
        assert_eq!((&*document.id, document.data), ("7", json!({"message": "m"})));
        let id = ObjectId::new();
        assert_eq!(of(&doc! {"_id": id, "t": "log", "p": ""}).unwrap().id, id.to_hex());
    }

    #[test]
    fn anything_else_is_none() {
        for (document, why) in [
            (doc! {"_id": "s", "type": "log"}, "this one has 2"),
            (doc! {"_id": "s", "type": "log", "data": "", "more": 1}, "this one has 4"),
            (doc! {"_id": "s", "type": 1, "data": ""}, "its type is no text"),
        ] {
            assert!(of(&document).unwrap_err().contains(why));
        }
        assert!(parse(b"x").is_err());
    }
}
