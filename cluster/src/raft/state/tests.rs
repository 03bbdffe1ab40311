#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use thalweg_config::Properties;

use super::world::{World, about, name, partition};
use super::*;
use crate::raft::command::*;

fn connector(text: &str) -> Unit {
    Unit::connector(text)
}

fn task(text: &str, n: u32) -> Unit {
    Unit::task(text, n)
}

fn lost(phase: Option<Phase>) -> Option<Loss> {
    match phase {
        Some(Phase::Lost { loss, .. }) => Some(loss),
        _ => None,
    }
}

#[test]
fn a_registration_is_repeatable_and_a_new_process_ends_the_old_incarnation() {
    let mut w = World::default();
    let first = w.register(1, 1);
    assert_eq!(w.register(1, 1), first);
    w.running("c", 1, 1);
    let second = w.register(1, 2);
    assert!(second > first);
    assert_eq!(lost(w.phase(&task("c", 0))), Some(Loss::Restarted));
    let epoch = w.placement(&task("c", 0)).epoch;
    let mut stale = w.report(1).offset(&task("c", 0), epoch, 1, "p", "{}");
    stale.incarnation = first;
    assert_eq!(w.refused(stale), Refusal::StaleIncarnation { node: 1, current: second });
}

#[test]
fn an_expired_incarnation_cannot_register_again_but_the_node_can() {
    let mut w = World::default();
    let old = w.register(1, 1);
    w.expire(1, false, 0);
    let again = CommandV1::RegisterNode { node: 1, boot: [1; 16], about: about(1), now_ms: 0, delay_ms: 0 };
    assert_eq!(w.refused(again), Refusal::StaleIncarnation { node: 1, current: old });
    assert!(w.register(1, 2) > old);
    assert_eq!(w.state.nodes[&1].state, NodeState::Alive);
}

#[test]
fn an_id_in_use_is_refused_to_a_process_at_another_address_until_its_lease_has_ended() {
    let mut w = World::default();
    w.register(1, 1);
    let elsewhere = NodeAbout { rpc_address: "elsewhere:9000".into(), ..about(1) };
    let second = CommandV1::RegisterNode { node: 1, boot: [2; 16], about: elsewhere.clone(), now_ms: 0, delay_ms: 0 };
    let in_use = Refusal::NodeIdInUse { node: 1, address: about(1).rpc_address };
    assert_eq!(w.refused(second.clone()), in_use);
    w.ok(CommandV1::DrainNode { node: 1, mode: DrainMode::Move });
    assert_eq!(w.refused(second.clone()), in_use);
    w.expire(1, false, 0);
    w.ok(second);
    assert_eq!(w.state.nodes[&1].about, elsewhere);
}

#[test]
fn expiring_loses_placements_keeps_times_and_unassigns_statuses() {
    let mut w = World::default();
    w.register(1, 1);
    w.register(2, 1);
    w.running("c", 2, 1);
    let epoch = w.placement(&task("c", 0)).epoch;
    w.ok(w.report(1).status(&task("c", 0), epoch, ReportedState::Failed, Some("x.Y: because")));
    w.now_ms = 5_000;
    w.expire(1, true, 700);
    let expected = Phase::Lost { since_ms: 5_000, until_ms: 5_700, loss: Loss::Gone };
    assert_eq!(w.phase(&task("c", 0)), Some(expected));
    let status = &w.state.statuses[&task("c", 0)];
    assert_eq!((status.state, status.trace.as_deref()), (ReportedState::Unassigned, None));
    // A second word about the same loss changes nothing.
    w.now_ms = 9_000;
    w.expire(1, false, 0);
    assert_eq!(w.phase(&task("c", 0)), Some(expected));
    let stale = CommandV1::ExpireNode { node: 2, incarnation: 1, gone: false, now_ms: 0, delay_ms: 0 };
    assert!(matches!(w.refused(stale), Refusal::StaleIncarnation { node: 2, .. }));
}

