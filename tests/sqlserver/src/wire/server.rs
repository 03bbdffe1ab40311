//! The listener, what its connections share, and what tests control them with.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection;
use super::faults::Faults;
use super::prelogin::Encryption;
use super::tls::{Certificate, Tls};
use crate::session::{Login, Server};

/// What a server is to its clients before they log in.
#[derive(Clone)]
pub struct Options {
    /// Where it listens; port 0: a free one.
    pub address: SocketAddr,
    pub encryption: Encryption,
    /// `None`: one that the server signs itself, for `localhost` and 127.0.0.1.
    pub certificate: Option<Certificate>,
    /// `None`: the default instance.
    pub instance: Option<String>,
    /// Major, minor, build.
    pub version: (u8, u8, u16),
    /// The server's name in messages.
    pub name: Arc<str>,
}

impl Default for Options {
    /// SQL Server 2022 as it is installed.
    fn default() -> Self {
        Self {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            encryption: Encryption::default(),
            certificate: None,
            instance: None,
            version: (16, 0, 1000),
            name: "localhost".into(),
        }
    }
}

/// What connections share.
pub(crate) struct Shared {
    pub(crate) server: Arc<dyn Server>,
    pub(crate) options: Options,
    pub(crate) tls: Tls,
    pub(crate) faults: Faults,
    /// Connections and what runs for them.
    pub(crate) tasks: TaskTracker,
    connections: watch::Sender<BTreeMap<u64, ConnectionHandle>>,
    next_connection: AtomicU64,
}

/// Removes a connection from the list of those that are open.
pub(crate) struct Registered<'a> {
    shared: &'a Shared,
    key: u64,
}

impl Shared {
    pub(crate) fn register(&self, connection: ConnectionHandle) -> Registered<'_> {
        let key = self.next_connection.fetch_add(1, Ordering::Relaxed);
        self.connections.send_modify(|open| {
            open.insert(key, connection);
        });
        Registered { shared: self, key }
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.shared.connections.send_modify(|open| {
            open.remove(&self.key);
        });
    }
}

/// A connection that is logged in, as tests see it.
#[derive(Debug, Clone)]
pub struct ConnectionHandle {
    /// `SPID`.
    pub session: u16,
    pub user: String,
    pub application: String,
    /// Faults of this connection alone.
    pub faults: Faults,
    stop: CancellationToken,
}

impl ConnectionHandle {
    pub(crate) fn new(session: u16, login: &Login, faults: Faults, stop: CancellationToken) -> Self {
        let (user, application) = (login.user.clone(), login.application.clone());
        Self { session, user, application, faults, stop }
    }

    /// Cuts the connection as it is, even in the middle of a packet.
    pub fn cut(&self) {
        self.stop.cancel();
    }
}

/// A server that listens.
pub struct TdsServer {
    address: SocketAddr,
    certificate: String,
    shared: Arc<Shared>,
    stop: CancellationToken,
}

impl TdsServer {
    /// Listens, and hands logins to `server`. Errors: the certificate is none, the address is taken.
    pub async fn start(server: Arc<dyn Server>, options: Options) -> Result<Self> {
        let certificate = match &options.certificate {
            Some(given) => given.clone(),
            None => Certificate::self_signed(&["localhost", "127.0.0.1"])?,
        };
        let tls = Tls::new(&certificate)?;
        let listener = TcpListener::bind(options.address)
            .await
            .with_context(|| format!("the SQL Server emulator cannot listen on {}", options.address))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            server,
            options,
            tls,
            faults: Faults::default(),
            tasks: TaskTracker::new(),
            connections: watch::Sender::default(),
            next_connection: AtomicU64::new(0),
        });
        let stop = CancellationToken::new();
        shared.tasks.spawn(accept(listener, shared.clone(), stop.clone()));
        Ok(Self { address, certificate: certificate.chain, shared, stop })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate in PEM, for clients to trust.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Faults of every connection, present and future.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// The connections that are logged in, oldest first.
    pub fn connections(&self) -> Vec<ConnectionHandle> {
        self.shared.connections.borrow().values().cloned().collect()
    }

    /// Returns when so many connections are logged in.
    pub async fn until_connections(&self, count: usize) {
        // The sender lives as long as `self`.
        let _ = self.shared.connections.subscribe().wait_for(|open| open.len() == count).await;
    }

    /// Stops listening, cuts every connection, and returns when every session has ended.
    pub async fn shut_down(self) {
        self.stop.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

impl Drop for TdsServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        match accepted {
            Ok((tcp, _)) => {
                shared.tasks.spawn(connection::serve(tcp, shared.clone(), stop.child_token()));
            }
            // The client left already, or the process has no file descriptor left; the next one may do.
            Err(error) => tracing::warn!(%error, "a connection was not accepted"),
        }
    }
}
