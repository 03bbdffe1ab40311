//! Reading whole collections: which ones, how large they are, and their documents as raw replies.
//!
//! Several readers take collections from one list; a collection is never split. The documents go
//! into the same channel as the changes later on, one reply ahead of the decoder. The first error
//! ends all readers: the snapshot is started over as a whole. Nothing here decodes a document or
//! knows a position.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bson::{Bson, Document, RawDocumentBuf, doc};
use futures::{StreamExt, TryStreamExt};
use mongodb::error::Error as ServerError;
use mongodb::options::SelectionCriteria;
use mongodb::raw_batch_cursor::SessionRawBatchCursor;
use mongodb::{Client, ClientSession, Database};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::{info, warn};

use crate::errors;
use crate::failure::Failure;
use crate::feed::Feed;
use crate::filter::{NamespaceFilter, SnapshotSelection};
use crate::namespace::Namespace;
use crate::options::{CaptureScope, MongoConfig};
use crate::reply::{Budget, Reply};
use crate::stream::within;

/// Wanted size of one reply: large enough that round trips do not count, small enough that a few of
/// them in flight do not matter.
const REPLY_BYTES: u64 = 4 << 20;

/// Bounds for the documents in one reply that follow from [`REPLY_BYTES`].
const DOCUMENTS_PER_REPLY: std::ops::RangeInclusive<u64> = 100..=100_000;

/// The server ends sessions, and their cursors, that are not used for 30 minutes.
const SESSION_REFRESH: Duration = Duration::from_secs(300);

/// A collection as the server lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) namespace: Namespace,
    kind: String,
}

impl Listed {
    /// Whether changes of it can ever be streamed.
    pub(crate) fn streams(&self) -> bool {
        !self.namespace.coll.starts_with("system.") && self.kind != "view" && self.kind != "timeseries"
    }
}

/// A collection to read.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) namespace: Arc<Namespace>,
    filter: Document,
    /// Estimated number of documents; `None`: unknown.
    pub(crate) expected: Option<u64>,
    batch_size: Option<u32>,
}

fn criteria(client: &Client) -> SelectionCriteria {
    client
        .selection_criteria()
        .cloned()
        .unwrap_or(SelectionCriteria::ReadPreference(mongodb::options::ReadPreference::Primary))
}

/// Captured collections in the order in which a snapshot reads them: by collection name, then by
/// database name. Only what the user may see is listed.
pub(crate) async fn captured(
    client: &Client,
    config: &MongoConfig,
    filter: &NamespaceFilter,
) -> Result<Vec<Listed>, Failure> {
    let (databases, only) = match &config.capture.scope {
        CaptureScope::Deployment => (client.list_database_names().await?, None),
        CaptureScope::Database(db) => (vec![db.to_string()], None),
        CaptureScope::Collection(namespace) => (vec![namespace.db.to_string()], Some(&*namespace.coll)),
    };
    let mut all = Vec::new();
    for name in databases {
        if !filter.captures_database(&name)? {
            continue;
        }
        for listed in list(&client.database(&name), only).await? {
            if filter.captures(&listed.namespace)? {
                all.push(listed);
            }
        }
    }
    all.sort_by(|a, b| (&a.namespace.coll, &a.namespace.db).cmp(&(&b.namespace.coll, &b.namespace.db)));
    Ok(all)
}

async fn list(db: &Database, only: Option<&str>) -> Result<Vec<Listed>, ServerError> {
    let mut command = doc! {"listCollections": 1, "nameOnly": true, "authorizedCollections": true};
    if let Some(only) = only {
        command.insert("filter", doc! {"name": only});
    }
    let listing = db.run_cursor_command(command).selection_criteria(criteria(db.client())).await?;
    let listing: Vec<Document> = listing.try_collect().await?;
    let listed = |d: &Document| {
        Some(Listed {
            namespace: Namespace::new(db.name(), d.get_str("name").ok()?),
            kind: d.get_str("type").unwrap_or("collection").to_owned(),
        })
    };
    Ok(listing.iter().filter_map(listed).collect())
}

/// What of the captured collections a snapshot reads, and how much there is to read.
pub(crate) async fn sources(
    client: &Client,
    config: &MongoConfig,
    selection: &SnapshotSelection,
    captured: Vec<Listed>,
) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    for listed in captured {
        if !selection.selects(&listed.namespace)? {
            continue;
        }
        let view = listed.kind == "view" && !listed.namespace.coll.starts_with("system.");
        let read = listed.streams() || (view && config.snapshot.include_views);
        if !read {
            info!(collection = %listed.namespace, kind = listed.kind, "not read: it never streams");
            continue;
        }
        let asked = selection.condition(&listed.namespace);
        let filter = asked.or_else(|| config.snapshot.filters.get(&listed.namespace)).cloned();
        let size = size(client, &listed.namespace).await?;
        let batch_size = match config.snapshot.fetch_size {
            0 => size.and_then(|s| s.documents_per_reply()),
            fixed => Some(fixed),
        };
        sources.push(Source {
            namespace: Arc::new(listed.namespace),
            // How many documents a filter lets through is not known without reading them.
            expected: size.filter(|_| filter.is_none()).map(|s| s.documents),
            filter: filter.unwrap_or_default(),
            batch_size,
        });
    }
    Ok(sources)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    documents: u64,
    bytes: u64,
}

impl Size {
    fn documents_per_reply(self) -> Option<u32> {
        let average = self.bytes.checked_div(self.documents)?.max(1);
        u32::try_from((REPLY_BYTES / average).clamp(*DOCUMENTS_PER_REPLY.start(), *DOCUMENTS_PER_REPLY.end())).ok()
    }
}

