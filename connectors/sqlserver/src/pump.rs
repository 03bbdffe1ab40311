//! The fetching side of a partition: finds where to start, takes a snapshot if one is due, and follows the changes.
//!
//! What was read waits in a channel of a few loads, so that reading and recording overlap and memory is bounded. A
//! structure is in the history before anything is handed over that has it. Errors end it: whoever reads the channel
//! decides whether to begin again.
//!
//! It does not: make records, or know what is stored beside the stored offsets.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use thalweg_core::envelope::SourceTime;
use thalweg_core::position::SourcePartition;
use thalweg_core::progress::PartitionProgress;
use thalweg_core::relational::history::{HistoryStores, Resumed, SchemaHistory};
use thalweg_core::relational::snapshot_mode::{Known, Reads};
use thalweg_core::relational::table::Tables;
use thalweg_core::relational::table_filter::TableFilter;
use thalweg_core::relational::table_id::TwoParts;
use thalweg_core::{Error, ErrorKind, Phase};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::catalogue::Catalogue;
use crate::errors::Fault;
use crate::feed::Feed;
use crate::history::DatabaseHistory;
use crate::link::SqlLink;
use crate::offsets::StoredOffsets;
use crate::options::SqlServerConfig;
use crate::pace::Pace;
use crate::position::{Place, SqlServerPosition};
use crate::snapshot::{Snapshot, Taken};
use crate::stream::{ChangeStream, Selection, Step, is_available};
use crate::transaction_end::TransactionEnd;

/// What is handed over together.
const LOAD_STEPS: usize = 1_024;
const LOAD_BYTES: usize = 1 << 20;

/// How long ends of sessions are waited for.
const CLOSE: Duration = Duration::from_secs(2);

/// The way to the recording side.
#[derive(Clone)]
pub(crate) struct Outlet {
    pub(crate) sender: mpsc::Sender<Result<Feed, Error>>,
    pub(crate) progress: Arc<PartitionProgress>,
}

impl Outlet {
    pub(crate) async fn send(&self, feed: Feed) -> Result<(), Error> {
        self.progress.last_contact_ms.store(SourceTime::now().ms, Ordering::Relaxed);
        let gone = |_| Error::new(ErrorKind::Internal, Phase::Stream, "the reader of this partition is gone");
        self.sender.send(Ok(feed)).await.map_err(gone)
    }
}

pub(crate) struct Pump {
    pub(crate) config: Arc<SqlServerConfig>,
    pub(crate) filter: Arc<TableFilter>,
    /// As the server spells it.
    pub(crate) database: String,
    pub(crate) partition: SourcePartition,
    pub(crate) offsets: StoredOffsets,
    pub(crate) histories: Arc<dyn HistoryStores>,
    pub(crate) out: Outlet,
}

impl Pump {
    /// Runs until cancelled, or until an error ends it.
    pub(crate) async fn run(self, cancel: CancellationToken) {
        let reading = async {
            let last = self.read().await.map(Feed::Finished);
            let is_finished = last.is_ok();
            // A receiver that is gone belongs to a generation that has ended.
            let _ = self.out.sender.send(last).await;
            is_finished
        };
        let is_finished = tokio::select! {
            biased;
            () = cancel.cancelled() => false,
            is_finished = reading => is_finished,
        };
        if is_finished {
            cancel.cancelled().await;
        }
    }

    fn link(&self) -> SqlLink {
        SqlLink::new(Arc::new(self.config.connection.clone()), Some(&self.database))
    }

    fn failed(&self, fault: &Fault, phase: Phase) -> Error {
        fault.error(&format!("database {}", self.database), phase)
    }

