//! The sending half of a task: takes batches from its partitions, turns records into messages, hands
//! them to the task's one producer, and moves positions behind the broker's answers.
//!
//! One plain task owns producer, converters and ledger, so nothing per event is locked or shared.
//! Invariants: nothing is handed to the producer without a held lease, asked for before each batch
//! and again after every wait inside one; a partition's end is told only when all its messages are
//! acknowledged and its position is handed to the cluster; whatever ends the encoder, the producer
//! is purged before the next one may open; messages without an acknowledgement then belong to
//! nobody and are read again.
//! It does not: read, retry a failure, or know actors.

mod dead;
mod format;
mod send;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Instant;

use thalweg_config::Properties;
use thalweg_core::delivery::{DeliveryMode, Producer, ProducerIdentity};
use thalweg_core::position::Position;
use thalweg_core::queue::Receiver;
use thalweg_core::source::{Batch, Connector};
use thalweg_core::tolerance::ErrorCounters;
use thalweg_core::{Error, ErrorKind, Phase};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, warn};

use crate::coder::Coder;
use crate::counters::Counters;
use crate::dead_letter::Reason;
use crate::exit::{Exit, ExitKind};
use crate::ledger::{Covered, Ledger};
use crate::memory::{PartitionMemory, UnitMemory};
use crate::node::NodeContext;
use crate::port::ClusterPort;
use crate::progress::Wait;
use crate::refused::{Finding, Refusals, RefusedMessage};
use crate::topics::Topics;

/// A partition's place in the encoder.
pub(crate) struct Input {
    index: usize,
    queue: Receiver,
    /// A position is stored for the partition.
    known: bool,
    durable: watch::Sender<Position>,
    drained: oneshot::Sender<()>,
}

impl Input {
    /// `drained` is told when everything of this input is delivered and its position committed; it
    /// is dropped if the encoder ends before.
    pub(crate) fn new(
        index: usize,
        queue: Receiver,
        known: bool,
        durable: watch::Sender<Position>,
        drained: oneshot::Sender<()>,
    ) -> Self {
        Self { index, queue, known, durable, drained }
    }
}

enum Command {
    Attach(Input),
    /// The reader is left behind: the input ends although its queue is held open.
    Detach(usize),
}

/// How the other parts of the task talk to the encoder. Dropping it ends the encoder.
pub(crate) struct EncoderHandle {
    commands: mpsc::Sender<Command>,
    signals: Signals,
}

#[derive(Clone, Default)]
struct Signals {
    /// Inputs are ending: a broker that does not answer is waited for within the flush time only.
    draining: CancellationToken,
    /// End when there is no input left.
    closing: CancellationToken,
    /// End now; commit what is acknowledged.
    give_up: CancellationToken,
    /// End now and say nothing.
    purge: CancellationToken,
}

impl EncoderHandle {
    /// False if the encoder has ended.
    pub(crate) async fn attach(&self, input: Input) -> bool {
        self.commands.send(Command::Attach(input)).await.is_ok()
    }
    pub(crate) async fn detach(&self, index: usize) {
        let _ = self.commands.send(Command::Detach(index)).await;
    }
    pub(crate) fn drain(&self) {
        self.signals.draining.cancel();
    }
    pub(crate) fn close(&self) {
        self.signals.closing.cancel();
    }
    pub(crate) fn give_up(&self) {
        self.signals.give_up.cancel();
    }
    pub(crate) fn purge(&self) {
        self.signals.purge.cancel();
    }
    pub(crate) fn has_ended(&self) -> bool {
        self.commands.is_closed()
    }
}

impl Drop for EncoderHandle {
    fn drop(&mut self) {
        self.give_up();
    }
}

pub(crate) struct EncoderParts {
    pub identity: ProducerIdentity,
    pub mode: DeliveryMode,
    pub send_after: Option<Instant>,
    /// References resolved.
    pub config: Properties,
    pub connector: Arc<dyn Connector>,
    pub coder: Coder,
    pub partitions: Vec<Arc<PartitionMemory>>,
    pub memory: Arc<UnitMemory>,
    pub node: Arc<NodeContext>,
}

pub(crate) struct Encoder {
    identity: ProducerIdentity,
    mode: DeliveryMode,
    send_after: Option<Instant>,
    config: Properties,
    connector: Arc<dyn Connector>,
    coder: Coder,
    partitions: Vec<Arc<PartitionMemory>>,
    memory: Arc<UnitMemory>,
    node: Arc<NodeContext>,
    commands: mpsc::Receiver<Command>,
    signals: Signals,
    inputs: Vec<Input>,
    /// Where the next look for input starts, so that no partition starves another.
    turn: usize,
    ledger: Ledger,
    topics: Topics,
    /// Position of the last record taken, by partition.
    last: Vec<Position>,
    refusals: Refusals,
    /// The message that is in flight with nothing else.
    alone: Option<u64>,
    /// Why the present record is left out, for its dead letter.
    reason: Option<Reason>,
    /// The broker was waited for as long as a flush may take.
    gave_up_waiting: bool,
}

