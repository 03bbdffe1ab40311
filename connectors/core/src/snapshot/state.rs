//! How a stored offset keeps an incremental snapshot, under Debezium's names.
//!
//! Keys are texts that a connector makes ([`KeyText`]). Those that Debezium wrote (serialised Java objects
//! in hexadecimal digits) are not gone on from, though they could be read: up to 3.6 it sends a chunk in the
//! order of a hash map and stores the key that came last, which may be any of the chunk. What lies before
//! that key in the order of the source need not have been sent. So the collection begins anew: rows are
//! repeated and none is left out. Many collections of one pattern are kept as the pattern, with the name from
//! which on they are left: what is stored does not grow with the collections that a signal means.

use std::borrow::{Borrow, Cow};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value as Json, json};

use super::{Pattern, Queued};
use crate::position::OffsetMap;
use crate::signal::Condition;

const COLLECTIONS: &str = "incremental_snapshot_collections";
const LAST: &str = "incremental_snapshot_primary_key";
const MAXIMUM: &str = "incremental_snapshot_maximum_key";
const CORRELATION: &str = "incremental_snapshot_correlation_id";

const ID: &str = "incremental_snapshot_collections_id";
const CONDITION: &str = "incremental_snapshot_collections_additional_condition";
const ENTRY_CORRELATION: &str = "incremental_snapshot_collections_correlation_id";
const SURROGATE: &str = "incremental_snapshot_collections_surrogate_key";
/// Ours: the id is a pattern of a signal whose collections are not known yet, with the signal's conditions.
const PATTERN: &str = "incremental_snapshot_collections_pattern";
/// Ours: of a pattern, the name from which on collections are left, and what was taken out.
const FROM: &str = "incremental_snapshot_collections_from";
const WITHOUT: &str = "incremental_snapshot_collections_without";

/// So many collections of one pattern are listed by name, as Debezium does with all.
const LISTED: usize = 16;

/// Members of an offset that belong here.
pub fn is_state(member: &str) -> bool {
    [COLLECTIONS, LAST, MAXIMUM, CORRELATION].contains(&member)
}

/// Text of a key, for offsets and for people.
pub trait KeyText {
    fn write(&self, key: &Bytes) -> String;
    /// `None`: the text is none of this connector's.
    fn read(&self, text: &str) -> Option<Bytes>;
    fn shown(&self, key: &Bytes) -> String;
}

/// What is stored of a snapshot that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored<Q = Queued> {
    pub(super) queue: Vec<Q>,
    pub(super) sent: Option<Bytes>,
    pub(super) maximum: Option<Bytes>,
    pub(super) correlation: Option<String>,
    /// A key is there that cannot be used.
    pub(super) foreign_key: bool,
}

impl Default for Stored {
    fn default() -> Self {
        Self { queue: Vec::new(), sent: None, maximum: None, correlation: None, foreign_key: false }
    }
}

pub(super) fn write<Q: Borrow<Queued>>(stored: &Stored<Q>, keys: &dyn KeyText) -> OffsetMap {
    let entry = |q: &Queued| {
        let mut entry = json!({
            ID: q.id,
            CONDITION: q.condition.as_ref().map(|c| format!("({c})")),
            ENTRY_CORRELATION: q.correlation,
        });
        if let Some(column) = &q.surrogate_key {
            entry[SURROGATE] = json!(column);
        }
        if let Some(pattern) = &q.pattern {
            entry[PATTERN] = pattern.conditions.iter().map(|c| json!([c.collection, c.filter])).collect();
            if let Some(from) = &pattern.from {
                entry[FROM] = json!(from);
            }
            if !pattern.without.is_empty() {
                entry[WITHOUT] = json!(pattern.without);
            }
        }
        entry
    };
    let mut offset = OffsetMap::new();
    let entries: Vec<Json> = gathered(&stored.queue).iter().map(|q| entry(q)).collect();
    offset.insert(COLLECTIONS.into(), Json::Array(entries).to_string().into());
    for (name, key) in [(LAST, &stored.sent), (MAXIMUM, &stored.maximum)] {
        if let Some(key) = key {
            offset.insert(name.into(), keys.write(key).into());
        }
    }
    if let Some(correlation) = &stored.correlation {
        offset.insert(CORRELATION.into(), correlation.as_str().into());
    }
    offset
}

