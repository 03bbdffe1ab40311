//! A TCP proxy on the loopback address whose link can be cut and mended.
//!
//! A cut link neither closes nor answers (packets vanish), and takes new connections without
//! forwarding them: what a host behind a broken network looks like.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::ports::free_port;

pub struct Proxy {
    pub port: u16,
    open: Arc<watch::Sender<bool>>,
    acceptor: JoinHandle<()>,
}

impl Proxy {
    pub async fn to(target: u16) -> Result<Self> {
        let port = free_port()?;
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let (open, _) = watch::channel(true);
        let open = Arc::new(open);
        let link = open.clone();
        let acceptor = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let link = link.subscribe();
                tokio::spawn(async move {
                    let mut gate = link.clone();
                    if gate.wait_for(|open| *open).await.is_err() {
                        return;
                    }
                    let Ok(server) = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], target))).await else {
                        return;
                    };
                    let _ = (client.set_nodelay(true), server.set_nodelay(true));
                    let (client_in, client_out) = client.into_split();
                    let (server_in, server_out) = server.into_split();
                    tokio::select! {
                        _ = pump(client_in, server_out, link.clone()) => {}
                        _ = pump(server_in, client_out, link) => {}
                    }
                });
            }
        });
        Ok(Self { port, open, acceptor })
    }

    pub fn cut(&self) {
        self.open.send_replace(false);
    }

    pub fn mend(&self) {
        self.open.send_replace(true);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

async fn pump(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut link: watch::Receiver<bool>,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(n) = from.read(&mut buffer).await {
        if n == 0 || link.wait_for(|open| *open).await.is_err() || to.write_all(&buffer[..n]).await.is_err() {
            return;
        }
    }
}
