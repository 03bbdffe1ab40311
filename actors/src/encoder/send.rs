//! One batch on its way to the producer: transforms, conversion, a place in the ledger, the hand-over,
//! and every wait that may be needed in between.
//!
//! The usual record waits for nothing. Whatever does not go to Kafka (dropped by a transform, left out
//! because errors are tolerated) still moves the position, behind what was sent before it.

use std::pin::pin;
use std::time::Instant;

use thalweg_core::ack::Full;
use thalweg_core::delivery::{Producer, Refused};
use thalweg_core::position::Position;
use thalweg_core::record::Record;
use thalweg_core::source::Batch;
use thalweg_core::tolerance::{Attempt, Verdict};
use thalweg_core::transform::Fate;
use thalweg_core::{Error, ErrorKind, Phase};
use tracing::warn;

use super::{Encoder, Sent, at, check_lease, count, drain_expired, locate, offset_text, send_held_back};
use crate::coder::Fault;
use crate::counters::Counters;
use crate::exit::Exit;
use crate::progress::Wait;
use crate::refused::{RefusedMessage, Treatment};

impl Encoder {
    pub(super) async fn send_batch(
        &mut self,
        producer: &mut dyn Producer,
        at: usize,
        batch: Batch,
    ) -> Result<(), Exit> {
        let index = self.inputs[at].index;
        if !self.inputs[at].known {
            self.store_start(producer, at, &batch).await?;
        }
        let mut sent = Sent::default();
        if !batch.records.is_empty() {
            self.wait_for_former_owner().await;
            check_lease(&*self.node.port)?;
            self.topics.next_batch();
            for record in batch.records {
                if self.coder.has_format() {
                    self.format_and_send(producer, index, record, &mut sent).await?;
                } else {
                    self.pass_on(producer, index, record, &mut sent).await?;
                }
            }
            self.send_held_back_records(producer, index, &mut sent).await?;
        }
        if let Some(position) = batch.progress {
            self.last[index] = position.clone();
            self.ledger.enter_done(index, position);
        }
        let counters = &self.memory.counters;
        Counters::add(&counters.sent, sent.messages);
        Counters::add(&counters.sent_bytes, sent.bytes);
        Counters::add(&counters.dropped, sent.dropped);
        self.ledger.batch_sent(index, sent.messages);
        Ok(())
    }

    /// Stores where a partition without a stored position starts, before anything of it is sent.
    async fn store_start(&mut self, producer: &mut dyn Producer, at: usize, batch: &Batch) -> Result<(), Exit> {
        let index = self.inputs[at].index;
        let (Some(position), true) = (&batch.progress, batch.records.is_empty()) else {
            let partition = self.partitions[index].partition.original();
            let text = format!("the reader of {partition} sent records before the position at which it starts");
            return Err(Exit::failed(Error::new(ErrorKind::Internal, Phase::Stream, text)));
        };
        self.hand_over(producer).await?;
        self.ledger.enter_done(index, position.clone());
        self.ledger.advance();
        self.ledger.commit();
        let memory = self.memory.clone();
        let _start = memory.encoder.waiting(Wait::StartPosition);
        while !position.is_empty() {
            match self.ledger.settled().await {
                Ok(covered) => {
                    let stored = covered.iter().any(|(i, p)| *i == index && p == position);
                    self.tell_durable(Ok(covered))?;
                    if stored {
                        break;
                    }
                }
                Err(error) => {
                    self.tell_durable(Err(error))?;
                    tokio::time::sleep(self.node.options.commit_interval).await;
                    self.ledger.settle_again();
                }
            }
        }
        self.inputs[at].known = true;
        Ok(())
    }

    /// A record in its final format: through the transforms, if there are any, and on.
    pub(super) async fn pass_on(
        &mut self,
        producer: &mut dyn Producer,
        index: usize,
        mut record: Record,
        sent: &mut Sent,
    ) -> Result<(), Exit> {
        if !self.coder.has_transforms() {
            return self.send(producer, index, record, sent).await;
        }
        // A dead letter tells of the record as it came.
        let original = self.coder.dead_letters().map(|_| record.clone());
        match self.coder.transform(&mut record) {
            Ok(Fate::Keep) => self.send(producer, index, record, sent).await,
            Ok(Fate::Drop) => {
                sent.dropped += 1;
                self.pass_by(index, record.position);
                Ok(())
            }
            // Errors of transforms never pass, so this is either the end or a record left out.
            Err(fault) => {
                let record = original.unwrap_or(record);
                self.judge(producer, &mut None, fault, &record, index).await?;
                self.set_aside(producer, index, &record, None).await
            }
        }
    }

