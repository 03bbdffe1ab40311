//! Doubles of our own seams, scripted and recording: a source, a broker, a cluster. Real services are
//! used by the end-to-end tests; here it is about who is told what, when, and in which order.

pub mod broker;
pub mod cluster;
pub mod random;
pub mod source;

use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_actors::port::{Assignment, Epoch, Target, UnitId, UnitState};
use thalweg_actors::{Node, NodeHandle, NodeOptions, Registry, UnitView};
use thalweg_config::Properties;
use thalweg_config::provider::Providers;
use thalweg_core::delivery::DeliveryMode;

use broker::Broker;
use cluster::Cluster;
use source::{Script, ScriptConnector};

pub const CONNECTOR: &str = "shop";

/// A source, a broker and a cluster that belong together.
#[derive(Clone)]
pub struct Stage {
    pub script: Arc<Script>,
    pub broker: Arc<Broker>,
    pub cluster: Arc<Cluster>,
}

impl Stage {
    /// `partitions` by name, each with so many events.
    pub fn new(partitions: &[(&str, u64)]) -> Self {
        let script = Script::new(partitions);
        let broker = Broker::new();
        Self { cluster: Cluster::new(script.clone(), broker.clone()), script, broker }
    }

    /// One partition with so many events.
    pub fn of(events: u64) -> Self {
        Self::new(&[("p", events)])
    }

    pub fn node(&self) -> NodeHandle {
        self.node_with(options())
    }

    pub fn node_with(&self, options: NodeOptions) -> NodeHandle {
        let worker = Properties::from([
            ("config.providers", "env"),
            ("config.providers.env.class", "org.apache.kafka.common.config.provider.EnvVarConfigProvider"),
        ]);
        let environment = [("SECRET".to_owned(), "hunter2-hunter2".to_owned())].into();
        let providers = Providers::new(&worker, &environment).unwrap();
        let registry = Registry::new(Arc::new(self.broker.producers()), providers)
            .with(Arc::new(ScriptConnector(self.script.clone())));
        Node::start(registry, self.cluster.member(), options)
    }

    /// The process dies at once: nothing of it is seen any more.
    pub fn crash(&self) {
        self.cluster.crash();
        self.broker.crash();
    }

    /// Task 0, placed with this epoch, which the cluster takes for the current one.
    pub fn task(&self, epoch: u64) -> Assignment {
        self.assignment(UnitId::Task(CONNECTOR.into(), 0), epoch)
    }

    pub fn connector(&self, epoch: u64) -> Assignment {
        self.assignment(UnitId::Connector(CONNECTOR.into()), epoch)
    }

    fn assignment(&self, unit: UnitId, epoch: u64) -> Assignment {
        self.cluster.place(&unit, Epoch(epoch));
        Assignment {
            unit,
            epoch: Epoch(epoch),
            target: Target::Started,
            config: config(),
            config_revision: 1,
            restart: 0,
            revoked: false,
            send_after: None,
            mode: DeliveryMode::Fenced,
        }
    }
}

/// Short times, so that what takes seconds in service takes milliseconds here.
pub fn options() -> NodeOptions {
    NodeOptions {
        commit_interval: Duration::from_millis(4),
        quiet_commit_interval: Duration::from_millis(20),
        flush_timeout: Duration::from_millis(300),
        stop_timeout: Duration::from_millis(1500),
        heartbeat: Duration::from_millis(10),
        worker: Properties::new(),
    }
}

pub fn config() -> Properties {
    Properties::from([
        ("name", CONNECTOR),
        ("connector.class", source::CLASS),
        ("executor.shutdown.timeout.ms", "200"),
        ("key.converter", "org.apache.kafka.connect.storage.StringConverter"),
        ("value.converter", "org.apache.kafka.connect.storage.StringConverter"),
        ("errors.retry.delay.initial.ms", "4"),
        ("errors.retry.delay.max.ms", "20"),
    ])
}

/// Runs a test inside its own system.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    thalweg_actors::run(Some(2), test).unwrap()
}

/// Far more than any wait takes.
const LIMIT: Duration = Duration::from_secs(20);

/// Waits until `condition` gives something. The limit is for broken code only.
#[track_caller]
pub fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> impl Future<Output = T> {
    let at = std::panic::Location::caller();
    let what = what.to_owned();
    async move {
        let started = Instant::now();
        let mut look = tokio::time::interval(Duration::from_millis(1));
        loop {
            if let Some(value) = condition() {
                return value;
            }
            assert!(started.elapsed() < LIMIT, "{at}: waited in vain until {what}");
            look.tick().await;
        }
    }
}

/// Keeps a worker busy: one that blocks may have been the only one that looked after timers.
pub fn keep_busy() {
    tokio::spawn(async {
        loop {
            tokio::task::yield_now().await;
        }
    });
}

/// Lets the code under test go on for so many heartbeats: for what must *not* happen.
pub async fn heartbeats(n: u32) {
    let mut interval = tokio::time::interval(options().heartbeat);
    for _ in 0..=n {
        interval.tick().await;
    }
}

pub fn view(node: &NodeHandle, unit: &UnitId) -> Option<UnitView> {
    node.snapshot().units.into_iter().find(|view| view.unit == *unit)
}

pub fn task_unit() -> UnitId {
    UnitId::Task(CONNECTOR.into(), 0)
}

pub fn connector_unit() -> UnitId {
    UnitId::Connector(CONNECTOR.into())
}

pub async fn until_state(node: &NodeHandle, unit: &UnitId, state: UnitState) -> UnitView {
    until(&format!("{unit:?} is {state:?}"), || view(node, unit).filter(|view| view.state == state)).await
}
