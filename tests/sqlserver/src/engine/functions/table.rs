//! Which functions there are, what they take and what they give.

use super::{Eval, cdc, dates, metadata, operators, strings, variant as variant_of};
use crate::engine::kinds::kind::{SYSNAME, nvarchar, varbinary};
use crate::types::{Length, SqlType};

/// What an argument is converted to before the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// Nothing.
    Any,
    /// Texts stay as they are, others become `nvarchar`.
    Text,
    /// Texts and bytes stay as they are.
    TextOrBytes,
    Int,
    Float,
    /// Numbers stay as they are, `real` and texts become `float`.
    Number,
    /// Temporal types stay as they are, others become `datetime2`.
    Temporal,
    Bytes,
    /// A word: `year` of `DATEPART(year, …)`.
    Part,
}

pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    /// The last one goes for all that follow.
    pub(crate) wants: &'static [Want],
    pub(crate) least: usize,
    pub(crate) most: usize,
    pub(crate) eval: Eval,
    /// NULL in, NULL out.
    pub(crate) strict: bool,
    /// The same in every row of a statement.
    pub(crate) pure: bool,
    /// The call's note is the collation of the texts.
    pub(crate) collated: bool,
    pub(crate) result: fn(&[SqlType]) -> SqlType,
}

use Want::{Any, Bytes, Float, Int, Number, Part, Temporal, Text, TextOrBytes};

const fn pure(
    name: &'static str,
    wants: &'static [Want],
    (least, most): (usize, usize),
    eval: Eval,
    result: fn(&[SqlType]) -> SqlType,
) -> Builtin {
    Builtin { name, wants, least, most, eval, strict: true, pure: true, collated: false, result }
}

const fn loose(builtin: Builtin) -> Builtin {
    Builtin { strict: false, ..builtin }
}

const fn collated(builtin: Builtin) -> Builtin {
    Builtin { collated: true, ..builtin }
}

/// Reads the session or the catalogue.
const fn outside(
    name: &'static str,
    wants: &'static [Want],
    arity: (usize, usize),
    eval: Eval,
    result: fn(&[SqlType]) -> SqlType,
) -> Builtin {
    Builtin { strict: false, pure: false, ..pure(name, wants, arity, eval, result) }
}

fn int(_: &[SqlType]) -> SqlType {
    SqlType::Int
}

fn bigint(_: &[SqlType]) -> SqlType {
    SqlType::BigInt
}

fn bit(_: &[SqlType]) -> SqlType {
    SqlType::Bit
}

fn smallint(_: &[SqlType]) -> SqlType {
    SqlType::SmallInt
}

fn sysname(_: &[SqlType]) -> SqlType {
    SYSNAME
}

fn variant(_: &[SqlType]) -> SqlType {
    SqlType::SqlVariant
}

fn long_text(_: &[SqlType]) -> SqlType {
    nvarchar(4000)
}

fn identity(_: &[SqlType]) -> SqlType {
    SqlType::Numeric { precision: 38, scale: 0 }
}

fn lsn(_: &[SqlType]) -> SqlType {
    SqlType::Binary(10)
}

/// The variable-length type of the first argument.
fn same_text(kinds: &[SqlType]) -> SqlType {
    match kinds.first() {
        Some(SqlType::Char(n)) => SqlType::VarChar(Length::Limited(*n)),
        Some(SqlType::NChar(n)) => SqlType::NVarChar(Length::Limited(*n)),
        Some(SqlType::Binary(n)) => SqlType::VarBinary(Length::Limited(*n)),
        Some(SqlType::Text) => SqlType::VarChar(Length::Max),
        Some(SqlType::NText) => SqlType::NVarChar(Length::Max),
        Some(SqlType::Image) => SqlType::VarBinary(Length::Max),
        Some(kind) => kind.clone(),
        None => nvarchar(4000),
    }
}

/// As the first argument, as long as it can be.
fn longest_text(kinds: &[SqlType]) -> SqlType {
    match same_text(kinds) {
        SqlType::VarChar(Length::Limited(_)) => SqlType::VarChar(Length::Limited(8000)),
        SqlType::NVarChar(Length::Limited(_)) => SqlType::NVarChar(Length::Limited(4000)),
        other => other,
    }
}

fn joined(kinds: &[SqlType]) -> SqlType {
    let unicode = kinds.iter().any(SqlType::is_unicode);
    let total: Option<usize> = kinds.iter().map(|k| k.length().map(usize::from)).sum();
    match (unicode, total) {
        (true, Some(n)) => SqlType::NVarChar(Length::Limited(n.clamp(1, 4000) as u16)),
        (false, Some(n)) => SqlType::VarChar(Length::Limited(n.clamp(1, 8000) as u16)),
        (true, None) => SqlType::NVarChar(Length::Max),
        (false, None) => SqlType::VarChar(Length::Max),
    }
}

