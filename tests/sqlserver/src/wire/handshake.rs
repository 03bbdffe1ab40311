//! A stream that wraps the bytes of a TLS handshake in pre-login packets, and lets bytes through after it.
//!
//! [MS-TDS] "PRELOGIN": the TLS handshake is the payload of packets of type 0x12 in both directions.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::packet::{DEFAULT_SIZE, HEADER, Kind, put_header};

pub(crate) struct Wrapped<S> {
    stream: S,
    wrapping: bool,
    /// The packet that is read: what came of its header, and how much of its payload is to come.
    header: [u8; HEADER],
    header_read: usize,
    payload_left: usize,
    /// Handshake bytes that are not yet in a packet.
    unpacked: Vec<u8>,
    /// Packets, and how much of them is written.
    packed: Vec<u8>,
    written: usize,
}

impl<S> Wrapped<S> {
    /// Wraps until [`Self::let_through`].
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            wrapping: true,
            header: [0; HEADER],
            header_read: 0,
            payload_left: 0,
            unpacked: Vec::new(),
            packed: Vec::new(),
            written: 0,
        }
    }

    /// Lets everything through from the start.
    pub(crate) fn unwrapped(stream: S) -> Self {
        Self { wrapping: false, ..Self::new(stream) }
    }

    /// The handshake is over.
    pub(crate) fn let_through(&mut self) {
        self.wrapping = false;
    }

    pub(crate) fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead + Unpin> Wrapped<S> {
    /// Reads up to the payload of the next packet; `false`: the stream ended before it.
    fn poll_header(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while self.payload_left == 0 {
            let mut buffer = ReadBuf::new(&mut self.header[self.header_read..]);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
            match buffer.filled().len() {
                0 => return Poll::Ready(Ok(false)),
                read => self.header_read += read,
            }
            if self.header_read < HEADER {
                continue;
            }
            self.header_read = 0;
            if Kind::of(self.header[0]) != Some(Kind::Prelogin) {
                let what = format!("a packet of type 0x{:02X} came during the TLS handshake", self.header[0]);
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, what)));
            }
            let length = usize::from(u16::from_be_bytes([self.header[2], self.header[3]]));
            self.payload_left = length.saturating_sub(HEADER);
        }
        Poll::Ready(Ok(true))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wrapped<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.wrapping {
            if !ready!(this.poll_header(context))? {
                return Poll::Ready(Ok(()));
            }
            // Not beyond the packet: what follows may be outside of the handshake.
            let mut bytes = [0; DEFAULT_SIZE as usize];
            let limit = this.payload_left.min(buffer.remaining()).min(bytes.len());
            let mut part = ReadBuf::new(&mut bytes[..limit]);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut part))?;
            buffer.put_slice(part.filled());
            let read = part.filled().len();
            this.payload_left -= read;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wrapped<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.wrapping {
            // A flight of the handshake becomes one message, so that it waits for its end.
            this.unpacked.extend_from_slice(bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut this.stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let payloads = this.unpacked.chunks(usize::from(DEFAULT_SIZE) - HEADER);
        let count = payloads.len();
        for (number, payload) in (1..).zip(payloads) {
            let last = usize::from(number) == count;
            put_header(&mut this.packed, Kind::Prelogin, last, payload.len(), 0, number);
            this.packed.extend_from_slice(payload);
        }
        this.unpacked.clear();
        while this.written < this.packed.len() {
            let written = ready!(Pin::new(&mut this.stream).poll_write(context, &this.packed[this.written..]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            this.written += written;
        }
        this.packed.clear();
        this.written = 0;
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
