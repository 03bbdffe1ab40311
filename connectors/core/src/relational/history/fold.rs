//! Fewer records that say the same: one for each table instead of all its changes.
//!
//! Only the first records are folded, as long as all of them count at the present stop; from the first one that
//! does not, everything stays as it is. So a task that goes on at this stop or at a later one recovers the same
//! structures before and after. A table keeps the position of its last change, so that a stop a little before the
//! present one finds at least the tables that have not changed since.
//!
//! It does not: write into a store.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::record::HistoryRecord;
use crate::relational::table::Tables;
use crate::relational::table_id::TableId;
use crate::relational::table_json::{ChangeKind, TableChange};

/// A history with more records, or more bytes of them, is long.
const MANY: usize = 1_000;
const LARGE: usize = 4 << 20;

/// What is put in the place of so many records.
#[derive(Debug)]
pub(super) struct Folded {
    pub(super) count: usize,
    pub(super) texts: Vec<Bytes>,
}

/// Gathers, record by record, what folding needs to know.
#[derive(Debug)]
pub(super) struct Fold {
    /// All records so far count.
    is_open: bool,
    count: usize,
    bytes: usize,
    /// The record of the last change of each table, without its changes.
    changed: BTreeMap<TableId, HistoryRecord>,
    /// The last record that changed something.
    last: Option<HistoryRecord>,
    folded: Option<Folded>,
}

impl Fold {
    /// `is_wanted`: whether the store can be folded at all.
    pub(super) fn new(is_wanted: bool) -> Self {
        Self { is_open: is_wanted, count: 0, bytes: 0, changed: BTreeMap::new(), last: None, folded: None }
    }

    /// A record that counts, of so many bytes. It may have been applied already.
    pub(super) fn counts(&mut self, record: &HistoryRecord, bytes: usize) {
        if !self.is_open {
            return;
        }
        self.count += 1;
        self.bytes += bytes;
        let Some(changes) = record.changes.as_ref().filter(|changes| !changes.is_empty()) else { return };
        for change in changes {
            if let Some(previous) = &change.previous_id {
                self.changed.remove(previous);
            }
            match change.kind {
                ChangeKind::Create | ChangeKind::Alter => {
                    let head = HistoryRecord { ddl: None, changes: None, ..record.clone() };
                    self.changed.insert(change.table.id.clone(), head);
                }
                ChangeKind::Drop => {
                    self.changed.remove(&change.table.id);
                }
            }
        }
        self.last = Some(record.clone());
    }

    /// The next record does not count, or there is none: `tables` are those after all before it.
    pub(super) fn ends(&mut self, tables: &Tables) {
        if !std::mem::replace(&mut self.is_open, false) || (self.count <= MANY && self.bytes <= LARGE) {
            return;
        }
        let mut texts: Vec<Bytes> = tables
            .iter()
            .filter_map(|table| {
                let head = self.changed.get(&table.id)?;
                let change = TableChange::new(ChangeKind::Create, table.as_ref().clone());
                Some(HistoryRecord { changes: Some(vec![change]), ..head.clone() }.to_text().into())
            })
            .collect();
        // Without any table, one record says that there was something.
        if texts.is_empty() {
            texts.extend(self.last.take().map(|last| Bytes::from(last.to_text())));
        }
        let bytes: usize = texts.iter().map(Bytes::len).sum();
        // Many tables that do not change are not written anew at each start.
        if texts.len() * 2 <= self.count || bytes * 2 <= self.bytes {
            self.folded = Some(Folded { count: self.count, texts });
        }
        self.changed.clear();
    }

    pub(super) fn into_folded(self) -> Option<Folded> {
        self.folded
    }
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
