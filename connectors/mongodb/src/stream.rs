//! A change stream as raw replies.
//!
//! The stream is opened through `aggregate` and read batch by batch, because the driver's own change
//! stream decodes every event and hides where batches end. Opening again after an error is the
//! caller's (`pump`), which knows the last token.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bson::{Document, RawDocumentBuf, Timestamp, doc};
use futures::StreamExt;
use mongodb::Client;
use mongodb::error::Result;
use mongodb::raw_batch_cursor::RawBatchCursor;

use crate::options::{CaptureScope, FullDocument, MongoConfig};
use crate::position::MongoPosition;
use crate::reply::{Budget, Reply};
use crate::token::Token;

/// Most events in one reply: while a backlog is read, the server works on one reply while the one
/// before it is decoded, so replies should not take long to fill. The server's limit of 16 MB holds
/// beside it.
const EVENTS_PER_REPLY: u32 = 8192;

/// How long a server without `maxTimeMS` holds back an empty reply.
const SERVER_AWAIT: Duration = Duration::from_secs(1);

/// Where a change stream begins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StartAt {
    Now,
    /// Behind the event with this token.
    After(RawDocumentBuf),
    /// Behind an invalidating event: the server takes such tokens by another option only.
    AfterInvalidate(RawDocumentBuf),
    /// At this cluster time, inclusive.
    Time(Timestamp),
}

impl StartAt {
    pub(crate) fn behind(position: &MongoPosition) -> Self {
        match (&position.token, position.time()) {
            (Some(token), _) => Self::behind_token(token),
            (None, Some(time)) => Self::Time(time),
            (None, None) => Self::Now,
        }
    }

    pub(crate) fn behind_token(token: &Token) -> Self {
        if token.is_from_invalidate() {
            return Self::AfterInvalidate(token.to_document());
        }
        Self::After(token.to_document())
    }
}

impl fmt::Display for StartAt {
    /// As an operator can use it in a change stream of their own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now => f.write_str("now"),
            Self::After(token) | Self::AfterInvalidate(token) => write!(f, "{}", document(token)),
            Self::Time(time) => write!(f, "{time}"),
        }
    }
}

/// Everything the stream needs beside a client and a start.
#[derive(Debug)]
pub(crate) struct StreamSettings {
    scope: CaptureScope,
    full_document: FullDocument,
    pre_images: bool,
    /// Stages behind `$changeStream`.
    stages: Vec<Document>,
    max_await: Option<Duration>,
    /// Longest wait for one reply beyond the await time.
    timeout: Option<Duration>,
}

impl StreamSettings {
    pub(crate) fn new(config: &MongoConfig, stages: Vec<Document>, timeout: Option<Duration>) -> Self {
        Self {
            scope: config.capture.scope.clone(),
            full_document: config.capture.full_document,
            pre_images: config.capture.pre_images,
            stages,
            max_await: config.cursor.max_await,
            timeout,
        }
    }

    /// Longest wait for one operation that does not await changes.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Database and `aggregate` command. A stream that only finds a position asks for no images.
    fn command(&self, start: &StartAt, images: bool) -> (&str, Document) {
        let mut stage = Document::new();
        if images {
            match self.full_document {
                FullDocument::Omitted => {}
                FullDocument::Lookup => drop(stage.insert("fullDocument", "updateLookup")),
                FullDocument::PostImage => drop(stage.insert("fullDocument", "whenAvailable")),
            }
            if self.pre_images {
                stage.insert("fullDocumentBeforeChange", "whenAvailable");
            }
        }
        match start {
            StartAt::Now => {}
            StartAt::After(token) => drop(stage.insert("resumeAfter", document(token))),
            StartAt::AfterInvalidate(token) => drop(stage.insert("startAfter", document(token))),
            StartAt::Time(time) => drop(stage.insert("startAtOperationTime", *time)),
        }
        let (db, target): (&str, bson::Bson) = match &self.scope {
            CaptureScope::Deployment => {
                stage.insert("allChangesForCluster", true);
                ("admin", 1.into())
            }
            CaptureScope::Database(db) => (db, 1.into()),
            CaptureScope::Collection(namespace) => (&namespace.db, (*namespace.coll).into()),
        };
        let mut pipeline = vec![doc! {"$changeStream": stage}];
        pipeline.extend(self.stages.iter().cloned());
        (db, doc! {"aggregate": target, "pipeline": pipeline, "cursor": {"batchSize": EVENTS_PER_REPLY}})
    }
}

