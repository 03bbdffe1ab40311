//! A snapshot: the structures of tables and then their rows, in one transaction.
//!
//! In order: tables are locked as far as the isolation wants it, the place in the log is taken, structures are read,
//! locks are let go, structures are written into the history, rows are handed over. The place is taken behind the locks and
//! before the rows, and the log trails the tables: changes after it may come twice, with the row and with the log,
//! and never get lost. Of rows at most a load is in memory.
//!
//! It does not: make records, decide whether one is taken, or store a position.

use std::collections::BTreeMap;
use std::sync::Arc;

use thalweg_config::RegexList;
use thalweg_core::progress::SnapshotProgress;
use thalweg_core::relational::cell::Cell;
use thalweg_core::relational::history::Captured;
use thalweg_core::relational::schema_builder::ColumnTypes;
use thalweg_core::relational::snapshot_mode::Reads;
use thalweg_core::relational::table::{Table, Tables};
use thalweg_core::relational::table_filter::TableFilter;
use thalweg_core::relational::table_id::{NameForm, TableId};
use thalweg_core::relational::table_json::ChangeKind;
use thalweg_core::{Error, Phase};

use crate::catalogue::{Catalogue, Listed};
use crate::change::size;
use crate::errors::{Class, Fault};
use crate::feed::Feed;
use crate::history::DatabaseHistory;
use crate::instance::CaptureInstance;
use crate::link::SqlLink;
use crate::lsn::Lsn;
use crate::options::{Included, Isolation, SqlServerConfig, TableOrder};
use crate::position::{Place, SnapshotKind, SqlServerPosition};
use crate::pump::Outlet;
use crate::select;
use crate::types::{self, SqlServerTypes};

/// Bytes of rows that are handed over together, besides the last one.
const LOAD_BYTES: usize = 1 << 20;

/// Who takes a snapshot, and of what.
pub(crate) struct Snapshot<'a> {
    pub(crate) config: &'a SqlServerConfig,
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) filter: &'a TableFilter,
    pub(crate) out: &'a Outlet,
    pub(crate) history: &'a mut DatabaseHistory,
    pub(crate) reads: Reads,
    /// The place that stays, whatever is read.
    pub(crate) keeps: Option<SqlServerPosition>,
}

/// What a snapshot came to.
pub(crate) struct Taken {
    pub(crate) position: SqlServerPosition,
    /// Of captured tables.
    pub(crate) tables: Tables,
}

