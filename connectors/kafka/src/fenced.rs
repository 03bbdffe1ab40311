//! The `fenced` producer: short transactions under an id that belongs to the task.
//!
//! Opening one shuts out the former owner at the broker, so a late write of a stale owner can never
//! become visible behind newer ones. Records are acknowledged when their transaction is committed.
//!
//! A transaction opens with the first record and commits after a fixed time, or earlier when it has
//! grown to its share of the memory, so that the wait for the rest of the queue stays short. Commits
//! run on a thread of their own; meanwhile the encoder goes on into a backlog of the same size,
//! which becomes the next transaction. Without records nothing runs and no timer is set.
//!
//! `try_send` takes one lock that is free except in the moments when a transaction ends or the
//! backlog is handed over; then it answers "full" instead of waiting.
//!
//! Any failure of a record or a commit is final: the transaction is aborted, in the background, and
//! everything unacknowledged comes again from the next generation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::{Condvar, Mutex, MutexGuard};
use thalweg_core::delivery::{Acks, Message, Producer, Refused};
use thalweg_core::error::Result;
use thalweg_core::{Error, ErrorKind, Phase};

use crate::backlog::Backlog;
use crate::budget::Share;
use crate::client::{Client, Step};
use crate::errors::Coordinates;
use crate::flow::Flow;
use crate::outlet::Outlet;
use crate::plain::{purged, unfinished};
use crate::reports::refusal;
use crate::size;
use crate::topics::TopicKeeper;

/// How often a waiting call looks whether it should stop.
const SLICE: Duration = Duration::from_millis(250);
/// A mark that is not reached: waiting for it is waiting for a wake.
const NEVER: u64 = u64::MAX - 1;
/// An abort that does not get through in this time is left to the broker and to the next owner.
const ABORT_LIMIT: Duration = Duration::from_secs(5);

/// What the transactions of one producer have to respect.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    /// From the first record of a transaction to its commit.
    pub(crate) commit_after: Duration,
    /// The broker aborts a transaction that is older.
    pub(crate) transaction_timeout: Duration,
    pub(crate) max_request: u64,
    pub(crate) batch_size: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Records go to the client.
    Open,
    /// Records go to the backlog.
    Committing,
    /// No record is taken.
    Ended,
}

struct Lane {
    outlet: Outlet,
    state: State,
    /// First record of the present transaction; `None` while it is empty.
    since: Option<Instant>,
    /// Cost of the records in it.
    cost: u64,
    /// Behind the last record handed to the client.
    next: u64,
    backlog: Backlog,
    /// Commit without waiting for the time, until everything below this number is committed.
    flush_to: u64,
    share: Share,
}

impl Lane {
    /// Half for the transaction, half for the backlog.
    fn limit(&self) -> u64 {
        self.share.limit() / 2
    }

    fn grown(&self) -> bool {
        self.cost >= self.limit()
    }

    /// Whether a record may go to the client without overtaking another.
    fn is_direct(&self) -> bool {
        self.state == State::Open && self.backlog.is_empty() && !self.grown()
    }

    /// Whether the backlog takes a record of this cost; an empty one takes any.
    fn takes_more(&self, cost: u64) -> bool {
        self.backlog.is_empty() || self.backlog.cost() + cost <= self.limit()
    }

    /// When the present transaction is to be committed; `None` while it is empty.
    fn due(&self, pace: &Pace) -> Option<Instant> {
        let since = self.since?;
        Some(if self.grown() || self.flush_to > 0 { since } else { since + pace.commit_after })
    }

    fn produce(&mut self, seq: u64, cost: u64, message: &Message<'_>) -> Result<(), rdkafka::error::RDKafkaErrorCode> {
        self.outlet.produce(seq, message)?;
        self.since.get_or_insert_with(Instant::now);
        self.cost += cost;
        self.next = seq + 1;
        Ok(())
    }
}

