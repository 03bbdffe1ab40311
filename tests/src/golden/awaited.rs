//! Recordings that cannot be reproduced yet because a feature is missing. A recording that is reproduced
//! although it is listed here is a fault: the list has to be shortened.

/// Name of the recording, and what it needs.
pub const AWAITED: &[(&str, &str)] = &[
    ("blocking-snapshot", SIGNALS),
    ("incremental-snapshot-insert-delete", SIGNALS),
    ("incremental-snapshot-one-chunk", SIGNALS),
    ("incremental-snapshot-signal-collection", SIGNALS),
    ("signals-ignored", SIGNALS),
    ("notifications-initial-snapshot", NOTIFICATIONS),
    ("validate-bad", NOTIFICATIONS),
    ("transaction-metadata", "transaction metadata"),
    ("smt-by-logical-table-router-envelope", TRANSFORMS),
    ("smt-errors-tolerated", TRANSFORMS),
    ("smt-extract-default", TRANSFORMS),
    ("smt-extract-drop", TRANSFORMS),
    ("smt-extract-flatten", TRANSFORMS),
    ("smt-extract-mixed-array", TRANSFORMS),
    ("smt-outbox", TRANSFORMS),
    ("smt-stock-fields", TRANSFORMS),
    ("smt-stock-structs", TRANSFORMS),
    ("smt-timestamps", TRANSFORMS),
];

const SIGNALS: &str = "signals";
const NOTIFICATIONS: &str = "notifications";
const TRANSFORMS: &str = "Debezium's transforms";

/// What a recording waits for.
pub fn awaits(recording: &str) -> Option<&'static str> {
    AWAITED.iter().find(|(name, _)| *name == recording).map(|(_, what)| *what)
}
