//! From a TCP connection to a login that was read, encrypted as both sides agree.
//!
//! [MS-TDS] "PRELOGIN", "LOGIN7", and "Transport" for TDS 8.0, whose clients speak TLS first.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::bytes::Malformed;
use super::handshake::Wrapped;
use super::login::Login7;
use super::packet::{Arrival, Inbound, Kind, Outbound};
use super::prelogin::{Agreed, Encryption, Prelogin};
use super::server::Options;
use super::tls::Tls;

/// First byte of a TLS handshake; that of a pre-login packet is another.
const TLS_HANDSHAKE: u8 = 0x16;

/// What a connection is after the login.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

pub(crate) struct Established {
    pub(crate) stream: Box<dyn Stream>,
    pub(crate) inbound: Inbound,
    pub(crate) login: Result<Login7, Malformed>,
}

/// Errors: the connection is to be closed without a word more.
pub(crate) async fn establish(
    tcp: TcpStream,
    options: &Options,
    tls: &Tls,
    outbound: &mut Outbound,
) -> io::Result<Established> {
    let mut inbound = Inbound::default();
    let mut first = [0];
    if tcp.peek(&mut first).await? == 0 {
        return Err(refused("the client closed the connection before it said anything"));
    }
    if first == [TLS_HANDSHAKE] {
        return strict(tcp, options, tls, outbound, inbound).await;
    }
    if options.encryption == Encryption::Strict {
        return Err(refused("the client does not speak TDS 8.0: have it use strict encryption"));
    }
    let mut tcp = tcp;
    match prelogin(&mut tcp, options, outbound, &mut inbound).await? {
        Agreed::Nothing => {
            let login = login(&mut tcp, &mut inbound).await?;
            Ok(Established { stream: Box::new(tcp), inbound, login })
        }
        Agreed::Login => {
            let mut stream = wrapped(tcp, tls).await?;
            let login = login(&mut stream, &mut inbound).await?;
            let (wrapped, _) = stream.into_inner();
            Ok(Established { stream: Box::new(wrapped.into_inner()), inbound, login })
        }
        Agreed::Everything => {
            let mut stream = wrapped(tcp, tls).await?;
            let login = login(&mut stream, &mut inbound).await?;
            Ok(Established { stream: Box::new(stream), inbound, login })
        }
        Agreed::Refused => {
            tcp.shutdown().await?;
            Err(refused("the client and the server do not agree on encryption"))
        }
    }
}

async fn strict(
    tcp: TcpStream,
    options: &Options,
    tls: &Tls,
    outbound: &mut Outbound,
    mut inbound: Inbound,
) -> io::Result<Established> {
    if options.encryption == Encryption::NotSupported {
        return Err(refused("the client wants TLS, which this server does not offer"));
    }
    let mut stream = TlsAcceptor::from(tls.strict.clone()).accept(Wrapped::unwrapped(tcp)).await?;
    prelogin(&mut stream, options, outbound, &mut inbound).await?;
    let login = login(&mut stream, &mut inbound).await?;
    Ok(Established { stream: Box::new(stream), inbound, login })
}

/// TLS inside of pre-login packets.
async fn wrapped(tcp: TcpStream, tls: &Tls) -> io::Result<TlsStream<Wrapped<TcpStream>>> {
    let mut stream = TlsAcceptor::from(tls.wrapped.clone()).accept(Wrapped::new(tcp)).await?;
    stream.get_mut().0.let_through();
    Ok(stream)
}

async fn prelogin(
    stream: &mut impl Stream,
    options: &Options,
    outbound: &mut Outbound,
    inbound: &mut Inbound,
) -> io::Result<Agreed> {
    let bytes = message(stream, inbound, Kind::Prelogin).await?;
    let said = Prelogin::parse(&bytes).map_err(|error| refused(&error.text))?;
    let (level, agreed) = said.agree(options.encryption);
    let instance = options.instance.as_deref().unwrap_or_default();
    outbound.send_last(stream, &said.answer(options.version, level, instance)).await?;
    Ok(agreed)
}

async fn login(stream: &mut impl Stream, inbound: &mut Inbound) -> io::Result<Result<Login7, Malformed>> {
    Ok(Login7::parse(&message(stream, inbound, Kind::Login).await?))
}

/// A message of the kind that has to come now, behind which the client waits for an answer.
async fn message(stream: &mut impl Stream, inbound: &mut Inbound, kind: Kind) -> io::Result<Vec<u8>> {
    let bytes = match inbound.next(stream).await? {
        Some(Arrival::Message(message)) if message.kind == kind => message.bytes,
        Some(arrival) => {
            let what = match arrival {
                Arrival::Message(message) => format!("{:?}", message.kind),
                other => format!("{other:?}"),
            };
            return Err(refused(&format!("{what} came where {kind:?} was due")));
        }
        None => return Err(refused(&format!("the client closed the connection before its {kind:?}"))),
    };
    if inbound.holds_bytes() {
        return Err(refused(&format!("the client did not wait for the answer to its {kind:?}")));
    }
    Ok(bytes)
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}
