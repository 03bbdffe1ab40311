//! What a task has sent, what of it is durable, and what of that is committed.
//!
//! Belongs to the encoder; nothing here is shared except what the producer's threads answer.
//! Invariants: a position is handed to the cluster only after every message up to it is
//! acknowledged; commits of a partition rise; one with news from the broker waits at most the commit
//! interval, one that only says "nothing happened until here" at most the quiet interval.
//! It does not: send, or decide what a failure means.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use parking_lot::Mutex;
use thalweg_core::ack::{AckTracker, AckWindow, DEFAULT_CAPACITY, Full};
use thalweg_core::delivery::Acks;
use thalweg_core::position::Position;
use thalweg_core::progress::PartitionProgress;
use thalweg_core::source::Connector;
use thalweg_core::{Error, ErrorKind};
use tokio::sync::Notify;

use crate::counters::Counters;
use crate::memory::{PartitionMemory, UnitMemory};
use crate::node::NodeContext;
use crate::refused::RefusedMessage;
use crate::sabotage::{Defect, active};

/// The producer's answers: the shared window, and a wake-up for the first failure.
pub(crate) struct Answers {
    window: Arc<AckWindow>,
    /// Number and kind of the failure that came first.
    first: Mutex<Option<(u64, ErrorKind)>>,
    failed: Notify,
}

impl Acks for Answers {
    fn delivered(&self, seq: u64) {
        self.window.delivered(seq);
    }
    fn delivered_below(&self, next: u64) {
        self.window.delivered_below(next);
    }
    fn failed(&self, seq: u64, error: Error) {
        self.first.lock().get_or_insert((seq, error.kind));
        self.window.failed(seq, error);
        self.failed.notify_one();
    }
}

impl Answers {
    /// Resolves after the first failure.
    pub(crate) async fn failure(&self) -> Error {
        loop {
            if let Some(error) = self.first_failure() {
                return error;
            }
            self.failed.notified().await;
        }
    }
    pub(crate) fn first_failure(&self) -> Option<Error> {
        self.window.failure().cloned()
    }
    /// Number of the message that is too large, if that was the first failure.
    pub(crate) fn too_large(&self) -> Option<u64> {
        self.first.lock().filter(|(_, kind)| *kind == ErrorKind::MessageTooLarge).map(|(seq, _)| seq)
    }
}

/// Positions that a settled commit covers, by partition index.
pub(crate) type Covered = Vec<(usize, Position)>;

/// Commits on their way through consensus.
struct Settling {
    since: Instant,
    covered: Covered,
    /// Messages up to them.
    messages: u64,
    outcome: Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>,
}

pub(crate) struct Ledger {
    node: Arc<NodeContext>,
    connector: Arc<dyn Connector>,
    memory: Arc<UnitMemory>,
    partitions: Vec<Arc<PartitionMemory>>,
    tracker: AckTracker,
    answers: Arc<Answers>,
    /// Batches in flight: first number behind it, partition, messages.
    batches: VecDeque<(u64, usize, u64)>,
    /// Identity of each message in flight, kept only where refused messages are left out.
    identities: Option<VecDeque<(u64, RefusedMessage)>>,
    /// Durable in Kafka, not yet handed to the cluster.
    newest: Vec<Option<Position>>,
    committed_at: Option<Instant>,
    /// When the next look at acknowledgements, or the next commit, is due.
    due: Option<Instant>,
    /// Messages acknowledged at the last commit.
    committed_messages: u64,
    /// Messages of this run whose positions are stored for good.
    settled_messages: u64,
    /// Handed to the cluster, not yet waited for.
    handed_over: Vec<Option<Position>>,
    settling: Option<Settling>,
}

