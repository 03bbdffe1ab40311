//! The group itself: who is in it, who runs what, and whether this node can serve.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Api, ApiError, ApiResult};
use crate::raft::command::DrainMode;
use crate::raft::state::{NodeState, Phase};
use crate::raft::{CommandV1, NodeId, ProposeError};

/// Kafka Connect's limit for an answer of the control loop.
const TURN: Duration = Duration::from_secs(10);

impl Api {
    /// `GET /`.
    pub fn server_info(&self) -> Value {
        json!({
            "version": self.reported_version,
            "commit": crate::COMMIT,
            "kafka_cluster_id": self.face.kafka_cluster_id(),
        })
    }

    /// `GET /cluster`.
    pub fn cluster(&self) -> Value {
        let standing = self.face.standing();
        let leases = self.face.leases();
        let state = self.view.read();
        let count = |id: NodeId, tasks: bool| {
            state.placements.iter().filter(|(u, p)| p.node == id && p.is_held() && u.is_task() == tasks).count()
        };
        let nodes: Vec<Value> = state
            .nodes
            .iter()
            .map(|(id, node)| {
                let role = match standing.members.get(id) {
                    Some(member) if member.voter => Some("voter"),
                    Some(_) => Some("learner"),
                    None => None,
                };
                let lease = if *id == standing.node {
                    Some(self.face.lease_remaining())
                } else {
                    leases.as_ref().and_then(|l| l.get(id).copied())
                };
                json!({
                    "node_id": id,
                    "incarnation": node.incarnation,
                    "worker_id": node.about.worker_id,
                    "rpc_address": node.about.rpc_address,
                    "role": role,
                    "state": match node.state {
                        NodeState::Alive => "alive",
                        NodeState::Draining(_) => "draining",
                        NodeState::Left { .. } => "left",
                        NodeState::Expired => "expired",
                    },
                    "lease_remaining_ms": lease.map(|l| l.as_millis() as u64),
                    "connectors": count(*id, false),
                    "tasks": count(*id, true),
                })
            })
            .collect();
        let pending = self.face.pending();
        json!({
            "cluster_id": standing.cluster,
            "node_id": standing.node,
            "product_version": env!("CARGO_PKG_VERSION"),
            "leader": standing.leader,
            "term": standing.term,
            "last_applied": self.view.applied(),
            "feature_level": state.feature_level,
            "nodes": nodes,
            "pending_moves": pending.as_ref().map(|p| p.0),
            "delay_remaining_ms": pending.and_then(|p| p.1).map(|d| d.as_millis() as u64),
        })
    }

    /// `GET /cluster/assignments`.
    pub fn assignments(&self) -> Value {
        let state = self.view.read();
        let rows = state.placements.iter().map(|(unit, placement)| {
            json!({
                "connector": unit.connector,
                "task": unit.task,
                "node_id": placement.node,
                "epoch": placement.epoch,
                "phase": match placement.phase {
                    Phase::Assigned => "assigned",
                    Phase::Revoking => "revoking",
                    Phase::Released => "released",
                    Phase::Lost { .. } => "lost",
                },
            })
        });
        Value::Array(rows.collect())
    }

    /// `POST /cluster/nodes/{id}/drain`.
    pub async fn drain(&self, node: NodeId, mode: Option<&str>) -> ApiResult<()> {
        let mode = match mode {
            None | Some("move") => DrainMode::Move,
            Some("hold") => DrainMode::Hold,
            Some(other) => return Err(ApiError::bad_request(format!("mode {other} is neither move nor hold"))),
        };
        self.propose(CommandV1::DrainNode { node, mode }).await.map(|_| ())
    }

    /// `POST /cluster/nodes/{id}/undrain`.
    pub async fn undrain(&self, node: NodeId) -> ApiResult<()> {
        self.propose(CommandV1::UndrainNode { node }).await.map(|_| ())
    }

    /// `DELETE /cluster/nodes/{id}`: for a node that has left or is lost for good.
    pub async fn remove_node(&self, node: NodeId) -> ApiResult<()> {
        self.propose(CommandV1::RemoveNode { node }).await?;
        self.face.remove_member(node).await?;
        Ok(())
    }

    /// `POST /cluster/rebalance`.
    pub fn rebalance(&self) -> ApiResult<()> {
        if self.face.rebalance_now() {
            return Ok(());
        }
        let leader = self.face.standing().leader;
        let worker = leader.and_then(|l| self.view.read().nodes.get(&l).map(|n| n.about.worker_id.clone()));
        Err(match worker {
            Some(worker) => ApiError::conflict(format!("This node does not lead the cluster; ask {worker}")),
            None => ProposeError::NoLeader.into(),
        })
    }

    /// Whether this node can serve, or why not.
    pub fn ready(&self) -> Result<(), String> {
        if self.face.ending() {
            return Err("the node is shutting down".to_owned());
        }
        let standing = self.face.standing();
        if standing.cluster.is_none() {
            return Err("the node has not joined a cluster yet".to_owned());
        }
        if standing.leader.is_none() {
            return Err("no leader is known; a majority of the voters is needed".to_owned());
        }
        if !self.face.caught_up() {
            return Err("the node has not applied what was committed before it started".to_owned());
        }
        if self.face.incarnation().is_none() {
            return Err("the node is not registered yet".to_owned());
        }
        if self.face.lease_remaining().is_zero() {
            return Err("the node holds no lease".to_owned());
        }
        Ok(())
    }

    /// `GET /health`: status code and body. Healthy is who can serve and whose control loop answers.
    pub async fn health(&self) -> (u16, Value) {
        let (code, status, message) = match self.turns().await {
            Ok(()) => (200, "healthy", "Worker has completed startup and is ready to handle requests.".to_owned()),
            Err(why) if !self.face.started() => (503, "starting", format!("Worker is still starting up. {why}")),
            Err(why) => {
                let text = "Worker was unable to handle this request and may be unable to handle other requests.";
                (500, "unhealthy", format!("{text} {why}"))
            }
        };
        (code, json!({"status": status, "message": message}))
    }

    /// [`Api::ready`], and the control loop has taken a turn.
    async fn turns(&self) -> Result<(), String> {
        self.ready()?;
        let turn = tokio::time::timeout(TURN, self.face.turn()).await;
        turn.map_err(|_| format!("the control loop has not answered within {} s", TURN.as_secs()))
    }
}
