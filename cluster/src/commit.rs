//! Gathers what the units of this node report and writes it: one log entry at a time.
//!
//! Invariants: the newest position of a unit and partition replaces an older one that waits, never
//! one that is on its way; one proposal is in flight; while something waits, one is begun at least
//! every interval (250 ms), at once for a unit that is being taken back and for the position at which
//! a partition begins; a batch is at most 512 KiB (or one item); nothing is dropped without an answer;
//! with nothing to do, nothing runs.
//!
//! It does not: decide what may be committed (the ack tracker of a unit did), or interpret it (the
//! state machine does). What is refused as stale fences the unit: nothing more of that epoch is sent.

mod queue;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use thalweg_actors::port::{Assignment, Epoch, OffsetCommit, UnitId, UnitStatus};
use thalweg_core::error::{Error, ErrorKind, Phase};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::raft::{Name, NodeId, ProposeError, Proposer, Reply, Unit};
use queue::{Queue, Standing};

/// Longest pause after proposals that were not written.
const MAX_BACKOFF: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy)]
pub struct CommitLimits {
    /// Between the beginnings of two proposals, unless somebody waits.
    pub interval: Duration,
    /// Bytes of a batch.
    pub batch: usize,
    /// `offset.flush.timeout.ms`: how long [`Coalescer::settled`] waits.
    pub settle: Duration,
}

impl Default for CommitLimits {
    fn default() -> Self {
        Self { interval: Duration::from_millis(250), batch: 512 << 10, settle: Duration::from_secs(5) }
    }
}

pub struct Coalescer {
    node: NodeId,
    incarnation: watch::Receiver<Option<u64>>,
    proposer: Arc<dyn Proposer>,
    limits: CommitLimits,
    queue: Mutex<Queue>,
    /// Something waits.
    work: Notify,
    /// Somebody waits for it.
    urge: Notify,
    /// Counts answered proposals.
    answered: watch::Sender<u64>,
}

impl Coalescer {
    /// `incarnation`: the node's, once registered.
    pub fn new(
        node: NodeId,
        incarnation: watch::Receiver<Option<u64>>,
        proposer: Arc<dyn Proposer>,
        limits: CommitLimits,
    ) -> Self {
        Self {
            node,
            incarnation,
            proposer,
            limits,
            queue: Mutex::default(),
            work: Notify::new(),
            urge: Notify::new(),
            answered: watch::Sender::new(0),
        }
    }

    pub fn commit(&self, commit: OffsetCommit) {
        let taken = self.queue.lock().commit(commit);
        if let Some(first) = taken {
            self.work.notify_one();
            if first {
                self.urge.notify_one();
            }
        }
    }

    pub fn status(&self, unit: &UnitId, epoch: Epoch, status: UnitStatus) {
        if self.queue.lock().status(unit.into(), epoch.0, status) {
            self.work.notify_one();
        }
    }

    pub fn topic_used(&self, connector: &Name, topic: &Name) {
        if self.queue.lock().topic(connector, topic) {
            self.work.notify_one();
        }
    }

    /// Goes out at once, behind every position of the unit.
    pub fn released(&self, unit: &UnitId, epoch: Epoch) {
        if self.queue.lock().released(unit.into(), epoch.0) {
            self.work.notify_one();
            self.urge.notify_one();
        }
    }

    /// Resolves when every position queued for `unit` has been applied (`Ok`) or not: `Fenced` if one
    /// was refused as stale, `QuorumLost` when the time is up, `Storage` if one cannot be stored.
    pub async fn settled(&self, unit: &UnitId) -> Result<(), Error> {
        let unit = Unit::from(unit);
        let deadline = Instant::now() + self.limits.settle;
        let mut answered = self.answered.subscribe();
        loop {
            answered.mark_unchanged();
            match self.queue.lock().standing(&unit) {
                Standing::Settled => return Ok(()),
                Standing::Waiting { leaving } => {
                    if leaving {
                        self.urge.notify_one();
                    }
                }
                Standing::Fenced(epoch) => {
                    let message = format!("{unit} was placed anew; epoch {epoch} may not commit any more");
                    return Err(Error::new(ErrorKind::Fenced, Phase::Commit, message));
                }
                Standing::Failed(why) => return Err(Error::new(ErrorKind::Storage, Phase::Commit, why)),
            }
            if tokio::time::timeout_at(deadline, answered.changed()).await.is_err() {
                let message = format!(
                    "the positions of {unit} could not be stored within {} ms: no answer from a majority of the voters",
                    self.limits.settle.as_millis()
                );
                let advice = "check that a majority of the nodes runs and that they reach each other";
                return Err(Error::new(ErrorKind::QuorumLost, Phase::Commit, message).advise(advice));
            }
        }
    }

