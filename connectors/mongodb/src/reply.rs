//! One answer of a cursor as the server sent it: documents stay raw in one shared buffer.
//!
//! Buffers are counted while anything refers to them, so that fetching ahead is bounded in bytes and
//! not only in batches ([`Budget`]). Nothing here looks into a document.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use mongodb::raw_batch_cursor::RawBatch;
use tokio::sync::Notify;

/// Bytes of replies of one partition that something still refers to.
///
/// Soft: the reply that crosses the limit is kept. Whoever keeps a document for longer than the
/// documents behind it must copy it, or fetching stops for good.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicUsize,
    limit: usize,
    freed: Notify,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { used: AtomicUsize::new(0), limit, freed: Notify::new() })
    }

    /// Resolves when another reply may be asked for.
    pub(crate) async fn room(&self) {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if self.used.load(Ordering::Acquire) < self.limit {
                return;
            }
            freed.await;
        }
    }

    fn hold(self: &Arc<Self>, bytes: usize) -> Held {
        self.used.fetch_add(bytes, Ordering::AcqRel);
        Held { budget: self.clone(), bytes }
    }
}

#[cfg(test)]
impl Budget {
    /// These bytes as if they had come in a reply of their own.
    pub(crate) fn counted(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        struct Counted {
            bytes: Bytes,
            _held: Held,
        }
        impl AsRef<[u8]> for Counted {
            fn as_ref(&self) -> &[u8] {
                &self.bytes
            }
        }
        let held = self.hold(bytes.len());
        Bytes::from_owner(Counted { bytes, _held: held })
    }
}

struct Held {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        let before = self.budget.used.fetch_sub(self.bytes, Ordering::AcqRel);
        if before >= self.budget.limit && before - self.bytes < self.budget.limit {
            self.budget.freed.notify_waiters();
        }
    }
}

/// What a reply's buffer belongs to while slices of it are around.
struct Owner {
    batch: RawBatch,
    _held: Held,
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        self.batch.as_raw_document().as_bytes()
    }
}

/// The server sent something that is not a cursor reply.
#[derive(Debug, thiserror::Error)]
#[error("the server's answer is not a cursor reply: {0}")]
pub(crate) struct BadReply(String);

impl From<BadReply> for mongodb::error::Error {
    /// As if the connection had garbled it: asking again is the remedy.
    fn from(bad: BadReply) -> Self {
        std::io::Error::new(std::io::ErrorKind::InvalidData, bad).into()
    }
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) documents: Documents,
    /// `postBatchResumeToken`: where a change stream resumes behind this reply.
    pub(crate) token: Option<Bytes>,
    /// The server has closed the cursor: nothing follows.
    pub(crate) exhausted: bool,
}

impl Reply {
    pub(crate) fn parse(batch: RawBatch, budget: &Arc<Budget>) -> Result<Self, BadReply> {
        let size = batch.as_raw_document().as_bytes().len();
        let bytes = Bytes::from_owner(Owner { batch, _held: budget.hold(size) });
        let reply = bson::RawDocument::from_bytes(&bytes).map_err(|e| BadReply(e.to_string()))?;
        let cursor = reply.get_document("cursor").map_err(|e| BadReply(e.to_string()))?;
        let id = cursor.get_i64("id").map_err(|e| BadReply(e.to_string()))?;
        let documents = cursor
            .get_array("nextBatch")
            .or_else(|_| cursor.get_array("firstBatch"))
            .map_err(|e| BadReply(e.to_string()))?
            .as_bytes();
        // Copied: it is kept for longer than the documents.
        let token = cursor.get_document("postBatchResumeToken").ok().map(|t| Bytes::copy_from_slice(t.as_bytes()));
        let documents = Documents::of_array(bytes.slice_ref(documents));
        Ok(Self { documents, token, exhausted: id == 0 })
    }
}