    /// Returns when nothing more is to be read, ever; with what is known of the position.
    async fn read(&self) -> Result<Option<SqlServerPosition>, Error> {
        let mode = self.config.snapshot.mode;
        let catalogue = Catalogue::new(&self.database);
        let mut link = self.link();
        self.survey(&mut link, &catalogue).await?;
        let found = self.offsets.of(&self.database)?;
        let is_own = found.as_ref().is_some_and(|found| found.own);
        let stored = found.map(|found| found.position);
        let known = match &stored {
            None => Known::Nothing,
            Some(position) if position.is_unfinished() => Known::Unfinished,
            Some(_) => Known::Position,
        };
        match known {
            Known::Nothing => tracing::info!("no previous offset has been found"),
            Known::Unfinished => tracing::info!("the previous snapshot was not finished"),
            Known::Position => {}
        }
        mode.check(known)?;

        let store = self.histories.open(&self.config.history, &self.partition)?;
        let history = SchemaHistory::new(store, TwoParts::SchemaAndTable, self.config.history.captured);
        let mut history =
            DatabaseHistory { history, partition: self.partition.clone(), database: self.database.clone() };
        // What an unfinished snapshot wrote down is written anew.
        let resumes_at = stored.as_ref().filter(|_| known == Known::Position);
        let resumed = history.resume(resumes_at, &self.filter, mode.rebuilds_history()).await?;
        let is_lost = known == Known::Position
            && mode.streams()
            && self.config.stream.checks_position
            && self.is_lost(&mut link, &catalogue, stored.as_ref()).await?;
        let mut reads = match (is_lost, stored.as_ref()) {
            (true, Some(position)) => self.reads_when_lost(position)?,
            _ => mode.reads(known),
        };
        let mut keeps = stored.clone().filter(|_| mode.keeps_position());
        if known == Known::Unfinished {
            keeps = keeps.map(SqlServerPosition::past_snapshot);
        }
        if resumed == Resumed::Rebuild && reads == Reads::Nothing {
            reads = Reads::Structures;
            keeps = stored.clone();
        }
        let is_announced = is_own || (reads != Reads::Nothing && keeps.is_none());
        let taken = match (reads, resumed) {
            (Reads::Nothing, Resumed::Recovered(tables)) => {
                Taken { position: stored.unwrap_or_else(|| SqlServerPosition::at(Place::default(), 0)), tables }
            }
            // Changes are read from the oldest on that the server has.
            (Reads::Nothing, _) => {
                Taken { position: SqlServerPosition::at(Place::default(), 0), tables: Tables::default() }
            }
            (reads, _) => self.snapshot(&catalogue, &mut history, reads, keeps).await?,
        };
        if !mode.streams() {
            tracing::info!("Streaming is disabled for snapshot mode");
            link.close(CLOSE).await;
            return Ok(Some(taken.position));
        }
        if !is_announced {
            self.out.send(Feed::Start(taken.position.clone())).await?;
        }
        self.follow(link, catalogue, history, taken).await
    }

    /// Looks at what is captured, if the configuration limits it.
    async fn survey(&self, link: &mut SqlLink, catalogue: &Catalogue) -> Result<(), Error> {
        let lists = &self.config.tables;
        if lists.tables.include.is_empty() && self.config.guardrail.is_none() {
            return Ok(());
        }
        let listed = catalogue.tables(link).await.map_err(|fault| self.failed(&fault, Phase::Start))?;
        let mut captured = 0;
        for table in &listed {
            captured += usize::from(self.filter.is_listed(&table.id)?);
        }
        if captured == 0 {
            tracing::warn!(
                "After applying the include/exclude list filters, no changes will be captured. Please check your \
                 configuration!"
            );
        }
        let Some((max, is_error)) = self.config.guardrail.filter(|(max, _)| captured > *max) else { return Ok(()) };
        let message = format!("{captured} tables are captured, guardrail.collections.max allows {max}");
        if is_error {
            return Err(Error::config(message).advise("narrow the include lists, or raise the limit"));
        }
        tracing::warn!("{message}");
        Ok(())
    }

    async fn is_lost(
        &self,
        link: &mut SqlLink,
        catalogue: &Catalogue,
        stored: Option<&SqlServerPosition>,
    ) -> Result<bool, Error> {
        let Some(position) = stored else { return Ok(false) };
        let oldest = catalogue.oldest(link).await.map_err(|fault| self.failed(&fault, Phase::Start))?;
        Ok(!is_available(oldest, position))
    }

    fn reads_when_lost(&self, position: &SqlServerPosition) -> Result<Reads, Error> {
        if let Some(reads) = self.config.snapshot.mode.reads_when_lost() {
            tracing::warn!("the stored position is lost, a new snapshot is taken");
            return Ok(reads);
        }
        let offset = serde_json::Value::Object(position.to_offset());
        let message = format!(
            "The connector is trying to read change stream starting at {offset}, but this is no longer available on \
             the server. Reconfigure the connector to use a snapshot mode when needed."
        );
        Err(Error::new(ErrorKind::PositionLost, Phase::Start, message))
    }

