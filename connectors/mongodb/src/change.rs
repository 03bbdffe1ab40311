//! A change event taken apart: the fields that records are made of, as slices of the event.

use crate::extended_json::push_lossy;
use crate::raw::{self, Element, Elements, Malformed, kind};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation<'a> {
    Insert,
    Update,
    Replace,
    Delete,
    /// Has no records: definitions, or a type of a newer server.
    Unknown(&'a [u8]),
}

impl Operation<'_> {
    /// `op` of the envelope.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Insert => "c",
            Self::Update | Self::Replace => "u",
            Self::Delete => "d",
            Self::Unknown(_) => "",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Change<'a> {
    pub(crate) operation: Operation<'a>,
    /// The resume token, a document.
    pub(crate) token: &'a [u8],
    pub(crate) db: &'a [u8],
    pub(crate) collection: &'a [u8],
    pub(crate) document_key: Option<&'a [u8]>,
    /// `fullDocument` and `fullDocumentBeforeChange`: documents or null.
    pub(crate) after: Option<Element<'a>>,
    pub(crate) before: Option<Element<'a>>,
    update: Option<&'a [u8]>,
    /// Seconds and increment.
    pub(crate) cluster_time: (u32, u32),
    /// Milliseconds since the epoch; servers before 6.0 do not tell it.
    pub(crate) wall_time: Option<i64>,
    pub(crate) lsid: Option<&'a [u8]>,
    pub(crate) txn_number: Option<i64>,
}

/// `updateDescription`.
#[derive(Debug)]
pub(crate) struct Update<'a> {
    pub(crate) updated: Option<Element<'a>>,
    pub(crate) removed: Vec<String>,
    /// Field and new size.
    pub(crate) truncated: Vec<(String, i32)>,
}

impl<'a> Change<'a> {
    /// Errors: not a document, or without token or operation.
    pub(crate) fn parse(event: &'a [u8]) -> Result<Self, Malformed> {
        let mut change = Change {
            operation: Operation::Unknown(b""),
            token: b"",
            db: b"",
            collection: b"",
            document_key: None,
            after: None,
            before: None,
            update: None,
            cluster_time: (0, 0),
            wall_time: None,
            lsid: None,
            txn_number: None,
        };
        for element in Elements::of(event)? {
            let element = element?;
            match (element.name, element.kind) {
                (b"_id", kind::DOCUMENT) => {
                    // To its end: a position with a damaged token could not be read back after a restart.
                    raw::check(element.value)?;
                    change.token = element.value;
                }
                (b"operationType", kind::STRING) => change.operation = operation(raw::string(element.value)?),
                (b"ns", kind::DOCUMENT) => change.namespace(element.value)?,
                (b"documentKey", kind::DOCUMENT) => change.document_key = Some(element.value),
                (b"fullDocument", _) => change.after = Some(element),
                (b"fullDocumentBeforeChange", _) => change.before = Some(element),
                (b"updateDescription", kind::DOCUMENT) => change.update = Some(element.value),
                (b"clusterTime", kind::TIMESTAMP) => {
                    change.cluster_time = raw::timestamp(element.value).unwrap_or_default();
                }
                (b"wallTime", kind::DATE) => change.wall_time = raw::int64(element.value),
                (b"lsid", kind::DOCUMENT) => {
                    raw::check(element.value)?;
                    change.lsid = Some(element.value);
                }
                (b"txnNumber", kind::INT64) => change.txn_number = raw::int64(element.value),
                _ => {}
            }
        }
        if change.token.is_empty() {
            return Err(Malformed("a change event has no resume token"));
        }
        if change.operation == Operation::Unknown(b"") {
            return Err(Malformed("a change event has no operation type"));
        }
        Ok(change)
    }

