//! What can be wrong with the store, and what to do about it.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use crate::raft::unit::NodeId;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error(
        "{} is in use by another process; stop that one, or give this node a data directory of its own",
        path.display()
    )]
    Locked { path: PathBuf },
    #[error(
        "{} is not a Thalweg store; move it away, or correct the data directory in the configuration",
        path.display()
    )]
    NotAStore { path: PathBuf },
    #[error(
        "{} is damaged ({what}: {why}); move it away and start again: the node joins its cluster as a new one and \
         gets everything from the others. If it is the only node, restore the file from a backup",
        path.display()
    )]
    Corrupt { path: PathBuf, what: String, why: String },
    #[error(
        "{} has format {found}, this build knows up to {known}; start a newer version, at least the one that wrote it",
        path.display()
    )]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error(
        "node {node} of {} has left its cluster for good; delete the file to let this machine join as a new node",
        path.display()
    )]
    Left { path: PathBuf, node: NodeId },
    #[error("no space left for {}; free some on that file system and start the node again", path.display())]
    Full { path: PathBuf },
    #[error(
        "cannot use {}: {why}; check the directory, its rights and the disk, then start the node again",
        path.display()
    )]
    Io { path: PathBuf, why: String },
    #[error("cannot write to {}: {why}", path.display())]
    Unwritable { path: PathBuf, why: String },
    #[error("{} has been closed", path.display())]
    Closed { path: PathBuf },
}

impl StoreError {
    pub(super) fn corrupt(path: &Path, what: &str, why: &dyn Display) -> Self {
        Self::Corrupt { path: path.to_owned(), what: what.to_owned(), why: why.to_string() }
    }

    pub(super) fn io(path: &Path, error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Self::Full { path: path.to_owned() },
            _ => Self::Io { path: path.to_owned(), why: error.to_string() },
        }
    }

    pub(super) fn database(path: &Path, error: redb::DatabaseError) -> Self {
        match error {
            redb::DatabaseError::DatabaseAlreadyOpen | redb::DatabaseError::LockProtocolMismatch => {
                Self::Locked { path: path.to_owned() }
            }
            redb::DatabaseError::Storage(redb::StorageError::Io(e)) if e.kind() == std::io::ErrorKind::InvalidData => {
                Self::NotAStore { path: path.to_owned() }
            }
            other => Self::storage(path, other),
        }
    }

    pub(super) fn storage(path: &Path, error: impl Into<redb::Error>) -> Self {
        match error.into() {
            redb::Error::Io(e) => Self::io(path, &e),
            redb::Error::DatabaseAlreadyOpen => Self::Locked { path: path.to_owned() },
            redb::Error::Corrupted(why) => Self::corrupt(path, "file", &why),
            redb::Error::UpgradeRequired(found) => {
                Self::corrupt(path, "file", &format_args!("database format {found}"))
            }
            other => Self::Io { path: path.to_owned(), why: other.to_string() },
        }
    }
}

impl From<StoreError> for std::io::Error {
    fn from(error: StoreError) -> Self {
        let kind = match error {
            StoreError::Full { .. } => std::io::ErrorKind::StorageFull,
            StoreError::Corrupt { .. } => std::io::ErrorKind::InvalidData,
            _ => std::io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}
