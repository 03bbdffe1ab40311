//! What a snapshot reads, and how it keeps apart from changes.

use std::time::Duration;

use thalweg_config::{Properties, Settings};
use thalweg_core::Error;
use thalweg_core::filter::{MatchMode, NameFilter};
use thalweg_core::relational::select_overrides::SelectOverrides;
use thalweg_core::relational::snapshot_mode::SnapshotMode;
use thalweg_core::relational::table_filter::passes_table;
use thalweg_core::relational::table_id::{NameForm, TableId, TwoParts};
use thalweg_core::snapshot::Strategy;

/// `snapshot.isolation.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Tables stay locked until the end.
    Exclusive,
    /// Tables are locked while structures are read, then rows that were read.
    RepeatableRead,
    ReadCommitted,
    ReadUncommitted,
    /// The state at the begin, without locks.
    Snapshot,
}

impl Isolation {
    /// Whether tables are locked while structures are read.
    pub const fn locks(self) -> bool {
        matches!(self, Self::Exclusive | Self::RepeatableRead)
    }
}

/// `snapshot.tables.order.by.row.count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableOrder {
    /// As the include list has them, then by name.
    Listed,
    SmallestFirst,
    LargestFirst,
}

#[derive(Debug, Clone)]
pub struct SnapshotConfig {
    pub mode: SnapshotMode,
    pub isolation: Isolation,
    /// `snapshot.locking.mode` is not `none`.
    pub locks: bool,
    /// -1: for ever.
    pub lock_timeout_ms: i64,
    pub order: TableOrder,
    /// `snapshot.include.collection.list`: tables whose rows are read.
    pub include: Vec<String>,
    pub overrides: SelectOverrides,
    pub delay: Duration,
    /// Between a complete snapshot and the stream.
    pub streaming_delay: Duration,
    /// Rows that are handed over together.
    pub fetch_size: usize,
    /// Rows in a chunk of an incremental snapshot.
    pub chunk_size: usize,
    pub recompiles_chunks: bool,
    pub watermarks: Strategy,
}

impl SnapshotConfig {
    /// # Errors
    /// Entries of the overrides that name no table.
    pub fn new(s: &Settings, properties: &Properties) -> Result<Self, Error> {
        let number = |name: &str| usize::try_from(s.int(name)).unwrap_or(0);
        Ok(Self {
            mode: SnapshotMode::from_settings(s),
            isolation: match s.text_or_empty("snapshot.isolation.mode") {
                "exclusive" => Isolation::Exclusive,
                "snapshot" => Isolation::Snapshot,
                "read_committed" => Isolation::ReadCommitted,
                "read_uncommitted" => Isolation::ReadUncommitted,
                _ => Isolation::RepeatableRead,
            },
            locks: s.text_or_empty("snapshot.locking.mode") != "none",
            lock_timeout_ms: s.int("snapshot.lock.timeout.ms"),
            order: match s.text_or_empty("snapshot.tables.order.by.row.count") {
                "ascending" => TableOrder::SmallestFirst,
                "descending" => TableOrder::LargestFirst,
                _ => TableOrder::Listed,
            },
            include: s.list("snapshot.include.collection.list").to_vec(),
            overrides: SelectOverrides::new(properties, TwoParts::SchemaAndTable)?,
            delay: s.millis("snapshot.delay.ms"),
            streaming_delay: s.millis("streaming.delay.ms"),
            fetch_size: Some(number("snapshot.fetch.size")).filter(|rows| *rows > 0).unwrap_or(2_000),
            chunk_size: number("incremental.snapshot.chunk.size"),
            recompiles_chunks: s.bool("incremental.snapshot.option.recompile"),
            watermarks: match s.text_or_empty("incremental.snapshot.watermarking.strategy") {
                text if text.eq_ignore_ascii_case("insert_delete") => Strategy::InsertDelete,
                _ => Strategy::InsertInsert,
            },
        })
    }

    /// Tables whose rows are read, of those that are captured.
    ///
    /// # Errors
    /// An entry that is no regular expression.
    pub fn included(&self) -> Result<Included, Error> {
        NameFilter::new(MatchMode::Regex, &self.include, &[]).map(Included).map_err(Error::config)
    }
}

/// `snapshot.include.collection.list`, compiled.
#[derive(Debug)]
pub struct Included(NameFilter);

impl Included {
    /// # Errors
    /// An expression that cannot be decided.
    pub fn reads(&self, id: &TableId) -> Result<bool, Error> {
        passes_table(&self.0, id, &[NameForm::Full, NameForm::WithoutCatalog])
    }
}
