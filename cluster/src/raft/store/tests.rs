//! The store against openraft's conformance suite, crashes at every write, and damaged files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod crash;
mod disk;
mod file;
mod suite;

use openraft::entry::RaftEntry;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt};
use openraft::vote::RaftLeaderId;

use super::*;
use crate::raft::command::{Command, CommandV1};
use crate::raft::types::{Entry, LeaderId, Payload};

pub(super) fn log_id(term: u64, index: u64) -> LogId {
    LogId::new(LeaderId::new(term, 1), index)
}

pub(super) fn entry(term: u64, index: u64) -> Entry {
    let command = Command::V1(CommandV1::DeleteConnector { name: format!("connector-{index}").into() });
    Entry::new(log_id(term, index), Payload::Normal(command))
}

pub(super) async fn append(store: &mut Store, term: u64, indexes: std::ops::Range<u64>) -> Result<(), String> {
    store.blocking_append(indexes.map(|i| entry(term, i))).await.map_err(|e| e.to_string())
}
