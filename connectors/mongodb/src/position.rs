//! Where a partition resumes: cluster time, resume token, and what belongs to the offset that
//! Debezium stores for it.
//!
//! [`MongoPosition`] is the readable form; [`Position`] its bytes, which travel with every record.
//! [`Positions`] writes the bytes of single events into one buffer per batch. Members of a stored
//! offset that are no position (an incremental snapshot's) are kept as they are.
//!
//! Bytes: version, flags, seconds, increment, then as the flags say: token, lsid, txnNumber, open
//! transaction. Numbers are little-endian, documents and texts have their length in front. Other members
//! are beside them, as JSON: positions share them, however much they say.

use std::sync::Arc;

use bson::Timestamp;
use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Map, Value as Json};
use sha2::{Digest, Sha256};
use thalweg_core::position::{ChangeId, OffsetMap, Position, PositionCodec, UNDELIVERED, hex};
use thalweg_core::record::TextForm;
use thalweg_core::signal::FOLLOWED;
use thalweg_core::snapshot::{COPIED, Copied, is_state};
use thalweg_core::transaction::OpenTransaction;

use crate::extended_json::{self, Writer};
use crate::place::PlaceText;
use crate::raw::{self, Elements, kind};
use crate::token::Token;

const VERSION: u8 = 1;
/// Time of a position that came from an empty batch: unknown.
const UNKNOWN: i32 = -1;

mod flag {
    pub(super) const UNFINISHED: u8 = 1;
    pub(super) const TOKEN: u8 = 2;
    pub(super) const LSID: u8 = 4;
    pub(super) const TXN_NUMBER: u8 = 8;
    pub(super) const UNDELIVERED: u8 = 32;
    pub(super) const TRANSACTION: u8 = 64;
}

/// A resume point.
#[derive(Debug, Clone, PartialEq)]
pub struct MongoPosition {
    /// Seconds of the cluster time, -1 if unknown.
    pub sec: i32,
    /// Increment within the second, -1 if unknown.
    pub ord: i32,
    pub token: Option<Token>,
    /// The snapshot that began here is not complete.
    unfinished: bool,
    /// Nor is anything of it delivered.
    undelivered: bool,
    /// Session of the event's transaction, as BSON.
    lsid: Option<Bytes>,
    txn_number: Option<i64>,
    /// The transaction whose end is not told yet, as [`OpenTransaction`] writes it.
    transaction: Option<Bytes>,
    /// Further members of the stored offset.
    others: OffsetMap,
}

impl MongoPosition {
    /// At this cluster time, inclusive.
    pub fn at(time: Timestamp) -> Self {
        Self { sec: time.time as i32, ord: time.increment as i32, ..Self::behind(None) }
    }

    /// Behind everything that an answer of the server contained or passed over.
    pub fn behind_batch(token: Bytes) -> Self {
        Self::behind(Token::new(token).ok())
    }

    /// Behind everything up to `token` where nothing was to be read since. What the offset says of the
    /// last event stays, as Debezium's does until the next record: its time is known, that of the token
    /// is not told by the server.
    pub fn moved_to(self, token: Token) -> Self {
        Self { token: Some(token), unfinished: false, undelivered: false, ..self }
    }

    fn behind(token: Option<Token>) -> Self {
        Self {
            sec: UNKNOWN,
            ord: UNKNOWN,
            token,
            unfinished: false,
            undelivered: false,
            lsid: None,
            txn_number: None,
            transaction: None,
            others: OffsetMap::new(),
        }
    }

    /// Behind everything that an answer of the server contained or passed over: also the transaction
    /// that was open stays open until a change follows.
    pub fn passed_over(token: Bytes, before: Option<&Self>) -> Self {
        Self { transaction: before.and_then(|p| p.transaction.clone()), ..Self::behind_batch(token) }
    }

    /// The same place, with this transaction open.
    pub fn within(self, transaction: Option<&[u8]>) -> Self {
        Self { transaction: transaction.map(Bytes::copy_from_slice), ..self }
    }

    /// The same place, with this under way beside the stream: an incremental snapshot, signals that were
    /// followed.
    pub fn beside(mut self, state: Option<&OffsetMap>) -> Self {
        self.others.retain(|member, _| !is_state(member) && member != FOLLOWED);
        self.others.extend(state.cloned().unwrap_or_default());
        self
    }

