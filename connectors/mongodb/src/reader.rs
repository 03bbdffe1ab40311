//! The decoding side of a partition: turns what the pump hands over into batches of records.
//!
//! Waits only on the pump's channel, so the future of `next` may be dropped at any time; what is
//! decoded but not yet returned stays here. At most `max.batch.size` events go into one batch, so a
//! reply may become several. Of a snapshot one document is held back until the next one is there:
//! the very last gets its mark and with it the position of a completed snapshot.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use thalweg_core::envelope::SourceTime;
use thalweg_core::event_failure::Passing;
use thalweg_core::heartbeat::Heartbeat;
use thalweg_core::naming::TopicNaming;
use thalweg_core::notification::{Notice, Notifier};
use thalweg_core::position::{OffsetMap, Position};
use thalweg_core::progress::{PartitionProgress, SnapshotProgress};
use thalweg_core::record::Record;
use thalweg_core::snapshot::{Advance, Copied};
use thalweg_core::source::{Batch, PartitionContext, PartitionReader, TaskSpec};
use thalweg_core::stillness::Stillness;
use thalweg_core::{Error, ErrorKind, Phase};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{Instrument, info, warn};

use crate::ad_hoc::{AdHoc, Aside};
use crate::change::Change;
use crate::event::{Decoder, Fate};
use crate::feed::{Feed, Part as SnapshotPart};
use crate::filter::NamespaceFilter;
use crate::namespace::Namespace;
use crate::options::MongoConfig;
use crate::place::place_of;
use crate::position::MongoPosition;
use crate::pump::{Part, Pump};
use crate::reply::{BadReply, Documents};
use crate::split::Fragments;

/// Between two lines about a snapshot in the log.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// What a record takes in memory besides the documents that it refers to.
const RECORD_BYTES: usize = 512;

const LEFT_OUT: &str = "a document of an ad hoc snapshot cannot be processed and is left out";

/// What is being decoded.
enum Work {
    Nothing,
    Reading(Reading),
    Changes { documents: Documents, token: Option<Bytes> },
}

/// A reply with documents of a snapshot.
struct Reading {
    namespace: Arc<Namespace>,
    table: String,
    documents: Documents,
    part: SnapshotPart,
    /// The last document so far.
    last: Option<Bytes>,
}

/// A snapshot that is being read.
enum Taking {
    /// Before the stream, from this position; it has come so far.
    Initial(Box<(MongoPosition, Copied)>),
    Blocking,
}

/// A document that waits for its mark.
struct Held {
    namespace: Arc<Namespace>,
    /// A copy, not to hold on to its reply.
    document: Bytes,
    /// How far the snapshot has come with it.
    advances: Vec<Advance>,
}

pub(crate) struct MongoReader {
    feed: mpsc::Receiver<Result<Feed, Error>>,
    /// None: it has ended, and that was told.
    pump: Option<JoinHandle<()>>,
    stop: CancellationToken,
    /// Ends the pump when the reader is dropped.
    _guard: DropGuard,
    progress: Arc<PartitionProgress>,
    decoder: Decoder,
    fragments: Fragments,
    heartbeat: Heartbeat,
    ad_hoc: AdHoc,
    notifier: Notifier,
    batch_size: usize,
    /// A batch ends behind the event with which it has so many bytes; zero = no limit.
    batch_bytes: usize,
    passing: Passing,
    work: Work,
    held: Option<Held>,
    /// Collections of which something was read in this snapshot.
    begun: HashSet<Arc<Namespace>>,
    /// Behind everything returned so far.
    position: Position,
    /// What is under way beside the stream, as it is part of the position.
    beside: Option<OffsetMap>,
    snapshot: Option<Taking>,
    /// Changes are read: signals are followed.
    streaming: bool,
    /// A snapshot was taken, or it was told that there is none.
    told: bool,
    reported: Instant,
    stillness: Stillness<Bytes>,
    finished: bool,
}

impl MongoReader {
    /// Starts the pump.
    pub(crate) fn start(
        config: &MongoConfig,
        filter: &Arc<NamespaceFilter>,
        spec: &TaskSpec,
        part: &Part,
        (pump, feed, ad_hoc): (Pump, mpsc::Receiver<Result<Feed, Error>>, AdHoc),
        context: &PartitionContext,
    ) -> Self {
        let replica_set = match part {
            Part::WholeCluster(_) => None,
            Part::Shard(replica_set) => Some(replica_set.clone()),
        };
        let stop = context.cancel.child_token();
        let decoder = Decoder::new(config, filter.clone(), spec.task, &spec.run_id, replica_set);
        let pump = tokio::spawn(pump.run(stop.clone()).in_current_span());
        Self::new(config, decoder, (pump, feed), ad_hoc, stop, context.progress.clone())
    }

