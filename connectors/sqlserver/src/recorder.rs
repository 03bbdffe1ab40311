//! Changes and rows of a snapshot as records.
//!
//! Each has the structure of its table as it was: the reader tells of structures before the changes that have them.
//! A change of which no record can be made follows `event.processing.failure.handling.mode`, and moves the position
//! like any other. A change counts as delivered with its last record; those before it, and what is told of
//! transactions, have the position before.
//!
//! It does not: read anything, say when something is stored, or follow signals.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use thalweg_core::envelope::{SnapshotMarker, SourceTime, context_headers};
use thalweg_core::event_failure::FailureMode;
use thalweg_core::naming::TopicNaming;
use thalweg_core::position::{OffsetMap, Position};
use thalweg_core::record::{Headers, Record, Value};
use thalweg_core::relational::cell::Cell;
use thalweg_core::relational::event::{EventMaker, Occasion, RowChange};
use thalweg_core::relational::schema_builder::SchemaBuilder;
use thalweg_core::relational::schema_change::{SchemaChange, SchemaChangeTopic};
use thalweg_core::relational::table::Table;
use thalweg_core::relational::table_filter::TableFilter;
use thalweg_core::relational::table_id::TableId;
use thalweg_core::relational::table_json::{ChangeKind, TableChange};
use thalweg_core::relational::table_schema::TableSchema;
use thalweg_core::transaction::TransactionMonitor;
use thalweg_core::{Error, ErrorKind, Phase};

use crate::change::{Change, Rows};
use crate::instance::CaptureInstance;
use crate::options::SqlServerConfig;
use crate::position::{self, Place, SqlServerPosition};
use crate::source_block::{self, CONNECTOR, SourceBlocks, TableTexts};

/// Text that stands for the statement of a change of structure: the log does not have it.
const NO_STATEMENT: &str = "N/A";

/// What became of changes that nobody has asked for yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    pub creates: u64,
    pub updates: u64,
    pub deletes: u64,
    /// Transactions whose end was told.
    pub transactions: u64,
    /// Left out by the user's choice.
    pub filtered: u64,
    /// Without a record, whatever the configuration made of them.
    pub failed: u64,
}

/// A structure, as records of its table need it.
struct Known {
    table: Arc<Table>,
    schema: TableSchema,
    names: TableTexts,
    /// A table for signals only has no records.
    is_told: bool,
}

/// Rows of one capture instance: for each column of the table where its cell stands.
struct Arrangement {
    known: Arc<Known>,
    /// `None`: as they are.
    places: Option<Vec<Option<usize>>>,
}

pub struct Recorder {
    builder: SchemaBuilder,
    events: EventMaker,
    blocks: SourceBlocks,
    filter: Arc<TableFilter>,
    /// Unset: consumers are not told of structures.
    structures: Option<SchemaChangeTopic>,
    /// Unset: nothing is told of transactions.
    transactions: Option<TransactionMonitor>,
    on_failure: FailureMode,
    known: BTreeMap<TableId, Arc<Known>>,
    /// By change table.
    arrangements: HashMap<i32, Arrangement>,
    /// What positions hold beside the place: of an incremental snapshot and of signals.
    beside: Option<Arc<[u8]>>,
    /// Behind what was told last.
    last: Position,
    place: (Place, i64),
    /// When the last change happened.
    time: SourceTime,
    tally: Tally,
}

impl Recorder {
    /// # Errors
    /// A list of the configuration that cannot be compiled.
    pub fn new(config: &SqlServerConfig, filter: Arc<TableFilter>, task: u32, run_id: &str) -> Result<Self, Error> {
        let events = &config.events;
        let prefix = &config.topic_prefix;
        let headers = match events.extended_headers {
            true => context_headers(prefix, task, CONNECTOR, run_id),
            false => Headers::default(),
        };
        let transactions = TopicNaming::new(events.naming.clone()).transaction();
        Ok(Self {
            builder: events.schema_builder(source_block::schema())?,
            events: EventMaker {
                headers,
                tombstones: events.tombstones,
                skip_unchanged: events.skip_unchanged,
                skipped: config.stream.skipped,
            },
            blocks: SourceBlocks::new(&events.reported_version, prefix),
            filter,
            structures: events
                .schema_changes
                .then(|| SchemaChangeTopic::new(prefix, CONNECTOR, source_block::schema())),
            transactions: events.transactions.then(|| TransactionMonitor::new(transactions)),
            on_failure: events.on_failure,
            known: BTreeMap::new(),
            arrangements: HashMap::new(),
            beside: None,
            last: Position::default(),
            place: (Place::default(), 0),
            time: SourceTime::from_millis(0),
            tally: Tally::default(),
        })
    }

    /// What the events since the last call were.
    pub fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// Changes follow that stand behind `position`. A transaction that was open there goes on.
    pub fn stream_from(&mut self, position: &SqlServerPosition) {
        if let Some(transactions) = &mut self.transactions {
            transactions.resume(position.transaction());
        }
        self.beside = position::shared(position.others());
        self.place = (position.place, position.serial);
        // With what it says of a snapshot, until something moves it.
        self.last = position.encode();
    }

