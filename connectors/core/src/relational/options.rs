//! Options that all sources with tables have.
//!
//! A connector joins its own options with these (`compose`) and with those of every Debezium connector; where
//! two have a name, its own counts. It adds [`OPEN_PREFIXES`] and the rules below to its table, and lets
//! [`ColumnMappers::validate`](super::column_mappers::ColumnMappers::validate) and
//! [`SelectOverrides::validate`](super::select_overrides::SelectOverrides::validate) check the options whose
//! names hold parameters.

use thalweg_config::rule::boolean;
use thalweg_config::{CrossCheck, Importance, OptionDef, OptionKind, Rule, Settings, Width};

use super::message_key::MessageKeys;
use super::modes::{BINARY_MODES, DECIMAL_MODES, TIME_PRECISIONS};
use super::value_type::Placeholder;

const CONNECTION: &str = "Connection";
const FILTERS: &str = "Filters";
const CONNECTOR: &str = "Connector";
const ADVANCED: &str = "Connector Advanced";
const SNAPSHOT: &str = "Connector Snapshot";

const fn new(
    name: &'static str,
    kind: OptionKind,
    group: &'static str,
    display: &'static str,
    doc: &'static str,
) -> OptionDef {
    OptionDef::new(name, kind, doc).group(group).display(display)
}

const fn list(name: &'static str, display: &'static str, doc: &'static str) -> OptionDef {
    new(name, OptionKind::List, FILTERS, display, doc).rule(Rule::Regexes).width(Width::Long)
}

const fn high(option: OptionDef) -> OptionDef {
    option.importance(Importance::High)
}

const fn flag(name: &'static str, group: &'static str, display: &'static str, doc: &'static str) -> OptionDef {
    new(name, OptionKind::Boolean, group, display, doc).check(boolean).width(Width::Short)
}

/// Name of a list whose name holds a number, as it is published.
const TRUNCATE: &str = "column.truncate.to.(d+).chars";
const MASK: &str = "column.mask.with.(d+).chars";
const DIGEST: &str = "column.mask.hash.([^.]+).with.salt.(.+)";

