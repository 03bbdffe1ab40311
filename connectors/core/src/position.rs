//! Where a source resumes, and how that is stored.
//!
//! Inside a task a [`Position`] is opaque bytes: cheap to clone, understood by its connector only.
//! Outside (Raft, REST, import) it is the JSON object that Debezium stores as its offset; the
//! connector's [`PositionCodec`] translates. A [`SourcePartition`] names the independent
//! sub-stream that a position belongs to.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value as Json};

use crate::error::{Error, ErrorKind, Phase, Result};

/// Opaque resume point. Empty means "nothing known".
///
/// What many positions have in common, the connector may put beside the place: it is shared and neither
/// copied nor written for each of them.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Position {
    pub place: Bytes,
    pub beside: Option<Arc<[u8]>>,
}

impl Position {
    /// With nothing beside the place.
    pub const fn new(place: Bytes) -> Self {
        Self { place, beside: None }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.place.is_empty()
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let beside = self.beside.as_ref().map_or(0, |beside| beside.len());
        write!(f, "Position({} bytes, {beside} beside)", self.place.len())
    }
}

/// An offset as Debezium stores it: a flat JSON object.
pub type OffsetMap = Map<String, Json>;

/// A source partition as Debezium names it, e.g. `{"server_id":"shop"}`. Compared by its canonical form.
#[derive(Clone)]
pub struct SourcePartition {
    canonical: Arc<str>,
    original: Arc<str>,
}

impl SourcePartition {
    /// From the JSON object; member order is kept for export and ignored for comparison.
    pub fn from_map(map: &Map<String, Json>) -> Self {
        let mut sorted: Vec<_> = map.iter().collect();
        sorted.sort_by(|a, b| a.0.cmp(b.0));
        let sorted: Map<String, Json> = sorted.into_iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        Self {
            canonical: Json::Object(sorted).to_string().into(),
            original: Json::Object(map.clone()).to_string().into(),
        }
    }
    /// From string pairs in the order the connector writes them.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let map = pairs.into_iter().map(|(k, v)| (k.to_owned(), Json::String(v.to_owned()))).collect();
        Self::from_map(&map)
    }
    /// Compact JSON with sorted members: the key under which positions are stored.
    pub fn canonical(&self) -> &Arc<str> {
        &self.canonical
    }
    /// Compact JSON in the connector's member order: what Debezium's offset topic holds.
    pub fn original(&self) -> &Arc<str> {
        &self.original
    }
    pub fn to_map(&self) -> Map<String, Json> {
        serde_json::from_str(&self.original).unwrap_or_default()
    }
}

impl PartialEq for SourcePartition {
    fn eq(&self, other: &Self) -> bool {
        self.canonical == other.canonical
    }
}

impl Eq for SourcePartition {}

impl PartialOrd for SourcePartition {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SourcePartition {
    fn cmp(&self, other: &Self) -> Ordering {
        self.canonical.cmp(&other.canonical)
    }
}

impl Hash for SourcePartition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.canonical.hash(state);
    }
}

impl fmt::Debug for SourcePartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.original)
    }
}

