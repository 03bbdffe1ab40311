//! Under which name a schema is registered.

use super::super::Role;
use super::super::fault::{Fault, Outcome};

/// `key.subject.name.strategy` and `value.subject.name.strategy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SubjectStrategy {
    Topic,
    Record,
    TopicAndRecord,
}

impl SubjectStrategy {
    /// Full class names, the default first.
    pub(super) const CLASSES: &[&str] = &[
        "io.confluent.kafka.serializers.subject.TopicNameStrategy",
        "io.confluent.kafka.serializers.subject.RecordNameStrategy",
        "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy",
    ];

    /// From the canonical text of the option.
    pub(super) fn from_option(class: &str) -> Self {
        match class.rsplit('.').next() {
            Some("RecordNameStrategy") => Self::Record,
            Some("TopicRecordNameStrategy") => Self::TopicAndRecord,
            _ => Self::Topic,
        }
    }

    /// `record` is the full name of the schema's record.
    pub(super) fn subject(self, topic: &str, role: Role, record: Option<&str>) -> Outcome<String> {
        let record = || {
            record.ok_or_else(|| {
                Fault::new(format!(
                    "the subject is to be the name of a record, and the schema is none; set \
                     {}{}.subject.name.strategy={}",
                    role.prefix(),
                    if role == Role::Key { "key" } else { "value" },
                    Self::CLASSES[0]
                ))
            })
        };
        Ok(match self {
            Self::Topic => format!("{topic}-{}", if role == Role::Key { "key" } else { "value" }),
            Self::Record => record()?.to_owned(),
            Self::TopicAndRecord => format!("{topic}-{}", record()?),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn subjects_by_strategy() {
        let [topic, record, both] = [0, 1, 2].map(|n| SubjectStrategy::from_option(SubjectStrategy::CLASSES[n]));
        assert_eq!(topic.subject("t", Role::Key, None).unwrap(), "t-key");
        assert_eq!(topic.subject("t", Role::Value, Some("a.V")).unwrap(), "t-value");
        assert_eq!(record.subject("t", Role::Value, Some("a.V")).unwrap(), "a.V");
        assert_eq!(both.subject("t", Role::Key, Some("a.V")).unwrap(), "t-a.V");
        let error = record.subject("t", Role::Key, None).unwrap_err().to_error();
        assert!(error.message.contains("key.converter.key.subject.name.strategy"), "{}", error.message);
    }
}
