#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Instant;

use thalweg_actors::port::{Epoch, Target, UnitId};

use super::*;
use crate::commit::CommitLimits;
use crate::lease::{LeaseTerms, SystemClock};
use crate::raft::command::{Delivery, RestartScope, TargetState};
use crate::raft::local::LocalLog;
use crate::raft::state::world::{World, about, name};
use crate::raft::{State, Unit};

fn placed(w: &World, node: NodeId, before: &[Assignment], now: Instant) -> Vec<Assignment> {
    assignments(&w.state, node, w.incarnation(node), before, now)
}

#[test]
fn placements_become_assignments_of_this_incarnation_only() {
    let mut w = World::default();
    w.register(1, 1);
    w.register(2, 1);
    w.running("c", 2, 1);
    w.running("d", 1, 2);
    let now = Instant::now();
    let list = placed(&w, 1, &[], now);
    let units: Vec<_> = list.iter().map(|a| a.unit.clone()).collect();
    let id = |n| UnitId::Task("c".into(), n);
    assert_eq!(units, vec![UnitId::Connector("c".into()), id(0), id(1)]);
    let connector = &w.state.connectors["c"];
    assert_eq!((list[0].config_revision, list[0].config.get("name")), (connector.revision, Some("c")));
    assert_eq!((list[1].config.get("task.id"), list[2].config.get("task.id")), (Some("0"), Some("1")));
    assert_eq!(list[1].epoch, Epoch(w.placement(&Unit::task("c", 0)).epoch));
    assert!(list.iter().all(|a| !a.revoked && a.target == Target::Started && a.send_after.is_none()));
    w.ok(CommandV1::SetTarget { name: name("c"), target: TargetState::Paused });
    w.ok(CommandV1::Restart { name: name("c"), scope: RestartScope::Task(1) });
    let after = placed(&w, 1, &list, now);
    assert!(after.iter().all(|a| a.target == Target::Paused));
    assert_eq!((after[0].restart, after[1].restart, after[2].restart), (0, 0, w.index));
    // Another process of the same node runs nothing of it.
    w.register(1, 2);
    assert!(placed(&w, 1, &after, now).is_empty());
}

#[test]
fn what_is_taken_back_keeps_its_configuration_until_it_is_released() {
    let mut w = World::default();
    w.register(1, 1);
    w.running("c", 1, 1);
    let now = Instant::now();
    let before = placed(&w, 1, &[], now);
    w.publish("c", World::tasks(1, "b"));
    let after = placed(&w, 1, &before, now);
    assert!(!after[0].revoked && after[1].revoked);
    assert_eq!(after[1].config, before[1].config, "not that of the next task with this number");
    w.ok(CommandV1::DeleteConnector { name: name("c") });
    let gone = placed(&w, 1, &after, now);
    assert!(gone.iter().all(|a| a.revoked));
    assert_eq!(gone[0].config, before[0].config);
    // A node that never knew it can still be told to give it up.
    let blind = placed(&w, 1, &[], now);
    assert!(blind.iter().all(|a| a.revoked && a.target == Target::Stopped));
}

#[test]
fn the_wait_before_the_first_send_counts_from_the_first_sight() {
    let mut w = World::default();
    w.register(1, 1);
    w.put("c", &[]);
    w.assign(&Unit::connector("c"), 1);
    w.publish("c", World::tasks(1, "a"));
    w.ok(CommandV1::Assign {
        unit: Unit::task("c", 0),
        node: 1,
        incarnation: w.incarnation(1),
        previous: 0,
        mode: Delivery::Plain,
        fence_wait_ms: 10_000,
        late_sends_ms: 10_000,
    });
    let now = Instant::now();
    let first = placed(&w, 1, &[], now);
    assert_eq!(first[1].send_after, Some(now + Duration::from_secs(10)));
    assert_eq!(first[1].mode, thalweg_core::delivery::DeliveryMode::Plain);
    let later = placed(&w, 1, &first, now + Duration::from_secs(4));
    assert_eq!(later[1].send_after, first[1].send_after);
}

struct Node {
    log: Arc<LocalLog>,
    herder: Arc<Herder>,
    guard: Arc<LeaseGuard>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<Result<(), HerderError>>,
}

fn node() -> Node {
    node_on(LocalLog::new())
}

fn node_on(log: Arc<LocalLog>) -> Node {
    let clock = Arc::new(SystemClock);
    let guard = Arc::new(LeaseGuard::new(
        LeaseTerms::new(Duration::from_millis(600), Duration::from_millis(100)).unwrap(),
        clock.clone(),
    ));
    let identity =
        Identity { node: 1, about: about(1), max_delay: Duration::ZERO, patience: Duration::from_millis(300) };
    let herder = Arc::new(Herder::new(identity, log.view.clone(), log.clone(), guard.clone(), clock));
    let reports = Coalescer::new(1, herder.incarnation(), log.clone(), CommitLimits::default());
    let stop = CancellationToken::new();
    let (running, token) = (herder.clone(), stop.clone());
    let task = tokio::spawn(async move { running.run(&reports, token).await });
    Node { log, herder, guard, stop, task }
}

