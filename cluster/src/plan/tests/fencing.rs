#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

fn lost(delivery: &str, gone: bool) -> Desk {
    let mut desk = Desk::with_nodes(2);
    desk.w.put("c", &[("thalweg.delivery", delivery)]);
    desk.step();
    desk.w.publish("c", World::tasks(2, "a"));
    desk.settle();
    desk.w.expire(2, gone, 0);
    desk.ready.remove(&2);
    desk
}

fn task_waits(plan: &Plan) -> Vec<u64> {
    fence_waits(plan).into_iter().filter(|(u, _)| u.is_task()).map(|(_, wait)| wait).collect()
}

#[test]
fn fenced_tasks_do_not_wait() {
    assert_eq!(task_waits(&lost("fenced", false).plan()), vec![0]);
    assert_eq!(task_waits(&lost("fenced", true).plan()), vec![0]);
}

#[test]
fn plain_tasks_wait_for_the_last_sends_and_for_the_lease_if_it_may_still_run() {
    assert_eq!(task_waits(&lost("plain", false).plan()), vec![10_000]);
    assert_eq!(task_waits(&lost(" Plain ", true).plan()), vec![13_030]);
    // What this leader has seen itself counts; a wall clock does not.
    let mut desk = lost("plain", false);
    desk.w.now_ms += 1_000_000;
    desk.ages = desk.w.state.placements.values().map(|p| (p.epoch, free_for(4_000))).collect();
    assert_eq!(task_waits(&desk.plan()), vec![6_000]);
    // Its own node, as another process, waits for the sockets only.
    let mut desk = lost("plain", false);
    desk.join(2);
    assert_eq!(task_waits(&desk.plan()), vec![10_000], "it was expired before it came back");
    let mut desk = Desk::with_nodes(1);
    desk.w.put("c", &[("thalweg.delivery", "plain")]);
    desk.step();
    desk.w.publish("c", World::tasks(1, "a"));
    desk.settle();
    desk.join(1);
    assert_eq!(task_waits(&desk.plan()), vec![1_000]);
    assert!(fence_waits(&desk.plan()).iter().any(|(u, wait)| !u.is_task() && *wait == 0));
}

/// The broker refuses an old owner only if both have transactional producers.
#[test]
fn a_change_of_mode_waits_in_both_directions() {
    for (before, after) in [("plain", "fenced"), ("fenced", "plain")] {
        let mut desk = lost(before, false);
        desk.w.put("c", &[("thalweg.delivery", after)]);
        assert_eq!(task_waits(&desk.plan()), vec![10_000], "from {before} to {after}");
    }
}

/// The broker shuts out the old owner of the same task only; the partitions of a lost task of an
/// earlier set may now be another task's.
#[test]
fn a_new_set_waits_for_lost_tasks_of_the_old_one_in_any_mode() {
    for (tasks, expected) in [(2, vec![10_000, 10_000]), (1, vec![10_000])] {
        let mut desk = lost("fenced", false);
        // The connector object may have been on the lost node.
        if desk.node_of(&Unit::connector("c")).is_none() {
            let command = desk.w.assign_command(&Unit::connector("c"), 1);
            desk.w.ok(command);
        }
        desk.w.publish("c", World::tasks(tasks, "b"));
        desk.release_all();
        assert_eq!(task_waits(&desk.step()), expected);
    }
}

#[test]
fn a_lost_task_that_no_longer_exists_is_remembered_until_its_sends_have_ended() {
    let mut desk = lost("fenced", false);
    let orphan = desk.w.state.placements.iter().find(|(u, p)| u.is_task() && p.node == 2).unwrap();
    let (orphan, epoch) = (orphan.0.clone(), orphan.1.epoch);
    desk.w.ok(CommandV1::DeleteConnector { name: "c".into() });
    desk.release_all();
    assert_eq!(desk.step().wake, Some(Duration::from_secs(10)));
    assert!(desk.w.state.placements.contains_key(&orphan));
    desk.ages = BTreeMap::from([(epoch, free_for(10_000))]);
    desk.step();
    assert!(desk.w.state.placements.is_empty());
    assert!(desk.step().commands.is_empty());
}

/// An owner that was told to wait, and gave the task up before, passes the rest of the wait on.
#[test]
fn a_wait_outlives_the_owner_that_was_told() {
    let mut desk = lost("plain", false);
    desk.step();
    let (unit, placement) = desk
        .w
        .state
        .placements
        .iter()
        .find(|(_, p)| p.fence_wait_ms == 10_000)
        .map(|(u, p)| (u.clone(), p.clone()))
        .unwrap();
    let epoch = placement.epoch;
    desk.w.ok(CommandV1::Revoke { unit: unit.clone(), epoch });
    desk.w.release(&unit);
    assert_eq!(task_waits(&desk.plan()), vec![10_000], "a new leader does not know how much of it has passed");
    desk.ages = BTreeMap::from([(epoch, Age { known: Duration::from_secs(3), free: Duration::ZERO })]);
    assert_eq!(task_waits(&desk.plan()), vec![7_000]);
    // Also if the task itself is gone and its partitions are another's.
    desk.w.publish("c", World::tasks(usize::from(unit.task == Some(1)), "b"));
    desk.release_all();
    assert!(desk.w.state.placements.contains_key(&unit));
    let plan = desk.step();
    assert!(task_waits(&plan).iter().all(|wait| *wait == 7_000), "{plan:?}");
    desk.ages = BTreeMap::from([(epoch, free_for(10_000))]);
    desk.step();
    assert!(desk.w.state.exists(&unit) || !desk.w.state.placements.contains_key(&unit));
}