    /// Members of the offset that are no position.
    pub fn others(&self) -> &OffsetMap {
        &self.others
    }

    /// How far the snapshot has come that began here.
    pub fn copied(&self) -> Option<Result<Copied, String>> {
        let text = self.others.get(COPIED)?.as_str()?;
        Some(Copied::from_text(text, &PlaceText))
    }

    /// The begin of a snapshot that has come so far.
    pub fn with_copied(mut self, copied: &Copied) -> Self {
        self.others.remove(COPIED);
        if let Some(text) = copied.to_text(&PlaceText) {
            self.others.insert(COPIED.into(), text.into());
        }
        self
    }

    /// The place at which a snapshot began, without what is said of the snapshot.
    pub fn begin_of_snapshot(mut self) -> Self {
        (self.unfinished, self.undelivered) = (false, false);
        self.others.remove(COPIED);
        self
    }

    /// The transaction whose end is not told yet.
    pub fn transaction(&self) -> Option<OpenTransaction> {
        OpenTransaction::from_bytes(self.transaction.as_ref()?)
    }

    /// Behind this change event; `None` if it is none.
    pub fn of_event(event: &Bytes) -> Option<Self> {
        let mut position = Self::behind(None);
        for element in Elements::of(event).ok()? {
            let element = element.ok()?;
            match (element.name, element.kind) {
                (b"_id", kind::DOCUMENT) => position.token = Some(Token::new(event.slice_ref(element.value)).ok()?),
                (b"clusterTime", kind::TIMESTAMP) => {
                    let (time, increment) = raw::timestamp(element.value)?;
                    (position.sec, position.ord) = (time as i32, increment as i32);
                }
                (b"lsid", kind::DOCUMENT) => position.lsid = Some(event.slice_ref(element.value)),
                (b"txnNumber", kind::INT64) => position.txn_number = raw::int64(element.value),
                _ => {}
            }
        }
        position.token.is_some().then_some(position)
    }

    /// The same place, marked as the begin of a snapshot that is not complete.
    pub fn unfinished(mut self) -> Self {
        self.unfinished = true;
        self
    }

    /// The same place, as it is stored before the first record of the snapshot that begins there.
    pub fn begun(mut self) -> Self {
        self.undelivered = true;
        self.unfinished()
    }

    pub fn is_unfinished(&self) -> bool {
        self.unfinished
    }

    /// Cluster time, from the token if the event's own is not known.
    pub fn time(&self) -> Option<Timestamp> {
        if self.sec > 0 {
            return Some(Timestamp { time: self.sec as u32, increment: self.ord as u32 });
        }
        self.token.as_ref().and_then(Token::time)
    }

    /// The newest cluster time of which a stream that begins here has nothing to tell. A token that is none
    /// of an event stands before everything of its time, which may even be the next one to come.
    pub(crate) fn told_until(&self) -> Option<Timestamp> {
        if self.sec > 0 {
            return self.time();
        }
        let Timestamp { time, increment } = self.time()?;
        Some(match increment.checked_sub(1) {
            Some(increment) => Timestamp { time, increment },
            None => Timestamp { time: time.checked_sub(1)?, increment: u32::MAX },
        })
    }

    pub fn encode(&self) -> Position {
        let mut out = BytesMut::new();
        write(
            Fields {
                unfinished: self.unfinished,
                undelivered: self.undelivered,
                sec: self.sec,
                ord: self.ord,
                token: self.token.as_ref().map(Token::as_bytes),
                lsid: self.lsid.as_deref(),
                txn_number: self.txn_number,
                transaction: self.transaction.as_deref(),
            },
            &mut out,
        );
        Position { place: out.freeze(), beside: shared(&self.others) }
    }

