//! The recording side of a partition: turns what the pump hands over into batches of records.
//!
//! Waits only on the pump's channel, so the future of `next` may be dropped at any time; what is handed over but not
//! yet returned stays here. At most `max.batch.size` events go into one batch. Of a snapshot one row is held back
//! until the next one is there: the very last gets its mark and with it the position of a completed snapshot.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use thalweg_core::envelope::{SnapshotMarker, SourceTime};
use thalweg_core::event_failure::Passing;
use thalweg_core::heartbeat::Heartbeat;
use thalweg_core::naming::TopicNaming;
use thalweg_core::notification::{Notice, Notifier};
use thalweg_core::position::Position;
use thalweg_core::progress::PartitionProgress;
use thalweg_core::relational::cell::Cell;
use thalweg_core::relational::marks::Marks;
use thalweg_core::relational::table::Table;
use thalweg_core::relational::table_id::TableId;
use thalweg_core::relational::table_json::ChangeKind;
use thalweg_core::source::{Batch, PartitionContext, PartitionReader};
use thalweg_core::stillness::Stillness;
use thalweg_core::{Error, ErrorKind, Phase};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument;

use crate::change::size;
use crate::feed::Feed;
use crate::instance::CaptureInstance;
use crate::lsn::Lsn;
use crate::options::SqlServerConfig;
use crate::position::{Place, SqlServerPosition};
use crate::pump::Pump;
use crate::recorder::{Recorder, SnapshotRow};
use crate::stream::Step;

/// Between two lines about a snapshot in the log.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// What a record takes in memory besides the values of its row.
const RECORD_BYTES: usize = 512;

/// What is being recorded.
enum Work {
    Nothing,
    Rows { table: Arc<Table>, time: SourceTime, rows: VecDeque<Vec<Cell>> },
    Steps(VecDeque<Step>),
}

/// A snapshot that is being read.
struct Taking {
    /// Where it began.
    place: Place,
    /// What its records carry, but for the last one; and that one.
    unfinished: Position,
    finished: SqlServerPosition,
    marks: Marks<SnapshotRow>,
    /// The table of which rows came last.
    table: Option<TableId>,
}

pub(crate) struct SqlServerReader {
    feed: mpsc::Receiver<Result<Feed, Error>>,
    /// None: it has ended, and that was told.
    pump: Option<JoinHandle<()>>,
    stop: CancellationToken,
    /// Ends the pump when the reader is dropped.
    _guard: DropGuard,
    progress: Arc<PartitionProgress>,
    recorder: Recorder,
    heartbeat: Heartbeat,
    notifier: Notifier,
    batch_size: usize,
    /// A batch ends behind the event with which it has so many bytes; zero: no limit.
    batch_bytes: usize,
    passing: Passing,
    work: Work,
    snapshot: Option<Taking>,
    /// Behind what was returned last.
    told_position: Position,
    /// A snapshot was taken, or it was told that there is none.
    told: bool,
    reported: Instant,
    stillness: Stillness<Position>,
    /// `topic.prefix`.
    server: Arc<str>,
    /// Capture instances that others follow, until everything of them is stored.
    superseded: Vec<Arc<CaptureInstance>>,
    /// The last commit that is stored, while anybody asks.
    stored: Option<Lsn>,
    finished: bool,
}

impl SqlServerReader {
    /// Starts the pump.
    pub(crate) fn start(
        config: &SqlServerConfig,
        recorder: Recorder,
        (pump, feed): (Pump, mpsc::Receiver<Result<Feed, Error>>),
        context: &PartitionContext,
    ) -> Self {
        let stop = context.cancel.child_token();
        let pump = tokio::spawn(pump.run(stop.clone()).in_current_span());
        let topic = TopicNaming::new(config.events.naming.clone()).heartbeat();
        let now = Instant::now();
        Self {
            feed,
            pump: Some(pump),
            _guard: stop.clone().drop_guard(),
            stop,
            progress: context.progress.clone(),
            recorder,
            heartbeat: Heartbeat::new(config.heartbeat_interval, topic, &config.topic_prefix, now),
            notifier: config.notifier.clone(),
            batch_size: config.batch_size,
            batch_bytes: config.batch_bytes,
            passing: config.passing.clone(),
            work: Work::Nothing,
            snapshot: None,
            told_position: Position::default(),
            told: false,
            reported: now,
            stillness: Stillness::new(config.position_watch, now),
            server: config.topic_prefix.clone(),
            superseded: Vec::new(),
            stored: None,
            finished: false,
        }
    }

