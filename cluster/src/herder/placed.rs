//! From placements in the state to what the actors are to run.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use thalweg_actors::port::{Assignment, Epoch, Target, UnitId};
use thalweg_config::Properties;

use crate::raft::state::{Phase, Placement};
use crate::raft::{NodeId, State, Unit};

/// Everything that `incarnation` of `node` holds, in the order of units. `before` is the previous
/// answer: it keeps what was once told of an epoch (the wait before the first send; the
/// configuration of a unit that is on its way out).
pub fn assignments(
    state: &State,
    node: NodeId,
    incarnation: u64,
    before: &[Assignment],
    now: Instant,
) -> Vec<Assignment> {
    let before: HashMap<(&UnitId, Epoch), &Assignment> = before.iter().map(|a| ((&a.unit, a.epoch), a)).collect();
    state
        .placements
        .iter()
        .filter(|(_, p)| p.node == node && p.incarnation == incarnation && p.is_held())
        .map(|(unit, placement)| {
            let id = unit.id();
            let epoch = Epoch(placement.epoch);
            let known = before.get(&(&id, epoch)).copied();
            let send_after = match known {
                Some(known) => known.send_after,
                None if placement.fence_wait_ms == 0 => None,
                None => now.checked_add(Duration::from_millis(placement.fence_wait_ms)),
            };
            let wanted = wanted(state, unit, placement);
            let revoked = placement.phase == Phase::Revoking || wanted.is_none();
            let wanted = wanted.or_else(|| known.map(Wanted::of)).unwrap_or_default();
            Assignment {
                unit: id,
                epoch,
                target: wanted.target,
                config: wanted.config,
                config_revision: wanted.config_revision,
                restart: wanted.restart,
                revoked,
                send_after,
                mode: placement.mode.into(),
            }
        })
        .collect()
}

/// What the state says about a unit beside its placement.
struct Wanted {
    target: Target,
    config: Properties,
    config_revision: u64,
    restart: u64,
}

impl Wanted {
    fn of(known: &Assignment) -> Self {
        Self {
            target: known.target,
            config: known.config.clone(),
            config_revision: known.config_revision,
            restart: known.restart,
        }
    }
}

impl Default for Wanted {
    fn default() -> Self {
        Self { target: Target::Stopped, config: Properties::new(), config_revision: 0, restart: 0 }
    }
}

/// `None`: the unit has ended; only its placement has not.
fn wanted(state: &State, unit: &Unit, placement: &Placement) -> Option<Wanted> {
    let connector = state.connectors.get(&unit.connector)?;
    let target = connector.target.into();
    match unit.task {
        None => Some(Wanted {
            target,
            config: connector.config.clone(),
            config_revision: connector.revision,
            restart: connector.restart,
        }),
        Some(task) if placement.tasks_revision == connector.tasks_revision => Some(Wanted {
            target,
            config: connector.tasks.get(task as usize)?.clone(),
            config_revision: connector.tasks_from,
            restart: connector.task_restarts.get(&task).copied().unwrap_or(0),
        }),
        Some(_) => None,
    }
}
