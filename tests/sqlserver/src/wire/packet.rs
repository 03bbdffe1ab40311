//! Packets: their header, messages put together from them, and answers cut into them.
//!
//! [MS-TDS] "Packet Header" and "Status". A message of the client is held as a whole, up to
//! [`LARGEST_MESSAGE`]; answers are cut by their writer and never held as a whole.

use std::io;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::faults::Gate;
use crate::session;

/// Bytes of a header.
pub(crate) const HEADER: usize = 8;
/// Size of packets until a login agrees on another.
pub(crate) const DEFAULT_SIZE: u16 = 4096;
pub(crate) const SMALLEST_SIZE: u16 = 512;
pub(crate) const LARGEST_SIZE: u16 = 32767;

/// 65,536 packets of the default size, which "Maximum capacity specifications for SQL Server" gives
/// as the size of a batch.
pub(crate) const LARGEST_MESSAGE: usize = 65_536 * DEFAULT_SIZE as usize;

const END_OF_MESSAGE: u8 = 0x01;
const IGNORE: u8 = 0x02;
const RESET: u8 = 0x08;
const RESET_KEEPING_TRANSACTION: u8 = 0x10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Batch = 0x01,
    Rpc = 0x03,
    Answer = 0x04,
    Attention = 0x06,
    BulkLoad = 0x07,
    FederatedToken = 0x08,
    TransactionManager = 0x0e,
    Login = 0x10,
    Sspi = 0x11,
    Prelogin = 0x12,
}

impl Kind {
    pub(crate) fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            0x01 => Self::Batch,
            0x03 => Self::Rpc,
            0x06 => Self::Attention,
            0x07 => Self::BulkLoad,
            0x08 => Self::FederatedToken,
            0x0e => Self::TransactionManager,
            0x10 => Self::Login,
            0x11 => Self::Sspi,
            0x12 => Self::Prelogin,
            _ => return None,
        })
    }
}

/// What the session is to be before a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reset {
    No,
    /// As after the login.
    Whole,
    /// As after the login, but the open transaction stays.
    KeepingTransaction,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) kind: Kind,
    pub(crate) reset: Reset,
    pub(crate) bytes: Vec<u8>,
}

/// What comes from a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    Message(Message),
    Attention,
    /// The client took a message back before its end.
    Ignored,
}

/// Puts messages together.
#[derive(Debug, Default)]
pub(crate) struct Inbound {
    received: BytesMut,
    begun: Option<Message>,
}

impl Inbound {
    /// Whether bytes are held that are not yet part of an arrival.
    pub(crate) fn holds_bytes(&self) -> bool {
        !self.received.is_empty() || self.begun.is_some()
    }

    /// The next arrival; `None`: the client closed the connection between messages. Nothing is lost
    /// when the future is dropped.
    pub(crate) async fn next(&mut self, from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Arrival>> {
        loop {
            if let Some(arrival) = self.take()? {
                return Ok(Some(arrival));
            }
            if from.read_buf(&mut self.received).await? == 0 {
                if self.holds_bytes() {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the client closed the connection in the middle of a message",
                    ));
                }
                return Ok(None);
            }
        }
    }

    /// What the received bytes complete.
    fn take(&mut self) -> io::Result<Option<Arrival>> {
        while let Some(header) = self.received.first_chunk::<HEADER>() {
            let (kind, status) = (header[0], header[1]);
            let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
            let Some(kind) = Kind::of(kind) else {
                return Err(invalid(format!("a packet has the unknown type 0x{kind:02X}")));
            };
            if length < HEADER {
                return Err(invalid(format!("a packet says it has {length} bytes, its header alone has {HEADER}")));
            }
            if self.received.len() < length {
                self.received.reserve(length - self.received.len());
                return Ok(None);
            }
            let mut packet = self.received.split_to(length);
            packet.advance(HEADER);
            if kind == Kind::Attention {
                return Ok(Some(Arrival::Attention));
            }
            let message = match &mut self.begun {
                Some(begun) if begun.kind != kind => {
                    return Err(invalid(format!("a packet of {kind:?} came inside a message of {:?}", begun.kind)));
                }
                Some(begun) => begun,
                none => none.insert(Message { kind, reset: reset(status), bytes: Vec::new() }),
            };
            if message.bytes.len() + packet.len() > LARGEST_MESSAGE {
                return Err(invalid(format!("a message has more than {LARGEST_MESSAGE} bytes")));
            }
            message.bytes.extend_from_slice(&packet);
            if status & END_OF_MESSAGE != 0 {
                let message = self.begun.take();
                return Ok(if status & IGNORE != 0 { Some(Arrival::Ignored) } else { message.map(Arrival::Message) });
            }
        }
        Ok(None)
    }
}

