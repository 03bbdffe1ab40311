//! openraft's calls over our transport.
//!
//! Invariants: a call goes to the node it is meant for or to none; one that did not reach a running
//! process is `Unreachable`, so that openraft backs off; snapshots travel in chunks on their own lane.
//!
//! It does not: answer calls; [`crate::consensus`] does.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Timeout, Unreachable};
use openraft::network::{Backoff, RPCOption, RPCTypes, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderError, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::{AnyError, OptionalSend};
use parking_lot::RwLock;

use super::ballots::Ballots;
use super::snapshot::{Snapshot, SnapshotData};
use super::types::{LogId, Member, MembershipRecord, TypeConfig, Vote, VoteRecord};
use super::unit::NodeId;
use crate::rpc::message::{Append, Appended, Failure, SnapshotChunk, TransferLeader, Voted};
use crate::rpc::{self, Destination, Lane, Request, Response, RpcError, Transport};

/// Replication waits for the other side's disk, which heartbeats do not.
const APPEND_DEADLINE: Duration = Duration::from_secs(5);
/// Per chunk; the last one waits until the snapshot is installed.
const CHUNK_DEADLINE: Duration = Duration::from_secs(30);
const CHUNK: usize = 1 << 20;

/// Where members are now. openraft keeps the address that a member had when it began to call it; a
/// member that moves keeps its id.
#[derive(Debug, Default)]
pub struct Addresses {
    current: RwLock<BTreeMap<NodeId, Arc<str>>>,
}

impl Addresses {
    pub fn replace(&self, members: impl IntoIterator<Item = (NodeId, Arc<str>)>) {
        *self.current.write() = members.into_iter().collect();
    }
}

/// Makes a [`Peer`] per member.
pub struct Network {
    pub transport: Arc<dyn Transport>,
    pub node: NodeId,
    pub addresses: Arc<Addresses>,
    pub ballots: Arc<Ballots>,
}

/// One member, as seen by this node's Raft.
pub struct Peer {
    transport: Arc<dyn Transport>,
    node: NodeId,
    target: NodeId,
    addresses: Arc<Addresses>,
    ballots: Arc<Ballots>,
    /// Where it was when it was added.
    first: Arc<str>,
    heartbeat: bool,
}

impl Network {
    fn peer(&self, target: NodeId, member: &Member, heartbeat: bool) -> Peer {
        Peer {
            transport: self.transport.clone(),
            node: self.node,
            target,
            addresses: self.addresses.clone(),
            ballots: self.ballots.clone(),
            first: member.address.as_str().into(),
            heartbeat,
        }
    }
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Peer;

    async fn new_client(&mut self, target: NodeId, member: &Member) -> Peer {
        self.peer(target, member, false)
    }

    async fn new_heartbeat_client(&mut self, target: NodeId, member: &Member) -> Peer {
        self.peer(target, member, true)
    }
}

type CallError = RPCError<TypeConfig>;

impl Peer {
    async fn call(
        &self,
        lane: Lane,
        what: RPCTypes,
        request: Request,
        deadline: Duration,
    ) -> Result<Response, CallError> {
        let address = self.addresses.current.read().get(&self.target).unwrap_or(&self.first).clone();
        let to = Destination::node(self.target, address);
        match self.transport.call(&to, lane, request, deadline).await {
            Ok(Response::Failed(failure)) => Err(unreachable(&failed(&to, &failure))),
            Ok(response) => Ok(response),
            Err(RpcError::Timeout { .. }) => {
                Err(Timeout { action: what, id: self.node, target: self.target, timeout: deadline }.into())
            }
            Err(e @ RpcError::Broken { .. }) => Err(NetworkError::new(&e).into()),
            Err(e) => Err(unreachable(&e)),
        }
    }

    async fn ask_vote(
        &self,
        request: VoteRequest<TypeConfig>,
        pre: bool,
        deadline: Duration,
    ) -> Result<VoteResponse<TypeConfig>, CallError> {
        let vote = rpc::message::Vote {
            vote: (&request.vote).into(),
            last: request.last_log_id.as_ref().map(Into::into),
            pre,
            transfer: request.leadership_transfer,
        };
        let term = request.vote.leader_id.term;
        match self.call(Lane::Consensus, RPCTypes::Vote, Request::Vote(vote), deadline).await? {
            Response::Voted(Voted { vote, granted, last, silent_ms }) => {
                // Before openraft counts the vote.
                if granted && !pre {
                    self.ballots.granted(term, Duration::from_millis(silent_ms));
                }
                Ok(VoteResponse::new(Vote::from(vote), last.map(LogId::from), granted))
            }
            other => Err(unexpected(&other)),
        }
    }

    async fn send_snapshot(&self, vote: &Vote, snapshot: &Snapshot) -> Result<SnapshotResponse<TypeConfig>, CallError> {
        let SnapshotData(data) = &snapshot.snapshot;
        let mut offset = 0;
        loop {
            let end = data.len().min(offset + CHUNK);
            let chunk = SnapshotChunk {
                vote: vote.into(),
                last: snapshot.meta.last_log_id.as_ref().map(Into::into),
                membership: MembershipRecord::from(&snapshot.meta.last_membership),
                offset: offset as u64,
                total: data.len() as u64,
                data: data.slice(offset..end).to_vec(),
            };
            let sent = self.call(Lane::Snapshot, RPCTypes::InstallSnapshot, Request::Snapshot(chunk), CHUNK_DEADLINE);
            let their_vote = match sent.await? {
                Response::SnapshotTaken { vote } => Vote::from(vote),
                other => return Err(unexpected(&other)),
            };
            offset = end;
            // A receiver with a higher vote wants no more of it.
            if offset == data.len() || their_vote > *vote {
                return Ok(SnapshotResponse::new(their_vote));
            }
        }
    }
}

impl RaftNetworkV2<TypeConfig> for Peer {
    type SnapshotData = SnapshotData;

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, CallError> {
        let has_previous = rpc.prev_log_id.is_some();
        let append = Append {
            vote: (&rpc.vote).into(),
            previous: rpc.prev_log_id.as_ref().map(Into::into),
            entries: rpc.entries.into_iter().map(Into::into).collect(),
            committed: rpc.leader_commit.as_ref().map(Into::into),
        };
        let deadline = if self.heartbeat { option.hard_ttl() } else { APPEND_DEADLINE };
        let answer = self.call(Lane::Consensus, RPCTypes::AppendEntries, Request::Append(append), deadline).await?;
        match answer {
            Response::Appended(Appended::Success) => Ok(AppendEntriesResponse::Success),
            Response::Appended(Appended::Partial(upto)) => {
                Ok(AppendEntriesResponse::PartialSuccess(upto.map(LogId::from)))
            }
            Response::Appended(Appended::Conflict) if has_previous => Ok(AppendEntriesResponse::Conflict),
            Response::Appended(Appended::HigherVote(vote)) => Ok(AppendEntriesResponse::HigherVote(vote.into())),
            other => Err(unexpected(&other)),
        }
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, CallError> {
        self.ask_vote(rpc, false, option.hard_ttl()).await
    }

    async fn pre_vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, CallError> {
        self.ask_vote(rpc, true, option.hard_ttl()).await
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        tokio::select! {
            closed = cancel => Err(closed.into()),
            sent = self.send_snapshot(&vote, &snapshot) => Ok(sent?),
        }
    }

    async fn transfer_leader(
        &mut self,
        req: TransferLeaderRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<TypeConfig>, CallError> {
        let from = *req.from_leader();
        let transfer = TransferLeader {
            from: VoteRecord::from(&from),
            to: *req.to_node_id(),
            last: req.last_log_id().map(Into::into),
        };
        let request = Request::TransferLeader(transfer);
        match self.call(Lane::Consensus, RPCTypes::TransferLeader, request, option.hard_ttl()).await? {
            Response::LeaderTransferred { accepted: true } => Ok(Ok(())),
            Response::LeaderTransferred { accepted: false } => {
                Ok(Err(TransferLeaderError::VoteChanged { expected: from, actual: from }))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Peers come back within moments or much later; a call to one that is gone costs next to nothing.
    fn backoff(&self) -> Option<Backoff> {
        let steps = [50, 100, 200, 400].into_iter().chain(std::iter::repeat(500));
        Some(Backoff::new(steps.map(Duration::from_millis)))
    }
}

fn unreachable(why: &(impl std::error::Error + 'static)) -> CallError {
    Unreachable::new(why).into()
}

fn failed(to: &Destination, failure: &Failure) -> AnyError {
    AnyError::error(format!("{to}: {failure}"))
}

/// The other side answers another question than was asked; it may be another version.
fn unexpected(response: &Response) -> CallError {
    let what = match response {
        Response::Appended(Appended::Conflict) => "a conflict with nothing",
        _ => "an answer of another kind",
    };
    unreachable(&AnyError::error(format!("the other node gave {what}")))
}