#[test]
fn assign_needs_a_free_unit_a_living_node_and_what_the_leader_saw() {
    let mut w = World::default();
    w.register(1, 1);
    w.register(2, 1);
    w.put("c", &[]);
    assert!(matches!(w.refused(w.assign_command(&connector("x"), 1)), Refusal::UnknownConnector(_)));
    assert!(matches!(w.refused(w.assign_command(&task("c", 0), 1)), Refusal::UnknownTask(_, 0)));
    assert!(matches!(w.refused(w.assign_command(&connector("c"), 3)), Refusal::UnknownNode(3)));
    let epoch = w.assign(&connector("c"), 1);
    assert_eq!(epoch, w.index, "the epoch is the index of the entry");
    assert!(matches!(w.refused(w.assign_command(&connector("c"), 2)), Refusal::NotFree(_)));
    w.ok(CommandV1::Revoke { unit: connector("c"), epoch });
    assert!(matches!(w.refused(w.assign_command(&connector("c"), 2)), Refusal::NotFree(_)));
    w.release(&connector("c"));
    let mut blind = w.assign_command(&connector("c"), 2);
    if let CommandV1::Assign { previous, .. } = &mut blind {
        *previous = 0;
    }
    assert!(matches!(w.refused(blind), Refusal::StaleEpoch(_)));
    w.ok(CommandV1::DrainNode { node: 2, mode: DrainMode::Move });
    assert!(matches!(w.refused(w.assign_command(&connector("c"), 2)), Refusal::NodeNotAlive(2)));
    w.ok(CommandV1::UndrainNode { node: 2 });
    assert!(w.assign(&connector("c"), 2) > epoch);
    assert!(matches!(w.refused(CommandV1::Revoke { unit: connector("c"), epoch }), Refusal::StaleEpoch(_)));
}

/// RUN-07: what an old owner says late is dropped, whatever it says.
#[test]
fn run_07_stale_reports_are_refused_per_item() {
    let mut w = World::default();
    for node in 1..=3 {
        w.register(node, 1);
    }
    w.running("c", 1, 1);
    let unit = task("c", 0);
    let old = w.placement(&unit).epoch;
    for node in [2, 3, 1] {
        let epoch = w.placement(&unit).epoch;
        w.ok(CommandV1::Revoke { unit: unit.clone(), epoch });
        w.release(&unit);
        w.assign(&unit, node);
    }
    let now = w.placement(&unit).epoch;
    w.ok(w.report(1).status(&unit, now, ReportedState::Running, None));
    let own = connector("c");
    let own_epoch = w.placement(&own).epoch;
    let late = w
        .report(1)
        .offset(&unit, old, 99, "p", "{\"old\":1}")
        .offset(&unit, now, 1, "p", "{\"new\":1}")
        .status(&unit, old, ReportedState::Failed, Some("late"))
        .status(&own, own_epoch, ReportedState::Running, None)
        .release(&unit, old);
    let Reply::Reported { refused } = w.ok(late) else { panic!() };
    let kinds: Vec<_> = refused.iter().map(|r| (r.epoch, r.partition.is_some(), r.why)).collect();
    let stale = ItemRefusal::StaleEpoch;
    assert_eq!(kinds, vec![(old, true, stale), (old, false, stale), (old, false, stale)]);
    assert_eq!(w.state.offset("c", &partition("p").canonical), Some("{\"new\":1}"));
    assert_eq!(w.status(&unit), Some(ReportedState::Running));
    assert_eq!(w.phase(&unit), Some(Phase::Assigned));
    assert_eq!(w.status(&own), Some(ReportedState::Running));
}

