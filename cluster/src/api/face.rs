//! What the API needs of the running node, and only that.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use thalweg_actors::NodeView;

use crate::logging::Loggers;
use crate::raft::{NodeId, ProposeError};

/// A member of the Raft group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub address: String,
    pub voter: bool,
}

/// Where this node stands in its group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    pub node: NodeId,
    pub cluster: Option<String>,
    pub leader: Option<NodeId>,
    pub term: u64,
    pub members: BTreeMap<NodeId, Member>,
}

#[async_trait]
pub trait Face: Send + Sync + 'static {
    /// Confirms with a majority, within `limit`, that this replica has everything that was acknowledged
    /// before.
    async fn confirm(&self, limit: Duration) -> Result<(), ProposeError>;

    fn standing(&self) -> Standing;

    /// What runs here.
    fn units(&self) -> NodeView;

    /// The same of another node, as [`Api::detail`](super::Api::detail) of that node gives it;
    /// `None` if it does not answer in time.
    async fn detail_of(&self, node: NodeId, connector: &str) -> Option<Value>;

    /// Incarnation under which this node is registered.
    fn incarnation(&self) -> Option<u64>;

    /// Zero without a lease.
    fn lease_remaining(&self) -> Duration;

    /// Leases as the leader sees them, if this node leads.
    fn leases(&self) -> Option<BTreeMap<NodeId, Duration>>;

    /// Moves that the leader has in mind, and the time until a delay ends, if this node leads.
    fn pending(&self) -> Option<(usize, Option<Duration>)>;

    /// Started, caught up with what was committed at the start.
    fn caught_up(&self) -> bool;

    /// It could serve at some time since its start: caught up, registered, with a lease.
    fn started(&self) -> bool;

    /// Resolves when the control loop, from the applied state to the units that run here, has taken a
    /// turn.
    async fn turn(&self);

    /// The node is ending.
    fn ending(&self) -> bool;

    fn loggers(&self) -> &Loggers;

    /// Id of the Kafka cluster, once known.
    fn kafka_cluster_id(&self) -> Option<String>;

    /// Takes a node out of the group for good.
    async fn remove_member(&self, node: NodeId) -> Result<(), ProposeError>;

    /// Ends a running delay and plans anew; `false` if this node does not lead.
    fn rebalance_now(&self) -> bool;
}