struct Shared {
    lane: Mutex<Lane>,
    /// The committing thread waits here for work.
    work: Condvar,
    client: Arc<Client>,
    flow: Arc<Flow>,
    acks: Arc<dyn Acks>,
    pace: Pace,
    commits: Commits,
    /// The backlog is being handed over, which takes longer than other uses of the lane.
    draining: AtomicBool,
}

/// How long commits took, for status and for measuring.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    count: AtomicU64,
    micros: AtomicU64,
    longest_micros: AtomicU64,
}

impl Commits {
    fn note(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        self.longest_micros.fetch_max(micros, Ordering::Relaxed);
    }
}

pub(crate) struct FencedProducer {
    shared: Arc<Shared>,
    topics: TopicKeeper,
    /// Behind the last record taken, sent or in the backlog.
    taken: u64,
    /// Cost of the record that found no room.
    waiting: u64,
}

impl FencedProducer {
    /// On a client whose `init_transactions` is done. Starts the committing thread.
    pub(crate) fn new(
        client: Arc<Client>,
        topics: TopicKeeper,
        flow: Arc<Flow>,
        acks: Arc<dyn Acks>,
        share: Share,
        pace: Pace,
        name: &str,
    ) -> Result<Self> {
        client.begin_transaction()?;
        let lane = Lane {
            outlet: Outlet::new(client.clone()),
            state: State::Open,
            since: None,
            cost: 0,
            next: 0,
            backlog: Backlog::default(),
            flush_to: 0,
            share,
        };
        let shared = Arc::new(Shared {
            lane: Mutex::new(lane),
            work: Condvar::new(),
            client,
            flow,
            acks,
            pace,
            commits: Commits::default(),
            draining: AtomicBool::new(false),
        });
        let worker = shared.clone();
        std::thread::Builder::new().name(format!("kafka-commit {name}")).spawn(move || worker.run()).map_err(|e| {
            Error::new(ErrorKind::Internal, Phase::Start, "the thread for Kafka commits cannot be started").because(&e)
        })?;
        Ok(Self { shared, topics, taken: 0, waiting: 0 })
    }

    fn final_error(&self) -> Option<Error> {
        if self.shared.flow.is_stopped() {
            return Some(purged());
        }
        self.shared.flow.failure().cloned()
    }

    fn end(&self) {
        self.shared.flow.stop();
        let mut lane = self.shared.lane.lock();
        lane.state = State::Ended;
        self.shared.work.notify_one();
    }

    /// Looks at the lane without blocking the runtime's thread.
    async fn look<R>(&self, mut look: impl FnMut(&mut Lane) -> R) -> R {
        loop {
            if let Some(mut lane) = self.shared.lane.try_lock() {
                return look(&mut lane);
            }
            if self.shared.draining.load(Ordering::SeqCst) {
                // The end of the hand-over wakes.
                self.shared.flow.reached(NEVER).await;
            } else {
                tokio::task::yield_now().await;
            }
        }
    }
}

#[async_trait]
impl Producer for FencedProducer {
    async fn prepare_topic(&mut self, topic: &Arc<str>) -> Result<()> {
        self.topics.prepare(topic).await
    }

    fn try_send(&mut self, seq: u64, message: &Message<'_>) -> Result<(), Refused> {
        if let Some(error) = self.final_error() {
            return Err(Refused::Failed(error));
        }
        size::check(message, self.shared.pace.max_request).map_err(Refused::Failed)?;
        let (key, value) = (message.key.map_or(0, <[u8]>::len), message.value.map_or(0, <[u8]>::len));
        // Until the lane says more.
        self.waiting = 0;
        let Some(mut lane) = self.shared.lane_now() else { return Err(Refused::Full) };
        let lane = &mut *lane;
        let cost = lane.share.cost(key, value);
        match lane.state {
            State::Ended => return Err(Refused::Failed(purged())),
            State::Open if lane.is_direct() => {
                let first = lane.since.is_none();
                if let Err(code) = lane.produce(seq, cost, message) {
                    let bytes = (key + value) as u64;
                    let at =
                        Coordinates { topic: message.topic, partition: message.partition, key: message.key, bytes };
                    return Err(Refused::Failed(self.shared.refused(code, at)));
                }
                if first || lane.grown() {
                    self.shared.work.notify_one();
                }
            }
            State::Open | State::Committing => {
                if !lane.takes_more(cost) {
                    self.waiting = cost;
                    return Err(Refused::Full);
                }
                lane.backlog.push(seq, cost, message);
            }
        }
        self.taken = seq + 1;
        Ok(())
    }

