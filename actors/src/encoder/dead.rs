//! A record that is left out: its dead letter, if there is a topic for them, on the way that messages
//! take.
//!
//! The letter has the record's place in the sequence, so the position moves only behind its
//! acknowledgement, in mode `fenced` within the same transaction. One that is too large goes without its
//! value, then without its key. If the client refuses even that, the task ends with the error; what the
//! broker refuses is left out, counted and logged. It does not decide what is left out.

use thalweg_core::ErrorKind;
use thalweg_core::ack::Full;
use thalweg_core::delivery::{Producer, Refused};
use thalweg_core::record::Record;

use super::{Encoder, check_lease, count, locate, offset_text};
use crate::dead_letter::{Coordinates, Letter};
use crate::exit::Exit;
use crate::progress::Wait;
use crate::refused::{RefusedMessage, Treatment};

impl Encoder {
    /// Goes on without the record. `seq` is its number if it has one already, which nobody answers.
    pub(super) async fn set_aside(
        &mut self,
        producer: &mut dyn Producer,
        index: usize,
        record: &Record,
        seq: Option<u64>,
    ) -> Result<(), Exit> {
        let (Some(to), Some(reason)) = (self.coder.dead_letters(), self.reason.take()) else {
            match seq {
                Some(seq) => self.ledger.leave_out(seq),
                None => self.pass_by(index, record.position.clone()),
            }
            return Ok(());
        };
        let partition = self.partitions[index].partition.original().clone();
        let at = Coordinates {
            connector: &self.identity.connector,
            task: self.identity.task,
            partition: &partition,
            offset: offset_text(&*self.connector, &record.position),
        };
        let letter = Letter::new(to, record, reason, &at);
        let topic = to.topic.clone();
        if !self.topics.is_ready(&topic) {
            self.hand_over(producer).await?;
            let _topic = self.memory.encoder.waiting(Wait::Topic);
            producer.prepare_topic(&topic).await.map_err(Exit::failed)?;
            self.topics.prepared(&topic);
            check_lease(&*self.node.port)?;
        }
        self.send_letter(producer, index, record, &letter, seq).await?;
        self.last[index] = record.position.clone();
        Ok(())
    }

    async fn send_letter(
        &mut self,
        producer: &mut dyn Producer,
        index: usize,
        record: &Record,
        letter: &Letter,
        mut seq: Option<u64>,
    ) -> Result<(), Exit> {
        // Forms of the letter that the broker refused.
        let mut refused = Vec::new();
        let mut extent = letter.extent();
        loop {
            let message = letter.message(extent);
            let identity = || RefusedMessage {
                partition: index,
                position: record.position.clone(),
                topic: message.topic.clone(),
                key: RefusedMessage::key(message.key),
                size: letter.size(extent),
            };
            let treatment =
                if self.refusals.is_empty() { Treatment::Send } else { self.refusals.treatment(&identity()) };
            if treatment == Treatment::LeaveOut {
                // The broker refused it in an earlier run.
                self.count_failure();
                refused.push(identity());
                match extent.less() {
                    Some(less) => extent = less,
                    None => {
                        match seq {
                            Some(seq) => self.ledger.leave_out(seq),
                            None => self.pass_by(index, record.position.clone()),
                        }
                        refused.iter().for_each(|message| self.left_out(message));
                        return Ok(());
                    }
                }
                continue;
            }
            let alone = treatment == Treatment::SendAlone;
            if alone {
                // Its own number may be there already, the last one; nothing was sent under it.
                self.flush_all_but(producer, u64::from(seq.is_some())).await?;
                check_lease(&*self.node.port)?;
            }
            let number = match seq {
                Some(seq) => seq,
                None => match self.ledger.enter(index, record.position.clone()) {
                    Ok(seq) => seq,
                    Err(Full(position)) => self.enter_later(producer, index, position).await?,
                },
            };
            if seq.replace(number).is_none() {
                self.ledger.identify(number, identity);
            } else {
                self.ledger.identify_anew(number, identity);
            }
            self.alone = alone.then_some(number);
            count(&self.memory.errors.deadletterqueue_produce_requests);
            let mut answer = producer.try_send(number, &message);
            while let Err(Refused::Full) = answer {
                self.room(producer).await?;
                answer = producer.try_send(number, &message);
            }
            match answer {
                Err(Refused::Failed(error)) if error.kind == ErrorKind::MessageTooLarge => {
                    self.count_failure();
                    match extent.less() {
                        Some(less) => extent = less,
                        None => {
                            let place = &self.partitions[index];
                            return Err(Exit::failed(locate(error, &*self.connector, place, &record.position)));
                        }
                    }
                }
                Err(Refused::Failed(error)) => return Err(Exit::failed(error)),
                Ok(()) | Err(Refused::Full) => break,
            }
        }
        refused.iter().for_each(|message| self.left_out(message));
        self.deliver_alone(producer).await
    }

    fn count_failure(&self) {
        count(&self.memory.errors.deadletterqueue_produce_failures);
    }
}
