//! The first stage of a partition: batches from the source into the bounded queue.
//!
//! Invariants: nothing is read while paused (connections stay open); a batch that finds no room is
//! waited for, never dropped, except when the generation ends, and then it was not sent, so it is
//! read again; the queue is closed before the source is, so that sending what was read goes on.
//! It does not: look into a record, or decide what follows from an error.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_core::Error;
use thalweg_core::position::Position;
use thalweg_core::queue::Sender;
use thalweg_core::source::PartitionReader;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::memory::{PartitionMemory, UnitMemory};
use crate::progress::Wait;
use crate::view::Activity;

/// What a generation is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    Run,
    Pause,
    /// Stop reading; send and commit what was read.
    Drain,
}

/// Why reading ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadEnd {
    Drained,
    /// The source has nothing more to give.
    Finished,
    /// The encoder has ended; its own exit says why.
    Severed,
}

pub(crate) struct Reading {
    pub source: Box<dyn PartitionReader>,
    pub queue: Sender,
    pub unit: Arc<UnitMemory>,
    pub memory: Arc<PartitionMemory>,
    pub control: watch::Receiver<Control>,
    /// Newest position that is stored.
    pub durable: watch::Receiver<Position>,
    pub cancel: CancellationToken,
    /// How long closing the source may take.
    pub close_within: Duration,
}

impl Reading {
    /// Reads until asked to stop, until the source ends, or until an error.
    pub(crate) async fn run(mut self) -> Result<ReadEnd, Error> {
        let cancel = self.cancel.clone();
        let end = tokio::select! {
            biased;
            () = cancel.cancelled() => Ok(ReadEnd::Drained),
            end = self.read() => end,
        };
        self.memory.reader.set(Wait::End);
        drop(self.queue);
        self.source.close(self.close_within).await;
        end
    }

    async fn read(&mut self) -> Result<ReadEnd, Error> {
        loop {
            let asked = *self.control.borrow_and_update();
            match asked {
                Control::Run => {}
                Control::Drain => return Ok(ReadEnd::Drained),
                Control::Pause => {
                    self.memory.set_activity(Activity::Paused);
                    let _paused = self.memory.reader.waiting(Wait::Paused);
                    if self.control.changed().await.is_err() {
                        return Ok(ReadEnd::Drained);
                    }
                    continue;
                }
            }
            self.memory.set_activity(Activity::Streaming);
            if let Some(end) = self.pass_on().await? {
                return Ok(end);
            }
        }
    }

    /// Batches, until the control changes.
    async fn pass_on(&mut self) -> Result<Option<ReadEnd>, Error> {
        loop {
            if *self.control.borrow() != Control::Run {
                return Ok(None);
            }
            if self.durable.has_changed().unwrap_or(false) {
                self.source.durable(&self.durable.borrow_and_update());
            }
            let asked = Instant::now();
            let batch = tokio::select! {
                biased;
                changed = self.control.changed() => return Ok(changed.is_err().then_some(ReadEnd::Drained)),
                batch = self.source.next() => batch?,
            };
            let took = asked.elapsed();
            self.unit.counters.batch(batch.records.len() as u64, took);
            self.memory.progress.polled(batch.events, took);
            self.memory.reader.beat();
            if !batch.records.is_empty() || batch.progress.is_some() {
                let sent = {
                    let _full = self.memory.reader.waiting(Wait::Queue);
                    tokio::select! {
                        biased;
                        sent = self.queue.send(batch) => sent,
                        () = drain_asked(&mut self.control) => return Ok(Some(ReadEnd::Drained)),
                    }
                };
                if sent.is_err() {
                    return Ok(Some(ReadEnd::Severed));
                }
            }
            if self.source.finished() {
                return Ok(Some(ReadEnd::Finished));
            }
        }
    }
}

/// Resolves when the control says drain, or nobody is left to say anything.
async fn drain_asked(control: &mut watch::Receiver<Control>) {
    let _ = control.wait_for(|c| *c == Control::Drain).await;
}
