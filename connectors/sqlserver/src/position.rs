//! Where a database resumes: commit LSN, change LSN, and how many rows at that place are told.
//!
//! [`SqlServerPosition`] is the readable form; [`Position`] its bytes, which travel with every record. Members of
//! a stored offset that are no position (an incremental snapshot's) are kept as they are.
//!
//! Bytes: version, flags, serial number, then as the flags say: commit LSN, change LSN, open transaction (the
//! rest). Other members are beside them, as JSON: positions share them, however much they say.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Map, Value as Json};
use thalweg_core::position::{ChangeId, OffsetMap, Position, PositionCodec, UNDELIVERED};
use thalweg_core::transaction::OpenTransaction;

use crate::lsn::{self, Lsn};
use crate::offsets;

const VERSION: u8 = 1;

mod flag {
    pub(super) const COMMIT: u8 = 1;
    pub(super) const CHANGE: u8 = 2;
    /// Two bits: none, or the kind.
    pub(super) const SNAPSHOT: u8 = 4 | 8;
    pub(super) const SNAPSHOT_SHIFT: u32 = 2;
    pub(super) const COMPLETED: u8 = 16;
    pub(super) const UNDELIVERED: u8 = 32;
    pub(super) const TRANSACTION: u8 = 64;
    pub(super) const UNKNOWN: u8 = 128;
}

/// A place in the log. Missing numbers are below all others; commits count first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// Of the transaction: `__$start_lsn`.
    pub commit: Option<Lsn>,
    /// Of the change in it: `__$seqval`.
    pub change: Option<Lsn>,
}

impl Place {
    pub const fn new(commit: Lsn, change: Lsn) -> Self {
        Self { commit: Some(commit), change: Some(change) }
    }

    /// Behind all that was committed up to this number.
    pub const fn at_commit(commit: Option<Lsn>) -> Self {
        Self { commit, change: None }
    }
}

/// A snapshot that an offset is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotKind {
    Initial,
    Blocking,
    Incremental,
}

const KINDS: [(SnapshotKind, &str); 3] = [
    (SnapshotKind::Initial, "INITIAL"),
    (SnapshotKind::Blocking, "BLOCKING"),
    (SnapshotKind::Incremental, "INCREMENTAL"),
];

/// A resume point.
#[derive(Debug, Clone, PartialEq)]
pub struct SqlServerPosition {
    pub place: Place,
    /// Rows at the place that are told; an update is two of them.
    pub serial: i64,
    /// The snapshot that runs here.
    pub snapshot: Option<SnapshotKind>,
    /// All of that snapshot is told.
    pub completed: bool,
    /// Nothing of it is delivered.
    pub undelivered: bool,
    /// The transaction whose end is not told yet, as [`OpenTransaction`] writes it.
    transaction: Option<Bytes>,
    /// Further members of the stored offset.
    others: OffsetMap,
}

impl SqlServerPosition {
    /// Behind so many rows of a place.
    pub fn at(place: Place, serial: i64) -> Self {
        Self {
            place,
            serial,
            snapshot: None,
            completed: false,
            undelivered: false,
            transaction: None,
            others: OffsetMap::new(),
        }
    }

    /// The same place, with this snapshot running.
    #[must_use]
    pub fn in_snapshot(self, kind: SnapshotKind, completed: bool) -> Self {
        Self { snapshot: Some(kind), completed, ..self }
    }

    /// The same place, of whose snapshot nothing is delivered yet.
    #[must_use]
    pub fn undelivered(self) -> Self {
        Self { undelivered: true, ..self }
    }

    /// The same place, with all of its snapshot told.
    #[must_use]
    pub fn completed(self) -> Self {
        Self { completed: self.snapshot.is_some(), undelivered: false, ..self }
    }

    /// The same place, as if no snapshot had been there.
    #[must_use]
    pub fn past_snapshot(self) -> Self {
        Self { snapshot: None, completed: false, undelivered: false, ..self }
    }

    /// The same place, with this transaction open.
    #[must_use]
    pub fn within(self, transaction: Option<&[u8]>) -> Self {
        Self { transaction: transaction.map(Bytes::copy_from_slice), ..self }
    }

    /// The initial snapshot that began here is not complete.
    pub fn is_unfinished(&self) -> bool {
        self.snapshot == Some(SnapshotKind::Initial) && !self.completed
    }

    /// Everything of the commit is told: what is stored at the end of a snapshot, but not what was stored while
    /// an incremental one ran, which may be in the middle of a transaction.
    pub fn is_behind_commit(&self) -> bool {
        self.completed && self.place.change.is_none()
    }

    /// The transaction whose end is not told yet.
    pub fn transaction(&self) -> Option<OpenTransaction> {
        OpenTransaction::from_bytes(self.transaction.as_ref()?)
    }

