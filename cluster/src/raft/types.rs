//! The types that openraft is parameterised with, and their stored and sent forms.
//!
//! openraft's own encodings are not stable between its versions, so nothing of it is written
//! anywhere: every value has a record here, with golden bytes in the tests.
//!
//! Invariants: records are appended to, never changed; a round trip gives back the same value.
//!
//! It does not: say how records are framed (`rpc::frame`) or kept ([`super::store`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bincode::{Decode, Encode};
use openraft::entry::RaftEntry;
use openraft::vote::RaftLeaderId;
use serde::{Deserialize, Serialize};

use super::command::{Command, Reply};
use super::unit::NodeId;

/// What the group knows of a member besides its id.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, Serialize, Deserialize)]
pub struct Member {
    /// `host:port` for other nodes.
    pub address: String,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address)
    }
}

openraft::declare_raft_types!(
    /// Terms may have several candidates that become leader one after the other (a higher node id
    /// wins), so two candidates of one moment do not block each other.
    // The name under which the crate itself offers its runtime is marked as moving elsewhere.
    #[allow(deprecated)]
    pub TypeConfig:
        D = Command,
        R = Reply,
        NodeId = NodeId,
        Node = Member,
);

pub type LeaderId = openraft::impls::leader_id_adv::LeaderId<u64, NodeId>;
pub type Vote = openraft::impls::Vote<LeaderId>;
pub type LogId = openraft::LogId<LeaderId>;
pub type Membership = openraft::Membership<NodeId, Member>;
pub type StoredMembership = openraft::StoredMembership<LeaderId, NodeId, Member>;
pub type Payload = openraft::EntryPayload<Command, NodeId, Member>;
pub type Entry = openraft::Entry<LeaderId, Payload>;
pub type SnapshotMeta = openraft::SnapshotMeta<LeaderId, NodeId, Member>;
pub type StorageError = openraft::StorageError<TypeConfig>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct VoteRecord {
    pub term: u64,
    pub node: NodeId,
    pub committed: bool,
}

impl From<&Vote> for VoteRecord {
    fn from(vote: &Vote) -> Self {
        Self { term: vote.leader_id.term, node: vote.leader_id.node_id, committed: vote.committed }
    }
}

impl From<VoteRecord> for Vote {
    fn from(record: VoteRecord) -> Self {
        Self { leader_id: LeaderId::new(record.term, record.node), committed: record.committed }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct LogIdRecord {
    pub term: u64,
    pub node: NodeId,
    pub index: u64,
}

impl From<&LogId> for LogIdRecord {
    fn from(id: &LogId) -> Self {
        Self { term: id.leader_id.term, node: id.leader_id.node_id, index: id.index }
    }
}

impl From<LogIdRecord> for LogId {
    fn from(record: LogIdRecord) -> Self {
        Self::new(LeaderId::new(record.term, record.node), record.index)
    }
}

/// Voter sets (two while they change) and all members, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct MembershipRecord {
    /// Where it is in the log; `None` before the first.
    pub log_id: Option<LogIdRecord>,
    pub voters: Vec<Vec<NodeId>>,
    pub members: Vec<(NodeId, Member)>,
}

impl MembershipRecord {
    fn new(log_id: Option<LogIdRecord>, membership: &Membership) -> Self {
        Self {
            log_id,
            voters: membership.get_joint_config().iter().map(|set| set.iter().copied().collect()).collect(),
            members: membership.nodes().map(|(id, member)| (*id, member.clone())).collect(),
        }
    }

    /// `Err` if a voter is not a member.
    pub fn membership(self) -> Result<Membership, String> {
        if self.voters.is_empty() && self.members.is_empty() {
            return Ok(Membership::default());
        }
        let voters: Vec<BTreeSet<NodeId>> = self.voters.into_iter().map(|set| set.into_iter().collect()).collect();
        let members: BTreeMap<NodeId, Member> = self.members.into_iter().collect();
        Membership::new(voters, members).map_err(|e| format!("unusable membership: {e}"))
    }

    pub fn stored(self) -> Result<StoredMembership, String> {
        let log_id = self.log_id.map(LogId::from);
        Ok(StoredMembership::new(log_id, self.membership()?))
    }
}

impl From<&StoredMembership> for MembershipRecord {
    fn from(stored: &StoredMembership) -> Self {
        Self::new(stored.log_id().as_ref().map(LogIdRecord::from), stored.membership())
    }
}

/// A log entry as it is stored and sent.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum EntryRecord {
    V1(LogIdRecord, PayloadRecord),
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum PayloadRecord {
    Blank,
    Command(Command),
    Membership(MembershipRecord),
}

/// Encodes as [`EntryRecord`] without owning the command.
#[derive(Encode)]
pub enum EntryRef<'a> {
    V1(LogIdRecord, PayloadRef<'a>),
}

#[derive(Encode)]
pub enum PayloadRef<'a> {
    Blank,
    Command(&'a Command),
    Membership(MembershipRecord),
}

impl<'a> From<&'a Entry> for EntryRef<'a> {
    fn from(entry: &'a Entry) -> Self {
        let payload = match &entry.payload {
            Payload::Blank => PayloadRef::Blank,
            Payload::Normal(command) => PayloadRef::Command(command),
            Payload::Membership(membership) => PayloadRef::Membership(MembershipRecord::new(None, membership)),
        };
        Self::V1((&entry.log_id).into(), payload)
    }
}

impl From<Entry> for EntryRecord {
    fn from(entry: Entry) -> Self {
        let payload = match entry.payload {
            Payload::Blank => PayloadRecord::Blank,
            Payload::Normal(command) => PayloadRecord::Command(command),
            Payload::Membership(membership) => PayloadRecord::Membership(MembershipRecord::new(None, &membership)),
        };
        Self::V1((&entry.log_id).into(), payload)
    }
}

impl TryFrom<EntryRecord> for Entry {
    type Error = String;

    fn try_from(record: EntryRecord) -> Result<Self, String> {
        let EntryRecord::V1(log_id, payload) = record;
        let payload = match payload {
            PayloadRecord::Blank => Payload::Blank,
            PayloadRecord::Command(command) => Payload::Normal(command),
            PayloadRecord::Membership(membership) => Payload::Membership(membership.membership()?),
        };
        Ok(RaftEntry::new(log_id.into(), payload))
    }
}
