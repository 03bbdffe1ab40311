//! Options of a connector that this crate obeys and Kafka's own clients do not have; those of a node
//! stand in the node's table.
//!
//! Client properties are no options of ours: they pass through `settings`. The options of topic
//! creation are among those that every connector shares.

use thalweg_config::OptionTable;
use thalweg_config::node::FENCED_COMMIT;

/// Time from the first record of a transaction to its commit.
pub const COMMIT_AFTER: &str = FENCED_COMMIT.name;
/// Memory of all producers of a node for records on their way.
pub const BUFFER_BYTES: &str = "thalweg.producer.buffer.bytes";

/// For a connector; its value wins over the node's.
pub const CONNECTOR_OPTIONS: OptionTable = OptionTable {
    title: "Delivery to Kafka",
    options: &[FENCED_COMMIT.group("Exactly Once Support").order(6)],
    open_prefixes: thalweg_config::connector::OPEN_PREFIXES,
    cross_checks: &[],
};

#[cfg(test)]
mod tests {
    use thalweg_config::node::WORKER;

    use super::*;

    #[test]
    fn the_documented_default_is_the_real_one() {
        let buffer = WORKER.option(BUFFER_BYTES).and_then(|o| o.default);
        assert_eq!(buffer, Some(crate::budget::DEFAULT_BYTES.to_string().as_str()));
        for table in [&CONNECTOR_OPTIONS, &WORKER] {
            let commit = table.option(COMMIT_AFTER).and_then(|o| o.default);
            assert_eq!(commit, Some(crate::sinks::COMMIT_AFTER_DEFAULT.as_millis().to_string().as_str()));
        }
    }
}