#[test]
fn a_position_moves_only_forward_and_a_repeated_one_is_no_error() {
    let mut w = World::default();
    w.register(1, 1);
    w.running("c", 1, 1);
    let unit = task("c", 0);
    let epoch = w.placement(&unit).epoch;
    let put = |w: &mut World, seq, text: &str| {
        let report = w.report(1).offset(&unit, epoch, seq, "p", text);
        let Reply::Reported { refused } = w.ok(report) else { panic!() };
        refused.first().map(|r| r.why)
    };
    assert_eq!(put(&mut w, 5, "{\"n\":5}"), None);
    let revision = w.index;
    assert_eq!(put(&mut w, 5, "{\"n\":5}"), None);
    assert_eq!(put(&mut w, 4, "{\"n\":4}"), Some(ItemRefusal::OldSequence));
    let row = &w.state.offsets["c"].rows[&partition("p").canonical];
    assert_eq!((row.offset.as_str(), row.epoch, row.seq, row.revision), ("{\"n\":5}", epoch, 5, revision));
    assert_eq!(put(&mut w, 6, &"x".repeat(MAX_OFFSET + 1)), Some(ItemRefusal::TooLarge));
    assert_eq!(put(&mut w, 6, "{\"n\":6}"), None);
    // A revoked owner still commits what it had sent.
    w.ok(CommandV1::Revoke { unit: unit.clone(), epoch });
    assert_eq!(put(&mut w, 7, "{\"n\":7}"), None);
    w.release(&unit);
    assert_eq!(put(&mut w, 8, "{\"n\":8}"), Some(ItemRefusal::StaleEpoch));
    // The next owner begins with any sequence.
    let epoch = w.assign(&unit, 1);
    let report = w.report(1).offset(&unit, epoch, 0, "p", "{\"n\":9}");
    assert_eq!(w.ok(report), Reply::Reported { refused: Vec::new() });
}

/// RUN-03: offsets outlive their connector, epochs do not repeat, exactly the new set runs.
#[test]
fn run_03_delete_and_create_under_the_same_name() {
    let mut w = World::default();
    w.register(1, 1);
    w.running("c", 3, 1);
    let old = w.placement(&task("c", 0)).epoch;
    w.ok(w.report(1).offset(&task("c", 0), old, 1, "p", "{\"n\":1}").topic("c", "t").status(
        &task("c", 0),
        old,
        ReportedState::Running,
        None,
    ));
    w.ok(CommandV1::DeleteConnector { name: name("c") });
    assert!(w.state.connectors.is_empty() && w.state.statuses.is_empty() && w.state.topics.is_empty());
    assert!(w.state.placements.values().all(|p| p.phase == Phase::Revoking));
    assert!(matches!(w.refused(CommandV1::DeleteConnector { name: name("c") }), Refusal::UnknownConnector(_)));
    // The name comes back before the old owner has finished.
    w.put("c", &[("name", "c")]);
    assert!(matches!(w.refused(w.assign_command(&connector("c"), 1)), Refusal::NotFree(_)));
    w.ok(w.report(1).offset(&task("c", 0), old, 2, "p", "{\"n\":2}").status(
        &task("c", 0),
        old,
        ReportedState::Running,
        None,
    ));
    assert_eq!(w.status(&task("c", 0)), None, "a task that has ended has no status");
    w.release(&connector("c"));
    w.assign(&connector("c"), 1);
    w.publish("c", World::tasks(1, "b"));
    assert!(matches!(w.refused(w.assign_command(&task("c", 0), 1)), Refusal::NotFree(_)));
    for n in 0..3 {
        w.release(&task("c", n));
    }
    assert!(w.assign(&task("c", 0), 1) > old);
    let units: Vec<_> = w.state.placements.keys().cloned().collect();
    assert_eq!(units, vec![connector("c"), task("c", 0)]);
    assert_eq!(w.state.offset("c", &partition("p").canonical), Some("{\"n\":2}"));
    // Everything of it survives a snapshot.
    let bytes = bincode::encode_to_vec(&w.state, crate::raft::BODY).unwrap();
    let (back, _): (State, usize) = bincode::decode_from_slice(&bytes, crate::raft::BODY).unwrap();
    assert_eq!(back, w.state);
    assert_eq!(back.hash(), w.state.hash());
}

