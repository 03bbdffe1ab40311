//! An incremental snapshot as its reader sees it: a queue of collections, one chunk at a time, and the
//! window in which changes win over rows.
//!
//! The reader tells of everything in the order of its log. Invariants: a row is given out only if no
//! change of its key stood in the log between the watermarks of its chunk, so no stale row follows a
//! newer change; the stored state moves on only behind the rows it speaks of, so after a restart at most
//! one chunk is repeated and none is missed; one chunk is under way at a time, so memory holds no more
//! than that.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tracing::{info, warn};

use super::chunk::{Chunk, ChunkOrder, ChunkRow, Step, is_plain, means};
use super::meter::{IncrementalMeter, Standing};
use super::state::{self, KeyText, Stored};
use crate::notification::Notice;
use crate::position::OffsetMap;
use crate::signal::{Condition, SnapshotRequest, Stopped};

/// Keys that changed in a window whose rows have not arrived; with more than that the stream waits.
const MOST_TOUCHED: usize = 100_000;

/// What is stored of the queue is part of every position: with more than so many bytes a signal is refused.
const MOST_STORED: usize = 256 << 10;

/// Endings of the ids of watermarks, behind the id of their chunk.
const OPEN: &str = "-open";
const CLOSE: &str = "-close";

/// A collection that waits to be read, or a pattern that stands for some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued {
    pub id: String,
    pub condition: Option<String>,
    /// Id of the signal.
    pub correlation: Option<String>,
    pub surrogate_key: Option<String>,
    /// The id is a pattern.
    pub pattern: Option<Arc<Pattern>>,
    /// The pattern that the collection comes from.
    pub of: Option<Arc<Pattern>>,
}

/// A name or regular expression of a signal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pattern {
    pub text: String,
    /// The signal's conditions, for the collections that it stands for.
    pub conditions: Vec<Condition>,
    /// Collections whose names come before this one are read already.
    pub from: Option<String>,
    /// Names and expressions of collections that were taken out.
    pub without: Vec<String>,
}

impl Pattern {
    /// Whether a collection that the pattern means is still to be read.
    pub fn reads(&self, name: &str) -> bool {
        self.from.as_deref().is_none_or(|from| name >= from) && !self.without.iter().any(|w| means(w, name))
    }
}

impl Queued {
    pub fn named(id: impl Into<String>) -> Self {
        Self { id: id.into(), condition: None, correlation: None, surrogate_key: None, pattern: None, of: None }
    }
}

/// What bounds the work.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Rows of a chunk.
    pub rows: usize,
    /// Further attempts at a watermark that the source refuses, and the pause between them.
    pub retries: u32,
    pub pause: Duration,
}

/// What a closed window leaves.
#[derive(Debug)]
pub struct Closed<R> {
    /// Rows that stand, in order, with the collection they belong to.
    pub rows: Vec<R>,
    pub collection: Option<String>,
    pub notices: Vec<Notice>,
}

struct Window<R> {
    id: String,
    open: bool,
    /// Keys that changed before the rows arrived, by collection.
    touched: HashMap<String, HashSet<Bytes>>,
    count: usize,
    chunk: Option<Rows<R>>,
}

/// A chunk that has arrived.
struct Rows<R> {
    chunk: Chunk<R>,
    /// By key where its row is.
    by_key: HashMap<Bytes, usize>,
    /// Rows that a change has overtaken.
    gone: HashSet<usize>,
}

pub struct Incremental<R> {
    keys: Arc<dyn KeyText + Send + Sync>,
    limits: Limits,
    /// Told of what is done here.
    meter: Arc<IncrementalMeter>,
    queue: VecDeque<Queued>,
    /// Of the first collection: the last row that was sent, and the last there is.
    sent: Option<Bytes>,
    maximum: Option<Bytes>,
    /// Rows read of the first collection.
    scanned: usize,
    correlation: Option<String>,
    paused: bool,
    window: Option<Window<R>>,
}

