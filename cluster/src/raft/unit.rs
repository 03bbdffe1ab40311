//! Names of what is placed on nodes, as the replicated log spells them.
//!
//! [`Unit`] is the encodable twin of the actors' [`UnitId`]; the order of units (connector object
//! first, then its tasks by number) is the order in which everything iterates.

use std::fmt;
use std::sync::Arc;

use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};
use thalweg_actors::port::UnitId;

/// A node's identity: stable, kept in its data directory.
pub type NodeId = u64;

/// Name of a connector.
pub type Name = Arc<str>;

/// A connector object (`task` is `None`) or one of its tasks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Serialize, Deserialize)]
pub struct Unit {
    pub connector: Name,
    pub task: Option<u32>,
}

impl Unit {
    pub fn connector(name: impl Into<Name>) -> Self {
        Self { connector: name.into(), task: None }
    }
    pub fn task(name: impl Into<Name>, task: u32) -> Self {
        Self { connector: name.into(), task: Some(task) }
    }
    pub fn is_task(&self) -> bool {
        self.task.is_some()
    }
    pub fn id(&self) -> UnitId {
        match self.task {
            None => UnitId::Connector(self.connector.clone()),
            Some(task) => UnitId::Task(self.connector.clone(), task),
        }
    }
}

impl From<&UnitId> for Unit {
    fn from(id: &UnitId) -> Self {
        match id {
            UnitId::Connector(name) => Self::connector(name.clone()),
            UnitId::Task(name, task) => Self::task(name.clone(), *task),
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.task {
            None => write!(f, "connector {}", self.connector),
            Some(task) => write!(f, "task {}-{task}", self.connector),
        }
    }
}
