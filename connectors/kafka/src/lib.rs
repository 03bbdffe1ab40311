//! Kafka: producers for tasks, topics, and the client settings of both.
//!
//! In the order in which a task meets them: `sinks` opens a producer with what `settings` makes of
//! the properties; `topics` sees to it that a topic exists, by the rules of `topic_rules`; `plain`
//! and `fenced` take records, within a `budget` of memory and a limit of `size`; they gather in a
//! `backlog` of `loads`, and a `gate` hands one load after the other through an `outlet` to the `client`;
//! `reports` tells what became of them, and `flow` wakes who waits for room or for the end. `errors` and
//! `trouble` say what a code and a silence mean. `broker` looks at a cluster, `tail` follows topics,
//! `signals` reads what a user asks of a connector, `history` keeps structures of tables in a `history_topic`, `embedded` is a cluster in this process; `overrides`
//! lists the client settings of a connector for `config/validate`.
//!
//! It does not: encode records, decide what a task does after an error, store positions, or retry a
//! record: what failed comes again from the source, in order.

mod backlog;
mod broker;
mod budget;
mod client;
mod embedded;
mod errors;
mod fenced;
mod flow;
mod gate;
mod history;
mod history_topic;
mod hurry;
mod load;
mod loads;
mod options;
mod outlet;
mod overrides;
mod pace;
mod partitioner;
mod plain;
mod reports;
mod settings;
mod signals;
mod sinks;
mod size;
mod tail;
mod topic_rules;
mod topics;
mod trouble;

pub use broker::{ClusterFacts, cluster_facts, cluster_id};
pub use embedded::EmbeddedBroker;
pub use options::{BUFFER_BYTES, COMMIT_AFTER, CONNECTOR_OPTIONS};
pub use partitioner::{murmur2, partition_of};
pub use settings::{ClientSettings, PLAIN_DELIVERY_TIMEOUT, Role, SettingProblem, client_settings, transactional_id};
pub use sinks::{KafkaSinks, check_settings};
pub use tail::{Followed, From as TailFrom, Tail, TopicPattern};
pub use topic_rules::{TopicRules, TopicSpec};
