#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use thalweg_actors::port::{Assignment, Epoch, OffsetCommit, UnitId, UnitState, UnitStatus};
use thalweg_core::position::SourcePartition;

use super::queue::*;
use super::*;
use crate::raft::Command;
use crate::raft::command::{CommandV1, ItemRefusal, RefusedItem};
use crate::raft::local::LocalLog;
use crate::raft::state::world::{World, name};
use crate::raft::state::{MAX_OFFSET, MAX_TRACE};

fn task(n: u32) -> UnitId {
    UnitId::Task("c".into(), n)
}

fn commit(task_: u32, epoch: u64, partition: &str, seq: u64) -> OffsetCommit {
    OffsetCommit {
        unit: task(task_),
        epoch: Epoch(epoch),
        partition: SourcePartition::new([("p", partition)]),
        offset: json!({ "n": seq }).as_object().unwrap().clone(),
        seq,
    }
}

fn status(state: UnitState, trace: Option<String>) -> UnitStatus {
    UnitStatus { state, trace }
}

fn report(command: &Command) -> (Vec<(u32, u64)>, usize, usize, Vec<u32>) {
    let Command::V1(CommandV1::Report { offsets, topics, statuses, released, .. }) = command else { panic!() };
    let offsets = offsets.iter().map(|o| (o.unit.task.unwrap(), o.seq)).collect();
    (offsets, topics.len(), statuses.len(), released.iter().map(|(u, _)| u.task.unwrap()).collect())
}

mod queue_alone {
    use super::*;

    #[test]
    fn the_newest_position_of_a_partition_goes_out_once() {
        let mut q = Queue::default();
        assert!(q.is_empty());
        q.commit(commit(0, 5, "a", 1));
        q.commit(commit(0, 5, "a", 3));
        q.commit(commit(0, 5, "a", 2));
        q.commit(commit(0, 5, "b", 1));
        assert_eq!(q.standing(&Unit::task("c", 0)), Standing::Waiting { leaving: false });
        let batch = q.take(1 << 20).unwrap();
        assert_eq!(report(&batch.command(1, 1)).0, vec![(0, 3), (0, 1)]);
        assert!(q.is_empty() && q.take(1 << 20).is_none());
        assert_eq!(q.standing(&Unit::task("c", 0)), Standing::Waiting { leaving: false }, "it is on its way");
        q.applied(batch, &[]);
        assert_eq!(q.standing(&Unit::task("c", 0)), Standing::Settled);
    }

    #[test]
    fn what_was_not_written_waits_again_unless_something_newer_does() {
        let mut q = Queue::default();
        q.commit(commit(0, 5, "a", 1));
        q.commit(commit(0, 5, "b", 1));
        q.status((&task(0)).into(), 5, status(UnitState::Running, None));
        q.released((&task(1)).into(), 5);
        q.topic(&name("c"), &name("t"));
        let batch = q.take(1 << 20).unwrap();
        q.commit(commit(0, 5, "a", 2));
        q.status((&task(0)).into(), 5, status(UnitState::Failed, None));
        q.put_back(batch);
        let batch = q.take(1 << 20).unwrap();
        let command = batch.command(1, 1);
        assert_eq!(report(&command), (vec![(0, 2), (0, 1)], 1, 1, vec![1]));
        let Command::V1(CommandV1::Report { statuses, .. }) = &command else { panic!() };
        assert_eq!(statuses[0].state, crate::raft::command::ReportedState::Failed);
    }

    #[test]
    fn batches_are_bounded_and_no_partition_starves() {
        let mut q = Queue::default();
        for n in 0..100 {
            q.commit(commit(n, 5, "a", 0));
        }
        let mut seen = Vec::new();
        let mut batches = 0;
        while let Some(batch) = q.take(1024) {
            batches += 1;
            let command = batch.command(1, 1);
            assert!(bincode::encode_to_vec(&command, crate::raft::BODY).unwrap().len() <= 1200);
            for (task, _) in report(&command).0 {
                seen.push(task);
                // The first ones never stop.
                if task < 5 && batches < 3 {
                    q.commit(commit(task, 5, "a", u64::from(task) + 10));
                }
            }
            q.applied(batch, &[]);
        }
        assert!(batches > 5);
        assert_eq!(seen[..100], (0..100).collect::<Vec<u32>>(), "in the order in which they first waited");
    }