/// The queue with many collections of one pattern as the pattern. The first collection stays by itself: the
/// keys belong to it.
fn gathered<Q: Borrow<Queued>>(queue: &[Q]) -> Vec<Cow<'_, Queued>> {
    let Some((head, mut rest)) = queue.split_first() else { return Vec::new() };
    let mut gathered = vec![Cow::Borrowed(head.borrow())];
    while let Some(first) = rest.first().map(Borrow::borrow) {
        let belongs = |q: &&Q| (*q).borrow().of == first.of && (*q).borrow().pattern.is_none();
        let together = rest.iter().take_while(belongs).count();
        match &first.of {
            Some(of) if together > LISTED => {
                let pattern = Pattern { from: Some(first.id.clone()), ..(**of).clone() };
                let (id, correlation, surrogate_key) =
                    (of.text.clone(), first.correlation.clone(), first.surrogate_key.clone());
                let pattern = Some(Arc::new(pattern));
                gathered.push(Cow::Owned(Queued { correlation, surrogate_key, pattern, ..Queued::named(id) }));
            }
            _ => gathered.extend(rest.iter().take(together.max(1)).map(|q| Cow::Borrowed(q.borrow()))),
        }
        rest = &rest[together.max(1)..];
    }
    gathered
}

/// `None`: no snapshot is under way. Errors: why the member cannot be used.
pub(super) fn read(offset: &OffsetMap, keys: &dyn KeyText) -> Result<Option<Stored>, String> {
    let text = |name: &str| offset.get(name).and_then(Json::as_str);
    let Some(collections) = text(COLLECTIONS) else { return Ok(None) };
    let entries: Vec<Json> =
        serde_json::from_str(collections).map_err(|e| format!("the member '{COLLECTIONS}' cannot be read: {e}"))?;
    let condition = |pair: &Json| {
        let text = |at: usize| pair.get(at).and_then(Json::as_str).map(str::to_owned);
        Some(Condition { collection: text(0)?, filter: text(1)? })
    };
    let member = |entry: &Json, name: &str| entry.get(name).and_then(Json::as_str).map(str::to_owned);
    let texts = |entry: &Json, name: &str| {
        let all = entry.get(name).and_then(Json::as_array);
        all.into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let pattern = |entry: &Json| {
        let conditions = entry.get(PATTERN).and_then(Json::as_array)?;
        Some(Arc::new(Pattern {
            text: member(entry, ID)?,
            conditions: conditions.iter().filter_map(condition).collect(),
            from: member(entry, FROM),
            without: texts(entry, WITHOUT),
        }))
    };
    let queued = |entry: &Json| {
        Some(Queued {
            id: member(entry, ID)?,
            condition: member(entry, CONDITION).map(|c| unwrapped(&c).to_owned()),
            correlation: member(entry, ENTRY_CORRELATION),
            surrogate_key: member(entry, SURROGATE),
            pattern: pattern(entry),
            of: None,
        })
    };
    let queue: Vec<Queued> = entries.iter().filter_map(queued).collect();
    if queue.is_empty() {
        return Ok(None);
    }
    let key = |name: &str| text(name).map(|t| keys.read(t));
    let (sent, maximum) = (key(LAST), key(MAXIMUM));
    let foreign_key = sent == Some(None) || maximum == Some(None);
    Ok(Some(Stored {
        queue,
        sent: sent.flatten().filter(|_| !foreign_key),
        maximum: maximum.flatten().filter(|_| !foreign_key),
        correlation: text(CORRELATION).map(str::to_owned),
        foreign_key,
    }))
}

/// Without the parentheses that the stored form adds: one pair, however often it was stored.
fn unwrapped(condition: &str) -> &str {
    condition.strip_prefix('(').and_then(|c| c.strip_suffix(')')).unwrap_or(condition)
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Keys that are texts.
    pub(crate) struct Plain;

    impl KeyText for Plain {
        fn write(&self, key: &Bytes) -> String {
            format!("k:{}", String::from_utf8_lossy(key))
        }
        fn read(&self, text: &str) -> Option<Bytes> {
            text.strip_prefix("k:").map(|key| Bytes::copy_from_slice(key.as_bytes()))
        }
        fn shown(&self, key: &Bytes) -> String {
            String::from_utf8_lossy(key).into_owned()
        }
    }

    fn queued(id: &str, condition: Option<&str>) -> Queued {
        Queued { condition: condition.map(Into::into), correlation: Some("s1".into()), ..Queued::named(id) }
    }

    #[test]
    fn there_and_back_without_more_parentheses_each_time() {
        let condition = Condition { collection: "a\\.c".into(), filter: "{}".into() };
        let pattern = Pattern { text: "a\\..*".into(), conditions: vec![condition], ..Pattern::default() };
        let stored = Stored {
            queue: vec![
                queued("a.b", Some("{x: 1}")),
                Queued { pattern: Some(Arc::new(pattern)), ..queued("a\\..*", None) },
            ],
            sent: Some(Bytes::from_static(b"7")),
            maximum: Some(Bytes::from_static(b"9")),
            correlation: Some("s1".into()),
            foreign_key: false,
        };
        let mut offset = write(&stored, &Plain);
        assert_eq!(
            offset.get(COLLECTIONS).unwrap().as_str().unwrap(),
            r#"[{"incremental_snapshot_collections_id":"a.b","incremental_snapshot_collections_additional_condition":"({x: 1})","incremental_snapshot_collections_correlation_id":"s1"},{"incremental_snapshot_collections_id":"a\\..*","incremental_snapshot_collections_additional_condition":null,"incremental_snapshot_collections_correlation_id":"s1","incremental_snapshot_collections_pattern":[["a\\.c","{}"]]}]"#
        );
        for _ in 0..3 {
            let read = read(&offset, &Plain).unwrap().unwrap();
            assert_eq!(read, stored);
            offset = write(&read, &Plain);
        }
        assert!(offset.keys().all(|member| is_state(member)));
    }

    /// What is stored does not grow with the collections that a pattern means.
    #[test]
    fn many_collections_are_stored_as_their_pattern() {
        let pattern = Pattern { text: "d\\..*".into(), without: vec!["d.c0017".into()], ..Pattern::default() };
        let pattern = Arc::new(pattern);
        let of_pattern = |n: usize| Queued { of: Some(pattern.clone()), ..queued(&format!("d.c{n:04}"), None) };
        let queue = |first: usize| {
            let mut queue: Vec<_> = (first..5_000).map(of_pattern).collect();
            queue.insert(0, queued("d.first", None));
            queue.push(queued("e.last", None));
            Stored { queue, ..Stored::default() }
        };
        let offset = write(&queue(0), &Plain);
        assert!(Json::Object(offset.clone()).to_string().len() < 1_000);
        let read_back = read(&offset, &Plain).unwrap().unwrap();
        let ids: Vec<&str> = read_back.queue.iter().map(|q| &*q.id).collect();
        assert_eq!(ids, ["d.first", "d\\..*", "e.last"]);
        let kept = read_back.queue[1].pattern.as_ref().unwrap();
        assert_eq!((kept.from.as_deref(), &kept.without), (Some("d.c0000"), &pattern.without));
        assert!(!kept.reads("d.c0017") && kept.reads("d.c0018") && !kept.reads("d.bbb"));
        assert_eq!(read(&write(&read_back, &Plain), &Plain).unwrap().unwrap(), read_back);
        // The end is listed by name.
        let few = read(&write(&queue(4_990), &Plain), &Plain).unwrap().unwrap();
        assert_eq!(few.queue.len(), 12);
    }

    #[test]
    fn keys_of_another_form_let_the_collection_begin_anew() {
        let stored = Stored { queue: vec![queued("a.b", None)], ..Stored::default() };
        let mut offset = write(&stored, &Plain);
        offset.insert(LAST.into(), "aced0005".into());
        offset.insert(MAXIMUM.into(), "k:9".into());
        let read = read(&offset, &Plain).unwrap().unwrap();
        assert_eq!((read.sent, read.maximum, read.foreign_key), (None, None, true));
    }

    #[test]
    fn no_snapshot_and_a_damaged_one() {
        assert_eq!(read(&OffsetMap::new(), &Plain), Ok(None));
        let with = |text: &str| json!({COLLECTIONS: text}).as_object().unwrap().clone();
        assert_eq!(read(&with("[]"), &Plain), Ok(None));
        assert!(read(&with("["), &Plain).unwrap_err().contains("incremental_snapshot_collections"));
    }
}