/// RUN-05 and G8: a smaller set stops the surplus, and no task of the new set starts before every task
/// of the old set that has changed has ended.
#[test]
fn run_05_what_has_changed_in_a_task_set_ends_before_anything_begins() {
    let mut w = World::default();
    w.register(1, 1);
    w.register(2, 1);
    w.running("c", 2, 1);
    assert_eq!(w.publish("c", World::tasks(2, "a")), Reply::TasksReplaced { changed: false });
    assert_eq!(w.phase(&task("c", 0)), Some(Phase::Assigned));
    assert_eq!(w.publish("c", World::tasks(1, "b")), Reply::TasksReplaced { changed: true });
    w.release(&task("c", 0));
    assert!(matches!(w.refused(w.assign_command(&task("c", 0), 2)), Refusal::NotFree(_)));
    w.release(&task("c", 1));
    assert_eq!(w.phase(&task("c", 1)), None);
    w.assign(&task("c", 0), 2);
    // A lost owner of the old set is in nobody's way: its epoch shuts it out.
    w.expire(2, false, 0);
    w.publish("c", World::tasks(2, "c"));
    w.assign(&task("c", 0), 1);
    w.assign(&task("c", 1), 1);
}

/// What another set has unchanged goes on: epoch, status and restarts stay, positions are taken.
#[test]
fn run_05_a_task_that_another_set_has_unchanged_goes_on() {
    let mut w = World::default();
    w.register(1, 1);
    w.running("c", 3, 1);
    let kept = task("c", 0);
    let epoch = w.placement(&kept).epoch;
    w.ok(w.report(1).status(&kept, epoch, ReportedState::Running, None));
    for n in [0, 1] {
        w.ok(CommandV1::Restart { name: name("c"), scope: RestartScope::Task(n) });
    }
    w.ok(w.report(1).status(&kept, epoch, ReportedState::Running, None));
    let (status, restarts) = (w.state.statuses[&kept].clone(), w.state.connectors["c"].task_restarts.clone());
    let with = |second: &str, count: usize| {
        let mut tasks = World::tasks(count, "a");
        tasks[1] = World::tasks(2, second).remove(1);
        tasks
    };

    // The second has changed and the third has gone.
    w.publish("c", with("b", 2));
    let revision = w.state.connectors["c"].tasks_revision;
    let carried = w.placement(&kept);
    assert_eq!((carried.epoch, carried.phase, carried.tasks_revision), (epoch, Phase::Assigned, revision));
    assert_eq!(w.state.statuses[&kept], status);
    assert_eq!(w.state.connectors["c"].task_restarts, BTreeMap::from([(0, restarts[&0])]));
    assert_eq!(w.phase(&task("c", 1)), Some(Phase::Revoking));
    let report = w.report(1).offset(&kept, epoch, 1, "p", "{}").status(&kept, epoch, ReportedState::Failed, None);
    assert_eq!(w.ok(report), Reply::Reported { refused: Vec::new() });
    assert_eq!(w.status(&kept), Some(ReportedState::Failed));
    w.release(&task("c", 1));
    assert!(matches!(w.refused(w.assign_command(&task("c", 1), 1)), Refusal::NotFree(_)), "the third still runs");
    // A set that has it unchanged once more, while a task of the first set still holds on.
    w.publish("c", with("c", 3));
    assert_eq!(w.placement(&kept).tasks_revision, w.state.connectors["c"].tasks_revision);
    assert_ne!(w.placement(&task("c", 2)).tasks_revision, w.state.connectors["c"].tasks_revision);
    assert_eq!(w.phase(&task("c", 2)), Some(Phase::Revoking), "it had gone in between");
    w.release(&task("c", 2));
    w.assign(&task("c", 1), 1);
    w.assign(&task("c", 2), 1);
    assert_eq!(w.placement(&kept).epoch, epoch);

    // One that moves for another reason stays on its way, and is the same task where it arrives.
    w.ok(CommandV1::Revoke { unit: kept.clone(), epoch });
    w.publish("c", with("d", 3));
    assert_eq!(w.phase(&kept), Some(Phase::Revoking));
    w.release(&kept);
    assert_eq!(w.placement(&kept).tasks_revision, w.state.connectors["c"].tasks_revision);
    // The same tasks from another configuration of the connector are others.
    w.release(&task("c", 1));
    w.assign(&kept, 1);
    w.put("c", &[("changed", "yes")]);
    w.publish("c", with("d", 3));
    assert_eq!(w.phase(&kept), Some(Phase::Revoking));
    assert!(w.state.connectors["c"].task_restarts.is_empty());
}

