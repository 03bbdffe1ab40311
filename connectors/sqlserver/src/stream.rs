//! The changes of a database, from a position on and without end.
//!
//! A look for changes finds the newest transaction that was captured and reads the window up to it: of the tables
//! that have changes in it, merged in the order of the log. A look that finds nothing new costs one statement;
//! one that does asks whether there are new capture instances, and costs one more statement for each hundred
//! captured tables, however many of them did not move, and the pages of those that did. Where changes are read
//! by functions it cannot be asked which moved: all are read.
//!
//! A restart reads its last transaction again and leaves out the rows that were told. Places inside of a
//! transaction may not rise along a table; from there to the end of the transaction nothing is left out, so that
//! changes may come twice but are never lost.
//!
//! It does not: make records, keep positions, wait, or read tables themselves.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use thalweg_core::envelope::SourceTime;
use thalweg_core::filter::NameFilter;
use thalweg_core::relational::table::{Table, Tables};
use thalweg_core::relational::table_filter::TableFilter;
use thalweg_core::relational::table_json::ChangeKind;
use thalweg_core::{Error, Phase};

use crate::catalogue::Catalogue;
use crate::change::Change;
use crate::errors::{Class, Fault};
use crate::instance::{CaptureInstance, in_turn};
use crate::link::{Parameter, SqlLink};
use crate::lsn::Lsn;
use crate::merge::Merge;
use crate::options::{QueryMode, StreamConfig};
use crate::pages::Pages;
use crate::position::{Place, SqlServerPosition};
use crate::statement::{ChangeQuery, quoted};

/// Change tables that one statement asks for changes.
const ASKED_AT_ONCE: usize = 100;

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Change(Change),
    /// Counts for all changes of the table that follow. It is told before the first of them.
    Structure {
        kind: ChangeKind,
        table: Arc<Table>,
        /// The first commit for which it counts.
        since: Lsn,
    },
    /// Another capture instance has the changes of this one's table from its `stop` on.
    Superseded(Arc<CaptureInstance>),
    /// A window without changes: all up to this commit is read.
    Quiet(Lsn),
    /// There is nothing new.
    Idle,
}

/// Which capture instances count.
pub struct Selection {
    pub tables: TableFilter,
    pub instances: NameFilter,
}

/// A window that is being read.
struct Window {
    to: Lsn,
    merge: Merge,
    /// Of each table by its change table: the place of its last row.
    previous: BTreeMap<i32, Place>,
    /// Places of this transaction do not rise.
    unordered: Option<Lsn>,
    told: bool,
    warned: bool,
}

pub struct ChangeStream {
    link: SqlLink,
    catalogue: Catalogue,
    config: StreamConfig,
    selection: Selection,
    /// Structures as they count for the changes that are told.
    known: Tables,
    /// Everything up to this commit is read, or where reading goes on.
    read: Option<Lsn>,
    /// The next window begins behind `read`, not at it.
    behind: bool,
    /// Where the stream began, and how many rows of that place were told before.
    resumed: (Place, i64),
    /// Rows at that place which came again.
    again: i64,
    /// The place of the change that was told last, and its number of rows.
    at: (Place, i64),
    /// When changes of a commit happened.
    time: Option<(Lsn, SourceTime)>,
    instances: Option<Vec<Arc<CaptureInstance>>>,
    /// Instances whose structure counts from their begin on, in that order.
    due: VecDeque<Arc<CaptureInstance>>,
    /// Change tables whose structure is known.
    settled: BTreeSet<i32>,
    /// Change tables of which it was told that others follow.
    superseded: BTreeSet<i32>,
    window: Option<Window>,
    /// Waits for structures that count before it.
    held: Option<Change>,
    ready: VecDeque<Step>,
    /// The state of SQL Server Agent was told.
    agent_told: bool,
}

impl ChangeStream {
    /// From a position on, where structures were as in `known`.
    pub fn new(
        link: SqlLink,
        catalogue: Catalogue,
        config: StreamConfig,
        selection: Selection,
        known: Tables,
        from: &SqlServerPosition,
    ) -> Self {
        Self {
            link,
            catalogue,
            config,
            selection,
            known,
            read: from.place.commit,
            behind: from.is_behind_commit(),
            resumed: (from.place, from.serial),
            again: 0,
            at: (from.place, from.serial),
            time: None,
            instances: None,
            due: VecDeque::new(),
            settled: BTreeSet::new(),
            superseded: BTreeSet::new(),
            window: None,
            held: None,
            ready: VecDeque::new(),
            agent_told: false,
        }
    }