    /// Everything up to a place was read, and nothing of it is told.
    pub fn move_to(&mut self, place: Place, serial: i64) {
        self.place = (place, serial);
        self.last = self.position();
    }

    /// Behind what was told last.
    pub const fn last(&self) -> &Position {
        &self.last
    }

    /// From now on positions hold this of an incremental snapshot and of signals.
    pub fn set_beside(&mut self, members: Option<&OffsetMap>) {
        self.beside = members.and_then(position::shared);
        self.last = self.position();
    }

    fn position(&self) -> Position {
        let open = self.transactions.as_ref().and_then(TransactionMonitor::state);
        SqlServerPosition::behind(self.place.0, self.place.1, open, self.beside.clone())
    }

    /// The structure counts for what follows.
    ///
    /// # Errors
    /// Its columns cannot be fields of a message.
    pub fn learn(&mut self, table: &Arc<Table>) -> Result<(), Error> {
        let known = Known {
            schema: self.builder.build(table)?,
            names: TableTexts::new(&table.id),
            is_told: self.filter.is_listed(&table.id)?,
            table: table.clone(),
        };
        self.arrangements.retain(|_, arrangement| arrangement.known.table.id != table.id);
        self.known.insert(table.id.clone(), Arc::new(known));
        Ok(())
    }

    /// The record of a structure, if consumers are told. `marker` and no statement: in a snapshot.
    pub fn structure(
        &mut self,
        kind: ChangeKind,
        table: &Arc<Table>,
        marker: SnapshotMarker,
        (place, position): (Place, Position),
        now: SourceTime,
    ) -> Option<Record> {
        let topic = self.structures.as_ref()?;
        let source = self.blocks.at(&TableTexts::new(&table.id), marker, place, now);
        let change = SchemaChange {
            source,
            ts_ms: now.ms,
            database_name: table.id.catalog().unwrap_or_default(),
            schema_name: table.id.schema(),
            ddl: (marker == SnapshotMarker::False).then_some(NO_STATEMENT),
            changes: &[TableChange::new(kind, (**table).clone())],
        };
        Some(topic.record(change, position))
    }

    /// Appends the records of a change.
    ///
    /// # Errors
    /// It has none, and the configuration says to stop; its table's structure is not known.
    pub fn change(&mut self, change: Change, now: SourceTime, out: &mut Vec<Record>) -> Result<(), Error> {
        let Change { instance, place, serial, time, rows, .. } = change;
        let time = time.unwrap_or(now);
        let arrangement = self.arrangement(&instance)?;
        let (known, rows) = (arrangement.known.clone(), arrangement.arranged(rows));
        let before = self.last.clone();
        self.place = (place, serial);
        self.time = time;
        if !known.is_told {
            self.tally.filtered += 1;
            self.last = self.position();
            return Ok(());
        }
        let source = self.blocks.change(&known.names, place, serial, time);
        let made = self.made(&known, row_change(&rows), source, (now, before), out);
        self.last = self.position();
        match made {
            Ok(true) => {
                // The last record takes the change's own position.
                if let Some(last) = out.last_mut() {
                    last.position = self.last.clone();
                }
                match rows {
                    Rows::Insert(_) => self.tally.creates += 1,
                    Rows::Delete(_) => self.tally.deletes += 1,
                    Rows::Update { .. } => self.tally.updates += 1,
                }
            }
            Ok(false) => self.tally.filtered += 1,
            Err(error) => self.fail(&known.table.id, Phase::Stream, &error)?,
        }
        Ok(())
    }

    /// Appends the records of a change, and before them what is to be told of its transaction. False: there are
    /// none.
    fn made(
        &mut self,
        known: &Known,
        change: RowChange<'_>,
        source: Value,
        (now, mut before): (SourceTime, Position),
        out: &mut Vec<Record>,
    ) -> Result<bool, Error> {
        let start = out.len();
        let Some(monitor) = &mut self.transactions else {
            let occasion = Occasion { source, now, before: &before, transaction: &mut || Value::Null };
            return Ok(self.events.records(&known.schema, change, occasion, out)?.is_some());
        };
        let id = self.place.0.commit.map(|lsn| match self.blocks.commit(lsn) {
            thalweg_core::record::Text::Shared(id) => id,
            other => other.as_str().into(),
        });
        let mut told = Vec::new();
        let (mut is_entered, mut moved) = (false, None);
        let stood = SqlServerPosition::decode(&before);
        let time_ms = self.time.ms;
        let mut block = || {
            if !std::mem::replace(&mut is_entered, true) {
                let place = |state: Option<&[u8]>| {
                    let position = stood.clone().map_or_else(Position::default, |p| p.within(state).encode());
                    moved = Some(position.clone());
                    position
                };
                monitor.enter(id.as_ref(), time_ms, place, &mut told);
            }
            monitor.count(&known.schema.full_name)
        };
        let occasion = Occasion { source, now, before: &before, transaction: &mut block };
        let made = self.events.records(&known.schema, change, occasion, out)?.is_some();
        if let Some(moved) = moved {
            before = moved;
            out[start..].iter_mut().for_each(|record| record.position = before.clone());
        }
        // An end is told with a begin behind it.
        self.tally.transactions += u64::from(told.len() > 1);
        out.splice(start..start, told);
        Ok(made)
    }