impl Reply {
    /// Instead of one that does not come: there are no more documents.
    pub(crate) fn end() -> Self {
        const EMPTY: &[u8] = &[5, 0, 0, 0, 0];
        Self { documents: Documents::of_array(Bytes::from_static(EMPTY)), token: None, exhausted: true }
    }
}

/// Iterator over the documents of a BSON array, each a slice of the shared buffer.
#[derive(Debug, Clone)]
pub(crate) struct Documents {
    bytes: Bytes,
    at: usize,
}

impl Documents {
    /// `array` is a complete BSON array.
    pub(crate) fn of_array(array: Bytes) -> Self {
        Self { bytes: array, at: 4 }
    }

    /// Bytes not yet handed out, with the framing between the documents.
    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.at + 1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.remaining() == 0
    }
}

impl Iterator for Documents {
    type Item = Result<Bytes, BadReply>;

    fn next(&mut self) -> Option<Self::Item> {
        const DOCUMENT: u8 = 3;
        if self.is_empty() {
            return None;
        }
        // An element: type, decimal index up to a zero byte, the document with its length in front.
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let document = memchr::memchr(0, rest).filter(|_| rest.first() == Some(&DOCUMENT)).and_then(|name_end| {
            let start = self.at + name_end + 1;
            let length = self.bytes.get(start..start + 4)?;
            let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
            let end = start.checked_add(length)?;
            (length >= 5 && end < self.bytes.len()).then_some((start, end))
        });
        match document {
            Some((start, end)) => {
                self.at = end;
                Some(Ok(self.bytes.slice(start..end)))
            }
            None => {
                self.at = self.bytes.len();
                Some(Err(BadReply("a batch holds something that is not a document".into())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bson::doc;
    use futures::FutureExt;
    use proptest::prelude::*;

    use super::*;

    fn array(documents: &[bson::Document]) -> Bytes {
        let mut out = Vec::new();
        doc! {"a": documents}.to_writer(&mut out).unwrap();
        // int32 length, type, "a\0", then the array up to the closing zero byte.
        Bytes::from(out[7..out.len() - 1].to_vec())
    }

    #[test]
    fn documents_are_cut_out_unchanged() {
        let documents = [doc! {}, doc! {"_id": 1, "t": "x"}, doc! {"n": {"a": [1, {"b": 2}]}}];
        let cut: Vec<bson::Document> = Documents::of_array(array(&documents))
            .map(|d| bson::Document::from_reader(&d.unwrap()[..]).unwrap())
            .collect();
        assert_eq!(cut, documents);
        assert!(Documents::of_array(array(&[])).is_empty());
    }

    #[test]
    fn indexes_of_any_length() {
        let many: Vec<bson::Document> = (0..1200).map(|i| doc! {"i": i}).collect();
        assert_eq!(Documents::of_array(array(&many)).filter(Result::is_ok).count(), 1200);
    }

    proptest! {
        /// Whatever the bytes, the walk ends and never reaches outside the buffer.
        #[test]
        fn damaged_batches_end_in_an_error(mut bytes in proptest::collection::vec(any::<u8>(), 0..64), flip in 0_usize..64, whole in any::<bool>()) {
            if whole {
                bytes = array(&[doc! {"a": 1}, doc! {"b": "text"}]).to_vec();
                let at = flip % bytes.len();
                bytes[at] ^= 0x5a;
            }
            let seen = Documents::of_array(Bytes::from(bytes)).take(1000).count();
            prop_assert!(seen < 64);
        }
    }

    #[test]
    fn the_budget_opens_when_bytes_are_let_go() {
        let budget = Budget::new(10);
        let first = budget.hold(8);
        assert!(budget.room().now_or_never().is_some());
        let second = budget.hold(8);
        let mut waiting = Box::pin(budget.room());
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(first);
        assert!(waiting.now_or_never().is_some());
        let _third = budget.hold(20);
        assert!(budget.room().now_or_never().is_none());
        drop(second);
        assert!(budget.room().now_or_never().is_none());
    }
}
