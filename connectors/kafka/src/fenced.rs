//! The `fenced` producer: short transactions under an id that belongs to the task.
//!
//! Opening one shuts out the former owner at the broker, so a late write of a stale owner can never
//! become visible behind newer ones. Records are acknowledged when their transaction is committed.
//!
//! A transaction opens with the first record and commits after a fixed time, or earlier when it has
//! grown to half of what may be unacknowledged. While records come faster than they leave, it lasts
//! longer: nothing leaves around a commit, and readers are behind by more than that anyway. Commits
//! run on a thread of their own; meanwhile the encoder goes on into the backlog, which becomes the
//! next transaction. Without records nothing runs and no timer is set.
//!
//! `try_send` takes one lock that is free except for moments; then it answers "full" instead of
//! waiting.
//!
//! After a commit the lane rests for some milliseconds, see [`rest_after`].
//!
//! Any failure of a record or a commit is final: the transaction is aborted, in the background, and
//! everything unacknowledged comes again from the next generation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::{Condvar, Mutex, MutexGuard};
use thalweg_core::ack::DEFAULT_CAPACITY;
use thalweg_core::delivery::{Acks, Message, Producer, Refused};
use thalweg_core::error::Result;
use thalweg_core::{Error, ErrorKind, Phase};

use crate::budget::Share;
use crate::client::{Client, Step};
use crate::errors::Coordinates;
use crate::flow::Flow;
use crate::gate::Gate;
use crate::pace::Pace;
use crate::plain::{purged, unfinished};
use crate::reports::refusal;
use crate::size;
use crate::topics::TopicKeeper;

/// How often a waiting call looks whether it should stop.
const SLICE: Duration = Duration::from_millis(250);
/// An abort that does not get through in this time is left to the broker and to the next owner.
const ABORT_LIMIT: Duration = Duration::from_secs(5);

/// A transaction ends when it has so many records: the other half of the window takes those that come
/// during the commit.
const MOST_RECORDS: u64 = DEFAULT_CAPACITY as u64 / 2;

/// How long no record leaves after a commit. The coordinator answers a commit when it has written the
/// decision; afterwards it writes markers at the partitions, and then that they are there. A partition
/// that asks for the next transaction before that is refused, and librdkafka asks again 20 ms later.
/// Two more appends take about twice as long as the one that was waited for.
fn rest_after(commit: Duration) -> Duration {
    (commit * 2).clamp(Duration::from_millis(3), Duration::from_millis(15))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Loads go to the client.
    Open,
    /// Records wait for the next transaction.
    Committing,
    /// No record is taken.
    Ended,
}

struct Lane {
    gate: Gate,
    state: State,
    /// First load of the present transaction; `None` while it is empty.
    since: Option<Instant>,
    /// A record found no room since the last commit.
    pressed: bool,
    /// Behind the last record of the transaction before.
    first: u64,
    /// Behind the last record handed to the client.
    next: u64,
    /// Commit without waiting for the time, until everything below this number is committed.
    flush_to: u64,
    /// The coordinator may still be closing the last transaction at the partitions.
    rests_until: Instant,
    share: Share,
}

impl Lane {
    fn grown(&self) -> bool {
        self.next - self.first >= MOST_RECORDS
    }

    fn has_room(&self, cost: u64) -> bool {
        self.gate.has_room(cost, self.share.limit())
    }

    /// Whether a load may leave now.
    fn is_open(&self) -> bool {
        self.state == State::Open && !self.grown() && self.gate.is_open() && self.rests_until <= Instant::now()
    }

    fn opens_at(&self) -> Option<Instant> {
        if self.state != State::Open || self.grown() {
            return None;
        }
        self.gate.opens_at(self.rests_until)
    }