impl Node {
    async fn registered(&self, other_than: u64) -> u64 {
        let mut incarnation = self.herder.incarnation();
        let registered = incarnation.wait_for(|i| i.is_some_and(|i| i != other_than)).await.unwrap();
        registered.unwrap()
    }
    fn beat(&self, incarnation: u64) {
        let seq = self.guard.sending(incarnation).unwrap();
        self.guard.granted(seq);
    }
    fn place(&self, connector: &str, incarnation: u64) -> u64 {
        let config = [("name".to_owned(), connector.to_owned())].into_iter().collect();
        let expect = crate::raft::command::Expect::Any;
        self.log.apply(CommandV1::PutConnector { name: name(connector), config, target: Default::default(), expect });
        let unit = Unit::connector(connector);
        let previous = self.log.view.read().placements.get(&unit).map_or(0, |p| p.epoch);
        let reply = self.log.apply(CommandV1::Assign {
            unit,
            node: 1,
            incarnation,
            previous,
            mode: Delivery::Fenced,
            fence_wait_ms: 0,
            late_sends_ms: 0,
        });
        let Reply::Assigned { epoch } = reply else { panic!("{reply:?}") };
        epoch
    }
    async fn shows(&self, count: usize) -> Arc<Vec<Assignment>> {
        let mut placed = self.herder.placed();
        let wait = placed.wait_for(|p| p.len() == count);
        let shown = tokio::time::timeout(Duration::from_secs(20), wait).await;
        shown.unwrap_or_else(|_| panic!("never shows {count} units")).unwrap().clone()
    }
}

/// What stops and what goes on with the lease is the actors' business; the placements stay.
#[tokio::test]
async fn a_lost_lease_leaves_the_placements() {
    let node = node();
    let incarnation = node.registered(0).await;
    let epoch = node.place("c", incarnation);
    assert_eq!(node.shows(1).await[0].epoch, Epoch(epoch));
    let mut placed = node.herder.placed();
    placed.mark_unchanged();
    node.beat(incarnation);
    assert!(node.guard.held());
    node.guard.lost().await;
    // Nothing but reports and another connector's life: the actors hear nothing of it.
    node.log.apply(CommandV1::SetLogger { logger: "a".into(), level: None, now_ms: 0 });
    node.log.apply(CommandV1::RegisterNode { node: 2, boot: [2; 16], about: about(2), now_ms: 0, delay_ms: 0 });
    let config = Default::default();
    let expect = crate::raft::command::Expect::Any;
    node.log.apply(CommandV1::PutConnector { name: name("d"), config, target: Default::default(), expect });
    node.log.apply(CommandV1::SetTarget { name: name("c"), target: TargetState::Paused });
    placed.changed().await.unwrap();
    assert_eq!(placed.borrow_and_update()[0].target, Target::Paused);
    assert!(!placed.has_changed().unwrap());
    node.stop.cancel();
    node.task.await.unwrap().unwrap();
    assert!(placed.borrow().is_empty());
}

