//! One term of office of a leader.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::LeaderView;
use crate::lease::{BootInstant, Grant, LeaseTable, LeaseTerms};
use crate::plan::{Age, Limits, Plan, PlanInput, plan};
use crate::raft::command::{Command, CommandV1};
use crate::raft::state::{NodeState, Phase};
use crate::raft::{Leadership, NodeId, State};

/// Options of the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Office {
    pub terms: LeaseTerms,
    pub limits: Limits,
    /// `scheduled.rebalance.max.delay.ms`: how long units of a lost node wait for it.
    pub max_delay: Duration,
    /// `rebalance.timeout.ms`: how long an owner may take to release a revoked unit.
    pub revoke_timeout: Duration,
}

impl Default for Office {
    fn default() -> Self {
        Self {
            terms: LeaseTerms::default(),
            limits: Limits::default(),
            max_delay: Duration::ZERO,
            revoke_timeout: Duration::from_secs(60),
        }
    }
}

/// Heartbeats that a process had sent before its end may be read for this long after it.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// A process was seen not to run: when, and which incarnation of its node was current then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone {
    pub incarnation: u64,
    pub seen: BootInstant,
}

/// What to propose now, and when to look again if nothing happens.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    pub commands: Vec<Command>,
    pub wake: Duration,
}

/// When this leader first saw a placement, and the phases of it that time has an effect on.
#[derive(Debug, Clone, Copy)]
struct Sight {
    known: BootInstant,
    revoking: Option<BootInstant>,
    free: Option<BootInstant>,
}

#[derive(Debug)]
pub struct Leader {
    office: Office,
    term: u64,
    began: BootInstant,
    table: LeaseTable,
    /// By epoch.
    sights: BTreeMap<u64, Sight>,
    last_round: Option<BootInstant>,
    hurry: bool,
    pending: usize,
    delay: Option<Duration>,
}

impl Leader {
    /// `now` is not before the term began.
    pub fn new(office: Office, leadership: Leadership, now: BootInstant, state: &State) -> Self {
        let terms = office.terms;
        let mut table = LeaseTable::new(terms, now);
        // After a long time without a leader all leases have ended; their nodes get the chance to be
        // heard all the same.
        let quiet = terms.certain(leadership.quiet).min(terms.ended().saturating_sub(terms.heartbeat * 2));
        table.sync(now.minus(quiet), leasable(state));
        Self {
            office,
            term: leadership.term,
            began: now,
            table,
            sights: BTreeMap::new(),
            last_round: None,
            hurry: false,
            pending: 0,
            delay: None,
        }
    }

    pub fn term(&self) -> u64 {
        self.term
    }

    pub fn heartbeat(
        &mut self,
        state: &State,
        now: BootInstant,
        node: NodeId,
        incarnation: u64,
        applied: u64,
        leader_applied: u64,
    ) -> Grant {
        self.table.look(now);
        self.table.sync(now, leasable(state));
        match state.nodes.get(&node) {
            None => Grant::Unregistered,
            Some(_) => self.table.grant(now, node, incarnation, applied, leader_applied),
        }
    }

    pub fn is_ready(&self, now: BootInstant, node: NodeId, leader_applied: u64) -> bool {
        self.table.is_ready(now, node, leader_applied)
    }

    /// The next plan ends running delays and does not wait between rounds.
    pub fn hurry(&mut self) {
        self.hurry = true;
    }

    pub fn view(&self, now: BootInstant) -> LeaderView {
        let leases = self.table.nodes().filter_map(|n| Some((n, self.table.remaining(now, n)?))).collect();
        LeaderView { leases, pending: self.pending, delay: self.delay }
    }

    /// `gone`: nodes whose process does not run, by what was seen. `applied`: the leader's applied index.
    pub fn step(
        &mut self,
        state: &State,
        gone: &BTreeMap<NodeId, Gone>,
        applied: u64,
        now: BootInstant,
        wall_ms: u64,
    ) -> Step {
        self.table.look(now);
        self.table.sync(now, leasable(state));
        self.remember_phases(state, now);
        self.end_leases_of_the_stuck(state, now);
        let mut commands = self.expire(state, gone, now, wall_ms);
        // Ready nodes are known only after they had the chance to be heard: else the first one
        // would get everything.
        let settled = self.table.all_heard() || now.since(self.began) >= self.office.terms.heartbeat * 3 / 2;
        let mut wake = self.office.terms.heartbeat;
        if commands.is_empty() && settled {
            let plan = self.plan(state, applied, now, wall_ms);
            wake = wake.min(plan.wake.unwrap_or(wake));
            commands = plan.commands;
        }
        if let Some(expiry) = self.table.next_expiry(now) {
            wake = wake.min(expiry.since(now) + Duration::from_millis(1));
        }
        // A wake-up that is due already is answered by this step.
        Step { commands, wake: wake.max(Duration::from_millis(5)) }
    }