impl Ledger {
    pub(crate) fn new(
        node: Arc<NodeContext>,
        connector: Arc<dyn Connector>,
        memory: Arc<UnitMemory>,
        partitions: Vec<Arc<PartitionMemory>>,
        leave_refused_out: bool,
    ) -> Self {
        let tracker = AckTracker::new(DEFAULT_CAPACITY, partitions.len());
        let answers = Answers { window: tracker.window().clone(), first: Mutex::default(), failed: Notify::new() };
        Self {
            node,
            connector,
            memory,
            newest: vec![None; partitions.len()],
            handed_over: vec![None; partitions.len()],
            partitions,
            tracker,
            answers: Arc::new(answers),
            batches: VecDeque::new(),
            identities: leave_refused_out.then(VecDeque::new),
            committed_at: None,
            due: None,
            committed_messages: 0,
            settled_messages: 0,
            settling: None,
        }
    }

    pub(crate) fn answers(&self) -> &Arc<Answers> {
        &self.answers
    }

    /// Enters a message that is about to be sent. See [`AckTracker::enter`].
    pub(crate) fn enter(&mut self, partition: usize, position: Position) -> Result<u64, Full> {
        if active(Defect::CommitEarly) {
            self.newest[partition] = Some(position.clone());
        }
        self.tracker.enter(partition, position)
    }

    /// The number that the next message will get.
    pub(crate) fn next(&self) -> u64 {
        self.tracker.next()
    }

    /// How many messages, from the first one on, are settled.
    pub(crate) fn settled_messages(&self) -> u64 {
        self.settled_messages
    }

    /// Whether messages in flight are identified.
    pub(crate) fn identifies(&self) -> bool {
        self.identities.is_some()
    }

    /// Keeps what identifies the message just entered, if that may be needed.
    pub(crate) fn identify(&mut self, seq: u64, message: impl FnOnce() -> RefusedMessage) {
        if let Some(identities) = &mut self.identities {
            identities.push_back((seq, message()));
        }
    }

    /// The same for the message of a number that is not answered: it is replaced by another.
    pub(crate) fn identify_anew(&mut self, seq: u64, message: impl FnOnce() -> RefusedMessage) {
        if let Some((_, known)) = self.identities.iter_mut().flatten().find(|(known, _)| *known == seq) {
            *known = message();
        }
    }

    /// Identity of a message in flight.
    pub(crate) fn identity(&self, seq: u64) -> Option<&RefusedMessage> {
        let identities = self.identities.as_ref()?;
        let at = identities.binary_search_by_key(&seq, |(seq, _)| *seq).ok()?;
        identities.get(at).map(|(_, message)| message)
    }

    /// Enters a position without a message: it is durable with what was sent before it.
    pub(crate) fn enter_done(&mut self, partition: usize, position: Position) {
        self.tracker.enter_done(partition, position);
    }

    /// A message that was entered but is left out counts as acknowledged.
    pub(crate) fn leave_out(&self, seq: u64) {
        self.answers.delivered(seq);
    }

    /// After a batch: counts it, and makes sure somebody looks for its acknowledgements.
    pub(crate) fn batch_sent(&mut self, partition: usize, messages: u64) {
        if messages > 0 {
            self.batches.push_back((self.tracker.next(), partition, messages));
        }
        self.advance();
        self.schedule();
    }

    /// To wait on when the ledger is full.
    pub(crate) fn window(&self) -> &Arc<AckWindow> {
        self.tracker.window()
    }

    /// Moves over the acknowledged prefix.
    pub(crate) fn advance(&mut self) {
        while let Some((partition, position)) = self.tracker.advance() {
            self.newest[partition] = Some(position);
        }
        let acknowledged = self.tracker.acknowledged();
        let mut written = 0;
        while let Some(&(end, partition, messages)) = self.batches.front() {
            if end > acknowledged {
                break;
            }
            self.batches.pop_front();
            written += messages;
            PartitionProgress::count(&self.partitions[partition].progress.records_acked, messages);
        }
        if written > 0 {
            Counters::add(&self.memory.counters.written, written);
        }
        if let Some(identities) = &mut self.identities {
            while identities.front().is_some_and(|(seq, _)| *seq < acknowledged) {
                identities.pop_front();
            }
        }
        self.memory.in_flight.store(self.tracker.in_flight() as u64, Ordering::Relaxed);
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.tracker.in_flight() as u64
    }

