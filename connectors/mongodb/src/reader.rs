//! The decoding side of a partition: turns what the pump hands over into batches of records.
//!
//! Waits only on the pump's channel, so the future of `next` may be dropped at any time; what is
//! decoded but not yet returned stays here. At most `max.batch.size` events go into one batch, so a
//! reply may become several. Of a snapshot one document is held back until the next one is there:
//! the very last gets its mark and with it the position of a completed snapshot.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use fancy_regex::Regex;
use thalweg_core::envelope::SourceTime;
use thalweg_core::heartbeat::Heartbeat;
use thalweg_core::naming::TopicNaming;
use thalweg_core::position::Position;
use thalweg_core::progress::PartitionProgress;
use thalweg_core::record::Record;
use thalweg_core::source::{Batch, PartitionContext, PartitionReader, TaskSpec};
use thalweg_core::{Error, ErrorKind, Phase, Policy};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{info, warn};

use crate::event::{Decoder, Fate};
use crate::feed::Feed;
use crate::filter::NamespaceFilter;
use crate::namespace::Namespace;
use crate::options::MongoConfig;
use crate::position::MongoPosition;
use crate::pump::{Part, Pump};
use crate::reply::{BadReply, Documents};
use crate::schema::naming_rules;
use crate::split::Fragments;

/// Between two lines about a snapshot in the log.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// What a record takes in memory besides the documents that it refers to.
const RECORD_BYTES: usize = 512;

/// What is being decoded.
enum Work {
    Nothing,
    Reading { namespace: Arc<Namespace>, table: String, documents: Documents, finished: bool },
    Changes { documents: Documents, token: Option<Bytes> },
}

pub(crate) struct MongoReader {
    feed: mpsc::Receiver<Result<Feed, Error>>,
    pump: JoinHandle<()>,
    stop: CancellationToken,
    /// Ends the pump when the reader is dropped.
    _guard: DropGuard,
    progress: Arc<PartitionProgress>,
    decoder: Decoder,
    fragments: Fragments,
    heartbeat: Heartbeat,
    batch_size: usize,
    /// A batch ends behind the event with which it has so many bytes; zero = no limit.
    batch_bytes: usize,
    /// Messages that turn a failure into a retry.
    retriable: Option<Regex>,
    work: Work,
    /// The document that waits for its mark; a copy, not to hold on to its reply.
    held: Option<(Arc<Namespace>, Bytes)>,
    /// Behind everything returned so far.
    position: Position,
    snapshot: Option<MongoPosition>,
    reported: Instant,
    stillness: Stillness,
    finished: bool,
}

impl MongoReader {
    /// Starts the pump.
    pub(crate) fn start(
        config: &MongoConfig,
        filter: &Arc<NamespaceFilter>,
        spec: &TaskSpec,
        part: &Part,
        pump: Pump,
        feed: mpsc::Receiver<Result<Feed, Error>>,
        context: &PartitionContext,
    ) -> Self {
        let replica_set = match part {
            Part::WholeCluster => None,
            Part::Shard { replica_set, .. } => Some(replica_set.clone()),
        };
        let stop = context.cancel.child_token();
        let topic = TopicNaming::new(naming_rules(config)).heartbeat();
        Self {
            feed,
            pump: tokio::spawn(pump.run(stop.clone())),
            _guard: stop.clone().drop_guard(),
            stop,
            progress: context.progress.clone(),
            decoder: Decoder::new(config, filter.clone(), spec.task, &spec.run_id, replica_set),
            fragments: Fragments::default(),
            heartbeat: Heartbeat::new(config.heartbeat_interval, topic, &config.topic_prefix, Instant::now()),
            batch_size: config.batch_size,
            batch_bytes: config.batch_bytes,
            retriable: config.retriable.clone(),
            work: Work::Nothing,
            held: None,
            position: Position::default(),
            snapshot: None,
            reported: Instant::now(),
            stillness: Stillness::new(config.position_watch),
            finished: false,
        }
    }

    /// What follows from a hand-over that is complete in itself.
    fn take(&mut self, feed: Feed) -> Result<Option<Batch>, Error> {
        match feed {
            Feed::Start(position) => {
                self.fragments.clear();
                self.held = None;
                Ok(Some(self.move_to(&position)))
            }
            Feed::Snapshot(position, expected) => {
                info!(collections = expected.len(), "snapshot begins");
                self.decoder.snapshot_from(&position);
                self.progress.snapshot_started(expected);
                self.snapshot = Some(position);
                self.reported = Instant::now();
                Ok(None)
            }
            Feed::Read { namespace, documents, finished } => {
                let table = namespace.to_string();
                self.work = Work::Reading { namespace, table, documents, finished };
                Ok(None)
            }
            Feed::Copied => self.completed().map(Some),
            Feed::Stream(position) => {
                self.fragments.clear();
                self.position = position.encode();
                self.decoder.stream_from(self.position.clone());
                Ok(None)
            }
            Feed::Changes(reply) => {
                self.stillness.see(reply.token.as_ref());
                self.work = Work::Changes { documents: reply.documents, token: reply.token };
                Ok(None)
            }
            Feed::Finished(position) => {
                self.finished = true;
                Ok(Some(position.map_or_else(Batch::default, |position| self.move_to(&position))))
            }
        }
    }

