//! Signals that came through REST: kept until every task of the connector has stored what followed from them.
//!
//! Invariants: the number of a signal is the index of the entry that brought it, so numbers rise and are
//! never used twice, not even over delete and create of one name; a task confirms for itself, and only
//! while it is the present owner; a task that is another one in another set confirms anew (which of the
//! signals were followed, its offsets say); an id means one signal, as long as it waits and for the next
//! [`KEPT_IDS`] after it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bincode::{Decode, Encode};

use super::{HashSink, State, check_size};
use crate::raft::command::{Refusal, Reply, SignalStanding, SignalText};
use crate::raft::unit::{Name, Unit};

/// A signal as JSON text, in bytes.
const MAX_SIGNAL: usize = 64 << 10;
/// An id, in bytes.
const MAX_SIGNAL_ID: usize = 255;
/// Signals of one connector that wait, and their bytes together.
const MAX_SIGNALS: usize = 100;
const MAX_SIGNALS_BYTES: usize = 1 << 20;
/// Ids that are remembered of signals that were followed.
const KEPT_IDS: usize = 100;

/// Of one connector.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct Signals {
    /// By number.
    pub waiting: BTreeMap<u64, WaitingSignal>,
    /// The latest that all tasks have confirmed.
    pub followed: VecDeque<FollowedSignal>,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct WaitingSignal {
    pub id: String,
    /// The whole object.
    pub text: SignalText,
    /// Wall clock of the node that took it, in ms since the epoch.
    pub given_ms: u64,
    /// Tasks of the present set that have confirmed it.
    pub confirmed: BTreeSet<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FollowedSignal {
    pub number: u64,
    pub id: String,
    /// Of the text.
    hash: u64,
}

impl State {
    pub(super) fn put_signal(
        &mut self,
        index: u64,
        name: &Name,
        id: &str,
        text: &SignalText,
        given_ms: u64,
    ) -> Result<Reply, Refusal> {
        if !self.connectors.contains_key(name) {
            return Err(Refusal::UnknownConnector(name.clone()));
        }
        check_size("the id of a signal", id.len(), MAX_SIGNAL_ID)?;
        check_size("a signal", text.0.len(), MAX_SIGNAL)?;
        let known = self.signals.get(name);
        let mut waiting = known.into_iter().flat_map(|s| &s.waiting);
        if let Some((number, signal)) = waiting.find(|(_, signal)| signal.id == id) {
            let (number, standing) = (*number, SignalStanding::Waiting);
            return same(id, signal.text == *text).map(|()| Reply::SignalPut { number, standing });
        }
        let mut followed = known.into_iter().flat_map(|s| &s.followed);
        if let Some(signal) = followed.find(|signal| signal.id == id) {
            let (number, standing) = (signal.number, SignalStanding::Followed);
            return same(id, signal.hash == hash(text)).map(|()| Reply::SignalPut { number, standing });
        }
        let bytes: usize = known.into_iter().flat_map(|s| s.waiting.values()).map(|s| s.text.0.len()).sum();
        if known.is_some_and(|s| s.waiting.len() >= MAX_SIGNALS) || bytes + text.0.len() > MAX_SIGNALS_BYTES {
            return Err(Refusal::Conflict(format!(
                "Connector {name} has too many signals that wait ({MAX_SIGNALS}, or {MAX_SIGNALS_BYTES} bytes); see \
                 with GET /connectors/{name}/signals what they wait for, and give this one again later"
            )));
        }
        let signal = WaitingSignal { id: id.to_owned(), text: text.clone(), given_ms, confirmed: BTreeSet::new() };
        self.signals.entry(name.clone()).or_default().waiting.insert(index, signal);
        Ok(Reply::SignalPut { number: index, standing: SignalStanding::Added })
    }

    pub(super) fn confirm_signals(&mut self, unit: &Unit, epoch: u64, through: u64) -> Result<Reply, Refusal> {
        let connector =
            self.connectors.get(&unit.connector).ok_or_else(|| Refusal::UnknownConnector(unit.connector.clone()))?;
        let set = connector.tasks_revision;
        let owns = self
            .placements
            .get(unit)
            .is_some_and(|p| p.epoch == epoch && p.is_held() && p.tasks_revision == set && unit.is_task());
        let (Some(task), true) = (unit.task, owns) else { return Err(Refusal::StaleEpoch(unit.clone())) };
        for (_, signal) in
            self.signals.get_mut(&unit.connector).into_iter().flat_map(|s| s.waiting.range_mut(..=through))
        {
            signal.confirmed.insert(task);
        }
        self.settle_signals(&unit.connector);
        Ok(Reply::Done)
    }

    /// What all tasks have confirmed does not wait any more.
    fn settle_signals(&mut self, name: &Name) {
        let tasks = self.connectors.get(name).map_or(0, |connector| connector.tasks.len());
        let Some(signals) = self.signals.get_mut(name).filter(|_| tasks > 0) else { return };
        let confirmed = signals.waiting.iter().filter(|(_, signal)| signal.confirmed.len() >= tasks);
        let done: Vec<u64> = confirmed.map(|(number, _)| *number).collect();
        for number in done {
            let Some(signal) = signals.waiting.remove(&number) else { continue };
            signals.followed.push_back(FollowedSignal { number, id: signal.id, hash: hash(&signal.text) });
        }
        let surplus = signals.followed.len().saturating_sub(KEPT_IDS);
        signals.followed.drain(..surplus);
    }

    /// Of the tasks of the connector only these go on as they were.
    pub(super) fn keep_confirmations(&mut self, name: &Name, kept: &BTreeSet<u32>) {
        for signal in self.signals.get_mut(name).into_iter().flat_map(|s| s.waiting.values_mut()) {
            signal.confirmed.retain(|task| kept.contains(task));
        }
        self.settle_signals(name);
    }
}

/// An id that is given again is the answer to a request whose answer was lost, if it means the same.
fn same(id: &str, is_same: bool) -> Result<(), Refusal> {
    if is_same {
        return Ok(());
    }
    Err(Refusal::Conflict(format!("The id '{id}' is that of another signal; give this one an id of its own")))
}

fn hash(text: &SignalText) -> u64 {
    let mut sink = HashSink::default();
    // The sink takes everything.
    let _ = bincode::enc::write::Writer::write(&mut sink, text.0.as_bytes());
    sink.0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::super::world::{World, name};
    use super::*;
    use crate::raft::command::{CommandV1, TargetState};

    fn put(id: &str, text: &str) -> CommandV1 {
        CommandV1::PutSignal { name: name("c"), id: id.into(), text: SignalText(text.into()), now_ms: 7 }
    }

    fn confirm(w: &World, task: u32, through: u64) -> CommandV1 {
        let unit = Unit::task("c", task);
        CommandV1::ConfirmSignals { epoch: w.placement(&unit).epoch, unit, through }
    }

    fn number(reply: Reply) -> (u64, SignalStanding) {
        let Reply::SignalPut { number, standing } = reply else { panic!("{reply:?}") };
        (number, standing)
    }

    fn waiting(w: &World) -> Vec<String> {
        w.state.signals.get("c").into_iter().flat_map(|s| s.waiting.values()).map(|s| s.id.clone()).collect()
    }

    fn world(tasks: usize) -> World {
        let mut w = World::default();
        w.register(1, 1);
        w.running("c", tasks, 1);
        w
    }

    #[test]
    fn a_signal_waits_for_every_task_and_its_id_for_its_content() {
        let mut w = world(2);
        let layout = w.state.layout;
        let (first, standing) = number(w.ok(put("a", "{1}")));
        assert_eq!((first, standing), (w.index, SignalStanding::Added));
        let (second, _) = number(w.ok(put("b", "{2}")));
        assert_eq!(number(w.ok(put("a", "{1}"))), (first, SignalStanding::Waiting));
        assert!(matches!(w.refused(put("a", "{9}")), Refusal::Conflict(_)));
        w.ok(confirm(&w, 0, second));
        w.ok(confirm(&w, 1, first));
        assert_eq!(waiting(&w), ["b"]);
        assert_eq!(number(w.ok(put("a", "{1}"))), (first, SignalStanding::Followed));
        assert!(matches!(w.refused(put("a", "{9}")), Refusal::Conflict(_)));
        assert_eq!(w.state.layout, layout, "nothing to plan");
        let stale = CommandV1::ConfirmSignals { unit: Unit::task("c", 1), epoch: 1, through: second };
        assert!(matches!(w.refused(stale), Refusal::StaleEpoch(_)));
        let object = Unit::connector("c");
        let epoch = w.placement(&object).epoch;
        let of_object = CommandV1::ConfirmSignals { unit: object, epoch, through: second };
        assert!(matches!(w.refused(of_object), Refusal::StaleEpoch(_)));

        // Other tasks: those that have confirmed are not the ones that have to.
        w.ok(CommandV1::SetTarget { name: name("c"), target: TargetState::Stopped });
        assert!(w.state.signals["c"].waiting.values().all(|s| s.confirmed.is_empty()));
        assert_eq!(waiting(&w), ["b"]);
        w.ok(CommandV1::DeleteConnector { name: name("c") });
        assert!(w.state.signals.is_empty());
        assert!(matches!(w.refused(put("a", "{1}")), Refusal::UnknownConnector(_)));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut w = world(1);
        for n in 0..MAX_SIGNALS {
            w.ok(put(&n.to_string(), "{}"));
        }
        assert!(matches!(w.refused(put("more", "{}")), Refusal::Conflict(why) if why.contains("too many signals")));
        w.ok(confirm(&w, 0, u64::MAX));
        for n in 0..KEPT_IDS {
            w.ok(put(&format!("next {n}"), "{}"));
        }
        w.ok(confirm(&w, 0, u64::MAX));
        assert_eq!((waiting(&w).len(), w.state.signals["c"].followed.len()), (0, KEPT_IDS));
        // It is forgotten: another signal may have its id.
        assert_eq!(number(w.ok(put("0", "{9}"))).1, SignalStanding::Added);
        w.ok(confirm(&w, 0, u64::MAX));
        let large = "x".repeat(MAX_SIGNAL);
        for n in 0..MAX_SIGNALS_BYTES / MAX_SIGNAL {
            w.ok(put(&format!("large {n}"), &large));
        }
        assert!(matches!(w.refused(put("more", "{}")), Refusal::Conflict(_)));
        assert!(matches!(w.refused(put("more", &(large + "x"))), Refusal::TooLarge { .. }));
        assert!(matches!(w.refused(put(&"x".repeat(256), "{}")), Refusal::TooLarge { .. }));
    }
}
