//! The thread that writes.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use openraft::storage::IOFlushed;
use redb::{Database, ReadableTable};
use tokio::sync::{mpsc, oneshot, watch};

use super::{COMMITTED, Inner, LOG, META, PURGED, SNAPSHOT, SNAPSHOT_META, SNAPSHOT_STATE, StoreError, guarded};
use crate::raft::types::TypeConfig;

/// Entries removed per commit: removal is what redb is slow at, and appends wait behind it.
const PURGE_STEP: usize = 1000;
/// What one commit may gather.
const BATCH_WRITES: usize = 1024;
const BATCH_BYTES: usize = 4 << 20;

pub(super) enum Write {
    Meta {
        key: &'static str,
        frame: Vec<u8>,
        done: Done,
    },
    /// Waits for the next commit of something else.
    Committed {
        frame: Vec<u8>,
    },
    Append {
        rows: Vec<(u64, Vec<u8>)>,
        done: Done,
    },
    Truncate {
        from: u64,
        done: Done,
    },
    /// Answered when the marker and the first step are durable.
    Purge {
        marker: Vec<u8>,
        through: u64,
        done: Done,
    },
    Snapshot {
        meta: Vec<u8>,
        state: Bytes,
        done: Done,
    },
    Stop {
        done: Done,
    },
}

pub(super) enum Done {
    Asked(oneshot::Sender<Result<(), StoreError>>),
    Flushed(IOFlushed<TypeConfig>),
}

impl Done {
    fn answer(self, result: Result<(), StoreError>) {
        match self {
            // Whoever asked may have been dropped; the write counts all the same.
            Self::Asked(sender) => drop(sender.send(result)),
            Self::Flushed(callback) => callback.io_completed(result.map_err(Into::into)),
        }
    }
}

impl Write {
    fn size(&self) -> usize {
        match self {
            Self::Meta { frame, .. } | Self::Committed { frame } => frame.len(),
            Self::Append { rows, .. } => rows.iter().map(|(_, row)| row.len()).sum(),
            Self::Snapshot { state, .. } => state.len(),
            Self::Truncate { .. } | Self::Purge { .. } | Self::Stop { .. } => 0,
        }
    }

    fn done(self) -> Option<Done> {
        match self {
            Self::Meta { done, .. }
            | Self::Append { done, .. }
            | Self::Truncate { done, .. }
            | Self::Purge { done, .. }
            | Self::Snapshot { done, .. }
            | Self::Stop { done } => Some(done),
            Self::Committed { .. } => None,
        }
    }
}

pub(super) struct Writer {
    path: PathBuf,
    database: Arc<Database>,
    failed: watch::Sender<Option<StoreError>>,
    /// Not written yet.
    committed: Option<Vec<u8>>,
    /// Purge steps still to do: entries up to there may remain.
    purging: Option<u64>,
}

impl Writer {
    pub(super) fn new(path: PathBuf, database: Arc<Database>, failed: watch::Sender<Option<StoreError>>) -> Self {
        Self { path, database, failed, committed: None, purging: None }
    }

    pub(super) fn run(mut self, mut queued: mpsc::Receiver<Write>, inner: &Weak<Inner>) {
        loop {
            let mut batch = VecDeque::new();
            if self.purging.is_none() {
                match queued.blocking_recv() {
                    Some(write) => batch.push_back(write),
                    None => return,
                }
            }
            let mut bytes: usize = batch.iter().map(Write::size).sum();
            while batch.len() < BATCH_WRITES
                && bytes < BATCH_BYTES
                && let Ok(write) = queued.try_recv()
            {
                bytes += write.size();
                batch.push_back(write);
            }
            let stop = batch.iter().position(|write| matches!(write, Write::Stop { .. }));
            let late = stop.map(|at| batch.split_off(at + 1)).unwrap_or_default();
            let result = self.commit(&mut batch, stop.is_some());
            if let (Ok(Some(end)), Some(inner)) = (&result, inner.upgrade()) {
                inner.tail.lock().flushed(*end);
            }
            let answer = result.map(|_| ());
            for done in batch.into_iter().filter_map(Write::done) {
                done.answer(answer.clone());
            }
            if stop.is_some() {
                queued.close();
                let closed = StoreError::Closed { path: self.path.clone() };
                let late = late.into_iter().chain(std::iter::from_fn(|| queued.try_recv().ok()));
                for done in late.filter_map(Write::done) {
                    done.answer(Err(closed.clone()));
                }
                return;
            }
        }
    }

    /// One transaction for the whole batch. Returns one past the last entry appended, if any.
    fn commit(&mut self, batch: &mut VecDeque<Write>, stopping: bool) -> Result<Option<u64>, StoreError> {
        if let Some(failure) = self.failed.borrow().clone() {
            self.purging = None;
            return Err(failure);
        }
        for write in batch.iter_mut() {
            if let Write::Committed { frame } = write {
                self.committed = Some(std::mem::take(frame));
            }
        }
        let idle = batch.iter().all(|write| matches!(write, Write::Committed { .. } | Write::Stop { .. }));
        if idle && self.purging.is_none() && !(stopping && self.committed.is_some()) {
            return Ok(None);
        }
        let path = self.path.clone();
        let result = guarded(&path, || self.transact(batch).map_err(|e| StoreError::storage(&self.path, e)));
        if let Err(error) = &result {
            tracing::error!(%error, "the log cannot be written any more");
            self.failed.send_replace(Some(error.clone()));
        }
        result
    }

    fn transact(&mut self, batch: &VecDeque<Write>) -> Result<Option<u64>, redb::Error> {
        let transaction = self.database.begin_write()?;
        let mut end = None;
        let mut purging = self.purging;
        {
            let mut meta = transaction.open_table(META)?;
            let mut log = transaction.open_table(LOG)?;
            for write in batch {
                match write {
                    Write::Meta { key, frame, .. } => {
                        meta.insert(*key, frame.as_slice())?;
                    }
                    Write::Append { rows, .. } => {
                        for (index, row) in rows {
                            log.insert(*index, row.as_slice())?;
                            end = Some(index + 1);
                        }
                    }
                    Write::Truncate { from, .. } => {
                        log.retain_in(*from.., |_, _| false)?;
                        end = end.map(|end: u64| end.min(*from));
                    }
                    Write::Purge { marker, through, .. } => {
                        meta.insert(PURGED, marker.as_slice())?;
                        purging = purging.max(Some(*through));
                    }
                    Write::Snapshot { meta: covers, state, .. } => {
                        let mut snapshot = transaction.open_table(SNAPSHOT)?;
                        snapshot.insert(SNAPSHOT_META, covers.as_slice())?;
                        snapshot.insert(SNAPSHOT_STATE, state.as_ref())?;
                    }
                    Write::Committed { .. } | Write::Stop { .. } => {}
                }
            }
            if let Some(frame) = &self.committed {
                meta.insert(COMMITTED, frame.as_slice())?;
            }
            if let Some(through) = purging {
                let mut old = Vec::with_capacity(PURGE_STEP);
                for row in log.range(..=through)?.take(PURGE_STEP) {
                    old.push(row?.0.value());
                }
                for index in &old {
                    log.remove(*index)?;
                }
                if old.len() < PURGE_STEP {
                    purging = None;
                }
            }
        }
        transaction.commit()?;
        self.committed = None;
        self.purging = purging;
        Ok(end)
    }
}
