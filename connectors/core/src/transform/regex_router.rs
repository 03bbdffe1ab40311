//! `RegexRouter`: another topic, made from the topic's name.

use std::sync::Arc;

use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::java_regex::{JavaRegex, Replacement};
use super::options::{option, regex, table};
use super::topics::TopicCache;
use super::{Fate, Made, Transform, broken};
use crate::error::Result;
use crate::record::Record;

pub(super) static OPTIONS: OptionTable = table(
    "RegexRouter",
    &[
        option(
            "regex",
            OptionKind::String,
            Importance::High,
            "Regular expression for the whole name of a topic; records of other topics stay as they are.",
        )
        .required()
        .check(regex),
        option(
            "replacement",
            OptionKind::String,
            Importance::High,
            "Name of the new topic; $1 is the first group of the expression.",
        )
        .required(),
    ],
    &[replacement_fits],
);

fn rule(settings: &Settings) -> Result<(JavaRegex, Replacement), String> {
    let regex = JavaRegex::new(settings.text_or_empty("regex"))?;
    let replacement = Replacement::new(settings.text_or_empty("replacement"), &regex)?;
    Ok((regex, replacement))
}

/// A wrong expression is reported at its own option.
fn replacement_fits(settings: &Settings) -> Vec<(&'static str, String)> {
    let Ok(regex) = JavaRegex::new(settings.text_or_empty("regex")) else { return Vec::new() };
    let fault = Replacement::new(settings.text_or_empty("replacement"), &regex).err();
    fault.map(|text| ("replacement", text)).into_iter().collect()
}

pub(super) struct RegexRouter {
    regex: JavaRegex,
    replacement: Replacement,
    routed: TopicCache<Option<Arc<str>>>,
}

impl RegexRouter {
    pub(super) fn make(settings: &Settings) -> Made {
        let (regex, replacement) = rule(settings).map_err(broken)?;
        Ok(Box::new(Self { regex, replacement, routed: TopicCache::default() }))
    }
}

impl Transform for RegexRouter {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        let (regex, replacement) = (&self.regex, &self.replacement);
        let routed = self.routed.get(&record.topic, |topic| Ok(regex.replaced(topic, replacement)?.map(Arc::from)))?;
        if let Some(topic) = routed {
            record.topic = topic;
        }
        Ok(Fate::Keep)
    }
}