    /// When [`Ledger::tick`] wants to be called.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Looks for acknowledgements and commits what is due.
    pub(crate) fn tick(&mut self) {
        self.advance();
        let now = Instant::now();
        if self.newest.iter().any(Option::is_some) && self.commit_due(now) <= now {
            self.commit();
        }
        self.schedule();
    }

    /// When the present news are to be committed. The first commit of a run is never put off: it is
    /// the starting position.
    fn commit_due(&self, now: Instant) -> Instant {
        let Some(last) = self.committed_at else { return now };
        let quiet = self.tracker.acknowledged() == self.committed_messages;
        last + if quiet { self.node.options.quiet_commit_interval } else { self.node.options.commit_interval }
    }

    fn schedule(&mut self) {
        let now = Instant::now();
        let look = (self.tracker.in_flight() > 0).then(|| now + self.node.options.commit_interval);
        let commit = self.newest.iter().any(Option::is_some).then(|| self.commit_due(now).max(now));
        let next = match (look, commit) {
            (Some(look), Some(commit)) => Some(look.min(commit)),
            (look, commit) => look.or(commit),
        };
        // A look that is scheduled already is not put off by further batches.
        self.due = match (self.due.filter(|due| *due > now), next) {
            (Some(due), Some(next)) => Some(due.min(next)),
            (_, next) => next,
        };
    }

    /// Hands everything durable to the cluster now.
    pub(crate) fn commit(&mut self) {
        let mut commits = 0;
        for (index, newest) in self.newest.iter_mut().enumerate() {
            let Some(position) = newest.take().filter(|p| !p.is_empty()) else { continue };
            let offset = self.connector.codec().to_offset(&position);
            let memory = &self.partitions[index];
            memory.commit(&*self.node.port, &self.memory.unit, self.memory.epoch, offset);
            self.handed_over[index] = Some(position);
            commits += 1;
        }
        if commits > 0 {
            Counters::add(&self.memory.counters.commits, commits);
            self.committed_at = Some(Instant::now());
            self.committed_messages = self.tracker.acknowledged();
            self.settle();
        }
    }

    /// Starts waiting for what was handed over, unless something is waited for already.
    fn settle(&mut self) {
        let covered: Covered =
            self.handed_over.iter().enumerate().filter_map(|(index, p)| Some((index, p.clone()?))).collect();
        if self.settling.is_none() && !covered.is_empty() {
            let (port, unit) = (self.node.port.clone(), self.memory.unit.clone());
            let settling = Box::pin(async move { port.settled(&unit).await });
            self.handed_over.fill(None);
            self.settling =
                Some(Settling { since: Instant::now(), covered, messages: self.committed_messages, outcome: settling });
        }
    }

    /// Resolves with the positions that are stored now. Pending for ever if nothing is on its way.
    /// Cancel-safe. An error of kind `Fenced` is final; after any other the positions are asked for
    /// again with the next commit.
    pub(crate) async fn settled(&mut self) -> Result<Covered, Error> {
        let Some(settling) = &mut self.settling else { return std::future::pending().await };
        let result = settling.outcome.as_mut().await;
        let Some(Settling { since, covered, messages, .. }) = self.settling.take() else { return Ok(Covered::new()) };
        match result {
            Ok(()) => {
                self.memory.counters.committed(since.elapsed());
                self.settled_messages = messages;
                self.settle();
                Ok(covered)
            }
            Err(error) => {
                Counters::add(&self.memory.counters.commits_failed, 1);
                for (index, position) in covered {
                    self.handed_over[index].get_or_insert(position);
                }
                Err(error)
            }
        }
    }

    /// Asks again for what could not be settled.
    pub(crate) fn settle_again(&mut self) {
        self.settle();
    }
}