    #[test]
    fn a_release_goes_out_behind_the_last_position() {
        let mut q = Queue::default();
        for n in 0..40 {
            q.commit(commit(0, 5, &n.to_string(), 1));
        }
        q.released((&task(0)).into(), 5);
        q.released((&task(1)).into(), 5);
        let first = q.take(1500).unwrap();
        let (offsets, _, _, released) = report(&first.command(1, 1));
        assert!(offsets.len() < 40 && !released.contains(&0));
        let mut last = Vec::new();
        while let Some(batch) = q.take(1500) {
            last = report(&batch.command(1, 1)).3;
        }
        assert!(last.contains(&0));
    }

    #[test]
    fn a_stale_owner_is_fenced_and_a_later_one_is_not() {
        let mut q = Queue::default();
        q.commit(commit(0, 5, "a", 1));
        let batch = q.take(1 << 20).unwrap();
        q.commit(commit(0, 5, "a", 2));
        let stale = RefusedItem {
            unit: (&task(0)).into(),
            epoch: 5,
            partition: Some("x".into()),
            why: ItemRefusal::StaleEpoch,
        };
        q.applied(batch, &[stale]);
        let unit = Unit::task("c", 0);
        assert_eq!(q.standing(&unit), Standing::Fenced(5));
        assert!(q.is_empty(), "what waited of that epoch is dropped");
        assert!(q.commit(commit(0, 5, "a", 3)).is_none() && !q.released(unit.clone(), 5));
        assert_eq!(q.commit(commit(0, 6, "a", 0)), Some(true), "the first of its epoch");
        assert_eq!(q.commit(commit(0, 6, "a", 1)), Some(false));
        assert_eq!(q.standing(&unit), Standing::Waiting { leaving: false });
        let batch = q.take(1 << 20).unwrap();
        // An old refusal that comes late does not fence the new owner.
        q.applied(batch, &[]);
        assert_eq!(q.standing(&unit), Standing::Settled);
        q.commit(commit(1, 7, "a", 1));
        let batch = q.take(1 << 20).unwrap();
        q.fenced(batch);
        assert_eq!(q.standing(&Unit::task("c", 1)), Standing::Fenced(7));
        let here = |task, epoch, revoked| std::collections::BTreeMap::from([(Unit::task("c", task), (epoch, revoked))]);
        q.placed(&here(1, 7, false));
        assert_eq!(q.standing(&Unit::task("c", 1)), Standing::Fenced(7), "it is still placed here with that epoch");
        q.placed(&here(1, 8, false));
        assert_eq!(q.standing(&Unit::task("c", 1)), Standing::Settled);
    }

    #[test]
    fn a_position_that_cannot_be_stored_is_said_so() {
        let mut q = Queue::default();
        let mut large = commit(0, 5, "a", 1);
        large.offset = json!({ "x": "y".repeat(MAX_OFFSET) }).as_object().unwrap().clone();
        q.commit(large);
        assert!(q.take(1 << 19).is_none());
        let Standing::Failed(why) = q.standing(&Unit::task("c", 0)) else { panic!() };
        assert!(why.contains("task c-0") && why.contains("1048576"), "{why}");
        // A large one that can be stored goes alone.
        let mut large = commit(1, 5, "a", 1);
        large.offset = json!({ "x": "y".repeat(MAX_OFFSET / 2 + 1) }).as_object().unwrap().clone();
        q.commit(large);
        q.commit(commit(2, 5, "a", 1));
        assert_eq!(report(&q.take(1 << 19).unwrap().command(1, 1)).0, vec![(1, 1)]);
        assert_eq!(report(&q.take(1 << 19).unwrap().command(1, 1)).0, vec![(2, 1)]);
        // Traces are cut before they travel.
        q.status((&task(0)).into(), 6, status(UnitState::Failed, Some("ü".repeat(MAX_TRACE))));
        let Command::V1(CommandV1::Report { statuses, .. }) = q.take(1 << 19).unwrap().command(1, 1) else { panic!() };
        assert_eq!(statuses[0].trace.as_ref().unwrap().len(), MAX_TRACE);
    }

