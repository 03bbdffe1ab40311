//! Rows of change tables, and the changes that they are.
//!
//! An update is two rows, the one before (3) and the one after (4); every other change is one. Which columns an
//! update touched is said by a mask: column n is bit (n-1) mod 8 of byte (n-1)/8, counted from the last byte
//! ("cdc.<capture_instance>_CT", "sys.fn_cdc_is_bit_set"). Large values that an update did not touch are null in
//! both of its rows, which is not to be taken for null.

use std::sync::Arc;

use thalweg_core::envelope::SourceTime;
use thalweg_core::relational::cell::Cell;
use tiberius::{ColumnData, Row};

use crate::errors::Fault;
use crate::instance::CaptureInstance;
use crate::lsn::Lsn;
use crate::position::Place;
use crate::statement::LEADING;
use crate::types;

/// A row's `__$operation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    Delete = 1,
    Insert = 2,
    Before = 3,
    After = 4,
}

/// One row of a change table.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeRow {
    pub commit: Lsn,
    pub change: Lsn,
    /// The number of the statement in its transaction.
    pub command: Option<i32>,
    pub code: Code,
    /// When the transaction began, or ended; `None`: the server no longer knows.
    pub time: Option<SourceTime>,
    /// In the order of the instance's columns.
    pub cells: Vec<Cell>,
    /// Approximate bytes in memory.
    pub bytes: usize,
}

impl ChangeRow {
    pub const fn place(&self) -> Place {
        Place::new(self.commit, self.change)
    }
}

/// What a change did.
#[derive(Debug, Clone, PartialEq)]
pub enum Rows {
    Insert(Vec<Cell>),
    Delete(Vec<Cell>),
    Update { before: Vec<Cell>, after: Vec<Cell> },
}

impl Rows {
    /// Rows of the change table that it is made of.
    pub fn count(&self) -> i64 {
        match self {
            Self::Insert(_) | Self::Delete(_) => 1,
            Self::Update { .. } => 2,
        }
    }
}

/// A change of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub instance: Arc<CaptureInstance>,
    pub place: Place,
    /// Rows at the place up to this change: what a position behind it says.
    pub serial: i64,
    pub time: Option<SourceTime>,
    pub rows: Rows,
    pub bytes: usize,
}

/// Whether a column was touched; a mask that does not say so counts as if it was.
fn is_touched(mask: Option<&[u8]>, ordinal: usize) -> bool {
    let byte = |mask: &[u8]| {
        let bit = ordinal.checked_sub(1)?;
        let at = mask.len().checked_sub(1)?.checked_sub(bit / 8)?;
        Some(mask.get(at)? & 1 << (bit % 8) != 0)
    };
    mask.and_then(byte).unwrap_or(true)
}

/// Approximate bytes in memory.
pub(crate) fn size(cell: &Cell) -> usize {
    size_of::<Cell>()
        + match cell {
            Cell::Text(text) => text.as_str().len(),
            Cell::Bytes(bytes) => bytes.len(),
            _ => 0,
        }
}

/// Reads a row of the instance's change query.
///
/// # Errors
/// `Err(Fault)`: the row is not of the query. `Ok(None)`: it has no place, and nobody could resume behind it.
pub fn row(instance: &CaptureInstance, has_command: bool, row: Row) -> Result<Option<ChangeRow>, Fault> {
    let about = |what: &str| Fault::Answer(format!("change table of {}: {what}", instance.table));
    let width = LEADING + instance.columns.len() + 1 + usize::from(has_command);
    if row.len() != width {
        return Err(about(&format!("{} columns came where {width} are expected", row.len())));
    }
    let mut values = row.into_iter();
    let mut next = || values.next().ok_or_else(|| about("a row ends early"));
    let number = |data: ColumnData<'static>| match data {
        ColumnData::Binary(Some(bytes)) => Lsn::from_slice(&bytes),
        _ => None,
    };
    let (commit, change) = (number(next()?), number(next()?));
    let code = match next()? {
        ColumnData::I32(Some(1)) => Code::Delete,
        ColumnData::I32(Some(2)) => Code::Insert,
        ColumnData::I32(Some(3)) => Code::Before,
        ColumnData::I32(Some(4)) => Code::After,
        other => return Err(about(&format!("Received event of unexpected command type: {other:?}"))),
    };
    let ColumnData::Binary(mask) = next()? else { return Err(about("the update mask is not binary")) };
    let is_update = matches!(code, Code::Before | Code::After);
    let mut cells = Vec::with_capacity(instance.columns.len());
    let mut bytes = size_of::<ChangeRow>();
    for captured in &instance.columns {
        let named = |what: String| about(&format!("column '{}': {what}", captured.column.name));
        let mut cell = types::cell(next()?).map_err(named)?;
        let untouched = || !is_touched(mask.as_deref(), captured.ordinal);
        if is_update && cell == Cell::Null && captured.column.is_large() && untouched() {
            cell = Cell::Unavailable;
        }
        bytes += size(&cell);
        cells.push(cell);
    }
    let time = types::instant(&types::cell(next()?).map_err(|what| about(&what))?);
    let command = match has_command.then(&mut next).transpose()? {
        Some(ColumnData::I32(command)) => command,
        _ => None,
    };
    let (Some(commit), Some(change)) = (commit, change) else { return Ok(None) };
    Ok(Some(ChangeRow { commit, change, command, code, time, cells, bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_35_masks_are_read_from_their_last_byte() {
        for (mask, touched) in [
            (&[0x05][..], &[1, 3][..]),
            (&[0x01, 0x80], &[8, 9]),
            (&[0x01, 0x00, 0x02], &[2, 17]),
            (&[0x00, 0x00, 0x00], &[]),
        ] {
            let found: Vec<usize> = (1..=8 * mask.len()).filter(|column| is_touched(Some(mask), *column)).collect();
            assert_eq!(found, touched, "{mask:?}");
        }
    }

    #[test]
    fn what_a_mask_does_not_say_counts_as_touched() {
        assert!(
            is_touched(None, 1) && is_touched(Some(&[]), 1) && is_touched(Some(&[0]), 9) && is_touched(Some(&[0]), 0)
        );
    }
}
