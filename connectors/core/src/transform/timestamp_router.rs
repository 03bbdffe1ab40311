//! `TimestampRouter`: another topic, made from the topic's name and the time of the record, in UTC.

use std::sync::Arc;

use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::date_format::DateFormat;
use super::fault::invalid;
use super::options::{option, table};
use super::{Fate, Made, Transform, broken};
use crate::error::Result;
use crate::record::Record;

pub(super) static OPTIONS: OptionTable = table(
    "TimestampRouter",
    &[
        option(
            "topic.format",
            OptionKind::String,
            Importance::High,
            "Name of the new topic, with ${topic} and ${timestamp} in the places of both.",
        )
        .default("${topic}-${timestamp}"),
        option(
            "timestamp.format",
            OptionKind::String,
            Importance::High,
            "Pattern of the time, as of Java's SimpleDateFormat.",
        )
        .default("yyyyMMdd")
        .check(|text| DateFormat::new(text).map(|_| ())),
    ],
    &[],
);

pub(super) struct TimestampRouter {
    topic_format: Box<str>,
    format: DateFormat,
    /// The time of the present record, kept for its memory.
    time: Vec<u8>,
    /// Topic, time and result of the record before: most records go where the one before them went.
    last: Option<(Arc<str>, Vec<u8>, Arc<str>)>,
}

impl TimestampRouter {
    pub(super) fn make(settings: &Settings) -> Made {
        let format = DateFormat::new(settings.text_or_empty("timestamp.format")).map_err(broken)?;
        let topic_format = settings.text_or_empty("topic.format").into();
        Ok(Box::new(Self { topic_format, format, time: Vec::new(), last: None }))
    }
}

impl Transform for TimestampRouter {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        let millis = record.timestamp.ok_or_else(|| invalid("Timestamp missing on record"))?;
        self.time.clear();
        self.format.push(millis, &mut self.time);
        if let Some((topic, time, routed)) = &self.last
            && *topic == record.topic
            && *time == self.time
        {
            record.topic = routed.clone();
            return Ok(Fate::Keep);
        }
        let time = String::from_utf8_lossy(&self.time);
        let routed: Arc<str> =
            self.topic_format.replace("${topic}", &record.topic).replace("${timestamp}", &time).into();
        let topic = std::mem::replace(&mut record.topic, routed.clone());
        self.last = Some((topic, self.time.clone(), routed));
        Ok(Fate::Keep)
    }
}
