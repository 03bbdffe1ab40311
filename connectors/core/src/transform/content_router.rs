//! `ContentBasedRouter`: the topic follows from an expression over the record.

use std::sync::Arc;

use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::conditional::{Conditional, LANGUAGE, NULLS, TOPIC_REGEX, expression};
use super::expression::Item;
use super::fault::invalid;
use super::options::{option, table};
use super::topics::TopicCache;
use super::{Fate, Made, Transform};
use crate::error::Result;
use crate::record::Record;

pub(super) static OPTIONS: OptionTable = table(
    "ContentBasedRouter",
    &[
        option(
            "topic.expression",
            OptionKind::String,
            Importance::High,
            "Expression over key, value, topic and headers: a text is the new topic, null leaves the record in its own.",
        )
        .required()
        .check(expression),
        LANGUAGE,
        TOPIC_REGEX,
        NULLS,
    ],
    &[],
);

pub(super) struct ContentRouter {
    rule: Conditional,
    topics: TopicCache<Arc<str>>,
}

impl ContentRouter {
    pub(super) fn make(settings: &Settings) -> Made {
        let rule = Conditional::from_settings(settings, "topic.expression")?;
        Ok(Box::new(Self { rule, topics: TopicCache::default() }))
    }
}

impl Transform for ContentRouter {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        let topic = match self.rule.of(record)? {
            Err(fate) => return Ok(fate),
            Ok(Item::Null) => return Ok(Fate::Keep),
            Ok(Item::Text(topic)) if !topic.is_empty() => self.topics.get(&topic, |topic| Ok(topic.into()))?,
            Ok(_) => return Err(invalid("the expression gives no name of a topic for this record")),
        };
        record.topic = topic;
        Ok(Fate::Keep)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use crate::record::{Datum, Record};
    use crate::transform::support::*;

    const CLASS: &str = "io.debezium.transforms.ContentBasedRouter";

    fn options(expression: &str) -> [(&str, &str); 2] {
        [("language", "cel"), ("topic.expression", expression)]
    }

    fn topic(expression: &str, record: Record) -> String {
        run(&mut chain(CLASS, &options(expression)), record).unwrap().unwrap().topic.to_string()
    }

    #[test]
    fn a_text_is_the_topic() {
        assert_eq!(topic("value.op == 'u' ? 'updates' : null", change('u')), "updates");
        assert_eq!(topic("value.op == 'u' ? 'updates' : null", change('c')), "top");
        assert_eq!(topic("topic + '-' + value.source.table", change('c')), "top-t");
        assert_eq!(topic("'x'", record(Datum::none())), "top");
        for wrong in ["''", "1", "value"] {
            assert!(refused(&mut chain(CLASS, &options(wrong)), change('c')).contains("no name of a topic"), "{wrong}");
        }
        assert!(faults(CLASS, &options("value.op =="))[0].contains("transforms.t.topic.expression"));
    }
}
