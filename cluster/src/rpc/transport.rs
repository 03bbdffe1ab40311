//! What a node needs from its network, whatever carries it.
//!
//! Invariants: a call ends within its deadline; [`RpcError::is_unsent`] is true only if the other
//! side cannot have seen the request; a destination that names a node is never answered by another.
//!
//! It does not: retry. Who calls knows whether that is right.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bincode::{Decode, Encode};
use parking_lot::RwLock;

use super::admission::Refusal;
use super::message::{Request, Response};
use crate::raft::unit::NodeId;

/// Identity of a cluster, made once when the group forms.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub struct ClusterId(pub [u8; 16]);

impl ClusterId {
    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4().into_bytes())
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        uuid::Uuid::from_bytes(self.0).fmt(f)
    }
}

impl fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Who this process is. The cluster is unknown until the node has formed or joined one, and may
/// change until the node holds something of it.
#[derive(Debug)]
pub struct Local {
    pub node: NodeId,
    /// Rises with every start of the process.
    pub incarnation: u64,
    /// `host:port` under which other nodes reach this one.
    pub address: String,
    cluster: RwLock<Option<ClusterId>>,
    settled: AtomicBool,
}

impl Local {
    pub fn new(node: NodeId, incarnation: u64, address: impl Into<String>, cluster: Option<ClusterId>) -> Self {
        Self {
            node,
            incarnation,
            address: address.into(),
            cluster: RwLock::new(cluster),
            settled: AtomicBool::new(false),
        }
    }
    pub fn cluster(&self) -> Option<ClusterId> {
        *self.cluster.read()
    }
    /// The caller has made it durable, and resets its transport afterwards.
    pub fn set_cluster(&self, cluster: Option<ClusterId>) {
        *self.cluster.write() = cluster;
    }
    /// Whether this node holds a log or snapshot of its cluster.
    pub fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Relaxed)
    }
    pub fn settle(&self) {
        self.settled.store(true, Ordering::Relaxed);
    }
}

/// A connection of its own, so that bulk never delays a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub enum Lane {
    /// Votes, log, leases, membership, presence.
    Consensus,
    Snapshot,
    /// REST requests and proposals of other nodes.
    Forward,
}

/// Where to call.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Destination {
    /// The only node that may answer; `None` accepts whoever listens there.
    pub node: Option<NodeId>,
    pub address: Arc<str>,
}

impl Destination {
    pub fn node(node: NodeId, address: impl Into<Arc<str>>) -> Self {
        Self { node: Some(node), address: address.into() }
    }
    pub fn address(address: impl Into<Arc<str>>) -> Self {
        Self { node: None, address: address.into() }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node {
            Some(node) => write!(f, "node {node} at {}", self.address),
            None => f.write_str(&self.address),
        }
    }
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Who is asking, as admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub node: NodeId,
    pub incarnation: u64,
    pub address: String,
    pub cluster: Option<ClusterId>,
}

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RpcError {
    /// Nothing listens there: the process does not run.
    #[error("nothing listens at {0}")]
    Refused(Arc<str>),
    /// Somebody else listens there: the process that was meant does not.
    #[error("{address} is now node {found}, not node {wanted}")]
    NotThere { address: Arc<str>, wanted: NodeId, found: NodeId },
    #[error("{address} refuses this node: {refusal}")]
    Rejected { address: Arc<str>, refusal: Refusal },
    /// No connection; the process may or may not run.
    #[error("cannot connect to {address}: {why}")]
    Unreachable { address: Arc<str>, why: String },
    /// The connection ended while the answer was awaited.
    #[error("connection to {address} broke: {why}")]
    Broken { address: Arc<str>, why: String },
    /// The time is up.
    #[error("no answer from {address} within {after:?}")]
    Timeout { address: Arc<str>, after: Duration, sent: bool },
    #[error("a {what} of {length} bytes is larger than the limit of {limit} bytes")]
    TooLarge { what: &'static str, length: usize, limit: usize },
    #[error("{0}")]
    Codec(String),
    /// This node's transport has been shut down, or not started.
    #[error("this node is not serving")]
    Closed,
}

impl RpcError {
    /// Whether the other side cannot have seen the request.
    pub fn is_unsent(&self) -> bool {
        match self {
            Self::Refused(_)
            | Self::NotThere { .. }
            | Self::Rejected { .. }
            | Self::Unreachable { .. }
            | Self::TooLarge { .. }
            | Self::Codec(_)
            | Self::Closed => true,
            Self::Timeout { sent, .. } => !sent,
            Self::Broken { .. } => false,
        }
    }
    /// Whether it proves that the addressed process does not run at its address.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::NotThere { .. })
    }
}

/// Answers calls. Runs concurrently with itself; must not block.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    async fn handle(&self, caller: Caller, request: Request) -> Response;
}

#[async_trait]
pub trait Transport: Send + Sync + 'static {
    /// Starts to answer and to call as `local`. Once per transport.
    fn serve(&self, local: Arc<Local>, handler: Arc<dyn Handler>);

    async fn call(
        &self,
        to: &Destination,
        lane: Lane,
        request: Request,
        deadline: Duration,
    ) -> Result<Response, RpcError>;

    /// Drops the connections this node has made, so that the next ones introduce it anew.
    fn reset(&self);

    /// Stops answering and calling. Calls in flight fail.
    async fn shutdown(&self);
}