fn document(token: &RawDocumentBuf) -> Document {
    // A token that is not a document was refused when the offset was read.
    Document::try_from(token.as_ref()).unwrap_or_default()
}

/// An open stream. Dropping it closes the server's cursor in the background.
pub(crate) struct ChangeStream {
    cursor: RawBatchCursor,
    budget: Arc<Budget>,
    timeout: Option<Duration>,
}

impl ChangeStream {
    /// The first reply is there when this returns; it holds events only if the start lies behind.
    pub(crate) async fn open(
        client: &Client,
        settings: &StreamSettings,
        start: &StartAt,
        images: bool,
        budget: &Arc<Budget>,
    ) -> Result<Self> {
        let (db, command) = settings.command(start, images);
        let db = client.database(db);
        let mut open = db.run_cursor_command(command).batch_size(EVENTS_PER_REPLY);
        if let Some(criteria) = client.selection_criteria() {
            open = open.selection_criteria(criteria.clone());
        }
        if let Some(max_await) = settings.max_await {
            open = open.max_time(max_await);
        }
        let timeout = settings.timeout.map(|t| t + settings.max_await.unwrap_or(SERVER_AWAIT));
        let cursor = within(timeout, open.batch()).await?;
        Ok(Self { cursor, budget: budget.clone(), timeout })
    }

    /// The next reply: with events as soon as there are any, else an empty one after the await time.
    /// `None`: the server has closed the cursor.
    pub(crate) async fn next(&mut self) -> Result<Option<Reply>> {
        self.budget.room().await;
        let next = self.cursor.next();
        let Some(batch) = within(self.timeout, async { next.await.transpose() }).await? else { return Ok(None) };
        Ok(Some(Reply::parse(batch, &self.budget)?))
    }
}

/// Limits an operation in time as the driver has no socket timeout; the error is a network one.
pub(crate) async fn within<T>(limit: Option<Duration>, operation: impl Future<Output = Result<T>>) -> Result<T> {
    match limit {
        None => operation.await,
        Some(limit) => tokio::time::timeout(limit, operation)
            .await
            .unwrap_or_else(|_| Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use thalweg_config::Properties;

    use super::*;

    /// What a migration of chunks writes the server leaves out by itself, on routers and on shards, unless it
    /// is asked for it (`showMigrationEvents`). Whether it does needs a mongos.
    #[test]
    fn t_85_events_of_migrations_are_not_asked_for() {
        let known = ["fullDocument", "fullDocumentBeforeChange", "allChangesForCluster", "startAtOperationTime"];
        let base = [("mongodb.connection.string", "mongodb://h/?replicaSet=rs0"), ("topic.prefix", "shop")];
        let scope = [("capture.scope", "database"), ("capture.target", "inv")];
        let images = [("capture.mode", "change_streams_update_full_with_pre_image")];
        for more in [&[][..], &scope, &images, &[("mongodb.connection.mode", "replica_set")]] {
            let config: Properties =
                base.iter().chain(more).copied().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
            let settings = StreamSettings::new(&MongoConfig::parse(&config).unwrap(), Vec::new(), None);
            let (_, command) = settings.command(&StartAt::Time(Timestamp { time: 1, increment: 1 }), true);
            let first = command.get_array("pipeline").unwrap()[0].as_document().unwrap();
            let stage = first.get_document("$changeStream").unwrap();
            assert!(stage.keys().all(|option| known.contains(&option.as_str())), "{stage}");
        }
    }
}
