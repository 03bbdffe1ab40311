//! The stored form of everything in the log, pinned byte by byte.
//!
//! `tests/golden/*.txt` hold one line per value: a name and its bytes in hex. A line that changes is
//! a log of an earlier build that can no longer be read; new variants only add lines.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fmt::Debug;

use bincode::{Decode, Encode};
use thalweg_config::Properties;

use super::command::*;
use super::state::State;
use super::state::world::{World, about, name, partition};
use super::{BODY, Unit};

const COMMANDS: &str = include_str!("../../tests/golden/commands.txt");
const REPLIES: &str = include_str!("../../tests/golden/replies.txt");
const STATE: &str = include_str!("../../tests/golden/state.txt");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

/// Every line of `golden` decodes to its sample and every sample encodes to its line.
fn compare<T: Encode + Decode<()> + PartialEq + Debug>(golden: &str, samples: &[(&str, T)]) {
    let present: String = samples
        .iter()
        .map(|(label, value)| format!("{label} {}\n", hex(&bincode::encode_to_vec(value, BODY).unwrap())))
        .collect();
    assert_eq!(golden, present, "the stored form has changed; the golden file would now be:\n{present}");
    for (line, (label, value)) in golden.lines().zip(samples) {
        let bytes = unhex(line.split_once(' ').unwrap().1);
        let (back, used): (T, usize) = bincode::decode_from_slice(&bytes, BODY).unwrap();
        assert_eq!((&back, used), (value, bytes.len()), "{label}");
        // Every truncation is an error, never a panic or another value.
        for end in 0..bytes.len() {
            assert!(bincode::decode_from_slice::<T, _>(&bytes[..end], BODY).is_err(), "{label} cut at {end}");
        }
    }
}

fn commands() -> Vec<(&'static str, Command)> {
    let config: Properties = Properties::from([("connector.class", "MongoDb"), ("name", "c")]);
    let unit = Unit::task("c", 3);
    let full = CommandV1::Report {
        node: 2,
        incarnation: 300,
        offsets: vec![OffsetItem {
            unit: unit.clone(),
            epoch: 70_000,
            seq: 5,
            partition: partition("shop"),
            offset: "{\"sec\":1,\"ord\":2}".into(),
        }],
        topics: vec![TopicItem { connector: name("c"), topic: name("shop.db.t") }],
        statuses: vec![
            StatusItem { unit: unit.clone(), epoch: 70_000, state: ReportedState::Failed, trace: Some("x.Y".into()) },
            StatusItem { unit: Unit::connector("c"), epoch: 9, state: ReportedState::Running, trace: None },
        ],
        released: vec![(unit.clone(), 70_000)],
    };
    let empty = CommandV1::Report {
        node: 2,
        incarnation: 300,
        offsets: Vec::new(),
        topics: Vec::new(),
        statuses: Vec::new(),
        released: Vec::new(),
    };
    let put = |target, expect, config: &Properties| CommandV1::PutConnector {
        name: name("c"),
        config: config.clone(),
        target,
        expect,
    };
    let restart = |scope| CommandV1::Restart { name: name("c"), scope };
    let history = |change| CommandV1::ChangeHistory {
        unit: Unit::task("c", 3),
        epoch: 70_000,
        partition: "{\"a\":1}".into(),
        change,
    };
    let logger = |level| CommandV1::SetLogger { logger: "a::b".into(), level, now_ms: 7 };
    let register =
        CommandV1::RegisterNode { node: 2, boot: [9; 16], about: about(2), now_ms: 1_700_000_000_000, delay_ms: 300 };
    let list: Vec<(&'static str, CommandV1)> = vec![
        ("register_node", register),
        ("expire_node", CommandV1::ExpireNode { node: 2, incarnation: 300, gone: true, now_ms: 5, delay_ms: 6 }),
        ("drain_node.move", CommandV1::DrainNode { node: 2, mode: DrainMode::Move }),
        ("drain_node.hold", CommandV1::DrainNode { node: 2, mode: DrainMode::Hold }),
        ("undrain_node", CommandV1::UndrainNode { node: 2 }),
        ("node_left", CommandV1::NodeLeft { node: 2, incarnation: 300, now_ms: 5, hold_ms: 6 }),
        ("remove_node", CommandV1::RemoveNode { node: 2 }),
        ("set_feature_level", CommandV1::SetFeatureLevel { level: 2 }),
        ("put_connector.absent", put(TargetState::Started, Expect::Absent, &config)),
        ("put_connector.any", put(TargetState::Paused, Expect::Any, &Properties::new())),
        ("put_connector.revision", put(TargetState::Stopped, Expect::Revision(12), &config)),
        ("delete_connector", CommandV1::DeleteConnector { name: name("c") }),
        ("set_target", CommandV1::SetTarget { name: name("c"), target: TargetState::Stopped }),
        (
            "replace_tasks",
            CommandV1::ReplaceTasks { name: name("c"), epoch: 9, config_revision: 8, tasks: vec![config.clone()] },
        ),
        (
            "replace_tasks.empty",
            CommandV1::ReplaceTasks { name: name("c"), epoch: 9, config_revision: 8, tasks: Vec::new() },
        ),
        (
            "assign",
            CommandV1::Assign {
                unit: unit.clone(),
                node: 2,
                incarnation: 300,
                previous: 69_000,
                mode: Delivery::Fenced,
                fence_wait_ms: 0,
                late_sends_ms: 0,
            },
        ),
        (
            "assign.plain",
            CommandV1::Assign {
                unit: Unit::connector("c"),
                node: 2,
                incarnation: 300,
                previous: 0,
                mode: Delivery::Plain,
                fence_wait_ms: 10_000,
                late_sends_ms: 10_000,
            },
        ),
        ("revoke", CommandV1::Revoke { unit: unit.clone(), epoch: 70_000 }),
        ("forget", CommandV1::Forget { unit, epoch: 70_000 }),
        ("report", full),
        ("report.empty", empty),
        (
            "alter_offsets",
            CommandV1::AlterOffsets {
                name: name("c"),
                expect_revision: Some(4),
                change: OffsetChange::Set(vec![(partition("a"), Some("{\"sec\":1}".into())), (partition("b"), None)]),
            },
        ),
        (
            "alter_offsets.all",
            CommandV1::AlterOffsets { name: name("c"), expect_revision: None, change: OffsetChange::RemoveAll },
        ),
        ("restart.connector", restart(RestartScope::Connector { include_tasks: true, only_failed: false })),
        ("restart.task", restart(RestartScope::Task(3))),
        ("reset_topics", CommandV1::ResetTopics { name: name("c") }),
        ("set_logger.off", logger(Some(LogLevel::Off))),
        ("set_logger.error", logger(Some(LogLevel::Error))),
        ("set_logger.warn", logger(Some(LogLevel::Warn))),
        ("set_logger.info", logger(Some(LogLevel::Info))),
        ("set_logger.debug", logger(Some(LogLevel::Debug))),
        ("set_logger.trace", logger(Some(LogLevel::Trace))),
        ("set_logger.none", logger(None)),
        (
            "put_signal",
            CommandV1::PutSignal { name: name("c"), id: "s".into(), text: SignalText("{}".into()), now_ms: 7 },
        ),
        ("confirm_signals", CommandV1::ConfirmSignals { unit: Unit::task("c", 3), epoch: 70_000, through: 9 }),
        ("change_history.append", history(HistoryChange::Append(HistoryText("{}".into())))),
        (
            "change_history.stage",
            history(HistoryChange::Stage { is_first: true, texts: vec![HistoryText("{}".into())] }),
        ),
        ("change_history.fold", history(HistoryChange::Fold { count: 300, since: 7 })),
    ];
    list.into_iter().map(|(label, command)| (label, command.into())).collect()
}

