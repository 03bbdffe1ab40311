//! Catalog procedures that drivers call: "sp_tables", "sp_columns", "sp_pkeys", "sp_statistics", "sp_fkeys" and
//! others. Most are queries over the catalog views; those that speak of ODBC's types are in `columns`, and what
//! tells of procedures in `procedures`.
//!
//! System views, which the real server lists among the tables, are not listed. Numbers of rows and pages of
//! "sp_statistics" are NULL.

mod columns;
mod procedures;

use super::Given;
use crate::engine::fault::{Outcome, SqlError};
use crate::engine::kinds::kind::nvarchar;
use crate::engine::kinds::text::{like, same_name};
use crate::engine::run::{Frame, Runner};
use crate::session::Answers;
use crate::value::SqlValue;

const TABLES: &str = "SELECT DB_NAME() AS TABLE_QUALIFIER, s.name AS TABLE_OWNER, o.name AS TABLE_NAME, \
    CASE WHEN o.type = 'V' THEN 'VIEW' ELSE 'TABLE' END AS TABLE_TYPE, CAST(NULL AS varchar(254)) AS REMARKS \
    FROM sys.objects o JOIN sys.schemas s ON s.schema_id = o.schema_id \
    WHERE o.type IN ('U', 'V') AND (@name IS NULL OR o.name LIKE @name) AND (@owner IS NULL OR s.name LIKE @owner) \
    AND (@type IS NULL OR CHARINDEX(CASE WHEN o.type = 'V' THEN '''VIEW''' ELSE '''TABLE''' END, @type) > 0) ORDER BY 4, 1, 2, 3";

const KEYS: &str = "SELECT DB_NAME() AS TABLE_QUALIFIER, s.name AS TABLE_OWNER, o.name AS TABLE_NAME, c.name AS COLUMN_NAME, \
    CAST(ic.key_ordinal AS smallint) AS KEY_SEQ, i.name AS PK_NAME \
    FROM sys.tables o JOIN sys.schemas s ON s.schema_id = o.schema_id JOIN sys.indexes i ON i.object_id = o.object_id AND i.is_primary_key = 1 \
    JOIN sys.index_columns ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id \
    JOIN sys.columns c ON c.object_id = ic.object_id AND c.column_id = ic.column_id \
    WHERE o.name = @name AND (@owner IS NULL OR s.name = @owner) ORDER BY 2, 3, 5";

/// The first row is about the table as a whole.
const INDEXES: &str = "SELECT DB_NAME() AS TABLE_QUALIFIER, s.name AS TABLE_OWNER, o.name AS TABLE_NAME, \
    CAST(NULL AS smallint) AS NON_UNIQUE, CAST(NULL AS sysname) AS INDEX_QUALIFIER, CAST(NULL AS sysname) AS INDEX_NAME, \
    CAST(0 AS smallint) AS TYPE, CAST(NULL AS smallint) AS SEQ_IN_INDEX, CAST(NULL AS sysname) AS COLUMN_NAME, \
    CAST(NULL AS char(1)) AS COLLATION, CAST(NULL AS int) AS CARDINALITY, CAST(NULL AS int) AS PAGES, CAST(NULL AS varchar(128)) AS FILTER_CONDITION \
    FROM sys.tables o JOIN sys.schemas s ON s.schema_id = o.schema_id WHERE o.name = @name AND (@owner IS NULL OR s.name = @owner) \
    UNION ALL SELECT DB_NAME(), s.name, o.name, \
    CAST(CASE WHEN i.is_unique = 1 THEN 0 ELSE 1 END AS smallint), o.name, i.name, \
    CAST(CASE WHEN i.type = 1 THEN 1 ELSE 3 END AS smallint), CAST(ic.key_ordinal AS smallint), c.name, \
    CAST(CASE WHEN ic.is_descending_key = 1 THEN 'D' ELSE 'A' END AS char(1)), CAST(NULL AS int), CAST(NULL AS int), CAST(i.filter_definition AS varchar(128)) \
    FROM sys.tables o JOIN sys.schemas s ON s.schema_id = o.schema_id JOIN sys.indexes i ON i.object_id = o.object_id AND i.index_id > 0 \
    JOIN sys.index_columns ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id AND ic.key_ordinal > 0 \
    JOIN sys.columns c ON c.object_id = ic.object_id AND c.column_id = ic.column_id \
    WHERE o.name = @name AND (@owner IS NULL OR s.name = @owner) AND (@index IS NULL OR i.name LIKE @index) \
    AND (@unique IS NULL OR @unique <> 'Y' OR i.is_unique = 1) ORDER BY 4, 7, 6, 8";