#[test]
fn tasks_come_only_from_the_owner_of_the_present_configuration() {
    let mut w = World::default();
    w.register(1, 1);
    w.running("c", 1, 1);
    let stale = w.publish_command("c", World::tasks(2, "a"));
    w.put("c", &[("changed", "yes")]);
    assert!(matches!(w.refused(stale), Refusal::StaleRevision { .. }));
    // The same tasks from a new configuration are a new set: their environment has changed.
    assert_eq!(w.publish("c", World::tasks(1, "a")), Reply::TasksReplaced { changed: true });
    let mut other = w.publish_command("c", World::tasks(2, "a"));
    if let CommandV1::ReplaceTasks { epoch, .. } = &mut other {
        *epoch += 1;
    }
    assert!(matches!(w.refused(other), Refusal::StaleEpoch(_)));
    let too_many = w.publish_command("c", vec![Properties::new(); MAX_TASKS + 1]);
    assert!(matches!(w.refused(too_many), Refusal::Invalid(_)));
    let large = Properties::from([("k", "x".repeat(MAX_CONFIG).as_str())]);
    assert!(matches!(w.refused(w.publish_command("c", vec![large])), Refusal::TooLarge { .. }));
    w.ok(CommandV1::SetTarget { name: name("c"), target: TargetState::Stopped });
    assert!(matches!(w.refused(w.publish_command("c", World::tasks(1, "a"))), Refusal::NotStarted(_)));
}

/// RUN-09: targets are durable; stopping empties the task list in the same step.
#[test]
fn run_09_pause_resume_stop() {
    let mut w = World::default();
    w.register(1, 1);
    w.running("c", 2, 1);
    let set = |w: &mut World, target| {
        w.ok(CommandV1::SetTarget { name: name("c"), target });
    };
    set(&mut w, TargetState::Paused);
    assert_eq!(w.state.connectors["c"].tasks.len(), 2);
    assert_eq!(w.phase(&task("c", 0)), Some(Phase::Assigned));
    w.put("c", &[("changed", "yes")]);
    assert_eq!(w.state.connectors["c"].target, TargetState::Paused, "a paused connector stays paused");
    set(&mut w, TargetState::Stopped);
    set(&mut w, TargetState::Stopped);
    assert!(w.state.connectors["c"].tasks.is_empty());
    assert_eq!(w.phase(&task("c", 0)), Some(Phase::Revoking));
    assert_eq!(w.phase(&connector("c")), Some(Phase::Assigned));
    set(&mut w, TargetState::Started);
    w.publish("c", World::tasks(2, "a"));
    let unknown = CommandV1::SetTarget { name: name("x"), target: TargetState::Paused };
    assert!(matches!(w.refused(unknown), Refusal::UnknownConnector(_)));
}

