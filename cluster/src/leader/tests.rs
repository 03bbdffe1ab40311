#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::office::Gone;
use super::*;
use crate::lease::{BootInstant, LeaseTerms, SystemClock};
use crate::raft::command::{CommandV1, DrainMode};
use crate::raft::local::LocalLog;
use crate::raft::state::world::{World, about, name};
use crate::raft::state::{NodeState, Phase};
use crate::raft::{Leadership, State, Unit};

fn at(ms: u64) -> BootInstant {
    BootInstant(Duration::from_millis(ms))
}

fn leads(term: u64, quiet_ms: u64) -> Leadership {
    Leadership { term, quiet: Duration::from_millis(quiet_ms) }
}

fn office() -> Office {
    Office::default()
}

/// Two nodes with a connector of two tasks, and a leader that has heard both.
fn two_nodes(office: Office) -> (World, Leader) {
    let mut w = World::default();
    w.register(1, 1);
    w.register(2, 1);
    let mut leader = Leader::new(office, leads(1, 0), at(0), &w.state);
    beat(&mut leader, &w, 0, &[1, 2]);
    w.put("c", &[]);
    run(&mut leader, &mut w, 0);
    w.publish("c", World::tasks(2, "a"));
    run(&mut leader, &mut w, 1);
    assert!(w.state.placements.values().all(|p| p.phase == Phase::Assigned));
    assert_eq!(w.state.placements.len(), 3);
    (w, leader)
}

fn beat(leader: &mut Leader, w: &World, ms: u64, nodes: &[NodeId]) {
    for node in nodes {
        let grant = leader.heartbeat(&w.state, at(ms), *node, w.incarnation(*node), w.index, w.index);
        assert_eq!(grant, Grant::Granted);
    }
}

fn look(leader: &mut Leader, w: &World, ms: u64) -> Step {
    leader.step(&w.state, &BTreeMap::new(), w.index, at(ms), ms)
}

/// Steps until nothing is proposed.
fn run(leader: &mut Leader, w: &mut World, ms: u64) {
    for _ in 0..10 {
        let step = look(leader, w, ms);
        if step.commands.is_empty() {
            return;
        }
        for command in step.commands {
            w.ok(command);
        }
    }
    panic!("no rest");
}

/// CLU-01, the slow way: a silent node is given up when its lease has certainly ended.
#[test]
fn clu_01_a_silent_node_is_lost_when_its_lease_has_ended() {
    let (mut w, mut leader) = two_nodes(office());
    let mut ms = 0;
    while ms < 3000 {
        ms += 500;
        beat(&mut leader, &w, ms, &[1]);
        assert!(look(&mut leader, &w, ms).commands.is_empty(), "at {ms}");
    }
    assert!(look(&mut leader, &w, 3030).commands.is_empty());
    let step = look(&mut leader, &w, 3031);
    let incarnation = w.incarnation(2);
    let expire = CommandV1::ExpireNode { node: 2, incarnation, gone: false, now_ms: 3031, delay_ms: 0 };
    assert_eq!(step.commands, vec![expire.into()]);
    // From the proposal on it is granted nothing, even before that is applied.
    let grant = leader.heartbeat(&w.state, at(3032), 2, incarnation, w.index, w.index);
    assert_eq!(grant, Grant::Expired);
    run(&mut leader, &mut w, 3033);
    assert!(w.state.placements.values().all(|p| p.node == 1 && p.phase == Phase::Assigned));
}

/// CLU-01, the fast way: a process that is known to be gone is not waited for.
#[test]
fn clu_01_a_process_that_is_gone_is_lost_at_once() {
    let (w, mut leader) = two_nodes(office());
    let incarnation = w.incarnation(2);
    let gone = BTreeMap::from([(2, Gone { incarnation, seen: at(20) })]);
    let step = leader.step(&w.state, &gone, w.index, at(20), 20);
    let expire = CommandV1::ExpireNode { node: 2, incarnation, gone: true, now_ms: 20, delay_ms: 0 };
    assert_eq!(step.commands, vec![expire.into()]);
}

#[test]
fn news_of_a_gone_process_does_not_hit_its_successor_or_one_that_speaks() {
    let (mut w, mut leader) = two_nodes(office());
    let incarnation = w.incarnation(2);
    // It still beats, well after it was said to be gone.
    let gone = BTreeMap::from([(2, Gone { incarnation, seen: at(100) })]);
    beat(&mut leader, &w, 400, &[1, 2]);
    assert!(leader.step(&w.state, &gone, w.index, at(401), 401).commands.is_empty());
    // Another process has taken its place.
    w.register(2, 2);
    let step = leader.step(&w.state, &gone, w.index, at(402), 402);
    assert!(!step.commands.iter().any(|c| c.kind() == "expire_node"));
    assert_eq!(leader.heartbeat(&w.state, at(403), 2, incarnation, 0, 0), Grant::Expired);
    assert_eq!(leader.heartbeat(&w.state, at(403), 9, 1, 0, 0), Grant::Unregistered);
}