    /// `None`: nothing is known, or the bytes are of no version that this release reads.
    pub fn decode(position: &Position) -> Option<Self> {
        let mut rest = position.place.clone();
        let mut take = |n: usize| (rest.len() >= n).then(|| rest.split_to(n));
        let head = take(10)?;
        let (version, flags) = (head[0], head[1]);
        if version != VERSION {
            return None;
        }
        let mut part = |bit: u8| -> Option<Option<Bytes>> {
            if flags & bit == 0 {
                return Some(None);
            }
            let length = raw::int32(&take(4)?).and_then(|n| usize::try_from(n).ok())?;
            take(length).map(Some)
        };
        let token = part(flag::TOKEN)?.map(Token::new).transpose().ok()?;
        let lsid = part(flag::LSID)?;
        let txn_number = part(flag::TXN_NUMBER)?;
        let transaction = part(flag::TRANSACTION)?;
        Some(Self {
            sec: raw::int32(&head[2..])?,
            ord: raw::int32(&head[6..])?,
            token,
            unfinished: flags & flag::UNFINISHED != 0,
            undelivered: flags & flag::UNDELIVERED != 0,
            lsid,
            txn_number: txn_number.and_then(|b| raw::int64(&b)),
            transaction,
            others: position.beside.as_ref().and_then(|json| serde_json::from_slice(json).ok()).unwrap_or_default(),
        })
    }

    /// As Debezium stores it.
    pub fn to_offset(&self) -> OffsetMap {
        let mut offset = OffsetMap::new();
        offset.insert("sec".into(), self.sec.into());
        offset.insert("ord".into(), self.ord.into());
        if self.unfinished {
            offset.insert("initsync".into(), true.into());
        }
        if self.undelivered {
            offset.insert(UNDELIVERED.into(), true.into());
        }
        if let Some(token) = &self.token {
            offset.insert("resume_token".into(), token.to_text().into());
        }
        if let Some(lsid) = &self.lsid {
            offset.insert("lsid".into(), lsid_text(lsid).into());
        }
        if let Some(number) = self.txn_number {
            offset.insert("txnNumber".into(), number.into());
        }
        if let Some(open) = self.transaction() {
            open.add_to_offset(&mut offset);
        }
        offset.extend(self.others.clone());
        offset
    }

    /// Errors: the text names the member and what was expected.
    pub fn from_offset(offset: &OffsetMap) -> Result<Self, String> {
        let mut position = Self::behind(None);
        (position.sec, position.ord) = (integer(offset, "sec")?, integer(offset, "ord")?);
        let open = OpenTransaction::from_offset(offset)?;
        position.transaction = open.map(|open| Bytes::copy_from_slice(open.as_bytes()));
        for (name, value) in offset {
            match (name.as_str(), value) {
                ("sec" | "ord", _) | ("resume_token", Json::Null) => {}
                ("resume_token", Json::String(text)) => position.token = Some(Token::from_text(text)),
                ("resume_token", _) => {
                    return Err("Source offset 'resume_token' parameter value is not a text".into());
                }
                ("initsync", Json::Bool(unfinished)) => position.unfinished = *unfinished,
                ("initsync", Json::String(text)) => position.unfinished = text.eq_ignore_ascii_case("true"),
                ("initsync", Json::Null) => {}
                (UNDELIVERED, undelivered) => position.undelivered = *undelivered == Json::Bool(true),
                ("initsync", _) => return Err("Source offset 'initsync' parameter value is not a boolean".into()),
                (name, _) if OpenTransaction::is_member(name) => {}
                _ => drop(position.others.insert(name.clone(), value.clone())),
            }
        }
        if position.token.is_none() && position.sec <= 0 && !position.unfinished {
            return Err("Source offset has neither a 'resume_token' nor a time in 'sec' and 'ord'".into());
        }
        Ok(position)
    }
}

