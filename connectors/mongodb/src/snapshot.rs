//! What a snapshot reads: which collections, how large they are, and in which ranges of `_id` a large one
//! is read, in whose order a snapshot can go on after an interruption.
//!
//! It does not read them (`copier`).

use std::collections::BTreeMap;
use std::sync::Arc;

use bson::{Bson, Document, RawDocumentBuf, doc};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use mongodb::error::Error as ServerError;
use mongodb::options::{ReadPreference, SelectionCriteria};
use mongodb::{Client, Database};
use sha2::{Digest, Sha256};
use thalweg_core::position::hex;
use thalweg_core::snapshot::{Copied, Range, Spread, portion_of};
use tracing::{info, warn};

use crate::failure::Failure;
use crate::filter::{NamespaceFilter, SnapshotSelection};
use crate::namespace::Namespace;
use crate::options::{CaptureScope, MongoConfig};
use crate::plan::Portion;

/// Wanted size of one reply: large enough that round trips do not count, small enough that a few of
/// them in flight do not matter.
const REPLY_BYTES: u64 = 4 << 20;

/// Bounds for the documents in one reply that follow from [`REPLY_BYTES`].
const DOCUMENTS_PER_REPLY: std::ops::RangeInclusive<u64> = 100..=100_000;

/// A collection with so many documents or bytes is read in ranges.
const LARGE_DOCUMENTS: u64 = 10_000;
const LARGE_BYTES: u64 = 64 << 20;

/// Questions about the size of collections that are on their way together.
const SIZES_AT_ONCE: usize = 16;

/// Fewest documents that are worth a range.
const DOCUMENTS_PER_RANGE: u64 = 5_000;

/// Documents that are looked at for each bound between ranges.
const SAMPLES_PER_RANGE: usize = 20;

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
    pub(crate) filter: Document,
    /// Estimated number of documents; `None`: unknown.
    pub(crate) expected: Option<u64>,
    pub(crate) batch_size: Option<u32>,
    /// Ranges of `_id` in which it is read; none: as a whole.
    pub(crate) ranges: Vec<(usize, Range)>,
    /// Its end is told when others have read theirs, too.
    pub(crate) shared: bool,
}

pub(crate) fn primary() -> SelectionCriteria {
    SelectionCriteria::ReadPreference(ReadPreference::Primary)
}

/// For reads that may lag: which documents there are does not follow from them.
pub(crate) fn criteria(client: &Client) -> SelectionCriteria {
    client.selection_criteria().cloned().unwrap_or_else(primary)
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
    // A listing cannot be told to wait: a member that lags would leave new collections out.
    let listing = db.run_cursor_command(command).selection_criteria(primary()).await?;
    let listing: Vec<Document> = listing.try_collect().await?;
    let listed = |d: &Document| {
        Some(Listed {
            namespace: Namespace::new(db.name(), d.get_str("name").ok()?),
            kind: d.get_str("type").unwrap_or("collection").to_owned(),
        })
    };
    Ok(listing.iter().filter_map(listed).collect())
}

/// What of a snapshot is read here.
#[derive(Clone, Copy)]
pub(crate) struct Share<'a> {
    pub(crate) portion: Portion,
    /// What was planned for the portions; `None`: collections are divided now.
    pub(crate) plan: Option<&'a Copied>,
    /// For the plan, which may be made now.
    pub(crate) choice: &'a str,
}

