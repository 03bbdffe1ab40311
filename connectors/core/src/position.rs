//! Where a source resumes, and how that is stored.
//!
//! Inside a task a [`Position`] is opaque bytes: cheap to clone, understood by its connector only.
//! Outside (Raft, REST, import) it is the JSON object that Debezium stores as its offset; the
//! connector's [`PositionCodec`] translates. A [`SourcePartition`] names the independent
//! sub-stream that a position belongs to.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value as Json};

/// Opaque resume point. Empty means "nothing known".
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Position(pub Bytes);

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Position({} bytes)", self.0.len())
    }
}

/// An offset as Debezium stores it: a flat JSON object.
pub type OffsetMap = Map<String, Json>;

/// A source partition as Debezium names it, e.g. `{"server_id":"shop"}`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

impl fmt::Debug for SourcePartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.original)
    }
}

/// Translation between a connector's positions and Debezium's stored offsets.
#[allow(clippy::wrong_self_convention)]
pub trait PositionCodec: Send + Sync {
    fn to_offset(&self, position: &Position) -> OffsetMap;
    /// The error text names the member and what was expected.
    fn from_offset(&self, offset: &OffsetMap) -> Result<Position, String>;
    /// Checks the member names of a partition object given over REST.
    fn check_partition(&self, partition: &Map<String, Json>) -> Result<(), String>;
}

/// Read access to the stored offsets of one connector (any partition, own or not).
pub trait OffsetReader: Send + Sync {
    fn offset(&self, partition: &SourcePartition) -> Option<OffsetMap>;
}
