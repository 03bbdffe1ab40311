//! Where in a snapshot each of its rows stands: the value of `source.snapshot`.
//!
//! Which row is the last one shows only when no other comes, so one row is held back: of a table until its next
//! row or that of the next table, at the end of the snapshot until there is no more. A snapshot's very last row
//! counts as such wherever it stands, then its first one, then the last and the first of a table.

use crate::envelope::SnapshotMarker;

/// Rows with what belongs to them, in the order in which they are read.
#[derive(Debug)]
pub struct Marks<R> {
    held: Option<Held<R>>,
    /// No row came yet.
    is_first: bool,
    /// No row of this table came yet.
    is_first_of_table: bool,
}

#[derive(Debug)]
struct Held<R> {
    row: R,
    first: bool,
    first_of_table: bool,
    last_of_table: bool,
}

impl<R> Held<R> {
    fn marked(self, is_last: bool) -> (R, SnapshotMarker) {
        (self.row, SnapshotMarker::at(self.first, self.first_of_table, self.last_of_table, is_last))
    }
}

impl<R> Default for Marks<R> {
    fn default() -> Self {
        Self { held: None, is_first: true, is_first_of_table: true }
    }
}

impl<R> Marks<R> {
    /// The next row; the one before it is told now.
    pub fn row(&mut self, row: R) -> Option<(R, SnapshotMarker)> {
        let first = std::mem::replace(&mut self.is_first, false);
        let first_of_table = std::mem::replace(&mut self.is_first_of_table, false);
        let before = self.held.replace(Held { row, first, first_of_table, last_of_table: false });
        before.map(|held| held.marked(false))
    }

    /// The table has no more rows.
    pub fn table_ended(&mut self) {
        if !self.is_first_of_table
            && let Some(held) = &mut self.held
        {
            held.last_of_table = true;
        }
        self.is_first_of_table = true;
    }

    /// The snapshot has no more rows: its last one.
    pub fn ended(&mut self) -> Option<(R, SnapshotMarker)> {
        self.held.take().map(|held| held.marked(true))
    }
}

#[cfg(test)]
mod tests {
    use super::SnapshotMarker::{First, FirstInDataCollection, Last, LastInDataCollection, True};
    use super::*;

    /// The markers of tables with so many rows.
    fn marked(tables: &[usize]) -> Vec<SnapshotMarker> {
        let mut marks = Marks::default();
        let mut out = Vec::new();
        for rows in tables {
            for row in 0..*rows {
                out.extend(marks.row(row));
            }
            marks.table_ended();
        }
        out.extend(marks.ended());
        out.into_iter().map(|(_, marker)| marker).collect()
    }

    #[test]
    fn each_row_has_its_place() {
        assert_eq!(marked(&[3]), [First, True, Last]);
        assert_eq!(
            marked(&[2, 3, 2]),
            [
                First,
                LastInDataCollection,
                FirstInDataCollection,
                True,
                LastInDataCollection,
                FirstInDataCollection,
                Last
            ]
        );
        assert_eq!(marked(&[1, 1, 1]), [First, LastInDataCollection, Last]);
        assert_eq!(marked(&[1]), [Last]);
    }

    #[test]
    fn empty_tables_have_no_place() {
        assert_eq!(marked(&[0, 2, 0, 0]), [First, Last]);
        assert_eq!(marked(&[2, 0, 1, 0]), [First, LastInDataCollection, Last]);
        assert!(marked(&[0, 0]).is_empty());
    }
}
