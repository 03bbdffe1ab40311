//! What one node can ask another, and what it can answer.
//!
//! Invariants: the enums are on the wire between builds of different age: variants are appended,
//! never reordered, removed or changed (golden bytes below). A request that a node does not know
//! is answered with [`Failure::NotUnderstood`].
//!
//! It does not: decide who may ask what; see [`super::admission`] and the handler.

use std::fmt;

use bincode::{Decode, Encode};

use super::transport::ClusterId;
use crate::raft::command::{Command, Reply};
use crate::raft::types::{EntryRecord, LogIdRecord, Member, MembershipRecord, VoteRecord};
use crate::raft::unit::NodeId;

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Request {
    /// Answered after `hold_ms`: the open call notices at once when the other process ends.
    Ping {
        hold_ms: u32,
    },
    /// What are you? Allowed before a cluster is known.
    Probe,
    /// Take this cluster as yours. Allowed before a cluster is known, by the node that forms it.
    Adopt(Adopt),
    /// Take me in, or learn my new address. To the leader; allowed before a cluster is known.
    Join(Join),
    /// Take this node out for good. To the leader.
    Leave {
        node: NodeId,
    },
    Append(Append),
    Vote(Vote),
    Snapshot(SnapshotChunk),
    TransferLeader(TransferLeader),
    /// An index that is safe to read at. To the leader.
    ReadIndex,
    /// To the leader.
    Propose(Command),
    /// Asks for a lease. To the leader.
    Heartbeat(Heartbeat),
    /// A REST request, encoded by the REST layer.
    Forward(Vec<u8>),
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Response {
    Failed(Failure),
    Pong {
        incarnation: u64,
    },
    Probed(Probed),
    Adopted,
    Joined {
        cluster: ClusterId,
    },
    Left,
    Appended(Appended),
    Voted(Voted),
    /// The chunk was taken; after the last one the snapshot is installed. The vote of the receiver.
    SnapshotTaken {
        vote: VoteRecord,
    },
    /// The leader's right was refused: `true` if its vote or log was outdated.
    LeaderTransferred {
        accepted: bool,
    },
    ReadIndex {
        index: u64,
    },
    Proposed(Reply),
    Heartbeat(HeartbeatReply),
    Forwarded(Vec<u8>),
}

/// Why a request had no effect on the other side, unless said otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Failure {
    /// Ask that one, if it is known.
    NotLeader { leader: Option<(NodeId, String)> },
    /// The leader has lost contact to the majority.
    QuorumLost,
    /// The time was up; the request may have an effect later.
    TimedOut,
    /// The leader changed meanwhile; the request may have an effect later.
    Unknown,
    /// The node is not (yet) a member of this cluster, or the caller is not.
    NotAMember,
    /// The node is starting or ending.
    NotReady,
    /// The node's Raft has stopped; the text says why.
    Stopped(String),
    /// Said no, for the operator.
    Refused(String),
    /// A newer kind of request; upgrade the node.
    NotUnderstood,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLeader { leader: Some((node, address)) } => {
                write!(f, "it is not the leader; that is node {node} at {address}")
            }
            Self::NotLeader { leader: None } => f.write_str("there is no leader at the moment"),
            Self::QuorumLost => f.write_str("the majority of the voters cannot be reached"),
            Self::TimedOut => f.write_str("the time was up; whether the change took place is not known"),
            Self::Unknown => f.write_str("the leader changed; whether the change took place is not known"),
            Self::NotAMember => f.write_str("it is not a member of this cluster"),
            Self::NotReady => f.write_str("it is starting or ending"),
            Self::Stopped(why) => write!(f, "its consensus has stopped: {why}"),
            Self::Refused(why) => f.write_str(why),
            Self::NotUnderstood => f.write_str("it does not know this request; upgrade it"),
        }
    }
}