/// From the collection's metadata, without a scan. `None`: a view, or the user may not ask.
async fn size(client: &Client, namespace: &Namespace) -> Result<Option<Size>, ServerError> {
    let pipeline = doc! {"$collStats": {"storageStats": {}}};
    let statistics = client
        .database(&namespace.db)
        .collection::<Document>(&namespace.coll)
        .aggregate([pipeline])
        .selection_criteria(criteria(client))
        .await;
    let statistics: Vec<Document> = match statistics {
        Ok(cursor) => cursor.try_collect().await?,
        Err(e) if matches!(*e.kind, mongodb::error::ErrorKind::Command(_)) => return Ok(None),
        Err(e) => return Err(e),
    };
    // One document per shard.
    let sum = |name: &str| {
        let of = |d: &Document| d.get_document("storageStats").ok().and_then(|s| s.get(name)).and_then(number);
        statistics.iter().filter_map(of).sum()
    };
    Ok(Some(Size { documents: sum("count"), bytes: sum("size") }))
}

fn number(value: &Bson) -> Option<u64> {
    match value {
        Bson::Int32(n) => u64::try_from(*n).ok(),
        Bson::Int64(n) => u64::try_from(*n).ok(),
        // The server widens sums to doubles; they are whole numbers.
        Bson::Double(n) if *n >= 0.0 => Some(*n as u64),
        _ => None,
    }
}

/// An error and the collection that was being read.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) namespace: Arc<Namespace>,
    pub(crate) error: ServerError,
}

/// What the readers of one snapshot share.
#[derive(Clone)]
pub(crate) struct Copier {
    pub(crate) client: Client,
    pub(crate) out: mpsc::Sender<Result<Feed, thalweg_core::Error>>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) timeout: Option<Duration>,
    /// Ids of the sessions in use.
    pub(crate) sessions: Arc<Mutex<Vec<Document>>>,
}

impl Copier {
    /// Reads all `sources` with up to `threads` readers.
    pub(crate) async fn copy(self, sources: Vec<Source>, threads: usize) -> Result<(), Failed> {
        let mut readers = JoinSet::new();
        let threads = threads.clamp(1, sources.len().max(1));
        let queue = Arc::new(Mutex::new(VecDeque::from(sources)));
        for _ in 0..threads {
            let (copier, queue) = (self.clone(), queue.clone());
            readers.spawn(async move {
                loop {
                    let Some(source) = queue.lock().pop_front() else { return Ok(()) };
                    copier
                        .collection(&source)
                        .await
                        .map_err(|error| Failed { namespace: source.namespace.clone(), error })?;
                }
            });
        }
        let keep_alive = self.keep_alive();
        tokio::pin!(keep_alive);
        loop {
            tokio::select! {
                ended = readers.join_next() => match ended {
                    None => return Ok(()),
                    Some(Ok(result)) => result?,
                    // A panic of a reader is one of the whole.
                    Some(Err(e)) => if let Ok(panic) = e.try_into_panic() { std::panic::resume_unwind(panic) },
                },
                () = &mut keep_alive => {}
            }
        }
    }

    async fn collection(&self, source: &Source) -> Result<(), ServerError> {
        let mut session = self.client.start_session().causal_consistency(false).await?;
        let id = session.id().clone();
        self.sessions.lock().push(id.clone());
        let read = self.read(source, &mut session).await;
        self.sessions.lock().retain(|s| *s != id);
        read
    }

    async fn read(&self, source: &Source, session: &mut ClientSession) -> Result<(), ServerError> {
        let mut cursor = self.open(source, session).await?;
        let mut replies = cursor.stream(session);
        let mut next = within(self.timeout, async { replies.next().await.transpose() }).await?;
        let mut begun = true;
        while let Some(batch) = next {
            let reply = Reply::parse(batch, &self.budget)?;
            let finished = reply.exhausted;
            let read = Feed::Read { namespace: source.namespace.clone(), documents: reply.documents, begun, finished };
            begun = false;
            let handed_over = self.out.send(Ok(read));
            if finished {
                // Nobody listens any more: the generation has ended.
                let _ = handed_over.await;
                return Ok(());
            }
            // The next reply is on its way while the decoder works on this one.
            let following = async {
                self.budget.room().await;
                within(self.timeout, async { replies.next().await.transpose() }).await
            };
            let (sent, following) = tokio::join!(handed_over, following);
            if sent.is_err() {
                return Ok(());
            }
            next = following?;
        }
        Ok(())
    }

    async fn open(&self, source: &Source, session: &mut ClientSession) -> Result<SessionRawBatchCursor, ServerError> {
        let db = self.client.database(&source.namespace.db);
        let collection = db.collection::<RawDocumentBuf>(&source.namespace.coll);
        let mut find = collection.find(source.filter.clone()).selection_criteria(criteria(&self.client));
        if let Some(batch_size) = source.batch_size {
            find = find.batch_size(batch_size);
        }
        within(self.timeout, find.session(session).batch()).await
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_have_a_size_whatever_the_documents() {
        let per_reply = |documents, bytes| Size { documents, bytes }.documents_per_reply();
        assert_eq!(per_reply(0, 0), None);
        assert_eq!(per_reply(1000, 512_000), Some(8192));
        assert_eq!(per_reply(10, 100 << 20), Some(100));
        assert_eq!(per_reply(10, 5), Some(100_000));
    }
}
