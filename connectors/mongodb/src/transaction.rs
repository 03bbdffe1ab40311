//! Transactions of change events: their ids, and what the shared monitor makes of them.
//!
//! An event belongs to a transaction if it tells a session (`lsid`) or a transaction number
//! (`txnNumber`); the server tells them for nothing else. The id is a text that is made once per
//! transaction: events are compared by the bytes of both.

use std::sync::Arc;

use bytes::Bytes;
use thalweg_core::position::Position;
use thalweg_core::record::{Record, Value};
use thalweg_core::transaction::{OpenTransaction, TransactionMonitor};

use crate::position::{MongoPosition, lsid_text};

/// The transactions of one partition.
#[derive(Debug)]
pub(crate) struct Transactions {
    monitor: TransactionMonitor,
    /// Of the event before, if it had any.
    last: Option<Named>,
}

#[derive(Debug)]
struct Named {
    lsid: Option<Bytes>,
    number: Option<i64>,
    id: Arc<str>,
}

impl Transactions {
    /// `topic` takes begin and end.
    pub(crate) fn new(topic: Arc<str>) -> Self {
        Self { monitor: TransactionMonitor::new(topic), last: None }
    }

    /// Goes on with what a stored position holds.
    pub(crate) fn resume(&mut self, open: Option<OpenTransaction>) {
        self.monitor.resume(open);
    }

    /// What the next position holds.
    pub(crate) fn state(&self) -> Option<&[u8]> {
        self.monitor.state()
    }

    /// Counts a change; what is to be told before it is appended to `out`, and `before`, the position
    /// before the change, is moved over that. Returns the block `transaction` of the change.
    pub(crate) fn enter(
        &mut self,
        session: (Option<&[u8]>, Option<i64>),
        collection: &Arc<str>,
        source_ms: i64,
        before: &mut Position,
        out: &mut Vec<Record>,
    ) -> Value {
        let id = self.id(session.0, session.1);
        let place = |state: Option<&[u8]>| {
            // Nothing is known of the position only before the first event of a stream from now.
            if let Some(position) = MongoPosition::decode(before) {
                *before = position.within(state).encode();
            }
            before.clone()
        };
        self.monitor.enter(id.as_ref(), source_ms, place, out);
        self.monitor.count(collection)
    }

    fn id(&mut self, lsid: Option<&[u8]>, number: Option<i64>) -> Option<Arc<str>> {
        if lsid.is_none() && number.is_none() {
            return None;
        }
        if let Some(last) = &self.last
            && last.number == number
            && last.lsid.as_deref() == lsid
        {
            return Some(last.id.clone());
        }
        let id: Arc<str> = match (lsid.map(lsid_text), number) {
            (Some(lsid), Some(number)) => format!("{lsid}:{number}").into(),
            (Some(lsid), None) => lsid.into(),
            (None, Some(number)) => number.to_string().into(),
            (None, None) => return None,
        };
        self.last = Some(Named { lsid: lsid.map(Bytes::copy_from_slice), number, id: id.clone() });
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bson::rawdoc;

    use super::*;

    #[test]
    fn an_id_has_the_parts_that_there_are() {
        let mut transactions = Transactions::new("t".into());
        let session = rawdoc! {"id": bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes: vec![1; 16] }};
        let lsid = r#"{"id": {"$binary": "AQEBAQEBAQEBAQEBAQEBAQ==","$type": "04"}}"#;
        let session = Some(session.as_bytes());
        let both = transactions.id(session, Some(7)).unwrap();
        assert_eq!(&*both, format!("{lsid}:7"));
        assert!(Arc::ptr_eq(&both, &transactions.id(session, Some(7)).unwrap()), "made once");
        assert_eq!(&*transactions.id(session, Some(8)).unwrap(), format!("{lsid}:8"));
        assert_eq!(&*transactions.id(session, None).unwrap(), lsid);
        assert_eq!(&*transactions.id(None, Some(7)).unwrap(), "7");
        assert_eq!(transactions.id(None, None), None);
    }
}