    /// Encodes one record and hands it to the producer. Waits only if there is no room, for the first
    /// message of a topic, or for a schema that its converter does not know yet.
    async fn send(
        &mut self,
        producer: &mut dyn Producer,
        index: usize,
        record: Record,
        sent: &mut Sent,
    ) -> Result<(), Exit> {
        if !self.topics.is_ready(&record.topic) {
            self.hand_over(producer).await?;
            let _topic = self.memory.encoder.waiting(Wait::Topic);
            producer.prepare_topic(&record.topic).await.map_err(Exit::failed)?;
            self.topics.prepared(&record.topic);
            check_lease(&*self.node.port)?;
        }
        let mut attempt = None;
        let encoded = loop {
            let fault = match self.coder.encode(&record) {
                Ok(Some(encoded)) => break encoded,
                Ok(None) => match self.prepare_converter(producer).await? {
                    Ok(()) => continue,
                    Err(fault) => fault,
                },
                Err(fault) => fault,
            };
            if !self.judge(producer, &mut attempt, fault, &record, index).await? {
                return self.set_aside(producer, index, &record, None).await;
            }
        };
        let size = encoded.size();
        let identified = self.ledger.identifies() || !self.refusals.is_empty();
        let key = if identified { RefusedMessage::key(self.coder.message(&record, &encoded).key) } else { None };
        let identity = || RefusedMessage {
            partition: index,
            position: record.position.clone(),
            topic: record.topic.clone(),
            key,
            size,
        };
        let treatment = if self.refusals.is_empty() { Treatment::Send } else { self.refusals.treatment(&identity()) };
        match treatment {
            Treatment::Send => {}
            Treatment::LeaveOut => {
                count(&self.memory.errors.total_records_skipped);
                let text = format!("the broker refuses the message because of its size of {size} bytes");
                let error = Error::new(ErrorKind::MessageTooLarge, Phase::Deliver, text.clone());
                self.reason = self.coder.reason(&Fault::refused_by_client(error), || text);
                let identity = identity();
                self.set_aside(producer, index, &record, None).await?;
                self.left_out(&identity);
                return Ok(());
            }
            Treatment::SendAlone => {
                self.flush(producer).await?;
                check_lease(&*self.node.port)?;
            }
        }
        let seq = match self.ledger.enter(index, record.position.clone()) {
            Ok(seq) => seq,
            Err(Full(position)) => self.enter_later(producer, index, position).await?,
        };
        self.ledger.identify(seq, identity);
        self.alone = (treatment == Treatment::SendAlone).then_some(seq);
        let message = self.coder.message(&record, &encoded);
        let mut answer = producer.try_send(seq, &message);
        while let Err(Refused::Full) = answer {
            self.room(producer).await?;
            answer = producer.try_send(seq, &self.coder.message(&record, &encoded));
        }
        match answer {
            Ok(()) => {
                sent.messages += 1;
                sent.bytes += size as u64;
            }
            Err(Refused::Failed(error)) if error.kind == ErrorKind::MessageTooLarge => {
                // If it is not tolerated, the number stays unanswered: nothing behind it is committed.
                self.judge(producer, &mut None, Fault::refused_by_client(error), &record, index).await?;
                self.set_aside(producer, index, &record, Some(seq)).await?;
            }
            Err(Refused::Failed(error)) => return Err(Exit::failed(error)),
            Err(Refused::Full) => {}
        }
        self.deliver_alone(producer).await?;
        self.last[index] = record.position;
        Ok(())
    }

    /// Waits until the producer may take a message again.
    pub(super) async fn room(&mut self, producer: &mut dyn Producer) -> Result<(), Exit> {
        {
            let _broker = self.memory.encoder.waiting(Wait::Broker);
            let mut room = producer.room();
            let mut expired = pin!(drain_expired(&self.signals, &self.node));
            loop {
                tokio::select! {
                    () = &mut room => break,
                    () = at(self.ledger.due()) => self.ledger.tick(),
                    error = &mut expired => {
                        self.gave_up_waiting = true;
                        return Err(Exit::failed(error));
                    }
                }
            }
        }
        check_lease(&*self.node.port)
    }

