//! Columns as drivers want them: "sp_columns (Transact-SQL)" and its newer forms, "sp_special_columns".

use super::super::Given;
use super::fits;
use crate::engine::catalogue::{Column, Database, Index, Table};
use crate::engine::fault::Outcome;
use crate::engine::kinds::kind::{SYSNAME, nvarchar, varchar};
use crate::engine::kinds::odbc::OdbcType;
use crate::engine::kinds::text::same_name;
use crate::engine::run::Runner;
use crate::session::Answers;
use crate::types::{Length, SqlType};
use crate::value::SqlValue;

/// The columns of "sp_columns_100"; those of older forms are the first ones.
const COLUMNS: &[(&str, SqlType)] = &[
    ("TABLE_QUALIFIER", SYSNAME),
    ("TABLE_OWNER", SYSNAME),
    ("TABLE_NAME", SYSNAME),
    ("COLUMN_NAME", SYSNAME),
    ("DATA_TYPE", SqlType::SmallInt),
    ("TYPE_NAME", SYSNAME),
    ("PRECISION", SqlType::Int),
    ("LENGTH", SqlType::Int),
    ("SCALE", SqlType::SmallInt),
    ("RADIX", SqlType::SmallInt),
    ("NULLABLE", SqlType::SmallInt),
    ("REMARKS", SqlType::VarChar(Length::Limited(254))),
    ("COLUMN_DEF", SqlType::NVarChar(Length::Limited(4000))),
    ("SQL_DATA_TYPE", SqlType::SmallInt),
    ("SQL_DATETIME_SUB", SqlType::SmallInt),
    ("CHAR_OCTET_LENGTH", SqlType::Int),
    ("ORDINAL_POSITION", SqlType::Int),
    ("IS_NULLABLE", SqlType::VarChar(Length::Limited(254))),
    ("SS_IS_SPARSE", SqlType::SmallInt),
    ("SS_IS_COLUMN_SET", SqlType::SmallInt),
    ("SS_IS_COMPUTED", SqlType::SmallInt),
    ("SS_IS_IDENTITY", SqlType::SmallInt),
    ("SS_UDT_CATALOG_NAME", SYSNAME),
    ("SS_UDT_SCHEMA_NAME", SYSNAME),
    ("SS_UDT_ASSEMBLY_TYPE_NAME", SqlType::NVarChar(Length::Max)),
    ("SS_XML_SCHEMACOLLECTION_CATALOG_NAME", SYSNAME),
    ("SS_XML_SCHEMACOLLECTION_SCHEMA_NAME", SYSNAME),
    ("SS_XML_SCHEMACOLLECTION_NAME", SYSNAME),
    ("SS_DATA_TYPE", SqlType::TinyInt),
];

pub(super) fn text(text: &str) -> SqlValue {
    SqlValue::Text(text.to_owned())
}

pub(super) fn number(n: impl Into<i64>) -> SqlValue {
    SqlValue::Int(n.into())
}

pub(super) fn maybe(n: Option<impl Into<i64>>) -> SqlValue {
    n.map_or(SqlValue::Null, number)
}

pub(super) fn flag(b: bool) -> SqlValue {
    number(i32::from(b))
}

fn column_row(database: &Database, table: &Table, column: &Column, place: i32, version: i64) -> Vec<SqlValue> {
    let odbc = OdbcType::of(&column.kind, version);
    let clr = matches!(column.kind, SqlType::Clr(_));
    let of_clr = |name: &str| if clr { text(name) } else { SqlValue::Null };
    vec![
        text(&database.name),
        text(&table.schema),
        text(&table.name),
        text(&column.name),
        number(odbc.number),
        SqlValue::Text(type_name(database, column)),
        number(odbc.precision),
        number(odbc.length),
        maybe(odbc.scale),
        maybe(odbc.radix),
        flag(column.nullable),
        SqlValue::Null,
        column.default.as_ref().map_or(SqlValue::Null, |d| text(&d.text)),
        number(odbc.sql_number),
        maybe(odbc.sql_datetime),
        maybe(odbc.octets),
        number(place),
        text(if column.nullable { "YES" } else { "NO" }),
        flag(column.sparse),
        flag(false),
        flag(column.computed.is_some()),
        flag(column.identity.is_some()),
        of_clr(&database.name),
        of_clr("sys"),
        of_clr(column.kind.name()),
        SqlValue::Null,
        SqlValue::Null,
        SqlValue::Null,
        number(if column.nullable { odbc.old.1 } else { odbc.old.0 }),
    ]
}