    fn plan(&mut self, state: &State, applied: u64, now: BootInstant, wall_ms: u64) -> Plan {
        let ready: BTreeSet<NodeId> =
            state.nodes.keys().copied().filter(|node| self.table.is_ready(now, *node, applied)).collect();
        let age = |sight: &Sight| Age {
            known: now.since(sight.known),
            free: sight.free.map_or(Duration::ZERO, |since| now.since(since)),
        };
        let ages = self.sights.iter().map(|(epoch, sight)| (*epoch, age(sight))).collect();
        let plan = plan(&PlanInput {
            state,
            ready: &ready,
            now_ms: wall_ms,
            ages: &ages,
            since_round: self.last_round.map(|at| now.since(at)),
            hurry: self.hurry,
            limits: &self.office.limits,
        });
        self.hurry = false;
        self.pending = plan.pending;
        self.delay = plan.delay;
        if plan.is_round {
            self.last_round = Some(now);
        }
        plan
    }

    /// Two ways: the lease has ended, or the process is known to be gone.
    fn expire(&mut self, state: &State, gone: &BTreeMap<NodeId, Gone>, now: BootInstant, wall_ms: u64) -> Vec<Command> {
        let ended = self.table.expired(now).into_iter().map(|(node, incarnation)| (node, incarnation, false));
        let speaks =
            |node: NodeId, gone: &Gone| self.table.heard(node).is_some_and(|heard| heard > gone.seen.plus(LAST_WORDS));
        let gone: Vec<_> = gone
            .iter()
            .filter(|(node, gone)| !speaks(**node, gone))
            .map(|(node, gone)| (*node, gone.incarnation, true))
            .collect();
        let mut expired = BTreeMap::new();
        // What is known to be gone need not wait for anything else.
        for (node, incarnation, is_gone) in gone.into_iter().chain(ended) {
            let current = leasable(state).any(|known| known == (node, incarnation));
            if current {
                expired.entry(node).or_insert((incarnation, is_gone));
            }
        }
        let delay_ms = millis(self.office.max_delay);
        expired
            .into_iter()
            .map(|(node, (incarnation, gone))| {
                self.table.end(node, incarnation);
                tracing::warn!(node, incarnation, gone, "node is lost; its units will be placed elsewhere");
                CommandV1::ExpireNode { node, incarnation, gone, now_ms: wall_ms, delay_ms }.into()
            })
            .collect()
    }

    /// An owner that does not release within the time gets no lease any more: it stops then, and
    /// its lease ends for the leader a moment later.
    fn end_leases_of_the_stuck(&mut self, state: &State, now: BootInstant) {
        for (unit, placement) in &state.placements {
            let since = self.sights.get(&placement.epoch).and_then(|sight| sight.revoking);
            if placement.phase == Phase::Revoking
                && since.is_some_and(|since| now.since(since) > self.office.revoke_timeout)
                && self.table.end(placement.node, placement.incarnation)
            {
                tracing::error!(
                    unit = %unit,
                    node = placement.node,
                    "a revoked unit was not released in time; the node gets no lease any more"
                );
            }
        }
    }

    fn remember_phases(&mut self, state: &State, now: BootInstant) {
        let mut sights = BTreeMap::new();
        for placement in state.placements.values() {
            let before = self.sights.get(&placement.epoch);
            let mut sight = before.copied().unwrap_or(Sight { known: now, revoking: None, free: None });
            match placement.phase {
                Phase::Assigned => {}
                Phase::Revoking => sight.revoking = sight.revoking.or(Some(now)),
                Phase::Released | Phase::Lost { .. } => sight.free = sight.free.or(Some(now)),
            }
            sights.insert(placement.epoch, sight);
        }
        self.sights = sights;
    }
}

/// Nodes that may hold a lease.
fn leasable(state: &State) -> impl Iterator<Item = (NodeId, u64)> {
    let may = |state: &NodeState| matches!(state, NodeState::Alive | NodeState::Draining(_));
    state.nodes.iter().filter(move |(_, n)| may(&n.state)).map(|(id, n)| (*id, n.incarnation))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