    fn namespace(&mut self, ns: &'a [u8]) -> Result<(), Malformed> {
        for element in Elements::of(ns)? {
            let element = element?;
            match (element.name, element.kind) {
                (b"db", kind::STRING) => self.db = raw::string(element.value)?,
                (b"coll", kind::STRING) => self.collection = raw::string(element.value)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// What an update changed; `None` for other operations.
    pub(crate) fn update(&self) -> Result<Option<Update<'a>>, Malformed> {
        let Some(description) = self.update else { return Ok(None) };
        let mut update = Update { updated: None, removed: Vec::new(), truncated: Vec::new() };
        for element in Elements::of(description)? {
            let element = element?;
            match (element.name, element.kind) {
                (b"updatedFields", _) => update.updated = Some(element),
                (b"removedFields", kind::ARRAY) => {
                    for name in Elements::of(element.value)? {
                        let name = name?;
                        if name.kind == kind::STRING {
                            update.removed.push(lossy(raw::string(name.value)?));
                        }
                    }
                }
                (b"truncatedArrays", kind::ARRAY) => {
                    for entry in Elements::of(element.value)? {
                        update.truncated.push(truncated(entry?.value)?);
                    }
                }
                _ => {}
            }
        }
        Ok(Some(update))
    }
}

fn operation(name: &[u8]) -> Operation<'_> {
    match name {
        b"insert" => Operation::Insert,
        b"update" => Operation::Update,
        b"replace" => Operation::Replace,
        b"delete" => Operation::Delete,
        other => Operation::Unknown(other),
    }
}

fn truncated(entry: &[u8]) -> Result<(String, i32), Malformed> {
    let (mut field, mut size) = (String::new(), 0);
    for part in Elements::of(entry)? {
        let part = part?;
        match (part.name, part.kind) {
            (b"field", kind::STRING) => field = lossy(raw::string(part.value)?),
            (b"newSize", kind::INT32) => size = raw::int32(part.value).unwrap_or(0),
            (b"newSize", kind::INT64) => {
                size = raw::int64(part.value).and_then(|n| i32::try_from(n).ok()).unwrap_or(i32::MAX);
            }
            _ => {}
        }
    }
    Ok((field, size))
}

fn lossy(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    push_lossy(bytes, &mut text);
    text
}

/// Database and collection of an event that may be damaged; empty if it does not tell.
pub(crate) fn collection_of(event: &[u8]) -> String {
    let ns = field(event, b"ns", kind::DOCUMENT);
    let name = |part: &[u8]| {
        let text = ns.as_ref().and_then(|ns| field(ns.value, part, kind::STRING))?;
        raw::string(text.value).ok().map(lossy)
    };
    match (name(b"db"), name(b"coll")) {
        (Some(db), Some(collection)) => format!("{db}.{collection}"),
        _ => String::new(),
    }
}

/// The first field of this name and kind, as far as the document can be read.
fn field<'a>(document: &'a [u8], name: &[u8], kind: u8) -> Option<Element<'a>> {
    Elements::of(document).ok()?.map_while(Result::ok).find(|e| e.name == name && e.kind == kind)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bson::rawdoc;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_of_an_event() {
        let event = rawdoc! {
            "_id": {"_data": "82"}, "operationType": "update", "clusterTime": bson::Timestamp { time: 7, increment: 2 },
            "wallTime": bson::DateTime::from_millis(9), "ns": {"db": "d", "coll": "a.b"}, "documentKey": {"_id": 1},
            "updateDescription": {
                "updatedFields": {"x": 1}, "removedFields": ["y", "z.k"],
                "truncatedArrays": [{"field": "arr", "newSize": 2}], "disambiguatedPaths": {},
            },
            "fullDocument": null, "txnNumber": 4_i64, "lsid": {"id": 1}, "somethingNew": true,
        };
        let change = Change::parse(event.as_bytes()).unwrap();
        assert_eq!(change.operation, Operation::Update);
        assert_eq!((change.db, change.collection), (b"d".as_slice(), b"a.b".as_slice()));
        assert_eq!((change.cluster_time, change.wall_time, change.txn_number), ((7, 2), Some(9), Some(4)));
        assert_eq!(change.after.map(|e| e.kind), Some(kind::NULL));
        assert!(change.before.is_none() && change.lsid.is_some());
        let update = change.update().unwrap().unwrap();
        assert_eq!(
            (update.removed, update.truncated),
            (vec!["y".to_owned(), "z.k".to_owned()], vec![("arr".to_owned(), 2)])
        );
    }

    #[test]
    fn an_event_needs_a_token_and_an_operation() {
        for event in [
            rawdoc! {"operationType": "insert"},
            rawdoc! {"_id": {"_data": "82"}},
            rawdoc! {"_id": 5, "operationType": "insert"},
        ] {
            assert!(Change::parse(event.as_bytes()).is_err());
        }
        // Whole as an element, but of an unknown type inside.
        let mut damaged = rawdoc! {"_id": {"_data": "82"}, "operationType": "insert"}.into_bytes();
        assert!(Change::parse(&damaged).is_ok());
        let at = damaged.windows(5).position(|w| w == b"_data").unwrap();
        damaged[at - 1] = 0x30;
        assert_eq!(Change::parse(&damaged).err(), Some(Malformed("unknown type of a value")));
        let mut damaged = rawdoc! {"_id": {"_data": "82"}, "operationType": "insert", "lsid": {"uid": 1}}.into_bytes();
        assert!(Change::parse(&damaged).is_ok());
        let at = damaged.windows(3).position(|w| w == b"uid").unwrap();
        damaged[at - 1] = 0x30;
        assert_eq!(Change::parse(&damaged).err(), Some(Malformed("unknown type of a value")));
        let other = rawdoc! {"_id": {"_data": "82"}, "operationType": "drop"};
        assert_eq!(Change::parse(other.as_bytes()).unwrap().operation, Operation::Unknown(b"drop"));
    }

    proptest! {
        #[test]
        fn damaged_events_do_not_make_it_panic(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let event = rawdoc! {
                "_id": {"_data": "82"}, "operationType": "update", "ns": {"db": "d", "coll": "c"}, "documentKey": {"_id": 1},
                "updateDescription": {"updatedFields": {}, "removedFields": ["y"], "truncatedArrays": [{"field": "a", "newSize": 2}]},
            };
            let mut bytes = event.into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(change) = Change::parse(&bytes) {
                let _ = change.update();
            }
        }
    }
}