impl Snapshot<'_> {
    /// Takes it on a connection of its own.
    ///
    /// # Errors
    /// The server, the history, or a list of the configuration that cannot be decided. Nothing of it counts then.
    pub(crate) async fn take(&mut self) -> Result<Taken, Error> {
        let mut link = SqlLink::new(Arc::new(self.config.connection.clone()), Some(&self.catalogue.database));
        let about = format!("database {}", self.catalogue.database);
        let snapshot = &self.config.snapshot;
        let failed = |fault: Fault| fault.error(&about, Phase::Snapshot);
        let begin = select::begin(snapshot.isolation, snapshot.lock_timeout_ms);
        link.begin(&begin).await.map_err(failed)?;
        let taken = self.within(&mut link).await;
        match taken {
            Ok(taken) => {
                link.end("COMMIT TRANSACTION").await.map_err(failed)?;
                self.out.send(Feed::Copied).await?;
                Ok(taken)
            }
            Err(fault) => {
                let error = failed(fault);
                // The reason counts, not what the end of a lost transaction says.
                let _ = link.end("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION").await;
                Err(error)
            }
        }
    }

    async fn within(&mut self, link: &mut SqlLink) -> Result<Taken, Fault> {
        let listed = self.catalogue.tables(link).await?;
        let captured = self.captured(&listed)?;
        let snapshot = &self.config.snapshot;
        if snapshot.locks && snapshot.isolation.locks() {
            for table in &captured {
                tracing::info!(table = %table.id, "Locking table");
                link.run(&select::lock(&table.id)).await?;
            }
        }
        let position = match &self.keeps {
            Some(position) => position.clone(),
            None => {
                let place = Place::at_commit(self.if_enabled(self.catalogue.max_lsn(link).await)?);
                SqlServerPosition::at(place, 1).in_snapshot(SnapshotKind::Initial, false)
            }
        };
        let reads_rows = self.reads == Reads::StructuresAndRows;
        let of_rows = if reads_rows { self.with_rows(&captured)? } else { Vec::new() };
        let of_rows = self.ordered(link, of_rows).await?;
        let expected = of_rows
            .iter()
            .map(|(id, rows)| (id.to_string(), SnapshotProgress { done: 0, expected: *rows, finished: false }));
        let expected: BTreeMap<String, SnapshotProgress> = expected.collect();
        if self.keeps.is_none() {
            self.out.send(Feed::Start(position.clone().undelivered())).await?;
        }
        self.out.send(Feed::Snapshot { position: position.clone(), expected }).await?;
        let (own, others) = self.structures(link, &listed, &captured).await?;
        // Nobody waits for the history with a lock.
        if self.config.snapshot.isolation == Isolation::RepeatableRead {
            link.run(select::RELEASE).await?;
        }
        let tables = self.tell(own, &others, &position, of_rows.is_empty()).await?;
        for (id, _) in &of_rows {
            if let Some(table) = tables.get(id) {
                self.rows(link, table).await?;
            }
            self.out.send(Feed::TableRead(id.clone())).await?;
        }
        Ok(Taken { position: position.completed(), tables })
    }

    /// A database that is only read once need not be enabled: nothing is known of its log then.
    fn if_enabled<T: Default>(&self, answer: Result<T, Fault>) -> Result<T, Fault> {
        match answer {
            Err(fault) if fault.class() == Class::NoObject && !self.config.snapshot.mode.streams() => Ok(T::default()),
            answer => answer,
        }
    }

    /// The captured tables: in the order of the include list, and of their names.
    fn captured(&self, listed: &[Listed]) -> Result<Vec<Listed>, Fault> {
        let mut captured = Vec::new();
        for table in listed {
            if self.filter.captures(&table.id)? {
                captured.push(table.clone());
            }
        }
        let mut ranks = Vec::new();
        for pattern in &self.config.tables.tables.include {
            let wrong = |e: thalweg_config::rule::RegexListError| Fault::Final(Error::config(e.to_string()));
            let pattern = RegexList::new(std::slice::from_ref(pattern)).map_err(wrong)?;
            let mut matching = Vec::new();
            for table in &captured {
                if pattern.matches(&table.id.text(NameForm::WithoutCatalog)).map_err(wrong)? {
                    matching.push(table.id.clone());
                }
            }
            ranks.push(matching);
        }
        captured.sort_by_key(|table| ranks.iter().position(|rank| rank.contains(&table.id)).unwrap_or(ranks.len()));
        Ok(captured)
    }

    /// Those whose rows are read.
    fn with_rows(&self, captured: &[Listed]) -> Result<Vec<TableId>, Fault> {
        let included: Included = self.config.snapshot.included()?;
        let mut tables = Vec::new();
        for table in captured {
            let reads = || Ok::<_, Error>(included.reads(&table.id)? && self.filter.is_listed(&table.id)?);
            if reads()? {
                tables.push(table.id.clone());
            }
        }
        Ok(tables)
    }

    /// With how many rows each has; 0: nobody counted.
    async fn ordered(&self, link: &mut SqlLink, tables: Vec<TableId>) -> Result<Vec<(TableId, u64)>, Fault> {
        if self.config.snapshot.order == TableOrder::Listed {
            return Ok(tables.into_iter().map(|id| (id, 0)).collect());
        }
        let mut counted = Vec::new();
        for id in tables {
            let rows = self.catalogue.count(link, &id).await?;
            counted.push((id, rows));
        }
        counted.sort_by_key(|(_, rows)| *rows);
        if self.config.snapshot.order == TableOrder::LargestFirst {
            counted.reverse();
        }
        Ok(counted)
    }

    /// The structures of captured tables, and of the others as far as the history has them.
    async fn structures(
        &self,
        link: &mut SqlLink,
        listed: &[Listed],
        captured: &[Listed],
    ) -> Result<(Vec<Table>, Vec<Table>), Fault> {
        let instances = self.if_enabled(self.catalogue.instances(link, Lsn::MAX).await)?;
        // Of those of a table the newest one comes last.
        let newest: BTreeMap<i32, &CaptureInstance> =
            instances.iter().map(|instance| (instance.source_object, instance)).collect();
        let keeps_all = self.config.history.captured != Captured::Tables;
        let others = listed.iter().filter(|table| keeps_all && !captured.contains(table));
        let (mut own, mut further) = (Vec::new(), Vec::new());
        // One that was dropped since it was listed has none.
        for table in captured {
            own.extend(self.structure(link, table, newest.get(&table.object)).await?);
        }
        for table in others {
            further.extend(self.structure(link, table, newest.get(&table.object)).await?);
        }
        Ok((own, further))
    }

    /// Writes structures down, and tells of those of captured tables. `is_all`: no rows follow.
    async fn tell(
        &mut self,
        own: Vec<Table>,
        others: &[Table],
        position: &SqlServerPosition,
        is_all: bool,
    ) -> Result<Tables, Fault> {
        for table in others {
            self.write_down(table, position).await?;
        }
        let mut tables = Tables::default();
        let count = own.len();
        for (at, table) in own.into_iter().enumerate() {
            self.write_down(&table, position).await?;
            tables.put(table.clone());
            let is_last = is_all && at + 1 == count;
            self.out.send(Feed::Structure { table: Arc::new(table), is_last }).await?;
        }
        Ok(tables)
    }

    async fn structure(
        &self,
        link: &mut SqlLink,
        table: &Listed,
        instance: Option<&&CaptureInstance>,
    ) -> Result<Option<Table>, Fault> {
        let keeps = |name: &str| match instance {
            Some(instance) if !self.config.stream.all_columns => {
                instance.columns.iter().any(|captured| captured.column.name == name)
            }
            _ => true,
        };
        self.catalogue.table(link, &table.id, table.object, keeps).await
    }

    async fn write_down(&mut self, table: &Table, position: &SqlServerPosition) -> Result<(), Fault> {
        let written = self.history.record(ChangeKind::Create, table, position, None, self.filter);
        Ok(written.await?)
    }

    /// Hands over the rows of a table, load by load.
    async fn rows(&self, link: &mut SqlLink, table: &Arc<Table>) -> Result<(), Fault> {
        let kept = self.kept(table)?;
        let expressions = select::expressions(table, &kept);
        let statement = match self.config.snapshot.overrides.statement(&table.id) {
            Some(statement) => select::overridden(statement, &expressions),
            None => select::rows(&table.id, &expressions),
        };
        let time = self.catalogue.now(link).await?;
        tracing::info!(table = %table.id, "For table using select statement: {statement}");
        let most = self.config.snapshot.fetch_size;
        let mut places: Option<Vec<Option<usize>>> = None;
        let (mut rows, mut bytes) = (Vec::new(), 0);
        let mut answer = link.ask(&statement, &[]).await?;
        while let Some(row) = answer.next().await? {
            let places = places.get_or_insert_with(|| {
                let names: Vec<&str> = row.columns().iter().map(tiberius::Column::name).collect();
                table.columns().iter().map(|column| names.iter().position(|name| *name == &*column.name)).collect()
            });
            let mut values: Vec<_> = row.into_iter().map(Some).collect();
            let mut cells = Vec::with_capacity(places.len());
            for (place, column) in places.iter().zip(table.columns()) {
                let value = place.and_then(|at| values.get_mut(at)?.take());
                let cell = value.map_or(Ok(Cell::Null), types::cell);
                let cell = cell
                    .map_err(|what| Fault::Answer(format!("table {}, column '{}': {what}", table.id, column.name)))?;
                bytes += size(&cell);
                cells.push(cell);
            }
            rows.push(cells);
            if rows.len() >= most || bytes >= LOAD_BYTES {
                let rows = std::mem::take(&mut rows);
                let load = Feed::Rows { table: table.clone(), time, rows };
                bytes = 0;
                self.out.send(load).await?;
            }
        }
        if !rows.is_empty() {
            self.out.send(Feed::Rows { table: table.clone(), time, rows }).await?;
        }
        Ok(())
    }

    /// The columns that are read: those of rows and keys, of types that messages have something for.
    fn kept(&self, table: &Table) -> Result<Vec<bool>, Error> {
        let types = SqlServerTypes::default();
        let mut kept = self.config.events.column_filter()?.columns(table)?;
        for at in self.config.events.key_columns(table)? {
            kept[at] = true;
        }
        for (kept, column) in kept.iter_mut().zip(table.columns()) {
            *kept &= types.value_type(column).is_some();
        }
        Ok(if kept.contains(&true) { kept } else { vec![true; kept.len()] })
    }
}
