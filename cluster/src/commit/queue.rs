//! What waits to be reported, and what is on its way. Pure; one lock around it.
//!
//! Invariants: at most one waiting position per unit and partition, the newest; positions leave in
//! the order in which their partition first waited, so none starves; a unit's release leaves behind
//! its last position.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use thalweg_actors::port::{OffsetCommit, UnitStatus};

use crate::raft::command::{
    Command, CommandV1, ItemRefusal, OffsetItem, PartitionText, RefusedItem, StatusItem, TopicItem,
};
use crate::raft::state::{MAX_OFFSET, MAX_TRACE, cut};
use crate::raft::{Name, NodeId, Unit};

/// Unit and canonical partition.
type Key = (Unit, Arc<str>);

/// Bytes of an item beside its texts, roughly.
const ITEM: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Queue {
    offsets: BTreeMap<Key, OffsetCommit>,
    order: VecDeque<Key>,
    statuses: BTreeMap<Unit, StatusItem>,
    topics: BTreeSet<(Name, Name)>,
    released: BTreeMap<Unit, u64>,
    /// Positions on their way, per unit.
    on_the_way: BTreeMap<Unit, usize>,
    ended: BTreeMap<Unit, Ended>,
    /// Units that are being taken back.
    leaving: BTreeSet<Unit>,
    /// Epoch in which a partition has reported before.
    begun: BTreeMap<Key, u64>,
}

/// Why nothing of this epoch is written any more.
#[derive(Debug)]
struct Ended {
    epoch: u64,
    /// `None` = fenced.
    failure: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Settled,
    Waiting { leaving: bool },
    Fenced(u64),
    Failed(String),
}

/// What goes out in one entry.
#[derive(Debug, Default)]
pub(super) struct Batch {
    commits: Vec<OffsetCommit>,
    offsets: Vec<OffsetItem>,
    topics: Vec<TopicItem>,
    statuses: Vec<StatusItem>,
    released: Vec<(Unit, u64)>,
}

impl Batch {
    pub(super) fn command(&self, node: NodeId, incarnation: u64) -> Command {
        CommandV1::Report {
            node,
            incarnation,
            offsets: self.offsets.clone(),
            topics: self.topics.clone(),
            statuses: self.statuses.clone(),
            released: self.released.clone(),
        }
        .into()
    }