enum Step {
    Command(Option<Command>),
    Tick,
    Settled(Result<Covered, Error>),
    /// Messages that the producer held back can leave.
    HandOver,
    Batch(usize, Batch),
    InputEnded(usize),
    Close,
}

/// What one batch amounted to, for the counters.
#[derive(Default)]
struct Sent {
    messages: u64,
    bytes: u64,
    dropped: u64,
}

impl Encoder {
    /// Starts the encoder; its producer opens meanwhile, `ready` tells when.
    pub(crate) fn spawn(parts: EncoderParts) -> (JoinHandle<Exit>, EncoderHandle, oneshot::Receiver<()>) {
        let (commands, receiver) = mpsc::channel(4);
        let signals = Signals::default();
        let (ready, opened) = oneshot::channel();
        let EncoderParts { identity, mode, send_after, config, connector, coder, partitions, memory, node } = parts;
        let ledger =
            Ledger::new(node.clone(), connector.clone(), memory.clone(), partitions.clone(), coder.leaves_errors_out());
        let refusals = {
            let mut refusals = memory.refusals.lock();
            refusals.begin();
            refusals.clone()
        };
        let encoder = Self {
            topics: Topics::new(identity.connector.clone(), node.port.clone()),
            refusals,
            alone: None,
            reason: None,
            last: vec![Position::default(); partitions.len()],
            identity,
            mode,
            send_after,
            config,
            connector,
            coder,
            partitions,
            memory,
            node,
            commands: receiver,
            signals: signals.clone(),
            inputs: Vec::new(),
            turn: 0,
            ledger,
            gave_up_waiting: false,
        };
        let span = encoder.memory.span.clone();
        (tokio::spawn(encoder.run(ready).instrument(span)), EncoderHandle { commands, signals }, opened)
    }

    async fn run(mut self, ready: oneshot::Sender<()>) -> Exit {
        let (node, signals) = (self.node.clone(), self.signals.clone());
        let answers = self.ledger.answers().clone();
        let acks = answers.clone();
        let occupancy = self.memory.occupancy.clone();
        self.memory.encoder.set(Wait::Input);
        // Whatever former owner in this process has let go; then the producer may open.
        let opening = async {
            let permit = occupancy.acquire_owned().await;
            if !node.port.lease_held() {
                return Err(lease_lost());
            }
            let producer = node.registry.producers().open(self.identity.clone(), self.mode, &self.config, acks).await?;
            Ok((permit, producer))
        };
        let opened = tokio::select! {
            biased;
            () = signals.purge.cancelled() => return self.over(Exit::stopped()),
            () = signals.give_up.cancelled() => return self.over(Exit::stopped()),
            () = node.port.lease_lost() => return self.over(Exit::failed(lease_lost())),
            opened = opening => opened,
        };
        let (_permit, mut producer) = match opened {
            Ok(opened) => opened,
            Err(error) => return self.over(Exit::failed(error)),
        };
        let _ = ready.send(());
        let result = tokio::select! {
            biased;
            () = signals.purge.cancelled() => Err(Exit::stopped()),
            () = signals.give_up.cancelled() => Err(Exit::stopped()),
            () = node.port.lease_lost() => Err(Exit::failed(lease_lost())),
            error = answers.failure() => Err(Exit::failed(error)),
            result = self.work(&mut *producer) => result,
        };
        self.end(producer, result.err().unwrap_or_else(Exit::stopped)).await
    }

    /// Ends with an orderly account of what was sent, unless nothing may be said any more.
    async fn end(mut self, mut producer: Box<dyn Producer>, mut exit: Exit) -> Exit {
        let (node, signals) = (self.node.clone(), self.signals.clone());
        let silent = signals.purge.is_cancelled() || exit.kind == ExitKind::Fenced || !node.port.lease_held();
        let answers = self.ledger.answers().clone();
        let worth_waiting =
            !self.gave_up_waiting && !signals.give_up.is_cancelled() && answers.first_failure().is_none();
        if !silent && worth_waiting && self.ledger.in_flight() > 0 {
            // What was sent before the fault is good: the next run starts right behind it.
            tokio::select! {
                biased;
                () = signals.give_up.cancelled() => {}
                () = node.port.lease_lost() => exit = Exit::failed(lease_lost()),
                // Its outcome shows in the answers.
                _ = self.flush_sent(&mut *producer) => {}
            }
        }
        self.ledger.advance();
        if let Some(cause) = answers.first_failure().filter(|_| exit.kind != ExitKind::Fenced) {
            // Whatever was noticed first here, this is the cause.
            exit = self.refusal(Exit::failed(cause));
        }
        producer.purge();
        if !silent && exit.kind != ExitKind::Fenced {
            self.ledger.commit();
        }
        if let Some(error) = exit.error.as_mut().filter(|error| error.kind == ErrorKind::MessageTooLarge) {
            // The broker's answer does not say which change it was; it is the first one behind these.
            for (partition, offset) in self.partitions.iter().filter_map(|p| Some((&p.partition, p.committed()?))) {
                let offset = serde_json::Value::Object(offset);
                error.causes.push(format!("behind source partition {}, offset {offset}", partition.original()));
            }
        }
        exit.unacknowledged = self.ledger.in_flight();
        // Closing a client joins its threads.
        let _ = tokio::task::spawn_blocking(move || drop(producer)).await;
        self.over(exit)
    }