/// L5: a new leader takes everybody for granted and waits a whole lease.
#[test]
fn a_new_leader_gives_everybody_a_whole_lease_and_a_moment_to_be_heard() {
    let (mut w, _) = two_nodes(office());
    w.put("d", &[]);
    let mut second = Leader::new(office(), leads(2, 0), at(100_000), &w.state);
    beat(&mut second, &w, 100_010, &[1]);
    assert!(look(&mut second, &w, 100_010).commands.is_empty(), "node 2 has not been heard yet");
    beat(&mut second, &w, 100_510, &[1]);
    let step = look(&mut second, &w, 100_750);
    assert_eq!(step.commands.len(), 1, "after one and a half heartbeats it goes on without");
    w.ok(step.commands[0].clone());
    let mut ms = 100_750;
    while ms < 103_000 {
        ms += 450;
        beat(&mut second, &w, ms, &[1]);
        assert!(!look(&mut second, &w, ms).commands.iter().any(|c| c.kind() == "expire_node"), "at {ms}");
    }
    beat(&mut second, &w, 103_031, &[1]);
    assert!(look(&mut second, &w, 103_031).commands.iter().any(|c| c.kind() == "expire_node"));
}

/// A node that no former leader can have granted anything for a while is not waited for as long.
#[test]
fn time_in_which_nobody_was_granted_anything_counts() {
    for (quiet, ends) in [(0, 3_030), (1_500, 1_545), (60_000, 1_000)] {
        let (w, _) = two_nodes(office());
        let mut second = Leader::new(office(), leads(2, quiet), at(100_000), &w.state);
        let mut ms = 100_000;
        let lost = loop {
            beat(&mut second, &w, ms, &[1]);
            if look(&mut second, &w, ms).commands.iter().any(|c| c.kind() == "expire_node") {
                break ms - 100_000;
            }
            ms += 5;
        };
        assert!((ends..ends + 10).contains(&lost), "quiet for {quiet} ms: lost after {lost} ms instead of {ends}");
    }
}

/// W3: the delay is on record; a new leader goes on with it.
#[test]
fn a_delay_survives_a_change_of_leader() {
    let slow = Office { max_delay: Duration::from_secs(30), ..office() };
    let (mut w, mut leader) = two_nodes(slow);
    let incarnation = w.incarnation(2);
    let gone = BTreeMap::from([(2, Gone { incarnation, seen: at(20) })]);
    for command in leader.step(&w.state, &gone, w.index, at(20), 20).commands {
        w.ok(command);
    }
    let mut second = Leader::new(slow, leads(2, 0), at(10_000), &w.state);
    beat(&mut second, &w, 10_000, &[1]);
    assert!(look(&mut second, &w, 10_000).commands.is_empty());
    assert_eq!(second.view(at(10_000)).delay, Some(Duration::from_millis(20_020)));
    assert_eq!(second.view(at(10_000)).pending, 1);
    // By hand it ends at once.
    second.hurry();
    assert!(!look(&mut second, &w, 10_001).commands.is_empty());
}

/// 15.5: an owner that does not release loses its lease, then its units.
#[test]
fn a_revocation_that_is_not_answered_ends_the_lease() {
    let (mut w, mut leader) = two_nodes(office());
    w.ok(CommandV1::DrainNode { node: 2, mode: DrainMode::Hold });
    let mut ms = 0;
    while ms < 60_000 {
        assert!(look(&mut leader, &w, ms).commands.is_empty());
        beat(&mut leader, &w, ms, &[1, 2]);
        ms += 500;
    }
    look(&mut leader, &w, 60_001);
    beat(&mut leader, &w, 60_001, &[1]);
    assert_eq!(leader.heartbeat(&w.state, at(60_001), 2, w.incarnation(2), 0, 0), Grant::Expired);
    while w.state.nodes[&2].state != NodeState::Expired {
        ms += 500;
        assert!(ms < 64_000);
        beat(&mut leader, &w, ms, &[1]);
        run(&mut leader, &mut w, ms);
    }
    assert!(w.state.placements.values().all(|p| p.node == 1 && p.phase == Phase::Assigned));
}

mod in_a_loop {
    use super::*;

    struct Seat {
        log: Arc<LocalLog>,
        leader: Arc<LeaderLoop>,
        term: watch::Sender<Option<Leadership>>,
        stop: CancellationToken,
        task: tokio::task::JoinHandle<()>,
    }

    fn seat() -> Seat {
        let terms = LeaseTerms::new(Duration::from_millis(900), Duration::from_millis(100)).unwrap();
        let log = LocalLog::new();
        let office = Office { terms, ..Office::default() };
        let leader = Arc::new(LeaderLoop::new(office, log.view.clone(), log.clone(), Arc::new(SystemClock)));
        let (term, receiver) = watch::channel(None);
        let stop = CancellationToken::new();
        let (loop_, token) = (leader.clone(), stop.clone());
        let task = tokio::spawn(async move { loop_.run(receiver, token).await });
        Seat { log, leader, term, stop, task }
    }