    /// The structure that counts for changes of a table.
    pub fn structure(&self, table: &thalweg_core::relational::table_id::TableId) -> Option<&Arc<Table>> {
        self.known.get(table)
    }

    /// What comes next, without waiting for it. Cancel-safe.
    ///
    /// # Errors
    /// The server cannot be asked; the next call goes on where this one stood.
    pub async fn next(&mut self) -> Result<Step, Error> {
        loop {
            if let Some(step) = self.ready.pop_front() {
                return Ok(step);
            }
            let step = if self.window.is_some() { self.advance().await } else { self.open().await };
            match step {
                Ok(Some(step)) => return Ok(step),
                Ok(None) => {}
                Err(fault) => match self.dropped(&fault) {
                    Some(instance) => self.forget(&instance),
                    None => return Err(fault.error(&format!("database {}", self.catalogue.database), Phase::Stream)),
                },
            }
        }
    }

    /// Ends the session; gives up after `deadline`.
    pub async fn close(self, deadline: Duration) {
        self.link.close(deadline).await;
    }

    /// The capture instance of an object that is gone. Names may have quotes in them, so it is looked for those
    /// that are known.
    fn dropped(&self, fault: &Fault) -> Option<Arc<str>> {
        let said = fault.said().filter(|_| fault.class() == Class::NoObject)?.message();
        let database = &self.catalogue.database;
        let is_named = |object: String| said.contains(&format!("'{database}.cdc.{object}'"));
        let is_gone = |instance: &&Arc<CaptureInstance>| {
            let name = &instance.name;
            is_named(format!("{name}_CT")) || is_named(format!("fn_cdc_get_all_changes_{name}"))
        };
        self.instances.iter().flatten().find(is_gone).map(|instance| instance.name.clone())
    }

    /// Reads the window again, from what was told last, with the instances that there are then: another instance of
    /// the table may have what this one was to tell.
    fn forget(&mut self, instance: &str) {
        tracing::info!(database = %self.catalogue.database, "Table is no longer captured with capture instance {instance}");
        self.instances = None;
        self.due.clear();
        self.held = None;
        if self.window.take().is_some_and(|window| window.told) {
            self.read = self.at.0.commit;
            self.behind = false;
            self.resumed = self.at;
            self.again = 0;
        }
    }

    /// Finds the next window.
    async fn open(&mut self) -> Result<Option<Step>, Fault> {
        let to = self.catalogue.window_end(&mut self.link, self.read, self.config.transactions).await?;
        let Some(to) = to else {
            self.tell_of_agent().await;
            return Ok(Some(Step::Idle));
        };
        self.agent_told = false;
        if self.read.is_some_and(|read| to < read || (to == read && self.behind)) {
            return Ok(Some(Step::Idle));
        }
        let from = match self.read {
            None => Lsn::ZERO,
            Some(read) if self.behind => read.next().unwrap_or(read),
            Some(read) => read,
        };
        let is_new = match &self.instances {
            None => true,
            Some(_) => self.catalogue.has_new_instances(&mut self.link, from, to).await?,
        };
        if is_new {
            self.find_instances(to).await?;
        }
        while self.due.front().is_some_and(|instance| instance.start < from) {
            self.migrate().await?;
        }
        let moved = self.moved(from, to).await?;
        let pages = moved.into_iter().map(|instance| self.pages(instance, from, to)).collect();
        self.window = Some(Window {
            to,
            merge: Merge::new(pages),
            previous: BTreeMap::new(),
            unordered: None,
            told: false,
            warned: false,
        });
        Ok(None)
    }

    fn pages(&self, instance: Arc<CaptureInstance>, from: Lsn, to: Lsn) -> Pages {
        let columns: Vec<String> =
            instance.columns.iter().map(|c| c.column.selected(&format!("c.{}", quoted(&c.column.name)))).collect();
        let StreamConfig { query_mode, page_rows, skipped, .. } = self.config;
        let statements = &self.catalogue.statements;
        let query = ChangeQuery::new(statements, &instance.name, &columns, query_mode, instance.has_commands, skipped);
        Pages::new(instance, query, page_rows, (from, to))
    }