    /// Members of the offset that are no position.
    pub fn others(&self) -> &OffsetMap {
        &self.others
    }

    /// The bytes of a position behind so many rows of a place, with an open transaction and other members of the
    /// offset ([`shared`]): without making the readable form first, once for each change.
    pub fn behind(place: Place, serial: i64, transaction: Option<&[u8]>, beside: Option<Arc<[u8]>>) -> Position {
        let transaction = transaction.map(Bytes::copy_from_slice);
        Self { transaction, ..Self::at(place, serial) }.encode_with(beside)
    }

    pub fn encode(&self) -> Position {
        self.encode_with(shared(&self.others))
    }

    fn encode_with(&self, beside: Option<Arc<[u8]>>) -> Position {
        let mut out = BytesMut::with_capacity(30 + self.transaction.as_ref().map_or(0, Bytes::len));
        let kind = |kind: SnapshotKind| KINDS.iter().position(|(known, _)| *known == kind).map_or(0, |at| at + 1);
        let set = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let flags = set(self.place.commit.is_some(), flag::COMMIT)
            | set(self.place.change.is_some(), flag::CHANGE)
            | (self.snapshot.map_or(0, kind) as u8) << flag::SNAPSHOT_SHIFT
            | set(self.completed, flag::COMPLETED)
            | set(self.undelivered, flag::UNDELIVERED)
            | set(self.transaction.is_some(), flag::TRANSACTION);
        out.put_slice(&[VERSION, flags]);
        out.put_i64_le(self.serial);
        for lsn in [self.place.commit, self.place.change].into_iter().flatten() {
            out.put_slice(lsn.as_bytes());
        }
        out.put_slice(self.transaction.as_deref().unwrap_or_default());
        Position { place: out.freeze(), beside }
    }

    /// `None`: nothing is known, or the bytes are of no version that this release reads.
    pub fn decode(position: &Position) -> Option<Self> {
        let mut rest = position.place.clone();
        let mut take = |n: usize| (rest.len() >= n).then(|| rest.split_to(n));
        let head = take(10)?;
        let (version, flags) = (head[0], head[1]);
        if version != VERSION || flags & flag::UNKNOWN != 0 {
            return None;
        }
        let mut lsn = |bit: u8| if flags & bit == 0 { Some(None) } else { Lsn::from_slice(&take(10)?).map(Some) };
        let place = Place { commit: lsn(flag::COMMIT)?, change: lsn(flag::CHANGE)? };
        let kind = usize::from((flags & flag::SNAPSHOT) >> flag::SNAPSHOT_SHIFT);
        let is_open = flags & flag::TRANSACTION != 0;
        if !is_open && !rest.is_empty() {
            return None;
        }
        Some(Self {
            place,
            serial: i64::from_le_bytes(head[2..10].try_into().ok()?),
            snapshot: kind.checked_sub(1).map(|at| KINDS[at].0),
            completed: flags & flag::COMPLETED != 0,
            undelivered: flags & flag::UNDELIVERED != 0,
            transaction: is_open.then_some(rest),
            others: position.beside.as_ref().and_then(|json| serde_json::from_slice(json).ok()).unwrap_or_default(),
        })
    }

    /// As Debezium stores it. Of an initial snapshot nothing but the snapshot is stored.
    pub fn to_offset(&self) -> OffsetMap {
        let mut offset = OffsetMap::new();
        if let Some(kind) = self.snapshot {
            let text = KINDS.iter().find(|(known, _)| *known == kind).map_or("", |(_, text)| text);
            offset.insert("snapshot".into(), text.into());
            offset.insert("snapshot_completed".into(), self.completed.into());
        }
        if self.undelivered {
            offset.insert(UNDELIVERED.into(), true.into());
        }
        offset.insert("commit_lsn".into(), lsn::text(self.place.commit).into());
        offset.insert("change_lsn".into(), lsn::text(self.place.change).into());
        offset.insert("event_serial_no".into(), self.serial.into());
        if self.snapshot == Some(SnapshotKind::Initial) {
            return offset;
        }
        if let Some(open) = self.transaction() {
            open.add_to_offset(&mut offset);
        }
        offset.extend(self.others.clone());
        offset
    }

