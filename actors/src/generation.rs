//! Everything that runs for one source partition: the opened source, its reader, its queue, its place
//! in the task's encoder.
//!
//! A generation starts at the last committed position and ends as a whole. Invariants: the next one
//! starts only after all of this one has ended; it ends with everything that was read delivered and
//! committed, or together with the encoder (which then purges its producer). So positions of two
//! generations never overlap.
//! It does not: decide what follows from its end. That is the partition actor's part.

use std::sync::Arc;
use std::time::Duration;

use thalweg_core::position::SourcePartition;
use thalweg_core::queue;
use thalweg_core::source::{PartitionContext, PartitionReader};
use thalweg_core::{Error, Phase};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error};

use crate::encoder::Input;
use crate::exit::{Exit, ExitKind};
use crate::memory::PartitionMemory;
use crate::progress::Wait;
use crate::reader::{Control, ReadEnd, Reading};
use crate::run::TaskRun;
use crate::view::Activity;

/// How long a reader that is ending is waited for, beyond the time for closing its source.
const GRACE: Duration = Duration::from_millis(500);

pub(crate) struct Generation {
    pub run: Arc<TaskRun>,
    /// Index of the partition in the run.
    pub index: usize,
    pub partition: SourcePartition,
    pub memory: Arc<PartitionMemory>,
    pub control: watch::Receiver<Control>,
    pub cancel: CancellationToken,
    /// Told once the source is open.
    pub opened: Option<oneshot::Sender<()>>,
}

impl Generation {
    pub(crate) async fn run(self) -> Exit {
        let mut control = self.control.clone();
        let cancel = self.cancel.clone();
        let turn = self.memory.turn.clone();
        let _turn = tokio::select! {
            biased;
            () = cancel.cancelled() => return Exit::stopped(),
            turn = turn.acquire_owned() => turn,
        };
        self.memory.reader.set(Wait::None);
        self.memory.set_activity(Activity::Opening);
        let source = tokio::select! {
            biased;
            () = cancel.cancelled() => return self.ended(Exit::stopped()),
            () = drain_asked(&mut control) => return self.ended(Exit::stopped()),
            opened = self.open() => match opened {
                Ok(source) => source,
                Err(error) => return self.ended(Exit::failed(error)),
            },
        };
        self.stream(source).await
    }

    async fn open(&self) -> Result<Box<dyn PartitionReader>, Error> {
        let context = PartitionContext {
            offsets: self.run.offsets.clone(),
            cancel: self.cancel.child_token(),
            progress: self.memory.progress.clone(),
            histories: self.run.histories.clone(),
            signals: self.run.signals.inbox(self.index),
        };
        self.run.source.open(&self.partition, context).await
    }

    async fn stream(mut self, source: Box<dyn PartitionReader>) -> Exit {
        let (queue, receiver) = queue::bounded(self.run.settings.queue);
        self.memory.set_queue(queue.gauge());
        let known = self.run.offsets.offset(&self.partition).is_some();
        let (drained, mut sent) = oneshot::channel();
        let (durable, stored) = watch::channel(Default::default());
        let input = Input::new(self.index, receiver, known, durable, drained);
        if !self.run.encoder.attach(input).await {
            source.close(self.run.settings.close_timeout).await;
            return self.ended(Exit::stopped());
        }
        let reading = Reading {
            source,
            queue,
            unit: self.run.memory.clone(),
            memory: self.memory.clone(),
            control: self.control.clone(),
            durable: stored,
            cancel: self.cancel.clone(),
            close_within: self.run.settings.close_timeout,
        };
        let mut reader = tokio::spawn(reading.run().in_current_span());
        if let Some(opened) = self.opened.take() {
            let _ = opened.send(());
        }
        let mut delivered = None;
        let read = tokio::select! {
            biased;
            read = &mut reader => Some(read),
            told = &mut sent => {
                delivered = Some(told.is_ok());
                if told.is_err() {
                    // The encoder has ended before the reader did.
                    self.cancel.cancel();
                }
                self.end_of(&mut reader).await
            }
            () = self.cancel.cancelled() => self.end_of(&mut reader).await,
        };
        if read.is_none() {
            self.run.encoder.detach(self.index).await;
        }
        let phase = self.phase();
        let delivered = match delivered {
            Some(delivered) => delivered,
            None => sent.await.is_ok(),
        };
        let exit = match read {
            None => Exit::stopped(),
            Some(Ok(Ok(ReadEnd::Finished))) if delivered => Exit::finished(),
            Some(Ok(Ok(_))) => Exit::stopped(),
            Some(Ok(Err(error))) => Exit::failed(error),
            Some(Err(join)) => Exit::from_join(join, &format!("reader of {}", self.partition.original()), phase),
        };
        self.memory.reader.set(Wait::End);
        if exit.kind == ExitKind::Finished {
            self.memory.set_activity(Activity::Finished);
        }
        exit
    }

    /// Waits for a reader that is ending. One that does not end is left behind: it can neither
    /// send nor commit any more.
    async fn end_of<T>(&self, reader: &mut JoinHandle<T>) -> Option<Result<T, tokio::task::JoinError>> {
        if let Ok(read) = tokio::time::timeout(self.run.settings.close_timeout + GRACE, &mut *reader).await {
            return Some(read);
        }
        reader.abort();
        if let Ok(read) = tokio::time::timeout(GRACE, reader).await {
            return Some(read);
        }
        error!("a reader blocks its thread and cannot be ended, it is left behind");
        None
    }

    fn phase(&self) -> Phase {
        match self.memory.progress.snapshot() {
            Some(snapshot) if snapshot.ended.is_none() => Phase::Snapshot,
            _ => Phase::Stream,
        }
    }

    fn ended(&self, exit: Exit) -> Exit {
        self.memory.reader.set(Wait::End);
        exit
    }
}

async fn drain_asked(control: &mut watch::Receiver<Control>) {
    let _ = control.wait_for(|c| *c == Control::Drain).await;
}
