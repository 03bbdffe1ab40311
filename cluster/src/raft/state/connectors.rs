//! Configurations, targets, task sets, restarts, and positions altered by hand.
//!
//! Invariants: a task whose configuration another set has at the same number goes on, with its placement,
//! status and restarts, as a part of that set; every other placement of the old set is taken back in the
//! same step; another configuration of the connector is another set in every part; a stopped connector has
//! no tasks; positions are altered only while nothing may commit.

use std::collections::{BTreeMap, BTreeSet};

use thalweg_config::Properties;

use super::{Connector, MAX_CONFIG, MAX_NAME, MAX_OFFSET, MAX_PARTITION, MAX_TASKS, Offset, Phase, State, check_size};
use crate::raft::command::{Expect, OffsetChange, Refusal, Reply, ReportedState, RestartScope, TargetState};
use crate::raft::unit::{Name, Unit};

impl State {
    pub(super) fn put_connector(
        &mut self,
        index: u64,
        name: &Name,
        config: &Properties,
        target: TargetState,
        expect: Expect,
    ) -> Result<Reply, Refusal> {
        check_name(name)?;
        check_size("connector configuration", size_of_config(config), MAX_CONFIG)?;
        match (self.connectors.get_mut(name), expect) {
            (Some(_), Expect::Absent) => Err(Refusal::AlreadyExists(name.clone())),
            (None, Expect::Revision(_)) => Err(Refusal::UnknownConnector(name.clone())),
            (Some(known), Expect::Revision(read)) if known.revision != read => {
                Err(Refusal::StaleRevision { name: name.clone(), current: known.revision })
            }
            (Some(known), _) => {
                known.config = config.clone();
                known.revision = index;
                Ok(Reply::ConnectorPut { created: false, revision: index })
            }
            (None, _) => {
                let created = Connector {
                    config: config.clone(),
                    revision: index,
                    target,
                    tasks: Vec::new(),
                    tasks_revision: 0,
                    tasks_from: 0,
                    restart: 0,
                    task_restarts: BTreeMap::new(),
                };
                self.connectors.insert(name.clone(), created);
                Ok(Reply::ConnectorPut { created: true, revision: index })
            }
        }
    }

    pub(super) fn delete_connector(&mut self, name: &Name) -> Result<Reply, Refusal> {
        self.connectors.remove(name).ok_or_else(|| Refusal::UnknownConnector(name.clone()))?;
        self.topics.remove(name);
        self.signals.remove(name);
        self.drop_histories(name);
        self.drop_statuses(Unit::connector(name.clone()), name);
        self.withdraw(&Unit::connector(name.clone()));
        self.revoke_tasks(name);
        Ok(Reply::Done)
    }

    pub(super) fn set_target(&mut self, index: u64, name: &Name, target: TargetState) -> Result<Reply, Refusal> {
        let connector = self.connector_mut(name)?;
        connector.target = target;
        if target == TargetState::Stopped && !connector.tasks.is_empty() {
            connector.tasks.clear();
            connector.tasks_revision = index;
            connector.tasks_from = 0;
            connector.task_restarts.clear();
            self.drop_statuses(Unit::task(name.clone(), 0), name);
            self.revoke_tasks(name);
            self.keep_confirmations(name, &BTreeSet::new());
        }
        Ok(Reply::Done)
    }

    pub(super) fn replace_tasks(
        &mut self,
        index: u64,
        name: &Name,
        epoch: u64,
        config_revision: u64,
        tasks: &[Properties],
    ) -> Result<Reply, Refusal> {
        let owner = Unit::connector(name.clone());
        let owned = self.placements.get(&owner).is_some_and(|p| p.epoch == epoch && p.phase == Phase::Assigned);
        let connector = self.connector_mut(name)?;
        if !owned {
            return Err(Refusal::StaleEpoch(owner));
        }
        if connector.revision != config_revision {
            return Err(Refusal::StaleRevision { name: name.clone(), current: connector.revision });
        }
        if connector.target == TargetState::Stopped {
            return Err(Refusal::NotStarted(name.clone()));
        }
        if tasks.len() > MAX_TASKS {
            return Err(Refusal::Invalid(format!("a connector can have {MAX_TASKS} tasks, not {}", tasks.len())));
        }
        check_size("the set of task configurations", tasks.iter().map(size_of_config).sum(), MAX_CONFIG)?;
        let same_config = connector.tasks_from == config_revision;
        if same_config && connector.tasks == tasks {
            return Ok(Reply::TasksReplaced { changed: false });
        }
        let pairs = (0u32..).zip(connector.tasks.iter().zip(tasks));
        let kept: BTreeSet<u32> = pairs.filter(|(_, (old, new))| same_config && old == new).map(|(n, _)| n).collect();
        let former = std::mem::replace(&mut connector.tasks_revision, index);
        connector.tasks = tasks.to_vec();
        connector.tasks_from = config_revision;
        connector.task_restarts.retain(|task, _| kept.contains(task));
        self.drop_statuses(Unit::task(name.clone(), u32::try_from(tasks.len()).unwrap_or(u32::MAX)), name);
        self.carry_over(name, &kept, (former, index));
        self.keep_confirmations(name, &kept);
        Ok(Reply::TasksReplaced { changed: true })
    }

