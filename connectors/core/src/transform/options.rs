//! Pieces of the option tables of transforms and predicates, also of those that connectors bring.
//!
//! Kafka Connect publishes these options without a group and without a width; so do we.

use thalweg_config::{CrossCheck, Importance, OptionDef, OptionKind, OptionTable, Width};

use super::java_regex::JavaRegex;

pub const fn option(name: &'static str, kind: OptionKind, importance: Importance, doc: &'static str) -> OptionDef {
    OptionDef::new(name, kind, doc).framework().group("").width(Width::None).importance(importance)
}

pub const fn table(
    title: &'static str,
    options: &'static [OptionDef],
    cross_checks: &'static [CrossCheck],
) -> OptionTable {
    OptionTable { title, options, open_prefixes: &[], cross_checks }
}

pub const ADD_FIELDS: OptionDef = option(
    "add.fields",
    OptionKind::List,
    Importance::Low,
    "Fields of the change event that go along: op, ts_ms, table (of source) or source.ts_ms, each perhaps with a name of its own behind a colon.",
)
.default("");

pub const ADD_FIELDS_PREFIX: OptionDef =
    option("add.fields.prefix", OptionKind::String, Importance::Low, "What stands before the names of add.fields.")
        .default("__");

pub const ADD_HEADERS: OptionDef = option(
    "add.headers",
    OptionKind::List,
    Importance::Low,
    "Fields of the change event that become headers, written as those of add.fields.",
)
.default("");

pub const ADD_HEADERS_PREFIX: OptionDef =
    option("add.headers.prefix", OptionKind::String, Importance::Low, "What stands before the names of add.headers.")
        .default("__");

pub const OLD_OPERATION_HEADER: OptionDef = option(
    "operation.header",
    OptionKind::Boolean,
    Importance::Low,
    "Whether there is a header __debezium-operation, unless add.headers is set.",
)
.older("add.headers");

pub const OLD_SOURCE_FIELDS: OptionDef = option(
    "add.source.fields",
    OptionKind::List,
    Importance::Low,
    "Fields of source that go along with __ before their names, unless add.fields is set.",
)
.older("add.fields");

pub(super) const REPLACE_NULL: OptionDef = option(
    "replace.null.with.default",
    OptionKind::Boolean,
    Importance::Medium,
    "Whether a null in a field that has a default becomes the default. false: it stays null.",
)
.default("true");

pub(super) const FIELD_SYNTAX: OptionDef = option(
    "field.syntax.version",
    OptionKind::String,
    Importance::High,
    "How a field is named. V1: by its name on the first level. V2: by a path with dots; a name that has dots stands between backticks.",
)
.default("V1")
.one_of(&["V1", "V2"]);

pub fn not_empty(text: &str) -> Result<(), String> {
    if text.is_empty() { Err("String must be non-empty".to_owned()) } else { Ok(()) }
}

/// Items that are there and differ. The texts are whole messages, in which `{name}` is the option's name.
pub(super) fn distinct_items(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Ok(());
    }
    let items: Vec<&str> = text.split(',').map(str::trim).collect();
    let again = (1..items.len()).any(|at| items[..at].contains(&items[at]));
    let empty = items.contains(&"");
    match (again, empty) {
        (true, _) => Err("Configuration '{name}' values must not be duplicated.".to_owned()),
        (_, true) => Err("Configuration '{name}' values must not be empty.".to_owned()),
        _ => Ok(()),
    }
}

/// [`distinct_items`], and at least one.
pub(super) fn some_distinct_items(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        let text = "Configuration '{name}' must not be empty. Valid values include: any non-empty value";
        return Err(text.to_owned());
    }
    distinct_items(text)
}

/// The parts of `a:b`; empty ones at the end do not count, as in Java.
pub(super) fn mapping(item: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = item.split(':').collect();
    while parts.last().is_some_and(|part| part.is_empty()) {
        parts.pop();
    }
    parts
}

pub(super) fn not_empty_list(text: &str) -> Result<(), String> {
    let items = thalweg_config::rule::split_plain_list(text);
    if items.is_empty() { Err("Empty list".to_owned()) } else { Ok(()) }
}

pub fn regex(text: &str) -> Result<(), String> {
    JavaRegex::new(text).map(|_| ()).map_err(|fault| format!("Invalid regex: {fault}"))
}
