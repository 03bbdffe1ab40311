//! A TCP proxy on the loopback address whose links can be cut and mended, per client process, and slowed.
//!
//! A cut link neither closes nor answers: bytes stay where they are and new connections are taken
//! without being forwarded, which is what a host behind a broken network looks like. The client
//! process of a connection is found through the kernel's socket tables, so clients need no change.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::ports::free_port;

/// Which links are cut, and how fast the others are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Cuts {
    all: bool,
    processes: BTreeSet<u32>,
    /// Bytes a second of each direction of each link; `None`: as fast as can be.
    rate: Option<NonZeroU32>,
}

impl Cuts {
    fn passes(&self, process: Option<u32>) -> bool {
        !self.all && process.is_none_or(|p| !self.processes.contains(&p))
    }
}

pub struct Proxy {
    pub port: u16,
    cuts: Arc<watch::Sender<Cuts>>,
    acceptor: JoinHandle<()>,
}

impl Proxy {
    /// Listens on a free port and forwards to `target` on the loopback address.
    pub async fn to(target: u16) -> Result<Self> {
        let port = free_port()?;
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let cuts = Arc::new(watch::Sender::new(Cuts::default()));
        let acceptor = tokio::spawn(accept(listener, port, target, cuts.clone()));
        Ok(Self { port, cuts, acceptor })
    }

    /// Cuts every link.
    pub fn cut(&self) {
        self.cuts.send_modify(|c| c.all = true);
    }

    /// Cuts the links of one client process, present and future ones.
    pub fn cut_process(&self, process: u32) {
        self.cuts.send_modify(|c| {
            c.processes.insert(process);
        });
    }

    /// From now on every link carries so many bytes a second in each direction; `None`: as many as it can.
    pub fn slow(&self, bytes_per_second: Option<NonZeroU32>) {
        self.cuts.send_modify(|c| c.rate = bytes_per_second);
    }

    /// Mends everything that is cut; slow links stay slow.
    pub fn mend(&self) {
        self.cuts.send_modify(|c| (c.all, c.processes) = (false, BTreeSet::new()));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

async fn accept(listener: TcpListener, port: u16, target: u16, cuts: Arc<watch::Sender<Cuts>>) {
    while let Ok((client, peer)) = listener.accept().await {
        tokio::spawn(forward(client, peer.port(), port, target, cuts.subscribe()));
    }
}

async fn forward(client: TcpStream, from: u16, port: u16, target: u16, mut cuts: watch::Receiver<Cuts>) {
    let process = tokio::task::spawn_blocking(move || owner(from, port)).await.ok().flatten();
    if cuts.wait_for(|c| c.passes(process)).await.is_err() {
        return;
    }
    let Ok(server) = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], target))).await else {
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    tokio::select! {
        () = pump(client_in, server_out, process, cuts.clone()) => {}
        () = pump(server_in, client_out, process, cuts) => {}
    }
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, process: Option<u32>, mut cuts: watch::Receiver<Cuts>) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(n) = from.read(&mut buffer).await {
        if n == 0 || cuts.wait_for(|c| c.passes(process)).await.is_err() || to.write_all(&buffer[..n]).await.is_err() {
            return;
        }
        let rate = cuts.borrow().rate;
        if let Some(rate) = rate {
            // The slowness of the link, which is what is wanted of it.
            tokio::time::sleep(Duration::from_secs_f64(n as f64 / f64::from(rate.get()))).await;
        }
    }
}

/// Process that owns the loopback connection from port `from` to port `to`.
fn owner(from: u16, to: u16) -> Option<u32> {
    let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
    let (local, remote) = (format!("0100007F:{from:04X}"), format!("0100007F:{to:04X}"));
    let inode = table.lines().find_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        (columns.get(1) == Some(&local.as_str()) && columns.get(2) == Some(&remote.as_str()))
            .then(|| columns.get(9).copied())
            .flatten()
    })?;
    let socket = format!("socket:[{inode}]");
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(descriptors) = std::fs::read_dir(entry.path().join("fd")) else {
            continue;
        };
        if descriptors.flatten().any(|d| std::fs::read_link(d.path()).is_ok_and(|l| l.as_os_str() == socket.as_str())) {
            return Some(process);
        }
    }
    None
}