    /// Waits until a converter has what it needs, or has failed to get it.
    async fn prepare_converter(&mut self, producer: &mut dyn Producer) -> Result<Result<(), Fault>, Exit> {
        self.hand_over(producer).await?;
        let memory = self.memory.clone();
        let _registry = memory.encoder.waiting(Wait::SchemaRegistry);
        let prepared = {
            let mut prepared = pin!(self.coder.prepare());
            let mut expired = pin!(drain_expired(&self.signals, &self.node));
            loop {
                tokio::select! {
                    prepared = &mut prepared => break prepared,
                    () = at(self.ledger.due()) => self.ledger.tick(),
                    _ = &mut expired => {
                        self.gave_up_waiting = true;
                        let text = "the schema registry has not answered while the task was ending";
                        return Err(Exit::failed(Error::new(ErrorKind::Timeout, Phase::Convert, text)));
                    }
                }
            }
        };
        check_lease(&*self.node.port)?;
        Ok(prepared)
    }

    /// Waits for a free number: so many messages are on their way that the broker has to answer first.
    pub(super) async fn enter_later(
        &mut self,
        producer: &mut dyn Producer,
        index: usize,
        mut position: Position,
    ) -> Result<u64, Exit> {
        let memory = self.memory.clone();
        let _broker = memory.encoder.waiting(Wait::Broker);
        let window = self.ledger.window().clone();
        let mut expired = pin!(drain_expired(&self.signals, &self.node));
        loop {
            tokio::select! {
                () = window.advanced() => {}
                () = producer.ready() => send_held_back(&*self.node.port, producer)?,
                error = &mut expired => {
                    self.gave_up_waiting = true;
                    return Err(Exit::failed(error));
                }
            }
            self.ledger.tick();
            check_lease(&*self.node.port)?;
            match self.ledger.enter(index, position) {
                Ok(seq) => return Ok(seq),
                Err(Full(back)) => position = back,
            }
        }
    }

    /// A message that is sent alone is answered before the next one.
    pub(super) async fn deliver_alone(&mut self, producer: &mut dyn Producer) -> Result<(), Exit> {
        if self.alone.is_some() {
            self.flush(producer).await?;
            check_lease(&*self.node.port)?;
            self.alone = None;
            self.refusals.passed();
            self.memory.refusals.lock().passed();
        }
        Ok(())
    }

    /// A message that the broker refuses was passed by.
    pub(super) fn left_out(&mut self, message: &RefusedMessage) {
        let next = self.ledger.next();
        self.refusals.left_out(message, next);
        self.memory.refusals.lock().left_out(message, next);
    }

    /// Goes on without a message: the position counts with what was sent before.
    pub(super) fn pass_by(&mut self, index: usize, position: Position) {
        self.last[index] = position.clone();
        self.ledger.enter_done(index, position);
    }

    /// Whether a failed operation is to be tried again (after its delay) or the record left out.
    pub(super) async fn judge(
        &mut self,
        producer: &mut dyn Producer,
        attempt: &mut Option<Attempt>,
        fault: Fault,
        record: &Record,
        index: usize,
    ) -> Result<bool, Exit> {
        let text = fault.error.to_string();
        self.reason = self.coder.reason(&fault, || self.memory.hide(&text));
        match self.coder.judge(attempt, fault, record) {
            Verdict::Retry(delay) => {
                self.hand_over(producer).await?;
                tokio::time::sleep(delay).await;
                check_lease(&*self.node.port)?;
                Ok(true)
            }
            Verdict::Skip => {
                warn!(
                    topic = %record.topic,
                    partition = %self.partitions[index].partition.original(),
                    offset = %offset_text(&*self.connector, &record.position),
                    error = %self.memory.hide(&text),
                    "a record is left out because errors are tolerated"
                );
                Ok(false)
            }
            Verdict::Fail(error) => {
                Err(Exit::failed(locate(error, &*self.connector, &self.partitions[index], &record.position)))
            }
        }
    }

    /// A new owner in `plain` mode sends only after the former one's last sends have ended.
    async fn wait_for_former_owner(&mut self) {
        if let Some(until) = self.send_after.take().filter(|until| *until > Instant::now()) {
            let _former = self.memory.encoder.waiting(Wait::FormerOwner);
            tokio::time::sleep_until(until.into()).await;
        }
    }
}
