//! Random command streams: replicas agree, whatever way they got there, and the invariants hold.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::Index;

use super::world::{World, about, name, partition};
use super::*;
use crate::raft::BODY;
use crate::raft::command::*;

const NAMES: [&str; 3] = ["a", "b", "c"];
/// What the tasks of a connector divide among them.
const SHARDS: usize = 3;

/// What somebody tries; filled in from the state so that most of it has an effect, and some of it
/// is stale by one.
#[derive(Debug, Clone)]
enum Try {
    Register {
        node: u64,
        boot: u8,
    },
    Expire {
        node: u64,
        gone: bool,
        off: bool,
    },
    Drain {
        node: u64,
        hold: bool,
    },
    Undrain {
        node: u64,
    },
    Leave {
        node: u64,
    },
    Remove {
        node: u64,
    },
    Put {
        name: usize,
        expect: u8,
    },
    Delete {
        name: usize,
    },
    Target {
        name: usize,
        target: u8,
    },
    /// The task of each of the connector's shards; none: nobody reads it.
    Publish {
        name: usize,
        readers: [Option<usize>; SHARDS],
        off: bool,
    },
    Assign {
        unit: Index,
        node: u64,
        off: bool,
    },
    Revoke {
        unit: Index,
        off: bool,
    },
    Forget {
        unit: Index,
    },
    Report {
        node: u64,
        unit: Index,
        seq: u64,
        part: u8,
        state: u8,
        release: bool,
        off: bool,
    },
    Alter {
        name: usize,
        part: u8,
        kind: u8,
    },
    Restart {
        name: usize,
        task: Option<u32>,
        include: bool,
        failed: bool,
    },
    ResetTopics {
        name: usize,
    },
    Logger {
        level: Option<u8>,
    },
    Level {
        level: u32,
    },
    History {
        unit: Index,
        change: u8,
        off: bool,
    },
    Signal {
        name: usize,
        id: u8,
        text: bool,
    },
    Confirm {
        unit: Index,
        back: u64,
    },
}

fn tries() -> impl Strategy<Value = Try> {
    let node = 1u64..=3;
    let name = 0usize..NAMES.len();
    let rarely = prop::bool::weighted(0.1);
    prop_oneof![
        3 => (node.clone(), 1u8..4).prop_map(|(node, boot)| Try::Register { node, boot }),
        1 => (node.clone(), any::<bool>(), rarely).prop_map(|(node, gone, off)| Try::Expire { node, gone, off }),
        1 => (node.clone(), any::<bool>()).prop_map(|(node, hold)| Try::Drain { node, hold }),
        1 => node.clone().prop_map(|node| Try::Undrain { node }),
        1 => node.clone().prop_map(|node| Try::Leave { node }),
        1 => node.clone().prop_map(|node| Try::Remove { node }),
        3 => (name.clone(), 0u8..4).prop_map(|(name, expect)| Try::Put { name, expect }),
        1 => name.clone().prop_map(|name| Try::Delete { name }),
        2 => (name.clone(), 0u8..3).prop_map(|(name, target)| Try::Target { name, target }),
        4 => (name.clone(), prop::array::uniform3(prop::option::weighted(0.8, 0usize..4)), rarely)
            .prop_map(|(name, readers, off)| Try::Publish { name, readers, off }),
        8 => (any::<Index>(), node.clone(), rarely)
            .prop_map(|(unit, node, off)| Try::Assign { unit, node, off }),
        3 => (any::<Index>(), rarely).prop_map(|(unit, off)| Try::Revoke { unit, off }),
        1 => any::<Index>().prop_map(|unit| Try::Forget { unit }),
        8 => (node, any::<Index>(), 0u64..20, 0u8..3, 0u8..6, prop::bool::weighted(0.3), rarely).prop_map(
            |(node, unit, seq, part, state, release, off)| Try::Report { node, unit, seq, part, state, release, off }
        ),
        1 => (name.clone(), 0u8..3, 0u8..3).prop_map(|(name, part, kind)| Try::Alter { name, part, kind }),
        1 => (name.clone(), prop::option::of(0u32..4), any::<bool>(), any::<bool>())
            .prop_map(|(name, task, include, failed)| Try::Restart { name, task, include, failed }),
        1 => name.prop_map(|name| Try::ResetTopics { name }),
        1 => prop::option::of(0u8..6).prop_map(|level| Try::Logger { level }),
        1 => (0u32..3).prop_map(|level| Try::Level { level }),
        1 => (0usize..NAMES.len(), 0u8..4, any::<bool>()).prop_map(|(name, id, text)| Try::Signal { name, id, text }),
        4 => (any::<Index>(), 0u8..6, prop::bool::weighted(0.1))
            .prop_map(|(unit, change, off)| Try::History { unit, change, off }),
        1 => (any::<Index>(), 0u64..20).prop_map(|(unit, back)| Try::Confirm { unit, back }),
    ]
}

