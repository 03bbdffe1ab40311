//! What tells a row of a load from the others.
//!
//! All rows of a load stand at one position, so that the pair of a change would be the same for all;
//! their `seq` follows from table and key instead. It does not depend on the order of reading.

use sha2::{Digest, Sha256};

/// 32 hexadecimal digits; the chance that two of a billion rows have the same is below 10^-20.
pub(super) fn of_loaded_row(table: &str, key: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(table.as_bytes());
    hash.update([0]);
    hash.update(key);
    crate::position::hex(&hash.finalize()[..16])
}