    proptest! {
        /// Whatever is lost on the way: per unit and partition the sequence that arrives never
        /// falls, and the last one that was queued arrives.
        #[test]
        fn the_last_position_always_arrives_and_none_goes_back(
            steps in prop::collection::vec((0u8..4, 0u32..3, 0u8..3, 0u8..3), 1..120),
        ) {
            let mut q = Queue::default();
            let mut seq = 0;
            let mut queued = std::collections::BTreeMap::new();
            let mut stored: std::collections::BTreeMap<(u32, String), u64> = Default::default();
            let deliver = |batch: &Batch, stored: &mut std::collections::BTreeMap<(u32, String), u64>| {
                let Command::V1(CommandV1::Report { offsets, .. }) = batch.command(1, 1) else { panic!() };
                for o in offsets {
                    let key = (o.unit.task.unwrap(), o.partition.canonical);
                    let before = stored.insert(key, o.seq);
                    assert!(before.is_none_or(|b| b <= o.seq), "went back from {before:?} to {}", o.seq);
                }
            };
            for (kind, task, part, fate) in steps {
                if kind > 0 {
                    seq += 1;
                    let c = commit(task, 1, &part.to_string(), seq);
                    queued.insert((task, c.partition.canonical().to_string()), seq);
                    q.commit(c);
                } else if let Some(batch) = q.take(300) {
                    // Something newer may come while it is on its way.
                    seq += 1;
                    let c = commit(task, 1, &part.to_string(), seq);
                    queued.insert((task, c.partition.canonical().to_string()), seq);
                    q.commit(c);
                    match fate {
                        0 => { deliver(&batch, &mut stored); q.applied(batch, &[]); }
                        1 => q.put_back(batch),
                        // Written, but the answer got lost.
                        _ => { deliver(&batch, &mut stored); q.put_back(batch); }
                    }
                }
            }
            while let Some(batch) = q.take(300) {
                deliver(&batch, &mut stored);
                q.applied(batch, &[]);
            }
            prop_assert_eq!(stored, queued);
            for n in 0..3 {
                prop_assert_eq!(q.standing(&Unit::task("c", n)), Standing::Settled);
            }
        }
    }
}

struct Node {
    log: Arc<LocalLog>,
    reports: Arc<Coalescer>,
    incarnation: watch::Sender<Option<u64>>,
    stop: CancellationToken,
}

