//! What the Raft leader does beside leading: it grants leases, ends those of lost nodes, and
//! proposes what the planner wants.
//!
//! [`Leader`] is the memory of one term of office: pure, told the time. [`LeaderLoop`] is the seat
//! that exists on every node and is taken while this node leads; it knows which processes are gone
//! even while it does not lead.
//!
//! Invariants: nothing in here is needed for safety. A leader that is wrong, late or no longer the
//! leader proposes commands that the state machine refuses; a new one starts from the applied state
//! and takes all nodes for granted at the last moment at which a former leader can have granted (L5).
//!
//! It does not: confirm leadership (the caller of [`LeaderLoop::heartbeat`] has), or run units.

mod office;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

pub use office::{Gone, Leader, Office, Step};

use crate::lease::{Clock, Grant};
use crate::raft::{Command, Leadership, NodeId, ProposeError, Proposer, Reply, StateView};

/// Proposals of one plan on their way at a time; they share rounds of the log.
const IN_FLIGHT: usize = 64;
/// Pause after a proposal that failed.
const RETRY: Duration = Duration::from_millis(200);

pub struct LeaderLoop {
    office: Office,
    view: Arc<StateView>,
    proposer: Arc<dyn Proposer>,
    clock: Arc<dyn Clock>,
    seat: Mutex<Seat>,
    wake: Notify,
}

#[derive(Default)]
struct Seat {
    leader: Option<Leader>,
    /// Nodes whose process does not run.
    gone: BTreeMap<NodeId, Gone>,
}

/// What the leader knows beside the state, for `/cluster`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaderView {
    /// Time until a node's lease ends for the leader.
    pub leases: BTreeMap<NodeId, Duration>,
    /// Units that should run and do not.
    pub pending: usize,
    /// Time until the last running delay ends.
    pub delay: Option<Duration>,
}

impl LeaderLoop {
    pub fn new(office: Office, view: Arc<StateView>, proposer: Arc<dyn Proposer>, clock: Arc<dyn Clock>) -> Self {
        Self { office, view, proposer, clock, seat: Mutex::default(), wake: Notify::new() }
    }

    /// Answers a heartbeat. Call it on the leader, after a quorum round that began when the heartbeat
    /// had arrived, and after everything up to that round's index was applied here. `None`: this node
    /// has not taken its seat (yet).
    pub fn heartbeat(&self, node: NodeId, incarnation: u64, applied: u64) -> Option<Grant> {
        let now = self.clock.now();
        let mut seat = self.seat.lock();
        let leader = seat.leader.as_mut()?;
        let state = self.view.read();
        let was_ready = leader.is_ready(now, node, self.view.applied());
        let grant = leader.heartbeat(&state, now, node, incarnation, applied, self.view.applied());
        let is_ready = leader.is_ready(now, node, self.view.applied());
        drop(state);
        if was_ready != is_ready {
            self.wake.notify_one();
        }
        Some(grant)
    }

    /// The process of this node certainly does not run at its address.
    pub fn process_gone(&self, node: NodeId) {
        let Some(incarnation) = self.view.read().nodes.get(&node).map(|n| n.incarnation) else { return };
        self.seat.lock().gone.insert(node, Gone { incarnation, seen: self.clock.now() });
        self.wake.notify_one();
    }

    /// The node's address answers again.
    pub fn process_back(&self, node: NodeId) {
        self.seat.lock().gone.remove(&node);
    }

    /// Ends running delays and balances now. `false`: this node does not lead.
    pub fn rebalance_now(&self) -> bool {
        let mut seat = self.seat.lock();
        let Some(leader) = seat.leader.as_mut() else { return false };
        leader.hurry();
        self.wake.notify_one();
        true
    }

    /// `None`: this node does not lead.
    pub fn view(&self) -> Option<LeaderView> {
        let now = self.clock.now();
        self.seat.lock().leader.as_ref().map(|leader| leader.view(now))
    }

    /// Leads while `term` says so (`Some` = this node leads that term). Ends with the token.
    pub async fn run(&self, mut term: watch::Receiver<Option<Leadership>>, stop: CancellationToken) {
        let mut changes = self.view.changes();
        while !stop.is_cancelled() {
            let leads = *term.borrow_and_update();
            let Some(leadership) = leads else {
                if self.seat.lock().leader.take().is_some() {
                    tracing::info!("leader duties end");
                }
                tokio::select! {
                    () = stop.cancelled() => return,
                    changed = term.changed() => if changed.is_err() { return },
                }
                continue;
            };
            changes.mark_unchanged();
            let layout = self.view.read().layout;
            let step = self.step(leadership);
            let pause = if self.propose(step.commands, term.clone(), &stop).await { step.wake } else { RETRY };
            let due = tokio::time::Instant::now() + pause;
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    changed = term.changed() => if changed.is_err() { return } else { break },
                    () = self.wake.notified() => break,
                    // Reports come all the time; only changes of the layout ask for another plan.
                    _ = changes.changed() => if self.view.read().layout != layout { break },
                    () = tokio::time::sleep_until(due) => break,
                }
            }
        }
    }

    fn step(&self, leadership: Leadership) -> Step {
        let now = self.clock.now();
        let mut seat = self.seat.lock();
        let Seat { leader, gone } = &mut *seat;
        let state = self.view.read();
        if leader.as_ref().is_some_and(|l| l.term() != leadership.term) {
            *leader = None;
        }
        let leader = leader.get_or_insert_with(|| {
            tracing::info!(term = leadership.term, quiet = ?leadership.quiet, "leader duties begin");
            Leader::new(self.office, leadership, now, &state)
        });
        leader.step(&state, gone, self.view.applied(), now, self.clock.wall_ms())
    }

    /// Returns false if one could not be written. Gives up when the leader changes.
    async fn propose(
        &self,
        commands: Vec<Command>,
        mut term: watch::Receiver<Option<Leadership>>,
        stop: &CancellationToken,
    ) -> bool {
        if commands.is_empty() {
            return true;
        }
        let proposals = stream::iter(commands).map(|command| async {
            let kind = command.kind();
            (kind, self.proposer.propose(command).await)
        });
        let mut answers = proposals.buffer_unordered(IN_FLIGHT);
        let mut all_written = true;
        loop {
            let answer = tokio::select! {
                answer = answers.next() => answer,
                _ = term.changed() => return true,
                () = stop.cancelled() => return true,
            };
            match answer {
                None => return all_written,
                Some((kind, Ok(Reply::Refused(why)))) => {
                    tracing::debug!(command = kind, why = %why, "leader command was refused; planning again");
                }
                Some((_, Ok(_))) => {}
                Some((kind, Err(error))) => {
                    all_written = false;
                    if matches!(error, ProposeError::NoLeader) {
                        tracing::debug!(command = kind, "leader command found no leader");
                    } else {
                        tracing::warn!(command = kind, error = %error, "leader command was not written");
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
