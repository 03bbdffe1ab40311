//! Schema histories: for each partition of a connector a log of texts.
//!
//! Invariants: only the present owner of a task changes the history of its partitions; texts keep their order; the
//! first ones are replaced by fewer in one step, and only if nobody did so since they were read; all texts of a
//! connector together are bounded, because every node has them in memory. A history stays as long as its connector
//! or a position of it does: without it the position could not be used.
//!
//! It does not: know what the texts say.

use std::collections::BTreeMap;

use bincode::{Decode, Encode};

use super::{MAX_PARTITION, State, check_size};
use crate::raft::command::{HistoryChange, HistoryText, Refusal, Reply};
use crate::raft::unit::{Name, Unit};

/// One text, in bytes: it has to fit into an entry of the log.
pub(crate) const MAX_HISTORY_TEXT: usize = 4 << 20;
/// Texts of one connector, and their bytes together.
const MAX_TEXTS: usize = 200_000;
const MAX_BYTES: u64 = 32 << 20;

/// Of one connector.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct Histories {
    /// By canonical partition.
    pub partitions: BTreeMap<String, History>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct History {
    pub texts: Vec<HistoryText>,
    /// Index of the last fold; 0 = there was none.
    pub folded: u64,
    /// Texts for the next fold, and the epoch of the owner that laid them aside.
    staged: Vec<HistoryText>,
    staged_by: u64,
    /// All texts together, without the staged ones.
    bytes: u64,
}

fn size(texts: &[HistoryText]) -> u64 {
    texts.iter().map(|text| text.0.len() as u64).sum()
}

/// `known`: the number and the bytes of the texts that are there.
fn check_room(name: &Name, known: (usize, u64), texts: &[HistoryText]) -> Result<(), Refusal> {
    for text in texts {
        check_size("a record of a schema history", text.0.len(), MAX_HISTORY_TEXT)?;
    }
    if known.0 + texts.len() > MAX_TEXTS || known.1 + size(texts) > MAX_BYTES {
        return Err(Refusal::Conflict(format!(
            "The schema history of connector {name} has reached its limit in the state that the nodes share \
             ({MAX_TEXTS} records, or {MAX_BYTES} bytes); restart the connector, which makes it shorter, write \
             less with schema.history.internal.store.only.captured.tables.ddl=true, or keep it in Kafka with \
             schema.history.internal.kafka.topic"
        )));
    }
    Ok(())
}

impl State {
    pub(super) fn change_history(
        &mut self,
        index: u64,
        unit: &Unit,
        epoch: u64,
        partition: &str,
        change: &HistoryChange,
    ) -> Result<Reply, Refusal> {
        if !self.connectors.contains_key(&unit.connector) {
            return Err(Refusal::UnknownConnector(unit.connector.clone()));
        }
        let owns = self.placements.get(unit).is_some_and(|p| p.epoch == epoch && p.is_held() && unit.is_task());
        if !owns {
            return Err(Refusal::StaleEpoch(unit.clone()));
        }
        check_size("a partition", partition.len(), MAX_PARTITION)?;
        match change {
            HistoryChange::Append(text) => {
                let known = || self.histories.get(&unit.connector).into_iter().flat_map(|h| h.partitions.values());
                let count = known().map(|h| h.texts.len()).sum();
                let bytes = known().map(|h| h.bytes).sum();
                check_room(&unit.connector, (count, bytes), std::slice::from_ref(text))?;
                let history = self.history_mut(&unit.connector, partition);
                if history.staged_by != epoch {
                    history.staged = Vec::new();
                }
                history.texts.push(text.clone());
                history.bytes += text.0.len() as u64;
            }
            HistoryChange::Stage { is_first, texts } => {
                let known = self.histories.get(&unit.connector).and_then(|h| h.partitions.get(partition));
                if !is_first && known.is_none_or(|history| history.staged_by != epoch) {
                    return Err(interrupted(&unit.connector, known));
                }
                // A full history can still be made shorter.
                let staged = known.filter(|_| !is_first).map_or(&[][..], |history| history.staged.as_slice());
                check_room(&unit.connector, (staged.len(), size(staged)), texts)?;
                let history = self.history_mut(&unit.connector, partition);
                if *is_first {
                    history.staged = Vec::new();
                    history.staged_by = epoch;
                }
                history.staged.extend_from_slice(texts);
            }
            HistoryChange::Fold { count, since } => {
                let count = usize::try_from(*count).unwrap_or(usize::MAX);
                let known = self.histories.get(&unit.connector).and_then(|h| h.partitions.get(partition));
                let fits = |h: &History| h.staged_by == epoch && h.folded == *since && count <= h.texts.len();
                if !known.is_some_and(fits) {
                    return Err(interrupted(&unit.connector, known));
                }
                let history = self.history_mut(&unit.connector, partition);
                let staged = std::mem::take(&mut history.staged);
                history.bytes = history.bytes - size(&history.texts[..count]) + size(&staged);
                history.texts.splice(..count, staged);
                history.staged_by = 0;
                history.folded = index;
            }
        }
        Ok(Reply::HistoryChanged { index })
    }