fn reset(status: u8) -> Reset {
    if status & RESET != 0 {
        Reset::Whole
    } else if status & RESET_KEEPING_TRANSACTION != 0 {
        Reset::KeepingTransaction
    } else {
        Reset::No
    }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Writes the packets of answers.
#[derive(Debug)]
pub(crate) struct Outbound {
    /// Bytes of a packet with its header.
    size: u16,
    /// Process id of the session; 0 before the login.
    session: u16,
    /// Number of the message's next packet.
    number: u8,
    packet: Vec<u8>,
    gate: Gate,
}

impl Outbound {
    /// `gate`: what every packet has to pass.
    pub(crate) fn new(gate: Gate) -> Self {
        Self { size: DEFAULT_SIZE, session: 0, number: 1, packet: Vec::new(), gate }
    }

    pub(crate) fn size(&self) -> u16 {
        self.size
    }

    /// What the login agreed on: packets from the next message on.
    pub(crate) fn agree(&mut self, session: u16, size: u16) {
        (self.session, self.size) = (session, size);
    }

    /// The error that a fault has for the next request.
    pub(crate) fn take_refusal(&self) -> Option<session::Message> {
        self.gate.take_refusal()
    }

    /// Bytes that a packet carries.
    pub(crate) fn payload(&self) -> usize {
        usize::from(self.size) - HEADER
    }

    /// Sends a packet in the middle of a message; `bytes` are at most [`Self::payload`].
    pub(crate) async fn send(&mut self, to: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
        self.send_packet(to, bytes, false).await
    }

    /// Sends the end of a message.
    pub(crate) async fn send_last(&mut self, to: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
        let mut left = bytes;
        while left.len() > self.payload() {
            let (packet, rest) = left.split_at(self.payload());
            self.send_packet(to, packet, false).await?;
            left = rest;
        }
        self.send_packet(to, left, true).await?;
        to.flush().await
    }

    async fn send_packet(&mut self, to: &mut (impl AsyncWrite + Unpin), bytes: &[u8], last: bool) -> io::Result<()> {
        self.gate.pass(self.number == 1).await?;
        self.packet.clear();
        put_header(&mut self.packet, Kind::Answer, last, bytes.len(), self.session, self.number);
        self.packet.extend_from_slice(bytes);
        // Counted modulo 256; 1 stays the sign of a message's first packet.
        self.number = if last { 1 } else { self.number.checked_add(1).unwrap_or(2) };
        to.write_all(&self.packet).await
    }
}

/// A header before so many bytes; `bytes` is at most [`LARGEST_SIZE`] − [`HEADER`].
pub(crate) fn put_header(out: &mut Vec<u8>, kind: Kind, last: bool, bytes: usize, session: u16, number: u8) {
    let length = u16::try_from(bytes + HEADER).unwrap_or(u16::MAX);
    out.extend_from_slice(&[kind as u8, if last { END_OF_MESSAGE } else { 0 }]);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&session.to_be_bytes());
    out.extend_from_slice(&[number, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::faults::Faults;

    fn packet(kind: u8, status: u8, bytes: &[u8]) -> Vec<u8> {
        let mut packet = vec![kind, status];
        packet.extend_from_slice(&u16::try_from(bytes.len() + HEADER).unwrap().to_be_bytes());
        packet.extend_from_slice(&[0; 4]);
        packet.extend_from_slice(bytes);
        packet
    }

    async fn arrivals(bytes: &[u8]) -> io::Result<Vec<Arrival>> {
        let (mut inbound, mut from, mut arrivals) = (Inbound::default(), bytes, Vec::new());
        while let Some(arrival) = inbound.next(&mut from).await? {
            arrivals.push(arrival);
        }
        Ok(arrivals)
    }

    #[tokio::test]
    async fn a_message_is_put_together_and_takes_its_status_from_the_first_packet() {
        let bytes = [packet(1, RESET, b"abc"), packet(1, 0, b""), packet(1, END_OF_MESSAGE, b"de")].concat();
        let message = Message { kind: Kind::Batch, reset: Reset::Whole, bytes: b"abcde".to_vec() };
        assert_eq!(arrivals(&bytes).await.unwrap(), [Arrival::Message(message)]);
    }

    #[tokio::test]
    async fn bytes_may_come_one_at_a_time() {
        let bytes = [packet(3, 0, b"ab"), packet(3, END_OF_MESSAGE, b"c"), packet(6, END_OF_MESSAGE, b"")].concat();
        let (mut client, mut server) = tokio::io::duplex(1);
        let sending = tokio::spawn(async move { client.write_all(&bytes).await });
        let mut inbound = Inbound::default();
        let message = Message { kind: Kind::Rpc, reset: Reset::No, bytes: b"abc".to_vec() };
        assert_eq!(inbound.next(&mut server).await.unwrap(), Some(Arrival::Message(message)));
        assert_eq!(inbound.next(&mut server).await.unwrap(), Some(Arrival::Attention));
        assert_eq!(inbound.next(&mut server).await.unwrap(), None);
        sending.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_message_taken_back_is_no_message() {
        let bytes = [packet(1, 0, b"abc"), packet(1, END_OF_MESSAGE | IGNORE, b"")].concat();
        assert_eq!(arrivals(&bytes).await.unwrap(), [Arrival::Ignored]);
    }

    #[tokio::test]
    async fn packets_that_cannot_be_are_refused() {
        for (bytes, said) in [
            (packet(0x55, END_OF_MESSAGE, b""), "unknown type 0x55"),
            (vec![1, 1, 0, 7, 0, 0, 0, 0], "says it has 7 bytes"),
            ([packet(1, 0, b"a"), packet(3, 1, b"b")].concat(), "came inside a message of Batch"),
            (packet(1, 0, b"a"), "in the middle of a message"),
            (packet(1, 1, b"abc")[..9].to_vec(), "in the middle of a message"),
        ] {
            let error = arrivals(&bytes).await.unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
    }

    #[tokio::test]
    async fn answers_are_numbered_and_the_last_packet_ends_the_message() {
        let gate = Gate::new(Faults::default(), Faults::default());
        let (mut outbound, mut sent) = (Outbound::new(gate), Vec::new());
        outbound.agree(0x1234, 512);
        assert_eq!(outbound.payload(), 504);
        outbound.send(&mut sent, b"ab").await.unwrap();
        outbound.send_last(&mut sent, b"c").await.unwrap();
        assert_eq!(sent[..10], [4, 0, 0, 10, 0x12, 0x34, 1, 0, b'a', b'b']);
        assert_eq!(sent[10..], [4, 1, 0, 9, 0x12, 0x34, 2, 0, b'c']);
        sent.clear();
        outbound.send_last(&mut sent, &[9; 505]).await.unwrap();
        assert_eq!(sent[..8], [4, 0, 2, 0, 0x12, 0x34, 1, 0]);
        assert_eq!(sent[512..], [4, 1, 0, 9, 0x12, 0x34, 2, 0, 9]);
    }
}