/// Strict extended JSON of a session id, as in `source.lsid` and in offsets.
pub(crate) fn lsid_text(lsid: &[u8]) -> String {
    let mut out = Vec::new();
    // A damaged id would have been refused with its event.
    let _ = extended_json::write_value(Writer::Strict, TextForm::Plain, kind::DOCUMENT, lsid, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

fn integer(offset: &OffsetMap, name: &str) -> Result<i32, String> {
    let number = match offset.get(name) {
        None | Some(Json::Null) => Some(0),
        Some(Json::Number(n)) => n.as_i64().or_else(|| n.as_f64().filter(|f| f.fract() == 0.0).map(|f| f as i64)),
        Some(Json::String(text)) => text.trim().parse().ok(),
        Some(_) => None,
    };
    // Unsigned in MongoDB, signed in stored offsets.
    number.and_then(|n| i32::try_from(n).ok().or_else(|| u32::try_from(n).ok().map(|n| n as i32))).ok_or_else(|| {
        let value = offset.get(name).map(Json::to_string).unwrap_or_default();
        format!("Source offset '{name}' parameter value {value} could not be converted to an integer")
    })
}

struct Fields<'a> {
    unfinished: bool,
    undelivered: bool,
    sec: i32,
    ord: i32,
    token: Option<&'a [u8]>,
    lsid: Option<&'a [u8]>,
    txn_number: Option<i64>,
    transaction: Option<&'a [u8]>,
}

/// Members of an offset as positions share them.
pub(crate) fn shared(members: &OffsetMap) -> Option<Arc<[u8]>> {
    if members.is_empty() { None } else { serde_json::to_vec(members).ok().map(Arc::from) }
}

fn write(fields: Fields<'_>, out: &mut BytesMut) {
    let number = fields.txn_number.map(i64::to_le_bytes);
    let parts = [
        (flag::TOKEN, fields.token),
        (flag::LSID, fields.lsid),
        (flag::TXN_NUMBER, number.as_ref().map(<[u8; 8]>::as_slice)),
        (flag::TRANSACTION, fields.transaction),
    ];
    let mut flags = if fields.unfinished { flag::UNFINISHED } else { 0 };
    flags |= if fields.undelivered { flag::UNDELIVERED } else { 0 };
    for (bit, part) in parts {
        flags |= if part.is_some() { bit } else { 0 };
    }
    out.reserve(10 + parts.iter().filter_map(|(_, part)| *part).map(|part| 4 + part.len()).sum::<usize>());
    out.put_slice(&[VERSION, flags]);
    out.put_i32_le(fields.sec);
    out.put_i32_le(fields.ord);
    for part in parts.into_iter().filter_map(|(_, part)| part) {
        out.put_u32_le(part.len() as u32);
        out.put_slice(part);
    }
}

/// Writes the positions of a batch's events one behind the other into shared memory.
#[derive(Debug, Default)]
pub struct Positions {
    buffer: BytesMut,
}

/// Memory that is asked for at once.
const CHUNK: usize = 16 << 10;

impl Positions {
    /// Behind an event with this cluster time, token document, session and transaction number, and with
    /// what is open then: a transaction, and what else is under way ([`shared`] members of the offset).
    pub fn of_event(
        &mut self,
        time: (u32, u32),
        token: &[u8],
        lsid: Option<&[u8]>,
        txn_number: Option<i64>,
        transaction: Option<&[u8]>,
        state: Option<&Arc<[u8]>>,
    ) -> Position {
        let length = |part: Option<&[u8]>| part.map_or(0, <[u8]>::len);
        let needed = token.len() + length(lsid) + length(transaction) + 64;
        if self.buffer.capacity() < needed {
            self.buffer = BytesMut::with_capacity(CHUNK.max(2 * needed));
        }
        let (sec, ord) = (time.0 as i32, time.1 as i32);
        write(
            Fields {
                unfinished: false,
                undelivered: false,
                sec,
                ord,
                token: Some(token),
                lsid,
                txn_number,
                transaction,
            },
            &mut self.buffer,
        );
        Position { place: self.buffer.split().freeze(), beside: state.cloned() }
    }
}

/// Translates stored offsets.
#[derive(Debug, Clone, Copy, Default)]
pub struct MongoCodec;

impl PositionCodec for MongoCodec {
    fn to_offset(&self, position: &Position) -> OffsetMap {
        MongoPosition::decode(position).map(|p| p.to_offset()).unwrap_or_default()
    }

    fn from_offset(&self, offset: &OffsetMap) -> Result<Position, String> {
        MongoPosition::from_offset(offset).map(|p| p.encode())
    }

    /// The cluster time, and in it the place in the transaction with the beginning of a hash of the token:
    /// different shards may have changes at the same time and place.
    fn change_id(&self, position: &Position) -> ChangeId {
        let position = MongoPosition::decode(position);
        let time = position.as_ref().and_then(MongoPosition::time).unwrap_or(Timestamp { time: 0, increment: 0 });
        let token = position.as_ref().and_then(|p| p.token.as_ref());
        let place = token.and_then(Token::place).unwrap_or(0);
        let hash = Sha256::digest(token.map(Token::as_bytes).unwrap_or_default());
        ChangeId {
            lsn: format!("{:010}:{:010}", time.time, time.increment),
            seq: format!("{place:010}-{}", hex(&hash[..8])),
        }
    }

    fn check_partition(&self, partition: &Map<String, Json>) -> Result<(), String> {
        let text = |name: &str| partition.get(name).and_then(Json::as_str).is_some_and(|t| !t.is_empty());
        if !text("server_id") {
            return Err("the partition needs the member 'server_id' with the connector's topic.prefix".into());
        }
        if partition.contains_key("rs") && !text("rs") {
            return Err("the member 'rs' of the partition is the name of a replica set".into());
        }
        match partition.keys().find(|name| !["server_id", "rs", "snapshot_portion"].contains(&name.as_str())) {
            Some(odd) => {
                Err(format!("'{odd}' is no member of a partition; 'server_id', 'rs' and 'snapshot_portion' are"))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bson::rawdoc;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const EVENT: &str = "awAAAAJfZGF0YQBbAAAAODI2QjBDNUVENTAwMDAwMDAyMkIwMjJDMDEwMDI5NkU1QTEwMDQ1NEFDQ0JBNUMyQkM0MDI0QTEyRDE3QzAzMzgyNjMyMTQ2MUU1RjY5NjQwMDJCMDIwMDA0AAA=";
    const BATCH: &str = "LwAAAAJfZGF0YQAfAAAAODI2QjBDNUYxMTAwMDAwMDA2MkIwMjI5Mjk2RTA0AAA=";

    fn offset(value: Json) -> OffsetMap {
        value.as_object().unwrap().clone()
    }

    /// Through the codec and back.
    fn stored(value: Json) -> Json {
        Json::Object(MongoCodec.to_offset(&MongoCodec.from_offset(&offset(value)).unwrap()))
    }

    #[test]
    fn offsets_of_an_event_and_of_a_heartbeat_keep_their_form() {
        let event = json!({"sec": 1795972821, "ord": 2, "resume_token": EVENT});
        assert_eq!(stored(event.clone()).to_string(), event.to_string());
        let heartbeat = json!({"sec": -1, "ord": -1, "resume_token": BATCH});
        assert_eq!(stored(heartbeat.clone()).to_string(), heartbeat.to_string());
        let snapshot = json!({"sec": -1, "ord": -1, "initsync": true, "resume_token": BATCH});
        assert_eq!(stored(snapshot.clone()).to_string(), snapshot.to_string());
        let begun = json!({"sec": -1, "ord": -1, "initsync": true, "undelivered": true, "resume_token": BATCH});
        assert_eq!(stored(begun.clone()).to_string(), begun.to_string());
        let decoded = MongoPosition::from_offset(&offset(snapshot)).unwrap();
        assert_eq!(decoded.clone().begun().to_offset(), offset(begun));
        assert!(decoded.is_unfinished());
        assert_eq!(decoded.time(), Some(Timestamp { time: 1_795_972_881, increment: 6 }));
        assert_eq!(decoded.told_until(), Some(Timestamp { time: 1_795_972_881, increment: 5 }));
        let event = MongoPosition::at(Timestamp { time: 9, increment: 4 });
        assert_eq!(event.told_until(), Some(Timestamp { time: 9, increment: 4 }));
    }

    #[test]
    fn a_quiet_stream_moves_the_token_and_nothing_else() {
        let event = json!({"sec": 1795972821, "ord": 2, "resume_token": EVENT, "lsid": "{}", "txnNumber": 7});
        let token = Token::from_text(BATCH);
        let moved = MongoPosition::from_offset(&offset(event)).unwrap().moved_to(token.clone());
        assert_eq!(
            Json::Object(moved.to_offset()),
            json!({"sec": 1795972821, "ord": 2, "resume_token": BATCH, "lsid": "{}", "txnNumber": 7})
        );
        let snapshot = json!({"sec": -1, "ord": -1, "initsync": true, "resume_token": EVENT});
        let moved = MongoPosition::from_offset(&offset(snapshot)).unwrap().moved_to(token);
        assert_eq!(Json::Object(moved.to_offset()), json!({"sec": -1, "ord": -1, "resume_token": BATCH}));
    }

    #[test]
    fn members_without_meaning_are_kept() {
        let full = json!({
            "sec": 5, "ord": 6, "resume_token": EVENT, "lsid": "{\"id\": 1}", "txnNumber": 7,
            "incremental_snapshot_correlation_id": null,
        });
        assert_eq!(stored(full.clone()), full);
    }

    /// As Debezium stores it inside of a transaction.
    #[test]
    fn an_open_transaction_is_kept_while_the_stream_is_quiet() {
        let inside = json!({
            "sec": 5, "ord": 6, "resume_token": EVENT, "transaction_id": "x:7",
            "transaction_data_collection_order_db.c": 2, "transaction_data_collection_order_db.a.b": 1,
        });
        assert_eq!(stored(inside.clone()).to_string(), inside.to_string());
        let position = MongoPosition::from_offset(&offset(inside)).unwrap();
        let token = Token::from_text(BATCH);
        let beaten = MongoPosition::passed_over(Bytes::copy_from_slice(token.as_bytes()), Some(&position)).to_offset();
        let moved = position.clone().moved_to(token).to_offset();
        for offset in [beaten, moved] {
            assert_eq!((&offset["resume_token"], &offset["transaction_id"]), (&json!(BATCH), &json!("x:7")));
            assert_eq!(offset["transaction_data_collection_order_db.a.b"], 1);
        }
        let closed = position.within(None).to_offset();
        assert_eq!(Json::Object(closed), json!({"sec": 5, "ord": 6, "resume_token": EVENT}));
        let odd = json!({"sec": 5, "ord": 6, "transaction_id": 7});
        assert!(MongoPosition::from_offset(&offset(odd)).unwrap_err().contains("'transaction_id'"));
    }

    #[test]
    fn mgo_27_numbers_may_be_texts_and_the_token_may_be_missing() {
        let old =
            MongoPosition::from_offset(&offset(json!({"sec": "1700000000", "ord": "3", "h": 12, "initsync": false})))
                .unwrap();
        assert_eq!((old.time(), &old.token), (Some(Timestamp { time: 1_700_000_000, increment: 3 }), &None));
        let hex = MongoPosition::from_offset(&offset(
            json!({"sec": 1, "ord": 1, "resume_token": "826B0C5F11000000062B0229296E04"}),
        ))
        .unwrap();
        assert_eq!(hex.to_offset()["resume_token"], json!(BATCH));
    }

    #[test]
    fn bad_offsets_say_what_is_wrong() {
        for (bad, text) in [
            (json!({"sec": "abc"}), "Source offset 'sec' parameter value \"abc\" could not be converted to an integer"),
            (
                json!({"sec": 1, "ord": 1.5}),
                "Source offset 'ord' parameter value 1.5 could not be converted to an integer",
            ),
            (
                json!({"sec": 1, "ord": 1, "resume_token": 5}),
                "Source offset 'resume_token' parameter value is not a text",
            ),
            (json!({"sec": 1, "ord": 1, "initsync": 5}), "Source offset 'initsync' parameter value is not a boolean"),
            (json!({"wrong": "x"}), "Source offset has neither a 'resume_token' nor a time in 'sec' and 'ord'"),
        ] {
            assert_eq!(MongoCodec.from_offset(&offset(bad)).unwrap_err(), text);
        }
    }

    #[test]
    fn partitions_name_the_server_and_maybe_a_replica_set() {
        let check = |value: Json| MongoCodec.check_partition(&offset(value));
        assert!(check(json!({"server_id": "shop"})).is_ok());
        assert!(check(json!({"rs": "rs0", "server_id": "shop"})).is_ok());
        for bad in [
            json!({"wrong": "x"}),
            json!({}),
            json!({"server_id": 5}),
            json!({"server_id": "a", "x": "y"}),
            json!({"server_id": "a", "rs": null}),
        ] {
            assert!(check(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn position_of_an_event_by_both_ways() {
        let token = rawdoc! {"_data": "826B0C5ED5000000022B022C0100296E"};
        let lsid = rawdoc! {"id": bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes: vec![1; 16] }};
        let event: Bytes = rawdoc! {
            "_id": token.clone(), "operationType": "insert", "clusterTime": Timestamp { time: 9, increment: 4 },
            "lsid": lsid.clone(), "txnNumber": 3_i64,
        }
        .into_bytes()
        .into();
        let slow = MongoPosition::of_event(&event).unwrap();
        let mut positions = Positions::default();
        let fast = positions.of_event((9, 4), token.as_bytes(), Some(lsid.as_bytes()), Some(3), None, None);
        assert_eq!(fast, slow.encode());
        assert_eq!(MongoPosition::decode(&fast), Some(slow.clone()));
        let offset = slow.to_offset();
        assert_eq!(offset["lsid"], json!(r#"{"id": {"$binary": "AQEBAQEBAQEBAQEBAQEBAQ==","$type": "04"}}"#));
        assert_eq!((&offset["sec"], &offset["ord"], &offset["txnNumber"]), (&json!(9), &json!(4), &json!(3)));
        // What positions have in common is shared by them.
        let mut members = OffsetMap::new();
        members.insert("incremental_snapshot_collections".into(), "x".repeat(900_000).into());
        let state = shared(&members).unwrap();
        let with = |n| positions.of_event((9, n), token.as_bytes(), None, None, None, Some(&state));
        let [one, other] = [5, 6].map(with);
        assert!(one.place.len() < 1_000 && Arc::ptr_eq(one.beside.as_ref().unwrap(), other.beside.as_ref().unwrap()));
        assert_eq!(MongoPosition::decode(&one).unwrap().others(), &members);
        let next = positions.of_event((9, 5), token.as_bytes(), None, None, None, None);
        assert_eq!(MongoPosition::decode(&next).unwrap().time(), Some(Timestamp { time: 9, increment: 5 }));
        assert_eq!(MongoPosition::of_event(&rawdoc! {"a": 1}.into_bytes().into()), None);
    }

    #[test]
    fn unknown_bytes_are_no_position() {
        for bytes in [
            b"".as_slice(),
            b"\x01",
            b"\x02\0\0\0\0\0\0\0\0\0",
            b"\x01\x02\0\0\0\0\0\0\0\0",
            b"\x01\x02\0\0\0\0\0\0\0\0\xFF\xFF\xFF\xFF",
        ] {
            assert_eq!(MongoPosition::decode(&Position::new(Bytes::copy_from_slice(bytes))), None);
        }
        assert_eq!(MongoCodec.to_offset(&Position::default()), OffsetMap::new());
    }

    proptest! {
        #[test]
        fn any_bytes_decode_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = VERSION;
            }
            let _ = MongoCodec.to_offset(&Position::new(bytes.into()));
        }

        #[test]
        fn times_survive(sec in 1..i32::MAX, ord in 0..i32::MAX, unfinished in any::<bool>()) {
            let mut position = MongoPosition::at(Timestamp { time: sec as u32, increment: ord as u32 });
            position.unfinished = unfinished;
            prop_assert_eq!(MongoPosition::decode(&position.encode()), Some(position.clone()));
            let again = MongoPosition::from_offset(&position.to_offset());
            prop_assert_eq!(again, Ok(position));
        }
    }

    /// What a consumer drops repeats by: equal for one event however it was stored and read, different for
    /// two at the same time, and as text in their order.
    #[test]
    fn changes_are_told_apart() {
        let id = |place: &str| {
            let mut position = MongoPosition::at(Timestamp { time: 1_795_972_821, increment: 2 });
            position.token = Some(Token::from_text(&format!("826B0C5ED5000000022B022C0100{place}6E5A")));
            let encoded = position.encode();
            let id = MongoCodec.change_id(&encoded);
            let stored = MongoCodec.from_offset(&MongoCodec.to_offset(&encoded)).unwrap();
            assert_eq!(MongoCodec.change_id(&stored), id);
            id
        };
        let ids = ["29", "2B02", "2B04", "2C0100"].map(id);
        assert!(ids.iter().all(|id| id.lsn == "1795972821:0000000002"));
        assert!(ids.is_sorted_by(|a, b| a.seq < b.seq), "{ids:?}");
        assert!(ids[1].seq.starts_with("0000000001-") && ids[1].seq.len() == 27, "{ids:?}");
        let elsewhere = id("2B026E5A01");
        assert!(elsewhere.lsn == ids[1].lsn && elsewhere.seq != ids[1].seq && elsewhere.seq[..11] == ids[1].seq[..11]);
    }
}