    /// The transaction of the last change is over, and nothing follows: the record of its end.
    pub fn transaction_over(&mut self, out: &mut Vec<Record>) {
        let Some(monitor) = &mut self.transactions else { return };
        let (place, beside) = (self.place, self.beside.clone());
        let position = |state: Option<&[u8]>| SqlServerPosition::behind(place.0, place.1, state, beside.clone());
        let before = out.len();
        monitor.enter(None, self.time.ms, position, out);
        self.tally.transactions += (out.len() - before) as u64;
        self.last = self.position();
    }

    /// Appends the records of a row of a snapshot, all with this position. `place`: where the snapshot began.
    ///
    /// # Errors
    /// As [`Recorder::change`].
    pub fn read(
        &mut self,
        row: &SnapshotRow,
        marker: SnapshotMarker,
        (place, position): (Place, &Position),
        now: SourceTime,
        out: &mut Vec<Record>,
    ) -> Result<(), Error> {
        let Some(known) = self.known.get(&row.table.id).cloned() else { return Err(unknown(&row.table.id)) };
        let source = self.blocks.at(&known.names, marker, place, row.time);
        let occasion = Occasion { source, now, before: position, transaction: &mut || Value::Null };
        match self.events.records(&known.schema, RowChange::Read(&row.cells), occasion, out) {
            Ok(_) => Ok(()),
            Err(error) => self.fail(&known.table.id, Phase::Snapshot, &error),
        }
    }

    fn fail(&mut self, table: &TableId, phase: Phase, error: &Error) -> Result<(), Error> {
        self.tally.failed += 1;
        let offset = SqlServerPosition::behind(self.place.0, self.place.1, None, None);
        let offset = SqlServerPosition::decode(&offset).map(|p| p.to_offset()).unwrap_or_default();
        let at = format!("offset {} of table {table}", serde_json::Value::Object(offset));
        self.on_failure.take(at, phase, error)
    }

    fn arrangement(&mut self, instance: &Arc<CaptureInstance>) -> Result<&Arrangement, Error> {
        use std::collections::hash_map::Entry;
        match self.arrangements.entry(instance.object) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let known = self.known.get(&instance.table).ok_or_else(|| unknown(&instance.table))?;
                Ok(entry.insert(Arrangement::new(known.clone(), instance)))
            }
        }
    }
}

/// A row of a table, in the order of its columns.
#[derive(Debug)]
pub struct SnapshotRow {
    pub table: Arc<Table>,
    /// When the table was read.
    pub time: SourceTime,
    pub cells: Vec<Cell>,
}

impl Arrangement {
    fn new(known: Arc<Known>, instance: &CaptureInstance) -> Self {
        let place = |name: &str| instance.columns.iter().position(|captured| captured.column.name == name);
        let places: Vec<Option<usize>> = known.table.columns().iter().map(|column| place(&column.name)).collect();
        let as_they_are =
            places.len() == instance.columns.len() && places.iter().enumerate().all(|(at, place)| *place == Some(at));
        for captured in &instance.columns {
            if known.table.column(&captured.column.name).is_none() {
                tracing::warn!(table = %known.table.id, column = captured.column.name, "a captured column is not in the structure of its table and is left out");
            }
        }
        Self { known, places: (!as_they_are).then_some(places) }
    }

    fn arranged(&self, rows: Rows) -> Rows {
        match rows {
            Rows::Insert(row) => Rows::Insert(self.row(row)),
            Rows::Delete(row) => Rows::Delete(self.row(row)),
            Rows::Update { before, after } => Rows::Update { before: self.row(before), after: self.row(after) },
        }
    }

    fn row(&self, mut cells: Vec<Cell>) -> Vec<Cell> {
        let Some(places) = &self.places else { return cells };
        let mut take = |at: usize| cells.get_mut(at).map(|cell| std::mem::replace(cell, Cell::Null));
        places.iter().map(|place| place.and_then(&mut take).unwrap_or(Cell::Null)).collect()
    }
}

fn row_change(rows: &Rows) -> RowChange<'_> {
    match rows {
        Rows::Insert(row) => RowChange::Create(row),
        Rows::Delete(row) => RowChange::Delete(row),
        Rows::Update { before, after } => RowChange::Update { before: Some(before), after },
    }
}

fn unknown(table: &TableId) -> Error {
    let message = format!("the structure of table {table} is not known");
    Error::new(ErrorKind::SourceBusy, Phase::Stream, message)
        .advise("nothing to do if the table was dropped: the task reads the structures again")
}