    async fn room(&mut self) {
        let waiting = self.waiting;
        while self.final_error().is_none()
            && !self.look(|lane| lane.state == State::Ended || lane.is_direct() || lane.takes_more(waiting)).await
        {
            // The end of a commit wakes, and so do a failure and a stop.
            self.shared.flow.reached(NEVER).await;
        }
    }

    async fn flush(&mut self, deadline: Duration) -> Result<()> {
        let taken = self.taken;
        let committed = async {
            self.look(|lane| lane.flush_to = taken).await;
            self.shared.work.notify_one();
            while self.final_error().is_none() && self.shared.flow.done() < taken {
                self.shared.flow.reached(taken).await;
            }
        };
        let in_time = tokio::time::timeout(deadline, committed).await.is_ok();
        match self.final_error() {
            Some(error) => Err(error),
            None if in_time => Ok(()),
            None => {
                let left = usize::try_from(taken.saturating_sub(self.shared.flow.done())).unwrap_or(usize::MAX);
                Err(unfinished(deadline, left, "committed"))
            }
        }
    }

    fn purge(&mut self) {
        self.end();
        self.shared.client.purge();
    }
}

impl Drop for FencedProducer {
    fn drop(&mut self) {
        self.end();
        let commits = &self.shared.commits;
        let count = commits.count.load(Ordering::Relaxed);
        if let Some(context) = self.shared.client.context()
            && let Some(mean) = commits.micros.load(Ordering::Relaxed).checked_div(count)
        {
            let longest = commits.longest_micros.load(Ordering::Relaxed);
            tracing::debug!(
                client = context.name,
                count,
                mean_us = mean,
                longest_us = longest,
                "kafka transactions ended"
            );
        }
    }
}