    async fn snapshot(
        &self,
        catalogue: &Catalogue,
        history: &mut DatabaseHistory,
        reads: Reads,
        keeps: Option<SqlServerPosition>,
    ) -> Result<Taken, Error> {
        let snapshot = &self.config.snapshot;
        self.out.progress.rest(snapshot.delay).await;
        let (config, filter, out) = (&*self.config, &*self.filter, &self.out);
        let taken = Snapshot { config, catalogue, filter, out, history, reads, keeps }.take().await?;
        if snapshot.mode.streams() {
            self.out.progress.rest(snapshot.streaming_delay).await;
        }
        Ok(taken)
    }

    /// Follows the changes, without end.
    async fn follow(
        &self,
        link: SqlLink,
        catalogue: Catalogue,
        mut history: DatabaseHistory,
        from: Taken,
    ) -> Result<Option<SqlServerPosition>, Error> {
        let mut beside = Beside::new(self, &catalogue).await;
        let tables = from.tables.clone();
        let position = from.position.clone();
        self.out.send(Feed::Stream { position: position.clone(), tables: tables.clone() }).await?;
        let selection =
            Selection { tables: self.config.tables.filter()?, instances: self.config.tables.instances.compile()? };
        let mut stream = ChangeStream::new(link, catalogue, self.config.stream.clone(), selection, tables, &position);
        let mut pace = Pace::new(self.config.stream.poll_interval);
        loop {
            let asked = Instant::now();
            let steps = self.load(&mut stream, &mut history).await?;
            let changes = steps.iter().filter(|step| matches!(step, Step::Change(_))).count();
            self.out.progress.polled(changes, asked.elapsed());
            let is_idle = steps.is_empty();
            self.out.send(Feed::Steps(steps)).await?;
            beside.see(self, changes > 0).await?;
            if is_idle {
                self.out.progress.rest(pace.idle()).await;
            } else {
                pace.moved();
            }
        }
    }

    /// What the stream has, up to a load; empty: nothing new. New structures are written down first.
    async fn load(&self, stream: &mut ChangeStream, history: &mut DatabaseHistory) -> Result<Vec<Step>, Error> {
        let (mut steps, mut bytes) = (Vec::new(), 0);
        while steps.len() < LOAD_STEPS && bytes < LOAD_BYTES {
            let step = stream.next().await?;
            match &step {
                Step::Idle => break,
                Step::Change(change) => bytes += change.bytes,
                Step::Structure { kind, table, since } => {
                    let position = SqlServerPosition::at(Place::at_commit(Some(*since)), 0);
                    history.record(*kind, table, &position, Some("N/A"), &self.filter).await?;
                }
                Step::Quiet(_) | Step::Superseded(_) => {}
            }
            steps.push(step);
        }
        Ok(steps)
    }
}

/// What is asked beside the changes, over a link of its own: whether the last transaction is over, and the user's
/// statement with each heartbeat.
struct Beside {
    link: SqlLink,
    catalogue: Catalogue,
    end: Option<TransactionEnd>,
    heartbeat: Option<(String, Duration, Instant)>,
}

impl Beside {
    async fn new(pump: &Pump, catalogue: &Catalogue) -> Self {
        let mut link = pump.link();
        let config = &pump.config;
        // A readable secondary knows nothing of scans.
        let end = match config.events.transactions && !config.connection.read_only {
            true => {
                let mut end = TransactionEnd::new(catalogue.capture_interval(&mut link).await);
                end.moved(Instant::now());
                Some(end)
            }
            false => None,
        };
        let interval = config.heartbeat_interval;
        let query = config.heartbeat_query.clone().filter(|_| !interval.is_zero());
        let heartbeat = query.map(|query| (query, interval, Instant::now()));
        Self { link, catalogue: catalogue.clone(), end, heartbeat }
    }

    /// After each look for changes.
    async fn see(&mut self, pump: &Pump, moved: bool) -> Result<(), Error> {
        let now = Instant::now();
        if let Some(end) = &mut self.end {
            if moved {
                end.moved(now);
            }
            let is_over = end.is_over(now, &self.catalogue, &mut self.link).await;
            if is_over.map_err(|fault| pump.failed(&fault, Phase::Stream))? {
                pump.out.send(Feed::TransactionOver).await?;
            }
        }
        if let Some((query, interval, last)) = &mut self.heartbeat
            && now.saturating_duration_since(*last) >= *interval
        {
            *last = now;
            self.link.run(query).await.map_err(|fault| {
                let mut error = pump.failed(&fault, Phase::Stream);
                error.message = format!("Could not execute heartbeat action query (Error: {fault})");
                error
            })?;
        }
        Ok(())
    }
}