/// A node that runs task 0 and 1 of connector c, with the given interval between reports.
fn node(interval: Duration, settle: Duration) -> (Node, u64) {
    let log = LocalLog::new();
    let mut w = World::default();
    w.register(1, 1);
    w.running("c", 2, 1);
    let epoch = w.placement(&Unit::task("c", 0)).epoch;
    log.view.install(w.index, w.state.clone());
    for _ in 0..w.index {
        // Indexes go on behind what was installed.
        log.apply(CommandV1::SetFeatureLevel { level: 1 });
    }
    let incarnation = watch::Sender::new(Some(w.incarnation(1)));
    let limits = CommitLimits { interval, settle, ..CommitLimits::default() };
    let reports = Arc::new(Coalescer::new(1, incarnation.subscribe(), log.clone(), limits));
    let stop = CancellationToken::new();
    let (running, token) = (reports.clone(), stop.clone());
    tokio::spawn(async move { running.run(token).await });
    (Node { log, reports, incarnation, stop }, epoch)
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Node {
    fn stored(&self, partition: &str) -> Option<String> {
        let partition = SourcePartition::new([("p", partition)]);
        self.log.view.read().offset("c", partition.canonical()).map(str::to_owned)
    }
}

const LONG: Duration = Duration::from_secs(3600);

fn assignment(n: u32, epoch: u64, revoked: bool) -> Assignment {
    Assignment {
        unit: task(n),
        epoch: Epoch(epoch),
        target: thalweg_actors::port::Target::Started,
        config: Default::default(),
        config_revision: 1,
        restart: 0,
        revoked,
        send_after: None,
        mode: thalweg_core::delivery::DeliveryMode::Fenced,
    }
}

/// A unit that is being taken back is not held up by the interval; the others are gathered.
#[tokio::test]
async fn what_is_taken_back_does_not_wait_for_the_interval() {
    let (node, epoch) = node(LONG, Duration::from_secs(20));
    node.reports.settled(&task(0)).await.unwrap();
    // After a pause the first one goes at once.
    node.reports.commit(commit(0, epoch, "a", 1));
    node.reports.settled(&task(0)).await.unwrap();
    node.reports.commit(commit(1, epoch + 1, "b", 1));
    node.reports.commit(commit(0, epoch, "a", 2));
    let unit = task(0);
    let waiting = node.reports.settled(&unit);
    tokio::pin!(waiting);
    assert!(futures::poll!(waiting.as_mut()).is_pending());
    assert_eq!(node.log.proposed.borrow().len(), 1);
    node.log.apply(CommandV1::Revoke { unit: Unit::task("c", 0), epoch });
    node.reports.placed(&[assignment(0, epoch, true), assignment(1, epoch + 1, false)]);
    waiting.await.unwrap();
    assert_eq!((node.stored("a"), node.stored("b")), (Some("{\"n\":2}".into()), Some("{\"n\":1}".into())));
    node.reports.commit(commit(0, epoch, "a", 3));
    node.reports.settled(&task(0)).await.unwrap();
    node.reports.released(&task(0), Epoch(epoch));
    node.log.until("released", |s| !s.placements[&Unit::task("c", 0)].is_held()).await;
    assert_eq!(node.log.proposed.borrow().len(), 4);
}

#[tokio::test]
async fn one_proposal_at_a_time_and_what_comes_meanwhile_is_gathered() {
    let (node, epoch) = node(Duration::from_millis(1), Duration::from_secs(20));
    node.log.hold();
    let mut proposed = node.log.proposed.subscribe();
    node.reports.commit(commit(0, epoch, "a", 1));
    proposed.wait_for(|all| all.len() == 1).await.unwrap();
    for n in 2..100 {
        node.reports.commit(commit(0, epoch, "a", n));
        node.reports.commit(commit(0, epoch, "b", n));
    }
    node.reports.topic_used(&name("c"), &name("t"));
    node.reports.status(&task(0), Epoch(epoch), status(UnitState::Running, None));
    node.log.let_through(2);
    node.reports.settled(&task(0)).await.unwrap();
    assert_eq!((node.stored("a"), node.stored("b")), (Some("{\"n\":99}".into()), Some("{\"n\":99}".into())));
    assert_eq!(node.log.proposed.borrow().len(), 2);
    let state = node.log.view.read();
    assert!(state.topics["c"].contains("t"));
    assert!(state.statuses.contains_key(&Unit::task("c", 0)));
}

#[tokio::test]
async fn a_lost_quorum_is_said_and_nothing_is_lost() {
    let (node, epoch) = node(Duration::from_millis(5), Duration::from_millis(60));
    node.log.fail(Some(ProposeError::NoLeader));
    node.reports.commit(commit(0, epoch, "a", 1));
    let error = node.reports.settled(&task(0)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::QuorumLost);
    assert!(error.message.contains("task c-0"), "{error}");
    node.log.fail(None);
    node.log.until("it is stored later", |s| s.offsets.contains_key("c")).await;
    node.reports.settled(&task(0)).await.unwrap();
}

/// CLU-02 and G2: the offsets of an old owner are refused, and it hears of it.
#[tokio::test]
async fn clu_02_a_stale_owner_hears_that_it_is_fenced() {
    let (node, epoch) = node(Duration::from_millis(5), Duration::from_secs(20));
    let other = CommandV1::RegisterNode {
        node: 2,
        boot: [2; 16],
        about: crate::raft::state::world::about(2),
        now_ms: 0,
        delay_ms: 0,
    };
    let Reply::NodeRegistered { incarnation: second } = node.log.apply(other) else { panic!() };
    let incarnation = node.incarnation.borrow().unwrap();
    node.log.apply(CommandV1::ExpireNode { node: 1, incarnation, gone: true, now_ms: 0, delay_ms: 0 });
    node.log.apply(CommandV1::Assign {
        unit: Unit::task("c", 0),
        node: 2,
        incarnation: second,
        previous: epoch,
        mode: crate::raft::command::Delivery::Fenced,
        fence_wait_ms: 0,
        late_sends_ms: 0,
    });
    node.reports.commit(commit(0, epoch, "a", 1));
    let error = node.reports.settled(&task(0)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Fenced);
    assert_eq!(node.stored("a"), None);
    // While the node has no incarnation nothing is sent; afterwards the old epoch is still refused.
    node.incarnation.send_replace(None);
    node.reports.commit(commit(1, epoch + 1, "b", 1));
    let sent = node.log.proposed.borrow().len();
    node.incarnation.send_replace(Some(second));
    node.reports.settled(&task(1)).await.unwrap_err();
    assert!(node.log.proposed.borrow().len() > sent);
    assert_eq!(node.stored("b"), None);
}
