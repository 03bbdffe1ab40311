//! Kafka's error codes as kinds, with advice where the kind's own is too general.
//!
//! One place decides what a code means. Texts of librdkafka are kept as causes; they name brokers,
//! topics and properties, never values.

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use thalweg_core::{Error, ErrorKind, Phase};

pub(crate) fn kind(code: Code) -> ErrorKind {
    use ErrorKind as K;
    match code {
        Code::Fenced | Code::ProducerFenced | Code::InvalidProducerEpoch | Code::TransactionCoordinatorFenced => {
            K::Fenced
        }
        Code::TransactionalIdAuthorizationFailed | Code::UnsupportedFeature | Code::UnsupportedVersion => {
            K::TransactionsRefused
        }
        Code::MessageSizeTooLarge | Code::MessageBatchTooLarge | Code::InvalidMessageSize => K::MessageTooLarge,
        Code::UnknownTopic | Code::UnknownTopicOrPartition | Code::UnknownPartition | Code::UnknownTopicId => {
            K::TopicMissing
        }
        Code::TopicAuthorizationFailed | Code::ClusterAuthorizationFailed | Code::GroupAuthorizationFailed => {
            K::Permission
        }
        Code::Authentication
        | Code::SaslAuthenticationFailed
        | Code::UnsupportedSASLMechanism
        | Code::IllegalSASLState => K::Auth,
        Code::SSL => K::Tls,
        Code::InvalidTopic
        | Code::InvalidPartitions
        | Code::InvalidReplicationFactor
        | Code::InvalidReplicaAssignment
        | Code::InvalidConfig
        | Code::InvalidTransactionTimeout
        | Code::InvalidRequiredAcks
        | Code::PolicyViolation => K::Config,
        // The broker checks records on the way in: a compacted topic refuses a record without key.
        Code::InvalidRecord | Code::InvalidMessage | Code::InvalidTimestamp => K::ValueInvalid,
        Code::InvalidArgument | Code::State | Code::Application | Code::Inconsistent => K::Internal,
        _ => K::BrokerUnavailable,
    }
}

/// The next step for codes whose kind alone does not tell it.
fn advice(code: Code) -> Option<&'static str> {
    Some(match code {
        Code::TransactionalIdAuthorizationFailed => {
            "grant the Kafka user Write and Describe on the TransactionalId, or set thalweg.delivery=plain, then restart the task"
        }
        Code::UnsupportedFeature | Code::UnsupportedVersion => {
            "the broker is too old for transactions: upgrade it, or set thalweg.delivery=plain, then restart the task"
        }
        Code::InvalidTransactionTimeout => {
            "lower producer.override.transaction.timeout.ms, or raise transaction.max.timeout.ms of the brokers"
        }
        Code::InvalidRecord | Code::InvalidMessage => {
            "if the topic is compacted, every record needs a key: give the table a key (message.key.columns) or change the topic's cleanup.policy, then restart the task"
        }
        Code::InvalidReplicationFactor => {
            "lower topic.creation.default.replication.factor to the number of brokers, or set -1 for the brokers' default"
        }
        Code::PolicyViolation => {
            "the brokers' create.topic.policy refuses this topic: adapt topic.creation.* or create the topic by hand"
        }
        Code::TopicAuthorizationFailed => {
            "grant the Kafka user Write and Describe on the topic (and Create if it shall be created), then restart the task"
        }
        Code::ClusterAuthorizationFailed => {
            "grant the Kafka user IdempotentWrite (or Create, for topics) on the cluster, then restart the task"
        }
        _ => return None,
    })
}

/// What is known about a record without its content.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Coordinates<'a> {
    pub(crate) topic: &'a str,
    pub(crate) partition: Option<i32>,
    pub(crate) key: Option<&'a [u8]>,
    /// Key and value.
    pub(crate) bytes: u64,
}

