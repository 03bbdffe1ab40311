//! What `Filter` and `ContentBasedRouter` of Debezium have in common: an expression, and for which records
//! it is evaluated.

use thalweg_config::{Importance, OptionDef, OptionKind, Settings};

use super::expression::{Expression, Item, evaluate};
use super::java_regex::JavaRegex;
use super::options::{option, regex};
use super::topics::TopicCache;
use super::{Fate, broken};
use crate::error::Result;
use crate::record::Record;

pub(super) const LANGUAGE: OptionDef = option(
    "language",
    OptionKind::String,
    Importance::High,
    "Language of the expression: cel, a part of the Common Expression Language.",
)
.required()
.check(|language| {
    if language.trim().eq_ignore_ascii_case("cel") {
        return Ok(());
    }
    Err("only cel is supported; most conditions can be written in it as they are, for example value.op == 'u' && value.before.id == 2".to_owned())
});

pub(super) const TOPIC_REGEX: OptionDef = option(
    "topic.regex",
    OptionKind::String,
    Importance::Low,
    "Regular expression for whole names of topics: the expression is for their records only. Unset: for all.",
)
.check(regex);

pub(super) const NULLS: OptionDef = option(
    "null.handling.mode",
    OptionKind::String,
    Importance::Low,
    "What becomes of records without a value: they stay as they are (keep), are left out (drop), or the expression is evaluated (evaluate).",
)
.default("keep")
.one_of(&["keep", "drop", "evaluate"]);

/// An expression as the value of an option.
pub(super) fn expression(text: &str) -> Result<(), String> {
    Expression::parse(text).map(|_| ())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nulls {
    Keep,
    Drop,
    Evaluate,
}

pub(super) struct Conditional {
    expression: Expression,
    topics: Option<(JavaRegex, TopicCache<bool>)>,
    nulls: Nulls,
}

impl Conditional {
    /// `name`: the option with the expression.
    pub(super) fn from_settings(settings: &Settings, name: &str) -> Result<Self> {
        let pattern = settings.text_or_empty("topic.regex").trim();
        let topics = (!pattern.is_empty()).then(|| JavaRegex::new(pattern)).transpose().map_err(broken)?;
        Ok(Self {
            expression: Expression::parse(settings.text_or_empty(name)).map_err(broken)?,
            topics: topics.map(|regex| (regex, TopicCache::default())),
            nulls: match settings.text_or_empty("null.handling.mode") {
                "drop" => Nulls::Drop,
                "evaluate" => Nulls::Evaluate,
                _ => Nulls::Keep,
            },
        })
    }

    /// What the expression is for a record, or what becomes of one for which it is not evaluated.
    pub(super) fn of<'a>(&'a mut self, record: &'a Record) -> Result<Result<Item<'a>, Fate>> {
        if let Some((regex, known)) = &mut self.topics
            && !known.get(&record.topic, |topic| regex.matches(topic))?
        {
            return Ok(Err(Fate::Keep));
        }
        match self.nulls {
            Nulls::Keep if record.value.value.is_null() => Ok(Err(Fate::Keep)),
            Nulls::Drop if record.value.value.is_null() => Ok(Err(Fate::Drop)),
            _ => evaluate(&self.expression, record).map(Ok),
        }
    }
}
