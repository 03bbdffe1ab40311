//! Debezium's `Filter`: keeps the records for which a condition holds.

use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::conditional::{Conditional, LANGUAGE, NULLS, TOPIC_REGEX, expression};
use super::expression::Item;
use super::fault::invalid;
use super::options::{option, table};
use super::{Fate, Made, Transform};
use crate::error::Result;
use crate::record::Record;

pub(super) static OPTIONS: OptionTable = table(
    "Filter",
    &[
        option(
            "condition",
            OptionKind::String,
            Importance::High,
            "Expression over key, value, topic and headers: true keeps the record, false leaves it out.",
        )
        .required()
        .check(expression),
        LANGUAGE,
        TOPIC_REGEX,
        NULLS,
    ],
    &[],
);

pub(super) struct ConditionFilter(Conditional);

impl ConditionFilter {
    pub(super) fn make(settings: &Settings) -> Made {
        Ok(Box::new(Self(Conditional::from_settings(settings, "condition")?)))
    }
}

impl Transform for ConditionFilter {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        match self.0.of(record)? {
            Err(fate) => Ok(fate),
            Ok(Item::Bool(true)) => Ok(Fate::Keep),
            Ok(Item::Bool(false)) => Ok(Fate::Drop),
            Ok(_) => Err(invalid("the condition is neither true nor false for this record")),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use crate::record::{Datum, Record};
    use crate::transform::support::*;

    const CLASS: &str = "io.debezium.transforms.Filter";
    const CEL: (&str, &str) = ("language", "cel");

    fn passes(options: &[(&str, &str)], record: Record) -> bool {
        run(&mut chain(CLASS, options), record).unwrap().is_some()
    }

    #[test]
    fn true_keeps() {
        let options = [CEL, ("condition", "value.op == 'u' && value.before.id == 1")];
        assert!(passes(&options, change('u')));
        assert!(!passes(&options, change('c')));
        assert!(refused(&mut chain(CLASS, &options), heartbeat()).contains("Field does not exist: op"));
    }

    #[test]
    fn only_some_topics_and_nulls() {
        let condition = ("condition", "value.op == 'x'");
        assert!(passes(&[CEL, condition, ("topic.regex", "to")], change('u')));
        assert!(passes(&[CEL, condition, ("topic.regex", "other.*")], heartbeat()));
        assert!(!passes(&[CEL, condition, ("topic.regex", "t.p")], change('u')));
        let tombstone = || record(Datum::none());
        assert!(passes(&[CEL, condition], tombstone()));
        assert!(!passes(&[CEL, condition, ("null.handling.mode", "drop")], tombstone()));
        assert!(!passes(&[CEL, condition, ("null.handling.mode", "evaluate")], tombstone()));
        assert!(passes(&[CEL, ("condition", "value == null"), ("null.handling.mode", "evaluate")], tombstone()));
    }

    #[test]
    fn what_is_no_condition() {
        assert!(
            refused(&mut chain(CLASS, &[CEL, ("condition", "topic")]), change('c')).contains("neither true nor false")
        );
        let wrong = |options: &[(&str, &str)]| faults(CLASS, options).join("\n");
        assert!(wrong(&[("condition", "true"), ("language", "jsr223.groovy")]).contains("only cel is supported"));
        assert!(wrong(&[("condition", "value.op ==")]).contains("transforms.t.condition: a value is expected"));
        assert!(wrong(&[("condition", "true")]).contains("transforms.t.language"));
        assert!(wrong(&[CEL]).contains("transforms.t.condition"));
        assert!(wrong(&[CEL, ("condition", "true"), ("topic.regex", "(")]).contains("Unclosed group"));
    }
}
