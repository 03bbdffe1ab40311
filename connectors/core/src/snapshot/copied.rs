//! What of a first snapshot is delivered: collections that are done, and ranges of others.
//!
//! Kept in the stored offset beside the position at which the snapshot began, so that an interrupted
//! snapshot goes on where it stood: what is behind a range's begin, or in a collection that is done, is
//! not read again. A collection that appears in neither is read as a whole. Of a collection that is read
//! through a filter a mark of the filter is kept: what was read through another one is read anew. Of a
//! snapshot that several tasks share, each keeps its own; see `spread`.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde_json::{Value as Json, json};

use super::KeyText;
use super::spread::Spread;

/// Member of an offset with the state of an unfinished snapshot, as JSON text.
pub const COPIED: &str = "thalweg_snapshot";

/// The mark of a collection whose filter was not written down: of a release that did not do that.
const UNKNOWN: &str = "?";

/// Rows in the order of their keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Range {
    /// From here on; `None`: from the first row.
    pub from: Option<Bytes>,
    /// The row at `from` is delivered.
    pub behind: bool,
    /// Up to here, without it; `None`: to the last row.
    pub until: Option<Bytes>,
    /// The portion of the snapshot to which it belongs; 0 where nothing is spread.
    pub portion: usize,
}

/// A step of the snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advance {
    /// The range is delivered up to and including this key.
    To {
        collection: String,
        range: usize,
        key: Bytes,
    },
    RangeDone {
        collection: String,
        range: usize,
    },
    CollectionDone {
        collection: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Copied {
    pub(super) done: BTreeSet<String>,
    /// What is left of collections that are read in ranges.
    pub(super) open: BTreeMap<String, BTreeMap<usize, Range>>,
    /// Marks of the filters through which collections are read; of those without a filter there is none.
    pub(super) filters: BTreeMap<String, String>,
    /// Over how many tasks it is spread; `None`: one reads everything.
    pub(super) spread: Option<Spread>,
    /// A portion of which nothing is left.
    pub(super) complete: bool,
}

impl Copied {
    pub fn is_done(&self, collection: &str) -> bool {
        self.done.contains(collection)
    }

    /// The collection is read through the filter with this mark from now on. False: it has been read
    /// through another one, so it begins anew.
    pub fn filter_by(&mut self, collection: &str, mark: Option<String>) -> bool {
        let before = self.filters.get(collection);
        let same = before == mark.as_ref() || before.is_some_and(|before| before == UNKNOWN);
        let begun = self.done.contains(collection) || self.open.contains_key(collection);
        match mark {
            Some(mark) => drop(self.filters.insert(collection.to_owned(), mark)),
            None => drop(self.filters.remove(collection)),
        }
        if same || !begun {
            return true;
        }
        self.done.remove(collection);
        self.open.remove(collection);
        false
    }

    /// What is left of a collection that is read in ranges; `None`: it is not, or not yet.
    pub fn ranges(&self, collection: &str) -> Option<&BTreeMap<usize, Range>> {
        self.open.get(collection)
    }

    /// The collection is read in these ranges.
    pub fn divide(&mut self, collection: &str, ranges: Vec<Range>) {
        self.open.insert(collection.to_owned(), ranges.into_iter().enumerate().collect());
    }

    pub fn apply(&mut self, advance: Advance) {
        match advance {
            Advance::To { collection, range, key } => {
                if let Some(range) = self.open.get_mut(&collection).and_then(|ranges| ranges.get_mut(&range)) {
                    (range.from, range.behind) = (Some(key), true);
                }
            }
            Advance::RangeDone { collection, range } => {
                if let Some(ranges) = self.open.get_mut(&collection) {
                    ranges.remove(&range);
                }
            }
            Advance::CollectionDone { collection } => {
                // Of a collection that tasks share, each knows its own ranges only.
                if self.spread.is_none() || !self.open.contains_key(&collection) {
                    self.open.remove(&collection);
                    self.done.insert(collection);
                }
            }
        }
    }

    /// For the member [`COPIED`]; `None`: there is nothing to say.
    pub fn to_text(&self, keys: &dyn KeyText) -> Option<String> {
        if self.done.is_empty() && self.open.is_empty() && self.spread.is_none() {
            return None;
        }
        let key = |key: &Option<Bytes>| key.as_ref().map(|key| keys.write(key));
        let range = |range: &Range| match (json!([key(&range.from), key(&range.until), range.behind]), range.portion) {
            (Json::Array(mut range), portion @ 1..) => {
                range.push(portion.into());
                Json::Array(range)
            }
            (range, _) => range,
        };
        let ranges = |ranges: &BTreeMap<usize, Range>| ranges.values().map(range).collect::<Json>();
        let open: serde_json::Map<String, Json> = self.open.iter().map(|(name, r)| (name.clone(), ranges(r))).collect();
        let begun = |name: &str| self.done.contains(name) || self.open.contains_key(name);
        // Of the others nothing is read yet: they may have any filter later on.
        let filters: BTreeMap<_, _> = self.filters.iter().filter(|(name, _)| begun(name)).collect();
        let mut text = serde_json::Map::new();
        text.insert("done".to_owned(), json!(self.done));
        text.insert("open".to_owned(), Json::Object(open));
        text.insert("filters".to_owned(), json!(filters));
        if let Some(spread) = &self.spread {
            text.insert("spread".to_owned(), spread.write());
        }
        if self.complete {
            text.insert("complete".to_owned(), Json::Bool(true));
        }
        Some(Json::Object(text).to_string())
    }

    /// Errors: what cannot be used; the snapshot then begins anew.
    pub fn from_text(text: &str, keys: &dyn KeyText) -> Result<Self, String> {
        let json: Json = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let done = json.get("done").and_then(Json::as_array).ok_or("'done' is no list")?;
        let done: Option<BTreeSet<String>> = done.iter().map(|name| name.as_str().map(str::to_owned)).collect();
        let mut copied = Self {
            done: done.ok_or("'done' is no list of names")?,
            spread: json.get("spread").map(Spread::read).transpose()?,
            complete: json.get("complete") == Some(&Json::Bool(true)),
            ..Self::default()
        };
        let key = |value: &Json| match value {
            Json::Null => Ok(None),
            Json::String(text) => keys.read(text).map(Some).ok_or(format!("'{text}' is no key")),
            other => Err(format!("{other} is no key")),
        };
        for (name, ranges) in json.get("open").and_then(Json::as_object).ok_or("'open' is no object")? {
            let mut read = Vec::new();
            for range in ranges.as_array().ok_or("a collection has no list of ranges")? {
                let odd = || format!("{range} is no range");
                let (from, until, behind, portion) = match range.as_array().map(Vec::as_slice) {
                    Some([from, until, behind]) => (from, until, behind, Some(0)),
                    Some([from, until, behind, portion]) => (from, until, behind, portion.as_u64()),
                    _ => return Err(odd()),
                };
                read.push(Range {
                    from: key(from)?,
                    until: key(until)?,
                    behind: *behind == Json::Bool(true),
                    portion: portion.and_then(|n| usize::try_from(n).ok()).ok_or_else(odd)?,
                });
            }
            match read.is_empty() && copied.spread.is_none() {
                true => drop(copied.done.insert(name.clone())),
                false => copied.divide(name, read),
            }
        }
        copied.filters = match json.get("filters") {
            None => copied.done.iter().chain(copied.open.keys()).map(|name| (name.clone(), UNKNOWN.into())).collect(),
            Some(marks) => {
                let marks = marks.as_object().ok_or("'filters' is no object")?.iter();
                let marks = marks.map(|(name, mark)| Some((name.clone(), mark.as_str()?.to_owned())));
                marks.collect::<Option<_>>().ok_or("'filters' has something that is no text")?
            }
        };
        Ok(copied)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::state::tests::Plain;
    use super::*;

    fn key(text: &'static str) -> Option<Bytes> {
        Some(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn advances_and_their_text() {
        let mut copied = Copied::default();
        assert_eq!(copied.to_text(&Plain), None);
        let halves = vec![Range { until: key("m"), ..Range::default() }, Range { from: key("m"), ..Range::default() }];
        copied.divide("d.a", halves);
        let of = |name: &str| name.to_owned();
        copied.apply(Advance::To { collection: of("d.a"), range: 1, key: Bytes::from_static(b"q") });
        copied.apply(Advance::RangeDone { collection: of("d.a"), range: 0 });
        copied.apply(Advance::CollectionDone { collection: of("d.b") });
        let text = copied.to_text(&Plain).unwrap();
        assert_eq!(text, r#"{"done":["d.b"],"open":{"d.a":[["k:q",null,true]]},"filters":{}}"#);
        let again = Copied::from_text(&text, &Plain).unwrap();
        assert_eq!(again.to_text(&Plain).unwrap(), text);
        assert!(again.is_done("d.b") && !again.is_done("d.a"));
        let left = again.ranges("d.a").unwrap().values().cloned().collect::<Vec<_>>();
        assert_eq!(left, [Range { from: key("q"), behind: true, ..Range::default() }]);
        copied.apply(Advance::RangeDone { collection: of("d.a"), range: 1 });
        let all = copied.to_text(&Plain).unwrap();
        assert!(Copied::from_text(&all, &Plain).unwrap().is_done("d.a"), "nothing of it is left: {all}");
        copied.apply(Advance::CollectionDone { collection: of("d.a") });
        assert_eq!(copied.to_text(&Plain).unwrap(), r#"{"done":["d.a","d.b"],"open":{},"filters":{}}"#);
    }

    #[test]
    fn what_was_read_through_another_filter_begins_anew() {
        let mark = |text: &str| Some(text.to_owned());
        let mut copied = Copied::default();
        for (name, filter) in [("d.a", mark("1")), ("d.b", None), ("d.c", mark("1"))] {
            assert!(copied.filter_by(name, filter));
        }
        copied.divide("d.a", vec![Range::default()]);
        copied.apply(Advance::CollectionDone { collection: "d.b".into() });
        let text = copied.to_text(&Plain).unwrap();
        assert_eq!(text, r#"{"done":["d.b"],"open":{"d.a":[[null,null,false]]},"filters":{"d.a":"1"}}"#);
        for (name, filter, same) in [
            ("d.a", mark("1"), true),
            ("d.a", mark("2"), false),
            ("d.a", None, false),
            ("d.b", None, true),
            ("d.b", mark("1"), false),
            ("d.c", mark("2"), true),
        ] {
            let mut again = Copied::from_text(&text, &Plain).unwrap();
            assert_eq!(again.filter_by(name, filter.clone()), same, "{name} {filter:?}");
            assert_eq!(again.is_done(name), name == "d.b" && same, "{name} {filter:?}");
            assert_eq!(again.ranges(name).is_some(), name == "d.a" && same, "{name} {filter:?}");
        }
    }

    /// Of a release that did not write filters down: whatever they are now counts as what they were.
    #[test]
    fn filters_that_were_not_written_down_are_taken_as_the_same() {
        let mut copied = Copied::from_text(r#"{"done":["d.a","d.b"],"open":{}}"#, &Plain).unwrap();
        assert!(copied.filter_by("d.a", Some("1".into())));
        let text = copied.to_text(&Plain).unwrap();
        let mut again = Copied::from_text(&text, &Plain).unwrap();
        assert!(!again.filter_by("d.a", Some("2".into())) && again.filter_by("d.b", None), "{text}");
    }

    #[test]
    fn what_cannot_be_used_is_an_error() {
        for text in [
            "{",
            "{}",
            r#"{"done":[1],"open":{}}"#,
            r#"{"done":[]}"#,
            r#"{"done":[],"open":{"a":1}}"#,
            r#"{"done":[],"open":{"a":[[null,null]]}}"#,
            r#"{"done":[],"open":{"a":[["x",null,true]]}}"#,
            r#"{"done":[],"open":{"a":[[null,null,true,-1]]}}"#,
            r#"{"done":[],"open":{"a":[[null,null,true,1,2]]}}"#,
            r#"{"done":[],"open":{},"spread":{"id":"a"}}"#,
            r#"{"done":[],"open":{},"spread":{"id":1,"portions":2,"choice":"c"}}"#,
            r#"{"done":[],"open":{},"spread":{"id":"a","portions":2}}"#,
            r#"{"done":["a"],"open":{},"filters":[]}"#,
            r#"{"done":["a"],"open":{},"filters":{"a":1}}"#,
        ] {
            assert!(Copied::from_text(text, &Plain).is_err(), "{text}");
        }
    }
}
