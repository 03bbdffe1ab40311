//! Chunks of incremental snapshots: watermarks in the signal collection, documents in the order of
//! `_id`.
//!
//! Ranges are bounds of the index on `_id`, which order values of every type; a comparison in a query
//! would find only those of one type. Both bounds are the server's to compare, with the collection's
//! collation. Reads and watermarks go to the primary and to what a majority has, in one session for each
//! chunk, so that no read is older than the watermark before it. A connection of its own: the stream's is busy waiting.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bson::{Document, RawDocumentBuf, doc};
use bytes::Bytes;
use futures::TryStreamExt;
use mongodb::options::{Acknowledgment, Hint, ReadConcern, ReadPreference, SelectionCriteria, WriteConcern};
use mongodb::{Client, ClientSession, Collection};
use thalweg_config::Secret;
use thalweg_core::snapshot::{ChunkReader, ChunkRow, Queued, Strategy, means};
use thalweg_core::{Error, ErrorKind, Phase, Policy};
use tokio::sync::{Mutex, OnceCell};

use crate::errors::{self, Class};
use crate::filter::NamespaceFilter;
use crate::lenient_json::parse_document;
use crate::namespace::Namespace;
use crate::options::MongoConfig;
use crate::place::{self, key, place};
use crate::snapshot;
use crate::stream::within;
use crate::{connect, failure::Failure};

/// A document of a chunk.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) namespace: Arc<Namespace>,
    pub(crate) document: Bytes,
}

pub(crate) struct Chunks {
    config: Arc<MongoConfig>,
    filter: Arc<NamespaceFilter>,
    uri: Secret,
    signals: Namespace,
    client: OnceCell<Client>,
    /// Captured collections, as they were found for the present chunk: a signal may name thousands.
    listed: Mutex<Option<Vec<String>>>,
    /// Of the present chunk: with it the server reads behind the watermark, on every shard.
    session: Mutex<Option<ClientSession>>,
}

impl Chunks {
    pub(crate) fn new(config: Arc<MongoConfig>, filter: Arc<NamespaceFilter>, uri: Secret, signals: Namespace) -> Self {
        Self {
            config,
            filter,
            uri,
            signals,
            client: OnceCell::new(),
            listed: Mutex::default(),
            session: Mutex::default(),
        }
    }

    async fn client(&self) -> Result<&Client, Error> {
        let connect = || connect::client(&self.config.connection, self.uri.reveal(), 1, None);
        self.client.get_or_try_init(connect).await.map_err(|e| failed(&e))
    }

    fn timeout(&self) -> Option<Duration> {
        connect::socket_timeout(&self.config.connection, self.uri.reveal())
    }

    async fn signals(&self) -> Result<Collection<Document>, Error> {
        Ok(self.client().await?.database(&self.signals.db).collection(&self.signals.coll))
    }

    async fn collection(&self, id: &str) -> Result<Collection<RawDocumentBuf>, Error> {
        let namespace = namespace(id)?;
        Ok(self.client().await?.database(&namespace.db).collection(&namespace.coll))
    }
}

fn namespace(id: &str) -> Result<Namespace, Error> {
    Namespace::parse(id)
        .ok_or_else(|| Error::config(format!("'{id}' is no collection; <database>.<collection> is expected")))
}

/// What the server refuses stays refused: only a server that does not answer is worth waiting for.
fn failed(error: &mongodb::error::Error) -> Error {
    let mut told = errors::error(error, Phase::Snapshot);
    if !matches!(errors::class(error), Class::Connect | Class::Resume) && told.policy() == Policy::Retry {
        told.kind = ErrorKind::SourceRefused;
    }
    told
}

/// A watermark that is there already: its first writing had lost its answer.
fn is_there(error: &mongodb::error::Error) -> bool {
    errors::code(error) == Some(DUPLICATE_KEY)
}

const DUPLICATE_KEY: i32 = 11000;

fn primary() -> SelectionCriteria {
    SelectionCriteria::ReadPreference(ReadPreference::Primary)
}

fn majority() -> WriteConcern {
    WriteConcern::builder().w(Acknowledgment::Majority).build()
}

fn bound(place: &Bytes) -> Result<Document, Error> {
    place::bound(place).map_err(|e| Error::config("an _id cannot be used as a bound of a chunk").because(&e))
}

/// The condition of a signal as a filter.
fn condition(queued: &Queued) -> Result<Document, Error> {
    let Some(text) = &queued.condition else { return Ok(Document::new()) };
    parse_document(text).map_err(|e| {
        Error::config(format!("the additional condition for {} is not a query filter", queued.id)).because(&e)
    })
}

#[async_trait]
impl ChunkReader for Chunks {
    type Row = Row;

    async fn expand(&self, pattern: &str) -> Result<Vec<String>, Error> {
        let mut listed = self.listed.lock().await;
        if listed.is_none() {
            let listing = snapshot::captured(self.client().await?, &self.config, &self.filter);
            let captured = listing.await.map_err(|failure| match failure {
                Failure::Server(error) => failed(&error),
                Failure::Final(error) => error,
            })?;
            let wanted = |l: &&snapshot::Listed| l.streams() && !self.filter.is_signals(&l.namespace);
            *listed = Some(captured.iter().filter(wanted).map(|l| l.namespace.to_string()).collect());
        }
        Ok(listed.iter().flatten().filter(|name| means(pattern, name)).cloned().collect())
    }