/// CLU-02: an expired node leaves its incarnation for good and comes back as a new one.
#[tokio::test]
async fn clu_02_an_expired_node_registers_anew() {
    let node = node();
    let first = node.registered(0).await;
    node.place("c", first);
    node.beat(first);
    node.shows(1).await;
    node.log.apply(CommandV1::ExpireNode { node: 1, incarnation: first, gone: false, now_ms: 0, delay_ms: 0 });
    let second = node.registered(first).await;
    assert!(second > first && !node.guard.held());
    assert_eq!(node.guard.sending(first), None, "no heartbeat for the old one");
    assert!(node.herder.placed().borrow().is_empty());
    node.place("c", second);
    node.beat(second);
    node.shows(1).await;
    node.stop.cancel();
    node.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_second_process_with_the_same_identity_ends_the_first() {
    let node = node();
    let first = node.registered(0).await;
    node.place("c", first);
    node.beat(first);
    node.shows(1).await;
    node.log.apply(CommandV1::RegisterNode { node: 1, boot: [9; 16], about: about(1), now_ms: 0, delay_ms: 0 });
    assert_eq!(node.task.await.unwrap(), Err(HerderError::Superseded(1)));
    assert!(!node.guard.held() && node.herder.placed().borrow().is_empty());
}

#[tokio::test]
async fn an_id_that_stays_in_use_elsewhere_ends_the_node_with_both_addresses() {
    let log = LocalLog::new();
    let elsewhere = NodeAbout { rpc_address: "elsewhere:9000".into(), ..about(1) };
    log.apply(CommandV1::RegisterNode { node: 1, boot: [9; 16], about: elsewhere, now_ms: 0, delay_ms: 0 });
    let node = node_on(log);
    let expected = HerderError::IdInUse { node: 1, address: "elsewhere:9000".into(), mine: about(1).rpc_address };
    assert_eq!(node.task.await.unwrap(), Err(expected));
}

#[tokio::test]
async fn a_node_that_was_removed_ends() {
    let node = node();
    let first = node.registered(0).await;
    // Both in one step of the log, as after a long pause.
    let mut state = node.log.view.read().clone();
    state.apply(
        first + 1,
        &CommandV1::ExpireNode { node: 1, incarnation: first, gone: true, now_ms: 0, delay_ms: 0 }.into(),
    );
    state.apply(first + 2, &CommandV1::RemoveNode { node: 1 }.into());
    node.log.view.install(first + 2, state);
    assert_eq!(node.task.await.unwrap(), Err(HerderError::Removed(1)));
}

#[tokio::test]
async fn registration_waits_for_a_leader_and_ends_with_an_old_build() {
    let log = LocalLog::new();
    log.fail(Some(ProposeError::NoLeader));
    let clock = Arc::new(SystemClock);
    let guard = Arc::new(LeaseGuard::new(LeaseTerms::default(), clock.clone()));
    let mut identity = Identity { node: 1, about: about(1), max_delay: Duration::ZERO, patience: Duration::ZERO };
    let start = |identity: Identity| Herder::new(identity, log.view.clone(), log.clone(), guard.clone(), clock.clone());
    let herder = start(identity.clone());
    let reports = Coalescer::new(1, herder.incarnation(), log.clone(), CommitLimits::default());
    let mut proposed = log.proposed.subscribe();
    let mut incarnation = herder.incarnation();
    let stop = CancellationToken::new();
    let (ended, ()) = tokio::join!(herder.run(&reports, stop.clone()), async {
        proposed.wait_for(|all| all.len() >= 2).await.unwrap();
        log.fail(None);
        incarnation.wait_for(Option::is_some).await.unwrap();
        stop.cancel();
    });
    ended.unwrap();
    assert!(incarnation.borrow().is_none());
    log.apply(CommandV1::RegisterNode {
        node: 1,
        boot: [9; 16],
        about: crate::raft::command::NodeAbout { feature_level: 9, ..about(1) },
        now_ms: 0,
        delay_ms: 0,
    });
    log.apply(CommandV1::SetFeatureLevel { level: 9 });
    identity.node = 2;
    let error = start(identity).run(&reports, CancellationToken::new()).await.unwrap_err();
    assert!(matches!(&error, HerderError::Refused { node: 2, why } if why.contains('9')), "{error}");
}

fn state_of(state: &State) -> Option<crate::raft::state::NodeState> {
    state.nodes.get(&1).map(|n| n.state)
}

/// Leaving in order: everything is released before the goodbye.
#[tokio::test]
async fn leaving_waits_for_the_release() {
    let node = node();
    let incarnation = node.registered(0).await;
    let epoch = node.place("c", incarnation);
    node.beat(incarnation);
    node.shows(1).await;
    let herder = node.herder.clone();
    let leaving =
        tokio::spawn(
            async move { herder.leave(DrainMode::Hold, Duration::from_secs(30), Duration::from_secs(20)).await },
        );
    let mut placed = node.herder.placed();
    placed.wait_for(|p| p.len() == 1 && p[0].revoked).await.unwrap();
    node.log.apply(CommandV1::Report {
        node: 1,
        incarnation,
        offsets: vec![],
        topics: vec![],
        statuses: vec![],
        released: vec![(Unit::connector("c"), epoch)],
    });
    leaving.await.unwrap().unwrap();
    assert!(matches!(
        state_of(&node.log.view.read()),
        Some(crate::raft::state::NodeState::Left { since_ms, hold_until_ms }) if hold_until_ms == since_ms + 30_000
    ));
    node.task.await.unwrap().unwrap();
    assert!(!node.guard.held());
}

#[tokio::test]
async fn leaving_does_not_wait_for_ever() {
    let node = node();
    let incarnation = node.registered(0).await;
    node.place("c", incarnation);
    node.beat(incarnation);
    node.shows(1).await;
    node.herder.leave(DrainMode::Move, Duration::ZERO, Duration::from_millis(50)).await.unwrap();
    assert!(!node.guard.held(), "nothing is sent after the goodbye");
    node.task.await.unwrap().unwrap();
}

/// RUN-11: a herder that is stuck does not take the turn that it is asked for.
#[tokio::test]
async fn run_11_a_turn_is_over_when_the_state_was_looked_at_again() {
    let log = LocalLog::new();
    log.hold();
    let node = node_on(log.clone());
    let mut turn = Box::pin(node.herder.turn());
    log.proposed.subscribe().wait_for(|all| !all.is_empty()).await.unwrap();
    assert!(futures::poll!(&mut turn).is_pending(), "it is still registering");
    log.let_through(1);
    turn.await;
    node.herder.turn().await;
    node.stop.cancel();
    node.task.await.unwrap().unwrap();
}
