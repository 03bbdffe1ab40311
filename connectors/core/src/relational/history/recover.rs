//! Writing a schema history, and going on with it at a stored position.

use crate::error::{Error, ErrorKind, Phase, Result};
use crate::position::{OffsetMap, SourcePartition};
use crate::relational::table::Tables;
use crate::relational::table_filter::TableFilter;
use crate::relational::table_id::{TableId, TwoParts};
use crate::relational::table_json::{ChangeKind, TableChange};

use super::fold::{Fold, Folded};
use super::record::{HistoryRecord, RecordError};
use super::store::HistoryStore;

/// How records relate to positions of a source.
pub trait HistoryOrder: Send + Sync {
    /// Whether a record at `recorded` counts for a task that goes on at `stored`. Positions of a snapshot count
    /// by their place in the log.
    fn is_at_or_before(&self, recorded: &OffsetMap, stored: &OffsetMap) -> bool;

    /// Whether a record is of this partition.
    fn is_of(&self, record: &HistoryRecord, partition: &SourcePartition) -> bool {
        record.source == *partition
    }
}

/// Which tables are written into the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Captured {
    /// All of which the structure is known.
    #[default]
    All,
    /// Those of databases that are captured (`store.only.captured.databases.ddl`).
    Databases,
    /// Those that are captured (`store.only.captured.tables.ddl`).
    Tables,
}

/// A partition and where its task goes on.
pub type StopPoint = (SourcePartition, OffsetMap);

/// What a task starts with.
#[derive(Debug, PartialEq, Eq)]
pub enum Resumed {
    /// Nothing was delivered yet: the structures are read from the source, and written down.
    Fresh,
    /// The structures as they were at the stored positions; those of captured tables only.
    Recovered(Tables),
    /// The history is gone and the user wants it made anew.
    Rebuild,
}

/// A schema history and the rules for it.
pub struct SchemaHistory {
    store: Box<dyn HistoryStore>,
    two: TwoParts,
    written: Captured,
}

impl SchemaHistory {
    /// `two`: what a table's name of two parts lacks.
    pub fn new(store: Box<dyn HistoryStore>, two: TwoParts, written: Captured) -> Self {
        Self { store, two, written }
    }

    /// Writes a record. When this returns, the changes count: only then they may be told to others. A record
    /// of which nothing is to be written is passed over.
    ///
    /// # Errors
    /// Those of the store, and a list that cannot be decided.
    pub async fn record(&mut self, mut record: HistoryRecord, filter: &TableFilter) -> Result<()> {
        if let Some(changes) = record.changes.take() {
            let kept: Result<Vec<Option<TableChange>>> = changes
                .into_iter()
                .map(|change| Ok(self.is_written(&change.table.id, filter)?.then_some(change)))
                .collect();
            let kept: Vec<TableChange> = kept?.into_iter().flatten().collect();
            if kept.is_empty() {
                return Ok(());
            }
            record.changes = Some(kept);
        }
        self.store.append(record.to_text().into()).await
    }

    fn is_written(&self, id: &TableId, filter: &TableFilter) -> Result<bool> {
        match self.written {
            Captured::All => Ok(true),
            Captured::Databases => filter.captures_database(id),
            Captured::Tables => filter.captures(id),
        }
    }

    /// What a task starts with that has delivered up to `stops` (none: nothing yet). `rebuilds`: the user wants
    /// a history that is gone to be made anew. A long history is made shorter where its store can be.
    ///
    /// # Errors
    /// Something was delivered, but the history knows nothing of it; a history that cannot be read.
    pub async fn resume(
        &mut self,
        stops: &[StopPoint],
        order: &dyn HistoryOrder,
        filter: &TableFilter,
        rebuilds: bool,
    ) -> Result<Resumed> {
        self.store.prepare().await?;
        if stops.is_empty() {
            return Ok(Resumed::Fresh);
        }
        let mut tables = Tables::default();
        let (mut read, mut applied) = (0_u64, 0_u64);
        let mut fold = Fold::new(self.store.compacts());
        let mut reader = self.store.read().await?;
        while let Some(texts) = reader.next().await? {
            for text in texts {
                read += 1;
                let Some(record) = self.counting(&text, read, stops, order)? else {
                    fold.ends(&tables);
                    continue;
                };
                fold.counts(&record, text.len());
                applied += u64::from(apply(record, &mut tables));
            }
        }
        fold.ends(&tables);
        drop(reader);
        tracing::info!(
            history = self.store.describe(),
            read,
            applied,
            tables = tables.len(),
            "structures were recovered"
        );
        if applied == 0 {
            return if rebuilds { Ok(Resumed::Rebuild) } else { Err(self.gone()) };
        }
        if let Some(Folded { count, texts }) = fold.into_folded() {
            let (history, records) = (self.store.describe(), texts.len());
            self.store.replace(count, texts).await?;
            tracing::info!(history, before = count, records, "the schema history was made shorter");
        }
        tables.retain(|id| filter.captures(id))?;
        Ok(Resumed::Recovered(tables))
    }

    /// The record, if it counts.
    fn counting(
        &self,
        text: &[u8],
        number: u64,
        stops: &[StopPoint],
        order: &dyn HistoryOrder,
    ) -> Result<Option<HistoryRecord>> {
        let record = match HistoryRecord::parse(text, self.two) {
            Ok(record) => record,
            Err(RecordError::Foreign) => {
                let history = self.store.describe();
                tracing::warn!(history, number, "something that is no record of a schema history is passed over");
                return Ok(None);
            }
            Err(error @ RecordError::Unreadable(_)) => {
                let message =
                    format!("record {number} of the schema history in {} cannot be read", self.store.describe());
                return Err(Error::new(ErrorKind::SchemaChanged, Phase::Start, message)
                    .because(&error)
                    .advise("restore the history, or set snapshot.mode=recovery to read the structures anew; that is safe if no structure has changed since the stored position"));
            }
        };
        let counts = |(partition, stored): &StopPoint| {
            order.is_of(&record, partition) && order.is_at_or_before(&record.position, stored)
        };
        Ok(stops.iter().any(counts).then_some(record))
    }

    fn gone(&self) -> Error {
        let message = format!(
            "The db history topic or its content is fully or partially missing: {} has nothing for the stored position",
            self.store.describe()
        );
        Error::new(ErrorKind::SchemaChanged, Phase::Start, message).advise(
            "set snapshot.mode=recovery to read the structures anew (safe if none has changed since the stored position), or reset the offsets of the stopped connector to take a new snapshot",
        )
    }
}

/// Whether the record changed anything.
fn apply(record: HistoryRecord, tables: &mut Tables) -> bool {
    let changes = record.changes.unwrap_or_default();
    let counted = !changes.is_empty();
    for TableChange { kind, previous_id, table } in changes {
        if let Some(previous) = &previous_id {
            tables.remove(previous);
        }
        match kind {
            ChangeKind::Create | ChangeKind::Alter => tables.put(table),
            ChangeKind::Drop => {
                tables.remove(&table.id);
            }
        }
    }
    counted
}

#[cfg(test)]
#[path = "recover_tests.rs"]
pub(super) mod tests;