fn same(kinds: &[SqlType]) -> SqlType {
    kinds.first().cloned().unwrap_or(SqlType::Int)
}

fn small_as_int(kinds: &[SqlType]) -> SqlType {
    match same(kinds) {
        SqlType::Bit | SqlType::TinyInt | SqlType::SmallInt => SqlType::Int,
        other => other,
    }
}

/// The type of `DATEADD` is that of the date.
fn third_date(kinds: &[SqlType]) -> SqlType {
    kinds.get(2).cloned().unwrap_or(SqlType::DateTime)
}

fn with_offset(kinds: &[SqlType]) -> SqlType {
    SqlType::DateTimeOffset { scale: kinds.first().map_or(7, SqlType::fraction) }
}

fn float(_: &[SqlType]) -> SqlType {
    SqlType::Float
}

fn date(_: &[SqlType]) -> SqlType {
    SqlType::Date
}

fn datetime(_: &[SqlType]) -> SqlType {
    SqlType::DateTime
}

fn datetime2(_: &[SqlType]) -> SqlType {
    SqlType::DateTime2 { scale: 7 }
}

fn datetimeoffset(_: &[SqlType]) -> SqlType {
    SqlType::DateTimeOffset { scale: 7 }
}

fn uuid(_: &[SqlType]) -> SqlType {
    SqlType::UniqueIdentifier
}

fn bytes10(_: &[SqlType]) -> SqlType {
    varbinary(10)
}

