//! How long a free unit stays free, and how long its new owner stays silent.
//!
//! Invariants: waiting for a node to come back is bounded by the delay on record, on whatever clock
//! (a leader whose wall clock is wrong counts what it has seen itself); a wait for an old owner's
//! last sends is counted from what this leader has seen, so it is never too short.

use std::time::Duration;

use super::board::Board;
use super::{Age, PlanInput};
use crate::raft::command::{Delivery, DrainMode};
use crate::raft::state::{Loss, NodeState, Phase, Placement};
use crate::raft::unit::{NodeId, Unit};

pub(super) enum Wait {
    /// Place it anywhere.
    No,
    /// Its node is back: give it back at once.
    Home(NodeId),
    /// A delay runs.
    Until(Duration),
    /// Until its node says what it does.
    Open,
}

pub(super) fn before_placing(input: &PlanInput<'_>, board: &Board, unit: &Unit, placement: Option<&Placement>) -> Wait {
    let Some(placement) = placement else { return Wait::No };
    // A unit of an earlier task set of the same number is another unit.
    if unit.is_task() && Some(placement.tasks_revision) != board.tasks_revision(&unit.connector) {
        return Wait::No;
    }
    let Some(home) = input.state.nodes.get(&placement.node) else { return Wait::No };
    let is_back = home.state == NodeState::Alive && home.incarnation != placement.incarnation;
    if is_back && board.is_candidate(placement.node) {
        return Wait::Home(placement.node);
    }
    if input.hurry {
        return Wait::No;
    }
    let seen = age(input, placement).free;
    let delay = match (placement.phase, home.state) {
        (Phase::Lost { since_ms, until_ms, .. }, _) => delay_left(input.now_ms, since_ms, until_ms, seen),
        (Phase::Released, NodeState::Left { since_ms, hold_until_ms }) => {
            delay_left(input.now_ms, since_ms, hold_until_ms, seen)
        }
        (Phase::Released, NodeState::Draining(DrainMode::Hold)) if home.incarnation == placement.incarnation => {
            return Wait::Open;
        }
        _ => Duration::ZERO,
    };
    let grace = if is_back { input.limits.home_grace.saturating_sub(seen) } else { Duration::ZERO };
    match delay.max(grace) {
        Duration::ZERO => Wait::No,
        left => Wait::Until(left),
    }
}

/// What a new owner has to know of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Silence {
    /// Before its first send.
    pub(super) wait: Duration,
    /// Until nothing of former owners can arrive, if the broker refuses none of it.
    pub(super) late_sends: Duration,
}

/// How long the new owner of `unit` has to wait before its first send.
///
/// In `fenced` mode the broker refuses the old owner of the *same* task as soon as the new one has
/// opened its producer, if both have transactional ones. That does not help against the old owner of
/// another task of an earlier set, whose partitions the new one may have got, nor if the new one is taken
/// back before it has opened: there the wait is the same as in `plain` mode. A wait that an owner was told
/// and did not live to see through is its successor's. A task that was placed in this set before, or in an
/// earlier one that had it unchanged, has the partitions that it had then: it waits for its own
/// predecessor only, and that one has waited for all others.
pub(super) fn before_sending(
    input: &PlanInput<'_>,
    unit: &Unit,
    present: Option<&Placement>,
    mode: Delivery,
) -> Silence {
    if !unit.is_task() {
        return Silence::default();
    }
    let revision = input.state.connectors.get(&unit.connector).map_or(0, |c| c.tasks_revision);
    if let Some(own) = present.filter(|p| p.tasks_revision == revision) {
        let is_refused = own.mode == Delivery::Fenced && mode == Delivery::Fenced;
        let late_sends = sends_end_in(input, own);
        return Silence { wait: if is_refused { told_left(input, own) } else { late_sends }, late_sends };
    }
    let rows = input.state.task_placements(&unit.connector);
    let waits = rows.map(|(_, placement)| {
        if placement.tasks_revision == revision {
            // What the rest of this set was told to wait for may no longer be on record.
            told_left(input, placement)
        } else {
            sends_end_in(input, placement)
        }
    });
    let wait = waits.max().unwrap_or_default();
    Silence { wait, late_sends: wait }
}

/// When nothing that the owner of a free placement, or one before it, has handed to the network can
/// arrive any more, whether the broker refuses it or not.
pub(super) fn sends_end_in(input: &PlanInput<'_>, placement: &Placement) -> Duration {
    let limits = input.limits;
    let own = match placement.phase {
        Phase::Lost { loss: Loss::LeaseEnded, .. } => limits.send_timeout,
        Phase::Lost { loss: Loss::Gone, .. } => limits.lease_ended + limits.send_timeout,
        Phase::Lost { loss: Loss::Restarted | Loss::Left, .. } => limits.socket_close,
        // It has flushed, or it is still there.
        Phase::Released | Phase::Assigned | Phase::Revoking => Duration::ZERO,
    };
    let late = Duration::from_millis(placement.late_sends_ms).saturating_sub(age(input, placement).known);
    own.saturating_sub(age(input, placement).free).max(late)
}

/// What is left of the wait that the placement was told.
fn told_left(input: &PlanInput<'_>, placement: &Placement) -> Duration {
    Duration::from_millis(placement.fence_wait_ms).saturating_sub(age(input, placement).known)
}

fn age(input: &PlanInput<'_>, placement: &Placement) -> Age {
    input.ages.get(&placement.epoch).copied().unwrap_or_default()
}

fn delay_left(now_ms: u64, since_ms: u64, until_ms: u64, seen: Duration) -> Duration {
    let by_wall = Duration::from_millis(until_ms.saturating_sub(now_ms));
    let by_sight = Duration::from_millis(until_ms.saturating_sub(since_ms)).saturating_sub(seen);
    by_wall.min(by_sight)
}