    /// `source`: what fetches, and what it hands over.
    fn new(
        config: &MongoConfig,
        decoder: Decoder,
        source: (JoinHandle<()>, mpsc::Receiver<Result<Feed, Error>>),
        ad_hoc: AdHoc,
        stop: CancellationToken,
        progress: Arc<PartitionProgress>,
    ) -> Self {
        let (pump, feed) = source;
        let topic = TopicNaming::new(config.naming.clone()).heartbeat();
        Self {
            feed,
            pump: Some(pump),
            _guard: stop.clone().drop_guard(),
            stop,
            progress,
            decoder,
            fragments: Fragments::default(),
            heartbeat: Heartbeat::new(config.heartbeat_interval, topic, &config.topic_prefix, Instant::now()),
            ad_hoc,
            notifier: config.notifier.clone(),
            batch_size: config.batch_size,
            batch_bytes: config.batch_bytes,
            passing: config.passing.clone(),
            work: Work::Nothing,
            held: None,
            begun: HashSet::new(),
            position: Position::default(),
            beside: None,
            snapshot: None,
            streaming: false,
            told: false,
            reported: Instant::now(),
            stillness: Stillness::new(config.position_watch, Instant::now()),
            finished: false,
        }
    }

    /// What follows from a hand-over that is complete in itself.
    fn take(&mut self, feed: Feed) -> Result<Option<Batch>, Error> {
        match feed {
            Feed::Start(position) => {
                self.fragments.clear();
                self.held = None;
                self.streaming = false;
                Ok(Some(self.move_to(&position)))
            }
            Feed::Snapshot { position, expected, copied, blocking } => {
                Ok(self.begin(position, expected, copied, blocking))
            }
            // What a reader of a snapshot that failed still had in its hands.
            Feed::Read { .. } | Feed::CollectionRead(_) | Feed::Copied | Feed::PortionCopied
                if self.snapshot.is_none() =>
            {
                Ok(None)
            }
            Feed::Read { namespace, documents, part } => {
                let table = namespace.to_string();
                let notice = self
                    .begun
                    .insert(namespace.clone())
                    .then(|| Notice::initial("IN_PROGRESS").with("current_collection_in_progress", &*table));
                self.work = Work::Reading(Reading { namespace, table, documents, part, last: None });
                Ok(notice.and_then(|notice| self.tell(vec![notice])))
            }
            Feed::CollectionRead(namespace) => {
                let table = namespace.to_string();
                self.advance(Advance::CollectionDone { collection: table.clone() });
                self.progress.snapshot_advanced(&table, 0, true);
                let notice = Notice::initial("TABLE_SCAN_COMPLETED");
                Ok(self.tell(vec![notice.with("scanned_collection", table).with("status", "SUCCEEDED")]))
            }
            Feed::Copied => self.completed().map(Some),
            Feed::PortionCopied => self.portion_completed().map(Some),
            Feed::Aborted => {
                self.held = None;
                self.snapshot = None;
                self.decoder.unblock();
                self.progress.snapshot_ended();
                let mut batch = Batch::default();
                self.tell_in(vec![Notice::initial("ABORTED")], &mut batch);
                if self.ad_hoc.blocking_ended() {
                    self.keep_state();
                    batch.progress = Some(self.position.clone());
                }
                Ok((batch.progress.is_some() || !batch.records.is_empty()).then_some(batch))
            }
            Feed::Stream(position) => {
                self.fragments.clear();
                self.streaming = true;
                self.ad_hoc.restore(&position.to_offset());
                self.position = position.encode();
                self.decoder.stream_from(self.position.clone());
                self.keep_state();
                let skipped = !std::mem::replace(&mut self.told, true);
                Ok(if skipped { self.tell(vec![Notice::initial("SKIPPED")]) } else { None })
            }
            Feed::Changes(reply) => {
                self.stillness.see(reply.token.clone(), Instant::now());
                self.work = Work::Changes { documents: reply.documents, token: reply.token };
                Ok(None)
            }
            Feed::Finished(position) => {
                self.finished = true;
                Ok(Some(position.map_or_else(Batch::default, |position| self.move_to(&position))))
            }
        }
    }

