//! Ad hoc snapshots and other signals, from where the reader stands in its stream.
//!
//! Listens to the signal collection as the stream passes it, to the inbox of the other channels, and to
//! whoever reads chunks; says what follows for the reader: rows, notices, a state that the position has
//! to hold. Without a signal collection incremental snapshots are refused, in words. Everything happens
//! between two events; nothing here waits. Signals from the inbox are followed one after the other: behind a
//! blocking snapshot only when it has ended. Which of them were followed is part of the state.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use thalweg_core::envelope::SourceTime;
use thalweg_core::notification::Notice;
use thalweg_core::position::OffsetMap;
use thalweg_core::signal::{Action, Followed, Inbox, Mark, Received, Signal, SnapshotKind, SnapshotRequest};
use thalweg_core::snapshot::{Chunk, Incremental, IncrementalMeter, Limits, Strategy, read_chunk};
use thalweg_core::{Error, Phase};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::{Instrument, info, warn};

use crate::change::{Change, Operation};
use crate::chunks::{Chunks, Row};
use crate::namespace::Namespace;
use crate::options::MongoConfig;
use crate::place::{self, PlaceText};
use crate::signals;
use crate::unseen::{Answer, Unseen};

/// Blocking snapshots that wait for their turn.
pub(crate) const BLOCKING_AHEAD: usize = 16;

/// A blocking snapshot, for the side that fetches.
#[derive(Debug)]
pub(crate) struct BlockingSnapshot {
    pub(crate) signal: String,
    pub(crate) request: SnapshotRequest,
}

/// What an event or a signal means for the reader.
#[derive(Debug, Default)]
pub(crate) struct Attention {
    pub(crate) notices: Vec<Notice>,
    /// Documents of a chunk that stand, to be sent before the event.
    pub(crate) rows: Vec<Row>,
    /// Cluster time of the event that ends their chunk.
    pub(crate) time: (u32, u32),
    /// The state has changed.
    pub(crate) moved: bool,
}

/// Something that did not come with the stream.
#[derive(Debug)]
pub(crate) enum Aside {
    Chunk(Chunk<Row>),
    Signal(Received),
    /// What reads chunks has ended in a way that it must not.
    Broken(Error),
}

/// Reads a chunk.
struct Worker {
    /// The collection or pattern that it begins with.
    collection: String,
    task: JoinHandle<()>,
}

pub(crate) struct AdHoc {
    incremental: Incremental<Row>,
    /// The signal collection.
    signals: Option<Namespace>,
    /// Its documents are signals, not only watermarks.
    follows: bool,
    strategy: Strategy,
    /// What reads chunks, or why none are read.
    chunks: Result<Arc<Chunks>, &'static str>,
    arrivals: (mpsc::Sender<Chunk<Row>>, mpsc::Receiver<Chunk<Row>>),
    worker: Option<Worker>,
    unseen: Unseen,
    blocking: mpsc::Sender<BlockingSnapshot>,
    /// Blocking snapshots that have not ended, with the signal that asked for one, if it came from the inbox.
    asked: VecDeque<Option<Mark>>,
    inbox: Inbox,
    /// Signals of the inbox that were followed.
    followed: Followed,
    /// Other tasks follow the same signals: what was followed here is kept, for channels keep one place for all.
    shares: bool,
    /// Channels of which one was followed here, and not only before the stored position.
    heard: BTreeSet<&'static str>,
}

impl AdHoc {
    pub(crate) fn new(
        config: &MongoConfig,
        chunks: Result<Arc<Chunks>, &'static str>,
        blocking: mpsc::Sender<BlockingSnapshot>,
        inbox: Inbox,
        meter: Arc<IncrementalMeter>,
    ) -> Self {
        let limits = Limits {
            rows: config.snapshot.chunk_size.saturating_mul(config.snapshot.threads.max(1)),
            retries: config.signals.retries,
            pause: config.signals.pause,
        };
        Self {
            incremental: Incremental::new(Arc::new(PlaceText), limits, meter),
            signals: config.filters.signals.clone(),
            follows: config.signals.channels.source,
            strategy: config.snapshot.watermarks,
            chunks,
            arrivals: mpsc::channel(2),
            worker: None,
            unseen: Unseen::default(),
            blocking,
            asked: VecDeque::new(),
            inbox,
            followed: Followed::default(),
            shares: false,
            heard: BTreeSet::new(),
        }
    }

