//! The running Raft node: what is proposed here is agreed on, or the caller learns that it is not.
//!
//! Files in the order in which they come into play: `settings` are the times; `standing` is where
//! the node stands, kept up to date from Raft's own reports; `propose` writes, `read_index` confirms
//! what may be read and who may get a lease; `serve` answers other nodes; `receive` takes their
//! snapshots; `election` shortens the search for a new leader when the process of the old one is
//! known to be gone. Who belongs to the group is `membership`'s business.
//!
//! Invariants: a proposal is handed in again only if it provably had no effect; nothing here answers
//! for another cluster, or for another node; after a failed write to the store the node does
//! nothing any more and [`Consensus::failure`] says why.
//!
//! It does not: know what a command means, keep leases, or run units.

mod election;
mod propose;
mod read_index;
mod receive;
mod serve;
mod settings;
mod standing;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use openraft::Raft;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use settings::{Formation, Settings, Timing};
pub use standing::{Leader, Standing};

use crate::lease::Grant;
use crate::membership::{self, Membership};
use crate::raft::ballots::Ballots;
use crate::raft::machine::Machine;
use crate::raft::network::{Addresses, Network};
use crate::raft::store::{Store, StoreError};
use crate::raft::types::TypeConfig;
use crate::raft::{Leadership, NodeId, ProposeError, StateView};
use crate::rpc::{Caller, Local, Presence, Transport};
use read_index::Rounds;
use receive::Receiving;
use standing::Heard;

/// What the node above does for other nodes.
#[async_trait]
pub trait Duties: Send + Sync + 'static {
    /// Answers a heartbeat. This node leads, a quorum round began after the heartbeat had arrived, and
    /// everything up to its index has been applied. `None`: the leader's duties have not begun.
    fn grant(&self, node: NodeId, incarnation: u64, applied: u64) -> Option<Grant>;

    /// A request that another node forwards, in the encoding of the layer that forwards it. `Err` is
    /// a text for the operator.
    async fn forwarded(&self, caller: Caller, request: Vec<u8>) -> Result<Vec<u8>, String>;
}

/// Why a node cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("unusable times: {0}")]
    Timing(String),
    #[error("the log cannot be used: {0}")]
    Raft(String),
}