    fn begin(
        &mut self,
        position: MongoPosition,
        expected: BTreeMap<String, SnapshotProgress>,
        copied: Copied,
        blocking: bool,
    ) -> Option<Batch> {
        info!(collections = expected.len(), blocking, "snapshot begins");
        self.begun.clear();
        self.held = None;
        self.progress.snapshot_started(expected);
        self.reported = Instant::now();
        self.told = true;
        self.snapshot = Some(if blocking {
            self.decoder.block_from(&position);
            Taking::Blocking
        } else {
            self.decoder.snapshot_from(&position);
            self.decoder.set_snapshot_position(position.clone().unfinished().with_copied(&copied).encode());
            Taking::Initial(Box::new((position, copied)))
        });
        self.tell(vec![Notice::initial("STARTED")])
    }

    /// The snapshot has come further, with the document that waits for its mark if there is one.
    fn advance(&mut self, advance: Advance) {
        match &mut self.held {
            Some(held) => held.advances.push(advance),
            None => self.apply(vec![advance]),
        }
    }

    /// What is sent from now on says that the snapshot has come so far.
    fn apply(&mut self, advances: Vec<Advance>) {
        if advances.is_empty() {
            return;
        }
        if let Some(Taking::Initial(taken)) = &mut self.snapshot {
            let (position, copied) = &mut **taken;
            for advance in advances {
                copied.apply(advance);
            }
            let position = position.clone().unfinished().with_copied(copied);
            self.decoder.set_snapshot_position(position.encode());
        }
    }

    /// Makes the record of a document that got no mark: another one follows.
    fn release(&mut self, now: SourceTime, batch: &mut Batch) -> Result<(), Error> {
        let Some(held) = self.held.take() else { return Ok(()) };
        self.apply(held.advances);
        self.read(&held.namespace, &held.document, now, batch)
    }

    /// A batch of notices, if anybody listens to them.
    fn tell(&self, notices: Vec<Notice>) -> Option<Batch> {
        let mut batch = Batch::default();
        self.tell_in(notices, &mut batch);
        (!batch.records.is_empty()).then_some(batch)
    }

    fn tell_in(&self, notices: Vec<Notice>, batch: &mut Batch) {
        let records = batch.records.len();
        for notice in notices {
            let position = self.decoder.snapshot_position();
            self.notifier.tell(notice, &position, &mut batch.records);
        }
        batch.bytes += (batch.records.len() - records) * RECORD_BYTES;
    }

    /// What is under way beside the stream is part of every position from now on.
    fn keep_state(&mut self) {
        self.beside = self.ad_hoc.state();
        self.decoder.set_snapshot_state(self.beside.as_ref());
        if let Some(position) = MongoPosition::decode(&self.position) {
            self.position = position.beside(self.beside.as_ref()).encode();
            self.decoder.passed(self.position.clone());
        }
        if matches!(self.snapshot, Some(Taking::Blocking)) {
            self.decoder.set_blocking_position(self.position.clone());
        }
    }

    /// Does what a signal or a chunk asks for that did not come with the stream.
    fn heed(&mut self, aside: Aside) -> Result<Option<Batch>, Error> {
        let position = self.position.clone();
        let attention = self.ad_hoc.hear(aside, || offset_text(&position))?;
        let mut batch = Batch::default();
        self.tell_in(attention.notices, &mut batch);
        if attention.moved {
            self.keep_state();
            batch.progress = Some(self.position.clone());
        }
        Ok((batch.progress.is_some() || !batch.records.is_empty()).then_some(batch))
    }

    /// Follows what an event means beside its record.
    fn attend(&mut self, change: &Change<'_>, now_ms: i64, batch: &mut Batch) {
        if !self.ad_hoc.is_on() {
            return;
        }
        let position = self.position.clone();
        let attention = self.ad_hoc.attend(change, || offset_text(&position));
        for row in &attention.rows {
            match self.decoder.read_chunk(&row.namespace, &row.document, attention.time, now_ms) {
                Ok(Some(record)) => {
                    batch.bytes += row.document.len() + RECORD_BYTES + self.decoder.state_bytes();
                    batch.records.push(record);
                }
                Ok(None) => {}
                Err(error) => warn!(%error, "{LEFT_OUT}"),
            }
        }
        self.tell_in(attention.notices, batch);
        if attention.moved {
            self.beside = self.ad_hoc.state();
            self.decoder.set_snapshot_state(self.beside.as_ref());
        }
    }