impl std::fmt::Display for Coordinates<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "topic {}", self.topic)?;
        if let Some(partition) = self.partition.filter(|p| *p >= 0) {
            write!(f, " partition {partition}")?;
        }
        match self.key {
            Some(key) => write!(f, ", key hash {:08x}", crate::partitioner::murmur2(key))?,
            None => f.write_str(", no key")?,
        }
        write!(f, ", {} bytes", self.bytes)
    }
}

/// A code met while `what` was done.
pub(crate) fn coded(phase: Phase, what: impl Into<String>, code: Code) -> Error {
    let mut error = Error::new(kind(code), phase, what);
    error.causes.push(code.to_string());
    error.advice = advice(code).map(str::to_owned);
    error
}

/// A record that was refused, by the client or by the broker.
pub(crate) fn refused_record(code: Code, at: Coordinates<'_>, batch_size: u64) -> Error {
    let mut error = coded(Phase::Deliver, format!("a record could not be delivered ({at})"), code);
    if error.kind == ErrorKind::MessageTooLarge {
        error.message = format!("a record is larger than the broker takes ({at})");
        error.advice = Some(if at.bytes < batch_size {
            format!(
                "raise max.message.bytes of topic {0} (or message.max.bytes of the brokers) above producer.override.batch.size={batch_size}, or lower the latter: a batch is checked as a whole; then restart the task",
                at.topic
            )
        } else {
            format!(
                "raise max.message.bytes of topic {0} (or message.max.bytes of the brokers) and replica.fetch.max.bytes if lower, or exclude the large field; then restart the task",
                at.topic
            )
        });
    }
    error
}

/// A record that the broker takes for one it has already, without saying where. librdkafka reports it as
/// delivered. But a broker takes any number as the first one of a producer in a partition: if it refuses the
/// first request (it is about to lead the partition) and takes the one behind it, the first is a duplicate
/// when it comes again, and nowhere.
pub(crate) fn unplaced_record(at: Coordinates<'_>) -> Error {
    let text =
        format!("the broker says of a record that it came before, but not where it is: it may be missing ({at})");
    Error::new(ErrorKind::BrokerUnavailable, Phase::Deliver, text)
        .advise("nothing: everything since the last stored position is sent again")
}

/// A record above the producer's own limit; nothing was sent.
pub(crate) fn oversize_record(at: Coordinates<'_>, request: u64, limit: u64) -> Error {
    Error::new(
        ErrorKind::MessageTooLarge,
        Phase::Deliver,
        format!("a record needs a request of {request} bytes, the limit max.request.size is {limit} ({at})"),
    )
    .advise(format!(
        "raise producer.override.max.request.size to at least {request}, and with it max.message.bytes of topic {} and message.max.bytes of the brokers, or exclude the large field; then restart the task",
        at.topic
    ))
}

