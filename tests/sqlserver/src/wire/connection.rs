//! One connection, from its first byte to its end.
//!
//! The session runs on a thread of the blocking pool while a request is answered, and rests here in
//! between. Between the two is a channel of a few packets. The connection goes on reading meanwhile, so
//! that an attention is seen. When the connection ends, the channel's end stops the session.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};

use super::answer::{AnswerWriter, Finish};
use super::bytes::Malformed;
use super::establish::{Established, Stream, establish};
use super::faults::{Faults, Gate};
use super::login::Login7;
use super::packet::{Arrival, Inbound, Kind, Message, Outbound, Reset};
use super::request::{self, Call};
use super::server::{ConnectionHandle, Shared};
use super::token::{Done, DoneKind, FATAL};
use super::welcome;
use crate::session::{self, Greeting, Session};

/// Packets that a session may be ahead of its client's socket.
const PACKETS_AHEAD: usize = 4;
/// How often a resting session is asked whether it was killed; nothing else tells.
const KILLED_CHECK: Duration = Duration::from_millis(50);

/// Serves a connection until its client, the session, a fault or `stop` ends it.
pub(crate) async fn serve(tcp: TcpStream, shared: Arc<Shared>, stop: CancellationToken) {
    let peer = tcp.peer_addr();
    // Answers go out packet by packet; Nagle's algorithm would hold their ends back.
    let _ = tcp.set_nodelay(true);
    let mut connection = None;
    let ended = tokio::select! {
        ended = run(tcp, &shared, &stop, &mut connection) => ended,
        () = stop.cancelled() => Ok(()),
    };
    if let Err(error) = ended {
        debug!(?peer, %error, "a connection ended");
    }
    if let Some(session) = connection.and_then(|c| c.session) {
        // Its end may take a while: what it began is rolled back.
        shared.tasks.spawn_blocking(move || drop(session));
    }
}

/// Leaves the connection in `slot` from the login on.
async fn run(
    tcp: TcpStream,
    shared: &Arc<Shared>,
    stop: &CancellationToken,
    slot: &mut Option<Connection>,
) -> io::Result<()> {
    let faults = Faults::default();
    let mut outbound = Outbound::new(Gate::new(shared.faults.clone(), faults.clone()));
    let Established { mut stream, inbound, login } =
        establish(tcp, &shared.options, &shared.tls, &mut outbound).await?;
    let (login, session, greeting) = match log_in(shared, login).await {
        Ok(taken) => taken,
        Err(refusal) => {
            outbound.send_last(&mut stream, &welcome::refused(&refusal, &shared.options.name)).await?;
            return tokio::io::AsyncWriteExt::shutdown(&mut stream).await;
        }
    };
    let id = session.id();
    let size = outbound.size();
    let connection = slot.insert(Connection {
        shared: shared.clone(),
        stream,
        inbound,
        outbound,
        session: Some(session),
        queued: None,
        transaction: 0,
    });
    let _registered = shared.register(ConnectionHandle::new(id, &login.login, faults, stop.clone()));
    connection.outbound.agree(id, size);
    let tokens = welcome::taken(&login, &greeting, &shared.options.name, size);
    connection.send_last(&tokens).await?;
    connection.outbound.agree(id, login.packet_size);
    connection.serve().await
}

/// Starts blocking work at once; `None`: it panicked. What nobody takes any more is dropped on the thread,
/// so that whoever waits for the threads waits for the end of sessions, too.
fn on_thread<T: Send + 'static, W: FnOnce() -> T + Send + 'static>(
    shared: &Shared,
    work: W,
) -> impl Future<Output = Option<T>> + use<T, W> {
    let (tell, told) = oneshot::channel();
    shared.tasks.spawn_blocking(move || drop(tell.send(work())));
    async move { told.await.ok() }
}

type Taken = (Login7, Box<dyn Session>, Greeting);

async fn log_in(shared: &Shared, login: Result<Login7, Malformed>) -> Result<Taken, session::Message> {
    let login = login.map_err(|malformed| welcome::error(malformed.number, FATAL, malformed.text))?;
    if let Some(obstacle) = welcome::obstacle(&login) {
        return Err(obstacle);
    }
    let (server, asked) = (shared.server.clone(), login.login.clone());
    let answer = on_thread(shared, move || server.login(&asked)).await;
    let (session, greeting) = answer.unwrap_or_else(|| {
        error!("a login panicked; this is a fault of the emulator");
        Err(welcome::error(17189, FATAL, "SQL Server failed to create a thread to process a new login.".into()))
    })?;
    Ok((login, session, greeting))
}

struct Connection {
    shared: Arc<Shared>,
    stream: Box<dyn Stream>,
    inbound: Inbound,
    outbound: Outbound,
    /// Absent while it runs.
    session: Option<Box<dyn Session>>,
    /// What the client sent while a request was answered.
    queued: Option<Arrival>,
    /// Descriptor of the open transaction, or 0.
    transaction: u64,
}

/// Whether the connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    GoesOn,
    Ends,
}

