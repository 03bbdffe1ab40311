//! What this node is: its registration, and what the applied state wants it to run.
//!
//! Invariants: the applied state is the only trigger; the actors see only placements of the present
//! incarnation; an incarnation that has expired is left for good before the node registers a new one.
//! A lost lease does not empty the list: the actors stop by themselves ([`LeaseGuard`]), and go on
//! with the same placements when it comes back.
//!
//! Files: `placed` turns placements into what the actors understand; `standing` says what the state
//! makes of this process.
//!
//! It does not: start or stop anything itself (the actors follow the list), or decide placements.

mod placed;
mod standing;

use std::sync::Arc;
use std::time::Duration;

use thalweg_actors::port::Assignment;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use placed::assignments;
pub use standing::Standing;

use crate::commit::Coalescer;
use crate::lease::{Clock, LeaseGuard};
use crate::raft::command::{CommandV1, DrainMode, NodeAbout, Refusal};
use crate::raft::{NodeId, ProposeError, Proposer, Reply, StateView};

/// Pause between tries to register.
const RETRY: Duration = Duration::from_millis(250);

/// Who this process is.
#[derive(Debug, Clone)]
pub struct Identity {
    pub node: NodeId,
    pub about: NodeAbout,
    /// `scheduled.rebalance.max.delay.ms`.
    pub max_delay: Duration,
    /// How long a node waits for an earlier process of the same id, last seen at another address, to be
    /// taken for lost: longer than a lease that a new leader grants.
    pub patience: Duration,
}

/// Why the herder ended although nobody told it to. The process has to end.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HerderError {
    #[error(
        "another process registered as node {0}; two processes may not share a node id: give this one a data directory \
         of its own"
    )]
    Superseded(NodeId),
    #[error(
        "thalweg.node.id={node} is in use: node {node} is running at {address}; every node needs an id of its own, \
         change the one of this process ({mine})"
    )]
    IdInUse { node: NodeId, address: String, mine: String },
    #[error("node {0} was removed from the cluster; delete its data directory to let it join as a new one")]
    Removed(NodeId),
    #[error("node {node} cannot register: {why}")]
    Refused { node: NodeId, why: String },
}

pub struct Herder {
    identity: Identity,
    view: Arc<StateView>,
    proposer: Arc<dyn Proposer>,
    guard: Arc<LeaseGuard>,
    clock: Arc<dyn Clock>,
    incarnation: watch::Sender<Option<u64>>,
    placed: watch::Sender<Arc<Vec<Assignment>>>,
    /// Turns that were asked for, and how many of them are over.
    asked: watch::Sender<u64>,
    taken: watch::Sender<u64>,
}

