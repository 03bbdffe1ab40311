//! Reading whole collections: their documents as raw replies.
//!
//! Several readers take collections from one list, and of large ones ranges of `_id`. The documents go into
//! the same channel as the changes later on, one reply ahead of the decoder, also where the next reply is
//! the first one of another collection. The first error ends all readers. Invariant: whatever member of a
//! replica set answers, it has all changes up to the time of the position at which the snapshot began, and
//! a majority has what it answers: one that lags waits until it has caught up. Nothing here decodes a
//! document.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bson::{Document, RawDocumentBuf, Timestamp, doc};
use bytes::Bytes;
use futures::{FutureExt, StreamExt};
use mongodb::error::Error as ServerError;
use mongodb::options::{Hint, ReadConcern};
use mongodb::raw_batch_cursor::SessionRawBatchCursor;
use mongodb::{Client, ClientSession};
use parking_lot::Mutex;
use thalweg_core::snapshot::Range;
use thalweg_core::{Error, Phase};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::warn;

use crate::errors;
use crate::feed::{Feed, Part};
use crate::namespace::Namespace;
use crate::place::bound;
use crate::reply::{Budget, Reply};
use crate::snapshot::{Source, criteria, primary};
use crate::stream::within;

/// The server ends sessions, and their cursors, that are not used for 30 minutes.
const SESSION_REFRESH: Duration = Duration::from_secs(300);

/// An error and the collection that was being read.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) namespace: Arc<Namespace>,
    pub(crate) error: Error,
}

/// A part of a collection, as a reader takes it from the list.
struct Unit {
    source: Arc<Source>,
    range: Option<(usize, Range)>,
    /// Parts of the collection that are not read yet.
    left: Arc<AtomicUsize>,
}

type Units = Mutex<VecDeque<Unit>>;

/// What the readers of one snapshot share.
#[derive(Clone)]
pub(crate) struct Copier {
    pub(crate) client: Client,
    pub(crate) out: mpsc::Sender<Result<Feed, thalweg_core::Error>>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) timeout: Option<Duration>,
    /// Cluster time up to which changes are before the position at which the snapshot began. Where it is not
    /// known, the primary is read.
    pub(crate) begun: Option<Timestamp>,
    /// Ids of the sessions in use.
    pub(crate) sessions: Arc<Mutex<Vec<Document>>>,
}

impl Copier {
    /// Reads all `sources` with up to `threads` readers. `false`: `replaced` came before the end; nothing
    /// of this snapshot is handed over any more.
    pub(crate) async fn copy(
        self,
        sources: Vec<Source>,
        threads: usize,
        replaced: impl Future<Output = ()>,
    ) -> Result<bool, Failed> {
        let mut readers = JoinSet::new();
        let units: VecDeque<Unit> = sources.into_iter().flat_map(units).collect();
        let threads = threads.clamp(1, units.len().max(1));
        let queue: Arc<Units> = Arc::new(Mutex::new(units));
        for _ in 0..threads {
            let (copier, queue) = (self.clone(), queue.clone());
            readers.spawn(async move { copier.read(&queue).await });
        }
        let keep_alive = self.keep_alive();
        tokio::pin!(keep_alive, replaced);
        loop {
            tokio::select! {
                ended = readers.join_next() => match ended {
                    None => return Ok(true),
                    Some(Ok(Ok(()))) => {}
                    Some(Ok(Err(failed))) => {
                        // Nothing of theirs comes behind the word of the failure.
                        readers.shutdown().await;
                        return Err(failed);
                    }
                    // A panic of a reader is one of the whole.
                    Some(Err(e)) => if let Ok(panic) = e.try_into_panic() { std::panic::resume_unwind(panic) },
                },
                () = &mut replaced => {
                    readers.shutdown().await;
                    return Ok(false);
                }
                () = &mut keep_alive => {}
            }
        }
    }

    /// One reader: takes units from the list until there are no more.
    async fn read(&self, queue: &Units) -> Result<(), Failed> {
        let mut reading = self.open_next(queue).await?;
        while let Some(Reading { unit, mut cursor, reply, delivered }) = reading {
            let ended = reply.exhausted;
            let part = match &unit.range {
                None => Part::Whole,
                Some((number, _)) => Part::Range { number: *number, delivered, ended },
            };
            let read = Feed::Read { namespace: unit.source.namespace.clone(), documents: reply.documents, part };
            // The next reply is on its way while the decoder works on this one.
            let following = async {
                self.budget.room().await;
                if ended {
                    return Ok((None, self.open_next(queue).await?));
                }
                let reply = unit.attempt(self.reply(&mut cursor)).await?;
                Ok((Some((cursor, reply)), None))
            };
            let (sent, following) = tokio::join!(self.out.send(Ok(read)), following);
            if sent.is_err() {
                // Nobody listens any more: the generation has ended.
                return Ok(());
            }
            if ended && unit.left.fetch_sub(1, Ordering::AcqRel) == 1 && !unit.source.shared {
                let _ = self.out.send(Ok(Feed::CollectionRead(unit.source.namespace.clone()))).await;
            }
            reading = match following? {
                (Some((cursor, reply)), _) => Some(Reading { unit, cursor, reply, delivered: None }),
                (None, next) => next,
            };
        }
        Ok(())
    }