impl<R> Incremental<R> {
    pub fn new(keys: Arc<dyn KeyText + Send + Sync>, limits: Limits, meter: Arc<IncrementalMeter>) -> Self {
        Self {
            keys,
            limits,
            meter,
            queue: VecDeque::new(),
            sent: None,
            maximum: None,
            scanned: 0,
            correlation: None,
            paused: false,
            window: None,
        }
    }

    /// Whether anything is under way; only then changes need to be told.
    pub fn is_running(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Takes up what a stored offset says. What cannot be used is left out with a warning.
    pub fn restore(&mut self, offset: &OffsetMap) {
        let stored = match state::read(offset, &*self.keys) {
            Ok(Some(stored)) => stored,
            Ok(None) => Stored::default(),
            Err(error) => {
                warn!(error, "the incremental snapshot of the stored offset is given up; send its signal again");
                Stored::default()
            }
        };
        if stored.foreign_key {
            let collection = stored.queue.first().map(|q| q.id.as_str()).unwrap_or_default();
            warn!(
                collection,
                "the stored key of the incremental snapshot is none of this product's: the collection begins anew"
            );
        }
        if !stored.queue.is_empty() {
            info!(collections = listed(&stored.queue), "the incremental snapshot goes on");
        }
        self.window = None;
        self.paused = false;
        self.scanned = 0;
        self.queue = stored.queue.into();
        (self.sent, self.maximum, self.correlation) = (stored.sent, stored.maximum, stored.correlation);
        if self.is_running() {
            self.meter.runs();
            self.meter.waits(self.queue.len());
        } else {
            self.meter.ends(Standing::Aborted);
        }
    }

    /// The members that belong to the offset of everything sent from now on; `None`: nothing is under way.
    pub fn state(&self) -> Option<OffsetMap> {
        self.is_running().then(|| {
            let stored = Stored {
                queue: self.queue.iter().collect(),
                sent: self.sent.clone(),
                maximum: self.maximum.clone(),
                correlation: self.correlation.clone(),
                foreign_key: false,
            };
            state::write(&stored, &*self.keys)
        })
    }

    fn stored_bytes(&self) -> usize {
        let members = self.state().unwrap_or_default();
        members.values().map(|member| member.as_str().map_or(0, str::len)).sum()
    }

    /// Collections of a signal, behind those that wait already.
    pub fn execute(&mut self, request: &SnapshotRequest, signal: &str) -> Vec<Notice> {
        let (was_idle, waiting) = (!self.is_running(), self.queue.len());
        let before = self.correlation.replace(signal.to_owned());
        for collection in &request.collections {
            let waits = |q: &Queued| q.id == *collection && q.pattern.as_ref().is_none_or(|p| p.from.is_none());
            if self.queue.iter().any(waits) {
                continue;
            }
            let plain = is_plain(collection);
            let concerns = |c: &&Condition| !plain || !is_plain(&c.collection) || means(&c.collection, collection);
            let pattern = Pattern {
                text: collection.clone(),
                conditions: request.conditions.iter().filter(concerns).cloned().collect(),
                ..Pattern::default()
            };
            self.queue.push_back(Queued {
                id: collection.clone(),
                condition: None,
                correlation: Some(signal.to_owned()),
                surrogate_key: request.surrogate_key.clone(),
                pattern: Some(Arc::new(pattern)),
                of: None,
            });
        }
        let stored = self.stored_bytes();
        if stored > MOST_STORED && self.queue.len() > waiting {
            self.queue.truncate(waiting);
            self.correlation = before;
            warn!(
                signal,
                collections = request.collections.len(),
                "an incremental snapshot is not possible, its signal is ignored: what is left to do would take {stored} \
                 bytes in the stored offset, {MOST_STORED} are allowed; give an expression for the collections in \
                 place of their names, or send several signals, one after the other"
            );
            return Vec::new();
        }
        info!(signal, collections = request.collections.join(","), "incremental snapshot requested");
        if was_idle {
            self.meter.runs();
        }
        self.meter.waits(self.queue.len());
        if was_idle { vec![self.notice("STARTED")] } else { Vec::new() }
    }

    /// All of it, or some collections: then the notice names those that were taken out, the one that was being
    /// read last. If nothing is left behind that one, the snapshot is complete before it is stopped, as
    /// Debezium tells it.
    pub fn stop(&mut self, stopped: &Stopped) -> Vec<Notice> {
        if !self.is_running() {
            warn!("there is no incremental snapshot to stop");
            return Vec::new();
        }
        let Some(collections) = &stopped.collections else {
            let notice = Notice::incremental("ABORTED", self.correlation.clone());
            self.clear(Standing::Aborted);
            info!("incremental snapshot stopped");
            return vec![notice];
        };
        let more: usize = collections.iter().map(String::len).sum();
        let patterns = self.queue.iter().filter(|q| q.pattern.is_some() || q.of.is_some()).count().max(1);
        if more.saturating_mul(patterns).saturating_add(self.stored_bytes()) > 2 * MOST_STORED {
            warn!(
                collections = collections.len(),
                "a signal to stop names too many collections to remember and is ignored: give an expression for them, or \
                 stop the whole snapshot"
            );
            return Vec::new();
        }
        let first = self.queue.front().map(|q| q.id.clone());
        let (gone, left): (VecDeque<_>, VecDeque<_>) =
            self.queue.drain(..).partition(|q| collections.iter().any(|c| means(c, &q.id)));
        self.queue = left;
        self.take_out(collections);
        let current = gone.front().is_some_and(|q| Some(&q.id) == first.as_ref());
        if current {
            self.next_collection();
            self.window = None;
        }
        info!(collections = collections.join(","), "collections are taken out of the incremental snapshot");
        self.meter.ended(gone.len());
        self.meter.waits(self.queue.len());
        let mut notices = Vec::new();
        if !self.is_running() {
            if current {
                notices.push(Notice::incremental("COMPLETED", self.correlation.take()));
            }
            self.clear(if current { Standing::Completed } else { Standing::Aborted });
        }
        let named = gone.iter().skip(usize::from(current)).chain(gone.iter().take(usize::from(current)));
        notices.push(Notice::incremental("ABORTED", self.correlation.clone()).with("data_collections", listed(named)));
        notices
    }

    /// Also what patterns stand for is not read, once that is known.
    fn take_out(&mut self, collections: &[String]) {
        // Collections of the same pattern stand together.
        let mut last: Option<(Arc<Pattern>, Arc<Pattern>)> = None;
        for entry in &mut self.queue {
            let Some(pattern) = entry.pattern.as_mut().or(entry.of.as_mut()) else { continue };
            if let Some((_, new)) = last.as_ref().filter(|(old, _)| Arc::ptr_eq(old, pattern)) {
                *pattern = new.clone();
                continue;
            }
            let old = pattern.clone();
            let known = &mut Arc::make_mut(pattern).without;
            for collection in collections {
                if !known.contains(collection) {
                    known.push(collection.clone());
                }
            }
            last = Some((old, pattern.clone()));
        }
    }

    /// Nothing more is read until it goes on. The rows of the present chunk are read again then.
    pub fn pause(&mut self) -> Vec<Notice> {
        if !self.is_running() || self.paused {
            return Vec::new();
        }
        self.paused = true;
        self.window = None;
        self.meter.pauses();
        info!("incremental snapshot paused");
        vec![self.notice("PAUSED")]
    }

    pub fn resume(&mut self) -> Vec<Notice> {
        if !self.paused {
            return Vec::new();
        }
        self.paused = false;
        self.meter.runs();
        info!("incremental snapshot resumed");
        vec![self.notice("RESUMED")]
    }

    /// What is to be read next, if it is time for that.
    pub fn order(&mut self) -> Option<ChunkOrder> {
        if self.window.is_some() || self.paused || !self.is_running() {
            return None;
        }
        let id = uuid::Uuid::new_v4().to_string();
        self.window = Some(Window { id: id.clone(), open: false, touched: HashMap::new(), count: 0, chunk: None });
        Some(ChunkOrder {
            id,
            queue: self.queue.iter().cloned().collect(),
            after: self.sent.clone(),
            maximum: self.maximum.clone(),
            limit: self.limits.rows,
            retries: self.limits.retries,
            pause: self.limits.pause,
        })
    }

    /// Whether a chunk is under way.
    pub fn is_reading(&self) -> bool {
        self.window.is_some()
    }

    /// Whether changes of keys matter now.
    pub fn is_open(&self) -> bool {
        self.window.as_ref().is_some_and(|w| w.open)
    }

    /// Whether so many keys have changed that the rows have to arrive before the log is read on.
    pub fn is_waiting(&self) -> bool {
        self.window.as_ref().is_some_and(|w| w.count >= MOST_TOUCHED && w.chunk.is_none())
    }

    /// A watermark with this id stands in the log.
    pub fn opened(&mut self, watermark: &str) {
        if let Some(window) = &mut self.window
            && watermark.strip_suffix(OPEN) == Some(window.id.as_str())
        {
            window.open = true;
        }
    }

    /// A row of the collection has changed.
    pub fn touch(&mut self, collection: &str, key: &Bytes) {
        let Some(window) = self.window.as_mut().filter(|w| w.open) else { return };
        match &mut window.chunk {
            Some(rows) => rows.touch(collection, key),
            None => {
                if !window.touched.contains_key(collection) {
                    window.touched.insert(collection.to_owned(), HashSet::new());
                }
                if let Some(keys) = window.touched.get_mut(collection)
                    && !keys.contains(key)
                {
                    // A copy: the event's buffer is not to be held for the sake of its key.
                    keys.insert(Bytes::copy_from_slice(key));
                    window.count += 1;
                }
            }
        }
    }

    /// A chunk comes from its reader.
    pub fn arrived(&mut self, chunk: Chunk<R>) -> Vec<Notice> {
        let Some(window) = self.window.as_mut().filter(|w| w.id == chunk.id) else { return Vec::new() };
        if let Some(error) = chunk.given_up {
            warn!(%error, collections = listed(&self.queue), "the incremental snapshot is given up");
            let notice = self.notice("ABORTED");
            self.clear(Standing::Aborted);
            return vec![notice];
        }
        let mut rows = Rows::new(chunk);
        for (collection, keys) in window.touched.drain() {
            for key in keys {
                rows.touch(&collection, &key);
            }
        }
        window.chunk = Some(rows);
        Vec::new()
    }

    /// Whether a watermark with this id ends the present window.
    pub fn is_end(&self, watermark: &str, strategy: super::Strategy) -> bool {
        let ending = match strategy {
            super::Strategy::InsertInsert => CLOSE,
            super::Strategy::InsertDelete => OPEN,
        };
        self.window.as_ref().is_some_and(|w| watermark.strip_suffix(ending) == Some(w.id.as_str()))
    }

    /// The window ends: its rows, and the state moves on behind them. Call [`Incremental::arrived`]
    /// before with everything that has come; `None` without a chunk, which then is read again.
    pub fn close(&mut self) -> Option<Closed<R>> {
        let Rows { chunk, gone, .. } = self.window.take()?.chunk?;
        let mut notices = Vec::new();
        for step in chunk.steps {
            match step {
                Step::Expanded { pattern, collections } => self.expand(&pattern, collections),
                Step::Ended { collection, status } => {
                    let mut notice = self.notice("TABLE_SCAN_COMPLETED");
                    let is_it = |q: &Queued| q.pattern.is_none() && q.id == collection;
                    let first = self.queue.front().is_some_and(is_it);
                    let scanned = if first { self.scanned } else { 0 };
                    notice = notice
                        .with("scanned_collection", collection.clone())
                        .with("total_rows_scanned", scanned.to_string())
                        .with("status", status.name());
                    notices.push(notice);
                    let waiting = self.queue.len();
                    self.queue.retain(|q| !is_it(q));
                    self.meter.ended(waiting - self.queue.len());
                    if first {
                        self.next_collection();
                    }
                    info!(
                        collection,
                        rows = scanned,
                        status = status.name(),
                        "collection of the incremental snapshot ended"
                    );
                }
            }
        }
        let mut rows = Vec::new();
        let current =
            chunk.current.filter(|(id, _)| self.queue.front().is_some_and(|q| q.pattern.is_none() && q.id == *id));
        let collection = current.as_ref().map(|(id, _)| id.clone());
        if let Some((id, maximum)) = current {
            self.scanned += chunk.rows.len();
            self.meter.published(&id, chunk.rows.len());
            self.maximum = Some(maximum);
            self.sent = chunk.rows.last().map(|row| row.place.clone());
            rows.reserve(chunk.rows.len() - gone.len());
            let left = chunk.rows.into_iter().enumerate().filter(|(at, _)| !gone.contains(at));
            rows.extend(left.map(|(_, row)| row.row));
            let shown = |key: &Option<Bytes>| key.as_ref().map(|k| self.keys.shown(k)).unwrap_or_default();
            notices.push(
                self.notice("IN_PROGRESS")
                    .with("current_collection_in_progress", id)
                    .with("maximum_key", shown(&self.maximum))
                    .with("last_processed_key", shown(&self.sent)),
            );
        }
        self.meter.waits(self.queue.len());
        if !self.is_running() {
            notices.push(Notice::incremental("COMPLETED", self.correlation.clone()));
            info!("incremental snapshot completed");
            self.clear(Standing::Completed);
        }
        Some(Closed { rows, collection, notices })
    }

    /// The collections of a pattern take its place.
    fn expand(&mut self, pattern: &str, collections: Vec<Queued>) {
        let Some(at) = self.queue.iter().position(|q| q.pattern.is_some() && q.id == pattern) else { return };
        // It may have changed since the order was given.
        let Some(pattern) = self.queue.remove(at).and_then(|q| q.pattern) else { return };
        if collections.is_empty() {
            warn!(collections = pattern.text, "no captured collection has this name");
        }
        let waiting: HashSet<&str> = self.queue.iter().filter(|q| q.pattern.is_none()).map(|q| &*q.id).collect();
        let fresh = collections.into_iter().filter(|c| pattern.reads(&c.id) && !waiting.contains(&*c.id));
        let fresh: Vec<_> = fresh.map(|c| Queued { of: Some(pattern.clone()), ..c }).collect();
        let behind = self.queue.split_off(at);
        self.queue.extend(fresh);
        self.queue.extend(behind);
    }

    fn next_collection(&mut self) {
        (self.sent, self.maximum, self.scanned) = (None, None, 0);
    }

    fn clear(&mut self, standing: Standing) {
        self.meter.ends(standing);
        self.queue.clear();
        self.next_collection();
        self.window = None;
        self.paused = false;
        self.correlation = None;
    }

    fn notice(&self, kind: &'static str) -> Notice {
        Notice::incremental(kind, self.correlation.clone()).with("data_collections", listed(&self.queue))
    }
}

impl<R> Rows<R> {
    fn new(chunk: Chunk<R>) -> Self {
        let by_key =
            chunk.rows.iter().enumerate().map(|(at, row): (usize, &ChunkRow<R>)| (row.key.clone(), at)).collect();
        Self { chunk, by_key, gone: HashSet::new() }
    }

    fn touch(&mut self, collection: &str, key: &Bytes) {
        if self.chunk.current.as_ref().is_some_and(|(id, _)| id == collection)
            && let Some(at) = self.by_key.get(key)
        {
            self.gone.insert(*at);
        }
    }
}

fn listed<'a>(queue: impl IntoIterator<Item = &'a Queued>) -> String {
    queue.into_iter().map(|q| q.id.as_str()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
#[path = "incremental_tests.rs"]
mod tests;