#[test]
fn put_connector_honours_what_the_writer_read() {
    let mut w = World::default();
    let put = |expect, target| CommandV1::PutConnector { name: name("c"), config: Properties::new(), target, expect };
    assert!(matches!(w.refused(put(Expect::Revision(1), TargetState::Started)), Refusal::UnknownConnector(_)));
    let Reply::ConnectorPut { created: true, revision } = w.ok(put(Expect::Absent, TargetState::Stopped)) else {
        panic!()
    };
    assert!(matches!(w.refused(put(Expect::Absent, TargetState::Started)), Refusal::AlreadyExists(_)));
    let Reply::ConnectorPut { created: false, revision: second } =
        w.ok(put(Expect::Revision(revision), TargetState::Started))
    else {
        panic!()
    };
    assert_eq!(w.state.connectors["c"].target, TargetState::Stopped, "an update does not start it");
    let late = w.refused(put(Expect::Revision(revision), TargetState::Started));
    assert_eq!(late, Refusal::StaleRevision { name: name("c"), current: second });
    for bad in ["", "a\u{7}b", &"n".repeat(MAX_NAME + 1)] {
        let bad = CommandV1::PutConnector {
            name: name(bad),
            config: Properties::new(),
            target: TargetState::Started,
            expect: Expect::Any,
        };
        w.refused(bad);
    }
}

#[test]
fn offsets_are_altered_only_while_nothing_may_commit() {
    let mut w = World::default();
    w.register(1, 1);
    w.running("c", 1, 1);
    let unit = task("c", 0);
    let epoch = w.placement(&unit).epoch;
    w.ok(w.report(1).offset(&unit, epoch, 1, "p", "{\"n\":1}").offset(&unit, epoch, 1, "q", "{\"n\":1}"));
    let alter = |expect_revision, rows: Vec<(&str, Option<&str>)>| CommandV1::AlterOffsets {
        name: name("c"),
        expect_revision,
        change: OffsetChange::Set(rows.into_iter().map(|(p, o)| (partition(p), o.map(str::to_owned))).collect()),
    };
    assert!(matches!(w.refused(alter(None, vec![("p", None)])), Refusal::NotStopped(_)));
    w.ok(CommandV1::SetTarget { name: name("c"), target: TargetState::Stopped });
    assert!(matches!(w.refused(alter(None, vec![("p", None)])), Refusal::NotStopped(_)), "the task still drains");
    w.release(&unit);
    let Reply::OffsetsAltered { revision } = w.ok(alter(Some(0), vec![("p", None), ("r", Some("{\"n\":7}"))])) else {
        panic!()
    };
    assert!(matches!(w.refused(alter(Some(0), vec![("q", None)])), Refusal::StaleRevision { .. }));
    let rows: Vec<_> = w.state.offsets["c"].rows.values().map(|r| r.offset.clone()).collect();
    assert_eq!(rows, vec!["{\"n\":1}", "{\"n\":7}"]);
    // The member order on record stays.
    let mut again = partition("r");
    again.original = "{ \"server_id\": \"r\" }".into();
    let change = OffsetChange::Set(vec![(again, Some("{\"n\":8}".into()))]);
    w.ok(CommandV1::AlterOffsets { name: name("c"), expect_revision: Some(revision), change });
    assert_eq!(w.state.offsets["c"].rows[&partition("r").canonical].partition, partition("r").original);
    // An altered position does not shut out the next owner.
    w.ok(CommandV1::SetTarget { name: name("c"), target: TargetState::Started });
    w.publish("c", World::tasks(1, "a"));
    let epoch = w.assign(&unit, 1);
    let report = w.report(1).offset(&unit, epoch, 0, "r", "{\"n\":9}");
    assert_eq!(w.ok(report), Reply::Reported { refused: Vec::new() });
    w.ok(CommandV1::SetTarget { name: name("c"), target: TargetState::Stopped });
    // A lost owner cannot commit, so it is in nobody's way.
    w.expire(1, false, 0);
    let all = CommandV1::AlterOffsets { name: name("c"), expect_revision: None, change: OffsetChange::RemoveAll };
    w.ok(all);
    assert!(w.state.offsets["c"].rows.is_empty());
}

