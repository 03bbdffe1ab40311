//! Catalog procedures that drivers call: "sp_tables", "sp_columns", "sp_pkeys", "sp_statistics". Each is a
//! query over the catalog views.

use super::Given;
use crate::engine::fault::Outcome;
use crate::engine::kinds::kind::nvarchar;
use crate::engine::run::{Frame, Runner};
use crate::session::Answers;
use crate::value::SqlValue;

const TABLES: &str = "SELECT DB_NAME() AS TABLE_QUALIFIER, s.name AS TABLE_OWNER, o.name AS TABLE_NAME, \
    CASE WHEN o.type = 'V' THEN 'VIEW' ELSE 'TABLE' END AS TABLE_TYPE, CAST(NULL AS varchar(254)) AS REMARKS \
    FROM sys.objects o JOIN sys.schemas s ON s.schema_id = o.schema_id \
    WHERE (@name IS NULL OR o.name LIKE @name) AND (@owner IS NULL OR s.name LIKE @owner) ORDER BY 4, 1, 2, 3";

const COLUMNS: &str = "SELECT DB_NAME() AS TABLE_QUALIFIER, s.name AS TABLE_OWNER, o.name AS TABLE_NAME, c.name AS COLUMN_NAME, \
    CAST(c.system_type_id AS smallint) AS DATA_TYPE, t.name + CASE WHEN c.is_identity = 1 THEN N' identity' ELSE N'' END AS TYPE_NAME, \
    CAST(CASE WHEN c.precision > 0 THEN c.precision WHEN c.max_length = -1 THEN 0 WHEN t.name IN (N'nchar', N'nvarchar', N'sysname') THEN c.max_length / 2 \
    ELSE c.max_length END AS int) AS [PRECISION], CAST(c.max_length AS int) AS LENGTH, CAST(c.scale AS smallint) AS SCALE, CAST(10 AS smallint) AS RADIX, \
    CAST(c.is_nullable AS smallint) AS NULLABLE, CAST(NULL AS varchar(254)) AS REMARKS, d.definition AS COLUMN_DEF, c.column_id AS ORDINAL_POSITION, \
    CASE WHEN c.is_nullable = 1 THEN 'YES' ELSE 'NO' END AS IS_NULLABLE, CAST(c.is_identity AS smallint) AS SS_IS_IDENTITY, \
    CAST(c.is_computed AS smallint) AS SS_IS_COMPUTED \
    FROM sys.objects o JOIN sys.schemas s ON s.schema_id = o.schema_id JOIN sys.columns c ON c.object_id = o.object_id \
    JOIN sys.types t ON t.user_type_id = c.user_type_id LEFT JOIN sys.default_constraints d ON d.object_id = c.default_object_id \
    WHERE (@name IS NULL OR o.name LIKE @name) AND (@owner IS NULL OR s.name LIKE @owner) AND (@column IS NULL OR c.name LIKE @column) \
    ORDER BY 2, 3, 14";

const KEYS: &str = "SELECT DB_NAME() AS TABLE_QUALIFIER, s.name AS TABLE_OWNER, o.name AS TABLE_NAME, c.name AS COLUMN_NAME, \
    CAST(ic.key_ordinal AS smallint) AS KEY_SEQ, i.name AS PK_NAME \
    FROM sys.tables o JOIN sys.schemas s ON s.schema_id = o.schema_id JOIN sys.indexes i ON i.object_id = o.object_id AND i.is_primary_key = 1 \
    JOIN sys.index_columns ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id \
    JOIN sys.columns c ON c.object_id = ic.object_id AND c.column_id = ic.column_id \
    WHERE o.name = @name AND (@owner IS NULL OR s.name = @owner) ORDER BY 2, 3, 5";

const INDEXES: &str = "SELECT DB_NAME() AS TABLE_QUALIFIER, s.name AS TABLE_OWNER, o.name AS TABLE_NAME, \
    CAST(CASE WHEN i.is_unique = 1 THEN 0 ELSE 1 END AS smallint) AS NON_UNIQUE, o.name AS INDEX_QUALIFIER, i.name AS INDEX_NAME, \
    CAST(CASE WHEN i.type = 1 THEN 1 ELSE 3 END AS smallint) AS TYPE, CAST(ic.key_ordinal AS smallint) AS SEQ_IN_INDEX, c.name AS COLUMN_NAME, \
    CASE WHEN ic.is_descending_key = 1 THEN 'D' ELSE 'A' END AS COLLATION \
    FROM sys.tables o JOIN sys.schemas s ON s.schema_id = o.schema_id JOIN sys.indexes i ON i.object_id = o.object_id AND i.index_id > 0 \
    JOIN sys.index_columns ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id AND ic.key_ordinal > 0 \
    JOIN sys.columns c ON c.object_id = ic.object_id AND c.column_id = ic.column_id \
    WHERE o.name = @name AND (@owner IS NULL OR s.name = @owner) ORDER BY 4, 7, 6, 8";

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
            "sp_columns" | "sp_columns_90" | "sp_columns_100" => COLUMNS,
            "sp_pkeys" => KEYS,
            "sp_statistics" | "sp_statistics_100" => INDEXES,
            _ => return Ok(None),
        };
        let mut frame = Frame::default();
        for (variable, parameter, place) in
            [("@name", "table_name", 0), ("@owner", "table_owner", 1), ("@column", "column_name", 3)]
        {
            let value = given.text(parameter, place).map_or(SqlValue::Null, SqlValue::Text);
            frame.variables.insert(variable.into(), (nvarchar(384), value));
        }
        self.nested(text, frame, depth, answers)?;
        Ok(Some(0))
    }
}
