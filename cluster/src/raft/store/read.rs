//! Reading the log: bounded by count and size, from memory where possible, else off the workers.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::path::Path;

use futures::{Stream, stream};
use openraft::OptionalSend;
use openraft::errors::LeaderChanged;
use openraft::storage::{LeaderBoundedStreamError, RaftLogReader};
use redb::{Database, ReadableDatabase};

use super::{LOG, Store, StoreError};
use crate::raft::types::{Entry, EntryRecord, LeaderId, TypeConfig, Vote};
use crate::rpc::frame::{self, Kind, MAX_BODY};

/// One read for replication or replay takes at most this much, and at least one entry.
const CHUNK_ENTRIES: usize = 256;
const CHUNK_BYTES: usize = 2 << 20;

#[derive(Clone, Copy)]
struct Limit {
    entries: usize,
    bytes: usize,
}

const CHUNK: Limit = Limit { entries: CHUNK_ENTRIES, bytes: CHUNK_BYTES };
const ALL: Limit = Limit { entries: usize::MAX, bytes: usize::MAX };

/// Decodes a row of the log.
pub(super) fn entry(path: &Path, frame: &[u8]) -> Result<Entry, StoreError> {
    let record: EntryRecord = match frame::decode(Kind::Entry, frame, MAX_BODY) {
        Ok(record) => record,
        Err(frame::FrameError::UnknownVersion { found }) => {
            return Err(StoreError::Newer { path: path.to_owned(), found: found.into(), known: super::FORMAT });
        }
        Err(e) => return Err(StoreError::corrupt(path, "log entry", &e)),
    };
    Entry::try_from(record).map_err(|e| StoreError::corrupt(path, "log entry", &e))
}

impl Store {
    /// Entries from `start` on, without a hole, up to `end` (exclusive) or a limit.
    async fn entries(&self, start: u64, end: u64, limit: Limit) -> Result<Vec<Entry>, StoreError> {
        let (disk, mut cached) = {
            let tail = self.inner.tail.lock();
            let (start, end) = (start.max(tail.first()), end.min(tail.end()));
            if start >= end {
                return Ok(Vec::new());
            }
            let boundary = tail.cached_from().clamp(start, end);
            let mut room = limit;
            let cached: Vec<Entry> = tail
                .cached(boundary, end)
                .enumerate()
                .take_while(|(n, (_, size))| {
                    let fits = *n == 0 || (*n < room.entries && *size <= room.bytes);
                    room.bytes = room.bytes.saturating_sub(*size);
                    fits
                })
                .map(|(_, (entry, _))| entry.clone())
                .collect();
            (start..boundary, cached)
        };
        if disk.is_empty() {
            return Ok(cached);
        }
        let mut entries =
            self.blocking(move |path, database| from_disk(path, database, disk.start, disk.end, limit)).await?;
        if limit.entries == ALL.entries {
            entries.append(&mut cached);
        }
        Ok(entries)
    }
}

fn from_disk(path: &Path, database: &Database, start: u64, end: u64, limit: Limit) -> Result<Vec<Entry>, StoreError> {
    let storage = |e: redb::Error| StoreError::storage(path, e);
    let read = database.begin_read().map_err(|e| storage(e.into()))?;
    let table = read.open_table(LOG).map_err(|e| storage(e.into()))?;
    let mut found = Vec::new();
    let mut bytes = 0;
    for row in table.range(start..end).map_err(|e| storage(e.into()))? {
        let (index, row) = row.map_err(|e| storage(e.into()))?;
        let (index, row) = (index.value(), row.value());
        bytes += row.len();
        if !found.is_empty() && (found.len() >= limit.entries || bytes > limit.bytes) {
            return Ok(found);
        }
        let entry = entry(path, row)?;
        let follows = found.last().is_none_or(|before: &Entry| before.log_id.index + 1 == index);
        if entry.log_id.index != index || !follows {
            return Err(StoreError::corrupt(path, "log", &format_args!("hole before entry {index}")));
        }
        found.push(entry);
    }
    // Entries may be missing in front, if they were purged meanwhile; never at the end.
    if found.last().is_none_or(|last| last.log_id.index + 1 != end) {
        return Err(StoreError::corrupt(path, "log", &format_args!("entry {} is missing", end - 1)));
    }
    Ok(found)
}

fn bounds(range: &impl RangeBounds<u64>) -> (u64, u64) {
    let start = match range.start_bound() {
        Bound::Included(start) => *start,
        Bound::Excluded(before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(last) => last.saturating_add(1),
        Bound::Excluded(end) => *end,
        Bound::Unbounded => u64::MAX,
    };
    (start, end)
}

impl RaftLogReader<TypeConfig> for Store {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> io::Result<Vec<Entry>> {
        let (start, end) = bounds(&range);
        Ok(self.entries(start, end, ALL).await?)
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> io::Result<Vec<Entry>> {
        Ok(self.entries(start, end, CHUNK).await?)
    }

    async fn read_vote(&mut self) -> io::Result<Option<Vote>> {
        Ok(self.inner.tail.lock().vote)
    }

    async fn entries_stream<RB>(&mut self, range: RB) -> impl Stream<Item = io::Result<Entry>> + OptionalSend
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        let (start, end) = bounds(&range);
        chunks(self.clone(), start, end, |_: &Store| Ok(()))
    }

    async fn leader_bounded_stream<RB>(
        &mut self,
        leader: LeaderId,
        range: RB,
    ) -> impl Stream<Item = Result<Entry, LeaderBoundedStreamError<TypeConfig>>> + OptionalSend
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        let (start, end) = bounds(&range);
        chunks(self.clone(), start, end, move |store: &Store| {
            let vote = store.inner.tail.lock().vote;
            if vote.as_ref().is_some_and(|vote| vote.leader_id == leader && vote.committed) {
                Ok(())
            } else {
                Err(LeaderChanged::new(leader, vote).into())
            }
        })
    }
}

/// The range, read chunk by chunk. `check` is asked before and after each chunk; its error ends the
/// stream, and so does any other.
fn chunks<E: From<io::Error> + Send + 'static>(
    store: Store,
    start: u64,
    end: u64,
    check: impl Fn(&Store) -> Result<(), E> + Clone + Send + Sync + 'static,
) -> impl Stream<Item = Result<Entry, E>> + Send + Unpin {
    let chunks = stream::unfold(Some(start), move |next| {
        let (mut store, check) = (store.clone(), check.clone());
        async move {
            let start = next?;
            let read = async {
                check(&store)?;
                let entries = store.limited_get_log_entries(start, end).await?;
                check(&store)?;
                Ok::<_, E>(entries)
            };
            match read.await {
                Ok(entries) => {
                    let next = entries.last().map(|last| last.log_id.index + 1).filter(|next| *next < end);
                    Some((entries.into_iter().map(Ok).collect::<Vec<_>>(), next))
                }
                Err(e) => Some((vec![Err(e)], None)),
            }
        }
    });
    Box::pin(futures::StreamExt::flat_map(chunks, stream::iter))
}