    fn move_to(&mut self, position: &MongoPosition) -> Batch {
        self.position = position.encode();
        Batch { progress: Some(self.position.clone()), ..Batch::default() }
    }

    /// The end of a snapshot: its last record, and its position without the mark.
    fn completed(&mut self) -> Result<Batch, Error> {
        let mut batch = Batch::default();
        if let Some((namespace, document)) = self.held.take()
            && let Some(mut record) = self.decoder.read(&namespace, &document, SourceTime::now())?
        {
            self.decoder.complete(&mut record);
            add(&mut batch, record, document.len());
        }
        if let Some(position) = self.snapshot.take() {
            self.position = position.encode();
        }
        self.progress.snapshot_ended();
        self.report("snapshot is complete");
        self.heartbeat.force();
        // Also without any document: a snapshot that is complete is not repeated.
        self.close(&mut batch);
        Ok(batch)
    }

    /// Decodes up to one batch; `None`: nothing came of it.
    fn decode(&mut self) -> Result<Option<Batch>, Error> {
        match std::mem::replace(&mut self.work, Work::Nothing) {
            Work::Nothing => Ok(None),
            Work::Reading { namespace, table, documents, finished } => {
                self.decode_reads(namespace, table, documents, finished)
            }
            Work::Changes { documents, token } => self.decode_changes(documents, token).map(Some),
        }
    }

    fn decode_reads(
        &mut self,
        namespace: Arc<Namespace>,
        table: String,
        mut documents: Documents,
        finished: bool,
    ) -> Result<Option<Batch>, Error> {
        let mut batch = Batch::default();
        let now = SourceTime::now();
        let mut last: Option<Bytes> = None;
        let mut rows = 0;
        while rows < self.batch_size && self.has_room(&batch) {
            let Some(document) = documents.next() else { break };
            let document = document.map_err(bad_reply)?;
            rows += 1;
            if let Some((namespace, held)) = self.held.take() {
                self.read(&namespace, &held, now, &mut batch)?;
            }
            if let Some(before) = last.replace(document) {
                self.read(&namespace, &before, now, &mut batch)?;
            }
        }
        if let Some(document) = last {
            self.held = Some((namespace.clone(), Bytes::copy_from_slice(&document)));
        }
        let ended = documents.is_empty();
        PartitionProgress::count(&self.progress.events_read, rows as u64);
        self.progress.snapshot_advanced(&table, rows as u64, finished && ended);
        if !ended {
            self.work = Work::Reading { namespace, table, documents, finished };
        }
        if self.reported.elapsed() >= REPORT_EVERY {
            self.report("snapshot");
        }
        // The only document so far waits for the next one.
        Ok((!batch.records.is_empty()).then_some(batch))
    }

    fn has_room(&self, batch: &Batch) -> bool {
        self.batch_bytes == 0 || batch.bytes < self.batch_bytes
    }

    fn read(
        &mut self,
        namespace: &Namespace,
        document: &Bytes,
        now: SourceTime,
        batch: &mut Batch,
    ) -> Result<(), Error> {
        if let Some(record) = self.decoder.read(namespace, document, now)? {
            add(batch, record, document.len());
        }
        Ok(())
    }

    fn decode_changes(&mut self, mut documents: Documents, token: Option<Bytes>) -> Result<Batch, Error> {
        let mut batch = Batch::default();
        let now_ms = SourceTime::now().ms;
        let (mut filtered, mut source_ms) = (0, None);
        while batch.events < self.batch_size && self.has_room(&batch) {
            let Some(event) = documents.next() else { break };
            let event = event.map_err(bad_reply)?;
            batch.bytes += event.len();
            batch.events += 1;
            let Some(event) = self.fragments.take(event)? else { continue };
            let records = batch.records.len();
            let seen = self.decoder.change(&event, now_ms, &mut batch.records)?;
            let made = batch.records.len() - records;
            batch.bytes += made * (RECORD_BYTES + self.decoder.state_bytes());
            filtered += u64::from(seen.fate == Fate::Filtered);
            source_ms = Some(seen.source_ms);
            self.position = seen.position;
        }
        PartitionProgress::count(&self.progress.events_read, batch.events as u64);
        PartitionProgress::count(&self.progress.events_filtered, filtered);
        let tally = self.decoder.take_tally();
        PartitionProgress::count(&self.progress.creates, tally.creates);
        PartitionProgress::count(&self.progress.updates, tally.updates);
        PartitionProgress::count(&self.progress.deletes, tally.deletes);
        PartitionProgress::count(&self.progress.transactions_ended, tally.transactions);
        if let Some(source_ms) = source_ms {
            self.progress.changes_read(now_ms, source_ms);
        }
        if !documents.is_empty() {
            self.work = Work::Changes { documents, token };
        } else if let Some(token) = token
            && !self.fragments.is_open()
        {
            self.behind(token);
        }
        self.close(&mut batch);
        Ok(batch)
    }