fn replies() -> Vec<(&'static str, Reply)> {
    let refused = |why| RefusedItem { unit: Unit::task("c", 3), epoch: 9, partition: Some("{}".into()), why };
    let no = Reply::Refused;
    vec![
        ("done", Reply::Done),
        ("node_registered", Reply::NodeRegistered { incarnation: 300 }),
        ("connector_put", Reply::ConnectorPut { created: true, revision: 12 }),
        ("tasks_replaced", Reply::TasksReplaced { changed: true }),
        ("assigned", Reply::Assigned { epoch: 70_000 }),
        (
            "reported",
            Reply::Reported {
                refused: vec![
                    refused(ItemRefusal::StaleEpoch),
                    refused(ItemRefusal::OldSequence),
                    refused(ItemRefusal::TooLarge),
                ],
            },
        ),
        ("offsets_altered", Reply::OffsetsAltered { revision: 4 }),
        ("restarting", Reply::Restarting { units: vec![Unit::connector("c")] }),
        ("refused.unknown_connector", no(Refusal::UnknownConnector(name("c")))),
        ("refused.unknown_task", no(Refusal::UnknownTask(name("c"), 3))),
        ("refused.unknown_node", no(Refusal::UnknownNode(2))),
        ("refused.already_exists", no(Refusal::AlreadyExists(name("c")))),
        ("refused.stale_revision", no(Refusal::StaleRevision { name: name("c"), current: 8 })),
        ("refused.stale_epoch", no(Refusal::StaleEpoch(Unit::task("c", 3)))),
        ("refused.stale_incarnation", no(Refusal::StaleIncarnation { node: 2, current: 300 })),
        ("refused.not_stopped", no(Refusal::NotStopped(name("c")))),
        ("refused.not_started", no(Refusal::NotStarted(name("c")))),
        ("refused.not_free", no(Refusal::NotFree(Unit::task("c", 3)))),
        ("refused.node_not_alive", no(Refusal::NodeNotAlive(2))),
        ("refused.node_in_use", no(Refusal::NodeInUse(2))),
        ("refused.feature_level", no(Refusal::FeatureLevel { wanted: 2, possible: 1 })),
        ("refused.too_large", no(Refusal::TooLarge { what: "a partition".into(), limit: 16_384 })),
        ("refused.invalid", no(Refusal::Invalid("no".into()))),
        ("refused.conflict", no(Refusal::Conflict("no".into()))),
        ("signal_put.added", Reply::SignalPut { number: 300, standing: SignalStanding::Added }),
        ("signal_put.waiting", Reply::SignalPut { number: 300, standing: SignalStanding::Waiting }),
        ("signal_put.followed", Reply::SignalPut { number: 300, standing: SignalStanding::Followed }),
        ("history_changed", Reply::HistoryChanged { index: 300 }),
    ]
}

