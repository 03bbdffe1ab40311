//! The changes of many tables as one sequence, in the order of the log.
//!
//! A heap holds the next row of each table: by commit, then by place in it, then by table. Within a table the
//! order of its rows is kept as the server has it, also where places inside of a transaction do not rise.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::change::{Change, ChangeRow, Code, Rows};
use crate::errors::Fault;
use crate::link::SqlLink;
use crate::pages::Pages;
use crate::position::Place;

/// The next row of a table, by its order.
type Entry = Reverse<(Place, i32, usize)>;

/// Merges the rows of a window.
pub(crate) struct Merge {
    tables: Vec<Pages>,
    /// The row in the heap, of each table.
    heads: Vec<Option<ChangeRow>>,
    heap: BinaryHeap<Entry>,
    /// Tables whose first or next row is not fetched yet.
    due: Vec<usize>,
}

impl Merge {
    pub(crate) fn new(tables: Vec<Pages>) -> Self {
        let due = (0..tables.len()).rev().collect();
        Self { heads: tables.iter().map(|_| None).collect(), tables, heap: BinaryHeap::new(), due }
    }

    /// The next change, with a serial of zero. Dropping the future loses nothing.
    ///
    /// # Errors
    /// Those of the link, and an update that is not whole.
    pub(crate) async fn next(&mut self, link: &mut SqlLink) -> Result<Option<Change>, Fault> {
        while let Some(at) = self.due.last().copied() {
            let row = self.tables[at].next(link).await?;
            self.due.pop();
            if let Some(row) = row {
                self.heap.push(Reverse((row.place(), self.tables[at].instance.object, at)));
                self.heads[at] = Some(row);
            }
        }
        let Some(Reverse((_, _, at))) = self.heap.peek().copied() else { return Ok(None) };
        // The other half of an update may be on the next page.
        let after = match &self.heads[at] {
            Some(row) if row.code == Code::Before => Some(self.tables[at].next(link).await?),
            _ => None,
        };
        self.heap.pop();
        self.due.push(at);
        let Some(row) = self.heads[at].take() else { return Ok(None) };
        let instance = self.tables[at].instance.clone();
        let (place, time, bytes) = (row.place(), row.time, row.bytes);
        let broken = |what: &str| {
            Fault::Damaged(format!("{what} at {}:{} for table {}", row.commit, row.change, instance.table))
        };
        let (rows, bytes) = match (row.code, after) {
            (Code::Delete, _) => (Rows::Delete(row.cells), bytes),
            (Code::Insert, _) => (Rows::Insert(row.cells), bytes),
            (Code::Before, Some(Some(after))) if after.code == Code::After => {
                let bytes = bytes + after.bytes;
                (Rows::Update { before: row.cells, after: after.cells }, bytes)
            }
            (Code::Before, _) => return Err(broken("an update before event was not followed by after event")),
            (Code::After, _) => return Err(broken("an update after event came without before event")),
        };
        Ok(Some(Change { instance, place, serial: 0, time, rows, bytes }))
    }
}
