//! A node as a whole: everything of this crate put together and run until it is told to stop.
//!
//! Start: sockets first, so that a port in use is known at once and REST answers while the node is
//! still looking for its group; then the store and Raft; then registration, lease, herder, actors.
//! Stop: tasks are handed over at their exact positions, the node says goodbye, REST ends, Raft
//! hands leadership over and closes the store last.
//!
//! It does not: know a connector (they come in with the registry), parse anything, or print.

mod facade;

use std::sync::Arc;
use std::time::Duration;

use thalweg_actors::Node as Actors;
use thalweg_actors::NodeOptions;
use thalweg_actors::Registry;
use thalweg_config::node::{
    ClusterShape, Delivery as ConfiguredDelivery, Listener as Address, RpcConfig, Scheme, ShutdownMode, WorkerConfig,
};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::{Api, Warnings};
use crate::commit::{Coalescer, CommitLimits};
use crate::consensus::{Consensus, Formation, Settings, StartError, Timing};
use crate::herder::{Herder, HerderError, Identity};
use crate::leader::{LeaderLoop, Office};
use crate::lease::{LeaseGuard, LeaseKeeper, LeaseTerms, SystemClock, TermsError};
use crate::logging::Loggers;
use crate::plan::Limits;
use crate::port::NodePort;
use crate::raft::command::{Delivery, DrainMode, NodeAbout};
use crate::rest::{BindError, DoorError, Doors, Listener, Server};
use crate::rpc::tcp::TcpTransport;
use crate::rpc::tls::{Tls, TlsError, TlsFiles};
use facade::Facade;

/// Longest orderly end: draining, then the goodbye.
const LEAVE: Duration = Duration::from_secs(20);
const HAND_OVER: Duration = Duration::from_secs(2);