    fn move_to(&mut self, position: &MongoPosition) -> Batch {
        self.position = position.encode();
        Batch { progress: Some(self.position.clone()), ..Batch::default() }
    }

    /// The end of a snapshot: its last record, and its position without the mark.
    fn completed(&mut self) -> Result<Batch, Error> {
        let mut batch = Batch::default();
        if let Some(held) = self.held.take()
            && let Some(mut record) = self.made(&held.namespace, &held.document, SourceTime::now())?
        {
            self.decoder.complete(&mut record);
            add(&mut batch, record, held.document.len());
        }
        match self.snapshot.take() {
            Some(Taking::Initial(taken)) => {
                self.position = taken.0.encode();
                self.decoder.set_snapshot_position(self.position.clone());
                self.heartbeat.force();
            }
            Some(Taking::Blocking) | None => {
                self.decoder.unblock();
                if self.ad_hoc.blocking_ended() {
                    self.keep_state();
                }
            }
        }
        self.tell_in(vec![Notice::initial("COMPLETED")], &mut batch);
        self.progress.snapshot_ended();
        self.report("snapshot is complete");
        // Also without any document: a snapshot that is complete is not repeated.
        self.close(&mut batch);
        Ok(batch)
    }

    /// The end of a portion: its last record is none of the whole, and its position says that it is done.
    fn portion_completed(&mut self) -> Result<Batch, Error> {
        let mut batch = Batch::default();
        self.release(SourceTime::now(), &mut batch)?;
        if let Some(Taking::Initial(taken)) = self.snapshot.take() {
            let (position, mut copied) = *taken;
            copied.complete();
            self.position = position.unfinished().with_copied(&copied).encode();
        }
        self.progress.snapshot_ended();
        self.report("the portion of the snapshot is complete");
        self.close(&mut batch);
        Ok(batch)
    }

    /// Decodes up to one batch; `None`: nothing came of it.
    fn decode(&mut self) -> Result<Option<Batch>, Error> {
        match std::mem::replace(&mut self.work, Work::Nothing) {
            Work::Nothing => Ok(None),
            Work::Reading(reading) => self.decode_reads(reading),
            Work::Changes { documents, token } => self.decode_changes(documents, token).map(Some),
        }
    }

