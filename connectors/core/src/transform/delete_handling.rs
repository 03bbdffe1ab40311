//! What becomes of deletes and of the tombstones behind them when a change event is reduced to its row
//! (`delete.tombstone.handling.mode`), also as older configurations say it.

use thalweg_config::{Importance, OptionDef, OptionKind, Settings};

use super::options::option;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteHandling {
    /// Neither of the two passes.
    Drop,
    /// The delete passes without a value, with the schema of the row if there is one.
    Tombstone,
    /// The delete passes as the row that was, marked as deleted.
    Rewrite,
    /// So does the tombstone.
    RewriteWithTombstone,
    /// The delete becomes the tombstone.
    DeleteToTombstone,
}

const MODE: &str = "delete.tombstone.handling.mode";
const DROP: &str = "drop.tombstones";
const OLD_MODE: &str = "delete.handling.mode";

pub const DELETE_MODE: OptionDef = option(
    MODE,
    OptionKind::String,
    Importance::Medium,
    "What becomes of a delete and of the tombstone behind it. drop: nothing. tombstone: a message without value, once. rewrite: the row as it was before, with __deleted; no tombstone. rewrite-with-tombstone: that, and the tombstone. delete-to-tombstone: a tombstone without schema, once.",
)
.default("tombstone")
.one_of(&["drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone"]);

pub const OLD_DROP_TOMBSTONES: OptionDef =
    option(DROP, OptionKind::Boolean, Importance::Low, "Whether tombstones are dropped.").older(MODE);

pub const OLD_DELETE_MODE: OptionDef = option(
    OLD_MODE,
    OptionKind::String,
    Importance::Low,
    "What becomes of a delete: dropped (drop, also if only drop.tombstones is set), the row with __deleted (rewrite), or a message without value (none).",
)
.one_of(&["drop", "rewrite", "none"])
.older(MODE);

impl DeleteHandling {
    /// From the three options above. The new one counts if it is given.
    pub fn from_settings(settings: &Settings) -> Self {
        let old = settings.is_given(DROP) || settings.is_given(OLD_MODE);
        if old && !settings.is_given(MODE) {
            let keeps_tombstones = settings.is_set(DROP) && !settings.bool(DROP);
            return match (settings.text_or_empty(OLD_MODE), keeps_tombstones) {
                ("rewrite", false) => Self::Rewrite,
                ("rewrite", true) => Self::RewriteWithTombstone,
                ("none", _) => Self::Tombstone,
                (_, true) => Self::DeleteToTombstone,
                (_, false) => Self::Drop,
            };
        }
        match settings.text_or_empty(MODE) {
            "drop" => Self::Drop,
            "rewrite" => Self::Rewrite,
            "rewrite-with-tombstone" => Self::RewriteWithTombstone,
            "delete-to-tombstone" => Self::DeleteToTombstone,
            _ => Self::Tombstone,
        }
    }

    pub fn rewrites(self) -> bool {
        matches!(self, Self::Rewrite | Self::RewriteWithTombstone)
    }

    /// Whether the tombstone behind a delete passes.
    pub fn keeps_tombstones(self) -> bool {
        self == Self::RewriteWithTombstone
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use thalweg_config::{OptionTable, Properties};

    use super::*;
    use crate::transform::options::table;

    static TABLE: OptionTable = table("t", &[DELETE_MODE, OLD_DROP_TOMBSTONES, OLD_DELETE_MODE], &[]);

    fn mode(pairs: &[(&str, &str)]) -> (DeleteHandling, usize) {
        let config: Properties = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let validation = TABLE.validate(&config);
        assert!(validation.is_valid(), "{:?}", validation.messages());
        (DeleteHandling::from_settings(&validation.settings), validation.warnings.len())
    }

    #[test]
    fn today_and_once() {
        use DeleteHandling as D;
        assert_eq!(mode(&[]), (D::Tombstone, 0));
        assert_eq!(mode(&[(MODE, "Rewrite-With-Tombstone")]), (D::RewriteWithTombstone, 0));
        assert_eq!(mode(&[(DROP, "true")]), (D::Drop, 1));
        assert_eq!(mode(&[(DROP, "false")]), (D::DeleteToTombstone, 1));
        assert_eq!(mode(&[(OLD_MODE, "rewrite")]), (D::Rewrite, 1));
        assert_eq!(mode(&[(OLD_MODE, "rewrite"), (DROP, "false")]), (D::RewriteWithTombstone, 2));
        assert_eq!(mode(&[(OLD_MODE, "none")]), (D::Tombstone, 1));
        assert_eq!(mode(&[(OLD_MODE, "rewrite"), (MODE, "tombstone")]), (D::Tombstone, 1));
    }
}