    fn history_mut(&mut self, name: &Name, partition: &str) -> &mut History {
        let histories = self.histories.entry(name.clone()).or_default();
        histories.partitions.entry(partition.to_owned()).or_default()
    }

    /// The connector is deleted.
    pub(super) fn drop_histories(&mut self, name: &Name) {
        if self.offsets.get(name).is_none_or(|offsets| offsets.rows.is_empty()) {
            self.histories.remove(name);
        }
    }
}

/// Somebody has changed it, or another owner began, since it was read.
fn interrupted(name: &Name, known: Option<&History>) -> Refusal {
    Refusal::StaleRevision { name: name.clone(), current: known.map_or(0, |history| history.folded) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::super::world::{World, name};
    use super::*;
    use crate::raft::command::{CommandV1, OffsetChange, TargetState};

    const P: &str = "{\"server_id\":\"shop\"}";

    fn text(of: &str) -> HistoryText {
        HistoryText(of.into())
    }

    fn change(w: &World, change: HistoryChange) -> CommandV1 {
        let unit = Unit::task("c", 0);
        CommandV1::ChangeHistory { epoch: w.placement(&unit).epoch, unit, partition: P.into(), change }
    }

    fn append(w: &mut World, of: &str) {
        let command = change(w, HistoryChange::Append(text(of)));
        assert_eq!(w.ok(command), Reply::HistoryChanged { index: w.index });
    }

    fn stage(is_first: bool, of: &[&str]) -> HistoryChange {
        HistoryChange::Stage { is_first, texts: of.iter().map(|t| text(t)).collect() }
    }

    fn history(w: &World) -> &History {
        &w.state.histories["c"].partitions[P]
    }

    fn texts(w: &World) -> Vec<&str> {
        history(w).texts.iter().map(|text| &*text.0).collect()
    }

    fn world() -> World {
        let mut w = World::default();
        w.register(1, 1);
        w.running("c", 1, 1);
        w
    }

    #[test]
    fn a_history_grows_under_the_present_owner_only() {
        let mut w = world();
        let layout = w.state.layout;
        append(&mut w, "1");
        append(&mut w, "2");
        assert_eq!((texts(&w), w.state.layout), (vec!["1", "2"], layout));
        let unit = Unit::task("c", 0);
        let former = w.placement(&unit).epoch;
        w.ok(CommandV1::Revoke { unit: unit.clone(), epoch: former });
        append(&mut w, "3");
        w.release(&unit);
        let of_epoch = |unit: &Unit, epoch| CommandV1::ChangeHistory {
            unit: unit.clone(),
            epoch,
            partition: P.into(),
            change: HistoryChange::Append(text("4")),
        };
        assert!(matches!(w.refused(of_epoch(&unit, former)), Refusal::StaleEpoch(_)));
        w.assign(&unit, 1);
        assert!(matches!(w.refused(of_epoch(&unit, former)), Refusal::StaleEpoch(_)));
        let object = Unit::connector("c");
        let epoch = w.placement(&object).epoch;
        assert!(matches!(w.refused(of_epoch(&object, epoch)), Refusal::StaleEpoch(_)));
        assert!(matches!(w.refused(of_epoch(&Unit::task("x", 0), 1)), Refusal::UnknownConnector(_)));
        append(&mut w, "4");
        assert_eq!(texts(&w), ["1", "2", "3", "4"]);
    }

    #[test]
    fn the_first_texts_are_replaced_in_one_step() {
        let mut w = world();
        for n in ["1", "2", "3"] {
            append(&mut w, n);
        }
        w.ok(change(&w, stage(true, &["dropped"])));
        w.ok(change(&w, stage(true, &["a"])));
        w.ok(change(&w, stage(false, &["b"])));
        append(&mut w, "4");
        assert_eq!(texts(&w), ["1", "2", "3", "4"], "nothing is seen of it yet");
        for (count, since) in [(5, 0), (3, 9), (u64::MAX, 0)] {
            assert!(matches!(
                w.refused(change(&w, HistoryChange::Fold { count, since })),
                Refusal::StaleRevision { .. }
            ));
        }
        w.ok(change(&w, HistoryChange::Fold { count: 3, since: 0 }));
        assert_eq!((texts(&w), history(&w).folded, history(&w).bytes), (vec!["a", "b", "4"], w.index, 3));
        // A second time by one who does not know of the first.
        assert!(matches!(
            w.refused(change(&w, HistoryChange::Fold { count: 1, since: 0 })),
            Refusal::StaleRevision { .. }
        ));
        let since = history(&w).folded;
        w.ok(change(&w, stage(true, &["ab"])));
        w.ok(change(&w, HistoryChange::Fold { count: 2, since }));
        assert_eq!(texts(&w), ["ab", "4"]);
    }

    #[test]
    fn what_a_former_owner_laid_aside_is_not_used() {
        let mut w = world();
        append(&mut w, "1");
        w.ok(change(&w, stage(true, &["a"])));
        let unit = Unit::task("c", 0);
        let epoch = w.placement(&unit).epoch;
        w.ok(CommandV1::Revoke { unit: unit.clone(), epoch });
        w.release(&unit);
        w.assign(&unit, 1);
        assert!(matches!(w.refused(change(&w, stage(false, &["b"]))), Refusal::StaleRevision { .. }));
        assert!(matches!(
            w.refused(change(&w, HistoryChange::Fold { count: 1, since: 0 })),
            Refusal::StaleRevision { .. }
        ));
        append(&mut w, "2");
        assert!(history(&w).staged.is_empty(), "nor kept");
        assert_eq!((texts(&w), history(&w).bytes), (vec!["1", "2"], 2));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut w = world();
        let large = "x".repeat(MAX_HISTORY_TEXT);
        for _ in 0..MAX_BYTES / MAX_HISTORY_TEXT as u64 {
            append(&mut w, &large);
        }
        let full = w.refused(change(&w, HistoryChange::Append(text("x"))));
        assert!(matches!(full, Refusal::Conflict(why) if why.contains("schema.history.internal.kafka.topic")));
        let too_large = change(&w, HistoryChange::Append(text(&(large + "x"))));
        assert!(matches!(w.refused(too_large), Refusal::TooLarge { .. }));
        // It can be made shorter; what is laid aside is bounded as well.
        for n in 0..MAX_BYTES / MAX_HISTORY_TEXT as u64 {
            w.ok(change(&w, stage(n == 0, &[&"y".repeat(MAX_HISTORY_TEXT)])));
        }
        assert!(matches!(w.refused(change(&w, stage(false, &["x"]))), Refusal::Conflict(_)));
        w.ok(change(&w, stage(true, &["y"])));
        w.ok(change(&w, HistoryChange::Fold { count: 8, since: 0 }));
        assert_eq!((texts(&w), history(&w).bytes), (vec!["y"], 1));
        append(&mut w, "z");
    }

    #[test]
    fn a_history_stays_as_long_as_its_positions() {
        let mut w = world();
        append(&mut w, "1");
        let unit = Unit::task("c", 0);
        let epoch = w.placement(&unit).epoch;
        w.ok(w.report(1).offset(&unit, epoch, 1, "shop", "{\"n\":1}"));
        w.ok(CommandV1::SetTarget { name: name("c"), target: TargetState::Stopped });
        w.release(&unit);
        w.ok(CommandV1::DeleteConnector { name: name("c") });
        assert_eq!(texts(&w), ["1"]);
        w.put("c", &[("name", "c")]);
        w.ok(CommandV1::SetTarget { name: name("c"), target: TargetState::Stopped });
        w.ok(CommandV1::AlterOffsets { name: name("c"), expect_revision: None, change: OffsetChange::RemoveAll });
        assert_eq!(texts(&w), ["1"], "a reset of positions is not one of structures");
        w.ok(CommandV1::DeleteConnector { name: name("c") });
        assert!(w.state.histories.is_empty());
    }
}