/// An alias type by its own name; an identity column says so.
fn type_name(database: &Database, column: &Column) -> String {
    let alias = database.types.iter().find(|t| Some(t.id) == column.alias);
    let name = alias.map_or(column.kind.name(), |t| &t.name);
    match (&column.identity, &column.kind) {
        (None, _) => name.to_owned(),
        (Some(_), SqlType::Decimal { .. } | SqlType::Numeric { .. }) => format!("{name}() identity"),
        (Some(_), _) => format!("{name} identity"),
    }
}

impl Runner {
    /// Patterns select tables and columns, unless `@fUsePattern` is 0.
    pub(super) fn columns_procedure(&self, name: &str, given: &Given, answers: &mut dyn Answers) -> Outcome<()> {
        let database = self.usable()?;
        let version = given.int("ODBCVer", 5).unwrap_or(2);
        let patterns = given.int("fUsePattern", 6) != Some(0);
        let (wanted, owner) = (given.text("table_name", 0), given.text("table_owner", 1));
        let wanted_column = given.text("column_name", 3);
        let mut tables: Vec<&Table> = database
            .tables
            .values()
            .map(AsRef::as_ref)
            .filter(|t| fits(&t.name, wanted.as_deref(), patterns) && fits(&t.schema, owner.as_deref(), patterns))
            .collect();
        tables.sort_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
        let mut rows = Vec::new();
        for table in tables {
            for (column, place) in table.columns.iter().zip(1..) {
                if fits(&column.name, wanted_column.as_deref(), patterns) {
                    rows.push(column_row(&database, table, column, place, version));
                }
            }
        }
        // "sp_columns" ends with IS_NULLABLE and SS_DATA_TYPE.
        if name == "sp_columns" {
            let old = |n: &usize| *n < 18 || *n == 28;
            let columns: Vec<_> = COLUMNS.iter().enumerate().filter(|(n, _)| old(n)).map(|(_, c)| c.clone()).collect();
            let rows = rows
                .into_iter()
                .map(|row| row.into_iter().enumerate().filter(|(n, _)| old(n)).map(|(_, v)| v).collect());
            return self.result(&columns, rows.collect(), answers);
        }
        self.result(COLUMNS, rows, answers)
    }

    /// "sp_special_columns": what identifies a row (`R`), the primary key before any other unique index; or the
    /// column that every update changes (`V`), which is a `rowversion`.
    pub(super) fn special_columns(&self, given: &Given, answers: &mut dyn Answers) -> Outcome<()> {
        let database = self.usable()?;
        let name = given.text("table_name", 0).unwrap_or_default();
        let owner = given.text("table_owner", 1).unwrap_or_else(|| "dbo".into());
        let version = given.int("ODBCVer", 6).unwrap_or(2);
        let by_update = given.text("col_type", 3).is_some_and(|t| same_name(t.trim(), "V"));
        let no_nulls = given.text("nullable", 5).is_some_and(|t| same_name(t.trim(), "O"));
        let mut chosen: Vec<&Column> = Vec::new();
        let table = database.table(&owner, &name);
        if let Some(table) = table {
            if by_update {
                chosen = table.columns.iter().filter(|c| c.kind == SqlType::RowVersion).collect();
            } else {
                let fits = |index: &&Index| {
                    index.unique
                        && index.filter.is_none()
                        && !(no_nulls
                            && index.key.iter().any(|(id, _)| table.column_by_id(*id).is_none_or(|c| c.nullable)))
                };
                let index = table.primary_key().or_else(|| table.indexes.iter().find(fits));
                chosen = index.iter().flat_map(|i| &i.key).filter_map(|(id, _)| table.column_by_id(*id)).collect();
            }
        }
        let rows = chosen.into_iter().map(|column| {
            let odbc = OdbcType::of(&column.kind, version);
            vec![
                // The session's scope; columns that change by themselves have none.
                if by_update { SqlValue::Null } else { number(2) },
                text(&column.name),
                number(odbc.number),
                SqlValue::Text(type_name(&database, column)),
                number(odbc.precision),
                number(odbc.length),
                maybe(odbc.scale),
                number(1),
            ]
        });
        self.result(
            &[
                ("SCOPE", SqlType::SmallInt),
                ("COLUMN_NAME", SYSNAME),
                ("DATA_TYPE", SqlType::SmallInt),
                ("TYPE_NAME", SYSNAME),
                ("PRECISION", SqlType::Int),
                ("LENGTH", SqlType::Int),
                ("SCALE", SqlType::SmallInt),
                ("PSEUDO_COLUMN", SqlType::SmallInt),
            ],
            rows.collect(),
            answers,
        )
    }