/// Options of every source with tables.
pub const RELATIONAL: &[OptionDef] = &[
    high(new(
        "database.hostname",
        OptionKind::String,
        CONNECTION,
        "Hostname",
        "Host name or address of the database server.",
    ))
    .required(),
    high(new("database.port", OptionKind::Int, CONNECTION, "Port", "Port of the database server."))
        .rule(Rule::Range(Some(1), Some(65_535)))
        .width(Width::Short),
    high(new("database.user", OptionKind::String, CONNECTION, "User", "Name that the connector logs in with."))
        .width(Width::Short),
    high(new("database.password", OptionKind::Password, CONNECTION, "Password", "Password of that user."))
        .width(Width::Short),
    new(
        "database.query.timeout.ms",
        OptionKind::Int,
        CONNECTION,
        "Query timeout",
        "The most milliseconds that a statement may take. 0: no limit.",
    )
    .default("600000")
    .at_least(0)
    .width(Width::Short)
    .importance(Importance::Low),
    high(list("schema.include.list", "Include Schemas", "Schemas whose tables are captured. Unset: all.")),
    list("schema.exclude.list", "Exclude Schemas", "Schemas whose tables are not captured. Not together with schema.include.list.")
        .invisible(),
    high(list("table.include.list", "Include Tables", "Tables that are captured. Unset: all of the schemas.")),
    list("table.exclude.list", "Exclude Tables", "Tables that are not captured. Not together with table.include.list."),
    list(
        "column.include.list",
        "Include Columns",
        "Columns that rows in messages have. Unset: all. Keys keep their columns in any case.",
    ),
    list(
        "column.exclude.list",
        "Exclude Columns",
        "Columns that rows in messages do not have. Not together with column.include.list.",
    ),
    flag(
        "table.ignore.builtin",
        FILTERS,
        "Ignore system databases",
        "Whether tables that belong to the database itself are left out.",
    )
    .default("true")
    .importance(Importance::Low),
    flag(
        "include.schema.changes",
        CONNECTOR,
        "Include database schema changes",
        "Whether changes of structures are written to the topic that is called like topic.prefix.",
    )
    .default("true"),
    flag(
        "include.schema.comments",
        CONNECTOR,
        "Include Table and Column Comments",
        "Whether comments of tables and columns are read, and put into schemas.",
    )
    .default("false"),
    new(
        "decimal.handling.mode",
        OptionKind::String,
        CONNECTOR,
        "Decimal Handling",
        "How numbers with a fixed point are represented: as exact binary numbers (precise), as texts (string), or as the nearest doubles (double).",
    )
    .default("precise")
    .one_of(DECIMAL_MODES)
    .width(Width::Short),
    new(
        "time.precision.mode",
        OptionKind::String,
        CONNECTOR,
        "Time Precision",
        "How dates, times and timestamps are represented: with the precision of their columns (adaptive; adaptive_time_microseconds: times always in microseconds), in Connect's types with milliseconds (connect), in microseconds or nanoseconds, as ISO 8601 texts (isostring), or as structs of their parts (structured).",
    )
    .default("adaptive")
    .one_of(TIME_PRECISIONS)
    .width(Width::Short),
    new(
        "binary.handling.mode",
        OptionKind::String,
        CONNECTOR,
        "Binary Handling",
        "How binary values are represented: as bytes, or as texts in base64, base64-url-safe or hex.",
    )
    .default("bytes")
    .one_of(BINARY_MODES)
    .width(Width::Short)
    .importance(Importance::Low),
    new(
        "event.converting.failure.handling.mode",
        OptionKind::String,
        ADVANCED,
        "Event converting failure handling",
        "What a value that cannot be converted becomes: null and a log line (warn), null (skip), or an error of its event (fail). Where a column must not be null it is an error in any case.",
    )
    .default("warn")
    .one_of(&["warn", "fail", "skip"])
    .width(Width::Short),
    new(
        "message.key.columns",
        OptionKind::String,
        ADVANCED,
        "Columns PK mapping",
        "Keys for tables: <table>:<column>,<column>, with semicolons between tables; the names are regular expressions. Other tables keep their primary keys.",
    )
    .check(MessageKeys::check)
    .width(Width::Long),
    new(
        TRUNCATE,
        OptionKind::List,
        ADVANCED,
        "Truncate Columns To n Characters",
        "With a number in place of (d+): columns whose values are cut to so many characters or bytes.",
    )
    .rule(Rule::Regexes)
    .width(Width::Long),
    new(
        MASK,
        OptionKind::List,
        ADVANCED,
        "Mask Columns With n Asterisks",
        "With a number in place of (d+): columns whose texts become so many asterisks.",
    )
    .rule(Rule::Regexes)
    .width(Width::Long),
    new(
        DIGEST,
        OptionKind::List,
        ADVANCED,
        "Mask Columns Using Hash and Salt",
        "With an algorithm and a salt in place of the parentheses: columns whose texts become digests. column.mask.hash.v2. digests the plain text, without v2. the text as Java serialises it.",
    )
    .rule(Rule::Regexes)
    .width(Width::Long),
    new(
        "column.propagate.source.type",
        OptionKind::List,
        ADVANCED,
        "Propagate Source Types by Columns",
        "Columns whose schemas name the type, length and scale that they have in the database.",
    )
    .rule(Rule::Regexes)
    .width(Width::Long),
    new(
        "datatype.propagate.source.type",
        OptionKind::List,
        ADVANCED,
        "Propagate Source Types by Data Type",
        "The same for all columns of types, as <table>.<type>.",
    )
    .rule(Rule::Regexes)
    .width(Width::Long),
    flag(
        "skip.messages.without.change",
        ADVANCED,
        "Enable skipping messages without change",
        "Whether updates that change no captured column are left out.",
    )
    .default("false"),
    new(
        "unavailable.value.placeholder",
        OptionKind::String,
        ADVANCED,
        "Unavailable value placeholder",
        "Stands for a value that the log does not hold. hex: and hexadecimal digits: these bytes.",
    )
    .default("__debezium_unavailable_value")
    .check(Placeholder::check),
    new(
        "heartbeat.action.query",
        OptionKind::String,
        ADVANCED,
        "An optional query to execute with every heartbeat",
        "Statement that is run with each heartbeat, for example to make the log move.",
    )
    .importance(Importance::Low),
    new(
        "snapshot.lock.timeout.ms",
        OptionKind::Long,
        SNAPSHOT,
        "Snapshot lock timeout (ms)",
        "The most milliseconds that a snapshot waits for locks of tables.",
    )
    .default("10000")
    .at_least(-1)
    .width(Width::Long),
    new(
        "snapshot.select.statement.overrides",
        OptionKind::String,
        SNAPSHOT,
        "List of tables where the default select statement used during snapshotting should be overridden.",
        "Tables that a snapshot reads with a statement of the user's, which is in snapshot.select.statement.overrides.<table>.",
    )
    .width(Width::Long),
    new(
        "snapshot.tables.order.by.row.count",
        OptionKind::String,
        SNAPSHOT,
        "Initial snapshot tables order by row count",
        "Whether a snapshot begins with the smallest (ascending) or the largest table (descending).",
    )
    .default("disabled")
    .one_of(&["ascending", "descending", "disabled"]),
];

/// Lists of databases, for sources that find their databases by themselves.
pub const DATABASE_LISTS: &[OptionDef] = &[
    high(list("database.include.list", "Include Databases", "Databases whose tables are captured. Unset: all.")),
    list(
        "database.exclude.list",
        "Exclude Databases",
        "Databases whose tables are not captured. Not together with database.include.list.",
    ),
];

/// Keys under these are checked apart: [`MAPPER_PREFIXES`](super::column_mappers::MAPPER_PREFIXES), and the
/// statements of tables.
pub const OPEN_PREFIXES: [&str; 4] =
    ["column.truncate.to.", "column.mask.with.", "column.mask.hash.", "snapshot.select.statement.overrides."];

/// Rules over the options of [`RELATIONAL`].
pub const RELATIONAL_CHECKS: &[CrossCheck] = &[exclusive_lists];

/// Rules over the options of [`DATABASE_LISTS`].
pub const DATABASE_LIST_CHECKS: &[CrossCheck] = &[exclusive_database_lists];

fn exclusive_lists(s: &Settings) -> Vec<(&'static str, String)> {
    const LISTS: [(&str, &str); 3] = [
        ("schema.include.list", "schema.exclude.list"),
        ("table.include.list", "table.exclude.list"),
        ("column.include.list", "column.exclude.list"),
    ];
    LISTS.into_iter().filter_map(|lists| exclusive(s, lists)).collect()
}

fn exclusive_database_lists(s: &Settings) -> Vec<(&'static str, String)> {
    exclusive(s, ("database.include.list", "database.exclude.list")).into_iter().collect()
}

/// The fault of two lists that are both given.
pub fn exclusive(s: &Settings, (include, exclude): (&'static str, &'static str)) -> Option<(&'static str, String)> {
    let both = !s.list(include).is_empty() && !s.list(exclude).is_empty();
    both.then(|| (exclude, format!("\"{include}\" is already specified")))
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