pub struct Consensus {
    pub(crate) raft: Raft<TypeConfig, Machine>,
    pub(crate) store: Store,
    view: Arc<StateView>,
    pub(crate) local: Arc<Local>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) presence: Presence,
    pub(crate) settings: Settings,
    pub(crate) standing: watch::Sender<Standing>,
    leading: watch::Sender<Option<Leadership>>,
    caught_up: watch::Sender<bool>,
    pub(crate) heard: Heard,
    addresses: Arc<Addresses>,
    ballots: Arc<Ballots>,
    failure: watch::Sender<Option<String>>,
    rounds: Rounds,
    receiving: Receiving,
    pub(crate) membership: Membership,
    duties: OnceLock<Arc<dyn Duties>>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Consensus {
    /// Opens the store at `path` and takes part. Forming or joining a group goes on in the background.
    pub async fn start(
        path: &Path,
        settings: Settings,
        transport: Arc<dyn Transport>,
    ) -> Result<Arc<Self>, StartError> {
        let owned = path.to_owned();
        let store = tokio::task::spawn_blocking(move || Store::open(&owned))
            .await
            .map_err(|e| StartError::Raft(e.to_string()))??;
        Self::start_with(store, settings, transport).await
    }

    /// As [`Consensus::start`], with a store that is open.
    pub async fn start_with(
        store: Store,
        settings: Settings,
        transport: Arc<dyn Transport>,
    ) -> Result<Arc<Self>, StartError> {
        let identity = store.identity();
        let local =
            Arc::new(Local::new(identity.node, identity.incarnation, settings.address.clone(), identity.cluster));
        let pristine = store.is_pristine();
        if !pristine {
            local.settle();
        }
        tracing::info!(
            node = identity.node,
            start = identity.incarnation,
            cluster = identity.cluster.map(tracing::field::display),
            pristine,
            address = settings.address,
            "node starts"
        );
        let machine = Machine::open(store.clone()).await?;
        let view = machine.view();
        let config = settings.timing.config().map_err(StartError::Timing)?;
        let addresses = Arc::new(Addresses::default());
        let ballots = Arc::new(Ballots::default());
        let network = Network {
            transport: transport.clone(),
            node: identity.node,
            addresses: addresses.clone(),
            ballots: ballots.clone(),
        };
        let raft = Raft::new(identity.node, Arc::new(config), network, store.clone(), machine)
            .await
            .map_err(|e| StartError::Raft(e.to_string()))?;

        if raft.voter_ids().eq([identity.node]) {
            // Nobody else to ask, and nothing to wait for.
            raft.trigger().elect(false).await.map_err(|e| StartError::Raft(e.to_string()))?;
        }

        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        let consensus = Arc::new(Self {
            rounds: Rounds::start(raft.clone(), &tasks, stop.clone()),
            presence: Presence::new(transport.clone(), stop.clone()),
            standing: watch::Sender::new(Standing::new(identity.node)),
            leading: watch::Sender::new(None),
            caught_up: watch::Sender::new(false),
            heard: Heard::default(),
            addresses,
            ballots,
            failure: watch::Sender::new(None),
            receiving: Receiving::default(),
            membership: Membership::default(),
            duties: OnceLock::new(),
            raft,
            store,
            view,
            local: local.clone(),
            transport: transport.clone(),
            settings,
            stop,
            tasks,
        });
        transport.serve(local, consensus.clone());
        consensus.spawn(standing::follow(consensus.clone()));
        consensus.spawn(standing::catch_up(consensus.clone()));
        consensus.spawn(election::hurry(consensus.clone()));
        consensus.spawn(election::rest_alone(consensus.clone()));
        consensus.spawn(membership::take_part(consensus.clone()));
        consensus.spawn(membership::lead(consensus.clone()));
        Ok(consensus)
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            stop.run_until_cancelled(work).await;
        });
    }

    /// Takes on what other nodes ask of the layers above. Before that they are told to try again.
    pub fn set_duties(&self, duties: Arc<dyn Duties>) {
        if self.duties.set(duties).is_err() {
            tracing::error!("the duties of this node were set twice; the second ones are ignored");
        }
    }

    pub fn node(&self) -> NodeId {
        self.local.node
    }

    pub fn local(&self) -> &Arc<Local> {
        &self.local
    }

    /// Whether this node has never been in a group.
    pub fn is_pristine(&self) -> bool {
        self.store.is_pristine()
    }

    pub fn view(&self) -> &Arc<StateView> {
        &self.view
    }

    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    /// What a node that is in no group yet waits for, in words for an operator.
    pub fn waiting(&self) -> Option<String> {
        self.membership.waiting()
    }

    /// Which processes are there, and news about that.
    pub fn presence(&self) -> &Presence {
        &self.presence
    }

    /// Where this node stands, now and as it changes.
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// The term that this node leads, if it leads.
    pub fn leading(&self) -> watch::Receiver<Option<Leadership>> {
        self.leading.subscribe()
    }

    /// True once this replica had everything that was agreed on when the node started.
    pub fn caught_up(&self) -> watch::Receiver<bool> {
        self.caught_up.subscribe()
    }

    /// Why this node has stopped taking part; it has to be started again after the cause is gone.
    pub fn failure(&self) -> watch::Receiver<Option<String>> {
        self.failure.subscribe()
    }

    pub(crate) fn fail(&self, why: String) {
        self.failure.send_if_modified(|failure| {
            let first = failure.is_none();
            if first {
                tracing::error!(why, "this node cannot take part any more");
                *failure = Some(why);
            }
            first
        });
    }

    /// Gives up leadership, if this node leads and another voter can take over. Returns when another
    /// one leads, or when the time is up.
    pub async fn step_down(&self, deadline: Duration) {
        let mut standing = self.standing.subscribe();
        let now = standing.borrow_and_update().clone();
        if now.leader.as_ref().is_none_or(|l| l.node != self.local.node) {
            return;
        }
        let Some(successor) = self.successor() else { return };
        tracing::info!(successor, "handing leadership over");
        if self.raft.trigger().transfer_leader(successor).await.is_err() {
            return;
        }
        let other = standing.wait_for(|s| s.leader.as_ref().is_some_and(|l| l.node != self.local.node));
        let _ = tokio::time::timeout(deadline, other).await;
    }

    /// Ends in order: leadership is handed over first, the store is closed last. Returns when nothing
    /// of this node runs any more.
    pub async fn shutdown(&self, deadline: Duration) {
        self.step_down(deadline).await;
        if let Err(error) = self.raft.shutdown().await {
            tracing::warn!(%error, "consensus did not end in order");
        }
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        // The port closes late: a port that refuses tells the others that this process is gone.
        self.transport.shutdown().await;
        self.store.close().await;
    }
}

/// A proposal that found no leader, as the layers above see it.
fn no_leader(quorum_lost: bool) -> ProposeError {
    if quorum_lost { ProposeError::QuorumLost } else { ProposeError::NoLeader }
}
