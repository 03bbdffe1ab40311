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
    /// Topic and result of the record before: most records go where the one before them went.
    last: Option<(Arc<str>, String, Arc<str>)>,
}

impl TimestampRouter {
    pub(super) fn make(settings: &Settings) -> Made {
        let format = DateFormat::new(settings.text_or_empty("timestamp.format")).map_err(broken)?;
        Ok(Box::new(Self { topic_format: settings.text_or_empty("topic.format").into(), format, last: None }))
    }
}

impl Transform for TimestampRouter {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        let millis = record.timestamp.ok_or_else(|| invalid("Timestamp missing on record"))?;
        let time = self.format.write(millis);
        if let Some((topic, last_time, routed)) = &self.last
            && *topic == record.topic
            && *last_time == time
        {
            record.topic = routed.clone();
            return Ok(Fate::Keep);
        }
        let routed: Arc<str> =
            self.topic_format.replace("${topic}", &record.topic).replace("${timestamp}", &time).into();
        self.last = Some((std::mem::replace(&mut record.topic, routed.clone()), time, routed));
        Ok(Fate::Keep)
    }
}