    /// The next unit of the list with its first reply.
    async fn open_next(&self, queue: &Units) -> Result<Option<Reading>, Failed> {
        let Some(unit) = queue.lock().pop_front() else { return Ok(None) };
        let opening = async {
            let mut cursor = self.open(&unit).await?;
            let reply = self.reply(&mut cursor).await?;
            Ok((cursor, reply))
        };
        let (cursor, reply) = unit.attempt(opening).await?;
        let delivered = unit.range.as_ref().and_then(|(_, range)| range.from.clone().filter(|_| range.behind));
        Ok(Some(Reading { unit, cursor, reply, delivered }))
    }

    async fn open(&self, unit: &Unit) -> Result<OpenCursor, ServerError> {
        let mut session = self.client.start_session().causal_consistency(self.begun.is_some()).await?;
        if let Some(begun) = self.begun {
            // The server answers when it has come so far.
            session.advance_operation_time(begun);
        }
        let in_use = InUse::new(session.id().clone(), self.sessions.clone());
        let source = &unit.source;
        let db = self.client.database(&source.namespace.db);
        let collection = db.collection::<RawDocumentBuf>(&source.namespace.coll);
        let from = if self.begun.is_some() { criteria(&self.client) } else { primary() };
        let mut find = collection.find(source.filter.clone());
        find = find.selection_criteria(from).read_concern(ReadConcern::majority());
        if let Some((_, range)) = &unit.range {
            let by_id = doc! {"_id": 1};
            find = find.hint(Hint::Keys(by_id.clone())).sort(by_id);
            if let Some(from) = &range.from {
                find = find.min(bound(from).map_err(ServerError::custom)?);
            }
            if let Some(until) = &range.until {
                find = find.max(bound(until).map_err(ServerError::custom)?);
            }
        }
        if let Some(batch_size) = source.batch_size {
            find = find.batch_size(batch_size);
        }
        let cursor = within(self.timeout, find.session(&mut session).batch()).await?;
        Ok(OpenCursor { cursor, session, _in_use: in_use })
    }

    async fn reply(&self, open: &mut OpenCursor) -> Result<Reply, ServerError> {
        let mut replies = open.cursor.stream(&mut open.session);
        match within(self.timeout, async { replies.next().await.transpose() }).await? {
            Some(batch) => Ok(Reply::parse(batch, &self.budget)?),
            None => Ok(Reply::end()),
        }
    }

    /// Uses the sessions from time to time: while Kafka is slow, nothing is asked of the server for
    /// longer than it keeps a session, and the cursors would go with it.
    async fn keep_alive(&self) {
        loop {
            tokio::time::sleep(SESSION_REFRESH).await;
            let ids = self.sessions.lock().clone();
            let refresh = doc! {"refreshSessions": ids};
            if let Err(e) = self.client.database("admin").run_command(refresh).await {
                warn!(error = errors::text(&e), "sessions of the snapshot could not be refreshed");
            }
        }
    }
}

/// A unit that is being read.
struct Reading {
    unit: Unit,
    cursor: OpenCursor,
    /// Not handed over yet.
    reply: Reply,
    /// Of a range that is gone on with, until the first reply: up to which `_id` it was delivered.
    delivered: Option<Bytes>,
}

struct OpenCursor {
    cursor: SessionRawBatchCursor,
    session: ClientSession,
    _in_use: InUse,
}

/// A session among those that are kept alive.
struct InUse {
    id: Document,
    sessions: Arc<Mutex<Vec<Document>>>,
}

impl InUse {
    fn new(id: Document, sessions: Arc<Mutex<Vec<Document>>>) -> Self {
        sessions.lock().push(id.clone());
        Self { id, sessions }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.sessions.lock().retain(|session| *session != self.id);
    }
}

impl Unit {
    /// What is done for this unit; errors and panics say so.
    async fn attempt<T>(&self, doing: impl Future<Output = Result<T, ServerError>>) -> Result<T, Failed> {
        let namespace = &self.source.namespace;
        let error = match AssertUnwindSafe(doing).catch_unwind().await {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(error)) => errors::error(&error, Phase::Snapshot),
            Err(panic) => Error::of_panic(&*panic, &format!("reading {namespace}"), Phase::Snapshot),
        };
        Err(Failed { namespace: namespace.clone(), error })
    }
}

/// The parts of a collection, each to be read by one reader.
fn units(source: Source) -> Vec<Unit> {
    let ranges = source.ranges.clone();
    let source = Arc::new(source);
    let left = Arc::new(AtomicUsize::new(ranges.len().max(1)));
    let unit = |range| Unit { source: source.clone(), range, left: left.clone() };
    if ranges.is_empty() { vec![unit(None)] } else { ranges.into_iter().map(|range| unit(Some(range))).collect() }
}