    async fn open_window(&self, chunk: &str) -> Result<(), Error> {
        let mark = doc! {"_id": format!("{chunk}-open"), "type": "snapshot-window-open", "payload": ""};
        *self.listed.lock().await = None;
        let session = self.client().await?.start_session().await.map_err(|e| failed(&e))?;
        *self.session.lock().await = Some(session);
        self.mark(mark).await
    }

    async fn close_window(&self, chunk: &str) -> Result<(), Error> {
        match self.config.snapshot.watermarks {
            Strategy::InsertInsert => {
                let mark = doc! {"_id": format!("{chunk}-close"), "type": "snapshot-window-close", "payload": ""};
                self.mark(mark).await
            }
            Strategy::InsertDelete => {
                let signals = self.signals().await?;
                let delete = signals.delete_one(doc! {"_id": format!("{chunk}-open")}).write_concern(majority());
                within(self.timeout(), delete.into_future()).await.map(drop).map_err(|e| failed(&e))
            }
        }
    }

    async fn maximum(&self, queued: &Queued) -> Result<Option<Bytes>, Error> {
        let collection = self.captured(&queued.id).await?;
        let last = collection
            .find(condition(queued)?)
            .sort(doc! {"_id": -1})
            .limit(1)
            .projection(doc! {"_id": 1})
            .selection_criteria(primary())
            .read_concern(ReadConcern::majority());
        let mut kept = self.session.lock().await;
        let session = in_window(&mut kept)?;
        let found = within(self.timeout(), async {
            let mut found = last.session(&mut *session).await?;
            found.stream(session).try_next().await
        });
        Ok(found.await.map_err(|e| failed(&e))?.and_then(|document| place(&document)))
    }

    async fn rows(
        &self,
        queued: &Queued,
        after: Option<&Bytes>,
        maximum: &Bytes,
        limit: usize,
    ) -> Result<Vec<ChunkRow<Row>>, Error> {
        if after == Some(maximum) {
            return Ok(Vec::new());
        }
        let collection = self.captured(&queued.id).await?;
        let filter = condition(queued)?;
        let namespace = Arc::new(namespace(&queued.id)?);
        let row = |document: RawDocumentBuf| {
            let place = place(&document)?;
            let document = Bytes::from(document.into_bytes());
            let key = key(&document)?;
            Some(ChunkRow { place, key, row: Row { namespace: namespace.clone(), document } })
        };
        let mut kept = self.session.lock().await;
        let session = in_window(&mut kept)?;
        // The lower bound is part of the range, the upper one is not.
        let mut find = collection
            .find(filter.clone())
            .max(bound(maximum)?)
            .hint(Hint::Keys(doc! {"_id": 1}))
            .sort(doc! {"_id": 1})
            .limit(i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1))
            .selection_criteria(primary())
            .read_concern(ReadConcern::majority());
        if let Some(after) = after {
            find = find.min(bound(after)?);
        }
        let (mut rows, mut bytes) = (Vec::new(), 0);
        let read = within(self.timeout(), async {
            let mut found = find.session(&mut *session).await?;
            let mut found = found.stream(&mut *session);
            while rows.len() < limit && bytes < MOST_BYTES {
                let Some(document) = found.try_next().await? else { return Ok(true) };
                bytes += document.as_bytes().len();
                rows.extend(row(document).filter(|row| Some(&row.place) != after));
            }
            Ok(false)
        });
        let exhausted = read.await.map_err(|e| failed(&e))?;
        if exhausted {
            let mut last = bound(maximum)?;
            if !filter.is_empty() {
                last = doc! {"$and": [last, filter]};
            }
            let find = collection.find(last).selection_criteria(primary()).read_concern(ReadConcern::majority());
            let found = within(self.timeout(), async {
                let mut found = find.session(&mut *session).await?;
                found.stream(&mut *session).try_next().await
            });
            rows.extend(found.await.map_err(|e| failed(&e))?.and_then(row));
        }
        Ok(rows)
    }
}

/// A chunk has no more bytes than that, or one document.
const MOST_BYTES: usize = 16 << 20;

fn in_window(session: &mut Option<ClientSession>) -> Result<&mut ClientSession, Error> {
    let missing = || Error::new(ErrorKind::Internal, Phase::Snapshot, "a chunk is read without a watermark before it");
    session.as_mut().ok_or_else(missing)
}

impl Chunks {
    /// A collection that is captured: one that no longer is may wait in a stored snapshot.
    async fn captured(&self, id: &str) -> Result<Collection<RawDocumentBuf>, Error> {
        if !self.filter.captures(&namespace(id)?)? {
            return Err(Error::config(format!("{id} is not captured")));
        }
        self.collection(id).await
    }

    async fn mark(&self, mark: Document) -> Result<(), Error> {
        let signals = self.signals().await?;
        let mut kept = self.session.lock().await;
        let session = in_window(&mut kept)?;
        let insert = signals.insert_one(mark).write_concern(majority()).session(session);
        match within(self.timeout(), insert.into_future()).await {
            Err(error) if !is_there(&error) => Err(failed(&error)),
            _ => Ok(()),
        }
    }
}
