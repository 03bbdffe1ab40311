//! A network inside one process, for simulated clusters.
//!
//! Requests and answers are encoded and decoded as on a wire, and callers are admitted by the same
//! rules as over TCP, so a simulated cluster exercises both.
//!
//! Invariants: a node that was killed refuses connections at once and breaks the calls it had
//! taken, as a process does whose sockets the kernel closes.
//!
//! It does not: lose or delay anything; wrap it in [`super::faulty`] for that.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::admission::{Callers, Hello, Refusal};
use super::frame::{self, Kind};
use super::message::{Failure, Request, Response};
use super::tcp::{codec, encode_request};
use super::transport::{Destination, Handler, Lane, Local, RpcError, Transport};
use crate::raft::unit::NodeId;

/// All addresses of a simulated network.
#[derive(Default)]
pub struct MemoryNetwork {
    nodes: Mutex<HashMap<Arc<str>, Arc<Listening>>>,
}

struct Listening {
    local: Arc<Local>,
    handler: Arc<dyn Handler>,
    callers: Mutex<Callers>,
    stop: CancellationToken,
}

/// Gives an admission back, also if the call is dropped.
struct Admitted {
    there: Arc<Listening>,
    node: NodeId,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.there.callers.lock().left(self.node);
    }
}

impl MemoryNetwork {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// A transport that will listen at `address` when it serves.
    pub fn transport(self: &Arc<Self>, address: impl Into<Arc<str>>) -> Arc<MemoryTransport> {
        Arc::new(MemoryTransport {
            network: self.clone(),
            address: address.into(),
            local: OnceLock::new(),
            stop: CancellationToken::new(),
        })
    }
}

pub struct MemoryTransport {
    network: Arc<MemoryNetwork>,
    address: Arc<str>,
    local: OnceLock<Arc<Local>>,
    stop: CancellationToken,
}

impl MemoryTransport {
    /// What `kill -9` does to the network side of a process.
    pub fn kill(&self) {
        self.stop.cancel();
        let mut nodes = self.network.nodes.lock();
        // The address may have a new owner already.
        if nodes.get(&self.address).is_some_and(|n| n.stop.is_cancelled()) {
            nodes.remove(&self.address);
        }
    }
}

#[async_trait]
impl Transport for MemoryTransport {
    fn serve(&self, local: Arc<Local>, handler: Arc<dyn Handler>) {
        if self.local.set(local.clone()).is_err() {
            tracing::error!("transport was started twice; the second start is ignored");
            return;
        }
        let listening = Listening { local, handler, callers: Mutex::default(), stop: self.stop.clone() };
        self.network.nodes.lock().insert(self.address.clone(), Arc::new(listening));
    }

    async fn call(
        &self,
        to: &Destination,
        lane: Lane,
        request: Request,
        deadline: Duration,
    ) -> Result<Response, RpcError> {
        let local = self.local.get().filter(|_| !self.stop.is_cancelled()).ok_or(RpcError::Closed)?;
        let there = self.network.nodes.lock().get(&to.address).cloned();
        let there = there.filter(|n| !n.stop.is_cancelled()).ok_or_else(|| RpcError::Refused(to.address.clone()))?;
        let hello = Hello::new(local, lane, to.node);
        let caller = there.callers.lock().admit(&there.local, &hello).map_err(|refusal| match refusal {
            Refusal::NotThisNode { wanted, found } => RpcError::NotThere { address: to.address.clone(), wanted, found },
            refusal => RpcError::Rejected { address: to.address.clone(), refusal },
        })?;
        let _admitted = Admitted { there: there.clone(), node: local.node };
        let sent = encode_request(0, &request)?;
        let answer = async {
            let body = frame::body(Kind::Request, &sent, frame::MAX_BODY + 8).map_err(codec)?;
            let response = match frame::decode_body::<Request>(Kind::Request, body.get(8..).unwrap_or_default()) {
                Ok(request) => there.handler.handle(caller, request).await,
                Err(_) => Response::Failed(Failure::NotUnderstood),
            };
            let sent = frame::encode(Kind::Response, &response, frame::MAX_BODY).map_err(codec)?;
            frame::decode(Kind::Response, &sent, frame::MAX_BODY).map_err(codec)
        };
        let broken = |why: &str| RpcError::Broken { address: to.address.clone(), why: why.to_owned() };
        let outcome = tokio::select! {
            answer = tokio::time::timeout(deadline, answer) => {
                answer.map_err(|_| RpcError::Timeout { address: to.address.clone(), after: deadline, sent: true })
            }
            () = there.stop.cancelled() => Err(broken("closed by the other side")),
            // This node has ended; the other one may go on with the request.
            () = self.stop.cancelled() => Err(broken("closed by this side")),
        };
        outcome?
    }

    fn reset(&self) {}

    async fn shutdown(&self) {
        self.kill();
    }
}