fn fill(w: &World, attempt: &Try) -> Command {
    let now_ms = w.index * 10;
    let incarnation = |node: &u64| w.state.nodes.get(node).map_or(0, |n| n.incarnation);
    let units: Vec<Unit> = w.state.units().chain(w.state.placements.keys().cloned()).collect();
    let pick = |at: &Index| if units.is_empty() { Unit::connector("none") } else { at.get(&units).clone() };
    let epoch = |unit: &Unit| w.state.placements.get(unit).map_or(0, |p| p.epoch);
    let known = |name: &usize| w.state.connectors.get(NAMES[*name]);
    let command = match attempt {
        Try::Register { node, boot } => {
            CommandV1::RegisterNode { node: *node, boot: [*boot; 16], about: about(*node), now_ms, delay_ms: 5 }
        }
        Try::Expire { node, gone, off } => CommandV1::ExpireNode {
            node: *node,
            incarnation: incarnation(node) + u64::from(*off),
            gone: *gone,
            now_ms,
            delay_ms: 5,
        },
        Try::Drain { node, hold } => {
            CommandV1::DrainNode { node: *node, mode: if *hold { DrainMode::Hold } else { DrainMode::Move } }
        }
        Try::Undrain { node } => CommandV1::UndrainNode { node: *node },
        Try::Leave { node } => CommandV1::NodeLeft { node: *node, incarnation: incarnation(node), now_ms, hold_ms: 5 },
        Try::Remove { node } => CommandV1::RemoveNode { node: *node },
        Try::Put { name: n, expect } => CommandV1::PutConnector {
            name: name(NAMES[*n]),
            config: [("name".to_owned(), NAMES[*n].to_owned())].into_iter().collect(),
            target: TargetState::Started,
            expect: match expect {
                0 => Expect::Absent,
                1 => Expect::Revision(known(n).map_or(1, |c| c.revision)),
                _ => Expect::Any,
            },
        },
        Try::Delete { name: n } => CommandV1::DeleteConnector { name: name(NAMES[*n]) },
        Try::Target { name: n, target } => CommandV1::SetTarget {
            name: name(NAMES[*n]),
            target: [TargetState::Started, TargetState::Paused, TargetState::Stopped][*target as usize],
        },
        Try::Publish { name: n, readers, off } => CommandV1::ReplaceTasks {
            name: name(NAMES[*n]),
            epoch: epoch(&Unit::connector(NAMES[*n])) + u64::from(*off),
            config_revision: known(n).map_or(0, |c| c.revision),
            tasks: tasks(readers),
        },
        Try::Assign { unit, node, off } => {
            let unit = pick(unit);
            CommandV1::Assign {
                previous: epoch(&unit) + u64::from(*off),
                unit,
                node: *node,
                incarnation: incarnation(node),
                mode: Delivery::Fenced,
                fence_wait_ms: 0,
                late_sends_ms: 0,
            }
        }
        Try::Revoke { unit, off } => {
            let unit = pick(unit);
            CommandV1::Revoke { epoch: epoch(&unit).saturating_sub(u64::from(*off)), unit }
        }
        Try::Forget { unit } => {
            let unit = pick(unit);
            CommandV1::Forget { epoch: epoch(&unit), unit }
        }
        Try::Report { node, unit, seq, part, state, release, off } => {
            let unit = pick(unit);
            // Mostly the owner itself.
            let node = w.state.placements.get(&unit).map_or(*node, |p| p.node);
            let epoch = epoch(&unit).saturating_sub(u64::from(*off));
            let state = [
                ReportedState::Unassigned,
                ReportedState::Running,
                ReportedState::Paused,
                ReportedState::Stopped,
                ReportedState::Failed,
                ReportedState::Restarting,
            ][*state as usize];
            CommandV1::Report {
                node,
                incarnation: incarnation(&node),
                offsets: vec![OffsetItem {
                    unit: unit.clone(),
                    epoch,
                    seq: *seq,
                    partition: partition(&part.to_string()),
                    offset: format!("{{\"n\":{seq}}}"),
                }],
                topics: vec![TopicItem { connector: unit.connector.clone(), topic: name(&part.to_string()) }],
                statuses: vec![StatusItem { unit: unit.clone(), epoch, state, trace: None }],
                released: if *release { vec![(unit, epoch)] } else { Vec::new() },
            }
        }
        Try::Alter { name: n, part, kind } => CommandV1::AlterOffsets {
            name: name(NAMES[*n]),
            expect_revision: None,
            change: match kind {
                0 => OffsetChange::RemoveAll,
                1 => OffsetChange::Set(vec![(partition(&part.to_string()), None)]),
                _ => OffsetChange::Set(vec![(partition(&part.to_string()), Some("{\"n\":0}".into()))]),
            },
        },
        Try::Restart { name: n, task, include, failed } => CommandV1::Restart {
            name: name(NAMES[*n]),
            scope: match task {
                Some(task) => RestartScope::Task(*task),
                None => RestartScope::Connector { include_tasks: *include, only_failed: *failed },
            },
        },
        Try::ResetTopics { name: n } => CommandV1::ResetTopics { name: name(NAMES[*n]) },
        Try::Logger { level } => CommandV1::SetLogger {
            logger: "l".into(),
            level: level.map(|l| {
                [LogLevel::Off, LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug, LogLevel::Trace]
                    [l as usize]
            }),
            now_ms,
        },
        Try::Level { level } => CommandV1::SetFeatureLevel { level: *level },
        Try::Signal { name: n, id, text } => {
            let text = SignalText(if *text { "{1}" } else { "{2}" }.to_owned());
            CommandV1::PutSignal { name: name(NAMES[*n]), id: id.to_string(), text, now_ms }
        }
        Try::History { unit, change, off } => {
            let unit = pick(unit);
            let partition = "{}".to_owned();
            let known = w.state.histories.get(&unit.connector).and_then(|h| h.partitions.get(&partition));
            let text = || HistoryText(w.index.to_string().into());
            let change = match change {
                0..=2 => HistoryChange::Append(text()),
                3 => HistoryChange::Stage { is_first: true, texts: vec![text()] },
                4 => HistoryChange::Stage { is_first: false, texts: vec![text(), text()] },
                _ => HistoryChange::Fold {
                    count: known.map_or(0, |h| h.texts.len() as u64 / 2),
                    since: known.map_or(0, |h| h.folded),
                },
            };
            let epoch = epoch(&unit).saturating_sub(u64::from(*off));
            CommandV1::ChangeHistory { unit, epoch, partition, change }
        }
        Try::Confirm { unit, back } => {
            let unit = pick(unit);
            CommandV1::ConfirmSignals { epoch: epoch(&unit), unit, through: w.index.saturating_sub(*back) }
        }
    };
    command.into()
}

