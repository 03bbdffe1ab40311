//! What answers say about the state of this replica.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::json;
use thalweg_actors::NodeView;
use thalweg_config::OptionTable;
use thalweg_config::provider::Providers;
use thalweg_core::delivery::{Acks, DeliveryCheck, DeliveryMode, Producer, ProducerFactory, ProducerIdentity};
use thalweg_core::relational::history::{HistoryStore, HistoryTopic};
use thalweg_core::signal::{KafkaSignals, SignalChannel};

use super::*;
use crate::logging::Loggers;
use crate::raft::command::{Expect, ReportedState, TargetState};
use crate::raft::state::world::World;
use crate::raft::{CommandV1, NodeId, State, Unit};

/// A follower: the leader has applied what was proposed, this replica has it once it was confirmed.
pub(crate) struct Follower {
    view: Arc<StateView>,
    leader: Mutex<Leader>,
    has_majority: AtomicBool,
    caught_up: AtomicBool,
    loggers: Loggers,
}

#[derive(Default)]
struct Leader {
    state: State,
    log: Vec<Command>,
}

#[async_trait]
impl Proposer for Follower {
    async fn propose(&self, command: Command) -> Result<Reply, ProposeError> {
        if !self.has_majority.load(Ordering::SeqCst) {
            return Err(ProposeError::NoLeader);
        }
        let mut leader = self.leader.lock();
        leader.log.push(command.clone());
        let index = leader.log.len() as u64;
        Ok(leader.state.apply(index, &command))
    }
}

#[async_trait]
impl Face for Follower {
    async fn confirm(&self, _: Duration) -> Result<(), ProposeError> {
        if !self.has_majority.load(Ordering::SeqCst) {
            return Err(ProposeError::NoLeader);
        }
        let leader = self.leader.lock();
        for (at, command) in leader.log.iter().enumerate().skip(self.view.applied() as usize) {
            self.view.apply(at as u64 + 1, command);
            self.view.announce(at as u64 + 1);
        }
        Ok(())
    }
    fn standing(&self) -> Standing {
        Standing::default()
    }
    fn units(&self) -> NodeView {
        NodeView::default()
    }
    async fn detail_of(&self, _: NodeId, _: &str) -> Option<Value> {
        None
    }
    fn incarnation(&self) -> Option<u64> {
        None
    }
    fn lease_remaining(&self) -> Duration {
        Duration::ZERO
    }
    fn leases(&self) -> Option<BTreeMap<NodeId, Duration>> {
        None
    }
    fn pending(&self) -> Option<(usize, Option<Duration>)> {
        None
    }
    fn caught_up(&self) -> bool {
        self.caught_up.load(Ordering::SeqCst)
    }
    fn started(&self) -> bool {
        self.caught_up()
    }
    async fn turn(&self) {}
    fn ending(&self) -> bool {
        false
    }
    fn loggers(&self) -> &Loggers {
        &self.loggers
    }
    fn kafka_cluster_id(&self) -> Option<String> {
        None
    }
    async fn remove_member(&self, _: NodeId) -> Result<(), ProposeError> {
        Ok(())
    }
    fn rebalance_now(&self) -> bool {
        false
    }
}

struct NoKafka;

#[async_trait]
impl ProducerFactory for NoKafka {
    fn options(&self) -> &'static OptionTable {
        &thalweg_config::connector::FRAMEWORK
    }
    fn overrides(&self, _: &Properties) -> thalweg_config::Validation {
        thalweg_config::Validation::default()
    }
    fn check(&self, _: &Properties, _: DeliveryMode) -> DeliveryCheck {
        DeliveryCheck::default()
    }
    async fn open(
        &self,
        _: ProducerIdentity,
        _: DeliveryMode,
        _: &Properties,
        _: Arc<dyn Acks>,
    ) -> Result<Box<dyn Producer>, thalweg_core::Error> {
        Err(thalweg_core::Error::config("there is no Kafka"))
    }
    async fn signals(
        &self,
        _: &ProducerIdentity,
        _: &KafkaSignals,
        _: &Properties,
        _: Option<i64>,
    ) -> Result<Box<dyn SignalChannel>, thalweg_core::Error> {
        Err(thalweg_core::Error::config("there is no Kafka"))
    }
    fn history(&self, _: &HistoryTopic) -> Result<Box<dyn HistoryStore>, thalweg_core::Error> {
        Err(thalweg_core::Error::config("there is no Kafka"))
    }
}

pub(crate) fn follower() -> (Arc<Follower>, Api) {
    follower_of(State::default())
}