/// What tells a change apart from every other one of its topic, whenever it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeId {
    /// Of the transaction (or the moment) in the source's log. As text it rises with the log.
    pub lsn: String,
    /// Of the change in it. As text it rises with the order of the changes in the transaction.
    pub seq: String,
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |n: u8| char::from_digit(u32::from(n), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Translation between a connector's positions and Debezium's stored offsets.
#[allow(clippy::wrong_self_convention)]
pub trait PositionCodec: Send + Sync {
    fn to_offset(&self, position: &Position) -> OffsetMap;
    /// The error text names the member and what was expected.
    fn from_offset(&self, offset: &OffsetMap) -> Result<Position, String>;
    /// Checks the member names of a partition object given over REST.
    fn check_partition(&self, partition: &Map<String, Json>) -> Result<(), String>;
    /// The change behind which `position` stands. Follows from the position alone, so that a change that
    /// is read again, by whichever node, has the same.
    fn change_id(&self, position: &Position) -> ChangeId;
}

/// Member of an offset that was stored before the first record of a snapshot: nothing is delivered yet.
/// Debezium has stored nothing by then, so the REST interface does not show such an offset.
pub const UNDELIVERED: &str = "undelivered";

/// Whether Debezium would have stored this offset.
pub fn is_shown(offset: &OffsetMap) -> bool {
    offset.get(UNDELIVERED) != Some(&Json::Bool(true))
}

/// Read access to the stored offsets of one connector (any partition, own or not).
pub trait OffsetReader: Send + Sync {
    fn offset(&self, partition: &SourcePartition) -> Option<OffsetMap>;
}

/// The position stored for a partition. Nothing stored, an empty object and one of nulls only all
/// mean "none"; single nulls count as absent members.
///
/// # Errors
/// Kind `Codec`: the stored object is none of this connector's. Never taken as "none": a snapshot or
/// a start from now would follow.
pub fn stored(
    codec: &dyn PositionCodec,
    offsets: &dyn OffsetReader,
    partition: &SourcePartition,
) -> Result<Option<Position>> {
    let offset: OffsetMap = offsets.offset(partition).unwrap_or_default();
    let offset: OffsetMap = offset.into_iter().filter(|(_, value)| !value.is_null()).collect();
    if offset.is_empty() {
        return Ok(None);
    }
    let position = codec.from_offset(&offset).map_err(|text| {
        Error::new(ErrorKind::Codec, Phase::Start, format!("the stored offset of {partition:?} cannot be used: {text}"))
    })?;
    Ok(Some(position))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use serde_json::json;

    use super::*;

    struct Lsn;

    impl PositionCodec for Lsn {
        fn to_offset(&self, position: &Position) -> OffsetMap {
            json!({"lsn": String::from_utf8_lossy(&position.place)}).as_object().unwrap().clone()
        }
        fn from_offset(&self, offset: &OffsetMap) -> Result<Position, String> {
            assert!(offset.values().all(|value| !value.is_null()));
            let lsn = offset.get("lsn").and_then(Json::as_str).ok_or("member lsn is missing")?;
            Ok(Position::new(Bytes::copy_from_slice(lsn.as_bytes())))
        }
        fn check_partition(&self, _: &Map<String, Json>) -> Result<(), String> {
            Ok(())
        }
        fn change_id(&self, position: &Position) -> ChangeId {
            ChangeId { lsn: hex(&position.place), seq: "0".to_owned() }
        }
    }

    struct Stored(Json);

    impl OffsetReader for Stored {
        fn offset(&self, _: &SourcePartition) -> Option<OffsetMap> {
            self.0.as_object().cloned()
        }
    }

    #[test]
    fn what_is_stored_before_the_first_record_is_not_shown() {
        let shown = |offset: Json| is_shown(offset.as_object().unwrap());
        assert!(!shown(json!({"initsync": true, "undelivered": true})));
        assert!(shown(json!({"initsync": true})));
        assert!(shown(json!({"undelivered": false})));
    }

    /// RUN-14: empty entries and null members.
    #[test]
    fn run_14_empty_offsets_are_no_offsets() {
        let partition = SourcePartition::new([("server", "s")]);
        let read = |json| stored(&Lsn, &Stored(json), &partition);
        for none in [Json::Null, json!({}), json!({"lsn": null, "change_lsn": null})] {
            assert_eq!(read(none).unwrap(), None);
        }
        let position = Position::new(Bytes::from_static(b"7"));
        assert_eq!(read(json!({"lsn": "7", "change_lsn": null})).unwrap(), Some(position.clone()));
        assert_eq!(read(Json::Object(Lsn.to_offset(&position))).unwrap(), Some(position));
        let error = read(json!({"wrong": 1})).unwrap_err();
        assert_eq!(error.message, r#"the stored offset of {"server":"s"} cannot be used: member lsn is missing"#);
        assert_eq!((error.kind, error.policy()), (ErrorKind::Codec, crate::error::Policy::NeedsUser));
    }

    #[test]
    fn partitions_compare_without_regard_to_member_order() {
        let one = SourcePartition::new([("server", "s"), ("database", "d")]);
        let other = SourcePartition::new([("database", "d"), ("server", "s")]);
        assert_eq!(one, other);
        assert!(std::collections::HashSet::from([one.clone()]).contains(&other));
        assert_eq!(&**one.canonical(), r#"{"database":"d","server":"s"}"#);
        assert_eq!(&**one.original(), r#"{"server":"s","database":"d"}"#);
        assert_eq!(SourcePartition::from_map(&one.to_map()), one);
    }
}
