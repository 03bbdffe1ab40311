//! The log as openraft writes it, and the newest part of it in memory.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use openraft::entry::RaftEntry;
use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::{LogState, OptionalSend};
use redb::{Database, ReadableDatabase, ReadableTable};

use super::write::{Done, Write};
use super::{COMMITTED, LOG, META, PURGED, SNAPSHOT, SNAPSHOT_META, Store, StoreError, VOTE};
use crate::raft::types::{Entry, EntryRef, LogId, LogIdRecord, TypeConfig, Vote, VoteRecord};
use crate::rpc::frame::{self, Kind, MAX_BODY};

/// Durable entries that stay in memory for readers, by count and by encoded size.
const KEEP_ENTRIES: usize = 1024;
const KEEP_BYTES: usize = 2 << 20;

/// Where the log stands, and its newest entries: all that are not durable yet, and some more.
#[derive(Debug, Default)]
pub(super) struct Tail {
    pub vote: Option<Vote>,
    pub committed: Option<LogId>,
    pub purged: Option<LogId>,
    pub last: Option<LogId>,
    /// The file holds a snapshot.
    pub snapshot: bool,
    /// Encoded size of what was appended since the last snapshot.
    pub logged: u64,
    /// Index of the oldest entry, if nothing was purged.
    begin: u64,
    /// Without a hole, up to `last`; with encoded sizes.
    entries: VecDeque<(Entry, usize)>,
    bytes: usize,
    /// Entries below are durable.
    durable: u64,
}

impl Tail {
    /// From the file. Nothing is cached yet.
    pub(super) fn read(path: &Path, database: &Database) -> Result<Self, StoreError> {
        let storage = |e: redb::Error| StoreError::storage(path, e);
        let read = || -> Result<_, redb::Error> {
            let read = database.begin_read()?;
            let meta = read.open_table(META)?;
            let row = |key: &str| -> Result<Option<Vec<u8>>, redb::Error> {
                Ok(meta.get(key)?.map(|row| row.value().to_vec()))
            };
            let snapshot = read.open_table(SNAPSHOT)?.get(SNAPSHOT_META)?.is_some();
            let log = read.open_table(LOG)?;
            let begin = log.first()?.map_or(0, |(index, _)| index.value());
            let last = log.last()?.map(|(_, row)| row.value().to_vec());
            Ok((row(VOTE)?, row(COMMITTED)?, row(PURGED)?, begin, last, snapshot))
        };
        let (vote, committed, purged, begin, last, snapshot) = read().map_err(storage)?;
        let log_id = |frame: Vec<u8>| LogIdRecord::read(path, &frame);
        let purged = purged.map(log_id).transpose()?;
        let last = last.map(|frame| super::read::entry(path, &frame)).transpose()?;
        // A purge may have been cut off after its marker: what it left does not exist.
        let last = last.map(|entry| entry.log_id).filter(|last| purged.as_ref().is_none_or(|p| p.index < last.index));
        let last = last.or(purged);
        Ok(Self {
            vote: vote.map(|frame| VoteRecord::read(path, &frame)).transpose()?,
            committed: committed.map(log_id).transpose()?,
            purged,
            durable: last.as_ref().map_or(0, |l| l.index + 1),
            last,
            snapshot,
            logged: 0,
            begin,
            entries: VecDeque::new(),
            bytes: 0,
        })
    }

    /// First index that exists.
    pub(super) fn first(&self) -> u64 {
        self.purged.as_ref().map_or(self.begin, |p| p.index + 1)
    }

    /// One past the last index that exists.
    pub(super) fn end(&self) -> u64 {
        self.last.as_ref().map_or(0, |l| l.index + 1)
    }

    /// First index of the part that is in memory.
    pub(super) fn cached_from(&self) -> u64 {
        self.end() - self.entries.len() as u64
    }

    /// Entries of the cached part, oldest first, with encoded sizes.
    pub(super) fn cached(&self, from: u64, to: u64) -> impl Iterator<Item = &(Entry, usize)> {
        let first = self.cached_from();
        let skip = from.saturating_sub(first) as usize;
        self.entries.iter().skip(skip).take(to.saturating_sub(from.max(first)) as usize)
    }

