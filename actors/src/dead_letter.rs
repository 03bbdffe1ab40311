//! A record that is left out, as the message that tells of it (`errors.deadletterqueue.*`).
//!
//! Key: as the key converter wrote it, if it had by then; else, and the value always, JSON of what the
//! record was when it failed. Headers name the place in the source and the reason; they have no contents
//! of the record. It does not send.

use std::sync::Arc;

use thalweg_config::Settings;
use thalweg_core::Error;
use thalweg_core::convert::raw_json;
use thalweg_core::delivery::{EncodedHeaders, Message};
use thalweg_core::record::Record;
use thalweg_core::tolerance::Stage;

/// Longest message of an error in bytes.
const LONGEST: usize = 4 * 1024;

/// Where dead letters of a task go.
#[derive(Debug, Clone)]
pub(crate) struct DeadLetters {
    pub(crate) topic: Arc<str>,
    headers: bool,
}

impl DeadLetters {
    /// `None` if there is no topic for them, or nothing is left out.
    pub(crate) fn from_settings(settings: &Settings) -> Option<Self> {
        let topic = settings.text_or_empty("errors.deadletterqueue.topic.name").trim();
        let tolerated = settings.text_or_empty("errors.tolerance") == "all";
        (tolerated && !topic.is_empty()).then(|| Self {
            topic: topic.into(),
            headers: settings.bool("errors.deadletterqueue.context.headers.enable"),
        })
    }
}

/// Why a record is left out.
#[derive(Debug, Clone)]
pub(crate) struct Reason {
    pub(crate) stage: Stage,
    pub(crate) class: &'static str,
    pub(crate) exception: &'static str,
    /// Without secrets.
    pub(crate) message: String,
    /// What the key converter had written.
    pub(crate) key: Option<Vec<u8>>,
}

impl Reason {
    pub(crate) fn new(stage: Stage, class: &'static str, error: &Error, message: String) -> Self {
        Self { stage, class, exception: error.java_class(), message, key: None }
    }
}

/// Where the record is in the source, and who read it.
pub(crate) struct Coordinates<'a> {
    pub(crate) connector: &'a str,
    pub(crate) task: u32,
    pub(crate) partition: &'a str,
    pub(crate) offset: String,
}

/// How much of a record a letter has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// The value is too large.
    Key,
    /// So is the key.
    Headers,
}

impl Extent {
    pub(crate) fn less(self) -> Option<Self> {
        match self {
            Self::Whole => Some(Self::Key),
            Self::Key => Some(Self::Headers),
            Self::Headers => None,
        }
    }
}

pub(crate) struct Letter {
    topic: Arc<str>,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: EncodedHeaders,
    timestamp: Option<i64>,
}

impl Letter {
    pub(crate) fn new(to: &DeadLetters, record: &Record, reason: Reason, at: &Coordinates<'_>) -> Self {
        let part = |datum| {
            let mut out = Vec::new();
            raw_json(datum, &mut out).then_some(out)
        };
        let headers = if to.headers { headers(record, &reason, at) } else { Vec::new() };
        Self {
            topic: to.topic.clone(),
            key: reason.key.or_else(|| part(&record.key)),
            // A message that is too large is not sent a second time.
            value: if reason.stage == Stage::KafkaProduce { None } else { part(&record.value) },
            headers: Arc::new(headers),
            timestamp: record.timestamp,
        }
    }

    /// What is there in the first place.
    pub(crate) fn extent(&self) -> Extent {
        if self.value.is_some() { Extent::Whole } else { Extent::Key }
    }

    pub(crate) fn size(&self, extent: Extent) -> usize {
        let message = self.message(extent);
        message.key.map_or(0, <[u8]>::len) + message.value.map_or(0, <[u8]>::len)
    }

    pub(crate) fn message(&self, extent: Extent) -> Message<'_> {
        Message {
            topic: &self.topic,
            partition: None,
            key: self.key.as_deref().filter(|_| extent != Extent::Headers),
            value: self.value.as_deref().filter(|_| extent == Extent::Whole),
            headers: &self.headers,
            timestamp: self.timestamp,
        }
    }
}

/// Kafka Connect's names for dead letters of sinks, as far as they fit a source; a source's partition and
/// offset are no numbers and have names of their own.
fn headers(record: &Record, reason: &Reason, at: &Coordinates<'_>) -> Vec<(Arc<str>, Option<Vec<u8>>)> {
    [
        ("__connect.errors.topic", &*record.topic),
        ("__connect.errors.connector.name", at.connector),
        ("__connect.errors.task.id", &*at.task.to_string()),
        ("__connect.errors.stage", reason.stage.name()),
        ("__connect.errors.class.name", reason.class),
        ("__connect.errors.exception.class.name", reason.exception),
        ("__connect.errors.exception.message", cut(&reason.message)),
        ("__thalweg.errors.source.partition", at.partition),
        ("__thalweg.errors.source.offset", &*at.offset),
    ]
    .map(|(name, text)| (name.into(), Some(text.as_bytes().to_vec())))
    .into()
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}