/// An error of the client library met while `what` was done.
pub(crate) fn client(phase: Phase, what: impl Into<String>, error: &KafkaError) -> Error {
    match error {
        // The library's text shows the value, which may be a secret.
        KafkaError::ClientConfig(_, _, key, _) => {
            Error::config(format!("{}: the value of the client property {key} is not accepted", what.into()))
        }
        KafkaError::ClientCreation(reason) => {
            let mut error = Error::config(what);
            error.causes.push(reason.clone());
            error
        }
        KafkaError::Nul(_) => Error::config(format!("{}: a name contains a NUL character", what.into())),
        other => match other.rdkafka_error_code() {
            Some(code) => coded(phase, what, code),
            None => {
                let mut error = Error::new(ErrorKind::BrokerUnavailable, phase, what);
                error.causes.push(other.to_string());
                error
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use thalweg_core::Policy;

    use super::*;

    #[test]
    fn codes_have_the_policy_that_fits() {
        for (code, kind_of, policy) in [
            (Code::Fenced, ErrorKind::Fenced, Policy::Retry),
            (Code::ProducerFenced, ErrorKind::Fenced, Policy::Retry),
            (Code::InvalidProducerEpoch, ErrorKind::Fenced, Policy::Retry),
            (Code::TransactionalIdAuthorizationFailed, ErrorKind::TransactionsRefused, Policy::NeedsUser),
            (Code::UnsupportedFeature, ErrorKind::TransactionsRefused, Policy::NeedsUser),
            (Code::MessageSizeTooLarge, ErrorKind::MessageTooLarge, Policy::NeedsUser),
            (Code::UnknownTopicOrPartition, ErrorKind::TopicMissing, Policy::NeedsUser),
            (Code::TopicAuthorizationFailed, ErrorKind::Permission, Policy::NeedsUser),
            (Code::SaslAuthenticationFailed, ErrorKind::Auth, Policy::NeedsUser),
            (Code::SSL, ErrorKind::Tls, Policy::NeedsUser),
            (Code::InvalidTransactionTimeout, ErrorKind::Config, Policy::NeedsUser),
            (Code::InvalidRecord, ErrorKind::ValueInvalid, Policy::NeedsUser),
            (Code::MessageTimedOut, ErrorKind::BrokerUnavailable, Policy::Retry),
            (Code::BrokerTransportFailure, ErrorKind::BrokerUnavailable, Policy::Retry),
            (Code::AllBrokersDown, ErrorKind::BrokerUnavailable, Policy::Retry),
            (Code::NotEnoughReplicas, ErrorKind::BrokerUnavailable, Policy::Retry),
            (Code::PurgeInflight, ErrorKind::BrokerUnavailable, Policy::Retry),
            (Code::OutOfOrderSequenceNumber, ErrorKind::BrokerUnavailable, Policy::Retry),
        ] {
            let error = coded(Phase::Deliver, "x", code);
            assert_eq!((error.kind, error.policy()), (kind_of, policy), "{code:?}");
        }
    }

    /// The cases a transactional start can meet: the text says which, and that there is another mode.
    #[test]
    fn refused_transactions_name_the_way_out() {
        for code in [Code::TransactionalIdAuthorizationFailed, Code::UnsupportedFeature, Code::UnsupportedVersion] {
            let error = coded(Phase::Start, "transactional id cdc-shop-0", code);
            assert!(error.advice().contains("thalweg.delivery=plain"));
        }
        let acl = coded(Phase::Start, "x", Code::TransactionalIdAuthorizationFailed);
        assert!(acl.advice().contains("TransactionalId"));
        assert!(coded(Phase::Start, "x", Code::UnsupportedFeature).advice().contains("too old"));
    }

    #[test]
    fn kfk_03_oversize_names_coordinates_and_settings() {
        let at = Coordinates { topic: "shop.big", partition: Some(4), key: Some(b"secret-key"), bytes: 3_000_010 };
        let local = oversize_record(at, 3_000_092, 1_048_576);
        assert_eq!(local.kind, ErrorKind::MessageTooLarge);
        for part in ["shop.big", "partition 4", "3000010 bytes", "3000092", "1048576", "key hash"] {
            assert!(local.message.contains(part), "{}", local.message);
        }
        for part in ["max.request.size", "max.message.bytes", "message.max.bytes", "3000092"] {
            assert!(local.advice().contains(part), "{}", local.advice());
        }
        let broker = refused_record(Code::MessageSizeTooLarge, at, 524_288);
        assert!(broker.advice().contains("max.message.bytes of topic shop.big"));
        let small = refused_record(Code::MessageSizeTooLarge, Coordinates { bytes: 100, ..at }, 524_288);
        assert!(small.advice().contains("batch.size=524288"));
        for error in [local, broker, small] {
            assert!(!format!("{error} {}", error.advice()).contains("secret-key"));
        }
    }

    #[test]
    fn a_refused_property_keeps_its_value_to_itself() {
        let refused = KafkaError::ClientConfig(
            rdkafka::types::RDKafkaConfRes::RD_KAFKA_CONF_INVALID,
            "Invalid value \"s3cret\"".into(),
            "sasl.password".into(),
            "s3cret".into(),
        );
        let error = client(Phase::Start, "creating the producer", &refused);
        assert!(!error.to_string().contains("s3cret") && error.to_string().contains("sasl.password"));
    }
}