impl Herder {
    pub fn new(
        identity: Identity,
        view: Arc<StateView>,
        proposer: Arc<dyn Proposer>,
        guard: Arc<LeaseGuard>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            identity,
            view,
            proposer,
            guard,
            clock,
            incarnation: watch::Sender::new(None),
            placed: watch::Sender::new(Arc::default()),
            asked: watch::Sender::new(0),
            taken: watch::Sender::new(0),
        }
    }

    /// The registered incarnation; `None` before and between.
    pub fn incarnation(&self) -> watch::Receiver<Option<u64>> {
        self.incarnation.subscribe()
    }

    /// What this node is to run, given the lease. Sent when the layout of the cluster has changed.
    pub fn placed(&self) -> watch::Receiver<Arc<Vec<Assignment>>> {
        self.placed.subscribe()
    }

    /// Resolves when [`Herder::run`] has looked at the state once more.
    pub async fn turn(&self) {
        let mut asked = 0;
        self.asked.send_modify(|count| {
            *count += 1;
            asked = *count;
        });
        // The sender lives as long as `self`.
        let _ = self.taken.subscribe().wait_for(|taken| *taken >= asked).await;
    }

    /// Registers and follows the state until the token ends it, or the node has left.
    pub async fn run(&self, reports: &Coalescer, stop: CancellationToken) -> Result<(), HerderError> {
        let ended = stop.run_until_cancelled(self.follow(reports)).await;
        self.leave_incarnation();
        ended.unwrap_or(Ok(()))
    }

    async fn follow(&self, reports: &Coalescer) -> Result<(), HerderError> {
        let mut changes = self.view.changes();
        let mut asked = self.asked.subscribe();
        loop {
            let boot = *uuid::Uuid::new_v4().as_bytes();
            let incarnation = self.register(boot).await?;
            let mut shown: Option<u64> = None;
            loop {
                changes.mark_unchanged();
                let turn = *asked.borrow_and_update();
                // Before the state is read: what was applied then is certainly in it.
                let applied = self.view.applied() >= incarnation;
                let (standing, layout) = {
                    let state = self.view.read();
                    (Standing::of(&state, self.identity.node, boot), state.layout)
                };
                match standing {
                    // The registration is applied on the leader before it is here.
                    Standing::Unknown | Standing::Other if !applied => {}
                    Standing::Unknown => return Err(HerderError::Removed(self.identity.node)),
                    Standing::Other => return Err(HerderError::Superseded(self.identity.node)),
                    Standing::Left => return Ok(()),
                    Standing::Expired => break,
                    Standing::Current => {
                        if shown.is_none() {
                            self.guard.begin(incarnation);
                            self.incarnation.send_replace(Some(incarnation));
                        }
                        if shown != Some(layout) {
                            self.show(incarnation, reports);
                            shown = Some(layout);
                        }
                    }
                }
                self.taken.send_replace(turn);
                // The view and the senders live as long as `self`.
                tokio::select! {
                    _ = changes.changed() => {}
                    _ = asked.changed() => {}
                }
            }
            tracing::warn!(node = self.identity.node, incarnation, "this incarnation was expired; registering anew");
            self.leave_incarnation();
        }
    }

    fn show(&self, incarnation: u64, reports: &Coalescer) {
        let before = self.placed.borrow().clone();
        let now = std::time::Instant::now();
        let placed = assignments(&self.view.read(), self.identity.node, incarnation, &before, now);
        reports.placed(&placed);
        if placed != *before {
            tracing::debug!(units = placed.len(), "placements of this node");
            self.placed.send_replace(Arc::new(placed));
        }
    }

    fn leave_incarnation(&self) {
        self.incarnation.send_replace(None);
        self.guard.drop_lease();
        self.placed.send_replace(Arc::default());
    }

    async fn register(&self, boot: [u8; 16]) -> Result<u64, HerderError> {
        let node = self.identity.node;
        let mut in_use_since: Option<Instant> = None;
        loop {
            let command = CommandV1::RegisterNode {
                node,
                boot,
                about: self.identity.about.clone(),
                now_ms: self.clock.wall_ms(),
                delay_ms: millis(self.identity.max_delay),
            };
            match self.proposer.propose(command.into()).await {
                Ok(Reply::NodeRegistered { incarnation }) => {
                    tracing::info!(node, incarnation, "node registered");
                    return Ok(incarnation);
                }
                Ok(Reply::Refused(why @ (Refusal::FeatureLevel { .. } | Refusal::TooLarge { .. }))) => {
                    return Err(HerderError::Refused { node, why: why.to_string() });
                }
                Ok(Reply::Refused(Refusal::NodeIdInUse { address, .. })) => {
                    if in_use_since.get_or_insert_with(Instant::now).elapsed() >= self.identity.patience {
                        let mine = self.identity.about.rpc_address.clone();
                        return Err(HerderError::IdInUse { node, address, mine });
                    }
                    tracing::warn!(node, address, "another process has this node id; waiting for the end of its lease");
                }
                Ok(Reply::Refused(why)) => {
                    tracing::warn!(node, %why, "registration was refused; trying again");
                }
                Ok(other) => tracing::warn!(node, reply = ?other, "registration was answered strangely; trying again"),
                // Under a new leader the lease may last longer; the count begins anew.
                Err(ProposeError::NoLeader) => {
                    in_use_since = None;
                    tracing::debug!(node, "no leader to register with; trying again");
                }
                Err(error) => {
                    in_use_since = None;
                    tracing::warn!(node, error = %error, "registration failed; trying again");
                }
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Leaves in order: gives everything up, waits until it is released (at most `deadline`), says
    /// goodbye. Units wait `hold` for this node in [`DrainMode::Hold`]. Keep [`Herder::run`], the
    /// reports and the actors going meanwhile. `Err`: the goodbye was not written; the others find out
    /// by themselves.
    pub async fn leave(&self, mode: DrainMode, hold: Duration, deadline: Duration) -> Result<(), ProposeError> {
        let node = self.identity.node;
        let Some(incarnation) = *self.incarnation.borrow() else { return Ok(()) };
        let deadline = Instant::now() + deadline;
        let drained = tokio::time::timeout_at(deadline, self.drain(mode, incarnation)).await;
        if drained.is_err() {
            tracing::warn!(node, "not everything was handed over in time");
        }
        let hold_ms = if mode == DrainMode::Hold { millis(hold) } else { 0 };
        let farewell = CommandV1::NodeLeft { node, incarnation, now_ms: self.clock.wall_ms(), hold_ms };
        // What has not stopped by now stops here: nothing may be sent after the goodbye.
        self.guard.drop_lease();
        self.proposer.propose(farewell.into()).await.map(|_| ())
    }

    async fn drain(&self, mode: DrainMode, incarnation: u64) {
        let node = self.identity.node;
        while let Err(error) = self.proposer.propose(CommandV1::DrainNode { node, mode }.into()).await {
            tracing::warn!(node, error = %error, "drain was not written; trying again");
            tokio::time::sleep(RETRY).await;
        }
        let mut changes = self.view.changes();
        loop {
            changes.mark_unchanged();
            let held = self
                .view
                .read()
                .placements
                .values()
                .any(|p| p.node == node && p.incarnation == incarnation && p.is_held());
            if !held || changes.changed().await.is_err() {
                return;
            }
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
