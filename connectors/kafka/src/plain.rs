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
//! Sending neither locks nor allocates on our side beyond the bytes that wait for their turn.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use thalweg_core::delivery::{Message, Producer, Refused};
use thalweg_core::error::Result;
use thalweg_core::{Error, ErrorKind, Phase};

use crate::budget::Share;
use crate::flow::Flow;
use crate::gate::Gate;
use crate::size;
use crate::topics::TopicKeeper;

pub(crate) struct PlainProducer {
    gate: Gate,
    topics: TopicKeeper,
    flow: Arc<Flow>,
    share: Share,
    max_request: u64,
    /// Cost of the record that found no room.
    waiting: u64,
}

impl PlainProducer {
    pub(crate) fn new(gate: Gate, topics: TopicKeeper, flow: Arc<Flow>, share: Share, max_request: u64) -> Self {
        Self { gate, topics, flow, share, max_request, waiting: 0 }
    }

    fn open_gate(&mut self) {
        let client = self.gate.client().clone();
        self.gate.hand_over(|seq, code, at| {
            if let Some(context) = client.context() {
                context.refused(client.fatal(), code, at, seq);
            }
        });
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
        let cost = self.share.cost(message.key.map_or(0, <[u8]>::len), message.value.map_or(0, <[u8]>::len));
        if !self.gate.has_room(cost, self.share.limit()) && self.gate.is_open() {
            self.open_gate();
        }
        if !self.gate.has_room(cost, self.share.limit()) {
            self.waiting = cost;
            return Err(Refused::Full);
        }
        self.gate.push(seq, cost, message);
        if self.gate.is_worth_opening() {
            self.open_gate();
        }
        Ok(())
    }

    async fn room(&mut self) {
        while self.final_error().is_none()
            && !self.gate.is_open()
            && !self.gate.has_room(self.waiting, self.share.limit())
        {
            self.flow.news_until(self.gate.opens_at(Instant::now())).await;
        }
    }

    fn holds_back(&self) -> bool {
        !self.gate.is_empty()
    }

    async fn ready(&mut self) {
        while self.final_error().is_none() && !self.gate.is_open() {
            self.flow.news_until(self.gate.opens_at(Instant::now())).await;
        }
    }

    fn hand_over(&mut self) -> Result<()> {
        if let Some(error) = self.final_error() {
            return Err(error);
        }
        if self.gate.is_open() {
            self.open_gate();
        }
        Ok(())
    }

    async fn flush(&mut self, deadline: Duration) -> Result<()> {
        let end = Instant::now() + deadline;
        loop {
            if let Some(error) = self.final_error() {
                return Err(error);
            }
            if self.flow.unsettled() == 0 {
                return Ok(());
            }
            let left = end.saturating_duration_since(Instant::now());
            if tokio::time::timeout(left, self.flow.news()).await.is_err() {
                return Err(unfinished(deadline, self.gate.client().unsettled(), "acknowledged"));
            }
        }
    }

    fn purge(&mut self) {
        self.flow.stop();
        self.gate.clear();
        self.gate.client().purge();
    }
}

impl Drop for PlainProducer {
    fn drop(&mut self) {
        self.flow.stop();
    }
}