#[test]
fn restarts_name_exactly_the_units_that_are_meant() {
    let mut w = World::default();
    w.register(1, 1);
    w.running("c", 3, 1);
    let mut report = w.report(1);
    for n in 0..3 {
        let epoch = w.placement(&task("c", n)).epoch;
        let state = if n == 1 { ReportedState::Failed } else { ReportedState::Running };
        report = report.status(&task("c", n), epoch, state, (n == 1).then_some("x.Y: because"));
    }
    w.ok(report);
    let restart = |scope| CommandV1::Restart { name: name("c"), scope };
    let scope = |include_tasks, only_failed| restart(RestartScope::Connector { include_tasks, only_failed });
    let Reply::Restarting { units } = w.ok(scope(true, true)) else { panic!() };
    assert_eq!(units, vec![task("c", 1)]);
    assert_eq!(w.status(&task("c", 1)), Some(ReportedState::Restarting));
    assert_eq!(w.status(&task("c", 0)), Some(ReportedState::Running));
    assert_eq!(w.state.connectors["c"].task_restarts, BTreeMap::from([(1, w.index)]));
    let Reply::Restarting { units } = w.ok(scope(false, false)) else { panic!() };
    assert_eq!(units, vec![connector("c")]);
    assert_eq!(w.state.connectors["c"].restart, w.index);
    let Reply::Restarting { units } = w.ok(scope(true, false)) else { panic!() };
    assert_eq!(units.len(), 4);
    let Reply::Restarting { units } = w.ok(restart(RestartScope::Task(2))) else { panic!() };
    assert_eq!(units, vec![task("c", 2)]);
    assert!(matches!(w.refused(restart(RestartScope::Task(9))), Refusal::UnknownTask(_, 9)));
    // Nobody could report the end of a restart of a unit that is placed nowhere.
    w.expire(1, false, 0);
    w.ok(scope(true, false));
    assert_eq!(w.status(&task("c", 1)), Some(ReportedState::Unassigned));
}

#[test]
fn draining_in_hold_mode_takes_everything_back_and_leaving_keeps_the_hold() {
    let mut w = World::default();
    w.register(1, 1);
    w.running("c", 1, 1);
    w.ok(CommandV1::DrainNode { node: 1, mode: DrainMode::Hold });
    assert!(w.state.placements.values().all(|p| p.phase == Phase::Revoking));
    w.release(&task("c", 0));
    w.ok(CommandV1::NodeLeft { node: 1, incarnation: w.incarnation(1), now_ms: 100, hold_ms: 50 });
    assert_eq!(w.state.nodes[&1].state, NodeState::Left { since_ms: 100, hold_until_ms: 150 });
    assert_eq!(w.phase(&task("c", 0)), Some(Phase::Released));
    assert_eq!(lost(w.phase(&connector("c"))), Some(Loss::Left), "was not released in time");
    w.ok(CommandV1::RemoveNode { node: 1 });
    assert!(w.state.nodes.is_empty());
}

#[test]
fn the_feature_level_waits_for_every_node_and_never_sinks() {
    let mut w = World::default();
    let old = NodeAbout { feature_level: 1, ..about(1) };
    let new = NodeAbout { feature_level: 2, ..about(2) };
    let register = |node, about: &NodeAbout, boot| CommandV1::RegisterNode {
        node,
        boot: [boot; 16],
        about: about.clone(),
        now_ms: 0,
        delay_ms: 0,
    };
    w.ok(register(1, &old, 1));
    w.ok(register(2, &new, 1));
    assert_eq!(w.refused(CommandV1::SetFeatureLevel { level: 2 }), Refusal::FeatureLevel { wanted: 2, possible: 1 });
    w.expire(1, false, 0);
    assert!(matches!(w.refused(CommandV1::SetFeatureLevel { level: 2 }), Refusal::FeatureLevel { .. }));
    w.ok(CommandV1::RemoveNode { node: 1 });
    w.ok(CommandV1::SetFeatureLevel { level: 2 });
    assert!(matches!(w.refused(CommandV1::SetFeatureLevel { level: 1 }), Refusal::FeatureLevel { .. }));
    assert!(matches!(w.refused(register(1, &old, 2)), Refusal::FeatureLevel { wanted: 2, possible: 1 }));
}