    /// What is placed here now: how other units ended is forgotten, and what is being taken back
    /// does not wait for the interval.
    pub fn placed(&self, placed: &[Assignment]) {
        let units = placed.iter().map(|a| (Unit::from(&a.unit), (a.epoch.0, a.revoked))).collect();
        if self.queue.lock().placed(&units) {
            self.urge.notify_one();
        }
    }

    /// Writes what comes in. Ends with the token.
    pub async fn run(&self, stop: CancellationToken) {
        let mut incarnation = self.incarnation.clone();
        let mut begun: Option<Instant> = None;
        let mut backoff = Duration::ZERO;
        loop {
            while self.queue.lock().is_empty() {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = self.work.notified() => {}
                }
            }
            if let Some(begun) = begun {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep_until(begun + self.limits.interval) => {}
                    () = self.urge.notified() => {}
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(backoff) => {}
            }
            let Some(current) = *incarnation.borrow_and_update() else {
                // Not registered (any more): whoever waits is told when his time is up.
                tokio::select! {
                    () = stop.cancelled() => return,
                    changed = incarnation.changed() => if changed.is_err() { return },
                }
                continue;
            };
            begun = Some(Instant::now());
            let batch = self.queue.lock().take(self.limits.batch);
            let Some(batch) = batch else {
                // Only items that cannot be stored were there; their units have been told.
                self.answered.send_modify(|n| *n += 1);
                continue;
            };
            if !self.queue.lock().is_empty() {
                // More than one batch: go on without a pause.
                begun = None;
            }
            let command = batch.command(self.node, current);
            let answer = tokio::select! {
                () = stop.cancelled() => return,
                answer = self.proposer.propose(command) => answer,
            };
            backoff = self.answer(batch, answer, backoff);
            self.answered.send_modify(|n| *n += 1);
        }
    }

    /// Returns the pause before the next proposal.
    fn answer(&self, batch: queue::Batch, answer: Result<Reply, ProposeError>, backoff: Duration) -> Duration {
        let mut queue = self.queue.lock();
        match answer {
            Ok(Reply::Reported { refused }) => {
                for item in &refused {
                    // A late status is nothing to worry about; a refused position means a stale owner.
                    if item.partition.is_some() {
                        tracing::warn!(unit = %item.unit, epoch = item.epoch, why = ?item.why, "position was refused");
                    } else {
                        tracing::debug!(unit = %item.unit, epoch = item.epoch, why = ?item.why, "report was refused");
                    }
                }
                queue.applied(batch, &refused);
                Duration::ZERO
            }
            Ok(Reply::Refused(why)) => {
                tracing::warn!(node = self.node, why = %why, "the reports of this node were refused");
                queue.fenced(batch);
                Duration::ZERO
            }
            Ok(other) => {
                tracing::error!(reply = ?other, "a report got an answer of another kind");
                queue.failed(batch, "the state machine answered something else than was asked; this is a defect");
                Duration::ZERO
            }
            Err(error @ ProposeError::TooLarge { .. }) => {
                tracing::error!(error = %error, "a report was not written");
                queue.failed(batch, &error.to_string());
                Duration::ZERO
            }
            Err(error) => {
                tracing::warn!(error = %error, "a report was not written and will be repeated");
                queue.put_back(batch);
                (backoff * 2).clamp(self.limits.interval, MAX_BACKOFF)
            }
        }
    }
}

#[cfg(test)]
mod tests;
