//! Who is there: one open question to every peer, so that the end of its process is news at once.
//!
//! A ping is answered only after [`HOLD`], so one is nearly always outstanding. When a process ends,
//! its connections break, the next ping finds a port that refuses (or another node behind it), and
//! the peer is [`PeerEvent::Gone`] within milliseconds. Silence is something else: the peer is
//! [`PeerEvent::Unreachable`] and may well be running.
//!
//! Invariants: `Gone` is reported only on evidence that the process does not run at its address;
//! between two events of a peer its state is what the last one said; every peer starts unknown.
//!
//! It does not: decide what follows from it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::message::{Request, Response};
use super::transport::{Destination, Lane, RpcError, Transport};
use crate::raft::unit::NodeId;

/// How long a peer holds back the answer to a ping.
const HOLD: Duration = Duration::from_millis(500);
/// How long an answer may be late before the peer counts as unreachable.
const PATIENCE: Duration = Duration::from_millis(1000);
/// Between tries to reach a peer that is not there: soon at first, since a process that ends may
/// close its connections before its port.
const RETRY: [Duration; 4] =
    [Duration::from_millis(20), Duration::from_millis(50), Duration::from_millis(100), Duration::from_millis(250)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerEvent {
    /// The process does not run: its port refuses, or belongs to another node.
    Gone { node: NodeId },
    /// No contact; the process may run.
    Unreachable { node: NodeId },
    /// Answers (again), as this start of its process.
    Back { node: NodeId, incarnation: u64 },
}

impl PeerEvent {
    pub fn node(&self) -> NodeId {
        match self {
            Self::Gone { node } | Self::Unreachable { node } | Self::Back { node, .. } => *node,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Unknown,
    There { incarnation: u64 },
    Unreachable,
    Gone,
}

/// Watches a changing set of peers. Ends with its last clone of the owner, or with the token.
pub struct Presence {
    transport: Arc<dyn Transport>,
    events: broadcast::Sender<PeerEvent>,
    peers: Mutex<BTreeMap<NodeId, Watched>>,
    stop: CancellationToken,
}

struct Watched {
    to: Destination,
    seen: Arc<Mutex<Seen>>,
    stop: CancellationToken,
}

impl Presence {
    pub fn new(transport: Arc<dyn Transport>, stop: CancellationToken) -> Self {
        // A receiver that falls behind by this many events sees the state through `is_gone` and friends.
        let (events, _) = broadcast::channel(256);
        Self { transport, events, peers: Mutex::default(), stop }
    }

    /// Events from now on. A receiver that lags misses events, not state.
    pub fn events(&self) -> broadcast::Receiver<PeerEvent> {
        self.events.subscribe()
    }

    /// Replaces the set of watched peers; those that stay are not disturbed.
    pub fn watch(&self, wanted: impl IntoIterator<Item = Destination>) {
        let wanted: BTreeMap<NodeId, Destination> =
            wanted.into_iter().filter_map(|to| to.node.map(|node| (node, to))).collect();
        let mut peers = self.peers.lock();
        peers.retain(|node, watched| {
            let stays = wanted.get(node) == Some(&watched.to);
            if !stays {
                watched.stop.cancel();
            }
            stays
        });
        for (node, to) in wanted {
            peers.entry(node).or_insert_with(|| {
                let watched = Watched {
                    to: to.clone(),
                    seen: Arc::new(Mutex::new(Seen::Unknown)),
                    stop: self.stop.child_token(),
                };
                let watch = watch(self.transport.clone(), to, node, watched.seen.clone(), self.events.clone());
                let stop = watched.stop.clone();
                tokio::spawn(async move { stop.run_until_cancelled(watch).await });
                watched
            });
        }
    }

    pub fn is_gone(&self, node: NodeId) -> bool {
        self.seen(node) == Seen::Gone
    }

    /// Whether the peer answers at present.
    pub fn is_there(&self, node: NodeId) -> bool {
        matches!(self.seen(node), Seen::There { .. })
    }

    /// Whether the last question was not answered. A peer that was not asked yet is not away.
    pub fn is_away(&self, node: NodeId) -> bool {
        matches!(self.seen(node), Seen::Gone | Seen::Unreachable)
    }

    /// The start of the peer's process that answers at present.
    pub fn incarnation(&self, node: NodeId) -> Option<u64> {
        match self.seen(node) {
            Seen::There { incarnation } => Some(incarnation),
            _ => None,
        }
    }

    /// Looks once, now: whether the process at `to` does certainly not run.
    pub async fn ask_whether_gone(&self, to: &Destination, deadline: Duration) -> bool {
        let ping = Request::Ping { hold_ms: 0 };
        matches!(self.transport.call(to, Lane::Consensus, ping, deadline).await, Err(e) if e.is_gone())
    }

    fn seen(&self, node: NodeId) -> Seen {
        self.peers.lock().get(&node).map_or(Seen::Unknown, |watched| *watched.seen.lock())
    }
}

async fn watch(
    transport: Arc<dyn Transport>,
    to: Destination,
    node: NodeId,
    seen: Arc<Mutex<Seen>>,
    events: broadcast::Sender<PeerEvent>,
) {
    let mut hold = Duration::ZERO;
    let mut tries = 0;
    loop {
        let ping = Request::Ping { hold_ms: hold.as_millis() as u32 };
        let answer = transport.call(&to, Lane::Consensus, ping, hold + PATIENCE).await;
        let (now, pause) = match answer {
            Ok(Response::Pong { incarnation }) => {
                hold = HOLD;
                tries = 0;
                (Seen::There { incarnation }, Duration::ZERO)
            }
            // Broken tells nothing yet: the next ping does, at once.
            Err(RpcError::Broken { .. }) if hold > Duration::ZERO => {
                hold = Duration::ZERO;
                continue;
            }
            Err(RpcError::Closed) => return,
            other => {
                let pause = RETRY[tries.min(RETRY.len() - 1)];
                tries += 1;
                (if other.is_err_and(|e| e.is_gone()) { Seen::Gone } else { Seen::Unreachable }, pause)
            }
        };
        if !matches!(now, Seen::There { .. }) {
            hold = Duration::ZERO;
        }
        let before = std::mem::replace(&mut *seen.lock(), now);
        if before != now {
            tracing::info!(peer = node, address = %to.address, state = ?now, "peer changed");
            let event = match now {
                Seen::There { incarnation } => PeerEvent::Back { node, incarnation },
                Seen::Gone => PeerEvent::Gone { node },
                Seen::Unreachable | Seen::Unknown => PeerEvent::Unreachable { node },
            };
            // No receiver is no error: the state can be asked.
            let _ = events.send(event);
        }
        tokio::time::sleep(pause).await;
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        for watched in self.peers.lock().values() {
            watched.stop.cancel();
        }
    }
}
