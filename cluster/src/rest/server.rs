//! The listening side: sockets, optional TLS, and an orderly end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Time for the head of a request; a client that sends nothing keeps only a socket.
const HEAD_LIMIT: Duration = Duration::from_secs(30);
/// At the end of the process: time for requests that are being answered.
const END_LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug, Error)]
#[error(
    "cannot listen on {address} (from 'listeners'): {source}; if another process has the port, stop it or choose another port"
)]
pub struct BindError {
    pub address: String,
    #[source]
    pub source: std::io::Error,
}

/// Whether the newest request of a connection was read to its end: only then somebody waits for an
/// answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Whole(Arc<AtomicBool>);

impl Whole {
    pub(super) fn set(&self, whole: bool) {
        self.0.store(whole, Ordering::SeqCst);
    }

    /// Resolves at the end of the server if nobody waits for an answer.
    async fn abandoned(&self, stop: &CancellationToken) {
        stop.cancelled().await;
        if self.0.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }
}

/// A bound socket.
pub struct Listener {
    socket: TcpListener,
    tls: Option<TlsAcceptor>,
}

impl Listener {
    /// Binds `host:port`; an empty host is every interface.
    ///
    /// # Errors
    /// The address is in use or not ours.
    pub async fn bind(host: &str, port: u16, tls: Option<TlsAcceptor>) -> Result<Self, BindError> {
        let bound = match host.trim_matches(['[', ']']) {
            "" => match TcpListener::bind(("::", port)).await {
                // A host without IPv6.
                Err(e) if e.kind() != std::io::ErrorKind::AddrInUse => TcpListener::bind(("0.0.0.0", port)).await,
                bound => bound,
            },
            host => TcpListener::bind((host, port)).await,
        };
        let socket = bound.map_err(|source| BindError { address: format!("{host}:{port}"), source })?;
        Ok(Self { socket, tls })
    }

    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

/// Serves every listener's routes until `stop`.
pub struct Server {
    pub listeners: Vec<(Listener, Router)>,
}

impl Server {
    /// Ends when every request in progress was answered or the time for that is up.
    pub async fn run(self, stop: CancellationToken) {
        let serving = self.listeners.into_iter().map(|(listener, router)| serve(listener, router, stop.clone()));
        futures::future::join_all(serving).await;
    }
}

async fn serve(listener: Listener, router: Router, stop: CancellationToken) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT);
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.socket.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of descriptors, most likely: others keep being served.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let (builder, tls, router) = (builder.clone(), listener.tls.clone(), router.clone());
        let (watcher, whole, stop) = (graceful.watcher(), Whole::default(), stop.clone());
        tokio::spawn(async move {
            let newest = whole.clone();
            let service = TowerToHyperService::new(router.map_request(move |mut request: Request<_>| {
                newest.set(true);
                request.extensions_mut().insert(newest.clone());
                request
            }));
            let serving = async {
                match tls {
                    None => {
                        let connection = builder.serve_connection(TokioIo::new(stream), service);
                        watcher.watch(connection).await
                    }
                    Some(acceptor) => match handshake(&acceptor, stream).await {
                        Some(stream) => {
                            let connection = builder.serve_connection(TokioIo::new(stream), service);
                            watcher.watch(connection).await
                        }
                        None => Ok(()),
                    },
                }
            };
            let ended = tokio::select! {
                ended = serving => ended,
                () = whole.abandoned(&stop) => Ok(()),
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended with an error");
            }
        });
    }
    drop(listener);
    // Connections that are idle or have half a request are closed at once; answers get the time limit.
    if tokio::time::timeout(END_LIMIT, graceful.shutdown()).await.is_err() {
        tracing::info!("requests were still being answered when the node ended");
    }
}

async fn handshake(acceptor: &TlsAcceptor, stream: TcpStream) -> Option<tokio_rustls::server::TlsStream<TcpStream>> {
    match tokio::time::timeout(HEAD_LIMIT, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, "TLS handshake failed");
            None
        }
        Err(_) => None,
    }
}