    /// What follows from a hand-over.
    fn take(&mut self, feed: Feed) -> Result<Option<Batch>, Error> {
        match feed {
            Feed::Start(position) => {
                self.snapshot = None;
                Ok(Some(Batch { progress: Some(position.encode()), ..Batch::default() }))
            }
            Feed::Snapshot { position, expected } => {
                tracing::info!(tables = expected.len(), "snapshot begins");
                self.progress.snapshot_started(expected);
                self.reported = Instant::now();
                self.told = true;
                self.snapshot = Some(Taking {
                    place: position.place,
                    unfinished: position.encode(),
                    finished: position.completed(),
                    marks: Marks::default(),
                    table: None,
                });
                Ok(self.tell(vec![Notice::initial("STARTED")]))
            }
            Feed::Structure { table, is_last } => {
                self.recorder.learn(&table)?;
                let Some(taking) = &self.snapshot else { return Ok(None) };
                let marker = if is_last { SnapshotMarker::Last } else { SnapshotMarker::True };
                let at = (taking.place, taking.unfinished.clone());
                let record = self.recorder.structure(ChangeKind::Create, &table, marker, at, SourceTime::now());
                Ok(record.map(|record| Batch { records: vec![record], events: 1, bytes: RECORD_BYTES, progress: None }))
            }
            Feed::Rows { table, time, rows } => {
                let taking = self.snapshot.as_mut().filter(|taking| taking.table.as_ref() != Some(&table.id));
                let is_begun = taking.map(|taking| taking.table = Some(table.id.clone())).is_some();
                let name = table.id.to_string();
                self.work = Work::Rows { table, time, rows: rows.into() };
                let notice =
                    is_begun.then(|| Notice::initial("IN_PROGRESS").with("current_collection_in_progress", name));
                Ok(notice.and_then(|notice| self.tell(vec![notice])))
            }
            Feed::TableRead(id) => {
                if let Some(taking) = &mut self.snapshot {
                    taking.marks.table_ended();
                }
                let table = id.to_string();
                self.progress.snapshot_advanced(&table, 0, true);
                let rows = self.progress.snapshot().and_then(|s| s.tables.get(&table).map(|t| t.done)).unwrap_or(0);
                let notice = Notice::initial("TABLE_SCAN_COMPLETED").with("scanned_collection", table);
                let notice = notice.with("total_rows_scanned", rows.to_string()).with("status", "SUCCEEDED");
                Ok(self.tell(vec![notice]))
            }
            Feed::Copied => self.copied().map(Some),
            Feed::Stream { position, tables } => {
                for table in tables.iter() {
                    self.recorder.learn(table)?;
                }
                self.told_position = position.encode();
                self.recorder.stream_from(&position);
                let is_skipped = !std::mem::replace(&mut self.told, true);
                Ok(if is_skipped { self.tell(vec![Notice::initial("SKIPPED")]) } else { None })
            }
            Feed::Steps(steps) => {
                self.stillness.see(Some(self.recorder.last().clone()), Instant::now());
                self.work = Work::Steps(steps.into());
                Ok(None)
            }
            Feed::TransactionOver => {
                let mut batch = Batch::default();
                self.recorder.transaction_over(&mut batch.records);
                batch.bytes = batch.records.len() * RECORD_BYTES;
                self.close(&mut batch);
                Ok(Some(batch))
            }
            Feed::Finished(position) => {
                self.finished = true;
                let progress = position.map(|position| position.encode());
                Ok(Some(Batch { progress, ..Batch::default() }))
            }
        }
    }

    /// The end of a snapshot: its last record, and its position.
    fn copied(&mut self) -> Result<Batch, Error> {
        let mut batch = Batch::default();
        if let Some(mut taking) = self.snapshot.take() {
            let finished = taking.finished.encode();
            if let Some((row, marker)) = taking.marks.ended() {
                let at = (taking.place, &finished);
                self.recorder.read(&row, marker, at, SourceTime::now(), &mut batch.records)?;
                self.counted(&mut batch, 0, 1, row_bytes(&row));
            }
            self.recorder.move_to(taking.finished.place, taking.finished.serial);
            self.notice(Notice::initial("COMPLETED"), &finished, &mut batch);
            self.progress.snapshot_ended();
            self.report("snapshot is complete");
            self.heartbeat.force();
            // Also without any row: a snapshot that is complete is not repeated.
            self.heartbeat.close(&mut batch, &finished, Instant::now(), SourceTime::now().ms);
        }
        Ok(batch)
    }