    /// The instances that have changes in a window.
    async fn moved(&mut self, from: Lsn, to: Lsn) -> Result<Vec<Arc<CaptureInstance>>, Fault> {
        let all = self.instances.iter().flatten();
        let begun: Vec<_> = all.filter(|i| i.start <= to && i.stop.is_none_or(|stop| stop > from)).cloned().collect();
        // With functions the user may not be allowed to read the tables themselves.
        if self.config.query_mode == QueryMode::Function {
            return Ok(begun);
        }
        let mut moved = Vec::new();
        for part in begun.chunks(ASKED_AT_ONCE) {
            let names: Vec<&str> = part.iter().map(|instance| &*instance.name).collect();
            let statement = self.catalogue.statements.moved(&names);
            for row in self.link.rows(&statement, &[Parameter::Lsn(from), Parameter::Lsn(to)]).await? {
                let at = row.try_get::<i32, _>(0)?.and_then(|at| usize::try_from(at).ok());
                let found = at.and_then(|at| part.get(at));
                moved.push(found.ok_or_else(|| Fault::Answer("an unknown table has changes".to_owned()))?.clone());
            }
        }
        Ok(moved)
    }

    /// Looks which instances there are, and which structures are new with them.
    async fn find_instances(&mut self, to: Lsn) -> Result<(), Fault> {
        let found = self.catalogue.instances(&mut self.link, to).await?;
        if found.is_empty() {
            tracing::warn!(database = %self.catalogue.database, "No table has enabled CDC or security constraints prevents getting the list of change tables");
        }
        let (mut kept, any) = (Vec::new(), !found.is_empty());
        for instance in found {
            let passes = self.selection.instances.passes(&instance.name)?;
            if !passes {
                continue;
            }
            if self.selection.tables.captures(&instance.table)? {
                kept.push(instance);
            } else {
                tracing::info!(table = %instance.table, "CDC is enabled for table but the table is not on connector's table include list");
            }
        }
        // One that is left out stops no other.
        let kept: Vec<Arc<CaptureInstance>> = in_turn(kept).into_iter().map(Arc::new).collect();
        if any && kept.is_empty() {
            tracing::warn!(database = %self.catalogue.database, "No table on connector's include list has enabled CDC, tables on the list do not exist or security constraints prevents getting the list of change tables");
        }
        let mut due: Vec<_> = Vec::new();
        for instance in &kept {
            if instance.stop.is_some() && self.superseded.insert(instance.object) {
                self.ready.push_back(Step::Superseded(instance.clone()));
            }
            if self.settled.contains(&instance.object) {
                continue;
            }
            // Each table once with its older instance, then with the one that follows.
            let is_first =
                !kept.iter().any(|other| other.source_object == instance.source_object && other.start < instance.start);
            let is_known = self.known.get(&instance.table).is_some();
            if !is_first || (is_known && self.read.is_none_or(|read| instance.start >= read)) {
                due.push(instance.clone());
                continue;
            }
            if !is_known {
                self.create(instance).await?;
            }
            self.settled.insert(instance.object);
        }
        due.sort_by_key(|instance| instance.start);
        self.due = due.into();
        self.instances = Some(kept);
        Ok(())
    }

    /// A table that nothing is known of.
    async fn create(&mut self, instance: &CaptureInstance) -> Result<(), Fault> {
        match self.read_structure(instance).await? {
            Some(table) => self.tell(ChangeKind::Create, table, instance.start),
            None => tracing::warn!(table = %instance.table, "a captured table is gone: its changes have no structure"),
        }
        Ok(())
    }

    /// The structure of the next instance that is due counts from now on.
    async fn migrate(&mut self) -> Result<(), Fault> {
        let Some(instance) = self.due.front().cloned() else { return Ok(()) };
        if let Some(table) = self.read_structure(&instance).await? {
            match self.known.get(&instance.table) {
                Some(known) if **known == table => {
                    tracing::info!(table = %instance.table, "Migration skipped, no table schema changes detected.");
                }
                Some(_) => self.tell(ChangeKind::Alter, table, instance.start),
                None => self.tell(ChangeKind::Create, table, instance.start),
            }
        }
        self.settled.insert(instance.object);
        self.due.pop_front();
        Ok(())
    }