    /// Whether other tasks of the connector follow the same signals.
    pub(crate) fn sharing(mut self, shares: bool) -> Self {
        self.shares = shares;
        self
    }

    /// Whether events have to be looked at.
    pub(crate) fn is_on(&self) -> bool {
        self.signals.is_some()
    }

    /// Whether the stream has to wait for a chunk.
    pub(crate) fn is_waiting(&self) -> bool {
        self.incremental.is_waiting()
    }

    /// An answer of the stream was read to its end, at this wall clock; `newest_ms` is the time of its
    /// last change.
    pub(crate) fn passed(&mut self, newest_ms: Option<i64>, now_ms: i64) {
        let written = || self.worker.as_ref().is_none_or(|worker| worker.task.is_finished());
        let awaited = self.incremental.is_reading() && written();
        if self.unseen.see(Answer { awaited, newest_ms, now_ms }, std::time::Instant::now()) {
            warn!(
                signal_collection = self.signals.as_ref().map(ToString::to_string),
                "the incremental snapshot waits for its watermark, which the stream has passed without showing it: a \
                 stage of cursor.pipeline keeps back inserts into the signal collection (or, with \
                 incremental.snapshot.watermarking.strategy=insert_delete, its deletes); let them pass and restart the \
                 task, or stop the snapshot"
            );
        }
    }

    /// What the position has to hold from now on.
    pub(crate) fn state(&self) -> Option<OffsetMap> {
        let snapshot = self.incremental.state();
        if self.followed.is_empty() {
            return snapshot;
        }
        let mut state = snapshot.unwrap_or_default();
        self.followed.add_to_offset(&mut state);
        Some(state)
    }

    /// The stream begins at a position that holds this.
    pub(crate) fn restore(&mut self, offset: &OffsetMap) {
        self.give_up_chunk();
        self.incremental.restore(offset);
        self.followed = Followed::from_offset(offset);
        self.heard.clear();
        // Their signals are heard again.
        self.asked.iter_mut().for_each(|asked| *asked = None);
        self.inbox.rewind();
    }

    /// A position is stored that holds this. True: the state has changed.
    pub(crate) fn stored(&mut self, offset: &OffsetMap) -> bool {
        self.inbox.stored(&Followed::from_offset(offset));
        if self.shares || !self.inbox.is_settled() {
            return false;
        }
        // Nobody hears them again.
        let heard = std::mem::take(&mut self.heard);
        heard.iter().for_each(|channel| self.followed.forget(channel));
        !heard.is_empty()
    }

    /// Whether [`AdHoc::stored`] wants to be told.
    pub(crate) fn waits_for_word(&self) -> bool {
        !self.followed.is_empty()
    }

    /// A blocking snapshot has ended, in whatever way. True: the state has changed.
    pub(crate) fn blocking_ended(&mut self) -> bool {
        let Some(Some(mark)) = self.asked.pop_front() else { return false };
        self.followed_to(&mark);
        true
    }

    fn followed_to(&mut self, mark: &Mark) {
        self.followed.note(mark);
        self.heard.insert(mark.channel);
    }

    /// Sees to it that the next chunk is being read, if it is time for one.
    pub(crate) fn go_on(&mut self) {
        let Ok(chunks) = self.chunks.clone() else { return };
        if let Some(order) = self.incremental.order() {
            // The one before has at most its second watermark to be told of, which was seen already.
            self.give_up_chunk();
            let out = self.arrivals.0.clone();
            let collection = order.queue.first().map(|q| q.id.clone()).unwrap_or_default();
            self.read(collection, async move { read_chunk(&*chunks, order, out).await });
        }
    }