    fn decode_reads(&mut self, mut reading: Reading) -> Result<Option<Batch>, Error> {
        let mut batch = Batch::default();
        let now = SourceTime::now();
        let mut rows = 0;
        while rows < self.batch_size && self.has_room(&batch) {
            let Some(document) = reading.documents.next() else { break };
            let document = document.map_err(bad_reply)?;
            if let SnapshotPart::Range { delivered, .. } = &mut reading.part
                && let Some(delivered) = delivered.take()
                && place_of(&document).as_ref() == Some(&delivered)
            {
                continue;
            }
            rows += 1;
            self.release(now, &mut batch)?;
            if let Some(before) = reading.last.replace(document) {
                self.read(&reading.namespace, &before, now, &mut batch)?;
            }
        }
        PartitionProgress::count(&self.progress.events_read, rows as u64);
        self.progress.snapshot_advanced(&reading.table, rows as u64, false);
        if reading.documents.is_empty() {
            self.end_of_reply(reading);
        } else {
            self.work = Work::Reading(reading);
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

    /// The last document of a reply waits: it may be the last of all.
    fn end_of_reply(&mut self, reading: Reading) {
        let Reading { namespace, table, part, last, .. } = reading;
        let key = last.as_deref().and_then(place_of);
        if let Some(document) = last {
            let document = Bytes::copy_from_slice(&document);
            self.held = Some(Held { namespace, document, advances: Vec::new() });
        }
        if let SnapshotPart::Range { number: range, ended, .. } = part {
            if ended {
                self.advance(Advance::RangeDone { collection: table, range });
            } else if let Some(key) = key {
                self.advance(Advance::To { collection: table, range, key });
            }
        }
    }

    fn read(
        &mut self,
        namespace: &Namespace,
        document: &Bytes,
        now: SourceTime,
        batch: &mut Batch,
    ) -> Result<(), Error> {
        if let Some(record) = self.made(namespace, document, now)? {
            add(batch, record, document.len());
        }
        Ok(())
    }

    /// The record of a document. What a signal asks for never ends the task: a document that cannot be
    /// processed is left out then.
    fn made(&mut self, namespace: &Namespace, document: &Bytes, now: SourceTime) -> Result<Option<Record>, Error> {
        match self.decoder.read(namespace, document, now) {
            Err(error) if matches!(self.snapshot, Some(Taking::Blocking)) => {
                warn!(%error, "{LEFT_OUT}");
                Ok(None)
            }
            made => made,
        }
    }

    fn decode_changes(&mut self, mut documents: Documents, token: Option<Bytes>) -> Result<Batch, Error> {
        let mut batch = Batch::default();
        let now_ms = SourceTime::now().ms;
        let (mut filtered, mut source_ms) = (0, None);
        while batch.events < self.batch_size && self.has_room(&batch) && !self.ad_hoc.is_waiting() {
            let Some(event) = documents.next() else { break };
            let event = event.map_err(bad_reply)?;
            batch.bytes += event.len();
            batch.events += 1;
            let Some(event) = self.fragments.take(event)? else { continue };
            let change = Change::parse(&event);
            if let Ok(change) = &change {
                self.attend(change, now_ms, &mut batch);
            }
            let records = batch.records.len();
            let seen = self.decoder.parsed(&event, change, now_ms, &mut batch.records)?;
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
        } else {
            self.ad_hoc.passed(source_ms, now_ms);
            if let Some(token) = token
                && !self.fragments.is_open()
            {
                self.behind(token);
            }
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
        self.position = position.beside(self.beside.as_ref()).encode();
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

    /// Why the pump has ended without saying so.
    async fn without_a_word(&mut self) -> Error {
        let ended = match self.pump.take() {
            Some(pump) => pump.await,
            None => Ok(()),
        };
        match ended.err().and_then(|e| e.try_into_panic().ok()) {
            Some(panic) => Error::of_panic(&*panic, "fetching from MongoDB", Phase::Stream),
            None => Error::new(ErrorKind::Internal, Phase::Stream, "fetching has ended without a word"),
        }
    }

    async fn next_batch(&mut self) -> Result<Batch, Error> {
        loop {
            if self.streaming {
                self.ad_hoc.go_on();
            }
            if self.ad_hoc.is_waiting() {
                let chunk = self.ad_hoc.aside().await;
                if let Some(batch) = self.heed(chunk)? {
                    return Ok(batch);
                }
                continue;
            }
            while !matches!(self.work, Work::Nothing) {
                if let Some(batch) = self.decode()? {
                    return Ok(batch);
                }
            }
            // By turns: signals are followed in a busy stream, too.
            let next = tokio::select! {
                next = self.feed.recv() => next,
                aside = self.ad_hoc.aside(), if self.streaming => {
                    match self.heed(aside)? {
                        Some(batch) => return Ok(batch),
                        None => continue,
                    }
                }
            };
            let feed = match next {
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

fn add(batch: &mut Batch, record: Record, bytes: usize) {
    batch.records.push(record);
    batch.events += 1;
    batch.bytes += bytes + RECORD_BYTES;
}

/// A position as people know it.
fn offset_text(position: &Position) -> String {
    let offset = MongoPosition::decode(position).map(|p| p.to_offset()).unwrap_or_default();
    serde_json::Value::Object(offset).to_string()
}

fn bad_reply(error: BadReply) -> Error {
    Error::new(ErrorKind::SourceBusy, Phase::Stream, "MongoDB sent a damaged answer").because(&error)
}

#[async_trait]
impl PartitionReader for MongoReader {
    async fn next(&mut self) -> Result<Batch, Error> {
        let next = self.next_batch().await;
        PartitionProgress::count(&self.progress.events_failed, self.decoder.take_failures());
        next.map_err(|error| self.passing.judge(error))
    }

    fn finished(&self) -> bool {
        self.finished
    }

    fn durable(&mut self, position: &Position) {
        if self.streaming
            && self.ad_hoc.waits_for_word()
            && let Some(position) = MongoPosition::decode(position)
            && self.ad_hoc.stored(position.others())
        {
            self.keep_state();
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

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