#[derive(Debug, Error)]
pub enum NodeError {
    #[error("the data directory {path} cannot be made: {source}; choose another with thalweg.data.dir")]
    DataDir { path: String, source: std::io::Error },
    #[error(transparent)]
    Rest(#[from] BindError),
    #[error(
        "cannot listen on {address} (thalweg.rpc.listen): {source}; if another process has the port, stop it or choose another"
    )]
    Rpc { address: String, source: std::io::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Lease(#[from] TermsError),
    #[error(transparent)]
    Doors(#[from] DoorError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Herder(#[from] HerderError),
    #[error("{option} is set, but this build does not honour it: {advice}")]
    NotServed { option: &'static str, advice: &'static str },
    #[error("this node cannot go on: {0}")]
    Failed(String),
}

/// What a node is made of.
pub struct Parts {
    pub config: WorkerConfig,
    pub registry: Registry,
    pub loggers: Loggers,
    /// Filled by whoever can ask Kafka.
    pub kafka_cluster_id: watch::Receiver<Option<String>>,
}

/// Runs a node inside an actix system until `stop`, or until it cannot go on.
pub async fn run(parts: Parts, stop: CancellationToken) -> Result<(), NodeError> {
    let config = &parts.config;
    for note in &config.notes {
        tracing::info!(note, "worker configuration");
    }
    refuse_what_is_not_served(config)?;
    std::fs::create_dir_all(&config.data_dir)
        .map_err(|source| NodeError::DataDir { path: config.data_dir.display().to_string(), source })?;
    let doors = Doors::new(&config.rest)?;
    let bound = bind_rest(config, &doors).await?;
    let (transport, address) = bind_rpc(config).await?;
    let terms = LeaseTerms::new(config.session_timeout, config.heartbeat_interval)?;
    let settings =
        Settings { address: address.clone(), formation: formation(&config.cluster), timing: Timing::default() };
    let consensus = Consensus::start(&config.data_dir.join("raft.redb"), settings, Arc::new(transport)).await?;

    let newcomer = consensus.is_pristine();

    let clock: Arc<dyn crate::lease::Clock> = Arc::new(SystemClock);
    let view = consensus.view().clone();
    let guard = Arc::new(LeaseGuard::new(terms, clock.clone()));
    let about = NodeAbout {
        worker_id: config.worker_id(),
        rest_url: config.rest.advertised.to_string(),
        rpc_address: address,
        feature_level: crate::raft::command::FEATURE_LEVEL,
    };
    let identity = Identity {
        node: config.node_id,
        about,
        max_delay: config.scheduled_rebalance_max_delay,
        patience: terms.ended() * 2,
    };
    let herder = Arc::new(Herder::new(identity, view.clone(), consensus.clone(), guard.clone(), clock.clone()));
    let limits =
        CommitLimits { interval: config.offset_commit, settle: config.offset_flush_timeout, ..CommitLimits::default() };
    let reports = Arc::new(Coalescer::new(config.node_id, herder.incarnation(), consensus.clone(), limits));
    let leader = Arc::new(LeaderLoop::new(office(config, terms), view.clone(), consensus.clone(), clock));
    let port = Arc::new(NodePort {
        group: config.group.as_str().into(),
        view: view.clone(),
        proposer: consensus.clone(),
        reports: reports.clone(),
        guard: guard.clone(),
        topic_tracking: config.topic_tracking,
    });
    let actors = Actors::start(parts.registry.clone(), port, node_options(config));
    let facade = Arc::new(Facade {
        node: config.node_id,
        consensus: consensus.clone(),
        leader: leader.clone(),
        guard: guard.clone(),
        herder: herder.clone(),
        actors: actors.clone(),
        loggers: parts.loggers.clone(),
        kafka_cluster_id: parts.kafka_cluster_id.clone(),
        ending: stop.clone(),
    });
    let api = Arc::new(Api {
        view: view.clone(),
        proposer: consensus.clone(),
        face: facade.clone(),
        registry: Arc::new(parts.registry.clone()),
        worker: config.properties.clone(),
        reported_version: config.rest.reported_version.clone(),
        topic_tracking: config.topic_tracking,
        topic_reset: config.topic_tracking_reset,
        warnings: Warnings::default(),
    });
    consensus.set_duties(Arc::new(facade::NodeDuties { facade: facade.clone(), api: api.clone() }));

    let tasks = TaskTracker::new();
    let (background, rest) = (CancellationToken::new(), CancellationToken::new());
    let keeper = LeaseKeeper { guard, view: view.clone(), link: consensus.clone(), incarnation: herder.incarnation() };
    tasks.spawn(keeper.run(background.clone()));
    let (seat, leading, token) = (leader.clone(), consensus.leading(), background.clone());
    tasks.spawn(async move { seat.run(leading, token).await });
    let (writer, token) = (reports.clone(), background.clone());
    tasks.spawn(async move { writer.run(token).await });
    tasks.spawn(facade::watch_peers(facade.clone(), background.clone()));
    tasks.spawn(facade::follow_loggers(facade.clone(), background.clone()));
    let listeners =
        bound.into_iter().map(|(address, listener)| (listener, doors.router(&address, api.clone()))).collect();
    tasks.spawn(Server { listeners }.run(rest.clone()));
    let (mut placed, runner) = (herder.placed(), actors.clone());
    let token = background.clone();
    tasks.spawn(async move {
        while let Some(Ok(())) = token.run_until_cancelled(placed.changed()).await {
            let list = placed.borrow_and_update().as_ref().clone();
            runner.reconcile(list);
        }
    });
    tracing::info!(node = config.node_id, worker = config.worker_id(), group = config.group, "node started");

    let mut failure = consensus.failure();
    let following = herder.run(&reports, background.clone());
    tokio::pin!(following);
    let outcome = tokio::select! {
        () = stop.cancelled() => {
            tracing::info!("shutting down; handing tasks over");
            let mode = match config.shutdown_mode {
                ShutdownMode::Move => DrainMode::Move,
                ShutdownMode::Hold => DrainMode::Hold,
            };
            let hold = config.scheduled_rebalance_max_delay;
            let leave = herder.leave(mode, hold, LEAVE.max(config.task_shutdown_timeout));
            tokio::select! {
                left = leave => {
                    if let Err(error) = left {
                        tracing::warn!(%error, "the goodbye was not written; the others will notice");
                    }
                    Ok(())
                }
                ended = &mut following => ended.map_err(NodeError::from),
            }
        }
        ended = &mut following => ended.map_err(NodeError::from),
        failed = failure.wait_for(Option::is_some) => {
            Err(NodeError::Failed(failed.ok().and_then(|f| f.clone()).unwrap_or_default()))
        }
    };
    if newcomer && matches!(outcome, Err(NodeError::Herder(HerderError::IdInUse { .. }))) {
        // It had to join the group before it could ask for its id.
        match consensus.leave(LEAVE).await {
            Ok(()) => {
                tracing::warn!(data = %config.data_dir.display(), "left the group again; delete the data directory")
            }
            Err(error) => tracing::warn!(
                %error,
                "this node could not leave the group that it joined; its address stays among the members"
            ),
        }
    }
    let report = actors.shutdown(config.task_shutdown_timeout).await;
    if !report.abandoned.is_empty() {
        tracing::warn!(units = report.abandoned.len(), "units did not end in time");
    }
    rest.cancel();
    background.cancel();
    tasks.close();
    tasks.wait().await;
    consensus.shutdown(HAND_OVER).await;
    tracing::info!("node stopped");
    outcome
}

/// What would be less safe than its owner believes if it were passed over ends the start.
fn refuse_what_is_not_served(config: &WorkerConfig) -> Result<(), NodeError> {
    if config.exactly_once {
        let advice =
            "remove the option; thalweg.delivery=fenced keeps stale owners out, changes may repeat after a failure";
        return Err(NodeError::NotServed { option: "exactly.once.source.support", advice });
    }
    Ok(())
}

fn node_options(config: &WorkerConfig) -> NodeOptions {
    NodeOptions {
        commit_interval: config.offset_commit,
        quiet_commit_interval: config.offset_flush_interval,
        flush_timeout: config.offset_flush_timeout,
        stop_timeout: config.task_shutdown_timeout,
        worker: config.properties.clone(),
        ..NodeOptions::default()
    }
}

async fn bind_rest(config: &WorkerConfig, doors: &Doors) -> Result<Vec<(Address, Listener)>, NodeError> {
    let tls = config.rest.tls.as_ref().map(crate::rest::acceptor).transpose()?;
    let mut bound = Vec::new();
    for address in doors.addresses() {
        let tls = if address.scheme == Scheme::Https { tls.clone() } else { None };
        let listener = Listener::bind(&address.address.host, address.address.port, tls).await?;
        bound.push((address, listener));
    }
    Ok(bound)
}

/// The transport, and the address under which others reach it.
async fn bind_rpc(config: &WorkerConfig) -> Result<(TcpTransport, String), NodeError> {
    let rpc = match &config.cluster {
        ClusterShape::Alone { rpc } => rpc.as_ref(),
        ClusterShape::Founding { rpc, .. } | ClusterShape::Joining { rpc, .. } => Some(rpc),
    };
    // A node alone that does not listen gets a loopback port that nobody is told about.
    let (host, port) = rpc.map_or(("127.0.0.1", 0), |r| (r.listen.bind_host(), r.listen.port));
    let socket = TcpListener::bind((host, port))
        .await
        .map_err(|source| NodeError::Rpc { address: format!("{host}:{port}"), source })?;
    let tls = rpc.and_then(|r| r.tls.as_ref()).map(|files| {
        Tls::load(&TlsFiles { ca: files.ca.clone(), certificate: files.cert.clone(), key: files.key.clone() })
    });
    let address = match rpc {
        Some(RpcConfig { advertised, .. }) => advertised.to_string(),
        // The same after every start: it is how the registry recognises the node.
        None => "127.0.0.1:0".to_owned(),
    };
    Ok((TcpTransport::new(socket, tls.transpose()?), address))
}

fn formation(shape: &ClusterShape) -> Formation {
    let text = |seeds: &[thalweg_config::node::Address]| seeds.iter().map(ToString::to_string).collect();
    match shape {
        ClusterShape::Alone { .. } => Formation::Alone,
        ClusterShape::Founding { seeds, .. } => Formation::Found { seeds: text(seeds) },
        ClusterShape::Joining { seeds, .. } => Formation::Join { seeds: text(seeds) },
    }
}

fn office(config: &WorkerConfig, terms: LeaseTerms) -> Office {
    let default_mode = match config.delivery {
        ConfiguredDelivery::Plain => Delivery::Plain,
        ConfiguredDelivery::Fenced => Delivery::Fenced,
    };
    Office {
        limits: Limits { default_mode, lease_ended: terms.ended(), ..Limits::default() },
        terms,
        max_delay: config.scheduled_rebalance_max_delay,
        revoke_timeout: config.rebalance_timeout,
    }
}
