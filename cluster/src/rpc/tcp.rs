//! The real transport: framed bincode over TCP, plain or TLS.
//!
//! One connection per destination and lane, made when first needed and kept. Calls share it by
//! request id. A connection that breaks fails the calls that wait on it; the next call makes a new
//! one. While a connection is being made, others who need it wait for that attempt and share its
//! outcome.
//!
//! Invariants: no queue without a bound; no wait without a deadline; half-open connections die by
//! keepalive and `TCP_USER_TIMEOUT` within [`DEAD_AFTER`].
//!
//! It does not: retry a call, or keep a connection to a peer alive for its own sake.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, BufWriter, ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::admission::{Hello, Refusal, Welcome};
use super::frame::{self, FrameError, Kind};
use super::message::{Request, Response};
use super::server;
use super::tls::Tls;
use super::transport::{Destination, Handler, Lane, Local, RpcError, Transport};

/// Making a connection, with TLS and hello.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// Unacknowledged data, or silence towards keepalive probes, ends a connection after this time.
pub const DEAD_AFTER: Duration = Duration::from_secs(5);
/// Calls that wait to be written to one connection.
const QUEUE: usize = 256;
/// Hello and welcome are small.
pub(super) const MAX_HELLO: usize = 64 << 10;

pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

pub struct TcpTransport {
    listener: Mutex<Option<TcpListener>>,
    tls: Option<Tls>,
    local: std::sync::OnceLock<Arc<Local>>,
    slots: Mutex<HashMap<(Destination, Lane), Arc<Slot>>>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl TcpTransport {
    /// `listener` is bound already, so that a port in use is known before anything starts.
    pub fn new(listener: TcpListener, tls: Option<Tls>) -> Self {
        Self {
            listener: Mutex::new(Some(listener)),
            tls,
            local: std::sync::OnceLock::new(),
            slots: Mutex::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    async fn connection(&self, to: &Destination, lane: Lane, until: Instant) -> Result<Arc<Connection>, RpcError> {
        let slot = self.slots.lock().entry((to.clone(), lane)).or_default().clone();
        let asked = Instant::now();
        let late = |_| RpcError::Timeout { address: to.address.clone(), after: until - asked, sent: false };
        let mut state = timeout_at(until, slot.state.lock()).await.map_err(late)?;
        if let Some(open) = state.connection.as_ref().filter(|c| !c.closed.is_cancelled()) {
            return Ok(open.clone());
        }
        if let Some((at, error)) = state.failure.as_ref().filter(|(at, _)| *at >= asked) {
            tracing::trace!(%to, ?at, "shared a failed connection attempt");
            return Err(error.clone());
        }
        let local = self.local.get().filter(|_| !self.stop.is_cancelled()).ok_or(RpcError::Closed)?;
        let limit = until.min(Instant::now() + CONNECT_LIMIT);
        let made = match timeout_at(limit, self.connect(local, to, lane)).await {
            Ok(made) => made,
            Err(_) => {
                Err(RpcError::Unreachable { address: to.address.clone(), why: "no answer to the connection".into() })
            }
        };
        match made {
            Ok(connection) => {
                state.connection = Some(connection.clone());
                state.failure = None;
                Ok(connection)
            }
            Err(error) => {
                state.connection = None;
                state.failure = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    async fn connect(&self, local: &Local, to: &Destination, lane: Lane) -> Result<Arc<Connection>, RpcError> {
        let unreachable =
            |why: &dyn std::fmt::Display| RpcError::Unreachable { address: to.address.clone(), why: why.to_string() };
        let socket = dial(to).await?;
        tune(&socket).map_err(|e| unreachable(&e))?;
        let mut stream: Box<dyn Stream> = match &self.tls {
            None => Box::new(socket),
            Some(tls) => {
                let name = Tls::server_name(&to.address).map_err(|e| unreachable(&e))?;
                let stream = tls.connector.connect(name, socket).await;
                Box::new(stream.map_err(|e| unreachable(&format_args!("TLS: {e}")))?)
            }
        };
        let hello = frame::encode(Kind::Hello, &Hello::new(local, lane, to.node), MAX_HELLO).map_err(codec)?;
        stream.write_all(&hello).await.map_err(|e| unreachable(&e))?;
        stream.flush().await.map_err(|e| unreachable(&e))?;
        let (kind, body) = frame::read(&mut stream, MAX_HELLO).await.map_err(|e| unreachable(&e))?;
        if kind != Kind::Welcome {
            return Err(unreachable(&FrameError::WrongKind { wanted: Kind::Welcome, found: kind }));
        }
        let welcome: Welcome = frame::decode_body(kind, &body).map_err(|e| unreachable(&e))?;
        match welcome {
            Welcome::Admitted { .. } => Ok(self.open(to, stream)),
            Welcome::Refused(Refusal::NotThisNode { wanted, found }) => {
                Err(RpcError::NotThere { address: to.address.clone(), wanted, found })
            }
            Welcome::Refused(refusal) => {
                tracing::warn!(%to, %refusal, "connection refused");
                Err(RpcError::Rejected { address: to.address.clone(), refusal })
            }
        }
    }

    fn open(&self, to: &Destination, stream: Box<dyn Stream>) -> Arc<Connection> {
        let (reader, writer) = tokio::io::split(stream);
        let (queue, queued) = mpsc::channel(QUEUE);
        let connection = Arc::new(Connection {
            address: to.address.clone(),
            queue,
            waiting: Mutex::default(),
            next: AtomicU64::new(1),
            closed: self.stop.child_token(),
        });
        self.tasks.spawn(write(connection.clone(), writer, queued));
        self.tasks.spawn(read(connection.clone(), reader));
        connection
    }
}

#[async_trait]
impl Transport for TcpTransport {
    fn serve(&self, local: Arc<Local>, handler: Arc<dyn Handler>) {
        if self.local.set(local.clone()).is_err() {
            tracing::error!("transport was started twice; the second start is ignored");
            return;
        }
        if let Some(listener) = self.listener.lock().take() {
            let accept = self.tls.as_ref().map(|tls| tls.acceptor.clone());
            self.tasks.spawn(server::run(listener, accept, local, handler, self.stop.clone()));
        }
    }

    async fn call(
        &self,
        to: &Destination,
        lane: Lane,
        request: Request,
        deadline: Duration,
    ) -> Result<Response, RpcError> {
        let until = Instant::now() + deadline;
        let connection = self.connection(to, lane, until).await?;
        connection.call(&request, until, deadline).await
    }

    fn reset(&self) {
        for (_, slot) in self.slots.lock().drain() {
            if let Ok(mut state) = slot.state.try_lock()
                && let Some(connection) = state.connection.take()
            {
                connection.closed.cancel();
            }
        }
    }

    async fn shutdown(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.listener.lock().take();
    }
}

#[derive(Default)]
struct Slot {
    state: tokio::sync::Mutex<SlotState>,
}

#[derive(Default)]
struct SlotState {
    connection: Option<Arc<Connection>>,
    /// When the last attempt failed, and how.
    failure: Option<(Instant, RpcError)>,
}

struct Connection {
    address: Arc<str>,
    queue: mpsc::Sender<Vec<u8>>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Result<Response, RpcError>>>>,
    next: AtomicU64,
    closed: CancellationToken,
}

impl Connection {
    async fn call(&self, request: &Request, until: Instant, after: Duration) -> Result<Response, RpcError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let frame = encode_request(id, request)?;
        let late = |sent| RpcError::Timeout { address: self.address.clone(), after, sent };
        let permit = timeout_at(until, self.queue.reserve()).await.map_err(|_| late(false))?;
        let permit = permit.map_err(|_| RpcError::Unreachable {
            address: self.address.clone(),
            why: "the connection broke before the request was sent".into(),
        })?;
        let (answer, answered) = oneshot::channel();
        let waiting = Waiting { connection: self, id };
        self.waiting.lock().insert(id, answer);
        permit.send(frame);
        // The end of the connection may have emptied the table just before the insertion.
        if self.closed.is_cancelled() {
            self.fail("closed");
        }
        let result = timeout_at(until, answered).await;
        drop(waiting);
        match result {
            Err(_) => Err(late(true)),
            Ok(Err(_)) => Err(self.broken("closed")),
            Ok(Ok(answer)) => answer,
        }
    }

    fn fail(&self, why: &str) {
        self.closed.cancel();
        let waiting = std::mem::take(&mut *self.waiting.lock());
        for (_, answer) in waiting {
            // Whoever asked may have given up.
            let _ = answer.send(Err(self.broken(why)));
        }
    }

    fn broken(&self, why: &str) -> RpcError {
        RpcError::Broken { address: self.address.clone(), why: why.to_owned() }
    }
}

/// Takes a call off the table when its caller stops waiting, for whatever reason.
struct Waiting<'a> {
    connection: &'a Connection,
    id: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.connection.waiting.lock().remove(&self.id);
    }
}

/// A request is its id, eight bytes little endian, and then the encoded value: so the other side
/// can answer even what it cannot decode.
pub(super) fn encode_request(id: u64, request: &Request) -> Result<Vec<u8>, RpcError> {
    frame::encode_after(Kind::Request, &id.to_le_bytes(), request, frame::MAX_BODY).map_err(|e| match e {
        FrameError::TooLarge { length, limit } => RpcError::TooLarge { what: request.name(), length, limit },
        other => codec(other),
    })
}

pub(super) fn codec(error: FrameError) -> RpcError {
    RpcError::Codec(error.to_string())
}

async fn write(connection: Arc<Connection>, writer: WriteHalf<Box<dyn Stream>>, mut queued: mpsc::Receiver<Vec<u8>>) {
    let mut writer = BufWriter::with_capacity(32 << 10, writer);
    let work = async {
        while let Some(frame) = queued.recv().await {
            writer.write_all(&frame).await?;
            while let Ok(frame) = queued.try_recv() {
                writer.write_all(&frame).await?;
            }
            writer.flush().await?;
        }
        Ok::<_, std::io::Error>(())
    };
    match connection.closed.run_until_cancelled(work).await {
        Some(Err(e)) => connection.fail(&e.to_string()),
        Some(Ok(())) | None => connection.fail("closed"),
    }
    // Best effort: the other side also notices the end of the socket.
    let _ = timeout(Duration::from_millis(100), writer.shutdown()).await;
}

async fn read(connection: Arc<Connection>, reader: ReadHalf<Box<dyn Stream>>) {
    let mut reader = BufReader::with_capacity(32 << 10, reader);
    let work = async {
        loop {
            let (kind, body) = match frame::read(&mut reader, frame::MAX_BODY + 8).await {
                Ok(read) => read,
                Err(e) => return e.to_string(),
            };
            let (Kind::Response, Some((id, body))) = (kind, body.split_first_chunk::<8>()) else {
                return format!("unexpected frame of kind {kind:?}");
            };
            let answer = frame::decode_body(kind, body).map_err(codec);
            if let Some(waiting) = connection.waiting.lock().remove(&u64::from_le_bytes(*id)) {
                // Whoever asked may have given up.
                let _ = waiting.send(answer);
            }
        }
    };
    match connection.closed.run_until_cancelled(work).await {
        Some(why) => connection.fail(&why),
        None => connection.fail("closed"),
    }
}

/// Connects to the first address that answers. Only if every one refuses does the port refuse.
async fn dial(to: &Destination) -> Result<TcpStream, RpcError> {
    let unreachable = |why: String| RpcError::Unreachable { address: to.address.clone(), why };
    let found: Vec<SocketAddr> = match tokio::net::lookup_host(&*to.address).await {
        Ok(found) => found.collect(),
        Err(e) => return Err(unreachable(format!("the name cannot be resolved: {e}"))),
    };
    let (mut refused, mut failed) = (false, None);
    for address in found {
        match TcpStream::connect(address).await {
            Ok(socket) => return Ok(socket),
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionRefused => refused = true,
            Err(e) => failed = Some(e),
        }
    }
    Err(match failed {
        Some(e) => unreachable(e.to_string()),
        None if refused => RpcError::Refused(to.address.clone()),
        None => unreachable("the name has no address".into()),
    })
}

/// No delay; dead connections end within [`DEAD_AFTER`].
pub(super) fn tune(socket: &TcpStream) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let keepalive = socket2::TcpKeepalive::new().with_time(Duration::from_secs(2));
    #[cfg(target_os = "linux")]
    let keepalive = keepalive.with_interval(Duration::from_secs(1));
    socket2::SockRef::from(socket).set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        let fd = socket.as_raw_fd();
        set_option(fd, libc::TCP_KEEPCNT, 3)?;
        set_option(fd, libc::TCP_USER_TIMEOUT, DEAD_AFTER.as_millis() as libc::c_int)?;
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn set_option(fd: std::os::fd::RawFd, name: libc::c_int, value: libc::c_int) -> std::io::Result<()> {
    // SAFETY: the descriptor is open for as long as the caller borrows the socket, and the kernel
    // reads exactly the size given from a value that lives until the call returns.
    let done = unsafe {
        libc::setsockopt(
            fd,
            libc::IPPROTO_TCP,
            name,
            std::ptr::from_ref(&value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
