//! The `plain` producer: idempotent, acknowledged by all in-sync replicas, record by record.
//!
//! One client per task. A client shared by the tasks of a node would save threads, but purging,
//! failing and the gapless guarantee concern a whole client: one dead partition or one lost task
//! would end every other task. A stale owner is kept out by its lease and by the finite delivery
//! timeout.
//!
//! librdkafka asks for an idempotent producer's id half a second after its start and not sooner, so
//! the first record of a new producer leaves that late; a transactional one is asked for at once.
//!
//! Sending neither locks nor allocates on our side; waiting for room is a wait for a mark that the
//! delivery reports reach.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use thalweg_core::delivery::{Message, Producer, Refused};
use thalweg_core::error::Result;
use thalweg_core::{Error, ErrorKind, Phase};

use crate::budget::Share;
use crate::errors::Coordinates;
use crate::flow::Flow;
use crate::outlet::Outlet;
use crate::reports::refusal;
use crate::size;
use crate::topics::TopicKeeper;

pub(crate) struct PlainProducer {
    outlet: Outlet,
    topics: TopicKeeper,
    flow: Arc<Flow>,
    share: Share,
    max_request: u64,
    batch_size: u64,
    /// Cost of everything sent; what is settled is in `flow`.
    sent: u64,
    /// What was settled when somebody last looked.
    settled: u64,
    /// Cost of the record that found no room.
    waiting: u64,
}

impl PlainProducer {
    pub(crate) fn new(
        outlet: Outlet,
        topics: TopicKeeper,
        flow: Arc<Flow>,
        share: Share,
        max_request: u64,
        batch_size: u64,
    ) -> Self {
        Self { outlet, topics, flow, share, max_request, batch_size, sent: 0, settled: 0, waiting: 0 }
    }

    /// Whether `cost` more fits. A record of any size fits when nothing is on its way.
    fn fits(&mut self, cost: u64) -> bool {
        let limit = self.share.limit();
        if self.sent.saturating_sub(self.settled) + cost <= limit {
            return true;
        }
        self.settled = self.flow.done();
        let open = self.sent.saturating_sub(self.settled);
        open == 0 || open + cost <= limit
    }

    fn final_error(&self) -> Option<Error> {
        if self.flow.is_stopped() {
            return Some(purged());
        }
        self.flow.failure().cloned()
    }
}

pub(crate) fn purged() -> Error {
    Error::new(ErrorKind::Fenced, Phase::Deliver, "the producer was purged because its owner lost the task")
}

/// Error of a flush that did not finish.
pub(crate) fn unfinished(deadline: Duration, left: usize, what: &str) -> Error {
    Error::new(
        ErrorKind::Timeout,
        Phase::Deliver,
        format!("{left} records were not {what} within {} ms", deadline.as_millis()),
    )
    .advise("nothing is lost: the records are sent again after the restart, from the stored position")
}

#[async_trait]
impl Producer for PlainProducer {
    async fn prepare_topic(&mut self, topic: &Arc<str>) -> Result<()> {
        self.topics.prepare(topic).await
    }

    fn try_send(&mut self, seq: u64, message: &Message<'_>) -> Result<(), Refused> {
        if let Some(error) = self.final_error() {
            return Err(Refused::Failed(error));
        }
        size::check(message, self.max_request).map_err(Refused::Failed)?;
        let (key, value) = (message.key.map_or(0, <[u8]>::len), message.value.map_or(0, <[u8]>::len));
        let cost = self.share.cost(key, value);
        if !self.fits(cost) {
            self.waiting = cost;
            return Err(Refused::Full);
        }
        match self.outlet.produce(seq, message) {
            Ok(()) => {
                self.sent += cost;
                Ok(())
            }
            Err(code) => {
                let bytes = (key + value) as u64;
                let at = Coordinates { topic: message.topic, partition: message.partition, key: message.key, bytes };
                let error = refusal(self.outlet.client().fatal(), code, at, self.batch_size);
                Err(Refused::Failed(error))
            }
        }
    }

    async fn room(&mut self) {
        let limit = self.share.limit();
        // A quarter of the limit at once, so that the encoder is not woken for every record; more if
        // the record needs it. With nothing on its way any record fits.
        let quarter = self.sent.saturating_sub(limit / 4 * 3);
        let needed = (self.sent + self.waiting).saturating_sub(limit);
        self.flow.reached(quarter.max(needed).min(self.sent)).await;
    }

    async fn flush(&mut self, deadline: Duration) -> Result<()> {
        let end = Instant::now() + deadline;
        loop {
            if let Some(error) = self.final_error() {
                return Err(error);
            }
            if self.flow.done() >= self.sent {
                return Ok(());
            }
            let left = end.saturating_duration_since(Instant::now());
            if tokio::time::timeout(left, self.flow.reached(self.sent)).await.is_err() {
                return Err(unfinished(deadline, self.outlet.client().unsettled(), "acknowledged"));
            }
        }
    }

    fn purge(&mut self) {
        self.flow.stop();
        self.outlet.client().purge();
    }
}

impl Drop for PlainProducer {
    fn drop(&mut self) {
        self.flow.stop();
    }
}