const BUILTINS: &[Builtin] = &[
    // Texts.
    pure("LEN", &[TextOrBytes], (1, 1), strings::len, int),
    pure("DATALENGTH", &[Any], (1, 1), strings::datalength, int),
    pure("UPPER", &[Text], (1, 1), strings::upper, same_text),
    pure("LOWER", &[Text], (1, 1), strings::lower, same_text),
    pure("LTRIM", &[Text], (1, 1), strings::trim, same_text),
    pure("RTRIM", &[Text], (1, 1), strings::trim, same_text),
    pure("TRIM", &[Text], (1, 1), strings::trim, same_text),
    pure("SUBSTRING", &[TextOrBytes, Int, Int], (3, 3), strings::substring, same_text),
    pure("LEFT", &[Text, Int], (2, 2), strings::left_or_right, same_text),
    pure("RIGHT", &[Text, Int], (2, 2), strings::left_or_right, same_text),
    collated(pure("REPLACE", &[Text, Text, Text], (3, 3), strings::replace, longest_text)),
    collated(pure("CHARINDEX", &[Text, Text, Int], (2, 3), strings::charindex, int)),
    collated(pure("PATINDEX", &[Text, Text], (2, 2), strings::patindex, int)),
    pure("REPLICATE", &[Text, Int], (2, 2), strings::replicate, longest_text),
    pure("SPACE", &[Int], (1, 1), strings::space, |_| SqlType::VarChar(Length::Limited(8000))),
    pure("REVERSE", &[Text], (1, 1), strings::reverse, same_text),
    loose(pure("CONCAT", &[Text], (2, 254), strings::concat, joined)),
    loose(pure("CONCAT_WS", &[Text], (3, 254), strings::concat_ws, longest_text)),
    pure("QUOTENAME", &[Text, Text], (1, 2), strings::quotename, |_| nvarchar(258)),
    loose(pure("STUFF", &[Text, Int, Int, Text], (4, 4), strings::stuff, longest_text)),
    pure("CHAR", &[Int], (1, 1), strings::char_of, |_| SqlType::Char(1)),
    pure("NCHAR", &[Int], (1, 1), strings::char_of, |_| SqlType::NChar(1)),
    pure("ASCII", &[Text], (1, 1), strings::code_of, int),
    pure("UNICODE", &[Text], (1, 1), strings::code_of, int),
    pure("STR", &[Float, Int, Int], (1, 3), strings::str, |_| SqlType::VarChar(Length::Limited(8000))),
    loose(pure("ISNUMERIC", &[Any], (1, 1), strings::isnumeric, int)),
    outside("NEWID", &[Any], (0, 0), strings::newid, uuid),
    outside("NEWSEQUENTIALID", &[Any], (0, 0), strings::newid, uuid),
    // Numbers.
    pure("ABS", &[Number], (1, 1), operators::math, small_as_int),
    pure("SIGN", &[Number], (1, 1), operators::math, small_as_int),
    pure("CEILING", &[Number], (1, 1), operators::math, small_as_int),
    pure("FLOOR", &[Number], (1, 1), operators::math, small_as_int),
    pure("ROUND", &[Number, Int, Int], (2, 3), operators::math, small_as_int),
    pure("POWER", &[Number, Float], (2, 2), operators::math, small_as_int),
    pure("SQRT", &[Float], (1, 1), operators::math, float),
    pure("EXP", &[Float], (1, 1), operators::math, float),
    pure("LOG", &[Float], (1, 1), operators::math, float),
    // Dates.
    pure("DATEADD", &[Part, Int, Temporal], (3, 3), dates::dateadd, third_date),
    pure("DATEDIFF", &[Part, Temporal, Temporal], (3, 3), dates::datediff, int),
    pure("DATEDIFF_BIG", &[Part, Temporal, Temporal], (3, 3), dates::datediff, bigint),
    pure("DATEPART", &[Part, Temporal], (2, 2), dates::datepart, int),
    pure("DATENAME", &[Part, Temporal], (2, 2), dates::datename, |_| nvarchar(30)),
    pure("YEAR", &[Temporal], (1, 1), dates::year_month_day, int),
    pure("MONTH", &[Temporal], (1, 1), dates::year_month_day, int),
    pure("DAY", &[Temporal], (1, 1), dates::year_month_day, int),
    pure("EOMONTH", &[Temporal, Int], (1, 2), dates::eomonth, date),
    pure("DATEFROMPARTS", &[Int, Int, Int], (3, 3), dates::datefromparts, date),
    pure("ISDATE", &[Any], (1, 1), dates::isdate, int),
    pure("TODATETIMEOFFSET", &[Temporal, Any], (2, 2), dates::todatetimeoffset, with_offset),
    pure("SWITCHOFFSET", &[Temporal, Any], (2, 2), dates::switchoffset, with_offset),
    pure("AT TIME ZONE", &[Temporal, Text], (2, 2), dates::at_time_zone, with_offset),
    outside("GETDATE", &[Any], (0, 0), dates::now, datetime),
    outside("CURRENT_TIMESTAMP", &[Any], (0, 0), dates::now, datetime),
    outside("GETUTCDATE", &[Any], (0, 0), dates::now, datetime),
    outside("SYSDATETIME", &[Any], (0, 0), dates::now, datetime2),
    outside("SYSUTCDATETIME", &[Any], (0, 0), dates::now, datetime2),
    outside("SYSDATETIMEOFFSET", &[Any], (0, 0), dates::now, datetimeoffset),
    // Catalogue.
    outside("DB_ID", &[Text], (0, 1), metadata::db_id, smallint),
    outside("DB_NAME", &[Int], (0, 1), metadata::db_name, sysname),
    outside("OBJECT_ID", &[Text, Text], (1, 2), metadata::object_id, int),
    outside("OBJECT_NAME", &[Int, Int], (1, 2), metadata::object_name, sysname),
    outside("OBJECT_SCHEMA_NAME", &[Int, Int], (1, 2), metadata::object_schema_name, sysname),
    outside("OBJECT_DEFINITION", &[Int], (1, 1), metadata::object_definition, |_| SqlType::NVarChar(Length::Max)),
    outside("SCHEMA_ID", &[Text], (0, 1), metadata::schema_id, int),
    outside("SCHEMA_NAME", &[Int], (0, 1), metadata::schema_name, sysname),
    outside("TYPE_NAME", &[Int], (1, 1), metadata::type_name, sysname),
    outside("TYPE_ID", &[Text], (1, 1), metadata::type_id, int),
    outside("COL_NAME", &[Int, Int], (2, 2), metadata::col_name, sysname),
    outside("COLUMNPROPERTY", &[Int, Text, Text], (3, 3), metadata::columnproperty, int),
    outside("OBJECTPROPERTY", &[Int, Text], (2, 2), metadata::objectproperty, int),
    outside("OBJECTPROPERTYEX", &[Int, Text], (2, 2), metadata::objectproperty, int),
    outside("SQL_VARIANT_PROPERTY", &[Any, Text], (2, 2), variant_of::property, variant),
    outside("SERVERPROPERTY", &[Text], (1, 1), metadata::serverproperty, variant),
    outside("DATABASEPROPERTYEX", &[Text, Text], (2, 2), metadata::databasepropertyex, variant),
    outside("HAS_DBACCESS", &[Text], (1, 1), metadata::has_dbaccess, int),
    outside("HAS_PERMS_BY_NAME", &[Text], (3, 5), metadata::has_perms_by_name, int),
    outside("IS_MEMBER", &[Text], (1, 1), metadata::is_member, int),
    outside("IS_ROLEMEMBER", &[Text], (1, 1), metadata::is_member, int),
    outside("IS_SRVROLEMEMBER", &[Text], (1, 2), metadata::is_member, int),
    outside("APP_NAME", &[Any], (0, 0), metadata::who, |_| nvarchar(128)),
    outside("HOST_NAME", &[Any], (0, 0), metadata::who, |_| nvarchar(128)),
    outside("SUSER_NAME", &[Any], (0, 1), metadata::who, sysname),
    outside("SUSER_SNAME", &[Any], (0, 1), metadata::who, sysname),
    outside("SYSTEM_USER", &[Any], (0, 0), metadata::who, sysname),
    outside("ORIGINAL_LOGIN", &[Any], (0, 0), metadata::who, sysname),
    outside("USER_NAME", &[Any], (0, 1), metadata::who, sysname),
    outside("CURRENT_USER", &[Any], (0, 0), metadata::who, sysname),
    outside("SESSION_USER", &[Any], (0, 0), metadata::who, sysname),
    outside("USER", &[Any], (0, 0), metadata::who, sysname),
    outside("SCOPE_IDENTITY", &[Any], (0, 0), metadata::identity, identity),
    outside("@@IDENTITY", &[Any], (0, 0), metadata::identity, identity),
    outside("IDENT_CURRENT", &[Text], (1, 1), metadata::identity, identity),
    outside("@@SPID", &[Any], (0, 0), metadata::session_number, smallint),
    outside("@@LOCK_TIMEOUT", &[Any], (0, 0), metadata::session_number, int),
    outside("@@TRANCOUNT", &[Any], (0, 0), metadata::session_number, int),
    outside("XACT_STATE", &[Any], (0, 0), metadata::session_number, smallint),
    outside("@@ROWCOUNT", &[Any], (0, 0), metadata::session_number, int),
    outside("ROWCOUNT_BIG", &[Any], (0, 0), metadata::session_number, bigint),
    outside("@@ERROR", &[Any], (0, 0), metadata::session_number, int),
    outside("@@MAX_PRECISION", &[Any], (0, 0), metadata::session_number, |_| SqlType::TinyInt),
    outside("@@PROCID", &[Any], (0, 0), metadata::session_number, int),
    outside("@@NESTLEVEL", &[Any], (0, 0), metadata::session_number, int),
    outside("@@CURSOR_ROWS", &[Any], (0, 0), metadata::session_number, int),
    outside("@@FETCH_STATUS", &[Any], (0, 0), metadata::session_number, int),
    outside("@@DATEFIRST", &[Any], (0, 0), metadata::session_number, |_| SqlType::TinyInt),
    outside("@@OPTIONS", &[Any], (0, 0), metadata::session_number, int),
    outside("@@TEXTSIZE", &[Any], (0, 0), metadata::session_number, int),
    outside("CURRENT_TRANSACTION_ID", &[Any], (0, 0), metadata::session_number, bigint),
    outside("@@VERSION", &[Any], (0, 0), metadata::server_text, |_| nvarchar(300)),
    outside("@@SERVERNAME", &[Any], (0, 0), metadata::server_text, sysname),
    outside("@@LANGUAGE", &[Any], (0, 0), metadata::server_text, sysname),
    outside("@@SERVICENAME", &[Any], (0, 0), metadata::server_text, sysname),
    outside("ERROR_NUMBER", &[Any], (0, 0), metadata::caught, int),
    outside("ERROR_SEVERITY", &[Any], (0, 0), metadata::caught, int),
    outside("ERROR_STATE", &[Any], (0, 0), metadata::caught, int),
    outside("ERROR_LINE", &[Any], (0, 0), metadata::caught, int),
    outside("ERROR_PROCEDURE", &[Any], (0, 0), metadata::caught, sysname),
    outside("ERROR_MESSAGE", &[Any], (0, 0), metadata::caught, long_text),
    // Change data capture; the binder puts the database's name into the note.
    pure("FN_CDC_INCREMENT_LSN", &[Bytes], (1, 1), cdc::increment, lsn),
    pure("FN_CDC_DECREMENT_LSN", &[Bytes], (1, 1), cdc::decrement, lsn),
    outside("FN_CDC_GET_MIN_LSN", &[Text], (1, 1), cdc::min_lsn, bytes10),
    outside("FN_CDC_GET_COLUMN_ORDINAL", &[Text, Text], (2, 2), cdc::column_ordinal, int),
    pure("FN_CDC_IS_BIT_SET", &[Int, Bytes], (2, 2), cdc::is_bit_set, bit),
    outside("FN_CDC_HAS_COLUMN_CHANGED", &[Text, Text, Bytes], (3, 3), cdc::has_column_changed, bit),
];

/// A function by its name in any case.
pub(crate) fn builtin(name: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|b| b.name.eq_ignore_ascii_case(name))
}
