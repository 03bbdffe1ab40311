//! The virtual transaction log: log sequence numbers, and the changes of captured tables that wait for the
//! capture job.
//!
//! A number is ten bytes: virtual log file (4), block (4), slot (2), each big-endian, compared as bytes
//! ("SQL Server transaction log architecture and management guide"). Blocks are counted in units of 8, a
//! block takes a transaction's records until it is committed, and a file has 64 k blocks; the real
//! server's sizes depend on what is written, and nothing may be told from them.

use std::sync::{Mutex, PoisonError};

use rusqlite::types::Value;

/// A log sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Lsn(pub(crate) [u8; 10]);

impl Lsn {
    fn of(file: u32, block: u32, slot: u16) -> Self {
        let mut bytes = [0; 10];
        bytes[..4].copy_from_slice(&file.to_be_bytes());
        bytes[4..8].copy_from_slice(&block.to_be_bytes());
        bytes[8..].copy_from_slice(&slot.to_be_bytes());
        Self(bytes)
    }

    /// As one number of 80 bits, moved by so much; the ends meet.
    pub(crate) fn moved(self, by: i8) -> Self {
        let mut wide = [0; 16];
        wide[6..].copy_from_slice(&self.0);
        let moved = u128::from_be_bytes(wide).wrapping_add_signed(by.into()).to_be_bytes();
        let mut bytes = [0; 10];
        bytes.copy_from_slice(&moved[6..]);
        Self(bytes)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// `00000027:00000ac0:0003`.
    pub(crate) fn text(self) -> String {
        let hex: String = self.0.iter().map(|b| format!("{b:02x}")).collect();
        format!("{}:{}:{}", &hex[..8], &hex[8..16], &hex[16..])
    }

    pub(crate) fn stored(self) -> Value {
        Value::Blob(self.0.to_vec())
    }
}

/// Hands out numbers in rising order.
#[derive(Debug)]
pub(crate) struct Log {
    /// File, block, slot of the last number.
    last: Mutex<(u32, u32, u16)>,
}

impl Default for Log {
    fn default() -> Self {
        Self { last: Mutex::new((0x25, 0x10, 0)) }
    }
}

impl Log {
    /// For the next record.
    pub(crate) fn next(&self) -> Lsn {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, block, slot) = *last;
        *last = if slot < u16::MAX { (file, block, slot + 1) } else { next_block(file, block) };
        Lsn::of(last.0, last.1, last.2)
    }

    /// For the record of a commit, which ends its block.
    pub(crate) fn commit(&self) -> Lsn {
        let lsn = self.next();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, block, _) = *last;
        let (file, block, _) = next_block(file, block);
        *last = (file, block, 0);
        lsn
    }
}

fn next_block(file: u32, block: u32) -> (u32, u32, u16) {
    if block >= 0x8_0000 { (file + 1, 0x10, 1) } else { (file, block + 8, 1) }
}

/// Kind of a change, as `__$operation` numbers them; an update here has both images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Delete = 1,
    Insert = 2,
    Update = 3,
}

impl Operation {
    pub(crate) fn from_number(n: i64) -> Option<Self> {
        match n {
            1 => Some(Self::Delete),
            2 => Some(Self::Insert),
            3 => Some(Self::Update),
            _ => None,
        }
    }
}

/// A row's values by column id, in one blob: for each its id, a kind, a length and the bytes.
pub(crate) fn pack(row: &[(i32, Value)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (id, value) in row {
        bytes.extend_from_slice(&id.to_le_bytes());
        let (kind, body): (u8, Vec<u8>) = match value {
            Value::Null => (0, Vec::new()),
            Value::Integer(n) => (1, n.to_le_bytes().to_vec()),
            Value::Real(f) => (2, f.to_le_bytes().to_vec()),
            Value::Text(text) => (3, text.clone().into_bytes()),
            Value::Blob(blob) => (4, blob.clone()),
        };
        bytes.push(kind);
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&body);
    }
    bytes
}

/// The opposite of [`pack`]; what is cut off is left out.
pub(crate) fn unpack(mut bytes: &[u8]) -> Vec<(i32, Value)> {
    let mut row = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<9>() {
        let id = i32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let length = u32::from_le_bytes([head[5], head[6], head[7], head[8]]) as usize;
        let Some((body, rest)) = rest.split_at_checked(length) else { break };
        bytes = rest;
        let eight = || body.try_into().unwrap_or([0; 8]);
        let value = match head[4] {
            1 => Value::Integer(i64::from_le_bytes(eight())),
            2 => Value::Real(f64::from_le_bytes(eight())),
            3 => Value::Text(String::from_utf8_lossy(body).into_owned()),
            4 => Value::Blob(body.to_vec()),
            _ => Value::Null,
        };
        row.push((id, value));
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise() {
        let log = Log::default();
        let numbers = [log.next(), log.next(), log.commit(), log.next(), log.commit()];
        assert!(numbers.is_sorted(), "{numbers:?}");
        assert_eq!(Lsn::of(0x27, 0xac0, 3).text(), "00000027:00000ac0:0003");
    }

    #[test]
    fn increment_and_decrement_are_opposite() {
        let lsn = Lsn::of(1, u32::MAX, u16::MAX);
        assert_eq!(lsn.moved(1), Lsn::of(2, 0, 0));
        assert_eq!(lsn.moved(1).moved(-1), lsn);
    }

    #[test]
    fn packed_rows_come_back() {
        let row = vec![
            (1, Value::Null),
            (2, Value::Integer(-5)),
            (3, Value::Real(0.5)),
            (7, Value::Text("é".into())),
            (300, Value::Blob(vec![0, 1])),
        ];
        assert_eq!(unpack(&pack(&row)), row);
    }
}