/// A state in which every table has a row and every phase occurs.
fn state() -> State {
    let mut w = World { now_ms: 1_700_000_000_000, ..World::default() };
    w.register(1, 1);
    w.register(2, 2);
    w.register(3, 3);
    w.running("c", 2, 1);
    w.running("d", 1, 2);
    let unit = Unit::task("c", 0);
    let epoch = w.placement(&unit).epoch;
    let report = w.report(1).offset(&unit, epoch, 1, "shop", "{\"sec\":1}").topic("c", "shop.db.t");
    w.ok(report.status(&unit, epoch, ReportedState::Failed, Some("x.Y: because")));
    w.ok(CommandV1::Restart { name: name("c"), scope: RestartScope::Task(1) });
    w.ok(CommandV1::SetLogger { logger: "root".into(), level: Some(LogLevel::Warn), now_ms: w.now_ms + 1 });
    w.ok(CommandV1::Revoke { unit: unit.clone(), epoch });
    w.release(&unit);
    let epoch = w.placement(&Unit::task("c", 1)).epoch;
    w.ok(CommandV1::Revoke { unit: Unit::task("c", 1), epoch });
    w.expire(2, true, 500);
    w.ok(CommandV1::NodeLeft { node: 3, incarnation: w.incarnation(3), now_ms: w.now_ms + 2, hold_ms: 9 });
    w.state
}

/// CLU-07 for the log.
#[test]
fn clu_07_commands_keep_their_bytes() {
    let samples = commands();
    compare(COMMANDS, &samples);
    let kinds: BTreeSet<&str> = samples.iter().map(|(_, c)| c.kind()).collect();
    assert_eq!(kinds.len(), 22, "a kind of command has no golden bytes: {kinds:?}");
}

/// CLU-07 for answers.
#[test]
fn clu_07_replies_keep_their_bytes() {
    compare(REPLIES, &replies());
}

/// CLU-07 for snapshots.
#[test]
fn clu_07_the_state_keeps_its_bytes() {
    let mut with_signals = state();
    for (index, id) in [(500, "a"), (501, "b")] {
        let put = CommandV1::PutSignal { name: name("d"), id: id.into(), text: SignalText("{}".into()), now_ms: 1 };
        assert!(matches!(with_signals.apply(index, &put.into()), Reply::SignalPut { .. }));
    }
    let unit = Unit::task("d", 0);
    let epoch = with_signals.placements[&unit].epoch;
    with_signals.apply(502, &CommandV1::ConfirmSignals { unit, epoch, through: 500 }.into());
    let mut with_histories = state();
    let unit = Unit::task("c", 1);
    let epoch = with_histories.placements[&unit].epoch;
    let texts = vec![HistoryText("{}".into())];
    for (index, change) in [
        (500, HistoryChange::Append(HistoryText("{\"a\":1}".into()))),
        (501, HistoryChange::Stage { is_first: true, texts }),
    ] {
        let partition = "{\"server\":\"s1\"}".to_owned();
        let command = CommandV1::ChangeHistory { unit: unit.clone(), epoch, partition, change };
        assert_eq!(with_histories.apply(index, &command.into()), Reply::HistoryChanged { index });
    }
    let states = [("state", state()), ("state.signals", with_signals), ("state.histories", with_histories)];
    compare(STATE, &states);
    assert_eq!(state().hash(), 5_884_567_558_103_869_174);
}

/// CLU-07: what a later build wrote is refused, not misread.
#[test]
fn clu_07_an_unknown_version_is_an_error() {
    for bytes in [&[1u8, 0][..], &[0, 22], &[0, 250], &[]] {
        assert!(bincode::decode_from_slice::<Command, _>(bytes, BODY).is_err(), "{bytes:?}");
    }
}

/// Secrets stay out of logs: only names of keys are shown.
#[test]
fn debug_and_display_show_no_values() {
    let config = Properties::from([("mongodb.password", "hunter2")]);
    let command: Command =
        CommandV1::PutConnector { name: name("c"), config, target: TargetState::Started, expect: Expect::Any }.into();
    assert!(!format!("{command:?} {command}").contains("hunter2"));
    assert!(format!("{command:?}").contains("mongodb.password"));
}