    /// "sp_datatype_info": every system type, in the order of its ODBC number.
    pub(super) fn type_info(&self, given: &Given, answers: &mut dyn Answers) -> Outcome<()> {
        let wanted = given.int("data_type", 0).unwrap_or(0);
        let version = given.int("ODBCVer", 1).unwrap_or(2);
        let mut all: Vec<(OdbcType, SqlType)> = Vec::new();
        for (name, ..) in crate::engine::kinds::kind::SYSTEM_TYPES.iter().filter(|t| t.0 != "sysname") {
            let size = match *name {
                "char" | "varchar" | "binary" | "varbinary" => vec![Some(8000)],
                "nchar" | "nvarchar" => vec![Some(4000)],
                "decimal" | "numeric" => vec![Some(38), Some(0)],
                _ => Vec::new(),
            };
            if let Some(kind) = SqlType::parse(name, &size)?
                && !matches!(kind, SqlType::Clr(_))
            {
                all.push((OdbcType::of(&kind, version), kind));
            }
        }
        all.retain(|(odbc, _)| wanted == 0 || i64::from(odbc.number) == wanted);
        all.sort_by_key(|(odbc, _)| odbc.number);
        let rows = all.into_iter().map(|(odbc, kind)| {
            let (quote, parameters) = match &kind {
                k if k.is_unicode() => (Some(("N'", "'")), odbc.octets.map(|_| "length")),
                k if k.is_text()
                    || k.fraction() > 0
                    || matches!(k, SqlType::Date | SqlType::SmallDateTime | SqlType::UniqueIdentifier) =>
                {
                    (Some(("'", "'")), odbc.octets.map(|_| "length"))
                }
                SqlType::Binary(_) | SqlType::VarBinary(_) => (Some(("0x", "")), Some("length")),
                SqlType::Decimal { .. } | SqlType::Numeric { .. } => (None, Some("precision,scale")),
                SqlType::Money | SqlType::SmallMoney => (Some(("$", "")), None),
                _ => (None, None),
            };
            let affix = |of: Option<&str>| of.filter(|t| !t.is_empty()).map_or(SqlValue::Null, text);
            let numeric = odbc.radix.is_some();
            let exact = odbc.radix == Some(10) && odbc.scale.is_some();
            vec![
                text(kind.name()),
                number(odbc.number),
                number(odbc.precision),
                affix(quote.map(|q| q.0)),
                affix(quote.map(|q| q.1)),
                affix(parameters),
                flag(kind != SqlType::RowVersion),
                flag(kind.is_text()),
                number(if kind.is_lob() {
                    1
                } else if kind.is_text() {
                    3
                } else {
                    2
                }),
                if numeric { flag(kind == SqlType::TinyInt) } else { SqlValue::Null },
                flag(matches!(kind, SqlType::Money | SqlType::SmallMoney)),
                if numeric { flag(false) } else { SqlValue::Null },
                text(kind.name()),
                if exact || kind.fraction() > 0 { number(0) } else { SqlValue::Null },
                if matches!(kind, SqlType::Decimal { .. } | SqlType::Numeric { .. }) {
                    number(38)
                } else {
                    maybe(odbc.scale)
                },
                number(odbc.sql_number),
                maybe(odbc.sql_datetime),
                maybe(odbc.radix),
                SqlValue::Null,
                number(kind.ids().1),
            ]
        });
        self.result(
            &[
                ("TYPE_NAME", SYSNAME),
                ("DATA_TYPE", SqlType::SmallInt),
                ("PRECISION", SqlType::Int),
                ("LITERAL_PREFIX", varchar(32)),
                ("LITERAL_SUFFIX", varchar(32)),
                ("CREATE_PARAMS", varchar(32)),
                ("NULLABLE", SqlType::SmallInt),
                ("CASE_SENSITIVE", SqlType::SmallInt),
                ("SEARCHABLE", SqlType::SmallInt),
                ("UNSIGNED_ATTRIBUTE", SqlType::SmallInt),
                ("MONEY", SqlType::SmallInt),
                ("AUTO_INCREMENT", SqlType::SmallInt),
                ("LOCAL_TYPE_NAME", nvarchar(128)),
                ("MINIMUM_SCALE", SqlType::SmallInt),
                ("MAXIMUM_SCALE", SqlType::SmallInt),
                ("SQL_DATA_TYPE", SqlType::SmallInt),
                ("SQL_DATETIME_SUB", SqlType::SmallInt),
                ("NUM_PREC_RADIX", SqlType::Int),
                ("INTERVAL_PRECISION", SqlType::SmallInt),
                ("USERTYPE", SqlType::SmallInt),
            ],
            rows.collect(),
            answers,
        )
    }
}