    /// A batch of notices, if anybody listens to them.
    fn tell(&self, notices: Vec<Notice>) -> Option<Batch> {
        let position = match &self.snapshot {
            Some(taking) => taking.unfinished.clone(),
            None => self.recorder.last().clone(),
        };
        let mut batch = Batch::default();
        for notice in notices {
            self.notice(notice, &position, &mut batch);
        }
        (!batch.records.is_empty()).then_some(batch)
    }

    fn notice(&self, notice: Notice, position: &Position, batch: &mut Batch) {
        let records = batch.records.len();
        self.notifier.tell(notice, position, &mut batch.records);
        batch.bytes += (batch.records.len() - records) * RECORD_BYTES;
    }

    fn counted(&self, batch: &mut Batch, records: usize, events: usize, bytes: usize) {
        batch.events += events;
        batch.bytes += bytes + (batch.records.len() - records) * RECORD_BYTES;
    }

    fn has_room(&self, batch: &Batch) -> bool {
        batch.events < self.batch_size.max(1) && (self.batch_bytes == 0 || batch.bytes < self.batch_bytes)
    }

    /// Records up to one batch; `None`: nothing came of it.
    fn record(&mut self) -> Result<Option<Batch>, Error> {
        match std::mem::replace(&mut self.work, Work::Nothing) {
            Work::Nothing => Ok(None),
            Work::Rows { table, time, rows } => self.record_rows(table, time, rows),
            Work::Steps(steps) => self.record_steps(steps).map(Some),
        }
    }

    fn record_rows(
        &mut self,
        table: Arc<Table>,
        time: SourceTime,
        mut rows: VecDeque<Vec<Cell>>,
    ) -> Result<Option<Batch>, Error> {
        let mut batch = Batch::default();
        let now = SourceTime::now();
        let mut count = 0;
        while self.has_room(&batch) {
            let Some(cells) = rows.pop_front() else { break };
            count += 1;
            let Some(taking) = &mut self.snapshot else { continue };
            let Some((row, marker)) = taking.marks.row(SnapshotRow { table: table.clone(), time, cells }) else {
                continue;
            };
            let records = batch.records.len();
            let at = (taking.place, &taking.unfinished);
            self.recorder.read(&row, marker, at, now, &mut batch.records)?;
            self.counted(&mut batch, records, 1, row_bytes(&row));
        }
        PartitionProgress::count(&self.progress.events_read, count);
        self.progress.snapshot_advanced(&table.id.to_string(), count, false);
        if !rows.is_empty() {
            self.work = Work::Rows { table, time, rows };
        }
        if self.reported.elapsed() >= REPORT_EVERY {
            self.report("snapshot");
        }
        // The only row so far waits for the next one.
        Ok((!batch.records.is_empty()).then_some(batch))
    }

    /// Also of no steps there is a batch: it says that the server answers.
    fn record_steps(&mut self, mut steps: VecDeque<Step>) -> Result<Batch, Error> {
        let mut batch = Batch::default();
        let now = SourceTime::now();
        let mut source_ms = None;
        while self.has_room(&batch) {
            let Some(step) = steps.pop_front() else { break };
            let records = batch.records.len();
            match step {
                Step::Change(change) => {
                    let bytes = change.bytes;
                    source_ms = change.time.map(|time| time.ms).or(source_ms);
                    self.recorder.change(change, now, &mut batch.records)?;
                    self.counted(&mut batch, records, 1, bytes);
                }
                Step::Structure { kind, table, since } => {
                    self.recorder.learn(&table)?;
                    let at = (Place::at_commit(Some(since)), self.recorder.last().clone());
                    let record = self.recorder.structure(kind, &table, SnapshotMarker::False, at, now);
                    batch.records.extend(record);
                    self.counted(&mut batch, records, 1, 0);
                }
                Step::Quiet(commit) => self.recorder.move_to(Place::at_commit(Some(commit)), 0),
                Step::Superseded(instance) => self.superseded.push(instance),
                Step::Idle => {}
            }
        }
        self.count(batch.events);
        self.tell_of_handovers(&mut batch);
        if let Some(source_ms) = source_ms {
            self.progress.changes_read(now.ms, source_ms);
        }
        if !steps.is_empty() {
            self.work = Work::Steps(steps);
        }
        self.close(&mut batch);
        Ok(batch)
    }

