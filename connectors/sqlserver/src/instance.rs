//! Capture instances: which change table has the changes of which table, from where to where.

use std::sync::Arc;

use thalweg_core::relational::table_id::TableId;

use crate::lsn::Lsn;
use crate::types::Described;

/// A column as it was captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// Its number in update masks, from one.
    pub ordinal: usize,
    pub column: Described,
}

/// A capture instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureInstance {
    /// The table that is captured.
    pub table: TableId,
    pub source_object: i32,
    pub name: Arc<str>,
    /// The change table.
    pub object: i32,
    /// The first commit of which it has changes.
    pub start: Lsn,
    /// From this commit on another instance has the changes of the table.
    pub stop: Option<Lsn>,
    /// In the order of their ordinals.
    pub columns: Vec<Captured>,
    /// Changes say which statement of their transaction they are of.
    pub has_commands: bool,
}

/// Puts the instances of each table in order: the older one stops where the newer one begins. A table has two
/// at most.
pub fn in_turn(mut instances: Vec<CaptureInstance>) -> Vec<CaptureInstance> {
    instances.sort_by_key(|instance| (instance.source_object, instance.start));
    for at in 1..instances.len() {
        if instances[at].source_object == instances[at - 1].source_object {
            let (older, newer) = (instances[at - 1].name.clone(), instances[at].name.clone());
            tracing::info!(table = %instances[at].table, %older, %newer, "Multiple capture instances present for the same table");
            instances[at - 1].stop = Some(instances[at].start);
        }
    }
    instances
}