    /// # Errors
    /// The text names the member and what was expected.
    pub fn from_offset(offset: &OffsetMap) -> Result<Self, String> {
        let place = Place { commit: lsn_member(offset, "commit_lsn")?, change: lsn_member(offset, "change_lsn")? };
        let mut position = Self::at(place, serial(offset)?);
        position.snapshot = snapshot(offset)?;
        position.completed = flag_member(offset, "snapshot_completed")?;
        position.undelivered = offset.get(UNDELIVERED) == Some(&Json::Bool(true));
        if position.place.commit.is_none() && position.snapshot.is_none() && !offset.contains_key("commit_lsn") {
            return Err(
                "Source offset has no 'commit_lsn': an LSN like 0000002a:000003b8:0003, or NULL, is expected".into()
            );
        }
        if position.place.commit.is_none() && position.place.change.is_some() {
            return Err(
                "Source offset has a 'change_lsn' but no 'commit_lsn': both or only the latter are expected".into()
            );
        }
        let open = OpenTransaction::from_offset(offset)?;
        position.transaction = open.map(|open| Bytes::copy_from_slice(open.as_bytes()));
        const OWN: [&str; 6] =
            ["commit_lsn", "change_lsn", "event_serial_no", "snapshot", "snapshot_completed", UNDELIVERED];
        let is_other = |name: &str| !OWN.contains(&name) && !OpenTransaction::is_member(name);
        let others = offset.iter().filter(|(name, _)| is_other(name));
        position.others = others.map(|(name, value)| (name.clone(), value.clone())).collect();
        Ok(position)
    }
}

/// Members of an offset as positions hold them; `None`: there are none.
pub fn shared(others: &OffsetMap) -> Option<Arc<[u8]>> {
    if others.is_empty() { None } else { serde_json::to_vec(others).ok().map(Arc::from) }
}

fn unreadable(name: &str, value: &Json, expected: &str) -> String {
    let value: String = value.to_string().chars().take(100).collect();
    format!("Source offset '{name}' parameter value {value} could not be converted to {expected}")
}

fn lsn_member(offset: &OffsetMap, name: &str) -> Result<Option<Lsn>, String> {
    match offset.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) if text == lsn::NULL => Ok(None),
        Some(value) => {
            let lsn = value.as_str().and_then(Lsn::parse);
            lsn.map(Some).ok_or_else(|| unreadable(name, value, "an LSN like 0000002a:000003b8:0003"))
        }
    }
}

fn serial(offset: &OffsetMap) -> Result<i64, String> {
    let Some(value) = offset.get("event_serial_no").filter(|value| !value.is_null()) else { return Ok(0) };
    let number = match value {
        Json::String(text) => text.trim().parse().ok(),
        number => number.as_i64(),
    };
    number.filter(|n| *n >= 0).ok_or_else(|| unreadable("event_serial_no", value, "a number of rows"))
}

/// A kind, or the truth values of older releases.
fn snapshot(offset: &OffsetMap) -> Result<Option<SnapshotKind>, String> {
    let text = match offset.get("snapshot") {
        None | Some(Json::Null | Json::Bool(false)) => return Ok(None),
        Some(Json::Bool(true)) => return Ok(Some(SnapshotKind::Initial)),
        Some(Json::String(text)) => text.trim(),
        Some(value) => return Err(unreadable("snapshot", value, "a kind of snapshot")),
    };
    if text.eq_ignore_ascii_case("true") {
        return Ok(Some(SnapshotKind::Initial));
    }
    if text.eq_ignore_ascii_case("false") {
        return Ok(None);
    }
    let known = KINDS.iter().find(|(_, known)| known.eq_ignore_ascii_case(text));
    let fault = || unreadable("snapshot", &text.into(), "one of INITIAL, BLOCKING, INCREMENTAL");
    known.map(|(kind, _)| Some(*kind)).ok_or_else(fault)
}

fn flag_member(offset: &OffsetMap, name: &str) -> Result<bool, String> {
    match offset.get(name) {
        None | Some(Json::Null) => Ok(false),
        Some(Json::Bool(value)) => Ok(*value),
        Some(Json::String(text)) if text.eq_ignore_ascii_case("true") => Ok(true),
        Some(Json::String(text)) if text.eq_ignore_ascii_case("false") => Ok(false),
        Some(value) => Err(unreadable(name, value, "true or false")),
    }
}

/// Translates stored offsets.
#[derive(Debug, Clone, Copy, Default)]
pub struct SqlServerCodec;

impl PositionCodec for SqlServerCodec {
    fn to_offset(&self, position: &Position) -> OffsetMap {
        SqlServerPosition::decode(position).map(|p| p.to_offset()).unwrap_or_default()
    }

    fn from_offset(&self, offset: &OffsetMap) -> Result<Position, String> {
        SqlServerPosition::from_offset(offset).map(|position| position.encode())
    }

    fn check_partition(&self, partition: &Map<String, Json>) -> Result<(), String> {
        offsets::check_partition(partition)
    }

    fn change_id(&self, position: &Position) -> ChangeId {
        let position = SqlServerPosition::decode(position);
        let (place, serial) = position.map_or((Place::default(), 0), |p| (p.place, p.serial));
        let text = |lsn: Option<Lsn>| lsn.unwrap_or(Lsn::ZERO).to_string();
        ChangeId { lsn: text(place.commit), seq: format!("{}-{serial:019}", text(place.change)) }
    }
}

#[cfg(test)]
#[path = "position_tests.rs"]
mod tests;
