//! What a node reports: positions, topics, statuses, released units, in this order.
//!
//! Invariants: every item counts only for the placement it names (node, incarnation, epoch) while
//! that is held; a stored position moves only to a newer epoch or a higher sequence; an item that is
//! refused is answered, never merged.

use thalweg_actors::sabotage::{Defect, active};

use super::{
    MAX_NAME, MAX_OFFSET, MAX_PARTITION, MAX_TOPICS, MAX_TRACE, NodeState, Offset, Phase, Placement, State, Status,
};
use crate::raft::command::{ItemRefusal, OffsetItem, Refusal, RefusedItem, Reply, StatusItem, TopicItem};
use crate::raft::unit::{NodeId, Unit};

/// Who reports: node and incarnation.
type Owner = (NodeId, u64);

impl State {
    pub(super) fn report(
        &mut self,
        index: u64,
        owner: Owner,
        offsets: &[OffsetItem],
        topics: &[TopicItem],
        statuses: &[StatusItem],
        released: &[(Unit, u64)],
    ) -> Result<Reply, Refusal> {
        let known = self.nodes.get(&owner.0).ok_or(Refusal::UnknownNode(owner.0))?;
        let ended = matches!(known.state, NodeState::Left { .. } | NodeState::Expired);
        if (known.incarnation != owner.1 || ended) && !active(Defect::NoFencing) {
            return Err(Refusal::StaleIncarnation { node: owner.0, current: known.incarnation });
        }
        let worker_id = known.about.worker_id.clone();
        let mut refused = Vec::new();
        for item in offsets {
            if let Err(why) = self.commit_offset(index, owner, item) {
                let partition = Some(item.partition.canonical.clone());
                refused.push(RefusedItem { unit: item.unit.clone(), epoch: item.epoch, partition, why });
            }
        }
        for item in topics {
            if let Err(why) = self.add_topic(item) {
                let unit = Unit::connector(item.connector.clone());
                refused.push(RefusedItem { unit, epoch: 0, partition: None, why });
            }
        }
        for item in statuses {
            if let Err(why) = self.put_status(index, owner, &worker_id, item) {
                refused.push(RefusedItem { unit: item.unit.clone(), epoch: item.epoch, partition: None, why });
            }
        }
        for (unit, epoch) in released {
            if let Err(why) = self.release(index, owner, unit, *epoch) {
                refused.push(RefusedItem { unit: unit.clone(), epoch: *epoch, partition: None, why });
            }
        }
        Ok(Reply::Reported { refused })
    }

    fn owned(&self, owner: Owner, unit: &Unit, epoch: u64) -> Result<&Placement, ItemRefusal> {
        let named = |p: &&Placement| (p.node, p.incarnation) == owner && p.epoch == epoch && p.is_held();
        self.placements.get(unit).filter(named).ok_or(ItemRefusal::StaleEpoch)
    }

    fn commit_offset(&mut self, index: u64, owner: Owner, item: &OffsetItem) -> Result<(), ItemRefusal> {
        if !active(Defect::NoFencing) {
            self.owned(owner, &item.unit, item.epoch)?;
        }
        let partition = &item.partition;
        if item.offset.len() > MAX_OFFSET
            || partition.canonical.len() > MAX_PARTITION
            || partition.original.len() > MAX_PARTITION
        {
            return Err(ItemRefusal::TooLarge);
        }
        let rows = &mut self.offsets.entry(item.unit.connector.clone()).or_default().rows;
        match rows.get_mut(&partition.canonical) {
            None => {
                let row = Offset {
                    partition: partition.original.clone(),
                    offset: item.offset.clone(),
                    epoch: item.epoch,
                    seq: item.seq,
                    revision: index,
                };
                rows.insert(partition.canonical.clone(), row);
            }
            Some(row) if row.epoch > item.epoch && !active(Defect::NoFencing) => return Err(ItemRefusal::StaleEpoch),
            Some(row) if row.epoch == item.epoch && row.seq > item.seq => return Err(ItemRefusal::OldSequence),
            // The same commit again, after an answer that got lost.
            Some(row) if row.epoch == item.epoch && row.seq == item.seq => {}
            Some(row) => {
                row.offset = item.offset.clone();
                row.epoch = item.epoch;
                row.seq = item.seq;
                row.revision = index;
            }
        }
        Ok(())
    }

    fn add_topic(&mut self, item: &TopicItem) -> Result<(), ItemRefusal> {
        if !self.connectors.contains_key(&item.connector) {
            // Deleted meanwhile; there is nothing to list any more.
            return Ok(());
        }
        let topics = self.topics.entry(item.connector.clone()).or_default();
        if item.topic.len() > MAX_NAME || (topics.len() >= MAX_TOPICS && !topics.contains(&item.topic)) {
            return Err(ItemRefusal::TooLarge);
        }
        topics.insert(item.topic.clone());
        Ok(())
    }

    fn put_status(&mut self, index: u64, owner: Owner, worker_id: &str, item: &StatusItem) -> Result<(), ItemRefusal> {
        let placement = self.owned(owner, &item.unit, item.epoch)?;
        let set = if item.unit.is_task() {
            self.connectors.get(&item.unit.connector).map_or(u64::MAX, |c| c.tasks_revision)
        } else {
            0
        };
        if !self.exists(&item.unit) || placement.tasks_revision != set {
            // A unit on its way out may drain, but has no row any more.
            return Ok(());
        }
        let status = Status {
            state: item.state,
            worker_id: worker_id.to_owned(),
            trace: item.trace.as_deref().map(|trace| cut(trace, MAX_TRACE).to_owned()),
            epoch: item.epoch,
            revision: index,
        };
        self.statuses.insert(item.unit.clone(), status);
        Ok(())
    }

    fn release(&mut self, index: u64, owner: Owner, unit: &Unit, epoch: u64) -> Result<(), ItemRefusal> {
        self.owned(owner, unit, epoch)?;
        if let Some(placement) = self.placements.get_mut(unit) {
            placement.phase = Phase::Released;
        }
        self.unassign_status(index, unit, epoch);
        self.drop_if_done(unit);
        Ok(())
    }
}

/// The longest prefix of at most `limit` bytes that ends at a character.
pub(crate) fn cut(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let end = (0..=limit).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
    &text[..end]
}