impl Shared {
    /// The lane, if nobody uses it for longer than a moment.
    fn lane_now(&self) -> Option<MutexGuard<'_, Lane>> {
        const TRIES: usize = 64;
        for _ in 0..TRIES {
            if let Some(lane) = self.lane.try_lock() {
                return Some(lane);
            }
            std::hint::spin_loop();
        }
        None
    }

    fn refused(&self, code: rdkafka::error::RDKafkaErrorCode, at: Coordinates<'_>) -> Error {
        let fatal = self.client.fatal();
        // The client is not in a transaction because it failed; its thread is about to say why.
        if code == rdkafka::error::RDKafkaErrorCode::State && fatal.is_none() {
            return self.flow.failure().cloned().unwrap_or_else(|| {
                Error::new(ErrorKind::BrokerUnavailable, Phase::Deliver, "the Kafka transaction was broken off")
            });
        }
        refusal(fatal, code, at, self.pace.batch_size)
    }

    /// The committing thread.
    fn run(&self) {
        let guard = Unwound(self);
        while let Some(upto) = self.wait_for_commit() {
            let started = Instant::now();
            match self.commit() {
                Ok(()) => {
                    self.commits.note(started.elapsed());
                    if let Err((seq, error)) = self.committed(upto) {
                        self.flow.fail(&*self.acks, seq, error);
                        break;
                    }
                }
                Err(error) => {
                    self.flow.fail(&*self.acks, self.flow.done(), error);
                    break;
                }
            }
        }
        self.close();
        drop(guard);
    }

    /// Waits until the present transaction is due, and closes it to new records. `None` at the end.
    fn wait_for_commit(&self) -> Option<u64> {
        let mut lane = self.lane.lock();
        loop {
            if lane.state == State::Ended || self.flow.failure().is_some() {
                return None;
            }
            if lane.flush_to <= self.flow.done() {
                lane.flush_to = 0;
            }
            match lane.due(&self.pace) {
                None => self.work.wait(&mut lane),
                Some(due) if due > Instant::now() => {
                    self.work.wait_until(&mut lane, due);
                }
                Some(_) => {
                    lane.state = State::Committing;
                    return Some(lane.next);
                }
            }
        }
    }

    fn commit(&self) -> Result<(), Error> {
        let end = Instant::now() + self.pace.transaction_timeout + SLICE;
        loop {
            match self.client.commit_transaction(SLICE) {
                Step::Done => return Ok(()),
                Step::Failed(error) => return Err(error),
                // The failure of a record says more than the abort it leads to.
                Step::Again if self.flow.failure().is_some() || self.flow.is_stopped() => return Err(purged()),
                Step::Again if Instant::now() > end => {
                    let what = "a Kafka transaction could not be committed in its time";
                    return Err(match self.client.context() {
                        Some(context) => context.trouble.explain(Phase::Commit, what),
                        None => Error::new(ErrorKind::BrokerUnavailable, Phase::Commit, what),
                    });
                }
                Step::Again => {}
            }
        }
    }

    /// Acknowledges everything below `upto`, opens the next transaction and moves the backlog into it.
    fn committed(&self, upto: u64) -> Result<(), (u64, Error)> {
        if !self.flow.is_stopped() {
            self.acks.delivered_below(upto);
        }
        self.flow.advance_to(upto);
        self.client.begin_transaction().map_err(|error| (upto, error))?;
        self.draining.store(true, Ordering::SeqCst);
        let moved = {
            let mut guard = self.lane.lock();
            let lane = &mut *guard;
            lane.since = None;
            lane.cost = 0;
            let mut backlog = std::mem::take(&mut lane.backlog);
            if backlog.is_empty() {
                backlog.release();
            }
            let moved = backlog.drain(|seq, cost, message| {
                if self.flow.is_stopped() {
                    return Ok(());
                }
                lane.produce(seq, cost, message).map_err(|code| {
                    let bytes = message.key.map_or(0, <[u8]>::len) + message.value.map_or(0, <[u8]>::len);
                    let at = Coordinates {
                        topic: message.topic,
                        partition: message.partition,
                        key: message.key,
                        bytes: bytes as u64,
                    };
                    (seq, self.refused(code, at))
                })
            });
            lane.backlog = backlog;
            if lane.state == State::Committing {
                lane.state = State::Open;
            }
            moved
        };
        self.draining.store(false, Ordering::SeqCst);
        self.flow.nudge();
        moved
    }

    /// Leaves no transaction open: readers of committed records would wait for it.
    fn close(&self) {
        let open = {
            let mut lane = self.lane.lock();
            lane.state = State::Ended;
            lane.backlog = Backlog::default();
            lane.since.take().is_some()
        };
        self.flow.nudge();
        if !open || self.client.fatal().is_some() {
            return;
        }
        self.client.purge();
        let end = Instant::now() + ABORT_LIMIT;
        while Instant::now() < end {
            match self.client.abort_transaction(SLICE) {
                Step::Again => {}
                Step::Done => return,
                Step::Failed(error) => {
                    tracing::debug!(%error, "kafka transaction not aborted; the next owner or the broker will");
                    return;
                }
            }
        }
    }
}

/// Tells the producer if the committing thread ends by a panic: nobody else would.
struct Unwound<'a>(&'a Shared);

impl Drop for Unwound<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let text = "the thread that commits Kafka transactions broke off";
            self.0.flow.give_up(Error::new(ErrorKind::Internal, Phase::Commit, text));
        }
    }
}
