//! Joins the fragments of large change events (`$changeStreamSplitLargeEvent`).
//!
//! Invariant: fragments of one event arrive one behind the other as 1, 2, …, n. While an event is
//! incomplete ([`Fragments::is_open`]) the position must not move: resuming between fragments would
//! lose the head of the event.
//!
//! Fragments are copied: a slice of a reply would keep the whole reply counted, and fetching would
//! wait for good for the fragments that follow.
use bytes::Bytes;
use thalweg_core::{Error, ErrorKind, Phase};

use crate::raw::{self, Element, Elements, Malformed, kind};

/// Most bytes of fragments that are kept. A document has up to 16 MB, and an event up to three as
/// large: the document, its pre-image and its update.
const LARGEST_EVENT: usize = 64 << 20;

/// The fragments of the event that is being received.
#[derive(Debug, Default)]
pub struct Fragments {
    waiting: Vec<Bytes>,
    bytes: usize,
    of: i32,
}

impl Fragments {
    /// Takes the next document of the stream; returns an event when it is complete. An event that is
    /// not split is returned as it is.
    ///
    /// Errors: a fragment is missing, or the fragments do not make an event.
    pub fn take(&mut self, document: Bytes) -> Result<Option<Bytes>, Error> {
        let Ok(Some((fragment, of))) = place(&document) else {
            if self.is_open() {
                return Err(self.missing("an event that is not split"));
            }
            // What is damaged is the decoder's to judge.
            return Ok(Some(document));
        };
        let expected = self.waiting.len() as i32 + 1;
        if fragment != expected || of < fragment || (self.is_open() && of != self.of) {
            return Err(self.missing(&format!("fragment {fragment} of {of}")));
        }
        self.of = of;
        self.bytes += document.len();
        if self.bytes > LARGEST_EVENT {
            return Err(self.too_large());
        }
        self.waiting.push(Bytes::copy_from_slice(&document));
        if fragment < of {
            return Ok(None);
        }
        let event = join(&self.waiting).map_err(damaged);
        self.clear();
        event.map(|event| Some(event.into()))
    }