    fn is_empty(&self) -> bool {
        self.offsets.is_empty() && self.topics.is_empty() && self.statuses.is_empty() && self.released.is_empty()
    }
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty() && self.statuses.is_empty() && self.topics.is_empty() && self.released.is_empty()
    }

    /// `None`: it is not taken. Otherwise whether it is the first position of its epoch: nothing of the
    /// partition is sent before it is stored, so it does not wait for company.
    pub(super) fn commit(&mut self, commit: OffsetCommit) -> Option<bool> {
        let unit = Unit::from(&commit.unit);
        if !self.accepts(&unit, commit.epoch.0) {
            return None;
        }
        let key = (unit, commit.partition.canonical().clone());
        let first = self.begun.insert(key.clone(), commit.epoch.0) != Some(commit.epoch.0);
        match self.offsets.get_mut(&key) {
            Some(waiting) => {
                if (commit.epoch, commit.seq) > (waiting.epoch, waiting.seq) {
                    *waiting = commit;
                }
            }
            None => {
                self.order.push_back(key.clone());
                self.offsets.insert(key, commit);
            }
        }
        Some(first)
    }

    /// These return whether something (new) waits.
    pub(super) fn status(&mut self, unit: Unit, epoch: u64, status: UnitStatus) -> bool {
        if !self.accepts(&unit, epoch) || self.statuses.get(&unit).is_some_and(|waiting| waiting.epoch > epoch) {
            return false;
        }
        let trace = status.trace.map(|trace| cut(&trace, MAX_TRACE).to_owned());
        let item = StatusItem { unit: unit.clone(), epoch, state: status.state.into(), trace };
        self.statuses.insert(unit, item);
        true
    }

    pub(super) fn topic(&mut self, connector: &Name, topic: &Name) -> bool {
        self.topics.insert((connector.clone(), topic.clone()))
    }

    pub(super) fn released(&mut self, unit: Unit, epoch: u64) -> bool {
        self.accepts(&unit, epoch) && self.released.insert(unit, epoch).is_none_or(|before| before <= epoch)
    }

    pub(super) fn standing(&self, unit: &Unit) -> Standing {
        match self.ended.get(unit) {
            Some(Ended { failure: Some(why), .. }) => return Standing::Failed(why.clone()),
            Some(Ended { epoch, failure: None }) => return Standing::Fenced(*epoch),
            None => {}
        }
        if self.on_the_way.contains_key(unit) || self.waits(unit) {
            return Standing::Waiting { leaving: self.leaving.contains(unit) };
        }
        Standing::Settled
    }

    /// The next batch of about `limit` bytes; an item that alone is larger goes alone.
    pub(super) fn take(&mut self, limit: usize) -> Option<Batch> {
        let mut batch = Batch::default();
        let mut bytes = 0;
        while let Some(key) = self.order.pop_front() {
            let Some(commit) = self.offsets.remove(&key) else { continue };
            let item = encode(&commit, &key.0);
            let size = ITEM + item.offset.len() + item.partition.canonical.len() + item.partition.original.len();
            if item.offset.len() > MAX_OFFSET {
                let why = format!(
                    "the position of {} in partition {} has {} bytes, more than the limit of {MAX_OFFSET}",
                    key.0,
                    item.partition.original,
                    item.offset.len()
                );
                self.end(&key.0, item.epoch, Some(why));
                continue;
            }
            if bytes + size > limit && !batch.offsets.is_empty() {
                self.offsets.insert(key.clone(), commit);
                self.order.push_front(key);
                bytes = limit;
                break;
            }
            bytes += size;
            *self.on_the_way.entry(key.0).or_default() += 1;
            batch.commits.push(commit);
            batch.offsets.push(item);
        }
        while bytes < limit
            && let Some((connector, topic)) = self.topics.pop_first()
        {
            bytes += ITEM + connector.len() + topic.len();
            batch.topics.push(TopicItem { connector, topic });
        }
        while bytes < limit
            && let Some((_, status)) = self.statuses.pop_first()
        {
            bytes += ITEM + status.trace.as_ref().map_or(0, String::len);
            batch.statuses.push(status);
        }
        let free: Vec<Unit> = self.released.keys().filter(|unit| !self.waits(unit)).cloned().collect();
        for unit in free {
            if bytes >= limit {
                break;
            }
            bytes += ITEM;
            batch.released.extend(self.released.remove_entry(&unit));
        }
        (!batch.is_empty()).then_some(batch)
    }

    pub(super) fn applied(&mut self, batch: Batch, refused: &[RefusedItem]) {
        self.arrived(&batch);
        for item in refused {
            match item.why {
                ItemRefusal::StaleEpoch => self.end(&item.unit, item.epoch, None),
                ItemRefusal::TooLarge if item.partition.is_some() => {
                    let why = format!("a position of {} is larger than the cluster stores", item.unit);
                    self.end(&item.unit, item.epoch, Some(why));
                }
                // A newer one is stored; or it is a topic too many, which has been logged.
                ItemRefusal::OldSequence | ItemRefusal::TooLarge => {}
            }
        }
    }

    /// The whole report was refused: this incarnation has ended.
    pub(super) fn fenced(&mut self, batch: Batch) {
        self.arrived(&batch);
        self.end_all(&batch, None);
    }

    pub(super) fn failed(&mut self, batch: Batch, why: &str) {
        self.arrived(&batch);
        self.end_all(&batch, Some(why));
    }

    /// Not written, or nobody knows: it waits again unless something newer does.
    pub(super) fn put_back(&mut self, batch: Batch) {
        self.arrived(&batch);
        for commit in batch.commits {
            self.commit(commit);
        }
        for topic in batch.topics {
            self.topics.insert((topic.connector, topic.topic));
        }
        for status in batch.statuses {
            self.statuses.entry(status.unit.clone()).or_insert(status);
        }
        for (unit, epoch) in batch.released {
            let newest = self.released.entry(unit).or_insert(epoch);
            *newest = epoch.max(*newest);
        }
    }

    /// `units`: what is placed here, with its epoch and whether it is being taken back. Returns
    /// whether something of the latter waits.
    pub(super) fn placed(&mut self, units: &BTreeMap<Unit, (u64, bool)>) -> bool {
        self.ended.retain(|unit, ended| units.get(unit).is_some_and(|(epoch, _)| *epoch == ended.epoch));
        self.begun.retain(|(unit, _), _| units.contains_key(unit));
        self.leaving = units.iter().filter(|(_, (_, revoked))| *revoked).map(|(unit, _)| unit.clone()).collect();
        self.leaving.iter().any(|unit| self.waits(unit))
    }

    fn accepts(&mut self, unit: &Unit, epoch: u64) -> bool {
        match self.ended.get(unit) {
            Some(ended) if ended.epoch >= epoch => false,
            Some(_) => {
                self.ended.remove(unit);
                true
            }
            None => true,
        }
    }

    fn waits(&self, unit: &Unit) -> bool {
        let first = (unit.clone(), Arc::from(""));
        self.offsets.range(first..).next().is_some_and(|((waiting, _), _)| waiting == unit)
    }

    fn arrived(&mut self, batch: &Batch) {
        for item in &batch.offsets {
            if let Some(count) = self.on_the_way.get_mut(&item.unit) {
                *count -= 1;
                if *count == 0 {
                    self.on_the_way.remove(&item.unit);
                }
            }
        }
    }

    fn end_all(&mut self, batch: &Batch, failure: Option<&str>) {
        let offsets = batch.offsets.iter().map(|i| (&i.unit, i.epoch));
        let statuses = batch.statuses.iter().map(|i| (&i.unit, i.epoch));
        let released = batch.released.iter().map(|(unit, epoch)| (unit, *epoch));
        for (unit, epoch) in offsets.chain(statuses).chain(released) {
            self.end(unit, epoch, failure.map(str::to_owned));
        }
    }

    /// Nothing of this epoch is written any more; what waits of it goes.
    fn end(&mut self, unit: &Unit, epoch: u64, failure: Option<String>) {
        if self.ended.get(unit).is_some_and(|ended| ended.epoch > epoch) {
            return;
        }
        let over: Vec<Key> = self
            .offsets
            .range((unit.clone(), Arc::from(""))..)
            .take_while(|((waiting, _), _)| waiting == unit)
            .filter(|(_, commit)| commit.epoch.0 <= epoch)
            .map(|(key, _)| key.clone())
            .collect();
        for key in &over {
            self.offsets.remove(key);
        }
        self.order.retain(|key| !over.contains(key));
        if self.statuses.get(unit).is_some_and(|status| status.epoch <= epoch) {
            self.statuses.remove(unit);
        }
        if self.released.get(unit).is_some_and(|released| *released <= epoch) {
            self.released.remove(unit);
        }
        self.ended.insert(unit.clone(), Ended { epoch, failure });
    }
}

fn encode(commit: &OffsetCommit, unit: &Unit) -> OffsetItem {
    OffsetItem {
        unit: unit.clone(),
        epoch: commit.epoch.0,
        seq: commit.seq,
        partition: PartitionText {
            canonical: commit.partition.canonical().to_string(),
            original: commit.partition.original().to_string(),
        },
        offset: serde_json::Value::Object(commit.offset.clone()).to_string(),
    }
}
