//! Records whose format is changed before transforms see them: one becomes none, one or two, and one may
//! wait for the next of its batch.
//!
//! A change counts as delivered with the last of its messages: the others carry the position before it,
//! so that only all of them together can be repeated. A record that waits moves nothing. It does not know
//! what the format looks like.

use thalweg_core::delivery::Producer;
use thalweg_core::error::{Error, ErrorKind, Phase};
use thalweg_core::record::Record;

use super::{Encoder, Sent};
use crate::exit::Exit;

impl Encoder {
    pub(super) async fn format_and_send(
        &mut self,
        producer: &mut dyn Producer,
        index: usize,
        record: Record,
        sent: &mut Sent,
    ) -> Result<(), Exit> {
        let mut made = Vec::new();
        let connector = self.connector.clone();
        let outcome = self.coder.format(connector.codec(), &record, &mut made);
        let nothing = made.is_empty();
        self.send_made(producer, index, made, sent).await?;
        match outcome {
            Ok(()) if nothing && !self.coder.holds_back() => self.pass_by(index, record.position),
            Ok(()) => {}
            // What has no form in the format never gets one, so this is either the end or a record left out.
            Err(fault) => {
                if self.judge(producer, &mut None, fault, &record, index).await? {
                    let text = "the format gave up a record for now, and it is never tried again";
                    return Err(Exit::failed(Error::new(ErrorKind::Internal, Phase::Convert, text)));
                }
                self.set_aside(producer, index, &record, None).await?;
            }
        }
        Ok(())
    }

    /// At the end of a batch nothing waits any longer.
    pub(super) async fn send_held_back_records(
        &mut self,
        producer: &mut dyn Producer,
        index: usize,
        sent: &mut Sent,
    ) -> Result<(), Exit> {
        if !self.coder.holds_back() {
            return Ok(());
        }
        let made = self.coder.end_of_batch();
        self.send_made(producer, index, made, sent).await
    }

    async fn send_made(
        &mut self,
        producer: &mut dyn Producer,
        index: usize,
        made: Vec<Record>,
        sent: &mut Sent,
    ) -> Result<(), Exit> {
        let mut made = made.into_iter().peekable();
        while let Some(mut record) = made.next() {
            if made.peek().is_some_and(|next| next.position == record.position) {
                record.position = self.last[index].clone();
            }
            self.pass_on(producer, index, record, sent).await?;
        }
        Ok(())
    }
}