const FOREIGN_KEYS: &str = "SELECT DB_NAME() AS PKTABLE_QUALIFIER, ps.name AS PKTABLE_OWNER, p.name AS PKTABLE_NAME, pc.name AS PKCOLUMN_NAME, \
    DB_NAME() AS FKTABLE_QUALIFIER, fs.name AS FKTABLE_OWNER, f.name AS FKTABLE_NAME, fc.name AS FKCOLUMN_NAME, \
    CAST(kc.constraint_column_id AS smallint) AS KEY_SEQ, CAST(1 AS smallint) AS UPDATE_RULE, \
    CAST(CASE k.delete_referential_action WHEN 0 THEN 1 WHEN 1 THEN 0 ELSE 2 END AS smallint) AS DELETE_RULE, \
    k.name AS FK_NAME, i.name AS PK_NAME, CAST(7 AS smallint) AS DEFERRABILITY \
    FROM sys.foreign_keys k JOIN sys.foreign_key_columns kc ON kc.constraint_object_id = k.object_id \
    JOIN sys.tables f ON f.object_id = k.parent_object_id JOIN sys.schemas fs ON fs.schema_id = f.schema_id \
    JOIN sys.tables p ON p.object_id = k.referenced_object_id JOIN sys.schemas ps ON ps.schema_id = p.schema_id \
    JOIN sys.columns fc ON fc.object_id = kc.parent_object_id AND fc.column_id = kc.parent_column_id \
    JOIN sys.columns pc ON pc.object_id = kc.referenced_object_id AND pc.column_id = kc.referenced_column_id \
    LEFT JOIN sys.indexes i ON i.object_id = k.referenced_object_id AND i.index_id = k.key_index_id \
    WHERE (@name IS NULL OR p.name = @name) AND (@owner IS NULL OR ps.name = @owner) \
    AND (@fktable IS NULL OR f.name = @fktable) AND (@fkowner IS NULL OR fs.name = @fkowner) \
    ORDER BY 5, 6, 7, 9";

/// Whether a name is what was asked for: a pattern, or the name itself; `None`: any.
fn fits(found: &str, wanted: Option<&str>, patterns: bool) -> bool {
    match wanted {
        Some(pattern) if patterns => like(found, pattern, None, true),
        Some(wanted) => same_name(found, wanted),
        None => true,
    }
}

impl Runner {
    pub(super) fn catalog_procedure(
        &mut self,
        name: &str,
        given: &Given,
        depth: usize,
        answers: &mut dyn Answers,
    ) -> Outcome<Option<i32>> {
        let text = match name {
            "sp_tables" => TABLES,
            "sp_pkeys" => KEYS,
            "sp_fkeys" => FOREIGN_KEYS,
            "sp_statistics" | "sp_statistics_100" => INDEXES,
            "sp_columns" | "sp_columns_90" | "sp_columns_100" | "sp_special_columns" | "sp_special_columns_100" => "",
            "sp_datatype_info" | "sp_datatype_info_90" | "sp_datatype_info_100" => {
                self.type_info(given, answers)?;
                return Ok(Some(0));
            }
            "sp_stored_procedures" => {
                self.list_procedures(given, answers)?;
                return Ok(Some(0));
            }
            "sp_sproc_columns" | "sp_sproc_columns_90" | "sp_sproc_columns_100" => {
                self.list_parameters(given, answers)?;
                return Ok(Some(0));
            }
            _ => return Ok(None),
        };
        let qualifier = match name {
            "sp_fkeys" => given.text("pktable_qualifier", 2).or_else(|| given.text("fktable_qualifier", 5)),
            _ => given.text("table_qualifier", 2),
        };
        if qualifier.is_some_and(|q| !q.is_empty() && q != "%" && !self.is_here(&q)) {
            let text = "The database name component of the object qualifier must be the name of the current database.";
            return Err(SqlError::new(15250, text).into());
        }
        let variables: &[(&str, &str, usize)] = match name {
            "sp_tables" => &[("@name", "table_name", 0), ("@owner", "table_owner", 1), ("@type", "table_type", 3)],
            "sp_fkeys" => &[
                ("@name", "pktable_name", 0),
                ("@owner", "pktable_owner", 1),
                ("@fktable", "fktable_name", 3),
                ("@fkowner", "fktable_owner", 4),
            ],
            "sp_pkeys" | "sp_statistics" | "sp_statistics_100" => &[
                ("@name", "table_name", 0),
                ("@owner", "table_owner", 1),
                ("@index", "index_name", 3),
                ("@unique", "is_unique", 4),
            ],
            "sp_special_columns" | "sp_special_columns_100" => {
                self.special_columns(given, answers)?;
                return Ok(Some(0));
            }
            _ => {
                self.columns_procedure(name, given, answers)?;
                return Ok(Some(0));
            }
        };
        let mut frame = Frame::default();
        for (variable, parameter, place) in variables {
            let value = given.text(parameter, *place).map_or(SqlValue::Null, SqlValue::Text);
            frame.variables.insert((*variable).into(), (nvarchar(384), value));
        }
        self.nested(text, frame, depth, answers)?;
        Ok(Some(0))
    }

    fn is_here(&self, database: &str) -> bool {
        self.usable().is_ok_and(|d| same_name(&d.name, database))
    }
}