    fn over(&self, exit: Exit) -> Exit {
        self.memory.encoder.set(Wait::End);
        self.memory.in_flight.store(0, Ordering::Relaxed);
        exit
    }

    /// Where refused messages are left out: whether this one is, or is to be sent alone first.
    fn refusal(&mut self, exit: Exit) -> Exit {
        let refused = self.ledger.answers().too_large().and_then(|seq| Some((seq, self.ledger.identity(seq)?.clone())));
        let Some((seq, message)) = refused.filter(|_| self.coder.leaves_errors_out()) else { return exit };
        let finding = self.memory.refusals.lock().refused(message.clone(), self.alone == Some(seq));
        match finding {
            Finding::Batches => return exit,
            Finding::Guilty => self.log_left_out(&message, exit.error.as_ref()),
            Finding::Suspect => {
                debug!(topic = %message.topic, bytes = message.size, "a refused message is sent alone next time")
            }
        }
        Exit { kind: ExitKind::Retriable, ..exit }
    }

    fn log_left_out(&self, message: &RefusedMessage, error: Option<&Error>) {
        let ErrorCounters { total_record_failures, total_record_errors, total_records_skipped, .. } =
            &*self.memory.errors;
        [total_record_failures, total_record_errors, total_records_skipped].into_iter().for_each(count);
        self.memory.error_seen();
        warn!(
            topic = %message.topic,
            bytes = message.size,
            partition = %self.partitions[message.partition].partition.original(),
            offset = %offset_text(&*self.connector, &message.position),
            error = error.map(tracing::field::display),
            "a message is left out because the broker refuses its size and errors are tolerated"
        );
    }

    async fn work(&mut self, producer: &mut dyn Producer) -> Result<(), Exit> {
        let memory = self.memory.clone();
        let closing = self.signals.closing.clone();
        loop {
            let step = {
                let _input = memory.encoder.waiting(Wait::Input);
                let due = self.ledger.due();
                tokio::select! {
                    biased;
                    command = self.commands.recv() => Step::Command(command),
                    () = at(due) => Step::Tick,
                    settled = self.ledger.settled() => Step::Settled(settled),
                    () = producer.ready() => Step::HandOver,
                    (input, batch) = next_batch(&mut self.inputs, &mut self.turn) => match batch {
                        Some(batch) => Step::Batch(input, batch),
                        None => Step::InputEnded(input),
                    },
                    () = closing.cancelled(), if self.inputs.is_empty() => Step::Close,
                }
            };
            match step {
                Step::Command(Some(Command::Attach(input))) => self.inputs.push(input),
                Step::Command(Some(Command::Detach(index))) => {
                    if let Some(input) = self.inputs.iter().position(|i| i.index == index) {
                        self.finish_input(producer, input).await?;
                    }
                }
                Step::Command(None) | Step::Close => return Ok(()),
                Step::Tick => self.ledger.tick(),
                Step::Settled(settled) => self.tell_durable(settled)?,
                Step::HandOver => send_held_back(&*self.node.port, producer)?,
                Step::Batch(input, batch) => self.send_batch(producer, input, batch).await?,
                Step::InputEnded(input) => self.finish_input(producer, input).await?,
            }
        }
    }

    fn tell_durable(&mut self, settled: Result<Covered, Error>) -> Result<(), Exit> {
        match settled {
            Ok(covered) => {
                for (index, position) in covered {
                    if let Some(input) = self.inputs.iter().find(|i| i.index == index) {
                        input.durable.send_replace(position);
                    }
                }
                if !self.refusals.is_empty() {
                    let messages = self.ledger.settled_messages();
                    self.refusals.committed(messages);
                    self.memory.refusals.lock().committed(messages);
                }
                Ok(())
            }
            Err(error) if error.kind == ErrorKind::Fenced => Err(Exit::failed(error)),
            Err(error) => {
                debug!(error = %error, "a commit is not settled yet");
                Ok(())
            }
        }
    }

