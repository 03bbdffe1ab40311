//! What the fetching side of a partition hands to its recording side, in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use thalweg_core::envelope::SourceTime;
use thalweg_core::progress::SnapshotProgress;
use thalweg_core::relational::cell::Cell;
use thalweg_core::relational::table::{Table, Tables};
use thalweg_core::relational::table_id::TableId;

use crate::position::SqlServerPosition;
use crate::stream::Step;

#[derive(Debug)]
pub(crate) enum Feed {
    /// Reading starts here. To be stored before the first record: whoever takes over before a record is
    /// acknowledged must start at the same place.
    Start(SqlServerPosition),
    /// Structures and rows follow, all read at or after `position`.
    Snapshot {
        position: SqlServerPosition,
        /// By table what is expected.
        expected: BTreeMap<String, SnapshotProgress>,
    },
    /// The structure of a table, as the snapshot found it. `is_last`: neither another one nor rows follow.
    Structure { table: Arc<Table>, is_last: bool },
    /// Rows of a table.
    Rows {
        table: Arc<Table>,
        /// When the table was read.
        time: SourceTime,
        rows: Vec<Vec<Cell>>,
    },
    /// All rows of this table were handed over.
    TableRead(TableId),
    /// The snapshot is complete.
    Copied,
    /// The stream goes on behind this position, where structures are these.
    Stream { position: SqlServerPosition, tables: Tables },
    /// What the stream read; nothing: it found nothing new.
    Steps(Vec<Step>),
    /// The transaction of the last change is over.
    TransactionOver,
    /// Nothing follows, ever. What is known of the position.
    Finished(Option<SqlServerPosition>),
}