    impl Seat {
        fn register(&self, node: NodeId) -> u64 {
            let boot = [node as u8; 16];
            let command = CommandV1::RegisterNode { node, boot, about: about(node), now_ms: 0, delay_ms: 0 };
            let Reply::NodeRegistered { incarnation } = self.log.apply(command) else { panic!() };
            incarnation
        }
        /// Beats for a node until the token is cancelled.
        fn keep(&self, node: NodeId, incarnation: u64) -> CancellationToken {
            let (leader, view, token) = (self.leader.clone(), self.log.view.clone(), CancellationToken::new());
            let stop = token.clone();
            tokio::spawn(async move {
                let mut ticks = tokio::time::interval(Duration::from_millis(50));
                while stop.run_until_cancelled(ticks.tick()).await.is_some() {
                    leader.heartbeat(node, incarnation, view.applied());
                }
            });
            token
        }
        fn put(&self, connector: &str) {
            let mut w = World::default();
            w.put(connector, &[]);
            self.log.apply(CommandV1::PutConnector {
                name: name(connector),
                config: w.state.connectors[connector].config.clone(),
                target: Default::default(),
                expect: crate::raft::command::Expect::Any,
            });
        }
    }

    fn owner(state: &State, connector: &str) -> Option<NodeId> {
        let placement = state.placements.get(&Unit::connector(connector))?;
        (placement.phase == Phase::Assigned).then_some(placement.node)
    }

    /// Everything about one seat, in real time: it plans when something happens, not at intervals.
    #[tokio::test]
    async fn the_loop_places_moves_and_hands_over() {
        let seat = seat();
        let first = seat.register(1);
        let second = seat.register(2);
        assert_eq!(seat.leader.heartbeat(1, first, 0), None, "nobody sits here");
        assert!(seat.leader.view().is_none() && !seat.leader.rebalance_now());
        let _one = seat.keep(1, first);
        let two = seat.keep(2, second);
        seat.put("a");
        seat.put("b");
        seat.term.send_replace(Some(leads(7, 0)));
        seat.log
            .until("both are placed, one on each node", |s| {
                let owners = (owner(s, "a"), owner(s, "b"));
                owners == (Some(1), Some(2)) || owners == (Some(2), Some(1))
            })
            .await;
        // A process that is gone does not cost a lease.
        two.cancel();
        let before = std::time::Instant::now();
        seat.leader.process_gone(2);
        seat.log.until("node 1 has both", |s| owner(s, "a") == Some(1) && owner(s, "b") == Some(1)).await;
        assert!(before.elapsed() < Duration::from_millis(900), "took {:?}", before.elapsed());
        assert_eq!(seat.log.view.read().nodes[&2].state, NodeState::Expired);
        // One that falls silent does.
        let third = seat.register(3);
        let three = seat.keep(3, third);
        seat.leader.rebalance_now();
        seat.log.until("one is taken back", |s| s.placements.values().any(|p| p.phase == Phase::Revoking)).await;
        let (unit, epoch) = {
            let state = seat.log.view.read();
            let (unit, placement) = state.placements.iter().find(|(_, p)| p.phase == Phase::Revoking).unwrap();
            (unit.clone(), placement.epoch)
        };
        seat.log.apply(CommandV1::Report {
            node: 1,
            incarnation: first,
            offsets: vec![],
            topics: vec![],
            statuses: vec![],
            released: vec![(unit.clone(), epoch)],
        });
        seat.log.until("node 3 has it", |s| s.placements[&unit].node == 3).await;
        assert_eq!(seat.leader.view().unwrap().leases.len(), 2);
        three.cancel();
        seat.log.until("node 1 has it back", |s| s.placements[&unit].node == 1).await;
        // The seat is left without a trace.
        seat.term.send_replace(None);
        let mut ticks = tokio::time::interval(Duration::from_millis(5));
        while seat.leader.view().is_some() {
            ticks.tick().await;
        }
        seat.put("c");
        seat.term.send_replace(Some(leads(9, 0)));
        seat.log.until("the next term places what came meanwhile", |s| owner(s, "c") == Some(1)).await;
        seat.stop.cancel();
        seat.task.await.unwrap();
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_tried_again() {
        let seat = seat();
        let first = seat.register(1);
        let _one = seat.keep(1, first);
        seat.log.fail(Some(ProposeError::Unknown));
        seat.put("a");
        seat.term.send_replace(Some(leads(1, 0)));
        let mut proposed = seat.log.proposed.subscribe();
        proposed.wait_for(|all| all.len() >= 2).await.unwrap();
        seat.log.fail(None);
        seat.log.until("placed", |s| owner(s, "a") == Some(1)).await;
        seat.stop.cancel();
        seat.task.await.unwrap();
    }
}
