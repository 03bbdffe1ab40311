//! The source block of records: where in the server's log an event is from.

use std::sync::{Arc, LazyLock};

use thalweg_core::envelope::{SnapshotMarker, SourceCommon, SourceTime, source_schema};
use thalweg_core::record::{Schema, Text, Value};
use thalweg_core::relational::table_id::TableId;

use crate::lsn::Lsn;
use crate::position::Place;

/// Short name in `source` and headers.
pub const CONNECTOR: &str = "sqlserver";

/// Schema of the block.
pub fn schema() -> Arc<Schema> {
    static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
        let text = Arc::new(Schema::string());
        let opt_text = Arc::new(Schema::string().optional());
        let own = [
            ("schema", text.clone()),
            ("table", text),
            ("change_lsn", opt_text.clone()),
            ("commit_lsn", opt_text),
            ("event_serial_no", Arc::new(Schema::int64().optional())),
        ];
        Arc::new(source_schema("io.debezium.connector.sqlserver.Source", own))
    });
    SCHEMA.clone()
}

/// The names of a table, ready for blocks.
#[derive(Debug, Clone)]
pub struct TableTexts {
    db: Text,
    schema: Text,
    table: Text,
}

impl TableTexts {
    pub fn new(id: &TableId) -> Self {
        let text = |part: &str| Text::Shared(part.into());
        Self {
            db: text(id.catalog().unwrap_or_default()),
            schema: text(id.schema().unwrap_or_default()),
            table: text(id.table()),
        }
    }
}

/// Makes the blocks of one partition.
#[derive(Debug)]
pub struct SourceBlocks {
    version: Text,
    prefix: Text,
    /// The text of the commit before: changes of one come in runs.
    commit: Option<(Lsn, Text)>,
}

impl SourceBlocks {
    /// `version`: what records say of the product; `prefix`: `topic.prefix`.
    pub fn new(version: &str, prefix: &str) -> Self {
        Self { version: Text::Shared(version.into()), prefix: Text::Shared(prefix.into()), commit: None }
    }

    /// The text of a commit, shared by its changes.
    pub fn commit(&mut self, lsn: Lsn) -> Text {
        match &self.commit {
            Some((known, text)) if *known == lsn => text.clone(),
            _ => {
                let text = Text::Shared(lsn.to_string().into());
                self.commit = Some((lsn, text.clone()));
                text
            }
        }
    }

    /// Of a change that so many rows of its place precede, itself counted.
    pub fn change(&mut self, names: &TableTexts, place: Place, serial: i64, time: SourceTime) -> Value {
        let change = Value::or_null(place.change, |lsn| Value::text(lsn.to_string()));
        let commit = Value::or_null(place.commit, |lsn| Value::String(self.commit(lsn)));
        self.block(names, SnapshotMarker::False, time, [change, commit, Value::Int64(serial)])
    }

    /// Of a row of a snapshot, or of a structure.
    pub fn at(&mut self, names: &TableTexts, marker: SnapshotMarker, place: Place, time: SourceTime) -> Value {
        let commit = Value::or_null(place.commit, |lsn| Value::String(self.commit(lsn)));
        self.block(names, marker, time, [Value::Null, commit, Value::Null])
    }

    fn block(&self, names: &TableTexts, snapshot: SnapshotMarker, time: SourceTime, own: [Value; 3]) -> Value {
        let common = SourceCommon {
            version: self.version.clone(),
            connector: CONNECTOR,
            name: self.prefix.clone(),
            time,
            snapshot,
            db: names.db.clone(),
            sequence: None,
        };
        let mut values = common.values(own.len() + 2);
        values.extend([Value::String(names.schema.clone()), Value::String(names.table.clone())]);
        values.extend(own);
        Value::Struct(values)
    }
}
