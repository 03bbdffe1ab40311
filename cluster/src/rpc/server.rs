//! The answering side of [`super::tcp`].
//!
//! Invariants: a stranger gets [`HELLO_LIMIT`] to introduce itself and nothing before; a connection
//! has a bounded number of requests in work, and is not read further while it is at the bound.
//!
//! It does not: know what a request means; the handler does.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncWriteExt, BufReader, BufWriter};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::admission::{Callers, Hello, Refusal, Welcome};
use super::frame::{self, FrameError, Kind, ReadError};
use super::message::{Failure, Request, Response};
use super::tcp::{self, Stream};
use super::transport::{Caller, Handler, Local};

const HELLO_LIMIT: Duration = Duration::from_secs(5);
const MAX_CONNECTIONS: usize = 1024;
/// Requests of one connection in work at a time.
const MAX_IN_WORK: usize = 64;

struct Shared {
    local: Arc<Local>,
    handler: Arc<dyn Handler>,
    callers: Mutex<Callers>,
    tls: Option<TlsAcceptor>,
}

pub(super) async fn run(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    local: Arc<Local>,
    handler: Arc<dyn Handler>,
    stop: CancellationToken,
) {
    let shared = Arc::new(Shared { local, handler, callers: Mutex::default(), tls });
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((socket, from)) => {
                let Ok(place) = places.clone().try_acquire_owned() else {
                    tracing::warn!(%from, limit = MAX_CONNECTIONS, "too many connections, one was closed");
                    continue;
                };
                let shared = shared.clone();
                connections.spawn(async move {
                    if let Err(error) = serve(&shared, socket).await {
                        tracing::debug!(%from, %error, "connection ended");
                    }
                    drop(place);
                });
            }
            // Out of descriptors or the like: the next accept would fail the same way at once.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    // The port first: who sees its connection end must find that the port refuses.
    drop(listener);
    connections.shutdown().await;
}

async fn serve(shared: &Arc<Shared>, socket: TcpStream) -> Result<(), ReadError> {
    tcp::tune(&socket)?;
    let (stream, admitted) = timeout(HELLO_LIMIT, introduce(shared, socket))
        .await
        .map_err(|_| std::io::Error::new(std::io::ErrorKind::TimedOut, "no hello"))??;
    let Some(admitted) = admitted else { return Ok(()) };
    converse(shared, stream, &admitted.caller).await
}

/// An admitted caller; gives its admission back when dropped.
struct Admitted {
    shared: Arc<Shared>,
    caller: Caller,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.shared.callers.lock().left(self.caller.node);
    }
}

async fn introduce(shared: &Arc<Shared>, socket: TcpStream) -> Result<(Box<dyn Stream>, Option<Admitted>), ReadError> {
    let mut stream: Box<dyn Stream> = match &shared.tls {
        None => Box::new(socket),
        Some(tls) => Box::new(tls.accept(socket).await?),
    };
    let (kind, body) = frame::read(&mut stream, tcp::MAX_HELLO).await?;
    if kind != Kind::Hello {
        return Err(FrameError::WrongKind { wanted: Kind::Hello, found: kind }.into());
    }
    let hello: Hello = frame::decode_body(kind, &body)?;
    let verdict = shared.callers.lock().admit(&shared.local, &hello);
    let (welcome, admitted) = match verdict {
        Ok(caller) => {
            let local = &shared.local;
            let welcome =
                Welcome::Admitted { node: local.node, incarnation: local.incarnation, cluster: local.cluster() };
            (welcome, Some(Admitted { shared: shared.clone(), caller }))
        }
        Err(refusal) => {
            // The caller goes through its seeds and may find another node at an address it knows.
            if !matches!(refusal, Refusal::NotThisNode { .. }) {
                tracing::warn!(node = hello.node, address = hello.address, %refusal, "refused a connection");
            }
            (Welcome::Refused(refusal), None)
        }
    };
    stream.write_all(&frame::encode(Kind::Welcome, &welcome, tcp::MAX_HELLO)?).await?;
    stream.flush().await?;
    Ok((stream, admitted))
}

async fn converse(shared: &Arc<Shared>, stream: Box<dyn Stream>, caller: &Caller) -> Result<(), ReadError> {
    let (reader, writer) = tokio::io::split(stream);
    let mut reader = BufReader::with_capacity(32 << 10, reader);
    let (answers, mut answered) = mpsc::channel::<Vec<u8>>(MAX_IN_WORK);
    // Ends with the connection: requests in work are dropped, since nobody hears their answer.
    let mut work = JoinSet::new();
    work.spawn(async move {
        let mut writer = BufWriter::with_capacity(32 << 10, writer);
        while let Some(frame) = answered.recv().await {
            writer.write_all(&frame).await?;
            while let Ok(frame) = answered.try_recv() {
                writer.write_all(&frame).await?;
            }
            writer.flush().await?;
        }
        Ok::<_, std::io::Error>(())
    });
    let room = Arc::new(Semaphore::new(MAX_IN_WORK));
    loop {
        // The semaphore is never closed.
        let Ok(place) = room.clone().acquire_owned().await else { return Ok(()) };
        let read = tokio::select! {
            read = frame::read(&mut reader, frame::MAX_BODY + 8) => read,
            // Only the writer ends with an error; without it no answer can leave.
            Some(Ok(Err(error))) = work.join_next() => return Err(error.into()),
        };
        let (kind, body) = match read {
            Err(ReadError::Closed) => return Ok(()),
            other => other?,
        };
        let (Kind::Request, Some((id, body))) = (kind, body.split_first_chunk::<8>()) else {
            return Err(FrameError::WrongKind { wanted: Kind::Request, found: kind }.into());
        };
        let id = *id;
        let request = frame::decode_body::<Request>(kind, body);
        let (shared, caller, answers) = (shared.clone(), caller.clone(), answers.clone());
        work.spawn(async move {
            let response = match request {
                Ok(request) => shared.handler.handle(caller, request).await,
                Err(error) => {
                    tracing::warn!(node = caller.node, %error, "request was not understood");
                    Response::Failed(Failure::NotUnderstood)
                }
            };
            // The connection may have ended meanwhile.
            let _ = answers.send(encode_response(id, &response)).await;
            drop(place);
            Ok(())
        });
    }
}

fn encode_response(id: [u8; 8], response: &Response) -> Vec<u8> {
    frame::encode_after(Kind::Response, &id, response, frame::MAX_BODY).unwrap_or_else(|error| {
        tracing::error!(%error, "answer cannot be sent");
        let refused = Response::Failed(Failure::Refused(format!("the answer cannot be sent: {error}")));
        // A short text always fits; an empty frame would end the connection with an error on the other side.
        frame::encode_after(Kind::Response, &id, &refused, frame::MAX_BODY).unwrap_or_default()
    })
}