    pub(super) fn restart(&mut self, index: u64, name: &Name, scope: RestartScope) -> Result<Reply, Refusal> {
        let connector = self.connectors.get(name).ok_or_else(|| Refusal::UnknownConnector(name.clone()))?;
        let count = connector.tasks.len() as u32;
        let candidates: Vec<Unit> = match scope {
            RestartScope::Task(task) if task >= count => return Err(Refusal::UnknownTask(name.clone(), task)),
            RestartScope::Task(task) => vec![Unit::task(name.clone(), task)],
            RestartScope::Connector { include_tasks, only_failed } => {
                let tasks = (0..if include_tasks { count } else { 0 }).map(|n| Unit::task(name.clone(), n));
                let failed = |unit: &Unit| self.statuses.get(unit).is_some_and(|s| s.state == ReportedState::Failed);
                std::iter::once(Unit::connector(name.clone()))
                    .chain(tasks)
                    .filter(|unit| !only_failed || failed(unit))
                    .collect()
            }
        };
        for unit in &candidates {
            if let Some(connector) = self.connectors.get_mut(name) {
                match unit.task {
                    None => connector.restart = index,
                    Some(task) => {
                        connector.task_restarts.insert(task, index);
                    }
                }
            }
            // Only an owner can report that the restart is over.
            let owned = self.placements.get(unit).filter(|p| p.phase == Phase::Assigned).map(|p| p.epoch);
            if let Some(status) = self.statuses.get_mut(unit)
                && owned == Some(status.epoch)
            {
                status.state = ReportedState::Restarting;
                status.trace = None;
                status.revision = index;
            }
        }
        Ok(Reply::Restarting { units: candidates })
    }

    pub(super) fn reset_topics(&mut self, name: &Name) -> Result<Reply, Refusal> {
        self.connector_mut(name)?;
        self.topics.remove(name);
        Ok(Reply::Done)
    }

    pub(super) fn alter_offsets(
        &mut self,
        index: u64,
        name: &Name,
        expect_revision: Option<u64>,
        change: &OffsetChange,
    ) -> Result<Reply, Refusal> {
        let connector = self.connector_mut(name)?;
        let stopped = connector.target == TargetState::Stopped && connector.tasks.is_empty();
        if !stopped || self.task_placements(name).any(|(_, p)| p.is_held()) {
            return Err(Refusal::NotStopped(name.clone()));
        }
        let current = self.offsets.get(name).map_or(0, |o| o.revision);
        if expect_revision.is_some_and(|read| read != current) {
            return Err(Refusal::StaleRevision { name: name.clone(), current });
        }
        if let OffsetChange::Set(rows) = change {
            for (partition, offset) in rows {
                let size = partition.canonical.len().max(partition.original.len());
                check_size("a partition", size, MAX_PARTITION)?;
                check_size("an offset", offset.as_ref().map_or(0, String::len), MAX_OFFSET)?;
            }
        }
        let offsets = self.offsets.entry(name.clone()).or_default();
        offsets.revision = index;
        match change {
            OffsetChange::RemoveAll => offsets.rows.clear(),
            OffsetChange::Set(rows) => {
                for (partition, offset) in rows {
                    let Some(offset) = offset else {
                        offsets.rows.remove(&partition.canonical);
                        continue;
                    };
                    // The order of members that is on record stays: exported keys compare by bytes.
                    let original = match offsets.rows.get(&partition.canonical) {
                        Some(known) => known.partition.clone(),
                        None => partition.original.clone(),
                    };
                    let row =
                        Offset { partition: original, offset: offset.clone(), epoch: index, seq: 0, revision: index };
                    offsets.rows.insert(partition.canonical.clone(), row);
                }
            }
        }
        Ok(Reply::OffsetsAltered { revision: index })
    }

    fn connector_mut(&mut self, name: &Name) -> Result<&mut Connector, Refusal> {
        self.connectors.get_mut(name).ok_or_else(|| Refusal::UnknownConnector(name.clone()))
    }

    /// Removes the statuses of `from` and of every later unit of the connector.
    fn drop_statuses(&mut self, from: Unit, name: &Name) {
        let gone: Vec<Unit> =
            self.statuses.range(from..=Unit::task(name.clone(), u32::MAX)).map(|(unit, _)| unit.clone()).collect();
        for unit in gone {
            self.statuses.remove(&unit);
        }
    }
}

fn check_name(name: &str) -> Result<(), Refusal> {
    check_size("connector name", name.len(), MAX_NAME)?;
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(Refusal::Invalid("a connector name has at least one character and no control characters".into()));
    }
    Ok(())
}

fn size_of_config(config: &Properties) -> usize {
    config.iter().map(|(k, v)| k.len() + v.len()).sum()
}
