//! Predicates: which records a transform is for.

use std::sync::Arc;

use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::broken;
use super::java_regex::JavaRegex;
use super::options::{not_empty, option, regex, table};
use super::topics::TopicCache;
use crate::error::Result;
use crate::record::Record;

pub(super) static TOPIC_OPTIONS: OptionTable = table(
    "TopicNameMatches",
    &[option("pattern", OptionKind::String, Importance::Medium, "Regular expression for the whole name of the topic.")
        .required()
        .check(regex)],
    &[],
);

pub(super) static HEADER_OPTIONS: OptionTable = table(
    "HasHeaderKey",
    &[option("name", OptionKind::String, Importance::Medium, "Name of the header.").required().check(not_empty)],
    &[],
);

pub(super) static TOMBSTONE_OPTIONS: OptionTable = table("RecordIsTombstone", &[], &[]);

/// A predicate of one transform.
pub(super) enum Predicate {
    TopicNameMatches(Box<JavaRegex>, TopicCache<bool>),
    HasHeaderKey(Arc<str>),
    RecordIsTombstone,
}

impl Predicate {
    pub(super) fn topic_name_matches(settings: &Settings) -> Result<Self> {
        let regex = JavaRegex::new(settings.text_or_empty("pattern")).map_err(broken)?;
        Ok(Self::TopicNameMatches(Box::new(regex), TopicCache::default()))
    }

    pub(super) fn has_header_key(settings: &Settings) -> Result<Self> {
        Ok(Self::HasHeaderKey(settings.text_or_empty("name").into()))
    }

    pub(super) fn record_is_tombstone(_: &Settings) -> Result<Self> {
        Ok(Self::RecordIsTombstone)
    }

    pub(super) fn holds(&mut self, record: &Record) -> Result<bool> {
        match self {
            Self::TopicNameMatches(regex, known) => known.get(&record.topic, |topic| regex.matches(topic)),
            Self::HasHeaderKey(name) => Ok(record.headers.iter().any(|header| header.name == *name)),
            Self::RecordIsTombstone => Ok(record.value.value.is_null()),
        }
    }
}
