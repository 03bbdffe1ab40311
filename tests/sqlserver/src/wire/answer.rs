//! A session's answers as tokens, in packets that go out while the session goes on.
//!
//! Runs on the session's thread. A packet that is full waits for the connection to take it, which is
//! what holds a session back whose client is slow. After a cancellation nothing new begins, but a token
//! that is begun is finished: the client reads tokens up to the acknowledgement.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc;
use tracing::error;

use super::request::Call;
use super::scalar::Unfit;
use super::token::{self, ColumnForm, Command, Done, DoneKind, FATAL};
use super::type_info;
use crate::session::{Answers, Cancelled, Change, Column, Message, Request};
use crate::types::SqlType;
use crate::value::SqlValue;

/// A buffer of more bytes than this is not kept from one row to the next.
const KEPT: usize = 1 << 20;

/// What a request's answer is written with.
pub(crate) struct AnswerWriter {
    server: Arc<str>,
    /// Bytes that a packet carries.
    payload: usize,
    packets: mpsc::Sender<Vec<u8>>,
    cancelled: Arc<AtomicBool>,
    /// What is not in a packet yet; ends with a token's end.
    buffer: Vec<u8>,
    /// The last end: whether more follows is not known yet.
    held: Option<Done>,
    /// An error was sent, which the next end tells.
    failed: bool,
    fatal: bool,
    transaction: u64,
    call: CallState,
}

/// What belongs to one of a message's requests.
#[derive(Default)]
struct CallState {
    /// A procedure that the client calls, not a batch.
    procedure: bool,
    no_metadata: bool,
    /// The client's output parameters, in order: place in the call, name, whether it is answered.
    outputs: Vec<(u16, String, bool)>,
    columns: Vec<ColumnForm>,
    /// Rows are those of a result.
    result: bool,
}

/// What is left when a message is answered.
pub(crate) struct Finish {
    /// Tokens that are not in a packet yet, all but the last.
    rest: Vec<u8>,
    last: Option<Done>,
    /// The last token is missing, and an error was sent that it has to tell.
    failed: bool,
    /// The connection ends with this answer.
    pub(crate) fatal: bool,
    /// Descriptor of the open transaction, or 0.
    pub(crate) transaction: u64,
}

impl Finish {
    /// The last bytes of the answer; `cancelled`: an attention has ended it, which counts as an error.
    pub(crate) fn bytes(mut self, cancelled: bool) -> Vec<u8> {
        let last = self.last.unwrap_or(Done::of(DoneKind::Statement, self.failed || cancelled));
        last.put(false, &mut self.rest);
        self.rest
    }
}

impl AnswerWriter {
    pub(crate) fn new(
        server: Arc<str>,
        payload: usize,
        packets: mpsc::Sender<Vec<u8>>,
        cancelled: Arc<AtomicBool>,
        transaction: u64,
    ) -> Self {
        Self {
            server,
            payload,
            packets,
            cancelled,
            buffer: Vec::new(),
            held: None,
            failed: false,
            fatal: false,
            transaction,
            call: CallState::default(),
        }
    }

    /// The session was reset.
    pub(crate) fn reset(&mut self) {
        token::environment::reset(&mut self.buffer);
        self.transaction = 0;
    }

    /// One of the message's requests begins.
    pub(crate) fn begin(&mut self, call: &Call) {
        self.call = CallState { no_metadata: call.no_metadata, ..CallState::default() };
        if let Request::Procedure { parameters, .. } = &call.request {
            self.call.procedure = true;
            self.call.outputs = (0..)
                .zip(parameters)
                .filter(|(_, parameter)| parameter.output)
                .map(|(place, parameter)| (place, parameter.name.clone(), false))
                .collect();
        }
    }

    /// The request is answered: a call has an end of its own.
    pub(crate) fn end(&mut self) {
        if self.call.procedure {
            self.release();
            self.held = Some(Done::of(DoneKind::Procedure, std::mem::take(&mut self.failed)));
        }
    }

    pub(crate) fn finish(mut self) -> Finish {
        if self.failed {
            // The error came after the last end.
            self.release();
        }
        Finish {
            rest: self.buffer,
            last: self.held,
            failed: self.failed,
            fatal: self.fatal,
            transaction: self.transaction,
        }
    }

    /// Something follows what was last.
    fn release(&mut self) {
        if let Some(done) = self.held.take() {
            done.put(true, &mut self.buffer);
        }
    }

    /// Before every token.
    fn next(&mut self) -> Result<(), Cancelled> {
        if self.cancelled() {
            return Err(Cancelled);
        }
        self.release();
        Ok(())
    }