#[test]
fn topics_loggers_and_traces_are_kept_and_bounded() {
    let mut w = World::default();
    w.register(1, 1);
    w.running("c", 1, 1);
    let unit = task("c", 0);
    let epoch = w.placement(&unit).epoch;
    let trace = "ä".repeat(MAX_TRACE);
    let report = w.report(1).topic("c", "t1").topic("c", "t1").topic("gone", "t").topic("c", &"x".repeat(2000));
    let report = report.status(&unit, epoch, ReportedState::Failed, Some(&trace));
    let Reply::Reported { refused } = w.ok(report) else { panic!() };
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].why, ItemRefusal::TooLarge);
    assert_eq!(w.state.statuses[&unit].trace.as_ref().unwrap().len(), MAX_TRACE);
    assert_eq!(w.state.statuses[&unit].worker_id, "host1:8083");
    assert_eq!(w.state.topics, BTreeMap::from([(name("c"), BTreeSet::from([name("t1")]))]));
    w.ok(CommandV1::ResetTopics { name: name("c") });
    assert!(w.state.topics.is_empty());
    let set = |logger: &str, level| CommandV1::SetLogger { logger: logger.into(), level, now_ms: 77 };
    w.ok(set("a", Some(LogLevel::Debug)));
    assert_eq!(w.state.loggers["a"], Logger { level: LogLevel::Debug, modified_ms: 77 });
    w.ok(set("a", None));
    assert!(w.state.loggers.is_empty());
    for n in 0..MAX_LOGGERS {
        w.ok(set(&n.to_string(), Some(LogLevel::Info)));
    }
    assert!(matches!(w.refused(set("more", Some(LogLevel::Info))), Refusal::Invalid(_)));
    w.ok(set("0", Some(LogLevel::Trace)));
}

#[test]
fn only_what_concerns_the_layout_moves_it() {
    let mut w = World::default();
    w.register(1, 1);
    w.running("c", 1, 1);
    let unit = task("c", 0);
    let epoch = w.placement(&unit).epoch;
    let layout = w.state.layout;
    assert_eq!(layout, w.index);
    w.ok(w.report(1).offset(&unit, epoch, 1, "p", "{}").status(&unit, epoch, ReportedState::Running, None));
    w.refused(CommandV1::Revoke { unit: unit.clone(), epoch: 1 });
    assert_eq!(w.state.layout, layout);
    w.ok(w.report(1).release(&unit, epoch));
    assert_eq!(w.state.layout, w.index);
}

#[test]
fn ten_thousand_offsets_survive_a_snapshot() {
    let mut w = World::default();
    w.register(1, 1);
    w.running("c", 1, 1);
    let unit = task("c", 0);
    let epoch = w.placement(&unit).epoch;
    let mut report = w.report(1);
    for n in 0..10_000 {
        report = report.offset(&unit, epoch, n, &format!("p{n}"), "{\"sec\":1,\"ord\":2}");
    }
    w.ok(report);
    let bytes = bincode::encode_to_vec(&w.state, crate::raft::BODY).unwrap();
    let (back, used): (State, usize) = bincode::decode_from_slice(&bytes, crate::raft::BODY).unwrap();
    assert_eq!((used, back.offsets["c"].rows.len()), (bytes.len(), 10_000));
    assert_eq!(back, w.state);
    // A layout of a later build is refused, not misread.
    let mut newer = bytes;
    newer[0] = 1;
    assert!(bincode::decode_from_slice::<State, _>(&newer, crate::raft::BODY).is_err());
}
