//! The running node as REST, other nodes and the lease keeper see it.
//!
//! Raft knows a node by an id drawn with its data; everything above knows it by its configured id.
//! The address under which a node is reached joins the two.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use thalweg_actors::NodeHandle;
use thalweg_actors::NodeView;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use crate::api::{Api, Face, Member, Standing};
use crate::consensus::{Consensus, Duties};
use crate::herder::Herder;
use crate::leader::LeaderLoop;
use crate::lease::{Grant, LeaseGuard};
use crate::logging::Loggers;
use crate::raft::{NodeId, ProposeError};
use crate::rpc::{Caller, Destination, Lane, PeerEvent, Request, Response};

/// Longest wait for what another node knows beyond the state.
const DETAIL: Duration = Duration::from_millis(300);
const REMOVE: Duration = Duration::from_secs(10);

pub(super) struct Facade {
    /// The configured id.
    pub node: NodeId,
    pub consensus: Arc<Consensus>,
    pub leader: Arc<LeaderLoop>,
    pub guard: Arc<LeaseGuard>,
    pub herder: Arc<Herder>,
    pub actors: NodeHandle,
    pub loggers: Loggers,
    pub kafka_cluster_id: watch::Receiver<Option<String>>,
    pub ending: CancellationToken,
}

impl Facade {
    /// Configured id of the node that is reached at `address`.
    fn node_at(&self, address: &str) -> Option<NodeId> {
        let state = self.consensus.view().read();
        state.nodes.iter().find(|(_, n)| n.about.rpc_address == address).map(|(id, _)| *id)
    }

    /// Id of a node in the Raft group.
    fn member_at(&self, address: &str) -> Option<NodeId> {
        let standing = self.consensus.standing();
        let standing = standing.borrow();
        standing.members.iter().find(|(_, m)| m.address == address).map(|(id, _)| *id)
    }

    /// Configured id of a member of the Raft group.
    fn node_of(&self, raft_id: NodeId) -> Option<NodeId> {
        let standing = self.consensus.standing();
        let address = standing.borrow().members.get(&raft_id).map(|m| m.address.clone())?;
        self.node_at(&address)
    }
}

#[async_trait]
impl Face for Facade {
    async fn confirm(&self, limit: Duration) -> Result<(), ProposeError> {
        self.consensus.confirm(limit).await.map(|_| ())
    }

    fn standing(&self) -> Standing {
        let standing = self.consensus.standing().borrow().clone();
        let members = standing
            .members
            .values()
            .filter_map(|m| Some((self.node_at(&m.address)?, Member { address: m.address.clone(), voter: m.voter })));
        Standing {
            node: self.node,
            cluster: standing.cluster.map(|c| c.to_string()),
            leader: standing.leader.as_ref().and_then(|l| self.node_at(&l.address)),
            term: standing.term,
            members: members.collect(),
        }
    }

    fn units(&self) -> NodeView {
        self.actors.snapshot()
    }

    async fn detail_of(&self, node: NodeId, connector: &str) -> Option<Value> {
        let address = self.consensus.view().read().nodes.get(&node)?.about.rpc_address.clone();
        // Who reads the status of many connectors would wait as often.
        if self.member_at(&address).is_some_and(|member| self.consensus.presence().is_away(member)) {
            return None;
        }
        let request = serde_json::to_vec(&json!({"detail": connector})).ok()?;
        let to = Destination::address(address);
        match self.consensus.transport().call(&to, Lane::Forward, Request::Forward(request), DETAIL).await {
            Ok(Response::Forwarded(answer)) => serde_json::from_slice(&answer).ok(),
            _ => None,
        }
    }

    fn incarnation(&self) -> Option<u64> {
        *self.herder.incarnation().borrow()
    }

    fn lease_remaining(&self) -> Duration {
        self.guard.remaining()
    }

    fn leases(&self) -> Option<BTreeMap<NodeId, Duration>> {
        self.leader.view().map(|v| v.leases)
    }

    fn pending(&self) -> Option<(usize, Option<Duration>)> {
        self.leader.view().map(|v| (v.pending, v.delay))
    }

    fn caught_up(&self) -> bool {
        *self.consensus.caught_up().borrow()
    }

    fn started(&self) -> bool {
        self.caught_up() && self.guard.was_held()
    }

    async fn turn(&self) {
        self.herder.turn().await;
        self.actors.turn().await;
    }

    fn ending(&self) -> bool {
        self.ending.is_cancelled()
    }

    fn loggers(&self) -> &Loggers {
        &self.loggers
    }

    fn kafka_cluster_id(&self) -> Option<String> {
        self.kafka_cluster_id.borrow().clone()
    }

    async fn remove_member(&self, node: NodeId) -> Result<(), ProposeError> {
        let standing = self.consensus.standing().borrow().clone();
        let raft_id = standing.members.iter().find(|(_, m)| self.node_at(&m.address) == Some(node)).map(|(id, _)| *id);
        match raft_id {
            Some(id) => self.consensus.remove(id, REMOVE).await,
            None => Ok(()),
        }
    }

    fn rebalance_now(&self) -> bool {
        self.leader.rebalance_now()
    }
}

/// What other nodes ask of this one.
pub(super) struct NodeDuties {
    pub facade: Arc<Facade>,
    pub api: Arc<Api>,
}

#[async_trait]
impl Duties for NodeDuties {
    fn grant(&self, raft_id: NodeId, incarnation: u64, applied: u64) -> Option<Grant> {
        self.facade.leader.heartbeat(self.facade.node_of(raft_id)?, incarnation, applied)
    }

    async fn forwarded(&self, _caller: Caller, request: Vec<u8>) -> Result<Vec<u8>, String> {
        let request: Value = serde_json::from_slice(&request).map_err(|e| format!("the request is not JSON: {e}"))?;
        match request["detail"].as_str() {
            Some(connector) => Ok(self.api.detail(connector).to_string().into_bytes()),
            None => Err("the request is of a kind that this node does not know; upgrade it".to_owned()),
        }
    }
}

/// Tells the leader's seat which processes are certainly gone.
pub(super) async fn watch_peers(facade: Arc<Facade>, stop: CancellationToken) {
    let mut events = facade.consensus.presence().events();
    loop {
        let event = match stop.run_until_cancelled(events.recv()).await {
            None | Some(Err(broadcast::error::RecvError::Closed)) => return,
            Some(Err(broadcast::error::RecvError::Lagged(_))) => continue,
            Some(Ok(event)) => event,
        };
        let Some(node) = facade.node_of(event.node()) else {
            continue;
        };
        match event {
            PeerEvent::Gone { .. } => facade.leader.process_gone(node),
            PeerEvent::Back { .. } => facade.leader.process_back(node),
            PeerEvent::Unreachable { .. } => {}
        }
    }
}

/// Takes over the cluster's log levels.
pub(super) async fn follow_loggers(facade: Arc<Facade>, stop: CancellationToken) {
    let mut changes = facade.consensus.view().changes();
    let mut seen = BTreeMap::new();
    loop {
        {
            let state = facade.consensus.view().read();
            facade.loggers.follow(&state.loggers, &mut seen);
        }
        if !matches!(stop.run_until_cancelled(changes.changed()).await, Some(Ok(()))) {
            return;
        }
    }
}
