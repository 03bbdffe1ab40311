//! One chunk of an incremental snapshot: watermark, rows, watermark.
//!
//! Runs beside the stream. The chunk is handed over before its second watermark is written: so whoever
//! sees that watermark in the log has the chunk already. Collections that are empty or read to their end
//! are passed over between the same two watermarks.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::mpsc;
use tracing::warn;

use super::Queued;
use crate::error::{Error, Policy, Result};
use crate::filter::{MatchMode, NameFilter};

/// How the end of a window is written (`incremental.snapshot.watermarking.strategy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// A second row.
    #[default]
    InsertInsert,
    /// The first row is deleted.
    InsertDelete,
}

/// What a connector offers for reading chunks. All comparisons of order are the source's own.
#[async_trait]
pub trait ChunkReader: Send + Sync {
    type Row: Send + 'static;

    /// Full names of the captured collections that a name or regular expression of a signal means;
    /// none if there are none.
    async fn expand(&self, pattern: &str) -> Result<Vec<String>>;
    /// Writes the watermark before a chunk.
    async fn open_window(&self, chunk: &str) -> Result<()>;
    /// Writes the watermark behind a chunk.
    async fn close_window(&self, chunk: &str) -> Result<()>;
    /// Where the last row stands that is there now; `None`: there is none.
    async fn maximum(&self, collection: &Queued) -> Result<Option<Bytes>>;
    /// Rows behind `after` up to and including `maximum`, in order, at most `limit`.
    async fn rows(
        &self,
        collection: &Queued,
        after: Option<&Bytes>,
        maximum: &Bytes,
        limit: usize,
    ) -> Result<Vec<ChunkRow<Self::Row>>>;
}

#[derive(Debug, Clone, PartialEq)]
pub struct ChunkRow<R> {
    /// Where the row stands among the others.
    pub place: Bytes,
    /// What a change of the row has as its key.
    pub key: Bytes,
    pub row: R,
}

/// What is to be read.
#[derive(Debug, Clone)]
pub struct ChunkOrder {
    /// Unique; the watermarks carry it.
    pub id: String,
    pub queue: Vec<Queued>,
    /// Where the first collection goes on, and where it ends, if that is known.
    pub after: Option<Bytes>,
    pub maximum: Option<Bytes>,
    pub limit: usize,
    /// Further attempts to write a watermark that the source refuses, and the pause between them.
    pub retries: u32,
    pub pause: Duration,
}

/// What became of an order.
#[derive(Debug)]
pub struct Chunk<R> {
    pub id: String,
    /// In the order in which it came to pass.
    pub steps: Vec<Step>,
    /// The collection that the rows belong to, and where it ends.
    pub current: Option<(String, Bytes)>,
    pub rows: Vec<ChunkRow<R>>,
    /// The snapshot cannot go on: no watermark can be written.
    pub given_up: Option<Error>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// These collections stand for a pattern.
    Expanded {
        pattern: String,
        collections: Vec<Queued>,
    },
    Ended {
        collection: String,
        status: Status,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Succeeded,
    Empty,
    /// Not to be read: the source or the connector refuses.
    Refused,
}

impl Status {
    /// As notifications say it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "SUCCEEDED",
            Self::Empty => "EMPTY",
            Self::Refused => "UNKNOWN_SCHEMA",
        }
    }
}

/// Between two attempts at a source that does not answer.
const OUTAGE_PAUSE: Duration = Duration::from_secs(1);

/// Reads one chunk and hands it over. Returns early when nobody wants it any more.
pub async fn read_chunk<R: ChunkReader>(reader: &R, order: ChunkOrder, out: mpsc::Sender<Chunk<R::Row>>) {
    let mut chunk = Chunk::new(&order.id);
    let mut patience = Patience::for_writing(&order);
    while let Err(error) = reader.open_window(&order.id).await {
        if !patience.lasts(&error).await {
            chunk.given_up = Some(error);
            let _ = out.send(chunk).await;
            return;
        }
    }
    let queue = expanded(reader, &order.queue, &mut chunk.steps).await;
    let mut place = (order.after.clone(), order.maximum.clone());
    for collection in &queue {
        let (after, maximum) = std::mem::take(&mut place);
        let mut patience = Patience::for_reading();
        let read = loop {
            match part(reader, collection, after.as_ref(), maximum.clone(), order.limit).await {
                Err(error) if patience.lasts(&error).await => {}
                read => break read,
            }
        };
        let status = match read {
            Ok(Part::Rows { maximum, rows }) => {
                chunk.current = Some((collection.id.clone(), maximum));
                chunk.rows = rows;
                break;
            }
            Ok(Part::End(status)) => status,
            Err(error) => {
                warn!(collection = collection.id, %error, "a chunk cannot be read, the collection is left out");
                Status::Refused
            }
        };
        chunk.steps.push(Step::Ended { collection: collection.id.clone(), status });
    }
    if out.send(chunk).await.is_err() {
        return;
    }
    let mut patience = Patience::for_writing(&order);
    while let Err(error) = reader.close_window(&order.id).await {
        if !patience.lasts(&error).await {
            let _ = out.send(Chunk { given_up: Some(error), ..Chunk::new(&order.id) }).await;
            return;
        }
    }
}