    /// A capture instance may be dropped once everything up to its end is stored.
    fn tell_of_handovers(&mut self, batch: &mut Batch) {
        let Some(stored) = self.stored else { return };
        let is_over = |instance: &Arc<CaptureInstance>| instance.stop.is_some_and(|stop| stop <= stored);
        let over: Vec<_> = self.superseded.extract_if(.., |instance| is_over(instance)).collect();
        for instance in over {
            let text = |lsn: Option<Lsn>| lsn.map(|lsn| lsn.to_string()).unwrap_or_default();
            let notice = Notice::about("Capture Instance", "COMPLETED")
                .with("server", &*self.server)
                .with("database", instance.table.catalog().unwrap_or_default())
                .with("capture_instance", &*instance.name)
                .with("start_lsn", text(Some(instance.start)))
                .with("stop_lsn", text(instance.stop))
                .with("commit_lsn", text(Some(stored)));
            self.notice(notice, &self.recorder.last().clone(), batch);
        }
    }

    fn count(&mut self, events: usize) {
        let tally = self.recorder.take_tally();
        for (counter, n) in [
            (&self.progress.events_read, events as u64),
            (&self.progress.events_filtered, tally.filtered),
            (&self.progress.events_failed, tally.failed),
            (&self.progress.creates, tally.creates),
            (&self.progress.updates, tally.updates),
            (&self.progress.deletes, tally.deletes),
            (&self.progress.transactions_ended, tally.transactions),
        ] {
            PartitionProgress::count(counter, n);
        }
    }

    /// Ends a batch with a heartbeat if one is due, or with the position if that has moved.
    fn close(&mut self, batch: &mut Batch) {
        let (position, now) = (self.recorder.last().clone(), Instant::now());
        if batch.records.is_empty() && position == self.told_position && !self.heartbeat.due(now) {
            return;
        }
        self.heartbeat.close(batch, &position, now, SourceTime::now().ms);
        self.told_position = position;
    }

    fn report(&mut self, what: &str) {
        self.reported = Instant::now();
        let Some(state) = self.progress.snapshot() else { return };
        tracing::info!(done = state.done(), rows_per_second = state.rate() as u64, "{what}");
    }

    /// Why the pump has ended without saying so.
    async fn without_a_word(&mut self) -> Error {
        let ended = match self.pump.take() {
            Some(pump) => pump.await,
            None => Ok(()),
        };
        match ended.err().and_then(|e| e.try_into_panic().ok()) {
            Some(panic) => Error::of_panic(&*panic, "fetching from SQL Server", Phase::Stream),
            None => Error::new(ErrorKind::Internal, Phase::Stream, "fetching has ended without a word"),
        }
    }

    async fn next_batch(&mut self) -> Result<Batch, Error> {
        loop {
            while !matches!(self.work, Work::Nothing) {
                if let Some(batch) = self.record()? {
                    return Ok(batch);
                }
            }
            let feed = match self.feed.recv().await {
                Some(feed) => feed?,
                None if self.stop.is_cancelled() => std::future::pending().await,
                None => return Err(self.without_a_word().await),
            };
            if let Some(batch) = self.take(feed)? {
                return Ok(batch);
            }
        }
    }
}

fn row_bytes(row: &SnapshotRow) -> usize {
    row.cells.iter().map(size).sum()
}

#[async_trait]
impl PartitionReader for SqlServerReader {
    async fn next(&mut self) -> Result<Batch, Error> {
        self.next_batch().await.map_err(|error| self.passing.judge(error))
    }

    fn finished(&self) -> bool {
        self.finished
    }

    fn durable(&mut self, position: &Position) {
        if !self.superseded.is_empty()
            && let Some(position) = SqlServerPosition::decode(position)
        {
            self.stored = position.place.commit;
        }
    }

    async fn close(mut self: Box<Self>, deadline: Duration) {
        self.stop.cancel();
        // What the pump may still want to hand over has no taker.
        self.feed.close();
        if let Some(mut pump) = self.pump.take()
            && tokio::time::timeout(deadline, &mut pump).await.is_err()
        {
            pump.abort();
        }
    }
}