#[test]
fn a_part_of_a_set_that_is_placed_later_waits_as_long() {
    let mut desk = lost("fenced", false);
    if desk.node_of(&Unit::connector("c")).is_none() {
        let command = desk.w.assign_command(&Unit::connector("c"), 1);
        desk.w.ok(command);
    }
    desk.w.publish("c", World::tasks(2, "b"));
    desk.release_all();
    // Only the first of the two gets through before the leader changes.
    let plan = desk.plan();
    let assigns: Vec<_> = plan.commands.iter().filter(|c| c.kind() == "assign").cloned().collect();
    let lost_task = desk.w.state.placements.iter().find(|(u, p)| u.is_task() && p.node == 2).unwrap().0.clone();
    let first = assigns.iter().find(|c| matches!(c, Command::V1(CommandV1::Assign { unit, .. }) if *unit == lost_task));
    desk.w.ok(first.unwrap().clone());
    assert_eq!(task_waits(&desk.plan()), vec![10_000]);
}

/// One that is lost while another set has it unchanged reads what it read before: its broker shuts the old
/// owner out, and of the other tasks' partitions it has none.
#[test]
fn a_lost_task_that_another_set_has_unchanged_does_not_wait_for_the_rest() {
    for (delivery, expected) in [("fenced", [0, 10_000]), ("plain", [10_000, 10_000])] {
        let mut desk = Desk::with_nodes(3);
        desk.w.put("c", &[("thalweg.delivery", delivery)]);
        desk.step();
        desk.w.publish("c", World::tasks(3, "a"));
        desk.settle();
        let of = |desk: &Desk, task| desk.w.state.placements[&Unit::task("c", task)].node;
        let mut tasks = World::tasks(3, "a");
        tasks[1] = World::tasks(2, "b").remove(1);
        // The node of the first also loses the last, which goes; the second gets what that had.
        let node = of(&desk, 0);
        let last = Unit::task("c", 2);
        let epoch = desk.w.placement(&last).epoch;
        desk.w.ok(CommandV1::Revoke { unit: last.clone(), epoch });
        desk.w.release(&last);
        desk.w.assign(&last, node);
        if desk.node_of(&Unit::connector("c")) == Some(node) {
            let unit = Unit::connector("c");
            let epoch = desk.w.placement(&unit).epoch;
            desk.w.ok(CommandV1::Revoke { unit: unit.clone(), epoch });
            desk.w.release(&unit);
            desk.w.assign(&unit, of(&desk, 1));
        }
        desk.w.expire(node, false, 0);
        desk.ready.remove(&node);
        tasks.pop();
        desk.w.publish("c", tasks);
        desk.release_all();
        let plan = desk.plan();
        assert_eq!(task_waits(&plan), expected, "{delivery}: {plan:?}");
    }
}

/// A task of another set that was told to wait, and is lost before the rest is placed, is still word of it.
#[test]
fn what_a_part_of_a_set_was_told_counts_for_the_rest_after_it_is_lost() {
    let mut desk = Desk::with_nodes(3);
    desk.w.put("c", &[("name", "c")]);
    desk.step();
    desk.w.publish("c", World::tasks(2, "a"));
    desk.settle();
    let place = |desk: &Desk, unit: &Unit| desk.w.placement(unit).node;
    let (first, second, owner) = (Unit::task("c", 0), Unit::task("c", 1), Unit::connector("c"));
    let lost = place(&desk, &first);
    if place(&desk, &owner) == lost {
        let epoch = desk.w.placement(&owner).epoch;
        desk.w.ok(CommandV1::Revoke { unit: owner.clone(), epoch });
        desk.w.release(&owner);
        desk.w.assign(&owner, place(&desk, &second));
    }
    desk.w.expire(lost, false, 0);
    desk.ready.remove(&lost);
    desk.w.publish("c", World::tasks(2, "b"));
    desk.release_all();
    // Only the first gets through, on a node that is lost as well.
    let stays = place(&desk, &owner);
    let next = (1..=3).find(|node| ![lost, stays].contains(node)).unwrap();
    let mut command = desk.w.assign_command(&first, next);
    if let CommandV1::Assign { fence_wait_ms, late_sends_ms, .. } = &mut command {
        (*fence_wait_ms, *late_sends_ms) = (10_000, 10_000);
        let planned = fence_waits(&desk.plan()).into_iter().find(|(unit, _)| *unit == first).unwrap().1;
        assert_eq!(planned, 10_000);
    }
    desk.w.ok(command);
    desk.w.expire(next, true, 0);
    desk.ready.remove(&next);
    let waits = fence_waits(&desk.plan());
    assert_eq!(waits.iter().find(|(unit, _)| *unit == second).map(|(_, wait)| *wait), Some(10_000), "{waits:?}");
}

/// The broker shuts out the old owner when the new one has opened its producer. If that one is taken back
/// before, whoever gets its partitions as another task knows that nobody was shut out.
#[test]
fn an_owner_that_may_not_have_shut_out_the_one_before_passes_that_on() {
    for known in [0, 4_000] {
        let mut desk = lost("fenced", false);
        assert_eq!(task_waits(&desk.step()), [0]);
        let owners: Vec<u64> = desk.w.state.placements.values().map(|p| p.epoch).collect();
        let age = Age { known: Duration::from_millis(known), free: Duration::ZERO };
        desk.w.publish("c", World::tasks(2, "b"));
        desk.release_all();
        desk.ages = owners.into_iter().map(|epoch| (epoch, age)).collect();
        assert_eq!(task_waits(&desk.plan()), [10_000 - known; 2]);
        // Also if it goes with the set.
        desk.w.publish("c", World::tasks(1, "c"));
        assert_eq!(task_waits(&desk.step()), [10_000 - known]);
    }
}