    /// Delivers what an ended input has sent, commits, and tells its generation.
    async fn finish_input(&mut self, producer: &mut dyn Producer, at: usize) -> Result<(), Exit> {
        let input = self.inputs.swap_remove(at);
        self.flush(producer).await?;
        self.ledger.commit();
        let _ = input.drained.send(());
        Ok(())
    }

    /// Sends what the producer holds back. Before every wait that may be long.
    async fn hand_over(&mut self, producer: &mut dyn Producer) -> Result<(), Exit> {
        let memory = self.memory.clone();
        let _broker = memory.encoder.waiting(Wait::Broker);
        let mut expired = pin!(drain_expired(&self.signals, &self.node));
        while producer.holds_back() {
            tokio::select! {
                () = producer.ready() => send_held_back(&*self.node.port, producer)?,
                () = at(self.ledger.due()) => self.ledger.tick(),
                error = &mut expired => {
                    self.gave_up_waiting = true;
                    return Err(Exit::failed(error));
                }
            }
        }
        Ok(())
    }

    /// Waits until everything in flight is acknowledged, as long as a flush may take.
    async fn flush(&mut self, producer: &mut dyn Producer) -> Result<(), Exit> {
        self.flush_all_but(producer, 0).await
    }

    /// The same, but for so many numbers at the end under which nothing was sent.
    async fn flush_all_but(&mut self, producer: &mut dyn Producer, unsent: u64) -> Result<(), Exit> {
        if self.ledger.in_flight() > unsent {
            self.flush_sent(producer).await?;
        }
        self.ledger.advance();
        if self.ledger.in_flight() > unsent {
            self.gave_up_waiting = true;
            return Err(Exit::failed(unanswered(&self.node)));
        }
        Ok(())
    }

    /// Hands over what is held back and waits until it is answered, as long as a flush may take.
    async fn flush_sent(&mut self, producer: &mut dyn Producer) -> Result<(), Exit> {
        let end = tokio::time::Instant::now() + self.node.options.flush_timeout;
        match tokio::time::timeout_at(end, self.hand_over(producer)).await {
            Ok(handed) => handed?,
            Err(_) => {
                self.gave_up_waiting = true;
                return Err(Exit::failed(unanswered(&self.node)));
            }
        }
        let memory = self.memory.clone();
        let _broker = memory.encoder.waiting(Wait::Broker);
        if let Err(error) = producer.flush(end - tokio::time::Instant::now()).await {
            self.gave_up_waiting = true;
            return Err(Exit::failed(error));
        }
        Ok(())
    }
}

fn lease_lost() -> Error {
    Error::new(ErrorKind::Fenced, Phase::Deliver, "this node does not hold its lease any more")
}

fn check_lease(port: &dyn ClusterPort) -> Result<(), Exit> {
    if port.lease_held() { Ok(()) } else { Err(Exit::failed(lease_lost())) }
}

/// What the producer held back waited, so the lease is asked for again.
fn send_held_back(port: &dyn ClusterPort, producer: &mut dyn Producer) -> Result<(), Exit> {
    check_lease(port)?;
    producer.hand_over().map_err(Exit::failed)
}

fn unanswered(node: &NodeContext) -> Error {
    let seconds = node.options.flush_timeout.as_secs_f64();
    let text = format!("the broker has not acknowledged every message within {seconds} s");
    Error::new(ErrorKind::Timeout, Phase::Deliver, text)
}

/// Resolves when inputs have been ending for as long as a flush may take.
async fn drain_expired(signals: &Signals, node: &NodeContext) -> Error {
    signals.draining.cancelled().await;
    tokio::time::sleep(node.options.flush_timeout).await;
    unanswered(node)
}

fn count(counter: &AtomicU64) {
    Counters::add(counter, 1);
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

/// The next batch of any input, in turn; `None` with the index of an input that has ended.
async fn next_batch(inputs: &mut [Input], turn: &mut usize) -> (usize, Option<Batch>) {
    poll_fn(|cx| {
        for step in 0..inputs.len() {
            let index = (*turn + step) % inputs.len();
            if let Poll::Ready(batch) = pin!(inputs[index].queue.recv()).poll(cx) {
                *turn = index + 1;
                return Poll::Ready((index, batch));
            }
        }
        Poll::Pending
    })
    .await
}

/// Says where in the source an error happened.
fn locate(mut error: Error, connector: &dyn Connector, partition: &PartitionMemory, position: &Position) -> Error {
    let offset = offset_text(connector, position);
    error.causes.push(format!("source partition {}, offset {offset}", partition.partition.original()));
    error
}

fn offset_text(connector: &dyn Connector, position: &Position) -> String {
    serde_json::Value::Object(connector.codec().to_offset(position)).to_string()
}
