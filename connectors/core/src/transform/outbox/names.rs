//! Options of an outbox router. They are the same for tables and collections, under other names.

use thalweg_config::{Importance, OptionDef, OptionKind, Settings};

use super::placement::Placement;
use crate::naming::ADJUSTMENTS;
use crate::transform::java_regex::{JavaRegex, Replacement};
use crate::transform::options::{option, regex};

/// Names of the options, with their older ones, and the defaults that differ.
#[derive(Debug)]
pub struct OutboxNames {
    pub id: &'static str,
    pub id_default: &'static str,
    pub key: &'static str,
    /// `None`: there is no default, and `aggregateid` is the field to fall back to.
    pub key_default: Option<&'static str>,
    pub key_aliases: &'static [&'static str],
    pub kind: &'static str,
    pub payload: &'static str,
    pub payload_aliases: &'static [&'static str],
    pub timestamp: &'static str,
    pub schema_version: &'static str,
    pub placement: &'static str,
    pub missing: &'static str,
    pub missing_aliases: &'static [&'static str],
    pub invalid_operation: &'static str,
    pub invalid_operation_aliases: &'static [&'static str],
    pub expand: &'static str,
    pub null_fields: &'static str,
}

pub(super) const ROUTE_BY: &str = "route.by.field";
pub(super) const ROUTE_REGEX: &str = "route.topic.regex";
pub(super) const ROUTE_REPLACEMENT: &str = "route.topic.replacement";
pub(super) const TOMBSTONE: &str = "route.tombstone.on.empty.payload";
pub(super) const FIELD_NAMES: &str = "field.name.adjustment.mode";
const NO_TRACES: &str = "there are no traces; remove the option";

pub const OPTION_COUNT: usize = 20;

const fn text(name: &'static str, doc: &'static str) -> OptionDef {
    option(name, OptionKind::String, Importance::Low, doc)
}

const fn flag(name: &'static str, doc: &'static str) -> OptionDef {
    option(name, OptionKind::Boolean, Importance::Medium, doc).default("false")
}

/// The options under these names.
pub const fn options(names: &OutboxNames) -> [OptionDef; OPTION_COUNT] {
    let key = text(names.key, "Field that becomes the key of the message.").aliases(names.key_aliases);
    let key = match names.key_default {
        Some(default) => key.default(default),
        None => key,
    };
    [
        text(names.id, "Field with the id of the event; it becomes the header id.").default(names.id_default),
        key,
        text(names.kind, "Field with the type of the event. It goes along only if it is placed somewhere.").default("type"),
        text(names.payload, "Field that becomes the value of the message.").default("payload").aliases(names.payload_aliases),
        text(
            names.timestamp,
            "Field with the time of the message, an io.debezium.time type. Unset or null: the time at which the change was processed.",
        ),
        text(names.schema_version, "Field with the version of the value's schema, if the value has an envelope."),
        option(
            names.placement,
            OptionKind::List,
            Importance::High,
            "Further fields, each field:header, field:envelope or field:partition, perhaps with another name behind a second colon. With an envelope the value is a struct of payload and those fields.",
        )
        .check(Placement::check),
        option(
            names.missing,
            OptionKind::String,
            Importance::Medium,
            "What happens if a row does not have a further field: the record is refused (error) or goes without (ignore).",
        )
        .default("error")
        .one_of(&["error", "ignore"])
        .aliases(names.missing_aliases)
        .value_aliases(&[("true", "error"), ("false", "ignore")]),
        option(ROUTE_BY, OptionKind::String, Importance::High, "Field whose value chooses the topic.")
            .default("aggregatetype"),
        text(ROUTE_REGEX, "Regular expression for the whole value of that field.")
            .default("(?<routedByValue>.*)")
            .check(regex),
        option(
            ROUTE_REPLACEMENT,
            OptionKind::String,
            Importance::High,
            "Name of the topic, with the groups of route.topic.regex.",
        )
        .default("outbox.event.${routedByValue}"),
        flag(TOMBSTONE, "Whether an empty payload makes a tombstone."),
        option(
            names.invalid_operation,
            OptionKind::String,
            Importance::Medium,
            "What happens to an update, which an outbox should not have: it is left out with a line in the log (warn, error), or the record is refused (fatal).",
        )
        .default("warn")
        .one_of(&["warn", "error", "fatal"])
        .aliases(names.invalid_operation_aliases),
        flag(names.expand, "Whether JSON in the payload becomes a struct. What is no JSON stays text."),
        option(
            names.null_fields,
            OptionKind::String,
            Importance::Medium,
            "What becomes of nulls in such JSON: they are left out (ignore), or become fields of type bytes without a value (optional_bytes).",
        )
        .default("ignore")
        .one_of(&["ignore", "optional_bytes"]),
        text(FIELD_NAMES, "How the names of fields in such JSON are made fit for Avro.")
            .default("none")
            .one_of(ADJUSTMENTS),
        text("table.json.payload.empty.array.behavior", "Empty arrays in such JSON are left out.")
            .refused("empty arrays are left out; remove the option"),
        text("tracing.span.context.field", "For traces.").refused(NO_TRACES),
        text("tracing.operation.name", "For traces.").refused(NO_TRACES),
        text("tracing.with.context.field.only", "For traces.").refused(NO_TRACES),
    ]
}

/// The replacement fits the expression; a wrong expression is reported at its own option.
pub fn check(settings: &Settings) -> Vec<(&'static str, String)> {
    let Ok(regex) = JavaRegex::new(settings.text_or_empty(ROUTE_REGEX)) else { return Vec::new() };
    let fault = Replacement::new(settings.text_or_empty(ROUTE_REPLACEMENT), &regex).err();
    fault.map(|text| (ROUTE_REPLACEMENT, text)).into_iter().collect()
}