impl<R> Chunk<R> {
    fn new(id: &str) -> Self {
        Self { id: id.to_owned(), steps: Vec::new(), current: None, rows: Vec::new(), given_up: None }
    }
}

/// Whether a name or regular expression of a signal means a collection: as a whole, in any case.
pub fn means(pattern: &str, name: &str) -> bool {
    if is_plain(pattern) {
        let same = |(p, n): (u8, u8)| p == b'.' || p.eq_ignore_ascii_case(&n);
        return pattern.len() == name.len() && pattern.bytes().zip(name.bytes()).all(same);
    }
    pattern == name
        || NameFilter::new(MatchMode::Regex, &[pattern.to_owned()], &[]).is_ok_and(|f| f.passes(name).unwrap_or(false))
}

/// Nothing in it has a meaning in an expression, but for dots. Signals may name thousands of collections:
/// these need no expression each.
pub(super) fn is_plain(pattern: &str) -> bool {
    pattern.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

enum Part<R> {
    Rows { maximum: Bytes, rows: Vec<ChunkRow<R>> },
    End(Status),
}

async fn part<R: ChunkReader>(
    reader: &R,
    collection: &Queued,
    after: Option<&Bytes>,
    maximum: Option<Bytes>,
    limit: usize,
) -> Result<Part<R::Row>> {
    let maximum = match maximum {
        Some(maximum) => maximum,
        None => match reader.maximum(collection).await? {
            Some(maximum) => maximum,
            None => return Ok(Part::End(Status::Empty)),
        },
    };
    let rows = reader.rows(collection, after, &maximum, limit).await?;
    Ok(if rows.is_empty() { Part::End(Status::Succeeded) } else { Part::Rows { maximum, rows } })
}

async fn expanded<R: ChunkReader>(reader: &R, queue: &[Queued], steps: &mut Vec<Step>) -> Vec<Queued> {
    let mut all: Vec<Queued> = Vec::with_capacity(queue.len());
    let mut known: HashSet<String> = HashSet::new();
    for entry in queue {
        let Some(pattern) = &entry.pattern else {
            known.insert(entry.id.clone());
            all.push(entry.clone());
            continue;
        };
        let mut patience = Patience::for_reading();
        let mut names = loop {
            match reader.expand(&entry.id).await {
                Ok(names) => break names,
                Err(error) if patience.lasts(&error).await => {}
                Err(error) => {
                    warn!(collections = entry.id, %error, "the collections of a signal cannot be found out");
                    break Vec::new();
                }
            }
        };
        names.retain(|name| pattern.reads(name));
        names.sort();
        let named = |name: String| Queued {
            condition: pattern.conditions.iter().find(|c| means(&c.collection, &name)).map(|c| c.filter.clone()),
            id: name,
            pattern: None,
            of: Some(pattern.clone()),
            ..entry.clone()
        };
        let collections: Vec<Queued> = names.into_iter().map(named).collect();
        all.extend(collections.iter().filter(|q| known.insert(q.id.clone())).cloned());
        steps.push(Step::Expanded { pattern: entry.id.clone(), collections });
    }
    all
}

/// How long the same is tried.
struct Patience {
    /// Refusals that are still taken.
    refusals: u32,
    pause: Duration,
}

impl Patience {
    /// While the source does not answer.
    fn for_reading() -> Self {
        Self { refusals: 0, pause: Duration::ZERO }
    }

    /// Also if the source refuses, as often as the order says.
    fn for_writing(order: &ChunkOrder) -> Self {
        Self { refusals: order.retries, pause: order.pause }
    }

    /// Whether it is worth another try, now.
    async fn lasts(&mut self, error: &Error) -> bool {
        if error.policy() == Policy::Retry {
            warn!(%error, "a chunk is waiting for the source");
            tokio::time::sleep(OUTAGE_PAUSE).await;
            return true;
        }
        if self.refusals == 0 {
            return false;
        }
        self.refusals -= 1;
        warn!(%error, left = self.refusals, "a watermark cannot be written, trying again");
        tokio::time::sleep(self.pause).await;
        true
    }
}