    /// Whether an event has begun and is not complete.
    pub fn is_open(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Forgets the incomplete event: the stream is opened again before it.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn too_large(&self) -> Error {
        let message = format!(
            "the first {} of {} fragments of a change event have more than {} MB",
            self.waiting.len() + 1,
            self.of,
            LARGEST_EVENT >> 20
        );
        Error::new(ErrorKind::SourceRefused, Phase::Stream, message).advise(
            "Leave such events out with cursor.oversize.handling.mode=skip and cursor.oversize.skip.threshold, or \
             capture without pre-images or post-images; then restart the task.",
        )
    }

    fn missing(&self, found: &str) -> Error {
        let message = format!(
            "Missing event fragment: {found} arrived behind {} of {} fragments of an event",
            self.waiting.len(),
            self.of
        );
        Error::new(ErrorKind::Codec, Phase::Stream, message)
            .advise("Restart the task: it reads the event again from its first fragment.")
    }
}

fn damaged(error: Malformed) -> Error {
    Error::new(ErrorKind::Codec, Phase::Stream, "a fragment of a change event cannot be read").because(&error)
}

/// Number of the fragment and of all fragments, if the event is split; zero for what is not a number.
fn place(document: &[u8]) -> Result<Option<(i32, i32)>, Malformed> {
    for element in Elements::of(document)? {
        let element = element?;
        if element.name != b"splitEvent" || element.kind != kind::DOCUMENT {
            continue;
        }
        let (mut fragment, mut of) = (0, 0);
        for part in Elements::of(element.value)? {
            let part = part?;
            let number = match part.kind {
                kind::INT32 => raw::int32(part.value),
                kind::INT64 => raw::int64(part.value).and_then(|n| i32::try_from(n).ok()),
                _ => None,
            };
            match part.name {
                b"fragment" => fragment = number.unwrap_or(0),
                b"of" => of = number.unwrap_or(0),
                _ => {}
            }
        }
        return Ok(Some((fragment, of)));
    }
    Ok(None)
}

/// One event: of each field the first value that is not null, the token of the last fragment.
fn join(fragments: &[Bytes]) -> Result<Vec<u8>, Malformed> {
    let mut fields: Vec<Element<'_>> = Vec::new();
    for fragment in fragments {
        for element in Elements::of(fragment)? {
            let element = element?;
            match fields.iter_mut().find(|f| f.name == element.name) {
                _ if element.name == b"splitEvent" => {}
                None => fields.push(element),
                Some(earlier) if element.name == b"_id" || earlier.kind == kind::NULL => *earlier = element,
                Some(_) => {}
            }
        }
    }
    let size = 5 + fields.iter().map(|f| f.name.len() + f.value.len() + 2).sum::<usize>();
    let length = i32::try_from(size).map_err(|_| Malformed("the joined event is larger than 2 GB"))?;
    let mut event = Vec::with_capacity(size);
    event.extend_from_slice(&length.to_le_bytes());
    for field in fields {
        event.push(field.kind);
        event.extend_from_slice(field.name);
        event.push(0);
        event.extend_from_slice(field.value);
    }
    event.push(0);
    Ok(event)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bson::{Document, RawDocumentBuf, doc};
    use futures::FutureExt;

    use super::*;
    use crate::reply::Budget;

    fn bytes(document: Document) -> Bytes {
        RawDocumentBuf::try_from(&document).unwrap().into_bytes().into()
    }

    fn read(event: &Bytes) -> Document {
        Document::from_reader(event.as_ref()).unwrap()
    }

    fn fragment(k: i32, of: i32, mut fields: Document) -> Bytes {
        let mut document = doc! {"_id": {"_data": format!("t{k}")}};
        document.extend(std::mem::take(&mut fields));
        document.insert("splitEvent", doc! {"fragment": k, "of": of});
        bytes(document)
    }

    #[test]
    fn whole_events_pass_unchanged() {
        let mut fragments = Fragments::default();
        let event = bytes(doc! {"_id": {"_data": "x"}, "operationType": "insert", "fullDocument": {"splitEvent": 1}});
        assert_eq!(fragments.take(event.clone()).unwrap(), Some(event));
        let one = fragments.take(fragment(1, 1, doc! {"a": 1})).unwrap().unwrap();
        assert_eq!(read(&one), doc! {"_id": {"_data": "t1"}, "a": 1});
        assert!(!fragments.is_open());
    }

    #[test]
    fn fields_are_gathered_and_the_token_is_the_last() {
        for of in [2, 5] {
            let mut fragments = Fragments::default();
            let head = doc! {"operationType": "update", "ns": {"db": "a", "coll": "b"}, "fullDocument": null};
            assert_eq!(fragments.take(fragment(1, of, head)).unwrap(), None);
            for k in 2..of {
                assert!(fragments.is_open());
                assert_eq!(fragments.take(fragment(k, of, doc! {"fullDocument": {"k": k}})).unwrap(), None);
            }
            let event = fragments.take(fragment(of, of, doc! {"fullDocument": {"k": of}, "wallTime": 1})).unwrap();
            let expected = doc! {
                "_id": {"_data": format!("t{of}")}, "operationType": "update", "ns": {"db": "a", "coll": "b"},
                "fullDocument": {"k": 2}, "wallTime": 1,
            };
            assert_eq!(read(&event.unwrap()), expected);
            assert!(!fragments.is_open());
        }
    }

    #[test]
    fn a_gap_is_an_error() {
        let start = || {
            let mut fragments = Fragments::default();
            fragments.take(fragment(1, 3, doc! {})).unwrap();
            fragments
        };
        for next in [fragment(3, 3, doc! {}), fragment(1, 3, doc! {}), fragment(2, 4, doc! {}), bytes(doc! {"a": 1})] {
            let error = start().take(next).unwrap_err();
            assert!(error.message.starts_with("Missing event fragment"), "{error}");
        }
        let error = Fragments::default().take(fragment(2, 3, doc! {})).unwrap_err();
        assert!(error.message.contains("fragment 2 of 3 arrived behind 0 of 0"), "{error}");
    }

    #[test]
    fn fragments_keep_no_reply_from_being_fetched() {
        let budget = Budget::new(100);
        let mut fragments = Fragments::default();
        for k in 1..=4 {
            assert!(budget.room().now_or_never().is_some(), "fragment {k} would never arrive");
            let reply = budget.counted(fragment(k, 4, doc! {format!("f{k}"): "x".repeat(100)}));
            let event = fragments.take(reply).unwrap();
            assert_eq!(event.is_some(), k == 4);
        }
        assert!(budget.room().now_or_never().is_some());
    }

    #[test]
    fn an_event_of_any_size_does_not_fill_the_memory() {
        let mut fragments = Fragments::default();
        let error = (1..100).find_map(|k| fragments.take(fragment(k, 100, doc! {"t": "x".repeat(15 << 20)})).err());
        let error = error.unwrap();
        assert_eq!(error.policy(), thalweg_core::Policy::NeedsUser);
        assert!(error.message.contains("the first 5 of 100 fragments"), "{error}");
    }

    #[test]
    fn after_a_restart_the_event_begins_again() {
        let mut fragments = Fragments::default();
        fragments.take(fragment(1, 2, doc! {"a": 1})).unwrap();
        fragments.clear();
        fragments.take(fragment(1, 2, doc! {"a": 2})).unwrap();
        let event = fragments.take(fragment(2, 2, doc! {})).unwrap().unwrap();
        assert_eq!(read(&event), doc! {"_id": {"_data": "t2"}, "a": 2});
    }

    #[test]
    fn damaged_fragments_are_errors() {
        for bad in [
            doc! {"splitEvent": {"fragment": 0, "of": 2}},
            doc! {"splitEvent": {"fragment": 3, "of": 2}},
            doc! {"splitEvent": {}},
        ] {
            assert!(Fragments::default().take(bytes(bad)).is_err());
        }
        let damaged = Bytes::from_static(b"\x05\0\0\0");
        assert_eq!(Fragments::default().take(damaged.clone()).unwrap(), Some(damaged));
    }
}