    /// Reads a chunk beside the stream.
    pub(crate) fn read(&mut self, collection: String, reading: impl Future<Output = ()> + Send + 'static) {
        self.worker = Some(Worker { collection, task: tokio::spawn(reading.in_current_span()) });
    }

    /// The next thing that does not come with the stream. Cancel-safe.
    pub(crate) async fn aside(&mut self) -> Aside {
        let follows = self.asked.iter().all(Option::is_none);
        tokio::select! {
            Some(chunk) = self.arrivals.1.recv() => Aside::Chunk(chunk),
            signal = self.inbox.take(), if follows => Aside::Signal(signal),
            error = broken(&mut self.worker) => Aside::Broken(error),
        }
    }

    /// `offset` is the present position, for signals that show it.
    ///
    /// Errors: the chunk under way is lost, and nobody would ever read it.
    pub(crate) fn hear(&mut self, aside: Aside, offset: impl FnOnce() -> String) -> Result<Attention, Error> {
        Ok(match aside {
            Aside::Broken(error) => return Err(error),
            Aside::Chunk(chunk) => {
                let notices = self.incremental.arrived(chunk);
                Attention { moved: !notices.is_empty(), notices, ..Attention::default() }
            }
            Aside::Signal(Received { signal: None, mark }) => {
                if self.followed.number(mark.channel, &mark.series).is_some() {
                    return Ok(Attention::default());
                }
                // What was given before now is none of this partition's.
                self.followed.note(&Mark { time_ms: SourceTime::now().ms, ..mark });
                Attention { moved: true, ..Attention::default() }
            }
            Aside::Signal(Received { signal: Some(signal), mark }) => {
                if self.followed.contains(&mark) {
                    info!(
                        signal = signal.id,
                        channel = mark.channel,
                        "the signal was followed before, it is passed by"
                    );
                    if self.followed.ends_with(&mark) {
                        self.heard.insert(mark.channel);
                    }
                    return Ok(Attention::default());
                }
                let asked = self.asked.len();
                let attention = self.follow(&signal, offset);
                if self.asked.len() > asked {
                    // It is followed when its snapshot has ended.
                    self.asked.pop_back();
                    self.asked.push_back(Some(mark));
                    return Ok(attention);
                }
                self.followed_to(&mark);
                Attention { moved: true, ..attention }
            }
        })
    }

    /// Looks at an event before its records are made.
    pub(crate) fn attend(&mut self, change: &Change<'_>, offset: impl FnOnce() -> String) -> Attention {
        let mut attention = Attention::default();
        let Some(signals) = &self.signals else { return attention };
        if change.db != signals.db.as_bytes() || change.collection != signals.coll.as_bytes() {
            if self.incremental.is_open()
                && let Some(key) = change.document_key.and_then(place::key)
            {
                self.incremental.touch(&full_name(change), &key);
            }
            return attention;
        }
        match change.operation {
            Operation::Insert => {
                let mark = signals::watermark(change);
                if mark.as_ref().is_some_and(|mark| self.is_end(mark, Strategy::InsertInsert)) {
                    attention = self.close(change.cluster_time);
                } else if let Some(signal) = signals::signal_of(change) {
                    match signal.kind.as_str() {
                        "snapshot-window-open" => self.incremental.opened(&signal.id),
                        "snapshot-window-close" => {}
                        _ if self.follows => attention = self.follow(&signal, offset),
                        _ => info!(signal = signal.id, "ignored: 'source' is not among signal.enabled.channels"),
                    }
                }
            }
            Operation::Delete
                if signals::watermark(change).is_some_and(|mark| self.is_end(&mark, Strategy::InsertDelete)) =>
            {
                attention = self.close(change.cluster_time);
            }
            _ => {}
        }
        attention
    }