/// What of the captured collections is read here, and how much that is; and, for the first portion, those
/// of which others read something.
pub(crate) async fn sources(
    client: &Client,
    config: &MongoConfig,
    selection: &SnapshotSelection,
    captured: Vec<Listed>,
    Share { portion, plan, choice }: Share<'_>,
    copied: &mut Copied,
) -> Result<(Vec<Source>, Vec<Arc<Namespace>>), Failure> {
    let mut wanted = Vec::new();
    for listed in captured {
        let name = listed.namespace.to_string();
        if !selection.selects(&listed.namespace)? {
            continue;
        }
        let asked = selection.condition(&listed.namespace);
        let filter = asked.or_else(|| config.snapshot.filters.get(&listed.namespace)).cloned();
        if !copied.filter_by(&name, filter.as_ref().filter(|f| !f.is_empty()).map(mark).transpose()?) {
            warn!(collection = name, "the filter has changed since the snapshot began, the collection begins anew");
        }
        if copied.is_done(&name) {
            continue;
        }
        let view = listed.kind == "view" && !listed.namespace.coll.starts_with("system.");
        let read = listed.streams() || (view && config.snapshot.include_views);
        if !read {
            info!(collection = %listed.namespace, kind = listed.kind, "not read: it never streams");
            continue;
        }
        wanted.push((listed, name, filter));
    }
    let names: Vec<Namespace> = wanted.iter().map(|(listed, ..)| listed.namespace.clone()).collect();
    let asking = futures::stream::iter(names).map(|namespace| {
        let client = client.clone();
        async move { size(&client, &namespace).await }
    });
    let sizes: Vec<Option<Size>> = asking.buffered(SIZES_AT_ONCE).try_collect().await?;
    let mut chosen = Vec::new();
    for ((listed, name, filter), size) in wanted.into_iter().zip(sizes) {
        if config.snapshot.resumes
            && plan.is_none()
            && listed.streams()
            && copied.ranges(&name).is_none()
            && let Some(size) = size.filter(|size| size.is_large())
        {
            let most = config.snapshot.parts.saturating_mul(portion.of);
            let parts = most.min((size.documents / DOCUMENTS_PER_RANGE) as usize).max(1);
            copied.divide(&name, ranges(client, &listed.namespace, parts).await?);
        }
        chosen.push((listed, name, size, filter));
    }
    if plan.is_none() && portion.of > 1 {
        copied.spread_over(Spread::new(portion.of, choice.to_owned()));
    }
    let (mut sources, mut elsewhere) = (Vec::new(), Vec::new());
    for (listed, name, size, filter) in chosen {
        let left = copied.ranges(&name);
        let planned = left.is_some() || plan.is_some_and(|plan| plan.plans(&name));
        let all = left.map_or(0, BTreeMap::len);
        let own = left.into_iter().flatten().filter(|(_, range)| range.portion == portion.number);
        let ranges: Vec<(usize, Range)> = own.map(|(n, range)| (*n, range.clone())).collect();
        let reads_whole = !planned && portion_of(&name, portion.of) == portion.number;
        let shared = portion.is_first() && (ranges.len() < all || (!planned && !reads_whole));
        if shared {
            elsewhere.push(Arc::new(listed.namespace.clone()));
        }
        if ranges.is_empty() && !reads_whole {
            continue;
        }
        let batch_size = match config.snapshot.fetch_size {
            0 => size.and_then(|s| s.documents_per_reply()),
            fixed => Some(fixed),
        };
        sources.push(Source {
            ranges,
            shared,
            namespace: Arc::new(listed.namespace),
            // How many documents a filter lets through is not known without reading them.
            expected: size.filter(|_| filter.is_none()).map(|s| s.documents),
            filter: filter.unwrap_or_default(),
            batch_size,
        });
    }
    Ok((sources, elsewhere))
}

/// Tells a filter from others, and not what is in it.
fn mark(filter: &Document) -> Result<String, ServerError> {
    let mut bytes = Vec::new();
    filter.to_writer(&mut bytes).map_err(ServerError::custom)?;
    Ok(hex(&Sha256::digest(&bytes)[..8]))
}

/// Divides a collection by a sample of its `_id`s, in the order of the server.
async fn ranges(client: &Client, namespace: &Namespace, parts: usize) -> Result<Vec<Range>, ServerError> {
    let mut bounds: Vec<Bytes> = Vec::new();
    if parts > 1 {
        let size = i64::try_from(parts * SAMPLES_PER_RANGE).unwrap_or(i64::MAX);
        let stages = [doc! {"$sample": {"size": size}}, doc! {"$project": {"_id": 1}}, doc! {"$sort": {"_id": 1}}];
        let collection = client.database(&namespace.db).collection::<Document>(&namespace.coll);
        let sample = collection.aggregate(stages).with_type::<RawDocumentBuf>().selection_criteria(criteria(client));
        let sample: Vec<RawDocumentBuf> = sample.await?.try_collect().await?;
        let every = (sample.len() / parts).max(1);
        bounds =
            sample.iter().skip(every).step_by(every).take(parts - 1).map(|d| d.as_bytes().to_vec().into()).collect();
        bounds.dedup();
    }
    let begins = std::iter::once(None).chain(bounds.iter().cloned().map(Some));
    let ends = bounds.iter().cloned().map(Some).chain(std::iter::once(None));
    Ok(begins.zip(ends).map(|(from, until)| Range { from, until, ..Range::default() }).collect())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    documents: u64,
    bytes: u64,
}

impl Size {
    /// Worth to go on in the middle of it. Smaller ones are read in the order in which they lie.
    fn is_large(self) -> bool {
        self.documents >= LARGE_DOCUMENTS || self.bytes >= LARGE_BYTES
    }

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