impl Connection {
    async fn serve(&mut self) -> io::Result<()> {
        while let Some(arrival) = self.next().await? {
            match arrival {
                // What it was to stop is over.
                Arrival::Attention => self.acknowledge().await?,
                Arrival::Ignored => {
                    let mut tokens = Vec::new();
                    Done::of(DoneKind::Statement, true).put(false, &mut tokens);
                    self.send_last(&tokens).await?;
                }
                Arrival::Message(message) => {
                    if self.answer(&message).await? == Next::Ends {
                        break;
                    }
                }
            }
        }
        tokio::io::AsyncWriteExt::shutdown(&mut self.stream).await
    }

    async fn acknowledge(&mut self) -> io::Result<()> {
        let mut tokens = Vec::new();
        Done::put_attention(&mut tokens);
        self.send_last(&tokens).await
    }

    async fn send_last(&mut self, tokens: &[u8]) -> io::Result<()> {
        self.outbound.send_last(&mut self.stream, tokens).await
    }

    /// `None`: the client left, or the session was killed.
    async fn next(&mut self) -> io::Result<Option<Arrival>> {
        if let Some(queued) = self.queued.take() {
            return Ok(Some(queued));
        }
        let mut checks = tokio::time::interval(KILLED_CHECK);
        loop {
            tokio::select! {
                arrival = self.inbound.next(&mut self.stream) => return arrival,
                _ = checks.tick() => {
                    if self.session.as_ref().is_none_or(|s| s.killed()) {
                        return Ok(None);
                    }
                }
            }
        }
    }

    async fn answer(&mut self, message: &Message) -> io::Result<Next> {
        let calls = match self.calls(message) {
            Ok(calls) => calls,
            Err(refusal) => {
                let ends = refusal.class >= FATAL;
                self.send_last(&welcome::refused(&refusal, &self.shared.options.name)).await?;
                return Ok(if ends { Next::Ends } else { Next::GoesOn });
            }
        };
        let (finish, attention) = self.run(calls, message.reset != Reset::No).await?;
        self.transaction = finish.transaction;
        let killed = self.session.as_ref().is_none_or(|s| s.killed());
        let ends = finish.fatal || killed;
        self.send_last(&finish.bytes(attention)).await?;
        if attention && !ends {
            // In a message of its own. [MS-TDS] "Out-of-Band Attention Signal" shows it so, and Microsoft's JDBC
            // driver waits for a message after the answer's end.
            self.acknowledge().await?;
        }
        Ok(if ends { Next::Ends } else { Next::GoesOn })
    }

    /// The requests of a message; or the error that answers it, which does not reach the session.
    fn calls(&self, message: &Message) -> Result<Vec<Call>, session::Message> {
        if let Some(refusal) = self.outbound.take_refusal() {
            return Err(refusal);
        }
        let kept = message.reset == Reset::KeepingTransaction && self.transaction != 0;
        if kept {
            let text =
                "This server cannot reset a connection and keep its open transaction: end the transaction first.";
            return Err(welcome::error(4002, 16, text.into()));
        }
        if message.kind == Kind::BulkLoad {
            let text = "Keyword or statement option 'bulk' is not supported in this version of SQL Server.";
            return Err(welcome::error(40517, 16, text.into()));
        }
        // A reset ends the open transaction before the request.
        let transaction = if message.reset == Reset::No { self.transaction } else { 0 };
        request::parse(message, transaction).map_err(|malformed| {
            warn!(%malformed, "a request was not understood");
            welcome::error(malformed.number, 16, malformed.text)
        })
    }

    /// Runs requests and sends all of their answers but the end. Says whether an attention came.
    async fn run(&mut self, calls: Vec<Call>, reset: bool) -> io::Result<(Finish, bool)> {
        let (sender, mut packets) = mpsc::channel(PACKETS_AHEAD);
        let cancelled = Arc::new(AtomicBool::new(false));
        let name = self.shared.options.name.clone();
        let payload = self.outbound.payload();
        let writer = AnswerWriter::new(name, payload, sender, cancelled.clone(), self.transaction);
        let session = self.session.take().ok_or_else(|| io::Error::other("the session is gone"))?;
        let running = on_thread(&self.shared, move || answer_all(session, calls, reset, writer));
        let mut attention = false;
        loop {
            tokio::select! {
                biased;
                arrival = self.inbound.next(&mut self.stream), if self.queued.is_none() => match arrival? {
                    Some(Arrival::Attention) => {
                        attention = true;
                        cancelled.store(true, Ordering::Release);
                    }
                    Some(other) => self.queued = Some(other),
                    None => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the client left during an answer")),
                },
                packet = packets.recv() => match packet {
                    Some(packet) => self.outbound.send(&mut self.stream, &packet).await?,
                    None => break,
                },
            }
        }
        let (session, finish) = running.await.ok_or_else(|| {
            error!("a session panicked; this is a fault of the emulator");
            io::Error::other("the session panicked")
        })?;
        self.session = Some(session);
        Ok((finish, attention))
    }
}

/// Runs on the session's thread.
fn answer_all(
    mut session: Box<dyn Session>,
    calls: Vec<Call>,
    reset: bool,
    mut writer: AnswerWriter,
) -> (Box<dyn Session>, Finish) {
    if reset {
        session.reset();
        writer.reset();
    }
    for call in calls {
        writer.begin(&call);
        let answered = session.run(call.request, &mut writer);
        writer.end();
        if answered.is_err() || session.killed() {
            break;
        }
    }
    (session, writer.finish())
}