    async fn read_structure(&mut self, instance: &CaptureInstance) -> Result<Option<Table>, Fault> {
        let is_captured = |name: &str| instance.columns.iter().any(|captured| captured.column.name == name);
        let keeps = |name: &str| self.config.all_columns || is_captured(name);
        self.catalogue.table(&mut self.link, &instance.table, instance.source_object, keeps).await
    }

    fn tell(&mut self, kind: ChangeKind, table: Table, since: Lsn) {
        self.known.put(table.clone());
        self.ready.push_back(Step::Structure { kind, table: Arc::new(table), since });
    }

    /// Reads on in the window.
    async fn advance(&mut self) -> Result<Option<Step>, Fault> {
        if self.held.is_none() {
            let Some(window) = &mut self.window else { return Ok(None) };
            match window.merge.next(&mut self.link).await? {
                Some(change) => self.held = self.admit(change),
                None => return Ok(self.end()),
            }
        }
        // Structures that count from here on are told before the change.
        while let (Some(change), Some(instance)) = (&self.held, self.due.front())
            && Some(instance.start) <= change.place.commit
        {
            self.migrate().await?;
        }
        self.ready.extend(self.held.take().map(Step::Change));
        Ok(None)
    }

    fn end(&mut self) -> Option<Step> {
        let window = self.window.take()?;
        self.read = Some(window.to);
        self.behind = true;
        (!window.told).then(|| {
            self.at = (Place::at_commit(Some(window.to)), 0);
            Step::Quiet(window.to)
        })
    }

    /// The change as it is told; `None`: it was told before, or another instance tells it.
    fn admit(&mut self, mut change: Change) -> Option<Change> {
        let rows = change.rows.count();
        let window = self.window.as_mut()?;
        let place = change.place;
        if window.unordered.is_some() && window.unordered != place.commit {
            window.unordered = None;
        }
        let previous = window.previous.insert(change.instance.object, place);
        if previous.is_some_and(|previous| place < previous) && window.unordered.is_none() {
            tracing::info!(table = %change.instance.table, "Disabling skipping changes due to not monotonic order of changes");
            window.unordered = place.commit;
        }
        let (resumed, told) = self.resumed;
        if window.unordered.is_none() {
            if place < resumed {
                return None;
            }
            if place == resumed && self.again < told {
                self.again += rows;
                return None;
            }
        }
        if change.instance.stop.is_some_and(|stop| Some(stop) <= place.commit) {
            return None;
        }
        let before = if self.at.0 == place { self.at.1 } else { 0 };
        self.at = (place, before + rows);
        change.serial = self.at.1;
        change.time = self.time_of(&change);
        if let Some(window) = &mut self.window {
            window.told = true;
        }
        Some(change)
    }

    /// Of a commit whose time the server no longer knows, that of its changes before, else now.
    fn time_of(&mut self, change: &Change) -> Option<SourceTime> {
        let commit = change.place.commit?;
        let time = change.time.or_else(|| self.time.filter(|(known, _)| *known == commit).map(|(_, time)| time));
        let time = time.unwrap_or_else(|| {
            if let Some(window) = self.window.as_mut().filter(|window| !window.warned) {
                window.warned = true;
                tracing::warn!(%commit, "the server does not know when a change was made; the present time is taken");
            }
            SourceTime::now()
        });
        self.time = Some((commit, time));
        Some(time)
    }

    async fn tell_of_agent(&mut self) {
        if std::mem::replace(&mut self.agent_told, true) {
            return;
        }
        let database = self.catalogue.database.clone();
        match self.catalogue.agent_runs(&mut self.link, self.config.agent_query.as_deref()).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::error!(%database, "No maximum LSN recorded in the database; SQL Server Agent is not running");
            }
            Err(error) => {
                tracing::warn!(%database, "No maximum LSN recorded in the database; this may happen if there are no changes recorded in the change table yet or low activity database where the cdc clean up task periodically clears entries from the cdc tables. Otherwise, this may be an indication that the SQL Server Agent is not running. The statement for its state can be changed with driver.sqlserver.agent.status.query.");
                tracing::warn!(%database, %error, "Cannot query the status of the SQL Server Agent");
            }
        }
    }
}

/// Whether the server still has all changes behind a position: it has none that are older than `oldest`.
pub fn is_available(oldest: Option<Lsn>, position: &SqlServerPosition) -> bool {
    match (oldest, position.place.commit) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(oldest), Some(commit)) => oldest <= commit,
    }
}