fn follower_of(state: State) -> (Arc<Follower>, Api) {
    let view = Arc::new(StateView::new(state.clone(), 0));
    let node = Arc::new(Follower {
        view: view.clone(),
        leader: Mutex::new(Leader { state, log: Vec::new() }),
        has_majority: AtomicBool::new(true),
        caught_up: AtomicBool::new(true),
        loggers: Loggers::detached(crate::raft::command::LogLevel::Info),
    });
    let api = Api {
        view,
        proposer: node.clone(),
        face: node.clone(),
        registry: Arc::new(Registry::new(Arc::new(NoKafka), Providers::default())),
        worker: Properties::new(),
        reported_version: String::new(),
        topic_tracking: true,
        topic_reset: true,
        warnings: Warnings::default(),
    };
    (node, api)
}

async fn put(node: &Follower, name: &str) {
    let config = Properties::from([("name", name)]);
    let target = TargetState::Started;
    let command = CommandV1::PutConnector { name: name.into(), config, target, expect: Expect::Any };
    node.propose(command.into()).await.unwrap();
}

#[tokio::test]
async fn clu_08_a_write_is_answered_when_this_replica_shows_it() {
    let (node, api) = follower();
    put(&node, "c").await;
    api.set_target("c", TargetState::Paused).await.unwrap();
    assert_eq!(api.view.read().connectors["c"].target, TargetState::Paused);
}

#[tokio::test]
async fn clu_08_what_a_write_looks_at_before_is_up_to_date() {
    let (node, api) = follower();
    put(&node, "c").await;
    assert_eq!(api.view.applied(), 0, "this replica is behind");
    api.restart("c", false, false).await.unwrap();
    api.set_target("c", TargetState::Stopped).await.unwrap();
    put(&node, "d").await;
    // The connector is known, and so is that it has to be stopped first.
    assert_eq!(api.reset_offsets("d").await.unwrap_err().status, 400);
    assert_eq!(api.reset_offsets("e").await.unwrap_err().status, 404);
    assert_eq!(api.restart("e", false, false).await.unwrap_err().message, "Unknown connector: e");
}

/// The status shows no task any more while the last one is still ending.
#[tokio::test]
async fn offsets_can_be_reset_as_soon_as_the_last_task_has_ended() {
    let mut world = World::default();
    world.register(1, 1);
    world.running("c", 1, 1);
    world.ok(CommandV1::SetTarget { name: "c".into(), target: TargetState::Stopped });
    let (node, api) = follower_of(world.state.clone());
    let unit = Unit::task("c", 0);
    let ended = world.report(1).release(&unit, world.placement(&unit).epoch);
    let end = async {
        node.propose(ended.into()).await.unwrap();
        node.confirm(Duration::ZERO).await.unwrap();
    };
    let (reset, ()) = tokio::join!(api.reset_offsets("c"), end);
    reset.unwrap();
}

/// Its connector object runs, its task has failed.
fn half_failed() -> (Arc<Follower>, Api) {
    let mut world = World::default();
    world.register(1, 1);
    world.running("c", 1, 1);
    let (connector, task) = (Unit::connector("c"), Unit::task("c", 0));
    let epoch = |unit: &Unit| world.placement(unit).epoch;
    let report = world.report(1).status(&connector, epoch(&connector), ReportedState::Running, None).status(
        &task,
        epoch(&task),
        ReportedState::Failed,
        Some("broken"),
    );
    world.ok(report);
    follower_of(world.state)
}

#[tokio::test]
async fn run_01_a_restart_answers_with_its_plan_and_what_had_failed() {
    for only_failed in [false, true] {
        let (_, api) = half_failed();
        let Restarted::Shown(status) = api.restart("c", true, only_failed).await.unwrap() else {
            panic!("a restart with a plan shows it")
        };
        let state = if only_failed { "RUNNING" } else { "RESTARTING" };
        assert_eq!(status["connector"]["state"], state);
        assert_eq!(
            (&status["tasks"][0]["state"], &status["tasks"][0]["trace"]),
            (&"RESTARTING".into(), &"broken".into())
        );
        let after = api.status("c").await.unwrap();
        assert_eq!(after["tasks"][0].get("trace"), None, "it is over as soon as the restart begins");
    }
}

#[tokio::test]
async fn run_01_a_restart_of_what_has_no_status_yet_says_so() {
    let (node, api) = follower();
    put(&node, "c").await;
    let error = api.restart("c", true, false).await.unwrap_err();
    assert_eq!((error.status, error.message.as_str()), (404, "Status for connector c not found"));
    assert!(matches!(api.restart("c", false, false).await, Ok(Restarted::Quietly)));
}

