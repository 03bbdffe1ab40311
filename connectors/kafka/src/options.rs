//! Options of this crate that Kafka's own clients do not have.
//!
//! Client properties are no options of ours: they pass through `settings`. The options of topic
//! creation are among those that every connector shares.

use thalweg_config::{Importance, OptionDef, OptionKind, OptionTable, Width};

/// Time from the first record of a transaction to its commit.
pub const COMMIT_AFTER: &str = "thalweg.fenced.commit.ms";
/// Memory of all producers of a node for records on their way.
pub const BUFFER_BYTES: &str = "thalweg.producer.buffer.bytes";

const COMMIT_AFTER_OPTION: OptionDef = OptionDef::new(
    COMMIT_AFTER,
    OptionKind::Long,
    "With thalweg.delivery=fenced: milliseconds from the first record of a transaction to its commit. A reader of committed records sees a record at most this much later; smaller values mean more commits.",
)
.default("100")
.at_least(1)
.importance(Importance::Low)
.group("Thalweg")
.width(Width::Short)
.display("Commit interval");

/// For a connector; its value wins over the node's.
pub const CONNECTOR_OPTIONS: OptionTable = OptionTable {
    title: "Delivery to Kafka",
    options: &[COMMIT_AFTER_OPTION.group("Exactly Once Support").order(6)],
    open_prefixes: thalweg_config::connector::OPEN_PREFIXES,
    cross_checks: &[],
};

/// For a node.
pub const NODE_OPTIONS: OptionTable = OptionTable {
    title: "Delivery to Kafka",
    options: &[
        COMMIT_AFTER_OPTION,
        OptionDef::new(
            BUFFER_BYTES,
            OptionKind::Long,
            "Bytes that all producers of this node together may hold in records that Kafka has not acknowledged yet. Each producer gets an equal share; producer.buffer.memory limits a single one.",
        )
        .default("25165824")
        .at_least(1_048_576)
        .importance(Importance::Low)
        .group("Thalweg")
        .display("Memory for records on their way"),
    ],
    open_prefixes: &["producer.", "admin.", "consumer."],
    cross_checks: &[],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_default_is_the_real_one() {
        let buffer = NODE_OPTIONS.option(BUFFER_BYTES).and_then(|o| o.default);
        assert_eq!(buffer, Some(crate::budget::DEFAULT_BYTES.to_string().as_str()));
        let commit = CONNECTOR_OPTIONS.option(COMMIT_AFTER).and_then(|o| o.default);
        assert_eq!(commit, Some(crate::sinks::COMMIT_AFTER_DEFAULT.as_millis().to_string().as_str()));
    }
}