    /// The server has passed over everything up to `token`. A token that is the last event's own
    /// says nothing new, and less than the event: it has no time beside it.
    /// With heartbeats the position has no time either, as the offsets that Debezium stores with them.
    fn behind(&mut self, token: Bytes) {
        let own = MongoPosition::decode(&self.position);
        let batch = MongoPosition::passed_over(token, own.as_ref());
        let Some(token) = batch.token.clone().filter(|t| own.as_ref().and_then(|p| p.token.as_ref()) != Some(t)) else {
            return;
        };
        let position = match own {
            Some(own) if !self.heartbeat.is_on() => own.moved_to(token),
            _ => batch,
        };
        self.position = position.encode();
        self.decoder.passed(self.position.clone());
    }

    fn close(&mut self, batch: &mut Batch) {
        let position = self.position.clone();
        self.heartbeat.close(batch, &position, Instant::now(), SourceTime::now().ms);
    }

    fn report(&mut self, what: &str) {
        self.reported = Instant::now();
        let Some(state) = self.progress.snapshot() else { return };
        info!(
            done = state.done(),
            expected = state.expected(),
            rows_per_second = state.rate() as u64,
            seconds_left = state.left().map_or(0, |left| left.as_secs()),
            "{what}"
        );
    }

    /// The user may know better which failures pass.
    fn judged(&self, mut error: Error) -> Error {
        let matches = |text: &str| self.retriable.as_ref().is_some_and(|r| r.is_match(text).unwrap_or(false));
        let named = matches(&error.message) || error.causes.iter().any(|c| matches(c));
        if named && error.policy() != Policy::Retry {
            error.kind = ErrorKind::SourceBusy;
        }
        error
    }

    async fn next_batch(&mut self) -> Result<Batch, Error> {
        loop {
            while !matches!(self.work, Work::Nothing) {
                if let Some(batch) = self.decode()? {
                    return Ok(batch);
                }
            }
            let feed = match self.feed.recv().await {
                Some(feed) => feed?,
                None if self.stop.is_cancelled() => std::future::pending().await,
                None => {
                    return Err(Error::new(ErrorKind::Internal, Phase::Stream, "fetching has ended without a word"));
                }
            };
            if let Some(batch) = self.take(feed)? {
                return Ok(batch);
            }
        }
    }
}

fn add(batch: &mut Batch, record: Record, bytes: usize) {
    batch.records.push(record);
    batch.events += 1;
    batch.bytes += bytes + RECORD_BYTES;
}

fn bad_reply(error: BadReply) -> Error {
    Error::new(ErrorKind::SourceBusy, Phase::Stream, "MongoDB sent a damaged answer").because(&error)
}

#[async_trait]
impl PartitionReader for MongoReader {
    async fn next(&mut self) -> Result<Batch, Error> {
        let next = self.next_batch().await;
        PartitionProgress::count(&self.progress.events_failed, self.decoder.take_failures());
        next.map_err(|error| self.judged(error))
    }

    fn finished(&self) -> bool {
        self.finished
    }

    async fn close(mut self: Box<Self>, deadline: Duration) {
        self.stop.cancel();
        // What the pump may still want to hand over has no taker.
        self.feed.close();
        if tokio::time::timeout(deadline, &mut self.pump).await.is_err() {
            self.pump.abort();
        }
    }
}

/// Notices a position that has not moved for long, though every answer of a healthy server moves it.
struct Stillness {
    /// Zero: off.
    limit: Duration,
    since: Instant,
    token: Option<Bytes>,
}

impl Stillness {
    fn new(limit: Duration) -> Self {
        Self { limit, since: Instant::now(), token: None }
    }

    fn see(&mut self, token: Option<&Bytes>) {
        if self.token.as_ref() != token {
            self.token = token.cloned();
            self.since = Instant::now();
        } else if !self.limit.is_zero() && self.since.elapsed() >= self.limit {
            warn!(
                seconds = self.limit.as_secs(),
                "the position has not moved, this may indicate the connector is no longer receiving events"
            );
            self.since = Instant::now();
        }
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