/// Task configurations that say which shards each task reads, as "02".
fn tasks(readers: &[Option<usize>; SHARDS]) -> Vec<Properties> {
    let count = readers.iter().flatten().max().map_or(0, |last| last + 1);
    let mut shards = vec![String::new(); count];
    for (shard, task) in readers.iter().enumerate().filter_map(|(shard, task)| Some((shard, (*task)?))) {
        shards[task].push_str(&shard.to_string());
    }
    shards.iter().map(|shards| Properties::from([("shards", shards.as_str())])).collect()
}

fn config_of<'a>(state: &'a State, unit: &Unit) -> &'a Properties {
    let connector = &state.connectors[&unit.connector];
    unit.task.map_or(&connector.config, |task| &connector.tasks[task as usize])
}

fn recode<T: Encode + Decode<()>>(value: &T) -> T {
    let bytes = bincode::encode_to_vec(value, BODY).unwrap();
    let (back, used) = bincode::decode_from_slice(&bytes, BODY).unwrap();
    assert_eq!(used, bytes.len());
    back
}

/// What must hold after every entry.
///
/// `epochs` has each placement's unit, and the configuration with which it was made.
fn check(before: &State, after: &State, command: &Command, epochs: &mut BTreeMap<u64, (Unit, Properties)>) {
    let mut read = BTreeMap::new();
    for (unit, p) in &after.placements {
        if p.is_held() {
            let node = &after.nodes[&p.node];
            assert_eq!(node.incarnation, p.incarnation, "{unit} is held by an incarnation that has ended");
            assert!(matches!(node.state, NodeState::Alive | NodeState::Draining(_)), "{unit} is held by a lost node");
        }
        if p.phase == Phase::Assigned {
            assert!(after.exists(unit), "{unit} is assigned and does not exist");
            let set = after.connectors[&unit.connector].tasks_revision;
            assert_eq!(p.tasks_revision, if unit.is_task() { set } else { 0 }, "{unit} is of another set");
        }
        let (owner, config) = epochs.entry(p.epoch).or_insert_with(|| (unit.clone(), config_of(after, unit).clone()));
        assert_eq!(owner, unit, "an epoch belongs to one unit");
        if p.phase == Phase::Assigned && unit.is_task() {
            assert_eq!(config_of(after, unit), config, "{unit} goes on with another configuration");
        }
        for shard in config.get("shards").filter(|_| p.is_held()).unwrap_or_default().chars() {
            let other = read.insert((&unit.connector, shard), unit);
            assert_eq!(other, None, "{unit} and another task read shard {shard} at once");
        }
    }
    for (name, connector) in &after.connectors {
        assert!(connector.target != TargetState::Stopped || connector.tasks.is_empty(), "{name} is stopped with tasks");
    }
    for unit in after.statuses.keys() {
        assert!(after.exists(unit), "{unit} has a status and does not exist");
    }
    if matches!(command, Command::V1(CommandV1::AlterOffsets { .. })) {
        return;
    }
    for (name, offsets) in &before.offsets {
        for (key, old) in &offsets.rows {
            let new = &after.offsets[name].rows[key];
            assert!((new.epoch, new.seq) >= (old.epoch, old.seq), "a position of {name} went back");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn three_replicas_agree_after_random_streams(
        attempts in prop::collection::vec(tries(), 1..200),
        cut in any::<Index>(),
    ) {
        let mut leader = World::default();
        let mut log = Vec::new();
        let mut epochs = BTreeMap::new();
        for attempt in &attempts {
            let command = fill(&leader, attempt);
            let before = leader.state.clone();
            let reply = leader.apply(command.clone());
            check(&before, &leader.state, &command, &mut epochs);
            if matches!(reply, Reply::Refused(_)) {
                prop_assert_eq!(&State { clock_ms: before.clock_ms, ..leader.state.clone() }, &before);
            }
            prop_assert_eq!(&recode(&reply), &reply);
            log.push((leader.index, command, reply));
        }
        // A follower that got every entry over the wire.
        let mut follower = State::default();
        for (index, command, reply) in &log {
            prop_assert_eq!(&follower.apply(*index, &recode(command)), reply);
        }
        prop_assert_eq!(&follower, &leader.state);
        prop_assert_eq!(follower.hash(), leader.state.hash());
        // A node that got a snapshot and the rest of the log.
        let at = cut.index(log.len());
        let mut early = State::default();
        for (index, command, _) in &log[..at] {
            early.apply(*index, command);
        }
        let mut joined: State = recode(&early);
        for (index, command, reply) in &log[at..] {
            prop_assert_eq!(&joined.apply(*index, command), reply);
        }
        prop_assert_eq!(&joined, &leader.state);
        prop_assert_eq!(joined.hash(), leader.state.hash());
    }
}