/// What a node is, for those who look for a group.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Probed {
    pub node: NodeId,
    pub incarnation: u64,
    pub cluster: Option<ClusterId>,
    /// It holds no log entry and no snapshot: it cannot remember a group.
    pub pristine: bool,
    /// Its seed list, sorted.
    pub seeds: Vec<String>,
    pub leader: Option<(NodeId, String)>,
    /// Whether the caller is a member, as this node knows it.
    pub member: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Adopt {
    pub cluster: ClusterId,
    /// First voters.
    pub members: Vec<(NodeId, Member)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Join {
    pub node: NodeId,
    pub address: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Append {
    pub vote: VoteRecord,
    pub previous: Option<LogIdRecord>,
    pub entries: Vec<EntryRecord>,
    pub committed: Option<LogIdRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Appended {
    Success,
    Partial(Option<LogIdRecord>),
    Conflict,
    HigherVote(VoteRecord),
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Vote {
    pub vote: VoteRecord,
    pub last: Option<LogIdRecord>,
    /// Only asks what the answer would be.
    pub pre: bool,
    /// The leader itself gave way.
    pub transfer: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Voted {
    pub vote: VoteRecord,
    pub granted: bool,
    pub last: Option<LogIdRecord>,
    /// How long, at least, this node had neither been asked by a leader nor tried to prove that it
    /// leads when it voted.
    pub silent_ms: u64,
}

/// Part of a snapshot. Chunks come in order; a chunk at offset 0 begins anew.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SnapshotChunk {
    pub vote: VoteRecord,
    pub last: Option<LogIdRecord>,
    pub membership: MembershipRecord,
    pub offset: u64,
    /// Length of the whole snapshot.
    pub total: u64,
    pub data: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TransferLeader {
    pub from: VoteRecord,
    pub to: NodeId,
    pub last: Option<LogIdRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Heartbeat {
    /// Incarnation in the replicated registry.
    pub incarnation: u64,
    pub seq: u64,
    pub applied: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum HeartbeatReply {
    /// The lease counts from when the heartbeat was sent.
    Granted { seq: u64 },
    /// This incarnation gets no lease any more: register anew.
    Expired,
    /// The node is not in the registry.
    Unregistered,
}

impl Request {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ping { .. } => "ping",
            Self::Probe => "probe",
            Self::Adopt(_) => "adopt",
            Self::Join(_) => "join",
            Self::Leave { .. } => "leave",
            Self::Append(_) => "append",
            Self::Vote(_) => "vote",
            Self::Snapshot(_) => "snapshot",
            Self::TransferLeader(_) => "transfer leader",
            Self::ReadIndex => "read index",
            Self::Propose(_) => "proposal",
            Self::Heartbeat(_) => "heartbeat",
            Self::Forward(_) => "forwarded request",
        }
    }
    /// Whether a caller without a cluster may ask it.
    pub fn is_for_strangers(&self) -> bool {
        matches!(self, Self::Ping { .. } | Self::Probe | Self::Adopt(_) | Self::Join(_))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::raft::command::CommandV1;
    use crate::raft::types::PayloadRecord;
    use crate::rpc::frame::{self, Kind};

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// CLU-07: every message survives the round trip, and its bytes do not change between builds.
    #[test]
    fn clu_07_golden_bytes_of_every_message() {
        let vote = VoteRecord { term: 2, node: 1, committed: true };
        let id = LogIdRecord { term: 2, node: 1, index: 9 };
        let member = Member { address: "a:1".into() };
        let membership =
            MembershipRecord { log_id: Some(id), voters: vec![vec![1]], members: vec![(1, member.clone())] };
        let command = Command::V1(CommandV1::DeleteConnector { name: "c".into() });
        let cluster = ClusterId([5; 16]);
        let c = "05050505050505050505050505050505";
        let requests = [
            (Request::Ping { hold_ms: 500 }, "00fbf401".to_owned()),
            (Request::Probe, "01".into()),
            (Request::Adopt(Adopt { cluster, members: vec![(1, member)] }), format!("02{c}010103613a31")),
            (Request::Join(Join { node: 3, address: "b:1".into() }), "030303623a31".into()),
            (Request::Leave { node: 3 }, "0403".into()),
            (
                Request::Append(Append {
                    vote,
                    previous: Some(id),
                    entries: vec![EntryRecord::V1(id, PayloadRecord::Blank)],
                    committed: None,
                }),
                "05020101010201090100020109 0000".replace(' ', ""),
            ),
            (Request::Vote(Vote { vote, last: None, pre: true, transfer: false }), "06020101000100".into()),
            (
                Request::Snapshot(SnapshotChunk {
                    vote,
                    last: Some(id),
                    membership,
                    offset: 0,
                    total: 2,
                    data: vec![8, 9],
                }),
                "07 020101 01020109 01020109 010101 01 01 03613a31 00 02 020809".replace(' ', ""),
            ),
            (
                Request::TransferLeader(TransferLeader { from: vote, to: 2, last: Some(id) }),
                "080201010201020109".into(),
            ),
            (Request::ReadIndex, "09".into()),
            (Request::Propose(command), "0a00080163".into()),
            (Request::Heartbeat(Heartbeat { incarnation: 4, seq: 5, applied: 6 }), "0b040506".into()),
            (Request::Forward(vec![1, 2]), "0c020102".into()),
        ];
        for (request, golden) in requests {
            let frame = frame::encode(Kind::Request, &request, 999).unwrap();
            assert_eq!(hex(&frame[frame::HEADER..]), golden, "{request:?}");
            assert_eq!(frame::decode::<Request>(Kind::Request, &frame, 999).unwrap(), request);
        }
        let probed = Probed {
            node: 1,
            incarnation: 2,
            cluster: Some(cluster),
            pristine: false,
            seeds: vec!["a:1".into()],
            leader: Some((1, "a:1".into())),
            member: true,
        };
        let responses = [
            (Response::Failed(Failure::NotLeader { leader: Some((1, "a:1".into())) }), "0000010103613a31".to_owned()),
            (Response::Failed(Failure::QuorumLost), "0001".into()),
            (Response::Failed(Failure::TimedOut), "0002".into()),
            (Response::Failed(Failure::Unknown), "0003".into()),
            (Response::Failed(Failure::NotAMember), "0004".into()),
            (Response::Failed(Failure::NotReady), "0005".into()),
            (Response::Failed(Failure::Stopped("x".into())), "00060178".into()),
            (Response::Failed(Failure::Refused("x".into())), "00070178".into()),
            (Response::Failed(Failure::NotUnderstood), "0008".into()),
            (Response::Pong { incarnation: 7 }, "0107".into()),
            (Response::Probed(probed), format!("02010201{c}000103613a31010103613a3101")),
            (Response::Adopted, "03".into()),
            (Response::Joined { cluster }, format!("04{c}")),
            (Response::Left, "05".into()),
            (Response::Appended(Appended::Success), "0600".into()),
            (Response::Appended(Appended::Partial(Some(id))), "060101020109".into()),
            (Response::Appended(Appended::Conflict), "0602".into()),
            (Response::Appended(Appended::HigherVote(vote)), "0603020101".into()),
            (Response::Voted(Voted { vote, granted: true, last: None, silent_ms: 7 }), "07020101010007".into()),
            (Response::SnapshotTaken { vote }, "08020101".into()),
            (Response::LeaderTransferred { accepted: true }, "0901".into()),
            (Response::ReadIndex { index: 9 }, "0a09".into()),
            (Response::Proposed(Reply::Done), "0b00".into()),
            (Response::Heartbeat(HeartbeatReply::Granted { seq: 5 }), "0c0005".into()),
            (Response::Heartbeat(HeartbeatReply::Expired), "0c01".into()),
            (Response::Heartbeat(HeartbeatReply::Unregistered), "0c02".into()),
            (Response::Forwarded(vec![1]), "0d0101".into()),
        ];
        for (response, golden) in responses {
            let frame = frame::encode(Kind::Response, &response, 999).unwrap();
            assert_eq!(hex(&frame[frame::HEADER..]), golden, "{response:?}");
            assert_eq!(frame::decode::<Response>(Kind::Response, &frame, 999).unwrap(), response);
        }
    }

    #[test]
    fn a_request_of_a_newer_build_is_an_error_and_not_misread() {
        let newer = [200u8];
        assert!(frame::decode_body::<Request>(Kind::Request, &newer).is_err());
    }
}