    fn append(&mut self, entry: Entry, size: usize) -> Result<(), String> {
        let index = entry.log_id.index;
        // An empty log may begin anywhere: openraft's first entry is 0, a purged log has its marker.
        if self.last.is_none() {
            self.begin = index;
        } else if index != self.end() {
            return Err(format!("entry {index} does not follow entry {}", self.end().saturating_sub(1)));
        }
        self.last = Some(entry.log_id);
        self.bytes += size;
        self.logged += size as u64;
        self.entries.push_back((entry, size));
        Ok(())
    }

    /// Entries from `from` on are gone.
    fn truncate(&mut self, from: u64, last: Option<LogId>) {
        let keep = from.saturating_sub(self.cached_from()) as usize;
        for (_, size) in self.entries.drain(keep.min(self.entries.len())..) {
            self.bytes -= size;
        }
        self.last = last.or(self.purged);
        self.durable = self.durable.min(from);
    }

    fn purge(&mut self, upto: LogId) {
        while self.entries.front().is_some_and(|(entry, _)| entry.log_id.index <= upto.index) {
            self.evict();
        }
        self.purged = Some(upto);
        if self.last.as_ref().is_none_or(|last| last.index < upto.index) {
            self.last = Some(upto);
            self.durable = upto.index + 1;
        }
    }

    /// The writer has committed everything below `end`.
    pub(super) fn flushed(&mut self, end: u64) {
        self.durable = self.durable.max(end);
        while (self.entries.len() > KEEP_ENTRIES || self.bytes > KEEP_BYTES)
            && self.entries.front().is_some_and(|(entry, _)| entry.log_id.index < self.durable)
        {
            self.evict();
        }
    }

    fn evict(&mut self) {
        if let Some((_, size)) = self.entries.pop_front() {
            self.bytes -= size;
        }
    }
}

impl RaftLogStorage<TypeConfig> for Store {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> io::Result<LogState<TypeConfig>> {
        let tail = self.inner.tail.lock();
        Ok(LogState { last_purged_log_id: tail.purged, last_log_id: tail.last })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> io::Result<()> {
        let frame = self.encode(Kind::Vote, &VoteRecord::from(vote))?;
        self.write(|done| Write::Meta { key: VOTE, frame, done }).await?;
        self.inner.tail.lock().vote = Some(*vote);
        Ok(())
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> io::Result<()> {
        let Some(committed) = committed else { return Ok(()) };
        let frame = self.encode(Kind::LogId, &LogIdRecord::from(&committed))?;
        self.enqueue(Write::Committed { frame }).await?;
        self.inner.tail.lock().committed = Some(committed);
        Ok(())
    }

    async fn read_committed(&mut self) -> io::Result<Option<LogId>> {
        Ok(self.inner.tail.lock().committed)
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<TypeConfig>) -> io::Result<()>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut rows = Vec::new();
        let mut encoded = Vec::new();
        for entry in entries {
            let row = frame::encode(Kind::Entry, &EntryRef::from(&entry), MAX_BODY)
                .map_err(|e| StoreError::Unwritable { path: self.inner.path.clone(), why: e.to_string() })?;
            encoded.push((entry, row.len()));
            rows.push((encoded[encoded.len() - 1].0.index(), row));
        }
        if rows.is_empty() {
            callback.io_completed(Ok(()));
            return Ok(());
        }
        {
            let mut tail = self.inner.tail.lock();
            for (entry, size) in encoded {
                tail.append(entry, size).map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
            }
        }
        self.enqueue(Write::Append { rows, done: Done::Flushed(callback) }).await?;
        Ok(())
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> io::Result<()> {
        let from = last.as_ref().map_or(0, |l| l.index + 1);
        {
            let mut tail = self.inner.tail.lock();
            if from >= tail.end() {
                return Ok(());
            }
            tail.truncate(from, last);
        }
        self.write(|done| Write::Truncate { from, done }).await?;
        Ok(())
    }

    async fn purge(&mut self, upto: LogId) -> io::Result<()> {
        {
            let mut tail = self.inner.tail.lock();
            if tail.purged.as_ref().is_some_and(|p| p.index >= upto.index) {
                return Ok(());
            }
            tail.purge(upto);
        }
        let marker = self.encode(Kind::LogId, &LogIdRecord::from(&upto))?;
        self.write(|done| Write::Purge { marker, through: upto.index, done }).await?;
        Ok(())
    }
}