#[tokio::test]
async fn a_connector_without_a_status_is_not_in_a_list_that_shows_it() {
    let (node, api) = half_failed();
    put(&node, "d").await;
    node.confirm(Duration::ZERO).await.unwrap();
    let list = async |expand: &str| api.list(&[expand.to_owned()]).await.unwrap();
    assert_eq!(list("status").await.as_object().unwrap().keys().collect::<Vec<_>>(), ["c"]);
    assert_eq!(list("info").await.as_object().unwrap().keys().collect::<Vec<_>>(), ["c", "d"]);
    assert_eq!(list("nothing").await, json!({"c": {}, "d": {}}));
}

#[tokio::test]
async fn run_10_without_a_leader_writes_are_503_and_say_why() {
    let (node, api) = follower();
    node.has_majority.store(false, Ordering::SeqCst);
    let refusals = [
        api.set_target("c", TargetState::Paused).await.unwrap_err(),
        api.restart("c", true, true).await.unwrap_err(),
        api.patch_config("c", BTreeMap::new()).await.unwrap_err(),
        api.delete("c").await.unwrap_err(),
        api.reset_offsets("c").await.unwrap_err(),
        api.rebalance().unwrap_err(),
    ];
    for refusal in refusals {
        assert_eq!(refusal.status, 503, "{refusal:?}");
        assert!(refusal.message.contains("majority"), "{refusal:?}");
    }
}

#[tokio::test]
async fn clu_04_a_replica_that_has_not_caught_up_is_not_read() {
    let (node, api) = follower();
    assert_eq!(api.fresh().await, Ok(true));
    node.has_majority.store(false, Ordering::SeqCst);
    assert_eq!(api.fresh().await, Ok(false), "what it had is still shown");
    node.caught_up.store(false, Ordering::SeqCst);
    assert_eq!(api.fresh().await.unwrap_err().status, 503);
}

#[tokio::test]
async fn a_signal_is_kept_once_and_shown_until_its_tasks_have_confirmed_it() {
    let (node, api) = follower();
    put(&node, "deaf").await;
    let config = Properties::from([("name", "c"), ("signal.enabled.channels", "source, Rest")]);
    let (target, expect) = (TargetState::Started, Expect::Any);
    let create = CommandV1::PutConnector { name: "c".into(), config, target, expect };
    node.propose(create.into()).await.unwrap();
    let signal = json!({"id": "s1", "type": "log", "data": {"message": "m"}});

    assert_eq!(api.put_signal("none", &signal).await.unwrap_err().status, 404);
    let deaf = api.put_signal("deaf", &signal).await.unwrap_err();
    assert_eq!(deaf.status, 400);
    assert!(deaf.message.contains("add 'rest' to signal.enabled.channels"), "{deaf}");
    // Not while a node is there that would not understand it.
    let register = |feature_level| CommandV1::RegisterNode {
        node: 1,
        boot: [feature_level as u8; 16],
        about: crate::raft::command::NodeAbout { feature_level, ..crate::raft::state::world::about(1) },
        now_ms: 1,
        delay_ms: 0,
    };
    node.propose(register(1).into()).await.unwrap();
    let old = api.put_signal("c", &signal).await.unwrap_err();
    assert_eq!((old.status, old.message.contains("Feature level 2 is not possible")), (409, true), "{old}");
    node.propose(register(crate::raft::command::FEATURE_LEVEL).into()).await.unwrap();

    let Taken::Added(added) = api.put_signal("c", &signal).await.unwrap() else { panic!("it is new") };
    assert_eq!(added, json!({"id": "s1", "type": "log", "state": "WAITING"}));
    assert!(matches!(api.put_signal("c", &signal).await.unwrap(), Taken::Known(known) if known == added));
    let other = json!({"id": "s1", "type": "pause-snapshot"});
    assert_eq!(api.put_signal("c", &other).await.unwrap_err().status, 409);
    let shown = api.signals("c").unwrap();
    assert_eq!((shown["signals"].as_array().unwrap().len(), &shown["signals"][0]["data"]), (1, &signal["data"]));
    assert_eq!(shown["signals"][0]["confirmed_by_tasks"], json!([]));
    assert_eq!(api.signals("deaf").unwrap(), json!({"signals": []}));
    assert_eq!(api.signals("none").unwrap_err().status, 404);
}