    fn is_end(&self, mark: &str, strategy: Strategy) -> bool {
        self.strategy == strategy && self.incremental.is_end(mark, strategy)
    }

    /// The window of the present chunk ends here.
    fn close(&mut self, time: (u32, u32)) -> Attention {
        // It was handed over before its watermark was written.
        while let Ok(chunk) = self.arrivals.1.try_recv() {
            let notices = self.incremental.arrived(chunk);
            if !notices.is_empty() {
                return Attention { notices, moved: true, ..Attention::default() };
            }
        }
        match self.incremental.close() {
            Some(closed) => Attention { notices: closed.notices, rows: closed.rows, time, moved: true },
            None => Attention::default(),
        }
    }

    fn follow(&mut self, signal: &Signal, offset: impl FnOnce() -> String) -> Attention {
        let action = match Action::of(signal) {
            Ok(action) => action,
            Err(why) => {
                warn!(signal = signal.id, why, "a signal cannot be followed and is ignored");
                return Attention::default();
            }
        };
        let notices = match action {
            Action::Log(message) => {
                info!("{}", Action::line(&message, &offset()));
                return Attention::default();
            }
            Action::ExecuteSnapshot(request) if request.surrogate_key.is_some() => {
                warn!(signal = signal.id, "ignored: surrogate-key does not apply to MongoDB, whose key is _id");
                return Attention::default();
            }
            Action::ExecuteSnapshot(request) if request.kind == SnapshotKind::Blocking => {
                self.block(signal, request);
                return Attention::default();
            }
            Action::ExecuteSnapshot(request) => match self.chunks {
                Ok(_) => self.incremental.execute(&request, &signal.id),
                Err(why) => {
                    warn!(signal = signal.id, why, "an incremental snapshot is not possible, its signal is ignored");
                    return Attention::default();
                }
            },
            Action::StopSnapshot(stopped) => {
                let notices = self.incremental.stop(&stopped);
                if !self.incremental.is_reading() {
                    self.give_up_chunk();
                }
                notices
            }
            Action::PauseSnapshot => {
                let notices = self.incremental.pause();
                self.give_up_chunk();
                notices
            }
            Action::ResumeSnapshot => self.incremental.resume(),
            Action::WindowOpen | Action::WindowClose => return Attention::default(),
        };
        Attention { notices, moved: true, ..Attention::default() }
    }

    fn block(&mut self, signal: &Signal, request: SnapshotRequest) {
        let blocking = BlockingSnapshot { signal: signal.id.clone(), request };
        match self.blocking.try_send(blocking) {
            Ok(()) => self.asked.push_back(None),
            Err(_) => warn!(
                signal = signal.id,
                "too many blocking snapshots are waiting, or nothing is streamed; this one is ignored"
            ),
        }
    }

    fn give_up_chunk(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.task.abort();
        }
    }
}

/// Resolves if the worker panics. Cancel-safe.
async fn broken(worker: &mut Option<Worker>) -> Error {
    if let Some(Worker { collection, task }) = worker {
        let ended = task.await;
        let who = format!("reading a chunk of {collection}");
        *worker = None;
        if let Some(panic) = ended.err().and_then(|e| e.try_into_panic().ok()) {
            return Error::of_panic(&*panic, &who, Phase::Snapshot).advise(
                "this is a defect: keep the log of this node and report it. To go on without this snapshot, stop the \
                 connector, take the members incremental_snapshot_* out of its offset (PATCH \
                 /connectors/{name}/offsets), and resume it",
            );
        }
    }
    std::future::pending().await
}

impl Drop for AdHoc {
    fn drop(&mut self) {
        self.give_up_chunk();
    }
}

fn full_name(change: &Change<'_>) -> String {
    format!("{}.{}", String::from_utf8_lossy(change.db), String::from_utf8_lossy(change.collection))
}