    /// After every token: packets that are full go out. The last bytes stay, so that the message's end
    /// finds something to be in.
    fn send(&mut self) -> Result<(), Cancelled> {
        let mut sent = 0;
        while self.buffer.len() - sent > self.payload {
            let packet = self.buffer[sent..sent + self.payload].to_vec();
            self.packets.blocking_send(packet).map_err(|_| Cancelled)?;
            sent += self.payload;
        }
        self.buffer.drain(..sent);
        if self.buffer.capacity() > KEPT {
            self.buffer.shrink_to(KEPT);
        }
        Ok(())
    }

    /// The session gave a value that cannot be sent, which is the session's fault: the client gets an
    /// error in its place, and the session stops.
    fn unfit(&mut self, start: usize, what: &str, kind: &SqlType, unfit: &Unfit) -> Cancelled {
        self.buffer.truncate(start);
        let text = format!("The server answered with a value for {what} of type {kind:?} that {}.", unfit.0);
        error!("{text} This is a fault of the emulator.");
        let message = Message { number: 8114, state: 1, class: 16, text, procedure: String::new(), line: 1 };
        token::message(&message, &self.server, &mut self.buffer);
        self.failed = true;
        Cancelled
    }

    /// Place of an output parameter among those of the call: by name, else the next one.
    fn output_place(&mut self, name: &str) -> u16 {
        let outputs = &mut self.call.outputs;
        let named = outputs.iter().position(|(_, own, answered)| !answered && own.eq_ignore_ascii_case(name));
        let next = || outputs.iter().position(|(_, _, answered)| !answered);
        match named.or_else(next) {
            Some(at) => {
                outputs[at].2 = true;
                outputs[at].0
            }
            None => 0,
        }
    }
}

impl Answers for AnswerWriter {
    fn columns(&mut self, columns: &[Column]) -> Result<(), Cancelled> {
        self.next()?;
        if self.call.no_metadata {
            token::no_columns(&mut self.buffer);
        } else {
            token::columns(columns, &mut self.buffer);
        }
        self.call.result = true;
        self.call.columns = columns
            .iter()
            .map(|column| ColumnForm {
                name: column.name.clone(),
                kind: column.kind.clone(),
                prefix: type_info::prefix(&column.kind, column.nullable),
            })
            .collect();
        self.send()
    }

    fn row(&mut self, values: &[SqlValue]) -> Result<(), Cancelled> {
        self.next()?;
        let start = self.buffer.len();
        if values.len() != self.call.columns.len() {
            let what = format!("a row of {} columns with {} values", self.call.columns.len(), values.len());
            return Err(self.unfit(start, &what, &SqlType::SqlVariant, &Unfit::new("is missing")));
        }
        if let Err((column, unfit)) = token::row(&self.call.columns, values, &mut self.buffer) {
            let ColumnForm { name, kind, .. } = self.call.columns[column].clone();
            return Err(self.unfit(start, &format!("column {} ({name})", column + 1), &kind, &unfit));
        }
        self.send()
    }

    fn done(&mut self, rows: Option<u64>) -> Result<(), Cancelled> {
        self.next()?;
        let command = match (std::mem::take(&mut self.call.result), rows) {
            (true, _) => Command::Select,
            (false, Some(_)) => Command::Update,
            (false, None) => Command::Unknown,
        };
        let kind = if self.call.procedure { DoneKind::InProcedure } else { DoneKind::Statement };
        self.held = Some(Done { kind, command, failed: std::mem::take(&mut self.failed), rows });
        self.send()
    }

    fn message(&mut self, message: &Message) -> Result<(), Cancelled> {
        self.next()?;
        token::message(message, &self.server, &mut self.buffer);
        self.failed |= token::is_error(message);
        self.fatal |= message.class >= FATAL;
        self.send()
    }

    fn change(&mut self, change: &Change) -> Result<(), Cancelled> {
        match change {
            Change::Begun(transaction) => self.transaction = *transaction,
            Change::Committed(_) | Change::RolledBack(_) => self.transaction = 0,
            Change::Database { .. } | Change::Language { .. } => {}
        }
        // Even after a cancellation: the client has to know it.
        self.release();
        token::environment::change(change, &mut self.buffer);
        self.send()
    }

    fn output(&mut self, name: &str, kind: &SqlType, value: &SqlValue) -> Result<(), Cancelled> {
        self.next()?;
        let start = self.buffer.len();
        let place = self.output_place(name);
        if let Err(unfit) = token::output(place, name, kind, value, &mut self.buffer) {
            return Err(self.unfit(start, &format!("the output parameter {name}"), kind, &unfit));
        }
        self.send()
    }

    fn status(&mut self, status: i32) -> Result<(), Cancelled> {
        self.next()?;
        token::status(status, &mut self.buffer);
        if !self.call.procedure {
            // In a batch, the end of a procedure that it calls follows; that of a client's call comes last.
            self.held = Some(Done::of(DoneKind::Procedure, std::mem::take(&mut self.failed)));
        }
        self.send()
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire) || self.packets.is_closed()
    }
}

#[cfg(test)]
mod tests;