    /// When the present transaction is to be committed; `None` while it is empty.
    fn due(&self, pace: &Pace) -> Option<Instant> {
        let since = self.since?;
        Some(if self.grown() || self.flush_to > 0 { since } else { since + pace.lasts(self.pressed) })
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
            gate: Gate::new(client.clone(), flow.clone()),
            state: State::Open,
            since: None,
            pressed: false,
            first: 0,
            next: 0,
            flush_to: 0,
            rests_until: Instant::now(),
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
        });
        let worker = shared.clone();
        std::thread::Builder::new().name(format!("kafka-commit {name}")).spawn(move || worker.run()).map_err(|e| {
            Error::new(ErrorKind::Internal, Phase::Start, "the thread for Kafka commits cannot be started").because(&e)
        })?;
        Ok(Self { shared, topics, waiting: 0 })
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
            tokio::task::yield_now().await;
        }
    }

    /// Waits until the lane is as wanted, or the producer has failed.
    async fn wait(&self, wanted: impl Fn(&Lane) -> bool) {
        while self.final_error().is_none() {
            let (done, opens_at) = self.look(|lane| (wanted(lane), lane.opens_at())).await;
            if done {
                return;
            }
            self.shared.flow.news_until(opens_at).await;
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
        // Until the lane says more.
        self.waiting = 0;
        let Some(mut lane) = self.shared.lane_now() else { return Err(Refused::Full) };
        if lane.state == State::Ended {
            return Err(Refused::Failed(self.final_error().unwrap_or_else(purged)));
        }
        let cost = lane.share.cost(message.key.map_or(0, <[u8]>::len), message.value.map_or(0, <[u8]>::len));
        if !lane.has_room(cost) && lane.is_open() {
            self.shared.open_gate(&mut lane);
        }
        if !lane.has_room(cost) {
            lane.pressed = true;
            self.waiting = cost;
            return Err(Refused::Full);
        }
        lane.gate.push(seq, cost, message);
        if lane.gate.is_worth_opening() && lane.is_open() {
            self.shared.open_gate(&mut lane);
        }
        Ok(())
    }

    async fn room(&mut self) {
        let waiting = self.waiting;
        self.wait(|lane| lane.state == State::Ended || lane.is_open() || lane.has_room(waiting)).await;
    }

    fn holds_back(&self) -> bool {
        !self.shared.lane.lock().gate.is_empty()
    }

    async fn ready(&mut self) {
        self.wait(|lane| lane.state == State::Ended || lane.is_open()).await;
    }

    fn hand_over(&mut self) -> Result<()> {
        if let Some(error) = self.final_error() {
            return Err(error);
        }
        if let Some(mut lane) = self.shared.lane_now()
            && lane.is_open()
        {
            self.shared.open_gate(&mut lane);
        }
        Ok(())
    }

    async fn flush(&mut self, deadline: Duration) -> Result<()> {
        let mut upto = 0;
        let committed = async {
            upto = self
                .look(|lane| {
                    lane.flush_to = lane.next;
                    lane.next
                })
                .await;
            self.shared.work.notify_one();
            while self.final_error().is_none() && self.shared.flow.committed() < upto {
                self.shared.flow.news().await;
            }
        };
        let in_time = tokio::time::timeout(deadline, committed).await.is_ok();
        match self.final_error() {
            Some(error) => Err(error),
            None if in_time => Ok(()),
            None => {
                let left = usize::try_from(upto.saturating_sub(self.shared.flow.committed())).unwrap_or(usize::MAX);
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
            match self.commit() {
                Ok(took) => {
                    self.commits.note(took);
                    if let Err(error) = self.committed(upto, took) {
                        self.flow.fail(&*self.acks, upto, error);
                        break;
                    }
                }
                Err(error) => {
                    self.flow.fail(&*self.acks, self.flow.committed(), error);
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
            if lane.flush_to <= self.flow.committed() {
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

    /// Commits, and returns how long the coordinator took.
    fn commit(&self) -> Result<Duration, Error> {
        let end = Instant::now() + self.pace.transaction_timeout + SLICE;
        let mut delivered = None;
        loop {
            let step = match delivered {
                None => self.client.flush(SLICE),
                Some(_) => self.client.commit_transaction(SLICE),
            };
            match (step, delivered) {
                // What the client takes for delivered may not be: each record has its report now.
                (Step::Done, None) if self.flow.failure().is_some() => return Err(purged()),
                (Step::Done, None) => delivered = Some(Instant::now()),
                (Step::Done, Some(since)) => return Ok(since.elapsed()),
                (Step::Failed(error), _) => return Err(error),
                // The failure of a record says more than the abort it leads to.
                (Step::Again, _) if self.flow.failure().is_some() || self.flow.is_stopped() => return Err(purged()),
                (Step::Again, _) if Instant::now() > end => {
                    let what = "a Kafka transaction could not be committed in its time";
                    return Err(match self.client.context() {
                        Some(context) => context.trouble.explain(Phase::Commit, what),
                        None => Error::new(ErrorKind::BrokerUnavailable, Phase::Commit, what),
                    });
                }
                (Step::Again, _) => {}
            }
        }
    }

    /// Acknowledges everything below `upto` and opens the next transaction. `took`: the commit.
    fn committed(&self, upto: u64, took: Duration) -> Result<(), Error> {
        if !self.flow.is_stopped() {
            self.acks.delivered_below(upto);
        }
        self.client.begin_transaction()?;
        {
            let mut lane = self.lane.lock();
            lane.since = None;
            lane.pressed = false;
            lane.first = upto;
            lane.rests_until = Instant::now() + rest_after(took);
            if lane.state == State::Committing {
                lane.state = State::Open;
            }
        }
        self.flow.commit(upto);
        Ok(())
    }

    /// Hands one load over, as part of the present transaction.
    fn open_gate(&self, lane: &mut Lane) {
        let mut failed = None;
        let end = lane.gate.hand_over(|seq, code, at| {
            if failed.is_none() {
                failed = Some((seq, self.refused(code, at)));
            }
        });
        if let Some((seq, error)) = failed {
            self.flow.fail(&*self.acks, seq, error);
        }
        let Some(end) = end else { return };
        let first = lane.since.is_none();
        lane.since.get_or_insert_with(Instant::now);
        lane.next = end;
        if first || lane.grown() {
            self.work.notify_one();
        }
    }

    /// Leaves no transaction open: readers of committed records would wait for it.
    fn close(&self) {
        let open = {
            let mut lane = self.lane.lock();
            lane.state = State::Ended;
            lane.gate.clear();
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
